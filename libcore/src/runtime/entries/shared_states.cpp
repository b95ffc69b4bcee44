// SPDX-License-Identifier: Apache-2.0
// States that documents share: an encoder writes what a decoder reads, each in a document of its
// own. All that they have in common are names, so each name has to be one tensor, and something has
// to write what is read: a state that nothing writes would be zero for good, and a model that reads
// it would go on and compute nonsense.
#include "runtime/entries/shared_states.hpp"

#include <map>
#include <string_view>

#include "ir/states_section.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// What is known of one state.
struct KnownState {
  const EntryWithStates* first = nullptr;  ///< the entry that named it first
  const TensorInfo* tensor = nullptr;      ///< its input or output there
  const EntryWithStates* reader = nullptr;
  const EntryWithStates* writer = nullptr;
};

const TensorInfo& tensor_of(const Graph& graph, const State& state) {
  return graph.tensor(graph.find_tensor(state.input.empty() ? state.output : state.input));
}

std::string type_text(const TensorInfo& tensor) {
  return std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape);
}

std::string told(std::string_view name) { return "'" + short_text(name) + "'"; }

/// "; states that are written: 'a', 'b'", for a name that may be misspelt.
std::string written_text(const std::map<std::string, KnownState>& states) {
  std::string text;
  for (const auto& [name, state] : states) {
    if (state.writer != nullptr) text += (text.empty() ? "" : ", ") + told(name);
  }
  return text.empty() ? "; no state is written" : "; states that are written: " + text;
}

}  // namespace

void check_shared_states(const std::vector<EntryWithStates>& entries, Diagnostics& diagnostics) {
  std::map<std::string, KnownState> known;
  for (const EntryWithStates& entry : entries) {
    const std::size_t before = diagnostics.error_count();
    const std::vector<State> states = read_states(entry.graph, diagnostics);
    if (diagnostics.error_count() != before) return;
    for (const State& state : states) {
      const TensorInfo& tensor = tensor_of(entry.graph, state);
      KnownState& shared = known[state.name];
      if (shared.first == nullptr) {
        shared.first = &entry;
        shared.tensor = &tensor;
      } else if (tensor.dtype != shared.tensor->dtype || tensor.shape != shared.tensor->shape) {
        diagnostics.error({.file = entry.graph.file},
                          "entry " + told(entry.name) + ": state " + told(state.name) + " is " +
                              type_text(tensor) + ", expected " + type_text(*shared.tensor) +
                              " as in entry " + told(shared.first->name));
      }
      if (!state.input.empty() && shared.reader == nullptr) shared.reader = &entry;
      if (!state.output.empty() && shared.writer == nullptr) shared.writer = &entry;
    }
  }
  for (const auto& [name, state] : known) {
    if (state.writer == nullptr) {
      diagnostics.error({.file = state.reader->graph.file},
                        "entry " + told(state.reader->name) + " reads the state " + told(name) +
                            ", which no entry writes" + written_text(known));
    } else if (state.reader == nullptr) {
      diagnostics.warning({.file = state.writer->graph.file},
                          "entry " + told(state.writer->name) + " writes the state " + told(name) +
                              ", which no entry reads");
    }
  }
}

}  // namespace npu
