// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

namespace npu {

/// The first that a forked child does: it ends with its parent, and signals do what they do in a
/// program that has just been started.
inline void start_as_child(pid_t parent) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  for (int number = 1; number < SIGRTMIN; ++number) std::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace npu
