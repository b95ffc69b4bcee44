// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "npu/support/error.hpp"

namespace npu {

/// An error with more to say than a line: a table, which tools print below the message.
class DetailedError : public Error {
 public:
  DetailedError(ErrorCode code, std::string message, InputLocation location, std::string details)
      : Error(code, std::move(message), std::move(location)), details_(std::move(details)) {}

  const std::string& details() const noexcept { return details_; }

 private:
  std::string details_;
};

}  // namespace npu
