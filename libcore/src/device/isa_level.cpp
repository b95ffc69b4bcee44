// SPDX-License-Identifier: Apache-2.0
// What the CPU has: its features, and levels of instructions by name: which the CPU has, and
// NPU_MAX_ISA, which limits them. Every question about the CPU in this project is asked here, so
// that a limit holds for all answers, and a machine can be tested as if it were a lesser one.
#include "device/isa_level.hpp"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <array>
#include <cstdlib>
#include <initializer_list>
#include <string>

#include "npu/support/error.hpp"

namespace npu {

namespace {

constexpr const char* kVariable = "NPU_MAX_ISA";

/// Places in kIsaLevels.
enum Level : std::uint8_t {
  kGeneric,
  kNeon,
  kAvx2,
  kAvx2Vnni,
  kAvx512,
  kAvx512Vnni,
  kAvx512BFloat16,
  kAvx512Float16,
  kAmx,
};
static_assert(kIsaLevels[kNeon] == "neon" && kIsaLevels[kAvx2Vnni] == "avx2_vnni" &&
              kIsaLevels[kAvx512Vnni] == "avx512_vnni" && kIsaLevels[kAmx] == "amx");

#if defined(__x86_64__)
/// EAX, EBX, ECX and EDX of a leaf.
std::array<unsigned, 4> cpuid(unsigned leaf, unsigned sub) {
  std::array<unsigned, 4> r{};
  __asm__("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "a"(leaf), "c"(sub));
  return r;
}
#endif

std::string known_levels() {
  std::string result;
  for (const std::string_view each : kIsaLevels) {
    result += (result.empty() ? "" : ", ") + std::string(each);
  }
  return result;
}

/// Whether cpu_features() names it, all parts of it.
bool is_there(CpuFeature feature) {
  static const std::string features = cpu_features() + " ";
  const auto has = [&](std::initializer_list<std::string_view> names) {
    return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
      return features.find(" " + std::string(name) + " ") != std::string::npos;
    });
  };
  switch (feature) {
    case CpuFeature::kNeon:
      return has({"neon"});
    case CpuFeature::kAvx2:
      return has({"avx2", "fma", "f16c"});
    case CpuFeature::kAvxVnni:
      return has({"avx_vnni"});
    case CpuFeature::kAvx512:
      return has({"avx512f", "avx512bw", "avx512vl", "avx512dq"});
    case CpuFeature::kAvx512Vnni:
      return has({"avx512vnni"});
    case CpuFeature::kAvx512Vbmi:
      return has({"avx512vbmi"});
    case CpuFeature::kAvx512BFloat16:
      return has({"avx512bf16"});
    case CpuFeature::kAvx512Float16:
      return has({"avx512fp16"});
    case CpuFeature::kAmx:
      return has({"amx_tile", "amx_bf16", "amx_int8"});
  }
  return false;
}

/// Whether the CPU has all that a level stands for.
bool reaches(std::size_t level) {
  switch (level) {
    case kGeneric:
      return true;
    case kNeon:
      return is_there(CpuFeature::kNeon);
    case kAvx2:
      return is_there(CpuFeature::kAvx2);
    case kAvx2Vnni:
      return reaches(kAvx2) && is_there(CpuFeature::kAvxVnni);
    case kAvx512:
      return reaches(kAvx2) && is_there(CpuFeature::kAvx512);
    case kAvx512Vnni:
      return reaches(kAvx512) && is_there(CpuFeature::kAvx512Vnni);
    case kAvx512BFloat16:
      return reaches(kAvx512Vnni) && is_there(CpuFeature::kAvx512BFloat16);
    case kAvx512Float16:
      return reaches(kAvx512BFloat16) && is_there(CpuFeature::kAvx512Float16);
    case kAmx:  // with float16 or, where a virtual machine hides that, without
      return reaches(kAvx512BFloat16) && is_there(CpuFeature::kAmx);
    default:
      return false;
  }
}

/// Whether code at a level may use it.
bool allows(std::size_t level, CpuFeature feature) {
  switch (feature) {
    case CpuFeature::kNeon:
      return level >= kNeon;
    case CpuFeature::kAvx2:
      return level >= kAvx2;
    case CpuFeature::kAvxVnni:
      return level == kAvx2Vnni;
    case CpuFeature::kAvx512:
      return level >= kAvx512;
    case CpuFeature::kAvx512Vnni:
    case CpuFeature::kAvx512Vbmi:
      return level >= kAvx512Vnni;
    case CpuFeature::kAvx512BFloat16:
      return level >= kAvx512BFloat16;
    case CpuFeature::kAvx512Float16:
      return level >= kAvx512Float16;
    case CpuFeature::kAmx:
      return level >= kAmx;
  }
  return false;
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
    // Leaves 1 and 7 have what the compilers' lists lack.
    std::array<unsigned, 4> r = cpuid(1, 0);
    const bool has_avx = __builtin_cpu_supports("avx") != 0;
    add(__builtin_cpu_supports("sse4.1") != 0, "sse4.1");
    add(__builtin_cpu_supports("sse4.2") != 0, "sse4.2");
    add(has_avx, "avx");
    add(__builtin_cpu_supports("avx2") != 0, "avx2");
    add(__builtin_cpu_supports("fma") != 0, "fma");
    add(has_avx && (r[2] >> 29 & 1) != 0, "f16c");
    add(__builtin_cpu_supports("avx512f") != 0, "avx512f");
    add(__builtin_cpu_supports("avx512bw") != 0, "avx512bw");
    add(__builtin_cpu_supports("avx512vl") != 0, "avx512vl");
    add(__builtin_cpu_supports("avx512dq") != 0, "avx512dq");
    add(__builtin_cpu_supports("avx512vnni") != 0, "avx512vnni");
    add(__builtin_cpu_supports("avx512vbmi") != 0, "avx512vbmi");
    if (cpuid(0, 0)[0] >= 7) {
      r = cpuid(7, 0);
      add((r[3] >> 22 & 1) != 0, "amx_bf16");
      add((r[3] >> 24 & 1) != 0, "amx_tile");
      add((r[3] >> 25 & 1) != 0, "amx_int8");
      add((r[3] >> 23 & 1) != 0, "avx512fp16");
      r = cpuid(7, 1);
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

CpuModel cpu_model() {
  CpuModel model;
#if defined(__x86_64__)
  std::array<unsigned, 4> r = cpuid(0, 0);
  const auto is_by = [&](unsigned b, unsigned d, unsigned c) {
    return r[1] == b && r[3] == d && r[2] == c;
  };
  if (is_by(0x756e6547, 0x49656e69, 0x6c65746e)) model.vendor = CpuVendor::kIntel;  // GenuineIntel
  if (is_by(0x68747541, 0x69746e65, 0x444d4163)) model.vendor = CpuVendor::kAmd;    // AuthenticAMD
  r = cpuid(1, 0);
  model.family = r[0] >> 8 & 0xF;
  model.model = r[0] >> 4 & 0xF;
  if (model.family == 6 || model.family == 15) model.model |= (r[0] >> 16 & 0xF) << 4;
  if (model.family == 15) model.family += r[0] >> 20 & 0xFF;
#endif
  return model;
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
  std::size_t level = isa_limit().value_or(kIsaLevels.size() - 1);
  while (!is_native_isa_level(level) || !reaches(level)) --level;
  return level;
}

bool cpu_has(CpuFeature feature) { return allows(isa_level(), feature) && is_there(feature); }

bool adds_byte_products_exactly() {
  return cpu_has(CpuFeature::kAvx512Vnni) || cpu_has(CpuFeature::kAvxVnni);
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
