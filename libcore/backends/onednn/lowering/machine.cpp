// SPDX-License-Identifier: Apache-2.0
// The one place that asks what the CPU can do, and NPU_MAX_ISA how much of that is used: by our own
// kernels, and by oneDNN, which takes a limit before its first primitive only.
#include "lowering/machine.hpp"

#include <cstdlib>
#include <iterator>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#include "npu/device/isa_level.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {

namespace {

struct Level {
  VectorIsa isa;
  dnnl::cpu_isa least;  ///< what oneDNN has to have for it
  dnnl::cpu_isa most;   ///< what it may use
};

/// One for each of kIsaLevels.
constexpr Level kLevels[]{
    {VectorIsa::kAny, dnnl::cpu_isa::sse41, dnnl::cpu_isa::sse41},
    {VectorIsa::kNeon, dnnl::cpu_isa::all, dnnl::cpu_isa::all},
    {VectorIsa::kAvx2, dnnl::cpu_isa::avx2, dnnl::cpu_isa::avx2},
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core, dnnl::cpu_isa::avx512_core_vnni},
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core_bf16, dnnl::cpu_isa::avx512_core_bf16},
    {VectorIsa::kAvx512, dnnl::cpu_isa::avx512_core_amx, dnnl::cpu_isa::avx512_core_amx},
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
  const auto limit = isa_limit();
  if (limit) {
    const std::size_t highest = is_native_isa_level(*limit) ? *limit : 0;
    const dnnl::cpu_isa most = kLevels[highest].most;
    // Too late if something else in this process, such as libtorch, has run a primitive.
    static_cast<void>(dnnl::set_max_cpu_isa(most));
    if (!includes(most, dnnl::get_effective_cpu_isa())) {
      throw Error(ErrorCode::kUnsupported,
                  "NPU_MAX_ISA: oneDNN is in use already and cannot be "
                  "limited to " +
                      std::string(kIsaLevels[highest]));
    }
  }
  const dnnl::cpu_isa effective = dnnl::get_effective_cpu_isa();
  std::size_t level = isa_level();
  while (level > 0 && !(is_native_isa_level(level) && includes(effective, kLevels[level].least))) {
    --level;
  }
  return level;
}
#endif

bool multiplies_int8_exactly() {
#if defined(__aarch64__)
  return false;
#else
  const dnnl::cpu_isa effective = dnnl::get_effective_cpu_isa();
  return includes(effective, dnnl::cpu_isa::avx512_core_vnni) ||
         includes(effective, dnnl::cpu_isa::avx2_vnni);
#endif
}

bool multiplies_bfloat16() {
#if defined(__aarch64__)
  return false;
#else
  return cpu_multiplies_bfloat16() &&
         includes(dnnl::get_effective_cpu_isa(), dnnl::cpu_isa::avx512_core_bf16);
#endif
}

std::size_t level() {
  static const std::size_t found = find_level();
  return found;
}

}  // namespace

Machine detect_machine() {
  Machine machine;
  machine.isa = kLevels[level()].isa;
  machine.native_bfloat16 = machine.has_avx512();
  machine.multiplies_bfloat16 = machine.has_avx512() && multiplies_bfloat16();
  machine.multiplies_tiles = level() + 1 == kIsaLevels.size();
  // CPUs with AVX512-FP16 have AMX, too: the highest level stands for both.
  machine.multiplies_float16 = machine.multiplies_tiles && cpu_multiplies_float16();
  machine.exact_int8 = multiplies_int8_exactly();
  return machine;
}

std::string_view isa_name() { return kIsaLevels[level()]; }

}  // namespace npu::onednn
