// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "conformance/check_backend.hpp"
#include "tool.hpp"

namespace npu::cli {

/// The options of npu-run that are about backends and need no model.
struct BackendOptions {
  CheckBackendOptions check;
  bool list = false;
  int case_seconds = 0;  ///< 0: the default limit of a case

  bool wanted() const { return list || !check.backend.empty(); }
};

/// --list-backends, --check-backend, --quick, --case, --random-nodes and --case-limit.
void add_backend_options(Tool& tool, BackendOptions& options);

/// Lists or checks, and writes the document.
ExitStatus run_backend_options(Tool& tool, const BackendOptions& options);

}  // namespace npu::cli
