// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "conformance/harness/harness.hpp"

namespace npu::conformance {

/// A case of npu-backend(3). `feature` is what the backend has to list for it, empty for the cases
/// that are for every backend. What a case has noted (Findings::note) has to be the same in another
/// process; `if_other` says what is wrong otherwise.
struct Case {
  int number = 0;
  std::string_view title;
  std::string_view feature;
  void (*check)(const Harness&) = nullptr;
  std::string_view if_other = {};
};
const std::vector<Case>& all_cases();

// Entry, structs, infos, errors, surroundings.
void check_entry(const Harness& harness);
void check_struct_sizes(const Harness& harness);
void check_infos(const Harness& harness);
void check_failing_calls(const Harness& harness);
void check_surroundings(const Harness& harness);
// Devices.
void check_opening(const Harness& harness);
void check_options(const Harness& harness);
void check_threads(const Harness& harness);
// Compile and blobs.
void check_refusals(const Harness& harness);
void check_malformed_sub_irs(const Harness& harness);
void check_same_blob(const Harness& harness);
void check_damaged_blobs(const Harness& harness);
// Ops against definitions.
void check_ops(const Harness& harness);
// Runs.
void check_outputs(const Harness& harness);
void check_repeated_runs(const Harness& harness);
void check_wrong_buffers(const Harness& harness);
void check_freeing(const Harness& harness);
// What not every backend has.
void check_mapping(const Harness& harness);
void check_wrapping(const Harness& harness);
void check_profile(const Harness& harness);
void check_clock(const Harness& harness);
void check_blob_questions(const Harness& harness);
void check_shared_weights(const Harness& harness);
// Queues.
void check_queues(const Harness& harness);
void check_copies(const Harness& harness);
// Memory, progress.
void check_memory_limit(const Harness& harness);
void check_memory_reports(const Harness& harness);
void check_progress(const Harness& harness);
void check_run_cancel(const Harness& harness);
void check_lost_device(const Harness& harness);
// Intermediate results.
void check_taps(const Harness& harness);
// What programs share, and devices.
void check_entries(const Harness& harness);
void check_aliases(const Harness& harness);
void check_scratch(const Harness& harness);
void check_offline(const Harness& harness);
// Questions about nodes.
void check_query(const Harness& harness);
void check_layouts(const Harness& harness);
void check_costs(const Harness& harness);

}  // namespace npu::conformance
