// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/ir/graph.hpp"
#include "partition/fused_graph.hpp"

namespace npu {

/// A storage that a fused node touches.
struct Touch {
  std::int32_t storage = 0;  // index into Timeline::storages
  bool writes = false;
};

/// Memory of one tensor and of all views of it.
struct Storage {
  double bytes = 0;
  std::int32_t made_at = -1;   // position of its producer; -1: graph input or weight
  std::int32_t last_use = -1;  // position of its last reader
  bool leaves = false;         // holds an output of the graph
  bool weight = false;
};

/// The fused nodes in order, with the storages that they touch.
class Timeline {
 public:
  Timeline(const Graph& graph, const FusedGraph& fused);

  std::vector<std::int32_t> order;          ///< fused nodes
  std::vector<std::vector<Touch>> touches;  ///< by position, each storage once
  std::vector<double> own_bytes;            ///< by position: everything that it touches
  std::vector<double> flops;
  std::vector<Storage> storages;

 private:
  // Views share the memory of the tensor that they view.
  void find_storages(const std::vector<std::int32_t>& position);

  static TensorId viewed(const Node& node);

  // A gather needs the rows that it returns, not the whole table.
  double read_bytes(const Node& node, TensorId input, const Storage& storage) const;

  const Graph& graph_;
  const FusedGraph& fused_;
  std::vector<std::int32_t> storage_of_;
};

}  // namespace npu
