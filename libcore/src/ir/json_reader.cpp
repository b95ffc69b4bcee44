// SPDX-License-Identifier: Apache-2.0
// Reads npu-ir(5): a document in the format of pytorch-ir with the keys that npu-tools add.
//
// Every mention of a tensor is merged into one TensorInfo; whatever disagrees, lacks a type or
// resolves to nothing becomes a diagnostic, and reading goes on, so that one run shows all faults.
// Objects are kept as they were read, which is what makes unknown keys survive, but for mentions of
// the usual form (ir/mention_form.hpp). O(size of the text). Long because every step of reading
// completes the same tensors, and its messages refer to each other's places.
#include "npu/ir/json_reader.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "ir/bind_sizes.hpp"
#include "ir/document_stream.hpp"
#include "ir/graph_assembler.hpp"
#include "ir/mention_form.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

using namespace std::string_view_literals;

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

class DocumentReader {
 public:
  DocumentReader(Json document, const std::string& file, Diagnostics& diagnostics)
      : assembler_(file, std::move(document)), diagnostics_(diagnostics) {}

  Graph assemble() {
    if (!read_top_level()) return assembler_.take();
    take_nodes();
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) read_results(n);
    check_weight_names();
    for (std::size_t n = 0; n < graph_.nodes().size(); ++n) read_operands(n);
    finish();
    return assembler_.take();
  }

  /// The same of a text of the usual form, with forms for its mentions; nothing if it is not that,
  /// or has a fault, whose message is assemble()'s.
  std::optional<Graph> stream(std::string_view text) {
    const bool is_read = stream_document(
        text,
        [&](Json document, std::size_t count) {
          graph_.document() = std::move(document);
          if (!read_top_level()) return false;
          assembler_.reserve_nodes(count);
          assembler_.reserve_tensors(graph_.tensors().size() + count);
          return !diagnostics_.has_errors();
        },
        [&](StreamedNode& node) { return take_streamed(node) && !diagnostics_.has_errors(); });
    if (!is_read) return std::nullopt;
    check_weight_names();
    for (const PendingNode& pending : pending_) {
      if (!read_pending(pending)) return std::nullopt;
    }
    finish();
    if (diagnostics_.has_errors()) return std::nullopt;
    return assembler_.take();
  }

 private:
  /// False if there is no sense in going on.
  bool read_top_level() {
    const Json& document = graph_.document();
    if (!document.is_object()) {
      error("",
            "expected an object at the top level, found " + std::string(json_type_name(document)));
      return false;
    }
    if (!check_npu_member()) return false;
    if (const Json* name = find_member(document, "model_name")) {
      if (name->is_string()) {
        assembler_.set_model_name(name->get<std::string>());
      } else {
        error("/model_name", "expected a string, found " + std::string(json_type_name(*name)));
      }
    }
    read_weight_tables();
    read_graph_inputs();
    return true;
  }

  void finish() {
    read_graph_outputs();
    check_tensors_complete();
    assembler_.finish(diagnostics_);
  }

  // Where a mention stands, turned into a JSON Pointer only when a message needs it.
  struct Place {
    std::string_view list;   // "graph_inputs", or "inputs" of a node
    std::int64_t node = -1;  // -1: top level
    std::size_t index = 0;
    std::string pointer() const {
      std::string text = node < 0 ? "" : "/nodes/" + std::to_string(node);
      text += '/';
      text += list;
      return text + "/" + std::to_string(index);
    }
  };
  // What one mention states about a tensor. Missing parts may come from another mention.
  struct Mention {
    std::string_view name;
    bool has_shape = false;
    Shape shape;
    std::optional<DType> dtype;
    const std::string* producer = nullptr;
    std::optional<std::int64_t> producer_output;
  };
  struct WeightEntry {
    std::size_t index = 0;  // in weights[]
    Mention mention;
  };
  struct Known {  // the parts of a TensorInfo that some mention has stated
    bool shape = false;
    bool dtype = false;
    Place first;
  };

  void error(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = graph_.file, .pointer = pointer}, std::move(text));
  }

  bool check_npu_member() {
    const Json* npu = find_member(graph_.document(), "npu");
    if (npu == nullptr) return true;
    if (!npu->is_object()) {
      error("/npu", "expected an object, found " + std::string(json_type_name(*npu)));
      return false;
    }
    if (SizeSymbols::are_in(graph_.document())) {
      error("/npu/symbols", "the sizes of a template have no values here");
      return false;
    }
    if (const Json* version = find_member(*npu, "version")) {
      if (!version->is_number_integer()) {
        error("/npu/version",
              "expected an integer, found " + std::string(json_type_name(*version)));
        return false;
      }
      if (*version < 1 || *version > kIrVersion) {
        error("/npu/version", "version " + version->dump() + " is unknown, this program reads " +
                                  std::to_string(kIrVersion));
        return false;
      }
    }
    if (const Json* kind = find_member(*npu, "kind"); kind != nullptr && *kind != "model") {
      error(
          "/npu/kind",
          "expected a model, found " +
              (kind->is_string() ? "a document of kind " + in_quotes(kind->get<std::string>())
                                 : std::string(json_type_name(*kind))) +
              (*kind == "plan" ? "; npu-run runs plans with --features FILE, or --simulate" : ""));
      return false;
    }
    for (const std::string_view key : {"target", "partition", "fusion"}) {
      const Json* member = find_member(*npu, key);
      if (member != nullptr && !member->is_object()) {
        error("/npu/" + std::string(key),
              "expected an object, found " + std::string(json_type_name(*member)));
      }
    }
    if (const Json* file = find_member(*npu, "weights_file");
        file != nullptr && !file->is_string()) {
      error("/npu/weights_file", "expected a string, found " + std::string(json_type_name(*file)));
    }
    return true;
  }

  /// The array `key` of `object`; null with a diagnostic if it has another type, null without one
  /// if it is missing and `required` is false.
  const Json* array_member(const Json& object, std::string_view key, bool required,
                           const std::string& pointer) {
    const Json* array = find_member(object, key);
    if (array == nullptr) {
      if (required) error(pointer, "the key " + in_quotes(key) + " is missing");
      return nullptr;
    }
    if (!array->is_array()) {
      error(pointer + "/" + std::string(key),
            "expected an array, found " + std::string(json_type_name(*array)));
      return nullptr;
    }
    return array;
  }

  // The node that mentions a tensor, for messages; empty at the top level.
  std::string owner(const Place& place) const {
    if (place.node < 0) return {};
    const std::string& name = graph_.nodes()[static_cast<std::size_t>(place.node)].name;
    return name.empty() ? std::string() : "node " + in_quotes(name) + ": ";
  }

  bool read_shape(const Json& json, const Place& place, Mention& mention) {
    if (!json.is_array()) {
      error(place.pointer() + "/shape",
            "expected an array of integers, found " + std::string(json_type_name(json)));
      return false;
    }
    bool good = true;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const Json& dimension = json[i];
      const auto pointer = [&] { return place.pointer() + "/shape/" + std::to_string(i); };
      if (dimension.is_string()) {
        error(pointer(), owner(place) + "tensor " + in_quotes(mention.name) +
                             " has the symbolic dimension " +
                             in_quotes(dimension.get<std::string>()) +
                             ", which npu.symbols does not have; see npu-ir(5)");
        good = false;
      } else if (!dimension.is_number_integer()) {
        error(pointer(), "expected an integer, found " + std::string(json_type_name(dimension)));
        good = false;
      } else if (dimension.is_number_unsigned() &&
                 dimension.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
        error(pointer(), "dimension of tensor " + in_quotes(mention.name) + " is too large");
        good = false;
      } else if (dimension.get<std::int64_t>() < 0) {
        error(pointer(), owner(place) + "tensor " + in_quotes(mention.name) +
                             " has the negative dimension " +
                             std::to_string(dimension.get<std::int64_t>()));
        good = false;
      } else {
        mention.shape.push_back(dimension.get<std::int64_t>());
      }
    }
    if (!good) return false;
    const auto count = checked_element_count(mention.shape);
    // 16 is the largest element size, so from here on every byte count of a tensor fits.
    if (!count || !checked_multiply(*count, 16)) {
      error(place.pointer() + "/shape", "tensor " + in_quotes(mention.name) + " of shape " +
                                            shape_text(mention.shape) + " is too large");
      return false;
    }
    mention.has_shape = true;
    return true;
  }

  /// Nothing if the mention is unusable, in which case its faults have been reported.
  std::optional<Mention> read_mention(const Json& json, const Place& place,
                                      std::string_view default_name = {}) {
    if (!json.is_object()) {
      error(place.pointer(),
            "expected a tensor object, found " + std::string(json_type_name(json)));
      return std::nullopt;
    }
    Mention mention;
    mention.name = default_name;
    bool good = true;
    const Json* shape = nullptr;
    for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
      if (key == "name") {
        if (value.is_string()) {
          mention.name = value.get_ref<const std::string&>();
        } else {
          error(place.pointer() + "/name",
                "expected a string, found " + std::string(json_type_name(value)));
          good = false;
        }
      } else if (key == "shape") {
        shape = &value;
      } else if (key == "dtype" && !value.is_null()) {
        if (value.is_string()) mention.dtype = parse_dtype(value.get_ref<const std::string&>());
        if (!mention.dtype) {
          error(place.pointer() + "/dtype", "unknown dtype " + value.dump() + ", expected one of " +
                                                std::string(dtype_names()));
          good = false;
        }
      } else if (key == "producer_node" && !value.is_null()) {
        if (value.is_string()) {
          mention.producer = &value.get_ref<const std::string&>();
        } else {
          error(place.pointer() + "/producer_node",
                "expected a string, found " + std::string(json_type_name(value)));
          good = false;
        }
      } else if (key == "producer_output_idx" && !value.is_null()) {
        if (value.is_number_integer()) {
          mention.producer_output = value.get<std::int64_t>();
        } else {
          error(place.pointer() + "/producer_output_idx",
                "expected an integer, found " + std::string(json_type_name(value)));
          good = false;
        }
      }
    }
    if (mention.name.empty()) {
      if (good) error(place.pointer(), "the tensor has no name");
      good = false;
    }
    if (shape != nullptr && !shape->is_null() && !read_shape(*shape, place, mention)) good = false;
    if (!good) return std::nullopt;
    return mention;
  }

  TensorId add_tensor(const Mention& mention, TensorKind kind, const Place& place) {
    TensorInfo tensor;
    tensor.name = mention.name;
    tensor.kind = kind;
    const TensorId id = assembler_.add_tensor(std::move(tensor));
    known_.push_back({.first = place});
    merge(id, mention, place);
    return id;
  }

  /// Adds what `mention` states, or reports where it contradicts earlier mentions.
  void merge(TensorId id, const Mention& mention, const Place& place) {
    TensorInfo& tensor = assembler_.tensor(id);
    Known& known = known_[index_of(id)];
    if (mention.has_shape) {
      if (!known.shape) {
        tensor.shape = mention.shape;
        known.shape = true;
      } else if (tensor.shape != mention.shape) {
        error(place.pointer() + "/shape",
              "tensor " + in_quotes(tensor.name) + " has shape " + shape_text(mention.shape) +
                  " here and " + shape_text(tensor.shape) + " at " + known.first.pointer());
      }
    }
    if (mention.dtype) {
      if (!known.dtype) {
        tensor.dtype = *mention.dtype;
        known.dtype = true;
      } else if (tensor.dtype != *mention.dtype) {
        error(place.pointer() + "/dtype", "tensor " + in_quotes(tensor.name) + " has dtype " +
                                              std::string(dtype_name(*mention.dtype)) +
                                              " here and " + std::string(dtype_name(tensor.dtype)) +
                                              " at " + known.first.pointer());
      }
    }
  }

  void read_weight_tables() {
    const Json& document = graph_.document();
    if (const Json* weights = array_member(document, "weights", false, "")) {
      for (std::size_t i = 0; i < weights->size(); ++i) {
        auto mention = read_mention((*weights)[i], {.list = "weights", .index = i});
        if (!mention) continue;
        const auto [where, added] =
            weights_.emplace(std::string(mention->name), WeightEntry{i, *mention});
        if (!added) {
          error("/weights/" + std::to_string(i) + "/name",
                "weight " + in_quotes(mention->name) + " stands at /weights/" +
                    std::to_string(where->second.index) + " already");
        }
      }
    }
    if (const Json* mapping = find_member(document, "weight_name_mapping")) {
      if (!mapping->is_object()) {
        error("/weight_name_mapping",
              "expected an object, found " + std::string(json_type_name(*mapping)));
      } else {
        for (const auto& [placeholder, key] : mapping->get_ref<const Json::object_t&>()) {
          if (key.is_string()) {
            mapping_.emplace(placeholder, &key.get_ref<const std::string&>());
          } else {
            error("/weight_name_mapping/" + pointer_token(placeholder),
                  "expected a string, found " + std::string(json_type_name(key)));
          }
        }
      }
    }
    if (const Json* constants = find_member(document, "constants"); constants != nullptr) {
      if (!constants->is_object()) {
        error("/constants", "expected an object, found " + std::string(json_type_name(*constants)));
      } else {
        for (const auto& [name, constant] : constants->get_ref<const Json::object_t&>()) {
          constants_.emplace(name, &constant);
        }
      }
    }
  }

  void read_graph_inputs() {
    const Json* inputs = array_member(graph_.document(), "graph_inputs", true, "");
    if (inputs == nullptr) return;
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      const Place place{.list = "graph_inputs", .index = i};
      const auto mention = read_mention((*inputs)[i], place);
      if (!mention) continue;
      if (graph_.find_tensor(mention->name).valid()) {
        error(place.pointer() + "/name",
              "graph input " + in_quotes(mention->name) + " is listed twice");
        continue;
      }
      if (mapping_.contains(mention->name)) {
        error(place.pointer() + "/name", "graph input " + in_quotes(mention->name) +
                                             " is a weight in weight_name_mapping already");
        continue;
      }
      assembler_.add_graph_input(add_tensor(*mention, TensorKind::kGraphInput, place));
    }
  }

  void take_nodes() {
    const Json* array = array_member(graph_.document(), "nodes", true, "");
    if (array == nullptr) return;
    auto& elements = const_cast<Json*>(array)->get_ref<Json::array_t&>();
    assembler_.reserve_nodes(elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      Node& node = graph_.nodes().emplace_back();
      node.json = std::move(elements[i]);
      read_node_fields(node, i);
    }
    elements.clear();
  }

  // A null for the name or the op type of a streamed node, which knows them, is no fault.
  void read_node_fields(Node& node, std::size_t index) {
    const auto pointer = [&] { return "/nodes/" + std::to_string(index); };
    if (!node.json.is_object()) {
      error(pointer(), "expected a node object, found " + std::string(json_type_name(node.json)));
      return;
    }
    for (const auto& [key, value] : node.json.get_ref<const Json::object_t&>()) {
      if (key == "name"sv || key == "op_type"sv || key == "device"sv || key == "device_reason"sv) {
        if (!value.is_string()) {
          const bool is_known = key == "name"sv ? !node.name.empty() : !node.op_type.empty();
          if (value.is_null() && (key.starts_with("device") || is_known)) continue;
          error(pointer() + "/" + key,
                "expected a string, found " + std::string(json_type_name(value)));
          continue;
        }
        const auto& text = value.get_ref<const std::string&>();
        if (key == "name"sv) {
          node.name = text;
        } else if (key == "op_type"sv) {
          node.op_type = text;
        } else if (key == "device"sv) {
          node.device = text;
        } else {
          node.device_reason = text;
        }
      } else if (key == "partition"sv || key == "fusion_group"sv) {
        if (value.is_null()) continue;
        if (!value.is_number_integer() || value.get<std::int64_t>() < 0) {
          error(pointer() + "/" + key, "expected a non-negative integer, found " + value.dump());
          continue;
        }
        (key == "partition"sv ? node.partition : node.fusion_group) = value.get<std::int64_t>();
      } else if (key == "folded"sv && !value.is_boolean() && !value.is_null()) {
        error(pointer() + "/folded",
              "expected true or false, found " + std::string(json_type_name(value)));
      } else if (key == "attrs"sv && !value.is_object() && !value.is_null()) {
        error(pointer() + "/attrs",
              "expected an object, found " + std::string(json_type_name(value)));
      }
    }
    if (node.name.empty()) error(pointer(), "the node has no name");
    if (node.op_type.empty()) error(pointer(), "node " + in_quotes(node.name) + " has no op_type");
    if (node.name.empty()) return;
    const NodeId taken = assembler_.name_node(id_at<NodeId>(index));
    if (taken.valid()) {
      error(pointer() + "/name", "node " + in_quotes(node.name) + " stands at /nodes/" +
                                     std::to_string(taken.value) + " already");
    }
  }

  void read_results(std::size_t n) {
    const Node& node = graph_.nodes()[n];
    if (!node.json.is_object()) return;
    const Json* outputs = array_member(node.json, "outputs", true, "/nodes/" + std::to_string(n));
    if (outputs == nullptr) return;
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const Place place{.list = "outputs", .node = static_cast<std::int64_t>(n), .index = i};
      const std::string default_name =
          outputs->size() == 1 ? node.name : node.name + "_" + std::to_string(i);
      const auto mention = read_mention((*outputs)[i], place, default_name);
      if (mention) add_result(*mention, place);
    }
  }

  void add_result(const Mention& mention, const Place& place) {
    Node& node = graph_.nodes()[static_cast<std::size_t>(place.node)];
    check_producer_of_result(mention, node, place.index, place);
    if (const TensorId existing = graph_.find_tensor(mention.name); existing.valid()) {
      const TensorInfo& tensor = graph_.tensor(existing);
      error(place.pointer() + "/name",
            "tensor " + in_quotes(mention.name) + " is " +
                (tensor.kind == TensorKind::kGraphInput
                     ? std::string("a graph input already")
                     : "produced by node " + in_quotes(graph_.node(tensor.producer).name) +
                           " already"));
      return;
    }
    if (mapping_.contains(mention.name)) {
      error(place.pointer() + "/name",
            "tensor " + in_quotes(mention.name) + " is a weight in weight_name_mapping already");
      return;
    }
    const TensorId id = add_tensor(mention, TensorKind::kResult, place);
    TensorInfo& tensor = assembler_.tensor(id);
    tensor.producer = NodeId{static_cast<std::int32_t>(place.node)};
    tensor.result = static_cast<std::int32_t>(place.index);
    node.outputs.push_back(id);
  }

  void check_producer_of_result(const Mention& mention, const Node& node, std::size_t index,
                                const Place& place) {
    if (mention.producer != nullptr && *mention.producer != node.name) {
      error(place.pointer() + "/producer_node", "result " + in_quotes(mention.name) + " of node " +
                                                    in_quotes(node.name) + " names the producer " +
                                                    in_quotes(*mention.producer));
    }
    if (mention.producer_output && *mention.producer_output != static_cast<std::int64_t>(index)) {
      error(place.pointer() + "/producer_output_idx",
            "result " + std::to_string(index) + " of node " + in_quotes(node.name) +
                " has the index " + std::to_string(*mention.producer_output));
    }
  }

  // A weight that no placeholder is mapped to goes by its own name, which must be free.
  void check_weight_names() {
    std::set<std::string_view> mapped;
    for (const auto& [placeholder, key] : mapping_) mapped.insert(*key);
    std::map<std::size_t, TensorId>
        taken;  // by place, so that messages come in the document's order
    for (const auto& [name, entry] : weights_) {
      const TensorId id = graph_.find_tensor(name);
      if (id.valid() && !mapped.contains(name)) taken.emplace(entry.index, id);
    }
    for (const auto& [index, id] : taken) {
      const bool is_input = graph_.tensor(id).kind == TensorKind::kGraphInput;
      error("/weights/" + std::to_string(index) + "/name",
            "weight " + in_quotes(graph_.tensor(id).name) + " has the name of a " +
                (is_input ? "graph input" : "result") +
                "; give its placeholder in weight_name_mapping");
    }
  }

  /// The tensor that a name refers to where it is read; a weight is added at its first use.
  TensorId resolve(const Mention& mention, const Place& place) {
    const TensorId id = graph_.find_tensor(mention.name);
    if (id.valid()) return id;
    const auto mapped = mapping_.find(mention.name);
    const std::string_view key =
        mapped == mapping_.end() ? mention.name : std::string_view(*mapped->second);
    auto entry = weights_.find(key);
    if (entry == weights_.end()) entry = weights_.find(mention.name);
    auto constant = constants_.find(mention.name);
    if (constant == constants_.end()) constant = constants_.find(key);
    if (entry == weights_.end() && constant == constants_.end()) return {};

    const TensorId weight = add_tensor(mention, TensorKind::kWeight, place);
    TensorInfo& tensor = assembler_.tensor(weight);
    tensor.weight_key = key;
    if (entry != weights_.end()) {
      merge(weight, entry->second.mention, {.list = "weights", .index = entry->second.index});
    }
    if (constant != constants_.end()) {
      tensor.is_constant = true;
      check_constant(weight, constant->first, *constant->second);
    }
    return weight;
  }

  // `constants` entries are {data, dtype}; data is a number, or a list of them, nested or flat.
  void check_constant(TensorId id, const std::string& name, const Json& json) {
    const std::string pointer = "/constants/" + pointer_token(name);
    const Json* data = find_member(json, "data");
    if (data == nullptr) {
      error(pointer, "expected an object with data and dtype");
      return;
    }
    TensorInfo& tensor = assembler_.tensor(id);
    Known& known = known_[index_of(id)];
    if (const Json* dtype = find_member(json, "dtype"); dtype != nullptr && !dtype->is_null()) {
      const auto parsed =
          dtype->is_string() ? parse_dtype(dtype->get<std::string>()) : std::nullopt;
      if (!parsed) {
        error(pointer + "/dtype",
              "unknown dtype " + dtype->dump() + ", expected one of " + std::string(dtype_names()));
        return;
      }
      if (known.dtype && tensor.dtype != *parsed) {
        error(pointer + "/dtype", "constant " + in_quotes(name) + " has dtype " +
                                      std::string(dtype_name(*parsed)) + " here and " +
                                      std::string(dtype_name(tensor.dtype)) + " at " +
                                      known.first.pointer());
        return;
      }
      tensor.dtype = *parsed;
      known.dtype = true;
    }
    std::int64_t count = 0;
    if (!count_scalars(*data, count)) {
      error(pointer + "/data", "expected numbers or booleans, or lists of them");
    } else if (known.shape && count != *checked_element_count(tensor.shape)) {
      error(pointer + "/data", "constant " + in_quotes(name) + " has " + std::to_string(count) +
                                   " values, its shape " + shape_text(tensor.shape) + " needs " +
                                   std::to_string(*checked_element_count(tensor.shape)));
    }
  }

  static bool count_scalars(const Json& json, std::int64_t& count) {
    if (json.is_array()) {
      return std::all_of(json.begin(), json.end(),
                         [&](const Json& element) { return count_scalars(element, count); });
    }
    ++count;
    return json.is_number() || json.is_boolean() || json == "inf" || json == "-inf" ||
           json == "nan";
  }

  void read_operands(std::size_t n) {
    const Node& node = graph_.nodes()[n];
    if (!node.json.is_object()) return;
    const Json* inputs = array_member(node.json, "inputs", true, "/nodes/" + std::to_string(n));
    if (inputs == nullptr) return;
    for (std::size_t i = 0; i < inputs->size(); ++i) {
      const Place place{.list = "inputs", .node = static_cast<std::int64_t>(n), .index = i};
      const auto mention = read_mention((*inputs)[i], place);
      if (mention) add_operand(*mention, place);
    }
  }

  void add_operand(const Mention& mention, const Place& place) {
    Node& node = graph_.nodes()[static_cast<std::size_t>(place.node)];
    const TensorId id = resolve(mention, place);
    if (!id.valid()) {
      error(place.pointer(), "node " + in_quotes(node.name) + " reads tensor " +
                                 in_quotes(mention.name) + ", which nothing produces");
      return;
    }
    merge(id, mention, place);
    check_producer_of_operand(mention, graph_.tensor(id), place);
    node.inputs.push_back(id);
  }

  // ---- Streamed nodes ----

  // Operands that cannot be resolved before all results are known: weights, and what comes later.
  struct PendingNode {
    std::size_t node = 0;
    std::vector<std::string> texts;         // what the mentions point to
    std::vector<StreamedMention> mentions;  // empty: they stand in the object
  };

  template <typename Add>
  static void with_mention(const StreamedMention& streamed, const Add& add) {
    const std::string producer(streamed.producer);
    Mention mention;
    mention.name = streamed.name;
    mention.has_shape = true;
    mention.shape = streamed.shape;
    mention.dtype = streamed.dtype;
    if (streamed.names_producer) {
      mention.producer = &producer;
      mention.producer_output = streamed.producer_output;
    }
    add(mention);
  }

  // False if the list is none that the writer can make again.
  bool take_streamed(StreamedNode& streamed) {
    const std::size_t n = graph_.nodes().size();
    Node& node = graph_.nodes().emplace_back();
    node.json = std::move(streamed.json);
    node.name = streamed.name;
    node.op_type = streamed.op_type;
    read_node_fields(node, n);
    if (node.device) *find_member(node.json, "device") = true;  // the field wins
    if (streamed.outputs) {
      node.outputs.reserve(streamed.outputs->size());
      for (std::size_t i = 0; i < streamed.outputs->size(); ++i) {
        with_mention((*streamed.outputs)[i], [&](const Mention& mention) {
          add_result(mention,
                     {.list = "outputs", .node = static_cast<std::int64_t>(n), .index = i});
        });
      }
      if (!set_form(node, "outputs", *streamed.outputs)) return false;
    } else {
      read_results(n);
    }
    if (!streamed.inputs) {
      pending_.push_back({.node = n, .texts = {}, .mentions = {}});
      return true;
    }
    node.inputs.reserve(streamed.inputs->size());
    for (const StreamedMention& mention : *streamed.inputs) {
      const TensorId id = find_streamed(mention.name);
      if (!id.valid()) break;
      node.inputs.push_back(id);
    }
    if (node.inputs.size() == streamed.inputs->size()) return check_operands(n, *streamed.inputs);
    node.inputs.clear();
    PendingNode& pending = pending_.emplace_back();
    pending.node = n;
    pending.mentions = std::move(*streamed.inputs);
    pending.texts.reserve(2 * pending.mentions.size());
    for (StreamedMention& mention : pending.mentions) {
      mention.name = pending.texts.emplace_back(mention.name);
      mention.producer = pending.texts.emplace_back(mention.producer);
    }
    return true;
  }

  // Most nodes read what the node before them makes, which is found without the index.
  TensorId find_streamed(std::string_view name) const {
    const std::vector<TensorInfo>& tensors = graph_.tensors();
    for (std::size_t back = 1; back <= 2 && back <= tensors.size(); ++back) {
      const std::size_t place = tensors.size() - back;
      if (tensors[place].name == name) return TensorId{static_cast<std::int32_t>(place)};
    }
    return graph_.find_tensor(name);
  }

  // What mentions say of operands that are known.
  bool check_operands(std::size_t n, const std::vector<StreamedMention>& mentions) {
    for (std::size_t i = 0; i < mentions.size(); ++i) {
      const Place place{.list = "inputs", .node = static_cast<std::int64_t>(n), .index = i};
      const TensorId id = graph_.nodes()[n].inputs[i];
      with_mention(mentions[i], [&](const Mention& mention) {
        merge(id, mention, place);
        check_producer_of_operand(mention, graph_.tensor(id), place);
      });
    }
    return !diagnostics_.has_errors() && set_form(graph_.nodes()[n], "inputs", mentions);
  }

  bool take_operands(std::size_t n, const std::vector<StreamedMention>& mentions) {
    graph_.nodes()[n].inputs.reserve(mentions.size());
    for (std::size_t i = 0; i < mentions.size(); ++i) {
      with_mention(mentions[i], [&](const Mention& mention) {
        add_operand(mention, {.list = "inputs", .node = static_cast<std::int64_t>(n), .index = i});
      });
    }
    return !diagnostics_.has_errors() && set_form(graph_.nodes()[n], "inputs", mentions);
  }

  bool read_pending(const PendingNode& pending) {
    if (!pending.mentions.empty()) return take_operands(pending.node, pending.mentions);
    read_operands(pending.node);
    return true;
  }

  // Writes down how a list of mentions is made again; false if no form gives the same list.
  bool set_form(Node& node, std::string_view key, const std::vector<StreamedMention>& mentions) {
    const std::vector<TensorId>& ids = key == "inputs" ? node.inputs : node.outputs;
    if (ids.size() != mentions.size()) return false;
    for (const MentionForm form :
         {MentionForm::kBare, MentionForm::kResults, MentionForm::kAllButWeights}) {
      bool fits = true;
      for (std::size_t i = 0; i < ids.size() && fits; ++i) {
        const TensorInfo& tensor = graph_.tensor(ids[i]);
        fits = names_producer(tensor, form) == mentions[i].names_producer &&
               (!mentions[i].names_producer ||
                mentions[i].producer_output == static_cast<std::int64_t>(tensor.result));
      }
      if (!fits) continue;
      *find_member(node.json, key) = static_cast<unsigned>(form);
      return true;
    }
    return false;
  }

  void check_producer_of_operand(const Mention& mention, const TensorInfo& tensor,
                                 const Place& place) {
    if (mention.producer == nullptr) return;
    if (tensor.kind != TensorKind::kResult) {
      // A graph input names itself as its producer.
      if (*mention.producer != tensor.name) {
        error(place.pointer() + "/producer_node",
              "tensor " + in_quotes(tensor.name) + " is a " +
                  (tensor.kind == TensorKind::kGraphInput ? "graph input" : "weight") +
                  ", but names the producer " + in_quotes(*mention.producer));
      }
      return;
    }
    const Node& producer = graph_.node(tensor.producer);
    if (*mention.producer != producer.name) {
      error(place.pointer() + "/producer_node",
            "tensor " + in_quotes(tensor.name) + " is produced by node " +
                in_quotes(producer.name) + ", not by " + in_quotes(*mention.producer));
    } else if (mention.producer_output && *mention.producer_output != tensor.result) {
      error(place.pointer() + "/producer_output_idx",
            "tensor " + in_quotes(tensor.name) + " is result " + std::to_string(tensor.result) +
                " of node " + in_quotes(producer.name) + ", not " +
                std::to_string(*mention.producer_output));
    }
  }

  void read_graph_outputs() {
    const Json* outputs = array_member(graph_.document(), "graph_outputs", true, "");
    if (outputs == nullptr) return;
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const Place place{.list = "graph_outputs", .index = i};
      const auto mention = read_mention((*outputs)[i], place);
      if (!mention) continue;
      const TensorId id = resolve(*mention, place);
      if (!id.valid()) {
        error(place.pointer(), "nothing produces the graph output " + in_quotes(mention->name));
        continue;
      }
      merge(id, *mention, place);
      check_producer_of_operand(*mention, graph_.tensor(id), place);
      assembler_.add_graph_output(id);
    }
  }

  void check_tensors_complete() {
    for (std::size_t i = 0; i < graph_.tensors().size(); ++i) {
      const TensorInfo& tensor = graph_.tensors()[i];
      const Known& known = known_[i];
      if (!known.shape) {
        error(known.first.pointer(),
              "no mention of tensor " + in_quotes(tensor.name) + " gives its shape");
      }
      if (!known.dtype) {
        error(known.first.pointer(),
              "no mention of tensor " + in_quotes(tensor.name) + " gives its dtype");
      }
    }
  }

  GraphAssembler assembler_;
  Graph& graph_ = assembler_.graph();
  Diagnostics& diagnostics_;
  std::vector<Known> known_;
  std::vector<PendingNode> pending_;
  NameIndex<WeightEntry> weights_;
  NameIndex<const std::string*> mapping_;
  NameIndex<const Json*> constants_;
};

std::optional<Graph> stream_graph(std::string_view text, const std::string& file) {
  Diagnostics faults;  // those that are told are found again
  return DocumentReader(Json(), file, faults).stream(text);
}

void throw_first(const Diagnostics& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    if (diagnostic.level == Level::kError) {
      throw Error(ErrorCode::kInvalidGraph, diagnostic.text, diagnostic.location);
    }
  }
}

void log_read(const LogTimer& timer, const Graph& graph, std::string_view text) {
  timer.done([&] {
    return graph.file + ": " + std::to_string(text.size()) + " bytes, " +
           std::to_string(graph.nodes().size()) + " nodes, " +
           std::to_string(graph.tensors().size()) + " tensors";
  });
}

}  // namespace

Graph read_graph(std::string_view text, const std::string& file, Diagnostics& diagnostics) {
  return read_sized_graph(text, file, {}, diagnostics);
}

Graph read_sized_graph(std::string_view text, const std::string& file, const SizeBindings& values,
                       Diagnostics& diagnostics, const TemplateCheckFunction& check) {
  const LogTimer timer(LogModule::kRead);
  std::optional<Graph> streamed = stream_graph(text, file);
  bool has_bare = false;
  Json document = streamed ? Json() : parse_python_json(text, file, &has_bare);
  // Of what npu-tools add no number may be that.
  if (const Json* npu = find_member(document, "npu"); has_bare && npu && has_non_finite(*npu)) {
    throw Error(ErrorCode::kInvalidGraph, "expected finite numbers, found Infinity or NaN",
                {.file = file, .pointer = "/npu"});
  }
  Graph graph;
  if (SizeSymbols::are_in(document)) {
    const Template model = Template::read(std::move(document), file, diagnostics);
    if (check && !diagnostics.has_errors()) check(model, diagnostics);
    if (diagnostics.has_errors()) return graph;
    graph = bind_sizes(model, values, diagnostics);
  } else {
    if (!values.empty()) {
      throw Error(ErrorCode::kUsage, "--bind: " + file + " has no sizes that vary");
    }
    graph =
        streamed ? *std::move(streamed) : assemble_graph(std::move(document), file, diagnostics);
  }
  log_read(timer, graph, text);
  return graph;
}

Graph assemble_graph(Json document, const std::string& file, Diagnostics& diagnostics) {
  return DocumentReader(std::move(document), file, diagnostics).assemble();
}

Graph valid_graph(Json document, const std::string& file) {
  Diagnostics diagnostics;
  Graph graph = assemble_graph(std::move(document), file, diagnostics);
  throw_first(diagnostics);
  return graph;
}

Graph read_valid_graph(std::string_view text, const std::string& file) {
  Diagnostics diagnostics;
  Graph graph = read_graph(text, file, diagnostics);
  throw_first(diagnostics);
  return graph;
}

}  // namespace npu
