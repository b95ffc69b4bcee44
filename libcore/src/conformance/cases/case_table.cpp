// SPDX-License-Identifier: Apache-2.0
// The cases of npu-backend(3), in its order; 22 is free.
#include "conformance/cases/cases.hpp"

namespace npu::conformance {

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = {
      {1, "entry and table", "", check_entry},
      {2, "sizes of structs", "", check_struct_sizes},
      {3, "facts of backend and devices", "", check_infos},
      {4, "open and close", "", check_opening},
      {5, "options", "", check_options},
      {6, "values of ops", "", check_ops},
      {7, "refusals", "", check_refusals},
      {8, "malformed sub-IRs", "", check_malformed_sub_irs},
      {9, "compile twice", "", check_same_blob, "the same arguments compile to other bytes"},
      {10, "damaged blobs", "", check_damaged_blobs},
      {11, "outputs and inputs", "", check_outputs},
      {12, "repeated runs", "", check_repeated_runs},
      {13, "wrong buffers", "", check_wrong_buffers},
      {14, "failing calls", "", check_failing_calls},
      {15, "orders of freeing", "", check_freeing},
      {16, "surroundings", "", check_surroundings},
      {17, "threads", "", check_threads},
      {18, "memory limit", "memory.limit", check_memory_limit},
      {19, "memory reports", "", check_memory_reports},
      {20, "mapping", "", check_mapping},
      {21, "wrapping", "wrap.host", check_wrapping},
      {23, "copies", "copy", check_copies},
      {24, "queues and events", "queue", check_queues},
      {25, "progress and cancel", "cancel", check_progress},
      {26, "entries", "entries", check_entries},
      {27, "aliases", "alias", check_aliases},
      {28, "shared scratch", "scratch", check_scratch},
      {29, "profile", "", check_profile},
      {30, "capability query", "check", check_query, "check gives another answer"},
      {31, "compile without the device", "offline", check_offline},
      {32, "device lost", "test.lose", check_lost_device},
      {33, "blob report and check", "", check_blob_questions},
      {34, "shared weights", "", check_shared_weights},
      {35, "cancel and deadline of a run", "", check_run_cancel},
      {36, "intermediate results", "taps", check_taps},
      {37, "layouts", "layouts", check_layouts},
      {38, "clock", "", check_clock},
      {39, "estimates", "check", check_costs}};
  return cases;
}

}  // namespace npu::conformance
