// SPDX-License-Identifier: Apache-2.0
// What a host asks of a backend with the feature "alias". It comes from outside of the backend, so
// every pair is checked before anything relies on it.
#include "ir/sub_ir_aliases.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

[[noreturn]] void refuse_alias(const std::string& text) {
  throw Error(ErrorCode::kInvalidGraph, "aliases: " + text);
}

std::size_t place_of(const Graph& graph, const std::vector<TensorId>& tensors, const Json& pair,
                     const char* end) {
  const std::string* name = pair.is_object() ? member_text(pair, end) : nullptr;
  if (name == nullptr) refuse_alias("expected objects with the names 'input' and 'output'");
  const TensorId id = graph.find_tensor(*name);
  const auto found = std::find(tensors.begin(), tensors.end(), id);
  if (!id.valid() || found == tensors.end()) {
    refuse_alias("'" + short_text(*name) + "' is no " + end + " of the sub-IR");
  }
  return static_cast<std::size_t>(found - tensors.begin());
}

}  // namespace

std::vector<AliasPair> read_aliases(const Graph& sub_ir) {
  std::vector<AliasPair> pairs;
  const Json* list = find_member(sub_ir.document(), "aliases");
  if (list == nullptr) return pairs;
  if (!list->is_array()) refuse_alias("expected a list");
  std::set<TensorId> seen;
  for (const Json& json : *list) {
    const AliasPair pair{place_of(sub_ir, sub_ir.graph_inputs(), json, "input"),
                         place_of(sub_ir, sub_ir.graph_outputs(), json, "output")};
    const TensorId input = sub_ir.graph_inputs()[pair.input];
    const TensorId output = sub_ir.graph_outputs()[pair.output];
    const TensorInfo& from = sub_ir.tensor(input);
    const TensorInfo& to = sub_ir.tensor(output);
    if (from.dtype != to.dtype || from.shape != to.shape) {
      refuse_alias("'" + to.name + "' is not of the dtype and shape of '" + from.name + "'");
    }
    if (!seen.insert(input).second || !seen.insert(output).second) {
      refuse_alias("'" + to.name + "' or '" + from.name + "' is in two of them");
    }
    pairs.push_back(pair);
  }
  return pairs;
}

}  // namespace npu
