// SPDX-License-Identifier: Apache-2.0
// Post-dominators by definition: a dominates b if no path leads from b to a sink once a is removed.
#include "flow/dominators.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

struct Dag {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> targets;
};

Dag make_dag(const std::vector<std::vector<int>>& successors) {
  Dag dag;
  for (const auto& list : successors) {
    dag.targets.insert(dag.targets.end(), list.begin(), list.end());
    dag.offsets.push_back(static_cast<std::int64_t>(dag.targets.size()));
  }
  return dag;
}

// The vertices that dominate both are those that dominate the nearest such vertex.
bool dominates(const DominatorTree& tree, std::int32_t a, std::int32_t b) {
  return tree.nearest_common(a, b) == a;
}

std::vector<std::vector<int>> reversed(const std::vector<std::vector<int>>& successors) {
  std::vector<std::vector<int>> back(successors.size());
  for (std::size_t v = 0; v < successors.size(); ++v) {
    for (const int next : successors[v]) {
      back[static_cast<std::size_t>(next)].push_back(static_cast<int>(v));
    }
  }
  return back;
}

// What leads to a sink without `removed`.
std::vector<char> reach(const std::vector<std::vector<int>>& successors, int removed) {
  const auto back = reversed(successors);
  std::vector<char> seen(successors.size(), 0);
  std::vector<int> stack;
  for (std::size_t v = 0; v < successors.size(); ++v) {
    if (successors[v].empty() && static_cast<int>(v) != removed) {
      seen[v] = 1;
      stack.push_back(static_cast<int>(v));
    }
  }
  while (!stack.empty()) {
    const int v = stack.back();
    stack.pop_back();
    for (const int next : back[static_cast<std::size_t>(v)]) {
      if (next == removed || seen[static_cast<std::size_t>(next)] != 0) continue;
      seen[static_cast<std::size_t>(next)] = 1;
      stack.push_back(next);
    }
  }
  return seen;
}

void check_tree(const std::vector<std::vector<int>>& successors, const DominatorTree& tree) {
  const int count = static_cast<int>(successors.size());
  REQUIRE(tree.vertex_count() == successors.size());
  std::vector<std::vector<char>> expected(successors.size());  // [a][b]
  for (int a = 0; a < count; ++a) {
    const std::vector<char> reached = reach(successors, a);
    for (int b = 0; b < count; ++b) {
      const bool is_cut = reached[static_cast<std::size_t>(b)] == 0;
      expected[static_cast<std::size_t>(a)].push_back(is_cut ? 1 : 0);
      CHECK(dominates(tree, a, b) == is_cut);
    }
    CHECK(dominates(tree, tree.virtual_root(), a));
  }
  for (int b = 0; b < count; ++b) {
    int above = 1;  // the virtual root
    for (int a = 0; a < count; ++a) {
      if (a != b) above += expected[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
    }
    CHECK(tree.depth(b) == above);
    const int parent = tree.parent(b);
    if (parent != tree.virtual_root()) CHECK(dominates(tree, parent, b));
    CHECK(tree.depth(parent) == above - 1);
    for (int c = 0; c < count; ++c) {
      const int common = tree.nearest_common(b, c);
      CHECK(dominates(tree, common, b));
      CHECK(dominates(tree, common, c));
      for (int a = 0; a < count; ++a) {  // nothing that dominates both is below it
        if (dominates(tree, a, b) && dominates(tree, a, c)) CHECK(dominates(tree, a, common));
      }
    }
  }
}

}  // namespace

TEST_CASE("dominators: no vertex and one vertex") {
  const Dag empty = make_dag({});
  CHECK(find_post_dominators(empty.offsets, empty.targets).vertex_count() == 0);
  const Dag one = make_dag({{}});
  const DominatorTree tree = find_post_dominators(one.offsets, one.targets);
  CHECK(tree.parent(0) == tree.virtual_root());
  CHECK(tree.depth(0) == 1);
}

TEST_CASE("dominators: a diamond") {
  // 0 -> 1, 2 -> 3 -> 4
  const Dag dag = make_dag({{1, 2}, {3}, {3}, {4}, {}});
  const DominatorTree tree = find_post_dominators(dag.offsets, dag.targets);
  CHECK(tree.parent(0) == 3);
  CHECK(tree.parent(4) == tree.virtual_root());
}

TEST_CASE("dominators: random graphs with several roots and sinks") {
  std::mt19937 random(3);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const int count = 1 + round % 12;
    std::vector<std::vector<int>> successors(static_cast<std::size_t>(count));
    // Numbers are shuffled, so that they are no topological order.
    std::vector<int> name(static_cast<std::size_t>(count));
    for (int v = 0; v < count; ++v) name[static_cast<std::size_t>(v)] = v;
    std::shuffle(name.begin(), name.end(), random);
    for (int v = 0; v < count; ++v) {
      for (int w = v + 1; w < count; ++w) {
        if (random() % 10 < static_cast<unsigned>(1 + round % 5)) {
          successors[static_cast<std::size_t>(name[static_cast<std::size_t>(v)])].push_back(
              name[static_cast<std::size_t>(w)]);
        }
      }
    }
    const Dag dag = make_dag(successors);
    check_tree(successors, find_post_dominators(dag.offsets, dag.targets));
  }
}

TEST_CASE("dominators: a cycle is an error") {
  const Dag dag = make_dag({{1}, {2}, {1}});
  CHECK_THROWS_AS(find_post_dominators(dag.offsets, dag.targets), Error);
}

TEST_CASE("dominators: a branch of 300,000 vertices beside a join") {
  constexpr int kLength = 300'000;
  std::vector<std::vector<int>> successors(kLength + 1);  // of the reversed graph
  for (int v = 0; v + 1 < kLength; ++v) successors[static_cast<std::size_t>(v)].push_back(v + 1);
  successors[0].insert(successors[0].begin(), kLength);  // 0 -> the join at once ...
  successors[kLength - 1].push_back(kLength);            // ... and after the whole branch
  const Dag dag = make_dag(reversed(successors));
  const DominatorTree tree = find_post_dominators(dag.offsets, dag.targets);
  CHECK(tree.parent(kLength) == 0);
  CHECK(tree.depth(kLength - 1) == kLength);
  CHECK(dominates(tree, 1, kLength - 1));
  CHECK_FALSE(dominates(tree, 1, kLength));
}
