// SPDX-License-Identifier: Apache-2.0
// The operation behind npu-plan: what find_plan takes and leaves, in files. The cost is that of
// these and of find_plan.
#include "gnn/make_plan.hpp"

#include <memory>
#include <string>

#include "gnn/graph/binary_graph.hpp"
#include "gnn/graph/partition_file.hpp"
#include "gnn/plan/assemble_plan.hpp"
#include "gnn/ranks/plan_together.hpp"
#include "npu/support/file_io.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {

PlanResult make_plan(const MakePlanOptions& options, Diagnostics& diagnostics) {
  std::unique_ptr<PlanInput> input;
  try {
    input = plans_together(options) ? read_together(options, diagnostics)
                                    : read_plan_input(options, diagnostics);
  } catch (const FailedElsewhere&) {
  }
  if (input == nullptr) {
    PlanResult silent;
    silent.speaks = false;
    return silent;
  }
  PlanResult plan = find_plan(*input, options, diagnostics);
  if (!options.csr_file.empty()) {
    const PhaseTimes::Scope phase(plan.times, "write");
    write_binary_graph(options.csr_file, *input->graph);
  }
  if (const std::string path = partition_path(options); !plan.part_of.empty()) {
    if (path.empty()) {
      diagnostics.note({}, "the partition is not written: give -o FILE or --partition-file FILE");
    } else {
      const PhaseTimes::Scope phase(plan.times, "write");
      write_file_atomically(path, partition_text(plan.part_of));
    }
  }
  return plan;
}

}  // namespace npu::gnn
