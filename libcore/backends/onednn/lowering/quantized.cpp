// SPDX-License-Identifier: Apache-2.0
// Tensors that are dequantized, or copied, only if something reads them as floats or as a value,
// and quantized numbers under the names of float tensors, on which ops that only move or compare
// elements work as they are. O(1) a tensor.
#include "lowering/quantized.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "lowering/quantized_op.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

template <typename T>
void append_numbers(const WeightView& tensor, std::vector<double>& numbers) {
  const auto* bytes = static_cast<const std::byte*>(tensor.data);
  for (std::uint64_t i = 0; i + sizeof(T) <= tensor.bytes; i += sizeof(T)) {
    T number{};
    std::memcpy(&number, bytes + i, sizeof number);
    numbers.push_back(static_cast<double>(number));
  }
}

}  // namespace

const Dequantization* Lowering::dequantization(TensorId tensor) const {
  const auto found = dequantizations_.find(tensor);
  return found == dequantizations_.end() ? nullptr : &found->second;
}

void Lowering::define_dequantized(TensorId tensor, const Dequantization& dequantization) {
  dequantizations_.insert_or_assign(tensor, dequantization);
}

const Repeated* Lowering::repeated(TensorId tensor) const {
  const auto found = repeated_.find(tensor);
  return found == repeated_.end() || values_[index_of(tensor)] ? nullptr : &found->second;
}

void Lowering::define_repeated(TensorId tensor, DType dtype, Repeated view) {
  check_result(tensor, view.shape(), dtype);
  view.node = NodeId{node_index_};
  if (moves_numbers_) return set_value(tensor, written_out(*this, view));
  const std::int32_t buffer = view.source.buffer.value;
  journal_.note([this, tensor, buffer] {
    repeated_.erase(tensor);
    readers_.at(buffer).pop_back();
  });
  readers_[buffer].push_back(tensor);
  repeated_.insert_or_assign(tensor, std::move(view));
}

Repeated Lowering::operand_view(TensorId tensor, DType type) {
  const Repeated* view = repeated(tensor);
  const bool fits = view != nullptr && (view->source.type == type || is_dense(view->source.layout));
  if (!fits) return view_of(strided(operand(tensor, type)));
  Repeated result = *view;
  result.source = in_type(result.source, type);
  return result;
}

void Lowering::make_deferred(TensorId tensor) {
  if (values_[index_of(tensor)]) return;
  const Dequantization* from = dequantization(tensor);
  const Repeated* view = repeated(tensor);
  if (from == nullptr && view == nullptr) return;
  const NodeId node = from != nullptr ? from->node : view->node;
  // The step is that of the node, whoever asks for it, also if it fails.
  struct Place {
    Lowering* lowering;
    std::int32_t node;
    std::int32_t group;
    KernelChoice choice;
    ~Place() {
      lowering->node_index_ = node;
      lowering->group_index_ = group;
      lowering->choice_ = std::move(choice);
    }
  };
  const auto add = [&] {
    const Place asked{this, std::exchange(node_index_, node.value), std::exchange(group_index_, -1),
                      std::exchange(choice_, {})};
    return from != nullptr ? add_dequantize(*this, *from) : written_out(*this, *view);
  };
  set_value(tensor, add());
}

std::optional<std::span<const std::int8_t>> Lowering::known_bytes(TensorId tensor) const {
  const TensorInfo& info = stated_->tensor(tensor);
  if (info.kind != TensorKind::kWeight || info.dtype != DType::kInt8) return std::nullopt;
  const WeightView& found = given_weight(info);
  if (found.data == nullptr) return std::nullopt;  // a question has no data
  return std::span(static_cast<const std::int8_t*>(found.data),
                   static_cast<std::size_t>(found.bytes));
}

std::optional<std::vector<double>> Lowering::known_numbers(TensorId tensor) const {
  const TensorInfo& info = stated_->tensor(tensor);
  if (info.kind != TensorKind::kWeight) return std::nullopt;
  const WeightView& found = given_weight(info);
  if (found.data == nullptr) return std::nullopt;  // a question has no data
  std::vector<double> numbers;
  switch (info.dtype) {
    case DType::kFloat32:
      append_numbers<float>(found, numbers);
      break;
    case DType::kFloat64:
      append_numbers<double>(found, numbers);
      break;
    case DType::kInt8:
      append_numbers<std::int8_t>(found, numbers);
      break;
    case DType::kUInt8:
      append_numbers<std::uint8_t>(found, numbers);
      break;
    case DType::kInt32:
      append_numbers<std::int32_t>(found, numbers);
      break;
    case DType::kInt64:
      append_numbers<std::int64_t>(found, numbers);
      break;
    default:
      return std::nullopt;
  }
  return numbers;
}

std::optional<Value> Lowering::replace_by_numbers(TensorId operand, const Value& numbers) {
  std::optional<Value> before = std::exchange(changed_value(operand), numbers);
  journal_.note([this, was = moves_numbers_] { moves_numbers_ = was; });
  moves_numbers_ = true;
  compute_type_ = numbers.type;
  return before;
}

Value Lowering::take_numbers(TensorId result, TensorId operand,
                             const std::optional<Value>& floats) {
  const Value numbers = *values_[index_of(result)];
  changed_value(result) = std::nullopt;
  changed_value(operand) = floats;
  journal_.note([this] { moves_numbers_ = true; });
  moves_numbers_ = false;
  return numbers;
}

bool has_exact_products(const Lowering& lowering, DType source, TensorId weight) {
  if (lowering.machine().exact_int8) return true;
  constexpr std::int64_t kMost = 64;
  const Dequantization* from = lowering.dequantization(weight);
  if (from == nullptr || from->type != DType::kInt8 || source != DType::kUInt8) return false;
  const TensorInfo& integers = lowering.graph().tensor(from->source);
  if (!integers.producer.valid()) {
    const auto numbers = lowering.known_bytes(from->source);
    return numbers && std::all_of(numbers->begin(), numbers->end(), [](std::int8_t number) {
             return number >= -kMost && number <= kMost;
           });
  }
  const Node& node = lowering.graph().node(integers.producer);
  if (!is_quantization(node.op_type) || node.op_type.ends_with(".tensor2")) return false;
  const BoundNode quantize = bound(lowering.graph(), node);
  return quantize.integer("quant_min") >= -kMost && quantize.integer("quant_max") <= kMost;
}

}  // namespace npu::onednn
