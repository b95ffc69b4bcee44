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
#include "passes/fusion/patterns.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr std::int64_t kMaxChain = 64;
constexpr std::size_t kMaxElements = 16;
constexpr std::size_t kMaxPatterns = 256;
const std::vector<std::string> kKinds{"elementwise", "broadcast", "injective", "reduction",
                                      "anchor",      "opaque",    "alias"};

/// A value, null if there is none, and where it is.
struct Place {
  const Json* json;
  std::string pointer;

  Place operator[](const std::string& key) const {
    return {find_member(*json, key), pointer + "/" + key};
  }
  Place operator[](std::size_t index) const {
    return {&(*json)[index], fmt::format("{}/{}", pointer, index)};
  }
  bool is_list(std::size_t least, std::size_t most) const {
    return json != nullptr && json->is_array() && json->size() >= least && json->size() <= most;
  }
  /// An integer from 0 on.
  std::optional<std::int64_t> count() const {
    const std::optional<std::uint64_t> value = json_unsigned(json);
    if (!value || *value > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  }
  std::string found() const {
    if (json == nullptr) return "nothing";
    if (json->is_array()) return fmt::format("a list of {}", json->size());
    return json->is_primitive() && json->dump().size() < 40 ? json->dump()
                                                            : std::string(json_type_name(*json));
  }
};

class PatternReader {
 public:
  PatternReader(const std::string& file, Diagnostics& diagnostics)
      : file_(file), diagnostics_(diagnostics) {
    for (const FusionPattern& built_in : fusion_patterns()) names_.emplace(built_in.name);
  }

  std::vector<UserPattern> read(const Json& json) {
    std::vector<UserPattern> patterns;
    const Place root{&json, ""};
    if (!is_object_of(root, {"patterns"})) return patterns;
    const Place list = root["patterns"];
    if (!expect(list.is_list(0, kMaxPatterns), list,
                fmt::format("a list of at most {} patterns", kMaxPatterns))) {
      return patterns;
    }
    for (std::size_t i = 0; i < list.json->size(); ++i) patterns.push_back(read_pattern(list[i]));
    return patterns;
  }

 private:
  void fault(const Place& place, std::string text) {
    diagnostics_.error({.file = file_, .pointer = place.pointer}, std::move(text));
  }
  bool expect(bool holds, const Place& place, std::string_view what) {
    if (!holds) fault(place, fmt::format("expected {}, found {}", what, place.found()));
    return holds;
  }

  bool is_object_of(const Place& place, const std::vector<std::string>& known) {
    if (!expect(place.json->is_object(), place, "an object")) return false;
    for (const auto& [key, value] : place.json->items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      fault({&value, pointer_below(place.pointer, key)}, unknown_key_text(key, known));
    }
    return true;
  }

  UserPattern read_pattern(const Place& place) {
    UserPattern pattern;
    if (!is_object_of(place, {"name", "ops"})) return pattern;
    const Place name = place["name"];
    const std::string* text = json_text(name.json);
    if (expect(text != nullptr && fusion::is_pattern_name(*text), name,
               "a name of small letters, digits and hyphens")) {
      pattern.name = *text;
      if (!names_.insert(*text).second) {
        fault(name, fmt::format("the name '{}' is taken already", *text));
      }
    }
    const Place ops = place["ops"];
    if (!expect(ops.is_list(1, kMaxElements), ops,
                fmt::format("a list of 1 to {} elements", kMaxElements))) {
      return pattern;
    }
    std::int64_t shortest = 0;
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < ops.json->size(); ++i) {
      const PatternElement& element = pattern.elements.emplace_back(read_element(ops[i]));
      shortest += element.min;
      longest += element.max;
    }
    if (shortest < 1) fault(ops, "all elements are optional: at least one must not be");
    if (longest < 2) fault(ops, "a pattern of one node fuses nothing");
    if (longest > kMaxChain) {
      fault(ops, fmt::format("the longest match has {} nodes, at most {} are allowed", longest,
                             kMaxChain));
    }
    return pattern;
  }

  PatternElement read_element(const Place& place) {
    PatternElement element;
    if (place.json->is_string()) {
      element.ops = strings(place);
      return element;
    }
    if (!is_object_of(place, {"op", "kind", "dtypes", "rank", "attrs", "operand", "same_shape",
                              "min", "max"})) {
      return element;
    }
    element.ops = strings(place["op"]);
    element.kinds = strings(place["kind"]);
    for (const std::string& kind : element.kinds) {
      if (std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end()) continue;
      fault(place["kind"],
            fmt::format("unknown kind '{}', expected one of {}", kind, fmt::join(kKinds, ", ")));
    }
    if (element.ops.empty() && element.kinds.empty()) {
      fault(place, "expected 'op' or 'kind'; \"*\" is any op");
    }
    for (const std::string& name : strings(place["dtypes"])) {
      if (const auto dtype = parse_dtype(name)) {
        element.dtypes.push_back(*dtype);
      } else {
        fault(place["dtypes"],
              fmt::format("unknown dtype '{}', expected one of {}", name, dtype_names()));
      }
    }
    if (const Place rank = place["rank"]; rank.json != nullptr) {
      const bool is_pair =
          rank.is_list(2, 2) && rank[0].count() && (rank[1].count() || rank[1].json->is_null());
      if (is_pair) element.rank = {*rank[0].count(), rank[1].count()};
      if (!is_pair || (element.rank.max && *element.rank.max < element.rank.min)) {
        fault(rank, "expected [MIN, MAX], MAX may be null");
      }
    }
    const Place attributes = place["attrs"];
    if (attributes.json != nullptr &&
        expect(attributes.json->is_object(), attributes, "an object")) {
      for (const auto& [key, value] : attributes.json->items()) element.attributes[key] = value;
    }
    const Place same = place["same_shape"];
    if (same.json != nullptr && expect(same.json->is_boolean(), same, "a bool")) {
      element.same_shape = same.json->get<bool>();
    }
    if (const Place operand = place["operand"]; operand.json != nullptr) {
      element.operand = integer(operand, 0, 0, 1'000'000);
    }
    element.min = integer(place["min"], 1, 0, kMaxChain);
    element.max = integer(place["max"], std::max<std::int64_t>(1, element.min), 1, kMaxChain);
    if (element.max < element.min) {
      fault(place, fmt::format("'max' {} is below 'min' {}", element.max, element.min));
    }
    return element;
  }

  std::int64_t integer(const Place& place, std::int64_t missing, std::int64_t least,
                       std::int64_t most) {
    if (place.json == nullptr) return missing;
    const std::int64_t value = place.count().value_or(-1);
    const bool fits = expect(value >= least && value <= most, place,
                             fmt::format("an integer in {}..{}", least, most));
    return fits ? value : missing;
  }

  // A string or a list of some; nothing where there is none.
  std::vector<std::string> strings(const Place& place) {
    std::vector<std::string> texts;
    if (place.json == nullptr) return texts;
    const Json list = place.json->is_array() ? *place.json : Json::array({*place.json});
    for (const Json& each : list) {
      const std::string* text = json_text(&each);
      if (expect(text != nullptr && !text->empty() && text->size() <= 256, {&each, place.pointer},
                 "a string or a list of strings")) {
        texts.push_back(*text);
      }
    }
    if (list.empty()) fault(place, "expected at least one string");
    return texts;
  }

  const std::string& file_;
  Diagnostics& diagnostics_;
  std::set<std::string> names_{"default", "all", "none", "single", "alias"};
};

}  // namespace

std::vector<UserPattern> parse_fusion_patterns(const Json& json, const std::string& file,
                                               Diagnostics& diagnostics) {
  return PatternReader(file, diagnostics).read(json);
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

  // The nodes of the longest match that begins at `first`; one node or none if there is none.
  NodeList match(std::int32_t first) {
    states_.clear();
    open(states_, {0, 0});
    if (step({first, {}}) == Step::kStop) return {};
    NodeList nodes{first};
    follow(builder_, Readers::kAll, builder_.most(), nodes, [&](const Link& next) {
      const std::set<State> before = states_;
      const Step result = step(next);
      if (!builder_.facts(next.node).keeps_elements) return result;
      // There may also be an alias between two elements.
      states_.insert(before.begin(), before.end());
      return result != Step::kStop && is_complete() ? Step::kAccept : Step::kPass;
    });
    return nodes;
  }

 private:
  struct State {
    std::size_t element;
    std::int64_t count;
    auto operator<=>(const State&) const = default;
  };

  // Takes a node by the element of each state.
  Step step(const Link& link) {
    std::set<State> next;
    for (const State& state : states_) {
      if (state.element == pattern_.elements.size()) continue;
      if (state.count < pattern_.elements[state.element].max && matches(state.element, link)) {
        open(next, {state.element, state.count + 1});
      }
    }
    states_ = std::move(next);
    if (states_.empty()) return Step::kStop;
    return is_complete() ? Step::kAccept : Step::kPass;
  }
  bool is_complete() const { return states_.contains({pattern_.elements.size(), 0}); }

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

  bool matches(std::size_t index, const Link& link) {
    const auto [n, entering] = link;
    const PatternElement& element = pattern_.elements[index];
    const Node& node = builder_.node(n);
    if (!op_matches(index, node.op_type)) return false;
    if (!element.kinds.empty() && std::find(element.kinds.begin(), element.kinds.end(),
                                            kind_name(builder_.facts(n))) == element.kinds.end()) {
      return false;
    }
    if (node.outputs.empty()) return false;
    const TensorInfo& result = builder_.tensor(node.outputs.front());
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
      if (element.same_shape && result.shape != builder_.tensor(entering).shape) {
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
  std::set<State> states_;
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
      NodeList nodes = matcher.match(n);
      if (nodes.size() < 2) continue;
      builder.add_group(std::move(nodes), static_cast<Pattern>(kPatterns.size() + p));
    }
  }
}

}  // namespace fusion
}  // namespace npu
