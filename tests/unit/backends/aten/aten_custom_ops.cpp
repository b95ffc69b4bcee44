// SPDX-License-Identifier: Apache-2.0
// A shared object of custom ops as a user of npu/custom_op.hpp writes one; aten_backend_test loads
// it.
#include <stdexcept>
#include <string>

#include "npu/custom_op.hpp"

namespace {

// y = 2 x, or 3 x if attrs say so.
void scale(const npu::CustomOpCall& call) {
  const auto x = call.input_data<float>(0);
  const float factor = call.attrs().find("triple") != std::string_view::npos ? 3.0F : 2.0F;
  float* const y = call.allocate_as<float>(0, call.input(0));
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
}

// Two results of different dtypes: the sum of all operands' elements, and their number.
void summary(const npu::CustomOpCall& call) {
  double sum = 0.0;
  std::int64_t count = 0;
  for (std::size_t i = 0; i < call.input_count(); ++i) {
    for (const float value : call.input_data<float>(i)) {
      sum += static_cast<double>(value);
      ++count;
    }
  }
  *static_cast<double*>(call.allocate(0, NPU_FLOAT64, {})) = sum;
  *static_cast<std::int64_t*>(call.allocate(1, NPU_INT64, {})) = count;
}

void fail(const npu::CustomOpCall& call) {
  throw std::runtime_error("cannot run on " + std::string(call.node()));
}

void forget(const npu::CustomOpCall& /*call*/) {}

}  // namespace

NPU_CUSTOM_OPS({"test.scale", npu::custom_op<scale>, nullptr},
               {"test.summary", npu::custom_op<summary>, nullptr},
               {"test.fail", npu::custom_op<fail>, nullptr},
               {"test.forget", npu::custom_op<forget>, nullptr})
