// SPDX-License-Identifier: Apache-2.0
// Answers to what a compile would take, of backends that lower a sub-IR to ask.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "kit/boundary.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// A sub-IR, checked.
inline Graph read_sub_ir(const char* text, std::uint64_t size) {
  Graph graph = read_valid_graph({text, static_cast<std::size_t>(size)}, "sub-IR");
  check_sub_ir_version(graph);
  return graph;
}

inline Graph graph_of_question(const npu_check_args* args) {
  require(args != nullptr && NPU_HAS(args, answer) && args->answer != nullptr &&
              args->sub_ir != nullptr,
          "an argument is null");
  return read_sub_ir(args->sub_ir, args->sub_ir_size);
}

inline Json refusal_of(std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  return {{"ok", false}, {"reason", std::move(reason)}};
}

/// The answer for each node of a graph that is taken, or refused for this reason: then each node is
/// asked about alone, and, if those are all taken, it is the node that the reason names.
/// `is_taken` of a graph fills the reason if it is not.
template <typename IsTaken>
Json node_answers(const Graph& graph, const std::string& refused, const IsTaken& is_taken) {
  Json answers(std::vector<Json>(graph.nodes().size(), Json{{"ok", true}}));
  if (refused.empty() || answers.empty()) return answers;
  bool is_found = false;
  BoundaryFinder boundaries(graph);
  for (const NodeId id : all_nodes(graph)) {
    const Graph alone = extract(graph, {id}, boundaries.find({id}));
    std::string reason;
    if (is_taken(alone, reason)) continue;
    answers[index_of(id)] = refusal_of(std::move(reason));
    is_found = true;
  }
  if (is_found) return answers;
  const auto named = std::find_if(
      graph.nodes().begin(), graph.nodes().end(),
      [&](const Node& node) { return refused.find("'" + node.name + "'") != std::string::npos; });
  const auto number = named == graph.nodes().end() ? 0 : named - graph.nodes().begin();
  answers[static_cast<std::size_t>(number)] = refusal_of(refused);
  return answers;
}

inline void write_answer(const Json& answer, const npu_check_args& args, npu_error* error) {
  const std::string bytes = answer.dump();
  pieces_to(args.answer, error)(bytes.data(), bytes.size());
}

}  // namespace npu
