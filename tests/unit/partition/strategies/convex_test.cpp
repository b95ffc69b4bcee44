// SPDX-License-Identifier: Apache-2.0
// Fewest partitions, compared with exhaustive search.
#include <chrono>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/partition/strategies.hpp"
#include "partition/plan_checks.hpp"

using namespace npu;
using namespace npu::test;
using Lines = std::vector<std::string>;

namespace {

// Predecessors of each node (or of each group of nodes), as bits.
struct SmallGraph {
  std::vector<std::string> device;
  std::vector<unsigned> needs;
};

SmallGraph small_graph(const Graph& graph, const std::vector<int>& fused_node_of,
                       std::size_t fused) {
  SmallGraph small{std::vector<std::string>(fused), std::vector<unsigned>(fused, 0)};
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    const auto fused_node = static_cast<std::size_t>(fused_node_of[n]);
    small.device[fused_node] = *graph.nodes()[n].device;
    for (const TensorId input : graph.nodes()[n].inputs) {
      const NodeId producer = graph.tensor(input).producer;
      if (!producer.valid()) continue;
      const int other = fused_node_of[static_cast<std::size_t>(producer.value)];
      if (other != fused_node_of[n]) small.needs[fused_node] |= 1U << other;
    }
  }
  return small;
}

std::vector<int> each_its_own(const Graph& graph) {
  std::vector<int> fused;
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) fused.push_back(static_cast<int>(n));
  return fused;
}

// Fewest runs of one device over all topological orders, by dynamic programming over the sets of
// nodes that can be done first and the device that ran last. Large if there is no order (a cycle).
int fewest_runs(const SmallGraph& small) {
  const std::size_t count = small.device.size();
  if (count == 0) return 0;
  constexpr int kNever = 1000;
  std::vector<std::vector<int>> best(std::size_t{1} << count,
                                     std::vector<int>(count, kNever));  // by last node
  for (std::size_t n = 0; n < count; ++n) {
    if (small.needs[n] == 0) best[std::size_t{1} << n][n] = 1;
  }
  for (std::size_t done = 1; done < best.size(); ++done) {
    for (std::size_t last = 0; last < count; ++last) {
      if (best[done][last] == kNever) continue;
      for (std::size_t next = 0; next < count; ++next) {
        if ((done >> next & 1U) != 0 || (small.needs[next] & ~done) != 0) continue;
        int& value = best[done | std::size_t{1} << next][next];
        value =
            std::min(value, best[done][last] + (small.device[next] != small.device[last] ? 1 : 0));
      }
    }
  }
  return *std::min_element(best.back().begin(), best.back().end());
}

// Fewest blocks over all partitions of the set of nodes whose blocks have one device each and whose
// quotient graph has no cycle: the definition itself. For up to seven nodes or so.
int fewest_blocks(const Graph& graph) {
  const std::size_t count = graph.nodes().size();
  int best = static_cast<int>(count);
  std::vector<int> block(count, 0);
  const auto search = [&](const auto& self, std::size_t n, int blocks) -> void {
    if (n == count) {
      if (blocks < best && !quotient_has_cycle(graph, block, static_cast<std::size_t>(blocks)))
        best = blocks;
      return;
    }
    for (int b = 0; b <= blocks; ++b) {
      bool same_device = true;
      for (std::size_t m = 0; m < n; ++m) {
        if (block[m] == b && graph.nodes()[m].device != graph.nodes()[n].device)
          same_device = false;
      }
      if (!same_device) continue;
      block[n] = b;
      self(self, n + 1, std::max(blocks, b + 1));
    }
  };
  search(search, 0, 0);
  return best;
}

// Exactly the tensors that are read on another device than the one they are made on, once per
// device, in front of the first partition there that reads them, in one transfer per source device.
void check_transfers(const Graph& graph, const PartitionPlan& plan, const std::vector<int>& owner) {
  std::map<std::pair<int, std::string>, int>
      expected;  // (tensor, device) -> first partition that reads it
  for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
    for (const TensorId input : graph.nodes()[n].inputs) {
      const TensorInfo& tensor = graph.tensor(input);
      if (!tensor.producer.valid() || graph.node(tensor.producer).device == graph.nodes()[n].device)
        continue;
      const auto [where, added] =
          expected.emplace(std::pair{input.value, *graph.nodes()[n].device}, owner[n]);
      if (!added) where->second = std::min(where->second, owner[n]);
    }
  }
  std::set<std::pair<std::string, int>> seen;  // (source device, destination partition)
  std::size_t count = 0;
  for (const Transfer& transfer : plan.transfers) {
    CHECK(std::is_sorted(transfer.tensors.begin(), transfer.tensors.end()));
    const std::string& source = plan.partitions[static_cast<std::size_t>(transfer.from)].device;
    CHECK(source != transfer.to_device);
    CHECK(seen.emplace(source, transfer.to).second);
    int latest = -1;
    for (const TensorId id : transfer.tensors) {
      ++count;
      const auto where = expected.find({id.value, transfer.to_device});
      REQUIRE(where != expected.end());
      CHECK(where->second == transfer.to);
      const NodeId producer = graph.tensor(id).producer;
      CHECK(*graph.node(producer).device == source);
      latest = std::max(latest, owner[static_cast<std::size_t>(producer.value)]);
    }
    CHECK(latest == transfer.from);
  }
  CHECK(count == expected.size());
}

}  // namespace

TEST_CASE("convex: the empty graph has no partitions and no steps") {
  const Graph graph = GraphBuilder().input("x").output("x").build();
  const PartitionPlan plan = partition_convex(graph);
  CHECK(plan.strategy == "convex");
  CHECK(plan.partitions.empty());
  CHECK(plan.steps.empty());
  check_survives_document(graph, plan);
}

TEST_CASE("convex: one node is one partition without transfers") {
  const Graph graph = nodes_of({"a custom x @npu"}).output("a").build();
  const PartitionPlan plan = partition_convex(graph);
  CHECK(steps_of(graph, plan) == Lines{"npu: a"});
}

TEST_CASE("convex: a node without a device is an error that names it") {
  const Graph graph = nodes_of({"a custom x"}).build();
  CHECK_THROWS_WITH(partition_convex(graph),
                    "test.json: /nodes/0: error: node 'a' has no device; run npu-tag first");
}

TEST_CASE("convex: branches that interleave in the list join by dependence") {
  // Ten runs in list order; one npu branch, one cpu branch.
  GraphBuilder builder;
  builder.input("x");
  for (int n = 0; n < 10; ++n) {
    builder.node("n" + std::to_string(n), "custom", {n < 2 ? "x" : "n" + std::to_string(n - 2)})
        .on(n % 2 == 0 ? "npu" : "cpu");
  }
  const Graph graph = builder.build();
  const PartitionPlan plan = partition_convex(graph);
  CHECK(steps_of(graph, plan) == Lines{"npu: n0 n2 n4 n6 n8", "cpu: n1 n3 n5 n7 n9"});
}

TEST_CASE("convex: the first device is the one that saves a partition") {
  // npu: a and c; cpu: b in front of c. Starting on the npu needs a | b | c, starting on the cpu b
  // | a c.
  const Graph graph =
      nodes_of({"a custom x @npu", "b custom x @cpu", "c custom a b @npu"}).output("c").build();
  const PartitionPlan plan = partition_convex(graph);
  CHECK(steps_of(graph, plan) == Lines{"cpu: b", "to_npu: b", "npu: a c"});
  CHECK(partition_contiguous(graph).partitions.size() == 3);
}

TEST_CASE("convex: a tensor with readers in two partitions of a device is transferred once") {
  const Graph graph =
      nodes_of({"a custom x @npu", "b custom a @cpu", "c custom b @npu", "d custom c a @cpu"})
          .output("d")
          .build();
  const PartitionPlan plan = partition_convex(graph);
  CHECK(steps_of(graph, plan) ==
        Lines{"npu: a", "to_cpu: a", "cpu: b", "to_npu: b", "npu: c", "to_cpu: c", "cpu: d"});
}

TEST_CASE("convex: a partition with tensors from two devices has a transfer from each") {
  const Graph graph =
      nodes_of({"a custom x @npu", "b custom x @gpu", "c custom b a @cpu"}).output("c").build();
  const PartitionPlan plan = partition_convex(graph);
  REQUIRE(plan.partitions.size() == 3);
  REQUIRE(plan.transfers.size() == 2);
  for (const Transfer& transfer : plan.transfers) CHECK(transfer.tensors.size() == 1);
  check_transfers(graph, plan, check_plan(graph, plan));
}

TEST_CASE("convex: two ways to count the fewest partitions agree") {
  // Runs over all orders against blocks over all set partitions: the search that the next test
  // relies on.
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const Graph graph =
        random_builder(random, {.nodes = round % 7, .devices = 2 + round % 2}).build();
    CHECK(fewest_runs(small_graph(graph, each_its_own(graph), graph.nodes().size())) ==
          fewest_blocks(graph));
  }
}

TEST_CASE("convex: the fewest partitions on two devices, against exhaustive search") {
  std::mt19937 random(11);
  int saved = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const RandomGraphOptions options{.nodes = 2 + round % 8,  // 2 to 9
                                     .devices = 2,
                                     .max_operands = 1 + round % 3,
                                     .edge_share = 0.5 + 0.1 * (round % 6)};
    const Graph graph = random_builder(random, options).build();
    const PartitionPlan plan = partition_convex(graph);
    const std::vector<int> owner = check_plan(graph, plan);
    check_transfers(graph, plan, owner);
    const auto partitions = static_cast<int>(plan.partitions.size());
    CHECK(partitions == fewest_runs(small_graph(graph, each_its_own(graph), graph.nodes().size())));
    const auto runs = static_cast<int>(partition_contiguous(graph).partitions.size());
    CHECK(partitions <= runs);
    saved += runs - partitions;
    if (round % 5 == 0) check_survives_document(graph, plan);
  }
  CHECK(saved > 500);  // the graphs are not all trivial
}

TEST_CASE("convex: larger random graphs on one to four devices keep every property") {
  std::mt19937 random(13);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const RandomGraphOptions options{.nodes = 10 + round % 40, .devices = 1 + round % 4};
    const Graph graph = random_builder(random, options).build();
    const PartitionPlan plan = partition_convex(graph);
    const std::vector<int> owner = check_plan(graph, plan);
    check_transfers(graph, plan, owner);
    if (options.devices == 1) CHECK(plan.partitions.size() == 1);
    // Neighbours in the plan could be one partition if they shared a device.
    for (std::size_t p = 1; p < plan.partitions.size(); ++p) {
      CHECK(plan.partitions[p].device != plan.partitions[p - 1].device);
    }
    if (round % 5 == 0) check_survives_document(graph, plan);
  }
}

TEST_CASE("convex: near the fewest partitions on three devices") {
  std::mt19937 random(17);
  int found = 0;
  int fewest = 0;
  for (int round = 0; round < 1000; ++round) {
    CAPTURE(round);
    const Graph graph = random_builder(random, {.nodes = 3 + round % 7, .devices = 3}).build();
    const auto partitions = static_cast<int>(partition_convex(graph).partitions.size());
    const int optimum = fewest_runs(small_graph(graph, each_its_own(graph), graph.nodes().size()));
    CHECK(partitions >= optimum);
    CHECK(partitions <= optimum + 2);
    found += partitions;
    fewest += optimum;
  }
  CAPTURE(found, fewest);
  CHECK(found <= fewest + fewest / 50);  // a heuristic there: within 2 % over all
}

TEST_CASE("convex: fusion groups stay whole and the number of partitions is the fewest with them") {
  std::mt19937 random(19);
  int refused = 0;
  int grouped = 0;
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    const int nodes = 2 + round % 8;
    GraphBuilder builder = random_builder(random, {.nodes = nodes, .devices = 2});
    // Random groups of nodes that share a device; some are not convex.
    std::vector<int> fused_node_of(static_cast<std::size_t>(nodes));
    std::map<std::pair<std::string, int>, int> fused;
    Json& list = builder.document()["nodes"];
    for (int n = 0; n < nodes; ++n) {
      Json& node = list[static_cast<std::size_t>(n)];
      const int group = static_cast<int>(random() % 6);
      // Group numbers need not be dense; nodes of group 0 have none.
      const auto key = group == 0 ? std::pair{std::string("single"), n}
                                  : std::pair{node["device"].get<std::string>(), group};
      if (group != 0) node["fusion_group"] = 10 * group + (node["device"] == "d0" ? 0 : 1);
      fused_node_of[static_cast<std::size_t>(n)] =
          fused.emplace(key, static_cast<int>(fused.size())).first->second;
    }
    const Graph graph = builder.build();
    const int optimum = fewest_runs(small_graph(graph, fused_node_of, fused.size()));
    if (optimum >= 1000) {  // the groups depend on each other in a circle
      ++refused;
      CHECK_THROWS_AS(partition_convex(graph), Error);
      continue;
    }
    if (fused.size() < static_cast<std::size_t>(nodes)) ++grouped;
    const PartitionPlan plan = partition_convex(graph);
    const std::vector<int> owner = check_plan(graph, plan);
    check_transfers(graph, plan, owner);
    CHECK(static_cast<int>(plan.partitions.size()) == optimum);
    for (std::size_t n = 0; n < owner.size(); ++n) {
      for (std::size_t m = 0; m < n; ++m) {
        if (fused_node_of[n] == fused_node_of[m]) CHECK(owner[n] == owner[m]);
      }
    }
  }
  CHECK(refused > 100);
  CHECK(grouped > 100);
}

TEST_CASE("convex: a fusion group that is not convex is refused and named") {
  const Graph graph = nodes_of({"a custom x @npu #5", "b custom a @cpu", "c custom a b @npu #5"})
                          .output("c")
                          .build();
  CHECK_THROWS_WITH(
      partition_convex(graph),
      "test.json: /nodes/0: error: fusion group 5 is not convex: a path leaves it and comes back: "
      "'a' -> 'b', 'b' -> 'c'");
}

TEST_CASE("convex: groups that depend on each other in a circle are refused with the circle") {
  const Graph graph = nodes_of({"a custom x @npu #1", "b custom x @cpu #2", "c custom a @cpu #2",
                                "d custom b @npu #1", "e custom d @npu"})
                          .output("e")
                          .build();
  CHECK_THROWS_WITH(
      partition_convex(graph),
      "test.json: /nodes/0: error: fusion group 1 is not convex: a path leaves it and comes back "
      "through fusion group 2: 'a' -> 'c', 'b' -> 'd'");
}

TEST_CASE("convex: a fusion group on two devices is refused and named") {
  const Graph graph = nodes_of({"a custom x @npu #5", "b custom a @cpu #5"}).output("b").build();
  CHECK_THROWS_WITH(partition_convex(graph),
                    "test.json: /nodes/1: error: fusion group 5 has nodes on two "
                    "devices; run npu-fuse after npu-tag");
}

TEST_CASE(
    "convex: 20,000 nodes that change device at every step, with a third device that always "
    "waits") {
  // Quadratic work would be 4e8 steps of a hash map or a set; linear work is done in milliseconds.
  GraphBuilder builder;
  builder.input("x");
  for (int n = 0; n < 10000; ++n) {
    builder.node("a" + std::to_string(n), "custom", {n == 0 ? "x" : "a" + std::to_string(n - 1)})
        .on(n % 2 == 0 ? "d0" : "d1");
    builder.node("c" + std::to_string(n), "custom", {"x"}).on("d2");
  }
  const Graph graph = builder.build();
  const auto start = std::chrono::steady_clock::now();
  const PartitionPlan plan = partition_convex(graph);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  CHECK(plan.partitions.size() == 10001);  // one for each node of the chain, one for all the others
  CHECK(plan.transfers.size() == 9999);    // between neighbours of the chain
  CHECK(elapsed.count() < 10);
}
