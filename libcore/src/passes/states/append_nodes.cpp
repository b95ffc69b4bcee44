// SPDX-License-Identifier: Apache-2.0
// Takes a part out of one model and puts it behind another one: the projection of what an encoder
// gives to the keys and values of cross attention stands in the file of the decoder. Every name
// gets a prefix, so that nothing is mistaken for something of the document. O(nodes).
#include "passes/states/append_nodes.hpp"

#include <filesystem>
#include <set>
#include <utility>

#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::states {
namespace {

class Appender {
 public:
  Appender(Json& document, const AppendedPart& part, Diagnostics& diagnostics)
      : document_(document), part_(part), diagnostics_(diagnostics) {}

  bool run() {
    const Json& other = part_.model.document();
    for (const std::string& output : part_.outputs) needed_.insert(output);
    const Json& nodes = *member_list(other, "nodes");
    std::vector<const Json*> taken;
    for (std::size_t n = nodes.size(); n-- > 0;) {
      if (!gives_needed(nodes[n])) continue;
      for (const Json& mention : *member_list(nodes[n], "inputs")) {
        needed_.insert(*member_text(mention, "name"));
      }
      taken.push_back(&nodes[n]);
    }
    for (const Json& mention : *member_list(other, "graph_inputs")) {
      const std::string& name = *member_text(mention, "name");
      if (!needed_.contains(name) || part_.inputs.contains(name)) continue;
      refuse("'" + short_text(part_.outputs.front()) + "' depends on the input '" +
             short_text(name) + "', not on a source alone");
      return false;
    }
    Json& list = *find_member(document_, "nodes");
    for (auto node = taken.rbegin(); node != taken.rend(); ++node) list.push_back(copy(**node));
    append_weights();
    return !diagnostics_.has_errors();
  }

 private:
  void refuse(const std::string& text) { diagnostics_.error({.file = part_.model.file()}, text); }

  bool gives_needed(const Json& node) const {
    for (const Json& mention : *member_list(node, "outputs")) {
      if (needed_.contains(*member_text(mention, "name"))) return true;
    }
    return false;
  }

  /// A size in terms of the document's symbols.
  Json size(const SizeExpression& of) {
    const SizeExpression rest = of.substitute(part_.sizes);
    if (rest.is_constant()) return *rest.constant();
    for (const std::string& name : of.symbols()) {
      if (part_.sizes.contains(name)) continue;
      if (refused_.insert(name).second) {
        refuse("the size '" + short_text(name) + "' is none of a source");
      }
    }
    return rest.text();
  }

  Json mention(const Json& of) {
    const std::string& name = *member_text(of, "name");
    const auto given = part_.inputs.find(name);
    if (given != part_.inputs.end()) return given->second;
    Json copy = of;
    copy.erase("producer_node");
    copy.erase("producer_output_idx");
    set_member(copy, "name", part_.prefix + name);
    Json shape = Json::array();
    const SizeShape* sizes = part_.model.shape(name);
    for (std::size_t d = 0; sizes != nullptr && d < sizes->size(); ++d) {
      shape.push_back(size((*sizes)[d]));
    }
    if (sizes != nullptr) set_member(copy, "shape", std::move(shape));
    return copy;
  }

  void replace_sizes(Json& value) {
    if (value.is_object()) {
      for (auto& [key, each] : value.get_ref<Json::object_t&>()) replace_sizes(each);
    } else if (value.is_array()) {
      for (Json& each : value) replace_sizes(each);
    } else if (value.is_string()) {
      const auto found = part_.model.size_in_attrs(value.get_ref<const std::string&>());
      if (found) value = size(*found);
    }
  }

  Json copy(const Json& node) {
    Json result = node;
    set_member(result, "name", part_.prefix + *member_text(node, "name"));
    for (const char* list : {"inputs", "outputs"}) {
      Json mentions = Json::array();
      for (const Json& each : *member_list(node, list)) mentions.push_back(mention(each));
      set_member(result, list, std::move(mentions));
    }
    if (Json* attrs = find_member(result, "attrs")) replace_sizes(*attrs);
    return result;
  }

  // ---- Weights ----

  static Json& member_of(Json& object, const char* key, Json otherwise) {
    if (find_member(object, key) == nullptr) set_member(object, key, std::move(otherwise));
    return *find_member(object, key);
  }

  void append_weights() {
    const Json& other = part_.model.document();
    std::set<std::string> keys = needed_;
    if (const Json* names = member_object(other, "weight_name_mapping")) {
      Json& own = member_of(document_, "weight_name_mapping", Json::object());
      for (const auto& [name, key] : names->items()) {
        if (!needed_.contains(name)) continue;
        keys.insert(*json_text(&key));
        set_member(own, part_.prefix + name, part_.prefix + *json_text(&key));
      }
    }
    if (const Json* weights = member_list(other, "weights")) {
      append_named(*weights, member_of(document_, "weights", Json::array()), keys);
    }
    if (const Json* constants = member_object(other, "constants")) {
      Json& own = member_of(document_, "constants", Json::object());
      for (const auto& [name, value] : constants->items()) {
        if (keys.contains(name)) set_member(own, part_.prefix + name, value);
      }
    }
    append_files(keys);
  }

  void append_named(const Json& from, Json& to, const std::set<std::string>& keys) const {
    for (const Json& entry : from) {
      const std::string& name = *member_text(entry, "name");
      if (!keys.contains(name)) continue;
      to.push_back(entry);
      set_member(to.back(), "name", part_.prefix + name);
    }
  }

  /// A path that is relative to the file that names it.
  static std::filesystem::path resolved(const std::string& path, const std::string& file) {
    return (std::filesystem::path(file).parent_path() / path).lexically_normal();
  }

  /// Where the weights lie: files of the other model are named behind those of the document, from
  /// the folder of its first one.
  void append_files(const std::set<std::string>& keys) {
    const Json* npu = member_object(part_.model.document(), "npu");
    const Json* own_npu = member_object(document_, "npu");
    for (const Json* each : {npu, own_npu}) {
      if (each == nullptr || find_member(*each, "weights_file") == nullptr) continue;
      return refuse(
          "the two models have files of weights of their own, npu.weights_file, and a "
          "document has one: give the models that they were imported from");
    }
    const Json* map = npu == nullptr ? nullptr : member_object(*npu, "weights_map");
    if (map == nullptr) return;
    Json& own = member_of(member_of(document_, "npu", Json{{"version", 1}}), "weights_map",
                          Json{{"files", Json::array()}, {"tensors", Json::array()}});
    Json& files = *find_member(own, "files");
    const std::size_t first = files.size();
    const std::string* first_path = files.empty() ? nullptr : member_text(files[0], "path");
    for (const Json& file : *member_list(*map, "files")) {
      files.push_back(file);
      const std::string* path = member_text(file, "path");
      if (path == nullptr || first_path == nullptr) continue;
      const std::filesystem::path model = resolved(*first_path, part_.file);
      const std::filesystem::path other = resolved(*path, part_.model.file());
      if (other.parent_path() != model.parent_path()) {
        return refuse("lies in another folder than '" + short_text(model.string()) +
                      "', and a document names one folder for its weights");
      }
      files.back().erase("path");
      Json named{{"name", other.filename().string()}};
      for (const auto& [key, value] : files.back().items()) set_member(named, key, value);
      files.back() = std::move(named);
    }
    Json tensors = Json::array();
    append_named(*member_list(*map, "tensors"), tensors, keys);
    for (Json& tensor : tensors) {
      if (find_member(tensor, "data") == nullptr) {
        const std::int64_t file = member_integer(tensor, "file").value_or(0);
        set_member(tensor, "file", file + static_cast<std::int64_t>(first));
      }
      find_member(own, "tensors")->push_back(std::move(tensor));
    }
  }

  Json& document_;
  const AppendedPart& part_;
  Diagnostics& diagnostics_;
  std::set<std::string> needed_;   // tensors of the model
  std::set<std::string> refused_;  // symbols
};

}  // namespace

bool append_nodes(Json& document, const AppendedPart& part, Diagnostics& diagnostics) {
  return Appender(document, part, diagnostics).run();
}

}  // namespace npu::states
