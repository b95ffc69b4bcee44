// SPDX-License-Identifier: Apache-2.0
// Points descriptor 1 at /dev/null while the first to the last of them live. The stream is flushed
// at both ends, so that each text goes where it was meant to. Six system calls.
#include "support/quiet_stdout.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

#include "support/descriptor.hpp"

namespace npu {
namespace {

std::mutex quiet_mutex;
int quiet_count = 0;
Descriptor stdout_before;

}  // namespace

QuietStdout::QuietStdout() {
  const std::lock_guard lock(quiet_mutex);
  if (quiet_count++ > 0) return;
  const Descriptor null(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (null.get() < 0) return;
  std::fflush(stdout);
  stdout_before = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (stdout_before.get() >= 0) ::dup2(null.get(), STDOUT_FILENO);
}

QuietStdout::~QuietStdout() {
  const std::lock_guard lock(quiet_mutex);
  if (--quiet_count > 0 || stdout_before.get() < 0) return;
  std::fflush(stdout);
  ::dup2(stdout_before.get(), STDOUT_FILENO);
  stdout_before = Descriptor();
}

}  // namespace npu
