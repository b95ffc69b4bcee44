// SPDX-License-Identifier: Apache-2.0
// Puts new rows behind caches that a decoder turns before and turns back behind.
//
// Input:  a template with an output permute(cat(permute(input), rows)) whose permutations undo each
//         other, as transformers 2 and 3 write the keys of GPT-2.
// Output: the same with the output cat(input, permute(rows)), of which what read the concatenation
//         reads a permutation.
// Names of tensors stay, and the nodes change places, so that each has the producer that it is said
// to have. O(size).
#include "passes/states/plain/straighten_caches.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/states/cache_pairs.hpp"
#include "passes/states/plain/new_nodes.hpp"
#include "passes/states/producers.hpp"
#include "passes/states/prune_document.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

struct TurnedCache {
  const Json* joins;  ///< the concatenation
  const Json* back;   ///< what turns it back
  Json past;          ///< a mention of the input
  std::vector<std::size_t> there, again;
  std::size_t axis = 0;  ///< of the concatenation
};

class Straightener {
 public:
  explicit Straightener(const Template& model)
      : model_(model), producers_(model.document()), tensors_(model) {
    const std::vector<std::string> inputs = names_in(model.document(), "graph_inputs");
    inputs_.insert(inputs.begin(), inputs.end());
  }

  std::optional<Json> run() {
    for (const std::string& output : names_in(model_.document(), "graph_outputs")) {
      if (auto cache = turned(output)) {
        const std::string& name = *member_text(*cache->joins, "name");
        backs_.insert(*member_text(*cache->back, "name"));
        caches_.insert_or_assign(name, *std::move(cache));
      }
    }
    if (caches_.empty() || caches_.size() != backs_.size()) return std::nullopt;
    Json document = model_.document();
    Json written = Json::array();
    for (Json& node : *find_member(document, "nodes")) {
      const std::string& name = *member_text(node, "name");
      const auto found = caches_.find(name);
      if (found != caches_.end()) {
        write(found->second, written);
      } else if (!backs_.contains(name)) {
        written.push_back(std::move(node));
      }
    }
    set_member(document, "nodes", std::move(written));
    prune_document(document);
    return document;
  }

 private:
  std::optional<TurnedCache> turned(const std::string& output) const {
    TurnedCache cache{.joins = nullptr, .back = nullptr, .past = {}, .there = {}, .again = {}};
    cache.back = producers_.find_behind_copies(output);
    cache.again = permutation(cache.back);
    if (cache.again.empty()) return std::nullopt;
    cache.joins = producers_.find(names_in(*cache.back, "inputs")[0]);
    if (cache.joins == nullptr || is_output(*cache.joins)) return std::nullopt;
    const std::string_view name = functional_name(*member_text(*cache.joins, "op_type"));
    const std::vector<std::string> operands = names_in(*cache.joins, "inputs");
    const Json* attrs = member_object(*cache.joins, "attrs");
    auto axis = attrs == nullptr ? std::nullopt : member_integer(*attrs, "dim");
    const auto rank = std::ssize(cache.again);
    if (axis && *axis < 0) *axis += rank;
    if ((name != "cat" && name != "concat") || operands.size() != 2 || !axis || *axis < 0 ||
        *axis >= rank) {
      return std::nullopt;
    }
    cache.axis = static_cast<std::size_t>(*axis);
    const SizeShape* rows = model_.shape(operands[1]);
    if (rows == nullptr || rows->size() != cache.again.size()) return std::nullopt;
    const Json* there = producers_.find(operands[0]);
    cache.there = permutation(there);
    if (cache.there.size() != cache.again.size()) return std::nullopt;
    for (std::size_t i = 0; i < cache.there.size(); ++i) {
      if (cache.there[cache.again[i]] != i) return std::nullopt;
    }
    cache.past = (*member_list(*there, "inputs"))[0];
    if (!inputs_.contains(*member_text(cache.past, "name"))) return std::nullopt;
    return cache;
  }

  bool is_output(const Json& node) const {
    const std::vector<std::string> outputs = names_in(model_.document(), "graph_outputs");
    return std::find(outputs.begin(), outputs.end(), names_in(node, "outputs")[0]) != outputs.end();
  }

  /// Where each dimension of a node's result comes from; empty if it is no permutation.
  std::vector<std::size_t> permutation(const Json* node) const {
    if (node == nullptr) return {};
    const std::string_view name = functional_name(*member_text(*node, "op_type"));
    const Json* attrs = member_object(*node, "attrs");
    const std::vector<std::string> operands = names_in(*node, "inputs");
    const SizeShape* from = operands.size() == 1 ? model_.shape(operands[0]) : nullptr;
    if (from == nullptr || from->empty() || attrs == nullptr) return {};
    const auto rank = std::ssize(*from);
    const auto place = [&](std::optional<std::int64_t> dim) {
      if (dim && *dim < 0) *dim += rank;
      return static_cast<std::size_t>(dim && *dim >= 0 && *dim < rank ? *dim : rank);
    };
    std::vector<std::size_t> from_dims;
    if (name == "transpose") {
      const std::size_t first = place(member_integer(*attrs, "dim0"));
      const std::size_t second = place(member_integer(*attrs, "dim1"));
      for (std::size_t i = 0; i < from->size(); ++i) from_dims.push_back(i);
      if (std::max(first, second) >= from->size()) return {};
      std::swap(from_dims[first], from_dims[second]);
    } else if (name == "permute") {
      const Json* dims = member_list(*attrs, "dims");
      for (std::size_t i = 0; dims != nullptr && i < dims->size(); ++i) {
        from_dims.push_back(place(json_integer(&(*dims)[i])));
      }
    }
    const std::set<std::size_t> each(from_dims.begin(), from_dims.end());
    const bool is_whole = each.size() == from->size() && *each.rbegin() < from->size();
    return is_whole && from_dims.size() == from->size() ? from_dims : std::vector<std::size_t>();
  }

  /// Rows turned, put behind the cache, and the whole turned for those that read it.
  void write(const TurnedCache& cache, Json& written) {
    const Json& fresh = (*member_list(*cache.joins, "inputs"))[1];
    const std::string& back = *member_text(*cache.back, "name");
    Json rows = turned_mention(fresh, cache.again);
    const std::string turned = *member_text(rows, "name");
    written.push_back(permute(turned, fresh, rows, cache.again));
    rows = given_by(turned, std::move(rows));

    Json joins = *cache.joins;
    const Json whole = (*member_list(joins, "outputs"))[0];
    const Json& output = (*member_list(*cache.back, "outputs"))[0];
    set_member(joins, "name", back);
    set_member(joins, "inputs", Json::array({cache.past, std::move(rows)}));
    set_member(joins, "outputs", Json::array({output}));
    set_member(*find_member(joins, "attrs"), "dim", cache.there[cache.axis]);
    written.push_back(std::move(joins));

    written.push_back(
        permute(*member_text(*cache.joins, "name"), given_by(back, output), whole, cache.there));
  }

  static Json permute(const std::string& name, const Json& operand, const Json& result,
                      const std::vector<std::size_t>& dims) {
    return new_node(name, "aten.permute.default", Json::array({operand}), result, {{"dims", dims}});
  }

  /// A new tensor, turned.
  Json turned_mention(const Json& of, const std::vector<std::size_t>& dims) {
    const std::string& rows = *member_text(of, "name");
    SizeShape shape;
    for (const std::size_t dim : dims) shape.push_back((*model_.shape(rows))[dim]);
    return tensors_.mention(of, rows + ".turned", shape);
  }

  const Template& model_;
  Producers producers_;
  std::set<std::string> inputs_;
  std::map<std::string, TurnedCache> caches_;  // by the concatenation's node
  std::set<std::string> backs_;                // nodes that turn back
  NewTensors tensors_;
};

}  // namespace

std::optional<Json> straighten_caches(const Template& model) { return Straightener(model).run(); }

}  // namespace npu::states
