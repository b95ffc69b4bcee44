// SPDX-License-Identifier: Apache-2.0
// Makes the ranges of a template's sizes smaller: what a model takes of a size can be more than
// what it is used with, and rules of padding may hold for the smaller range alone, such as that of
// a resampling for multiples of its factor. O(symbols times ranges).
#include "ir/narrow_sizes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <optional>

#include "ir/size_symbols.hpp"
#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::string_view kTo = "..";

[[noreturn]] void refuse(const std::string& text, const std::string& why) {
  throw Error(ErrorCode::kUsage, "--bind " + printable_text(text) + ": " + why);
}

std::optional<std::int64_t> number_in(std::string_view text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || last != text.data() + text.size() || value < least)
    return std::nullopt;
  return value;
}

std::string text_of(const StatedRange& range) {
  return range.name + "=" + std::to_string(range.min) + std::string(kTo) +
         std::to_string(range.max) + (range.step == 1 ? "" : ":" + std::to_string(range.step));
}

/// The least common multiple, which no size exceeds.
std::int64_t common_multiple(const StatedRange& range, std::int64_t step) {
  std::int64_t multiple = 0;
  if (__builtin_mul_overflow(range.step / std::gcd(range.step, step), step, &multiple) ||
      multiple > range.max) {
    refuse(text_of(range), "no value of it is a multiple of " + std::to_string(step) + ", too");
  }
  return multiple;
}

}  // namespace

bool is_stated_range(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  return equals != text.npos && text.find(kTo, equals) != text.npos;
}

StatedRange parse_stated_range(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t to = text.find(kTo, equals);
  const std::size_t colon = text.find(':', to);
  const auto part = [&](std::size_t begin, std::size_t end, std::int64_t least) {
    return number_in(std::string_view(text).substr(begin, end - begin), least);
  };
  const auto min = part(equals + 1, to, 0);
  const auto max = part(to + kTo.size(), std::min(colon, text.size()), 0);
  const auto step =
      colon == text.npos ? std::optional<std::int64_t>(1) : part(colon + 1, text.size(), 1);
  if (equals == 0 || !min || !max || !step) {
    refuse(text, "expected NAME=MIN..MAX or NAME=MIN..MAX:STEP, for example 'height=64..512:8'");
  }
  if (*max / *step * *step < *min) {
    refuse(text, "no value from " + std::to_string(*min) + " to " + std::to_string(*max) +
                     (*step == 1 ? "" : " is a multiple of " + std::to_string(*step)));
  }
  return {text.substr(0, equals), *min, *max, *step};
}

Json narrow_sizes(Json document, const std::vector<StatedRange>& ranges, const std::string& file) {
  Json* npu = find_member(document, "npu");
  const Json* stated = npu == nullptr ? nullptr : find_member(*npu, "symbols");
  if (stated == nullptr) return document;
  Diagnostics faults;
  const SizeSymbols symbols = SizeSymbols::read(*stated, file, faults);
  if (faults.has_errors()) return document;
  std::vector<SizeSymbol> list = symbols.list();
  std::vector<std::string> seen;
  for (const StatedRange& range : ranges) {
    const auto found = std::ranges::find(list, range.name, &SizeSymbol::name);
    if (found == list.end()) {
      refuse(text_of(range), file + " has no such size; its sizes are " + symbols.names());
    }
    if (std::ranges::find(seen, range.name) != seen.end()) {
      refuse(text_of(range), "the size has a range already");
    }
    seen.push_back(range.name);
    SizeSymbol& symbol = *found;
    symbol.multiple_of = common_multiple(range, symbol.multiple_of);
    symbol.min = SizeExpression::max(std::array{symbol.min, SizeExpression(range.min)});
    const SizeExpression most(range.max);
    symbol.max = symbol.max ? SizeExpression::min(std::array{*symbol.max, most}) : most;
    const auto least = symbol.min.constant(), largest = symbol.max->constant();
    if (least && largest && *largest / symbol.multiple_of * symbol.multiple_of < *least) {
      refuse(text_of(range),
             file + " takes " + SizeSymbols::range_text(*symbols.find(range.name)) + " of it");
    }
  }
  set_member(*npu, "symbols", SizeSymbols::of(std::move(list)).to_json());
  return document;
}

}  // namespace npu
