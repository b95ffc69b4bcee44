// SPDX-License-Identifier: Apache-2.0
// Computes what the scheduler hands out.
//
// Values between segments lie in host memory, whole for the subgraph (segment_values.cpp); rows of
// a layer's output go straight to their places in the output of the whole graph. Layers are
// separated by a barrier, which is where halo rows get their new values; those that other processes
// send come while tasks run that do not read them. Programs are compiled before the first task
// starts.
//
// Memory: features, those of the layer in and out, and for each subgraph what its unfinished
// segments exchange.
#include "gnn/run/plan_executor.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "gnn/block/bfloat16_features.hpp"
#include "gnn/block/tensor_rows.hpp"
#include "npu/support/ids.hpp"

namespace npu::gnn {
namespace {

std::vector<SchedulerDevice> scheduler_devices(const std::vector<GnnDevice>& devices) {
  std::map<std::string, std::int32_t> resources;
  std::vector<SchedulerDevice> result;
  for (const GnnDevice& device : devices) {
    const auto next = static_cast<std::int32_t>(resources.size());
    result.push_back({device.name, resources.emplace(device.resource, next).first->second,
                      device.instance != nullptr});
  }
  return result;
}

const StageTensor& find_tensor(const LayerInfo& info, const std::string& name) {
  return *std::find_if(info.tensors.begin(), info.tensors.end(),
                       [&](const StageTensor& tensor) { return tensor.name == name; });
}

// SubgraphView::reads_late.
SharedArray<char> rows_that_read(const SubgraphView& view, const std::vector<char>& is_late) {
  std::vector<char> reads(index_of(view.owned), 0);
  for (std::size_t v = 0; v < reads.size(); ++v) {
    for (std::int64_t e = view.offsets[v]; e < view.offsets[v + 1]; ++e) {
      if (is_late[index_of(view.base_sources[index_of(e)])] != 0) reads[v] = 1;
    }
  }
  const bool any = std::find(reads.begin(), reads.end(), 1) != reads.end();
  return any ? SharedArray<char>(std::move(reads)) : SharedArray<char>();
}

}  // namespace

PlanExecutor::PlanExecutor(const LoadedPlan& loaded, const std::vector<GnnDevice>& devices,
                           const std::string& plan_file, PlanExecutorOptions options)
    : loaded_(loaded),
      devices_(devices),
      options_(std::move(options)),
      graph_(build_task_graph(loaded.plan, loaded.task_parts(), loaded.rows(),
                              stage_counts(loaded.model), plan_file, options_.layer)),
      table_(options_.blocks),
      resident_features_(devices.size()) {
  if (table_ == nullptr) {
    table_ = &own_table_.emplace(loaded.model, loaded.weights, devices, loaded.plan.choice.pad,
                                 options_.units);
  }
  for (const GnnDevice& device : devices) threads_ = std::max(threads_, device.threads);
  for (std::size_t d = 0; d < devices.size(); ++d) {
    device_mutex_.push_back(std::make_unique<std::mutex>());
  }
  if (options_.late != nullptr) mark_late_rows();
  std::vector<std::vector<SchedulerTask>> tasks;
  for (std::size_t l = 0; l < graph_.layers.size(); ++l) {
    auto& layer_tasks = tasks.emplace_back();
    auto& layer_blocks = blocks_.emplace_back();
    for (const ShareTask& task : graph_.layers[l]) {
      layer_tasks.push_back({task.subgraph, task.segment, task.device});
      layer_blocks.push_back(&table_->block(static_cast<std::int32_t>(l) + 1, task, task.device));
    }
  }
  TaskRunner& runner = *this;
  scheduler_ = std::make_unique<Scheduler>(std::move(tasks), scheduler_devices(devices), runner);
  scheduler_->leave_out(options_.broken);
}

// Tells views which of their rows read late ones, and puts the parts without such rows first: their
// tasks run while the others' operands come. O(edges) for every segment.
void PlanExecutor::mark_late_rows() {
  const std::vector<char>& is_late = options_.late->is_late();
  std::map<std::int32_t, SharedArray<char>> of_whole;  // by subgraph
  for (std::vector<ShareTask>& tasks : graph_.layers) {
    std::vector<char> reads_late(loaded_.parts.size(), 0);
    for (ShareTask& task : tasks) {
      SubgraphView& view = task.view;
      if (view.nodes.empty()) continue;  // the whole graph
      const bool is_whole = task.local.empty();
      const auto known = of_whole.find(task.subgraph);
      if (is_whole && known != of_whole.end()) {
        view.reads_late = known->second;
      } else {
        view.reads_late = rows_that_read(view, is_late);
        if (is_whole) of_whole[task.subgraph] = view.reads_late;
      }
      if (!view.reads_late.empty()) reads_late[index_of(task.subgraph)] = 1;
    }
    std::stable_partition(tasks.begin(), tasks.end(), [&](const ShareTask& task) {
      return reads_late[index_of(task.subgraph)] == 0;
    });
  }
}

void PlanExecutor::execute() {
  scheduler_->start();
  Tensor x = options_.features == nullptr ? Tensor(loaded_.features)
                                          : std::exchange(*options_.features, Tensor());
  for (std::size_t l = 0; l < graph_.layers.size(); ++l) {
    if (options_.layer && l != *options_.layer) continue;
    if (options_.before_layer) options_.before_layer(l, x);
    input_ = std::move(x);
    narrow_input_ = narrow_features(l);
    output_ = Tensor(DType::kFloat32, {loaded_.rows(), loaded_.model.layers[l].output_features});
    values_.clear();
    for (std::size_t p = 0; p < loaded_.parts.size(); ++p) {
      values_.push_back(std::make_unique<SegmentValues>());
    }
    try {
      scheduler_->run_layer(l);
    } catch (...) {
      if (options_.late != nullptr) options_.late->rethrow_failure();
      throw;
    }
    if (options_.late != nullptr) options_.late->await();  // if no task did
    x = output_;
  }
}

std::size_t PlanExecutor::task_count() const {
  std::size_t count = 0;
  for (const auto& layer : graph_.layers) count += layer.size();
  return count;
}

std::vector<ExecutedTask> PlanExecutor::executed() const {
  std::vector<ExecutedTask> executed;
  const auto& states = scheduler_->tasks();
  for (std::size_t l = 0; l < states.size(); ++l) {
    for (std::size_t t = 0; t < states[l].size(); ++t) {
      const ShareTask& task = graph_.layers[l][t];
      const SchedulerTask& state = states[l][t];
      executed.push_back({static_cast<std::int32_t>(l) + 1, task.subgraph, task.first, task.last,
                          state.device, state.start_ms, state.end_ms, state.moved});
    }
  }
  return executed;
}

std::vector<std::int64_t> PlanExecutor::rows_crossed(const std::string& host) const {
  std::vector<std::int64_t> rows;
  const auto& states = scheduler_->tasks();
  for (std::size_t l = 0; l < states.size(); ++l) {
    std::int64_t& of_layer = rows.emplace_back(0);
    for (std::size_t t = 0; t < states[l].size(); ++t) {
      const ShareTask& task = graph_.layers[l][t];
      if (devices_[index_of(states[l][t].device)].name == host ||
          !loaded_.model.layers[l].reads_other_parts(task.first, task.last)) {
        continue;
      }
      // A share of a segment may read fewer rows than its part.
      of_layer += task.local.empty()
                      ? task.view.local - task.part->owned
                      : std::count_if(task.local.begin(), task.local.end(),
                                      [&](std::int32_t row) { return row >= task.part->owned; });
    }
  }
  return rows;
}

void PlanExecutor::run(std::size_t layer, std::size_t index, std::int32_t device) {
  if (options_.before_task) options_.before_task(devices_[index_of(device)].name);
  // The host makes calls on one device from one thread at a time.
  const std::lock_guard guard(*device_mutex_[index_of(device)]);
  const ShareTask& task = graph_.layers[layer][index];
  const GnnBlock& block = *blocks_[layer][index];
  const Subgraph& part = *task.part;
  const LayerInfo& info = loaded_.model.layers[layer];
  SegmentValues& values = *values_[index_of(task.subgraph)];
  std::map<std::string, BlockInput> inputs;
  for (const std::string& name : block.input_names()) {
    if (name == kFeatureInput) {
      const bool is_narrow = block.feature_dtype() == DType::kBFloat16;
      inputs[name] = {is_narrow ? narrow_input_ : input_, true,
                      resident_features(layer, task, device, block), options_.late};
    } else if (name == kDegreeInput) {
      inputs[name] = {loaded_.degree, true, nullptr, nullptr};
    } else {
      inputs[name] = {values.read(find_tensor(info, name), task), false, nullptr, nullptr};
    }
  }
  for (auto& [name, value] : block.run(task.view, inputs, options_.padding)) {
    const StageTensor& tensor = find_tensor(info, name);
    if (!tensor.consumers.empty() && tensor.consumers.back() > info.stage_count()) {
      store_rows(value, task);
      if (tensor.consumers.size() == 1) continue;
    }
    values.store(tensor, value, part, task);
  }
}

void PlanExecutor::prepare(std::size_t layer, std::size_t index, std::int32_t device) {
  const std::lock_guard guard(*device_mutex_[index_of(device)]);
  blocks_[layer][index] = &table_->block(static_cast<std::int32_t>(layer) + 1,
                                         graph_.layers[layer][index], device, true);
}

std::string PlanExecutor::name_of(std::size_t layer, std::size_t index) const {
  const ShareTask& task = graph_.layers[layer][index];
  return "stages " + std::to_string(task.first) + "-" + std::to_string(task.last);
}

// Giving memory back takes its time: the scheduler's lock is not held.
void PlanExecutor::release(std::int32_t subgraph) { values_[index_of(subgraph)]->take(); }

bool PlanExecutor::goes_on(std::size_t layer) {
  return !options_.goes_on || options_.goes_on(static_cast<std::int32_t>(layer) + 1);
}

// The input of a layer as bfloat16, if a block reads that; the features are rounded only once.
Tensor PlanExecutor::narrow_features(std::size_t layer) {
  const auto reader = std::find_if(
      blocks_[layer].begin(), blocks_[layer].end(),
      [](const GnnBlock* block) { return block->feature_dtype() == DType::kBFloat16; });
  if (reader == blocks_[layer].end()) return {};
  if (options_.late != nullptr) options_.late->await();
  if (layer > 0) return to_bfloat16(input_, threads_);
  if (narrow_features_.bytes() == 0) narrow_features_ = to_bfloat16(input_, threads_);
  return narrow_features_;
}

// The features, uploaded once, for a task that reads all of them as they are. With the device's
// lock held.
std::shared_ptr<DeviceBuffer> PlanExecutor::resident_features(std::size_t layer,
                                                              const ShareTask& task,
                                                              std::int32_t device,
                                                              const GnnBlock& block) {
  if (layer > 0 || !task.view.nodes.empty()) return nullptr;
  std::shared_ptr<DeviceBuffer>& resident =
      resident_features_[index_of(device)][{&block.instance(), block.feature_dtype()}];
  if (resident == nullptr) {
    resident = block.instance().import_tensor(
        block.feature_dtype() == DType::kBFloat16 ? narrow_input_ : input_);
  }
  return resident;
}

// Rows of the layer's output: no other task writes them.
void PlanExecutor::store_rows(const Tensor& value, const ShareTask& task) {
  if (task.local.empty() && task.view.nodes.empty() && value.shape() == output_.shape()) {
    output_ = value;  // the whole graph in one task
    return;
  }
  const Subgraph& part = *task.part;
  scatter_rows(value, part.nodes.data() + task.row_begin, task.view.owned, output_);
}

}  // namespace npu::gnn
