// SPDX-License-Identifier: Apache-2.0
// Both streams go to a file in memory, which no backend can fill up as it could a pipe.
#include "conformance/harness/captured_output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

namespace npu::conformance {

CapturedOutput::CapturedOutput() : caught_(::memfd_create("output", MFD_CLOEXEC)) {
  std::fflush(nullptr);
  if (caught_.get() < 0) return;
  out_ = Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  err_ = Descriptor(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
  if (out_.get() >= 0) ::dup2(caught_.get(), STDOUT_FILENO);
  if (err_.get() >= 0) ::dup2(caught_.get(), STDERR_FILENO);
}

CapturedOutput::~CapturedOutput() {
  std::fflush(nullptr);
  if (out_.get() >= 0) ::dup2(out_.get(), STDOUT_FILENO);
  if (err_.get() >= 0) ::dup2(err_.get(), STDERR_FILENO);
}

std::string CapturedOutput::text() const {
  std::fflush(nullptr);
  char bytes[300];
  const ssize_t size = caught_.get() < 0 ? 0 : ::pread(caught_.get(), bytes, sizeof bytes, 0);
  return {bytes, size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace npu::conformance
