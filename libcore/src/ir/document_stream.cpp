// SPDX-License-Identifier: Apache-2.0
// Reads a document node by node.
//
// A scan finds the list of nodes by quotes and brackets alone, and cuts it between nodes into
// pieces of about a megabyte. The pieces, and the text without them, are each parsed strictly;
// together they are the document, so what is accepted here is what parse_json accepts. Parser and
// piece stay in the second-level cache, and what simdjson holds of a text, six times its size, is
// held of a piece. O(size of the text).
#include "ir/document_stream.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "support/checked.hpp"
#include "support/json_dom.hpp"

namespace npu {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

using simdjson::dom::element;
using simdjson::dom::element_type;

struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Where the list of nodes of a document lies, and the pieces between whose ends its commas are.
struct NodeList {
  std::size_t begin = 0;  // behind the bracket
  std::size_t end = 0;    // at the bracket
  std::vector<Piece> pieces;
  std::size_t count = 1;  // of nodes, if there are any
};

// The quote that ends a string; npos if none does.
std::size_t string_end(std::string_view text, std::size_t begin) {
  for (std::size_t end = begin; (end = text.find('"', end)) != std::string_view::npos; ++end) {
    std::size_t escapes = 0;
    while (text[end - escapes - 1] == '\\') ++escapes;  // stops at the opening quote at the latest
    if (escapes % 2 == 0) return end;
  }
  return std::string_view::npos;
}

// Nothing if the text has no such list, or is no JSON.
std::optional<NodeList> find_nodes(std::string_view text) {
  NodeList list;
  std::string_view key;
  int depth = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"': {
        const std::size_t end = string_end(text, i + 1);
        if (end == std::string_view::npos) return std::nullopt;
        if (depth == 1) key = text.substr(i + 1, end - i - 1);
        i = end;
        break;
      }
      case '[':
        if (depth == 1 && key == "nodes") {
          if (list.begin != 0) return std::nullopt;  // a duplicate
          inside = true;
          list.begin = i + 1;
          list.pieces.push_back({list.begin, 0});
        }
        ++depth;
        break;
      case '{':
        ++depth;
        break;
      case ']':
      case '}':
        --depth;
        if (depth == 1 && inside) {
          inside = false;
          list.end = list.pieces.back().end = i;
        }
        break;
      case ',':
        if (depth != 2 || !inside) break;
        ++list.count;
        if (i - list.pieces.back().begin >= kPieceBytes) {
          list.pieces.back().end = i;
          list.pieces.push_back({i + 1, 0});
        }
        break;
      default:
        break;
    }
  }
  if (list.end == 0) return std::nullopt;
  return list;
}

class Streamer {
 public:
  explicit Streamer(std::size_t depth) : depth_(depth) {}

  // Of a text, which gets the room behind it that the parser needs.
  bool parse(std::string& buffer, element& root) {
    buffer.reserve(buffer.size() + simdjson::SIMDJSON_PADDING);
    if (buffer.size() > capacity_) {
      if (parser_.allocate(buffer.size(), depth_) != simdjson::SUCCESS) return false;
      capacity_ = buffer.size();
    }
    return parser_.parse(buffer.data(), buffer.size(), false).get(root) == simdjson::SUCCESS;
  }

  bool read_node(const element& json, StreamedNode& node) {
    simdjson::dom::object object;
    if (json.get(object) != simdjson::SUCCESS) return false;
    node = {};
    node.json = Json::object();
    auto& members = node.json.get_ref<Json::object_t&>();
    members.reserve(object.size());
    for (const simdjson::dom::key_value_pair pair : object) {
      for (const auto& member : members) {
        if (member.first == pair.key) return false;  // a duplicate; nodes have few keys
      }
      Json& value = members.emplace_back(std::string(pair.key), Json()).second;
      if (pair.key == "name" || pair.key == "op_type") {
        std::string_view& text = pair.key == "name" ? node.name : node.op_type;
        if (pair.value.get(text) != simdjson::SUCCESS || text.empty()) return false;
      } else if (pair.key == "inputs" || pair.key == "outputs") {
        auto& list = pair.key == "inputs" ? node.inputs : node.outputs;
        list = read_mentions(pair.value);
        if (list) {
          value = 0U;
        } else if (!convert_element(pair.value, value)) {
          return false;
        }
      } else if (!convert_element(pair.value, value)) {
        return false;
      }
    }
    return !node.name.empty() && !node.op_type.empty();
  }

 private:
  static std::optional<std::vector<StreamedMention>> read_mentions(const element& json) {
    simdjson::dom::array array;
    if (json.get(array) != simdjson::SUCCESS) return std::nullopt;
    std::optional<std::vector<StreamedMention>> mentions{std::in_place};
    mentions->reserve(array.size());
    for (const element child : array) {
      if (!read_mention(child, mentions->emplace_back())) return std::nullopt;
    }
    return mentions;
  }

  // Keys other than these, in this order, are for the general reader.
  static bool read_mention(const element& json, StreamedMention& mention) {
    static constexpr std::string_view kKeys[] = {"name", "shape", "dtype", "producer_node",
                                                 "producer_output_idx"};
    simdjson::dom::object object;
    if (json.get(object) != simdjson::SUCCESS) return false;
    if (object.size() != 3 && object.size() != std::size(kKeys)) return false;
    mention.names_producer = object.size() != 3;
    std::size_t place = 0;
    for (const simdjson::dom::key_value_pair pair : object) {
      if (pair.key != kKeys[place]) return false;
      if (!read_part(place, pair.value, mention)) return false;
      ++place;
    }
    return !mention.name.empty();
  }

  static bool read_part(std::size_t place, const element& value, StreamedMention& mention) {
    switch (place) {
      case 0:
        return value.get(mention.name) == simdjson::SUCCESS;
      case 1:
        return read_shape(value, mention.shape);
      case 2: {
        std::string_view text;
        if (value.get(text) != simdjson::SUCCESS) return false;
        const auto dtype = parse_dtype(text);
        if (!dtype || dtype_name(*dtype) != text) return false;
        mention.dtype = *dtype;
        return true;
      }
      case 3:
        return value.get(mention.producer) == simdjson::SUCCESS;
      default:
        return value.type() == element_type::INT64 &&
               value.get(mention.producer_output) == simdjson::SUCCESS;
    }
  }

  static bool read_shape(const element& json, Shape& shape) {
    simdjson::dom::array array;
    if (json.get(array) != simdjson::SUCCESS) return false;
    shape.reserve(array.size());
    for (const element child : array) {
      std::int64_t extent = 0;
      if (child.type() != element_type::INT64 || child.get(extent) != simdjson::SUCCESS ||
          extent < 0) {
        return false;
      }
      shape.push_back(extent);
    }
    const auto count = checked_element_count(shape);
    return count && checked_multiply(*count, 16);
  }

  simdjson::dom::parser parser_;
  std::size_t depth_;
  std::size_t capacity_ = 0;
};

// The document without its nodes.
bool read_top_level(std::string_view text, const NodeList& list, Json& document) {
  std::string buffer(text.substr(0, list.begin));
  buffer += text.substr(list.end);
  Streamer streamer(kMaxJsonDepth);
  element root;
  return streamer.parse(buffer, root) && root.type() == element_type::OBJECT &&
         convert_element(root, document);
}

}  // namespace

bool stream_document(std::string_view text,
                     const std::function<bool(Json, std::size_t)>& on_document,
                     const std::function<bool(StreamedNode&)>& on_node) {
  const auto list = find_nodes(text);
  if (!list) return false;
  Json document;
  if (!read_top_level(text, *list, document) || !on_document(std::move(document), list->count)) {
    return false;
  }
  const bool is_empty =
      text.substr(list->begin, list->end - list->begin).find_first_not_of(" \t\r\n") ==
      std::string_view::npos;
  if (is_empty) return true;
  Streamer streamer(kMaxJsonDepth - 1);  // the list stands in the document
  std::string buffer;
  StreamedNode node;
  for (const Piece& piece : list->pieces) {
    buffer = '[';
    buffer += text.substr(piece.begin, piece.end - piece.begin);
    buffer += ']';
    element root;
    simdjson::dom::array array;
    if (!streamer.parse(buffer, root) || root.get(array) != simdjson::SUCCESS) return false;
    std::size_t count = 0;
    for (const element child : array) {
      if (!streamer.read_node(child, node) || !on_node(node)) return false;
      ++count;
    }
    if (count == 0) return false;  // nothing between two commas
  }
  return true;
}

}  // namespace npu
