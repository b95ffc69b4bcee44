// SPDX-License-Identifier: Apache-2.0
// The transport over MPI: the only file that includes it.
//
// Rows go by a neighbourhood collective over a distributed graph of ranks, so each rank only knows
// those that it has edges to, and the library may use whatever the network offers. A row is one
// element of a type of its own, so that MPI's counts, which are int, count rows and not bytes.
// Errors are returned, not fatal. One communicator and one exchange at a time.
#include <mpi.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "npu/transport.h"

namespace {

constexpr std::int64_t kMostRows = std::numeric_limits<int>::max();

struct Peers {
  std::vector<int> ranks;
  std::vector<int> counts;
  std::vector<int> offsets;

  // False if the rows are too many for MPI to count.
  bool set(const npu_transport_peers& peers) {
    std::int64_t sum = 0;
    for (std::int32_t i = 0; i < peers.count; ++i) {
      if (peers.rows[i] < 0 || peers.rows[i] > kMostRows - sum) return false;
      ranks.push_back(peers.ranks[i]);
      counts.push_back(static_cast<int>(peers.rows[i]));
      offsets.push_back(static_cast<int>(sum));
      sum += peers.rows[i];
    }
    return true;
  }
};

struct State {
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  Peers from;
  Peers to;
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

const char* connect(const npu_transport_peers* from, const npu_transport_peers* to) {
  State& own = state();
  if (!own.from.set(*from) || !own.to.set(*to)) {
    return refuse("a rank exchanges more rows than MPI can count; use more ranks");
  }
  const int code = MPI_Dist_graph_create_adjacent(
      MPI_COMM_WORLD, static_cast<int>(own.from.ranks.size()), own.from.ranks.data(),
      MPI_UNWEIGHTED, static_cast<int>(own.to.ranks.size()), own.to.ranks.data(), MPI_UNWEIGHTED,
      MPI_INFO_NULL, 0, &own.neighbours);
  if (const char* fault = fault_of(code, "cannot connect the ranks")) return fault;
  MPI_Comm_set_errhandler(own.neighbours, MPI_ERRORS_RETURN);
  return nullptr;
}

const char* start(const void* out, void* in, std::int64_t row_bytes) {
  State& own = state();
  if (row_bytes < 1 || row_bytes > kMostRows) return refuse("a row is too long for MPI");
  if (const char* fault =
          fault_of(MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &own.row),
                   "cannot describe a row")) {
    return fault;
  }
  if (const char* fault = fault_of(MPI_Type_commit(&own.row), "cannot describe a row"))
    return fault;
  const int code = MPI_Ineighbor_alltoallv(
      out, own.to.counts.data(), own.to.offsets.data(), own.row, in, own.from.counts.data(),
      own.from.offsets.data(), own.row, own.neighbours, &own.request);
  return fault_of(code, "cannot exchange rows");
}

const char* test(std::int32_t* done) {
  State& own = state();
  int is_done = 0;
  if (const char* fault =
          fault_of(MPI_Test(&own.request, &is_done, MPI_STATUS_IGNORE), "cannot exchange rows")) {
    return fault;
  }
  *done = is_done;
  return is_done != 0 ? fault_of(MPI_Type_free(&own.row), "cannot free a row's type") : nullptr;
}

const char* sum(std::int64_t* values, std::int64_t count) {
  if (count < 0 || count > kMostRows) return refuse("too many values to add up");
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
