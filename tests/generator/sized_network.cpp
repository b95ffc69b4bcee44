// SPDX-License-Identifier: Apache-2.0
#include "sized_network.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/unify_sizes.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"
#include "passes/padding/pad_graph.hpp"
#include "runtime/entries/pad_rows.hpp"

namespace npu::test {
namespace {

// Attributes that say how many rows there are.
constexpr std::array<std::string_view, 8> kSizes{"end",   "length", "output_size", "repeats",
                                                 "shape", "size",   "sizes",       "split_sizes"};

Shape resized(Shape shape, std::int64_t from, std::int64_t to) {
  std::replace(shape.begin(), shape.end(), from, to);
  return shape;
}

/// Element by element that of `tensor` at the index, modulo its extents.
Tensor repeated(const Tensor& tensor, const Shape& shape) {
  Tensor result(tensor.dtype(), shape);
  const std::size_t width = dtype_size(tensor.dtype());
  for (std::int64_t i = 0; i < result.element_count(); ++i) {
    std::int64_t rest = i, place = 0, step = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      place += rest % shape[d] % tensor.shape()[d] * step;
      rest /= shape[d];
      step *= tensor.shape()[d];
    }
    std::copy_n(tensor.data() + static_cast<std::size_t>(place) * width, width,
                result.mutable_data() + static_cast<std::size_t>(i) * width);
  }
  return result;
}

void resize(Json& value, std::int64_t from, std::int64_t to) {
  if (value.is_number_integer() && value.get<std::int64_t>() == from) value = to;
  if (!value.is_array()) return;
  for (Json& element : value) resize(element, from, to);
}

std::optional<Template> template_of(const Network& network, const SizeDraw& size) {
  std::vector<SizeSample> samples;
  for (const SizeBindings& at : sizes_to_sample({"S"}, 2, 1)) {
    const auto sample = resized(network, size.capacity, at.at("S"));
    if (!sample) return std::nullopt;
    samples.push_back({at, sample->document(false)});
  }
  SizeSymbol symbol;
  symbol.name = "S";
  symbol.max = SizeExpression(size.capacity);
  Diagnostics faults;
  auto document =
      unify_sizes(samples, SizeSymbols::of({std::move(symbol)}), nullptr, "network", faults);
  if (!document) return std::nullopt;
  Template model = Template::read(std::move(*document), "network", faults);
  if (faults.has_errors()) return std::nullopt;
  return model;
}

Tensor count_of(std::int64_t value) {
  Tensor count(DType::kInt64, {});
  *count.as_mutable<std::int64_t>() = value;
  return count;
}

}  // namespace

SizeDraw draw_size(const Network& network, Random& random) {
  std::set<std::int64_t> extents;
  for (const NetworkTensor& tensor : network.tensors) {
    if (tensor.kind != NetworkTensor::Kind::kInput) continue;
    for (const std::int64_t extent : tensor.values.shape) {
      if (extent > 1) extents.insert(extent);
    }
  }
  if (extents.empty()) return {};
  NodeDraw dice(random, "", DType::kFloat32);
  SizeDraw size;
  size.capacity = *std::next(extents.begin(), dice.pick(0, std::ssize(extents) - 1));
  size.valid = dice.pick(1, size.capacity);
  return size;
}

std::optional<Network> resized(const Network& network, std::int64_t from, std::int64_t to) {
  Network result = network;
  for (NetworkTensor& tensor : result.tensors) {
    if (tensor.kind != NetworkTensor::Kind::kInput) continue;
    const Shape shape = resized(tensor.values.shape, from, to);
    if (shape == tensor.values.shape) continue;
    tensor.data = repeated(tensor.data, shape);
    tensor.values = values_of(tensor.data);
  }
  for (NetworkNode& node : result.nodes) {
    for (const auto& [key, value] : node.attrs.items()) {
      if (std::find(kSizes.begin(), kSizes.end(), key) != kSizes.end()) resize(value, from, to);
    }
  }
  if (!recompute(result)) return std::nullopt;
  return result;
}

std::optional<Run> run_padded(const Network& network, const SizeDraw& size, const Way& way) {
  const std::optional<Network> exact = resized(network, size.capacity, size.valid);
  const std::optional<Template> model = template_of(network, size);
  if (!exact || !model) return std::nullopt;
  Diagnostics faults;
  PaddedGraph padded = pad_graph(*model, {{"S", size.capacity}}, faults);
  if (faults.has_errors()) {
    const std::string& text = faults.entries().front().text;
    throw Error(ErrorCode::kUnsupported,
                "padding: " + text.substr(std::min(text.find(": "), text.size())));
  }
  const std::map<std::string, Tensor> data = exact->data();
  std::vector<Tensor> inputs;
  for (const TensorId id : padded.graph.graph_inputs()) {
    const TensorInfo& input = padded.graph.tensor(id);
    inputs.push_back(input.name.starts_with("npu.n.")
                         ? count_of(size.valid)
                         : padded_rows(data.at(input.name), input.shape));
  }
  Run run = run_graph(std::move(padded.graph), network.data(), inputs, way);
  run.graph = valid_graph(exact->document(false), "network.json");
  run.is_padded = true;
  run.data = data;
  run.inputs = exact->inputs();
  for (std::size_t o = 0; o < run.outputs.size(); ++o) {
    run.outputs[o] =
        first_rows(run.outputs[o], run.graph.tensor(run.graph.graph_outputs()[o]).shape);
  }
  return run;
}

}  // namespace npu::test
