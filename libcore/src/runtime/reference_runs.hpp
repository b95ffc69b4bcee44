// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/runtime/run_report.hpp"
#include "npu/support/error.hpp"
#include "runtime/compare_outputs.hpp"
#include "runtime/prepared_model.hpp"

namespace npu {

/// What the outputs of a run are compared with, as the options say: those in files, those in full
/// precision, those of another device, and the results of fusion groups.
class ReferenceRuns {
 public:
  /// Loads the weights of what will be compiled anew. Keeps references to all that it is given.
  /// Collects faults in `diagnostics`; it is of use only if there are none.
  ReferenceRuns(const Graph& graph, const PreparedModel& model, const RunModelOptions& options,
                Diagnostics& diagnostics);

  /// Makes the comparisons. `outputs` are those of output_names; `open` are devices that are open.
  void compare(const std::vector<Tensor>& outputs, const OpenDevices& open,
               RunReport& report) const;

 private:
  double precision_error(const std::vector<Tensor>& outputs, const OpenDevices& open) const;
  ComparisonReport verify(const std::vector<Tensor>& outputs, const OpenDevices& open) const;
  GroupReport compare_by_group(const OpenDevices& open) const;

  const Graph& graph_;
  const PreparedModel& model_;
  const RunModelOptions& options_;
  std::vector<std::string> names_;  // of the outputs
  ToleranceOptions tolerance_;
  bool measures_precision_ = false;
  std::vector<Tensor> weights_;  // every weight of the graph, folded results included
  Graph whole_;                  // with nothing folded: another way to the same results
  std::vector<Tensor> whole_weights_;
  Graph exact_;  // the same of a bundle's template at the sizes of the inputs
  std::vector<Tensor> exact_weights_;
};

}  // namespace npu
