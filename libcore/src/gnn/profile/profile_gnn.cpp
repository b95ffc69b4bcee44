// SPDX-License-Identifier: Apache-2.0
// Measures the blocks of a staged model as they will run: compiled for the device, aggregation
// fused, weights resident, inputs and results in host memory. A point is measured as a part of a
// larger graph, which picks its rows of the features and writes its rows of the result; where that
// makes a difference, as the whole graph in one part, too. Graphs have skewed degrees, as real ones
// do. Each point is visited twice; a visit runs it `warm_up` times without a clock and half of
// `runs` times with one; the smaller median and its median absolute deviation are kept. Times that
// fall although nodes and edges grow are raised afterwards (monotone repair), and the table says
// how well it predicts points that are left out of it. Already measured points of a table of the
// same host and model are taken over.
//
// Cost: (blocks * points * runs) executions; memory: the tensors of one point, weights aside.
#include "npu/gnn/profile_gnn.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

#include "gnn/run/gnn_block.hpp"
#include "gnn/run/plan_loader.hpp"
#include "gnn/run/tensor_rows.hpp"
#include "npu/gnn/staged_model.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/profile/host_fingerprint.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/text.hpp"
#include "npu/target/target.hpp"
#include "support/statistics.hpp"

namespace npu::gnn {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

double unit(std::uint64_t value) { return static_cast<double>(mixed(value) >> 11) * 0x1p-53; }

// A node of n, drawn with a density that falls with its rank; the ranks are scattered.
std::int64_t skewed_node(std::uint64_t draw, std::int64_t n) {
  const double u = unit(draw);
  const auto rank = static_cast<std::uint64_t>(u * u * static_cast<double>(n));
  return static_cast<std::int64_t>(mixed(rank * 2 + 1) % static_cast<std::uint64_t>(n));
}

// n nodes and m edges, whose ends are drawn.
SubgraphView skewed_graph(std::int64_t n, std::int64_t m) {
  SubgraphView work;
  work.owned = work.local = n;
  work.offsets.assign(index_of(n) + 1, 0);
  for (std::int64_t e = 0; e < m; ++e) {
    ++work.offsets[index_of(skewed_node(3 * static_cast<std::uint64_t>(e) + 1, n)) + 1];
  }
  for (std::int64_t v = 0; v < n; ++v) work.offsets[index_of(v) + 1] += work.offsets[index_of(v)];
  work.sources.resize(index_of(m));
  for (std::int64_t e = 0; e < m; ++e) {
    work.sources[index_of(e)] =
        static_cast<std::int32_t>(skewed_node(3 * static_cast<std::uint64_t>(e) + 2, n));
  }
  return work;
}

Tensor filled(DType dtype, Shape shape, std::uint64_t seed) {
  Tensor tensor(dtype, std::move(shape));
  if (dtype == DType::kFloat32) {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      tensor.as_mutable<float>()[i] =
          static_cast<float>(unit(seed + static_cast<std::uint64_t>(i)) * 2 - 1);
    }
  }
  return tensor;
}

struct Point {
  std::int32_t device;
  std::int32_t layer;
  std::int32_t first;
  std::int32_t last;
  std::int64_t n;
  std::int64_t m;
  std::int32_t runs;  // timed ones, on this visit
};

// Bytes of what enters and leaves a block, and of its weights.
double block_bytes(const LayerInfo& info, const Point& point) {
  double bytes = 0;
  const auto n = static_cast<double>(point.n);
  const auto m = static_cast<double>(point.m);
  for (const StageTensor& tensor : info.tensors) {
    const bool made = tensor.producer >= point.first && tensor.producer <= point.last;
    const bool read =
        std::any_of(tensor.consumers.begin(), tensor.consumers.end(),
                    [&](std::int32_t c) { return c >= point.first && c <= point.last; });
    const bool inside = made && !tensor.consumers.empty() && tensor.consumers.back() <= point.last;
    if ((made || read) && !inside) {
      bytes += tensor.node_bytes * n + tensor.edge_bytes * m + tensor.fixed_bytes;
    }
  }
  for (std::int32_t s = point.first; s <= point.last; ++s) {
    bytes += info.stages[index_of(s - 1)].weight_bytes;
  }
  return bytes;
}

class Profiler {
 public:
  Profiler(const ProfileOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}

  StageTable run(const std::function<bool(const ProfileProgress&, const StageTable&)>& progress) {
    model_ = read_staged_model(options_.model);
    weights_ = load_staged_weights(model_, options_.weights);
    open_devices();
    table_.fingerprint = host_fingerprint(options_.threads);
    table_.extra["model"] = model_.name;
    table_.extra["model_hash"] = model_.hash;
    take_over();
    const std::vector<Point> points = open_points();
    for (const Point& point : points) graph_nodes_ = std::max(graph_nodes_, point.n);
    const auto start = Clock::now();
    for (std::size_t p = 0; p < points.size(); ++p) {
      ProfileProgress state;
      state.done = static_cast<std::int32_t>(p);
      state.total = static_cast<std::int32_t>(points.size());
      state.elapsed_s = ms_since(start) / 1000;
      // Later points are larger; what is left is judged by bytes, not by count.
      state.remaining_s =
          done_bytes_ > 0 ? state.elapsed_s * (total_bytes_ - done_bytes_) / done_bytes_ : 0;
      state.what = devices_[index_of(points[p].device)].name + "[" +
                   std::to_string(points[p].first) + "-" + std::to_string(points[p].last) +
                   "] n=" + std::to_string(points[p].n) + " m=" + std::to_string(points[p].m);
      if (!progress(state, table_)) break;
      measure(points[p]);
      done_bytes_ += weight_of(points[p]);
    }
    measure_links();
    table_.index();
    table_.extra["repaired"] = table_.repair_monotone();
    const StageTable::HoldOut held = table_.leave_one_out();
    table_.extra["leave_one_out"] = {{"points", held.points},
                                     {"median_error", held.median_error},
                                     {"worst_error", held.worst_error},
                                     {"worst", held.worst}};
    return std::move(table_);
  }

 private:
  void open_devices() {
    const Target target = load_target(options_.target);
    for (const auto& [name, backend] : wanted_devices(target)) {
      GnnDevice device;
      device.name = name;
      device.backend = backend;
      device.is_static = backend == "onednn";
      // Backends of this machine compute on the same cores.
      device.resource = backend == "onednn" || backend == "aten" ? "host" : name;
      device.threads = options_.threads;
      const Json backend_options = {{"threads", options_.threads}};
      device.instance = DeviceInstance::open(Backend::load(backend), backend_options.dump());
      table_.devices.push_back({name, device.resource, device.is_static, 0});
      auto& refusals = refusals_.emplace_back(model_.layers.size());
      const Device* description = target.find_device(name);
      for (std::size_t l = 0; l < model_.layers.size(); ++l) {
        for (std::int32_t s = 1; s <= model_.layers[l].stage_count(); ++s) {
          refusals[l].push_back(
              description == nullptr
                  ? std::string()
                  : stage_refusal(model_, static_cast<std::int32_t>(l) + 1, s, *description));
        }
      }
      devices_.push_back(std::move(device));
    }
  }

  // The devices to measure, all with a backend.
  std::vector<DeviceBackend> wanted_devices(const Target& target) const {
    std::vector<DeviceBackend> wanted;
    if (options_.devices.empty()) {
      for (const Device& device : target.devices) {
        if (!device.backend.empty()) wanted.push_back({device.name, device.backend});
      }
    }
    for (DeviceBackend device : options_.devices) {
      const Device* description = target.find_device(device.device);
      if (device.backend.empty() && description != nullptr) device.backend = description->backend;
      if (device.backend.empty()) {
        throw Error(ErrorCode::kUsage, "'" + device.device +
                                           "' is no device of the target with a backend: name one "
                                           "as " +
                                           device.device + "=BACKEND");
      }
      wanted.push_back(std::move(device));
    }
    return wanted;
  }

  // Points of an earlier run on the same host and for the same model.
  void take_over() {
    std::error_code ignored;
    if (options_.resume.empty() || !std::filesystem::exists(options_.resume, ignored)) return;
    const StageTable old = read_profile(options_.resume);
    const Json* hash = find_member(old.extra, "model_hash");
    if (hash == nullptr || *hash != model_.hash || old.fingerprint != table_.fingerprint) {
      throw Error(ErrorCode::kUsage,
                  "the table there is of another model or host; remove it, or write elsewhere",
                  {.file = options_.resume});
    }
    for (const ProfileEntry& entry : old.entries) {
      if (table_.find_device(entry.device) >= 0) table_.entries.push_back(entry);
    }
    if (!table_.entries.empty()) {
      diagnostics_.note({.file = options_.resume},
                        std::to_string(table_.entries.size()) + " points are taken over");
    }
  }

  double weight_of(const Point& point) const {
    return block_bytes(model_.layers[index_of(point.layer - 1)], point) + 1e5;
  }

  using PointKey =
      std::tuple<std::string, std::int32_t, std::int32_t, std::int32_t, double, double>;
  static PointKey key_of(const ProfileEntry& entry) {
    return {entry.device, entry.layer, entry.first, entry.last, entry.n, entry.m};
  }
  PointKey key_of(const Point& point) const {
    return {devices_[index_of(point.device)].name,
            point.layer,
            point.first,
            point.last,
            static_cast<double>(point.n),
            static_cast<double>(point.m)};
  }

  // Every point is visited twice, with half of the runs each: what else the machine does comes in
  // bursts that outlast the runs of one visit.
  std::vector<Point> open_points() {
    std::map<PointKey, std::int32_t> runs;
    for (std::size_t e = 0; e < table_.entries.size(); ++e) {
      runs[key_of(table_.entries[e])] = table_.entries[e].runs;
      entry_of_[key_of(table_.entries[e])] = e;
    }
    const std::vector<Point> all = all_points();
    std::vector<Point> open;
    for (const std::int32_t enough : {(options_.runs + 1) / 2, options_.runs}) {
      for (Point point : all) {
        std::int32_t& done = runs[key_of(point)];
        if (done >= enough) continue;
        point.runs = enough - done;
        done = enough;
        open.push_back(point);
        total_bytes_ += weight_of(point);
      }
    }
    return open;
  }

  std::vector<Point> all_points() {
    std::vector<Point> points;
    std::int32_t left_out = 0;
    for (const std::int64_t n : options_.nodes) {
      for (const double degree : options_.degrees) {
        const auto m = std::max<std::int64_t>(1, std::llround(degree * static_cast<double>(n)));
        for (std::size_t l = 0; l < model_.layers.size(); ++l) {
          const LayerInfo& info = model_.layers[l];
          for (std::size_t d = 0; d < devices_.size(); ++d) {
            for (std::int32_t first = 1; first <= info.stage_count(); ++first) {
              for (std::int32_t last = first; last <= info.stage_count(); ++last) {
                if (!refusals_[d][l][index_of(last - 1)].empty()) break;
                const Point point{static_cast<std::int32_t>(d),
                                  static_cast<std::int32_t>(l) + 1,
                                  first,
                                  last,
                                  n,
                                  m,
                                  0};
                if (block_bytes(info, point) > static_cast<double>(options_.max_bytes)) {
                  ++left_out;
                } else {
                  points.push_back(point);
                }
              }
            }
          }
        }
      }
    }
    if (left_out > 0) {
      diagnostics_.note({}, std::to_string(left_out) + " points are left out: their tensors take " +
                                "more than " + bytes_text(static_cast<double>(options_.max_bytes)));
    }
    return points;
  }

  // The visit that was disturbed less counts: other work only ever adds time.
  void add(ProfileEntry entry) {
    const auto [found, is_new] = entry_of_.emplace(key_of(entry), table_.entries.size());
    if (is_new) {
      table_.entries.push_back(std::move(entry));
      return;
    }
    ProfileEntry& known = table_.entries[found->second];
    if (entry.ms < known.ms) {
      known.ms = entry.ms;
      known.mad_ms = entry.mad_ms;
    }
    if (known.whole_ms <= 0 || (entry.whole_ms > 0 && entry.whole_ms < known.whole_ms)) {
      known.whole_ms = entry.whole_ms;
    }
    known.compile_ms = std::min(known.compile_ms, entry.compile_ms);
    known.runs += entry.runs;
  }

  void measure(const Point& point) {
    const LayerInfo& info = model_.layers[index_of(point.layer - 1)];
    const GnnDevice& device = devices_[index_of(point.device)];
    // Hardly any graph has the very size of a static program: one node is padding.
    const std::int64_t nodes = device.is_static ? std::max<std::int64_t>(1, point.n - 1) : point.n;
    if (work_.owned != nodes || work_.edges() != point.m) work_ = skewed_graph(nodes, point.m);
    const auto compile_start = Clock::now();
    const BlockShape shape{point.n, point.n, point.m};
    const GnnBlock block(model_, point.layer, point.first, point.last, shape, device, weights_);
    const double compile_ms = ms_since(compile_start);
    std::map<std::string, BlockInput> inputs;
    const Graph graph =
        read_valid_graph(model_.block(point.layer, point.first, point.last, shape).dump(), "block");
    bool reads_features = false;
    for (const TensorId id : graph.graph_inputs()) {
      const TensorInfo& tensor = graph.tensor(id);
      if (tensor.name == kEdgeInput) continue;
      if (tensor.name == kFeatureInput || tensor.name == kDegreeInput) {
        reads_features = reads_features || tensor.name == kFeatureInput;
        inputs[tensor.name] = {rows_of_graph(tensor), true, nullptr};
      } else {
        Shape shape_of_value = tensor.shape;
        if (shape_of_value[0] == point.n) shape_of_value[0] = nodes;
        inputs[tensor.name] = {filled(tensor.dtype, shape_of_value, 17), false, nullptr};
      }
    }
    bool ends_layer = false;
    for (const StageTensor& tensor : info.tensors) {
      ends_layer =
          ends_layer || (tensor.producer >= point.first && tensor.producer <= point.last &&
                         !tensor.consumers.empty() && tensor.consumers.back() > info.stage_count());
    }
    ProfileEntry entry;
    entry.device = device.name;
    entry.layer = point.layer;
    entry.first = point.first;
    entry.last = point.last;
    entry.n = static_cast<double>(point.n);
    entry.m = static_cast<double>(point.m);
    std::tie(entry.ms, entry.mad_ms) = time_runs(point.runs, [&](std::int32_t run) {
      SubgraphView part = part_of_graph(run);
      const auto start = Clock::now();
      auto outputs = block.run(part, inputs);
      if (ends_layer) store_outputs(outputs, part);
      return ms_since(start);
    });
    if ((reads_features && point.layer == 1) || ends_layer) {
      // The graph in one part: its features were uploaded before, its result is taken as it is.
      for (auto& [name, input] : inputs) {
        if (!input.by_node) continue;
        input.tensor = rows_of(input.tensor, 0, nodes);
        if (name == kFeatureInput && point.layer == 1) {
          input.resident = device.instance->import_tensor(input.tensor);
        }
      }
      entry.whole_ms = time_runs(point.runs, [&](std::int32_t) {
                         const auto start = Clock::now();
                         block.run(work_, inputs);
                         return ms_since(start);
                       }).first;
    }
    entry.runs = point.runs;
    entry.peak_bytes = std::ceil(block_bytes(info, point));
    if (device.is_static) entry.compile_ms = compile_ms;
    add(std::move(entry));
  }

  // Median and median absolute deviation.
  template <typename Run>
  std::pair<double, double> time_runs(std::int32_t runs, const Run& run) const {
    std::vector<double> times;
    for (std::int32_t i = -options_.warm_up; i < runs; ++i) {
      const double ms = run(i);
      if (i >= 0) times.push_back(ms);
    }
    const double middle = lower_median(times);
    for (double& time : times) time = std::abs(time - middle);
    return {middle, lower_median(std::move(times))};
  }

  // Features or degrees of a graph that the point's is a part of: as many rows as the largest point
  // has, filled once.
  Tensor rows_of_graph(const TensorInfo& tensor) {
    Shape shape = tensor.shape;
    shape[0] = std::max(graph_nodes_, shape[0]);
    Tensor& rows = graph_rows_[tensor.name];
    if (rows.shape() != shape || rows.dtype() != tensor.dtype) {
      rows = filled(tensor.dtype, shape, 17);
    }
    return rows;
  }

  // The point's graph as a part: its nodes are spread over those of the whole, and other ones in
  // each run, so that no run finds the rows of the one before in a cache.
  SubgraphView part_of_graph(std::int32_t run) const {
    SubgraphView part = work_;
    const std::int64_t all = std::max(graph_nodes_, work_.owned);
    const std::int64_t shift = (run + options_.warm_up) * std::int64_t{7919};
    part.nodes.resize(index_of(work_.owned));
    for (std::int64_t v = 0; v < work_.owned; ++v) {
      part.nodes[index_of(v)] = static_cast<std::int32_t>((v * all / work_.owned + shift) % all);
    }
    // Most of what a part reads belongs to other ones: sources lie anywhere.
    part.base_sources.reserve(part.sources.size());
    auto draw = static_cast<std::uint64_t>(shift);
    for (std::size_t e = 0; e < part.sources.size(); ++e) {
      part.base_sources.push_back(static_cast<std::int32_t>(skewed_node(++draw, all)));
    }
    return part;
  }

  // What becomes of the results of a part: rows of the whole, written for the first time.
  static void store_outputs(const std::map<std::string, Tensor>& outputs,
                            const SubgraphView& part) {
    std::vector<std::int32_t> rows(index_of(part.owned));
    std::iota(rows.begin(), rows.end(), 0);
    for (const auto& [name, value] : outputs) {
      if (value.shape().empty() || value.shape()[0] < part.owned) continue;
      Tensor target(value.dtype(), value.shape());
      scatter_rows(value, rows.data(), part.owned, target);
    }
  }

  // Host to device and back, for every device: latency and rate by least squares.
  void measure_links() {
    if (devices_.empty()) return;
    const std::string host = table_.find_device("cpu") >= 0 ? "cpu" : devices_.front().name;
    for (const GnnDevice& device : devices_) {
      if (device.name == host) continue;
      ProfileLink in{host, device.name, 0, 0, Json::array(), false};
      ProfileLink out{device.name, host, 0, 0, Json::array(), false};
      for (std::int64_t bytes = 4096; bytes <= (std::int64_t{64} << 20); bytes *= 16) {
        const Tensor tensor(DType::kFloat32, {bytes / 4});
        std::vector<double> in_ms;
        std::vector<double> out_ms;
        for (int run = 0; run < 7; ++run) {
          auto start = Clock::now();
          const auto buffer = device.instance->import_tensor(tensor);
          in_ms.push_back(ms_since(start));
          start = Clock::now();
          buffer->to_host();
          out_ms.push_back(ms_since(start));
          // Where buffers lie in host memory the times of blocks contain both copies.
          in.in_block = out.in_block = true;
        }
        in.samples.push_back({bytes, lower_median(in_ms)});
        out.samples.push_back({bytes, lower_median(out_ms)});
      }
      fit(in);
      fit(out);
      table_.links.push_back(std::move(in));
      table_.links.push_back(std::move(out));
    }
  }

  static void fit(ProfileLink& link) {
    // The largest sample gives the rate, the smallest the latency: robust against the rest.
    const Json& large = link.samples.back();
    const Json& small = link.samples.front();
    const double bytes = large[0].get<double>() - small[0].get<double>();
    const double ms = std::max(1e-6, large[1].get<double>() - small[1].get<double>());
    link.bytes_per_s = bytes / ms * 1e3;
    link.latency_ms =
        std::max(0.0, small[1].get<double>() - small[0].get<double>() / link.bytes_per_s * 1e3);
  }

  const ProfileOptions& options_;
  Diagnostics& diagnostics_;
  StagedModel model_;
  std::map<std::string, Tensor> weights_;
  std::vector<GnnDevice> devices_;
  std::vector<std::vector<std::vector<std::string>>> refusals_;  // device, layer, stage
  StageTable table_;
  SubgraphView work_;
  std::int64_t graph_nodes_ = 0;  // of the largest point
  std::map<std::string, Tensor> graph_rows_;
  std::map<PointKey, std::size_t> entry_of_;  // index into the entries
  double total_bytes_ = 0;
  double done_bytes_ = 0;
};

}  // namespace

StageTable profile_stages(
    const ProfileOptions& options,
    const std::function<bool(const ProfileProgress&, const StageTable&)>& progress,
    Diagnostics& diagnostics) {
  return Profiler(options, diagnostics).run(progress);
}

std::string format_profile_report(const StageTable& table) {
  std::vector<std::vector<std::string>> rows{
      {"device", ">layer", "block", ">points", ">smallest ms", ">largest ms", ">worst MAD"}};
  for (std::size_t begin = 0; begin < table.entries.size();) {
    const ProfileEntry& first = table.entries[begin];
    std::size_t end = begin;
    double least = first.ms;
    double most = first.ms;
    double noise = 0;
    for (; end < table.entries.size(); ++end) {
      const ProfileEntry& entry = table.entries[end];
      if (entry.device != first.device || entry.layer != first.layer ||
          entry.first != first.first || entry.last != first.last) {
        break;
      }
      least = std::min(least, entry.ms);
      most = std::max(most, entry.ms);
      if (entry.ms > 0) noise = std::max(noise, entry.mad_ms / entry.ms);
    }
    rows.push_back({first.device, std::to_string(first.layer),
                    std::to_string(first.first) + "-" + std::to_string(first.last),
                    std::to_string(end - begin), fixed_text(least, 3), fixed_text(most, 3),
                    fixed_text(100 * noise, 1) + " %"});
    begin = end;
  }
  std::string text = table_text(rows);
  for (const ProfileLink& link : table.links) {
    text += link.from + " -> " + link.to + ": " + bytes_text(link.bytes_per_s) + "/s, " +
            fixed_text(link.latency_ms * 1000, 1) + " us" +
            (link.in_block ? " (contained in the blocks)" : "") + "\n";
  }
  const StageTable::HoldOut held = table.leave_one_out();
  text += "interpolation, each of " + std::to_string(held.points) +
          " points left out in turn: median error " + fixed_text(100 * held.median_error, 1) +
          " %, worst " + fixed_text(100 * held.worst_error, 1) + " % " + held.worst + "\n";
  if (const Json* repaired = find_member(table.extra, "repaired")) {
    text += repaired->dump() + " points raised so that times grow with the graph\n";
  }
  return text;
}

}  // namespace npu::gnn
