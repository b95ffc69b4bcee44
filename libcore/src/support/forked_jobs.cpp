// SPDX-License-Identifier: Apache-2.0
// Forks a child for each job, which shares one mapping with this process: a head that says how it
// ended, then its result. A child leaves with _exit, so that nothing of the parent is flushed or
// destroyed twice. An interrupt from the terminal goes to all processes of the group, so children
// leave it to the parent, which ends them when it stops.
#include "support/forked_jobs.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <thread>
#include <vector>

#include "npu/support/error.hpp"
#include "support/child_start.hpp"

namespace npu {
namespace {

enum class JobEnd : int { kNone, kDone, kError };

// How a job ended, as the child writes it.
struct JobHead {
  JobEnd end = JobEnd::kNone;
  ErrorCode code = ErrorCode::kFailed;
  char message[1008] = {};
};

class ForkedJob {
 public:
  ForkedJob(const ForkedJobs& jobs, std::size_t number)
      : jobs_(jobs), number_(number), bytes_(sizeof(JobHead) + jobs.bytes) {
    memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) return;
    std::fflush(nullptr);  // or the child might write what is left in buffers again
    const pid_t parent = ::getpid();
    child_ = ::fork();
    if (child_ == 0) work(parent);
  }
  ~ForkedJob() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (memory_ != MAP_FAILED) ::munmap(memory_, bytes_);
  }
  ForkedJob(const ForkedJob&) = delete;
  ForkedJob& operator=(const ForkedJob&) = delete;

  std::size_t number() const noexcept { return number_; }

  // Whether the child has ended, or there never was one.
  bool has_ended() {
    if (child_ <= 0) return true;
    const pid_t ended = ::waitpid(child_, nullptr, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR)) return false;
    child_ = -1;
    return true;
  }

  // Hands the result over; false if there is none.
  bool deliver() const {
    if (memory_ == MAP_FAILED) return false;
    const auto* head = static_cast<const JobHead*>(memory_);
    if (head->end == JobEnd::kNone) return false;
    if (head->end == JobEnd::kError) throw Error(head->code, head->message);
    jobs_.done(number_, {static_cast<const std::byte*>(memory_) + sizeof(JobHead), jobs_.bytes});
    return true;
  }

 private:
  [[noreturn]] void work(pid_t parent) {
    start_as_child(parent);
    std::signal(SIGINT, SIG_IGN);
    auto* head = new (memory_) JobHead;
    try {
      jobs_.work(number_, true, {static_cast<std::byte*>(memory_) + sizeof(JobHead), jobs_.bytes});
      head->end = JobEnd::kDone;
    } catch (const Error& error) {
      head->code = error.code();
      std::strncpy(head->message, error.message().c_str(), sizeof head->message - 1);
      head->end = JobEnd::kError;
    } catch (...) {  // the parent tries it again and meets the same fault, if it still is one
    }
    ::_exit(0);
  }

  const ForkedJobs& jobs_;
  std::size_t number_;
  std::size_t bytes_;
  void* memory_ = MAP_FAILED;
  pid_t child_ = -1;
};

void run_here(const ForkedJobs& jobs, std::size_t number) {
  std::vector<std::byte> result(jobs.bytes);
  jobs.work(number, false, result);
  jobs.done(number, result);
  if (jobs.wait) jobs.wait();
}

}  // namespace

void run_forked(const ForkedJobs& jobs) {
  std::vector<std::size_t> here;
  std::list<ForkedJob> running;
  std::size_t next = 0;
  if (jobs.side_by_side < 2 || jobs.count < 2) {
    for (; next < jobs.count; ++next) here.push_back(next);
  }
  while (next < jobs.count || !running.empty()) {
    while (next < jobs.count && running.size() < jobs.side_by_side) {
      running.emplace_back(jobs, next++);
    }
    const auto ended = std::find_if(running.begin(), running.end(),
                                    [](ForkedJob& job) { return job.has_ended(); });
    if (ended == running.end()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } else {
      if (!ended->deliver()) here.push_back(ended->number());
      running.erase(ended);
    }
    if (jobs.wait) jobs.wait();
  }
  for (const std::size_t number : here) run_here(jobs, number);
}

}  // namespace npu
