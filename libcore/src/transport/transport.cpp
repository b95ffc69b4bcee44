// SPDX-License-Identifier: Apache-2.0
// Loads a transport and calls it from one thread, which is what MPI libraries offer at the least
// (MPI_THREAD_FUNNELED). The object stays loaded until the process ends, as MPI libraries do not
// survive being unloaded. Waiting is by asking again, with pauses that grow to a tenth of a
// millisecond: ranks may share processors, and MPI's own waiting spins.
#include "transport/transport.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <thread>

#include "device/plugin.hpp"
#include "npu/support/error.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::chrono::microseconds kLongestPause{100};
constexpr int kSpins = 1000;

std::optional<std::int32_t> number_of(const char* text) {
  if (text == nullptr) return std::nullopt;
  const std::string_view digits = text;
  std::int32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

std::unique_ptr<Transport> Transport::join(const std::string& name, const std::string& who) {
  std::string tried;
  const std::string path = find_plugin(kTransports, name, &tried);
  if (path.empty()) {
    throw Error(ErrorCode::kUnsupported,
                who + " needs the transport '" + name + "', which is not in " + tried +
                    ": install the package npu-transport-mpi, or build with libopenmpi-dev");
  }
  // Global: the MPI library's own modules look for its symbols there.
  void* library = open_plugin(kTransports, path, RTLD_GLOBAL);
  return std::make_unique<Transport>(*plugin_table<npu_transport>(
      kTransports, library, path, NPU_TRANSPORT_ENTRY_NAME, NPU_TRANSPORT_ABI_VERSION));
}

Transport::Transport(const npu_transport& api) : api_(&api) {
  thread_.run([this] { check(api_->join(&rank_, &size_)); });
}

Transport::~Transport() { gives_up_ = true; }

void Transport::check(const char* fault) const {
  if (fault == nullptr) return;
  throw Error(ErrorCode::kFailed,
              "transport '" + std::string(api_->name) + "': " + printable_text(fault));
}

void Transport::connect(const TransportPeers& from, const TransportPeers& to) const {
  const auto peers = [](const TransportPeers& list) {
    return npu_transport_peers{static_cast<std::int32_t>(list.ranks.size()), list.ranks.data(),
                               list.rows.data()};
  };
  const npu_transport_peers in = peers(from);
  const npu_transport_peers out = peers(to);
  thread_.run([&] { check(api_->connect(&in, &out)); });
}

void Transport::start(const void* out, void* in, std::int64_t row_bytes) const {
  thread_.post([this, out, in, row_bytes] { exchange(out, in, row_bytes); });
}

Clock::time_point Transport::finish() const {
  thread_.wait();
  return finished_;
}

void Transport::exchange(const void* out, void* in, std::int64_t row_bytes) const {
  check(api_->start(out, in, row_bytes));
  std::chrono::microseconds pause{1};
  for (int tries = 0;; ++tries) {
    std::int32_t done = 0;
    check(api_->test(&done));
    finished_ = Clock::now();
    if (done != 0 || gives_up_) return;
    if (tries < kSpins) {
      std::this_thread::yield();
      continue;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

void Transport::sum(std::span<std::int64_t> values) const {
  thread_.run([&] { check(api_->sum(values.data(), static_cast<std::int64_t>(values.size()))); });
}

std::int64_t Transport::smallest(std::int64_t value) const {
  thread_.run([&] { check(api_->smallest(&value)); });
  return value;
}

void Transport::call(const std::function<void()>& action) const { thread_.run(action); }

void Transport::leave() const {
  if (on_leave_) on_leave_();
  thread_.run([this] { check(api_->leave()); });
}

void do_together(const Transport* transport, const std::function<void()>& action) {
  if (transport == nullptr) return action();
  const std::int64_t none = transport->size();
  try {
    action();
  } catch (const FailedElsewhere&) {
    transport->smallest(none);
    transport->leave();
    throw;
  } catch (...) {  // memory that ran out, too: the others must not wait for this rank
    const bool speaks = transport->smallest(transport->rank()) == transport->rank();
    transport->leave();
    if (speaks) throw;
    throw FailedElsewhere{};
  }
  if (transport->smallest(none) == none) return;
  transport->leave();
  throw FailedElsewhere{};
}

LaunchedAs launched_as() {
  struct Launcher {
    const char* rank;
    const char* size;
  };
  for (const Launcher& launcher :
       {Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, Launcher{"PMI_RANK", "PMI_SIZE"},
        Launcher{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}}) {
    const auto rank = number_of(std::getenv(launcher.rank));
    const auto size = number_of(std::getenv(launcher.size));
    if (rank && size && *rank < *size) return {*rank, *size, launcher.size};
  }
  return {};
}

}  // namespace npu
