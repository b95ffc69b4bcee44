// SPDX-License-Identifier: Apache-2.0
// Executes a plan of npu-plan.
//
// Every device has a worker with a queue in the order of the clusters; a worker takes the first
// task whose previous segment is done, and devices of one resource take turns, as the plan's
// simulation assumes. A share of a segment is a subgraph of its own: its owned nodes first, then
// what their edges read, so that splitting never changes a sum. Values between segments lie in host
// memory, whole for the subgraph; shares write the rows and edges that are theirs. Programs are
// compiled before the first task starts. Layers are separated by a barrier, which is where halo
// rows get their new values.
//
// Memory: features in and out, and for each subgraph what its unfinished segments exchange.
#include "npu/runtime/gnn_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <set>
#include <type_traits>

#include "npu/plan/plan_gnn.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/runtime/gnn_block.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/npy.hpp"
#include "worker_threads.hpp"

namespace npu {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// A share of a segment of a subgraph.
struct Task {
  std::int32_t subgraph = 0;
  std::size_t segment = 0;
  std::int32_t first = 1;
  std::int32_t last = 1;
  std::int32_t device = 0;
  double predicted_ms = 0;
  GnnWork work;
  std::vector<std::int32_t> local;  // subgraph-local ids of work's nodes; empty: the same
  std::int64_t row_begin = 0;       // of the subgraph's owned rows
  std::int64_t edge_begin = 0;
  const GnnBlock* block = nullptr;
  bool started = false;
  bool done = false;
  double start_ms = 0;
  double end_ms = 0;
  bool moved = false;  // to another device than the plan's
};

// What the segments of a subgraph exchange.
struct Exchange {
  std::map<std::string, Tensor> values;
  std::vector<std::int32_t> open;  // tasks by segment
  std::mutex mutex;
};

class Runner {
 public:
  Runner(const GnnRunOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics), cache_(options.cache) {}

  GnnRunResult run() {
    plan_ = parse_json(read_file(options_.plan), options_.plan);
    if (!is_gnn_plan(plan_)) {
      throw Error(ErrorCode::kParse, "expected a plan of npu-plan", {.file = options_.plan});
    }
    if (options_.simulate) return simulated();
    const auto load_start = Clock::now();
    report_progress(options_.progress, 0, "load");
    try {
      load();
    } catch (const Json::exception& error) {
      throw Error(ErrorCode::kParse, std::string("the plan is not complete: ") + error.what(),
                  {.file = options_.plan});
    }
    const double load_ms = ms_since(load_start);
    GnnRunResult result;
    std::vector<double> times;
    for (std::int32_t i = 0; i <= options_.bench; ++i) {
      const auto start = Clock::now();
      run_ = i;
      execute();
      times.push_back(ms_since(start));
      times_.add("run", times.back());
    }
    result.output = output_;
    report_progress(options_.progress, 1, "write");
    for (const std::string& warning : cache_.take_warnings()) diagnostics_.warning({}, warning);
    write_report(result, times, load_ms);
    result.times = std::move(times_);
    return result;
  }

 private:
  std::string resolve(const Json& object, const char* key) const {
    const Json* member = find_member(object, key);
    if (member == nullptr) return {};
    const std::filesystem::path file(member->get<std::string>());
    if (file.empty() || file.is_absolute()) return file.string();
    return (std::filesystem::path(options_.plan).parent_path() / file).string();
  }

  GnnRunResult simulated() {
    const Json verified = verify_gnn_plan(options_.plan, diagnostics_);
    GnnRunResult result;
    result.report = {{"simulated", true},
                     {"predicted_ms", plan_.at("makespan_ms")},
                     {"simulated_ms", verified.at("makespan_ms")},
                     {"k", plan_.at("k")}};
    return result;
  }

  void load() {
    const std::string model_file = resolve(plan_, "model");
    const std::string graph_file = resolve(plan_, "graph");
    if (model_file.empty() || graph_file.empty()) {
      throw Error(ErrorCode::kUsage,
                  "the plan was made without a model or a graph: it can only "
                  "be simulated (--simulate)");
    }
    model_ = read_staged_model(model_file);
    if (model_.hash != plan_.at("model_hash").get<std::string>()) {
      throw Error(ErrorCode::kInvalidGraph, "the plan was made for another version of the model",
                  {.file = model_file});
    }
    GraphReadOptions graph_options;
    if (plan_.contains("graph_node_count_option")) {
      graph_options.node_count = plan_.at("graph_nodes").get<std::int64_t>();
    }
    graph_options.undirected = plan_.contains("graph_undirected");
    const auto data =
        timed("read the graph", [&] { return read_graph_file(graph_file, graph_options); });
    const CsrGraph& graph = data.in_edges;
    const std::string partition_file = resolve(plan_.at("partition"), "file");
    if (partition_file.empty()) {
      throw Error(ErrorCode::kUsage,
                  "the plan names no partition file: run npu-plan with -o FILE "
                  "or --partition-file");
    }
    const auto part_of =
        parse_partition(read_file(partition_file), partition_file, graph.node_count());
    if (partition_hash(part_of) != plan_.at("partition").at("hash").get<std::string>()) {
      throw Error(ErrorCode::kInvalidGraph, "the partition is not the one of the plan",
                  {.file = partition_file});
    }
    const auto k = plan_.at("k").get<std::int32_t>();
    for (const std::int32_t part : part_of) {
      if (part >= k) {
        throw Error(ErrorCode::kInvalidGraph, "part " + std::to_string(part) + " is not below k",
                    {.file = partition_file});
      }
    }
    features_ = timed("read the features", [&] { return read_features(options_.features); });
    if (features_.shape()[0] != graph.node_count() ||
        features_.shape()[1] != model_.layers.front().input_features) {
      throw Error(ErrorCode::kInvalidGraph,
                  "the features are " + shape_text(features_.shape()) + ", expected [" +
                      std::to_string(graph.node_count()) + ", " +
                      std::to_string(model_.layers.front().input_features) + "]",
                  {.file = options_.features});
    }
    degree_ = Tensor(DType::kFloat32, {graph.node_count()});
    for (std::int32_t v = 0; v < graph.node_count(); ++v) {
      degree_.as_mutable<float>()[v] = static_cast<float>(graph.degree(v));
    }
    parts_ = timed("subgraphs", [&] { return extract_subgraphs(graph, part_of, k); });
    nodes_ = graph.node_count();
    weights_ = load_staged_weights(model_, options_.weights);
    const PhaseTimes::Scope phase(times_, "devices and programs");
    open_devices();
    build_tasks();
  }

  template <typename Action>
  std::invoke_result_t<Action> timed(const std::string& phase, const Action& action) {
    report_progress(options_.progress, 0, phase);
    const PhaseTimes::Scope scope(times_, phase);
    return action();
  }

  void open_devices() {
    const Target target = load_target(options_.target);
    std::map<std::string, std::string> overrides;
    for (const std::string& text : options_.devices) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        throw Error(ErrorCode::kUsage, "--device '" + text + "': expected NAME=BACKEND");
      }
      overrides[text.substr(0, equals)] = text.substr(equals + 1);
    }
    std::vector<std::string> used;
    for (const Json& pep : plan_.at("peps")) {
      for (const Json& segment : pep.at("segments")) {
        for (const Json& share : segment.at("devices")) used.push_back(share.at("device"));
      }
    }
    for (const Json& entry : plan_.at("devices")) {
      GnnDevice device;
      device.name = entry.at("name").get<std::string>();
      device.resource = entry.at("resource").get<std::string>();
      device.is_static = entry.at("static").get<bool>();
      device.threads = options_.threads;
      const Device* description = target.find_device(device.name);
      Json backend_options = Json::object();
      if (overrides.contains(device.name)) {
        device.backend = overrides[device.name];
      } else if (description != nullptr) {
        device.backend = description->backend;
        if (description->backend_options.is_object()) {
          backend_options = description->backend_options;
        }
      }
      const bool is_used = std::find(used.begin(), used.end(), device.name) != used.end();
      if (device.backend.empty() && is_used) {
        throw Error(ErrorCode::kUnsupported, "device '" + device.name +
                                                 "' has no backend: give --device " + device.name +
                                                 "=BACKEND");
      }
      if (is_used) {
        backend_options["threads"] = options_.threads;
        device.options = backend_options.dump();
        device.instance = DeviceInstance::open(Backend::load(device.backend), device.options);
      }
      device.cache = &cache_;
      device.counts = &counts_;
      devices_.push_back(std::move(device));
      device_mutex_.push_back(std::make_unique<std::mutex>());
    }
  }

  std::int32_t device_index(const std::string& name) const {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].name == name) return static_cast<std::int32_t>(d);
    }
    throw Error(ErrorCode::kInvalidGraph, "device '" + name + "' is not in the plan's devices",
                {.file = options_.plan});
  }

  const GnnBlock& block_for(std::int32_t layer, const Task& task, std::int32_t device) {
    const GnnDevice& on = devices_[at(device)];
    BlockShape shape{task.work.owned, task.work.local, task.work.edges()};
    if (on.is_static) {
      const auto pad = plan_.at("pad").get<std::int64_t>();
      const auto padded = [&](std::int64_t value) {
        return std::max<std::int64_t>(1, (value + pad - 1) / pad) * pad;
      };
      // One node more than there are where edges are padded, so that they have somewhere to go.
      shape = {padded(shape.owned), padded(shape.local), padded(shape.edges)};
      if (!reads_edges(layer, task.first, task.last)) shape.edges = pad;
    }
    const auto key =
        std::tuple(device, layer, task.first, task.last, shape.owned, shape.local, shape.edges);
    auto& block = blocks_[key];
    if (block == nullptr) {
      const auto start = Clock::now();
      block = std::make_unique<GnnBlock>(model_, layer, task.first, task.last, shape, on, weights_);
      compile_ms_ += ms_since(start);
      fused_ += block->fused_reductions();
    }
    return *block;
  }

  bool reads_edges(std::int32_t layer, std::int32_t first, std::int32_t last) const {
    for (const StageTensor& tensor : model_.layers[at(layer - 1)].tensors) {
      if (tensor.edge_bytes <= 0) continue;
      if (tensor.producer >= first && tensor.producer <= last) return true;
      for (const std::int32_t consumer : tensor.consumers) {
        if (consumer >= first && consumer <= last) return true;
      }
    }
    return false;
  }

  void build_tasks() {
    resident_features_.resize(devices_.size());
    layers_.resize(model_.layers.size());
    std::map<std::pair<std::int32_t, std::int32_t>, double> predicted;
    for (const Json& cluster : plan_.at("clusters")) {
      const auto layer = cluster.at("layer").get<std::int32_t>();
      if (layer < 1 || at(layer) > layers_.size()) {
        throw Error(ErrorCode::kInvalidGraph, "a cluster is of an unknown layer",
                    {.file = options_.plan});
      }
      const Json& pep = plan_.at("peps").at(cluster.at("pep").get<std::size_t>());
      for (const Json& id : cluster.at("subgraphs")) {
        const auto subgraph = id.get<std::int32_t>();
        if (subgraph < 0 || at(subgraph) >= parts_.size()) {
          throw Error(ErrorCode::kInvalidGraph,
                      "subgraph " + id.dump() + " is not in the partition",
                      {.file = options_.plan});
        }
        add_subgraph(layer, subgraph, pep);
      }
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      std::vector<char> seen(parts_.size(), 0);
      for (const auto& task : layers_[l]) seen[at(task->subgraph)] = 1;
      if (std::find(seen.begin(), seen.end(), 0) != seen.end()) {
        throw Error(ErrorCode::kInvalidGraph,
                    "layer " + std::to_string(l + 1) + " does not plan every subgraph",
                    {.file = options_.plan});
      }
      for (const auto& task : layers_[l]) {
        task->block = &block_for(static_cast<std::int32_t>(l) + 1, *task, task->device);
      }
    }
  }

  void add_subgraph(std::int32_t layer, std::int32_t subgraph, const Json& pep) {
    const Subgraph& part = parts_[at(subgraph)];
    std::size_t segment_index = 0;
    for (const Json& segment : pep.at("segments")) {
      const Json& shares = segment.at("devices");
      double ratio = 0;
      std::int64_t begin = 0;
      for (std::size_t i = 0; i < shares.size(); ++i) {
        ratio += shares[i].at("ratio").get<double>();
        const std::int64_t end =
            i + 1 == shares.size()
                ? part.owned
                : std::clamp<std::int64_t>(std::llround(ratio * static_cast<double>(part.owned)),
                                           begin, part.owned);
        auto task = std::make_unique<Task>();
        task->subgraph = subgraph;
        task->segment = segment_index;
        task->first = segment.at("first").get<std::int32_t>();
        task->last = segment.at("last").get<std::int32_t>();
        task->device = device_index(shares[i].at("device").get<std::string>());
        fill_work(part, begin, end, shares.size() == 1, *task);
        layers_[at(layer - 1)].push_back(std::move(task));
        begin = end;
      }
      ++segment_index;
    }
  }

  void fill_work(const Subgraph& part, std::int64_t begin, std::int64_t end, bool whole,
                 Task& task) const {
    GnnWork& work = task.work;
    task.row_begin = begin;
    task.edge_begin = part.offsets[at(begin)];
    work.owned = end - begin;
    if (whole) {
      work.local = static_cast<std::int64_t>(part.nodes.size());
      work.offsets = part.offsets;
      work.sources = part.sources;
      const bool identity = work.local == nodes_ && part.owned == nodes_;
      if (!identity) work.nodes = part.nodes;
    } else {
      std::vector<std::int32_t> index(part.nodes.size(), -1);
      for (std::int64_t v = begin; v < end; ++v) {
        index[at(v)] = static_cast<std::int32_t>(task.local.size());
        task.local.push_back(static_cast<std::int32_t>(v));
      }
      work.offsets.push_back(0);
      for (std::int64_t v = begin; v < end; ++v) {
        for (std::int64_t e = part.offsets[at(v)]; e < part.offsets[at(v) + 1]; ++e) {
          const std::int32_t u = part.sources[at(e)];
          if (index[at(u)] < 0) {
            index[at(u)] = static_cast<std::int32_t>(task.local.size());
            task.local.push_back(u);
          }
          work.sources.push_back(index[at(u)]);
        }
        work.offsets.push_back(static_cast<std::int64_t>(work.sources.size()));
      }
      work.local = static_cast<std::int64_t>(task.local.size());
      for (const std::int32_t v : task.local) work.nodes.push_back(part.nodes[at(v)]);
    }
    if (!work.nodes.empty()) {
      work.base_sources.reserve(work.sources.size());
      for (const std::int32_t u : work.sources) work.base_sources.push_back(work.nodes[at(u)]);
    }
  }

  // ---- Execution ----

  void execute() {
    start_ = Clock::now();
    Tensor x = features_;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      input_ = x;
      output_ = Tensor(DType::kFloat32, {nodes_, model_.layers[l].output_features});
      run_layer(static_cast<std::int32_t>(l) + 1);
      x = output_;
    }
  }

  void run_layer(std::int32_t layer) {
    layer_ = layer;
    exchanges_.clear();
    exchanges_.resize(parts_.size());
    for (auto& exchange : exchanges_) exchange = std::make_unique<Exchange>();
    for (const auto& task : layers_[at(layer - 1)]) {
      task->started = task->done = false;
      auto& open = exchanges_[at(task->subgraph)]->open;
      if (open.size() <= task->segment) open.resize(task->segment + 1, 0);
      ++open[task->segment];
    }
    left_ = layers_[at(layer - 1)].size();
    failure_.clear();
    busy_.clear();
    // A device that has nothing to do waits, too: it may have to take over from one that fails. If
    // there is only one, it runs on this thread.
    std::vector<std::int32_t> present;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      if (devices_[d].instance != nullptr) present.push_back(static_cast<std::int32_t>(d));
    }
    workers_.run(present.size(), [&](std::size_t i) noexcept { work(present[i]); });
    if (interrupted_) throw Error(ErrorCode::kIo, "interrupted");
    if (!failure_.empty()) throw Error(ErrorCode::kUnsupported, failure_);
  }

  Task* next_task(std::int32_t device) {
    if (broken_.contains(device) || busy_.contains(devices_[at(device)].resource)) return nullptr;
    for (const auto& task : layers_[at(layer_ - 1)]) {
      if (task->device != device || task->started) continue;
      if (task->segment > 0 && exchanges_[at(task->subgraph)]->open[task->segment - 1] > 0)
        continue;
      return task.get();
    }
    return nullptr;
  }

  void work(std::int32_t device) {
    std::unique_lock lock(mutex_);
    for (;;) {
      Task* task = nullptr;
      changed_.wait(lock, [&] {
        if (left_ == 0 || interrupted_ || !failure_.empty()) return true;
        task = next_task(device);
        return task != nullptr;
      });
      if (task == nullptr) return;
      task->started = true;
      busy_.insert(devices_[at(device)].resource);
      lock.unlock();
      std::string error;
      std::map<std::string, Tensor> unused;  // values that nobody reads any more
      task->start_ms = ms_since(start_);
      try {
        const auto limit = options_.fail_after.find(devices_[at(device)].name);
        if (limit != options_.fail_after.end() && finished_[device] >= limit->second) {
          throw Error(ErrorCode::kUnsupported, "the device was told to fail");
        }
        // The host makes calls on one device from one thread at a time.
        const std::lock_guard guard(*device_mutex_[at(device)]);
        run_task(*task);
      } catch (const std::exception& exception) {
        error = exception.what();
      }
      task->end_ms = ms_since(start_);
      lock.lock();
      busy_.erase(devices_[at(device)].resource);
      if (error.empty()) {
        ++finished_[device];
        task->done = true;
        Exchange& exchange = *exchanges_[at(task->subgraph)];
        --exchange.open[task->segment];
        --left_;
        ++tasks_done_;
        if (std::all_of(exchange.open.begin(), exchange.open.end(),
                        [](std::int32_t open) { return open == 0; })) {
          const std::lock_guard values_lock(exchange.mutex);
          unused = std::move(exchange.values);
          exchange.values.clear();
        }
        interrupted_ = interrupted_ || !goes_on();
      } else {
        task->started = false;
        fail_device(device, error);
      }
      changed_.notify_all();
      if (unused.empty()) continue;
      lock.unlock();
      unused.clear();  // giving memory back takes its time
      lock.lock();
    }
  }

  // Tells how far the run is, with the lock held; false if it is to stop.
  bool goes_on() const {
    if (!options_.progress) return true;
    std::size_t tasks = 0;
    for (const auto& layer : layers_) tasks += layer.size();
    const auto total = static_cast<double>(tasks) * (options_.bench + 1);
    const std::string run =
        options_.bench > 0 ? "run " + std::to_string(run_) + " of " + std::to_string(options_.bench)
                           : "layer " + std::to_string(layer_);
    return options_.progress(static_cast<double>(tasks_done_) / total, run);
  }

  // Called with the lock held: everything that the device has not done goes to others.
  void fail_device(std::int32_t device, const std::string& error) {
    broken_.insert(device);
    failures_.push_back("device '" + devices_[at(device)].name + "' failed: " + error);
    for (std::size_t l = at(layer_ - 1); l < layers_.size(); ++l) {
      for (const auto& task : layers_[l]) {
        if (task->device != device || (l == at(layer_ - 1) && task->done)) continue;
        std::string reasons;
        bool moved = false;
        for (std::size_t other = 0; other < devices_.size() && !moved; ++other) {
          const auto candidate = static_cast<std::int32_t>(other);
          if (broken_.contains(candidate) || devices_[other].instance == nullptr) continue;
          try {
            const std::lock_guard guard(*device_mutex_[other]);
            task->block = &block_for(static_cast<std::int32_t>(l) + 1, *task, candidate);
            task->device = candidate;
            task->moved = true;
            moved = true;
            ++reexecuted_;
          } catch (const Error& refusal) {
            reasons += "; " + devices_[other].name + ": " + refusal.message();
          }
        }
        if (!moved) {
          failure_ = failures_.back() + "; no other device runs stages " +
                     std::to_string(task->first) + "-" + std::to_string(task->last) + reasons;
          return;
        }
      }
    }
  }

  // The features, uploaded once, for a task that reads all of them as they are. Called with the
  // device's lock held.
  std::shared_ptr<DeviceBuffer> resident_features(const Task& task) {
    if (layer_ != 1 || !task.work.nodes.empty()) return nullptr;
    std::shared_ptr<DeviceBuffer>& resident = resident_features_[at(task.device)];
    if (resident == nullptr)
      resident = devices_[at(task.device)].instance->import_tensor(features_);
    return resident;
  }

  void run_task(Task& task) {
    Exchange& exchange = *exchanges_[at(task.subgraph)];
    const Subgraph& part = parts_[at(task.subgraph)];
    const LayerInfo& info = model_.layers[at(layer_ - 1)];
    std::map<std::string, GnnInput> inputs;
    for (const std::string& name : task.block->input_names()) {
      if (name == kEdgeInput) continue;
      if (name == kFeatureInput) {
        inputs[name] = {input_, true, resident_features(task)};
      } else if (name == kDegreeInput) {
        inputs[name] = {degree_, true, nullptr};
      } else {
        Tensor value;
        {
          const std::lock_guard lock(exchange.mutex);
          value = exchange.values.at(name);
        }
        inputs[name] = {share_of(value, find_tensor(info, name), task), false, nullptr};
      }
    }
    std::map<std::string, Tensor> outputs = task.block->run(task.work, inputs, options_.padding);
    for (auto& [name, value] : outputs) {
      const StageTensor& tensor = find_tensor(info, name);
      if (!tensor.consumers.empty() && tensor.consumers.back() > info.stage_count()) {
        store_rows(value, part, task);
        if (tensor.consumers.size() == 1) continue;
      }
      store(exchange, part, tensor, value, task);
    }
  }

  static const StageTensor& find_tensor(const LayerInfo& info, const std::string& name) {
    return *std::find_if(info.tensors.begin(), info.tensors.end(),
                         [&](const StageTensor& tensor) { return tensor.name == name; });
  }

  static Tensor rows_of(const Tensor& tensor, std::int64_t begin, std::int64_t count) {
    if (begin == 0 && count == tensor.shape()[0]) return tensor;
    Shape shape = tensor.shape();
    const std::size_t bytes = shape[0] > 0 ? tensor.bytes() / at(shape[0]) : 0;
    shape[0] = count;
    const auto owner = std::make_shared<Tensor>(tensor);
    return Tensor(tensor.dtype(), std::move(shape),
                  std::shared_ptr<const std::byte>(owner, owner->data() + at(begin) * bytes));
  }

  // The part of a subgraph's value that a share reads.
  static Tensor share_of(const Tensor& value, const StageTensor& tensor, const Task& task) {
    if (tensor.edge_bytes > 0) return rows_of(value, task.edge_begin, task.work.edges());
    if (tensor.node_bytes <= 0) return value;
    if (!tensor.local_rows) return rows_of(value, task.row_begin, task.work.owned);
    if (task.local.empty()) return value;
    Shape shape = value.shape();
    const std::size_t bytes = shape[0] > 0 ? value.bytes() / at(shape[0]) : 0;
    shape[0] = task.work.local;
    Tensor result(value.dtype(), std::move(shape));
    for (std::size_t r = 0; r < task.local.size(); ++r) {
      std::memcpy(result.mutable_data() + r * bytes, value.data() + at(task.local[r]) * bytes,
                  bytes);
    }
    return result;
  }

  static void store(Exchange& exchange, const Subgraph& part, const StageTensor& tensor,
                    const Tensor& value, const Task& task) {
    const bool whole = task.local.empty();
    const std::lock_guard lock(exchange.mutex);
    if (whole) {
      exchange.values[tensor.name] = value;
      return;
    }
    Tensor& target = exchange.values[tensor.name];
    Shape shape = value.shape();
    shape[0] = tensor.edge_bytes > 0 ? static_cast<std::int64_t>(part.sources.size())
               : tensor.local_rows   ? static_cast<std::int64_t>(part.nodes.size())
                                     : part.owned;
    if (target.shape() != shape) target = Tensor(value.dtype(), shape);
    const std::size_t bytes = value.shape()[0] > 0 ? value.bytes() / at(value.shape()[0]) : 0;
    if (tensor.edge_bytes <= 0 && tensor.local_rows) {
      for (std::size_t r = 0; r < task.local.size(); ++r) {
        std::memcpy(target.mutable_data() + at(task.local[r]) * bytes, value.data() + r * bytes,
                    bytes);
      }
      return;
    }
    const std::int64_t begin = tensor.edge_bytes > 0 ? task.edge_begin : task.row_begin;
    if (value.bytes() > 0) {
      std::memcpy(target.mutable_data() + at(begin) * bytes, value.data(), value.bytes());
    }
  }

  // Rows of the layer's output: no other task writes them.
  void store_rows(const Tensor& value, const Subgraph& part, const Task& task) {
    if (task.local.empty() && task.work.nodes.empty() && value.shape() == output_.shape()) {
      output_ = value;  // the whole graph in one task
      return;
    }
    scatter_rows(value, part.nodes.data() + task.row_begin, task.work.owned, output_);
  }

  // ---- Report ----

  void write_report(GnnRunResult& result, std::vector<double> times, double load_ms) {
    Json& report = result.report;
    report["outputs"] =
        Json::array({{{"name", "out"}, {"shape", output_.shape()}, {"dtype", "float32"}}});
    Json steps = Json::array();
    Json busy = Json::object();
    std::map<std::string, double> busy_ms;
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (const auto& task : layers_[l]) {
        const GnnDevice& device = devices_[at(task->device)];
        Json step = {{"kind", "block"},       {"id", task->subgraph},
                     {"layer", l + 1},        {"stages", Json::array({task->first, task->last})},
                     {"device", device.name}, {"ms", task->end_ms - task->start_ms}};
        if (task->moved) step["moved"] = true;
        steps.push_back(std::move(step));
        busy_ms[device.name] += task->end_ms - task->start_ms;
      }
    }
    for (const auto& [name, ms] : busy_ms) busy[name] = ms;
    report["steps"] = std::move(steps);
    report["busy_ms"] = std::move(busy);
    report["k"] = plan_.at("k");
    report["predicted_ms"] = plan_.at("makespan_ms");
    report["first_ms"] = times.front();
    std::vector<double> sorted = times;
    if (sorted.size() > 1) sorted.erase(sorted.begin());
    std::sort(sorted.begin(), sorted.end());
    report["measured_ms"] = sorted[sorted.size() / 2];
    report["load_ms"] = load_ms;
    report["compile_ms"] = compile_ms_;
    report["static_compiles"] = counts_.compiled;
    report["cache_hits"] = counts_.cache_hits;
    report["fused_reductions"] = fused_;
    report["reexecuted"] = reexecuted_;
    if (options_.bench > 0) {
      report["bench"] = {
          {"runs", sorted.size()},
          {"median_ms", sorted[sorted.size() / 2]},
          {"min_ms", sorted.front()},
          {"p90_ms", sorted[(sorted.size() * 9) / 10 < sorted.size() ? (sorted.size() * 9) / 10
                                                                     : sorted.size() - 1]}};
    }
    for (const std::string& failure : failures_) diagnostics_.warning({}, failure);
    const PhaseTimes::Scope phase(times_, "compare and write");
    if (!options_.expect.empty()) {
      const Tensor expected = read_features(options_.expect);
      const Comparison comparison =
          compare_tensors(output_, expected, {options_.rtol, options_.atol});
      result.within = comparison.ok;
      report["comparison"] = {{"ok", comparison.ok},
                              {"max_abs", comparison.max_abs},
                              {"max_rel", comparison.max_rel},
                              {"elements", comparison.elements},
                              {"out_of_tolerance", comparison.out_of_tolerance}};
      if (!comparison.mismatch.empty()) report["comparison"]["mismatch"] = comparison.mismatch;
    }
    if (!options_.outputs.empty()) {
      if (options_.outputs.ends_with(".npy")) {
        write_npy(options_.outputs, output_);
      } else {
        write_safetensors(options_.outputs, {{"out", output_}});
      }
    }
    if (!options_.trace.empty()) write_file_atomically(options_.trace, trace());
  }

  std::string trace() const {
    std::string text = "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [";
    bool first = true;
    const auto add = [&](const Json& event) {
      text += (first ? "\n" : ",\n") + event.dump();
      first = false;
    };
    std::map<std::pair<std::int64_t, std::int64_t>, Json> predicted;
    for (const Json& assignment : plan_.at("assignments")) {
      predicted[{assignment.at("layer").get<std::int64_t>(),
                 assignment.at("subgraph").get<std::int64_t>()}] = assignment.at("device_ms");
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      add({{"ph", "M"},
           {"pid", 1},
           {"tid", d + 1},
           {"name", "thread_name"},
           {"args", {{"name", devices_[d].name}}}});
    }
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      for (const auto& task : layers_[l]) {
        const std::string& device = devices_[at(task->device)].name;
        Json args = {{"layer", l + 1}, {"measured_ms", task->end_ms - task->start_ms}};
        const Json& plan_ms =
            predicted[{static_cast<std::int64_t>(l) + 1, std::int64_t{task->subgraph}}];
        if (const Json* ms = find_member(plan_ms, device)) args["predicted_ms"] = *ms;
        add({{"name", "subgraph " + std::to_string(task->subgraph) + " [" +
                          std::to_string(task->first) + "-" + std::to_string(task->last) + "]"},
             {"cat", "measured"},
             {"ph", "X"},
             {"ts", task->start_ms * 1000},
             {"dur", (task->end_ms - task->start_ms) * 1000},
             {"pid", 1},
             {"tid", task->device + 1},
             {"args", std::move(args)}});
      }
    }
    return text + "\n]}\n";
  }

  const GnnRunOptions& options_;
  Diagnostics& diagnostics_;
  Json plan_;
  StagedModel model_;
  Tensor features_;
  Tensor degree_;
  Tensor input_;
  Tensor output_;
  std::int64_t nodes_ = 0;
  std::vector<Subgraph> parts_;
  std::map<std::string, Tensor> weights_;
  std::vector<GnnDevice> devices_;
  std::vector<std::unique_ptr<std::mutex>> device_mutex_;
  std::vector<std::shared_ptr<DeviceBuffer>> resident_features_;  // by device
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int32_t, std::int64_t,
                      std::int64_t, std::int64_t>,
           std::unique_ptr<GnnBlock>>
      blocks_;
  std::vector<std::vector<std::unique_ptr<Task>>> layers_;  // in order of priority

  WorkerThreads workers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Clock::time_point start_;
  std::int32_t layer_ = 1;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::size_t left_ = 0;
  std::set<std::string> busy_;
  std::set<std::int32_t> broken_;
  std::map<std::int32_t, std::int32_t> finished_;
  std::string failure_;
  std::vector<std::string> failures_;
  std::int32_t reexecuted_ = 0;
  CompileCache cache_;
  ProgramCounts counts_;
  PhaseTimes times_;
  std::int32_t run_ = 0;
  std::int64_t tasks_done_ = 0;
  bool interrupted_ = false;
  std::int32_t fused_ = 0;
  double compile_ms_ = 0;
};

}  // namespace

bool is_gnn_plan(const Json& document) {
  const Json* npu = find_member(document, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  return kind != nullptr && *kind == "plan";
}

GnnRunResult run_gnn_plan(const GnnRunOptions& options, Diagnostics& diagnostics) {
  return Runner(options, diagnostics).run();
}

}  // namespace npu
