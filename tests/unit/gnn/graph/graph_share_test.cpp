// SPDX-License-Identifier: Apache-2.0
// Shares of a graph that several processes read add up to the graph that one makes undirected. The
// processes are threads here: a transport calls from a thread of its own, which is its rank.
#include "gnn/graph/graph_share.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

#include "catch.hpp"
#include "gnn/graph/binary_graph.hpp"
#include "npu/gnn/symmetrize.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/temporary_folder.hpp"
#include "transport/share_partitioner.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

struct Peers {
  std::vector<std::int32_t> ranks;
  std::vector<std::int64_t> rows;
  void set(const npu_transport_peers& peers) {
    ranks.assign(peers.ranks, peers.ranks + peers.count);
    rows.assign(peers.rows, peers.rows + peers.count);
  }
};

// What all ranks see.
struct Room {
  std::int32_t size = 1;
  std::int32_t joined = 0;
  std::mutex mutex;
  std::unique_ptr<std::barrier<>> barrier;
  std::vector<std::vector<std::int64_t>> values;
  std::vector<const std::byte*> out;
  std::vector<Peers> to;
};

Room& room() {
  static Room only;
  return only;
}

thread_local std::int32_t own_rank = 0;
thread_local Peers own_from;

void meet() { room().barrier->arrive_and_wait(); }

const char* join(std::int32_t* rank, std::int32_t* size) {
  const std::lock_guard lock(room().mutex);
  own_rank = room().joined++;
  *rank = own_rank;
  *size = room().size;
  return nullptr;
}

const char* connect(const npu_transport_peers* from, const npu_transport_peers* to) {
  own_from.set(*from);
  room().to[index_of(own_rank)].set(*to);
  return nullptr;
}

const char* start(const void* out, void* in, std::int64_t row_bytes) {
  room().out[index_of(own_rank)] = static_cast<const std::byte*>(out);
  meet();
  auto* next = static_cast<std::byte*>(in);
  for (std::size_t i = 0; i < own_from.ranks.size(); ++i) {
    const std::size_t peer = index_of(own_from.ranks[i]);
    const Peers& to = room().to[peer];
    std::int64_t before = 0;
    for (std::size_t j = 0; to.ranks[j] != own_rank; ++j) before += to.rows[j];
    const std::size_t bytes = index_of(own_from.rows[i] * row_bytes);
    std::memcpy(next, room().out[peer] + before * row_bytes, bytes);
    next += bytes;
  }
  meet();
  return nullptr;
}

const char* is_over(std::int32_t* done) {
  *done = 1;
  return nullptr;
}

// Every rank adds up what all of them have brought.
const char* sum(std::int64_t* values, std::int64_t count) {
  room().values[index_of(own_rank)].assign(values, values + count);
  meet();
  std::fill_n(values, count, 0);
  for (const auto& brought : room().values) {
    for (std::int64_t i = 0; i < count; ++i) values[i] += brought[index_of(i)];
  }
  meet();
  return nullptr;
}

const char* smallest(std::int64_t* value) {
  room().values[index_of(own_rank)] = {*value};
  meet();
  for (const auto& brought : room().values) *value = std::min(*value, brought.front());
  meet();
  return nullptr;
}

const char* leave() { return nullptr; }

constexpr npu_transport kThreads{
    NPU_TRANSPORT_ABI_VERSION, 0, "threads", join, connect, start, is_over, sum, smallest, leave};

// Calls `work` in as many ranks, each in a thread.
template <typename Work>
void in_ranks(std::int32_t count, const Work& work) {
  Room& all = room();
  all.size = count;
  all.joined = 0;
  all.barrier = std::make_unique<std::barrier<>>(count);
  all.values.assign(index_of(count), {});
  all.out.assign(index_of(count), nullptr);
  all.to.assign(index_of(count), {});
  std::vector<std::thread> threads;
  for (std::int32_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      const Transport transport(kThreads);
      work(transport);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Loops and parallel edges among them, and nodes without edges.
DataGraph random_graph(std::int32_t nodes, int edges, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<std::int32_t>> rows(index_of(nodes));
  for (int e = 0; e < edges; ++e) {
    const auto low = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(nodes));
    rows[random() % (index_of(low) + 1)].push_back(
        static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(nodes)));
  }
  DataGraph data;
  for (auto& row : rows) {
    std::sort(row.begin(), row.end());
    data.in_edges.neighbors.insert(data.in_edges.neighbors.end(), row.begin(), row.end());
    data.in_edges.offsets.push_back(static_cast<std::int64_t>(data.in_edges.neighbors.size()));
  }
  return data;
}

// The shares of all ranks, by rank.
std::vector<GraphShare> shares_of(const std::string& path, std::int32_t count, bool add_reverses) {
  std::vector<GraphShare> shares(index_of(count));
  in_ranks(count, [&](const Transport& transport) {
    shares[index_of(transport.rank())] = read_graph_share(path, add_reverses, transport);
  });
  return shares;
}

}  // namespace

TEST_CASE("shares add up to the undirected graph", "[gnn][share]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "graph.csr";
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    const DataGraph data = random_graph(seed == 3 ? 3 : 50, 300, seed);
    write_binary_graph(path, data);
    CHECK(has_shares(path));
    const CsrGraph expected = symmetrize(data.in_edges).graph;
    for (const bool add_reverses : {false, true}) {
      GraphReadOptions options;
      options.undirected = add_reverses;
      const CsrGraph in_edges = read_graph_file(path, options).in_edges;
      const std::int64_t mean =
          std::max<std::int64_t>(1, in_edges.entry_count() / in_edges.node_count());
      for (const std::int32_t count : {1, 2, 5}) {
        std::int32_t node = 0;
        for (const GraphShare& share : shares_of(path, count, add_reverses)) {
          CHECK(share.first == node);
          CHECK(share.all_nodes == expected.node_count());
          CHECK(share.all_entries == expected.entry_count());
          CHECK(share.all_weights == mean * in_edges.node_count() + in_edges.entry_count());
          for (std::int32_t row = 0; row < share.node_count(); ++row, ++node) {
            const std::vector<std::int32_t> found(
                share.neighbors.begin() + share.offsets[index_of(row)],
                share.neighbors.begin() + share.offsets[index_of(row) + 1]);
            const auto wanted = expected.row(node);
            CHECK(found == std::vector<std::int32_t>(wanted.begin(), wanted.end()));
            CHECK(share.weights[index_of(row)] == mean + in_edges.degree(node));
          }
        }
        CHECK(node == expected.node_count());
      }
    }
  }
}

TEST_CASE("a row that is not sound ends all ranks, and one says why", "[gnn][share]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "graph.csr";
  DataGraph data = random_graph(40, 200, 4);
  data.in_edges.neighbors.back() = 99;
  write_binary_graph(path, data);
  std::atomic<int> spoken{0};
  std::atomic<int> silent{0};
  in_ranks(3, [&](const Transport& transport) {
    try {
      read_graph_share(path, false, transport);
    } catch (const Error& error) {
      spoken += error.code() == ErrorCode::kParse ? 1 : 100;
    } catch (const FailedElsewhere&) {
      ++silent;
    }
  });
  CHECK(spoken == 1);
  CHECK(silent == 2);
  CHECK_FALSE(has_shares("-"));
  CHECK_THROWS_AS(has_shares(folder / "missing.csr"), Error);
}

namespace {

const char* cut_in_turns(const npu_graph_share* share, std::int32_t parts, double imbalance,
                         std::uint64_t seed, std::int32_t* part_of) {
  if (seed == 13) return "an unlucky seed";
  for (std::int64_t v = 0; v < share->nodes; ++v) {
    part_of[v] = static_cast<std::int32_t>(share->weights[v] % parts);
  }
  return imbalance > 0 ? nullptr : "no room";
}

constexpr npu_partitioner kInTurns{NPU_PARTITIONER_ABI_VERSION, 0, "turns", cut_in_turns};

}  // namespace

TEST_CASE("a partitioner gets the share, and what it says is passed on", "[gnn][share]") {
  GraphShare share;
  share.offsets = {0, 0, 0, 0};
  share.weights = {4, 5, 6};
  share.all_nodes = 3;
  in_ranks(1, [&](const Transport& transport) {
    const SharePartitioner partitioner(kInTurns);
    CHECK(partitioner.cut(transport, share.view(), 3, 0.03, 0) ==
          std::vector<std::int32_t>{1, 2, 0});
    CHECK_THROWS_WITH(partitioner.cut(transport, share.view(), 3, 0.03, 13),
                      Catch::Matchers::Contains("partitioner 'turns': an unlucky seed"));
  });
  CHECK_THROWS_WITH(SharePartitioner("none"), Catch::Matchers::Contains("libptscotch-dev"));
}
