// SPDX-License-Identifier: Apache-2.0
// The transport over MPI: the only file that includes it.
//
// Rows go by a neighbourhood collective over a distributed graph of ranks, so each rank only knows
// those that it has edges to, and the library may use whatever the network offers. A row is one
// element of a type of its own, so that MPI's counts, which are int, count rows and not bytes, and
// places are told in bytes, which have 64 bits. Rows beyond what an int counts go in further
// rounds, as many as the rank needs that exchanges the most. Errors are returned, not fatal. One
// communicator and one exchange at a time.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <vector>

#include "npu/transport.h"

namespace {

constexpr std::int64_t kMostCount = std::numeric_limits<int>::max();

// Rows that go from one rank to another in one round; tests make it small.
#ifndef NPU_MPI_ROWS_AT_ONCE
#define NPU_MPI_ROWS_AT_ONCE (1 << 30)
#endif
constexpr std::int64_t kRowsAtOnce = NPU_MPI_ROWS_AT_ONCE;
// More rounds than there are: a rank cannot take part.
constexpr std::int64_t kRefused = std::numeric_limits<std::int64_t>::max();

// The ranks of one direction.
struct Peers {
  std::vector<int> ranks;
  std::vector<std::int64_t> rows;
  // In the round at hand.
  std::vector<int> counts;
  std::vector<MPI_Aint> places;
  std::vector<MPI_Datatype> types;

  // How many rounds that takes.
  std::int64_t set(const npu_transport_peers& peers) {
    std::int64_t rounds = 1;
    ranks.clear();
    rows.clear();
    for (std::int32_t i = 0; i < peers.count; ++i) {
      const std::int64_t count = peers.rows[i];
      if (count < 0) return kRefused;
      ranks.push_back(peers.ranks[i]);
      rows.push_back(count);
      rounds = std::max(rounds, count / kRowsAtOnce + (count % kRowsAtOnce > 0 ? 1 : 0));
    }
    counts.resize(rows.size());
    places.resize(rows.size());
    types.resize(rows.size());
    return rounds;
  }

  void begin_round(std::int64_t round, std::int64_t row_bytes, MPI_Datatype row) {
    std::int64_t before = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t first = std::min(round * kRowsAtOnce, rows[i]);
      counts[i] = static_cast<int>(std::min(rows[i] - first, kRowsAtOnce));
      places[i] = static_cast<MPI_Aint>((before + first) * row_bytes);
      types[i] = row;
      before += rows[i];
    }
  }
};

// What start was called with, and the round that is under way.
struct Exchange {
  const void* out = nullptr;
  void* in = nullptr;
  std::int64_t row_bytes = 0;
  std::int64_t round = 0;
};

struct State {
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  Peers from;
  Peers to;
  std::int64_t rounds = 1;  // the same in all ranks
  Exchange exchange;
  std::string fault;
};

State& state() {
  static State only;
  return only;
}

// Null for success, else what MPI says.
const char* fault_of(int code, const char* what) {
  if (code == MPI_SUCCESS) return nullptr;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  state().fault =
      std::string(what) + ": " + std::string(text.data(), static_cast<std::size_t>(length));
  return state().fault.c_str();
}

const char* refuse(const char* text) {
  state().fault = text;
  return state().fault.c_str();
}

const char* join(std::int32_t* rank, std::int32_t* size) {
  int provided = 0;
  if (const char* fault = fault_of(
          MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "cannot start MPI")) {
    return fault;
  }
  if (provided < MPI_THREAD_FUNNELED) return refuse("the MPI library does not allow threads");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int own = 0;
  int all = 1;
  if (const char* fault = fault_of(MPI_Comm_rank(MPI_COMM_WORLD, &own), "cannot find the rank")) {
    return fault;
  }
  if (const char* fault = fault_of(MPI_Comm_size(MPI_COMM_WORLD, &all), "cannot count the ranks")) {
    return fault;
  }
  *rank = own;
  *size = all;
  return nullptr;
}

// Memory that runs out in one rank ends all of them.
const char* connect(const npu_transport_peers* from, const npu_transport_peers* to) {
  State& own = state();
  own.rounds = kRefused;
  try {
    own.rounds = std::max(own.from.set(*from), own.to.set(*to));
  } catch (const std::exception&) {
  }
  if (const char* fault = fault_of(
          MPI_Allreduce(MPI_IN_PLACE, &own.rounds, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD),
          "cannot compare rows")) {
    return fault;
  }
  if (own.rounds == kRefused) return refuse("a rank has no memory for the list of its peers");
  if (own.neighbours != MPI_COMM_NULL) {
    if (const char* fault = fault_of(MPI_Comm_free(&own.neighbours), "cannot part the ranks")) {
      return fault;
    }
  }
  const int code = MPI_Dist_graph_create_adjacent(
      MPI_COMM_WORLD, static_cast<int>(own.from.ranks.size()), own.from.ranks.data(),
      MPI_UNWEIGHTED, static_cast<int>(own.to.ranks.size()), own.to.ranks.data(), MPI_UNWEIGHTED,
      MPI_INFO_NULL, 0, &own.neighbours);
  if (const char* fault = fault_of(code, "cannot connect the ranks")) return fault;
  MPI_Comm_set_errhandler(own.neighbours, MPI_ERRORS_RETURN);
  return nullptr;
}

const char* start_round() {
  State& own = state();
  const Exchange& exchange = own.exchange;
  own.from.begin_round(exchange.round, exchange.row_bytes, own.row);
  own.to.begin_round(exchange.round, exchange.row_bytes, own.row);
  const int code = MPI_Ineighbor_alltoallw(exchange.out, own.to.counts.data(), own.to.places.data(),
                                           own.to.types.data(), exchange.in, own.from.counts.data(),
                                           own.from.places.data(), own.from.types.data(),
                                           own.neighbours, &own.request);
  return fault_of(code, "cannot exchange rows");
}

const char* start(const void* out, void* in, std::int64_t row_bytes) {
  State& own = state();
  if (row_bytes < 1 || row_bytes > kMostCount) return refuse("a row is too long for MPI");
  if (const char* fault =
          fault_of(MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &own.row),
                   "cannot describe a row")) {
    return fault;
  }
  if (const char* fault = fault_of(MPI_Type_commit(&own.row), "cannot describe a row"))
    return fault;
  own.exchange = {out, in, row_bytes, 0};
  return start_round();
}

const char* test(std::int32_t* done) {
  State& own = state();
  *done = 0;
  int is_done = 0;
  if (const char* fault =
          fault_of(MPI_Test(&own.request, &is_done, MPI_STATUS_IGNORE), "cannot exchange rows")) {
    return fault;
  }
  if (is_done == 0) return nullptr;
  if (++own.exchange.round < own.rounds) return start_round();
  *done = 1;
  return fault_of(MPI_Type_free(&own.row), "cannot free a row's type");
}

const char* sum(std::int64_t* values, std::int64_t count) {
  if (count < 0 || count > kMostCount) return refuse("too many values to add up");
  return fault_of(MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_INT64_T, MPI_SUM,
                                MPI_COMM_WORLD),
                  "cannot add up values");
}

const char* smallest(std::int64_t* value) {
  return fault_of(MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD),
                  "cannot compare values");
}

const char* leave() {
  State& own = state();
  if (own.neighbours != MPI_COMM_NULL) MPI_Comm_free(&own.neighbours);
  return fault_of(MPI_Finalize(), "cannot end MPI");
}

constexpr npu_transport kTransport{
    NPU_TRANSPORT_ABI_VERSION, 0, "mpi", join, connect, start, test, sum, smallest, leave};

}  // namespace

extern "C" __attribute__((visibility("default"))) const npu_transport* npu_transport_entry(
    std::uint32_t abi_version) {
  return abi_version == NPU_TRANSPORT_ABI_VERSION ? &kTransport : nullptr;
}
