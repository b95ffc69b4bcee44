// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/size_expression.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// What a run asks of a bundle with a template.
struct SizedRequest {
  std::size_t entry = 0;  ///< that it takes
  std::string entry_name;
  SizeBindings valid;
  bool is_exact = false;       ///< they are those of the entry
  double padded_share = 0;     ///< of the entry's inputs
  Graph exact;                 ///< the model at the valid sizes
  std::vector<Tensor> inputs;  ///< of `exact`
};

/// The names of a template's inputs; empty for one that has none.
std::vector<std::string> template_inputs(const Template& model);

/// The shapes of a template's inputs in files of tensors, as far as files name them; of safetensors
/// with a name that tensor's alone. What is wrong
/// with a file is told when its data is read; throws Error for one that cannot be read at all.
std::vector<std::pair<std::string, Shape>> shapes_in(const std::vector<InputFile>& files,
                                                     const Template& model);

/// Reads the inputs, chooses the entry and binds the template to their sizes. Collects faults of
/// template and inputs; throws what choose_entry and asked_sizes do.
SizedRequest read_request(const Bundle& bundle, const RunModelOptions& options,
                          Diagnostics& diagnostics);

/// The inputs of the entry's graph: those of the request, padded, and the valid sizes where it asks
/// for them. Notes the padded share. Throws Error kUnsupported if the entry is not proved for
/// padding (npu.padding of npu-ir(5)) and the sizes are not its own, kParse for a graph that is not
/// the template's.
std::vector<Tensor> entry_inputs(const Graph& graph, SizedRequest& request);

/// Cuts what a run gave, by name, to its valid rows; results that the exact graph does not have
/// stay.
void cut_outputs(const SizedRequest& request, const std::vector<std::string>& names,
                 std::vector<Tensor>& outputs);

}  // namespace npu
