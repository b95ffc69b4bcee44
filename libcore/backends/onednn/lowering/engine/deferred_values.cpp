// SPDX-License-Identifier: Apache-2.0
// Tensors that are dequantized, copied, or made of lengths only if something reads them as floats
// or as a value, and quantized numbers under the names of float tensors, on which ops that only
// move or compare elements work as they are. O(1) a tensor.
#include <cstring>
#include <utility>

#include "lowering/engine/lowering.hpp"

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
  return found == dequantizations_.end() ? nullptr : &found->second.from;
}

void Lowering::define_dequantized(TensorId tensor, const Dequantization& from, MakeFloats make) {
  dequantizations_.insert_or_assign(tensor, Dequantized{from, make});
}

const KeyMask* Lowering::key_mask(TensorId tensor) const {
  const auto found = key_masks_.find(tensor);
  return found == key_masks_.end() ? nullptr : &found->second.from;
}

void Lowering::define_key_mask(TensorId tensor, const KeyMask& from, MakeMask make) {
  key_masks_.insert_or_assign(tensor, WaitingMask{from, make});
}

const Repeated* Lowering::repeated(TensorId tensor) const {
  const auto found = repeated_.find(tensor);
  return found == repeated_.end() || values_[index_of(tensor)] ? nullptr : &found->second;
}

void Lowering::define_repeated(TensorId tensor, DType dtype, Repeated view) {
  check_result(tensor, view.shape(), dtype);
  view.node = NodeId{node_index_};
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
  const auto from = dequantizations_.find(tensor);
  const bool is_dequantized = from != dequantizations_.end();
  const auto mask = key_masks_.find(tensor);
  const bool is_mask = mask != key_masks_.end();
  const Repeated* view = repeated(tensor);
  if (!is_dequantized && !is_mask && view == nullptr) return;
  const NodeId node = is_dequantized ? from->second.from.node
                      : is_mask      ? mask->second.from.node
                                     : view->node;
  // The step is that of the node, whoever asks for it, also if it fails.
  struct Place {
    Lowering* lowering;
    std::int32_t node;
    std::int32_t group;
    ~Place() {
      lowering->node_index_ = node;
      lowering->group_index_ = group;
    }
  };
  const auto add = [&] {
    const Place asked{this, std::exchange(node_index_, node.value),
                      std::exchange(group_index_, -1)};
    if (is_mask) return mask->second.make(*this, mask->second.from);
    return is_dequantized ? from->second.make(*this, from->second.from) : written_out(*this, *view);
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
  return std::exchange(changed_value(operand), numbers);
}

Value Lowering::take_numbers(TensorId result, TensorId operand,
                             const std::optional<Value>& floats) {
  if (repeated(result) != nullptr) {
    // Of what stands in for the operand, which nothing reads later: no view waits for a reader.
    const Repeated view = repeated_.at(result);
    const std::int32_t buffer = view.source.buffer.value;
    journal_.note([this, result, view, buffer] {
      readers_.at(buffer).push_back(result);
      repeated_.insert_or_assign(result, view);
    });
    readers_.at(buffer).pop_back();
    repeated_.erase(result);
    set_value(result, written_out(*this, view));
  }
  const Value numbers = *values_[index_of(result)];
  changed_value(result) = std::nullopt;
  changed_value(operand) = floats;
  return numbers;
}

}  // namespace npu::onednn
