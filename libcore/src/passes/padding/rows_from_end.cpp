// SPDX-License-Identifier: Apache-2.0
// A bound document cannot tell "the last two rows" from "rows 6 and 7": the template can. O(nodes).
#include "passes/padding/rows_from_end.hpp"

#include <optional>
#include <string>
#include <string_view>

#include "ops/op_name.hpp"
#include "support/json_fields.hpp"

namespace npu::padding {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 32;

std::string_view op_of(const Json& node) {
  const std::string* op = member_text(node, "op_type");
  return op == nullptr ? std::string_view() : functional_name(*op);
}

const SizeShape* shape_of_operand(const Template& model, const Json& node) {
  const Json* inputs = member_list(node, "inputs");
  const Json* first = inputs == nullptr || inputs->empty() ? nullptr : &(*inputs)[0];
  const std::string* name =
      first != nullptr && first->is_object() ? member_text(*first, "name") : nullptr;
  return name == nullptr ? nullptr : model.shape(*name);
}

/// How far in front of the end of `size` an attribute stands; nothing unless that is known.
std::optional<std::int64_t> distance_from_end(const Template& model, const Json& attrs,
                                              const char* key, const SizeExpression& size) {
  const auto number = member_integer(attrs, key);
  if (number && *number < 0 && *number > -kMostRows) return -*number;
  const std::string* text = member_text(attrs, key);
  const auto place = text == nullptr ? std::nullopt : model.size_in_attrs(*text);
  return place ? (size - *place).constant() : std::nullopt;
}

/// The attributes of a slice or a select with a start that counts from the end; nothing for others.
std::optional<Json> from_end(const Template& model, const Json& node) {
  const std::string_view name = op_of(node);
  const Json* attrs = member_object(node, "attrs");
  const SizeShape* shape = shape_of_operand(model, node);
  if ((name != "slice" && name != "select") || attrs == nullptr || shape == nullptr) {
    return std::nullopt;
  }
  const auto rank = static_cast<std::int64_t>(shape->size());
  std::int64_t dim = member_integer(*attrs, "dim").value_or(0);
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank) return std::nullopt;
  const SizeExpression& size = (*shape)[static_cast<std::size_t>(dim)];
  const char* key = name == "slice" ? "start" : "index";
  const auto before = distance_from_end(model, *attrs, key, size);
  if (!before || *before < 1) return std::nullopt;
  Json counted = *attrs;
  set_member(counted, key, -*before);
  if (name == "select" || !member_text(*attrs, "end")) return counted;
  const auto behind = distance_from_end(model, *attrs, "end", size);
  if (!behind || *behind < 0) return std::nullopt;
  if (*behind == 0) {
    counted.erase("end");
  } else {
    set_member(counted, "end", -*behind);
  }
  return counted;
}

}  // namespace

std::set<std::size_t> count_from_end(const Template& model, Json& bound) {
  std::set<std::size_t> places;
  const Json* stated = member_list(model.document(), "nodes");
  Json* nodes = find_member(bound, "nodes");
  if (stated == nullptr || nodes == nullptr || nodes->size() != stated->size()) return places;
  for (std::size_t n = 0; n < stated->size(); ++n) {
    auto attrs = from_end(model, (*stated)[n]);
    if (!attrs) continue;
    set_member((*nodes)[n], "attrs", *std::move(attrs));
    places.insert(n);
  }
  return places;
}

}  // namespace npu::padding
