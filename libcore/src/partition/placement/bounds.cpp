// SPDX-License-Identifier: Apache-2.0
// Lower bounds of placements, from their proofs: the reduced costs that remain after the flows of a
// certificate have moved parts of every price between producers and readers (two devices), and the
// Lagrangian bound in which each device decides which items are worth their price (any number).
//
// Nothing here knows how the solver found the proof, so check_certificate.cpp can rely on it. Sums
// are in 128 bits: a certificate is input, and its numbers may be anything. certified_bound is
// O(fused nodes + arcs + readers), priced_bound one minimum cut for each device.
#include "partition/placement/bounds.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "flow/min_cut.hpp"
#include "npu/support/ids.hpp"

namespace npu {
namespace {

__extension__ using Wide = __int128;

/// The reduced costs of the items under a certificate, built up part by part.
class CertifiedBound {
 public:
  CertifiedBound(const PlacementProblem& problem, const CutCertificate& certificate)
      : problem_(problem),
        certificate_(certificate),
        on_a_(problem.items, 0),
        on_b_(problem.items, 0) {}

  /// The bound; kNever, with the reason in fault(), if the certificate proves nothing.
  std::int64_t value() {
    if (problem_.devices != 2 || certificate_.device_a == certificate_.device_b ||
        certificate_.flow.size() != problem_.readers.size()) {
      return refuse("the certificate does not belong to the document");
    }
    if (!move_tensor_prices()) return kNever;
    if (certificate_.paths.count > 0 && !move_launch_prices()) return kNever;
    return sum_of_cheaper_devices();
  }
  const std::string& fault() const noexcept { return fault_; }

 private:
  std::int64_t refuse(std::string text) {
    fault_ = std::move(text);
    return kNever;
  }
  bool fail(std::string text) {
    fault_ = std::move(text);
    return false;
  }

  bool move_tensor_prices() {
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      const PlacementProblem::Tensor& tensor = problem_.tensors[t];
      Wide to_a = 0;
      Wide to_b = 0;
      for (std::int32_t r = tensor.begin; r < tensor.end; ++r) {
        const std::int64_t flow = certificate_.flow[index_of(r)];
        (flow > 0 ? to_a : to_b) += flow > 0 ? Wide{flow} : -Wide{flow};
        on_b_[index_of(tensor.producer)] += flow;
        on_b_[index_of(problem_.readers[index_of(r)])] -= flow;
      }
      if (to_a > problem_.transfer_of(t, certificate_.device_b, certificate_.device_a) ||
          to_b > problem_.transfer_of(t, certificate_.device_a, certificate_.device_b)) {
        return fail("the flow of a tensor exceeds its price");
      }
    }
    return true;
  }

  bool move_launch_prices() {
    const FusedGraph& fused = problem_.fused;
    const LaunchPaths& paths = certificate_.paths;
    if (paths.starts.size() != fused.size() || paths.arcs.size() != fused.targets.size() ||
        certificate_.launch_flow.size() != fused.targets.size()) {
      return fail("the certificate does not belong to the document");
    }
    std::vector<Wide> through(fused.size(), 0);  // paths that reach a fused node and may go on
    Wide begun = 0;
    for (const std::int32_t fused_node : fused.order) {
      const std::size_t u = index_of(fused_node);
      if (paths.starts[u] < 0) return fail("a negative number of paths");
      begun += paths.starts[u];
      through[u] += paths.starts[u];
      const std::size_t item = index_of(problem_.item_of[u]);
      if (paths.starts[u] > 0) {
        on_a_[item] += launch(paths.starts[u], certificate_.device_a);
        on_b_[item] += launch(paths.starts[u], certificate_.device_b);
      }
      for (auto a = static_cast<std::size_t>(fused.offsets[u]);
           a < static_cast<std::size_t>(fused.offsets[u + 1]); ++a) {
        const std::int64_t times = paths.arcs[a];
        const std::int64_t flow = certificate_.launch_flow[a];
        if (times < 0) return fail("a negative number of paths");
        through[u] -= times;
        through[index_of(fused.targets[a])] += times;
        if (flow > launch(times, certificate_.device_a) ||
            -Wide{flow} > launch(times, certificate_.device_b)) {
          return fail("the flow of a launch exceeds its price");
        }
        on_b_[item] += flow;
        on_b_[index_of(problem_.item_of[index_of(fused.targets[a])])] -= flow;
      }
      if (through[u] < 0) return fail("more paths leave a unit than reach it");
    }
    return begun <= paths.count || fail("more paths than the certificate counts");
  }

  std::int64_t launch(std::int64_t times, std::int32_t device) const {
    return launch_share(times, problem_.launch[index_of(device)], certificate_.paths.count);
  }

  std::int64_t sum_of_cheaper_devices() {
    Wide bound = 0;
    for (std::size_t i = 0; i < problem_.items; ++i) {
      const auto item = static_cast<std::int32_t>(i);
      const std::int64_t cost_on_a = problem_.cost_of(item, certificate_.device_a);
      const std::int64_t cost_on_b = problem_.cost_of(item, certificate_.device_b);
      if (cost_on_a == kNever && cost_on_b == kNever) return refuse("an item that runs nowhere");
      if (cost_on_a == kNever) {
        bound += cost_on_b + on_b_[i];
      } else if (cost_on_b == kNever) {
        bound += cost_on_a + on_a_[i];
      } else {
        bound += std::min(cost_on_a + on_a_[i], cost_on_b + on_b_[i]);
      }
    }
    if (bound >= kNever || bound <= -Wide{kNever}) return refuse("numbers that are too large");
    return static_cast<std::int64_t>(bound);
  }

  const PlacementProblem& problem_;
  const CutCertificate& certificate_;
  std::vector<Wide> on_a_;  // what each item's price on device_a gained, by item
  std::vector<Wide> on_b_;
  std::string fault_;
};

}  // namespace

std::int64_t launch_share(std::int64_t times, std::int64_t price, std::int64_t count) {
  return static_cast<std::int64_t>(static_cast<Wide>(times) * price / count);
}

std::int64_t certified_bound(const PlacementProblem& problem, const CutCertificate& certificate,
                             std::string& fault) {
  CertifiedBound bound(problem, certificate);
  const std::int64_t value = bound.value();
  if (value == kNever) fault = bound.fault();
  return value;
}

std::int64_t priced_bound(const PlacementProblem& problem, const std::vector<std::int64_t>& prices,
                          std::vector<std::vector<char>>* taken) {
  std::int64_t bound = std::accumulate(prices.begin(), prices.end(), std::int64_t{0});
  for (std::size_t d = 0; d < problem.devices; ++d) {
    const auto device = static_cast<std::int32_t>(d);
    // A vertex on the source's side is not on the device.
    CutNetwork network(problem.items);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < problem.items; ++i) {
      const auto vertex = static_cast<std::int32_t>(i);
      const std::int64_t cost = problem.cost_of(vertex, device);
      if (cost == kNever) {
        network.add_source_capacity(vertex, kInfiniteCapacity);
        continue;
      }
      const std::int64_t worth = cost - prices[i];
      if (worth >= 0) {
        network.add_source_capacity(vertex, worth);
      } else {
        offset += worth;
        network.add_sink_capacity(vertex, -worth);
      }
    }
    for (std::size_t t = 0; t < problem.tensors.size(); ++t) {
      std::int64_t in = kNever;
      std::int64_t out = kNever;
      for (std::size_t e = 0; e < problem.devices; ++e) {
        if (e == d) continue;
        in = std::min(in, problem.transfer_of(t, static_cast<std::int32_t>(e), device));
        out = std::min(out, problem.transfer_of(t, device, static_cast<std::int32_t>(e)));
      }
      if (in == kNever) continue;  // it is the only device
      const PlacementProblem::Tensor& tensor = problem.tensors[t];
      const std::int32_t arrives = network.add_vertex();
      const std::int32_t leaves = network.add_vertex();
      network.add_arc(tensor.producer, arrives, in / 2);
      network.add_arc(leaves, tensor.producer, out / 2);
      for (const std::int32_t reader : problem.readers_of(tensor)) {
        network.add_arc(arrives, reader, kInfiniteCapacity);
        network.add_arc(reader, leaves, kInfiniteCapacity);
      }
    }
    const MinCut cut = solve_min_cut(network);
    assert(check_min_cut(network, cut).empty());
    bound += offset + cut.value;
    if (taken == nullptr) continue;
    std::vector<char>& side = taken->emplace_back(problem.items);
    for (std::size_t i = 0; i < problem.items; ++i) side[i] = cut.source_side[i] == 0;
  }
  return bound;
}

}  // namespace npu
