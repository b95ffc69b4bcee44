// SPDX-License-Identifier: Apache-2.0
// ONNX's TensorProto: dims, a dtype, and the values in raw_data or in one of five typed lists.
// Parsing is O(fields) and copies nothing; decoding O(bytes).
#include "tensor/onnx_tensor.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/checked.hpp"
#include "support/text.hpp"
#include "tensor/protobuf_writer.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostDims = 64;

constexpr std::array<std::string_view, 24> kOnnxTypeNames{
    "UNDEFINED",      "FLOAT",      "UINT8",          "INT8",       "UINT16",   "INT16",
    "INT32",          "INT64",      "STRING",         "BOOL",       "FLOAT16",  "DOUBLE",
    "UINT32",         "UINT64",     "COMPLEX64",      "COMPLEX128", "BFLOAT16", "FLOAT8E4M3FN",
    "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "UINT4",      "INT4",     "FLOAT4E2M1"};

constexpr std::array<std::pair<std::int64_t, DType>, kDTypeCount> kOnnxTypes{{
    {1, DType::kFloat32},
    {11, DType::kFloat64},
    {10, DType::kFloat16},
    {16, DType::kBFloat16},
    {3, DType::kInt8},
    {2, DType::kUInt8},
    {5, DType::kInt16},
    {6, DType::kInt32},
    {7, DType::kInt64},
    {9, DType::kBool},
    {14, DType::kComplex64},
    {15, DType::kComplex128},
}};

[[noreturn]] void fail_tensor(const OnnxTensor& tensor, const std::string& text,
                              ErrorCode code = ErrorCode::kParse) {
  throw Error(code, "tensor '" + printable_text(tensor.name) + "' " + text);
}

// The values of the typed list as little-endian elements of its own type, whatever their form.
std::string list_values(const OnnxTensor& tensor, std::uint32_t field, std::string_view file,
                        std::size_t width, std::size_t most) {
  std::string values;
  const bool is_fixed = field == 4 || field == 10;
  const auto add = [&](std::uint64_t value) {
    if (values.size() / width > most) fail_tensor(tensor, "has more values than its dims say");
    for (std::size_t i = 0; i < width; ++i) values += static_cast<char>(value >> (8 * i));
  };
  WireReader message(tensor.message, file);
  while (message.next()) {
    if (message.field() != field) continue;
    if (message.is_number()) {
      add(message.number());
    } else if (is_fixed) {
      values += message.bytes();
    } else {
      std::vector<std::int64_t> numbers;
      message.append_integers(numbers, most + 1);
      for (const std::int64_t number : numbers) add(static_cast<std::uint64_t>(number));
    }
  }
  return values;
}

}  // namespace

std::optional<DType> onnx_dtype(std::int64_t data_type) noexcept {
  for (const auto& [number, dtype] : kOnnxTypes) {
    if (number == data_type) return dtype;
  }
  return std::nullopt;
}

std::string onnx_dtype_text(std::int64_t data_type) {
  if (data_type < 0 || data_type >= static_cast<std::int64_t>(kOnnxTypeNames.size())) {
    return std::to_string(data_type);
  }
  return std::string(kOnnxTypeNames[static_cast<std::size_t>(data_type)]);
}

std::int64_t onnx_dtype_number(DType dtype) noexcept {
  const auto* row = std::find_if(kOnnxTypes.begin(), kOnnxTypes.end(),
                                 [&](const auto& known) { return known.second == dtype; });
  return row->first;
}

std::uint32_t onnx_data_field(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return 4;
    case DType::kFloat64:
    case DType::kComplex128:
      return 10;
    case DType::kInt64:
      return 7;
    default:
      return 5;
  }
}

OnnxTensor parse_onnx_tensor(WireReader message) {
  OnnxTensor tensor;
  tensor.message = message.rest();
  while (message.next()) {
    switch (message.field()) {
      case 1:
        message.append_integers(tensor.dims, kMostDims);
        break;
      case 2:
        tensor.data_type = message.integer();
        break;
      case 4:
      case 5:
      case 7:
      case 10:
      case 11:
        if (message.is_bytes()) {
          tensor.packed.emplace_back(message.field(), message.bytes());
        } else {
          tensor.loose = true;
        }
        break;
      case 6:
        ++tensor.strings;
        break;
      case 8:
        tensor.name = message.bytes();
        break;
      case 9:
        tensor.raw = message.bytes();
        break;
      case 13: {
        std::pair<std::string_view, std::string_view> entry;
        for (WireReader field = message.message(); field.next();) {
          if (field.field() == 1) entry.first = field.bytes();
          if (field.field() == 2) entry.second = field.bytes();
        }
        tensor.external.push_back(entry);
        break;
      }
      case 14:
        tensor.is_external = message.number() == 1;
        break;
      default:
        break;
    }
  }
  return tensor;
}

Tensor decode_onnx_tensor(const OnnxTensor& tensor, std::string_view file, std::int64_t most) {
  const auto dtype = onnx_dtype(tensor.data_type);
  if (!dtype) {
    fail_tensor(
        tensor,
        "is of type " + onnx_dtype_text(tensor.data_type) + ", which npu-tools does not have",
        ErrorCode::kUnsupported);
  }
  const auto count = checked_element_count(tensor.dims);
  if (!count || *count > most) {
    fail_tensor(tensor, "of shape " + shape_text(tensor.dims) + " is too large");
  }
  const auto size = static_cast<std::size_t>(*count) * dtype_size(*dtype);
  std::string values;
  std::string_view bytes;
  if (tensor.raw) {
    bytes = *tensor.raw;
  } else {
    const std::uint32_t field = onnx_data_field(*dtype);
    std::size_t width = dtype_size(*dtype);
    if (*dtype == DType::kComplex64 || *dtype == DType::kComplex128) width /= 2;
    values = list_values(tensor, field, file, width, size / width);
    bytes = values;
  }
  if (bytes.size() != size) {
    fail_tensor(tensor, "of shape " + shape_text(tensor.dims) + " needs " + std::to_string(size) +
                            " bytes, its data has " + std::to_string(bytes.size()));
  }
  Tensor result(*dtype, tensor.dims);
  if (size > 0) std::memcpy(result.mutable_data(), bytes.data(), size);
  if (*dtype == DType::kBool) {
    for (std::size_t i = 0; i < size; ++i) {
      auto& value = result.as_mutable<std::uint8_t>()[i];
      value = value != 0 ? 1 : 0;
    }
  }
  return result;
}

Tensor read_onnx_tensor(const std::string& path, std::string* name) {
  const std::string content = read_file(path);
  try {
    OnnxTensor tensor = parse_onnx_tensor(WireReader(content));
    constexpr std::int64_t kUint16 = 4;
    if (tensor.data_type == kUint16) tensor.data_type = onnx_dtype_number(DType::kBFloat16);
    if (name != nullptr) *name = tensor.name;
    if (tensor.is_external) fail_tensor(tensor, "holds no data itself");
    return decode_onnx_tensor(tensor, content, INT64_MAX / 32);
  } catch (const Error& error) {
    throw Error(error.code(), error.message(), {.file = path});
  }
}

std::string onnx_tensor_head(const std::string& name, const Tensor& tensor) {
  WireWriter head;
  for (const std::int64_t dim : tensor.shape()) head.integer(1, dim);
  head.integer(2, onnx_dtype_number(tensor.dtype()));
  head.bytes(8, name);
  head.head_of_bytes(9, tensor.bytes());
  return head.take();
}

void write_onnx_tensor(const std::string& path, const std::string& name, const Tensor& tensor) {
  const std::string head = onnx_tensor_head(name, tensor);
  write_file_atomically(path,
                        std::vector<std::string_view>{
                            head, {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()}});
}

}  // namespace npu
