// SPDX-License-Identifier: Apache-2.0
// Cancels programs when somebody asks for it, or at the deadline. One thread does that, which
// sleeps until then; there is none if no backend can cancel. A call of a backend that comes before
// its run has begun is lost, so it is made again every few milliseconds until the run has ended.
#include "npu/runtime/run_stop.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "device/backend.hpp"
#include "device/device_program.hpp"
#include "support/deadline.hpp"

namespace npu {
namespace {

/// For as long as it lives, the thread takes no signals, and those that it starts never do.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

constexpr int kAgainMs = 10;
constexpr std::int64_t kLongestPauseMs = 3'600'000;

}  // namespace

RunStop::RunStop(std::optional<TimePoint> deadline)
    : deadline_(deadline), wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_fd_ < 0) {
    throw Error(ErrorCode::kIo, std::string("cannot make an eventfd: ") + std::strerror(errno));
  }
}

RunStop::~RunStop() {
  is_ending_ = true;
  wake();
  if (watcher_.joinable()) watcher_.join();
  ::close(wake_fd_);
}

void RunStop::wake() const noexcept {
  const std::uint64_t one = 1;
  const auto written = ::write(wake_fd_, &one, sizeof one);
  static_cast<void>(written);  // a counter that is full wakes as well
}

void RunStop::ask() noexcept {
  is_asked_ = true;
  wake();
}

void RunStop::check_asked() const {
  if (is_asked_) throw BackendError(NPU_CANCELLED, "the run was stopped");
}

void RunStop::check() const {
  check_asked();
  if (!is_late()) return;
  throw RunLate(ErrorCode::kInfeasible,
                "the deadline is over in the middle of a run; allow more with --deadline");
}

std::uint64_t RunStop::deadline_ns() const noexcept { return npu::deadline_ns(deadline_); }

// ---- The thread ----

/// Until the deadline; -1 for ever.
int RunStop::pause_ms() {
  const std::lock_guard lock(mutex_);
  if (is_asked_ || is_late()) return scopes_.empty() ? -1 : kAgainMs;
  if (!deadline_) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kLongestPauseMs));
}

void RunStop::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const Scope* scope : scopes_) {
    for (const DeviceProgram* program : scope->programs_) program->cancel();
  }
}

void RunStop::watch() {
  while (!is_ending_) {
    pollfd wanted{wake_fd_, POLLIN, 0};
    ::poll(&wanted, 1, pause_ms());
    std::uint64_t count = 0;
    const auto taken = ::read(wake_fd_, &count, sizeof count);
    static_cast<void>(taken);
    if (!is_ending_ && (is_asked_ || is_late())) cancel_all();
  }
}

// ---- Runs ----

RunStop::Scope::Scope(RunStop* stop, std::vector<const DeviceProgram*> programs)
    : stop_(stop), programs_(std::move(programs)) {
  if (stop_ == nullptr) return;
  std::erase_if(programs_, [](const DeviceProgram* program) { return !program->can_cancel(); });
  if (programs_.empty()) return;
  const std::lock_guard lock(stop_->mutex_);
  stop_->scopes_.reserve(stop_->scopes_.size() + 1);
  if (stop_->watcher_.joinable()) {
    stop_->wake();
  } else {
    const SignalsBlocked blocked;  // they are for the program's own threads
    stop_->watcher_ = std::thread([watched = stop_] { watched->watch(); });
  }
  stop_->scopes_.push_back(this);
  ++stop_->reached_;
}

RunStop::Scope::~Scope() {
  if (stop_ == nullptr || programs_.empty()) return;
  const std::lock_guard lock(stop_->mutex_);
  std::erase(stop_->scopes_, this);
  --stop_->reached_;
}

}  // namespace npu
