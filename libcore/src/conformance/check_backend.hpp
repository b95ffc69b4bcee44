// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "npu/support/json.hpp"

namespace npu {

struct CheckBackendOptions {
  std::string backend;             ///< NAME of npu_backend_NAME.so, found as Backend::load finds it
  bool quick = false;              ///< fewer repetitions and random graphs
  std::vector<int> cases;          ///< numbers of those to run; empty: all
  std::uint64_t random_nodes = 0;  ///< that the case of ops draws; 0: what fits into its time
  std::chrono::seconds limit{30};  ///< without progress, for a case in a process of its own
};

enum class CaseResult { kPass, kFail, kNotApplicable };

/// What one case of npu-backend(3) found.
struct CaseOutcome {
  int number = 0;
  std::string title;
  CaseResult result = CaseResult::kPass;
  std::int64_t checks = 0;            ///< that were made
  std::vector<std::string> findings;  ///< of a case that fails, one line each
  std::string reason;                 ///< why the case is not applicable
  std::string digest;                 ///< of what is the same in another process; may be empty
};

struct CheckedDevice {
  std::string id;
  std::string fingerprint;
};

struct BackendCheck {
  std::string backend;
  std::string version;
  std::vector<std::string> features;
  std::vector<CheckedDevice> devices;
  std::vector<CaseOutcome> cases;

  bool passed() const noexcept;
};

/// Runs the conformance cases against a backend. With one case in `options.cases` it runs in this
/// process, which may die of it, as a debugger wants it; otherwise each case runs in a process of
/// its own, which is this program with the arguments `child_arguments`, the option --case and its
/// number; what has to be the same in another process is asked for in a second one. A process that
/// makes no check and reports no progress for as long as the limit is ended. Output of a backend to
/// stdout and stderr is caught and counts against it. Throws Error if the backend is not found.
BackendCheck check_backend(const CheckBackendOptions& options,
                           const std::vector<std::string>& child_arguments);

Json backend_check_json(const BackendCheck& check);
std::string format_backend_check(const BackendCheck& check);

}  // namespace npu
