// SPDX-License-Identifier: Apache-2.0
// Looks up sizes, attributes and small constants of a template by the nodes and tensors of its
// bound graph. O(nodes + tensors) once.
#include "passes/states/past_model.hpp"

#include <cstdint>

#include "npu/support/error.hpp"
#include "support/checked.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

// Elements of a constant that a formula is made of; of a mask, with a row for each position.
constexpr std::int64_t kMostElements = 1 << 16;
constexpr std::int64_t kMostBools = 1 << 22;

bool has_past_in(const PastModel& model, const Json& value) {
  if (value.is_array()) {
    for (const Json& each : value) {
      if (has_past_in(model, each)) return true;
    }
    return false;
  }
  const auto size = model.size_of(value);
  return size && model.has_past(*size);
}

bool flatten(const Json& data, std::vector<double>& values) {
  if (data.is_array()) {
    for (const Json& each : data) {
      if (!flatten(each, values)) return false;
    }
    return true;
  }
  const auto number = json_number(data);
  if (number) values.push_back(*number);
  return number.has_value();
}

}  // namespace

bool stretches(const SizeShape& from, const SizeShape& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t d = 0; d < from.size(); ++d) {
    const SizeExpression& size = to[d + to.size() - from.size()];
    if (from[d] != size && from[d] != SizeExpression(1)) return false;
  }
  return true;
}

PastModel::PastModel(const Template& model, const CachePairs& caches, Diagnostics& diagnostics)
    : model_(model), caches_(caches) {
  graph_ = bind_sizes(model, model.symbols().samples().back(), diagnostics);
  if (diagnostics.has_errors()) return;
  for (const SizeSymbol& symbol : model.symbols().list()) {
    SizeRange& range = ranges_[symbol.name];
    range.min = symbol.name == caches.past_symbol ? 0 : symbol.min.constant().value_or(0);
    if (symbol.max && symbol.max->constant()) range.max = *symbol.max->constant();
  }
  ranges_[caches.past_symbol].min = 0;
  shapes_.resize(graph_.tensors().size());
  for (const TensorId id : ids_of<TensorId>(graph_.tensors())) {
    const TensorInfo& tensor = graph_.tensor(id);
    if (const SizeShape* stated = model.shape(tensor.name)) {
      for (const SizeExpression& size : *stated) {
        shapes_[id].push_back(size.substitute(caches.substitution));
      }
    } else {
      shapes_[id].assign(tensor.shape.begin(), tensor.shape.end());
    }
  }
  const Json* nodes = member_list(model.document(), "nodes");
  for (std::size_t n = 0; nodes != nullptr && n < nodes->size(); ++n) {
    const std::string* name = member_text((*nodes)[n], "name");
    const Json* attrs = find_member((*nodes)[n], "attrs");
    if (name != nullptr && attrs != nullptr) attrs_.try_emplace(*name, attrs);
  }
  weights_ = WeightMap::of(graph_);
}

bool PastModel::mentions_past(TensorId id) const {
  for (const SizeExpression& size : shapes_[id]) {
    if (has_past(size)) return true;
  }
  return false;
}

bool PastModel::mentions_past(const Node& node) const {
  const Json& all = attrs(node);
  if (!all.is_object()) return false;
  for (const auto& [key, value] : all.get_ref<const Json::object_t&>()) {
    if (has_past_in(*this, value)) return true;
  }
  return false;
}

const Json& PastModel::attrs(const Node& node) const {
  static const Json kNone = Json::object();
  const auto found = attrs_.find(node.name);
  return found == attrs_.end() ? kNone : *found->second;
}

std::optional<SizeExpression> PastModel::size_of(const Json& value) const {
  if (!value.is_string()) return std::nullopt;
  const auto size = model_.size_in_attrs(value.get_ref<const std::string&>());
  return size ? std::optional(size->substitute(caches_.substitution)) : std::nullopt;
}

std::optional<SizeExpression> PastModel::size(const BoundNode& node,
                                              std::string_view argument) const {
  const BoundArgument* bound = node.find(argument);
  if (bound == nullptr || bound->kind != BoundArgument::Kind::kValue) return std::nullopt;
  const Json* stated = find_member(attrs(node.node()), argument);
  if (stated != nullptr && stated->is_string()) return size_of(*stated);
  const auto number = json_integer(&bound->value);
  return number ? std::optional<SizeExpression>(*number) : std::nullopt;
}

std::optional<std::vector<double>> PastModel::constant(TensorId id) const {
  const TensorInfo& tensor = graph_.tensor(id);
  const auto count = checked_element_count(tensor.shape);
  const std::int64_t most = tensor.dtype == DType::kBool ? kMostBools : kMostElements;
  if (tensor.kind != TensorKind::kWeight || !count || *count > most) return std::nullopt;
  std::vector<double> values;
  const Json* constants = member_object(graph_.document(), "constants");
  const Json* entry = constants == nullptr ? nullptr : member_object(*constants, tensor.name);
  if (constants != nullptr && entry == nullptr)
    entry = member_object(*constants, tensor.weight_key);
  if (entry != nullptr) {
    const Json* data = find_member(*entry, "data");
    if (data == nullptr || !flatten(*data, values)) return std::nullopt;
  } else {
    std::optional<Tensor> stored;
    if (weights_) stored = weights_->find(tensor);
    if (!stored || tensor.dtype == DType::kComplex64 || tensor.dtype == DType::kComplex128) {
      return std::nullopt;
    }
    for (std::int64_t i = 0; i < *count; ++i) values.push_back(stored->value_as_double(i));
  }
  if (static_cast<std::int64_t>(values.size()) != *count) return std::nullopt;
  return values;
}

const CachePair* PastModel::pair_of(const Node& node) const {
  for (const CachePair& pair : caches_.pairs) {
    if (pair.node == node.name) return &pair;
  }
  return nullptr;
}

}  // namespace npu::states
