// SPDX-License-Identifier: Apache-2.0
// What the CPU has: its features, and levels of instructions by name: which the CPU has, and
// NPU_MAX_ISA, which limits them. Backends read the variable when they are loaded, so that a limit
// holds for all of them.
#include "npu/device/isa_level.hpp"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "npu/support/error.hpp"

namespace npu {

namespace {

constexpr const char* kVariable = "NPU_MAX_ISA";
/// Places in kIsaLevels.
constexpr std::size_t kNeon = 1;
constexpr std::size_t kAvx2 = 2;
constexpr std::size_t kAvx512 = 3;
constexpr std::size_t kAvx512BFloat16 = 4;
constexpr std::size_t kAmx = 5;
static_assert(kIsaLevels[kNeon] == "neon" && kIsaLevels[kAvx2] == "avx2" &&
              kIsaLevels[kAmx] == "amx");

std::string known_levels() {
  std::string result;
  for (const std::string_view each : kIsaLevels) {
    result += (result.empty() ? "" : ", ") + std::string(each);
  }
  return result;
}

/// Of the CPU, by the names that Linux gives its features.
std::size_t cpu_level() {
  const std::string features = cpu_features() + " ";
  const auto has = [&](std::string_view name) {
    return features.find(" " + std::string(name) + " ") != std::string::npos;
  };
  if (has("neon")) return kNeon;
  if (!has("avx2") || !has("fma")) return 0;
  if (!has("avx512f") || !has("avx512bw") || !has("avx512vl") || !has("avx512dq")) return kAvx2;
  if (!has("avx512bf16")) return kAvx512;
  return has("amx_tile") && has("amx_bf16") && has("amx_int8") ? kAmx : kAvx512BFloat16;
}

}  // namespace

const std::string& cpu_features() {
  static const std::string text = [] {
#if defined(__x86_64__)
    std::string names = "x86-64";
    __builtin_cpu_init();
    const auto add = [&](bool has, const char* name) {
      if (has) names += std::string(" ") + name;
    };
    add(__builtin_cpu_supports("sse4.1") != 0, "sse4.1");
    add(__builtin_cpu_supports("sse4.2") != 0, "sse4.2");
    add(__builtin_cpu_supports("avx") != 0, "avx");
    add(__builtin_cpu_supports("avx2") != 0, "avx2");
    add(__builtin_cpu_supports("fma") != 0, "fma");
    add(__builtin_cpu_supports("avx512f") != 0, "avx512f");
    add(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
    add(__builtin_cpu_supports("avx512vl") != 0, "avx512vl");
    add(__builtin_cpu_supports("avx512dq") != 0, "avx512dq");
    add(__builtin_cpu_supports("avx512vnni") != 0, "avx512vnni");
    // Leaf 7 has what the compiler's list lacks.
    std::array<unsigned, 4> r{};
    const auto leaf = [&r](unsigned number, unsigned sub) {
      __asm__("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(number), "c"(sub));
    };
    leaf(0, 0);
    if (r[0] >= 7) {
      leaf(7, 0);
      add((r[3] >> 22 & 1) != 0, "amx_bf16");
      add((r[3] >> 24 & 1) != 0, "amx_tile");
      add((r[3] >> 25 & 1) != 0, "amx_int8");
      add((r[3] >> 23 & 1) != 0, "avx512fp16");
      leaf(7, 1);
      add((r[0] >> 4 & 1) != 0, "avx_vnni");
      add((r[0] >> 5 & 1) != 0, "avx512bf16");
    }
    return names;
#elif defined(__aarch64__)
    // Advanced SIMD belongs to the architecture; SVE does not.
    return std::string("aarch64 neon") + ((::getauxval(AT_HWCAP) & HWCAP_SVE) != 0 ? " sve" : "");
#else
    return std::string("unknown");
#endif
  }();
  return text;
}

std::optional<std::size_t> find_isa_level(std::string_view name) {
  const auto* found = std::find(kIsaLevels.begin(), kIsaLevels.end(), name);
  if (found == kIsaLevels.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kIsaLevels.begin());
}

std::optional<std::size_t> isa_limit() {
  const char* name = std::getenv(kVariable);
  if (name == nullptr || *name == '\0') return std::nullopt;
  const auto level = find_isa_level(name);
  if (!level) {
    throw Error(ErrorCode::kUsage, std::string(kVariable) + ": unknown level '" + name +
                                       "'; expected one of " + known_levels());
  }
  return level;
}

bool is_native_isa_level(std::size_t level) {
#if defined(__aarch64__)
  return level <= kNeon;
#else
  return level != kNeon;
#endif
}

std::size_t isa_level() {
  static const std::size_t of_cpu = cpu_level();
  const std::size_t level = std::min(of_cpu, isa_limit().value_or(of_cpu));
  return is_native_isa_level(level) ? level : 0;
}

bool adds_byte_products_exactly() {
#if defined(__x86_64__)
  const std::string features = cpu_features() + " ";
  // Below the highest level oneDNN is told a level of AVX-512, which does not stand for AVX-VNNI.
  const std::size_t limit = isa_limit().value_or(kAmx);
  return (limit >= kAvx512 && features.find(" avx512vnni ") != std::string::npos) ||
         (limit >= kAmx && features.find(" avx_vnni ") != std::string::npos);
#else
  return false;
#endif
}

void limit_isa_level(std::string_view name) {
  const auto level = find_isa_level(name);
  if (!level) {
    throw Error(ErrorCode::kUsage,
                "unknown level '" + std::string(name) + "'; expected one of " + known_levels());
  }
  if (!is_native_isa_level(*level)) {
    throw Error(ErrorCode::kUnsupported,
                "level '" + std::string(name) + "' is one of another architecture");
  }
  if (*level > isa_level()) {
    throw Error(ErrorCode::kUnsupported, "level '" + std::string(name) + "' is above '" +
                                             std::string(kIsaLevels[isa_level()]) +
                                             "', which is what there is here");
  }
  ::setenv(kVariable, std::string(name).c_str(), 1);
}

}  // namespace npu
