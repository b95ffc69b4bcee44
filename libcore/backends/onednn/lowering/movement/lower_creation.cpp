// SPDX-License-Identifier: Apache-2.0
// Tensors that arguments alone determine: they are constants of the program, as large as they are,
// and no kernel runs for them. O(elements) at compile time.
#include <cmath>

#include "lowering/engine/promotion.hpp"
#include "lowering/movement/movement.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::onednn {

namespace {

/// So large a constant is a mistake, or an attack: 1 GiB.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;

void check_size(const Lowering& lowering, const Shape& shape, DType dtype) {
  const auto count = checked_element_count(shape);
  const auto size = static_cast<std::int64_t>(dtype_size(dtype));
  if (!count || *count < 1) lowering.refuse("size", "a tensor without elements is not supported");
  if (*count > kMostBytes / size)
    lowering.refuse("size", "a constant above 1 GiB is not supported");
}

DType stated_dtype(const BoundNode& node, DType otherwise) {
  if (node.find("dtype") == nullptr) return otherwise;
  return node.dtype("dtype").value_or(otherwise);
}

/// The dtype of numbers without one of their own.
DType default_dtype(const Json& number) {
  if (number.is_boolean()) return DType::kBool;
  return number.is_number_integer() ? DType::kInt64 : DType::kFloat32;
}

Json fill_number(const BoundNode& node, std::string_view name) {
  if (name.find("ones") != std::string_view::npos) return 1;
  for (const std::string_view argument : {"fill_value", "value", "s"}) {
    const BoundArgument* bound = node.find(argument);
    if (bound != nullptr && bound->kind == BoundArgument::Kind::kValue) return bound->value;
  }
  return 0;
}

}  // namespace

/// full, zeros, ones, their forms that take shape or dtype from a tensor, and fill.
void lower_fill(Lowering& lowering, const BoundNode& node) {
  const std::string_view name = functional_name(node.node().op_type);
  const auto self = node.tensor("self");
  const Json number = fill_number(node, name);
  Shape shape;
  if (node.find("size") != nullptr) {
    shape = node.integers("size");
  } else if (self) {
    shape = lowering.shape(*self);
  }
  DType dtype = DType::kFloat32;
  if (self) {
    dtype = lowering.dtype(*self);
  } else if (name == "full" || name == "scalar_tensor") {
    dtype = name == "full" ? default_dtype(number) : DType::kFloat32;
  }
  dtype = stated_dtype(node, dtype);
  lowering.check_result(lowering.result(), shape, dtype);
  check_size(lowering, shape, dtype);
  lowering.define_moved(lowering.result(), shape, dtype, filled(lowering, shape, dtype, number));
}

/// linspace, and arange of other dtypes than int64.
void lower_linspace(Lowering& lowering, const BoundNode& node) {
  const DType dtype = lowering.dtype(lowering.result());
  const bool is_range = node.find("steps") == nullptr;
  const double start = node.find("start") != nullptr ? node.number("start") : 0.0;
  const double end = node.number("end");
  double step = 0.0;
  std::int64_t count = 0;
  if (is_range) {
    step = node.find("step") != nullptr ? node.number("step") : 1.0;
    const double length = std::ceil((end - start) / step);
    if (!(length >= 1.0 && length < 1e9)) {
      lowering.refuse("", "only a sequence with elements is supported");
    }
    count = static_cast<std::int64_t>(length);
  } else {
    count = node.integer("steps");
  }
  const Shape shape{count};
  check_size(lowering, shape, dtype);
  lowering.check_result(lowering.result(), shape, dtype);
  std::vector<float> numbers(static_cast<std::size_t>(count));
  if (!is_range && count > 1) {
    step = static_cast<double>((static_cast<float>(end) - static_cast<float>(start)) /
                               static_cast<float>(count - 1));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    // linspace counts from both ends, so that it meets both.
    const bool from_end = !is_range && i >= count / 2 && count > 1;
    const double value = from_end ? end - step * static_cast<double>(count - 1 - i)
                                  : start + step * static_cast<double>(i);
    numbers[static_cast<std::size_t>(i)] = static_cast<float>(value);
  }
  const Value value = known_values(lowering, shape, DType::kFloat32, numbers);
  const DType type = lowering.storage_type(dtype);
  if (!has_primitive_type(dtype)) {
    if (!is_integer(dtype)) lowering.refuse("dtype", "it is not supported");
    return lowering.define_moved(lowering.result(), shape, dtype,
                                 cast_value(lowering, value, type));
  }
  lowering.define_moved(lowering.result(), shape, dtype,
                        lowering.in_type(lowering.in_type(value, dtype), type));
}

/// Each vector along a dimension of its own, repeated along the others.
void lower_meshgrid(Lowering& lowering, const BoundNode& node) {
  const std::vector<TensorId> tensors = node.tensors("tensors");
  const auto& outputs = lowering.node().outputs;
  if (outputs.size() != tensors.size()) lowering.invalid("it has another number of results");
  const bool swaps =
      node.find("indexing") != nullptr && node.string("indexing") == "xy" && tensors.size() > 1;
  Shape shape;
  for (const TensorId id : tensors) {
    if (lowering.shape(id).size() > 1) lowering.invalid("argument 'tensors': expected vectors");
    shape.push_back(element_count(lowering.shape(id)));
  }
  if (swaps) std::swap(shape[0], shape[1]);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::size_t along = swaps && i < 2 ? 1 - i : i;
    const Value source = lowering.plain(lowering.stored(tensors[i]));
    const DType dtype = lowering.dtype(tensors[i]);
    lowering.check_result(outputs[i], shape, dtype);
    std::vector<std::int64_t> strides(shape.size(), 0);
    strides[along] = 1;
    const Value target = lowering.temporary(source.type, plain_layout(shape, source.type));
    StridedCopy copy{dtype_size(source.type), shape, std::move(strides), row_major_strides(shape)};
    copy.simplify();
    lowering.add_kernel({source}, target, std::move(copy),
                        i == 0 ? KernelKind::kMove : KernelKind::kReorder);
    lowering.define_moved(outputs[i], shape, dtype, target);
  }
}

}  // namespace npu::onednn
