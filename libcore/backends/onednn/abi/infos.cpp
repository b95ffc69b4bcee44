// SPDX-License-Identifier: Apache-2.0
// What the backend says of itself and of its one device, the CPU.
#include <omp.h>

#include "abi/boundary.hpp"
#include "program/plan_digest.hpp"
#include "support/digest.hpp"

namespace npu::onednn::abi {
namespace {

const std::string& version_text() {
  static const std::string text = [] {
    const dnnl::version_t* version = dnnl::version();
    return std::string(NPU_VERSION " (oneDNN ") + std::to_string(version->major) + "." +
           std::to_string(version->minor) + "." + std::to_string(version->patch) + ")";
  }();
  return text;
}

const std::string& fingerprint_text() {
  static const std::string text =
      std::string("onednn ") + version_text() + " isa " + std::string(isa_name()) +
      (detect_machine().native_bfloat16 ? " bfloat16 native" : " bfloat16 as float32") +
      (detect_machine().exact_int8 ? " int8 native" : " int8 of 7 bits") + " plan format " +
      hex_text(plan_digest());
  return text;
}

/// What buffers may hold.
const DTypeInfos& dtype_infos() {
  static const DTypeInfos infos(
      [](npu_dtype dtype) { return dtype == NPU_FLOAT32 || dtype == NPU_BFLOAT16; });
  return infos;
}

}  // namespace

npu_status backend_info(npu_backend_info* info, npu_error* error) {
  return guarded(error, [&] {
    require(info != nullptr, "info is null");
    npu_backend_info filled{};
    filled.name = "onednn";
    filled.version = version_text().c_str();
    filled.ir_version_min = filled.ir_version_max = NPU_IR_VERSION;
    filled.flags = NPU_BLOB_HOLDS_WEIGHTS | NPU_DETERMINISTIC;
    filled.option_keys =
        R"({"bfloat16_rate": {"type": "number", "text": "multiply-adds of bfloat16 in the time of one of float32, in place of the CPU family's"}})";
    fill(info, filled);
  });
}

npu_status device_info(std::uint64_t index, npu_device_info* info, npu_error* error) {
  if (index != 0) return NPU_END;
  return guarded(error, [&] {
    require(info != nullptr, "info is null");
    static const npu_memory_info memory = host_memory_info(kAlignment);
    static const npu_memory_info* const memories[] = {&memory};
    static const std::string arch(isa_name());
    npu_device_info filled{};
    filled.id = "cpu:0";
    filled.name = "CPU";
    filled.vendor = "";
    filled.arch = arch.c_str();
    filled.driver = version_text().c_str();
    filled.fingerprint = fingerprint_text().c_str();
    filled.kind = NPU_DEVICE_CPU;
    filled.usable = 1;
    filled.memories = memories;
    filled.memory_count = 1;
    filled.dtypes = dtype_infos().data();
    filled.dtype_count = dtype_infos().size();
    filled.known = NPU_KNOWN_COMPUTE_UNITS | NPU_KNOWN_COMPILES;
    filled.compute_units = static_cast<std::uint64_t>(std::max(1, omp_get_num_procs()));
    filled.concurrent_compiles = 64;  // nothing of a device changes
    fill(info, filled);
  });
}

}  // namespace npu::onednn::abi
