// SPDX-License-Identifier: Apache-2.0
// Sparse constants, which become dense ones: an element is zero unless it is given. O(elements).
#include <cstring>

#include "importer.hpp"
#include "names.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

constexpr std::int64_t kMostGiven = 1 << 20;

Tensor own_data(const OnnxTensor& tensor, std::string_view file, const std::string& name) {
  if (tensor.is_external) throw Refusal{name + " has external data, which is not imported"};
  return decode_onnx_tensor(tensor, file, kMostGiven);
}

}  // namespace

Value* Importer::sparse_constant(const SparseProto& sparse) {
  const std::string name = "sparse tensor " + quoted_name(sparse.values.name);
  const auto dtype = onnx_dtype(sparse.values.data_type);
  if (!dtype) {
    throw Refusal{name + " is of type " + onnx_dtype_text(sparse.values.data_type) +
                  ", which npu-tools does not have"};
  }
  const auto count = checked_element_count(sparse.dims);
  if (!count || *count > static_cast<std::int64_t>(Draft::kMostKnownBytes / dtype_size(*dtype))) {
    throw Refusal{name + " of shape " + shape_text(sparse.dims) + " is too large"};
  }
  const Tensor values = own_data(sparse.values, bytes_, name);
  const Tensor indices = own_data(sparse.indices, bytes_, name);
  const std::int64_t given = values.element_count();
  const auto rank = static_cast<std::int64_t>(sparse.dims.size());
  const bool is_flat = indices.shape() == Shape{given};
  if (values.shape().size() != 1 || indices.dtype() != DType::kInt64 ||
      (!is_flat && indices.shape() != Shape{given, rank})) {
    throw Refusal{name + " has values of shape " + shape_text(values.shape()) +
                  " and indices of shape " + shape_text(indices.shape()) +
                  ", expected [values] and int64 [values] or [values, " + std::to_string(rank) +
                  "]"};
  }
  Tensor dense(*dtype, sparse.dims);
  std::memset(dense.mutable_data(), 0, static_cast<std::size_t>(*count) * dtype_size(*dtype));
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < given; ++i) {
    std::int64_t at = is_flat ? indices.as<std::int64_t>()[i] : 0;
    bool is_inside = at >= 0 && at < *count;
    for (std::int64_t d = 0; d < rank && !is_flat; ++d) {
      const std::int64_t extent = sparse.dims[static_cast<std::size_t>(d)];
      const std::int64_t place = indices.as<std::int64_t>()[i * rank + d];
      is_inside = is_inside && place >= 0 && place < extent;
      if (is_inside) at = at * extent + place;
    }
    if (!is_inside || at <= last) {
      throw Refusal{name + ": index " + std::to_string(i) +
                    " is out of range or not above the one before it"};
    }
    last = at;
    const std::size_t size = dtype_size(*dtype);
    std::memcpy(dense.mutable_data() + static_cast<std::size_t>(at) * size,
                values.data() + static_cast<std::size_t>(i) * size, size);
  }
  Value* value = draft_.add_known(std::move(dense));
  value->name = sparse.values.name;
  return value;
}

}  // namespace npu::onnx
