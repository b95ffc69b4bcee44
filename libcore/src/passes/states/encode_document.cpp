// SPDX-License-Identifier: Apache-2.0
// An encoder as the entry that fills the states of a decoder.
//
// Input:  the encoder; the decoder's document, whose states that are only read say what is wanted;
//         where cross attention has keys and values of its own, the decoder that computes them.
// Output: a document with one input, the source, and a state for everything that is wanted.
// A decoder that is run for the first time projects the encoder's hidden states to keys and values,
// and hands them on; the nodes that do so are taken out of it. States have a fixed number of rows:
// those behind the source's are zero, and do not count by the mask, which is a state as well.
// O(nodes).
#include "passes/states/encode_document.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/generate_section.hpp"
#include "passes/states/append_nodes.hpp"
#include "passes/states/prune_document.hpp"
#include "passes/states/source_inputs.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {
namespace states {
namespace {

/// A state that the decoder reads.
struct WantedState {
  std::string name;
  Json mention;  ///< of the decoder's input: dtype, and a shape of numbers
};

bool names_part(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

std::string replaced(std::string name, std::string_view part, std::string_view by) {
  const std::size_t at = name.find(part);
  return at == std::string::npos ? std::string() : name.replace(at, part.size(), by);
}

/// What exporters call the output whose past a state is: "present.0.encoder.key" of
/// "past_key_values.0.encoder.key", "present_key_cross_0" of "past_key_cross_0".
std::vector<std::string> output_names(const std::string& state) {
  return {state, replaced(state, "past_key_values", "present"),
          replaced(state, "past_", "present_")};
}

const Json* find_mention(const Json& document, const char* list, const std::string& name) {
  for (const Json& mention : *member_list(document, list)) {
    if (!name.empty() && *member_text(mention, "name") == name) return &mention;
  }
  return nullptr;
}

class EncodeWriter {
 public:
  EncodeWriter(const Template& encoder, const Template* cross, Diagnostics& diagnostics)
      : encoder_(encoder),
        cross_(cross),
        document_(encoder.document()),
        diagnostics_(diagnostics) {}

  std::optional<Json> run(const std::vector<WantedState>& wanted) {
    const Json outputs = *member_list(document_, "graph_outputs");
    if (!find_hidden(outputs) || !find_source()) return std::nullopt;
    if (cross_ != nullptr && !append_cross(wanted)) return std::nullopt;
    find_names();
    has_mask_ = std::any_of(wanted.begin(), wanted.end(), [](const WantedState& state) {
      return names_part(state.name, "mask");
    });
    Json states = Json::array();
    Json results = Json::array();
    for (const WantedState& state : wanted) {
      const auto content = content_of(state, outputs);
      if (!content) return std::nullopt;
      const auto filled = fill(state, *content);
      if (!filled) return std::nullopt;
      states.push_back({{"name", state.name}, {"output", *member_text(*filled, "name")}});
      results.push_back(*filled);
    }
    set_member(document_, "graph_outputs", std::move(results));
    Json& npu = *find_member(document_, "npu");
    set_member(npu, "states", std::move(states));
    set_member(npu, "generate", Json{{"source", source_}});
    prune_document(document_);
    return std::move(document_);
  }

 private:
  std::nullopt_t refuse(const std::string& text) {
    diagnostics_.error({.file = encoder_.file()}, text);
    return std::nullopt;
  }

  const SizeShape& shape_of(const std::string& tensor) const {
    static const SizeShape kNone;
    const SizeShape* shape = encoder_.shape(tensor);
    return shape == nullptr ? kNone : *shape;
  }

  /// The output with a row for each row of the source, float [1, rows, width].
  bool find_hidden(const Json& outputs) {
    for (const Json& output : outputs) {
      const std::string& name = *member_text(output, "name");
      const std::string* dtype = member_text(output, "dtype");
      const bool is_float = dtype != nullptr && (names_part(*dtype, "float"));
      if (!is_float || shape_of(name).size() != 3) continue;
      if (hidden_.is_null() || names_part(name, "hidden")) hidden_ = output;
    }
    if (!hidden_.is_null()) return true;
    refuse("the encoder has no output [1, rows, width] of hidden states");
    return false;
  }

  /// The source; masks beside it become ones.
  bool find_source() {
    Json inputs = Json::array();
    Json nodes = Json::array();
    for (const Json& input : *member_list(document_, "graph_inputs")) {
      const std::string& name = *member_text(input, "name");
      const std::string* dtype = member_text(input, "dtype");
      const bool is_mask =
          names_part(name, "mask") && dtype != nullptr && !names_part(*dtype, "float");
      if (is_mask) {
        nodes.push_back(ones_of(name, operand(input)));
      } else {
        inputs.push_back(input);
      }
    }
    if (inputs.size() != 1) {
      refuse("the encoder has " + std::to_string(inputs.size()) +
             " inputs beside masks, expected one, the source; bind others with --freeze");
      return false;
    }
    source_ = *member_text(inputs[0], "name");
    set_member(document_, "graph_inputs", std::move(inputs));
    // In front of all that read them.
    for (Json& node : *find_member(document_, "nodes")) nodes.push_back(std::move(node));
    set_member(document_, "nodes", std::move(nodes));
    return true;
  }

  static Json node_of(const std::string& name, const std::string& op_type, Json inputs,
                      const Json& output, Json attrs) {
    return Json{{"name", name},
                {"op_type", op_type},
                {"inputs", std::move(inputs)},
                {"outputs", Json::array({output})},
                {"attrs", std::move(attrs)}};
  }

  static Json ones_of(const std::string& name, const Json& output) {
    return node_of(name, "aten.ones.default", Json::array(), output,
                   {{"size", *find_member(output, "shape")},
                    {"dtype", "torch." + *member_text(output, "dtype")}});
  }

  // ---- Cross attention ----

  bool append_cross(const std::vector<WantedState>& wanted) {
    AppendedPart part{.model = *cross_,
                      .outputs = {},
                      .inputs = {},
                      .sizes = {},
                      .prefix = kPrefix,
                      .file = encoder_.file()};
    for (const WantedState& state : wanted) {
      for (const std::string& name : output_names(state.name)) {
        if (find_mention(cross_->document(), "graph_outputs", name) == nullptr) continue;
        part.outputs.push_back(name);
        break;
      }
    }
    if (part.outputs.empty()) {
      diagnostics_.error({.file = cross_->file()},
                         "none of its outputs is a state that the decoder reads; expected the "
                         "decoder without past");
      return false;
    }
    for (const Json& input : *member_list(cross_->document(), "graph_inputs")) {
      const std::string& name = *member_text(input, "name");
      if (!names_part(name, "hidden_states")) continue;
      part.inputs.emplace(name, operand(hidden_));
      const SizeShape& from = *cross_->shape(name);
      const SizeShape& to = shape_of(*member_text(hidden_, "name"));
      for (std::size_t d = 0; d < from.size() && d < to.size(); ++d) {
        if (cross_->symbols().find(from[d].text()) != nullptr) {
          part.sizes.emplace(from[d].text(), to[d]);
        } else if (!(from[d] == to[d])) {
          diagnostics_.error({.file = cross_->file()},
                             "input '" + short_text(name) + "' has '" + from[d].text() +
                                 "' along dimension " + std::to_string(d) +
                                 ", the encoder gives '" + to[d].text() + "'");
          return false;
        }
      }
    }
    if (!append_nodes(document_, part, diagnostics_)) return false;
    crosses_.insert(part.outputs.begin(), part.outputs.end());
    return true;
  }

  /// A mention of a tensor that nodes may read.
  static Json operand(const Json& mention) {
    return Json{{"name", *member_text(mention, "name")},
                {"shape", *find_member(mention, "shape")},
                {"dtype", *member_text(mention, "dtype")}};
  }

  // ---- What states hold ----

  /// The tensor whose rows a state has.
  std::optional<Json> content_of(const WantedState& state, const Json& outputs) {
    for (const std::string& name : output_names(state.name)) {
      if (crosses_.contains(name)) {
        const auto found = crossed_.find(kPrefix + name);
        if (found != crossed_.end()) return found->second;
        return refuse("'" + short_text(kPrefix + name) + "' is no result of a node");
      }
      for (const Json& output : outputs) {
        if (!name.empty() && *member_text(output, "name") == name) return operand(output);
      }
    }
    if (names_part(state.name, "hidden_states")) return operand(hidden_);
    if (names_part(state.name, "mask")) return ones_for(state);
    return refuse("state '" + short_text(state.name) +
                  "' is neither an output of the encoder nor '" +
                  short_text(output_names(state.name)[1]) +
                  "' of a decoder: give with --cross the one without past, which computes it");
  }

  /// Names that are taken, and what the nodes give that came of `cross`.
  void find_names() {
    const auto take = [&](const Json& named) { taken_.insert(*member_text(named, "name")); };
    for (const Json& input : *member_list(document_, "graph_inputs")) take(input);
    for (const Json& node : *member_list(document_, "nodes")) {
      take(node);
      for (const Json& output : *member_list(node, "outputs")) {
        take(output);
        const std::string& name = *member_text(output, "name");
        if (name.starts_with(kPrefix)) crossed_.emplace(name, operand(output));
      }
    }
  }

  /// A mask [1, rows] of ones, as many as the hidden states have rows.
  Json ones_for(const WantedState& state) {
    Json mention{{"name", free_name(state.name + ":rows")},
                 {"shape", Json::array({1, (*find_member(hidden_, "shape"))[1]})},
                 {"dtype", *member_text(state.mention, "dtype")}};
    find_member(document_, "nodes")->push_back(ones_of(*member_text(mention, "name"), mention));
    return mention;
  }

  std::string free_name(const std::string& wanted) {
    std::string name = wanted;
    for (int i = 1; !taken_.insert(name).second; ++i) name = wanted + "." + std::to_string(i);
    return name;
  }

  /// The state's next value: the tensor with zeros behind its rows.
  std::optional<Json> fill(const WantedState& state, const Json& content) {
    const Json& from = *find_member(content, "shape");
    const Json& to = *find_member(state.mention, "shape");
    const std::string told = "state '" + short_text(state.name) + "' is " +
                             *member_text(state.mention, "dtype") + " " + to.dump() + ", and '" +
                             short_text(*member_text(content, "name")) + "' is " +
                             *member_text(content, "dtype") + " " + from.dump();
    if (*member_text(state.mention, "dtype") != *member_text(content, "dtype") ||
        from.size() != to.size()) {
      return refuse(told);
    }
    Json amounts = Json::array();
    for (std::size_t d = from.size(); d-- > 0;) {
      const SizeExpression rows = to[d].is_number_integer()
                                      ? SizeExpression(to[d].get<std::int64_t>())
                                      : SizeExpression::parse(*json_text(&to[d]));
      const SizeExpression given = from[d].is_number_integer()
                                       ? SizeExpression(from[d].get<std::int64_t>())
                                       : SizeExpression::parse(*json_text(&from[d]));
      const SizeExpression behind = rows - given;
      if (behind.is_constant() && *behind.constant() < 0) return refuse(told + ": it has no room");
      if (!has_mask_ && !(behind == SizeExpression(0))) {
        return refuse(told + ", and the decoder has no mask of its source, so that all rows count");
      }
      if (!given.is_constant()) limit(given, rows);
      amounts.push_back(0);
      amounts.push_back(size_json(behind));
    }
    const std::string name = free_name(state.name);
    Json mention{{"name", name}, {"shape", to}, {"dtype", *member_text(state.mention, "dtype")}};
    find_member(document_, "nodes")
        ->push_back(node_of(name, "aten.constant_pad_nd.default", Json::array({content}), mention,
                            {{"pad", std::move(amounts)}}));
    return mention;
  }

  /// A size of the source is not above the rows of a state.
  void limit(const SizeExpression& size, const SizeExpression& rows) {
    Json* symbols = find_member(*find_member(document_, "npu"), "symbols");
    Json* symbol = symbols == nullptr ? nullptr : find_member(*symbols, size.text());
    if (symbol == nullptr || !rows.is_constant()) return;
    const auto most = member_integer(*symbol, "max");
    set_member(*symbol, "max", std::min(most.value_or(*rows.constant()), *rows.constant()));
  }

  static constexpr const char* kPrefix = "cross:";

  const Template& encoder_;
  const Template* cross_;
  Json document_;
  Diagnostics& diagnostics_;
  Json hidden_;
  std::string source_;
  bool has_mask_ = false;
  std::unordered_set<std::string> crosses_;        // outputs of `cross` that are wanted
  std::unordered_map<std::string, Json> crossed_;  // mentions of what came of it, by name
  std::unordered_set<std::string> taken_;
};

/// The states of a decoder that it only reads.
std::vector<WantedState> wanted_states(const Json& decoder) {
  std::vector<WantedState> wanted;
  const Json* npu = member_object(decoder, "npu");
  const Json* states = npu == nullptr ? nullptr : member_list(*npu, "states");
  for (std::size_t i = 0; states != nullptr && i < states->size(); ++i) {
    const std::string* name = member_text((*states)[i], "name");
    const std::string* input = member_text((*states)[i], "input");
    if (name == nullptr || input == nullptr || find_member((*states)[i], "output") != nullptr) {
      continue;
    }
    const Json* mention = find_mention(decoder, "graph_inputs", *input);
    if (mention != nullptr) wanted.push_back({*name, *mention});
  }
  return wanted;
}

}  // namespace
}  // namespace states

std::optional<Json> encode_document(const Template& encoder, const Json& decoder,
                                    const std::string& decoder_file, const Template* cross,
                                    Diagnostics& diagnostics) {
  const std::vector<states::WantedState> wanted = states::wanted_states(decoder);
  if (wanted.empty()) {
    diagnostics.error({.file = decoder_file},
                      "has no state that it only reads, so there is nothing for an encoder to "
                      "write; npu-tag --states makes some of a decoder with cross attention");
    return std::nullopt;
  }
  const auto single = states::with_batch_of_one(encoder, diagnostics);
  if (!single) return std::nullopt;
  std::optional<Template> projecting;
  if (cross != nullptr) projecting = states::with_batch_of_one(*cross, diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  auto document =
      states::EncodeWriter(*single, projecting ? &*projecting : nullptr, diagnostics).run(wanted);
  if (!document) return std::nullopt;
  if (!SizeSymbols::are_in(*document)) {
    find_member(*document, "npu")->erase("symbols");
    return document;
  }
  // With where the sizes stand now; checked like any other template.
  for (auto& [name, symbol] :
       find_member(*find_member(*document, "npu"), "symbols")->get_ref<Json::object_t&>()) {
    symbol.erase("of");
  }
  const Template result = Template::read(*document, encoder.file(), diagnostics);
  if (diagnostics.has_errors()) return std::nullopt;
  set_member(*find_member(*document, "npu"), "symbols", result.symbols().to_json());
  return document;
}

}  // namespace npu
