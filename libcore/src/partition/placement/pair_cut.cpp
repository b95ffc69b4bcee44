// SPDX-License-Identifier: Apache-2.0
// The best split of items between two devices, as a minimum cut.
//
// An item on the source's side is on device_b. A tensor that several items read has a helper vertex
// for each direction, so that it is paid once; a launch is an arc where a path through the graph
// changes device. Items that are fixed to a third device have no vertex: tensors that they send and
// read add to the prices of the others. The flow is the proof, which certificate() extracts.
#include "partition/placement/pair_cut.hpp"

#include <cassert>

#include "npu/support/ids.hpp"

namespace npu {

PairCut::PairCut(const PlacementProblem& problem, const Assignment& fixed, std::int32_t device_a,
                 std::int32_t device_b)
    : problem_(problem), fixed_(fixed), device_a_(device_a), device_b_(device_b) {
  network_.reserve(2 * problem.items, problem.readers.size() + problem.tensors.size());
  add_items();
  for (std::size_t t = 0; t < problem.tensors.size(); ++t) add_tensor(t);
}

void PairCut::add_launches(const LaunchPaths& paths) {
  const FusedGraph& fused = problem_.fused;
  launch_arc_.assign(fused.targets.size(), kNone);
  for (std::size_t u = 0; u < fused.size(); ++u) {
    const std::int32_t from = vertex_of_[index_of(problem_.item_of[u])];
    if (paths.starts[u] > 0) {
      network_.add_source_capacity(from, launch(paths.starts[u], device_a_, paths));
      network_.add_sink_capacity(from, launch(paths.starts[u], device_b_, paths));
    }
    for (auto a = static_cast<std::size_t>(fused.offsets[u]);
         a < static_cast<std::size_t>(fused.offsets[u + 1]); ++a) {
      if (paths.arcs[a] == 0) continue;
      const std::int32_t to = vertex_of_[index_of(problem_.item_of[index_of(fused.targets[a])])];
      if (from == to) continue;
      launch_arc_[a] = network_.add_arc(from, to, launch(paths.arcs[a], device_a_, paths),
                                        launch(paths.arcs[a], device_b_, paths));
    }
  }
}

Assignment PairCut::solve() {
  cut_ = solve_min_cut(network_);
  assert(cut_.value == kInfiniteCapacity || check_min_cut(network_, cut_).empty());
  if (cut_.value == kInfiniteCapacity) return {};
  Assignment result = fixed_;
  for (std::size_t i = 0; i < problem_.items; ++i) {
    if (vertex_of_[i] < 0) continue;
    result[i] = cut_.source_side[index_of(vertex_of_[i])] != 0 ? device_b_ : device_a_;
  }
  return result;
}

std::int64_t PairCut::size() const noexcept {
  return static_cast<std::int64_t>(network_.vertex_count() + network_.arcs().size());
}

CutCertificate PairCut::certificate(const LaunchPaths& paths) const {
  CutCertificate result{.device_a = device_a_,
                        .device_b = device_b_,
                        .value = cut_.value,
                        .flow = {},
                        .paths = paths,
                        .launch_flow = {}};
  const auto flow = [&](std::size_t arc) { return arc == kNone ? 0 : cut_.arc_flow[arc]; };
  for (const ReaderArcs& arcs : reader_arcs_) {
    result.flow.push_back(flow(arcs.forward) - flow(arcs.backward));
  }
  for (const std::size_t arc : launch_arc_) result.launch_flow.push_back(flow(arc));
  return result;
}

std::int64_t PairCut::launch(std::int64_t times, std::int32_t device,
                             const LaunchPaths& paths) const {
  return launch_share(times, problem_.launch[index_of(device)], paths.count);
}

void PairCut::add_items() {
  vertex_of_.assign(problem_.items, -1);
  for (std::size_t i = 0; i < problem_.items; ++i) {
    if (fixed_[i] != device_a_ && fixed_[i] != device_b_) continue;
    const std::int32_t vertex = network_.add_vertex();
    vertex_of_[i] = vertex;
    network_.add_source_capacity(vertex, problem_.cost_of(static_cast<std::int32_t>(i), device_a_));
    network_.add_sink_capacity(vertex, problem_.cost_of(static_cast<std::int32_t>(i), device_b_));
  }
}

void PairCut::add_tensor(std::size_t t) {
  const PlacementProblem::Tensor& tensor = problem_.tensors[t];
  const std::int32_t producer = vertex_of_[index_of(tensor.producer)];
  std::uint64_t fixed_readers = 0;
  std::int32_t free_readers = 0;
  for (const std::int32_t reader : problem_.readers_of(tensor)) {
    if (vertex_of_[index_of(reader)] < 0) {
      fixed_readers |= std::uint64_t{1} << fixed_[index_of(reader)];
    } else {
      ++free_readers;
    }
  }
  if (producer < 0) {
    const std::int32_t from = fixed_[index_of(tensor.producer)];
    if (free_readers > 0) {
      add_helpers(tensor, -1, problem_.transfer_of(t, from, device_a_),
                  problem_.transfer_of(t, from, device_b_));
    }
    return;
  }
  for (std::size_t d = 0; fixed_readers >> d != 0 && d < problem_.devices; ++d) {
    if ((fixed_readers >> d & 1U) == 0) continue;
    const auto to = static_cast<std::int32_t>(d);
    network_.add_source_capacity(producer, problem_.transfer_of(t, device_a_, to));
    network_.add_sink_capacity(producer, problem_.transfer_of(t, device_b_, to));
  }
  const std::int64_t to_a = problem_.transfer_of(t, device_b_, device_a_);
  const std::int64_t to_b = problem_.transfer_of(t, device_a_, device_b_);
  if (free_readers == 1) {
    for (const std::int32_t reader : problem_.readers_of(tensor)) {
      ReaderArcs& arcs = reader_arcs_.emplace_back();
      const std::int32_t vertex = vertex_of_[index_of(reader)];
      if (vertex >= 0) arcs.forward = network_.add_arc(producer, vertex, to_a, to_b);
    }
  } else if (free_readers > 1) {
    add_helpers(tensor, producer, to_a, to_b);
  }
}

void PairCut::add_helpers(const PlacementProblem::Tensor& tensor, std::int32_t producer,
                          std::int64_t to_a, std::int64_t to_b) {
  const std::int32_t copy_on_a = network_.add_vertex();
  const std::int32_t copy_on_b = network_.add_vertex();
  if (producer < 0) {
    network_.add_source_capacity(copy_on_a, to_a);
    network_.add_sink_capacity(copy_on_b, to_b);
  } else {
    network_.add_arc(producer, copy_on_a, to_a);
    network_.add_arc(copy_on_b, producer, to_b);
  }
  for (const std::int32_t reader : problem_.readers_of(tensor)) {
    ReaderArcs& arcs = reader_arcs_.emplace_back();
    const std::int32_t vertex = vertex_of_[index_of(reader)];
    if (vertex < 0) continue;
    arcs.forward = network_.add_arc(copy_on_a, vertex, kInfiniteCapacity);
    arcs.backward = network_.add_arc(vertex, copy_on_b, kInfiniteCapacity);
  }
}

}  // namespace npu
