// SPDX-License-Identifier: Apache-2.0
// Runs a bundle with a template at the sizes of its inputs: the entry is chosen by their shapes,
// they are padded to what it was compiled for, and its outputs are cut. The template, bound to the
// valid sizes, says what all of them should be, and is what --verify runs. O(document + bytes).
#include "runtime/entries/sized_request.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ir/bind_sizes.hpp"
#include "npu/tensor/safetensors.hpp"
#include "ops/check_template.hpp"
#include "runtime/entries/choose_entry.hpp"
#include "runtime/entries/pad_rows.hpp"
#include "runtime/run_inputs.hpp"
#include "runtime/session/step_tensors.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"
#include "tensor/npy.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {

std::vector<std::string> template_inputs(const Template& model) {
  std::vector<std::string> names;
  const Json* inputs = member_list(model.document(), "graph_inputs");
  for (std::size_t i = 0; inputs != nullptr && i < inputs->size(); ++i) {
    const std::string* name =
        (*inputs)[i].is_object() ? member_text((*inputs)[i], "name") : nullptr;
    names.push_back(name != nullptr ? *name : std::string());
  }
  return names;
}

std::vector<std::pair<std::string, Shape>> shapes_in(const std::vector<InputFile>& files,
                                                     const Template& model) {
  const std::vector<std::string> names = template_inputs(model);
  std::vector<std::pair<std::string, Shape>> shapes;
  const auto add = [&](const std::optional<std::string>& name, const Shape& shape) {
    if (name) shapes.emplace_back(*name, shape);
    if (!name && names.size() == 1) shapes.emplace_back(names.front(), shape);
  };
  for (const InputFile& file : files) {
    if (file.path.ends_with(".npy")) {
      add(file.input, map_npy(file.path).shape());
    } else if (file.path.ends_with(".pb")) {
      std::string name;
      const Shape shape = read_onnx_tensor(file.path, &name).shape();
      const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
      add(file.input ? file.input : is_known ? std::optional(name) : std::nullopt, shape);
    } else {
      const SafetensorsFile tensors(file.path);
      for (const SafetensorsEntry& entry : tensors.entries()) {
        if (!file.input || entry.name == *file.input) add(entry.name, entry.shape);
      }
    }
  }
  return shapes;
}

SizedRequest read_request(const Bundle& bundle, const RunModelOptions& options,
                          Diagnostics& diagnostics) {
  SizedRequest request;
  const std::string file = bundle.name() + " (template)";
  const Template model =
      Template::read(parse_json(bundle.template_document(), file), bundle.name(), diagnostics);
  if (diagnostics.has_errors()) return request;
  check_template(model, diagnostics);
  if (diagnostics.has_errors()) return request;
  const AskedSizes asked = asked_sizes(model, shapes_in(options.inputs, model), options.sizes);
  ChosenEntry chosen = choose_entry(bundle.entries(), model, asked);
  const BundleEntry& entry = bundle.entries()[chosen.index];
  request.entry = chosen.index;
  request.entry_name = entry.name;
  request.valid = std::move(chosen.valid);
  request.is_exact = request.valid == entry.bound;
  request.exact = bind_sizes(model, request.valid, diagnostics);
  if (diagnostics.has_errors()) return request;
  request.inputs = gather_inputs(request.exact, options.inputs, options.random_inputs, diagnostics,
                                 options.steps);
  return request;
}

std::vector<Tensor> entry_inputs(const Graph& graph, SizedRequest& request) {
  if (!request.is_exact && graph.npu_member("padding") == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "entry '" + printable_text(request.entry_name) +
                    "' is not proved for padding, and the inputs have " +
                    bindings_text(request.valid) + ": give inputs of the entry's sizes",
                {.file = graph.file});
  }
  if (!request.is_exact) check_proved(graph, request.valid);
  std::vector<Tensor> inputs;
  std::vector<Shape> valid;
  std::vector<Shape> capacity;
  const std::set<TensorId> states = state_inputs(graph);
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& info = graph.tensor(id);
    if (states.contains(id)) {
      inputs.emplace_back();
      continue;
    }
    const auto& exact = request.exact.graph_inputs();
    const auto found = std::find_if(exact.begin(), exact.end(), [&](TensorId other) {
      return request.exact.tensor(other).name == info.name;
    });
    if (found != exact.end()) {
      const Tensor& given = request.inputs[static_cast<std::size_t>(found - exact.begin())];
      if (given.dtype() != info.dtype) {
        throw Error(ErrorCode::kParse, "input '" + info.name + "' is not of the template's dtype",
                    {.file = graph.file});
      }
      inputs.push_back(padded_rows(given, info.shape));
      valid.push_back(given.shape());
      capacity.push_back(info.shape);
      continue;
    }
    auto size = valid_size(info, request.valid);
    if (!size) {
      throw Error(ErrorCode::kParse, "input '" + info.name + "' is none of the template's",
                  {.file = graph.file});
    }
    inputs.push_back(*std::move(size));
  }
  request.padded_share = padded_share(valid, capacity);
  return inputs;
}

void cut_outputs(const SizedRequest& request, const std::vector<std::string>& names,
                 std::vector<Tensor>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const TensorId id = request.exact.find_tensor(names[i]);
    if (id.valid()) outputs[i] = first_rows(outputs[i], request.exact.tensor(id).shape);
  }
}

}  // namespace npu
