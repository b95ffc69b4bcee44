// SPDX-License-Identifier: Apache-2.0
// Which class of an accelerator's kernel library an ATen op belongs to.
//
// The class follows from the op's name without overload and without the underscore of in-place ops,
// so that ops which the catalogue lacks have one as well. O(log rows).
#include "npu/ops/align_class.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace npu {
namespace {

using enum AlignClass;

constexpr std::array<std::pair<AlignClass, std::string_view>, 12> kNames{{
    {kGemm, "gemm"},
    {kConv, "conv"},
    {kPool, "pool"},
    {kReduce, "reduce"},
    {kTranspose, "transpose"},
    {kConcatenate, "concatenate"},
    {kScatter, "scatter"},
    {kPad, "pad"},
    {kSlice, "slice"},
    {kReshape, "reshape"},
    {kNormalization, "normalization"},
    {kSoftmax, "softmax"},
}};

struct Row {
  std::string_view name;
  AlignClass align_class;
};

// Sorted by name. Convolutions and pooling are recognised by a part of their name instead.
constexpr Row kRows[] = {
    {"_log_softmax", kSoftmax},
    {"_reshape_copy", kReshape},
    {"_safe_softmax", kSoftmax},
    {"_scaled_dot_product_flash_attention_for_cpu", kGemm},
    {"_softmax", kSoftmax},
    {"_unsafe_view", kReshape},
    {"addbmm", kGemm},
    {"addmm", kGemm},
    {"addmv", kGemm},
    {"adjoint", kTranspose},
    {"all", kReduce},
    {"amax", kReduce},
    {"amin", kReduce},
    {"aminmax", kReduce},
    {"any", kReduce},
    {"argmax", kReduce},
    {"argmin", kReduce},
    {"baddbmm", kGemm},
    {"bilinear", kGemm},
    {"bmm", kGemm},
    {"broadcast_to", kReshape},
    {"cat", kConcatenate},
    {"concat", kConcatenate},
    {"concatenate", kConcatenate},
    {"constant_pad_nd", kPad},
    {"count_nonzero", kReduce},
    {"dot", kGemm},
    {"dstack", kConcatenate},
    {"einsum", kGemm},
    {"expand", kReshape},
    {"expand_as", kReshape},
    {"flatten", kReshape},
    {"group_norm", kNormalization},
    {"hstack", kConcatenate},
    {"index_add", kScatter},
    {"index_copy", kScatter},
    {"index_fill", kScatter},
    {"index_put", kScatter},
    {"inner", kGemm},
    {"instance_norm", kNormalization},
    {"layer_norm", kNormalization},
    {"linalg_matmul", kGemm},
    {"linalg_vector_norm", kReduce},
    {"linear", kGemm},
    {"log_softmax", kSoftmax},
    {"logsumexp", kReduce},
    {"mT", kTranspose},
    {"masked_scatter", kScatter},
    {"matmul", kGemm},
    {"max", kReduce},
    {"mean", kReduce},
    {"median", kReduce},
    {"min", kReduce},
    {"mm", kGemm},
    {"moveaxis", kTranspose},
    {"movedim", kTranspose},
    {"mv", kGemm},
    {"nansum", kReduce},
    {"narrow", kSlice},
    {"native_group_norm", kNormalization},
    {"native_layer_norm", kNormalization},
    {"norm", kReduce},
    {"numpy_T", kTranspose},
    {"outer", kGemm},
    {"pad", kPad},
    {"permute", kTranspose},
    {"permute_copy", kTranspose},
    {"prod", kReduce},
    {"reflection_pad1d", kPad},
    {"reflection_pad2d", kPad},
    {"reflection_pad3d", kPad},
    {"replication_pad1d", kPad},
    {"replication_pad2d", kPad},
    {"replication_pad3d", kPad},
    {"reshape", kReshape},
    {"reshape_as", kReshape},
    {"rms_norm", kNormalization},
    {"scaled_dot_product_attention", kGemm},
    {"scatter", kScatter},
    {"scatter_add", kScatter},
    {"scatter_reduce", kScatter},
    {"select_scatter", kScatter},
    {"slice", kSlice},
    {"slice_copy", kSlice},
    {"slice_scatter", kScatter},
    {"softmax", kSoftmax},
    {"squeeze", kReshape},
    {"squeeze_copy", kReshape},
    {"stack", kConcatenate},
    {"std", kReduce},
    {"std_mean", kReduce},
    {"sum", kReduce},
    {"swapaxes", kTranspose},
    {"swapdims", kTranspose},
    {"t", kTranspose},
    {"t_copy", kTranspose},
    {"tensordot", kGemm},
    {"transpose", kTranspose},
    {"transpose_copy", kTranspose},
    {"unflatten", kReshape},
    {"unsqueeze", kReshape},
    {"unsqueeze_copy", kReshape},
    {"var", kReduce},
    {"var_mean", kReduce},
    {"vdot", kGemm},
    {"view", kReshape},
    {"view_as", kReshape},
    {"view_copy", kReshape},
    {"vstack", kConcatenate},
};

constexpr bool rows_are_sorted() {
  for (std::size_t i = 1; i < std::size(kRows); ++i) {
    if (!(kRows[i - 1].name < kRows[i].name)) return false;
  }
  return true;
}
static_assert(rows_are_sorted());

// max(a, b) of two tensors is element-wise.
bool is_binary_maximum(std::string_view op_type) {
  return op_type == "aten.max.other" || op_type == "aten.min.other";
}

}  // namespace

AlignClass align_class(std::string_view op_type) noexcept {
  if (!op_type.starts_with("aten.") || is_binary_maximum(op_type)) return kNone;
  std::string_view name = op_type.substr(5);
  name = name.substr(0, name.find('.'));
  if (name.ends_with('_') && !name.ends_with("__")) name.remove_suffix(1);
  const std::string_view bare = name.starts_with('_') ? name.substr(1) : name;
  if (bare.starts_with("conv") || bare.find("convolution") != std::string_view::npos) return kConv;
  if (name.find("_pool") != std::string_view::npos) return kPool;
  const auto* found =
      std::lower_bound(std::begin(kRows), std::end(kRows), name,
                       [](const Row& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kRows) && found->name == name ? found->align_class : kNone;
}

std::string_view align_class_name(AlignClass wanted) noexcept {
  for (const auto& [value, name] : kNames) {
    if (value == wanted) return name;
  }
  return "none";
}

std::optional<AlignClass> parse_align_class(std::string_view wanted) noexcept {
  for (const auto& [value, name] : kNames) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

std::vector<std::string> align_class_names() {
  std::vector<std::string> names;
  for (const auto& [value, name] : kNames) names.emplace_back(name);
  return names;
}

}  // namespace npu
