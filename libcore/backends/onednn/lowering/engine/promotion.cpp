// SPDX-License-Identifier: Apache-2.0
// PyTorch's rules for operands of several dtypes, and conversions between them. Tensors with
// dimensions decide; tensors of rank 0, and after them numbers, count only where they are of a
// higher kind: bool, integers, floats. O(1) besides the conversions.
#include "lowering/engine/promotion.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/base/elements.hpp"
#include "lowering/engine/node_arguments.hpp"

namespace npu::onednn {

namespace {

enum class NumberKind : std::uint8_t { kTruth, kInteger, kFloat };

NumberKind kind_of(DType dtype) {
  if (dtype == DType::kBool) return NumberKind::kTruth;
  return is_integer(dtype) ? NumberKind::kInteger : NumberKind::kFloat;
}

DType dtype_of_number(const Json& number) {
  if (number.is_boolean()) return DType::kBool;
  return number.is_number_integer() ? DType::kInt64 : DType::kFloat32;
}

/// The operands that decide first, then those that count only for their kind.
DType combined(const Lowering& lowering, std::optional<DType> first, std::optional<DType> second) {
  if (!first) return *second;
  if (!second || kind_of(*second) <= kind_of(*first)) return *first;
  return promote(lowering, *first, *second);
}

/// The bytes of a number as an element of `dtype` that is kept as `type`.
std::vector<std::byte> number_bytes(const Lowering& lowering, DType dtype, DType type,
                                    const Json& number) {
  const auto value = json_number(number);
  if (!value) lowering.invalid("a number is expected, found " + number.dump());
  std::vector<std::byte> bytes(dtype_size(type));
  const auto put = [&](auto element) { std::memcpy(bytes.data(), &element, sizeof element); };
  const auto integer = [&]() -> std::int64_t {
    if (number.is_number_integer()) return number.get<std::int64_t>();
    if (!(*value > -9.2e18 && *value < 9.2e18)) lowering.refuse("", "a number is no integer");
    return static_cast<std::int64_t>(*value);
  };
  auto single = static_cast<float>(*value);
  if (dtype == DType::kBFloat16) single = load(BFloat16{rounded_bits(single)});
  switch (type) {
    case DType::kFloat32:
      put(single);
      break;
    case DType::kBFloat16:
      put(rounded_bits(single));
      break;
    case DType::kFloat64:
      put(*value);
      break;
    case DType::kBool:
      put(static_cast<std::uint8_t>(*value != 0.0 ? 1 : 0));
      break;
    case DType::kInt8:
    case DType::kUInt8:
      put(static_cast<std::uint8_t>(integer()));
      break;
    case DType::kInt16:
      put(static_cast<std::int16_t>(integer()));
      break;
    case DType::kInt32:
      put(static_cast<std::int32_t>(integer()));
      break;
    case DType::kInt64:
      put(integer());
      break;
    default:
      lowering.refuse("dtype", std::string(dtype_name(dtype)) + " is not supported");
  }
  return bytes;
}

}  // namespace

MixedOperand mixed_argument(const Lowering& lowering, const BoundNode& node,
                            std::string_view argument) {
  MixedOperand result;
  result.tensor = node.tensor(argument);
  if (result.tensor) return result;
  const BoundArgument* bound = node.find(argument);
  if (bound == nullptr || bound->kind != BoundArgument::Kind::kValue) {
    lowering.refuse(argument, "a tensor or a number is needed");
  }
  result.number = bound->value;
  return result;
}

DType promote(const Lowering& lowering, DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) < kind_of(b)) return b;
  if (kind_of(a) > kind_of(b)) return a;
  if (kind_of(a) == NumberKind::kInteger) {
    if (dtype_size(a) == dtype_size(b)) return DType::kInt16;  // int8 and uint8
    return dtype_size(a) > dtype_size(b) ? a : b;
  }
  const auto has = [&](DType dtype) { return a == dtype || b == dtype; };
  if (has(DType::kFloat32) && has(DType::kBFloat16)) return DType::kFloat32;
  lowering.refuse("", std::string(dtype_name(a)) + " and " + std::string(dtype_name(b)) +
                          " together are not supported");
}

DType promoted_dtype(const Lowering& lowering, const std::vector<MixedOperand>& operands) {
  std::optional<DType> with_dimensions;
  std::optional<DType> of_rank_zero;
  std::optional<DType> numbers;
  for (const MixedOperand& operand : operands) {
    std::optional<DType>& sum = !operand.tensor                           ? numbers
                                : lowering.shape(*operand.tensor).empty() ? of_rank_zero
                                                                          : with_dimensions;
    const DType dtype =
        operand.tensor ? lowering.dtype(*operand.tensor) : dtype_of_number(operand.number);
    sum = sum ? promote(lowering, *sum, dtype) : dtype;
  }
  std::optional<DType> tensors = with_dimensions ? with_dimensions : of_rank_zero;
  if (with_dimensions && of_rank_zero) tensors = combined(lowering, with_dimensions, of_rank_zero);
  return combined(lowering, tensors, numbers);
}

DType arithmetic_type(const Lowering& lowering, DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
      return DType::kInt32;
    case DType::kInt32:
    case DType::kInt64:
    case DType::kBool:
      return dtype;
    case DType::kFloat32:
    case DType::kBFloat16:
      return lowering.storage_type(dtype);
    default:
      lowering.refuse("", "dtype " + std::string(dtype_name(dtype)) + " is not supported");
  }
}

Value cast_value(Lowering& lowering, const Value& value, DType type) {
  if (value.type == type) return value;
  if (has_primitive_type(value.type) && has_primitive_type(type)) {
    return lowering.in_type(value, type);
  }
  if (!Cast::supports(value.type) || !Cast::supports(type)) {
    lowering.refuse("", "conversion from " + std::string(dtype_name(value.type)) + " to " +
                            std::string(dtype_name(type)) + " is not supported");
  }
  const Value source = lowering.plain(value);
  const Value target = lowering.temporary(type, plain_layout(dimensions(source.layout), type));
  lowering.add_kernel({source}, target, Cast{value.type, type, span_elements(source.layout)},
                      KernelKind::kReorder);
  return target;
}

Value converted(Lowering& lowering, const MixedOperand& operand, DType dtype, DType type) {
  if (!operand.tensor) {
    return lowering.constant(type, {}, number_bytes(lowering, dtype, type, operand.number));
  }
  if (lowering.dtype(*operand.tensor) == dtype && has_primitive_type(dtype)) {
    return lowering.operand(*operand.tensor, type);
  }
  return cast_value(lowering, lowering.stored(*operand.tensor), type);
}

Shape shape_of(const Lowering& lowering, const MixedOperand& operand) {
  return operand.tensor ? lowering.shape(*operand.tensor) : Shape{};
}

Value filled(Lowering& lowering, const Shape& shape, DType dtype, const Json& number) {
  const DType type = lowering.storage_type(dtype);
  const std::vector<std::byte> one = number_bytes(lowering, dtype, type, number);
  const auto count = static_cast<std::size_t>(element_count(shape));
  std::vector<std::byte> bytes;
  bytes.reserve(count * one.size());
  for (std::size_t i = 0; i < count; ++i) bytes.insert(bytes.end(), one.begin(), one.end());
  return lowering.constant(type, shape, std::move(bytes));
}

}  // namespace npu::onednn
