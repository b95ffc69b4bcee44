// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// One of `npu.fusion.groups`. `json` is the object as it was read; the typed fields, whose values
/// it no longer holds, take precedence over it when the section is written. A key whose value has
/// another type than npu-ir(5) says counts as unknown.
struct FusionEntry {
  std::optional<std::int64_t> id;
  std::optional<std::string> pattern;
  std::optional<std::string> device;
  std::optional<std::vector<std::string>> nodes;    ///< names
  std::optional<std::vector<std::string>> inputs;   ///< names of tensors
  std::optional<std::vector<std::string>> outputs;  ///< likewise
  std::optional<std::int64_t> flops;
  std::optional<std::int64_t> bytes;
  std::optional<std::int64_t> on_chip_bytes;
  Json json = Json::object();
};

/// `npu.fusion` of a document. Keys keep their places, those that are new come last.
struct FusionSection {
  std::vector<FusionEntry> groups;
  Json json = Json::object();  ///< the section without what `groups` holds

  /// Moves the section out of a graph, in which nothing but its place is left until store() is
  /// called. Nothing, and no change, if the graph has no list of groups. O(size of the section).
  static std::optional<FusionSection> take(Graph& graph);
  /// Writes it as `npu.fusion`.
  static void store(Graph& graph, FusionSection&& section);

  /// One of its groups, as store() writes it.
  static Json group_json(FusionEntry&& entry);
};

/// What `npu.fusion` says of each group in a field of text, such as its pattern, by id. Refers to
/// the graph's document. O(groups).
std::unordered_map<std::int64_t, std::string_view> texts_by_group(const Graph& graph,
                                                                  std::string_view field);

}  // namespace npu
