// SPDX-License-Identifier: Apache-2.0
// Writes a document so that people can diff and grep it: each member of the top level and each
// element of its arrays on a separate line, everything below them compact. The text can be passed
// on in pieces of about a megabyte; all its strings are checked before the first of several. O(size
// of the text).
#include "npu/ir/json_writer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "ir/folded_nodes.hpp"
#include "ir/mention_form.hpp"
#include "npu/support/error.hpp"
#include "support/json_dom.hpp"

namespace npu {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kMostHeldBytes = std::size_t{1} << 20;

// Where text goes: all of it stays, or each piece is passed on.
struct Output {
  std::string text;
  const TextSink* sink = nullptr;
  const Graph* unchecked = nullptr;  // whose strings nobody has looked at
  bool is_sub_ir = false;            // nodes without blanks

  void end_of_line() {
    if (sink != nullptr && text.size() >= kMostHeldBytes) pass_on();
  }
  void pass_on();
};

[[noreturn]] void refuse_encoding() {
  throw Error(ErrorCode::kUsage, "a name or path that would be written is not valid UTF-8");
}

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
    refuse_encoding();
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
      text += separator == '{' ? "{}"sv : "}"sv;
      return;
    }
    case Json::value_t::array: {
      char separator = '[';
      for (const Json& element : value.get_ref<const Json::array_t&>()) {
        text += separator;
        append_value(text, element);
        separator = ',';
      }
      text += separator == '[' ? "[]"sv : "]"sv;
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

// Of a node.
void append_key(Output& out, std::string_view key, bool& first) {
  if (!first) out.text += out.is_sub_ir ? ","sv : ", "sv;
  first = false;
  append_string(out.text, key);
  out.text += out.is_sub_ir ? ":"sv : ": "sv;
}

void append_node_member(Output& out, std::string_view key, const Json& value, bool& first) {
  append_key(out, key, first);
  append_value(out.text, value);
}

void append_mentions(std::string& text, const Graph& graph, const std::vector<TensorId>& ids,
                     MentionForm form) {
  char separator = '[';
  for (const TensorId id : ids) {
    const TensorInfo& tensor = graph.tensor(id);
    text += separator;
    separator = ',';
    text += "{\"name\":"sv;
    append_string(text, tensor.name);
    text += ",\"shape\":["sv;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (axis > 0) text += ',';
      append_integer(text, tensor.shape[axis]);
    }
    text += "],\"dtype\":\""sv;
    text += dtype_name(tensor.dtype);
    text += '"';
    if (names_producer(tensor, form)) {
      text += ",\"producer_node\":"sv;
      append_string(text, is_computed(tensor) ? graph.producer_name(tensor) : tensor.name);
      text += ",\"producer_output_idx\":"sv;
      append_integer(text, tensor.result);
    }
    text += '}';
  }
  text += separator == '[' ? "[]"sv : "]"sv;
}

// True if `value` stands for what the graph knows, which is written then.
bool append_known(Output& out, const Graph& graph, const Node& node, std::string_view key,
                  const Json& value, bool& first) {
  const auto form = mention_form(value);
  const bool is_list = form && (key == "inputs"sv || key == "outputs"sv);
  const bool is_name = value.is_null() && (key == "name"sv || key == "op_type"sv);
  if (!is_list && !is_name) return false;
  append_key(out, key, first);
  if (is_list) {
    append_mentions(out.text, graph, key == "inputs"sv ? node.inputs : node.outputs, *form);
  } else {
    append_string(out.text, key == "name"sv ? node.name : node.op_type);
  }
  return true;
}

// A member of a node that has a field of its own.
struct TypedMember {
  std::string_view key;
  const std::optional<std::string>* text = nullptr;
  const std::optional<std::int64_t>* number = nullptr;
  bool written = false;

  bool has_value() const { return text != nullptr ? text->has_value() : number->has_value(); }
  void append(Output& out, bool& first) {
    written = true;
    append_key(out, key, first);
    if (!has_value()) {
      out.text += "null"sv;
    } else if (text != nullptr) {
      append_string(out.text, **text);
    } else {
      append_integer(out.text, **number);
    }
  }
};

// Typed fields of a node win over the keys of the object that was read; the order of keys stays.
void append_node(Output& out, const Graph& graph, const Node& node) {
  std::array<TypedMember, 4> typed{{{.key = "device", .text = &node.device},
                                    {.key = "device_reason", .text = &node.device_reason},
                                    {.key = "fusion_group", .number = &node.fusion_group},
                                    {.key = "partition", .number = &node.partition}}};
  bool first = true;
  out.text += '{';
  for (const auto& [key, value] : node.json.get_ref<const Json::object_t&>()) {
    if (append_known(out, graph, node, key, value, first)) continue;
    auto* member = typed.begin();
    while (member != typed.end() && member->key != key) ++member;
    if (member == typed.end()) {
      append_node_member(out, key, value, first);
    } else if (member->has_value() || value.is_null()) {
      // A null that was read means the same as no value, and is kept.
      member->append(out, first);
    }
  }
  for (TypedMember& member : typed) {
    if (!member.written && member.has_value()) member.append(out, first);
  }
  out.text += '}';
}

template <typename Range, typename Append>
void append_lines(Output& out, const Range& range, std::size_t indent, Append append) {
  std::string& text = out.text;
  text += '[';
  bool first = true;
  for (const auto& element : range) {
    text += first ? "\n"sv : ",\n"sv;
    text.append(indent + 2, ' ');
    first = false;
    append(element);
    out.end_of_line();
  }
  if (!first) text.append("\n").append(indent, ' ');
  text += ']';
}

// Breaks objects into lines down to `depth`, and arrays of objects or arrays that are direct
// members of such an object.
void append_broken(Output& out, const Json& value, std::size_t indent, int depth) {
  std::string& text = out.text;
  if (value.is_array() && !value.empty() && value.front().is_structured()) {
    append_lines(out, value, indent, [&](const Json& element) { append_value(text, element); });
  } else if (value.is_object() && !value.empty() && depth > 0) {
    text += '{';
    bool first = true;
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>()) {
      text += first ? "\n"sv : ",\n"sv;
      first = false;
      text.append(indent + 2, ' ');
      append_string(text, key);
      text += ": "sv;
      append_broken(out, member, indent + 2, depth - 1);
      out.end_of_line();
    }
    text.append("\n").append(indent, ' ');
    text += '}';
  } else {
    append_value(text, value);
  }
}

// weight_name_mapping and constants get a line per member; npu one per member of each section.
int depth_of(std::string_view key) { return key == "npu" ? 2 : 1; }

void append_graph(Output& out, const Graph& graph) {
  std::string& text = out.text;
  text += '{';
  bool first = true;
  for (const auto& [key, value] : graph.document().get_ref<const Json::object_t&>()) {
    text += first ? "\n  "sv : ",\n  "sv;
    first = false;
    append_string(text, key);
    text += ": "sv;
    if (key == "nodes"sv) {
      append_lines(out, document_nodes(graph), 2,
                   [&](const Node* node) { append_node(out, graph, *node); });
    } else {
      append_broken(out, value, 2, depth_of(key));
    }
  }
  text += "\n}\n";
}

void check_string(std::string_view text) {
  unsigned char bits = 0;
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  if (bits < 0x80) return;
  if (!simdjson::validate_utf8(text.data(), text.size())) refuse_encoding();
}

void check_strings(const Json& json) {
  if (json.is_string()) return check_string(json.get_ref<const std::string&>());
  if (json.is_array()) {
    for (const Json& element : json.get_ref<const Json::array_t&>()) check_strings(element);
  } else if (json.is_object()) {
    for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
      check_string(key);
      check_strings(value);
    }
  }
}

void check_strings(const Graph& graph) {
  check_strings(graph.document());
  for (const TensorInfo& tensor : graph.tensors()) check_string(tensor.name);
  for (const Node* node : document_nodes(graph)) {
    check_string(node->name);
    check_string(node->op_type);
    if (node->device) check_string(*node->device);
    if (node->device_reason) check_string(*node->device_reason);
    check_strings(node->json);
  }
}

void Output::pass_on() {
  if (unchecked != nullptr) check_strings(*std::exchange(unchecked, nullptr));
  (*sink)(text);
  text.clear();
}

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
  Output out;
  append_broken(out, document, 0, 3);
  out.text += '\n';
  return std::move(out.text);
}

std::string write_graph(const Graph& graph) {
  Output out;
  out.text.reserve(graph.nodes().size() * 800 + 4096);
  append_graph(out, graph);
  return std::move(out.text);
}

std::string write_sub_ir(const Graph& graph) {
  Output out{.text = {}, .is_sub_ir = true};
  append_graph(out, graph);
  return std::move(out.text);
}

void write_graph(const Graph& graph, const TextSink& sink) {
  Output out{.text = {}, .sink = &sink, .unchecked = &graph};
  append_graph(out, graph);
  sink(out.text);
}

}  // namespace npu
