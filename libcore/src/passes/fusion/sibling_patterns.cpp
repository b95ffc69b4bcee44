// SPDX-License-Identifier: Apache-2.0
// Products that read one tensor: they become one product, or meet in a concatenation.
//
// One product has several results; that is an order of groups only if it reads nothing else besides
// weights and itself, so that the group has a single entry. Branches of a concatenation have one
// reader each, so that this group keeps a single exit. O(nodes + edges).
#include <algorithm>
#include <map>
#include <tuple>

#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"

namespace npu::fusion {
namespace {

/// Products with equal keys may become one: what they read, their device, and by which their
/// weights can be stacked.
using SiblingKey = std::tuple<TensorId, std::int32_t, std::size_t>;

/// Of a group that grew from a matrix product with a known factor.
std::optional<SiblingKey> grown_product(FusionBuilder& builder, std::int32_t anchor) {
  const std::int32_t g = builder.group_of(anchor);
  const std::span<const TensorId> read = builder.operands(anchor);
  // addmm has the bias first.
  const std::size_t input = builder.node(anchor).op_type.starts_with("aten.addmm.") ? 1 : 0;
  if (!is_grown(builder, g, false) || builder.group(g).anchor != anchor ||
      !is_matrix_product(builder.role(anchor)) || read.size() < input + 2 ||
      !is_weight(builder, read[input + 1]) || is_weight(builder, read[input])) {
    return std::nullopt;
  }
  const DType dtype = builder.result(anchor).dtype;
  return SiblingKey{read[input], builder.facts(anchor).device, static_cast<std::size_t>(dtype)};
}

/// A linear layer with known weights whose result is only reshaped or permuted: one that feeds an
/// activation or a sum saves more by fusing that.
std::optional<SiblingKey> plain_linear(FusionBuilder& builder, std::int32_t n) {
  const Node& node = builder.node(n);
  if (!builder.free(n) || builder.unused(n) || builder.role(n) != Role::kLinear ||
      node.outputs.size() != 1 || node.inputs.size() < 2 || node.inputs.size() > 3 ||
      !node.attrs().empty() || !has_known_operands(builder, node)) {
    return std::nullopt;
  }
  const auto info = [&](TensorId id) -> const TensorInfo& { return builder.tensor(id); };
  const TensorInfo& source = info(node.inputs[0]);
  const Shape& weight = info(node.inputs[1]).shape;
  if (source.shape.size() < 2 || weight.size() != 2 || weight[1] != source.shape.back()) {
    return std::nullopt;
  }
  Shape expected = source.shape;
  expected.back() = weight[0];
  const TensorInfo& result = info(node.outputs[0]);
  const bool has_bias = node.inputs.size() == 3;
  const std::int32_t next = builder.only_reader(node.outputs[0]);
  if (info(node.inputs[1]).dtype != source.dtype || result.dtype != source.dtype ||
      result.shape != expected || next < 0 ||
      (has_bias && (info(node.inputs[2]).shape != Shape{weight[0]} ||
                    info(node.inputs[2]).dtype != source.dtype)) ||
      (!keeps_row_major(builder, next) && builder.role(next) != Role::kPermute)) {
    return std::nullopt;
  }
  return SiblingKey{node.inputs[0], builder.facts(n).device, node.inputs.size()};
}

/// Of anchors of groups, in topological order, so that a sibling that reads another one (a gate)
/// comes after it, those that read nothing but `x`, weights, graph inputs and one another.
NodeList with_one_entry(FusionBuilder& builder, TensorId x, NodeList anchors,
                        std::vector<char>& marks) {
  const auto group_of = [&](std::int32_t n) { return builder.group_of(n); };
  std::sort(anchors.begin(), anchors.end(), [&](std::int32_t a, std::int32_t b) {
    return builder.group(group_of(a)).sink < builder.group(group_of(b)).sink;
  });
  std::erase_if(anchors, [&](std::int32_t anchor) {
    const std::int32_t g = group_of(anchor);
    marks[index_of(g)] = 1;
    for (const std::int32_t n : builder.group(g).nodes) {
      for (const TensorId id : builder.operands(n)) {
        ++builder.steps();
        const std::int32_t from = id == x ? -1 : builder.producer(id);
        if (from >= 0 && (builder.free(from) || marks[index_of(group_of(from))] == 0)) {
          marks[index_of(g)] = 0;
        }
      }
    }
    return marks[index_of(g)] == 0;
  });
  for (const std::int32_t anchor : anchors) marks[index_of(group_of(anchor))] = 0;
  return anchors;
}

/// Merges groups; gives the one that they become.
Group& merge_all(FusionBuilder& builder, std::span<const std::int32_t> groups, Pattern pattern) {
  for (const std::int32_t g : groups.subspan(1)) builder.merge(groups[0], g);
  Group& merged = builder.group(groups[0]);
  merged.pattern = pattern;
  return merged;
}

}  // namespace

void merge_siblings(FusionBuilder& builder, Pattern pattern) {
  if (!builder.enabled(pattern)) return;
  const bool of_kernels = is_of_kernels(pattern);
  std::map<SiblingKey, NodeList> siblings;
  for (std::int32_t n = 0; n < builder.size(); ++n) {
    ++builder.steps();
    if (!builder.enabled(pattern, n)) continue;
    const auto key = of_kernels ? plain_linear(builder, n) : grown_product(builder, n);
    if (key) siblings[*key].push_back(n);
  }
  std::vector<char> marks(static_cast<std::size_t>(builder.group_count()), 0);
  for (auto& [key, anchors] : siblings) {
    if (of_kernels) {
      if (anchors.size() < 2 || !builder.fits(anchors.size())) continue;
      builder.add_group(std::move(anchors), pattern).sink = -1;
      continue;
    }
    NodeList groups;
    std::size_t nodes = 0;
    for (const std::int32_t n : with_one_entry(builder, std::get<0>(key), anchors, marks)) {
      groups.push_back(builder.group_of(n));
      nodes += builder.group(groups.back()).nodes.size();
    }
    if (groups.size() < 2 || !builder.fits(nodes)) continue;
    Group& merged = merge_all(builder, groups, pattern);
    merged.sink = -1;
    merged.absorbs = false;  // another operand would be another entry
  }
}

void merge_horizontally(FusionBuilder& builder) {
  if (!builder.enabled("horizontal"_pattern)) return;
  for (std::int32_t cat = 0; cat < builder.size(); ++cat) {
    if (!builder.free(cat) || builder.role(cat) != Role::kCat) continue;
    if (!builder.enabled("horizontal"_pattern, cat)) continue;
    std::map<std::pair<TensorId, Role>, NodeList> siblings;
    for (const TensorId id : builder.operands(cat)) {
      ++builder.steps();
      const std::int32_t producer = builder.producer(id);
      if (producer < 0 || !builder.same_device(producer, cat)) continue;
      const std::int32_t g = builder.group_of(producer);
      if (!is_grown(builder, g, false) || builder.group(g).sink != producer) continue;
      if (builder.facts(producer).sole_consumer != cat) continue;
      const std::int32_t anchor = builder.group(g).anchor;
      siblings[{builder.operands(anchor).front(), builder.role(anchor)}].push_back(g);
    }
    NodeList groups;
    std::size_t nodes = 1;
    for (auto& [key, list] : siblings) {
      std::sort(list.begin(), list.end());  // a tensor may be in the cat twice
      list.erase(std::unique(list.begin(), list.end()), list.end());
      if (list.size() < 2) continue;
      groups.insert(groups.end(), list.begin(), list.end());
      for (const std::int32_t g : list) nodes += builder.group(g).nodes.size();
    }
    if (groups.empty() || !builder.fits(nodes)) continue;
    Group& merged = merge_all(builder, groups, "horizontal"_pattern);
    builder.join(groups[0], cat);
    merged.sink = cat;
    merged.anchor = -1;
  }
}

}  // namespace npu::fusion
