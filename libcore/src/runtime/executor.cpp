// SPDX-License-Identifier: Apache-2.0
// Runs an execution plan step by step.
//
// Every tensor has at most one copy per device. A transfer asks first whether the destination has
// one, so a plan that lists a tensor twice costs nothing the second time, and a copy is dropped
// after the last step that reads the tensor. Leaves out overlap: steps run one after another.
#include "npu/runtime/executor.hpp"

#include <algorithm>
#include <chrono>

#include "npu/support/error.hpp"

namespace npu {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

}  // namespace

std::string device_options(const Device& device, const ExecutorOptions& options) {
  Json json = device.backend_options.is_object() ? device.backend_options : Json::object();
  json["threads"] = options.threads;
  for (const auto& [key, value] : options.backend_options.items()) json[key] = value;
  return json.dump();
}

Executor::Executor(const Graph& graph, const PartitionPlan& plan, const Target& target,
                   const std::vector<Tensor>& weights, const ExecutorOptions& options)
    : graph_(graph), plan_(plan) {
  const auto start = Clock::now();
  open_devices(target, options);
  load_partitions(weights);
  find_last_uses();
  output_weights_.resize(graph_.graph_outputs().size());
  for (std::size_t i = 0; i < output_weights_.size(); ++i) {
    const TensorId id = graph_.graph_outputs()[i];
    if (graph_.tensor(id).kind == TensorKind::kWeight) {
      output_weights_[i] = weights[static_cast<std::size_t>(id.value)];
    }
  }
  load_ms_ = microseconds_since(start) / 1000;
}

void Executor::open_devices(const Target& target, const ExecutorOptions& options) {
  for (const Partition& partition : plan_.partitions) {
    if (device_index_.contains(partition.device)) continue;
    const Device* device = target.find_device(partition.device);
    if (device == nullptr) {
      throw Error(ErrorCode::kInvalidGraph,
                  "device '" + partition.device + "' is not in target '" + target.name + "'");
    }
    if (device->backend.empty()) {
      throw Error(ErrorCode::kUnsupported, "device '" + device->name + "' of target '" +
                                               target.name +
                                               "' has no backend: it is for planning only");
    }
    device_index_.emplace(partition.device, static_cast<std::int32_t>(devices_.size()));
    device_names_.push_back(partition.device);
    devices_.push_back(
        DeviceInstance::open(Backend::load(device->backend), device_options(*device, options)));
  }
}

void Executor::load_partitions(const std::vector<Tensor>& weights) {
  for (const Partition& partition : plan_.partitions) {
    const std::int32_t device = device_index_.at(partition.device);
    std::vector<NamedTensor> used;
    for (const TensorId id : partition.boundary.weights) {
      const Tensor& weight = weights[static_cast<std::size_t>(id.value)];
      used.push_back({graph_.tensor(id).name, weight});
      ++weight_uploads_;
      weight_bytes_ += static_cast<std::int64_t>(weight.bytes());
    }
    const std::string sub_ir = write_subgraph(graph_, partition.nodes, partition.boundary);
    partitions_.push_back({device, devices_[static_cast<std::size_t>(device)]->compile_and_load(
                                       sub_ir, std::move(used), partition.boundary.outputs.size(),
                                       partition.nodes.size())});
  }
}

void Executor::find_last_uses() {
  std::vector<std::int32_t> last(graph_.tensors().size(), -1);
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const PlanStep& step = plan_.steps[s];
    const auto index = static_cast<std::size_t>(step.index);
    const auto mark = [&](const std::vector<TensorId>& tensors) {
      for (const TensorId id : tensors)
        last[static_cast<std::size_t>(id.value)] = static_cast<std::int32_t>(s);
    };
    if (step.kind == PlanStep::Kind::kTransfer) {
      mark(plan_.transfers[index].tensors);
    } else {
      mark(plan_.partitions[index].boundary.inputs);
      mark(plan_.partitions[index].boundary.outputs);
    }
  }
  for (const TensorId id : graph_.graph_outputs()) last[static_cast<std::size_t>(id.value)] = -1;
  dead_after_step_.resize(plan_.steps.size());
  for (std::size_t t = 0; t < last.size(); ++t) {
    if (last[t] >= 0) {
      dead_after_step_[static_cast<std::size_t>(last[t])].push_back(
          TensorId{static_cast<std::int32_t>(t)});
    }
  }
}

std::map<std::string, std::string> Executor::backend_versions() const {
  std::map<std::string, std::string> versions;
  for (const auto& device : devices_)
    versions[device->backend().name()] = device->backend().version();
  return versions;
}

/// The state of one run: where each tensor's copies are.
class Executor::Run {
 public:
  Run(Executor& executor, const std::vector<Tensor>& inputs, RunRecord* record,
      bool with_node_times)
      : executor_(executor),
        inputs_(inputs),
        record_(record),
        with_node_times_(with_node_times),
        copies_(executor.graph_.tensors().size()),
        start_(Clock::now()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      input_of_[executor.graph_.graph_inputs()[i].value] = i;
    }
  }

  std::vector<Tensor> execute() {
    for (std::size_t s = 0; s < executor_.plan_.steps.size(); ++s) {
      const PlanStep& step = executor_.plan_.steps[s];
      if (step.kind == PlanStep::Kind::kTransfer) {
        transfer(step.index);
      } else {
        run_partition(step.index);
      }
      for (const TensorId id : executor_.dead_after_step_[s]) copies_of(id).clear();
    }
    std::vector<Tensor> outputs = fetch_outputs();
    if (record_ != nullptr) record_->total_us = microseconds_since(start_);
    return outputs;
  }

 private:
  struct Copy {
    std::int32_t device;
    std::shared_ptr<DeviceBuffer> buffer;
  };

  std::vector<Copy>& copies_of(TensorId id) { return copies_[static_cast<std::size_t>(id.value)]; }

  DeviceBuffer* copy_on(TensorId id, std::int32_t device) {
    for (const Copy& copy : copies_of(id)) {
      if (copy.device == device) return copy.buffer.get();
    }
    return nullptr;
  }

  void note(StepRecord record, double started) {
    if (record_ == nullptr) return;
    record.start_us = started;
    record.end_us = microseconds_since(start_);
    record_->steps.push_back(std::move(record));
  }

  void transfer(std::int32_t index) {
    const double started = microseconds_since(start_);
    const Transfer& transfer = executor_.plan_.transfers[static_cast<std::size_t>(index)];
    StepRecord record{
        .kind = StepRecord::Kind::kTransfer, .index = index, .device = transfer.to_device};
    const std::int32_t device = executor_.device_index_.at(transfer.to_device);
    for (const TensorId id : transfer.tensors) {
      if (copy_on(id, device) != nullptr) continue;
      const npu_tensor source = copies_of(id).front().buffer->describe();
      auto& destination = *executor_.devices_[static_cast<std::size_t>(device)];
      const bool on_host = source.data != nullptr || source.bytes == 0;
      copies_of(id).push_back(
          {device, on_host ? destination.import_tensor(source)
                           : destination.import_tensor(copies_of(id).front().buffer->to_host())});
      ++record.tensors;
      record.bytes += static_cast<std::int64_t>(source.bytes);
    }
    note(std::move(record), started);
  }

  void upload_inputs(const Partition& partition, std::int32_t device) {
    const double started = microseconds_since(start_);
    StepRecord record{.kind = StepRecord::Kind::kInput, .device = partition.device};
    for (const TensorId id : partition.boundary.inputs) {
      if (executor_.graph_.tensor(id).kind != TensorKind::kGraphInput) continue;
      if (copy_on(id, device) != nullptr) continue;
      const Tensor& input = inputs_[input_of_.at(id.value)];
      copies_of(id).push_back(
          {device, executor_.devices_[static_cast<std::size_t>(device)]->import_tensor(input)});
      ++record.tensors;
      record.bytes += static_cast<std::int64_t>(input.bytes());
    }
    if (record.tensors > 0) note(std::move(record), started);
  }

  void run_partition(std::int32_t index) {
    const Partition& partition = executor_.plan_.partitions[static_cast<std::size_t>(index)];
    const LoadedPartition& loaded = executor_.partitions_[static_cast<std::size_t>(index)];
    upload_inputs(partition, loaded.device);
    const double started = microseconds_since(start_);
    std::vector<npu_buffer*> arguments;
    arguments.reserve(partition.boundary.inputs.size());
    for (const TensorId id : partition.boundary.inputs) {
      arguments.push_back(copy_on(id, loaded.device)->get());
    }
    auto results = loaded.program->run(arguments);
    for (std::size_t i = 0; i < results.size(); ++i) {
      copies_of(partition.boundary.outputs[i]).push_back({loaded.device, std::move(results[i])});
    }
    StepRecord record{
        .kind = StepRecord::Kind::kPartition, .index = index, .device = partition.device};
    if (with_node_times_) record.node_ns = loaded.program->node_times();
    note(std::move(record), started);
  }

  std::vector<Tensor> fetch_outputs() {
    const double started = microseconds_since(start_);
    StepRecord record{.kind = StepRecord::Kind::kOutput, .device = "host"};
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < executor_.graph_.graph_outputs().size(); ++i) {
      const TensorId id = executor_.graph_.graph_outputs()[i];
      const TensorInfo& tensor = executor_.graph_.tensor(id);
      if (tensor.kind == TensorKind::kGraphInput) {
        outputs.push_back(inputs_[input_of_.at(id.value)]);
      } else if (tensor.kind == TensorKind::kWeight) {
        outputs.push_back(executor_.output_weights_[i]);
      } else {
        outputs.push_back(copies_of(id).front().buffer->to_host());
        check_result(tensor, outputs.back());
        ++record.tensors;
        record.bytes += static_cast<std::int64_t>(outputs.back().bytes());
      }
    }
    note(std::move(record), started);
    return outputs;
  }

  static void check_result(const TensorInfo& tensor, const Tensor& result) {
    if (result.dtype() == tensor.dtype && result.shape() == tensor.shape) return;
    throw Error(ErrorCode::kInvalidGraph, "output '" + tensor.name + "' came back as " +
                                              std::string(dtype_name(result.dtype())) + " " +
                                              shape_text(result.shape()) + ", the graph says " +
                                              std::string(dtype_name(tensor.dtype)) + " " +
                                              shape_text(tensor.shape));
  }

  Executor& executor_;
  const std::vector<Tensor>& inputs_;
  RunRecord* record_;
  bool with_node_times_;
  std::map<std::int32_t, std::size_t> input_of_;
  std::vector<std::vector<Copy>> copies_;
  Clock::time_point start_;
};

std::vector<Tensor> Executor::run(const std::vector<Tensor>& inputs, RunRecord* record,
                                  bool with_node_times) {
  if (record != nullptr) *record = {};
  return Run(*this, inputs, record, with_node_times).execute();
}

}  // namespace npu
