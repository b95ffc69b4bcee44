// SPDX-License-Identifier: Apache-2.0
// Merges of groups that already exist: depthwise with pointwise convolutions, matrix products on
// one input, branches that meet in a cat, and cats that need no kernel.
//
// Merging groups of one reader each keeps a single exit. Matrix products on one input have several
// exits; they are merged only if they read nothing else besides weights, so that the group has a
// single entry. O(nodes + edges).
#include <algorithm>
#include <map>

#include "passes/fusion/fusion_builder.hpp"

namespace npu::fusion {
namespace {

const Shape& shape_of(const FusionBuilder& builder, TensorId id) {
  return builder.graph().tensor(id).shape;
}

}  // namespace

// One filter per channel.
bool is_depthwise(const FusionBuilder& builder, std::int32_t n) {
  const std::span<const TensorId> read = builder.operands(n);
  if (builder.facts(n).role != Role::kConv || read.size() < 2) return false;
  const Shape& input = shape_of(builder, read[0]);
  const Shape& weight = shape_of(builder, read[1]);
  return input.size() > 2 && weight.size() == input.size() && weight[1] == 1 && input[1] > 1 &&
         weight[0] % input[1] == 0;
}

// A filter of one point that reads all channels, with stride 1.
bool is_pointwise(const FusionBuilder& builder, std::int32_t n) {
  const std::span<const TensorId> read = builder.operands(n);
  if (builder.facts(n).role != Role::kConv || read.size() < 2 || builder.node(n).outputs.empty()) {
    return false;
  }
  const Shape& input = shape_of(builder, read[0]);
  const Shape& weight = shape_of(builder, read[1]);
  const Shape& result = shape_of(builder, builder.node(n).outputs.front());
  if (input.size() < 3 || weight.size() != input.size() || result.size() != input.size()) {
    return false;
  }
  for (std::size_t axis = 2; axis < input.size(); ++axis) {
    if (weight[axis] != 1 || result[axis] != input[axis]) return false;
  }
  return weight[1] == input[1];
}

namespace {

bool is_grown(FusionBuilder& builder, std::int32_t g) {
  return g >= 0 && builder.group(g).anchor >= 0;
}

// Whether a group reads nothing but `x`, weights, graph inputs and results of groups that are
// marked.
bool reads_only(FusionBuilder& builder, std::int32_t g, TensorId x,
                const std::vector<char>& marks) {
  for (const std::int32_t n : builder.group(g).nodes) {
    for (const TensorId id : builder.operands(n)) {
      ++builder.steps();
      const std::int32_t producer = builder.producer(id);
      if (id == x || producer < 0) continue;
      const std::int32_t from = builder.group_of(producer);
      if (from != g && (from < 0 || marks[static_cast<std::size_t>(from)] == 0)) return false;
    }
  }
  return true;
}

}  // namespace

void merge_depthwise_pointwise(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kDepthwisePointwise)) return;
  for (std::int32_t g = 0; g < builder.group_count(); ++g) {
    if (!is_grown(builder, g) || builder.group(g).nodes.empty() || !builder.group(g).plain)
      continue;
    if (!builder.enabled(Pattern::kDepthwisePointwise, builder.group(g).anchor)) continue;
    if (!is_depthwise(builder, builder.group(g).anchor)) continue;
    const std::int32_t sink = builder.group(g).sink;
    const std::int32_t next = builder.facts(sink).sole_consumer;
    if (next < 0 || builder.free(next) || !builder.same_device(sink, next)) continue;
    const std::int32_t into = builder.group_of(next);
    if (into == g || !is_grown(builder, into) || builder.group(into).anchor != next) continue;
    if (!is_pointwise(builder, next) || is_depthwise(builder, next)) continue;
    if (!builder.enters_first(next, builder.tensor_between(sink, next))) continue;
    if (!builder.fits(builder.group(g).nodes.size() + builder.group(into).nodes.size())) continue;
    builder.merge(into, g);
    builder.group(into).pattern = number_of(Pattern::kDepthwisePointwise);
  }
}

void merge_siblings(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kQkvMerge)) return;
  std::map<TensorId, std::vector<std::int32_t>> groups_by_input;
  for (std::int32_t g = 0; g < builder.group_count(); ++g) {
    if (!is_grown(builder, g) || builder.group(g).nodes.empty()) continue;
    const std::int32_t anchor = builder.group(g).anchor;
    if (!builder.enabled(Pattern::kQkvMerge, anchor)) continue;
    const std::span<const TensorId> read = builder.operands(anchor);
    // addmm has the bias first.
    const std::size_t input = builder.node(anchor).op_type.starts_with("aten.addmm.") ? 1 : 0;
    if (!is_matrix_product(builder.facts(anchor).role) || read.size() < input + 2) continue;
    if (builder.graph().tensor(read[input + 1]).kind != TensorKind::kWeight) continue;
    if (builder.graph().tensor(read[input]).kind == TensorKind::kWeight) continue;
    groups_by_input[read[input]].push_back(g);
  }
  std::vector<char> marks(static_cast<std::size_t>(builder.group_count()), 0);
  for (auto& [input, all] : groups_by_input) {
    const auto x = input;  // clang 14 does not let lambdas take structured bindings
    // One merged product for each device and dtype of weights.
    std::map<std::pair<std::int32_t, DType>, std::vector<std::int32_t>> classes;
    for (const std::int32_t g : all) {
      const std::int32_t anchor = builder.group(g).anchor;
      classes[{builder.facts(anchor).device,
               builder.graph().tensor(builder.node(anchor).outputs.front()).dtype}]
          .push_back(g);
    }
    for (auto& [key, groups] : classes) {
      // In topological order, so that a sibling that reads another one (a gate) comes after it.
      std::sort(groups.begin(), groups.end(), [&](std::int32_t a, std::int32_t b) {
        return builder.group(a).sink < builder.group(b).sink;
      });
      std::erase_if(groups, [&](std::int32_t g) {
        const bool joins = reads_only(builder, g, x, marks);
        marks[static_cast<std::size_t>(g)] = joins ? 1 : 0;
        return !joins;
      });
      for (const std::int32_t g : groups) marks[static_cast<std::size_t>(g)] = 0;
      std::size_t nodes = 0;
      for (const std::int32_t g : groups) nodes += builder.group(g).nodes.size();
      if (groups.size() < 2 || !builder.fits(nodes)) continue;
      for (std::size_t i = 1; i < groups.size(); ++i) builder.merge(groups[0], groups[i]);
      Group& merged = builder.group(groups[0]);
      merged.pattern = number_of(Pattern::kQkvMerge);
      merged.sink = -1;
      merged.absorbs = false;  // another operand would be another entry
    }
  }
}

void merge_horizontally(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kHorizontal)) return;
  for (std::int32_t cat = 0; cat < builder.size(); ++cat) {
    if (!builder.free(cat) || builder.facts(cat).role != Role::kCat) continue;
    if (!builder.enabled(Pattern::kHorizontal, cat)) continue;
    std::map<std::pair<TensorId, Role>, std::vector<std::int32_t>> siblings;
    for (const TensorId id : builder.operands(cat)) {
      ++builder.steps();
      const std::int32_t producer = builder.producer(id);
      if (producer < 0 || !builder.same_device(producer, cat)) continue;
      const std::int32_t g = builder.group_of(producer);
      if (!is_grown(builder, g) || builder.group(g).sink != producer) continue;
      if (builder.facts(producer).sole_consumer != cat) continue;
      const std::int32_t anchor = builder.group(g).anchor;
      siblings[{builder.operands(anchor).front(), builder.facts(anchor).role}].push_back(g);
    }
    std::vector<std::int32_t> groups;
    std::size_t nodes = 1;
    for (auto& [key, list] : siblings) {
      std::sort(list.begin(), list.end());  // a tensor may be in the cat twice
      list.erase(std::unique(list.begin(), list.end()), list.end());
      if (list.size() < 2) continue;
      groups.insert(groups.end(), list.begin(), list.end());
      for (const std::int32_t g : list) nodes += builder.group(g).nodes.size();
    }
    if (groups.empty() || !builder.fits(nodes)) continue;
    for (std::size_t i = 1; i < groups.size(); ++i) builder.merge(groups[0], groups[i]);
    builder.join(groups[0], cat);
    Group& merged = builder.group(groups[0]);
    merged.pattern = number_of(Pattern::kHorizontal);
    merged.sink = cat;
    merged.anchor = -1;
  }
}

void write_slices(FusionBuilder& builder) {
  if (!builder.enabled(Pattern::kConcatSlices)) return;
  for (std::int32_t cat = 0; cat < builder.size(); ++cat) {
    if (!builder.free(cat) || builder.facts(cat).role != Role::kCat) continue;
    if (!builder.enabled(Pattern::kConcatSlices, cat)) continue;
    // Every operand has to be written by a kernel on this device, for this cat alone.
    std::int32_t last = -1;
    bool writable = !builder.operands(cat).empty();
    const std::span<const TensorId> read = builder.operands(cat);
    for (std::size_t i = 0; i < read.size() && writable; ++i) {
      ++builder.steps();
      const std::int32_t producer = builder.producer(read[i]);
      writable = producer >= 0 && builder.same_device(producer, cat) &&
                 builder.facts(producer).sole_consumer == cat && !builder.facts(producer).alias &&
                 builder.facts(producer).kind != OpKind::kOpaque;
      last = std::max(last, producer);
    }
    // A tensor that is in it twice would need two places.
    std::vector<TensorId> distinct(read.begin(), read.end());
    std::sort(distinct.begin(), distinct.end());
    if (!writable || std::adjacent_find(distinct.begin(), distinct.end()) != distinct.end())
      continue;
    std::int32_t g = builder.group_of(last);
    if (g >= 0 &&
        (builder.group(g).sink != last || !builder.fits(builder.group(g).nodes.size() + 1)))
      continue;
    if (g < 0) {
      if (!builder.fits(2)) continue;
      g = builder.add_group({last}, number_of(Pattern::kConcatSlices), last);
    }
    builder.join(g, cat);
    Group& merged = builder.group(g);
    merged.pattern = number_of(Pattern::kConcatSlices);
    merged.sink = cat;
    merged.anchor = -1;
    merged.absorbs = false;
  }
}

}  // namespace npu::fusion
