// SPDX-License-Identifier: Apache-2.0
// Finds the caches of a decoder by what its graph does: an output that is the concatenation of a
// graph input and something else, along a dimension whose size is a symbol that no other part of
// the cache has. Names only decide what is told of outputs that look like one and are none.
// O(nodes + outputs).
#include "passes/states/cache_pairs.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "ops/op_name.hpp"
#include "passes/states/producers.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

/// The pair of an output that is a buffer with new rows in it.
std::optional<CachePair> buffer_of(const Template& model, const Json& node,
                                   const std::vector<std::string>& operands,
                                   const std::set<std::string>& inputs, const std::string& output) {
  const Json* attrs = member_object(node, "attrs");
  const auto dim = attrs == nullptr ? std::nullopt : member_integer(*attrs, "dim");
  if (operands.size() != 3 || !inputs.contains(operands[0]) || !dim) return std::nullopt;
  const SizeShape* past = model.shape(operands[0]);
  const auto rank = past == nullptr ? 0 : static_cast<std::int64_t>(past->size());
  if (*dim < -rank || *dim >= rank) return std::nullopt;
  const auto axis = static_cast<std::size_t>(*dim < 0 ? *dim + rank : *dim);
  if (!(*past)[axis].is_constant()) return std::nullopt;
  return CachePair{.input = operands[0],
                   .output = output,
                   .node = *member_text(node, "name"),
                   .index = operands[1],
                   .fresh = operands[2],
                   .axis = axis};
}

/// The pair of an output, if it is one.
std::optional<CachePair> pair_of(const Template& model, const Producers& producers,
                                 const std::set<std::string>& inputs, const std::string& output) {
  const Json* node = producers.find_behind_copies(output);
  if (node == nullptr) return std::nullopt;
  const std::string_view name = functional_name(*member_text(*node, "op_type"));
  const std::vector<std::string> operands = names_in(*node, "inputs");
  if (name == "index_copy") return buffer_of(model, *node, operands, inputs, output);
  if (name != "cat" && name != "concat") return std::nullopt;
  if (operands.size() != 2 || !inputs.contains(operands[0])) return std::nullopt;
  const SizeShape* past = model.shape(operands[0]);
  const SizeShape* whole = model.shape(output);
  if (past == nullptr || whole == nullptr || past->size() != whole->size()) return std::nullopt;
  std::optional<std::size_t> axis;
  for (std::size_t d = 0; d < past->size(); ++d) {
    if ((*past)[d] == (*whole)[d]) continue;
    if (axis) return std::nullopt;
    axis = d;
  }
  if (!axis || (*past)[*axis].is_constant()) return std::nullopt;
  return CachePair{.input = operands[0],
                   .output = output,
                   .node = *member_text(*node, "name"),
                   .index = {},
                   .fresh = operands[1],
                   .axis = *axis};
}

/// Of buffers of fixed size: the past is a number of its own, and a mask that has a size of its own
/// is as long as the past and the new rows.
void take_past_of_mask(const Template& model, const std::vector<std::string>& inputs,
                       CachePairs& caches) {
  caches.past_symbol = "past.rows";
  while (model.symbols().find(caches.past_symbol) != nullptr) caches.past_symbol += "_";
  caches.past = SizeExpression::symbol(caches.past_symbol);
  for (const std::string& name : inputs) {
    const SizeShape* shape = model.shape(name);
    if (shape == nullptr || shape->size() != 2 || name.find("mask") == std::string::npos) continue;
    const std::set<std::string> symbols = shape->back().symbols();
    if (symbols.size() != 1 || shape->back() != SizeExpression::symbol(*symbols.begin()) ||
        shape->back() == caches.fresh) {
      continue;
    }
    caches.substitution.emplace(*symbols.begin(), caches.used());
  }
}

bool is_called_cache(const std::string& name) {
  return name.starts_with("present") || name.find("past_key_values") != std::string::npos;
}

}  // namespace

std::vector<std::string> names_in(const Json& object, const char* list) {
  std::vector<std::string> names;
  const Json* mentions = member_list(object, list);
  for (std::size_t i = 0; mentions != nullptr && i < mentions->size(); ++i) {
    const std::string* name = member_text((*mentions)[i], "name");
    if (name != nullptr) names.push_back(*name);
  }
  return names;
}

std::vector<std::string> batch_symbols(const Template& model, const CachePairs& caches) {
  std::set<std::string> past;
  for (const CachePair& pair : caches.pairs) past.insert(pair.input);
  std::set<std::string> batches;
  for (const std::string& name : names_in(model.document(), "graph_inputs")) {
    const SizeShape* shape = model.shape(name);
    const bool has_batch = shape != nullptr && shape->size() > 1 && !past.contains(name);
    if (has_batch) batches.insert(shape->front().text());
  }
  std::vector<std::string> symbols;
  for (const CachePair& pair : caches.pairs) {
    const SizeShape& shape = *model.shape(pair.input);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d == pair.axis || (d != 0 && !batches.contains(shape[d].text()))) continue;
      for (const std::string& name : shape[d].symbols()) {
        if (std::find(symbols.begin(), symbols.end(), name) == symbols.end()) {
          symbols.push_back(name);
        }
      }
    }
  }
  return symbols;
}

std::optional<CachePairs> find_cache_pairs(const Template& model, const std::vector<State>& others,
                                           Diagnostics& diagnostics) {
  const Json& document = model.document();
  const Producers producers(document);
  const std::vector<std::string> inputs = names_in(document, "graph_inputs");
  const std::set<std::string> input_set(inputs.begin(), inputs.end());
  CachePairs caches;
  const auto refuse = [&](const std::string& text) {
    diagnostics.error({.file = model.file()}, text);
    return std::nullopt;
  };
  std::set<std::string> taken;
  for (const std::string& output : names_in(document, "graph_outputs")) {
    const bool is_other = std::any_of(others.begin(), others.end(),
                                      [&](const State& state) { return state.output == output; });
    if (is_other) continue;
    auto pair = pair_of(model, producers, input_set, output);
    if (!pair) {
      if (!is_called_cache(output)) continue;
      const Json* node = producers.find_behind_copies(output);
      return refuse(
          "output '" + short_text(output) + "' is no concatenation of an input and new rows" +
          (node == nullptr ? std::string()
                           : ": node '" + short_text(*member_text(*node, "name")) + "' ('" +
                                 *member_text(*node, "op_type") + "') gives it") +
          "; if a step replaces it as a whole, say so with --state INPUT=" + short_text(output));
    }
    if (!taken.insert(pair->input).second) {
      return refuse("input '" + short_text(pair->input) + "' is the past of two outputs, '" +
                    short_text(output) + "' among them");
    }
    const SizeExpression past = (*model.shape(pair->input))[pair->axis];
    const SizeExpression total = (*model.shape(output))[pair->axis];
    const bool is_fixed = !pair->index.empty();
    const SizeShape* rows = model.shape(pair->fresh);
    const SizeExpression fresh = is_fixed && rows != nullptr && pair->axis < rows->size()
                                     ? (*rows)[pair->axis]
                                     : total - past;
    if (caches.pairs.empty()) {
      caches.past = past;
      caches.total = total;
      caches.fresh = fresh;
      caches.is_fixed = is_fixed;
    }
    if (past != caches.past || total != caches.total || fresh != caches.fresh ||
        is_fixed != caches.is_fixed) {
      return refuse("caches '" + short_text(caches.pairs.front().output) + "' and '" +
                    short_text(output) + "' have " + caches.total.text() + " and " + total.text() +
                    " rows, expected one number");
    }
    caches.pairs.push_back(*std::move(pair));
  }
  if (caches.pairs.empty()) {
    return refuse(
        "no output is the concatenation of an input and new rows along a size that "
        "varies, as a cache is; what a step replaces as a whole is named by --state INPUT=OUTPUT, "
        "without --states");
  }
  if (caches.is_fixed) {
    take_past_of_mask(model, inputs, caches);
    return caches;
  }
  const std::set<std::string> symbols = caches.past.symbols();
  if (symbols.size() != 1 || caches.past != SizeExpression::symbol(*symbols.begin())) {
    return refuse("the past of '" + short_text(caches.pairs.front().input) + "' has " +
                  caches.past.text() + " rows, expected a size of its own");
  }
  caches.past_symbol = *symbols.begin();
  if (caches.fresh.symbols().contains(caches.past_symbol)) {
    return refuse("cache '" + short_text(caches.pairs.front().output) + "' has " +
                  caches.total.text() + " rows, expected " + caches.past_symbol +
                  " and the new ones");
  }
  return caches;
}

}  // namespace npu::states
