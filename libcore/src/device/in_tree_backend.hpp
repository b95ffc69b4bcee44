// SPDX-License-Identifier: Apache-2.0
// What this repository's own backends share. Two of them are a CPU; all throw errors of this
// library.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "npu/backend.h"
#include "npu/support/error.hpp"
#include "npu/tensor/dtype.hpp"
#include "support/elapsed.hpp"

namespace npu {

/// What an error of libcore is at the boundary.
inline npu_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnsupported:
      return NPU_UNSUPPORTED;
    case ErrorCode::kInfeasible:  // of libcore's tensors: there is no memory for one
      return NPU_MEMORY;
    case ErrorCode::kFailed:
      return NPU_FAILED;
    default:
      return NPU_INVALID;
  }
}

/// Fills as much of an out struct as its owner has room for.
template <typename Out>
void fill(Out* out, Out value) {
  value.struct_size = std::min<std::uint64_t>(out->struct_size, sizeof value);
  std::memcpy(out, &value, static_cast<std::size_t>(value.struct_size));
}

/// Host memory, in which everything lies; pointers with this alignment can be wrapped.
inline npu_memory_info host_memory_info(std::uint64_t alignment) {
  npu_memory_info made{};
  made.struct_size = sizeof made;
  made.name = "host";
  made.kind = NPU_MEMORY_SHARED;
  made.flags = NPU_HOST_MAPPABLE | NPU_HOST_COHERENT | NPU_WRAPS_HOST_POINTER;
  made.known = NPU_KNOWN_ALIGNMENT;
  made.alignment = alignment;
  return made;
}

/// Every dtype of this library: all can be stored, and `computes` says in which ones the device
/// computes. An object of it lives as long as the process.
class DTypeInfos {
 public:
  explicit DTypeInfos(bool (*computes)(npu_dtype)) {
    for (std::uint32_t i = 0; i < infos_.size(); ++i) {
      infos_[i].struct_size = sizeof infos_[i];
      infos_[i].dtype = i;
      infos_[i].flags = NPU_DTYPE_STORAGE | (computes(i) ? NPU_DTYPE_ARITHMETIC : 0);
      pointers_.push_back(&infos_[i]);
    }
  }
  DTypeInfos(const DTypeInfos&) = delete;
  DTypeInfos& operator=(const DTypeInfos&) = delete;

  const npu_dtype_info* const* data() const noexcept { return pointers_.data(); }
  std::uint64_t size() const noexcept { return pointers_.size(); }

 private:
  std::array<npu_dtype_info, kDTypeCount> infos_{};
  std::vector<const npu_dtype_info*> pointers_;
};

/// Nanoseconds of CLOCK_MONOTONIC.
inline std::uint64_t monotonic_ns() {
  const std::chrono::nanoseconds now = Clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(now.count());
}

/// A compile, or a run, that the host has stopped.
struct CompileStopped {
  npu_status status;
  const char* text;
};

/// What a compile asks between its pieces.
class HostProgress {
 public:
  explicit HostProgress(const npu_compile_args& args) : args_(args) {}

  /// Throws CompileStopped if the host has had enough.
  void operator()(std::uint64_t done, std::uint64_t total, const char* phase) const {
    if (NPU_HAS(&args_, deadline_ns) && args_.deadline_ns != 0) {
      if (monotonic_ns() >= args_.deadline_ns) {
        throw CompileStopped{NPU_DEADLINE, "the deadline of the compile is over"};
      }
    }
    if (!NPU_HAS(&args_, progress_context) || args_.progress == nullptr) return;
    if (args_.progress(args_.progress_context, done, total, phase) != 0) {
      throw CompileStopped{NPU_CANCELLED, "the compile was stopped"};
    }
  }

 private:
  const npu_compile_args& args_;
};

/// Whether a run is to end before it is done, which it asks between its pieces.
class RunBreak {
 public:
  void begin(const npu_run_args& args) noexcept {
    is_asked_.store(false, std::memory_order_relaxed);
    deadline_ns_ = NPU_HAS(&args, deadline_ns) ? args.deadline_ns : 0;
  }
  /// From any thread.
  void ask() noexcept { is_asked_.store(true, std::memory_order_relaxed); }
  /// NPU_OK, NPU_CANCELLED or NPU_DEADLINE.
  npu_status status() const noexcept {
    if (is_asked_.load(std::memory_order_relaxed)) return NPU_CANCELLED;
    return deadline_ns_ != 0 && monotonic_ns() >= deadline_ns_ ? NPU_DEADLINE : NPU_OK;
  }
  static const char* text(npu_status status) noexcept {
    return status == NPU_DEADLINE ? "the deadline of the run is over" : "the run was cancelled";
  }

 private:
  std::atomic<bool> is_asked_{false};
  std::uint64_t deadline_ns_ = 0;
};

/// More than a device may take was asked for.
class MemoryLimitError : public Error {
 public:
  MemoryLimitError(const std::string& what, std::uint64_t requested, std::uint64_t available)
      : Error(ErrorCode::kInfeasible, what + " does not fit in what is left of the memory limit"),
        requested_(requested),
        available_(available) {}
  /// Adds the numbers to an error that has the text.
  void fill_numbers(npu_error* error) const noexcept {
    if (error == nullptr || !NPU_HAS(error, memory)) return;
    error->known |= NPU_KNOWN_REQUESTED | NPU_KNOWN_AVAILABLE | NPU_KNOWN_MEMORY;
    error->requested_bytes = requested_;
    error->available_bytes = available_;
    error->memory = 0;
  }

 private:
  std::uint64_t requested_;
  std::uint64_t available_;
};

/// Counts what the objects of a device take of its one memory, and keeps it within a limit. Any
/// thread may call it.
class MemoryLedger {
 public:
  explicit MemoryLedger(std::uint64_t limit) : limit_(limit) {}

  /// Throws MemoryLimitError; `what` names what would not fit.
  void take(std::uint64_t bytes, const char* what) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t left = (limit_ != 0 ? limit_ : UINT64_MAX) - in_use_;
    if (bytes > left) throw MemoryLimitError(what, bytes, left);
    in_use_ += bytes;
    peak_ = std::max(peak_, in_use_);
  }
  void give_back(std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    in_use_ -= bytes;
  }
  npu_memory_state state() const {
    const std::lock_guard lock(mutex_);
    npu_memory_state made{};
    made.known = NPU_KNOWN_IN_USE | NPU_KNOWN_PEAK_USE;
    made.in_use_bytes = in_use_;
    made.peak_bytes = peak_;
    if (limit_ == 0) return made;
    made.known |= NPU_KNOWN_LIMIT | NPU_KNOWN_LARGEST_FREE;
    made.limit_bytes = limit_;
    made.largest_free_bytes = limit_ - in_use_;
    return made;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t limit_;
  std::uint64_t in_use_ = 0;
  std::uint64_t peak_ = 0;
};

/// What one object has taken of it; given back at its end.
class MemoryShare {
 public:
  MemoryShare() = default;
  MemoryShare(std::shared_ptr<MemoryLedger> ledger, std::uint64_t bytes, const char* what)
      : bytes_(bytes) {
    ledger->take(bytes, what);
    ledger_ = std::move(ledger);
  }
  MemoryShare(MemoryShare&&) = default;
  MemoryShare& operator=(MemoryShare&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;
  ~MemoryShare() {
    if (ledger_ != nullptr) ledger_->give_back(bytes_);
  }

 private:
  std::shared_ptr<MemoryLedger> ledger_;
  std::uint64_t bytes_ = 0;
};

}  // namespace npu
