// SPDX-License-Identifier: Apache-2.0
// Reads samples for calibration one by one from files that are mapped. A sample is copied and its
// pages are given back at once, so that memory does not grow with the number of samples. O(bytes).
#include "profile/sample_files.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "ir/states_section.hpp"
#include "npu/support/ids.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/signal_hooks.hpp"
#include "tensor/npy.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {
namespace {

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

/// How many samples of an input a tensor holds; 0 if it does not fit.
std::int64_t samples_in(const Shape& data, const Shape& input) {
  if (data == input) return 1;
  if (data.empty()) return 0;
  if (Shape(data.begin() + 1, data.end()) == input) return data.front();
  const bool fits = data.size() == input.size() && input.front() > 0 &&
                    data.front() % input.front() == 0 &&
                    std::equal(data.begin() + 1, data.end(), input.begin() + 1);
  return fits ? data.front() / input.front() : 0;
}

std::size_t place_of(const Graph& graph, TensorId input) {
  const std::vector<TensorId>& inputs = graph.graph_inputs();
  return static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), input) - inputs.begin());
}

/// Tells the system that whole pages of a mapped file are not needed for now; they are read again
/// when somebody looks. Memory that is not mapped from a file must not come here.
void give_back(const std::byte* begin, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const std::size_t pages = (reinterpret_cast<std::uintptr_t>(begin) + size - from) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the start of the page
  if (pages > 0) ::madvise(reinterpret_cast<void*>(from), pages, MADV_DONTNEED);
}

}  // namespace

SampleFiles::SampleFiles(const Graph& graph, const std::vector<InputFile>& files,
                         const std::vector<NamedTensor>& states, Diagnostics& diagnostics)
    : chunks_(graph.graph_inputs().size()),
      refused_(chunks_.size(), 0),
      is_state_(chunks_.size(), 0),
      is_given_(chunks_.size(), 0) {
  for (const TensorId id : graph.graph_inputs()) {
    dtypes_.push_back(graph.tensor(id).dtype);
    shapes_.push_back(graph.tensor(id).shape);
  }
  for (const InputFile& file : files) add_file(graph, file, diagnostics);
  add_states(graph, states, diagnostics);
  count_samples(graph, diagnostics);
}

void SampleFiles::add_file(const Graph& graph, const InputFile& file, Diagnostics& diagnostics) {
  const bool is_npy = file.path.ends_with(".npy");
  if (is_npy || file.path.ends_with(".pb")) {
    std::string name = file.input.value_or("");
    Tensor data = is_npy ? Tensor() : read_onnx_tensor(file.path, file.input ? nullptr : &name);
    TensorId id = graph.find_tensor(name);
    if (!file.input && !id.valid() && chunks_.size() == 1) id = graph.graph_inputs().front();
    if (!id.valid() || graph.tensor(id).kind != TensorKind::kGraphInput) {
      diagnostics.error({}, "--calibrate " + file.path + ": '" + name +
                                "' is no input of the model; say which as NAME=FILE");
      return;
    }
    if (is_npy) data = map_npy(file.path, &graph.tensor(id).dtype);
    return add(graph, id, std::move(data), file.path, diagnostics);
  }
  const SafetensorsFile tensors(file.path);
  for (const SafetensorsEntry& entry : tensors.entries()) {
    if (file.input && entry.name != *file.input) continue;
    const TensorId id = graph.find_tensor(entry.name);
    if (id.valid() && graph.tensor(id).kind == TensorKind::kGraphInput) {
      add(graph, id, tensors.tensor(entry), file.path, diagnostics);
    } else {
      diagnostics.warning({.file = file.path},
                          "tensor '" + entry.name + "' is no input of the model; ignored");
    }
  }
}

void SampleFiles::add(const Graph& graph, TensorId input, Tensor data, const std::string& file,
                      Diagnostics& diagnostics) {
  const std::size_t place = place_of(graph, input);
  const TensorInfo& info = graph.tensor(input);
  const std::int64_t samples =
      data.dtype() == info.dtype ? samples_in(data.shape(), info.shape) : 0;
  if (samples == 0) {
    refused_[place] = 1;
    diagnostics.error({.file = file}, "input '" + info.name + "' is " +
                                          type_text(data.dtype(), data.shape()) +
                                          ", the model says " + type_text(info.dtype, info.shape) +
                                          ", with an axis of samples in front of it or not");
    return;
  }
  chunks_[place].push_back({std::move(data), samples});
}

void SampleFiles::add_states(const Graph& graph, const std::vector<NamedTensor>& states,
                             Diagnostics& diagnostics) {
  Diagnostics known;  // the reader has told them
  for (const State& state : read_states(graph, known)) {
    if (state.input.empty()) continue;
    const TensorId id = graph.find_tensor(state.input);
    const std::size_t place = place_of(graph, id);
    is_state_[place] = 1;
    if (!chunks_[place].empty()) continue;
    for (const NamedTensor& value : states) {
      if (value.name != state.name) continue;
      is_given_[place] = 1;
      add(graph, id, value.tensor, graph.file, diagnostics);
    }
  }
}

void SampleFiles::count_samples(const Graph& graph, Diagnostics& diagnostics) {
  bool is_first = true;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (refused_[i] != 0 || (is_state_[i] != 0 && chunks_[i].empty())) continue;
    const std::string& name = graph.tensor(graph.graph_inputs()[i]).name;
    std::int64_t count = 0;
    for (const Chunk& chunk : chunks_[i]) count += chunk.samples;
    if (count == 0) {
      diagnostics.error({.file = graph.file},
                        "input '" + name + "' has no samples: --calibrate FILE has to hold it");
    } else if (is_first) {
      count_ = count;
      is_first = false;
    } else if (count != count_ && is_given_[i] != 0) {
      diagnostics.error({.file = graph.file},
                        std::to_string(count_) + " samples, but " + std::to_string(count) +
                            " of the document that writes the state which input '" + name +
                            "' is: --calibrate FILE has to hold as many for both");
      return;
    } else if (count != count_) {
      diagnostics.error({.file = graph.file}, "input '" + name + "' has " + std::to_string(count) +
                                                  " samples, others have " +
                                                  std::to_string(count_));
    }
  }
  if (is_first) count_ = 1;
}

std::vector<Tensor> SampleFiles::read(std::int64_t sample) const {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    if (chunks_[i].empty()) {  // a state
      inputs.emplace_back(dtypes_[i], shapes_[i]);
      continue;
    }
    std::int64_t rest = sample;
    std::size_t c = 0;
    while (rest >= chunks_[i][c].samples) rest -= chunks_[i][c++].samples;
    const Chunk& chunk = chunks_[i][c];
    Tensor input(dtypes_[i], shapes_[i]);
    const std::byte* from = chunk.data.data() + static_cast<std::size_t>(rest) * input.bytes();
    if (input.bytes() > 0) std::memcpy(input.mutable_data(), from, input.bytes());
    if (mapped_file_at(from) != nullptr) give_back(from, input.bytes());
    inputs.push_back(std::move(input));
  }
  return inputs;
}

}  // namespace npu
