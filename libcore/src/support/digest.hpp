// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace npu {

/// XXH3, 64 bits: guards files against damage, not against an adversary.
std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept;
/// The digest of the concatenated pieces.
std::uint64_t xxh3_64(const std::vector<std::string_view>& pieces);

/// 16 lower-case hexadecimal digits.
std::string hex_text(std::uint64_t value);

/// XXH3, 128 bits, over a sequence of fields. Each field is hashed with its length, so that ("ab",
/// "c") and ("a", "bc") differ.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  void add(std::string_view field);
  void add(const void* data, std::size_t size);
  void add(std::uint64_t number);
  /// 32 lower-case hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace npu
