// SPDX-License-Identifier: Apache-2.0
// Messages on stderr, through spdlog. Its default logger writes to stdout, which carries the
// document, so this one is created by hand, with the message format of the eight programs, and is
// not in spdlog's registry. Each line is flushed, so that it keeps its order with tables and
// progress, which also go to stderr.
#include "logger.hpp"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <utility>

#include "support/text.hpp"

namespace npu::cli {
namespace {

spdlog::level::level_enum level_of(Level level) {
  switch (level) {
    case Level::kError:
      return spdlog::level::err;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kNote:
      return spdlog::level::info;
  }
  return spdlog::level::err;
}

// One message is one line, whatever names it contains.
std::string line_text(std::string_view text) {
  std::string line = terminal_text(text);
  std::replace(line.begin(), line.end(), '\n', '?');
  return line;
}

}  // namespace

Logger::Logger(const std::string& program)
    : log_(std::make_unique<spdlog::logger>(program,
                                            std::make_shared<spdlog::sinks::stderr_sink_mt>())) {
  log_->set_formatter(std::make_unique<spdlog::pattern_formatter>("%n: %v"));
  log_->set_level(spdlog::level::trace);
}

Logger::~Logger() = default;

void Logger::set_quiet() {
  levels_ = LogLevels();
  log_->set_level(spdlog::level::err);
}

void Logger::error(std::string_view text) { log_->log(spdlog::level::err, line_text(text)); }

void Logger::diagnostic(const Diagnostic& diagnostic) {
  log_->log(level_of(diagnostic.level), line_text(format_diagnostic(diagnostic)));
}

void Logger::write(const LogMessage& message) {
  const auto level = message.level == LogLevel::kDebug ? spdlog::level::debug : spdlog::level::info;
  const std::string_view module = kLogModuleNames[static_cast<std::size_t>(message.module)];
  if (message.ms) {
    log_->log(level, "{}: {} ({:.2f} ms)", module, line_text(message.text), *message.ms);
  } else {
    log_->log(level, "{}: {}", module, line_text(message.text));
  }
}

}  // namespace npu::cli
