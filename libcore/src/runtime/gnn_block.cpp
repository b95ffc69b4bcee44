// SPDX-License-Identifier: Apache-2.0
// Runs a block of stages on a device.
//
// On a device in host memory every index_add of messages by target is found by structure, and what
// it reads is traced back through aliases, a factor per edge and a gather: that chain becomes one
// segment reduction (csr_kernels.cpp), so gathered rows and messages never exist. A division of the
// sum by the clamped number of edges is taken along as a mean. What remains is cut into programs
// for the backend, between the reductions, in order of need; nodes that nothing needs any more are
// left out. On a static device the whole block is one program over padded tensors: rows beyond the
// real ones are computed and thrown away, and padded edges read a row that exists.
//
// O(nodes of the block) to build; running is the backend's cost plus one copy of what enters and
// leaves it.
#include "npu/runtime/gnn_block.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "gnn_matcher.hpp"
#include "gnn_transform_first.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/runtime/csr_kernels.hpp"
#include "npu/support/host_memory.hpp"
#include "worker_threads.hpp"

namespace npu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The first `rows` rows of a tensor, sharing its bytes.
Tensor first_rows(const Tensor& tensor, std::int64_t rows) {
  if (tensor.shape().empty() || tensor.shape()[0] == rows) return tensor;
  Shape shape = tensor.shape();
  shape[0] = rows;
  const auto owner = std::make_shared<Tensor>(tensor);
  return Tensor(tensor.dtype(), std::move(shape),
                std::shared_ptr<const std::byte>(owner, owner->data()));
}

// A tensor, and the device's buffer with the same bytes where there is one: programs read that in
// place.
struct Placed {
  Tensor tensor;
  std::shared_ptr<DeviceBuffer> buffer;
};

// Memory of the device, to be written from here; the host's own where the device's cannot be.
Placed allocate_on(DeviceInstance& device, DType dtype, const Shape& shape) {
  std::shared_ptr<DeviceBuffer> buffer = device.allocate(dtype, shape);
  const npu_tensor description = buffer->describe();
  if (description.data == nullptr) return {Tensor(dtype, shape), nullptr};
  prefer_huge_pages(const_cast<void*>(description.data), description.bytes);
  return {DeviceBuffer::view(buffer), buffer};
}

// Calls copy(begin, end) for parts of [0, rows), at the same time where it is worth a thread.
template <typename Copy>
void in_parts(std::int64_t rows, std::size_t row_bytes, std::int32_t threads, const Copy& copy) {
  constexpr std::size_t kWorthAThread = std::size_t{4} << 20;
  std::int64_t count = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  count = std::clamp<std::int64_t>(static_cast<std::int64_t>(at(rows) * row_bytes / kWorthAThread),
                                   1, count);
  run_together(at(count), [&](std::size_t part) {
    const auto t = static_cast<std::int64_t>(part);
    copy(rows * t / count, rows * (t + 1) / count);
  });
}

// The first `rows` local rows of an input, padded where there are fewer.
Placed materialized(const GnnInput& input, const GnnWork& work, std::int64_t rows, float padding,
                    const GnnDevice& device) {
  const bool in_place = !input.by_node || work.nodes.empty();
  Shape shape = input.tensor.shape();
  if (in_place && (shape.empty() || shape[0] >= rows)) {
    Tensor tensor = first_rows(input.tensor, rows);
    const bool same = tensor.shape() == shape;
    return {std::move(tensor), same ? input.resident : nullptr};
  }
  // Straight into the device's memory: one copy, with the padding.
  const std::int64_t present = in_place ? shape[0] : std::min<std::int64_t>(rows, work.local);
  const std::size_t bytes = shape[0] > 0 ? input.tensor.bytes() / at(shape[0]) : 0;
  shape[0] = rows;
  Placed result = allocate_on(*device.instance, input.tensor.dtype(), shape);
  std::byte* const target = result.tensor.mutable_data();
  in_parts(present, bytes, device.threads, [&](std::int64_t begin, std::int64_t end) {
    if (in_place) {
      if (end > begin) {
        std::memcpy(target + at(begin) * bytes, input.tensor.data() + at(begin) * bytes,
                    at(end - begin) * bytes);
      }
      return;
    }
    for (std::int64_t r = begin; r < end; ++r) {
      std::memcpy(target + at(r) * bytes, input.tensor.data() + at(work.nodes[at(r)]) * bytes,
                  bytes);
    }
  });
  if (present < rows) {
    if (input.tensor.dtype() == DType::kFloat32) {
      std::fill(result.tensor.as_mutable<float>() + at(present) * bytes / sizeof(float),
                result.tensor.as_mutable<float>() + result.tensor.element_count(), padding);
    } else {
      std::memset(target + at(present) * bytes, 0, at(rows - present) * bytes);
    }
  }
  return result;
}

}  // namespace

struct GnnBlock::Step {
  // A program of the backend, or a reduction.
  std::unique_ptr<DeviceProgram> program;
  SubgraphBoundary boundary;

  bool is_reduction = false;
  bool is_slice = false;      // the owned rows of the input `rows`
  bool is_collected = false;  // a program reads all rows of that input, so they are there anyway
  TensorId result;
  TensorId rows;  // what is summed: per node with `gather`, else per edge; invalid: counts edges
  bool gather = false;
  std::int64_t first_column = 0;  // of `rows`
  std::int64_t row_stride = 0;    // 0: rows are dense
  TensorId factor;                // per edge; invalid: none
  bool mean = false;
  // What is done to the sums before they are stored.
  TensorId addend;  // invalid: none
  std::int64_t addend_column = 0;
  std::int64_t addend_stride = 0;
  bool overwrites = false;  // the addend's memory becomes the result's
  Tensor bias;              // one value for each column; empty: none
  bool relu = false;
};

GnnBlock::GnnBlock(const StagedModel& model, std::int32_t layer, std::int32_t first,
                   std::int32_t last, const BlockShape& shape, const GnnDevice& device,
                   const std::map<std::string, Tensor>& weights)
    : shape_(shape), device_(device) {
  const LayerInfo& info = model.layers[at(layer - 1)];
  Json document = model.block(layer, first, last, shape);
  if (!device.is_static) document = transform_before_aggregation(document, shape, model.file);
  graph_ = read_valid_graph(document.dump(), model.file);
  for (const StageTensor& tensor : info.tensors) {
    per_edge_[tensor.name] = tensor.edge_bytes > 0;
    local_rows_[tensor.name] = tensor.local_rows;
  }
  for (const TensorId id : graph_.graph_inputs()) input_names_.push_back(graph_.tensor(id).name);
  build_steps(!device.is_static, weights);
}

GnnBlock::~GnnBlock() = default;

// A bias, an addition and a relu that alone read a sum are done where the sum is stored.
void GnnBlock::absorb_epilogues(std::map<std::int32_t, std::unique_ptr<Step>>& reductions,
                                const std::map<std::string, Tensor>& weights) const {
  const GnnMatcher matcher(graph_);
  std::vector<std::int32_t> at_first;
  for (const auto& [node, step] : reductions) {
    if (step->is_reduction && step->rows.valid() && graph_.tensor(step->result).shape.size() == 2) {
      at_first.push_back(node);
    }
  }
  for (const std::int32_t node : at_first) {
    Step& step = *reductions[node];
    while (!step.relu) {
      const Node* reader = matcher.only_reader(step.result);
      if (reader == nullptr || reader->outputs.size() != 1) break;
      if (reader->op_type == "aten.add.Tensor" && reader->inputs.size() == 2 &&
          find_member(reader->attrs(), "alpha") == nullptr) {
        const TensorId other = reader->inputs[reader->inputs[0] == step.result ? 1 : 0];
        const TensorInfo& info = graph_.tensor(other);
        const TensorInfo& sum = graph_.tensor(step.result);
        if (info.dtype != DType::kFloat32) break;
        if (info.kind == TensorKind::kWeight && info.shape == Shape{sum.shape[1]} &&
            step.bias.bytes() == 0 && weights.contains(info.weight_key) &&
            weights.at(info.weight_key).shape() == info.shape) {
          step.bias = weights.at(info.weight_key);
        } else if (info.kind == TensorKind::kResult && info.shape == sum.shape &&
                   !step.addend.valid() && !reductions.contains(info.producer.value)) {
          const GnnMatcher::Columns columns = matcher.columns_of(other);
          step.addend = columns.tensor;
          step.addend_column = columns.first;
          step.addend_stride = columns.stride;
          // The memory of a matrix product is nobody else's.
          const std::string& op = graph_.node(info.producer).op_type;
          step.overwrites = columns.tensor == other && matcher.only_reader(other) != nullptr &&
                            (op == "aten.linear.default" || op == "aten.mm.default" ||
                             op == "aten.addmm.default");
        } else {
          break;
        }
      } else if (reader->op_type == "aten.relu.default") {
        step.relu = true;
      } else if (reader->op_type != "aten.alias.default") {
        break;
      }
      step.result = reader->outputs[0];
    }
    const std::int32_t last = graph_.tensor(step.result).producer.value;
    if (last == node) continue;
    reductions[last] = std::move(reductions[node]);
    reductions.erase(node);
  }
}

void GnnBlock::build_steps(bool fuse, const std::map<std::string, Tensor>& weights) {
  const GnnMatcher matcher(graph_);
  std::map<std::int32_t, std::unique_ptr<Step>> reductions;  // by node
  std::set<std::int32_t> covered;                            // index_add nodes taken along
  for (std::size_t n = 0; fuse && n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    if (node.name.ends_with("@owned") &&
        graph_.tensor(node.inputs[0]).kind == TensorKind::kGraphInput) {
      auto slice = std::make_unique<Step>();
      slice->is_slice = true;
      slice->result = node.outputs[0];
      slice->rows = node.inputs[0];
      reductions[static_cast<std::int32_t>(n)] = std::move(slice);
      continue;
    }
    const Json* dim = find_member(node.attrs(), "dim");
    if (node.op_type != "aten.index_add.default" || node.inputs.size() != 3 || dim == nullptr ||
        *dim != 0 || find_member(node.attrs(), "alpha") != nullptr ||
        !matcher.is_fill(node.inputs[0], "aten.zeros.default") ||
        !matcher.is_end(node.inputs[1], 1) ||
        graph_.tensor(node.outputs[0]).dtype != DType::kFloat32) {
      continue;
    }
    auto step = std::make_unique<Step>();
    step->is_reduction = true;
    step->result = node.outputs[0];
    TensorId message = matcher.through_alias(node.inputs[2]);
    const Shape& shape = graph_.tensor(message).shape;
    if (matcher.is_fill(message, "aten.ones.default") && shape.size() == 1) {
      reductions[static_cast<std::int32_t>(n)] = std::move(step);  // the in-degree
      continue;
    }
    if (const Node* product = matcher.producer(message); product != nullptr &&
                                                         product->op_type == "aten.mul.Tensor" &&
                                                         product->inputs.size() == 2) {
      for (const std::size_t side : {std::size_t{1}, std::size_t{0}}) {
        const TensorId factor = matcher.factor_of(product->inputs[side], shape);
        const TensorId other = product->inputs[1 - side];
        if (!factor.valid() || graph_.tensor(other).shape != shape) continue;
        step->factor = factor;
        message = matcher.through_alias(other);
        break;
      }
    }
    if (const TensorId source = matcher.gathered_from(message); source.valid()) {
      const GnnMatcher::Columns columns = matcher.columns_of(source);
      step->rows = columns.tensor;
      step->gather = true;
      if (columns.tensor != source) {
        step->first_column = columns.first;
        step->row_stride = columns.stride;
      }
    } else if (matcher.is_per_edge(message, shape_.edges)) {
      step->rows = message;
    } else {
      continue;
    }
    reductions[static_cast<std::int32_t>(n)] = std::move(step);
  }
  // sum / clamp(count, 1): the sum becomes a mean where nothing else reads it.
  std::map<std::int32_t, std::int32_t> mean_of;  // division -> index_add
  for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
    const Node& node = graph_.nodes()[n];
    if (node.op_type != "aten.div.Tensor" || node.inputs.size() != 2) continue;
    const TensorInfo& sum = graph_.tensor(node.inputs[0]);
    if (sum.kind != TensorKind::kResult || sum.consumers.size() != 1) continue;
    const auto reduction = reductions.find(sum.producer.value);
    const Node* column = matcher.producer(node.inputs[1]);
    if (reduction == reductions.end() || reduction->second->is_slice ||
        !reduction->second->rows.valid() || column == nullptr ||
        column->op_type != "aten.unsqueeze.default" ||
        graph_.tensor(node.inputs[1]).shape.size() != sum.shape.size()) {
      continue;
    }
    const Node* clamp = matcher.producer(column->inputs[0]);
    if (clamp == nullptr || clamp->op_type != "aten.clamp.default" || clamp->inputs.size() != 1) {
      continue;
    }
    const Json* least = find_member(clamp->attrs(), "min");
    const Json* most = find_member(clamp->attrs(), "max");
    const TensorInfo& count = graph_.tensor(clamp->inputs[0]);
    const auto counted = count.kind == TensorKind::kResult ? reductions.find(count.producer.value)
                                                           : reductions.end();
    const bool is_output = std::find(graph_.graph_outputs().begin(), graph_.graph_outputs().end(),
                                     node.inputs[0]) != graph_.graph_outputs().end();
    if (counted == reductions.end() || counted->second->rows.valid() || is_output ||
        least == nullptr || !least->is_number() || least->get<double>() != 1 ||
        (most != nullptr && !most->is_null())) {
      continue;
    }
    reduction->second->mean = true;
    reduction->second->result = node.outputs[0];
    mean_of[static_cast<std::int32_t>(n)] = sum.producer.value;
  }
  for (const auto& [division, sum] : mean_of) {
    reductions[division] = std::move(reductions[sum]);
    reductions.erase(sum);
  }
  fused_ = 0;
  absorb_epilogues(reductions, weights);

  // Programs between the reductions, by need.
  std::set<std::int32_t> done;
  const auto collect = [&](const auto& self, TensorId id, std::set<std::int32_t>& nodes,
                           std::vector<std::int32_t>& needed) -> void {
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kResult) return;
    const std::int32_t n = tensor.producer.value;
    if (done.contains(n) || nodes.contains(n)) return;
    if (reductions.contains(n)) {
      if (std::find(needed.begin(), needed.end(), n) == needed.end()) needed.push_back(n);
      return;
    }
    nodes.insert(n);
    for (const TensorId input : graph_.node(tensor.producer).inputs) {
      self(self, input, nodes, needed);
    }
  };
  const auto add_program = [&](const std::set<std::int32_t>& members) {
    if (members.empty()) return;
    std::vector<NodeId> nodes;
    for (const std::int32_t n : members) {
      nodes.push_back(NodeId{n});
      done.insert(n);
    }
    auto step = std::make_unique<Step>();
    step->boundary = find_boundary(graph_, nodes);
    // A result that only dead nodes read stays inside; the boundary cannot know that, but it costs
    // one export at most.
    std::vector<NamedTensor> used;
    for (const TensorId id : step->boundary.weights) {
      const TensorInfo& weight = graph_.tensor(id);
      const auto found = weights.find(weight.weight_key);
      if (found == weights.end()) {
        throw Error(ErrorCode::kInvalidGraph, "weight '" + weight.weight_key + "' is missing");
      }
      if (found->second.shape() != weight.shape || found->second.dtype() != weight.dtype) {
        throw Error(ErrorCode::kInvalidGraph, "weight '" + weight.weight_key + "' has shape " +
                                                  shape_text(found->second.shape()) +
                                                  ", the model says " + shape_text(weight.shape));
      }
      used.push_back({weight.name, found->second});
    }
    step->program = load_gnn_program(device_, write_subgraph(graph_, nodes, step->boundary),
                                     std::move(used), step->boundary.outputs.size(), nodes.size());
    steps_.push_back(std::move(step));
  };
  const auto evaluate = [&](const auto& self, const std::vector<TensorId>& wanted) -> void {
    for (;;) {
      std::set<std::int32_t> nodes;
      std::vector<std::int32_t> needed;
      for (const TensorId id : wanted) collect(collect, id, nodes, needed);
      if (needed.empty()) return add_program(nodes);
      for (const std::int32_t n : needed) {
        if (done.contains(n)) continue;
        Step& step = *reductions[n];
        std::vector<TensorId> operands;
        if (step.rows.valid()) operands.push_back(step.rows);
        if (step.factor.valid()) operands.push_back(step.factor);
        if (step.addend.valid()) operands.push_back(step.addend);
        self(self, operands);
        done.insert(n);
        if (step.is_reduction) ++fused_;
        steps_.push_back(std::move(reductions[n]));
      }
    }
  };
  evaluate(evaluate, graph_.graph_outputs());
  for (const auto& slice : steps_) {
    if (!slice->is_slice) continue;
    slice->is_collected = std::any_of(steps_.begin(), steps_.end(), [&](const auto& step) {
      const auto& read = step->boundary.inputs;
      return std::find(read.begin(), read.end(), slice->rows) != read.end();
    });
  }
}

std::map<std::string, Tensor> GnnBlock::run(const GnnWork& work,
                                            const std::map<std::string, GnnInput>& inputs,
                                            float padding) const {
  std::map<std::int32_t, Placed> values;
  const auto input_value = [&](TensorId id) {
    const TensorInfo& info = graph_.tensor(id);
    if (info.kind != TensorKind::kGraphInput || values.contains(id.value)) return;
    values[id.value] = materialized(inputs.at(info.name), work, info.shape[0], padding, device_);
  };
  bool has_edge_tensor = false;
  const auto edge_tensor = [&](TensorId id) {
    if (has_edge_tensor) return;
    has_edge_tensor = true;
    Tensor edges(DType::kInt64, {2, shape_.edges});
    auto* sources = edges.as_mutable<std::int64_t>();
    auto* targets = sources + shape_.edges;
    for (std::int64_t v = 0; v < work.owned; ++v) {
      for (std::int64_t e = work.offsets[at(v)]; e < work.offsets[at(v) + 1]; ++e) {
        sources[e] = work.sources[at(e)];
        targets[e] = v;
      }
    }
    // Padded edges lie between rows that exist and that nobody looks at, where there is one.
    const std::int64_t sink = shape_.local > work.local ? shape_.local - 1 : 0;
    for (std::int64_t e = work.edges(); e < shape_.edges; ++e) sources[e] = targets[e] = sink;
    values[id.value].tensor = std::move(edges);
  };
  for (const auto& step : steps_) {
    if (step->program != nullptr) {
      std::vector<std::shared_ptr<DeviceBuffer>> buffers;
      std::vector<npu_buffer*> arguments;
      for (const TensorId id : step->boundary.inputs) {
        if (graph_.tensor(id).name == kEdgeInput) {
          edge_tensor(id);
        } else {
          input_value(id);
        }
        Placed& value = values.at(id.value);
        if (value.buffer == nullptr) value.buffer = device_.instance->import_tensor(value.tensor);
        buffers.push_back(value.buffer);
        arguments.push_back(buffers.back()->get());
      }
      auto results = step->program->run(arguments);
      for (std::size_t i = 0; i < results.size(); ++i) {
        values[step->boundary.outputs[i].value] = {DeviceBuffer::view(results[i]), results[i]};
      }
      continue;
    }
    const TensorInfo& info = graph_.tensor(step->result);
    if (step->is_slice && step->is_collected) {
      input_value(step->rows);
      values[step->result.value] = {first_rows(values.at(step->rows.value).tensor, info.shape[0]),
                                    nullptr};
      continue;
    }
    if (step->is_slice) {
      values[step->result.value] = materialized(inputs.at(graph_.tensor(step->rows).name), work,
                                                info.shape[0], padding, device_);
      continue;
    }
    // Every row of a device in host memory is one of the work's, and is written below.
    Placed placed = step->overwrites ? values.at(step->addend.value)
                                     : allocate_on(*device_.instance, DType::kFloat32, info.shape);
    Tensor& result = placed.tensor;
    if (!step->rows.valid()) {
      for (std::int64_t v = 0; v < work.owned; ++v) {
        result.as_mutable<float>()[v] =
            static_cast<float>(work.offsets[at(v) + 1] - work.offsets[at(v)]);
      }
    } else {
      SegmentReduce reduce;
      reduce.offsets = work.offsets.data();
      reduce.sources = step->gather ? work.sources.data() : nullptr;
      const TensorInfo& rows = graph_.tensor(step->rows);
      if (rows.kind == TensorKind::kGraphInput && !values.contains(step->rows.value)) {
        const GnnInput& input = inputs.at(rows.name);
        if (step->gather && input.by_node && !work.nodes.empty()) {
          // Straight from the rows of the whole graph: the subgraph's are never copied.
          reduce.sources = work.base_sources.data();
          reduce.x = input.tensor.as<float>();
        } else {
          input_value(step->rows);
        }
      }
      if (reduce.x == nullptr) reduce.x = values.at(step->rows.value).tensor.as<float>();
      reduce.x += step->first_column;
      reduce.x_stride = step->row_stride;
      reduce.rows = work.owned;
      reduce.mean = step->mean;
      std::int64_t size = 1;
      for (std::size_t d = 1; d < info.shape.size(); ++d) size *= info.shape[d];
      if (step->factor.valid()) {
        input_value(step->factor);
        reduce.weights = values.at(step->factor.value).tensor.as<float>();
        const TensorInfo& factor = graph_.tensor(step->factor);
        for (std::size_t d = 1; d < factor.shape.size(); ++d) reduce.heads *= factor.shape[d];
      }
      reduce.width = reduce.heads > 0 ? size / reduce.heads : 0;
      if (step->addend.valid()) {
        reduce.addend = values.at(step->addend.value).tensor.as<float>() + step->addend_column;
        reduce.addend_stride = step->addend_stride;
      }
      if (step->bias.bytes() > 0) reduce.bias = step->bias.as<float>();
      reduce.relu = step->relu;
      // The addend's memory is the program's result, which nobody else holds.
      reduce.out =
          step->overwrites ? const_cast<float*>(result.as<float>()) : result.as_mutable<float>();
      segment_reduce(reduce, device_.threads);
    }
    values[step->result.value] = std::move(placed);
  }
  std::map<std::string, Tensor> outputs;
  for (const TensorId id : graph_.graph_outputs()) {
    const std::string& name = graph_.tensor(id).name;
    const std::int64_t rows = per_edge_.at(name)     ? work.edges()
                              : local_rows_.at(name) ? work.local
                                                     : work.owned;
    outputs[name] = first_rows(values.at(id.value).tensor, rows);
  }
  return outputs;
}

void scatter_rows(const Tensor& value, const std::int32_t* nodes, std::int64_t count,
                  Tensor& target) {
  if (count == 0) return;
  const std::size_t bytes = value.bytes() / at(value.shape()[0]);
  std::byte* const rows = target.mutable_data();
  for (std::int64_t r = 0; r < count; ++r) {
    std::memcpy(rows + at(nodes[r]) * bytes, value.data() + at(r) * bytes, bytes);
  }
}

std::map<std::string, Tensor> load_staged_weights(const StagedModel& model,
                                                  const std::string& file) {
  std::string path = file;
  if (path.empty() && !model.weights_file.empty()) {
    const std::filesystem::path named(model.weights_file);
    path = named.is_absolute() ? named.string()
                               : (std::filesystem::path(model.file).parent_path() / named).string();
  }
  std::map<std::string, Tensor> weights;
  if (path.empty()) return weights;
  const SafetensorsFile content(path);
  for (const SafetensorsEntry& entry : content.entries()) {
    weights[entry.name] = content.tensor(entry);
  }
  return weights;
}

}  // namespace npu
