// SPDX-License-Identifier: Apache-2.0
// Finds a placement that takes little time for computing, copying and launching partitions, and a
// lower bound that says how far from the optimum it can be.
//
// Two devices. Computing and copying without launches is a minimum cut (an item on the source's
// side is on the later device; a tensor that several items read has a helper vertex for each
// direction, so that it is paid once). The number of launches is not a cut cost: it is one plus the
// largest number of device changes over all paths through the graph. For the mean over fixed paths
// it is a cut cost again, so the solver plays a two-player game: a minimum cut for the paths so
// far, then the path that is worst for that cut, and so on. Every cut's value is a lower bound, and
// every cut a placement that takes launches into account; on a chain the second cut is already
// optimal. The tags and all items on one device are tried as well; then whole partitions are moved
// while that helps. If a gap is left and there are at most kMaxChoices placements, all are tried.
//
// More devices. Pairs of devices swap items by minimum cuts until no swap helps (Boykov, Veksler,
// Zabih, "Fast approximate energy minimization via graph cuts", PAMI 2001), from several starts;
// the bound is a Lagrangian one.
//
// The number of rounds shrinks with the size, so that time stays nearly linear.
#include "partition/placement/placement_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "npu/support/ids.hpp"
#include "partition/placement/exhaustive_search.hpp"
#include "partition/placement/pair_cut.hpp"

namespace npu {
namespace {

constexpr std::int64_t kPathWork = 50'000;  // items and readers, over all rounds
constexpr std::int64_t kMaxPathRounds = 40;
constexpr std::int64_t kMoveWork = 200'000;  // fused nodes and arcs, over all tried moves
constexpr double kMaxChoices = 0x1p20;

// ---- Paths ----

/// Adds the path with the most launches if the fused nodes are on these devices.
void add_worst_path(const PlacementProblem& problem, const Assignment& assignment,
                    LaunchPaths& paths) {
  const FusedGraph& fused = problem.fused;
  const auto device = [&](std::int32_t fused_node) {
    return assignment[index_of(problem.item_of[index_of(fused_node)])];
  };
  std::vector<std::int64_t> cost(fused.size(), -1);
  std::vector<std::int64_t> came_by(fused.size(), -1);  // arc
  std::vector<std::int32_t> came_from(fused.size(), -1);
  std::int32_t last = -1;
  for (const std::int32_t fused_node : fused.order) {
    std::int64_t& here = cost[index_of(fused_node)];
    if (here < 0) here = problem.launch[index_of(device(fused_node))];
    if (last < 0 || here > cost[index_of(last)]) last = fused_node;
    for (auto a = fused.offsets[index_of(fused_node)]; a < fused.offsets[index_of(fused_node) + 1];
         ++a) {
      const std::int32_t next = fused.targets[static_cast<std::size_t>(a)];
      const bool changes = device(next) != device(fused_node);
      const std::int64_t there = here + (changes ? problem.launch[index_of(device(next))] : 0);
      if (there <= cost[index_of(next)]) continue;
      cost[index_of(next)] = there;
      came_by[index_of(next)] = a;
      came_from[index_of(next)] = fused_node;
    }
  }
  paths.starts.resize(fused.size(), 0);
  paths.arcs.resize(fused.targets.size(), 0);
  if (last < 0) return;
  // Continue to a sink, so that changes of later assignments down there count as well.
  for (bool moved = true; moved;) {
    moved = false;
    for (auto a = fused.offsets[index_of(last)]; a < fused.offsets[index_of(last) + 1]; ++a) {
      const std::int32_t next = fused.targets[static_cast<std::size_t>(a)];
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
    for (std::size_t u = 0; u < problem_.fused.size(); ++u) {
      problem_.fused.device[u] = assignment[index_of(problem_.item_of[u])];
    }
  }

  bool consider(const Assignment& assignment) {
    best_.work += size_;
    const std::int64_t placed = placement_cost(problem_, assignment);
    if (placed == kNever) return false;
    const bool is_first = best_.assignment.empty();
    if (!is_first && placed >= best_.total()) return false;  // launches come on top
    set_devices(assignment);
    best_.work += static_cast<std::int64_t>(
        problem_.devices * (problem_.fused.size() + problem_.fused.targets.size()));
    std::vector<DeviceRun> runs = fewest_device_runs(problem_.fused, problem_.launch);
    std::int64_t launch = 0;
    for (const DeviceRun& run : runs) launch += problem_.launch[index_of(run.device)];
    if (!is_first && placed + launch >= best_.total()) return false;
    best_.assignment = assignment;
    best_.runs = std::move(runs);
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
        std::clamp(kPathWork / std::max<std::int64_t>(size_, 1), std::int64_t{1}, kMaxPathRounds);
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

  // Swaps between all pairs of devices until no swap helps.
  void improve_by_swaps(Assignment assignment) {
    std::int64_t cost = placement_cost(problem_, assignment);
    if (cost == kNever) return;
    const auto devices = static_cast<std::int32_t>(problem_.devices);
    for (bool improved = true; improved;) {
      improved = false;
      for (std::int32_t device_b = 1; device_b < devices; ++device_b) {
        for (std::int32_t device_a = 0; device_a < device_b; ++device_a) {
          Assignment next = PairCut(problem_, assignment, device_a, device_b).solve();
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
        std::clamp(kPathWork / std::max<std::int64_t>(size_, 1), std::int64_t{1}, kMaxPathRounds);
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

  // Moves one partition after another to another device while that helps.
  void move_partitions() {
    std::int64_t budget = kMoveWork;
    for (bool improved = true; improved && budget > 0;) {
      improved = false;
      const std::vector<DeviceRun> runs = best_.runs;
      const Assignment before = best_.assignment;
      for (const DeviceRun& run : runs) {
        for (std::size_t d = 0; d < problem_.devices && budget > 0 && !improved; ++d) {
          const auto device = static_cast<std::int32_t>(d);
          if (device == run.device) continue;
          budget -= size_ / 8;
          Assignment next = before;
          bool is_supported = true;
          for (const std::int32_t fused_node : run.fused_nodes) {
            const std::int32_t item = problem_.item_of[index_of(fused_node)];
            is_supported = is_supported && problem_.cost_of(item, device) != kNever;
            next[index_of(item)] = device;
          }
          if (!is_supported) continue;
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
      if (choices > kMaxChoices) return;
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

Placement solve_placement(PlacementProblem& problem) { return Solver(problem).solve(); }

}  // namespace npu
