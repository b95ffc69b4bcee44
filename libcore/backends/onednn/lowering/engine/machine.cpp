// SPDX-License-Identifier: Apache-2.0
// What of the CPU is used, as far as NPU_MAX_ISA allows: by our own kernels, and by oneDNN, which
// takes a limit before its first primitive only.
#include "lowering/engine/machine.hpp"

#include <cstdlib>
#include <iterator>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "device/cpu_family.hpp"
#include "device/isa_level.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

struct Level {
  VectorIsa isa;
  dnnl::cpu_isa isa_of_onednn;  ///< what it has to have for it, and may use
};

/// One for each of kIsaLevels.
constexpr Level kLevels[]{
    {VectorIsa::kAny, dnnl::cpu_isa::sse41},
    {VectorIsa::kNeon, dnnl::cpu_isa::all},
    {VectorIsa::kAvx2, dnnl::cpu_isa::avx2},
    {VectorIsa::kAvx2, dnnl::cpu_isa::avx2_vnni},
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core},
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core_vnni},
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core_bf16},
    {VectorIsa::kAvx512,
     dnnl::cpu_isa::avx512_core_bf16},  // version 2.6 does not compute in float16
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core_amx},
};
static_assert(std::size(kLevels) == kIsaLevels.size());

#if defined(__aarch64__)
/// oneDNN 2.6 takes a limit there from its variable alone, before its first primitive. It may not
/// use SVE, with which convolutions that have a swish behind them give wrong results.
std::size_t find_level() {
  ::setenv("DNNL_MAX_CPU_ISA", "ADVANCED_SIMD", 1);
  return isa_level();
}
#else
bool includes(dnnl::cpu_isa isa, dnnl::cpu_isa part) {
  const auto bits = static_cast<unsigned>(isa);
  return (bits & static_cast<unsigned>(part)) == static_cast<unsigned>(part);
}

/// The highest level that is allowed and that the CPU and oneDNN have.
std::size_t find_level() {
  std::size_t level = isa_level();
  if (isa_limit()) {
    // Too late if something else in this process, such as libtorch, has run a primitive.
    static_cast<void>(dnnl::set_max_cpu_isa(kLevels[level].isa_of_onednn));
    if (!includes(kLevels[level].isa_of_onednn, dnnl::get_effective_cpu_isa())) {
      throw Error(ErrorCode::kUnsupported,
                  "NPU_MAX_ISA: oneDNN is in use already and cannot be "
                  "limited to " +
                      std::string(kIsaLevels[level]));
    }
  }
  const dnnl::cpu_isa effective = dnnl::get_effective_cpu_isa();
  while (level > 0 && !includes(effective, kLevels[level].isa_of_onednn)) {
    // Its own variable has lowered it, which has to hold for our own kernels, too.
    do --level;
    while (!is_native_isa_level(level));
    limit_isa_level(kIsaLevels[level]);
    level = isa_level();
  }
  return level;
}
#endif

std::size_t level() {
  static const std::size_t found = find_level();
  return found;
}

}  // namespace

Machine detect_machine() {
  Machine machine;
  machine.isa = kLevels[level()].isa;
  machine.family = cpu_family();
  machine.native_bfloat16 = machine.has_avx512();
  machine.multiplies_bfloat16 = cpu_multiplies_bfloat16();
  machine.multiplies_tiles = level() + 1 == kIsaLevels.size();
  machine.bfloat16_rate = machine.multiplies_tiles      ? machine.rates().bfloat16_tiles
                          : machine.multiplies_bfloat16 ? machine.rates().bfloat16_pairs
                                                        : 0.0;
  machine.multiplies_float16 = cpu_multiplies_float16();
  machine.exact_int8 = adds_byte_products_exactly();
  return machine;
}

std::string_view isa_name() { return kIsaLevels[level()]; }

}  // namespace npu::onednn
