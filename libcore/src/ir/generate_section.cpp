// SPDX-License-Identifier: Apache-2.0
// The roles that inputs and outputs of a decoder have in a token loop. What is read is the JSON of
// a document, so that a template, whose sizes are expressions, has the same checks: names, dtypes
// and the number of dimensions. O(inputs + outputs).
#include "ir/generate_section.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "npu/tensor/dtype.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr std::string_view kRolesPointer = "/npu/generate";
constexpr std::size_t kMostStart = 1024;

/// One mention of `graph_inputs` or `graph_outputs`.
struct RoleKind {
  std::string_view key;
  std::string_view list;
  std::string_view what;  // "graph input"
  bool is_required;
};

class RolesReader {
 public:
  RolesReader(const Json& document, const std::string& file, Diagnostics& diagnostics)
      : document_(document), faults_(file, diagnostics) {}

  std::optional<GenerateRoles> read(const Json& section) {
    if (!faults_.check_object(section, std::string(kRolesPointer))) return std::nullopt;
    GenerateRoles roles;
    if (find_member(section, "source") != nullptr) {
      faults_.check_keys(section, std::string(kRolesPointer), {"source"});
      roles.source = name(section, {"source", "graph_inputs", "graph input", true});
      return roles;
    }
    faults_.check_keys(section, std::string(kRolesPointer),
                       {"tokens", "positions", "logits", "start"});
    roles.tokens = name(section, {"tokens", "graph_inputs", "graph input", true});
    roles.positions = name(section, {"positions", "graph_inputs", "graph input", false});
    roles.logits = name(section, {"logits", "graph_outputs", "graph output", true});
    if (!roles.tokens.empty() && roles.tokens == roles.positions) {
      fault("positions", "is '" + roles.positions + "', which is 'tokens' as well");
    }
    if (const Json* start = find_member(section, "start")) read_start(*start, roles.start);
    return roles;
  }

 private:
  void read_start(const Json& json, std::vector<std::int64_t>& ids) {
    for (std::size_t i = 0; json.is_array() && i < std::min(json.size(), kMostStart + 1); ++i) {
      const auto id = json_integer(&json[i]);
      if (id && *id >= 0) ids.push_back(*id);
    }
    if (!json.is_array() || json.empty() || ids.size() != json.size() || ids.size() > kMostStart) {
      fault("start", "is no list of 1 to " + std::to_string(kMostStart) + " ids");
    }
  }

  void fault(std::string_view key, const std::string& text) {
    faults_.add(pointer_below(kRolesPointer, key), "'" + std::string(key) + "' " + text);
  }

  std::string name(const Json& section, const RoleKind& kind) {
    const Json* value = find_member(section, kind.key);
    const std::string* text = json_text(value);
    if (value == nullptr && !kind.is_required) return {};
    if (text == nullptr || text->empty()) {
      fault(kind.key,
            "is not the name of a " + std::string(kind.what) + ", but " + value_or_type(value));
      return {};
    }
    const Json* mention = mention_of(kind.list, *text);
    if (mention == nullptr) {
      fault(kind.key, "is '" + *text + "', which is no " + std::string(kind.what) +
                          spelling_hint(*text, names_of(kind.list)));
      return {};
    }
    check_mention(kind.key, *text, *mention);
    return *text;
  }

  const Json* mention_of(std::string_view list, const std::string& name) const {
    const Json* mentions = member_list(document_, list);
    for (std::size_t i = 0; mentions != nullptr && i < mentions->size(); ++i) {
      const Json& mention = (*mentions)[i];
      const std::string* known = mention.is_object() ? member_text(mention, "name") : nullptr;
      if (known != nullptr && *known == name) return &mention;
    }
    return nullptr;
  }

  std::vector<std::string> names_of(std::string_view list) const {
    std::vector<std::string> names;
    const Json* mentions = member_list(document_, list);
    for (std::size_t i = 0; mentions != nullptr && i < mentions->size(); ++i) {
      const Json& mention = (*mentions)[i];
      const std::string* known = mention.is_object() ? member_text(mention, "name") : nullptr;
      if (known != nullptr) names.push_back(*known);
    }
    return names;
  }

  // A dtype or shape that is none has been told by the reader of the document.
  void check_mention(std::string_view key, const std::string& name, const Json& mention) {
    const std::string* dtype = member_text(mention, "dtype");
    const Json* shape = member_list(mention, "shape");
    const bool is_logits = key == "logits";
    const bool is_source = key == "source";
    if (dtype != nullptr && !is_source) {
      const bool suits = is_logits
                             ? *dtype == "float32" || *dtype == "float16" || *dtype == "bfloat16"
                             : *dtype == "int64";
      if (!suits) {
        fault(key, "is '" + name + "' of dtype " + *dtype + ", expected " +
                       (is_logits ? "float32, float16 or bfloat16" : "int64"));
      }
    }
    if (shape == nullptr) return;
    const std::size_t rank = shape->size();
    if (key == "tokens" && rank != 2) fault(key, rank_text(name, rank, "2, [1, T]"));
    if (key == "positions" && rank != 1 && rank != 2) {
      fault(key, rank_text(name, rank, "1 or 2, [T] or [1, T]"));
    }
    if (is_source && rank < 2) fault(key, rank_text(name, rank, "at least 2, [1, ...]"));
    if (is_logits && rank != 3) fault(key, rank_text(name, rank, "3, [1, T or 1, V]"));
    const std::optional<std::int64_t> first = rank == 0 ? std::nullopt : json_integer(&(*shape)[0]);
    if (rank > 1 && first && *first != 1) {
      fault(key, "is '" + name + "' with a batch of " + std::to_string(*first) + ", expected 1");
    }
  }

  static std::string rank_text(const std::string& name, std::size_t rank,
                               std::string_view expected) {
    return "is '" + name + "' of " + std::to_string(rank) + " dimensions, expected " +
           std::string(expected);
  }

  const Json& document_;
  FieldFaults faults_;
};

}  // namespace

std::optional<GenerateRoles> read_generate_roles(const Json& document, const std::string& file,
                                                 Diagnostics& diagnostics) {
  const Json* npu = member_object(document, "npu");
  const Json* section = npu == nullptr ? nullptr : find_member(*npu, "generate");
  if (section == nullptr) return std::nullopt;
  return RolesReader(document, file, diagnostics).read(*section);
}

Json roles_json(const GenerateRoles& roles) {
  if (!roles.source.empty()) return {{"source", roles.source}};
  Json json = Json::object();
  json["tokens"] = roles.tokens;
  if (!roles.positions.empty()) json["positions"] = roles.positions;
  json["logits"] = roles.logits;
  if (!roles.start.empty()) json["start"] = roles.start;
  return json;
}

}  // namespace npu
