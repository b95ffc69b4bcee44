// SPDX-License-Identifier: Apache-2.0
// What a convolution, a matrix product or a batch norm does to its result before it is stored, and
// which of these kernels also do the work of the one before them.
//
// From each anchor the walk follows the only reader of the running value: batch norms, which are
// folded into known weights, then activations, sums and products with another tensor, and aliases.
// Anchors are visited from the end of the list, so that of two whose results are added the one that
// is computed later takes the addition, when the other result exists. Then a batch norm joins the
// pointwise convolution after it, and a pointwise convolution the depthwise one after it, where a
// kernel does both. O(nodes + edges).
#include <algorithm>

#include "ops/schema.hpp"
#include "passes/fusion/kernel_patterns.hpp"

namespace npu::fusion {
namespace {

constexpr std::size_t kMostNodes = 16;
// What ExpandDepthwise asks for: a thread's rows take a few MiB at most.
constexpr std::int64_t kWidestRow = 8192;
// Where a product with a norm before it takes less time as one kernel than as two.
constexpr std::int64_t kMinNormChannels = 256;
constexpr std::int64_t kMaxNormPixels = 1024;
constexpr std::size_t kMostOperands = 8;

enum class Anchor : std::uint8_t { kNone, kConvolution, kProduct, kNorm };

Anchor anchor_kind(const FusionBuilder& builder, std::int32_t n) {
  const Role role = builder.facts(n).role;
  if (role == Role::kConv) return Anchor::kConvolution;
  if (is_matrix_product(role)) return Anchor::kProduct;
  return role == Role::kBatchNorm ? Anchor::kNorm : Anchor::kNone;
}

Pattern pattern_of(Anchor kind) {
  if (kind == Anchor::kConvolution) return Pattern::kConvPostOps;
  return kind == Anchor::kProduct ? Pattern::kProductPostOps : Pattern::kNormRelu;
}

/// A function of one number that a primitive computes before it stores. Those that oneDNN computes
/// without NaN or beyond their range are kernels of their own: exp, hardsigmoid, softplus.
bool is_post_function(Role role) {
  if (is_activation(role)) return role != Role::kRareActivation && role != Role::kHardSigmoid;
  return role == Role::kUnary || role == Role::kSquare || role == Role::kSqrt;
}

/// True for those that are to the last places, wherever they are computed; as post-ops the others
/// are as near as npu-onednn(7) says, which is too far where integers follow.
bool is_exact_function(Role role) {
  return (role >= Role::kRelu && role <= Role::kClip) || role == Role::kHardSwish ||
         role == Role::kUnary || role == Role::kSquare || role == Role::kSqrt;
}

bool is_arithmetic(Role role) { return role >= Role::kAdd && role <= Role::kDiv; }

/// An anchor and the nodes after it.
struct Unit {
  std::int32_t anchor = -1;
  std::vector<std::int32_t> nodes;  ///< the anchor first, the last gives the result
  Anchor kind = Anchor::kNone;
};

class PostOpWalk {
 public:
  PostOpWalk(FusionBuilder& builder, const Readers& readers, const std::vector<bool>& deciding,
             std::int32_t anchor, Anchor kind)
      : builder_(builder), readers_(readers), deciding_(deciding), kind_(kind), nodes_{anchor} {
    value_ = builder.node(anchor).outputs.front();
    columns_ = value().shape.empty() ? 1 : value().shape.back();
  }

  std::vector<std::int32_t> run() {
    while (nodes_.size() < kMostNodes && builder_.fits(nodes_.size() + 1)) {
      ++builder_.steps();
      const std::int32_t next = readers_.only(value_);
      if (next < 0 || !builder_.free(next) || !builder_.same_device(next, nodes_.front())) break;
      const std::vector<TensorId>& inputs = builder_.node(next).inputs;
      const auto position = std::find(inputs.begin(), inputs.end(), value_) - inputs.begin();
      if (!joins(next, static_cast<std::size_t>(position))) break;
      nodes_.push_back(next);
      value_ = builder_.node(next).outputs.front();
    }
    return std::move(nodes_);
  }

 private:
  const TensorInfo& value() const { return builder_.graph().tensor(value_); }

  bool joins(std::int32_t n, std::size_t position) {
    const Node& node = builder_.node(n);
    if (node.outputs.size() != 1) return false;
    const TensorInfo& result = builder_.graph().tensor(node.outputs.front());
    if (result.dtype != value().dtype) return false;
    if (position == 0 && keeps_row_major(builder_, n)) {
      return kind_ == Anchor::kProduct || result.shape == value().shape;
    }
    if (result.shape != value().shape) return false;
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr) return false;
    if (kind_ == Anchor::kNorm) return op->role == Role::kRelu;
    BindError error;
    const auto bound = BoundNode::try_bind(builder_.graph(), node, op->schema, error);
    if (!bound) return false;
    if (builder_.facts(n).role == Role::kBatchNorm) return position == 0 && joins_norm(*bound);
    // A separate pass over the result takes less time than the primitive's post-op, and is exact.
    if (op->role == Role::kGelu) return false;
    if (is_post_function(op->role) && !is_exact_function(op->role) &&
        deciding_[index_of(node.outputs.front())]) {
      return false;
    }
    const bool joins_one =
        is_post_function(op->role)
            ? position == 0 && node.inputs.size() == 1
            : is_arithmetic(op->role) && joins_arithmetic(node, op->role, position);
    norms_open_ = norms_open_ && !joins_one;
    return joins_one;
  }

  /// Batch norm after a convolution with known weights: a factor and a term per channel.
  bool joins_norm(const BoundNode& node) const {
    const Node& anchor = builder_.node(nodes_.front());
    const bool is_linear = builder_.facts(nodes_.front()).role == Role::kLinear;
    if (!norms_open_ || (kind_ != Anchor::kConvolution && !is_linear)) return false;
    if (is_linear && value().shape.size() != 2) return false;
    const auto is_known = [&](TensorId id) { return is_weight(builder_, id); };
    return std::all_of(anchor.inputs.begin() + 1, anchor.inputs.end(), is_known) &&
           std::all_of(node.node().inputs.begin() + 1, node.node().inputs.end(), is_known) &&
           node.tensor("running_mean") && node.tensor("running_var");
  }

  bool joins_arithmetic(const Node& node, Role role, std::size_t position) const {
    if (node.inputs.size() == 1) return true;  // a number
    const bool commutes = role == Role::kAdd || role == Role::kMul;
    if (node.inputs.size() != 2 || (position != 0 && !commutes)) return false;
    if (role == Role::kRsub) return false;
    if (position != 0 && find_member(node.attrs(), "alpha") != nullptr) return false;
    const TensorInfo& other = builder_.graph().tensor(node.inputs[position == 0 ? 1 : 0]);
    if (other.dtype != value().dtype) return false;
    return other.shape == value().shape || broadcasts(other.shape);
  }

  /// One element for all, or one for every channel or column.
  bool broadcasts(const Shape& shape) const {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    if (count == 1) return shape.size() <= value().shape.size();
    if (kind_ == Anchor::kProduct)
      return count == columns_ && shape.back() == columns_ && value().shape.back() == columns_;
    const std::size_t rank = value().shape.size();
    return rank > 1 && shape.size() + 1 >= rank && shape.size() <= rank &&
           shape[shape.size() + 1 - rank] == value().shape[1] && count == value().shape[1];
  }

  FusionBuilder& builder_;
  const Readers& readers_;
  const std::vector<bool>& deciding_;
  Anchor kind_;
  std::vector<std::int32_t> nodes_;
  TensorId value_;
  std::int64_t columns_ = 1;
  bool norms_open_ = true;
};

/// The units of a graph, and which of them one kernel takes together.
class UnitMerger {
 public:
  UnitMerger(FusionBuilder& builder, const Readers& readers)
      : builder_(builder),
        readers_(readers),
        deciding_(deciding_tensors(builder.graph())),
        unit_of_(static_cast<std::size_t>(builder.size())) {}

  void run() {
    // A batch norm is an anchor only if no convolution absorbs it.
    for (const bool norms : {false, true}) {
      for (std::int32_t n = builder_.size(); n-- > 0;) {
        const Anchor kind = anchor_kind(builder_, n);
        if (kind == Anchor::kNone || (kind == Anchor::kNorm) != norms) continue;
        const Node& node = builder_.node(n);
        if (!builder_.free(n) || readers_.unused(n)) continue;
        if (node.inputs.empty() || node.outputs.size() != 1) continue;
        add_unit(n, kind);
      }
    }
    for (Unit& unit : units_) merge(unit, Pattern::kNormPointwise);
    for (Unit& unit : units_) merge(unit, Pattern::kExpandDepthwise);
    for (Unit& unit : units_) join_resized(unit);
  }

 private:
  void add_unit(std::int32_t n, Anchor kind) {
    Unit unit{n, {n}, kind};
    if (builder_.enabled(pattern_of(kind), n)) {
      unit.nodes = PostOpWalk(builder_, readers_, deciding_, n, kind).run();
    }
    if (unit.nodes.size() > 1) {
      builder_.add_group(unit.nodes, number_of(pattern_of(kind)), unit.nodes.back());
    }
    unit_of_[static_cast<std::size_t>(n)] = static_cast<std::int32_t>(units_.size()) + 1;
    units_.push_back(std::move(unit));
  }

  /// Puts a unit and that of its only reader into one group, if the pattern is of both.
  void merge(Unit& unit, Pattern pattern) {
    ++builder_.steps();
    if (unit.nodes.empty() || !builder_.enabled(pattern, unit.anchor)) return;
    const TensorId result = builder_.node(unit.nodes.back()).outputs.front();
    const std::int32_t reader = readers_.only(result);
    if (reader < 0 || !builder_.same_device(reader, unit.anchor)) return;
    const std::int32_t number = unit_of_[static_cast<std::size_t>(reader)];
    if (number == 0 || builder_.node(reader).inputs.front() != result) return;
    Unit& next = units_[static_cast<std::size_t>(number - 1)];
    if (next.nodes.empty() || !builder_.fits(unit.nodes.size() + next.nodes.size())) return;
    const bool fits =
        pattern == Pattern::kNormPointwise ? takes_norm(unit, next) : takes_expansion(unit, next);
    if (!fits) return;
    join(unit, next, pattern);
  }

  void join(Unit& unit, Unit& next, Pattern pattern) {
    const std::int32_t from = builder_.group_of(unit.anchor);
    std::int32_t into = builder_.group_of(next.anchor);
    if (into < 0) into = builder_.add_group({next.anchor}, number_of(pattern), next.nodes.back());
    if (from >= 0) {
      builder_.merge(into, from);
    } else {
      builder_.join(into, unit.anchor);
    }
    builder_.group(into).pattern = number_of(pattern);
    unit.nodes.clear();  // a kernel does the work of one other at most
    next.nodes.clear();
  }

  /// Puts a pointwise convolution, the cat in front of it and the interpolations in front of that
  /// into one group, if the products of all parts as they are take three quarters of the
  /// multiplications at most.
  void join_resized(Unit& unit) {
    ++builder_.steps();
    if (unit.kind != Anchor::kConvolution || unit.nodes.empty() ||
        !builder_.enabled(Pattern::kResizedPointwise, unit.anchor)) {
      return;
    }
    const auto facts = convolution_facts(builder_, unit.anchor);
    const TensorId source = builder_.node(unit.anchor).inputs.front();
    const std::int32_t cat = builder_.producer(source);
    if (!facts || !facts->is_pointwise() || facts->weight[0] % kChannelBlock != 0 || cat < 0 ||
        builder_.facts(cat).role != Role::kCat || !is_private(cat, source, unit.anchor) ||
        !is_single(info(source).dtype) || !has_known_bias(unit) || !has_only_relu(unit)) {
      return;
    }
    const Json* dim = find_member(builder_.node(cat).attrs(), "dim");
    if (dim == nullptr || (*dim != 1 && *dim != -3)) return;
    std::vector<std::int32_t> nodes{cat};
    std::int64_t products = 0;
    std::size_t copies = 0;
    for (const TensorId part : builder_.node(cat).inputs) {
      TensorId from = part;
      const std::int32_t n = builder_.producer(part);
      if (n >= 0 && is_interpolation(n) && is_private(n, part, cat)) {
        nodes.push_back(n);
        from = builder_.node(n).inputs.front();
      }
      const Shape& shape = info(from).shape;
      if (shape.size() != 4 || shape[1] % kChannelBlock != 0) return;
      copies += shape == info(part).shape ? 1 : 0;
      products += shape[1] * shape[2] * shape[3];
    }
    const std::int64_t all = facts->source[1] * facts->source[2] * facts->source[3];
    if (copies > 1 || nodes.size() < 2 || products > all / 4 * 3 ||
        !builder_.fits(unit.nodes.size() + nodes.size())) {
      return;
    }
    std::int32_t into = builder_.group_of(unit.anchor);
    if (into < 0) into = builder_.add_group({unit.anchor}, 0, unit.nodes.back());
    for (const std::int32_t n : nodes) builder_.join(into, n);
    builder_.group(into).pattern = number_of(Pattern::kResizedPointwise);
    unit.nodes.clear();
  }

  /// A free node whose result only `reader` reads, once.
  bool is_private(std::int32_t n, TensorId result, std::int32_t reader) const {
    return builder_.free(n) && builder_.same_device(n, reader) && readers_.only(result) == reader &&
           builder_.node(n).outputs.size() == 1;
  }

  bool is_interpolation(std::int32_t n) const {
    const std::string& op = builder_.node(n).op_type;
    return (op.starts_with("aten.upsample_bilinear2d.") ||
            op.starts_with("aten.upsample_nearest2d.") ||
            op.starts_with("aten.upsample_bicubic2d.")) &&
           builder_.node(n).inputs.size() == 1;
  }

  bool has_only_relu(const Unit& unit) const {
    return std::all_of(unit.nodes.begin() + 1, unit.nodes.end(), [&](std::int32_t n) {
      const Role role = builder_.facts(n).role;
      return role == Role::kRelu || role == Role::kBatchNorm || keeps_row_major(builder_, n);
    });
  }

  const TensorInfo& info(TensorId id) const { return builder_.graph().tensor(id); }
  const TensorInfo& result_of(const Unit& unit) const {
    return info(builder_.node(unit.nodes.back()).outputs.front());
  }

  bool takes_norm(const Unit& norm, const Unit& next) const {
    if (norm.kind != Anchor::kNorm || next.kind != Anchor::kConvolution) return false;
    const Node& node = builder_.node(norm.anchor);
    const bool is_known = std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                                      [&](TensorId id) { return is_weight(builder_, id); });
    const Json* mode = find_member(node.json, "align_mode");
    if (!is_known || (mode != nullptr && *mode == "NALIGN") ||
        !is_single(info(node.inputs.front()).dtype)) {
      return false;
    }
    const auto facts = convolution_facts(builder_, next.anchor);
    if (!facts || !facts->is_pointwise() || facts->weight[0] % kChannelBlock != 0 ||
        facts->weight[1] % kChannelBlock != 0) {
      return false;
    }
    const std::int64_t pixels = facts->source[2] * facts->source[3];
    return (facts->weight[1] >= kMinNormChannels || pixels <= kMaxNormPixels) &&
           has_simple_post_ops(next, kMostOperands);
  }

  bool takes_expansion(const Unit& expansion, const Unit& next) const {
    if (expansion.kind != Anchor::kConvolution || next.kind != Anchor::kConvolution) return false;
    const auto first = convolution_facts(builder_, expansion.anchor);
    const auto second = convolution_facts(builder_, next.anchor);
    if (!first || !second || !has_known_bias(expansion) || !has_known_bias(next)) return false;
    const std::int64_t channels = first->weight[0];
    const std::int64_t taps = second->weight[2];
    const std::int64_t stride = second->stride[0];
    return first->is_pointwise() && channels % kChannelBlock == 0 &&
           is_single(result_of(expansion).dtype) && result_of(expansion).shape == first->result &&
           second->source[3] <= kWidestRow && second->weight[0] == channels &&
           second->weight[1] == 1 && second->weight[3] == taps && second->groups == channels &&
           (taps == 3 || taps == 5) && (stride == 1 || stride == 2) &&
           second->stride[1] == stride && second->dilation[0] == 1 && second->dilation[1] == 1 &&
           std::max(second->padding[0], second->padding[1]) < taps &&
           has_simple_post_ops(expansion, 0) && has_simple_post_ops(next, 0);
  }

  bool has_known_bias(const Unit& unit) const {
    const std::vector<TensorId>& inputs = builder_.node(unit.anchor).inputs;
    return std::all_of(inputs.begin() + 1, inputs.end(),
                       [&](TensorId id) { return is_weight(builder_, id); });
  }

  /// Whether our own kernels, as opposed to oneDNN's primitives, do everything after an anchor,
  /// with at most so many operands of the result's size.
  bool has_simple_post_ops(const Unit& unit, std::size_t most_operands) const {
    std::size_t operands = 0;
    for (std::size_t i = 1; i < unit.nodes.size(); ++i) {
      const std::int32_t n = unit.nodes[i];
      const Role role = builder_.facts(n).role;
      if (role == Role::kBatchNorm || keeps_row_major(builder_, n)) continue;
      if (is_arithmetic(role)) {
        const std::vector<TensorId>& inputs = builder_.node(n).inputs;
        if (inputs.size() == 1 && role != Role::kDiv) continue;
        const bool is_full = inputs.size() == 2 && info(inputs[0]).shape == info(inputs[1]).shape;
        if (!is_full || (role != Role::kAdd && role != Role::kMul)) return false;
        if (find_member(builder_.node(n).attrs(), "alpha") != nullptr) return false;
        ++operands;
        continue;
      }
      const bool is_simple = role == Role::kRelu || role == Role::kLeakyRelu ||
                             role == Role::kClip || role == Role::kSilu || role == Role::kHardSwish;
      if (!is_simple) return false;
    }
    return operands <= most_operands;
  }

  FusionBuilder& builder_;
  const Readers& readers_;
  std::vector<bool> deciding_;
  std::vector<Unit> units_;
  std::vector<std::int32_t> unit_of_;  ///< by anchor: index + 1; 0 for none
};

}  // namespace

void match_post_ops(FusionBuilder& builder, const Readers& readers) {
  UnitMerger(builder, readers).run();
}

}  // namespace npu::fusion
