// SPDX-License-Identifier: Apache-2.0
// Turns what is thrown below into statuses: one table, so that an error is the same whichever
// function meets it.
#include "abi/boundary.hpp"

npu_status npu::current_status(npu_error* error) noexcept {
  try {
    throw;
  } catch (const dnnl::error& failure) {
    const bool memory = failure.status == dnnl_out_of_memory;
    return say(error, memory ? NPU_MEMORY : NPU_FAILED, std::string("oneDNN: ") + failure.what());
  } catch (...) {
    return common_status(error);
  }
}
