// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// One of `npu.partition.partitions`, as far as an edit of the graph changes it; `json` has the
/// rest.
struct PartitionEntry {
  std::optional<std::vector<std::string>> nodes;    ///< names
  std::optional<std::vector<std::string>> inputs;   ///< names of tensors
  std::optional<std::vector<std::string>> outputs;  ///< likewise
  std::optional<std::int64_t> flops;
  std::optional<std::int64_t> bytes;
  Json json = Json::object();
};

/// `npu.partition` of a document, for passes that edit a placed graph. What a plan has to hold to
/// be run, PartitionPlan says; here a member of another type than npu-ir(5) says is left as it is.
struct PartitionSection {
  std::vector<PartitionEntry> partitions;
  Json json = Json::object();  ///< the section without what `partitions` holds

  /// Moves the section out of a graph, in which nothing but its place is left until store() is
  /// called. Nothing, and no change, if the graph has none. O(size of the section).
  static std::optional<PartitionSection> take(Graph& graph);
  /// Writes it as `npu.partition`.
  static void store(Graph& graph, PartitionSection&& section);

  /// Adds to a metric; one that the section lacks is left out. Times have microseconds with three
  /// decimals.
  void add_to_metric(std::string_view name, std::int64_t count);
  void add_ns_to_metric(std::string_view name, double nanoseconds);
};

}  // namespace npu
