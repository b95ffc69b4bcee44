// SPDX-License-Identifier: Apache-2.0
// Finds the placement that takes the least time for computing, copying and launching partitions,
// and a lower bound that says how far from the best it can be.
//
// Two devices. Computing and copying alone are a minimum cut (an item on the source's side is on
// the later device; a tensor that several items read has a helper vertex for each direction, so
// that it is paid once). The number of launches is no cut, but the largest number of device changes
// over all paths through the graph, plus one. For a fixed mean of paths it is one again, so the
// solver plays the two sides against each other: a minimum cut for the paths so far, then the path
// that is worst for that cut, and so on. Every cut's value is a lower bound and every cut a
// placement that knows about launches; on a chain the second cut is optimal already. Besides, what
// the tags say and all items on one device are tried, then whole partitions are moved while that
// helps. Where a gap is left and at most kMostChoices placements exist, all are tried.
//
// More devices. Pairs of devices swap what they have by minimum cuts until none helps (Boykov,
// Veksler, Zabih, "Fast approximate energy minimization via graph cuts", PAMI 2001), from several
// starts; the bound is a Lagrangian one.
//
// The number of rounds shrinks with the size, so that time stays near linear.
#include "partition/placement_solver.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace npu {
namespace {

constexpr std::int64_t kPathWork = 50'000;  // items and readers, over all rounds
constexpr std::int64_t kMostPathRounds = 40;
constexpr std::int64_t kMoveWork = 200'000;  // units and arcs, over all tried moves
constexpr double kMostChoices = 0x1p20;
constexpr std::int64_t kMostVisits = 3'000'000;

std::size_t index_of(std::int32_t value) { return static_cast<std::size_t>(value); }

std::int64_t share(std::int64_t times, std::int64_t price, std::int64_t count) {
  __extension__ using Wide = __int128;
  return static_cast<std::int64_t>(static_cast<Wide>(times) * price / count);
}

// ---- Minimum cuts between two devices ----

/// The network of the items that are on one of two devices; the others stay.
class PairCut {
 public:
  PairCut(const PlacementProblem& problem, const Assignment& fixed, std::int32_t near,
          std::int32_t far)
      : problem_(problem), fixed_(fixed), near_(near), far_(far) {
    network_.reserve(2 * problem.items, problem.readers.size() + problem.tensors.size());
    add_items();
    for (std::size_t t = 0; t < problem.tensors.size(); ++t) add_tensor(t);
  }

  void add_launches(const LaunchPaths& paths) {
    const UnitGraph& units = problem_.units;
    launch_arc_.assign(units.targets.size(), kNone);
    for (std::size_t u = 0; u < units.size(); ++u) {
      const std::int32_t from = vertex_of_[index_of(problem_.item_of[u])];
      if (paths.starts[u] > 0) {
        network_.add_source_capacity(from, launch(paths.starts[u], near_, paths));
        network_.add_sink_capacity(from, launch(paths.starts[u], far_, paths));
      }
      for (auto a = static_cast<std::size_t>(units.offsets[u]);
           a < static_cast<std::size_t>(units.offsets[u + 1]); ++a) {
        if (paths.arcs[a] == 0) continue;
        const std::int32_t to = vertex_of_[index_of(problem_.item_of[index_of(units.targets[a])])];
        if (from == to) continue;
        launch_arc_[a] = network_.add_arc(from, to, launch(paths.arcs[a], near_, paths),
                                          launch(paths.arcs[a], far_, paths));
      }
    }
  }

  /// Empty if an item can be on neither device.
  Assignment solve() {
    cut_ = solve_min_cut(network_);
    assert(cut_.value == kInfiniteCapacity || check_min_cut(network_, cut_).empty());
    if (cut_.value == kInfiniteCapacity) return {};
    Assignment result = fixed_;
    for (std::size_t i = 0; i < problem_.items; ++i) {
      if (vertex_of_[i] < 0) continue;
      result[i] = cut_.source_side[index_of(vertex_of_[i])] != 0 ? far_ : near_;
    }
    return result;
  }

  std::int64_t value() const noexcept { return cut_.value; }
  std::int64_t size() const noexcept {
    return static_cast<std::int64_t>(network_.vertex_count() + network_.arcs().size());
  }

  /// Where no item is fixed.
  CutCertificate certificate(const LaunchPaths& paths) const {
    CutCertificate result{.near = near_,
                          .far = far_,
                          .value = cut_.value,
                          .flow = {},
                          .paths = paths,
                          .launch_flow = {}};
    const auto flow = [&](std::size_t arc) { return arc == kNone ? 0 : cut_.arc_flow[arc]; };
    for (const ReaderArcs& arcs : reader_arcs_) {
      result.flow.push_back(flow(arcs.forward) - flow(arcs.backward));
    }
    for (const std::size_t arc : launch_arc_) result.launch_flow.push_back(flow(arc));
    return result;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct ReaderArcs {
    std::size_t forward = kNone;   // carries flow from the producer to the reader
    std::size_t backward = kNone;  // from the reader to the producer
  };

  std::int64_t launch(std::int64_t times, std::int32_t device, const LaunchPaths& paths) const {
    return share(times, problem_.launch[index_of(device)], paths.count);
  }

  void add_items() {
    vertex_of_.assign(problem_.items, -1);
    for (std::size_t i = 0; i < problem_.items; ++i) {
      if (fixed_[i] != near_ && fixed_[i] != far_) continue;
      const std::int32_t vertex = network_.add_vertex();
      vertex_of_[i] = vertex;
      network_.add_source_capacity(vertex, problem_.cost_of(static_cast<std::int32_t>(i), near_));
      network_.add_sink_capacity(vertex, problem_.cost_of(static_cast<std::int32_t>(i), far_));
    }
  }

  void add_tensor(std::size_t t) {
    const PlacementProblem::Tensor& tensor = problem_.tensors[t];
    const std::int32_t producer = vertex_of_[index_of(tensor.producer)];
    std::uint64_t fixed_readers = 0;
    std::int32_t free_readers = 0;
    for (const std::int32_t reader : problem_.readers_of(tensor)) {
      if (vertex_of_[index_of(reader)] < 0) {
        fixed_readers |= std::uint64_t{1} << fixed_[index_of(reader)];
      } else {
        ++free_readers;
      }
    }
    if (producer < 0) {
      const std::int32_t from = fixed_[index_of(tensor.producer)];
      if (free_readers > 0) {
        add_helpers(tensor, -1, problem_.transfer_of(t, from, near_),
                    problem_.transfer_of(t, from, far_));
      }
      return;
    }
    for (std::size_t d = 0; fixed_readers >> d != 0 && d < problem_.devices; ++d) {
      if ((fixed_readers >> d & 1U) == 0) continue;
      const auto to = static_cast<std::int32_t>(d);
      network_.add_source_capacity(producer, problem_.transfer_of(t, near_, to));
      network_.add_sink_capacity(producer, problem_.transfer_of(t, far_, to));
    }
    const std::int64_t to_near = problem_.transfer_of(t, far_, near_);
    const std::int64_t to_far = problem_.transfer_of(t, near_, far_);
    if (free_readers == 1) {
      for (const std::int32_t reader : problem_.readers_of(tensor)) {
        ReaderArcs& arcs = reader_arcs_.emplace_back();
        const std::int32_t vertex = vertex_of_[index_of(reader)];
        if (vertex >= 0) arcs.forward = network_.add_arc(producer, vertex, to_near, to_far);
      }
    } else if (free_readers > 1) {
      add_helpers(tensor, producer, to_near, to_far);
    }
  }

  // One vertex that is cut off if a reader is on `near` though the tensor is not, one for `far`.
  void add_helpers(const PlacementProblem::Tensor& tensor, std::int32_t producer,
                   std::int64_t to_near, std::int64_t to_far) {
    const std::int32_t near_copy = network_.add_vertex();
    const std::int32_t far_copy = network_.add_vertex();
    if (producer < 0) {
      network_.add_source_capacity(near_copy, to_near);
      network_.add_sink_capacity(far_copy, to_far);
    } else {
      network_.add_arc(producer, near_copy, to_near);
      network_.add_arc(far_copy, producer, to_far);
    }
    for (const std::int32_t reader : problem_.readers_of(tensor)) {
      ReaderArcs& arcs = reader_arcs_.emplace_back();
      const std::int32_t vertex = vertex_of_[index_of(reader)];
      if (vertex < 0) continue;
      arcs.forward = network_.add_arc(near_copy, vertex, kInfiniteCapacity);
      arcs.backward = network_.add_arc(vertex, far_copy, kInfiniteCapacity);
    }
  }

  const PlacementProblem& problem_;
  const Assignment& fixed_;
  std::int32_t near_;
  std::int32_t far_;
  CutNetwork network_;
  std::vector<std::int32_t> vertex_of_;  // by item, -1 if it is fixed
  std::vector<ReaderArcs> reader_arcs_;  // by reader, if no item is fixed
  std::vector<std::size_t> launch_arc_;  // by arc of the unit graph
  MinCut cut_;
};

// ---- Paths ----

/// Adds the path that launches most if the units are on these devices.
void add_worst_path(const PlacementProblem& problem, const Assignment& assignment,
                    LaunchPaths& paths) {
  const UnitGraph& units = problem.units;
  const auto device = [&](std::int32_t unit) {
    return assignment[index_of(problem.item_of[index_of(unit)])];
  };
  std::vector<std::int64_t> cost(units.size(), -1);
  std::vector<std::int64_t> came_by(units.size(), -1);  // arc
  std::vector<std::int32_t> came_from(units.size(), -1);
  std::int32_t last = -1;
  for (const std::int32_t unit : units.order) {
    std::int64_t& here = cost[index_of(unit)];
    if (here < 0) here = problem.launch[index_of(device(unit))];
    if (last < 0 || here > cost[index_of(last)]) last = unit;
    for (auto a = units.offsets[index_of(unit)]; a < units.offsets[index_of(unit) + 1]; ++a) {
      const std::int32_t next = units.targets[static_cast<std::size_t>(a)];
      const bool changes = device(next) != device(unit);
      const std::int64_t there = here + (changes ? problem.launch[index_of(device(next))] : 0);
      if (there <= cost[index_of(next)]) continue;
      cost[index_of(next)] = there;
      came_by[index_of(next)] = a;
      came_from[index_of(next)] = unit;
    }
  }
  paths.starts.resize(units.size(), 0);
  paths.arcs.resize(units.targets.size(), 0);
  if (last < 0) return;
  // On to a sink, so that a later assignment's changes down there count, too.
  for (bool moved = true; moved;) {
    moved = false;
    for (auto a = units.offsets[index_of(last)]; a < units.offsets[index_of(last) + 1]; ++a) {
      const std::int32_t next = units.targets[static_cast<std::size_t>(a)];
      if (came_by[index_of(next)] != a) continue;
      last = next;
      moved = true;
      break;
    }
  }
  ++paths.count;
  while (came_by[index_of(last)] >= 0) {
    ++paths.arcs[static_cast<std::size_t>(came_by[index_of(last)])];
    last = came_from[index_of(last)];
  }
  ++paths.starts[index_of(last)];
}

// ---- All placements ----

/// Depth first over the items, cut off where what is known costs as much as the best.
class ExhaustiveSearch {
 public:
  ExhaustiveSearch(const PlacementProblem& problem) : problem_(problem) {
    std::vector<std::int32_t> position(problem.items, -1);
    for (const std::int32_t unit : problem.units.order) {
      const std::int32_t item = problem.item_of[index_of(unit)];
      if (position[index_of(item)] >= 0) continue;
      position[index_of(item)] = static_cast<std::int32_t>(order_.size());
      order_.push_back(item);
    }
    complete_at_.resize(order_.size());
    for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
      std::int32_t last = position[index_of(problem.tensors[t].producer)];
      for (const std::int32_t reader : problem.readers_of(problem.tensors[t])) {
        last = std::max(last, position[index_of(reader)]);
      }
      complete_at_[index_of(last)].push_back(t);
    }
    rest_.assign(order_.size() + 1, 0);
    for (std::size_t i = order_.size(); i-- > 0;) {
      std::int64_t least = kNever;
      for (std::size_t d = 0; d < problem.devices; ++d) {
        least = std::min(least, problem.cost_of(order_[i], static_cast<std::int32_t>(d)));
      }
      rest_[i] = rest_[i + 1] + least;
    }
    least_launch_ = *std::min_element(problem.launch.begin(), problem.launch.end());
  }

  /// Calls `consider` with every placement that could be better than `best`, which it returns the
  /// new value of. False if it gave up.
  template <typename Consider>
  bool run(std::int64_t best, const Consider& consider) {
    assignment_ = problem_.tagged;
    best_ = best;
    visits_ = 0;
    return visit(0, 0, consider);
  }

 private:
  template <typename Consider>
  bool visit(std::size_t depth, std::int64_t cost, const Consider& consider) {
    if (++visits_ > kMostVisits) return false;
    if (depth == order_.size()) {
      best_ = consider(assignment_);
      return true;
    }
    const std::int32_t item = order_[depth];
    for (std::size_t d = 0; d < problem_.devices; ++d) {
      const auto device = static_cast<std::int32_t>(d);
      const std::int64_t here = problem_.cost_of(item, device);
      if (here == kNever) continue;
      assignment_[index_of(item)] = device;
      std::int64_t next = cost + here;
      for (const std::size_t t : complete_at_[depth]) next += tensor_cost(t);
      if (next + rest_[depth + 1] + least_launch_ >= best_) continue;
      if (!visit(depth + 1, next, consider)) return false;
    }
    return true;
  }

  std::int64_t tensor_cost(std::size_t t) const {
    const PlacementProblem::Tensor& tensor = problem_.tensors[t];
    const std::int32_t from = assignment_[index_of(tensor.producer)];
    std::uint64_t sent = std::uint64_t{1} << from;
    std::int64_t cost = 0;
    for (const std::int32_t reader : problem_.readers_of(tensor)) {
      const std::int32_t to = assignment_[index_of(reader)];
      if ((sent >> to & 1U) != 0) continue;
      sent |= std::uint64_t{1} << to;
      cost += problem_.transfer_of(t, from, to);
    }
    return cost;
  }

  const PlacementProblem& problem_;
  std::vector<std::int32_t> order_;
  std::vector<std::vector<std::size_t>> complete_at_;  // tensors, by depth of their last item
  std::vector<std::int64_t> rest_;                     // least cost of what is not placed yet
  std::int64_t least_launch_ = 0;
  Assignment assignment_;
  std::int64_t best_ = 0;
  std::int64_t visits_ = 0;
};

// ---- The solver ----

class Solver {
 public:
  explicit Solver(PlacementProblem& problem) : problem_(problem) {}

  Placement solve() {
    if (problem_.items == 0) return std::move(best_);
    size_ = static_cast<std::int64_t>(problem_.items + problem_.readers.size());
    consider(problem_.tagged);
    for (std::size_t d = 0; d < problem_.devices; ++d)
      consider_all_on(static_cast<std::int32_t>(d));
    if (problem_.devices == 2) {
      solve_pair();
    } else {
      solve_many();
    }
    move_partitions();
    if (best_.total() > best_.bound_ticks) try_all();
    best_.bound_ticks = std::min(best_.bound_ticks, best_.total());
    set_devices(best_.assignment);
    return std::move(best_);
  }

 private:
  void set_devices(const Assignment& assignment) {
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      problem_.units.device[u] = assignment[index_of(problem_.item_of[u])];
    }
  }

  bool consider(const Assignment& assignment) {
    best_.work += size_;
    const std::int64_t placed = placement_cost(problem_, assignment);
    if (placed == kNever) return false;
    const bool is_first = best_.assignment.empty();
    if (!is_first && placed >= best_.total()) return false;  // it launches something, too
    set_devices(assignment);
    best_.work += static_cast<std::int64_t>(
        problem_.devices * (problem_.units.size() + problem_.units.targets.size()));
    std::vector<Wave> waves = fewest_waves(problem_.units, problem_.launch);
    std::int64_t launch = 0;
    for (const Wave& wave : waves) launch += problem_.launch[index_of(wave.device)];
    if (!is_first && placed + launch >= best_.total()) return false;
    best_.assignment = assignment;
    best_.waves = std::move(waves);
    best_.placed_ticks = placed;
    best_.launch_ticks = launch;
    return true;
  }

  void consider_all_on(std::int32_t device) {
    Assignment all(problem_.items, device);
    for (std::size_t i = 0; i < problem_.items; ++i) {
      if (problem_.cost_of(static_cast<std::int32_t>(i), device) == kNever) return;
    }
    consider(all);
  }

  void solve_pair() {
    const Assignment anywhere(problem_.items, 0);
    PairCut cut(problem_, anywhere, 0, 1);
    best_.cut_assignment = cut.solve();
    best_.work += cut.size();
    best_.cut = cut.certificate({});
    best_.bound = best_.cut;
    best_.bound_ticks = cut.value();
    Assignment current = best_.cut_assignment;
    consider(current);
    if (*std::max_element(problem_.launch.begin(), problem_.launch.end()) == 0) return;

    LaunchPaths paths;
    const std::int64_t rounds =
        std::clamp(kPathWork / std::max<std::int64_t>(size_, 1), std::int64_t{1}, kMostPathRounds);
    for (std::int64_t round = 0; round < rounds && best_.total() > best_.bound_ticks; ++round) {
      add_worst_path(problem_, current, paths);
      PairCut with_launches(problem_, anywhere, 0, 1);
      with_launches.add_launches(paths);
      current = with_launches.solve();
      best_.work += with_launches.size();
      if (with_launches.value() > best_.bound_ticks) {
        best_.bound_ticks = with_launches.value();
        best_.bound = with_launches.certificate(paths);
      }
      consider(current);
    }
  }

  // Swaps between all pairs of devices until none helps.
  void improve_by_swaps(Assignment assignment) {
    std::int64_t cost = placement_cost(problem_, assignment);
    if (cost == kNever) return;
    const auto devices = static_cast<std::int32_t>(problem_.devices);
    for (bool improved = true; improved;) {
      improved = false;
      for (std::int32_t far = 1; far < devices; ++far) {
        for (std::int32_t near = 0; near < far; ++near) {
          Assignment next = PairCut(problem_, assignment, near, far).solve();
          if (next.empty()) continue;
          const std::int64_t next_cost = placement_cost(problem_, next);
          if (next_cost >= cost) continue;
          cost = next_cost;
          assignment = std::move(next);
          improved = true;
        }
      }
    }
    consider(assignment);
  }

  void solve_many() {
    Assignment cheapest(problem_.items, 0);
    for (std::size_t i = 0; i < problem_.items; ++i) {
      for (std::size_t d = 1; d < problem_.devices; ++d) {
        const auto device = static_cast<std::int32_t>(d);
        if (problem_.cost_of(static_cast<std::int32_t>(i), device) <
            problem_.cost_of(static_cast<std::int32_t>(i), cheapest[i])) {
          cheapest[i] = device;
        }
      }
    }
    improve_by_swaps(problem_.tagged);
    improve_by_swaps(cheapest);
    for (std::size_t d = 0; d < problem_.devices; ++d) {
      Assignment start = cheapest;
      for (std::size_t i = 0; i < problem_.items; ++i) {
        const auto device = static_cast<std::int32_t>(d);
        if (problem_.cost_of(static_cast<std::int32_t>(i), device) != kNever) start[i] = device;
      }
      consider(start);
      improve_by_swaps(start);
    }
    raise_prices(cheapest);
  }

  // Subgradient steps on the prices (Polyak's step length).
  void raise_prices(const Assignment& cheapest) {
    std::vector<std::int64_t> prices(problem_.items);
    for (std::size_t i = 0; i < problem_.items; ++i) {
      prices[i] = problem_.cost_of(static_cast<std::int32_t>(i), cheapest[i]);
    }
    const std::int64_t least_launch =
        *std::min_element(problem_.launch.begin(), problem_.launch.end());
    best_.proof = BoundProof::kPrices;
    best_.bound_ticks = std::numeric_limits<std::int64_t>::min();
    const std::int64_t rounds =
        std::clamp(kPathWork / std::max<std::int64_t>(size_, 1), std::int64_t{1}, kMostPathRounds);
    double factor = 1;
    const double most = 0x1p60 / static_cast<double>(problem_.items + 1);  // the sum has to fit
    for (std::int64_t round = 0; round < rounds; ++round) {
      std::vector<std::vector<char>> taken;
      const std::int64_t value = priced_bound(problem_, prices, &taken);
      if (value + least_launch > best_.bound_ticks) {
        best_.bound_ticks = value + least_launch;
        best_.prices = prices;
      } else {
        factor /= 2;
      }
      if (best_.bound_ticks >= best_.total()) return;
      std::vector<std::int64_t> excess(problem_.items, 1);
      double norm = 0;
      for (std::size_t i = 0; i < problem_.items; ++i) {
        for (const auto& side : taken) excess[i] -= side[i];
        norm += static_cast<double>(excess[i] * excess[i]);
      }
      if (norm == 0) return;
      const double step = factor * static_cast<double>(best_.total() - least_launch - value) / norm;
      for (std::size_t i = 0; i < problem_.items; ++i) {
        const double price = static_cast<double>(prices[i]) + step * static_cast<double>(excess[i]);
        prices[i] = std::llround(std::clamp(price, -most, most));
      }
    }
  }

  // One partition after another to another device, while that helps.
  void move_partitions() {
    std::int64_t budget = kMoveWork;
    for (bool improved = true; improved && budget > 0;) {
      improved = false;
      const std::vector<Wave> waves = best_.waves;
      const Assignment before = best_.assignment;
      for (const Wave& wave : waves) {
        for (std::size_t d = 0; d < problem_.devices && budget > 0 && !improved; ++d) {
          const auto device = static_cast<std::int32_t>(d);
          if (device == wave.device) continue;
          budget -= size_ / 8;
          Assignment next = before;
          bool runs = true;
          for (const std::int32_t unit : wave.units) {
            const std::int32_t item = problem_.item_of[index_of(unit)];
            runs = runs && problem_.cost_of(item, device) != kNever;
            next[index_of(item)] = device;
          }
          if (!runs) continue;
          budget -= size_;
          improved = consider(next);
        }
        if (improved) break;
      }
    }
  }

  void try_all() {
    double choices = 1;
    for (std::size_t i = 0; i < problem_.items; ++i) {
      double here = 0;
      for (std::size_t d = 0; d < problem_.devices; ++d) {
        here +=
            problem_.cost_of(static_cast<std::int32_t>(i), static_cast<std::int32_t>(d)) != kNever;
      }
      choices *= here;
      if (choices > kMostChoices) return;
    }
    const bool complete =
        ExhaustiveSearch(problem_).run(best_.total(), [&](const Assignment& assignment) {
          consider(assignment);
          return best_.total();
        });
    if (!complete) return;
    best_.bound_ticks = best_.total();
    best_.proof = BoundProof::kExhaustive;
  }

  PlacementProblem& problem_;
  Placement best_;
  std::int64_t size_ = 0;
};

}  // namespace

std::int64_t certified_bound(const PlacementProblem& problem, const CutCertificate& certificate,
                             std::string& fault) {
  const UnitGraph& units = problem.units;
  const LaunchPaths& paths = certificate.paths;
  const std::int32_t near = certificate.near;
  const std::int32_t far = certificate.far;
  __extension__ using Wide = __int128;
  std::vector<Wide> on_near(problem.items, 0);
  std::vector<Wide> on_far(problem.items, 0);
  const auto refuse = [&](std::string text) {
    fault = std::move(text);
    return kNever;
  };
  if (problem.devices != 2 || near == far || certificate.flow.size() != problem.readers.size()) {
    return refuse("the certificate does not belong to the document");
  }
  for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
    const PlacementProblem::Tensor& tensor = problem.tensors[t];
    Wide to_near = 0;
    Wide to_far = 0;
    for (std::int32_t r = tensor.begin; r < tensor.end; ++r) {
      const std::int64_t flow = certificate.flow[index_of(r)];
      (flow > 0 ? to_near : to_far) += flow > 0 ? Wide{flow} : -Wide{flow};
      on_far[index_of(tensor.producer)] += flow;
      on_far[index_of(problem.readers[index_of(r)])] -= flow;
    }
    if (to_near > problem.transfer_of(t, far, near) || to_far > problem.transfer_of(t, near, far)) {
      return refuse("the flow of a tensor exceeds its price");
    }
  }
  if (paths.count > 0) {
    if (paths.starts.size() != units.size() || paths.arcs.size() != units.targets.size() ||
        certificate.launch_flow.size() != units.targets.size()) {
      return refuse("the certificate does not belong to the document");
    }
    std::vector<Wide> through(units.size(), 0);  // paths that reach a unit and may go on
    Wide begun = 0;
    for (const std::int32_t unit : units.order) {
      const std::size_t u = index_of(unit);
      if (paths.starts[u] < 0) return refuse("a negative number of paths");
      begun += paths.starts[u];
      through[u] += paths.starts[u];
      const std::size_t item = index_of(problem.item_of[u]);
      if (paths.starts[u] > 0) {
        on_near[item] += share(paths.starts[u], problem.launch[index_of(near)], paths.count);
        on_far[item] += share(paths.starts[u], problem.launch[index_of(far)], paths.count);
      }
      for (auto a = static_cast<std::size_t>(units.offsets[u]);
           a < static_cast<std::size_t>(units.offsets[u + 1]); ++a) {
        const std::int64_t times = paths.arcs[a];
        const std::int64_t flow = certificate.launch_flow[a];
        if (times < 0) return refuse("a negative number of paths");
        through[u] -= times;
        through[index_of(units.targets[a])] += times;
        if (flow > share(times, problem.launch[index_of(near)], paths.count) ||
            -Wide{flow} > share(times, problem.launch[index_of(far)], paths.count)) {
          return refuse("the flow of a launch exceeds its price");
        }
        on_far[item] += flow;
        on_far[index_of(problem.item_of[index_of(units.targets[a])])] -= flow;
      }
      if (through[u] < 0) return refuse("more paths leave a unit than reach it");
    }
    if (begun > paths.count) return refuse("more paths than the certificate counts");
  }
  Wide bound = 0;
  for (std::size_t i = 0; i < problem.items; ++i) {
    const std::int64_t near_cost = problem.cost_of(static_cast<std::int32_t>(i), near);
    const std::int64_t far_cost = problem.cost_of(static_cast<std::int32_t>(i), far);
    if (near_cost == kNever && far_cost == kNever) return refuse("an item that runs nowhere");
    if (near_cost == kNever) {
      bound += far_cost + on_far[i];
    } else if (far_cost == kNever) {
      bound += near_cost + on_near[i];
    } else {
      bound += std::min(near_cost + on_near[i], far_cost + on_far[i]);
    }
  }
  if (bound >= kNever || bound <= -Wide{kNever}) return refuse("numbers that are too large");
  return static_cast<std::int64_t>(bound);
}

std::int64_t priced_bound(const PlacementProblem& problem, const std::vector<std::int64_t>& prices,
                          std::vector<std::vector<char>>* taken) {
  std::int64_t bound = std::accumulate(prices.begin(), prices.end(), std::int64_t{0});
  for (std::size_t d = 0; d < problem.devices; ++d) {
    const auto device = static_cast<std::int32_t>(d);
    // A vertex on the source's side is not on the device.
    CutNetwork network(problem.items);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < problem.items; ++i) {
      const auto vertex = static_cast<std::int32_t>(i);
      const std::int64_t cost = problem.cost_of(vertex, device);
      if (cost == kNever) {
        network.add_source_capacity(vertex, kInfiniteCapacity);
        continue;
      }
      const std::int64_t worth = cost - prices[i];
      if (worth >= 0) {
        network.add_source_capacity(vertex, worth);
      } else {
        offset += worth;
        network.add_sink_capacity(vertex, -worth);
      }
    }
    for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
      std::int64_t in = kNever;
      std::int64_t out = kNever;
      for (std::size_t e = 0; e < problem.devices; ++e) {
        if (e == d) continue;
        in = std::min(in, problem.transfer_of(t, static_cast<std::int32_t>(e), device));
        out = std::min(out, problem.transfer_of(t, device, static_cast<std::int32_t>(e)));
      }
      if (in == kNever) continue;  // the only device
      const PlacementProblem::Tensor& tensor = problem.tensors[t];
      const std::int32_t arrives = network.add_vertex();
      const std::int32_t leaves = network.add_vertex();
      network.add_arc(tensor.producer, arrives, in / 2);
      network.add_arc(leaves, tensor.producer, out / 2);
      for (const std::int32_t reader : problem.readers_of(tensor)) {
        network.add_arc(arrives, reader, kInfiniteCapacity);
        network.add_arc(reader, leaves, kInfiniteCapacity);
      }
    }
    const MinCut cut = solve_min_cut(network);
    assert(check_min_cut(network, cut).empty());
    bound += offset + cut.value;
    if (taken == nullptr) continue;
    std::vector<char>& side = taken->emplace_back(problem.items);
    for (std::size_t i = 0; i < problem.items; ++i) side[i] = cut.source_side[i] == 0;
  }
  return bound;
}

Placement solve_placement(PlacementProblem& problem) { return Solver(problem).solve(); }

}  // namespace npu
