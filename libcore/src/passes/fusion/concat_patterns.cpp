// SPDX-License-Identifier: Apache-2.0
// Concatenations whose operands are written where the result needs them: by kernels that give
// blocks of channels, so that nothing is left to do, or by the last of the kernels, whose group the
// concatenation joins. O(nodes + edges).
#include <algorithm>

#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"

namespace npu::fusion {
namespace {

/// The operands of a concatenation; empty if one of them is in it twice and would need two places.
std::vector<TensorId> parts_of(const FusionBuilder& builder, std::int32_t cat) {
  std::vector<TensorId> parts(builder.operands(cat).begin(), builder.operands(cat).end());
  std::vector<TensorId> sorted = parts;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) parts.clear();
  return parts;
}

/// Finds concatenations along whole blocks of channels whose operands all lie in their results, so
/// that whoever computes an operand writes it there. A tensor lies in one place, so it is an
/// operand of one of them; but a longer concatenation may begin, or go on, with all operands of
/// another one, which then lies in it as a whole (as in DenseNet).
class ConcatPlacer {
 public:
  explicit ConcatPlacer(FusionBuilder& builder)
      : builder_(builder),
        place_of_(builder.graph().tensors().size(), -1),
        is_placed_(index_of(builder.size()), 0) {}

  bool place(std::int32_t n) {
    const std::vector<TensorId> parts = parts_of(builder_, n);
    if (parts.size() < 2 || !has_blocks(n)) return false;
    NodeList wholes;
    for (std::size_t i = 0; i < parts.size();) {
      ++builder_.steps();
      if (!is_written_in_blocks(parts[i], n)) return false;
      const std::int32_t in = place_of_[index_of(parts[i])];
      if (in < 0) {
        ++i;
        continue;
      }
      const std::vector<TensorId>& whole = builder_.node(in).inputs;
      if (is_placed_[index_of(in)] != 0 || whole.size() > parts.size() - i ||
          !std::equal(whole.begin(), whole.end(), parts.begin() + static_cast<std::ptrdiff_t>(i))) {
        return false;
      }
      wholes.push_back(in);
      i += whole.size();
    }
    for (const std::int32_t whole : wholes) is_placed_[index_of(whole)] = 1;
    for (const TensorId id : parts) {
      place_of_[index_of(id)] = n;
      // An operand that is a concatenation itself lies in this one with all of its parts.
      const std::int32_t above = builder_.producer(id);
      if (builder_.role(above) == Role::kCat) is_placed_[index_of(above)] = 1;
    }
    return true;
  }

 private:
  /// Along the channels of one image, each operand a number of whole blocks.
  bool has_blocks(std::int32_t n) const {
    const Node& node = builder_.node(n);
    if (node.outputs.size() != 1) return false;
    const TensorInfo& result = builder_.tensor(node.outputs.front());
    const Json* dim = find_member(node.attrs(), "dim");
    if (dim == nullptr || !dim->is_number_integer()) return false;
    const auto rank = std::ssize(result.shape);
    const auto axis = dim->get<std::int64_t>() + (dim->get<std::int64_t>() < 0 ? rank : 0);
    const bool is_float = is_single(result.dtype) || result.dtype == DType::kBFloat16;
    if (rank < 3 || rank > 5 || axis != 1 || result.shape[0] != 1 || !is_float) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId id) {
      const TensorInfo& part = builder_.tensor(id);
      return part.dtype == result.dtype && std::ssize(part.shape) == rank &&
             part.shape[1] % kChannelBlock == 0;
    });
  }

  /// A kernel on channels computes it: what others write lies in other orders.
  bool is_written_in_blocks(TensorId id, std::int32_t cat) {
    const std::int32_t n = builder_.producer(id);
    if (n < 0 || builder_.node(n).device != builder_.node(cat).device) return false;
    const std::int32_t g = builder_.group_of(n);
    if (g >= 0 && builder_.group(g).pattern == "constant"_pattern) return false;
    const Role role = layout_role(n);
    return role == Role::kConv || role == Role::kWindow || role == Role::kCat;
  }

  /// What decides the layout of a node's result, through element-wise ops along first operands.
  Role layout_role(std::int32_t n) const {
    constexpr int kMostSteps = 16;
    for (int step = 0; step < kMostSteps && n >= 0; ++step) {
      const NodeFacts& facts = builder_.facts(n);
      const bool passes = facts.kind == OpKind::kElementwise || facts.role == Role::kBatchNorm ||
                          facts.role == Role::kAdd || facts.role == Role::kMul;
      if (!passes || facts.alias || builder_.node(n).inputs.empty()) return facts.role;
      n = builder_.producer(builder_.node(n).inputs.front());
    }
    return Role::kOther;
  }

  FusionBuilder& builder_;
  NodeList place_of_;            ///< by tensor: the concatenation that it lies in
  std::vector<char> is_placed_;  ///< by node: a concatenation that lies in another one
};

}  // namespace

void place_concats(FusionBuilder& builder) {
  ConcatPlacer placer(builder);
  match_each(builder, "concat-in-place"_pattern, [&](std::int32_t n) {
    const bool is_cat = builder.role(n) == Role::kCat && !builder.unused(n);
    return NodeList(is_cat && placer.place(n) ? 1 : 0, n);
  });
}

void write_slices(FusionBuilder& builder) {
  match_each(builder, "concat-slices"_pattern, [&](std::int32_t cat) {
    NodeList nodes;
    if (builder.role(cat) != Role::kCat) return nodes;
    // Every operand has to be written by a kernel on this device, for this cat alone.
    std::int32_t last = -1;
    for (const TensorId id : parts_of(builder, cat)) {
      ++builder.steps();
      const std::int32_t producer = builder.producer(id);
      if (producer < 0 || !builder.same_device(producer, cat) ||
          builder.facts(producer).sole_consumer != cat || builder.facts(producer).alias ||
          builder.facts(producer).kind == OpKind::kOpaque) {
        return nodes;
      }
      last = std::max(last, producer);
    }
    if (last < 0) return nodes;
    if (builder.free(last)) return std::vector{last, cat};
    const std::int32_t g = builder.group_of(last);
    if (builder.group(g).sink != last || !builder.fits(builder.group(g).nodes.size() + 1)) {
      return nodes;
    }
    builder.join(g, cat);
    Group& group = builder.group(g);
    group = {.nodes = std::move(group.nodes), .pattern = "concat-slices"_pattern, .sink = cat};
    return nodes;
  });
}

}  // namespace npu::fusion
