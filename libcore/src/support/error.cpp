// SPDX-License-Identifier: Apache-2.0
// Formats errors and diagnostics the way compilers do, so that editors can jump to the place.
#include "npu/support/error.hpp"

#include <utility>

namespace npu {
namespace {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kError:
      return "error";
    case Level::kWarning:
      return "warning";
    case Level::kNote:
      return "note";
  }
  return "error";
}

}  // namespace

std::string format_diagnostic(const Diagnostic& diagnostic) {
  std::string text;
  const InputLocation& location = diagnostic.location;
  if (!location.file.empty()) {
    text += location.file;
    if (location.line > 0) {
      text += ':' + std::to_string(location.line);
      if (location.column > 0) text += ':' + std::to_string(location.column);
    }
    text += ": ";
  }
  if (!location.pointer.empty()) text += location.pointer + ": ";
  text += level_name(diagnostic.level);
  text += ": ";
  text += diagnostic.text;
  return text;
}

Error::Error(ErrorCode code, std::string message, InputLocation location)
    : code_(code), message_(std::move(message)), location_(std::move(location)) {
  formatted_ = format_diagnostic({Level::kError, location_, message_});
}

void Diagnostics::error(InputLocation location, std::string text) {
  entries_.push_back({Level::kError, std::move(location), std::move(text)});
  ++error_count_;
}

void Diagnostics::warning(InputLocation location, std::string text) {
  entries_.push_back({Level::kWarning, std::move(location), std::move(text)});
}

void Diagnostics::note(InputLocation location, std::string text) {
  entries_.push_back({Level::kNote, std::move(location), std::move(text)});
}

}  // namespace npu
