// SPDX-License-Identifier: Apache-2.0
// Ops that move nothing: whoever reads their result reads their operand at another place.
#include <algorithm>
#include <numeric>

#include "ops/op_name.hpp"
#include "ops/op_table.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

std::int64_t elements_of(const Shape& shape) { return checked_element_count(shape).value_or(-1); }

std::int64_t normalized(std::int64_t dimension, std::size_t rank) {
  const auto size = static_cast<std::int64_t>(rank);
  if (dimension < 0) dimension += size;
  return dimension >= 0 && dimension < size ? dimension : -1;
}

/// For each dimension of the result the one of the operand; empty if it is not a permutation.
std::vector<std::size_t> permutation_of(const Model& model, const BoundNode& node) {
  const TensorId self = node.node().inputs[0];
  const std::size_t rank = model.shape(self).size();
  std::vector<std::size_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "numpy_T" || (name == "t" && rank == 2)) {
    std::reverse(order.begin(), order.end());
  } else if (name == "transpose" || name == "swapaxes") {
    const bool is_swap = name == "swapaxes";
    const auto a = normalized(node.integer(is_swap ? "axis0" : "dim0"), rank);
    const auto b = normalized(node.integer(is_swap ? "axis1" : "dim1"), rank);
    if (rank == 0) return order;
    if (a < 0 || b < 0) return {};
    std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  } else if (name == "permute") {
    const std::vector<std::int64_t> dims = node.integers("dims");
    if (dims.size() != rank) return {};
    for (std::size_t d = 0; d < rank; ++d) {
      const auto from = normalized(dims[d], rank);
      if (from < 0) return {};
      order[d] = static_cast<std::size_t>(from);
    }
  } else if (name == "movedim") {
    const std::vector<std::int64_t> from = node.integers("source");
    const std::vector<std::int64_t> to = node.integers("destination");
    if (from.size() != to.size()) return {};
    constexpr std::size_t kFree = SIZE_MAX;
    std::fill(order.begin(), order.end(), kFree);
    std::vector<bool> is_moved(rank);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto a = normalized(from[i], rank);
      const auto b = normalized(to[i], rank);
      if (a < 0 || b < 0) return {};
      order[static_cast<std::size_t>(b)] = static_cast<std::size_t>(a);
      is_moved[static_cast<std::size_t>(a)] = true;
    }
    std::size_t next = 0;
    for (std::size_t& each : order) {
      if (each != kFree) continue;
      while (next < rank && is_moved[next]) ++next;
      if (next == rank) return {};
      each = next++;
    }
  }
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < rank; ++d) {
    if (sorted[d] != d) return {};
  }
  return order;
}

bool keeps_order(const Model& model, NodeId id) {
  const ElementRule rule = model.row(id).element;
  return rule == reshape_element || rule == identity_element || rule == cast_element ||
         rule == cat_element || rule == pad_element;
}

}  // namespace

std::int64_t dimension_of(const Emitter& emitter, const BoundNode& node, std::int64_t dimension,
                          std::size_t rank) {
  const std::int64_t result = normalized(dimension, std::max<std::size_t>(rank, 1));
  if (result < 0) emitter.refuse(node.node(), "there is no dimension " + std::to_string(dimension));
  return result;
}

bool repeats_operand(const Model& model, NodeId id) {
  const Node& node = model.node(id);
  return node.inputs.size() == 1 && node.outputs.size() == 1 &&
         model.dtype(node.inputs[0]) == model.dtype(node.outputs[0]) &&
         model.shape(node.inputs[0]) == model.shape(node.outputs[0]);
}

bool pads_nothing(const Model& model, NodeId id) {
  return repeats_operand(model, id) &&
         std::ranges::all_of(model.bound(id).integers("pad"), [](auto n) { return n == 0; });
}

std::optional<Index> view_forward(const Model& model, NodeId id, const Index& index) {
  const Node& node = model.node(id);
  if (node.op_type == kGetitem || node.inputs.empty()) return std::nullopt;
  const Shape& from = model.shape(node.inputs[0]);
  const Shape& to = model.shape(node.outputs[0]);
  const ElementRule rule = model.row(id).element;
  if (keeps_order(model, id)) {
    if (elements_of(from) != elements_of(to)) return std::nullopt;
    return reshaped_index(index, from, to);
  }
  // A part of the whole size is the whole: steps are not negative.
  if (rule == part_element && node.outputs.size() == 1 && from == to) return index;
  if (rule == permute_element) {
    const std::vector<std::size_t> order = permutation_of(model, model.bound(id));
    if (order.size() != index.size()) return std::nullopt;
    Index result;
    for (const std::size_t d : order) result.push_back(index[d]);
    return result;
  }
  if (rule == expand_element && elements_of(from) == elements_of(to)) {
    return reshaped_index(index, from, to);
  }
  return std::nullopt;
}

TensorId same_order_operand(const Model& model, NodeId id) {
  const Node& node = model.node(id);
  if (node.op_type == kGetitem) {
    const auto which = node.attrs().contains("index") && node.attrs()["index"].is_number_integer()
                           ? node.attrs()["index"].get<std::int64_t>()
                           : -1;
    const bool is_there = which >= 0 && which < static_cast<std::int64_t>(node.inputs.size());
    return is_there ? node.inputs[static_cast<std::size_t>(which)] : TensorId{};
  }
  if (node.inputs.empty() || !keeps_order(model, id)) return {};
  const bool is_same =
      elements_of(model.shape(node.inputs[0])) == elements_of(model.shape(node.outputs[0]));
  return is_same ? node.inputs[0] : TensorId{};
}

std::string reshape_element(Emitter& emitter, const BoundNode& node, int result,
                            const Index& index) {
  const TensorId self = node.node().inputs.at(0);
  const TensorId out = node.node().outputs[static_cast<std::size_t>(result)];
  if (elements_of(emitter.shape(self)) != elements_of(emitter.shape(out))) {
    emitter.refuse(node.node(), "its result has another number of elements");
  }
  emitter.expect_dtype(node.node(), result, emitter.dtype(self));
  return emitter.element(self, reshaped_index(index, emitter.shape(out), emitter.shape(self)));
}

std::string permute_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = node.node().inputs.at(0);
  const std::vector<std::size_t> order = permutation_of(emitter.model(), node);
  const Shape& from = emitter.shape(self);
  if (order.size() != from.size()) emitter.refuse(node.node(), "its dimensions are no permutation");
  Shape expected;
  Index source(from.size());
  for (std::size_t d = 0; d < order.size(); ++d) {
    expected.push_back(from[order[d]]);
    if (d < index.size()) source[order[d]] = index[d];
  }
  emitter.expect_shape(node.node(), 0, expected);
  return emitter.element(self, source);
}

std::string expand_element(Emitter& emitter, const BoundNode& node, int, const Index& index) {
  const TensorId self = node.node().inputs.at(0);
  const Shape& from = emitter.shape(self);
  const Shape& to = emitter.shape(node.node().outputs[0]);
  bool fits = from.size() <= to.size();
  for (std::size_t d = 0; fits && d < from.size(); ++d) {
    fits = from[d] == 1 || from[d] == to[to.size() - from.size() + d];
  }
  if (!fits) emitter.refuse(node.node(), "its operand does not broadcast to its result");
  return emitter.element(self, broadcast_index(index, from));
}

// slice, select, narrow, split, chunk, unbind: the result is a part of the operand.
std::string part_element(Emitter& emitter, const BoundNode& node, int result, const Index& index) {
  const TensorId self = node.node().inputs.at(0);
  const Shape& from = emitter.shape(self);
  const std::string_view name = functional_name(node.node().op_type);
  const auto d =
      static_cast<std::size_t>(dimension_of(emitter, node, node.integer("dim"), from.size()));
  if (from.empty()) emitter.refuse(node.node(), "a scalar has no parts");
  const std::int64_t extent = from[d];
  std::int64_t begin = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
  const bool drops = name == "select" || name == "unbind";
  const auto clamped = [extent](std::int64_t place) {
    return std::clamp<std::int64_t>(place < 0 ? place + extent : place, 0, extent);
  };
  if (drops) {
    begin = name == "select" ? node.integer("index") : result;
    if (begin < 0) begin += extent;
    count = 1;
  } else if (name == "slice") {
    step = node.integer("step");
    begin = node.is_none("start") ? 0 : clamped(node.integer("start"));
    const std::int64_t end = node.is_none("end") ? extent : clamped(node.integer("end"));
    if (step < 1) emitter.refuse(node.node(), "its step is not positive");
    count = end > begin ? (end - begin - 1) / step + 1 : 0;
  } else if (name == "narrow") {
    begin = node.integer("start");
    if (begin < 0) begin += extent;
    count = node.integer("length");
  } else {
    // Parts one after the other.
    for (int i = 0; i <= result; ++i) {
      const Shape& part = emitter.shape(node.node().outputs[static_cast<std::size_t>(i)]);
      if (part.size() != from.size()) emitter.refuse(node.node(), "a result has another rank");
      count = part[d];
      begin += i < result ? count : 0;
    }
  }
  const bool is_within =
      begin >= 0 && count >= 0 &&
      (count == 0 ? begin <= extent : begin < extent && count - 1 <= (extent - 1 - begin) / step);
  if (!is_within) emitter.refuse(node.node(), "the part is not within its operand");
  Shape expected = from;
  Index source = index;
  const std::string place = drops ? std::to_string(begin) : plus(times(index.at(d), step), begin);
  if (drops) {
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(d));
    source.insert(source.begin() + static_cast<std::ptrdiff_t>(d), place);
  } else {
    expected[d] = count;
    source[d] = place;
  }
  emitter.expect_shape(node.node(), result, expected);
  return emitter.element(self, source);
}

}  // namespace npu::opencl
