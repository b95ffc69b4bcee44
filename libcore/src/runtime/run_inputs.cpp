// SPDX-License-Identifier: Apache-2.0
// Reads the inputs of a run from .npy and safetensors files or makes them from a seed, and writes
// its outputs. Nothing is converted: a tensor whose dtype or shape differs from the graph's is
// refused, and all faults of all files are reported in one go. What lies in a file where devices
// cannot use it in place is copied here, once for all runs. O(bytes).
#include "runtime/run_inputs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>

#include "runtime/random_tensor.hpp"
#include "runtime/session/step_tensors.hpp"
#include "tensor/npy.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {
namespace {

constexpr std::uintptr_t kAlignment = 64;  // of memory that CPU backends wrap, and of tensors

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

std::string input_names(const Graph& graph) {
  std::string names;
  for (const TensorId id : graph.graph_inputs()) {
    names += (names.empty() ? "'" : ", '") + graph.tensor(id).name + "'";
  }
  return names.empty() ? "none" : names;
}

/// The tensor where devices can use it; in a file it may lie anywhere.
Tensor in_place(const Tensor& tensor) {
  if (reinterpret_cast<std::uintptr_t>(tensor.data()) % kAlignment == 0) return tensor;
  Tensor aligned(tensor.dtype(), tensor.shape());
  if (tensor.bytes() != 0) std::memcpy(aligned.mutable_data(), tensor.data(), tensor.bytes());
  return aligned;
}

TensorId find_input(const Graph& graph, std::string_view name) {
  const TensorId id = graph.find_tensor(name);
  return id.valid() && graph.tensor(id).kind == TensorKind::kGraphInput ? id : TensorId{};
}

/// Collects the tensors; an input whose file is refused still counts as given, so that one fault
/// gives one message.
class InputGatherer {
 public:
  InputGatherer(const Graph& graph, Diagnostics& diagnostics, std::optional<std::int64_t> steps)
      : graph_(graph),
        diagnostics_(diagnostics),
        steps_(steps),
        states_(state_inputs(graph)),
        inputs_(graph.graph_inputs().size()),
        given_(inputs_.size(), 0) {}

  void read(const InputFile& file) {
    if (file.path.ends_with(".npy")) {
      read_npy_file(file);
    } else if (file.path.ends_with(".pb")) {
      read_onnx_file(file);
    } else {
      read_safetensors(file.path);
    }
  }

  std::vector<Tensor> finish(std::optional<std::uint64_t> seed) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const TensorId id = graph_.graph_inputs()[i];
      if (given_[i] != 0 || states_.contains(id)) continue;
      if (seed && steps_) {
        OutputStack stack(*steps_);
        for (std::int64_t step = 0; step < *steps_; ++step) {
          stack.add({random_input(graph_, id, *seed + static_cast<std::uint64_t>(step))});
        }
        inputs_[i] = stack.take().front();
      } else if (seed) {
        inputs_[i] = random_input(graph_, id, *seed);
      } else {
        diagnostics_.error({.file = graph_.file}, "input '" + graph_.tensor(id).name +
                                                      "' has no data: give --inputs FILE or "
                                                      "--random-inputs SEED");
      }
    }
    return std::move(inputs_);
  }

 private:
  void read_npy_file(const InputFile& file) {
    TensorId id;
    if (file.input) {
      id = find_input(graph_, *file.input);
    } else if (graph_.graph_inputs().size() == 1) {
      id = graph_.graph_inputs().front();
    }
    if (!id.valid()) {
      diagnostics_.error({}, "--inputs " + (file.input ? *file.input + "=" : "") + file.path +
                                 ": expected NAME=FILE.npy with one of the graph's inputs: " +
                                 input_names(graph_));
      return;
    }
    place(id, read_npy(file.path, &graph_.tensor(id).dtype), file.path);
  }

  void read_onnx_file(const InputFile& file) {
    std::string name;
    const Tensor tensor = read_onnx_tensor(file.path, &name);
    if (file.input) name = *file.input;
    TensorId id = find_input(graph_, name);
    if (!id.valid() && !file.input && graph_.graph_inputs().size() == 1) {
      id = graph_.graph_inputs().front();
    }
    if (id.valid()) return place(id, tensor, file.path);
    diagnostics_.error({}, "--inputs " + file.path + ": '" + name +
                               "' is none of the graph's inputs: " + input_names(graph_) +
                               "; say which as NAME=FILE.pb");
  }

  void read_safetensors(const std::string& path) {
    const SafetensorsFile file(path);
    for (const SafetensorsEntry& entry : file.entries()) {
      const TensorId id = find_input(graph_, entry.name);
      if (id.valid()) {
        place(id, file.tensor(entry), path);
      } else {
        diagnostics_.warning({.file = path}, "tensor '" + entry.name +
                                                 "' is no input of the graph (" +
                                                 input_names(graph_) + "); ignored");
      }
    }
  }

  void place(TensorId id, const Tensor& tensor, const std::string& file) {
    const TensorInfo& info = graph_.tensor(id);
    Shape stacked = info.shape;
    stacked.insert(stacked.begin(), steps_.value_or(0));
    const bool has_shape = tensor.shape() == info.shape || (steps_ && tensor.shape() == stacked);
    const bool is_state = states_.contains(id);
    const bool fits = tensor.dtype() == info.dtype && has_shape && !is_state;
    if (is_state) {
      diagnostics_.error({.file = file},
                         "input '" + info.name + "' is a state; give its value with --state-in");
    } else if (!fits) {
      diagnostics_.error({.file = file}, "input '" + info.name + "' is " +
                                             type_text(tensor.dtype(), tensor.shape()) +
                                             ", the graph says " +
                                             type_text(info.dtype, info.shape) +
                                             (steps_ ? ", or " + shape_text(stacked) : ""));
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (graph_.graph_inputs()[i] != id) continue;
      given_[i] = 1;
      if (fits) inputs_[i] = in_place(tensor);
    }
  }

  const Graph& graph_;
  Diagnostics& diagnostics_;
  const std::optional<std::int64_t> steps_;
  const std::set<TensorId> states_;
  std::vector<Tensor> inputs_;
  std::vector<char> given_;
};

}  // namespace

std::vector<Tensor> gather_inputs(const Graph& graph, const std::vector<InputFile>& files,
                                  std::optional<std::uint64_t> seed, Diagnostics& diagnostics,
                                  std::optional<std::int64_t> steps) {
  InputGatherer gatherer(graph, diagnostics, steps);
  for (const InputFile& file : files) gatherer.read(file);
  return gatherer.finish(seed);
}

void write_outputs(const std::vector<std::string>& names, const std::vector<Tensor>& outputs,
                   const std::string& path) {
  if (path.ends_with(".npy")) {
    write_npy(path, outputs.front());
    return;
  }
  if (path.ends_with(".pb")) {
    write_onnx_tensor(path, names.front(), outputs.front());
    return;
  }
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = names[i];
    const bool is_repeated = std::any_of(named.begin(), named.end(),
                                         [&](const auto& entry) { return entry.first == name; });
    if (!is_repeated) named.emplace_back(name, outputs[i]);
  }
  write_safetensors(path, named);
}

}  // namespace npu
