// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace npu {

/// The op that selects one result of a tuple; torch.export writes it as Python's built-in function.
inline constexpr std::string_view kGetitem = "<built-in function getitem>";
/// A region of a model; without `attrs.body` it hands on its operands.
inline constexpr std::string_view kSetGradEnabled = "wrap_with_set_grad_enabled";

/// The prefix of PyTorch's ops.
inline constexpr std::string_view kAtenPrefix = "aten.";

/// From and to quantized numbers, per tensor or per channel.
constexpr bool is_quantization(std::string_view op_type) noexcept {
  return op_type.starts_with("quantized_decomposed.quantize_");
}
constexpr bool is_dequantization(std::string_view op_type) noexcept {
  return op_type.starts_with("quantized_decomposed.dequantize_");
}

/// "relu_" for "aten.relu_.default": the name without library and overload.
constexpr std::string_view base_name(std::string_view op_type) noexcept {
  const std::size_t begin = op_type.find('.');
  if (begin == std::string_view::npos) return op_type;
  return op_type.substr(begin + 1, op_type.find('.', begin + 1) - begin - 1);
}

/// True for "aten.relu_.default", which writes into its first operand in PyTorch.
constexpr bool is_in_place(std::string_view op_type) noexcept {
  const std::string_view name = base_name(op_type);
  return op_type.starts_with(kAtenPrefix) && name.ends_with('_') && !name.ends_with("__");
}

/// "aten.relu" for "aten.relu_.default": the name that an op's overloads share, in place or not.
constexpr std::string_view family_name(std::string_view op_type) noexcept {
  std::string_view name = op_type.substr(0, op_type.find('.', op_type.find('.') + 1));
  if (is_in_place(op_type)) name.remove_suffix(1);
  return name;
}

/// "relu" for "aten.relu_.default": the family's name without library. Empty for an op that is not
/// PyTorch's.
constexpr std::string_view functional_name(std::string_view op_type) noexcept {
  if (!op_type.starts_with(kAtenPrefix)) return {};
  return family_name(op_type).substr(kAtenPrefix.size());
}

/// "conv2d" for "aten.conv2d.default", "max.dim" for "aten.max.dim": for drawings and reports.
constexpr std::string_view short_name(std::string_view op_type) noexcept {
  if (op_type.starts_with(kAtenPrefix)) op_type.remove_prefix(kAtenPrefix.size());
  if (op_type.ends_with(".default")) op_type.remove_suffix(std::string_view(".default").size());
  return op_type;
}

/// 2 for "aten.conv2d.default" and "aten.max_pool2d_with_indices.default": the number of spatial
/// dimensions that the op's name states; 0 if it states none.
constexpr int spatial_rank(std::string_view op_type) noexcept {
  const std::string_view name = base_name(op_type);
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (name[i] == 'd' && name[i - 1] >= '1' && name[i - 1] <= '3') return name[i - 1] - '0';
  }
  return 0;
}

}  // namespace npu
