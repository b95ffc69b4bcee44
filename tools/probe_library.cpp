// SPDX-License-Identifier: Apache-2.0
// probe-library -- loads a library in a process of its own, to see what comes of it.
//
// Started by the programs (device/probe.hpp), as KIND PARENT FILE [NAME]: what the library is to
// be, the process that waits, the file, and the name of a backend or frontend. It answers one byte
// through descriptor 3 once it has come back from loading, with an error, too, which the parent
// meets again. How it ends otherwise tells what the library did. It prints nothing.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>

#include "device/backend.hpp"
#include "device/custom_op_library.hpp"
#include "device/probe.hpp"
#include "frontend/frontend.hpp"
#include "support/child_start.hpp"

namespace {

void load(npu::LibraryKind kind, const std::string& file, const std::string& name) {
  switch (kind) {
    case npu::LibraryKind::kAny:
      static_cast<void>(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
      break;
    case npu::LibraryKind::kBackend:
      npu::Backend::look_at(file, name);
      break;
    case npu::LibraryKind::kFrontend:
      npu::Frontend::look_at(file, name);
      break;
    case npu::LibraryKind::kCustomOps:
      npu::look_at_custom_ops(file);
      break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kUsage = 2;
  if (argc < 4) return kUsage;
  npu::start_as_child(static_cast<pid_t>(std::atol(argv[2])));
  try {
    load(npu::library_kind(argv[1]), argv[3], argc > 4 ? argv[4] : "");
  } catch (...) {  // the parent meets the same fault and reports it
  }
  const ssize_t written = ::write(npu::kProbeAnswer, &npu::kProbeDone, 1);
  ::_exit(written == 1 ? EXIT_SUCCESS : EXIT_FAILURE);  // no destructor of the library runs
}
