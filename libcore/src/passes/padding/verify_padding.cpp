// SPDX-License-Identifier: Apache-2.0
// Checks npu.padding: what a document states of each tensor against the rule of the node that
// makes it.
//
// The proof is local: each rule says of one node that its result keeps the claim if its operands
// do, so one walk over the list is enough. What the valid parts may hold, and which tensors no
// input decides, is not stated, but found on the way. Knows nothing of how masks were placed.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <utility>

#include "passes/padding/pad_graph.hpp"
#include "passes/padding/row_rules.hpp"
#include "support/checked.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

using padding::NodeRule;
using padding::PaddedSizes;
using padding::PaddedTensor;
using padding::PaddingSection;
using padding::TailClass;
using padding::TensorSizes;
using padding::TensorTails;

/// What is wrong with a node that has not been rewritten; null if nothing but its needs may be.
const char* fault_without(padding::Rewriting rewriting) {
  switch (rewriting) {
    case padding::Rewriting::kMean:
      return "a mean over a padded size divides by the capacity";
    case padding::Rewriting::kVariance:
      return "a variance over a padded size counts the padding";
    case padding::Rewriting::kRowsFromEnd:
      return "its rows count from the end, where the padding is";
    case padding::Rewriting::kLastState:
      return "its last state, which is read, is that behind the padding";
    case padding::Rewriting::kIndices:
      return "its indices may count from the end, where the padding is";
    case padding::Rewriting::kAttentionMask:
      return "an attention over padded keys has no mask for them";
    case padding::Rewriting::kMovedRows:
      return "it joins or parts rows of padded sizes, and moves their padding among them";
    case padding::Rewriting::kConcatenated:
      return "what follows a padded size in it would stand behind the padding";
    case padding::Rewriting::kReflected:
      return "the rows behind its end reflect the padding";
    case padding::Rewriting::kResampled:
      return "its results lie between other rows of the operand for each size";
    case padding::Rewriting::kLastRow:
    case padding::Rewriting::kNone:
      break;
  }
  return nullptr;
}

class PaddingVerifier {
 public:
  PaddingVerifier(const Graph& graph, PaddingSection section, Diagnostics& diagnostics)
      : graph_(graph), section_(std::move(section)), diagnostics_(diagnostics), shapes_(graph) {}

  void run() {
    const std::size_t before = diagnostics_.error_count();
    sizes_ = PaddedSizes(section_.symbols);
    check_symbols();
    read_sizes();
    if (diagnostics_.error_count() != before) return;
    tails_.resize(graph_.tensors().size());
    for (const TensorId id : ids_of<TensorId>(graph_.tensors())) {
      if (graph_.tensor(id).kind != TensorKind::kResult) check_source(id);
    }
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) check_node(id);
    check_masks();
  }

 private:
  void error(const std::string& below, std::string text) {
    diagnostics_.error({.file = graph_.file, .pointer = "/npu/padding" + below}, std::move(text));
  }

  void check_symbols() {
    for (const padding::PaddedSymbol& symbol : section_.symbols) {
      // One with a single value pads nothing.
      if (symbol.min != symbol.capacity && !is_size_of_input(symbol.name)) {
        error("/symbols/" + pointer_token(symbol.name),
              "no dimension of a graph input is '" + symbol.name + "' in 'tensors'");
      }
      if (symbol.valid.empty()) continue;
      const TensorId id = graph_.find_tensor(symbol.valid);
      if (id.valid() && graph_.tensor(id).kind == TensorKind::kGraphInput &&
          graph_.tensor(id).dtype == DType::kInt64 && graph_.tensor(id).shape.empty()) {
        continue;
      }
      error(
          "/symbols/" + pointer_token(symbol.name) + "/valid",
          fmt::format("'{}' is no graph input that is an int64 scalar", short_text(symbol.valid)));
    }
  }

  // Else the size would be padded nowhere, and nothing would be proved.
  bool is_size_of_input(const std::string& name) const {
    return std::any_of(section_.tensors.begin(), section_.tensors.end(),
                       [&](const PaddedTensor& entry) {
                         const TensorId id = graph_.find_tensor(entry.name);
                         return entry.size.text() == name && id.valid() &&
                                graph_.tensor(id).kind == TensorKind::kGraphInput;
                       });
  }

  void read_sizes() {
    for (std::size_t i = 0; i < section_.tensors.size(); ++i) {
      const PaddedTensor& entry = section_.tensors[i];
      const std::string fault = size_fault(entry, i);
      if (!fault.empty()) {
        error("/tensors/" + std::to_string(i),
              fmt::format("tensor '{}': {}", short_text(entry.name), fault));
      }
    }
  }

  std::string size_fault(const PaddedTensor& entry, std::size_t index) {
    const TensorId id = graph_.find_tensor(entry.name);
    if (!id.valid()) return "the document has none of this name";
    const TensorInfo& tensor = graph_.tensor(id);
    if (entry.dim < 0 || index_of(entry.dim) >= tensor.shape.size()) {
      return fmt::format("it has no dimension {}", entry.dim);
    }
    if (tensor.kind == TensorKind::kWeight) return "it is a weight, which does not vary";
    for (const std::string& name : entry.size.symbols()) {
      if (sizes_.find(name) == nullptr) return fmt::format("size '{}' is not in symbols", name);
    }
    try {
      if (std::string fault = sizes_.fault(entry.size); !fault.empty()) {
        return fmt::format("size '{}' {}", short_text(entry.size.text()), fault);
      }
      const std::int64_t size = entry.size.evaluate(sizes_.capacities());
      if (size != tensor.shape[index_of(entry.dim)]) {
        return fmt::format("size '{}' is {} at the capacities, expected {}",
                           short_text(entry.size.text()), size, tensor.shape[index_of(entry.dim)]);
      }
    } catch (const Error& fault) {
      return fault.message();
    }
    if (entry.size.is_constant()) return "its size does not vary";
    if (!stated_.try_emplace({id, entry.dim}, index).second) return "it is stated twice";
    shapes_.set(id, index_of(entry.dim), entry.size);
    return {};
  }

  // What is stated is taken over, once it is found to be what the rules give.
  void take(TensorId id, TensorTails tails) {
    const SizeShape& shape = shapes_.of(id);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].is_constant()) continue;
      const std::size_t index = stated_.at({id, static_cast<std::int64_t>(d)});
      const TailClass& stated = section_.tensors[index].tail;
      if (stated.text() == tails.dims[d].text()) continue;
      error(
          "/tensors/" + std::to_string(index) + "/3",
          fmt::format("tensor '{}' is stated as {} along dimension {}, but is {}",
                      short_text(graph_.tensor(id).name), stated.text(), d, tails.dims[d].text()));
    }
    tails_[id] = std::move(tails);
  }

  void check_source(TensorId id) { take(id, padding::source_tails(graph_.tensor(id))); }

  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    NodeRule rule = padding::rule_of_node(graph_, node, sizes_, shapes_, tails_);
    const auto varies = [&](TensorId tensor) { return shapes_.varies(tensor); };
    const bool is_varying = std::any_of(node.inputs.begin(), node.inputs.end(), varies) ||
                            std::any_of(node.outputs.begin(), node.outputs.end(), varies);
    if (!rule.refusal.empty()) {
      if (is_varying) refuse(id, rule.refusal);
      rule = {};
      for (const TensorId input : node.inputs) {
        rule.value = std::max(rule.value, tails_[input].value);
      }
    } else {
      check_needs(id, node, rule);
    }
    std::vector<TensorTails> results = padding::result_tails(graph_, node, rule, shapes_, tails_);
    for (std::size_t r = 0; r < results.size(); ++r) take(node.outputs[r], std::move(results[r]));
  }

  void check_needs(NodeId id, const Node& node, const NodeRule& rule) {
    if (const char* why = fault_without(rule.rewriting); why != nullptr) refuse(id, why);
    for (const padding::TailNeed& need : rule.needs) {
      if (padding::is_met(need, node, tails_)) continue;
      std::string classes;
      for (const TailClass& wanted : need.accepted) {
        classes += (classes.empty() ? "" : " or ") + wanted.text();
      }
      const padding::Place& place = need.places.front();
      refuse(id, fmt::format("needs rows of class {} behind the valid ones along dimension {} of "
                             "operand {}",
                             classes, place.dim, place.operand));
    }
  }

  void refuse(NodeId id, const std::string& why) {
    diagnostics_.error(graph_.location(id),
                       fmt::format("node '{}': {}", short_text(graph_.node(id).name), why));
  }

  void check_masks() {
    const std::vector<padding::PaddingMask> found = padding::masks_of(graph_);
    std::int64_t bytes = 0;
    for (const padding::PaddingMask& mask : found) bytes = saturating_add(bytes, mask.bytes);
    if (found.size() != section_.masks.size()) {
      error("/masks", fmt::format("{} masks are stated, the document has {}", section_.masks.size(),
                                  found.size()));
    }
    for (std::size_t i = 0; i < std::min(found.size(), section_.masks.size()); ++i) {
      if (found[i] == section_.masks[i]) continue;
      error("/masks/" + std::to_string(i),
            fmt::format("it is not what the document has, node '{}'", short_text(found[i].node)));
    }
    if (section_.cut != bytes) {
      error("/cut", fmt::format("found {}, but the masks have {} bytes", section_.cut, bytes));
    }
    if (section_.flow > section_.cut) {
      error("/flow", fmt::format("found {}, more than the cut, {}", section_.flow, section_.cut));
    }
  }

  const Graph& graph_;
  const PaddingSection section_;
  Diagnostics& diagnostics_;
  PaddedSizes sizes_;
  TensorSizes shapes_;
  IdVector<TensorId, TensorTails> tails_;
  std::map<std::pair<TensorId, std::int64_t>, std::size_t> stated_;
};

}  // namespace

void verify_padding(const Graph& graph, Diagnostics& diagnostics) {
  if (graph.npu_member("padding") == nullptr) {
    diagnostics.error({.file = graph.file, .pointer = "/npu"},
                      "there is no certificate of padding, npu.padding; npu-align --bucket S=N "
                      "writes one");
    return;
  }
  auto section = PaddingSection::read(graph, diagnostics);
  if (section) PaddingVerifier(graph, *std::move(section), diagnostics).run();
}

std::string format_padding(const padding::PaddingSection& section) {
  std::string text;
  for (const padding::PaddedSymbol& symbol : section.symbols) {
    std::size_t tensors = 0;
    std::string last;
    for (const PaddedTensor& entry : section.tensors) {
      if (entry.name == last || !entry.size.symbols().contains(symbol.name)) continue;
      last = entry.name;
      ++tensors;
    }
    text += fmt::format("padding of {} proved for {}..{}: {} tensors, {} mask{}\n", symbol.name,
                        symbol.min, symbol.capacity, tensors, section.masks.size(),
                        section.masks.size() == 1 ? "" : "s");
  }
  return text;
}

}  // namespace npu
