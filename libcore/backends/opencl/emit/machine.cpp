// SPDX-License-Identifier: Apache-2.0
// Looks measured sizes up.
#include "emit/machine.hpp"

#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::opencl {

const std::vector<std::int64_t>* tuned_sizes(const Machine& machine, const std::string& key) {
  const auto found = machine.tuning.find(key);
  return found == machine.tuning.end() ? nullptr : &found->second;
}

void refuse_tuning(const std::string& key, const std::vector<std::int64_t>& sizes) {
  throw Error(ErrorCode::kInvalidGraph, "tuning of '" + key + "': " + shape_text(sizes) +
                                            " are no sizes of it on this device");
}

}  // namespace npu::opencl
