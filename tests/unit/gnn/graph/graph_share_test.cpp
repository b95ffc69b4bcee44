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
#include <optional>
#include <random>
#include <thread>

#include "catch.hpp"
#include "gnn/graph/binary_graph.hpp"
#include "gnn/graph/symmetrize.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
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
  std::optional<std::int32_t> sent_instead;  // by rank 0, as the first number of its first row
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
    if (peer == 0 && bytes > 0 && room().sent_instead) {
      std::memcpy(next, &*room().sent_instead, sizeof(std::int32_t));
    }
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
std::vector<GraphShare> shares_of(const std::string& path, std::int32_t count,
                                  const GraphReadOptions& options) {
  std::vector<GraphShare> shares(index_of(count));
  in_ranks(count, [&](const Transport& transport) {
    shares[index_of(transport.rank())] = read_graph_share(path, options, transport);
  });
  return shares;
}

// What the one rank says that speaks, if all of them fail.
template <typename Work>
std::string fault_of(std::int32_t count, const Work& work) {
  std::mutex mutex;
  std::vector<std::string> spoken;
  std::int32_t silent = 0;
  in_ranks(count, [&](const Transport& transport) {
    try {
      work(transport);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      spoken.push_back(error.message());
    } catch (const FailedElsewhere&) {
      const std::lock_guard lock(mutex);
      ++silent;
    }
  });
  CHECK(spoken.size() == 1);
  CHECK(silent == count - 1);
  return spoken.empty() ? "" : spoken.front();
}

// A file in binary form with one of its offsets changed.
std::string with_offset(const std::string& path, const DataGraph& data, std::size_t which,
                        std::int64_t offset) {
  write_binary_graph(path, data);
  std::string bytes = read_file(path);
  std::memcpy(bytes.data() + 64 + 8 * which, &offset, sizeof offset);
  write_file_atomically(path, bytes);
  return path;
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
    for (const int added : {0, 1, 2, 3}) {
      GraphReadOptions options;
      options.undirected = added % 2 == 1;
      options.one_loop = added >= 2;
      const CsrGraph in_edges = read_graph_file(path, options).in_edges;
      const std::int64_t mean =
          std::max<std::int64_t>(1, in_edges.entry_count() / in_edges.node_count());
      for (const std::int32_t count : {1, 2, 5}) {
        std::int32_t node = 0;
        for (const GraphShare& share : shares_of(path, count, options)) {
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
  CHECK(fault_of(3, [&](const Transport& ranks) {
          read_graph_share(path, {}, ranks);
        }).find("has the source 99") != std::string::npos);
  CHECK_FALSE(has_shares("-"));
  CHECK_THROWS_AS(has_shares(folder / "missing.csr"), Error);
}

TEST_CASE("ranks that see different files of one name end, and one says why", "[gnn][share]") {
  const test::TemporaryFolder folder;
  const DataGraph first = random_graph(60, 300, 5);
  write_binary_graph(folder / "first.csr", first);
  const auto fault_beside = [&](const DataGraph& other) {
    write_binary_graph(folder / "other.csr", other);
    return fault_of(3, [&](const Transport& ranks) {
      read_graph_share(folder / (ranks.rank() == 1 ? "other.csr" : "first.csr"), {}, ranks);
    });
  };
  // Fewer nodes, so that its owner of a node is another; as many, but edges elsewhere; and with an
  // edge less.
  CHECK(fault_beside(random_graph(30, 300, 5)).find("the processes read different graphs") == 0);
  DataGraph turned = random_graph(60, 300, 5);
  std::vector<std::int64_t>& offsets = turned.in_edges.offsets;
  for (std::size_t v = 0; v < 60; ++v) {
    offsets[v + 1] = offsets[v] + first.in_edges.degree(static_cast<std::int32_t>(59 - v));
  }
  std::fill(turned.in_edges.neighbors.begin(), turned.in_edges.neighbors.end(), 59);
  CHECK(fault_beside(turned) ==
        "the processes read different graphs: this one has 60 nodes and 300 edges");
  CHECK(fault_beside(random_graph(60, 299, 5)).find("this one has 60 nodes and 300 edges") !=
        std::string::npos);
  // Rows that begin alike are not told apart; their edges go where they belong all the same.
  DataGraph alike = first;
  std::fill(alike.in_edges.neighbors.begin(), alike.in_edges.neighbors.end(), 7);
  write_binary_graph(folder / "other.csr", alike);
  std::atomic<std::int64_t> entries{0};
  in_ranks(3, [&](const Transport& ranks) {
    const GraphShare share =
        read_graph_share(folder / (ranks.rank() == 2 ? "other.csr" : "first.csr"), {}, ranks);
    entries += share.offsets.back();
    CHECK(std::all_of(share.neighbors.begin(), share.neighbors.end(),
                      [](std::int64_t neighbor) { return neighbor >= 0 && neighbor < 60; }));
  });
  CHECK(entries > 0);
}

TEST_CASE("pairs that another rank may not send are refused", "[gnn][share]") {
  const test::TemporaryFolder folder;
  write_binary_graph(folder / "graph.csr", random_graph(60, 300, 6));
  for (const std::int32_t wrong : {-1, 60, 59}) {
    room().sent_instead = wrong;  // rank 0 sends it as the source; 59 is the last rank's
    const std::string fault = fault_of(
        3, [&](const Transport& ranks) { read_graph_share(folder / "graph.csr", {}, ranks); });
    CHECK(fault.find("another process tells of an edge from node " + std::to_string(wrong)) == 0);
  }
  room().sent_instead.reset();
}

TEST_CASE("rows that do not begin and end with the edges end all ranks", "[gnn][share]") {
  const test::TemporaryFolder folder;
  const DataGraph data = random_graph(60, 300, 7);
  const std::string path = folder / "graph.csr";
  const auto fault = [&] {
    return fault_of(3, [&](const Transport& ranks) { read_graph_share(path, {}, ranks); });
  };
  with_offset(path, data, 0, 1);
  CHECK(fault() == "the rows go from 1 to 300, expected 0 to 300");
  with_offset(path, data, 0, -1);
  CHECK(fault() == "the rows go from -1 to 300, expected 0 to 300");
  with_offset(path, data, 60, 299);
  CHECK(fault() == "the rows go from 0 to 299, expected 0 to 300");
  // Backwards, at every place: where a share begins as well.
  for (std::size_t node = 1; node < 60; ++node) {
    with_offset(path, data, node, -5);
    CHECK(fault().find("which is not within the 300 edges") != std::string::npos);
    with_offset(path, data, node, 301);
    CHECK(fault().find("which is not within the 300 edges") != std::string::npos);
  }
}

namespace {

const char* all_is_well() { return nullptr; }

// One rank has a fault of its own, of which the others know.
const char* cut_but_for_one(const npu_graph_share* share, std::int32_t parts, double /*imbalance*/,
                            std::uint64_t /*seed*/, std::int32_t* part_of) {
  if (own_rank == 1) return "no room in this rank";
  std::fill_n(part_of, share->nodes, parts - 1);
  return "";
}

constexpr npu_partitioner kButForOne{NPU_PARTITIONER_ABI_VERSION, 0, "but-for-one", all_is_well,
                                     cut_but_for_one};

const char* cut_in_turns(const npu_graph_share* share, std::int32_t parts, double imbalance,
                         std::uint64_t seed, std::int32_t* part_of) {
  if (seed == 13) return "an unlucky seed";
  for (std::int64_t v = 0; v < share->nodes; ++v) {
    part_of[v] = static_cast<std::int32_t>(share->weights[v] % parts);
  }
  return imbalance > 0 ? nullptr : "no room";
}

constexpr npu_partitioner kInTurns{NPU_PARTITIONER_ABI_VERSION, 0, "turns", all_is_well,
                                   cut_in_turns};

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
  // The rank with the fault speaks, not the first one.
  CHECK(fault_of(3, [&](const Transport& ranks) {
          SharePartitioner(kButForOne).cut(ranks, share.view(), 3, 0.03, 0);
        }) == "partitioner 'but-for-one': no room in this rank");
  CHECK_THROWS_WITH(SharePartitioner("none"), Catch::Matchers::Contains("libptscotch-dev"));
}
