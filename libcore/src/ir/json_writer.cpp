// SPDX-License-Identifier: Apache-2.0
// Writes a document so that people can diff and grep it: each member of the top level and each
// element of its arrays on a separate line, everything below them compact. O(size of the
// text).
#include "npu/ir/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "ir/folded_nodes.hpp"
#include "ir/mention_form.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

template <typename Integer>
void append_integer(std::string& text, Integer value) {
  std::array<char, 24> digits{};
  const auto result = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  text.append(digits.data(), result.ptr);
}

// True for characters that JSON does not escape, one byte each.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; });
}

void append_string(std::string& text, std::string_view value) {
  if (is_plain(value)) {
    text += '"';
    text += value;
    text += '"';
    return;
  }
  try {
    text += Json(value).dump();
  } catch (const Json::exception&) {
    throw Error(ErrorCode::kUsage, "a name or path that would be written is not valid UTF-8");
  }
}

// One that is not finite as it was read, in the words of Python's json module.
void append_float(std::string& text, const Json& value) {
  const double number = value.get<double>();
  if (std::isfinite(number)) {
    text += value.dump();
  } else {
    text += std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
}

// What Json::dump gives, without a serializer and a string per value: a third of npu-tag's time.
void append_value(std::string& text, const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: {
      char separator = '{';
      for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
        text += separator;
        append_string(text, key);
        text += ':';
        append_value(text, member);
        separator = ',';
      }
      text += separator == '{' ? "{}" : "}";
      return;
    }
    case Json::value_t::array: {
      char separator = '[';
      for (const Json& element : value.get_ref<const Json::array_t&>()) {
        text += separator;
        append_value(text, element);
        separator = ',';
      }
      text += separator == '[' ? "[]" : "]";
      return;
    }
    case Json::value_t::string:
      append_string(text, value.get_ref<const std::string&>());
      return;
    case Json::value_t::number_integer:
      append_integer(text, value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      append_integer(text, value.get<std::uint64_t>());
      return;
    case Json::value_t::number_float:
      append_float(text, value);
      return;
    default:
      text += value.dump();
  }
}

void append_member(std::string& text, std::string_view key, const Json& value, bool& first) {
  if (!first) text += ", ";
  first = false;
  append_string(text, key);
  text += ": ";
  append_value(text, value);
}

void append_mentions(std::string& text, const Graph& graph, const std::vector<TensorId>& ids,
                     MentionForm form) {
  char separator = '[';
  for (const TensorId id : ids) {
    const TensorInfo& tensor = graph.tensor(id);
    text += separator;
    separator = ',';
    text += "{\"name\":";
    append_string(text, tensor.name);
    text += ",\"shape\":[";
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (axis > 0) text += ',';
      append_integer(text, tensor.shape[axis]);
    }
    text += "],\"dtype\":\"";
    text += dtype_name(tensor.dtype);
    text += '"';
    if (names_producer(tensor, form)) {
      text += ",\"producer_node\":";
      append_string(text, is_computed(tensor) ? graph.producer_name(tensor) : tensor.name);
      text += ",\"producer_output_idx\":";
      append_integer(text, tensor.result);
    }
    text += '}';
  }
  text += separator == '[' ? "[]" : "]";
}

// True if `value` stands for what the graph knows, which is written then.
bool append_known(std::string& text, const Graph& graph, const Node& node, std::string_view key,
                  const Json& value, bool& first) {
  const auto form = mention_form(value);
  const bool is_list = form && (key == "inputs" || key == "outputs");
  const bool is_name = value.is_null() && (key == "name" || key == "op_type");
  if (!is_list && !is_name) return false;
  if (!first) text += ", ";
  first = false;
  append_string(text, key);
  text += ": ";
  if (is_list) {
    append_mentions(text, graph, key == "inputs" ? node.inputs : node.outputs, *form);
  } else {
    append_string(text, key == "name" ? node.name : node.op_type);
  }
  return true;
}

// Typed fields of a node win over the keys of the object that was read; the order of keys stays.
void append_node(std::string& text, const Graph& graph, const Node& node) {
  std::array<std::pair<std::string_view, Json>, 4> typed{{
      {"device", node.device ? Json(*node.device) : Json()},
      {"device_reason", node.device_reason ? Json(*node.device_reason) : Json()},
      {"fusion_group", node.fusion_group ? Json(*node.fusion_group) : Json()},
      {"partition", node.partition ? Json(*node.partition) : Json()},
  }};
  bool first = true;
  text += '{';
  for (const auto& [key, value] : node.json.get_ref<const Json::object_t&>()) {
    if (append_known(text, graph, node, key, value, first)) continue;
    auto* field = typed.begin();
    while (field != typed.end() && field->first != key) ++field;
    if (field == typed.end()) {
      append_member(text, key, value, first);
    } else {
      // A null that was read means the same as no value, and is kept.
      if (!field->second.is_null() || value.is_null())
        append_member(text, key, field->second, first);
      field->second = Json();
    }
  }
  for (const auto& [key, value] : typed) {
    if (!value.is_null()) append_member(text, key, value, first);
  }
  text += '}';
}

template <typename Range, typename Append>
void append_lines(std::string& text, const Range& range, std::size_t indent, Append append) {
  text += '[';
  bool first = true;
  for (const auto& element : range) {
    text += first ? "\n" : ",\n";
    text.append(indent + 2, ' ');
    first = false;
    append(element);
  }
  if (!first) text.append("\n").append(indent, ' ');
  text += ']';
}

// Breaks objects into lines down to `depth`, and arrays of objects or arrays that are direct
// members of such an object.
void append_broken(std::string& text, const Json& value, std::size_t indent, int depth) {
  if (value.is_array() && !value.empty() && value.front().is_structured()) {
    append_lines(text, value, indent, [&](const Json& element) { append_value(text, element); });
  } else if (value.is_object() && !value.empty() && depth > 0) {
    text += '{';
    bool first = true;
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
      text += first ? "\n" : ",\n";
      first = false;
      text.append(indent + 2, ' ');
      append_string(text, key);
      text += ": ";
      append_broken(text, member, indent + 2, depth - 1);
    }
    text.append("\n").append(indent, ' ');
    text += '}';
  } else {
    append_value(text, value);
  }
}

// weight_name_mapping and constants get a line per member; npu one per member of each section.
int depth_of(std::string_view key) { return key == "npu" ? 2 : 1; }

// A document below attrs: only what stands for numbers in it is one.
void set_form_of_document(Json& document, NonFiniteForm form);

void set_form_of_attrs(Json& attrs, NonFiniteForm form) {
  if (!attrs.is_object()) return set_non_finite_form(attrs, form);
  for (auto& [key, value] : attrs.get_ref<Json::object_t&>()) {
    if (key == "body" && value.is_object()) {
      set_form_of_document(value, form);
    } else {
      set_non_finite_form(value, form);
    }
  }
}

void set_form_of_constants(Json& document, NonFiniteForm form) {
  Json* constants = find_member(document, "constants");
  if (constants == nullptr || !constants->is_object()) return;
  for (Json& constant : *constants) {
    if (Json* data = find_member(constant, "data")) set_non_finite_form(*data, form);
  }
}

void set_form_of_document(Json& document, NonFiniteForm form) {
  set_form_of_constants(document, form);
  Json* nodes = find_member(document, "nodes");
  if (nodes == nullptr || !nodes->is_array()) return;
  for (Json& node : *nodes) {
    if (Json* attrs = find_member(node, "attrs")) set_form_of_attrs(*attrs, form);
  }
}

}  // namespace

void set_non_finite_form(Graph& graph, NonFiniteForm form) {
  set_form_of_constants(graph.document(), form);
  const auto set = [&](Node& node) {
    if (Json* attrs = find_member(node.json, "attrs")) set_form_of_attrs(*attrs, form);
  };
  for (Node& node : graph.nodes()) set(node);
  for (FoldedNode& folded : graph.folded()) set(folded.node);
}

std::string write_document(const Json& document) {
  std::string text;
  append_broken(text, document, 0, 3);
  text += '\n';
  return text;
}

std::string write_graph(const Graph& graph) {
  std::string text;
  text.reserve(graph.nodes().size() * 800 + 4096);
  text += '{';
  bool first = true;
  for (const auto& [key, value] : graph.document().get_ref<const Json::object_t&>()) {
    text += first ? "\n  " : ",\n  ";
    first = false;
    append_string(text, key);
    text += ": ";
    if (key == "nodes") {
      append_lines(text, document_nodes(graph), 2,
                   [&](const Node* node) { append_node(text, graph, *node); });
    } else {
      append_broken(text, value, 2, depth_of(key));
    }
  }
  text += "\n}\n";
  return text;
}

}  // namespace npu
