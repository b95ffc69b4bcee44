// SPDX-License-Identifier: Apache-2.0
// `npu.padding`: written for a graph that is padded, read from documents of any origin.
// O(entries).
#include "passes/padding/padding_section.hpp"

#include <algorithm>
#include <utility>

#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::padding {
namespace {

constexpr std::size_t kMostPaddedSymbols = 64;
constexpr std::int64_t kMostCapacity = std::int64_t{1} << 40;

/// Reads the section of one document; every fault names its place.
class SectionReader {
 public:
  SectionReader(const Graph& graph, Diagnostics& diagnostics)
      : graph_(graph), faults_(graph.file, diagnostics), diagnostics_(diagnostics) {}

  std::optional<PaddingSection> read(const Json& json) {
    const std::size_t before = diagnostics_.error_count();
    if (!faults_.check_object(json, kPointer)) return std::nullopt;
    faults_.check_keys(json, kPointer, {"symbols", "claim", "tensors", "masks", "cut", "flow"});
    read_symbols(member_object(json, "symbols"));
    read_list(json, "tensors",
              [&](const Json& entry, const std::string& at) { read_tensor(entry, at); });
    read_list(json, "masks",
              [&](const Json& entry, const std::string& at) { read_mask(entry, at); });
    section_.cut = number(json, "cut", kPointer, 0, INT64_MAX);
    section_.flow = number(json, "flow", kPointer, 0, INT64_MAX);
    const std::string* claim = member_text(json, "claim");
    if (claim == nullptr || *claim != "exact") {
      faults_.add(kPointer + "/claim", "expected \"exact\"");
    }
    if (diagnostics_.error_count() != before) return std::nullopt;
    return std::move(section_);
  }

 private:
  inline static const std::string kPointer = "/npu/padding";

  template <typename Read>
  void read_list(const Json& json, const char* key, const Read& read) {
    const Json* list = member_list(json, key);
    const std::string pointer = pointer_below(kPointer, key);
    if (list == nullptr) return faults_.add(pointer, "expected a list");
    for (std::size_t i = 0; i < list->size(); ++i) read((*list)[i], pointer_below(pointer, i));
  }

  std::int64_t number(const Json& json, const char* key, const std::string& pointer,
                      std::int64_t min, std::int64_t max) {
    const auto value = member_integer(json, key);
    if (value && *value >= min && *value <= max) return *value;
    faults_.add(pointer_below(pointer, key),
                "expected an integer of at least " + std::to_string(min) +
                    (max == INT64_MAX ? "" : " and at most " + std::to_string(max)));
    return min;
  }

  void read_symbols(const Json* json) {
    const std::string pointer = kPointer + "/symbols";
    if (json == nullptr || json->empty() || json->size() > kMostPaddedSymbols) {
      return faults_.add(
          pointer, "expected an object of 1 to " + std::to_string(kMostPaddedSymbols) + " sizes");
    }
    for (const auto& [name, entry] : json->get_ref<const Json::object_t&>()) {
      const std::string at = pointer_below(pointer, name);
      if (!is_size_symbol(name)) {
        faults_.add(at, "'" + short_text(name) + "' is no name of a size");
        continue;
      }
      if (!faults_.check_object(entry, at)) continue;
      faults_.check_keys(entry, at, {"capacity", "min", "multiple_of", "valid"});
      PaddedSymbol symbol{.name = name};
      symbol.capacity = number(entry, "capacity", at, 1, kMostCapacity);
      symbol.min = number(entry, "min", at, 1, symbol.capacity);
      if (find_member(entry, "multiple_of") != nullptr) {
        symbol.multiple_of = number(entry, "multiple_of", at, 1, symbol.capacity);
      }
      if (symbol.capacity % symbol.multiple_of != 0 || symbol.min % symbol.multiple_of != 0) {
        faults_.add(at, "'capacity' or 'min' is no multiple of 'multiple_of'");
      }
      if (const Json* valid = find_member(entry, "valid")) {
        if (const std::string* text = json_text(valid)) {
          symbol.valid = *text;
        } else {
          faults_.add(at + "/valid", "expected a string, the name of a graph input");
        }
      }
      section_.symbols.push_back(std::move(symbol));
    }
  }

  void read_tensor(const Json& entry, const std::string& at) {
    const bool is_entry = entry.is_array() && entry.size() == 4 && entry[0].is_string() &&
                          entry[1].is_number_integer() && entry[2].is_string() &&
                          entry[3].is_string();
    if (!is_entry) return faults_.add(at, "expected [tensor, dimension, size, class]");
    PaddedTensor tensor;
    tensor.name = entry[0].get<std::string>();
    const auto dim = json_integer(&entry[1]);
    tensor.dim = dim.value_or(-1);
    const auto tail = TailClass::parse(entry[3].get_ref<const std::string&>());
    if (!tail) {
      return faults_.add(at + "/3", "expected R, Z, N, F, A or two of R, Z and N, found '" +
                                        short_text(entry[3].get<std::string>()) + "'");
    }
    tensor.tail = *tail;
    try {
      tensor.size = SizeExpression::parse(entry[2].get_ref<const std::string&>());
    } catch (const Error& error) {
      return faults_.add(at + "/2", error.message());
    }
    section_.tensors.push_back(std::move(tensor));
  }

  void read_mask(const Json& entry, const std::string& at) {
    if (!faults_.check_object(entry, at)) return;
    faults_.check_keys(entry, at, {"node", "tensor", "dim", "fill", "bytes", "for"});
    const std::string* node = member_text(entry, "node");
    const std::string* tensor = member_text(entry, "tensor");
    const std::string* fill = member_text(entry, "fill");
    const auto value = fill == nullptr ? std::nullopt : parse_fill(*fill);
    const Json* readers = member_list(entry, "for");
    if (node == nullptr || tensor == nullptr || !value || readers == nullptr) {
      return faults_.add(at,
                         "expected strings 'node' and 'tensor', a 'fill' of zero, lowest or "
                         "edge and a list 'for'");
    }
    PaddingMask mask{.node = *node, .tensor = *tensor, .fill = *value, .readers = {}};
    mask.dim = number(entry, "dim", at, 0, INT32_MAX);
    mask.bytes = number(entry, "bytes", at, 0, INT64_MAX);
    for (const Json& reader : *readers) {
      const std::string* name = json_text(&reader);
      if (name == nullptr) return faults_.add(at + "/for", "expected strings");
      mask.readers.push_back(*name);
    }
    section_.masks.push_back(std::move(mask));
  }

  const Graph& graph_;
  FieldFaults faults_;
  Diagnostics& diagnostics_;
  PaddingSection section_;
};

}  // namespace

Json PaddingSection::to_json() const {
  Json json = Json::object();
  Json list = Json::object();
  for (const PaddedSymbol& symbol : symbols) {
    Json entry{{"capacity", symbol.capacity}, {"min", symbol.min}};
    if (symbol.multiple_of != 1) entry["multiple_of"] = symbol.multiple_of;
    if (!symbol.valid.empty()) entry["valid"] = symbol.valid;
    list[symbol.name] = std::move(entry);
  }
  json["symbols"] = std::move(list);
  json["claim"] = "exact";
  json["tensors"] = Json::array();
  for (const PaddedTensor& tensor : tensors) {
    json["tensors"].push_back(
        Json::array({tensor.name, tensor.dim, tensor.size.text(), tensor.tail.text()}));
  }
  json["masks"] = Json::array();
  for (const PaddingMask& mask : masks) {
    json["masks"].push_back({{"node", mask.node},
                             {"tensor", mask.tensor},
                             {"dim", mask.dim},
                             {"fill", std::string(fill_name(mask.fill))},
                             {"bytes", mask.bytes},
                             {"for", mask.readers}});
  }
  json["cut"] = cut;
  json["flow"] = flow;
  return json;
}

std::optional<PaddingSection> PaddingSection::read(const Graph& graph, Diagnostics& diagnostics) {
  const Json* json = graph.npu_member("padding");
  return json == nullptr ? std::nullopt : SectionReader(graph, diagnostics).read(*json);
}

const SizeExpression* PaddingSection::find(std::string_view tensor,
                                           std::int64_t dim) const noexcept {
  for (const PaddedTensor& entry : tensors) {
    if (entry.dim == dim && entry.name == tensor) return &entry.size;
  }
  return nullptr;
}

std::vector<PaddingMask> masks_of(const Graph& graph) {
  std::vector<PaddingMask> masks;
  for (const Node& node : graph.nodes()) {
    if (node.op_type != "npu.tail" || node.inputs.empty() || node.outputs.empty()) continue;
    const TensorInfo& tensor = graph.tensor(node.inputs.front());
    const std::string* fill = member_text(node.attrs(), "fill");
    PaddingMask mask{.node = node.name, .tensor = tensor.name, .readers = {}};
    mask.dim = member_integer(node.attrs(), "dim").value_or(-1);
    if (mask.dim < 0) mask.dim += std::ssize(tensor.shape);
    mask.fill = (fill == nullptr ? std::nullopt : parse_fill(*fill)).value_or(Fill::kZero);
    mask.bytes = tensor.bytes();
    for (const NodeId reader : graph.tensor(node.outputs.front()).consumers) {
      mask.readers.push_back(graph.node(reader).name);
    }
    masks.push_back(std::move(mask));
  }
  return masks;
}

}  // namespace npu::padding
