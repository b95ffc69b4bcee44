// SPDX-License-Identifier: Apache-2.0
// Takes caches apart that are stacks: keys and values of a layer in one tensor, or those of all.
//
// Input:  a template with a graph input that is read part by part, where a part is what a constant
//         index takes of one dimension, and a graph output that is a stack of as many tensors.
// Output: the same with an input and an output for each part, which adoption knows.
// A step hands an output on as the input of the next one, so that part i of the output has to be
// made of part i of the input; a decoder that swaps them is left as it is. An input that is also
// read as a whole is, too. Stacks of stacks are taken apart at once. O(size).
#include "passes/states/plain/unstack_caches.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ops/op_name.hpp"
#include "passes/states/cache_pairs.hpp"
#include "passes/states/producers.hpp"
#include "passes/states/prune_document.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

/// What a constant index takes of a dimension.
struct Taken {
  std::size_t dim = 0;
  std::int64_t index = 0;
  bool operator==(const Taken&) const = default;
};

/// A part of an input or an output, by steps from the outside in.
struct Part {
  std::string root;
  std::vector<Taken> steps = {};
  bool is_open = false;  ///< the dimension of the last step is still there, of size 1
};
using Parts = std::map<std::string, Part>;

/// A tensor that is part of a stack.
struct Leaf {
  std::vector<Taken> steps;
  std::string tensor;
};

struct StackedCache {
  std::string input;
  std::string output;
  std::vector<Leaf> leaves;
  std::size_t depth() const { return leaves.front().steps.size(); }
};

SizeShape without(SizeShape shape, std::size_t dim) {
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  return shape;
}

SizeShape with_one(SizeShape shape, std::size_t dim) {
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), SizeExpression(1));
  return shape;
}

/// The dimension of size 1 that a shape has more than another.
std::optional<std::size_t> one_between(const SizeShape& more, const SizeShape& less) {
  for (std::size_t dim = 0; dim < more.size(); ++dim) {
    if (more[dim] == SizeExpression(1) && without(more, dim) == less) return dim;
  }
  return std::nullopt;
}

std::optional<std::size_t> dim_of(const Json& node, std::size_t rank) {
  const Json* attrs = member_object(node, "attrs");
  const bool is_stated = attrs != nullptr && find_member(*attrs, "dim") != nullptr;
  const auto stated = is_stated ? member_integer(*attrs, "dim") : std::optional<std::int64_t>(0);
  const auto size = static_cast<std::int64_t>(rank);
  if (!stated || *stated < -size || *stated >= size) return std::nullopt;
  return static_cast<std::size_t>(*stated < 0 ? *stated + size : *stated);
}

/// "0.1"
std::string indices(const std::vector<Taken>& steps) {
  std::string text;
  for (const Taken& step : steps) text += (text.empty() ? "" : ".") + std::to_string(step.index);
  return text;
}

class Unstacker {
 public:
  explicit Unstacker(const Template& model) : model_(model), producers_(model.document()) {
    for (const std::string& name : names_in(model.document(), "graph_inputs")) {
      parts_[name] = {.root = name};
    }
    for (const Json& node : nodes()) follow(node, parts_);
  }

  std::optional<Json> run(const std::vector<State>& others, std::vector<std::string>& reasons) {
    std::set<std::string> inputs;
    for (const std::string& output : names_in(model_.document(), "graph_outputs")) {
      const bool is_other = std::any_of(others.begin(), others.end(),
                                        [&](const State& state) { return state.output == output; });
      if (is_other) continue;
      auto found = stacked_cache(output, reasons);
      if (!found) continue;
      if (!inputs.insert(found->input).second) {
        reasons.push_back("input '" + short_text(found->input) + "' is the past of two outputs, '" +
                          short_text(output) + "' among them");
        return std::nullopt;
      }
      caches_.push_back(*std::move(found));
    }
    if (caches_.empty()) return std::nullopt;
    return written();
  }

 private:
  const Json& nodes() const { return *member_list(model_.document(), "nodes"); }
  SizeShape shape(const std::string& tensor) const {
    const SizeShape* stated = model_.shape(tensor);
    return stated == nullptr ? SizeShape() : *stated;
  }

  // ---- Parts of inputs ----

  /// Adds what a node gives of parts that are known.
  void follow(const Json& node, Parts& parts) const {
    const std::vector<std::string> operands = names_in(node, "inputs");
    const std::vector<std::string> results = names_in(node, "outputs");
    if (operands.empty() || results.empty()) return;
    const std::string& op = *member_text(node, "op_type");
    if (op == kGetitem) {
      const Json* attrs = member_object(node, "attrs");
      const auto index = attrs == nullptr ? -1 : member_integer(*attrs, "index").value_or(-1);
      if (index < 0 || index >= std::ssize(operands)) return;
      const auto from = parts.find(operands[static_cast<std::size_t>(index)]);
      if (from != parts.end()) parts[results[0]] = Part(from->second);
      return;
    }
    const auto from = parts.find(operands[0]);
    if (from == parts.end() || operands.size() != 1) return;
    const Part part = from->second;
    const std::string_view name = functional_name(op);
    if (is_copy(name)) {
      parts[results[0]] = part;
    } else if (part.is_open) {
      close(node, part, parts);
    } else if (is_view(name)) {
      const auto one = one_between(shape(operands[0]), shape(results[0]));
      if (!one) return;
      Part& taken = parts[results[0]] = part;
      taken.steps.push_back({*one, 0});
    } else if (name == "select" || name == "slice") {
      take(node, part, parts);
    } else if (results.size() > 1) {
      split(node, part, parts);
    }
  }

  /// What takes the dimension of size 1 away.
  void close(const Json& node, Part part, Parts& parts) const {
    const SizeShape from = shape(names_in(node, "inputs")[0]);
    const std::string result = names_in(node, "outputs")[0];
    const std::string_view name = functional_name(*member_text(node, "op_type"));
    const std::size_t dim = part.steps.back().dim;
    const bool is_taken = name == "select" && dim_of(node, from.size()) == dim;
    if (dim >= from.size()) return;
    if ((!is_view(name) && !is_taken) || shape(result) != without(from, dim)) return;
    part.is_open = false;
    parts[result] = std::move(part);
  }

  /// A select, or a slice of one.
  void take(const Json& node, Part part, Parts& parts) const {
    const SizeShape from = shape(names_in(node, "inputs")[0]);
    const Json* attrs = member_object(node, "attrs");
    const auto dim = dim_of(node, from.size());
    const auto size = dim ? from[*dim].constant() : std::nullopt;
    if (!size || attrs == nullptr) return;
    const auto number = [&](const char* key, std::int64_t otherwise) {
      const Json* value = find_member(*attrs, key);
      if (value == nullptr || value->is_null()) return std::optional(otherwise);
      auto stated = json_integer(value);
      if (stated && *stated < 0) *stated += *size;
      return stated;
    };
    part.is_open = functional_name(*member_text(node, "op_type")) == "slice";
    const auto index = number(part.is_open ? "start" : "index", part.is_open ? 0 : -1);
    if (!index || *index < 0 || *index >= *size) return;
    if (part.is_open) {
      const auto end = number("end", *size);
      if (!end || std::min(*end, *size) != *index + 1) return;
    }
    part.steps.push_back({*dim, *index});
    const std::string result = names_in(node, "outputs")[0];
    SizeShape taken = without(from, *dim);
    if (part.is_open) taken = with_one(taken, *dim);
    if (shape(result) == taken) parts[result] = std::move(part);
  }

  /// A split in which each part has size 1, or an unbind.
  void split(const Json& node, const Part& part, Parts& parts) const {
    static const std::set<std::string_view> kSplits = {"split", "split_with_sizes", "chunk",
                                                       "tensor_split", "unbind"};
    const std::string_view name = functional_name(*member_text(node, "op_type"));
    const SizeShape from = shape(names_in(node, "inputs")[0]);
    const std::vector<std::string> results = names_in(node, "outputs");
    const auto dim = dim_of(node, from.size());
    if (!kSplits.contains(name) || !dim || from[*dim].constant() != std::ssize(results)) return;
    SizeShape each = without(from, *dim);
    if (name != "unbind") each = with_one(each, *dim);
    for (const std::string& result : results) {
      if (shape(result) != each) return;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      Part& taken = parts[results[i]] = part;
      taken.steps.push_back({*dim, static_cast<std::int64_t>(i)});
      taken.is_open = name != "unbind";
    }
  }

  // ---- Stacks ----

  /// What a tensor is a stack of, along which dimension; nothing if it is none.
  std::vector<std::string> stacked(const std::string& tensor, std::size_t& along) const {
    const Json* node = producers_.find_behind_copies(tensor);
    if (node == nullptr) return {};
    const std::string_view name = functional_name(*member_text(*node, "op_type"));
    const SizeShape whole = shape(tensor);
    std::vector<std::string> operands = names_in(*node, "inputs");
    if (is_view(name) && operands.size() == 1) {
      const auto one = one_between(whole, shape(operands[0]));
      if (!one) return {};
      along = *one;
      return operands;
    }
    const auto dim = dim_of(*node, whole.size());
    if (!dim) return {};
    along = *dim;
    if (name == "stack") {
      const bool are_parts = std::all_of(operands.begin(), operands.end(), [&](const auto& of) {
        return shape(of) == without(whole, *dim);
      });
      return are_parts ? operands : std::vector<std::string>();
    }
    if (name != "cat" && name != "concat") return {};
    for (std::string& operand : operands) {
      const Json* view = producers_.find_behind_copies(operand);
      const SizeShape seen = shape(operand);
      if (view == nullptr || !is_view(functional_name(*member_text(*view, "op_type")))) return {};
      const std::vector<std::string> of = names_in(*view, "inputs");
      const bool is_one = seen.size() == whole.size() && seen[*dim] == SizeExpression(1);
      if (!is_one || of.size() != 1 || shape(of[0]) != without(seen, *dim)) return {};
      operand = of[0];
    }
    return operands;
  }

  void add_leaves(const std::string& tensor, const std::vector<Taken>& steps,
                  std::vector<Leaf>& leaves) const {
    constexpr std::size_t kDeepest = 4;
    std::size_t dim = 0;
    const auto of = steps.size() < kDeepest ? stacked(tensor, dim) : std::vector<std::string>();
    if (of.empty()) leaves.push_back({steps, tensor});
    for (std::size_t i = 0; i < of.size(); ++i) {
      std::vector<Taken> below = steps;
      below.push_back({dim, static_cast<std::int64_t>(i)});
      add_leaves(of[i], below, leaves);
    }
  }

  /// What new rows are put behind, or into, perhaps turned (straighten_caches).
  const Part* past_of(const std::string& tensor) const {
    const Json* node = behind_turn(tensor);
    if (node == nullptr) return nullptr;
    const std::string_view name = functional_name(*member_text(*node, "op_type"));
    if (name != "cat" && name != "concat" && name != "index_copy") return nullptr;
    const std::string past = first_operand(*node);
    const auto found = parts_.find(past);
    if (found != parts_.end()) return &found->second;
    const Json* turn = producers_.find(past);
    if (turn == nullptr || !is_turn(*turn)) return nullptr;
    const auto turned = parts_.find(first_operand(*turn));
    return turned == parts_.end() ? nullptr : &turned->second;
  }
  const Json* behind_turn(const std::string& tensor) const {
    const Json* node = producers_.find_behind_copies(tensor);
    if (node == nullptr || !is_turn(*node)) return node;
    return producers_.find(first_operand(*node));
  }
  static std::string first_operand(const Json& node) {
    const std::vector<std::string> operands = names_in(node, "inputs");
    return operands.empty() ? std::string() : operands[0];
  }
  static bool is_turn(const Json& node) {
    const std::string_view name = functional_name(*member_text(node, "op_type"));
    return name == "permute" || name == "transpose";
  }

  std::optional<StackedCache> stacked_cache(const std::string& output,
                                            std::vector<std::string>& reasons) const {
    StackedCache cache{.input = {}, .output = output, .leaves = {}};
    add_leaves(output, {}, cache.leaves);
    if (cache.leaves.empty() || cache.depth() == 0) return std::nullopt;
    const std::vector<std::string> outputs = names_in(model_.document(), "graph_outputs");
    std::set<std::string> tensors(outputs.begin(), outputs.end());
    for (const Leaf& leaf : cache.leaves) {
      if (past_of(leaf.tensor) == nullptr || leaf.steps.size() != cache.depth() ||
          !tensors.insert(leaf.tensor).second) {
        return std::nullopt;
      }
    }
    cache.input = past_of(cache.leaves.front().tensor)->root;
    std::string reason = other_part(cache);
    if (reason.empty()) reason = other_size(cache);
    if (reason.empty()) reason = other_reader(cache);
    if (reason.empty()) return cache;
    reasons.push_back("output '" + short_text(output) + "' stays a stack of caches: " + reason);
    return std::nullopt;
  }

  /// Says which part is made of anything else than the same part of the input.
  std::string other_part(const StackedCache& cache) const {
    for (const Leaf& leaf : cache.leaves) {
      const Part& past = *past_of(leaf.tensor);
      if (past.root == cache.input && past.steps == leaf.steps && !past.is_open) continue;
      const std::string place = indices(past.steps);
      return "part " + indices(leaf.steps) + " is made of " +
             (place.empty() ? "" : "part " + place + " of ") + "input '" + short_text(past.root) +
             "', expected the same part of '" + short_text(cache.input) + "', along one dimension";
    }
    return {};
  }

  /// Says that the input has other parts than the output.
  std::string other_size(const StackedCache& cache) const {
    SizeShape rest = shape(cache.input);
    for (const Taken& last : cache.leaves.back().steps) {
      if (rest[last.dim] != SizeExpression(last.index + 1)) {
        return "it has " + std::to_string(last.index + 1) + " parts, and input '" +
               short_text(cache.input) + "' " + rest[last.dim].text();
      }
      rest = without(rest, last.dim);
    }
    return {};
  }

  /// Says who reads more than a part.
  std::string other_reader(const StackedCache& cache) const {
    for (const std::string& output : names_in(model_.document(), "graph_outputs")) {
      if (output == cache.input) return "input '" + short_text(output) + "' is an output, too";
    }
    Parts inside{{cache.input, {.root = cache.input}}, {cache.output, {.root = cache.output}}};
    for (const Json& node : nodes()) {
      if (const std::string* read = whole_read(node, inside, cache.depth())) {
        return "node '" + short_text(*member_text(node, "name")) + "' ('" +
               std::string(short_name(*member_text(node, "op_type"))) +
               "') reads more than a part of '" + short_text(inside.at(*read).root) + "'";
      }
    }
    return {};
  }

  static bool is_inside(const Part& part, std::size_t depth) {
    return part.steps.size() < depth || part.is_open;
  }

  /// The operand of which a node reads more than parts, whose results are added to `inside`.
  const std::string* whole_read(const Json& node, Parts& inside, std::size_t depth) const {
    const std::string* read = nullptr;
    for (const Json& mention : *member_list(node, "inputs")) {
      const std::string* operand = member_text(mention, "name");
      const auto found = inside.find(*operand);
      if (found != inside.end() && is_inside(found->second, depth)) read = operand;
    }
    if (read == nullptr) return nullptr;
    follow(node, inside);
    const std::vector<std::string> results = names_in(node, "outputs");
    const bool is_part = std::all_of(results.begin(), results.end(), [&](const std::string& name) {
      return inside.contains(name);
    });
    return is_part ? nullptr : read;
  }

  // ---- What is written ----

  Json written() {
    Json document = model_.document();
    name_parts();
    Parts inside;
    for (const auto& [root, cache] : roots_) inside[root] = {.root = root};
    Json kept = Json::array();
    for (Json& node : *find_member(document, "nodes")) {
      bool is_taking = false;
      for (Json& mention : *find_member(node, "inputs")) {
        const auto found = inside.find(*member_text(mention, "name"));
        if (found == inside.end()) continue;
        const Part& part = found->second;
        const bool is_result = *member_text(node, "op_type") == kGetitem;
        if (is_result || is_inside(part, roots_.at(part.root)->depth())) {
          is_taking = true;
        } else {
          mention = as_part(mention, part.root, part.steps);
        }
      }
      if (is_taking) {
        follow(node, inside);
        continue;
      }
      rename(*find_member(node, "inputs"));
      rename(*find_member(node, "outputs"));
      kept.push_back(std::move(node));
    }
    set_member(document, "nodes", std::move(kept));
    take_apart(*find_member(document, "graph_inputs"));
    take_apart(*find_member(document, "graph_outputs"));
    prune_document(document);
    forget_places(document);
    return document;
  }

  /// Gives every part a name of its own; the tensors that become outputs get it.
  void name_parts() {
    std::set<std::string> taken;
    for (const char* list : {"graph_inputs", "weights"}) {
      for (std::string& name : names_in(model_.document(), list)) taken.insert(std::move(name));
    }
    for (const Json& node : nodes()) {
      for (std::string& name : names_in(node, "outputs")) taken.insert(std::move(name));
    }
    for (const StackedCache& cache : caches_) {
      roots_[cache.input] = &cache;
      roots_[cache.output] = &cache;
      for (const Leaf& leaf : cache.leaves) {
        for (const std::string& root : {cache.input, cache.output}) {
          std::string name = root + "." + indices(leaf.steps);
          while (!taken.insert(name).second) name += "_";
          names_[root + "." + indices(leaf.steps)] = std::move(name);
        }
        renamed_[leaf.tensor] = names_.at(cache.output + "." + indices(leaf.steps));
      }
    }
  }

  /// A mention of a part, like `mention`.
  Json as_part(Json mention, const std::string& root, const std::vector<Taken>& steps) const {
    const StackedCache& cache = *roots_.at(root);
    const std::string& name = names_.at(root + "." + indices(steps));
    set_member(mention, "name", name);
    if (find_member(mention, "producer_node") == nullptr) return mention;
    std::string producer = name;
    for (const Leaf& leaf : cache.leaves) {
      if (root != cache.output || leaf.steps != steps) continue;
      producer = *member_text(*producers_.find(leaf.tensor), "name");
    }
    set_member(mention, "producer_node", producer);
    set_member(mention, "producer_output_idx", 0);
    return mention;
  }

  void rename(Json& mentions) const {
    for (Json& mention : mentions) {
      const auto found = renamed_.find(*member_text(mention, "name"));
      if (found != renamed_.end()) set_member(mention, "name", found->second);
    }
  }

  /// Puts the parts in place of a stack among inputs or outputs.
  void take_apart(Json& mentions) const {
    Json apart = Json::array();
    for (Json& mention : mentions) {
      const std::string root = *member_text(mention, "name");
      const auto found = roots_.find(root);
      if (found == roots_.end()) {
        apart.push_back(std::move(mention));
        continue;
      }
      for (const Leaf& leaf : found->second->leaves) {
        Json part = as_part(mention, root, leaf.steps);
        SizeShape sizes = shape(root);
        for (const Taken& step : leaf.steps) sizes = without(sizes, step.dim);
        set_member(part, "shape", shape_json(sizes));
        apart.push_back(std::move(part));
      }
    }
    mentions = std::move(apart);
  }

  const Template& model_;
  Producers producers_;
  Parts parts_;  // of inputs
  std::vector<StackedCache> caches_;
  std::map<std::string, const StackedCache*> roots_;  // by input and by output
  std::map<std::string, std::string> names_;          // by root and indices
  std::map<std::string, std::string> renamed_;        // tensors that become outputs
};

}  // namespace

std::optional<Json> unstack_caches(const Template& model, const std::vector<State>& others,
                                   std::vector<std::string>& reasons) {
  return Unstacker(model).run(others, reasons);
}

}  // namespace npu::states
