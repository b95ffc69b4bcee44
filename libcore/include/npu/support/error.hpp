// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace npu {

/// Why a run cannot go on. Tools map these to exit codes; see npu::cli::ExitStatus.
enum class ErrorCode {
  kIo,            ///< a file or stream cannot be read or written
  kParse,         ///< the bytes do not follow the format
  kInvalidGraph,  ///< well-formed, but violates a rule of npu-ir(5)
  kUsage,         ///< options that contradict each other or name things that do not exist
  kUnsupported,   ///< no device or backend can do what the document asks for
  kInfeasible,    ///< valid, but no result meets the given limits, memory among them
  kFailed,        ///< a backend failed or broke its contract; trying elsewhere would hide that
};

/// A place in an input. Syntax errors have line and column (1-based; 0 means unknown), semantic
/// ones a JSON Pointer. All parts may be empty.
struct InputLocation {
  std::string file = {};
  int line = 0;
  int column = 0;
  std::string pointer = {};
};

/// The one exception type of the library: "this run cannot go on". Alternatives that a caller is
/// expected to handle are return values instead.
class Error : public std::exception {
 public:
  Error(ErrorCode code, std::string message, InputLocation location = {});

  ErrorCode code() const noexcept { return code_; }
  const InputLocation& location() const noexcept { return location_; }
  /// The text without the location.
  const std::string& message() const noexcept { return message_; }
  /// "file:line:column: error: message", with the parts of the location that are known.
  const char* what() const noexcept override { return formatted_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  InputLocation location_;
  std::string formatted_;
};

enum class Level { kError, kWarning, kNote };

struct Diagnostic {
  Level level = Level::kError;
  InputLocation location;
  std::string text;
};

/// "file:12:7: error: text" or "file: /nodes/3: error: text".
std::string format_diagnostic(const Diagnostic& diagnostic);

/// Collects findings so that one run reports all of them, in order.
class Diagnostics {
 public:
  void error(InputLocation location, std::string text);
  void warning(InputLocation location, std::string text);
  void note(InputLocation location, std::string text);

  const std::vector<Diagnostic>& entries() const noexcept { return entries_; }
  bool has_errors() const noexcept { return error_count_ != 0; }
  std::size_t error_count() const noexcept { return error_count_; }

 private:
  std::vector<Diagnostic> entries_;
  std::size_t error_count_ = 0;
};

}  // namespace npu
