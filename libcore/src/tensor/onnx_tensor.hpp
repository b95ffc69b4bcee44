// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/tensor/tensor.hpp"
#include "tensor/protobuf_wire.hpp"

namespace npu {

/// A TensorProto of ONNX as it stands in a file: nothing is decoded, the views point into the file.
struct OnnxTensor {
  std::string_view name;
  std::int64_t data_type = 0;  ///< ONNX's number
  Shape dims;                  ///< as stated; not checked
  std::optional<std::string_view> raw;
  /// The chunks of float_data (4), int32_data (5), int64_data (7), double_data (10), uint64_data
  /// (11) that are packed; `loose` says that there are unpacked values as well.
  std::vector<std::pair<std::uint32_t, std::string_view>> packed;
  bool loose = false;
  std::string_view message;  ///< the whole TensorProto
  std::int64_t strings = 0;  ///< values of string_data
  bool is_external = false;
  std::vector<std::pair<std::string_view, std::string_view>> external;  ///< location, offset, ...
};

/// The dtype of ONNX's number; nothing for those that npu-tools does not have.
std::optional<DType> onnx_dtype(std::int64_t data_type) noexcept;
/// "FLOAT", "STRING", "17", for messages.
std::string onnx_dtype_text(std::int64_t data_type);
/// ONNX's number of a dtype.
std::int64_t onnx_dtype_number(DType dtype) noexcept;

/// The field of TensorProto that holds values of a dtype which are not in raw_data.
std::uint32_t onnx_data_field(DType dtype) noexcept;

/// Reads one TensorProto. Throws Error kParse for malformed bytes.
OnnxTensor parse_onnx_tensor(WireReader message);

/// The values of a tensor that holds them itself. `most` elements are read at most. Throws Error
/// kParse if dims and data disagree, kUnsupported for its dtype.
Tensor decode_onnx_tensor(const OnnxTensor& tensor, std::string_view file, std::int64_t most);

/// A file with one TensorProto; `name` receives its name. NumPy has no bfloat16, so ONNX's own test
/// data states it as UINT16; that is what such a file holds here.
Tensor read_onnx_tensor(const std::string& path, std::string* name = nullptr);
/// A TensorProto up to its values, which are the tensor's bytes as they are.
std::string onnx_tensor_head(const std::string& name, const Tensor& tensor);
/// Writes one, atomically.
void write_onnx_tensor(const std::string& path, const std::string& name, const Tensor& tensor);

}  // namespace npu
