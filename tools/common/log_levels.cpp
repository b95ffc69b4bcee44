// SPDX-License-Identifier: Apache-2.0
// -v and NPU_LOG: how much each module logs. The input is a text such as "info,cache=debug"; every
// fault in it is refused with the list of valid words, since a misspelling would otherwise just
// look like silence.
#include "log_levels.hpp"

#include <algorithm>
#include <string>

#include "npu/support/error.hpp"

namespace npu::cli {
namespace {

constexpr std::array<std::string_view, 3> kLevelNames{"off", "info", "debug"};

/// The index of `word` in `names`, or a message with all of them.
template <std::size_t kCount>
std::size_t index_of(const std::array<std::string_view, kCount>& names, std::string_view word,
                     const std::string& what) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string list;
  for (const std::string_view name : names) {
    list += list.empty() ? "" : ", ";
    list += name;
  }
  throw Error(ErrorCode::kUsage,
              "NPU_LOG: unknown " + what + " '" + std::string(word) + "', expected one of " + list);
}

}  // namespace

LogLevels::LogLevels(int verbosity) noexcept {
  levels_.fill(verbosity <= 0   ? LogLevel::kOff
               : verbosity == 1 ? LogLevel::kInfo
                                : LogLevel::kDebug);
}

void LogLevels::set(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    const std::string_view word = equals == std::string_view::npos ? part : part.substr(equals + 1);
    if (equals == std::string_view::npos) {
      levels_.fill(static_cast<LogLevel>(index_of(kLevelNames, word, "level")));
    } else {
      const std::size_t module = index_of(kLogModuleNames, part.substr(0, equals), "module");
      levels_[module] = static_cast<LogLevel>(index_of(kLevelNames, word, "level"));
    }
  }
}

bool LogLevels::is_silent() const noexcept {
  return std::all_of(levels_.begin(), levels_.end(),
                     [](LogLevel level) { return level == LogLevel::kOff; });
}

}  // namespace npu::cli
