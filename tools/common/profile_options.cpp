// SPDX-License-Identifier: Apache-2.0
// What npu-profile measures.
#include "profile_options.hpp"

namespace npu::cli {

void add_profile_options(Tool& tool, ProfileGnnOptions& options) {
  CLI::App& app = tool.app();
  app.add_option("--weights", options.weights, "safetensors file [the one that the model names]")
      ->type_name("FILE");
  app.add_option("--target", options.target, "target whose devices are measured")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  app.add_option("--devices", options.devices,
                 "devices of the target, or NAME=BACKEND for one that it lacks [all]")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--nodes", options.nodes, "numbers of nodes to measure at")
      ->type_name("N,...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(in_range(1, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--degrees", options.degrees, "edges per node to measure at")
      ->type_name("X,...")
      ->delimiter(',')
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->check(finite_at_least_zero())
      ->capture_default_str();
  app.add_option("--runs", options.runs, "timed runs of each point")
      ->type_name("N")
      ->check(in_range(1, 100'000))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "threads per device; 0 means all cores")
      ->type_name("N")
      ->check(in_range(0, 1024))
      ->capture_default_str();
  app.add_option("--max-bytes", options.max_bytes, "leave out points whose tensors take more")
      ->type_name("BYTES")
      ->check(in_range(1, INT64_MAX))
      ->capture_default_str();
}

}  // namespace npu::cli
