// SPDX-License-Identifier: Apache-2.0
// The solver on hand-made problems against all placements, and its bounds against their proofs.
#include "partition/placement/placement_solver.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "partition/placement/exhaustive_search.hpp"
#include "partition/placement/pair_cut.hpp"

using namespace npu;

namespace {

// A chain with some shortcuts; every item is one node. Prices of 0 to 99 ticks.
PlacementProblem random_problem(std::mt19937& random, std::size_t items, std::size_t devices) {
  const auto below = [&](int bound) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(bound));
  };
  PlacementProblem problem;
  problem.items = items;
  problem.devices = devices;
  FusedGraph& fused = problem.fused;
  fused.device.assign(items, 0);
  fused.predecessor_count.assign(items, 0);
  fused.offsets.assign(1, 0);
  for (std::size_t d = 0; d < devices; ++d) {
    fused.device_names.push_back("d" + std::to_string(d));
    problem.launch.push_back(below(2) == 0 ? 0 : below(60));
  }
  for (std::size_t i = 0; i < items; ++i) {
    const auto item = static_cast<std::int32_t>(i);
    const NodeId id{item};
    fused.members.push_back({&id, 1});
    fused.fused_node_of.push_back(item);
    fused.order.push_back(item);
    problem.item_of.push_back(item);
    problem.first_node.push_back(id);
    problem.tagged.push_back(static_cast<std::int32_t>(devices - 1));
    for (std::size_t d = 0; d < devices; ++d) {
      // The last device runs everything.
      problem.cost.push_back(d + 1 < devices && below(5) == 0 ? kNever : below(100));
    }
    std::vector<std::int32_t> readers;
    for (std::size_t next = i + 1; next < items && next < i + 4; ++next) {
      if (next == i + 1 || below(4) == 0) readers.push_back(static_cast<std::int32_t>(next));
    }
    for (const std::int32_t reader : readers) {
      fused.targets.push_back(reader);
      ++fused.predecessor_count[static_cast<std::size_t>(reader)];
    }
    fused.offsets.push_back(static_cast<std::int64_t>(fused.targets.size()));
    if (readers.empty()) continue;
    const auto begin = static_cast<std::int32_t>(problem.readers.size());
    problem.readers.insert(problem.readers.end(), readers.begin(), readers.end());
    problem.tensors.push_back({.id = {item},
                               .producer = item,
                               .begin = begin,
                               .end = static_cast<std::int32_t>(problem.readers.size())});
    for (std::size_t from = 0; from < devices; ++from) {
      for (std::size_t to = 0; to < devices; ++to) {
        problem.transfer.push_back(from == to ? 0 : below(80));
      }
    }
  }
  return problem;
}

// Every placement, each with the device runs of least price.
std::int64_t least_total(PlacementProblem problem, bool with_launches) {
  std::int64_t best = kNever;
  Assignment assignment(problem.items, 0);
  for (;;) {
    std::int64_t cost = placement_cost(problem, assignment);
    if (cost != kNever) {
      problem.fused.device = assignment;
      if (with_launches) {
        for (const DeviceRun& run : fewest_device_runs(problem.fused, problem.launch)) {
          cost += problem.launch[static_cast<std::size_t>(run.device)];
        }
      }
      best = std::min(best, cost);
    }
    std::size_t i = 0;
    while (i < assignment.size() && ++assignment[i] == static_cast<std::int32_t>(problem.devices)) {
      assignment[i++] = 0;
    }
    if (i == assignment.size()) return best;
  }
}

}  // namespace

TEST_CASE("placement solver: the least of all placements, and bounds that hold") {
  std::mt19937 random(11);
  int exhaustive = 0;
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    PlacementProblem problem = random_problem(random, 1 + random() % 7, round % 3 == 0 ? 3 : 2);
    const std::int64_t least = least_total(problem, true);
    const Placement placement = solve_placement(problem);
    CHECK(placement.total() == least);
    CHECK(placement.bound_ticks <= least);
    CHECK(placement_cost(problem, placement.assignment) == placement.placed_ticks);
    CHECK(problem.fused.device == placement.assignment);  // every item is one node here
    exhaustive += placement.proof == BoundProof::kExhaustive ? 1 : 0;
    std::string fault;
    if (placement.proof == BoundProof::kCut) {
      CHECK(certified_bound(problem, placement.bound, fault) >= placement.bound_ticks);
    } else if (placement.proof == BoundProof::kPrices) {
      const auto launch = *std::min_element(problem.launch.begin(), problem.launch.end());
      CHECK(priced_bound(problem, placement.prices) + launch >= placement.bound_ticks);
    }
    CHECK(fault.empty());
  }
  CHECK(exhaustive > 0);
  CHECK(exhaustive < 300);
}

TEST_CASE("pair cut: the least of computing and copying, with a proof") {
  std::mt19937 random(13);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const PlacementProblem problem = random_problem(random, 1 + random() % 8, 2);
    const Assignment anywhere(problem.items, 0);
    PairCut cut(problem, anywhere, 0, 1);
    const Assignment assignment = cut.solve();
    CHECK(placement_cost(problem, assignment) == least_total(problem, false));
    CHECK(cut.value() == placement_cost(problem, assignment));
    CutCertificate proof = cut.certificate({});
    std::string fault;
    CHECK(certified_bound(problem, proof, fault) == cut.value());
    CHECK(fault.empty());
    // A proof of more than there is proves nothing, or less.
    if (proof.flow.empty()) continue;
    proof.flow.front() += 1000;
    const std::int64_t spoiled = certified_bound(problem, proof, fault);
    CHECK((spoiled == kNever || spoiled <= cut.value()));
    CHECK((spoiled != kNever || fault == "the flow of a tensor exceeds its price"));
  }
}

TEST_CASE("pair cut: items on a third device stay and are paid for") {
  std::mt19937 random(17);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const PlacementProblem problem = random_problem(random, 2 + random() % 5, 3);
    Assignment fixed(problem.items, 0);
    for (std::size_t i = 0; i < problem.items; ++i) {
      fixed[i] = random() % 3 == 0 ? 2 : 0;
    }
    const Assignment found = PairCut(problem, fixed, 0, 1).solve();
    std::int64_t least = kNever;
    for (std::uint32_t bits = 0; bits < 1U << problem.items; ++bits) {
      Assignment candidate = fixed;
      for (std::size_t i = 0; i < problem.items; ++i) {
        if (fixed[i] != 2) candidate[i] = static_cast<std::int32_t>(bits >> i & 1U);
      }
      least = std::min(least, placement_cost(problem, candidate));
    }
    if (found.empty()) {
      CHECK(least == kNever);
      continue;
    }
    CHECK(placement_cost(problem, found) == least);
    for (std::size_t i = 0; i < problem.items; ++i) CHECK((fixed[i] == 2) == (found[i] == 2));
  }
}

TEST_CASE("exhaustive search: sees the best placement, and nothing that is worse than the best") {
  std::mt19937 random(19);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    PlacementProblem problem = random_problem(random, 1 + random() % 7, 2 + random() % 2);
    std::fill(problem.launch.begin(), problem.launch.end(), 0);
    std::int64_t best = kNever;
    CHECK(ExhaustiveSearch(problem).run(best, [&](const Assignment& assignment) {
      const std::int64_t cost = placement_cost(problem, assignment);
      CHECK(cost < best);
      best = std::min(best, cost);
      return best;
    }));
    CHECK(best == least_total(problem, false));
  }
}
