// SPDX-License-Identifier: Apache-2.0
// Cuts a graph in several processes by PT-Scotch (Chevalier and Pellegrini, Parallel Computing
// 2008): the only file that includes it.
//
// Every cut has a context of its own, with one thread, the deterministic option and a fixed seed,
// so it depends on the graph, its shares and the seed alone. PT-Scotch prints what goes wrong; its
// two functions for that are replaced by those at the end, which keep the text instead.
//
// Its numbers have 32 or 64 bits by the header, and the libraries for both have one name: which one
// the loader has found is asked for before anything else. With 64 bits the arrays of the caller are
// used as they are.
#include <mpi.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "transport/partitioner_abi.h"

// Last, since it takes <cstdint> and <cstdio> for granted.
// clang-format off
#include <ptscotch.h>
// clang-format on

namespace {

struct State {
  std::string fault;    // what is returned
  std::string printed;  // what PT-Scotch has said since the last call
};

State& state() {
  static State only;
  return only;
}

const char* refuse(const std::string& text) {
  state().fault = text + (state().printed.empty() ? "" : ": " + state().printed);
  return state().fault.c_str();
}

// Numbers as PT-Scotch takes them, which does not write to them. A list of none is an array as
// well: PT-Scotch compares with the other processes what there is.
class Numbers {
 public:
  Numbers(const std::int64_t* values, std::int64_t count) {
    if constexpr (std::is_same_v<SCOTCH_Num, std::int64_t>) {
      if (count > 0) values_ = const_cast<std::int64_t*>(values);
    } else {
      copy_.assign(values, values + count);
      copy_.push_back(0);
      values_ = copy_.data();
    }
  }
  SCOTCH_Num* get() const { return values_; }

 private:
  std::vector<SCOTCH_Num> copy_ = {0};
  SCOTCH_Num* values_ = copy_.data();
};

// What is to be undone at the end of a cut, in the opposite order.
struct Cut {
  MPI_Comm processes = MPI_COMM_NULL;
  SCOTCH_Context context{};
  SCOTCH_Dgraph graph{};
  SCOTCH_Dgraph bound{};
  SCOTCH_Strat strategy{};
  int steps = 0;

  Cut() = default;
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  ~Cut() {
    if (steps > 4) SCOTCH_stratExit(&strategy);
    if (steps > 3) SCOTCH_dgraphExit(&bound);
    if (steps > 2) SCOTCH_dgraphExit(&graph);
    if (steps > 1) SCOTCH_contextExit(&context);
    if (steps > 0) MPI_Comm_free(&processes);
  }

  bool start(std::uint64_t seed) {
    if (MPI_Comm_dup(MPI_COMM_WORLD, &processes) != MPI_SUCCESS) return false;
    steps = 1;
    if (SCOTCH_contextInit(&context) != 0) return false;
    steps = 2;
    if (SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) != 0 ||
        SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMRANDOMFIXEDSEED, 1) != 0 ||
        SCOTCH_contextThreadSpawn(&context, 1, nullptr) != 0 ||
        SCOTCH_contextRandomClone(&context) != 0) {
      return false;
    }
    // The seed counts from the next reset on, and 0 is the same as 1.
    SCOTCH_contextRandomSeed(&context, static_cast<SCOTCH_Num>((seed + 1) & 0x7fffffff));
    SCOTCH_contextRandomReset(&context);
    if (SCOTCH_dgraphInit(&graph, processes) != 0) return false;
    steps = 3;
    return true;
  }

  // The arrays stay in use.
  bool build(const npu_graph_share& share, const Numbers& offsets, const Numbers& neighbors,
             const Numbers& weights) {
    const auto nodes = static_cast<SCOTCH_Num>(share.nodes);
    const auto entries = static_cast<SCOTCH_Num>(share.offsets[share.nodes]);
    if (SCOTCH_dgraphBuild(&graph, 0, nodes, nodes, offsets.get(), offsets.get() + 1, weights.get(),
                           nullptr, entries, entries, neighbors.get(), nullptr, nullptr) != 0) {
      return false;
    }
    if (SCOTCH_dgraphInit(&bound, processes) != 0) return false;
    steps = 4;
    return SCOTCH_contextBindDgraph(&context, &graph, &bound) == 0;
  }

  bool run(std::int32_t parts, double imbalance, std::vector<SCOTCH_Num>& part_of) {
    int processes_count = 1;
    MPI_Comm_size(processes, &processes_count);
    if (SCOTCH_stratInit(&strategy) != 0) return false;
    steps = 5;
    return SCOTCH_stratDgraphMapBuild(&strategy, SCOTCH_STRATQUALITY | SCOTCH_STRATBALANCE,
                                      processes_count, parts, imbalance) == 0 &&
           SCOTCH_dgraphPart(&bound, parts, &strategy, part_of.data()) == 0;
  }
};

const char* cut(const npu_graph_share* share, std::int32_t parts, double imbalance,
                std::uint64_t seed, std::int32_t* part_of) {
  state().printed.clear();
  if (SCOTCH_numSizeof() != static_cast<int>(sizeof(SCOTCH_Num))) {
    return refuse("the library that was loaded has numbers of " +
                  std::to_string(8 * SCOTCH_numSizeof()) + " bits, expected " +
                  std::to_string(8 * sizeof(SCOTCH_Num)));
  }
  constexpr std::int64_t kMost = std::numeric_limits<SCOTCH_Num>::max();
  if (share->all_nodes > kMost || share->all_entries > kMost || share->all_weights > kMost) {
    return refuse("the graph has " + std::to_string(share->all_nodes) + " nodes and " +
                  std::to_string(share->all_entries) +
                  " adjacency entries, which do not fit the 32-bit numbers of this PT-Scotch; "
                  "build with one of 64 bits");
  }
  const Numbers offsets(share->offsets, share->nodes + 1);
  const Numbers neighbors(share->neighbors, share->offsets[share->nodes]);
  const Numbers weights(share->weights, share->nodes);
  // PT-Scotch wants an array even where there are no nodes.
  std::vector<SCOTCH_Num> found(static_cast<std::size_t>(share->nodes) + 1, -1);
  Cut work;
  if (!work.start(seed)) return refuse("cannot start");
  if (!work.build(*share, offsets, neighbors, weights)) return refuse("cannot take the graph");
  if (!work.run(parts, imbalance, found)) return refuse("cannot cut the graph");
  for (std::int64_t v = 0; v < share->nodes; ++v) {
    const SCOTCH_Num part = found[static_cast<std::size_t>(v)];
    if (part < 0 || part >= parts) {
      return refuse("a node is in part " + std::to_string(part) + " of " + std::to_string(parts));
    }
    part_of[v] = static_cast<std::int32_t>(part);
  }
  return nullptr;
}

void keep(const char* format, std::va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string& all = state().printed;
  if (all.size() < 1000) all += (all.empty() ? "" : "; ") + std::string(text.data());
}

constexpr npu_partitioner kPartitioner{NPU_PARTITIONER_ABI_VERSION, 0, "ptscotch", cut};

}  // namespace

#define NPU_EXPORT extern "C" __attribute__((visibility("default")))

// Found before those of libptscotcherr, since this object needs that library and not the other way
// round.
NPU_EXPORT void SCOTCH_errorPrint(const char* const format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  keep(format, arguments);
  va_end(arguments);
}

NPU_EXPORT void SCOTCH_errorPrintW(const char* const /*format*/, ...) {}

NPU_EXPORT const npu_partitioner* npu_partitioner_entry(std::uint32_t abi_version) {
  return abi_version == NPU_PARTITIONER_ABI_VERSION ? &kPartitioner : nullptr;
}
