// SPDX-License-Identifier: Apache-2.0
// The class of an accelerator's kernel library that an ATen op belongs to.
//
// The class follows from the op's name without overload and without the underscore of in-place ops:
// the catalogue has it, and this file covers ops that the catalogue lacks. O(log rows).
#include "ops/align_class.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "ops/op_name.hpp"
#include "ops/op_traits.hpp"

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

struct AlignRow {
  std::string_view name;
  AlignClass align_class;
};

// Ops that the catalogue does not have, sorted by name.
constexpr AlignRow kAlignRows[] = {
    {"_reshape_copy", kReshape},   {"adjoint", kTranspose},
    {"concatenate", kConcatenate}, {"count_nonzero", kReduce},
    {"dstack", kConcatenate},      {"hstack", kConcatenate},
    {"index_fill", kScatter},      {"inner", kGemm},
    {"linalg_matmul", kGemm},      {"mT", kTranspose},
    {"median", kReduce},           {"moveaxis", kTranspose},
    {"nansum", kReduce},           {"permute_copy", kTranspose},
    {"slice_copy", kSlice},        {"squeeze_copy", kReshape},
    {"swapdims", kTranspose},      {"t_copy", kTranspose},
    {"tensordot", kGemm},          {"transpose_copy", kTranspose},
    {"unsqueeze_copy", kReshape},  {"vdot", kGemm},
    {"view_copy", kReshape},       {"vstack", kConcatenate},
};

constexpr bool rows_are_sorted() {
  for (std::size_t i = 1; i < std::size(kAlignRows); ++i) {
    if (!(kAlignRows[i - 1].name < kAlignRows[i].name)) return false;
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
  if (is_binary_maximum(op_type)) return kNone;
  const std::string_view name = functional_name(op_type);
  if (name.empty()) return kNone;
  if (const auto known = catalogued_align_class(name)) return *known;
  const std::string_view bare = name.starts_with('_') ? name.substr(1) : name;
  if (bare.starts_with("conv") || bare.find("convolution") != std::string_view::npos) return kConv;
  if (name.find("_pool") != std::string_view::npos) return kPool;
  const auto* found = std::lower_bound(
      std::begin(kAlignRows), std::end(kAlignRows), name,
      [](const AlignRow& row, std::string_view wanted) { return row.name < wanted; });
  return found != std::end(kAlignRows) && found->name == name ? found->align_class : kNone;
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
