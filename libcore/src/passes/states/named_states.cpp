// SPDX-License-Identifier: Apache-2.0
// Makes tensors states whose names a user gives: cells, windows and counters that a model takes as
// inputs and gives as outputs, as streaming models in ONNX do. Nothing in a graph tells such a pair
// from an input and an output that have one shape by chance, so that it has to be said.
// O(names x inputs).
#include "passes/states/named_states.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "passes/states/cache_pairs.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// What the '*' of a pattern stands for in a name; empty if there is none. Nothing if they differ.
std::optional<std::string_view> matched(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == name ? std::optional<std::string_view>("") : std::nullopt;
  }
  const std::string_view head = pattern.substr(0, star);
  const std::string_view tail = pattern.substr(star + 1);
  const bool is_long_enough = name.size() > head.size() + tail.size();
  if (!is_long_enough || !name.starts_with(head) || !name.ends_with(tail)) return std::nullopt;
  return name.substr(head.size(), name.size() - head.size() - tail.size());
}

std::string filled(std::string pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  return star == std::string::npos ? pattern : pattern.replace(star, 1, text);
}

std::string told(const StateNames& names) {
  return "--state " + printable_text(names.input) + "=" + printable_text(names.output);
}

/// The states whose ends are called so, in the order of the graph's inputs.
std::vector<State> find_states(const std::vector<std::string>& inputs,
                               const std::vector<std::string>& listed,
                               const std::vector<StateNames>& names, const std::string& file,
                               Diagnostics& diagnostics) {
  const std::set<std::string> outputs(listed.begin(), listed.end());
  std::vector<State> states;
  std::set<std::string> taken;
  for (const StateNames& each : names) {
    bool is_there = false;
    for (const std::string& input : inputs) {
      const auto text = matched(each.input, input);
      if (!text) continue;
      is_there = true;
      const std::string output = filled(each.output, *text);
      if (!outputs.contains(output)) {
        diagnostics.error({.file = file}, told(each) + ": input '" + short_text(input) +
                                              "' is to be written as '" + short_text(output) +
                                              "', which is no graph output" +
                                              spelling_hint(output, listed));
      } else if (!taken.insert(input).second) {
        diagnostics.error({.file = file},
                          told(each) + ": input '" + short_text(input) + "' is a state already");
      } else {
        states.push_back({.name = input, .input = input, .output = output, .axis = {}});
      }
    }
    if (is_there) continue;
    diagnostics.error({.file = file}, told(each) + ": no graph input has this name" +
                                          spelling_hint(each.input, inputs));
  }
  return states;
}

/// The list of `stated`, if it is one, with `added` behind it.
Json joined(const Json* stated, const std::vector<State>& added) {
  Json all = stated != nullptr && stated->is_array() ? *stated : Json::array();
  for (Json& state : states_json(added)) all.push_back(std::move(state));
  return all;
}

}  // namespace

StateNames parse_state_names(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw Error(ErrorCode::kUsage, "--state " + printable_text(text) +
                                       ": expected INPUT=OUTPUT, for example 'h0=hn' or "
                                       "'past_conv.*=present_conv.*'");
  }
  StateNames names{text.substr(0, equals), text.substr(equals + 1)};
  const auto stars = [](const std::string& name) {
    return std::count(name.begin(), name.end(), '*');
  };
  if (stars(names.input) > 1 || stars(names.input) != stars(names.output)) {
    throw Error(ErrorCode::kUsage,
                told(names) + ": expected one '*' in the input and in the output, or in none");
  }
  return names;
}

std::vector<State> named_states(const Json& document, const std::vector<StateNames>& names,
                                const std::string& file, Diagnostics& diagnostics) {
  return find_states(states::names_in(document, "graph_inputs"),
                     states::names_in(document, "graph_outputs"), names, file, diagnostics);
}

void append_states(Json& document, const std::vector<State>& states) {
  if (states.empty()) return;
  Json* npu = find_member(document, "npu");
  const Json all = joined(npu == nullptr ? nullptr : find_member(*npu, "states"), states);
  if (npu == nullptr) {
    set_member(document, "npu", {{"states", all}});
  } else {
    set_member(*npu, "states", all);
  }
}

void name_states(Graph& graph, const std::vector<StateNames>& names, Diagnostics& diagnostics) {
  const auto names_of = [&](const std::vector<TensorId>& ids) {
    std::vector<std::string> list;
    for (const TensorId id : ids) list.push_back(graph.tensor(id).name);
    return list;
  };
  const std::vector<State> added =
      find_states(names_of(graph.graph_inputs()), names_of(graph.graph_outputs()), names,
                  graph.file, diagnostics);
  if (diagnostics.has_errors()) return;
  graph.set_npu_member("states", joined(graph.npu_member("states"), added));
  read_states(graph, diagnostics);
}

}  // namespace npu
