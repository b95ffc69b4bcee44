// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/compile/compile_report.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"
#include "npu/target/select_devices.hpp"
#include "npu/target/target.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The options of npu-compile(1).
struct CompileModelOptions {
  DeviceChoice where;                 ///< for documents without devices and partitions
  WeightSource weights;               ///< an empty file means `npu.weights_file`
  std::vector<std::string> load_ops;  ///< shared objects of custom ops, see npu/custom_op.hpp
  bool promote = false;  ///< promote operands of different dtypes rather than refuse them
  CompileOptions compile;
  CacheOptions cache;
  /// With precision bf16 or f16: also compile for f32, run both on random inputs and compare.
  bool measure_precision = false;
};

struct CompileModelResult {
  CompiledModel model;
  BundleContent content;
  Target target;                ///< that it was compiled for
  std::vector<Tensor> weights;  ///< by TensorId, with what was folded
  CompileReport report;
};

/// Compiles a document to the content of a bundle. A document that is tagged only is partitioned;
/// one that is not tagged is placed by cost, and a note says how. `graph` is left with the plan
/// that was compiled. Collects faults of the document's weights in `diagnostics`, and warnings for
/// nodes that backends refused; the result is meaningful only if there is no error.
CompileModelResult compile_model(Graph& graph, const CompileModelOptions& options,
                                 Diagnostics& diagnostics);

/// The largest relative_error of any floating-point output.
double worst_relative_error(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected);

}  // namespace npu
