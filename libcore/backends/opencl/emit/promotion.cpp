// SPDX-License-Identifier: Apache-2.0
// PyTorch's promotion: tensors with dimensions decide on the dtype; tensors of rank 0, and after
// them numbers, count only where they are of a higher kind.
#include "emit/promotion.hpp"

#include <optional>

#include "npu/support/error.hpp"

namespace npu::opencl {
namespace {

int kind_of(DType dtype) {
  if (dtype == DType::kBool) return 0;
  return is_integer(dtype) ? 1 : 2;
}

std::optional<DType> joined(std::optional<DType> first, std::optional<DType> second) {
  if (!first) return second;
  if (!second || kind_of(*second) <= kind_of(*first)) return first;
  return second;
}

DType dtype_of_number(const Json& number) {
  if (number.is_boolean()) return DType::kBool;
  return number.is_number_integer() ? DType::kInt64 : DType::kFloat32;
}

}  // namespace

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (kind_of(a) != kind_of(b)) return kind_of(a) < kind_of(b) ? b : a;
  if (kind_of(a) == 1) {
    if (dtype_size(a) == dtype_size(b)) return DType::kInt16;  // int8 and uint8
    return dtype_size(a) > dtype_size(b) ? a : b;
  }
  if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
  return DType::kFloat32;
}

DType promoted(const Model& model, const BoundNode& node,
               std::initializer_list<std::string_view> arguments) {
  std::optional<DType> with_dimensions;
  std::optional<DType> of_rank_zero;
  std::optional<DType> numbers;
  for (const std::string_view name : arguments) {
    const BoundArgument* argument = node.find(name);
    if (argument == nullptr) continue;
    const auto tensor =
        argument->kind == BoundArgument::Kind::kTensor ? node.tensor(name) : std::nullopt;
    if (!tensor && argument->kind != BoundArgument::Kind::kValue) continue;
    std::optional<DType>& sum = !tensor                        ? numbers
                                : model.shape(*tensor).empty() ? of_rank_zero
                                                               : with_dimensions;
    const DType dtype = tensor ? model.dtype(*tensor) : dtype_of_number(argument->value);
    sum = sum ? promote(*sum, dtype) : dtype;
  }
  const auto all = joined(joined(with_dimensions, of_rank_zero), numbers);
  if (!all) throw Error(ErrorCode::kUnsupported, "node '" + node.node().name + "' has no operands");
  return *all;
}

}  // namespace npu::opencl
