// SPDX-License-Identifier: Apache-2.0
// The classes of rows behind the valid ones, and their letters in npu.padding. O(1).
#include "passes/padding/tail_class.hpp"

#include <array>
#include <utility>

namespace npu::padding {
namespace {

constexpr std::array<std::pair<Fill, std::string_view>, 3> kFillNames{
    {{Fill::kZero, "zero"}, {Fill::kLowest, "lowest"}, {Fill::kEdge, "edge"}}};

}  // namespace

std::string_view fill_name(Fill fill) noexcept {
  for (const auto& [value, name] : kFillNames) {
    if (value == fill) return name;
  }
  return {};
}

std::optional<Fill> parse_fill(std::string_view wanted) noexcept {
  for (const auto& [value, name] : kFillNames) {
    if (name == wanted) return value;
  }
  return std::nullopt;
}

bool TailClass::implies(const TailClass& other) const noexcept {
  return (repeat || !other.repeat) && (zero || !other.zero) && (lowest || !other.lowest) &&
         (finite || !other.finite);
}

std::string TailClass::text() const {
  std::string letters;
  if (repeat) letters += "R";
  if (zero) letters += "Z";
  if (lowest) letters += "N";
  if (!letters.empty()) return letters;
  return finite ? "F" : "A";
}

std::optional<TailClass> TailClass::parse(std::string_view text) noexcept {
  constexpr std::array<std::pair<std::string_view, TailClass>, 7> kTexts{
      {{"A", {}},
       {"F", {.finite = true}},
       {"R", {.repeat = true, .finite = true}},
       {"Z", {.zero = true, .finite = true}},
       {"N", {.lowest = true}},
       {"RZ", {.repeat = true, .zero = true, .finite = true}},
       {"RN", {.repeat = true, .lowest = true}}}};
  for (const auto& [letters, value] : kTexts) {
    if (letters == text) return value;
  }
  return std::nullopt;
}

}  // namespace npu::padding
