// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace npu::conformance {

/// A struct of the interface that ends where memory ends: who writes behind it is stopped by a
/// signal. `size` may be less than the struct has, as with an older host.
template <typename Struct>
class Guarded {
 public:
  explicit Guarded(std::uint64_t size = sizeof(Struct)) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    bytes_ = (size + page - 1) / page * page + page;
    memory_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory_ == MAP_FAILED) throw std::bad_alloc();
    ::mprotect(memory_ + bytes_ - page, page, PROT_NONE);
    std::byte* begin = memory_ + bytes_ - page - size;
    std::memset(begin, 0, size);
    std::memcpy(begin, &size, sizeof size);
    value_ = reinterpret_cast<Struct*>(begin);
  }
  ~Guarded() { ::munmap(memory_, bytes_); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  Struct* get() const noexcept { return value_; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Struct* value_ = nullptr;
};

/// A struct as a later host has it: 64 bytes longer, with something in them.
template <typename Struct>
class Longer {
 public:
  static constexpr std::size_t kMore = 64;

  explicit Longer(const Struct& known) : memory_((sizeof(Struct) + kMore) / sizeof(std::uint64_t)) {
    std::memset(memory_.data(), 0xff, sizeof(Struct) + kMore);
    std::memcpy(memory_.data(), &known, sizeof known);
    memory_[0] = sizeof(Struct) + kMore;
  }
  Struct* get() noexcept { return reinterpret_cast<Struct*>(memory_.data()); }
  /// Of an out struct: what lies behind the known end is as it was.
  bool is_tail_untouched() const noexcept {
    for (std::size_t i = sizeof(Struct) / sizeof(std::uint64_t); i < memory_.size(); ++i) {
      if (memory_[i] != ~std::uint64_t{0}) return false;
    }
    return true;
  }

 private:
  std::vector<std::uint64_t> memory_;  // every struct has a multiple of 8 bytes
};

}  // namespace npu::conformance
