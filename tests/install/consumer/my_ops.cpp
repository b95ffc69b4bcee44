// SPDX-License-Identifier: Apache-2.0
// Custom ops as a user outside the project writes them.
#include <algorithm>
#include <stdexcept>

#include "npu/custom_op.hpp"

namespace {

// The largest element of every row of a matrix, and where it stands.
void row_max(const npu::CustomOpCall& call) {
  const npu_custom_tensor& x = call.input(0);
  if (x.rank != 2) throw std::runtime_error("expected a matrix");
  const auto data = call.input_data<float>(0);
  const std::int64_t shape[] = {x.shape[0]};
  auto* values = static_cast<float*>(call.allocate(0, NPU_FLOAT32, shape));
  auto* places = static_cast<std::int64_t*>(call.allocate(1, NPU_INT64, shape));
  for (std::int64_t row = 0; row < x.shape[0]; ++row) {
    const float* begin = data.data() + row * x.shape[1];
    const float* largest = std::max_element(begin, begin + x.shape[1]);
    values[row] = *largest;
    places[row] = largest - begin;
  }
}

}  // namespace

NPU_CUSTOM_OPS({"consumer.row_max", npu::custom_op<row_max>, nullptr})
