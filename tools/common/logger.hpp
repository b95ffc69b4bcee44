// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "log_levels.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"

namespace spdlog {
class logger;
}

namespace npu::cli {

/// The stderr logger of a program: every line is "PROGRAM: TEXT", written at once. Messages of the
/// library are "PROGRAM: MODULE: TEXT (N ms)". Thread-safe except set_levels and set_quiet.
class Logger : public LogSink {
 public:
  explicit Logger(const std::string& program);
  ~Logger() override;

  /// Sets how much the library logs from now on; initially nothing.
  void set_levels(const LogLevels& levels) { levels_ = levels; }
  const LogLevels& levels() const noexcept { return levels_; }
  /// -q: errors only.
  void set_quiet();

  /// A message that is shown whatever the options.
  void error(std::string_view text);
  void diagnostic(const Diagnostic& diagnostic);

  bool wants(LogModule module, LogLevel level) const noexcept override {
    return levels_.allows(module, level);
  }
  void write(const LogMessage& message) override;

 private:
  LogLevels levels_;
  std::unique_ptr<spdlog::logger> log_;
};

}  // namespace npu::cli
