// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace npu::test {

/// A variable of the environment while it lives, and afterwards as it was.
class SetVariable {
 public:
  /// `value` may be null: the variable is not set.
  SetVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  SetVariable(const char* name, const std::string& value) : SetVariable(name, value.c_str()) {}
  ~SetVariable() { set(before_ ? before_->c_str() : nullptr); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  void set(const char* value) { value == nullptr ? ::unsetenv(name_) : ::setenv(name_, value, 1); }

  const char* name_;
  std::optional<std::string> before_;
};

/// The levels of instructions that a test tries one after the other are limits: NPU_MAX_ISA.
class IsaLimit : public SetVariable {
 public:
  explicit IsaLimit(const std::string& level) : SetVariable("NPU_MAX_ISA", level) {}
  explicit IsaLimit(const char* level) : SetVariable("NPU_MAX_ISA", level) {}
};

}  // namespace npu::test
