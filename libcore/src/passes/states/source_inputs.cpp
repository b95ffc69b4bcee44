// SPDX-License-Identifier: Apache-2.0
// Inputs of a decoder that do not change from step to step, since they come of what an encoder has
// read. They become states that the decoder only reads; encode_document writes them. What they are
// is told by their names, as exporters write them: nothing in a graph tells a tensor of a source
// from any other. O(nodes).
#include "passes/states/source_inputs.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ops/op_name.hpp"
#include "passes/states/producers.hpp"
#include "passes/states/prune_document.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

bool is_source_name(const std::string& name) {
  return name.find("encoder") != std::string::npos || name.find("cross") != std::string::npos;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Whether an output is one of the inputs, behind copies.
class PassedOn {
 public:
  PassedOn(const Json& document, const std::vector<std::string>& sources) : sources_(sources) {
    for (const Json& node : *member_list(document, "nodes")) {
      const std::string_view name = functional_name(*member_text(node, "op_type"));
      const Json& inputs = *member_list(node, "inputs");
      if (!is_copy(name) || inputs.empty()) continue;
      copies_[*member_text((*member_list(node, "outputs"))[0], "name")] =
          *member_text(inputs[0], "name");
    }
  }

  bool holds(std::string name) const {
    constexpr int kDeepest = 8;
    for (int depth = 0; depth < kDeepest && !contains(sources_, name); ++depth) {
      const auto copy = copies_.find(name);
      if (copy == copies_.end()) return false;
      name = copy->second;
    }
    return contains(sources_, name);
  }

 private:
  const std::vector<std::string>& sources_;
  std::map<std::string, std::string> copies_;  // what each copies, by result
};

/// Removes the mentions of a list that do not satisfy `is_kept`.
template <typename IsKept>
void keep_mentions(Json& document, const char* list, const IsKept& is_kept) {
  Json kept = Json::array();
  for (const Json& mention : *member_list(document, list)) {
    if (is_kept(*member_text(mention, "name"))) kept.push_back(mention);
  }
  set_member(document, list, std::move(kept));
}

std::optional<Template> read_template(Json document, const Template& of, Diagnostics& diagnostics) {
  Json& npu = *find_member(document, "npu");
  if (find_member(npu, "symbols") == nullptr) set_member(npu, "symbols", Json::object());
  Template result = Template::read(std::move(document), of.file(), diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  return result;
}

}  // namespace

std::vector<std::string> source_inputs(const Json& document) {
  std::vector<std::string> names;
  for (const Json& mention : *member_list(document, "graph_inputs")) {
    const std::string& name = *member_text(mention, "name");
    if (is_source_name(name)) names.push_back(name);
  }
  return names;
}

std::optional<Template> bind_source(const Template& model, const std::vector<std::string>& sources,
                                    std::int64_t rows, Diagnostics& diagnostics) {
  SizeBindings bound;
  for (const std::string& name : sources) {
    const SizeShape& shape = *model.shape(name);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d].is_constant()) continue;
      const std::string size = shape[d].text();
      if (d > 0 && rows == 0) {
        diagnostics.error({.file = model.file()},
                          "input '" + short_text(name) + "' has '" + short_text(size) +
                              "' rows of a source: say with --source-rows how many its state is "
                              "to have");
        return std::nullopt;
      }
      if (model.symbols().find(size) == nullptr) {
        diagnostics.error({.file = model.file()}, "input '" + short_text(name) + "' has '" +
                                                      short_text(size) +
                                                      "' rows, which is no size of its own");
        return std::nullopt;
      }
      bound.emplace(size, d == 0 ? 1 : rows);
    }
  }
  Json document = bound.empty() ? model.document() : narrowed_document(model, bound);
  const PassedOn passed(document, sources);
  keep_mentions(document, "graph_outputs", [&](const std::string& name) {
    return !is_source_name(name) && !passed.holds(name);
  });
  prune_document(document);
  std::set<std::string> read;
  for (const Json& node : *member_list(document, "nodes")) {
    for (const Json& mention : *member_list(node, "inputs")) {
      read.insert(*member_text(mention, "name"));
    }
  }
  keep_mentions(document, "graph_inputs", [&](const std::string& name) {
    return read.contains(name) || !contains(sources, name);
  });
  forget_places(document);
  return read_template(std::move(document), model, diagnostics);
}

void add_source_states(Json& document, const std::vector<std::string>& sources) {
  Json& npu = *find_member(document, "npu");
  Json states = Json::array();
  if (const Json* known = member_list(npu, "states")) states = *known;
  for (const Json& mention : *member_list(document, "graph_inputs")) {
    const std::string& name = *member_text(mention, "name");
    if (contains(sources, name)) states.push_back({{"name", name}, {"input", name}});
  }
  set_member(npu, "states", std::move(states));
}

std::optional<Template> with_batch_of_one(const Template& model, Diagnostics& diagnostics) {
  SizeBindings one;
  for (const Json& mention : *member_list(model.document(), "graph_inputs")) {
    const SizeShape* shape = model.shape(*member_text(mention, "name"));
    if (shape == nullptr || shape->empty()) continue;
    const std::string size = shape->front().text();
    if (model.symbols().find(size) != nullptr) one.emplace(size, 1);
  }
  if (one.empty()) return model;
  return read_template(narrowed_document(model, one), model, diagnostics);
}

}  // namespace npu::states
