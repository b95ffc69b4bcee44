// SPDX-License-Identifier: Apache-2.0
// Patterns from a file: chains of ops, each described by op type, kind and constraints.
//
// A chain is matched by a set of states, as a regular expression is, so that optional and repeated
// elements need no backtracking; the longest match wins. With at most 64 nodes in a match the cost
// is O(patterns x nodes), with a factor for the states.
#include <fnmatch.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "npu/support/file_io.hpp"
#include "passes/fusion/fusion_builder.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::int64_t kMaxChain = 64;
constexpr std::size_t kMaxElements = 16;
constexpr std::size_t kMaxPatterns = 256;
const std::vector<std::string> kKinds{"elementwise", "broadcast", "injective", "reduction",
                                      "anchor",      "opaque",    "alias"};

class PatternReader {
 public:
  PatternReader(const Json& json, const std::string& file, Diagnostics& diagnostics)
      : json_(json), file_(file), diagnostics_(diagnostics) {}

  std::vector<UserPattern> read() {
    std::vector<UserPattern> patterns;
    if (!check_object(json_, "", {"patterns"})) return patterns;
    const Json* list = find_member(json_, "patterns");
    if (list == nullptr || !list->is_array() || list->size() > kMaxPatterns) {
      fault("/patterns", fmt::format("expected a list of at most {} patterns, found {}",
                                     kMaxPatterns, found(list)));
      return patterns;
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      patterns.push_back(read_pattern((*list)[i], fmt::format("/patterns/{}", i)));
    }
    return patterns;
  }

 private:
  void fault(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = file_, .pointer = pointer}, std::move(text));
  }
  static std::string found(const Json* json) {
    if (json == nullptr) return "nothing";
    if (json->is_array()) return fmt::format("a list of {}", json->size());
    return json->is_primitive() && json->dump().size() < 40 ? json->dump()
                                                            : std::string(json_type_name(*json));
  }

  bool check_object(const Json& json, const std::string& pointer,
                    const std::vector<std::string>& known) {
    if (!json.is_object()) {
      fault(pointer, fmt::format("expected an object, found {}", found(&json)));
      return false;
    }
    for (const auto& [key, value] : json.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      const std::string nearest = nearest_word(key, known);
      fault(pointer + "/" + pointer_token(key),
            fmt::format("unknown key '{}'{}", key,
                        nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
    }
    return true;
  }

  UserPattern read_pattern(const Json& json, const std::string& pointer) {
    UserPattern pattern;
    if (!check_object(json, pointer, {"name", "ops"})) return pattern;
    const Json* name = find_member(json, "name");
    if (name == nullptr || !name->is_string() ||
        !fusion::is_pattern_name(name->get_ref<const std::string&>())) {
      fault(pointer + "/name",
            fmt::format("expected a name of small letters, digits and hyphens, found {}",
                        found(name)));
    } else {
      pattern.name = name->get<std::string>();
      const auto built_in = fusion_patterns();
      const bool taken =
          pattern.name == "default" || pattern.name == "all" || pattern.name == "none" ||
          pattern.name == "single" || pattern.name == "alias" ||
          std::any_of(built_in.begin(), built_in.end(),
                      [&](const FusionPattern& p) { return p.name == pattern.name; });
      if (taken || !names_.insert(pattern.name).second) {
        fault(pointer + "/name", fmt::format("the name '{}' is taken already", pattern.name));
      }
    }
    const Json* ops = find_member(json, "ops");
    if (ops == nullptr || !ops->is_array() || ops->empty() || ops->size() > kMaxElements) {
      fault(pointer + "/ops",
            fmt::format("expected a list of 1 to {} elements, found {}", kMaxElements, found(ops)));
      return pattern;
    }
    std::int64_t shortest = 0;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < ops->size(); ++i) {
      pattern.elements.push_back(read_element((*ops)[i], fmt::format("{}/ops/{}", pointer, i)));
      shortest += pattern.elements.back().min;
      longest += pattern.elements.back().max;
    }
    if (shortest < 1)
      fault(pointer + "/ops", "all elements are optional: at least one must not be");
    if (longest < 2) fault(pointer + "/ops", "a pattern of one node fuses nothing");
    if (longest > kMaxChain) {
      fault(pointer + "/ops", fmt::format("the longest match has {} nodes, at most {} are allowed",
                                          longest, kMaxChain));
    }
    return pattern;
  }

  PatternElement read_element(const Json& json, const std::string& pointer) {
    PatternElement element;
    if (json.is_string()) {
      element.ops = strings(json, pointer);
      return element;
    }
    if (!check_object(
            json, pointer,
            {"op", "kind", "dtypes", "rank", "attrs", "operand", "same_shape", "min", "max"})) {
      return element;
    }
    if (const Json* ops = find_member(json, "op")) element.ops = strings(*ops, pointer + "/op");
    if (const Json* kinds = find_member(json, "kind")) {
      element.kinds = strings(*kinds, pointer + "/kind");
      for (const std::string& kind : element.kinds) {
        if (std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end()) continue;
        fault(pointer + "/kind",
              fmt::format("unknown kind '{}', expected one of {}", kind, fmt::join(kKinds, ", ")));
      }
    }
    if (element.ops.empty() && element.kinds.empty()) {
      fault(pointer, "expected 'op' or 'kind'; \"*\" is any op");
    }
    if (const Json* dtypes = find_member(json, "dtypes")) {
      for (const std::string& name : strings(*dtypes, pointer + "/dtypes")) {
        if (const auto dtype = parse_dtype(name)) {
          element.dtypes.push_back(*dtype);
        } else {
          fault(pointer + "/dtypes",
                fmt::format("unknown dtype '{}', expected one of {}", name, dtype_names()));
        }
      }
    }
    if (const Json* rank = find_member(json, "rank")) {
      const bool pair = rank->is_array() && rank->size() == 2 && is_count((*rank)[0]) &&
                        (is_count((*rank)[1]) || (*rank)[1].is_null());
      if (pair) {
        element.rank.min = (*rank)[0].get<std::int64_t>();
        if (!(*rank)[1].is_null()) element.rank.max = (*rank)[1].get<std::int64_t>();
      }
      if (!pair || (element.rank.max && *element.rank.max < element.rank.min)) {
        fault(pointer + "/rank", "expected [MIN, MAX], MAX may be null");
      }
    }
    if (const Json* attributes = find_member(json, "attrs")) {
      if (!attributes->is_object()) {
        fault(pointer + "/attrs", fmt::format("expected an object, found {}", found(attributes)));
      } else {
        for (const auto& [key, value] : attributes->items()) element.attributes[key] = value;
      }
    }
    if (const Json* same = find_member(json, "same_shape")) {
      if (same->is_boolean()) {
        element.same_shape = same->get<bool>();
      } else {
        fault(pointer + "/same_shape", fmt::format("expected a bool, found {}", found(same)));
      }
    }
    if (find_member(json, "operand") != nullptr) {
      element.operand = count(json, pointer, "operand", 0, 0, 1'000'000);
    }
    element.min = count(json, pointer, "min", 1, 0, kMaxChain);
    element.max = count(json, pointer, "max", std::max<std::int64_t>(1, element.min), 1, kMaxChain);
    if (element.max < element.min) {
      fault(pointer, fmt::format("'max' {} is below 'min' {}", element.max, element.min));
    }
    return element;
  }

  static bool is_count(const Json& json) {
    return json.is_number_unsigned() &&
           json.get<std::uint64_t>() <=
               static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  }

  std::int64_t count(const Json& json, const std::string& pointer, const std::string& key,
                     std::int64_t missing, std::int64_t least, std::int64_t most) {
    const Json* value = find_member(json, key);
    if (value == nullptr) return missing;
    if (is_count(*value) && value->get<std::int64_t>() >= least &&
        value->get<std::int64_t>() <= most) {
      return value->get<std::int64_t>();
    }
    fault(pointer + "/" + key,
          fmt::format("expected an integer in {}..{}, found {}", least, most, found(value)));
    return missing;
  }

  // A string or a list of some.
  std::vector<std::string> strings(const Json& json, const std::string& pointer) {
    std::vector<std::string> texts;
    const Json list = json.is_array() ? json : Json::array({json});
    for (const Json& text : list) {
      if (text.is_string() && !text.get_ref<const std::string&>().empty() &&
          text.get_ref<const std::string&>().size() <= 256) {
        texts.push_back(text.get<std::string>());
      } else {
        fault(pointer,
              fmt::format("expected a string or a list of strings, found {}", found(&text)));
      }
    }
    if (list.empty()) fault(pointer, "expected at least one string");
    return texts;
  }

  const Json& json_;
  const std::string& file_;
  Diagnostics& diagnostics_;
  std::set<std::string> names_;
};

}  // namespace

std::vector<UserPattern> parse_fusion_patterns(const Json& json, const std::string& file,
                                               Diagnostics& diagnostics) {
  return PatternReader(json, file, diagnostics).read();
}

std::vector<UserPattern> load_fusion_patterns(const std::string& path, Diagnostics& diagnostics) {
  return parse_fusion_patterns(parse_json(read_file(path), path), path, diagnostics);
}

namespace fusion {
namespace {

std::string_view kind_name(const NodeFacts& facts) {
  if (facts.alias) return "alias";
  return kKinds[static_cast<std::size_t>(facts.kind)];
}

class ChainMatcher {
 public:
  ChainMatcher(FusionBuilder& builder, const UserPattern& pattern)
      : builder_(builder), pattern_(pattern) {}

  // The nodes of the longest match that begins at `first`; empty if there is none.
  std::vector<std::int32_t> match(std::int32_t first) {
    std::vector<std::int32_t> nodes;
    std::size_t accepted = 0;
    std::set<State> states;
    open(states, {0, 0});
    std::int32_t current = first;
    TensorId entering;
    while (current >= 0 && !states.empty() && builder_.fits(nodes.size() + 1)) {
      ++builder_.steps();
      std::set<State> next;
      for (const State& state : states) {
        if (state.element == pattern_.elements.size()) continue;
        const PatternElement& element = pattern_.elements[state.element];
        if (state.count < element.max && matches(state.element, current, entering)) {
          open(next, {state.element, state.count + 1});
        }
      }
      const bool moved = !next.empty();
      // There may also be an alias between two elements.
      if (!nodes.empty() && builder_.facts(current).keeps_elements) {
        next.insert(states.begin(), states.end());
      }
      if (next.empty()) break;
      nodes.push_back(current);
      if (moved && next.contains({pattern_.elements.size(), 0})) accepted = nodes.size();
      states = std::move(next);
      const std::int32_t reader = builder_.facts(current).sole_consumer;
      if (reader < 0 || !builder_.free(reader) || !builder_.same_device(first, reader)) break;
      entering = builder_.tensor_between(current, reader);
      current = reader;
    }
    nodes.resize(accepted);
    return nodes;
  }

 private:
  struct State {
    std::size_t element;
    std::int64_t count;
    auto operator<=>(const State&) const = default;
  };

  // Adds a state and those that follow without a node.
  void open(std::set<State>& states, State state) const {
    while (states.insert(state).second && state.element < pattern_.elements.size() &&
           state.count >= pattern_.elements[state.element].min) {
      state = {state.element + 1, 0};
    }
  }

  bool op_matches(std::size_t index, const std::string& op_type) {
    const PatternElement& element = pattern_.elements[index];
    if (element.ops.empty()) return true;
    auto& known = op_matches_[op_type];
    known.resize(pattern_.elements.size());
    if (!known[index]) {
      known[index] = std::any_of(element.ops.begin(), element.ops.end(), [&](const auto& glob) {
        return fnmatch(glob.c_str(), op_type.c_str(), 0) == 0;
      });
    }
    return *known[index];
  }

  bool matches(std::size_t index, std::int32_t n, TensorId entering) {
    const PatternElement& element = pattern_.elements[index];
    const Node& node = builder_.node(n);
    if (!op_matches(index, node.op_type)) return false;
    if (!element.kinds.empty() && std::find(element.kinds.begin(), element.kinds.end(),
                                            kind_name(builder_.facts(n))) == element.kinds.end()) {
      return false;
    }
    if (node.outputs.empty()) return false;
    const TensorInfo& result = builder_.graph().tensor(node.outputs.front());
    if (!element.rank.contains(static_cast<std::int64_t>(result.shape.size()))) return false;
    if (!element.dtypes.empty() && std::find(element.dtypes.begin(), element.dtypes.end(),
                                             result.dtype) == element.dtypes.end()) {
      return false;
    }
    if (entering.valid()) {
      const auto read = builder_.operands(n);
      if (element.operand && (static_cast<std::size_t>(*element.operand) >= read.size() ||
                              read[static_cast<std::size_t>(*element.operand)] != entering)) {
        return false;
      }
      if (element.same_shape && result.shape != builder_.graph().tensor(entering).shape) {
        return false;
      }
    }
    return element.attributes.empty() || attributes_match(element, node);
  }

  bool attributes_match(const PatternElement& element, const Node& node) const {
    const OpInfo* op = find_op(node.op_type);
    std::optional<BoundNode> bound;
    BindError error;
    if (op != nullptr) bound = BoundNode::try_bind(builder_.graph(), node, op->schema, error);
    for (const auto& [name, wanted] : element.attributes) {
      const BoundArgument* argument = bound ? bound->find(name) : nullptr;
      if (argument != nullptr) {
        Json value;  // null for None
        if (argument->kind == BoundArgument::Kind::kValue) value = argument->value;
        if (argument->inputs.empty() && equal(value, wanted)) continue;
        return false;
      }
      const Json* value = find_member(node.attrs(), name);
      if (value == nullptr || !equal(*value, wanted)) return false;
    }
    return true;
  }

  // One value for int[N] stands for all of them.
  static bool equal(const Json& value, const Json& wanted) {
    if (value == wanted) return true;
    const bool lists = value.is_array() != wanted.is_array();
    if (!lists) return false;
    const Json& list = value.is_array() ? value : wanted;
    const Json& one = value.is_array() ? wanted : value;
    return !list.empty() &&
           std::all_of(list.begin(), list.end(), [&](const Json& each) { return each == one; });
  }

  FusionBuilder& builder_;
  const UserPattern& pattern_;
  std::unordered_map<std::string_view, std::vector<std::optional<bool>>> op_matches_;
};

}  // namespace

bool is_pattern_name(std::string_view name) {
  if (name.empty() || name.size() > 64 || name.front() == '-' || name.back() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

void match_user_patterns(FusionBuilder& builder) {
  const std::vector<UserPattern>& patterns = builder.options().user_patterns;
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    ChainMatcher matcher(builder, patterns[p]);
    for (std::int32_t n = 0; n < builder.size(); ++n) {
      if (!builder.free(n)) continue;
      std::vector<std::int32_t> nodes = matcher.match(n);
      if (nodes.size() < 2) continue;
      const std::int32_t sink = nodes.back();
      builder.add_group(std::move(nodes), static_cast<PatternNumber>(kPatternCount + p), sink);
    }
  }
}

}  // namespace fusion
}  // namespace npu
