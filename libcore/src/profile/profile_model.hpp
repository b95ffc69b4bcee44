// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cost/node_table.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "npu/support/progress.hpp"
#include "quant/tensor_ranges.hpp"

namespace npu {

/// The options of npu-profile for an ordinary model.
struct ProfileModelOptions {
  std::string target;    ///< for documents without `npu.target`; empty: "host"
  WeightSource weights;  ///< an empty file means `npu.weights_file`
  std::string precision = "f32";
  std::int32_t threads = 0;
  std::int32_t runs = 20;  ///< timed runs of each placement
  std::int32_t refinements =
      4;  ///< placements found with the table itself that are measured as well, at most
  /// Only the placement in which the target's first device has all nodes that it runs.
  bool only_first_device = false;
  /// The model is measured in int8 as well, with scales from these.
  std::optional<TensorRanges> ranges{};
};

/// Measures a model on the devices of its target: whole placements are run, and every kernel's time
/// is charged to the nodes that it computes. First each device is given all nodes that it runs;
/// then the placement that is best by the times so far is measured, until that is one which has
/// been measured. With ranges the model is quantized as npu-align --quantize int8 does it and
/// measured on each device, and so are conversions. `progress` is called for each round of runs; if
/// it returns false, Error kIo is thrown. Collects faults of weights in `diagnostics`; the result
/// is meaningful only if there are none. Throws Error kUnsupported if a device has no backend, or a
/// backend is missing.
NodeTable profile_model(const Graph& graph, const ProfileModelOptions& options,
                        const ProgressCallback& progress, Diagnostics& diagnostics);

/// Tables for people.
std::string format_node_table(const Graph& graph, const NodeTable& table);

}  // namespace npu
