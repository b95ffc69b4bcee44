// SPDX-License-Identifier: Apache-2.0
// Passes the library's log messages to the sink of the process.
//
// One pointer, read on every call: without a sink, a message costs that load, and its text is never
// built. A sink is installed before the work starts, so no call can miss it.
#include "npu/support/log.hpp"

#include <atomic>

namespace npu {
namespace {

std::atomic<LogSink*> installed{nullptr};

}  // namespace

void set_log_sink(LogSink* sink) noexcept { installed.store(sink, std::memory_order_release); }

bool log_wants(LogModule module, LogLevel level) noexcept {
  const LogSink* sink = installed.load(std::memory_order_acquire);
  return sink != nullptr && sink->wants(module, level);
}

void log_text(LogModule module, LogLevel level, std::string_view text, std::optional<double> ms) {
  LogSink* sink = installed.load(std::memory_order_acquire);
  if (sink == nullptr || !sink->wants(module, level)) return;
  sink->write({.module = module, .level = level, .text = text, .ms = ms});
}

}  // namespace npu
