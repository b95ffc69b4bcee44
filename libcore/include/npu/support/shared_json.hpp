// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "npu/support/json.hpp"

namespace npu {

/// JSON that several owners read and none changes: a copy is a pointer, however much the value
/// holds. An empty object unless something else is assigned.
class SharedJson {
 public:
  SharedJson() = default;
  SharedJson(Json value) : value_(std::make_shared<const Json>(std::move(value))) {}
  /// Part of a value that somebody owns; not null.
  SharedJson(std::shared_ptr<const Json> value) noexcept : value_(std::move(value)) {}

  const Json& operator*() const noexcept { return value_ != nullptr ? *value_ : nothing(); }
  const Json* operator->() const noexcept { return &**this; }

 private:
  static const Json& nothing() noexcept;

  std::shared_ptr<const Json> value_;
};

}  // namespace npu
