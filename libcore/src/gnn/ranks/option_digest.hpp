// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/digest.hpp"

namespace npu::gnn {

/// What processes have to have been asked for alike, as one number that they can compare.
class OptionDigest {
 public:
  void add(std::string_view text) { digest_.add(text); }
  void add(std::int64_t number) { digest_.add(static_cast<std::uint64_t>(number)); }
  void add(std::int32_t number) { add(std::int64_t{number}); }
  void add(bool value) { add(std::int64_t{value}); }
  void add(double number) { digest_.add(&number, sizeof number); }
  template <typename Value>
  void add_all(const std::vector<Value>& values) {
    add(static_cast<std::int64_t>(values.size()));
    for (const Value& value : values) add(value);
  }

  /// From 0 to 2^60 - 1.
  std::int64_t value() const {
    constexpr std::size_t kDigits = 15;
    return static_cast<std::int64_t>(std::stoull(digest_.hex().substr(0, kDigits), nullptr, 16));
  }

 private:
  Digest digest_;
};

}  // namespace npu::gnn
