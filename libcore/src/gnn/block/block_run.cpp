// SPDX-License-Identifier: Apache-2.0
// One run of a block: its programs through the device's table, own kernels in host memory.
//
// On a static device padding rows are computed and discarded, and padding edges read a row that
// exists. Costs what the backend takes plus one copy of inputs and outputs.
#include "gnn/block/block_run.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gnn/block/segment_nodes.hpp"
#include "gnn/block/tensor_rows.hpp"
#include "npu/support/ids.hpp"
#include "rows/segment_reduce.hpp"
#include "support/thread_count.hpp"
#include "support/thread_pool.hpp"

namespace npu::gnn {
namespace {

// A tensor, and the device's buffer with the same bytes where there is one: programs read that in
// place.
struct Placed {
  Tensor tensor;
  std::shared_ptr<DeviceBuffer> buffer;
};

// Memory of the device, to be written from here; the host's own where the device's cannot be.
Placed allocate_on(const GnnDevice& device, DeviceInstance& instance, DType dtype,
                   const Shape& shape) {
  std::shared_ptr<DeviceBuffer> buffer = device.buffers->take(instance, dtype, shape);
  if (buffer->host_memory() == nullptr) return {Tensor(dtype, shape), nullptr};
  return {DeviceBuffer::view(buffer), buffer};
}

// Calls copy(begin, end) for parts of [0, rows), at the same time where it is worth a thread.
template <typename Copy>
void in_parts(std::int64_t rows, std::size_t bytes_per_row, std::int32_t threads,
              const Copy& copy) {
  constexpr std::size_t kMinBytesOfThread = std::size_t{4} << 20;
  const auto count = static_cast<std::int64_t>(std::clamp<std::size_t>(
      index_of(rows) * bytes_per_row / kMinBytesOfThread, 1, thread_count(threads)));
  run_pieces(index_of(count), index_of(count), [&](std::size_t part) {
    const auto t = static_cast<std::int64_t>(part);
    copy(rows * t / count, rows * (t + 1) / count);
  });
}

// Whether edges of the view read rows of the input that may not be there yet. They lie behind the
// owned rows.
bool is_late(const BlockInput& input, const SubgraphView& view) {
  return input.late != nullptr && !view.reads_late.empty();
}

// The first `rows` local rows of an input, padded where there are fewer.
Placed materialized(const BlockInput& input, const SubgraphView& view, std::int64_t rows,
                    float padding, const GnnDevice& device, DeviceInstance& instance) {
  const bool in_place = !input.by_node || view.nodes.empty();
  Shape shape = input.tensor.shape();
  if (in_place && (shape.empty() || shape[0] >= rows)) {
    Tensor tensor = rows_of(input.tensor, 0, rows);
    const bool same = tensor.shape() == shape;
    return {std::move(tensor), same ? input.resident : nullptr};
  }
  // Straight into the device's memory: one copy, with the padding.
  const std::int64_t present = in_place ? shape[0] : std::min<std::int64_t>(rows, view.local);
  if (is_late(input, view) && present > view.owned) input.late->await();
  const std::size_t bytes = row_bytes(input.tensor);
  shape[0] = rows;
  Placed result = allocate_on(device, instance, input.tensor.dtype(), shape);
  std::byte* const target = result.tensor.mutable_data();
  in_parts(present, bytes, device.threads, [&](std::int64_t begin, std::int64_t end) {
    if (in_place) {
      if (end > begin) {
        std::memcpy(target + index_of(begin) * bytes, input.tensor.data() + index_of(begin) * bytes,
                    index_of(end - begin) * bytes);
      }
      return;
    }
    for (std::int64_t r = begin; r < end; ++r) {
      std::memcpy(target + index_of(r) * bytes,
                  input.tensor.data() + index_of(view.nodes[index_of(r)]) * bytes, bytes);
    }
  });
  if (present < rows) {
    if (input.tensor.dtype() == DType::kFloat32) {
      std::fill(result.tensor.as_mutable<float>() + index_of(present) * bytes / sizeof(float),
                result.tensor.as_mutable<float>() + result.tensor.element_count(), padding);
    } else {
      std::memset(target + index_of(present) * bytes, 0, index_of(rows - present) * bytes);
    }
  }
  return result;
}

class BlockRun {
 public:
  BlockRun(const BlockForm& block, const GnnDevice& device, const SubgraphView& view,
           const std::map<std::string, BlockInput>& inputs, float padding)
      : graph_(block.graph),
        shape_(block.shape),
        device_(device),
        instance_(*block.instance),
        view_(view),
        inputs_(inputs),
        padding_(padding) {}

  void operator()(const ProgramStep& step) {
    std::vector<std::shared_ptr<DeviceBuffer>> buffers;
    std::vector<npu_buffer*> arguments;
    for (const TensorId id : step.boundary.inputs) {
      Placed& value = input_value(id);
      if (value.buffer == nullptr) value.buffer = instance_.import_tensor(value.tensor);
      buffers.push_back(value.buffer);
      arguments.push_back(buffers.back()->get());
    }
    std::vector<std::shared_ptr<DeviceBuffer>> targets;
    if (instance_.keeps_outputs()) {
      for (const TensorId id : step.boundary.outputs) {
        const TensorInfo& info = graph_.tensor(id);
        targets.push_back(device_.buffers->take(instance_, info.dtype, info.shape));
      }
    }
    auto results = step.program->run(arguments, targets);
    for (std::size_t i = 0; i < results.size(); ++i) {
      values_[step.boundary.outputs[i].value] = {DeviceBuffer::view(results[i]), results[i]};
    }
  }

  void operator()(const OwnedSlice& slice) {
    const std::int64_t rows = graph_.tensor(slice.result).shape[0];
    if (slice.is_collected) {
      values_[slice.result.value] = {rows_of(input_value(slice.rows).tensor, 0, rows), nullptr};
    } else {
      values_[slice.result.value] = materialized(inputs_.at(graph_.tensor(slice.rows).name), view_,
                                                 rows, padding_, device_, instance_);
    }
  }

  void operator()(const Reduction& reduction) {
    const Shape& shape = graph_.tensor(reduction.result).shape;
    // Every row of a device in host memory is one of the view's, and is written below.
    Placed placed =
        reduction.overwrites
            ? values_.at(reduction.addend.value)
            : allocate_on(device_, instance_, graph_.tensor(reduction.result).dtype, shape);
    if (reduction.rows.valid()) {
      const std::vector<EdgeStep> steps = steps_of(reduction);
      SegmentReduce reduce = described(reduction, shape);
      reduce.weight_steps = steps;
      // The addend's memory is the program's result, which nothing else refers to.
      reduce.out = const_cast<std::byte*>(placed.tensor.data());
      reduce.out_is_bfloat16 = placed.tensor.dtype() == DType::kBFloat16;
      reduce_in_time(reduction, reduce);
    } else {
      auto* counts = placed.tensor.as_mutable<float>();
      for (std::int64_t v = 0; v < view_.owned; ++v) {
        counts[v] = static_cast<float>(view_.offsets[index_of(v) + 1] - view_.offsets[index_of(v)]);
      }
    }
    values_[reduction.result.value] = std::move(placed);
  }

  void operator()(const Product& product) {
    const Shape& shape = graph_.tensor(product.result).shape;
    Placed placed = allocate_on(device_, instance_, DType::kFloat32, shape);
    RowProduct call;
    call.weights = product.weights.get();
    call.x = input_value(product.rows).tensor.as<float>();
    call.rows = placed.tensor.element_count() / std::max<std::int64_t>(shape.back(), 1);
    if (product.bias.bytes() > 0) call.bias = product.bias.as<float>();
    if (product.addend.valid()) call.addend = input_value(product.addend).tensor.as<float>();
    call.relu = product.relu;
    call.out = placed.tensor.as_mutable<float>();
    multiply_rows(call, device_.threads);
    values_[product.result.value] = std::move(placed);
  }

  const Tensor& value(TensorId id) const { return values_.at(id.value).tensor; }

 private:
  // Rows that read nothing late first: they are computed while the others' operands come. The order
  // of rows does not change their bits.
  void reduce_in_time(const Reduction& reduction, SegmentReduce& reduce) const {
    const std::string& name = graph_.tensor(reduction.rows).name;
    const auto input = inputs_.find(name);
    const bool reads_late = reads_base_rows(reduction) && is_late(input->second, view_);
    if (reads_late) {
      reduce.group = view_.reads_late.data();
      segment_reduce(reduce, device_.threads);
      input->second.late->await();
      reduce.wanted_group = 1;
    }
    segment_reduce(reduce, device_.threads);
  }

  // Whether a reduction reads the rows of the whole graph where they lie.
  bool reads_base_rows(const Reduction& reduction) const {
    const TensorInfo& rows = graph_.tensor(reduction.rows);
    if (rows.kind != TensorKind::kGraphInput || values_.contains(reduction.rows.value)) {
      return false;
    }
    return reduction.gather && inputs_.at(rows.name).by_node && !view_.nodes.empty();
  }

  // The value of a tensor; of an input its rows, padded.
  Placed& input_value(TensorId id) {
    const TensorInfo& info = graph_.tensor(id);
    if (info.kind == TensorKind::kGraphInput && !values_.contains(id.value)) {
      values_[id.value] = is_edge_input(info.name)
                              ? Placed{edge_input(info.name), nullptr}
                              : materialized(inputs_.at(info.name), view_, info.shape[0], padding_,
                                             device_, instance_);
    }
    return values_.at(id.value);
  }

  Tensor edge_input(std::string_view name) const {
    if (name == kOffsetInput) return copy_of(DType::kInt64, view_.offsets);
    if (name == kSourceInput) return copy_of(DType::kInt32, view_.sources);
    if (name == kTargetInput) return targets();
    return edge_tensor();
  }

  template <typename Element>
  static Tensor copy_of(DType dtype, const SharedArray<Element>& values) {
    Tensor tensor(dtype, {static_cast<std::int64_t>(values.size())});
    std::copy(values.begin(), values.end(), tensor.as_mutable<Element>());
    return tensor;
  }

  Tensor targets() const {
    Tensor tensor(DType::kInt32, {view_.edges()});
    auto* target = tensor.as_mutable<std::int32_t>();
    for (std::int64_t v = 0; v < view_.owned; ++v) {
      std::fill(target + view_.offsets[index_of(v)], target + view_.offsets[index_of(v) + 1],
                static_cast<std::int32_t>(v));
    }
    return tensor;
  }

  Tensor edge_tensor() const {
    Tensor edges(DType::kInt64, {2, shape_.edges});
    auto* sources = edges.as_mutable<std::int64_t>();
    auto* targets = sources + shape_.edges;
    for (std::int64_t v = 0; v < view_.owned; ++v) {
      for (std::int64_t e = view_.offsets[index_of(v)]; e < view_.offsets[index_of(v) + 1]; ++e) {
        sources[e] = view_.sources[index_of(e)];
        targets[e] = v;
      }
    }
    // Padding edges end in a padding row, which there is where a block writes rows by edge
    // (block_key), so no result depends on them.
    const std::int64_t sink = shape_.owned > view_.owned ? shape_.owned - 1 : 0;
    for (std::int64_t e = view_.edges(); e < shape_.edges; ++e) sources[e] = targets[e] = sink;
    return edges;
  }

  // What computes the factors of a reduction.
  std::vector<EdgeStep> steps_of(const Reduction& reduction) {
    std::vector<EdgeStep> steps;
    for (const EdgeFactor& each : reduction.factor_steps) {
      steps.push_back(each.step);
      if (each.node.valid()) steps.back().node = input_value(each.node).tensor.as<float>();
    }
    return steps;
  }

  // The reduction over this view, but for those; its operands are there, except for inputs of the
  // block.
  SegmentReduce described(const Reduction& reduction, const Shape& shape) {
    SegmentReduce reduce;
    reduce.offsets = view_.offsets.data();
    reduce.sources = reduction.gather ? view_.sources.data() : nullptr;
    reduce.nodes_of_edges = view_.sources.data();
    set_rows(reduction, reduce);
    reduce.rows = view_.owned;
    reduce.aggregate = reduction.aggregate;
    std::int64_t size = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) size *= shape[d];
    if (reduction.factor.valid()) {
      if (reduction.factor_steps.empty()) {
        reduce.weights = input_value(reduction.factor).tensor.as<float>();
      }
      const Shape& factor = graph_.tensor(reduction.factor).shape;
      for (std::size_t d = 1; d < factor.size(); ++d) reduce.heads *= factor[d];
    }
    reduce.width = reduce.heads > 0 ? size / reduce.heads : 0;
    if (reduction.addend.valid()) {
      reduce.addend = rows_at(input_value(reduction.addend).tensor, reduction.addend_column,
                              reduction.addend_stride);
    }
    if (reduction.own.valid()) {
      reduce.own =
          rows_at(input_value(reduction.own).tensor, reduction.own_column, reduction.own_stride);
      reduce.own_factors = input_value(reduction.own_factor).tensor.as<float>();
    }
    if (reduction.bias.bytes() > 0) reduce.bias = reduction.bias.as<float>();
    reduce.relu = reduction.relu;
    return reduce;
  }

  void set_rows(const Reduction& reduction, SegmentReduce& reduce) {
    if (reads_base_rows(reduction)) {
      // The subgraph's rows are never copied.
      const BlockInput& input = inputs_.at(graph_.tensor(reduction.rows).name);
      reduce.sources = view_.base_sources.data();
      reduce.x = rows_at(input.tensor, reduction.first_column, reduction.row_stride);
      return;
    }
    reduce.x =
        rows_at(input_value(reduction.rows).tensor, reduction.first_column, reduction.row_stride);
  }

  static RowsOf rows_at(const Tensor& tensor, std::int64_t column, std::int64_t stride) {
    return {tensor.data() + index_of(column) * dtype_size(tensor.dtype()),
            tensor.dtype() == DType::kBFloat16, stride};
  }

  const Graph& graph_;
  const BlockShape& shape_;
  const GnnDevice& device_;
  DeviceInstance& instance_;
  const SubgraphView& view_;
  const std::map<std::string, BlockInput>& inputs_;
  float padding_;
  std::map<std::int32_t, Placed> values_;
};

}  // namespace

bool is_edge_input(std::string_view name) {
  return name == kEdgeInput || name == kOffsetInput || name == kSourceInput || name == kTargetInput;
}

std::vector<Tensor> run_block(const BlockForm& block, const GnnDevice& device,
                              const SubgraphView& view,
                              const std::map<std::string, BlockInput>& inputs, float padding) {
  BlockRun run(block, device, view, inputs, padding);
  for (const BlockStep& step : block.steps) std::visit(run, step);
  std::vector<Tensor> outputs;
  for (const TensorId id : block.graph.graph_outputs()) outputs.push_back(run.value(id));
  return outputs;
}

}  // namespace npu::gnn
