// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "npu/cost/profile_table.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// What npu-profile can be asked for.
struct ProfileGnnOptions {
  std::string model;
  std::string weights;  ///< empty: the file that the model names
  std::string target = "host";
  std::vector<std::string> devices;  ///< NAME or NAME=BACKEND; empty: those of the target
  std::vector<std::int64_t> nodes{1000, 5000, 20000, 100000};
  std::vector<double> degrees{2, 10, 40};
  std::int32_t runs = 7;
  std::int32_t warm_up = 1;
  std::int32_t threads = 0;
  std::int64_t max_bytes = std::int64_t{2} << 30;  ///< points whose tensors take more are left out
  std::string resume;  ///< file with a table to go on with, if it exists
};

struct ProfileProgress {
  std::int32_t done = 0;
  std::int32_t total = 0;
  double elapsed_s = 0;
  double remaining_s = 0;
  std::string what;
};

/// Measures every block of every layer on every device that runs it. `progress` is told of each
/// point, with the table so far; it returns false to stop, and the table so far is the result.
ProfileTable profile_gnn(
    const ProfileGnnOptions& options,
    const std::function<bool(const ProfileProgress&, const ProfileTable&)>& progress,
    Diagnostics& diagnostics);

/// Tables for people.
std::string format_profile_report(const ProfileTable& table);

/// What times depend on besides the model: processor, cores, memory, threads.
Json host_fingerprint(std::int32_t threads);

}  // namespace npu
