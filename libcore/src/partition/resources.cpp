// SPDX-License-Identifier: Apache-2.0
// The resources strategy: partitions that fit into a device's on-chip memory, with the least
// traffic between them.
//
// A partition is an interval of a topological order of the units (fusion groups, or single nodes),
// all on one device. Its working set is what is alive at once: a tensor from where it is made or
// first read to its last reader inside, so memory is used again. Inside a unit nothing is stored; a
// view stands for the memory that it looks at. The limits are the device's on_chip_bytes and
// max_partition_flops; a unit that breaks one alone is a partition of its own, and the report says
// how to tile it.
//
// Every interval that fits is considered: as the end of the interval moves on by one unit, the cost
// of all starts changes by range additions, so a tree that knows range minima finds the best start.
// Working sets never shrink when an interval grows, so the first start that fits only moves
// forward. Exact for the order; O((units + edges) log units). The order itself and halos of tiles
// are left out. First fit, which adds up sizes without reuse, is computed for comparison.
#include "partition/resources.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <string>

#include "npu/ops/op_catalogue.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/text.hpp"
#include "partition/plan_builder.hpp"
#include "partition/unit_graph.hpp"

namespace npu {
namespace {

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

/// Range additions and range minima of (bytes, partitions) pairs; the first of equal ones wins.
class CostTree {
 public:
  struct Cost {
    double bytes = std::numeric_limits<double>::infinity();
    std::int32_t partitions = 0;
    std::int32_t at = -1;
    bool operator<(const Cost& other) const {
      if (bytes != other.bytes) return bytes < other.bytes;
      if (partitions != other.partitions) return partitions < other.partitions;
      return at < other.at;
    }
  };

  explicit CostTree(std::size_t size) {
    while (leaves_ < size) leaves_ *= 2;
    least_.resize(2 * leaves_);
    added_.assign(2 * leaves_, 0);
  }
  void set(std::int32_t at, Cost cost) {
    cost.at = at;
    std::size_t v = leaves_ + index_of(at);
    for (std::size_t above = v / 2; above > 0; above /= 2) cost.bytes -= added_[above];
    least_[v] = cost;
    for (v /= 2; v > 0; v /= 2) pull(v);
  }
  void add(std::int32_t first, std::int32_t last, double bytes) {
    if (first <= last && bytes != 0) add(1, 0, leaves_, index_of(first), index_of(last) + 1, bytes);
  }
  Cost least(std::int32_t first, std::int32_t last) const {
    return least(1, 0, leaves_, index_of(first), index_of(last) + 1);
  }

 private:
  void pull(std::size_t v) {
    least_[v] = std::min(least_[2 * v], least_[2 * v + 1]);
    least_[v].bytes += added_[v];
  }
  void add(std::size_t v, std::size_t low, std::size_t high, std::size_t first, std::size_t end,
           double bytes) {
    if (first >= high || end <= low) return;
    if (first <= low && high <= end) {
      least_[v].bytes += bytes;
      added_[v] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * v, low, middle, first, end, bytes);
    add(2 * v + 1, middle, high, first, end, bytes);
    pull(v);
  }
  Cost least(std::size_t v, std::size_t low, std::size_t high, std::size_t first,
             std::size_t end) const {
    if (first >= high || end <= low) return {};
    if (first <= low && high <= end) return least_[v];
    const std::size_t middle = (low + high) / 2;
    Cost best =
        std::min(least(2 * v, low, middle, first, end), least(2 * v + 1, middle, high, first, end));
    best.bytes += added_[v];
    return best;
  }

  std::size_t leaves_ = 1;
  std::vector<Cost> least_;
  std::vector<double> added_;
};

/// Topological order of the units in which a unit comes as early in the node list as it can: what
/// belongs together mostly stands together there.
std::vector<std::int32_t> list_order(const UnitGraph& units) {
  std::vector<std::int32_t> waiting = units.predecessor_count;
  using Entry = std::pair<NodeId, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](std::int32_t unit) {
    ready.emplace(units.members[index_of(unit)].back(), unit);
  };
  for (const std::int32_t unit : units.order) {
    if (waiting[index_of(unit)] == 0) push(unit);
  }
  std::vector<std::int32_t> order;
  while (!ready.empty()) {
    const std::int32_t unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    for (const std::int32_t next : units.successors(unit)) {
      if (--waiting[index_of(next)] == 0) push(next);
    }
  }
  return order;
}

/// What a unit touches in memory.
struct Touch {
  std::int32_t storage = 0;
  bool writes = false;
};

struct Storage {
  double bytes = 0;
  std::int32_t made_at = -1;   // position of the unit that makes it; -1: graph input or weight
  std::int32_t last_use = -1;  // position of its last reader
  bool leaves = false;         // holds an output of the graph
  bool weight = false;
};

/// The units in order, with what they touch.
class Timeline {
 public:
  Timeline(const Graph& graph, const UnitGraph& units) : graph_(graph), units_(units) {
    order = list_order(units);
    std::vector<std::int32_t> position(units.size());
    for (std::size_t p = 0; p < order.size(); ++p) {
      position[index_of(order[p])] = static_cast<std::int32_t>(p);
    }
    find_storages(position);
    touches.resize(order.size());
    own_bytes.assign(order.size(), 0);
    flops.assign(order.size(), 0);
    std::vector<std::int32_t> seen(storages.size(), -1);
    std::vector<std::int32_t> seen_write(storages.size(), -1);
    for (std::size_t p = 0; p < order.size(); ++p) {
      const auto at = static_cast<std::int32_t>(p);
      for (const NodeId id : units.members[index_of(order[p])]) {
        const Node& node = graph.node(id);
        flops[p] += node_flops(graph, node);
        if (is_alias_node(graph, node)) continue;  // looks at memory when its reader does
        for (const TensorId input : node.inputs) {
          const std::int32_t s = storage_of_[index_of(input.value)];
          Storage& storage = storages[index_of(s)];
          if (storage.made_at == at || seen[index_of(s)] == at) continue;
          seen[index_of(s)] = at;
          storage.last_use = at;
          touches[p].push_back({s, false});
          own_bytes[p] += read_bytes(node, input, storage);
        }
      }
    }
    for (std::size_t p = 0; p < order.size(); ++p) {
      const auto at = static_cast<std::int32_t>(p);
      for (const NodeId id : units.members[index_of(order[p])]) {
        for (const TensorId output : graph.node(id).outputs) {
          const std::int32_t s = storage_of_[index_of(output.value)];
          const Storage& storage = storages[index_of(s)];
          if (storage.made_at != at || seen_write[index_of(s)] == at) continue;
          seen_write[index_of(s)] = at;
          if (storage.last_use < 0 && !storage.leaves) continue;  // stays inside the unit
          touches[p].push_back({s, true});
          own_bytes[p] += storage.bytes;
        }
      }
    }
  }

  std::vector<std::int32_t> order;          ///< units
  std::vector<std::vector<Touch>> touches;  ///< by position, each storage once
  std::vector<double> own_bytes;            ///< by position: everything that it touches
  std::vector<double> flops;
  std::vector<Storage> storages;

 private:
  // Views share the memory of what they look at.
  void find_storages(const std::vector<std::int32_t>& position) {
    storage_of_.assign(graph_.tensors().size(), -1);
    const auto fresh = [&](TensorId id, std::int32_t made_at) {
      const TensorInfo& tensor = graph_.tensor(id);
      storage_of_[index_of(id.value)] = static_cast<std::int32_t>(storages.size());
      storages.push_back({.bytes = static_cast<double>(tensor.bytes()),
                          .made_at = made_at,
                          .last_use = -1,
                          .leaves = false,
                          .weight = tensor.kind == TensorKind::kWeight});
    };
    for (std::size_t t = 0; t < graph_.tensors().size(); ++t) {
      const TensorId id{static_cast<std::int32_t>(t)};
      if (graph_.tensor(id).kind != TensorKind::kResult) fresh(id, -1);
    }
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) {
      const Node& node = graph_.nodes()[n];
      const bool alias = is_alias_node(graph_, node) && !node.inputs.empty();
      const std::int32_t at = position[index_of(units_.unit_of[n])];
      for (const TensorId output : node.outputs) {
        if (alias) {
          storage_of_[index_of(output.value)] = storage_of_[index_of(viewed(node).value)];
        } else {
          fresh(output, at);
        }
      }
    }
    for (const TensorId id : graph_.graph_outputs()) {
      storages[index_of(storage_of_[index_of(id.value)])].leaves = true;
    }
  }

  static TensorId viewed(const Node& node) {
    const Json* index = node.op_type == "<built-in function getitem>"
                            ? find_member(node.attrs(), "index")
                            : nullptr;
    if (index == nullptr || !index->is_number_integer()) return node.inputs.front();
    const auto count = static_cast<std::int64_t>(node.inputs.size());
    std::int64_t which = index->get<std::int64_t>();
    if (which < 0) which += count;
    return node.inputs[static_cast<std::size_t>(std::clamp<std::int64_t>(which, 0, count - 1))];
  }

  // A gather needs the rows that it returns, not the whole table.
  double read_bytes(const Node& node, TensorId input, const Storage& storage) const {
    const OpInfo* op = find_op(node.op_type);
    if (op == nullptr || op->kind != OpKind::kInjective || node.outputs.empty() ||
        node.inputs.front() != input) {
      return storage.bytes;
    }
    return std::min(storage.bytes,
                    static_cast<double>(graph_.tensor(node.outputs.front()).bytes()));
  }

  const Graph& graph_;
  const UnitGraph& units_;
  std::vector<std::int32_t> storage_of_;
};

/// Working sets of intervals whose ends only move forward. at(t) is what is alive while unit t
/// runs: what it touches, and what was touched before and will be again.
class WorkingSet {
 public:
  WorkingSet(const Timeline& line) : line_(line) {
    while (leaves_ < line.order.size()) leaves_ *= 2;
    most_.assign(2 * leaves_, 0);
    added_.assign(2 * leaves_, 0);
    previous_.assign(line.storages.size(), -1);
    next_touch_.resize(line.order.size());
  }

  void push(std::int32_t p) {
    add(p, p, line_.own_bytes[index_of(p)]);
    next_touch_[index_of(p)].assign(line_.touches[index_of(p)].size(), -1);
    for (std::size_t i = 0; i < line_.touches[index_of(p)].size(); ++i) {
      const std::int32_t s = line_.touches[index_of(p)][i].storage;
      const std::int32_t before = previous_[index_of(s)];
      if (before >= 0) {
        const auto& touches = line_.touches[index_of(before)];
        for (std::size_t k = 0; k < touches.size(); ++k) {
          if (touches[k].storage == s) next_touch_[index_of(before)][k] = p;
        }
        if (before >= first_) add(before + 1, p - 1, line_.storages[index_of(s)].bytes);
      }
      previous_[index_of(s)] = p;
    }
    end_ = p + 1;
  }
  // Takes the first unit away.
  void pop() {
    const auto& touches = line_.touches[index_of(first_)];
    for (std::size_t k = 0; k < touches.size(); ++k) {
      const std::int32_t next = next_touch_[index_of(first_)][k];
      if (next >= 0) {
        add(first_ + 1, next - 1, -line_.storages[index_of(touches[k].storage)].bytes);
      }
    }
    add(first_, first_, -line_.own_bytes[index_of(first_)]);
    ++first_;
  }
  double bytes() const { return most_[1]; }
  std::int32_t first() const { return first_; }

 private:
  void add(std::int32_t first, std::int32_t last, double bytes) {
    if (first <= last && bytes != 0) add(1, 0, leaves_, index_of(first), index_of(last) + 1, bytes);
  }
  void add(std::size_t v, std::size_t low, std::size_t high, std::size_t first, std::size_t end,
           double bytes) {
    if (first >= high || end <= low) return;
    if (first <= low && high <= end) {
      most_[v] += bytes;
      added_[v] += bytes;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * v, low, middle, first, end, bytes);
    add(2 * v + 1, middle, high, first, end, bytes);
    most_[v] = std::max(most_[2 * v], most_[2 * v + 1]) + added_[v];
  }

  const Timeline& line_;
  std::size_t leaves_ = 1;
  std::vector<double> most_;
  std::vector<double> added_;
  std::vector<std::int32_t> previous_;  // by storage: where it was touched last
  std::vector<std::vector<std::int32_t>> next_touch_;
  std::int32_t first_ = 0;
  std::int32_t end_ = 0;
};

struct Limits {
  double bytes = std::numeric_limits<double>::infinity();
  double flops = std::numeric_limits<double>::infinity();
};

Limits limits_of(const Device& device) {
  Limits limits;
  if (device.on_chip_bytes > 0) limits.bytes = static_cast<double>(device.on_chip_bytes);
  if (device.max_partition_flops > 0) limits.flops = device.max_partition_flops;
  return limits;
}

/// Splits [0, n) into intervals, by their first positions.
using Cuts = std::vector<std::int32_t>;

class Splitter {
 public:
  Splitter(const Graph& graph, const UnitGraph& units, const Target& target)
      : line(graph, units), units_(units) {
    for (const std::string& name : units.device_names) {
      limits_.push_back(limits_of(*target.find_device(name)));
    }
  }

  std::int32_t size() const { return static_cast<std::int32_t>(line.order.size()); }
  std::int32_t device(std::int32_t p) const {
    return units_.device[index_of(line.order[index_of(p)])];
  }
  const Limits& limits(std::int32_t p) const { return limits_[index_of(device(p))]; }
  bool oversize(std::int32_t p) const {
    return line.own_bytes[index_of(p)] > limits(p).bytes ||
           line.flops[index_of(p)] > limits(p).flops;
  }

  Cuts best() const {
    const std::int32_t n = size();
    CostTree tree(static_cast<std::size_t>(n) + 1);
    WorkingSet alive(line);
    std::vector<CostTree::Cost> best(static_cast<std::size_t>(n) + 1);
    std::vector<std::int32_t> touched(line.storages.size(), -1);
    best[0] = {0, 0, -1};
    double flops = 0;
    std::int32_t barrier = 0;  // no interval begins before it
    for (std::int32_t p = 0; p < n; ++p) {
      tree.set(p, {best[index_of(p)].bytes, best[index_of(p)].partitions + 1, p});
      price(p, touched, tree);
      if (p > 0 && (device(p) != device(p - 1) || oversize(p) || oversize(p - 1))) barrier = p;
      alive.push(p);
      flops += line.flops[index_of(p)];
      while (alive.first() < p && (alive.first() < barrier || alive.bytes() > limits(p).bytes ||
                                   flops > limits(p).flops)) {
        flops -= line.flops[index_of(alive.first())];
        alive.pop();
      }
      best[index_of(p) + 1] = tree.least(alive.first(), p);
    }
    Cuts cuts;
    for (std::int32_t end = n; end > 0; end = best[index_of(end)].at) {
      cuts.push_back(best[index_of(end)].at);
    }
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

  // Sizes added up, a new partition when the sum breaks a limit.
  Cuts first_fit() const {
    Cuts cuts;
    double bytes = 0;
    double flops = 0;
    for (std::int32_t p = 0; p < size(); ++p) {
      const bool starts = cuts.empty() || device(p) != device(p - 1) ||
                          bytes + line.own_bytes[index_of(p)] > limits(p).bytes ||
                          flops + line.flops[index_of(p)] > limits(p).flops;
      if (starts) {
        cuts.push_back(p);
        bytes = flops = 0;
      }
      bytes += line.own_bytes[index_of(p)];
      flops += line.flops[index_of(p)];
    }
    return cuts;
  }

  // Bytes of activations that the intervals read and write.
  double traffic(const Cuts& cuts) const {
    double bytes = 0;
    std::vector<std::int32_t> read_in(line.storages.size(), -1);
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      const std::int32_t end = c + 1 < cuts.size() ? cuts[c + 1] : size();
      for (std::int32_t p = cuts[c]; p < end; ++p) {
        for (const Touch& touch : line.touches[index_of(p)]) {
          const Storage& storage = line.storages[index_of(touch.storage)];
          if (storage.weight) continue;
          if (touch.writes) {
            if (storage.leaves || storage.last_use >= end) bytes += storage.bytes;
          } else if (storage.made_at < cuts[c] &&
                     read_in[index_of(touch.storage)] != static_cast<std::int32_t>(c)) {
            read_in[index_of(touch.storage)] = static_cast<std::int32_t>(c);
            bytes += storage.bytes;
          }
        }
      }
    }
    return bytes;
  }

  std::vector<double> working_sets(const Cuts& cuts) const {
    std::vector<double> sets;
    WorkingSet alive(line);
    for (std::size_t c = 0; c < cuts.size(); ++c) {
      while (alive.first() < cuts[c]) alive.pop();
      const std::int32_t end = c + 1 < cuts.size() ? cuts[c + 1] : size();
      for (std::int32_t p = cuts[c]; p < end; ++p) alive.push(p);
      sets.push_back(alive.bytes());
    }
    return sets;
  }

  const Timeline line;

 private:
  // What unit p adds to the traffic of every interval that ends with it.
  void price(std::int32_t p, std::vector<std::int32_t>& touched, CostTree& tree) const {
    for (const Touch& touch : line.touches[index_of(p)]) {
      const Storage& storage = line.storages[index_of(touch.storage)];
      if (storage.weight) continue;
      std::int32_t& before = touched[index_of(touch.storage)];
      if (touch.writes) {
        tree.add(0, p, storage.bytes);  // goes out, until its last reader is inside
      } else {
        tree.add(before + 1, p, storage.bytes);  // comes in where nothing inside touched it yet
        if (storage.last_use == p && !storage.leaves) tree.add(0, storage.made_at, -storage.bytes);
      }
      before = p;
    }
  }

  const UnitGraph& units_;
  std::vector<Limits> limits_;
};

std::string unit_name(const Graph& graph, const UnitGraph& units, std::int32_t unit) {
  const auto members = units.members[index_of(unit)];
  std::string name = graph.node(members.front()).name;
  if (members.size() > 1) name += " .. " + graph.node(members.back()).name;
  return name;
}

Json advice_json(const TilingAdvice& advice) {
  if (!advice.fits) return nullptr;
  return {{"rows", advice.row_tiles},
          {"channels", advice.channel_tiles},
          {"bytes", saturating_integer(advice.bytes)}};
}

}  // namespace

TilingAdvice advise_tiling(const Graph& graph, const std::vector<NodeId>& nodes, double limit) {
  TilingAdvice advice;
  const SubgraphBoundary boundary = find_boundary(graph, nodes);
  double inputs = 0;
  double weights = 0;
  double outputs = 0;
  for (const TensorId id : boundary.inputs) inputs += static_cast<double>(graph.tensor(id).bytes());
  for (const TensorId id : boundary.weights)
    weights += static_cast<double>(graph.tensor(id).bytes());
  for (const TensorId id : boundary.outputs)
    outputs += static_cast<double>(graph.tensor(id).bytes());
  // Rows are what one filter slides over or one product is made for; channels share no weights.
  double rows = 1;
  double channels = 1;
  if (!boundary.outputs.empty()) {
    const Shape& shape = graph.tensor(boundary.outputs.front()).shape;
    bool image = false;
    for (const NodeId id : nodes) {
      image = image || graph.node(id).op_type.find("conv") != std::string::npos;
    }
    const std::size_t channel_axis = image && shape.size() > 2 ? 1 : shape.size() - 1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      (axis == channel_axis ? channels : rows) *= static_cast<double>(shape[axis]);
    }
  }
  // Only one product in the unit: the channels of a second one need all of the first.
  const auto anchors = std::count_if(nodes.begin(), nodes.end(), [&](NodeId id) {
    const OpInfo* op = find_op(graph.node(id).op_type);
    return op != nullptr && op->kind == OpKind::kAnchor;
  });
  if (anchors != 1) channels = 1;
  double least = std::numeric_limits<double>::infinity();
  const auto try_tiles = [&](double row_tiles, double channel_tiles) {
    const double bytes =
        weights / channel_tiles + inputs / row_tiles + outputs / (row_tiles * channel_tiles);
    // Rows outside, channels inside: weights come again for each row tile, or inputs the other way.
    const double traffic = std::min(weights * row_tiles + inputs, weights + inputs * channel_tiles);
    if (bytes > limit || traffic >= least) return;
    least = traffic;
    advice = {.fits = true,
              .row_tiles = static_cast<std::int64_t>(row_tiles),
              .channel_tiles = static_cast<std::int64_t>(channel_tiles),
              .bytes = bytes};
  };
  for (double channel_tiles = 1; channel_tiles <= channels; channel_tiles *= 2) {
    const double left = limit - weights / channel_tiles;
    if (left <= 0) continue;
    const double row_tiles = std::max(1.0, std::ceil((inputs + outputs / channel_tiles) / left));
    if (row_tiles <= rows) try_tiles(row_tiles, channel_tiles);
  }
  return advice;
}

StrategyOutcome partition_resources(Graph& graph, const Target& target, const PartitionOptions&,
                                    Diagnostics& diagnostics) {
  const UnitGraph units = build_unit_graph(graph);
  const bool limited =
      std::any_of(target.devices.begin(), target.devices.end(),
                  [](const Device& d) { return d.on_chip_bytes > 0 || d.max_partition_flops > 0; });
  if (!limited) {
    diagnostics.warning({}, "no device of target '" + target.name +
                                "' has on_chip_bytes or max_partition_flops, so nothing limits the "
                                "partitions of --strategy resources");
  }
  const Splitter splitter(graph, units, target);
  const Cuts cuts = splitter.best();
  const Cuts naive = splitter.first_fit();
  const std::vector<double> sets = splitter.working_sets(cuts);
  StrategyOutcome outcome;
  outcome.plan.strategy = "resources";
  Json working_sets = Json::array();
  double largest = 0;
  for (std::size_t c = 0; c < cuts.size(); ++c) {
    const std::int32_t end = c + 1 < cuts.size() ? cuts[c + 1] : splitter.size();
    Partition& partition = outcome.plan.partitions.emplace_back();
    partition.device = units.device_names[index_of(splitter.device(cuts[c]))];
    for (std::int32_t p = cuts[c]; p < end; ++p) {
      const auto members = units.members[index_of(splitter.line.order[index_of(p)])];
      partition.nodes.insert(partition.nodes.end(), members.begin(), members.end());
    }
    std::sort(partition.nodes.begin(), partition.nodes.end());
    working_sets.push_back(saturating_integer(sets[c]));
    largest = std::max(largest, sets[c]);
  }
  connect_partitions(graph, outcome.plan);

  Json oversize = Json::array();
  std::vector<std::vector<std::string>> tiles{{"does not fit", "device", ">working set", ">on chip",
                                               ">row tiles", ">channel tiles", ">per tile"}};
  for (std::int32_t p = 0; p < splitter.size(); ++p) {
    const double bytes = splitter.line.own_bytes[index_of(p)];
    if (!splitter.oversize(p)) continue;
    const std::int32_t unit = splitter.line.order[index_of(p)];
    const auto list = units.members[index_of(unit)];
    const std::vector<NodeId> members(list.begin(), list.end());
    Json entry{{"nodes", Json::array()}, {"bytes", saturating_integer(bytes)}};
    for (const NodeId id : members) entry["nodes"].push_back(graph.node(id).name);
    const double limit = splitter.limits(p).bytes;
    const TilingAdvice advice = bytes > limit
                                    ? advise_tiling(graph, {members.begin(), members.end()}, limit)
                                    : TilingAdvice{};
    if (bytes > limit) entry["tiles"] = advice_json(advice);
    oversize.push_back(std::move(entry));
    const bool tiled = bytes > limit && advice.fits;
    tiles.push_back({unit_name(graph, units, unit),
                     units.device_names[index_of(splitter.device(p))], bytes_text(bytes),
                     std::isinf(limit) ? "-" : bytes_text(limit),
                     tiled           ? std::to_string(advice.row_tiles)
                     : bytes > limit ? "none fits"
                                     : "FLOPs",
                     tiled ? std::to_string(advice.channel_tiles) : "-",
                     tiled ? bytes_text(advice.bytes) : "-"});
  }
  const double traffic = splitter.traffic(cuts);
  const double naive_traffic = splitter.traffic(naive);
  outcome.metrics["boundary_bytes"] = saturating_integer(traffic);
  outcome.metrics["working_set_bytes"] = saturating_integer(largest);
  outcome.metrics["oversize_units"] = oversize.size();
  outcome.metrics["first_fit_partitions"] = naive.size();
  outcome.metrics["first_fit_boundary_bytes"] = saturating_integer(naive_traffic);
  outcome.details["working_sets"] = std::move(working_sets);
  outcome.details["oversize"] = std::move(oversize);
  outcome.report =
      "\n" + table_text({{"split", ">partitions", ">boundary bytes"},
                         {"resources", std::to_string(cuts.size()), bytes_text(traffic)},
                         {"first fit", std::to_string(naive.size()), bytes_text(naive_traffic)}});
  if (tiles.size() > 1) outcome.report += "\n" + table_text(tiles);
  return outcome;
}

}  // namespace npu
