// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "npu/support/log.hpp"

namespace npu::cli {

/// How much each module of the library logs.
class LogLevels {
 public:
  /// Every module at the level of that many -v: off, info, debug.
  explicit LogLevels(int verbosity = 0) noexcept;

  /// Applies NPU_LOG: LEVEL for every module, MODULE=LEVEL for one, several separated by commas; a
  /// later one overrides an earlier one. An empty text sets nothing. Throws Error kUsage for a
  /// module or level that does not exist.
  void set(std::string_view text);

  bool allows(LogModule module, LogLevel level) const noexcept {
    return level <= levels_[static_cast<std::size_t>(module)];
  }
  bool is_silent() const noexcept;

 private:
  std::array<LogLevel, kLogModuleNames.size()> levels_{};
};

}  // namespace npu::cli
