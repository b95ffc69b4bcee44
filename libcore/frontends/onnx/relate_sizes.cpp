// SPDX-License-Identifier: Apache-2.0
// Finds out which symbolic dimensions of a model are one size, or follow from others. Exporters of
// today name them one by one: s18, s2 and s74 for the lengths of caches that are concatenated with
// what is s70 long, s53 for the mask of the sum.
//
// Walks over the nodes once, with shapes, the elements of small integer tensors and bounds of
// indices as expressions over the symbols, as far as they are known: what an op here does not say
// is unknown, or what the model states. Ops whose operands must agree give equations (SizeSolver).
// Of an If whose condition is frozen the branch is entered, other bodies and functions are not. It
// only fills in what has no value: whether a model is right for its sizes is for the import to say.
// O(nodes + attributes).
#include "relate_sizes.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unordered_map>

#include "size_rules.hpp"
#include "support/text.hpp"

namespace npu::onnx {
namespace {

constexpr std::size_t kMostOpen = 64;
constexpr int kDeepestBranch = 8;  // branches inside of each other

/// The branch that a node is, if it is an If by a frozen input; null for others.
const GraphProto* branch_of(const NodeProto& node, const Settings& settings) {
  if (node.op_type != "If" || !own_domain(node.domain).empty() || node.inputs.size() != 1) {
    return nullptr;
  }
  const auto condition = settings.frozen.find(std::string(node.inputs[0]));
  if (condition == settings.frozen.end() || condition->second.dtype() != DType::kBool ||
      condition->second.element_count() != 1) {
    return nullptr;
  }
  const bool is_true = *condition->second.as<std::uint8_t>() != 0;
  for (const AttributeProto& attribute : node.attributes) {
    if (attribute.name == (is_true ? "then_branch" : "else_branch")) return attribute.graph.get();
  }
  return nullptr;
}

/// Runs the nodes of a graph, and of branches that are chosen in it.
void run_nodes(const GraphProto& graph, const Settings& settings, SizeRules& rules, int depth) {
  for (const OnnxTensor& tensor : graph.initializers) rules.add_constant(tensor.name, tensor);
  for (const ValueProto& value : graph.values) rules.add_statement(value);
  for (const ValueProto& value : graph.outputs) rules.add_statement(value);
  for (const NodeProto& node : graph.nodes) {
    const GraphProto* branch = depth < kDeepestBranch ? branch_of(node, settings) : nullptr;
    if (branch == nullptr) {
      rules.run(node);
      continue;
    }
    run_nodes(*branch, settings, rules, depth + 1);
    for (std::size_t i = 0; i < std::min(branch->outputs.size(), node.outputs.size()); ++i) {
      rules.rename(branch->outputs[i].name, node.outputs[i]);
    }
  }
}

}  // namespace

std::string SizeRelations::name_of(const ValueProto& input, std::size_t axis) {
  const DimProto& dim = input.dims[axis];
  return dim.symbol.empty() ? printable_text(input.name) + "." + std::to_string(axis)
                            : std::string(dim.symbol);
}

SizeRelations::SizeRelations(const ModelProto& model, std::string_view bytes,
                             const Settings& settings) {
  for (const OnnxTensor& tensor : model.graph.initializers) constants_.insert(tensor.name);
  // Every name once; those that are bound are numbers from the start.
  std::vector<std::string> names;
  std::map<std::string, UnboundSize> found;
  for (const ValueProto& input : model.graph.inputs) {
    if (constants_.contains(input.name) || settings.frozen.contains(std::string(input.name))) {
      continue;
    }
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
      if (input.dims[axis].value.value_or(-1) >= 0) continue;
      const std::string name = name_of(input, axis);
      const std::string what =
          "dimension " + std::to_string(axis) + " of input '" + short_text(input.name) + "'";
      if (found.emplace(name, UnboundSize{short_text(name), what}).second) names.push_back(name);
    }
  }
  std::vector<std::string> symbols;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto bound = settings.bindings.find(names[i]);
    sizes_.emplace(names[i], bound != settings.bindings.end() && bound->second >= 0
                                 ? SizeExpression(bound->second)
                                 : SizeExpression::symbol(symbol(i)));
    symbols.push_back(symbol(i));
  }
  SizeSolver solver(std::move(symbols));
  if (names.size() <= kMostOpen) relate(model, bytes, settings, solver);
  std::set<std::string> left;
  for (auto& [name, size] : sizes_) {
    size = solver.current(size);
    left.merge(size.symbols());
  }
  // Symbols are numbered anew, in the order of open(); at once, since old and new numbers overlap.
  SizeSubstitution renamed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!left.contains(symbol(i))) continue;
    renamed.emplace(symbol(i), SizeExpression::symbol(symbol(open_.size())));
    open_.push_back(found.at(names[i]));
    most_.push_back(solver.most(symbol(i)));
  }
  for (auto& [name, size] : sizes_) size = size.substitute(renamed);
}

void SizeRelations::relate(const ModelProto& model, std::string_view bytes,
                           const Settings& settings, SizeSolver& solver) {
  const GraphProto& graph = model.graph;
  SizeSubstitution known;
  for (const auto& [name, size] : sizes_) {
    if (is_size_symbol(name)) known.emplace(name, size);
  }
  SizeRules rules(bytes, solver, known);
  for (const auto& [name, size] : sizes_) {
    // A name may itself say what it is: past_sequence_length + sequence_length.
    if (settings.bindings.contains(name)) continue;
    if (const Dim stated = rules.stated(name)) solver.equate(size, *stated);
  }
  for (const ValueProto& input : graph.inputs) {
    if (constants_.contains(input.name)) continue;
    const auto frozen = settings.frozen.find(std::string(input.name));
    if (frozen != settings.frozen.end()) {
      const Shape& shape = frozen->second.shape();
      rules.add_value(input.name, {shape.begin(), shape.end()});
      continue;
    }
    if (!input.has_shape) continue;
    std::vector<Dim> dims;
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
      const auto& value = input.dims[axis].value;
      dims.emplace_back(value.value_or(-1) >= 0 ? SizeExpression(*value)
                                                : sizes_.at(name_of(input, axis)));
    }
    rules.add_value(input.name, std::move(dims));
  }
  run_nodes(graph, settings, rules, 0);
  solver.settle();
}

std::optional<SizeExpression> SizeRelations::size(const std::string& name) const {
  const auto size = sizes_.find(name);
  return size != sizes_.end() ? std::optional(size->second) : std::nullopt;
}

std::optional<std::int64_t> SizeRelations::number(const std::string& name) const {
  const auto known = size(name);
  return known ? known->constant() : std::nullopt;
}

}  // namespace npu::onnx
