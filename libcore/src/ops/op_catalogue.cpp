// SPDX-License-Identifier: Apache-2.0
// The ops that the tools know by name: what kind each is, whether it only views its operand, its
// signature as ATen's native_functions.yaml has it, its class among an accelerator's kernels, how
// its arithmetic is counted where its kind does not say, and what it is to the patterns of fusion.
//
// Long because it is a table: one row per overload, written by hand, for it and its in-place form.
// Ops that are missing here still run (the aten backend asks libtorch for the schema); they are
// opaque to fusion and cost models. A schema is parsed when its op is first looked up, so that a
// tool starts without parsing any.
#include "ops/op_catalogue.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ops/op_name.hpp"
#include "ops/op_traits.hpp"

namespace npu {
namespace {

enum class Movement : bool {
  kMoves,
  kAlias,  ///< a view of the first operand if strides allow, or the operand itself
};
using enum Movement;
using enum OpKind;
using enum AlignClass;
using enum FlopBasis;
using Role = FusionRole;

// In the order in which rows are read.
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding)
struct OpRow {
  std::string_view op_type;
  OpKind kind;
  Movement movement;
  std::string_view schema;  ///< "(a!)" marks what the op's in-place form overwrites
  AlignClass align_class = AlignClass::kNone;
  FlopRule flops = {};
  Role role = Role::kOther;
};

constexpr OpRow kOpRows[] = {
    // Convolution.
    {"aten.conv1d.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], "
     "int[1] dilation=[1], int groups=1) -> Tensor",
     kConv, kConvolution, Role::kConv},
    {"aten.conv1d.padding", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], str padding='valid', "
     "int[1] dilation=[1], int groups=1) -> Tensor",
     kConv, kConvolution, Role::kConv},
    {"aten.conv2d.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
     "int[2] dilation=1, int groups=1) -> Tensor",
     kConv, kConvolution, Role::kConv},
    {"aten.conv2d.padding", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str padding='valid', "
     "int[2] dilation=1, int groups=1) -> Tensor",
     kConv, kConvolution, Role::kConv},
    {"aten.conv3d.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
     "int[3] dilation=1, int groups=1) -> Tensor",
     kConv, kConvolution, Role::kConv},
    {"aten.conv3d.padding", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str padding='valid', "
     "int[3] dilation=1, int groups=1) -> Tensor",
     kConv, kConvolution, Role::kConv},
    {"aten.conv_transpose1d.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=[1], int[1] padding=[0], "
     "int[1] output_padding=[0], int groups=1, int[1] dilation=[1]) -> Tensor",
     kConv, kTransposedConvolution, Role::kConv},
    {"aten.conv_transpose2d.input", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] padding=0, "
     "int[2] output_padding=0, int groups=1, int[2] dilation=1) -> Tensor",
     kConv, kTransposedConvolution, Role::kConv},
    {"aten.conv_transpose3d.input", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] padding=0, "
     "int[3] output_padding=0, int groups=1, int[3] dilation=1) -> Tensor",
     kConv, kTransposedConvolution, Role::kConv},
    {"aten.convolution.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
     "bool transposed, int[] output_padding, int groups) -> Tensor",
     kConv, kAnyConvolution, Role::kConv},
    {"aten._convolution.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
     "bool transposed, int[] output_padding, int groups, bool benchmark, bool deterministic, "
     "bool cudnn_enabled, bool allow_tf32) -> Tensor",
     kConv, kAnyConvolution, Role::kConv},

    // Matrix products.
    {"aten.linear.default", kAnchor, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", kGemm, kLinear, Role::kLinear},
    {"aten.addmm.default", kAnchor, kMoves,
     "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", kGemm,
     kAddmm, Role::kMatmul},
    {"aten.mm.default", kAnchor, kMoves, "(Tensor self, Tensor mat2) -> Tensor", kGemm, kByKind,
     Role::kMatmul},
    {"aten.bmm.default", kAnchor, kMoves, "(Tensor self, Tensor mat2) -> Tensor", kGemm, kByKind,
     Role::kMatmul},
    {"aten.baddbmm.default", kAnchor, kMoves,
     "(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     kGemm, kBaddbmm, Role::kMatmul},
    {"aten.addbmm.default", kAnchor, kMoves,
     "(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     kGemm, kAddbmm, Role::kMatmul},
    {"aten.matmul.default", kAnchor, kMoves, "(Tensor self, Tensor other) -> Tensor", kGemm,
     kByKind, Role::kMatmul},
    {"aten.mv.default", kAnchor, kMoves, "(Tensor self, Tensor vec) -> Tensor", kGemm},
    {"aten.dot.default", kAnchor, kMoves, "(Tensor self, Tensor tensor) -> Tensor", kGemm},
    {"aten.addmv.default", kAnchor, kMoves,
     "(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor", kGemm,
     kAddmv},
    {"aten.einsum.default", kAnchor, kMoves,
     "(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor", kGemm, kEinsum,
     Role::kMatmul},
    {"aten.bilinear.default", kAnchor, kMoves,
     "(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor", kGemm,
     kBilinear},
    {"aten.outer.default", kBroadcast, kMoves, "(Tensor self, Tensor vec2) -> Tensor", kGemm},

    // A product for each run of rows; offs has their ends. As PyTorch names it, and transformers.
    {"aten._grouped_mm.default", kOpaque, kMoves,
     "(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
     "out_dtype=None) -> Tensor",
     kGemm, kMatrixProduct},
    {"transformers.grouped_mm_fallback.default", kOpaque, kMoves,
     "(Tensor self, Tensor mat2, Tensor offs) -> Tensor", kGemm, kMatrixProduct},

    // Attention.
    {"aten.scaled_dot_product_attention.default", kAnchor, kMoves,
     "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
     "bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
     kGemm, kAttention, Role::kAttention},
    {"aten._scaled_dot_product_flash_attention_for_cpu.default", kAnchor, kMoves,
     "(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, "
     "Tensor? attn_mask=None, float? scale=None) -> (Tensor, Tensor)",
     kGemm, kAttention, Role::kAttention},

    // Recurrent networks.
    {"aten.lstm.input", kOpaque, kMoves,
     "(Tensor input, Tensor[] hx, Tensor[] params, bool has_biases, int num_layers, float "
     "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor, Tensor)",
     kNone, kRecurrent},
    {"aten.gru.input", kOpaque, kMoves,
     "(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
     "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kNone, kRecurrent},
    {"aten.rnn_tanh.input", kOpaque, kMoves,
     "(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
     "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kNone, kRecurrent},
    {"aten.rnn_relu.input", kOpaque, kMoves,
     "(Tensor input, Tensor hx, Tensor[] params, bool has_biases, int num_layers, float "
     "dropout, bool train, bool bidirectional, bool batch_first) -> (Tensor, Tensor)",
     kNone, kRecurrent},
    {"aten.lstm_cell.default", kOpaque, kMoves,
     "(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
     "b_hh=None) -> (Tensor, Tensor)",
     kNone, kRecurrentCell},
    {"aten.gru_cell.default", kOpaque, kMoves,
     "(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? "
     "b_hh=None) -> Tensor",
     kNone, kRecurrentCell},
    {"aten._native_multi_head_attention.default", kOpaque, kMoves,
     "(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
     "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool "
     "need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, "
     "Tensor)",
     kNone, kMultiHeadAttention},
    {"aten._transformer_encoder_layer_fwd.default", kOpaque, kMoves,
     "(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor "
     "proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor "
     "norm_weight_1, Tensor norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor "
     "ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, Tensor? "
     "mask=None, int? mask_type=None) -> Tensor"},

    // Activations.
    {"aten.relu.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kRelu},
    {"aten.relu6.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kClip},
    {"aten.hardtanh.default", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar min_val=-1, Scalar max_val=1) -> Tensor", kNone, kByKind,
     Role::kClip},
    {"aten.leaky_relu.default", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar negative_slope=0.01) -> Tensor", kNone, kByKind, Role::kLeakyRelu},
    {"aten.elu.default", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", kNone,
     kByKind, Role::kActivation},
    {"aten.selu.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kRareActivation},
    {"aten.celu.default", kElementwise, kMoves, "(Tensor(a!) self, Scalar alpha=1.) -> Tensor",
     kNone, kByKind, Role::kRareActivation},
    {"aten.gelu.default", kElementwise, kMoves,
     "(Tensor(a!) self, *, str approximate='none') -> Tensor", kNone, kByKind, Role::kGelu},
    {"aten.silu.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kSilu},
    {"aten.mish.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kActivation},
    {"aten.sigmoid.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kSigmoid},
    {"aten.tanh.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kActivation},
    {"aten.hardsigmoid.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone,
     kByKind, Role::kHardSigmoid},
    {"aten.hardswish.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kHardSwish},
    {"aten.softplus.default", kElementwise, kMoves,
     "(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor", kNone, kByKind,
     Role::kRareActivation},
    {"aten.log_sigmoid.default", kElementwise, kMoves, "(Tensor self) -> Tensor", kNone, kByKind,
     Role::kRareActivation},
    {"aten.threshold.default", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar threshold, Scalar value) -> Tensor", kNone, kByKind,
     Role::kRareActivation},
    {"aten.softshrink.default", kElementwise, kMoves, "(Tensor self, Scalar lambd=0.5) -> Tensor"},
    {"aten.hardshrink.default", kElementwise, kMoves, "(Tensor self, Scalar lambd=0.5) -> Tensor"},

    // Activations with an operand or a halved axis.
    {"aten.prelu.default", kBroadcast, kMoves, "(Tensor self, Tensor weight) -> Tensor", kNone,
     kByKind, Role::kRareActivation},
    {"aten.glu.default", kOpaque, kMoves, "(Tensor self, int dim=-1) -> Tensor"},

    // Batch norm as inference computes it: a scale and a shift per channel.
    {"aten.batch_norm.default", kBroadcast, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
     "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     kNone, FlopRule(kResult, 2), Role::kBatchNorm},
    {"aten._native_batch_norm_legit_no_training.default", kBroadcast, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
     "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     kNone, FlopRule(kResult, 2), Role::kBatchNorm},

    // Normalisation.
    {"aten.native_batch_norm.default", kReduction, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
     "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     kNone, FlopRule(kResult, 7)},
    {"aten.cudnn_batch_norm.default", kReduction, kMoves,
     "(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
     "bool training, float exponential_average_factor, float epsilon) -> (Tensor, Tensor, "
     "Tensor, Tensor)",
     kNone, FlopRule(kResult, 7)},
    {"aten._native_batch_norm_legit.default", kReduction, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, "
     "bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     kNone, FlopRule(kResult, 7)},
    {"aten._native_batch_norm_legit.no_stats", kReduction, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) "
     "-> (Tensor, Tensor, Tensor)",
     kNone, FlopRule(kResult, 7)},
    {"aten.instance_norm.default", kReduction, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
     "bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     kNormalization, FlopRule(kResult, 7), Role::kLayerNorm},
    {"aten.layer_norm.default", kReduction, kMoves,
     "(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
     "eps=1e-05, bool cudnn_enable=True) -> Tensor",
     kNormalization, FlopRule(kResult, 7), Role::kLayerNorm},
    {"aten.native_layer_norm.default", kReduction, kMoves,
     "(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> "
     "(Tensor, Tensor, Tensor)",
     kNormalization, FlopRule(kResult, 7), Role::kLayerNorm},
    {"aten.group_norm.default", kReduction, kMoves,
     "(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
     "bool cudnn_enabled=True) -> Tensor",
     kNormalization, FlopRule(kResult, 7), Role::kLayerNorm},
    {"aten.native_group_norm.default", kReduction, kMoves,
     "(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, "
     "float eps) -> (Tensor, Tensor, Tensor)",
     kNormalization, FlopRule(kResult, 7), Role::kLayerNorm},
    {"aten.rms_norm.default", kReduction, kMoves,
     "(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
     kNormalization, FlopRule(kResult, 7), Role::kRmsNorm},

    // Pooling.
    {"aten.max_pool1d.default", kReduction, kMoves,
     "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] "
     "dilation=[1], bool ceil_mode=False) -> Tensor",
     kPool, kWindow, Role::kWindow},
    {"aten.max_pool2d.default", kReduction, kMoves,
     "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
     "bool ceil_mode=False) -> Tensor",
     kPool, kWindow, Role::kWindow},
    {"aten.max_pool3d.default", kReduction, kMoves,
     "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
     "bool ceil_mode=False) -> Tensor",
     kPool, kWindow, Role::kWindow},
    {"aten.max_pool2d_with_indices.default", kReduction, kMoves,
     "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
     "bool ceil_mode=False) -> (Tensor, Tensor)",
     kPool, kWindow, Role::kWindow},
    {"aten.avg_pool1d.default", kReduction, kMoves,
     "(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], bool "
     "ceil_mode=False, bool count_include_pad=True) -> Tensor",
     kPool, kWindow, Role::kWindow},
    {"aten.avg_pool2d.default", kReduction, kMoves,
     "(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
     "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     kPool, kWindow, Role::kWindow},
    {"aten.avg_pool3d.default", kReduction, kMoves,
     "(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
     "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
     kPool, kWindow, Role::kWindow},
    {"aten.adaptive_avg_pool1d.default", kReduction, kMoves,
     "(Tensor self, int[1] output_size) -> Tensor", kPool, kAdaptiveWindow, Role::kGlobalPool},
    {"aten.adaptive_avg_pool2d.default", kReduction, kMoves,
     "(Tensor self, SymInt[2] output_size) -> Tensor", kPool, kAdaptiveWindow, Role::kGlobalPool},
    {"aten.adaptive_avg_pool3d.default", kReduction, kMoves,
     "(Tensor self, int[3] output_size) -> Tensor", kPool, kAdaptiveWindow, Role::kGlobalPool},
    {"aten._adaptive_avg_pool2d.default", kReduction, kMoves,
     "(Tensor self, SymInt[2] output_size) -> Tensor", kPool, kAdaptiveWindow, Role::kGlobalPool},
    {"aten.adaptive_max_pool1d.default", kReduction, kMoves,
     "(Tensor self, int[1] output_size) -> (Tensor, Tensor)", kPool, kAdaptiveWindow,
     Role::kGlobalMaxPool},
    {"aten.adaptive_max_pool2d.default", kReduction, kMoves,
     "(Tensor self, int[2] output_size) -> (Tensor, Tensor)", kPool, kAdaptiveWindow,
     Role::kGlobalMaxPool},

    // Softmax.
    {"aten.softmax.int", kReduction, kMoves,
     "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kSoftmax, FlopRule(kResult, 5),
     Role::kSoftmax},
    {"aten._softmax.default", kReduction, kMoves,
     "(Tensor self, int dim, bool half_to_float) -> Tensor", kSoftmax, FlopRule(kResult, 5),
     Role::kSoftmax},
    {"aten.log_softmax.int", kReduction, kMoves,
     "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kSoftmax, FlopRule(kResult, 5)},
    {"aten._log_softmax.default", kReduction, kMoves,
     "(Tensor self, int dim, bool half_to_float) -> Tensor", kSoftmax, FlopRule(kResult, 5)},
    {"aten._safe_softmax.default", kReduction, kMoves,
     "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor", kSoftmax, FlopRule(kResult, 5),
     Role::kSafeSoftmax},

    // Arithmetic on two operands.
    {"aten.add.Tensor", kBroadcast, kMoves,
     "(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor", kNone, kByKind, Role::kAdd},
    {"aten.sub.Tensor", kBroadcast, kMoves,
     "(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor", kNone, kByKind, Role::kSub},
    {"aten.mul.Tensor", kBroadcast, kMoves, "(Tensor(a!) self, Tensor other) -> Tensor", kNone,
     kByKind, Role::kMul},
    {"aten.div.Tensor", kBroadcast, kMoves, "(Tensor(a!) self, Tensor other) -> Tensor", kNone,
     kByKind, Role::kDiv},
    {"aten.div.Tensor_mode", kBroadcast, kMoves,
     "(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor"},
    {"aten.rsub.Tensor", kBroadcast, kMoves,
     "(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", kNone, kByKind, Role::kRsub},
    {"aten.floor_divide.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.remainder.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.fmod.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.pow.Tensor_Tensor", kBroadcast, kMoves, "(Tensor self, Tensor exponent) -> Tensor"},
    {"aten.maximum.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.minimum.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.atan2.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.addcmul.default", kBroadcast, kMoves,
     "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", kNone,
     FlopRule(kResult, 3)},
    {"aten.addcdiv.default", kBroadcast, kMoves,
     "(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor", kNone,
     FlopRule(kResult, 3)},
    {"aten.lerp.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor end, Tensor weight) -> Tensor",
     kNone, FlopRule(kResult, 3)},
    {"aten.lerp.Scalar", kBroadcast, kMoves, "(Tensor self, Tensor end, Scalar weight) -> Tensor",
     kNone, FlopRule(kResult, 3)},

    // Arithmetic with a scalar.
    {"aten.add.Scalar", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor", kNone, kByKind, Role::kAdd},
    {"aten.sub.Scalar", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor", kNone, kByKind, Role::kSub},
    {"aten.mul.Scalar", kElementwise, kMoves, "(Tensor(a!) self, Scalar other) -> Tensor", kNone,
     kByKind, Role::kMul},
    {"aten.div.Scalar", kElementwise, kMoves, "(Tensor(a!) self, Scalar other) -> Tensor", kNone,
     kByKind, Role::kDiv},
    {"aten.div.Scalar_mode", kElementwise, kMoves,
     "(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor"},
    {"aten.rsub.Scalar", kElementwise, kMoves,
     "(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", kNone, kByKind, Role::kRsub},
    {"aten.floor_divide.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.remainder.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.fmod.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.pow.Tensor_Scalar", kElementwise, kMoves, "(Tensor self, Scalar exponent) -> Tensor",
     kNone, kByKind, Role::kPower},
    {"aten.pow.Scalar", kElementwise, kMoves, "(Scalar self, Tensor exponent) -> Tensor"},

    // Functions of one operand.
    {"aten.neg.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kUnary},
    {"aten.abs.default", kElementwise, kMoves, "(Tensor self) -> Tensor", kNone, kByKind,
     Role::kUnary},
    {"aten.sign.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.sqrt.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kSqrt},
    {"aten.rsqrt.default", kElementwise, kMoves, "(Tensor self) -> Tensor", kNone, kByKind,
     Role::kRsqrt},
    {"aten.reciprocal.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.square.default", kElementwise, kMoves, "(Tensor self) -> Tensor", kNone, kByKind,
     Role::kSquare},
    {"aten.exp.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kExp},
    {"aten.exp2.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.expm1.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.log.default", kElementwise, kMoves, "(Tensor self) -> Tensor", kNone, kByKind,
     Role::kUnary},
    {"aten.log2.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.log10.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.log1p.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.sin.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.cos.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.tan.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.asin.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.acos.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.atan.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.sinh.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.cosh.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.erf.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.erfc.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.floor.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.ceil.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.round.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.trunc.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.frac.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.clamp.default", kElementwise, kMoves,
     "(Tensor(a!) self, Scalar? min=None, Scalar? max=None) -> Tensor", kNone, kByKind,
     Role::kClip},
    {"aten.clamp_min.default", kElementwise, kMoves, "(Tensor self, Scalar min) -> Tensor", kNone,
     kByKind, Role::kClip},
    {"aten.clamp_max.default", kElementwise, kMoves, "(Tensor self, Scalar max) -> Tensor", kNone,
     kByKind, Role::kUnary},
    {"aten.nan_to_num.default", kElementwise, kMoves,
     "(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor"},
    {"aten.isnan.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.isinf.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.isfinite.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.logical_not.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.bitwise_not.default", kElementwise, kMoves, "(Tensor self) -> Tensor"},
    {"aten.clamp.Tensor", kBroadcast, kMoves,
     "(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor", kNone, kByKind, Role::kClip},
    {"aten.clamp_min.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor min) -> Tensor", kNone,
     kByKind, Role::kClip},
    {"aten.clamp_max.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor max) -> Tensor", kNone,
     kByKind, Role::kUnary},

    // Comparison and logic.
    {"aten.eq.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.ne.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.lt.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.le.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.gt.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.ge.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.logical_and.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.logical_or.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.logical_xor.default", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.bitwise_and.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.bitwise_or.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.bitwise_xor.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.where.self", kBroadcast, kMoves,
     "(Tensor condition, Tensor self, Tensor other) -> Tensor", kNone, kNoFlops},
    {"aten.where.ScalarOther", kBroadcast, kMoves,
     "(Tensor condition, Tensor self, Scalar other) -> Tensor", kNone, kNoFlops},
    {"aten.where.ScalarSelf", kBroadcast, kMoves,
     "(Tensor condition, Scalar self, Tensor other) -> Tensor", kNone, kNoFlops},
    {"aten.masked_fill.Tensor", kBroadcast, kMoves,
     "(Tensor(a!) self, Tensor mask, Tensor value) -> Tensor", kNone, kNoFlops},
    {"aten.masked_fill.Scalar", kBroadcast, kMoves,
     "(Tensor(a!) self, Tensor mask, Scalar value) -> Tensor", kNone, kNoFlops},
    {"aten.__and__.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.__or__.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.__xor__.Tensor", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.eq.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.ne.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.lt.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.le.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.gt.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.ge.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.where.Scalar", kElementwise, kMoves,
     "(Tensor condition, Scalar self, Scalar other) -> Tensor", kNone, kNoFlops},
    {"aten.bitwise_and.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},
    {"aten.bitwise_or.Scalar", kElementwise, kMoves, "(Tensor self, Scalar other) -> Tensor"},

    // Casts and copies.
    {"aten.to.dtype", kElementwise, kMoves,
     "(Tensor self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
     "memory_format=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.to.dtype_layout", kElementwise, kMoves,
     "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? "
     "memory_format=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.to.device", kElementwise, kMoves,
     "(Tensor self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
     "MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.to.other", kElementwise, kMoves,
     "(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? "
     "memory_format=None) -> Tensor",
     kNone, kNoFlops},
    {"aten._to_copy.default", kElementwise, kMoves,
     "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops, Role::kCast},
    {"aten.type_as.default", kElementwise, kMoves, "(Tensor self, Tensor other) -> Tensor", kNone,
     kNoFlops},
    {"aten.clone.default", kElementwise, kMoves,
     "(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor", kNone, kNoFlops,
     Role::kSameOrder},
    {"aten.copy.default", kElementwise, kMoves,
     "(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor", kNone, kNoFlops,
     Role::kFill},
    {"aten.lift_fresh_copy.default", kElementwise, kMoves, "(Tensor self) -> Tensor", kNone,
     kNoFlops},
    {"aten.fill.Scalar", kElementwise, kMoves, "(Tensor(a!) self, Scalar value) -> Tensor", kNone,
     kNoFlops, Role::kFill},
    {"aten.fill.Tensor", kElementwise, kMoves, "(Tensor(a!) self, Tensor value) -> Tensor", kNone,
     kNoFlops, Role::kFill},
    {"aten.zero_.default", kElementwise, kMoves, "(Tensor(a!) self) -> Tensor", kNone, kNoFlops,
     Role::kFill},

    // Views.
    {"aten.view.default", kInjective, kAlias, "(Tensor self, SymInt[] size) -> Tensor", kReshape,
     kByKind, Role::kSameOrder},
    {"aten._unsafe_view.default", kInjective, kAlias, "(Tensor self, SymInt[] size) -> Tensor",
     kReshape, kByKind, Role::kSameOrder},
    {"aten.reshape.default", kInjective, kAlias, "(Tensor self, SymInt[] shape) -> Tensor",
     kReshape, kByKind, Role::kSameOrder},
    {"aten.view_as.default", kInjective, kAlias, "(Tensor self, Tensor other) -> Tensor", kReshape},
    {"aten.reshape_as.default", kInjective, kAlias, "(Tensor self, Tensor other) -> Tensor",
     kReshape},
    {"aten.flatten.using_ints", kInjective, kAlias,
     "(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", kReshape, kByKind,
     Role::kSameOrder},
    {"aten.unflatten.int", kInjective, kAlias, "(Tensor self, int dim, int[] sizes) -> Tensor",
     kReshape},
    {"aten.squeeze.default", kInjective, kAlias, "(Tensor self) -> Tensor", kReshape, kByKind,
     Role::kSameOrder},
    {"aten.squeeze.dim", kInjective, kAlias, "(Tensor self, int dim) -> Tensor", kReshape, kByKind,
     Role::kSameOrder},
    {"aten.squeeze.dims", kInjective, kAlias, "(Tensor self, int[] dim) -> Tensor", kReshape},
    {"aten.unsqueeze.default", kInjective, kAlias, "(Tensor self, int dim) -> Tensor", kReshape,
     kByKind, Role::kSameOrder},
    {"aten.contiguous.default", kInjective, kAlias,
     "(Tensor self, *, MemoryFormat memory_format=contiguous_format) -> Tensor", kNone, kByKind,
     Role::kSameOrder},
    {"aten.alias.default", kInjective, kAlias, "(Tensor self) -> Tensor", kNone, kByKind,
     Role::kSameOrder},
    {"aten.detach.default", kInjective, kAlias, "(Tensor(a!) self) -> Tensor", kNone, kByKind,
     Role::kSameOrder},
    {"aten.lift_fresh.default", kInjective, kAlias, "(Tensor self) -> Tensor"},
    {"aten.t.default", kInjective, kAlias, "(Tensor self) -> Tensor", kTranspose, kByKind,
     Role::kPermute},
    {"aten.transpose.int", kInjective, kAlias, "(Tensor self, int dim0, int dim1) -> Tensor",
     kTranspose, kByKind, Role::kPermute},
    {"aten.permute.default", kInjective, kAlias, "(Tensor self, int[] dims) -> Tensor", kTranspose,
     kByKind, Role::kPermute},
    {"aten.movedim.int", kInjective, kAlias, "(Tensor self, int source, int destination) -> Tensor",
     kTranspose},
    {"aten.movedim.intlist", kInjective, kAlias,
     "(Tensor self, int[] source, int[] destination) -> Tensor", kTranspose},
    {"aten.swapaxes.default", kInjective, kAlias, "(Tensor self, int axis0, int axis1) -> Tensor",
     kTranspose},
    {"aten.numpy_T.default", kInjective, kAlias, "(Tensor self) -> Tensor", kTranspose},
    {"aten.expand.default", kInjective, kAlias,
     "(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", kReshape, kByKind,
     Role::kExpand},
    {"aten.expand_as.default", kInjective, kAlias, "(Tensor self, Tensor other) -> Tensor",
     kReshape},
    {"aten.broadcast_to.default", kInjective, kAlias, "(Tensor self, int[] size) -> Tensor",
     kReshape},
    {"aten.slice.Tensor", kInjective, kAlias,
     "(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
     kSlice, kByKind, Role::kSlice},
    {"aten.select.int", kInjective, kAlias, "(Tensor self, int dim, int index) -> Tensor", kNone,
     kByKind, Role::kSelect},
    {"aten.narrow.default", kInjective, kAlias,
     "(Tensor self, int dim, int start, int length) -> Tensor", kSlice},
    {"aten.diagonal.default", kInjective, kAlias,
     "(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor"},
    {"aten.unfold.default", kInjective, kAlias,
     "(Tensor self, int dimension, int size, int step) -> Tensor"},
    {"aten.view_as_real.default", kInjective, kAlias, "(Tensor self) -> Tensor"},
    {"aten.view_as_complex.default", kInjective, kAlias, "(Tensor self) -> Tensor"},

    // Views with several results.
    {"aten.split.Tensor", kInjective, kAlias,
     "(Tensor self, int split_size, int dim=0) -> Tensor[]"},
    {"aten.split.sizes", kInjective, kAlias,
     "(Tensor self, int[] split_size, int dim=0) -> Tensor[]"},
    {"aten.split_with_sizes.default", kInjective, kAlias,
     "(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]"},
    {"aten.chunk.default", kInjective, kAlias, "(Tensor self, int chunks, int dim=0) -> Tensor[]"},
    {"aten.unbind.int", kInjective, kAlias, "(Tensor self, int dim=0) -> Tensor[]"},
    {"aten.tensor_split.sections", kInjective, kAlias,
     "(Tensor self, int sections, int dim=0) -> Tensor[]"},
    {"aten.tensor_split.indices", kInjective, kAlias,
     "(Tensor self, int[] indices, int dim=0) -> Tensor[]"},
    {"<built-in function getitem>", kInjective, kAlias, "(Tensor[] self, int index) -> Tensor"},

    // The identity at inference.
    {"aten.dropout.default", kElementwise, kAlias,
     "(Tensor(a!) input, float p, bool train) -> Tensor", kNone, kByKind, Role::kSameOrder},
    {"aten.feature_dropout.default", kElementwise, kAlias,
     "(Tensor input, float p, bool train) -> Tensor", kNone, kByKind, Role::kSameOrder},
    {"aten.alpha_dropout.default", kElementwise, kAlias,
     "(Tensor input, float p, bool train) -> Tensor"},
    {"aten._assert_tensor_metadata.default", kElementwise, kAlias,
     "(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
     "Device? device=None, Layout? layout=None) -> ()"},
    {"aten.native_dropout.default", kOpaque, kMoves,
     "(Tensor input, float p, bool? train) -> (Tensor, Tensor)"},

    // Moving elements.
    {"aten.cat.default", kInjective, kMoves, "(Tensor[] tensors, int dim=0) -> Tensor",
     kConcatenate, kByKind, Role::kCat},
    {"aten.concat.default", kInjective, kMoves, "(Tensor[] tensors, int dim=0) -> Tensor",
     kConcatenate, kByKind, Role::kCat},
    {"aten.stack.default", kInjective, kMoves, "(Tensor[] tensors, int dim=0) -> Tensor",
     kConcatenate},
    {"aten.meshgrid.default", kInjective, kMoves, "(Tensor[] tensors) -> Tensor[]"},
    {"aten.meshgrid.indexing", kInjective, kMoves,
     "(Tensor[] tensors, *, str indexing) -> Tensor[]"},
    {"aten.repeat.default", kInjective, kMoves, "(Tensor self, SymInt[] repeats) -> Tensor"},
    {"aten.tile.default", kInjective, kMoves, "(Tensor self, int[] dims) -> Tensor"},
    {"aten.repeat_interleave.self_int", kInjective, kMoves,
     "(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor"},
    {"aten.repeat_interleave.Tensor", kInjective, kMoves,
     "(Tensor repeats, *, int? output_size=None) -> Tensor"},
    {"aten.roll.default", kInjective, kMoves,
     "(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor"},
    {"aten.flip.default", kInjective, kMoves, "(Tensor self, int[] dims) -> Tensor"},
    {"aten.channel_shuffle.default", kInjective, kMoves, "(Tensor self, int groups) -> Tensor"},
    {"aten.native_channel_shuffle.default", kInjective, kMoves,
     "(Tensor self, int groups) -> Tensor"},
    {"aten.pixel_shuffle.default", kInjective, kMoves,
     "(Tensor self, int upscale_factor) -> Tensor"},
    {"aten.pixel_unshuffle.default", kInjective, kMoves,
     "(Tensor self, int downscale_factor) -> Tensor"},
    {"aten.constant_pad_nd.default", kInjective, kMoves,
     "(Tensor self, int[] pad, Scalar value=0) -> Tensor", kPad},
    {"aten.pad.default", kInjective, kMoves,
     "(Tensor self, SymInt[] pad, str mode='constant', float? value=None) -> Tensor", kPad},
    {"aten.reflection_pad1d.default", kInjective, kMoves, "(Tensor self, int[2] padding) -> Tensor",
     kPad},
    {"aten.reflection_pad2d.default", kInjective, kMoves, "(Tensor self, int[4] padding) -> Tensor",
     kPad},
    {"aten.reflection_pad3d.default", kInjective, kMoves, "(Tensor self, int[6] padding) -> Tensor",
     kPad},
    {"aten.replication_pad1d.default", kInjective, kMoves,
     "(Tensor self, int[2] padding) -> Tensor", kPad},
    {"aten.replication_pad2d.default", kInjective, kMoves,
     "(Tensor self, int[4] padding) -> Tensor", kPad},
    {"aten.replication_pad3d.default", kInjective, kMoves,
     "(Tensor self, int[6] padding) -> Tensor", kPad},
    {"aten.im2col.default", kInjective, kMoves,
     "(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> "
     "Tensor"},
    {"aten.col2im.default", kOpaque, kMoves,
     "(Tensor self, SymInt[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, "
     "int[2] stride) -> Tensor",
     kNone, kFirstOperand},
    {"aten.tril.default", kInjective, kMoves, "(Tensor self, int diagonal=0) -> Tensor"},
    {"aten.triu.default", kInjective, kMoves, "(Tensor self, int diagonal=0) -> Tensor"},

    // Indexing.
    {"aten.embedding.default", kInjective, kMoves,
     "(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
     "sparse=False) -> Tensor",
     kNone, kByKind, Role::kGather},
    {"aten.index.Tensor", kInjective, kMoves, "(Tensor self, Tensor?[] indices) -> Tensor"},
    {"aten.index_select.default", kInjective, kMoves,
     "(Tensor self, int dim, Tensor index) -> Tensor", kNone, kByKind, Role::kGather},
    {"aten.gather.default", kInjective, kMoves,
     "(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor"},
    {"aten.take_along_dim.default", kInjective, kMoves,
     "(Tensor self, Tensor indices, int? dim=None) -> Tensor"},
    {"aten.index_put.default", kOpaque, kMoves,
     "(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
     kScatter, kNoFlops},
    {"aten.index_copy.default", kOpaque, kMoves,
     "(Tensor self, int dim, Tensor index, Tensor source) -> Tensor", kScatter, kNoFlops},
    {"aten.index_add.default", kOpaque, kMoves,
     "(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor", kScatter,
     kLastOperand, Role::kIndexAdd},
    {"aten.scatter.src", kOpaque, kMoves,
     "(Tensor self, int dim, Tensor index, Tensor src) -> Tensor", kScatter, kLastOperand},
    {"aten.scatter.value", kOpaque, kMoves,
     "(Tensor self, int dim, Tensor index, Scalar value) -> Tensor", kScatter, kLastOperand},
    {"aten.scatter_add.default", kOpaque, kMoves,
     "(Tensor(a!) self, int dim, Tensor index, Tensor src) -> Tensor", kScatter, kLastOperand},
    {"aten.scatter_reduce.two", kOpaque, kMoves,
     "(Tensor(a!) self, int dim, Tensor index, Tensor src, str reduce, *, bool "
     "include_self=True) -> Tensor",
     kScatter, kLastOperand, Role::kScatterReduce},
    {"aten.slice_scatter.default", kOpaque, kMoves,
     "(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
     "step=1) -> Tensor",
     kScatter, kNoFlops},
    {"aten.select_scatter.default", kOpaque, kMoves,
     "(Tensor self, Tensor src, int dim, int index) -> Tensor", kScatter, kNoFlops},
    {"aten.masked_scatter.default", kOpaque, kMoves,
     "(Tensor self, Tensor mask, Tensor source) -> Tensor", kScatter, kNoFlops},
    {"aten.embedding_bag.default", kOpaque, kMoves,
     "(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
     "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
     "include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)"},
    {"aten.one_hot.default", kOpaque, kMoves, "(Tensor self, int num_classes=-1) -> Tensor", kNone,
     kNoFlops},
    {"aten.bucketize.Tensor", kOpaque, kMoves,
     "(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor"},
    {"aten.searchsorted.Tensor", kOpaque, kMoves,
     "(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? "
     "side=None, Tensor? sorter=None) -> Tensor"},

    // Reductions.
    {"aten.mean.default", kReduction, kMoves, "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     kReduce, kByKind, Role::kMean},
    {"aten.mean.dim", kReduction, kMoves,
     "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", kReduce,
     kByKind, Role::kMean},
    {"aten.sum.default", kReduction, kMoves, "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     kReduce},
    {"aten.sum.dim_IntList", kReduction, kMoves,
     "(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
     kReduce},
    {"aten.prod.default", kReduction, kMoves, "(Tensor self, *, ScalarType? dtype=None) -> Tensor",
     kReduce},
    {"aten.prod.dim_int", kReduction, kMoves,
     "(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", kReduce},
    {"aten.max.default", kReduction, kMoves, "(Tensor self) -> Tensor", kReduce},
    {"aten.min.default", kReduction, kMoves, "(Tensor self) -> Tensor", kReduce},
    {"aten.max.dim", kReduction, kMoves,
     "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", kReduce},
    {"aten.min.dim", kReduction, kMoves,
     "(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)", kReduce},
    // Element-wise, whatever their name says; behind those, whose class the name has.
    {"aten.max.other", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.min.other", kBroadcast, kMoves, "(Tensor self, Tensor other) -> Tensor"},
    {"aten.amax.default", kReduction, kMoves,
     "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", kReduce},
    {"aten.amin.default", kReduction, kMoves,
     "(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", kReduce},
    {"aten.aminmax.default", kReduction, kMoves,
     "(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)", kReduce},
    {"aten.argmax.default", kReduction, kMoves,
     "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kReduce},
    {"aten.argmin.default", kReduction, kMoves,
     "(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", kReduce},
    {"aten.any.default", kReduction, kMoves, "(Tensor self) -> Tensor", kReduce},
    {"aten.any.dim", kReduction, kMoves, "(Tensor self, int dim, bool keepdim=False) -> Tensor",
     kReduce},
    {"aten.any.dims", kReduction, kMoves,
     "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", kReduce},
    {"aten.all.default", kReduction, kMoves, "(Tensor self) -> Tensor", kReduce},
    {"aten.all.dim", kReduction, kMoves, "(Tensor self, int dim, bool keepdim=False) -> Tensor",
     kReduce},
    {"aten.all.dims", kReduction, kMoves,
     "(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor", kReduce},
    {"aten.var.default", kReduction, kMoves, "(Tensor self, bool unbiased=True) -> Tensor", kReduce,
     FlopRule(kFirstOperand, 3)},
    {"aten.var.dim", kReduction, kMoves,
     "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", kReduce,
     FlopRule(kFirstOperand, 3)},
    {"aten.var.correction", kReduction, kMoves,
     "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
     kReduce, FlopRule(kFirstOperand, 3)},
    {"aten.var_mean.correction", kReduction, kMoves,
     "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
     "(Tensor, Tensor)",
     kReduce, FlopRule(kFirstOperand, 3)},
    {"aten.var_mean.dim", kReduction, kMoves,
     "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
     kReduce, FlopRule(kFirstOperand, 3)},
    {"aten.std_mean.dim", kReduction, kMoves,
     "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)",
     kReduce, FlopRule(kFirstOperand, 3)},
    {"aten.std_mean.correction", kReduction, kMoves,
     "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
     "-> (Tensor, Tensor)",
     kReduce, FlopRule(kFirstOperand, 3)},
    {"aten.std.default", kReduction, kMoves, "(Tensor self, bool unbiased=True) -> Tensor", kReduce,
     FlopRule(kFirstOperand, 3)},
    {"aten.std.dim", kReduction, kMoves,
     "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor", kReduce,
     FlopRule(kFirstOperand, 3)},
    {"aten.std.correction", kReduction, kMoves,
     "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
     kReduce, FlopRule(kFirstOperand, 3)},
    {"aten.norm.ScalarOpt_dim", kReduction, kMoves,
     "(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor", kReduce,
     FlopRule(kFirstOperand, 2)},
    {"aten.linalg_vector_norm.default", kReduction, kMoves,
     "(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor",
     kReduce, FlopRule(kFirstOperand, 2)},
    {"aten.logsumexp.default", kReduction, kMoves,
     "(Tensor self, int[1] dim, bool keepdim=False) -> Tensor", kReduce,
     FlopRule(kFirstOperand, 2)},

    // Scans, sorting.
    {"aten.cumsum.default", kOpaque, kMoves,
     "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"},
    {"aten.cumprod.default", kOpaque, kMoves,
     "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor"},
    {"aten.diff.default", kOpaque, kMoves,
     "(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor"},
    {"aten.histc.default", kOpaque, kMoves,
     "(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor", kNone,
     FlopRule(kFirstOperand, 3)},
    {"aten.sort.default", kOpaque, kMoves,
     "(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)", kNone,
     kFirstOperand},
    {"aten.sort.stable", kOpaque, kMoves,
     "(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, "
     "Tensor indices)",
     kNone, kFirstOperand},
    {"aten.argsort.default", kOpaque, kMoves,
     "(Tensor self, int dim=-1, bool descending=False) -> Tensor", kNone, kFirstOperand},
    {"aten.topk.default", kOpaque, kMoves,
     "(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, "
     "Tensor indices)",
     kNone, kFirstOperand},

    // Between the two layouts of a tensor (npu-align); the identity on its values.
    {"npu.channel_norm", kInjective, kMoves,
     "(Tensor self, *, bool direction, str layout='') -> Tensor", kNone, FlopRule(kResult, 7)},

    // The rows behind the first `valid` ones along a dimension, written anew.
    {"npu.tail", kOpaque, kMoves,
     "(Tensor self, Tensor valid, *, int dim, str fill='zero') -> Tensor", kNone, kNoFlops},

    // Which keys of a cache the rows of an attention see, by position and by number.
    {"npu.length_mask", kOpaque, kMoves,
     "(Tensor? positions=None, Tensor? valid=None, *, str operands, int keys, bool causal=False, "
     "int window=-1) -> Tensor",
     kNone, kNoFlops},

    // Aggregation over the edges of rows, which offsets delimit (CSR). Weights stand only beside
    // indices.
    {"npu.segment_reduce", kAnchor, kMoves,
     "(Tensor self, Tensor offsets, Tensor? indices=None, Tensor? weights=None, *, str "
     "reduce='sum') -> Tensor",
     kNone, kSegments},

    // Quantization, as PyTorch exports it (PT2E). divide_by_scale is ONNX's rounding: x / s, not
    // x * (1 / s).
    {"quantized_decomposed.quantize_per_tensor.default", kElementwise, kMoves,
     "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, "
     "*, bool divide_by_scale=False) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"quantized_decomposed.quantize_per_tensor.tensor", kBroadcast, kMoves,
     "(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType "
     "dtype, *, bool divide_by_scale=False) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"quantized_decomposed.quantize_per_tensor.tensor2", kBroadcast, kMoves,
     "(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
     "ScalarType dtype, *, bool divide_by_scale=False) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"quantized_decomposed.quantize_per_channel.default", kBroadcast, kMoves,
     "(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int quant_max, "
     "ScalarType dtype, *, bool divide_by_scale=False) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"quantized_decomposed.quantize_per_token.default", kBroadcast, kMoves,
     "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType "
     "dtype) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"quantized_decomposed.quantize_per_channel_group.default", kOpaque, kMoves,
     "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType "
     "dtype, int group_size=128) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"quantized_decomposed.dequantize_per_tensor.default", kElementwise, kMoves,
     "(Tensor input, float scale, int zero_point, int quant_min, int quant_max, ScalarType dtype, "
     "*, ScalarType? out_dtype=None) -> Tensor",
     kNone, FlopRule(kResult, 2)},
    {"quantized_decomposed.dequantize_per_tensor.tensor", kBroadcast, kMoves,
     "(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int quant_max, ScalarType "
     "dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kNone, FlopRule(kResult, 2)},
    {"quantized_decomposed.dequantize_per_tensor.tensor2", kBroadcast, kMoves,
     "(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor quant_max, "
     "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kNone, FlopRule(kResult, 2)},
    {"quantized_decomposed.dequantize_per_channel.default", kBroadcast, kMoves,
     "(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, int quant_max, "
     "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor",
     kNone, FlopRule(kResult, 2)},
    {"quantized_decomposed.dequantize_per_token.default", kBroadcast, kMoves,
     "(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, ScalarType "
     "dtype, ScalarType output_dtype) -> Tensor",
     kNone, FlopRule(kResult, 2)},
    {"quantized_decomposed.dequantize_per_channel_group.default", kOpaque, kMoves,
     "(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int quant_max, ScalarType "
     "dtype, int group_size=128, ScalarType output_dtype=float) -> Tensor",
     kNone, FlopRule(kResult, 2)},
    {"quantized_decomposed.choose_qparams.tensor", kReduction, kMoves,
     "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, "
     "Tensor)",
     kNone, FlopRule(kFirstOperand, 2)},
    {"quantized_decomposed.choose_qparams_symmetric.tensor", kReduction, kMoves,
     "(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> (Tensor, "
     "Tensor)",
     kNone, FlopRule(kFirstOperand, 2)},
    {"quantized_decomposed.choose_qparams_per_token.default", kReduction, kMoves,
     "(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", kNone, FlopRule(kFirstOperand, 2)},
    {"quantized_decomposed.choose_qparams_per_token_asymmetric.default", kReduction, kMoves,
     "(Tensor input, ScalarType dtype) -> (Tensor, Tensor)", kNone, FlopRule(kFirstOperand, 2)},
    {"quantized_decomposed.convert_element_type.no_fuse", kElementwise, kMoves,
     "(Tensor input, ScalarType dtype) -> Tensor", kNone, kNoFlops},

    // Resampling.
    {"aten.upsample_nearest1d.default", kInjective, kMoves,
     "(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor"},
    {"aten.upsample_nearest1d.vec", kInjective, kMoves,
     "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
    {"aten.upsample_nearest2d.default", kInjective, kMoves,
     "(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor"},
    {"aten.upsample_nearest2d.vec", kInjective, kMoves,
     "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
    {"aten.upsample_nearest3d.default", kInjective, kMoves,
     "(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
     "scales_w=None) -> Tensor"},
    {"aten.upsample_nearest3d.vec", kInjective, kMoves,
     "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
    {"aten._upsample_nearest_exact1d.default", kInjective, kMoves,
     "(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor"},
    {"aten._upsample_nearest_exact1d.vec", kInjective, kMoves,
     "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
    {"aten._upsample_nearest_exact2d.default", kInjective, kMoves,
     "(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor"},
    {"aten._upsample_nearest_exact2d.vec", kInjective, kMoves,
     "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
    {"aten._upsample_nearest_exact3d.default", kInjective, kMoves,
     "(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? "
     "scales_w=None) -> Tensor"},
    {"aten._upsample_nearest_exact3d.vec", kInjective, kMoves,
     "(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor"},
    {"aten.upsample_linear1d.default", kOpaque, kMoves,
     "(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"aten.upsample_linear1d.vec", kOpaque, kMoves,
     "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
     kNone, FlopRule(kResult, 4)},
    {"aten.upsample_bilinear2d.default", kOpaque, kMoves,
     "(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor",
     kNone, FlopRule(kResult, 8)},
    {"aten.upsample_bilinear2d.vec", kOpaque, kMoves,
     "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
     kNone, FlopRule(kResult, 8)},
    {"aten.upsample_bicubic2d.default", kOpaque, kMoves,
     "(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? "
     "scales_w=None) -> Tensor",
     kNone, FlopRule(kResult, 32)},
    {"aten.upsample_bicubic2d.vec", kOpaque, kMoves,
     "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
     kNone, FlopRule(kResult, 32)},
    {"aten.upsample_trilinear3d.default", kOpaque, kMoves,
     "(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? "
     "scales_h=None, float? scales_w=None) -> Tensor",
     kNone, FlopRule(kResult, 16)},
    {"aten.upsample_trilinear3d.vec", kOpaque, kMoves,
     "(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
     kNone, FlopRule(kResult, 16)},
    {"aten.grid_sampler.default", kOpaque, kMoves,
     "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
     "align_corners) -> Tensor",
     kNone, FlopRule(kResult, 8)},
    {"aten.grid_sampler_2d.default", kOpaque, kMoves,
     "(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool "
     "align_corners) -> Tensor",
     kNone, FlopRule(kResult, 8)},
    {"aten.affine_grid_generator.default", kOpaque, kMoves,
     "(Tensor theta, int[] size, bool align_corners) -> Tensor"},

    // A weight as magnitude and direction.
    {"aten._weight_norm.default", kOpaque, kMoves, "(Tensor v, Tensor g, int dim=0) -> Tensor",
     kNone, FlopRule(kFirstOperand, 4)},

    // Distances.
    {"aten.cdist.default", kOpaque, kMoves,
     "(Tensor x1, Tensor x2, float p=2., int? compute_mode=None) -> Tensor"},
    {"aten.cosine_similarity.default", kOpaque, kMoves,
     "(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor"},

    // Making tensors.
    {"aten.full.default", kOpaque, kMoves,
     "(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.full_like.default", kOpaque, kMoves,
     "(Tensor self, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops, Role::kFill},
    {"aten.zeros.default", kOpaque, kMoves,
     "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops, Role::kZeros},
    {"aten.zeros_like.default", kOpaque, kMoves,
     "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops, Role::kFill},
    {"aten.ones.default", kOpaque, kMoves,
     "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops, Role::kOnes},
    {"aten.ones_like.default", kOpaque, kMoves,
     "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops, Role::kFill},
    {"aten.empty.memory_format", kOpaque, kMoves,
     "(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
     "bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.empty_like.default", kOpaque, kMoves,
     "(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None, MemoryFormat? memory_format=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.new_zeros.default", kOpaque, kMoves,
     "(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops, Role::kFill},
    {"aten.new_ones.default", kOpaque, kMoves,
     "(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops, Role::kFill},
    {"aten.new_full.default", kOpaque, kMoves,
     "(Tensor self, SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops, Role::kFill},
    {"aten.new_empty.default", kOpaque, kMoves,
     "(Tensor self, SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.arange.default", kOpaque, kMoves,
     "(Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.arange.start", kOpaque, kMoves,
     "(Scalar start, Scalar end, *, ScalarType? dtype=None, Layout? layout=None, Device? "
     "device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.arange.start_step", kOpaque, kMoves,
     "(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? "
     "layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.linspace.default", kOpaque, kMoves,
     "(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None, Layout? layout=None, "
     "Device? device=None, bool? pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.eye.default", kOpaque, kMoves,
     "(int n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None) -> Tensor",
     kNone, kNoFlops},
    {"aten.scalar_tensor.default", kOpaque, kMoves,
     "(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? "
     "pin_memory=None) -> Tensor",
     kNone, kNoFlops},
};
constexpr std::size_t kOpRowCount = std::size(kOpRows);

FlopRule rule_of(const OpRow& row) {
  if (row.flops.basis != kByKind) return row.flops;
  switch (row.kind) {
    case kAnchor:
      return kMatrixProduct;
    case kReduction:
      return kFirstOperand;
    case kInjective:
      return kNoFlops;
    default:
      return kAllResults;
  }
}

/// The row that find_op returns, with the fields that only libcore needs.
struct Entry {
  OpInfo info;
  FlopRule flops;
};

/// An op, in place or not, and its entry once it was looked up.
struct Slot {
  const OpRow* row = nullptr;
  std::atomic<const Entry*> parsed = nullptr;
  std::unique_ptr<const Entry> owned;
};

class Catalogue {
 public:
  Catalogue() {
    slots_.reserve(kOpRowCount * 5 / 4);
    for (const OpRow& row : kOpRows) {
      slots_[row.op_type].row = &row;
      if (!row.schema.starts_with("(Tensor(a!)") || is_in_place(row.op_type)) continue;
      std::string& op_type = in_place_types_.emplace_back(row.op_type);
      op_type.insert(op_type.rfind('.'), "_");
      slots_[op_type].row = &row;
    }
  }

  const std::unordered_map<std::string_view, Slot>& slots() const { return slots_; }

  const Entry* find(std::string_view op_type) {
    const auto found = slots_.find(op_type);
    if (found == slots_.end()) return nullptr;
    auto& [name, slot] = *found;
    if (const Entry* entry = slot.parsed.load(std::memory_order_acquire)) return entry;
    const std::lock_guard lock(mutex_);
    if (slot.owned == nullptr) {
      const OpRow& row = *slot.row;
      slot.owned =
          std::make_unique<const Entry>(Entry{{name, row.kind, row.role, row.movement == kAlias,
                                               is_in_place(name), parse_schema(name, row.schema)},
                                              rule_of(row)});
      slot.parsed.store(slot.owned.get(), std::memory_order_release);
    }
    return slot.owned.get();
  }

 private:
  std::deque<std::string> in_place_types_;  // a deque, since slots_ refers to their characters
  std::unordered_map<std::string_view, Slot> slots_;
  std::mutex mutex_;
};

Catalogue& catalogue() {
  static Catalogue instance;
  return instance;
}

}  // namespace

bool is_catalogued(std::string_view op_type) { return catalogue().slots().contains(op_type); }

const OpInfo* find_op(std::string_view op_type) {
  const Entry* entry = catalogue().find(op_type);
  return entry == nullptr ? nullptr : &entry->info;
}

FusionRole fusion_role(std::string_view op_type) {
  const OpInfo* op = find_op(op_type);
  return op == nullptr ? FusionRole::kOther : op->role;
}

std::optional<FlopRule> find_flop_rule(std::string_view op_type) {
  const Entry* entry = catalogue().find(op_type);
  if (entry == nullptr) return std::nullopt;
  return entry->flops;
}

std::optional<AlignClass> catalogued_align_class(std::string_view name) {
  static const std::unordered_map<std::string_view, AlignClass> kClassByName = [] {
    std::unordered_map<std::string_view, AlignClass> classes;
    classes.reserve(kOpRowCount);
    for (const OpRow& row : kOpRows) classes.emplace(functional_name(row.op_type), row.align_class);
    return classes;
  }();
  const auto found = kClassByName.find(name);
  if (found == kClassByName.end()) return std::nullopt;
  return found->second;
}

std::vector<std::string_view> catalogued_ops() {
  std::vector<std::string_view> ops;
  ops.reserve(catalogue().slots().size());
  for (const auto& [op_type, slot] : catalogue().slots()) ops.push_back(op_type);
  std::sort(ops.begin(), ops.end());
  return ops;
}

std::span<const std::string_view> op_forms(std::string_view family) {
  static const auto kFormsByFamily = [] {
    std::unordered_map<std::string_view, std::vector<std::string_view>> forms;
    for (const std::string_view op_type : catalogued_ops()) {
      forms[family_name(op_type)].push_back(op_type);
    }
    return forms;
  }();
  const auto found = kFormsByFamily.find(family);
  if (found == kFormsByFamily.end()) return {};
  return found->second;
}

}  // namespace npu
