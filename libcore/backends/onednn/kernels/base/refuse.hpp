// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "npu/support/error.hpp"

namespace npu::onednn {

/// For what is read from a blob, which may come from anywhere.
[[noreturn]] inline void refuse(const std::string& text) {
  throw Error(ErrorCode::kInvalidGraph, text);
}

inline void require(bool holds, const char* text) {
  if (!holds) refuse(text);
}

}  // namespace npu::onednn
