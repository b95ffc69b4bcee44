// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"

namespace npu {

/// A mention of a tensor that has the usual keys alone, in the usual order. Valid while the node is
/// visited.
struct StreamedMention {
  std::string_view name;
  Shape shape;
  DType dtype = DType::kFloat32;
  bool names_producer = false;
  std::string_view producer;
  std::int64_t producer_output = 0;
};

/// A node with its lists apart from its object, where a null stands for a name and an op type, and
/// 0 for a list that was read.
struct StreamedNode {
  std::string_view name;
  std::string_view op_type;
  std::optional<std::vector<StreamedMention>> inputs;  ///< nothing: in the object
  std::optional<std::vector<StreamedMention>> outputs;
  Json json;
};

/// Reads a document whose nodes are of the usual form, without ever holding all of it as JSON:
/// `on_document` gets the top level with an empty list of nodes and how many there may be, then
/// `on_node` gets one node after another; a false ends the reading. False if it ended so, or where
/// the text is anything but such a document: what is wrong with it, parse_python_json and the
/// reader tell.
bool stream_document(std::string_view text,
                     const std::function<bool(Json, std::size_t)>& on_document,
                     const std::function<bool(StreamedNode&)>& on_node);

}  // namespace npu
