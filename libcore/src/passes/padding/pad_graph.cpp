// SPDX-License-Identifier: Apache-2.0
// Pads a template: binds it at its capacities, and makes it right for every size up to them.
//
// Input:  a template, the largest value of each of its sizes.
// Output: a graph with masks and with the certificate npu.padding.
// Joined rows are kept apart. Then in rounds: what the rules say of the graph; nodes in another
// form; an output of one row, if that is wanted; masks by a minimum cut for rows of minus infinity,
// then for rows of 0; a mask in front of each need that is left. Every round looks at the whole
// graph, and the result is checked by verify_padding, which knows nothing of this.
// O(rounds x nodes), with at most a handful of rounds.
#include "passes/padding/pad_graph.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "ir/graph_editor.hpp"
#include "ir/mention_form.hpp"
#include "npu/ir/json_reader.hpp"
#include "ops/op_name.hpp"
#include "passes/padding/keep_rows_apart.hpp"
#include "passes/padding/place_masks.hpp"
#include "passes/padding/rewrite_rows.hpp"
#include "passes/padding/rows_from_end.hpp"
#include "passes/padding/sink_last_row.hpp"
#include "passes/padding/size_nodes.hpp"
#include "passes/padding/size_operands.hpp"
#include "support/checked.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace padding {
namespace {

// Attributes that say how many rows there are, which the sizes of results say, too.
constexpr std::string_view kShapeAttributes[] = {"end",   "length", "output_size", "repeats",
                                                 "shape", "size",   "sizes",       "split_sizes"};

// An attribute that says how many rows a pad puts in front of and behind each dimension.
constexpr std::string_view kAmounts = "pad";

constexpr int kMostRounds = 8;
constexpr int kMostTried = 4096;  // least sizes; behind them only the capacity is taken

class GraphPadder {
 public:
  GraphPadder(const Template& model, const SizeBindings& capacities, const PadOptions& options,
              Diagnostics& diagnostics)
      : model_(model), capacities_(capacities), options_(options), diagnostics_(diagnostics) {}

  /// `valid` are the symbols whose size is an input.
  PaddedGraph pad(const std::set<std::string>& valid) {
    sizes_ = PaddedSizes(symbols(valid));
    added_.clear();
    Json document = bound_document(model_, capacities_);
    const std::set<std::size_t> from_end = count_from_end(model_, document);
    for (const std::string& name : valid) {
      const std::string input = valid_input_name(name);
      document["graph_inputs"].push_back(tensor_mention(input, {}, DType::kInt64));
    }
    graph_ = assemble_graph(std::move(document), model_.file(), diagnostics_);
    if (diagnostics_.has_errors()) return {};
    write_size_operands(graph_, sizes_, shapes(), check_attributes(from_end), added_);
    if (diagnostics_.has_errors()) return {};
    keep_rows_apart(graph_, sizes_, shapes(), added_);
    for (int round = 0; round < kMostRounds; ++round) {
      if (!analyse() || !rewrite_rows(graph_, analysis_, sizes_, shapes(), added_)) break;
    }
    const bool has_last_row = cut_to_last_row();
    flow_ = 0;
    for (const Fill fill : {Fill::kLowest, Fill::kZero}) {
      if (diagnostics_.has_errors() || !analyse()) return {};
      insert(place_masks(graph_, analysis_, shapes(), fill));
    }
    for (int round = 0; round < kMostRounds && !diagnostics_.has_errors() && analyse(); ++round) {
      const MaskPlan rest = place_masks_at_needs(graph_, analysis_);
      if (rest.masks.empty()) break;
      insert(rest);
    }
    if (diagnostics_.has_errors()) return {};
    return {.graph = std::move(graph_), .padding = {}, .has_last_row = has_last_row};
  }

  /// Writes the certificate into a graph that pad() gave.
  void certify(PaddedGraph& padded) {
    graph_ = std::move(padded.graph);
    if (!analyse()) return;
    padded.padding = section();
    padded.graph = std::move(graph_);
    padded.graph.set_npu_member("padding", padded.padding.to_json());
    Diagnostics faults;
    verify_padding(padded.graph, faults);
    if (!faults.has_errors()) return;
    throw std::logic_error("a padded graph does not prove itself: " +
                           format_diagnostic(faults.entries().front()));
  }

  std::set<std::string> all_symbols() const {
    std::set<std::string> names;
    for (const SizeSymbol& symbol : model_.symbols().list()) names.insert(symbol.name);
    return names;
  }

  /// Those of the symbols whose input a node reads.
  std::set<std::string> read_symbols(const Graph& graph) const {
    std::set<std::string> names;
    for (const std::string& name : all_symbols()) {
      const TensorId id = graph.find_tensor(valid_input_name(name));
      if (id.valid() && !graph.tensor(id).consumers.empty()) names.insert(name);
    }
    return names;
  }

 private:
  std::vector<PaddedSymbol> symbols(const std::set<std::string>& valid) const {
    std::vector<PaddedSymbol> list;
    SizeRanges ranges;
    for (const auto& [name, capacity] : capacities_) ranges[name] = {0, capacity};
    auto of_results = sizes_by_symbol();
    for (const SizeSymbol& symbol : model_.symbols().list()) {
      const auto capacity = capacities_.find(symbol.name);
      if (capacity == capacities_.end()) continue;  // bound_document says what is missing
      PaddedSymbol padded{.name = symbol.name, .capacity = capacity->second};
      // No row can be repeated where there is none.
      padded.min = std::max<std::int64_t>(1, symbol.min.bounds(ranges).min);
      padded.multiple_of = symbol.multiple_of;
      if (const std::int64_t rest = padded.min % symbol.multiple_of; rest != 0) {
        padded.min += symbol.multiple_of - rest;
      }
      // Nor is there one where a part of them is left out, such as the first.
      const auto leaves_no_row = [&](const SizeExpression& size) {
        return size.evaluate({{symbol.name, padded.min}}) < 1;
      };
      const std::vector<SizeExpression>& sizes = of_results[symbol.name];
      for (int tried = 0; padded.min < padded.capacity && std::ranges::any_of(sizes, leaves_no_row);
           ++tried) {
        padded.min = tried < kMostTried ? padded.min + symbol.multiple_of : padded.capacity;
      }
      padded.min = std::min(padded.min, padded.capacity);
      if (valid.contains(symbol.name)) padded.valid = valid_input_name(symbol.name);
      list.push_back(std::move(padded));
    }
    return list;
  }

  // The sizes of results that follow from one symbol, by its name.
  std::map<std::string, std::vector<SizeExpression>> sizes_by_symbol() const {
    std::map<std::string, std::vector<SizeExpression>> sizes;
    const Json* nodes = member_list(model_.document(), "nodes");
    for (std::size_t n = 0; nodes != nullptr && n < nodes->size(); ++n) {
      const Json* outputs = member_list((*nodes)[n], "outputs");
      for (std::size_t i = 0; outputs != nullptr && i < outputs->size(); ++i) {
        const std::string* name = member_text((*outputs)[i], "name");
        const SizeShape* shape = name == nullptr ? nullptr : model_.shape(*name);
        if (shape == nullptr) continue;
        for (const SizeExpression& size : *shape) {
          if (size.is_constant()) continue;
          const std::set<std::string> found = size.symbols();
          if (found.size() != 1) continue;
          std::vector<SizeExpression>& list = sizes[*found.begin()];
          if (std::find(list.begin(), list.end(), size) == list.end()) list.push_back(size);
        }
      }
    }
    return sizes;
  }

  TensorSizes shapes() const {
    TensorSizes sizes(graph_);
    for (const TensorId id : ids_of<TensorId>(graph_.tensors())) {
      const TensorInfo& tensor = graph_.tensor(id);
      const auto added = added_.find(tensor.name);
      const SizeShape* shape = added != added_.end() ? &added->second : model_.shape(tensor.name);
      if (shape == nullptr || shape->size() != tensor.shape.size()) continue;
      for (std::size_t d = 0; d < shape->size(); ++d) {
        // One that is the same for all sizes is a number.
        if (!sizes_.same((*shape)[d], SizeExpression(tensor.shape[d]))) {
          sizes.set(id, d, (*shape)[d]);
        }
      }
    }
    return sizes;
  }

  // What the rules say of the graph as it is; false if they refuse it.
  bool analyse() {
    const std::size_t before = diagnostics_.error_count();
    const TensorSizes sizes = shapes();
    check_sizes(sizes);
    if (diagnostics_.error_count() == before) {
      analysis_ = infer_tails(graph_, sizes_, sizes, diagnostics_);
    }
    return diagnostics_.error_count() == before;
  }

  bool cut_to_last_row() {
    if (options_.last_row_of.empty() || diagnostics_.has_errors()) return false;
    const TensorId output = graph_.find_tensor(options_.last_row_of);
    if (!output.valid() || graph_.tensor(output).shape.size() < 2 || !analyse()) return false;
    return sink_last_row(graph_, output, 1, analysis_, sizes_, shapes(), added_);
  }

  void check_sizes(const TensorSizes& sizes) {
    for (const TensorId id : ids_of<TensorId>(graph_.tensors())) {
      for (const SizeExpression& size : sizes.of(id)) {
        if (size.is_constant()) continue;
        const std::string fault = sizes_.fault(size);
        if (fault.empty()) continue;
        diagnostics_.error(
            {.file = model_.file()},
            fmt::format("tensor '{}': size '{}' {}; narrow the range of npu.symbols",
                        short_text(graph_.tensor(id).name), short_text(size.text()), fault));
        return;
      }
    }
  }

  // A number that varies with a size is part of the values, unless it is the size of the result;
  // those that can be operands are returned. Those of nodes in `from_end` count from the end.
  SizeOperands check_attributes(const std::set<std::size_t>& from_end) {
    SizeOperands operands;
    const Json* nodes = member_list(model_.document(), "nodes");
    for (std::size_t n = 0; nodes != nullptr && n < nodes->size(); ++n) {
      const Json* attrs = member_object((*nodes)[n], "attrs");
      if (attrs == nullptr || from_end.contains(n)) continue;
      for (const auto& [key, value] : attrs->get_ref<const Json::object_t&>()) {
        if (std::ranges::find(kShapeAttributes, key) != std::end(kShapeAttributes) &&
            !is_part_of_values((*nodes)[n])) {
          continue;
        }
        const bool is_amount = key == kAmounts && value.is_array();
        const std::string size = is_amount ? varying_front(value) : varying_size(value);
        if (!size.empty()) {
          const std::string* name = member_text((*nodes)[n], "name");
          if (name != nullptr && can_be_operand((*nodes)[n], key)) {
            operands.emplace(*name, *model_.size_in_attrs(size));
            continue;
          }
          diagnostics_.error(
              {.file = model_.file(),
               .pointer = "/nodes/" + std::to_string(n) + "/attrs/" + pointer_token(key)},
              fmt::format("node '{}': attribute '{}' varies with '{}' other than as a shape",
                          name == nullptr ? "" : short_text(*name), short_text(key),
                          short_text(size)));
        }
      }
    }
    return operands;
  }

  // Of amounts in front of and behind rows, in pairs, those behind fill up to a size that may be
  // fixed; in front rows would move.
  std::string varying_front(const Json& amounts) const {
    for (std::size_t i = 0; i < amounts.size(); i += 2) {
      if (std::string size = varying_size(amounts[i]); !size.empty()) return size;
    }
    return {};
  }

  // The end of a linspace is a number like its start.
  static bool is_part_of_values(const Json& node) {
    const std::string* op = member_text(node, "op_type");
    const std::string_view name = op == nullptr ? std::string_view() : functional_name(*op);
    return name == "linspace" || name == "logspace";
  }

  std::string varying_size(const Json& value) const {
    if (value.is_array()) {
      for (const Json& element : value) {
        if (std::string size = varying_size(element); !size.empty()) return size;
      }
      return {};
    }
    const std::string* text = json_text(&value);
    const auto size = text == nullptr ? std::nullopt : model_.size_in_attrs(*text);
    if (!size) return {};
    const SizeExpression number(size->evaluate(sizes_.capacities()));
    return sizes_.same(*size, number) ? std::string() : size->text();
  }

  // ---- Masks ----

  using Wanted = std::vector<std::pair<std::int32_t, Fill>>;  // by dimension, in order

  void insert(const MaskPlan& plan) {
    if (plan.masks.empty()) return;
    flow_ = saturating_add(flow_, plan.flow);
    std::map<OperandUse, std::pair<TensorId, Wanted>> uses;
    for (const MaskPlace& mask : plan.masks) {
      for (const OperandUse& use : mask.readers) {
        uses[use].first = mask.tensor;
        uses[use].second.emplace_back(mask.dim, mask.fill);
      }
    }
    std::map<std::pair<TensorId, Wanted>, std::vector<OperandUse>> groups;
    for (auto& [use, wanted] : uses) groups[wanted].push_back(use);
    GraphEditor editor(graph_);
    SizeNodes nodes(graph_, sizes_, editor);
    const TensorSizes sizes = shapes();
    for (const auto& [wanted, readers] : groups) {
      insert_chain(editor, nodes, sizes, wanted.first, wanted.second, readers);
    }
    nodes.commit();
  }

  void insert_chain(GraphEditor& editor, SizeNodes& nodes, const TensorSizes& sizes, TensorId id,
                    const Wanted& wanted, const std::vector<OperandUse>& readers) {
    const TensorInfo& tensor = graph_.tensor(id);
    Json operand = mention_json(graph_, id, MentionForm::kAllButWeights);
    std::string name;
    for (const auto& [dim, fill] : wanted) {
      name = editor.unique_name(tensor.name + ":tail");
      Json node{{"name", name},
                {"op_type", "npu.tail"},
                {"inputs", Json::array({operand, nodes.value(sizes.of(id)[index_of(dim)])})},
                {"outputs", Json::array({tensor_mention(name, tensor.shape, tensor.dtype)})},
                {"attrs", {{"dim", dim}, {"fill", std::string(fill_name(fill))}}}};
      // In the order of the list, uses are by node.
      nodes.insert_before(readers.front().node, std::move(node));
      added_[name] = sizes.of(id);
      operand = tensor_mention(name, tensor.shape, tensor.dtype, {name, 0});
    }
    for (const OperandUse& use : readers) {
      editor.set_operand(use.node, index_of(use.operand), name, {name, 0});
    }
  }

  // ---- The certificate ----

  PaddingSection section() const {
    PaddingSection section;
    section.symbols = sizes_.symbols();
    const TensorSizes sizes = shapes();
    const auto add = [&](TensorId id) {
      const SizeShape& shape = sizes.of(id);
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (shape[d].is_constant()) continue;
        section.tensors.push_back({graph_.tensor(id).name, static_cast<std::int64_t>(d), shape[d],
                                   analysis_.tails[id].dims[d]});
      }
    };
    for (const TensorId id : graph_.graph_inputs()) add(id);
    for (const Node& node : graph_.nodes()) {
      for (const TensorId id : node.outputs) add(id);
    }
    section.masks = masks_of(graph_);
    for (const PaddingMask& mask : section.masks) {
      section.cut = saturating_add(section.cut, mask.bytes);
    }
    section.flow = flow_;
    return section;
  }

  const Template& model_;
  const SizeBindings& capacities_;
  const PadOptions& options_;
  Diagnostics& diagnostics_;
  PaddedSizes sizes_;
  AddedSizes added_;
  Graph graph_;
  PaddingAnalysis analysis_;
  std::int64_t flow_ = 0;
};

}  // namespace
}  // namespace padding

PaddedGraph pad_graph(const Template& model, const SizeBindings& capacities,
                      Diagnostics& diagnostics, const PadOptions& options) {
  padding::GraphPadder padder(model, capacities, options, diagnostics);
  PaddedGraph padded = padder.pad(padder.all_symbols());
  if (diagnostics.has_errors()) return {};
  // Sizes that no node reads are no inputs.
  const std::set<std::string> read = padder.read_symbols(padded.graph);
  if (read != padder.all_symbols()) padded = padder.pad(read);
  if (!diagnostics.has_errors()) padder.certify(padded);
  return padded;
}

}  // namespace npu
