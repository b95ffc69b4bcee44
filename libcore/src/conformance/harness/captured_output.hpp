// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/descriptor.hpp"

namespace npu::conformance {

/// Catches what this process writes to stdout and stderr for as long as it lives.
class CapturedOutput {
 public:
  CapturedOutput();
  ~CapturedOutput();
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  /// What was written so far, at most the first 300 bytes.
  std::string text() const;

 private:
  Descriptor caught_;
  Descriptor out_;
  Descriptor err_;
};

}  // namespace npu::conformance
