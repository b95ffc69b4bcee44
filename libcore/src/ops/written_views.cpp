// SPDX-License-Identifier: Apache-2.0
// Finds what in-place nodes would change in PyTorch besides their own operand.
//
// Views of a tensor are a tree: each node of it is a view of the one above, of all of its elements
// or of some. What is written has elements in common with every tensor above it, with views of one
// above that have all of its elements, and, if it has all elements itself, with all of its views.
// Whether two views of some elements overlap is not looked at: chunks usually do not. The operand
// itself may be read again, as npu-ir(5) says, and the result is a new value, so a tree of its own.
//
// What copies where strides do not allow a view (reshape of a transposed tensor) is a copy here.
// O(nodes) if nothing is written in place.
#include "ops/written_views.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "npu/support/ids.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostViews = 4096;    // of a tensor, that one write looks at
constexpr std::size_t kMostWarnings = 100;  // as many say what the others would

template <std::size_t kCount>
bool is_one_of(std::string_view name, const std::array<std::string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether the node writes elements, not only sizes or strides.
bool writes(const Graph& graph, const Node& node) {
  if (!is_in_place(node.op_type) || node.inputs.empty()) return false;
  constexpr std::array<std::string_view, 12> kChangeNoElements{
      "as_strided", "detach", "rename",   "requires_grad", "resize",    "squeeze",
      "swapaxes",   "t",      "swapdims", "transpose",     "unsqueeze", "set"};
  if (is_one_of(functional_name(node.op_type), kChangeNoElements)) return false;
  return !is_alias_node(graph, node);  // a dropout that is not training
}

/// Whether it copies what does not lie in order.
bool copies_others(std::string_view name) {
  constexpr std::array<std::string_view, 4> kCopies{"reshape", "reshape_as", "flatten",
                                                    "contiguous"};
  return is_one_of(name, kCopies);
}

/// How a tensor is a view of another one.
struct View {
  TensorId base;            ///< invalid: it is none
  bool has_all = true;      ///< elements of the base
  bool is_in_order = true;  ///< row-major and without gaps
};

class ViewTrees {
 public:
  explicit ViewTrees(const Graph& graph)
      : graph_(graph), views_(graph.tensors().size()), views_of_(graph.tensors().size()) {}

  void add(const Node& node) {
    if (node.inputs.empty() || !is_view(node)) return;
    const std::string_view name = functional_name(node.op_type);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const TensorId base = base_of(node, i);
      const bool in_order = views_[base].is_in_order;
      if (copies_others(name) && !in_order) continue;
      View view{base, elements_of(node.outputs[i]) >= elements_of(base), in_order};
      if (moves_dimensions(name) || (!view.has_all && !takes_first_dimension(node))) {
        view.is_in_order = false;
      }
      views_[node.outputs[i]] = view;
      views_of_[base].push_back(node.outputs[i]);
    }
  }

  /// Every tensor but the written one itself that has elements of it.
  std::vector<TensorId> changed_by_writing(TensorId written) const {
    std::vector<TensorId> changed;
    bool has_all = true;  // the written one, of the elements of `above`
    std::optional<TensorId> done;
    for (TensorId above = written; above.valid(); above = views_[above].base) {
      if (above != written) changed.push_back(above);
      add_views(above, has_all, done, changed);
      if (changed.size() > kMostViews) break;
      done = above;
      has_all = has_all && views_[above].has_all;
    }
    return changed;
  }

 private:
  std::int64_t elements_of(TensorId id) const {
    return checked_element_count(graph_.tensor(id).shape).value_or(0);
  }

  bool is_view(const Node& node) const {
    const std::string_view name = functional_name(node.op_type);
    // Of those in place only what changes no elements comes here.
    if (is_in_place(node.op_type)) return name != "resize" && name != "set";
    if (name == "cat" || name == "concat" || name.ends_with("pad") || name.ends_with("pad_nd")) {
      return false;  // which move data in PyTorch, even where they need not
    }
    return is_alias_node(graph_, node);
  }

  static TensorId base_of(const Node& node, std::size_t output) {
    if (node.op_type == kSetGradEnabled && output < node.inputs.size()) return node.inputs[output];
    if (node.op_type != kGetitem) return node.inputs.front();
    const auto count = static_cast<std::int64_t>(node.inputs.size());
    const Json* index = find_member(node.attrs(), "index");
    std::int64_t place = index != nullptr && index->is_number() ? index->get<std::int64_t>() : 0;
    if (place < 0) place += count;
    return node.inputs[index_of(std::clamp<std::int64_t>(place, 0, count - 1))];
  }

  static bool moves_dimensions(std::string_view name) {
    constexpr std::array<std::string_view, 9> kMoves{"t",        "transpose", "permute",
                                                     "movedim",  "swapaxes",  "numpy_T",
                                                     "diagonal", "unfold",    "expand"};
    return is_one_of(name, kMoves);
  }

  /// Rows that lie together, such as x[2:4].
  static bool takes_first_dimension(const Node& node) {
    const Json* dim = find_member(node.attrs(), "dim");
    const Json* step = find_member(node.attrs(), "step");
    return (dim == nullptr || *dim == 0) && (step == nullptr || *step == 1);
  }

  /// Views of `above` that are not below `done`: all of them, or those that have all elements.
  void add_views(TensorId above, bool all, std::optional<TensorId> done,
                 std::vector<TensorId>& changed) const {
    std::vector<TensorId> open{above};
    while (!open.empty() && changed.size() <= kMostViews) {
      const TensorId next = open.back();
      open.pop_back();
      for (const TensorId view : views_of_[next]) {
        if (view == done || !(all || views_[view].has_all)) continue;
        changed.push_back(view);
        open.push_back(view);
      }
    }
  }

  const Graph& graph_;
  IdVector<TensorId, View> views_;
  IdVector<TensorId, std::vector<TensorId>> views_of_;
};

class Finder {
 public:
  Finder(const Graph& graph, Diagnostics& diagnostics)
      : graph_(graph),
        diagnostics_(diagnostics),
        trees_(graph),
        writer_of_(graph.tensors().size()),
        warned_(graph.nodes().size(), 0) {}

  void run() {
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
      const Node& node = graph_.node(id);
      // The first operand of a scatter is what the written elements are put back into.
      const bool puts_back = base_name(node.op_type).ends_with("_scatter");
      for (std::size_t i = puts_back ? 1 : 0; i < node.inputs.size(); ++i)
        read(node.inputs[i], "node '" + node.name + "'");
      if (writes(graph_, node)) {
        write(id);
      } else {
        trees_.add(node);
      }
      if (count_ >= kMostWarnings) return;
    }
    for (const TensorId output : graph_.graph_outputs()) read(output, "the model's output");
  }

 private:
  void write(NodeId id) {
    for (const TensorId changed : trees_.changed_by_writing(graph_.node(id).inputs.front())) {
      if (!writer_of_[changed].valid()) writer_of_[changed] = id;
    }
  }

  void read(TensorId id, const std::string& reader) {
    const NodeId writer = writer_of_[id];
    if (!writer.valid() || warned_[writer] != 0) return;
    warned_[writer] = 1;
    ++count_;
    const Node& node = graph_.node(writer);
    diagnostics_.warning(
        graph_.location(writer),
        "node '" + node.name + "' (" + node.op_type + ") writes into '" +
            graph_.tensor(node.inputs.front()).name + "', which shares its elements with '" +
            graph_.tensor(id).name + "', and " + reader +
            " reads that later: PyTorch would show it the change, here it sees none, since nodes "
            "are functional; what is to see it has to read the result of '" +
            node.name + "'");
  }

  const Graph& graph_;
  Diagnostics& diagnostics_;
  ViewTrees trees_;
  IdVector<TensorId, NodeId> writer_of_;  // the first that would change it
  IdVector<NodeId, char> warned_;
  std::size_t count_ = 0;
};

}  // namespace

void warn_of_written_views(const Graph& graph, Diagnostics& diagnostics) {
  const auto& nodes = graph.nodes();
  const bool has_any = std::any_of(nodes.begin(), nodes.end(),
                                   [](const Node& node) { return is_in_place(node.op_type); });
  if (has_any) Finder(graph, diagnostics).run();
}

}  // namespace npu
