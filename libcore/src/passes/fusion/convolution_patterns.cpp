// SPDX-License-Identifier: Apache-2.0
// Two kernels that become one: a depthwise convolution and the pointwise one behind it, a batch
// norm and the pointwise convolution behind it, a pointwise convolution and the depthwise one
// behind it, and a pointwise convolution that changes places with interpolations in front of it.
//
// A chain is an anchor with what the epilogue patterns put behind it; it joins that of its only
// reader, so that groups keep a single exit. General patterns ask for shapes alone, those of
// kernels for everything that the kernel needs. O(nodes + edges).
#include <algorithm>

#include "passes/fusion/node_facts.hpp"
#include "passes/fusion/patterns.hpp"

namespace npu::fusion {
namespace {

// What ExpandDepthwise asks for: a thread's rows take a few MiB at most.
constexpr std::int64_t kWidestRow = 8192;
// Where a product with a norm before it takes less time as one kernel than as two.
constexpr std::int64_t kMinNormChannels = 256;
constexpr std::int64_t kMaxNormPixels = 1024;
constexpr std::size_t kMostOperands = 8;

/// The anchor first; empty if it is in no chain of these patterns.
using Chain = NodeList;

Chain chain_of(FusionBuilder& builder, std::int32_t anchor, bool of_kernels) {
  if (of_kernels && is_kernel_anchor(builder, anchor)) return {anchor};
  const std::int32_t g = builder.group_of(anchor);
  if (!is_grown(builder, g, of_kernels) || builder.group(g).anchor != anchor) return {};
  return builder.group(g).nodes;
}

class ChainMerger {
 public:
  ChainMerger(FusionBuilder& builder, Pattern pattern)
      : builder_(builder), pattern_(pattern), of_kernels_(is_of_kernels(pattern)) {}

  void run() {
    if (!builder_.enabled(pattern_)) return;
    for (std::int32_t n = builder_.size(); n-- > 0;) {
      ++builder_.steps();
      if (!builder_.enabled(pattern_, n)) continue;
      const Chain chain = chain_of(builder_, n, of_kernels_);
      if (chain.empty()) continue;
      if (pattern_ == "resized-pointwise"_pattern) {
        join_resized(chain);
      } else {
        join_reader(chain);
      }
    }
  }

 private:
  const Node& node(std::int32_t n) const { return builder_.node(n); }
  const TensorInfo& info(TensorId id) const { return builder_.tensor(id); }

  /// Puts a chain and that of its only reader into one group.
  void join_reader(const Chain& chain) {
    const Link next =
        builder_.reader_of(chain.back(), of_kernels_ ? Readers::kNeeded : Readers::kAll);
    if (next.node < 0 || !builder_.same_device(chain.front(), next.node) ||
        !builder_.enters_first(next.node, next.tensor)) {
      return;
    }
    const Chain behind = chain_of(builder_, next.node, of_kernels_);
    if (behind.empty() || !builder_.fits(chain.size() + behind.size())) return;
    const bool takes = pattern_ == "depthwise-pointwise"_pattern ? takes_depthwise(chain, behind)
                       : pattern_ == "norm-pointwise"_pattern    ? takes_norm(chain, behind)
                                                                 : takes_expansion(chain, behind);
    if (takes) join(behind, chain);
  }

  /// Adds nodes, all of one group or free, to a chain.
  void join(const Chain& chain, const NodeList& nodes) {
    if (builder_.free(chain.front())) builder_.add_group(chain, pattern_);
    const std::int32_t into = builder_.group_of(chain.front());
    if (builder_.free(nodes.front())) {
      for (const std::int32_t n : nodes) builder_.join(into, n);
    } else {
      builder_.merge(into, builder_.group_of(nodes.front()));
    }
    builder_.group(into).pattern = pattern_;
    if (of_kernels_) builder_.group(into).anchor = -1;  // a kernel does the work of one other
  }

  bool takes_depthwise(const Chain& chain, const Chain& behind) const {
    return builder_.group(builder_.group_of(chain.front())).plain &&
           is_depthwise(builder_, chain.front()) && is_pointwise(builder_, behind.front()) &&
           !is_depthwise(builder_, behind.front());
  }

  bool takes_norm(const Chain& norm, const Chain& behind) const {
    const Node& anchor = node(norm.front());
    const auto facts = convolution_facts(builder_, behind.front());
    const Json* mode = find_member(anchor.json, "align_mode");
    if (builder_.role(norm.front()) != Role::kBatchNorm || !facts ||
        !has_known_operands(builder_, anchor) || (mode != nullptr && *mode == "NALIGN") ||
        !is_single(info(anchor.inputs.front()).dtype)) {
      return false;
    }
    const std::int64_t pixels = facts->source[2] * facts->source[3];
    return facts->is_pointwise() && facts->weight[0] % kChannelBlock == 0 &&
           facts->weight[1] % kChannelBlock == 0 &&
           (facts->weight[1] >= kMinNormChannels || pixels <= kMaxNormPixels) &&
           has_simple_post_ops(behind, kMostOperands);
  }

  bool takes_expansion(const Chain& expansion, const Chain& behind) const {
    const auto first = convolution_facts(builder_, expansion.front());
    const auto second = convolution_facts(builder_, behind.front());
    if (!first || !second || !has_known_operands(builder_, node(expansion.front())) ||
        !has_known_operands(builder_, node(behind.front()))) {
      return false;
    }
    const TensorInfo& between = info(node(expansion.back()).outputs.front());
    const std::int64_t channels = first->weight[0];
    const std::int64_t taps = second->weight[2];
    const std::int64_t stride = second->stride[0];
    return first->is_pointwise() && channels % kChannelBlock == 0 && is_single(between.dtype) &&
           between.shape == first->result && second->source[3] <= kWidestRow &&
           second->weight[0] == channels && second->weight[1] == 1 && second->weight[3] == taps &&
           second->groups == channels && (taps == 3 || taps == 5) && (stride == 1 || stride == 2) &&
           second->stride[1] == stride && second->dilation[0] == 1 && second->dilation[1] == 1 &&
           std::max(second->padding[0], second->padding[1]) < taps &&
           has_simple_post_ops(expansion, 0) && has_simple_post_ops(behind, 0);
  }

  /// Whether our own kernels, as opposed to oneDNN's primitives, do everything after an anchor,
  /// with at most so many operands of the result's size.
  bool has_simple_post_ops(const Chain& chain, std::size_t most_operands) const {
    std::size_t operands = 0;
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const Role role = builder_.role(chain[i]);
      if (role == Role::kBatchNorm || keeps_row_major(builder_, chain[i])) continue;
      const std::vector<TensorId>& inputs = node(chain[i]).inputs;
      if (role >= Role::kAdd && role <= Role::kDiv) {
        if (inputs.size() == 1 && role != Role::kDiv) continue;
        const bool is_full = inputs.size() == 2 && info(inputs[0]).shape == info(inputs[1]).shape;
        if (!is_full || (role != Role::kAdd && role != Role::kMul)) return false;
        if (find_member(node(chain[i]).attrs(), "alpha") != nullptr) return false;
        ++operands;
        continue;
      }
      const bool is_simple = role == Role::kRelu || role == Role::kLeakyRelu ||
                             role == Role::kClip || role == Role::kSilu || role == Role::kHardSwish;
      if (!is_simple) return false;
    }
    return operands <= most_operands;
  }

  /// Puts a pointwise convolution, the cat in front of it and the interpolations in front of that
  /// into one group, if the products of all parts as they are take three quarters of the
  /// multiplications at most.
  void join_resized(const Chain& chain) {
    const auto facts = convolution_facts(builder_, chain.front());
    if (!facts || !facts->is_pointwise() || facts->weight[0] % kChannelBlock != 0) return;
    const TensorId source = node(chain.front()).inputs.front();
    const std::int32_t cat = builder_.above(source, chain.front(), Readers::kNeeded);
    if (cat < 0 || builder_.role(cat) != Role::kCat || !is_single(info(source).dtype) ||
        !has_known_operands(builder_, node(chain.front())) || !has_only_relu(chain)) {
      return;
    }
    const Json* dim = find_member(node(cat).attrs(), "dim");
    if (dim == nullptr || (*dim != 1 && *dim != -3)) return;
    NodeList nodes{cat};
    std::int64_t products = 0;
    std::size_t copies = 0;
    for (const TensorId part : node(cat).inputs) {
      TensorId from = part;
      const std::int32_t n = builder_.above(part, cat, Readers::kNeeded);
      if (n >= 0 && is_interpolation(node(n))) {
        nodes.push_back(n);
        from = node(n).inputs.front();
      }
      const Shape& shape = info(from).shape;
      if (shape.size() != 4 || shape[1] % kChannelBlock != 0) return;
      copies += shape == info(part).shape ? 1 : 0;
      products += shape[1] * shape[2] * shape[3];
    }
    const std::int64_t all = facts->source[1] * facts->source[2] * facts->source[3];
    if (copies <= 1 && nodes.size() >= 2 && products <= all / 4 * 3 &&
        builder_.fits(chain.size() + nodes.size())) {
      join(chain, nodes);
    }
  }

  static bool is_interpolation(const Node& node) {
    return (node.op_type.starts_with("aten.upsample_bilinear2d.") ||
            node.op_type.starts_with("aten.upsample_nearest2d.") ||
            node.op_type.starts_with("aten.upsample_bicubic2d.")) &&
           node.inputs.size() == 1;
  }

  bool has_only_relu(const Chain& chain) const {
    return std::all_of(chain.begin() + 1, chain.end(), [&](std::int32_t n) {
      const Role role = builder_.role(n);
      return role == Role::kRelu || role == Role::kBatchNorm || keeps_row_major(builder_, n);
    });
  }

  FusionBuilder& builder_;
  Pattern pattern_;
  bool of_kernels_;
};

}  // namespace

void merge_chains(FusionBuilder& builder, Pattern pattern) { ChainMerger(builder, pattern).run(); }

}  // namespace npu::fusion
