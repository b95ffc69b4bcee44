// SPDX-License-Identifier: Apache-2.0
// Documents with one result, run on one device as a whole.
#pragma once

#include <string>
#include <vector>

#include "graph_builder.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::test {

struct DeviceRun {
  Tensor result;
  std::vector<std::string> kernels;  ///< of the npu, without those that only change layouts
};

/// Tags, fuses and runs a document on "npu" or "cpu". `weights` are by tensor, `inputs`
/// in its order.
DeviceRun run_on(const GraphBuilder& builder, const std::string& device,
                 const std::vector<Tensor>& weights, const std::vector<Tensor>& inputs);

}  // namespace npu::test
