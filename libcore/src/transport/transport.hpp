// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "npu/transport.h"
#include "support/elapsed.hpp"
#include "transport/call_thread.hpp"

namespace npu {

/// Ranks, ascending, and the rows that go to or come from each.
struct TransportPeers {
  std::vector<std::int32_t> ranks;
  std::vector<std::int64_t> rows;
};

/// The processes that run a plan together, as npu/transport.h defines them. All functions throw
/// Error kFailed with what the transport says. The transport's functions are called from a thread
/// of their own, so that an exchange goes on while others compute.
class Transport {
 public:
  /// Loads the shared object of a transport from beside the program or from the folders of
  /// NPU_TRANSPORT_PATH, and joins the other processes. Throws Error kUnsupported if there is none,
  /// which says that `who` needs it.
  static std::unique_ptr<Transport> join(const std::string& name, const std::string& who);
  /// Over a table of functions, which has to outlive the object; joins.
  explicit Transport(const npu_transport& api);
  /// Gives an exchange up that is not over.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  std::int32_t rank() const noexcept { return rank_; }
  std::int32_t size() const noexcept { return size_; }

  void connect(const TransportPeers& from, const TransportPeers& to) const;
  /// Begins an exchange of rows. Both memories stay until finish(), which comes before any other
  /// function.
  void start(const void* out, void* in, std::int64_t row_bytes) const;
  /// Waits until all rows are here, leaving the processor to others meanwhile. Any thread may call.
  /// Returns when that was.
  Clock::time_point finish() const;
  void sum(std::span<std::int64_t> values) const;
  std::int64_t smallest(std::int64_t value) const;
  /// Whether all processes give the same number.
  bool agree_on(std::int64_t value) const { return smallest(value) == -smallest(-value); }
  /// Calls something from the transport's thread, for libraries that speak to the same processes.
  void call(const std::function<void()>& action) const;
  void leave() const;
  /// Called at the beginning of leave().
  void on_leave(std::function<void()> action) { on_leave_ = std::move(action); }

 private:
  void check(const char* fault) const;
  void exchange(const void* out, void* in, std::int64_t row_bytes) const;

  const npu_transport* api_;
  std::function<void()> on_leave_;
  std::int32_t rank_ = 0;
  std::int32_t size_ = 1;
  mutable Clock::time_point finished_;
  std::atomic<bool> gives_up_ = false;
  mutable CallThread thread_;
};

/// Another process has failed, and says why.
struct FailedElsewhere {};

/// Does something in every process; collective. If it throws Error in some, one of them throws that
/// and all others FailedElsewhere, after they have parted. What is done may throw FailedElsewhere
/// itself where it knows of another process's failure. Null: there is one process.
void do_together(const Transport* transport, const std::function<void()>& action);

/// How a launcher says that it has started this process, by the variables of Open MPI, MPICH and
/// Slurm; as the only one if there was no launcher. Nothing is loaded for it.
struct LaunchedAs {
  std::int32_t rank = 0;
  std::int32_t size = 1;
  const char* size_variable = "";  ///< which says the size
};
LaunchedAs launched_as();

}  // namespace npu
