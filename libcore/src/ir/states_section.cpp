// SPDX-License-Identifier: Apache-2.0
// `npu.states`: which tensors outlive a step. Every entry is checked against the graph, since all
// that comes later binds the two ends of a state to one place on a device.
//
// A state that nodes overwrite in part, such as a cache, lies in one buffer. Whoever reads it after
// the write would find the new rows, so such a reader has to take the writer's result, which costs
// nothing. A state that is replaced as a whole has a place for its next value, so that it may be
// read anywhere.
#include "ir/states_section.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostStates = 65536;

/// Reads the section of one graph; every fault names its place.
class StatesReader {
 public:
  StatesReader(const Graph& graph, Diagnostics& diagnostics)
      : graph_(graph), faults_(graph.file, diagnostics) {}

  std::vector<State> read(const Json& json) {
    if (!json.is_array() || json.size() > kMostStates) {
      faults_.add("/npu/states",
                  "expected a list of at most " + std::to_string(kMostStates) + " states");
      return {};
    }
    std::vector<State> states;
    for (std::size_t i = 0; i < json.size(); ++i) {
      at_ = pointer_below("/npu/states", i);
      if (auto state = read_state(json[i])) states.push_back(std::move(*state));
    }
    return states;
  }

 private:
  std::optional<State> read_state(const Json& json) {
    if (!faults_.check_object(json, at_)) return std::nullopt;
    faults_.check_keys(json, at_, {"name", "input", "output", "axis"});
    State state;
    const std::string* name = member_text(json, "name");
    if (name == nullptr || name->empty()) {
      add("name", "expected the name of the state");
      return std::nullopt;
    }
    state.name = *name;
    if (!names_.insert(state.name).second) {
      add("name", "two states are named '" + short_text(state.name) + "'");
    }
    const bool has_ends =
        read_tensor(json, "input", state.input) && read_tensor(json, "output", state.output);
    if (!has_ends) return std::nullopt;
    if (state.input.empty() && state.output.empty()) {
      faults_.add(at_, told(state) + " has neither 'input' nor 'output'");
      return std::nullopt;
    }
    const TensorId input = check_input(state);
    const TensorId output = check_output(state);
    check_types(state, input, output);
    if (const Json* axis = find_member(json, "axis")) {
      check_axis(state, *axis, input.valid() ? input : output);
    }
    if (input.valid() && output.valid()) check_reads(state);
    return state;
  }

  static std::string told(const State& state) { return "state '" + short_text(state.name) + "'"; }
  void add(std::string_view key, std::string text) {
    faults_.add(pointer_below(at_, key), std::move(text));
  }

  bool read_tensor(const Json& json, const char* key, std::string& name) {
    const Json* value = find_member(json, key);
    if (value == nullptr) return true;
    const std::string* text = json_text(value);
    if (text == nullptr || text->empty()) {
      add(key, "expected the name of a tensor");
      return false;
    }
    name = *text;
    return true;
  }

  bool is_first_use(const char* key, const State& state, TensorId id) {
    if (tensors_.insert(id).second) return true;
    add(key, "tensor '" + graph_.tensor(id).name + "' belongs to two states, the second is '" +
                 short_text(state.name) + "'");
    return false;
  }

  TensorId check_input(const State& state) {
    if (state.input.empty()) return {};
    const TensorId id = graph_.find_tensor(state.input);
    if (!id.valid() || graph_.tensor(id).kind != TensorKind::kGraphInput) {
      add("input",
          told(state) + " is read as '" + short_text(state.input) + "', which is no graph input");
      return {};
    }
    const auto& outputs = graph_.graph_outputs();
    if (std::find(outputs.begin(), outputs.end(), id) != outputs.end()) {
      add("input", told(state) + " is read as '" + state.input +
                       "', which is a graph output, too; let a node copy it");
      return {};
    }
    return is_first_use("input", state, id) ? id : TensorId{};
  }

  TensorId check_output(const State& state) {
    if (state.output.empty()) return {};
    const TensorId id = graph_.find_tensor(state.output);
    const auto& outputs = graph_.graph_outputs();
    const bool is_output = id.valid() && std::count(outputs.begin(), outputs.end(), id) == 1;
    if (!is_output || graph_.tensor(id).kind != TensorKind::kResult) {
      add("output", told(state) + " is written as '" + short_text(state.output) +
                        "', expected a graph output that a node computes, listed once");
      return {};
    }
    return is_first_use("output", state, id) ? id : TensorId{};
  }

  void check_types(const State& state, TensorId input, TensorId output) {
    if (!input.valid() || !output.valid()) return;
    const TensorInfo& before = graph_.tensor(input);
    const TensorInfo& after = graph_.tensor(output);
    if (before.dtype == after.dtype && before.shape == after.shape) return;
    const auto text = [](const TensorInfo& tensor) {
      return std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape);
    };
    faults_.add(at_, told(state) + " is " + text(before) + " before a step ('" + state.input +
                         "') and " + text(after) + " after it ('" + state.output + "')");
  }

  void check_axis(State& state, const Json& json, TensorId id) {
    if (!id.valid()) return;  // told already
    const auto rank = static_cast<std::int64_t>(graph_.tensor(id).shape.size());
    const auto axis = json_integer(&json);
    if (!axis || *axis < 0 || *axis >= rank) {
      add("axis", told(state) + " has " + std::to_string(rank) + " dimensions, found axis " +
                      value_or_type(&json));
      return;
    }
    state.axis = axis;
  }

  /// Nobody reads a tensor of the chain after the node that overwrites it.
  void check_reads(const State& state) {
    const std::vector<TensorId> chain = chain_in_place(graph_, state);
    for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
      const NodeId writer = graph_.tensor(chain[i]).producer;
      const Node& write = graph_.node(writer);
      const TensorInfo& operand = graph_.tensor(chain[i + 1]);
      const auto late =
          std::upper_bound(operand.consumers.begin(), operand.consumers.end(), writer);
      if (late == operand.consumers.end()) continue;
      const Node& reader = graph_.node(*late);
      faults_.add(at_, told(state) + " is read by '" + reader.name + "' after '" + write.name +
                           "' has written it; let it read '" + graph_.tensor(chain[i]).name + "'");
    }
  }

  const Graph& graph_;
  FieldFaults faults_;
  std::string at_;  // of the entry that is read
  std::set<std::string> names_;
  std::set<TensorId> tensors_;
};

}  // namespace

std::vector<State> read_states(const Graph& graph, Diagnostics& diagnostics) {
  const Json* json = graph.npu_member("states");
  if (json == nullptr) return {};
  return StatesReader(graph, diagnostics).read(*json);
}

Json states_json(const std::vector<State>& states) {
  Json list = Json::array();
  for (const State& state : states) {
    Json entry = {{"name", state.name}};
    if (!state.input.empty()) entry["input"] = state.input;
    if (!state.output.empty()) entry["output"] = state.output;
    if (state.axis) entry["axis"] = *state.axis;
    list.push_back(std::move(entry));
  }
  return list;
}

void store_states(Graph& graph, const std::vector<State>& states) {
  if (states.empty()) {
    graph.erase_npu_member("states");
  } else {
    graph.set_npu_member("states", states_json(states));
  }
}

bool overwrites_in_part(std::string_view op_type) noexcept {
  static constexpr std::array<std::string_view, 9> kOps{
      "aten.index_copy.default",
      "aten.index_put.default",
      "aten.scatter.src",
      "aten.scatter.value",
      "aten.select_scatter.default",
      "aten.slice_scatter.default",
      "npu.tail",
      "aten.scatter.reduce",
      "aten.scatter.value_reduce",
  };
  return std::find(kOps.begin(), kOps.end(), op_type) != kOps.end();
}

std::vector<TensorId> chain_in_place(const Graph& graph, const State& state) {
  const TensorId input = graph.find_tensor(state.input);
  TensorId at = graph.find_tensor(state.output);
  if (!input.valid() || !at.valid()) return {};
  std::vector<TensorId> chain{at};
  while (at != input) {
    const TensorInfo& tensor = graph.tensor(at);
    if (!tensor.producer.valid()) return {};
    const Node& node = graph.node(tensor.producer);
    if (!overwrites_in_part(node.op_type) || node.inputs.empty()) return {};
    at = node.inputs.front();
    chain.push_back(at);
  }
  return chain;
}

}  // namespace npu
