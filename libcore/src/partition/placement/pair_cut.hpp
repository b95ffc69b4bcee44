// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flow/min_cut.hpp"
#include "partition/placement/bounds.hpp"
#include "partition/placement/placement_problem.hpp"

namespace npu {

/// The network of the items on either of two devices; all others stay where they are.
class PairCut {
 public:
  PairCut(const PlacementProblem& problem, const Assignment& fixed, std::int32_t device_a,
          std::int32_t device_b);

  void add_launches(const LaunchPaths& paths);

  /// Empty if an item can be on neither device.
  Assignment solve();

  std::int64_t value() const noexcept { return cut_.value; }
  std::int64_t size() const noexcept;

  /// The proof; only if no item is fixed.
  CutCertificate certificate(const LaunchPaths& paths) const;

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct ReaderArcs {
    std::size_t forward = kNone;   // carries flow from the producer to the reader
    std::size_t backward = kNone;  // from the reader to the producer
  };

  std::int64_t launch(std::int64_t times, std::int32_t device, const LaunchPaths& paths) const;

  void add_items();

  void add_tensor(std::size_t t);

  // One vertex that is cut off if a reader is on `device_a` but the tensor is not, and one for
  // `device_b`.
  void add_helpers(const PlacementProblem::Tensor& tensor, std::int32_t producer, std::int64_t to_a,
                   std::int64_t to_b);

  const PlacementProblem& problem_;
  const Assignment& fixed_;
  std::int32_t device_a_;
  std::int32_t device_b_;
  CutNetwork network_;
  std::vector<std::int32_t> vertex_of_;  // by item, -1 if it is fixed
  std::vector<ReaderArcs> reader_arcs_;  // by reader, if no item is fixed
  std::vector<std::size_t> launch_arc_;  // by arc of the fused graph
  MinCut cut_;
};

}  // namespace npu
