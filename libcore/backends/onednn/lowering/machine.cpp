// SPDX-License-Identifier: Apache-2.0
// The one place that asks what the CPU can do.
#include "lowering/machine.hpp"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

namespace npu::onednn {

namespace {

VectorIsa onednn_vector_isa() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::avx512_core:
    case dnnl::cpu_isa::avx512_core_vnni:
    case dnnl::cpu_isa::avx512_core_bf16:
    case dnnl::cpu_isa::avx512_core_amx:
      return VectorIsa::kAvx512;
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
    case dnnl::cpu_isa::avx512_mic:
    case dnnl::cpu_isa::avx512_mic_4ops:
      return VectorIsa::kAvx2;
    default:
      return VectorIsa::kAny;
  }
}

}  // namespace

Machine detect_machine() {
  Machine machine;
  machine.isa = std::min(onednn_vector_isa(), cpu_vector_isa());
  machine.native_bfloat16 = machine.has_avx512();
  return machine;
}

const char* isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse4.1";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_mic:
      return "avx512_mic";
    case dnnl::cpu_isa::avx512_mic_4ops:
      return "avx512_mic_4ops";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "generic";
  }
}

}  // namespace npu::onednn
