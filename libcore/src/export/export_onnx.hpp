// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "npu/ir/graph.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/error.hpp"

namespace npu {

struct ExportOnnxOptions {
  std::string output;    ///< the file to write
  std::string producer;  ///< what it states as its producer
  std::string target;    ///< of a document without `npu.target`; empty: "host"
  WeightSource weights;  ///< empty: the file that the document names
  /// A model of more bytes, which protobuf's messages of 2 GiB do not hold, has its large constants
  /// in a second file, `output`.data.
  std::uint64_t most_bytes = (std::uint64_t{1} << 31) - 1;
};

/// Writes a document as a model of ONNX, with quantize and dequantize nodes as QuantizeLinear and
/// DequantizeLinear. Nodes that depend on constants alone are computed, but for the dequantizing of
/// weights, so that the file holds these as int8. Adds an error for each node that ONNX has no form
/// for, and then writes nothing.
void export_onnx(const Graph& graph, const ExportOnnxOptions& options, Diagnostics& diagnostics);

}  // namespace npu
