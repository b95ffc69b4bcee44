// SPDX-License-Identifier: Apache-2.0
// Templates: documents with sizes that vary, and the ordinary documents that numbers make of them.
//
// The JSON of the document is walked, once to read and once for each binding: shapes of graph
// inputs and outputs and of nodes' operands and results, and strings in attrs. A text is parsed
// once, however often it stands in the document. Nothing behind this file knows of symbols.
// O(size of the document x samples) to read, O(size of the document) to bind.
#include "ir/bind_sizes.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "npu/ir/json_reader.hpp"
#include "npu/tensor/tensor.hpp"
#include "support/checked.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr int kDeepestAttrs = 8;  // lists of lists in attrs

/// Where something stands, made into a JSON Pointer for messages only.
struct SizePlace {
  std::string_view base;   // of the document: empty, or where the body of a node stands
  std::string_view list;   // "graph_inputs", "inputs", ...
  std::int64_t node = -1;  // -1: top level
  std::size_t index = 0;
  std::string pointer() const {
    return std::string(base) + (node < 0 ? "/" : "/nodes/" + std::to_string(node) + "/") +
           std::string(list) + "/" + std::to_string(index);
  }
};

std::string text_member(const Json& json, std::string_view key) {
  const Json* member = json.is_object() ? find_member(json, key) : nullptr;
  return member != nullptr && member->is_string() ? member->get<std::string>() : std::string();
}

/// Hands out all places of a document where a size may stand. `Document` is Json or const Json.
template <typename Document>
class SizeWalk {
 public:
  /// A mention of a tensor with a shape that is an array; the name is empty in the body of a node,
  /// whose names are its own.
  std::function<void(std::string_view tensor, Document& shape, const SizePlace& place)> on_shape;
  /// A string in attrs.
  std::function<void(Document& text, const std::string& pointer)> on_attribute;

  void walk(Document& document, const std::string& base = {}) {
    if (!document.is_object()) return;
    mentions(document, "weights", base, -1);
    mentions(document, "graph_inputs", base, -1);
    Document* nodes = find_member(document, "nodes");
    for (std::size_t n = 0; nodes != nullptr && nodes->is_array() && n < nodes->size(); ++n) {
      Document& node = (*nodes)[n];
      const auto number = static_cast<std::int64_t>(n);
      mentions(node, "inputs", base, number);
      mentions(node, "outputs", base, number);
      Document* attrs = node.is_object() ? find_member(node, "attrs") : nullptr;
      if (attrs == nullptr || !attrs->is_object()) continue;
      const std::string pointer = base + "/nodes/" + std::to_string(n) + "/attrs/";
      for (const auto& item : attrs->items()) {
        attribute(item.value(), pointer + pointer_token(item.key()), kDeepestAttrs);
      }
    }
    mentions(document, "graph_outputs", base, -1);
  }

 private:
  void attribute(Document& value, const std::string& pointer, int depth) {
    if (value.is_string()) return on_attribute(value, pointer);
    // The body of a region of the model.
    if (value.is_object()) return walk(value, pointer);
    if (!value.is_array() || depth == 0) return;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_string() || value[i].is_array()) {
        attribute(value[i], pointer + "/" + std::to_string(i), depth - 1);
      }
    }
  }

  void mentions(Document& owner, std::string_view list, const std::string& base,
                std::int64_t node) {
    Document* all = owner.is_object() ? find_member(owner, list) : nullptr;
    if (all == nullptr || !all->is_array()) return;
    for (std::size_t i = 0; i < all->size(); ++i) {
      Document& mention = (*all)[i];
      Document* shape = mention.is_object() ? find_member(mention, "shape") : nullptr;
      if (shape == nullptr || !shape->is_array()) continue;
      std::string name = text_member(mention, "name");
      // As the reader names results that are mentioned without one.
      if (name.empty() && list == "outputs") {
        name = text_member(owner, "name") + (all->size() == 1 ? "" : "_" + std::to_string(i));
      }
      on_shape(base.empty() ? name : std::string(), *shape,
               {.base = base, .list = list, .node = node, .index = i});
    }
  }
};

}  // namespace

class TemplateReader {
 public:
  TemplateReader(Template& model, Diagnostics& diagnostics)
      : model_(model), diagnostics_(diagnostics) {}

  void read() {
    const Json& document = model_.document_;
    const std::size_t before = diagnostics_.error_count();
    const Json* npu = find_member(document, "npu");
    const Json* symbols = npu != nullptr ? find_member(*npu, "symbols") : nullptr;
    if (symbols == nullptr) return;
    model_.symbols_ = SizeSymbols::read(*symbols, model_.file_, diagnostics_);
    if (diagnostics_.error_count() > before) return;
    samples_ = model_.symbols_.samples();
    SizeWalk<const Json> walk;
    walk.on_shape = [&](std::string_view tensor, const Json& shape, const SizePlace& place) {
      read_shape(tensor, shape, place);
    };
    walk.on_attribute = [&](const Json& text, const std::string& pointer) {
      if (const auto size = model_.size_in_attrs(text.get_ref<const std::string&>())) {
        note_use(*size);
        check_values(*size, pointer);
      }
    };
    walk.walk(document);
    check_origins();
    for (const SizeSymbol& symbol : model_.symbols_.list()) {
      if (used_.contains(symbol.name)) continue;
      error("/npu/symbols/" + pointer_token(symbol.name), "no size mentions '" + symbol.name + "'");
    }
  }

 private:
  void error(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = model_.file_, .pointer = pointer}, std::move(text));
  }

  void note_use(const SizeExpression& size) { used_.merge(size.symbols()); }

  // Parsed once for each text; null, with a message at the first place, if it is none.
  const SizeExpression* size_of(const std::string& text, std::string_view tensor,
                                const std::function<std::string()>& pointer) {
    const auto [found, is_new] = parsed_.try_emplace(text);
    if (!is_new) return found->second ? &*found->second : nullptr;
    try {
      const SizeExpression size = SizeExpression::parse(text);
      for (const std::string& name : size.symbols()) {
        if (model_.symbols_.find(name) != nullptr) continue;
        error(pointer(), "tensor '" + short_text(tensor) + "' has the size '" + short_text(text) +
                             "' of '" + name + "', which npu.symbols does not have; it has " +
                             model_.symbols_.names());
        return nullptr;
      }
      found->second = size;
      note_use(size);
      return &*found->second;
    } catch (const Error& fault) {
      error(pointer(), "tensor '" + short_text(tensor) + "': " + fault.message());
      return nullptr;
    }
  }

  void read_shape(std::string_view tensor, const Json& json, const SizePlace& place) {
    SizeShape shape;
    bool varies = false;
    for (std::size_t i = 0; i < json.size(); ++i) {
      const auto pointer = [&] { return place.pointer() + "/shape/" + std::to_string(i); };
      if (json[i].is_number_integer()) {
        // The least int64 and what no int64 holds are told when the document is bound.
        if (json[i] < 0 || json[i] > INT64_MAX) return;
        shape.emplace_back(json[i].get<std::int64_t>());
        continue;
      }
      if (!json[i].is_string()) return;
      if (place.list == "weights") {
        return error(pointer(), "weight '" + short_text(tensor) + "' has the size '" +
                                    short_text(json[i].get_ref<const std::string&>()) +
                                    "'; expected an integer, since weights do not vary");
      }
      const SizeExpression* size = size_of(json[i].get_ref<const std::string&>(), tensor, pointer);
      if (size == nullptr) return;
      varies = varies || !size->is_constant();
      shape.push_back(*size);
    }
    if (varies && !check_shape(tensor, shape, place)) return;
    if (tensor.empty()) return;
    const auto [known, is_new] = model_.shapes_.try_emplace(std::string(tensor), shape);
    if (is_new || is_same(known->second, shape)) return;
    error(place.pointer() + "/shape", "tensor '" + short_text(tensor) + "' has sizes " +
                                          text_of(shape) + " here and " + text_of(known->second) +
                                          " where it was mentioned first");
  }

  static std::string text_of(const SizeShape& shape) {
    std::string text;
    for (const SizeExpression& size : shape) text += (text.empty() ? "" : ", ") + size.text();
    return "[" + short_text(text) + "]";
  }

  // Different forms of one size are told apart by values.
  bool is_same(const SizeShape& a, const SizeShape& b) const {
    if (a == b) return true;
    if (a.size() != b.size()) return false;
    return std::all_of(samples_.begin(), samples_.end(), [&](const SizeBindings& sample) {
      return std::equal(a.begin(), a.end(), b.begin(),
                        [&](const SizeExpression& x, const SizeExpression& y) {
                          return x.evaluate(sample) == y.evaluate(sample);
                        });
    });
  }

  bool check_shape(std::string_view tensor, const SizeShape& shape, const SizePlace& place) {
    for (const SizeBindings& sample : samples_) {
      Shape numbers;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        const std::string pointer = place.pointer() + "/shape/" + std::to_string(i);
        const auto value = checked_value(shape[i], sample, pointer);
        if (!value) return false;
        if (*value < 0) {
          error(pointer, "tensor '" + short_text(tensor) + "' has the size '" +
                             short_text(shape[i].text()) + "', which is " + std::to_string(*value) +
                             " for " + bindings_text(sample) +
                             "; expected at least 0 for all values of npu.symbols");
          return false;
        }
        numbers.push_back(*value);
      }
      const auto count = checked_element_count(numbers);
      if (!count || !checked_multiply(*count, 16)) {
        error(place.pointer() + "/shape", "tensor '" + short_text(tensor) + "' of shape " +
                                              shape_text(numbers) + " for " +
                                              bindings_text(sample) + " is too large");
        return false;
      }
    }
    return true;
  }

  std::optional<std::int64_t> checked_value(const SizeExpression& size, const SizeBindings& sample,
                                            const std::string& pointer) {
    try {
      return size.evaluate(sample);
    } catch (const Error& fault) {
      error(pointer, "size '" + short_text(size.text()) + "' for " + bindings_text(sample) + ": " +
                         fault.message());
      return std::nullopt;
    }
  }

  void check_values(const SizeExpression& size, const std::string& pointer) {
    for (const SizeBindings& sample : samples_) {
      if (!checked_value(size, sample, pointer)) return;
    }
  }

  // What `of` states must be what the inputs have; without it, it follows from them.
  void check_origins() {
    std::vector<SizeSymbol> list = model_.symbols_.list();
    for (SizeSymbol& symbol : list) {
      const std::string pointer = "/npu/symbols/" + pointer_token(symbol.name) + "/of";
      bool is_itself = false;
      for (std::size_t i = 0; i < symbol.of.size(); ++i) {
        const auto& [input, dimension] = symbol.of[i];
        const SizeShape* shape = is_input(input) ? model_.shape(input) : nullptr;
        if (shape == nullptr || index_of(dimension) >= shape->size() ||
            !(*shape)[index_of(dimension)].symbols().contains(symbol.name)) {
          error(pointer + "/" + std::to_string(i), "dimension " + std::to_string(dimension) +
                                                       " of graph input '" + short_text(input) +
                                                       "' has no '" + symbol.name + "'");
          return;
        }
        is_itself = is_itself || (*shape)[index_of(dimension)].text() == symbol.name;
      }
      if (!symbol.of.empty() && !is_itself) {
        error(pointer, "expected a dimension that is '" + symbol.name + "' itself");
      }
      if (symbol.of.empty()) symbol.of = found_origins(symbol.name);
    }
    model_.symbols_ = SizeSymbols::of(std::move(list));
  }

  bool is_input(std::string_view name) const {
    const Json* inputs = find_member(model_.document_, "graph_inputs");
    return inputs != nullptr && inputs->is_array() &&
           std::any_of(inputs->begin(), inputs->end(),
                       [&](const Json& input) { return text_member(input, "name") == name; });
  }

  std::vector<std::pair<std::string, std::int64_t>> found_origins(const std::string& symbol) const {
    std::vector<std::pair<std::string, std::int64_t>> found;
    const Json* inputs = find_member(model_.document_, "graph_inputs");
    for (std::size_t i = 0; inputs != nullptr && inputs->is_array() && i < inputs->size(); ++i) {
      const std::string name = text_member((*inputs)[i], "name");
      const SizeShape* shape = model_.shape(name);
      for (std::size_t d = 0; shape != nullptr && d < shape->size(); ++d) {
        if ((*shape)[d].text() == symbol) found.emplace_back(name, d);
      }
    }
    return found;
  }

  Template& model_;
  Diagnostics& diagnostics_;
  std::vector<SizeBindings> samples_;
  std::map<std::string, std::optional<SizeExpression>, std::less<>> parsed_;
  std::set<std::string> used_;
};

Template Template::read(Json document, const std::string& file, Diagnostics& diagnostics) {
  Template model;
  model.document_ = std::move(document);
  model.file_ = file;
  TemplateReader(model, diagnostics).read();
  return model;
}

const SizeShape* Template::shape(std::string_view tensor) const {
  const auto found = shapes_.find(tensor);
  return found != shapes_.end() ? &found->second : nullptr;
}

std::optional<SizeExpression> Template::size_in_attrs(const std::string& text) const {
  // Most strings are names of dtypes and modes: one comparison tells.
  if (symbols_.find(text) != nullptr) return SizeExpression::symbol(text);
  if (text.find_first_of("+-*/%(") == std::string::npos) return std::nullopt;
  try {
    const SizeExpression size = SizeExpression::parse(text);
    for (const std::string& name : size.symbols()) {
      if (symbols_.find(name) == nullptr) return std::nullopt;
    }
    return size;
  } catch (const Error&) {
    return std::nullopt;
  }
}

namespace {

void check_names_of_sizes(const Template& model, const SizeBindings& values) {
  for (const auto& [name, value] : values) {
    if (model.symbols().find(name) != nullptr) continue;
    throw Error(ErrorCode::kUsage, "--bind " + name + "=" + std::to_string(value) + ": " +
                                       model.file() + " has no size '" + short_text(name) +
                                       "'; it has " + model.symbols().names());
  }
}

// The document with what `value_of` gives in place of each size.
Json replaced_sizes(const Template& model,
                    const std::function<Json(const SizeExpression& size)>& value_of) {
  Json document = model.document();
  std::map<std::string, Json, std::less<>> known;  // by text
  const auto replace = [&](Json& element, const std::string& text, const SizeExpression& size) {
    const auto [found, is_new] = known.try_emplace(text);
    if (is_new) found->second = value_of(size);
    element = found->second;
  };
  SizeWalk<Json> walk;
  walk.on_shape = [&](std::string_view, Json& shape, const SizePlace& place) {
    if (place.list == "weights") return;
    for (Json& element : shape) {
      if (!element.is_string()) continue;
      const auto text = element.get<std::string>();
      replace(element, text, SizeExpression::parse(text));
    }
  };
  walk.on_attribute = [&](Json& element, const std::string&) {
    const auto text = element.get<std::string>();
    if (const auto size = model.size_in_attrs(text)) replace(element, text, *size);
  };
  walk.walk(document);
  return document;
}

}  // namespace

Json bound_document(const Template& model, const SizeBindings& values) {
  check_names_of_sizes(model, values);
  if (std::string unbound = model.symbols().unbound_text(values); !unbound.empty()) {
    throw Error(ErrorCode::kInvalidGraph, std::move(unbound), {.file = model.file()});
  }
  if (const auto fault = model.symbols().fault(values)) {
    throw Error(ErrorCode::kUsage, "--bind: " + *fault, {.file = model.file()});
  }
  Json document =
      replaced_sizes(model, [&](const SizeExpression& size) { return size.evaluate(values); });
  find_member(document, "npu")->erase("symbols");
  return document;
}

namespace {

/// Symbols that are left when others are bound. Where the range of a bound one mentions what is
/// left, that is what its value says of the ranges of those.
class NarrowedSymbols {
 public:
  NarrowedSymbols(const Template& model, const SizeBindings& values) : file_(model.file()) {
    SizeSubstitution numbers;
    for (const auto& [name, value] : values) numbers.emplace(name, value);
    std::vector<SizeSymbol> bound;
    for (SizeSymbol symbol : model.symbols().list()) {
      symbol.min = symbol.min.substitute(numbers);
      if (symbol.max) symbol.max = symbol.max->substitute(numbers);
      (values.contains(symbol.name) ? bound : left_).push_back(std::move(symbol));
    }
    for (const SizeSymbol& symbol : bound) {
      const std::int64_t value = values.find(symbol.name)->second;
      const bool fits = value >= symbol.min.constant().value_or(value) &&
                        (!symbol.max || value <= symbol.max->constant().value_or(value)) &&
                        value % symbol.multiple_of == 0;
      if (!fits) {
        refuse("size '" + symbol.name + "' is " + std::to_string(value) + ", expected " +
               SizeSymbols::range_text(symbol));
      }
      // min <= value and value <= max, as sizes that are at least 0.
      keep(SizeExpression(value) - symbol.min, symbol);
      if (symbol.max) keep(*symbol.max - value, symbol);
    }
  }

  std::vector<SizeSymbol> list() && { return std::move(left_); }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    throw Error(ErrorCode::kUsage, "--bind: " + text, {.file = file_});
  }

  void keep(const SizeExpression& slack, const SizeSymbol& bound) {
    if (slack.is_constant()) return;
    const std::set<std::string> names = slack.symbols();
    const auto symbol = std::find_if(left_.begin(), left_.end(), [&](const SizeSymbol& other) {
      return other.name == *names.begin();
    });
    const std::int64_t factor = slack.linear_factor(*names.begin());
    if (names.size() != 1 || symbol == left_.end() || (factor != 1 && factor != -1)) {
      refuse("the range of size '" + bound.name + "' depends on '" + *names.begin() +
             "': bind that, too");
    }
    const SizeExpression rest =
        slack - SizeExpression(factor) * SizeExpression::symbol(*names.begin());
    if (factor < 0) {
      const std::array both{symbol->max.value_or(rest), rest};
      symbol->max = SizeExpression::min(both);
    } else {
      const std::array both{symbol->min, -rest};
      symbol->min = SizeExpression::max(both);
    }
  }

  std::string file_;
  std::vector<SizeSymbol> left_;
};

}  // namespace

Json shape_json(const SizeShape& shape) {
  Json json = Json::array();
  for (const SizeExpression& size : shape) json.push_back(size_json(size));
  return json;
}

Json narrowed_document(const Template& model, const SizeBindings& values) {
  check_names_of_sizes(model, values);
  if (model.symbols().unbound_text(values).empty()) return bound_document(model, values);
  SizeSubstitution numbers;
  for (const auto& [name, value] : values) numbers.emplace(name, value);
  Json document = replaced_sizes(
      model, [&](const SizeExpression& size) { return size_json(size.substitute(numbers)); });
  set_member(*find_member(document, "npu"), "symbols",
             SizeSymbols::of(NarrowedSymbols(model, values).list()).to_json());
  return document;
}

Graph bind_sizes(const Template& model, const SizeBindings& values, Diagnostics& diagnostics) {
  return assemble_graph(bound_document(model, values), model.file(), diagnostics);
}

}  // namespace npu
