// SPDX-License-Identifier: Apache-2.0
// Turns what is thrown below into statuses: one table, so that an error is the same whichever
// function meets it.
#include "abi/boundary.hpp"

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::opencl {
namespace {

constexpr cl_int kContextTerminated = -1121;  // CL_CONTEXT_TERMINATED_KHR

npu_status status_of_cl(cl_int code) {
  if (is_out_of_memory(code)) return NPU_MEMORY;
  switch (code) {
    case CL_DEVICE_NOT_AVAILABLE:
    // The context and its queues were valid when they were made: the driver has given them up.
    case CL_INVALID_CONTEXT:
    case CL_INVALID_COMMAND_QUEUE:
    case kContextTerminated:
      return NPU_DEVICE_LOST;
    default:
      return NPU_FAILED;
  }
}

void fill_numbers(const ClError& failure, npu_error& error) {
  if (failure.asked_bytes == 0) return;
  MemoryLimitError("", failure.asked_bytes, failure.there_bytes).fill_numbers(&error);
}

}  // namespace

std::string precision_refusal(const char* options) {
  if (options == nullptr || *options == '\0') return "";
  const Json json = parse_json(options, "compile options");
  require(json.is_object(), "compile options: expected a JSON object");
  const Json* precision = find_member(json, "precision");
  if (precision == nullptr || *precision == "f32") return "";
  require(*precision == "bf16" || *precision == "f16",
          "compile option 'precision': expected \"f32\", \"bf16\" or \"f16\"");
  return "precision " + precision->get<std::string>() + " is not offered by this backend";
}

}  // namespace npu::opencl

npu_status npu::current_status(npu_error* error) noexcept {
  try {
    throw;
  } catch (const opencl::ClError& failure) {
    if (error != nullptr && NPU_HAS(error, vendor_code)) {
      error->known |= NPU_KNOWN_VENDOR_CODE;
      error->vendor_code = failure.code;
    }
    if (error != nullptr) opencl::fill_numbers(failure, *error);
    return say(error, opencl::status_of_cl(failure.code),
               failure.call + " failed: " + opencl::cl_error_name(failure.code));
  } catch (...) {
    return common_status(error);
  }
}
