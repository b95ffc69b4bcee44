// SPDX-License-Identifier: Apache-2.0
// Measures the blocks of a staged model as they will run: compiled for the device, aggregation
// fused, weights resident, inputs and results in host memory. A point is measured as a part of a
// larger graph, which picks its rows of the features and writes its rows of the result; where that
// makes a difference, also as the whole graph in one part. Graphs have skewed degrees, like real
// ones. Each point is visited twice; a visit runs it `warm_up` times untimed and half of `runs`
// times timed; the smaller median and its median absolute deviation are kept. Times that
// fall although nodes and edges grow are raised afterwards (monotone repair), and the table says
// how well it predicts points that are left out of it. Points that a table of the same host and
// model already has are reused. Blocks with which a layer takes longer than in one block at smaller
// sizes are left out.
//
// Cost: (blocks * points * runs) executions; memory: the tensors of one point, weights aside.
#include "gnn/profile/profile_gnn.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <set>

#include "device/device_instance.hpp"
#include "gnn/block/bfloat16_features.hpp"
#include "gnn/block/gnn_block.hpp"
#include "gnn/block/tensor_rows.hpp"
#include "gnn/graph/graph_reader.hpp"
#include "gnn/model/staged_model.hpp"
#include "gnn/profile/block_point.hpp"
#include "gnn/profile/block_timing.hpp"
#include "gnn/profile/dominated_blocks.hpp"
#include "gnn/profile/measure_links.hpp"
#include "gnn/profile/measure_switches.hpp"
#include "gnn/profile/profile_grid.hpp"
#include "gnn/profile/sample_graph.hpp"
#include "gnn/run/plan_loader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/target/target.hpp"
#include "profile/host_fingerprint.hpp"
#include "support/elapsed.hpp"
#include "support/statistics.hpp"
#include "support/text.hpp"
#include "target/device_facts.hpp"

namespace npu::gnn {
namespace {

// npu-plan's quantum of static shapes, unless it is told another one.
constexpr std::int64_t kPad = 1000;

class Profiler {
 public:
  Profiler(const ProfileStagesOptions& options, Diagnostics& diagnostics)
      : options_(options), diagnostics_(diagnostics) {}

  StageTable run(const ProgressCallback& progress) {
    model_ = read_staged_model(options_.model);
    weights_ = load_staged_weights(model_, options_.weights);
    size_grid();
    open_devices();
    table_.fingerprint = host_fingerprint(options_.threads);
    table_.model = model_.name;
    table_.model_hash = model_.hash;
    if (options_.precision == "bf16") table_.precision = options_.precision;
    take_over();
    const std::vector<BlockPoint> points = open_points();
    for (const BlockPoint& point : points) graph_nodes_ = std::max(graph_nodes_, 2 * point.n);
    total_ = static_cast<std::int32_t>(points.size());
    bool goes_on = true;
    for (const BlockPoint& point : points) {
      goes_on = goes_on && visit(point, progress);
    }
    for (std::int32_t round = 0; goes_on && round < options_.revisits; ++round) {
      const std::vector<BlockPoint> again = disturbed_points(points);
      total_ += static_cast<std::int32_t>(again.size());
      for (const BlockPoint& point : again) total_bytes_ += weight_of(point);
      for (const BlockPoint& point : again) goes_on = goes_on && visit(point, progress);
    }
    tell_of_disturbance();
    tell_of_dominated();
    if (!goes_on) return std::move(table_);
    if (!dominated_.empty()) table_.extra["dominated"] = dominated_.size();
    table_.links = measure_links(devices_);
    measure_switches();
    measure_handovers();
    table_.index();
    table_.extra["repaired"] = table_.repair_monotone();
    const StageTable::HoldOut held = table_.leave_one_out();
    Json& stated = table_.extra["leave_one_out"] = {{"points", held.points}};
    if (held.points > 0) {
      stated["median_error"] = held.median_error;
      stated["worst_error"] = held.worst_error;
      stated["worst"] = held.worst;
    }
    return std::move(table_);
  }

 private:
  struct Setup;

  void size_grid() {
    grid_ = {options_.nodes, options_.degrees};
    if (options_.graph.empty()) return;
    GraphReadOptions read;
    read.undirected = options_.undirected;
    read.one_loop = model_.one_loop;
    const CsrGraph graph = read_graph_file(options_.graph, read).in_edges;
    if (graph.node_count() == 0 || graph.entry_count() == 0) {
      throw Error(ErrorCode::kInvalidGraph, "the graph has no edges to measure with",
                  {.file = options_.graph});
    }
    const std::int32_t parts =
        *std::max_element(options_.part_counts.begin(), options_.part_counts.end());
    grid_ = grid_for_graph(graph.node_count(), graph.entry_count(), parts, kPad, options_.coarse);
  }

  // False if the user wants to stop.
  bool visit(const BlockPoint& point, const ProgressCallback& progress) {
    const std::string what = std::to_string(done_++) + " of " + std::to_string(total_) +
                             " points, " + devices_[index_of(point.device)].name + "[" +
                             std::to_string(point.first) + "-" + std::to_string(point.last) +
                             "] n=" + std::to_string(point.n) + " m=" + std::to_string(point.m);
    // Later points are larger; what is left is judged by bytes, not by count.
    if (progress && !progress(done_bytes_ / total_bytes_, what)) return false;
    done_bytes_ += weight_of(point);
    if (leaves_out(point)) {
      dominated_.insert(key_of(point));
    } else {
      measure(point);
    }
    return true;
  }

  bool leaves_out(const BlockPoint& point) const {
    const LayerInfo& info = model_.layers[index_of(point.layer - 1)];
    return block_bytes(info, point) > static_cast<double>(options_.max_bytes) ||
           (!entry_of_.contains(key_of(point)) && is_dominated(table_, point, info.stage_count()));
  }

  /// A block that is run for its time.
  TimedProgram timed(const Setup& setup) const {
    return [&setup, part = part_of_larger_graph(setup.graph, graph_nodes_, 0)] {
      const auto start = Clock::now();
      setup.block->run(part, setup.inputs);
      return milliseconds_since(start);
    };
  }

  // Devices that share processors evict each other's data from the caches and wake threads anew;
  // blocks are measured alone. The smallest, a middle and the largest size.
  void measure_handovers() {
    constexpr std::int32_t kRounds = 11;
    const std::vector<BlockPoint> points = all_points();
    if (points.empty()) return;
    const std::vector<BlockPoint> sizes{points.front(), points[points.size() / 2], points.back()};
    for (ProfileLink& link : table_.links) {
      const std::int32_t from = table_.find_device(link.from);
      const std::int32_t to = table_.find_device(link.to);
      if (table_.devices[index_of(from)].resource != table_.devices[index_of(to)].resource) {
        continue;
      }
      for (const BlockPoint& size : sizes) {
        const auto halves = halves_of_layer(model_.layers, refusals_, size, from, to);
        if (!halves) break;
        const auto& [front, back] = *halves;
        if (leaves_out(front) || leaves_out(back)) continue;
        const double bytes = crossing_bytes(model_.layers[index_of(front.layer - 1)], front);
        const double last = link.handovers.empty() ? 0 : link.handovers.back().first;
        if (bytes <= last) continue;
        const Setup first = set_up(front, 0);
        const Setup second = set_up(back, 0);
        link.handovers.emplace_back(bytes,
                                    measure_handover_ms(timed(first), timed(second), kRounds));
      }
    }
  }

  // Of each device that has two blocks, at the smallest point: there a switch matters most.
  void measure_switches() {
    constexpr std::int32_t kRounds = 25;
    const std::vector<BlockPoint> points = all_points();
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      std::vector<Setup> blocks;
      for (const BlockPoint& point : points) {
        if (index_of(point.device) == d && blocks.size() < 2) blocks.push_back(set_up(point, 0));
      }
      if (blocks.size() < 2) continue;
      table_.devices[d].switch_ms = measure_switch_ms(timed(blocks[0]), timed(blocks[1]), kRounds);
    }
  }

  // The points whose visits were all disturbed, each once.
  std::vector<BlockPoint> disturbed_points(const std::vector<BlockPoint>& visited) const {
    std::vector<BlockPoint> again;
    std::set<PointKey> seen;
    for (BlockPoint point : visited) {
      const auto found = entry_of_.find(key_of(point));
      if (found == entry_of_.end() || !table_.entries[found->second].disturbed) continue;
      if (!seen.insert(found->first).second) continue;
      point.runs = (options_.runs + 1) / 2;
      again.push_back(point);
    }
    return again;
  }

  void tell_of_disturbance() {
    const std::int32_t disturbed = table_.disturbed_count();
    if (disturbed == 0) return;
    diagnostics_.warning({}, std::to_string(disturbed) + " of " +
                                 std::to_string(table_.entries.size()) +
                                 " points stay disturbed by other work on the machine (up to " +
                                 std::to_string(runnable_) +
                                 " threads wanted a core): the same command with -o measures them "
                                 "again");
  }

  void tell_of_dominated() {
    if (dominated_.empty()) return;
    diagnostics_.note({}, std::to_string(dominated_.size()) +
                              " points are left out: at smaller sizes a layer with these blocks "
                              "takes longer than in one block, so no plan has them");
  }

  void open_devices() {
    const Target target = load_target(options_.target);
    table_.target = target.name;
    for (const auto& [name, backend] : wanted_devices(target)) {
      GnnDevice device;
      device.name = name;
      device.backend = backend;
      device.is_static = backend == "onednn";
      // Backends of this machine compute on the same cores.
      device.resource = backend == "onednn" || backend == "aten" ? "host" : name;
      device.threads = options_.threads;
      device.bfloat16 = options_.precision == "bf16";
      device.options = Json{{"threads", options_.threads}}.dump();
      device.instance = DeviceInstance::open(Backend::load(backend), device.options);
      device.products = open_products(device);
      table_.devices.push_back({name, device.resource, device.is_static, memory_of(target, device),
                                backend, device_rules_digest(target, name)});
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

  // What the target says, else the machine's for what computes in it.
  static double memory_of(const Target& target, const GnnDevice& device) {
    const std::int64_t stated = device_memory_bytes(target, device.name);
    if (stated > 0) return static_cast<double>(stated);
    return device.resource == "host" ? host_memory_bytes() : 0;
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
    if (old.model_hash != model_.hash || old.fingerprint != table_.fingerprint ||
        old.precision != table_.precision) {
      throw Error(
          ErrorCode::kInvalidGraph,
          "the table there is of another model, host or precision; remove it, or write elsewhere",
          {.file = options_.resume});
    }
    for (const ProfileEntry& entry : old.entries) {
      // What was disturbed is measured again.
      if (table_.find_device(entry.device) >= 0 && !entry.disturbed) {
        table_.entries.push_back(entry);
      }
    }
    if (!table_.entries.empty()) {
      diagnostics_.note({.file = options_.resume},
                        std::to_string(table_.entries.size()) + " points are taken over");
    }
  }

  double weight_of(const BlockPoint& point) const {
    return block_bytes(model_.layers[index_of(point.layer - 1)], point) + 1e5;
  }

  using PointKey =
      std::tuple<std::string, std::int32_t, std::int32_t, std::int32_t, double, double>;
  static PointKey key_of(const ProfileEntry& entry) {
    return {entry.device, entry.layer, entry.first, entry.last, entry.n, entry.m};
  }
  PointKey key_of(const BlockPoint& point) const {
    return {devices_[index_of(point.device)].name,
            point.layer,
            point.first,
            point.last,
            static_cast<double>(point.n),
            static_cast<double>(point.m)};
  }

  // Every point is visited twice, with half of the runs each: what else the machine does comes in
  // bursts that outlast the runs of one visit.
  std::vector<BlockPoint> open_points() {
    std::map<PointKey, std::int32_t> runs;
    for (std::size_t e = 0; e < table_.entries.size(); ++e) {
      runs[key_of(table_.entries[e])] = table_.entries[e].runs;
      entry_of_[key_of(table_.entries[e])] = e;
    }
    const std::vector<BlockPoint> all = all_points();
    if (left_out_ > 0) {
      diagnostics_.note({}, std::to_string(left_out_) +
                                " points are left out: their tensors take " + "more than " +
                                bytes_text(static_cast<double>(options_.max_bytes)));
    }
    std::vector<BlockPoint> open;
    for (const std::int32_t enough : {(options_.runs + 1) / 2, options_.runs}) {
      for (BlockPoint point : all) {
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

  std::vector<BlockPoint> all_points() {
    std::vector<BlockPoint> points;
    left_out_ = 0;
    for (const std::int64_t n : grid_.nodes) {
      for (const double degree : grid_.degrees) {
        const auto m = std::max<std::int64_t>(1, std::llround(degree * static_cast<double>(n)));
        for (std::size_t l = 0; l < model_.layers.size(); ++l) {
          const LayerInfo& info = model_.layers[l];
          for (std::size_t d = 0; d < devices_.size(); ++d) {
            for (std::int32_t first = 1; first <= info.stage_count(); ++first) {
              for (std::int32_t last = first; last <= info.stage_count(); ++last) {
                if (!refusals_[d][l][index_of(last - 1)].empty()) break;
                const BlockPoint point{static_cast<std::int32_t>(d),
                                       static_cast<std::int32_t>(l) + 1,
                                       first,
                                       last,
                                       n,
                                       m,
                                       0};
                if (block_bytes(info, point) > static_cast<double>(options_.max_bytes)) {
                  ++left_out_;
                } else {
                  points.push_back(point);
                }
              }
            }
          }
        }
      }
    }
    return points;
  }

  // Of two visits the one that nothing disturbed counts, else the faster one: other work only ever
  // adds time. The spread is that of all runs.
  void add(ProfileEntry entry, std::vector<double> samples) {
    const PointKey key = key_of(entry);
    const auto [found, is_new] = entry_of_.emplace(key, table_.entries.size());
    std::vector<double>& all = samples_[key];
    all.insert(all.end(), samples.begin(), samples.end());
    if (is_new) {
      table_.entries.push_back(std::move(entry));
    } else {
      ProfileEntry& known = table_.entries[found->second];
      const auto merge = [&](double& kept, double next) {
        if (kept <= 0 ||
            (next > 0 && (known.disturbed == entry.disturbed ? next < kept : known.disturbed))) {
          kept = next;
        }
      };
      merge(known.ms, entry.ms);
      merge(known.whole_ms, entry.whole_ms);
      merge(known.halo_ms, entry.halo_ms);
      known.compile_ms = std::min(known.compile_ms, entry.compile_ms);
      known.disturbed = known.disturbed && entry.disturbed;
      known.runs += entry.runs;
    }
    ProfileEntry& known = table_.entries[found->second];
    if (all.size() >= kRunsForSpread) known.mad_ms = median_absolute_deviation(all, known.ms);
  }

  // A block at the sizes of a point, with what it reads.
  struct Setup {
    SubgraphView graph;
    BlockShape shape;
    std::unique_ptr<GnnBlock> block;
    std::map<std::string, BlockInput> inputs;
    double compile_ms = 0;
  };

  // `halo` further nodes lie beside the point's. Hardly any graph has the very size of a static
  // program: one node is padding.
  Setup set_up(const BlockPoint& point, std::int64_t halo) {
    const GnnDevice& device = devices_[index_of(point.device)];
    const std::int64_t padding = device.is_static && point.n > 1 ? 1 : 0;
    Setup setup;
    setup.shape = {point.n, point.n + halo, point.m};
    const SubgraphView& last = graphs_[halo > 0 ? 1 : 0];
    const std::int64_t local = point.n + halo - padding;
    if (last.owned == point.n - padding && last.local == local && last.edges() == point.m) {
      setup.graph = last;
    } else {
      setup.graph = graphs_[halo > 0 ? 1 : 0] =
          skewed_graph(point.n - padding, local - (point.n - padding), point.m);
    }
    const auto start = Clock::now();
    const BlockRequest request{point.layer, point.first, point.last, setup.shape};
    setup.block = std::make_unique<GnnBlock>(model_, request, device, weights_);
    setup.compile_ms = milliseconds_since(start);
    const Graph graph = model_.block(point.layer, point.first, point.last, setup.shape);
    for (const TensorId id : graph.graph_inputs()) {
      const TensorInfo& tensor = graph.tensor(id);
      if (tensor.name == kEdgeInput) continue;
      if (tensor.name == kFeatureInput || tensor.name == kDegreeInput) {
        setup.inputs[tensor.name] = {rows_of_graph(tensor, *setup.block), true, nullptr};
        continue;
      }
      Shape shape = tensor.shape;
      if (shape[0] == point.n) {
        shape[0] = setup.graph.owned;
      } else if (shape[0] == point.n + halo) {
        shape[0] = setup.graph.local;
      }
      setup.inputs[tensor.name] = {filled(tensor.dtype, shape, 17), false, nullptr};
    }
    return setup;
  }

  BlockTiming time_part(const Setup& setup, bool ends_layer, std::int32_t runs) const {
    return time(runs, [&](std::int32_t run) {
      SubgraphView part = part_of_larger_graph(setup.graph, graph_nodes_, run + options_.warm_up);
      const auto start = Clock::now();
      auto outputs = setup.block->run(part, setup.inputs);
      if (ends_layer) store_outputs(outputs, part);
      return milliseconds_since(start);
    });
  }

  // The graph in one part: its features were uploaded before, its result is taken as it is.
  BlockTiming time_whole(const BlockPoint& point, Setup setup) const {
    for (auto& [name, input] : setup.inputs) {
      if (!input.by_node) continue;
      input.tensor = rows_of(input.tensor, 0, setup.graph.owned);
      if (name == kFeatureInput && point.layer == 1) {
        input.resident = setup.block->instance().import_tensor(input.tensor);
      }
    }
    return time(point.runs, [&](std::int32_t) {
      const auto start = Clock::now();
      setup.block->run(setup.graph, setup.inputs);
      return milliseconds_since(start);
    });
  }

  void measure(const BlockPoint& point) {
    const LayerInfo& info = model_.layers[index_of(point.layer - 1)];
    bool ends_layer = false;
    bool reads_halo = false;
    for (const StageTensor& tensor : info.tensors) {
      const bool is_made = tensor.is_made_in(point.first, point.last);
      const bool is_read = tensor.is_read_in(point.first, point.last);
      ends_layer = ends_layer || (is_made && !tensor.consumers.empty() &&
                                  tensor.consumers.back() > info.stage_count());
      reads_halo = reads_halo || (tensor.local_rows && (is_made || is_read));
    }
    Setup setup = set_up(point, 0);
    const bool reads_features = setup.inputs.contains(std::string(kFeatureInput));
    ProfileEntry entry;
    entry.device = devices_[index_of(point.device)].name;
    entry.layer = point.layer;
    entry.first = point.first;
    entry.last = point.last;
    entry.n = static_cast<double>(point.n);
    entry.m = static_cast<double>(point.m);
    BlockTiming part = time_part(setup, ends_layer, point.runs);
    entry.ms = part.ms;
    entry.disturbed = part.disturbed;
    if (devices_[index_of(point.device)].is_static) entry.compile_ms = setup.compile_ms;
    if (reads_halo) {
      const BlockTiming halo = time_part(set_up(point, point.n), ends_layer, point.runs);
      entry.halo_ms = halo.ms;
      entry.disturbed = entry.disturbed || halo.disturbed;
    }
    if ((reads_features && point.layer == 1) || ends_layer) {
      const BlockTiming whole = time_whole(point, std::move(setup));
      entry.whole_ms = whole.ms;
      entry.disturbed = entry.disturbed || whole.disturbed;
    }
    entry.runs = point.runs;
    entry.peak_bytes = std::ceil(block_bytes(info, point));
    add(std::move(entry), std::move(part.samples));
  }

  BlockTiming time(std::int32_t runs, const std::function<double(std::int32_t)>& run) const {
    BlockTiming timing = time_runs(options_.warm_up, runs, run);
    runnable_ = std::max(runnable_, timing.runnable);
    return timing;
  }

  // Features or degrees of a graph that the point's is a part of: as many rows as the largest point
  // has, filled once.
  Tensor rows_of_graph(const TensorInfo& tensor, const GnnBlock& block) {
    const bool is_narrow =
        tensor.name == kFeatureInput && block.feature_dtype() == DType::kBFloat16;
    Shape shape = tensor.shape;
    shape[0] = std::max(graph_nodes_, shape[0]);
    Tensor& rows = graph_rows_[tensor.name + (is_narrow ? "@bf16" : "")];
    if (rows.shape() != shape) {
      rows = filled(tensor.dtype, shape, 17);
      if (is_narrow) rows = to_bfloat16(rows, options_.threads);
    }
    return rows;
  }

  const ProfileStagesOptions& options_;
  Diagnostics& diagnostics_;
  StagedModel model_;
  std::map<std::string, Tensor> weights_;
  std::vector<GnnDevice> devices_;
  StageRefusals refusals_;
  StageTable table_;
  ProfileGrid grid_;
  std::int32_t left_out_ = 0;           // points that are too large
  std::array<SubgraphView, 2> graphs_;  // the last one without halo, and with
  std::int64_t graph_nodes_ = 0;        // of the graph that points are parts of
  std::map<std::string, Tensor> graph_rows_;
  std::set<PointKey> dominated_;                     // points that were left out for that
  std::map<PointKey, std::size_t> entry_of_;         // index into the entries
  std::map<PointKey, std::vector<double>> samples_;  // times as a part, of all visits
  mutable std::int32_t runnable_ = 0;                // most threads that wanted a core
  std::int32_t done_ = 0;
  std::int32_t total_ = 0;
  double total_bytes_ = 0;
  double done_bytes_ = 0;
};

}  // namespace

StageTable profile_stages(const ProfileStagesOptions& options, const ProgressCallback& progress,
                          Diagnostics& diagnostics) {
  return Profiler(options, diagnostics).run(progress);
}

}  // namespace npu::gnn
