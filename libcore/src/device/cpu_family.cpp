// SPDX-License-Identifier: Apache-2.0
// Families of CPUs by the numbers that x86-64's CPUs give themselves (Intel's and AMD's lists of
// families and models).
#include "device/cpu_family.hpp"

#include <algorithm>
#include <array>

namespace npu {

namespace {

struct FamilyRow {
  CpuVendor vendor;
  unsigned family;
  unsigned first_model;
  unsigned last_model;
  std::string_view name;
};

constexpr std::array kFamilies{
    FamilyRow{CpuVendor::kIntel, 6, 0x8F, 0x8F, "intel-sapphire-rapids"},
    FamilyRow{CpuVendor::kIntel, 6, 0xCF, 0xCF,
              "intel-sapphire-rapids"},  // Emerald Rapids: its core
    FamilyRow{CpuVendor::kIntel, 6, 0xAD, 0xAE, "intel-granite-rapids"},
    FamilyRow{CpuVendor::kAmd, 25, 0x10, 0x1F, "amd-zen4"},
    FamilyRow{CpuVendor::kAmd, 25, 0x60, 0x7F, "amd-zen4"},
    FamilyRow{CpuVendor::kAmd, 25, 0xA0, 0xAF, "amd-zen4"},
    FamilyRow{CpuVendor::kAmd, 26, 0x00, 0xFF, "amd-zen5"},
};

}  // namespace

std::string_view cpu_family(const CpuModel& model) {
  const auto* found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const FamilyRow& row) {
    return row.vendor == model.vendor && row.family == model.family &&
           row.first_model <= model.model && model.model <= row.last_model;
  });
  return found == kFamilies.end() ? "other" : found->name;
}

std::string_view cpu_family() {
  static const std::string_view family = cpu_family(cpu_model());
  return family;
}

}  // namespace npu
