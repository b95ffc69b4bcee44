// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace npu {

/// The features of this CPU that code generators look at, e.g. "x86-64 sse4.2 avx avx2 fma",
/// whatever NPU_MAX_ISA is: they identify the CPU. What code may use is cpu_has's to say.
const std::string& cpu_features();

enum class CpuVendor : std::uint8_t { kOther, kIntel, kAmd };

/// Which CPU it is, as x86-64's CPUs number themselves: with the extended parts of both numbers.
struct CpuModel {
  CpuVendor vendor = CpuVendor::kOther;
  unsigned family = 0;  ///< 0: another architecture
  unsigned model = 0;
};
CpuModel cpu_model();

/// Levels of instructions that backends compile for, from the lowest on, each with what the lower
/// ones of its architecture have. "neon" is ARM's, those behind it are x86-64's. What each adds:
/// "avx2" FMA and conversions of float16, too; "avx2_vnni" AVX-VNNI, which no level of AVX-512
/// has; "avx512" F, BW, VL and DQ; "avx512_vnni" VNNI, and VBMI where the CPU has it.
inline constexpr std::array<std::string_view, 9> kIsaLevels{
    "generic",     "neon",        "avx2",        "avx2_vnni", "avx512",
    "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx"};

/// What code asks the CPU for before it uses it.
enum class CpuFeature : std::uint8_t {
  kNeon,
  kAvx2,  ///< with FMA and F16C
  kAvxVnni,
  kAvx512,  ///< F, BW, VL and DQ
  kAvx512Vnni,
  kAvx512Vbmi,
  kAvx512BFloat16,
  kAvx512Float16,
  kAmx,  ///< tiles of bfloat16 and of int8
};

/// Whether this CPU has it and NPU_MAX_ISA allows it. Nothing else in this project asks the CPU.
/// Throws as isa_limit does.
bool cpu_has(CpuFeature feature);

/// The place of a level in that list; nothing if it is none.
std::optional<std::size_t> find_isa_level(std::string_view name);

/// Whether a level is one of CPUs of this architecture.
bool is_native_isa_level(std::size_t level);

/// The level that NPU_MAX_ISA names; nothing if it is not set. Throws Error kUsage if it names
/// none.
std::optional<std::size_t> isa_limit();

/// The highest level that this CPU has and NPU_MAX_ISA allows: of a limit that the CPU lacks the
/// next lower one that it has. Throws as isa_limit does.
std::size_t isa_level();

/// Whether code that isa_level() allows adds products of bytes in 32 bits, as VNNI does. x86-64
/// CPUs without it add two of them in 16 bits, which saturate with weights of more than 7 bits.
bool adds_byte_products_exactly();

/// Limits backends that are loaded from now on, in this process and its children, to a level: sets
/// NPU_MAX_ISA. Throws Error kUnsupported if isa_level() is lower or the level is another
/// architecture's, kUsage if there is no such level.
void limit_isa_level(std::string_view name);

}  // namespace npu
