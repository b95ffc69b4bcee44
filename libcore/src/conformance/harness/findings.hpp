// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/harness/heartbeat.hpp"
#include "support/digest.hpp"

namespace npu::conformance {

/// Ends a case that cannot go on; what is wrong stands among the findings already.
struct CaseStopped : std::exception {};

/// Ends a case that says nothing about this backend.
struct NotApplicable : std::exception {
  explicit NotApplicable(std::string text) : reason(std::move(text)) {}
  std::string reason;
};

/// What one case has checked and found.
class Findings {
 public:
  /// Adds `text` if the check does not hold. Says whether it holds.
  bool expect(bool holds, const std::string& text) {
    ++checks_;
    beat();
    if (!holds && texts_.size() < kMost) texts_.push_back(text);
    return holds;
  }
  /// The same, and ends the case.
  void require(bool holds, const std::string& text) {
    if (!expect(holds, text)) throw CaseStopped();
  }

  /// What has to be the same when the case is run in another process, --quick or not.
  void note(const std::string& bytes) {
    if (!noted_) noted_.emplace();
    noted_->add(bytes);
  }
  /// Of all that was noted; empty if nothing was.
  std::string digest() const { return noted_ ? noted_->hex() : std::string(); }

  std::int64_t checks() const noexcept { return checks_; }
  const std::vector<std::string>& texts() const noexcept { return texts_; }

 private:
  static constexpr std::size_t kMost = 20;
  std::int64_t checks_ = 0;
  std::vector<std::string> texts_;
  std::optional<Digest> noted_;
};

}  // namespace npu::conformance
