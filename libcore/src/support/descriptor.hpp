// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace npu {

/// Owns a file descriptor; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) noexcept : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }

  int get() const noexcept { return value_; }
  /// Closes now and reports what close() says: some file systems report a full disk only there.
  bool close_checked() noexcept { return ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

}  // namespace npu
