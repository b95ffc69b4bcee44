// SPDX-License-Identifier: Apache-2.0
// Cuts a graph in several processes by PT-Scotch (Chevalier and Pellegrini, Parallel Computing
// 2008): the only file that includes it.
//
// Every cut has a context of its own, with one thread, the deterministic option and a fixed seed,
// so it depends on the graph, its shares and the seed alone. PT-Scotch prints what goes wrong; its
// two functions for that are replaced by those at the end, which keep the text instead.
//
// What can fail in one process alone is done before the processes speak to one another, and they
// tell each other how it went: one that gave up would leave the others waiting.
//
// Its numbers have 32 or 64 bits by the header, and the libraries for both have one name: which one
// the loader has found is asked for before anything else. With 64 bits the arrays of the caller are
// used as they are.
#include <mpi.h>

#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
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

// Takes a step, which returns null or what went wrong, in every process. Null if it went well in
// all; an empty text if only others have a fault.
template <typename Step>
const char* in_all(const Step& step) {
  const char* fault = nullptr;
  try {
    fault = step();
  } catch (const std::exception&) {
    fault = "there is no memory for a cut by PT-Scotch";
  }
  int well = fault == nullptr ? 1 : 0;
  const int code = MPI_Allreduce(MPI_IN_PLACE, &well, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (fault != nullptr) return fault;
  if (code != MPI_SUCCESS) return "MPI cannot compare values";
  return well == 1 ? nullptr : "";
}

// Numbers as PT-Scotch takes them, which does not write to them. A list of none is an array as
// well: PT-Scotch compares with the other processes what there is.
class Numbers {
 public:
  void set(const std::int64_t* values, std::int64_t count) {
    if constexpr (std::is_same_v<SCOTCH_Num, std::int64_t>) {
      if (count > 0) values_ = const_cast<std::int64_t*>(values);
    } else {
      copy_.assign(values, values + count);
      copy_.push_back(0);
      values_ = copy_.data();
    }
  }
  SCOTCH_Num* get() { return values_ == nullptr ? &none_ : values_; }

 private:
  std::vector<SCOTCH_Num> copy_;
  SCOTCH_Num* values_ = nullptr;
  SCOTCH_Num none_ = 0;
};

// A cut, step by step, with what is to be undone at its end.
class Cut {
 public:
  Cut(const npu_graph_share& share, std::int32_t parts, double imbalance, std::uint64_t seed)
      : share_(share), parts_(parts), imbalance_(imbalance), seed_(seed) {}
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  ~Cut() {
    if (has_bound_) SCOTCH_dgraphExit(&bound_);
    if (has_graph_) SCOTCH_dgraphExit(&graph_);
    if (processes_ != MPI_COMM_NULL) MPI_Comm_free(&processes_);
    if (has_strategy_) SCOTCH_stratExit(&strategy_);
    if (has_context_) SCOTCH_contextExit(&context_);
  }

  // All that speaks to no other process.
  const char* prepare() {
    if (const char* fault = check_size()) return fault;
    offsets_.set(share_.offsets, share_.nodes + 1);
    neighbors_.set(share_.neighbors, share_.offsets[share_.nodes]);
    weights_.set(share_.weights, share_.nodes);
    // PT-Scotch wants an array even where there are no nodes.
    found_.assign(static_cast<std::size_t>(share_.nodes) + 1, -1);
    has_context_ = SCOTCH_contextInit(&context_) == 0;
    if (!has_context_ ||
        SCOTCH_contextOptionSetNum(&context_, SCOTCH_OPTIONNUMDETERMINISTIC, 1) != 0 ||
        SCOTCH_contextOptionSetNum(&context_, SCOTCH_OPTIONNUMRANDOMFIXEDSEED, 1) != 0 ||
        SCOTCH_contextThreadSpawn(&context_, 1, nullptr) != 0 ||
        SCOTCH_contextRandomClone(&context_) != 0) {
      return refuse("cannot start");
    }
    // The seed counts from the next reset on, and 0 is the same as 1.
    SCOTCH_contextRandomSeed(&context_, static_cast<SCOTCH_Num>((seed_ + 1) & 0x7fffffff));
    SCOTCH_contextRandomReset(&context_);
    int processes = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    has_strategy_ = SCOTCH_stratInit(&strategy_) == 0;
    if (!has_strategy_ ||
        SCOTCH_stratDgraphMapBuild(&strategy_, SCOTCH_STRATQUALITY | SCOTCH_STRATBALANCE, processes,
                                   parts_, imbalance_) != 0) {
      return refuse("cannot choose a strategy");
    }
    return nullptr;
  }

  const char* connect() {
    if (MPI_Comm_dup(MPI_COMM_WORLD, &processes_) != MPI_SUCCESS) {
      return refuse("MPI cannot duplicate the communicator");
    }
    has_graph_ = SCOTCH_dgraphInit(&graph_, processes_) == 0;
    has_bound_ = has_graph_ && SCOTCH_dgraphInit(&bound_, processes_) == 0;
    return has_bound_ ? nullptr : refuse("cannot start");
  }

  // The arrays stay in use.
  const char* build() {
    const auto nodes = static_cast<SCOTCH_Num>(share_.nodes);
    const auto entries = static_cast<SCOTCH_Num>(share_.offsets[share_.nodes]);
    const int code = SCOTCH_dgraphBuild(&graph_, 0, nodes, nodes, offsets_.get(),
                                        offsets_.get() + 1, weights_.get(), nullptr, entries,
                                        entries, neighbors_.get(), nullptr, nullptr);
    return code == 0 ? nullptr : refuse("cannot take the graph");
  }

  const char* bind() {
    const int code = SCOTCH_contextBindDgraph(&context_, &graph_, &bound_);
    return code == 0 ? nullptr : refuse("cannot take the graph");
  }

  const char* run() {
    const int code = SCOTCH_dgraphPart(&bound_, parts_, &strategy_, found_.data());
    return code == 0 ? nullptr : refuse("cannot cut the graph");
  }

  const char* write(std::int32_t* part_of) const {
    for (std::int64_t v = 0; v < share_.nodes; ++v) {
      const SCOTCH_Num part = found_[static_cast<std::size_t>(v)];
      if (part < 0 || part >= parts_) {
        return refuse("a node is in part " + std::to_string(part) + " of " +
                      std::to_string(parts_));
      }
      part_of[v] = static_cast<std::int32_t>(part);
    }
    return nullptr;
  }

 private:
  // Null, or what is too much for PT-Scotch. It sends the edges of a process in one message, which
  // MPI counts as int.
  const char* check_size() const {
    constexpr std::int64_t kMost = std::numeric_limits<SCOTCH_Num>::max();
    constexpr std::int64_t kMostOfOne = std::numeric_limits<int>::max();
    if (share_.all_nodes > kMost || share_.all_entries > kMost || share_.all_weights > kMost) {
      return refuse("the graph has " + std::to_string(share_.all_nodes) + " nodes and " +
                    std::to_string(share_.all_entries) +
                    " adjacency entries, which do not fit the 32-bit numbers of this PT-Scotch; "
                    "build with one of 64 bits");
    }
    if (share_.offsets[share_.nodes] <= kMostOfOne) return nullptr;
    return refuse("the share of a process has " + std::to_string(share_.offsets[share_.nodes]) +
                  " adjacency entries, of which PT-Scotch takes at most " +
                  std::to_string(kMostOfOne) + ": start more processes");
  }

  const npu_graph_share& share_;
  std::int32_t parts_;
  double imbalance_;
  std::uint64_t seed_;
  Numbers offsets_;
  Numbers neighbors_;
  Numbers weights_;
  std::vector<SCOTCH_Num> found_;
  SCOTCH_Context context_{};
  SCOTCH_Strat strategy_{};
  MPI_Comm processes_ = MPI_COMM_NULL;
  SCOTCH_Dgraph graph_{};
  SCOTCH_Dgraph bound_{};
  bool has_context_ = false;
  bool has_strategy_ = false;
  bool has_graph_ = false;
  bool has_bound_ = false;
};

const char* check() {
  state().printed.clear();
  if (SCOTCH_numSizeof() == static_cast<int>(sizeof(SCOTCH_Num))) return nullptr;
  return refuse("the PT-Scotch that was loaded has numbers of " +
                std::to_string(8 * SCOTCH_numSizeof()) + " bits, expected " +
                std::to_string(8 * sizeof(SCOTCH_Num)));
}

const char* cut(const npu_graph_share* share, std::int32_t parts, double imbalance,
                std::uint64_t seed, std::int32_t* part_of) {
  state().printed.clear();
  Cut work(*share, parts, imbalance, seed);
  const char* fault = in_all([&] { return work.prepare(); });
  if (fault == nullptr) fault = in_all([&] { return work.connect(); });
  if (fault == nullptr) fault = in_all([&] { return work.build(); });
  if (fault == nullptr) fault = in_all([&] { return work.bind(); });
  if (fault == nullptr) fault = in_all([&] { return work.run(); });
  if (fault == nullptr) fault = in_all([&] { return work.write(part_of); });
  return fault;
}

void keep(const char* format, std::va_list arguments) {
  std::array<char, 512> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string& all = state().printed;
  if (all.size() < 1000) all += (all.empty() ? "" : "; ") + std::string(text.data());
}

constexpr npu_partitioner kPartitioner{NPU_PARTITIONER_ABI_VERSION, 0, "ptscotch", check, cut};

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
