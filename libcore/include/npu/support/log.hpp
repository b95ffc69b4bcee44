// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace npu {

/// The stages that log; their names are in kLogModuleNames.
enum class LogModule : std::uint8_t {
  kRead,     ///< documents, weights, bundles
  kVerify,   ///< rules of npu-ir(5)
  kPass,     ///< tag, fuse, partition, align
  kSolve,    ///< what an optimiser found and what it proved
  kDevice,   ///< backends: where they were looked for, found and loaded
  kCompile,  ///< backends compiling partitions
  kCache,    ///< hits and misses
  kRun,      ///< loading and running
  kGnn,      ///< phases of plans over big graphs
  kProfile,  ///< measurements
};
inline constexpr std::array<std::string_view, 10> kLogModuleNames{
    "read", "verify", "pass", "solve", "device", "compile", "cache", "run", "gnn", "profile"};

/// kInfo: what a stage did and how long it took. kDebug: why.
enum class LogLevel : std::uint8_t { kOff, kInfo, kDebug };

struct LogMessage {
  LogModule module = LogModule::kRead;
  LogLevel level = LogLevel::kInfo;
  std::string_view text;     ///< one line; valid during the call
  std::optional<double> ms;  ///< how long it took
};

/// Receives the library's log messages; the library itself never prints. Calls may come from
/// several threads at once.
class LogSink {
 public:
  LogSink() = default;
  virtual ~LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;

  /// Whether the sink wants messages of this kind; the text of others is never built.
  virtual bool wants(LogModule module, LogLevel level) const noexcept = 0;
  virtual void write(const LogMessage& message) = 0;
};

/// Installs the sink of the process, which must outlive every call into the library. Null, the
/// initial state, turns logging off.
void set_log_sink(LogSink* sink) noexcept;

/// Whether the sink wants messages of this kind. Without a sink this costs one load.
bool log_wants(LogModule module, LogLevel level) noexcept;
/// Passes a message to the sink, if the sink wants it.
void log_text(LogModule module, LogLevel level, std::string_view text,
              std::optional<double> ms = std::nullopt);

/// `text` is a function that returns the text; it is called only if the sink wants the message.
template <typename Text>
void log(LogModule module, LogLevel level, const Text& text) {
  if (log_wants(module, level)) log_text(module, level, text());
}

/// Times a stage from construction on. Does not read the clock unless the sink wants the message.
class LogTimer {
 public:
  explicit LogTimer(LogModule module, LogLevel level = LogLevel::kInfo)
      : module_(module), level_(level) {
    if (log_wants(module, level)) start_ = std::chrono::steady_clock::now();
  }
  /// Ends the stage: logs `text()` and the time since construction.
  template <typename Text>
  void done(const Text& text) const {
    if (!start_) return;
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - *start_;
    log_text(module_, level_, text(), spent.count());
  }

 private:
  LogModule module_;
  LogLevel level_;
  std::optional<std::chrono::steady_clock::time_point> start_;
};

}  // namespace npu
