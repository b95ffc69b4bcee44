// SPDX-License-Identifier: Apache-2.0
// Reads and checks the op rules of a device: every op type, argument, dtype and predicate that a
// rule names must exist, since a misspelt constraint would claim ops that the device cannot run.
// O(rules x op types of a rule).
#include "target/op_rule_reader.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "ops/op_catalogue.hpp"
#include "target/support_check.hpp"

namespace npu {

void OpRuleReader::check_argument(const std::vector<std::string>& op_types,
                                  const std::string& argument, const std::string& pointer,
                                  bool tensor) {
  for (const std::string& op_type : op_types) {
    const OpInfo* op = find_op(op_type);
    if (op == nullptr) {
      if (op_type.empty() || op_type.starts_with("aten.")) continue;  // already reported
      fields_.add(pointer,
                  fmt::format("the arguments of '{}' are not known, so they cannot be constrained",
                              op_type));
      continue;
    }
    const auto may_be_named = [&](const SchemaArgument& candidate) {
      const bool is_list = candidate.type == ArgumentType::kTensorList ||
                           candidate.type == ArgumentType::kOptionalTensorList;
      // A scalar may take a tensor's place, so an attribute rule may name a single tensor as well.
      return tensor ? is_list || candidate.type == ArgumentType::kTensor : !is_list;
    };
    const auto& arguments = op->schema.arguments;
    const bool is_known = std::ranges::any_of(arguments, [&](const SchemaArgument& candidate) {
      return candidate.name == argument && may_be_named(candidate);
    });
    if (is_known) continue;
    std::vector<std::string> names;
    for (const SchemaArgument& candidate : arguments) {
      if (may_be_named(candidate)) names.push_back(candidate.name);
    }
    fields_.add(pointer,
                fmt::format("{} has no {}argument '{}'{}", op_type, tensor ? "tensor " : "",
                            argument, spelling_hint(argument, names)));
  }
}

void OpRuleReader::read_dtype_rule(const Json& json, const std::string& pointer, OpRule& rule) {
  if (!json.is_object()) {
    rule.dtypes.any = fields_.dtypes(json, pointer);
    return;
  }
  for (const auto& [key, list] : json.items()) {
    const std::string below = pointer + "/" + pointer_token(key);
    if (key == "*") {
      rule.dtypes.any = fields_.dtypes(list, below);
      continue;
    }
    if (key != "result") check_argument(rule.types, key, below, true);
    rule.dtypes.by_argument[key] = fields_.dtypes(list, below);
  }
}

std::optional<double> OpRuleReader::bound(const Json& object, const std::string& pointer,
                                          std::string_view key) {
  const Json* found = find_member(object, key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number()) {
    fields_.add(fmt::format("{}/{}", pointer, key),
                fmt::format("expected a number, found {}", json_type_name(*found)));
    return std::nullopt;
  }
  return found->get<double>();
}

AttributeRule OpRuleReader::read_attribute(const std::string& argument, const Json& json,
                                           const std::string& pointer) {
  AttributeRule rule;
  rule.argument = argument;
  if (!fields_.check_object(json, pointer)) return rule;
  fields_.check_keys(json, pointer, {"min", "max", "each", "equals", "in"});
  if (json.empty()) fields_.add(pointer, "expected one of min, max, each, equals, in");
  rule.min = bound(json, pointer, "min");
  rule.max = bound(json, pointer, "max");
  if (const Json* each = find_member(json, "each")) {
    const std::string below = pointer + "/each";
    if (fields_.check_object(*each, below)) {
      fields_.check_keys(*each, below, {"min", "max"});
      if (each->empty()) fields_.add(below, "expected min or max");
      rule.each_min = bound(*each, below, "min");
      rule.each_max = bound(*each, below, "max");
    }
  }
  if ((rule.min && rule.max && *rule.min > *rule.max) ||
      (rule.each_min && rule.each_max && *rule.each_min > *rule.each_max)) {
    fields_.add(pointer, "min is greater than max");
  }
  if (const Json* equals = find_member(json, "equals")) rule.equals = *equals;
  if (const Json* in = find_member(json, "in")) {
    if (in->is_array() && !in->empty()) {
      rule.in = *in;
    } else {
      fields_.add(pointer + "/in",
                  fmt::format("expected a non-empty list of values, found {}",
                              in->is_array() ? "an empty one" : json_type_name(*in)));
    }
  }
  return rule;
}

void OpRuleReader::check_predicate(const std::string& name, const OpRule& rule,
                                   const std::string& pointer) {
  const std::vector<PredicateSummary> known = predicates();
  for (const PredicateSummary& predicate : known) {
    if (predicate.name != name) continue;
    for (const std::string& op_type : rule.types) {
      if (!predicate.needs_arguments || op_type.starts_with("aten.") || find_op(op_type)) continue;
      fields_.add(pointer,
                  fmt::format("the arguments of '{}' are not known, as predicate '{}' needs",
                              op_type, name));
    }
    return;
  }
  std::vector<std::string> names;
  for (const PredicateSummary& predicate : known) names.emplace_back(predicate.name);
  fields_.add(pointer, fmt::format("unknown predicate '{}'{}", name, spelling_hint(name, names)));
}

void OpRuleReader::read_rule(const Json& json, const std::string& pointer, Device& device) {
  OpRule rule;
  if (!fields_.check_object(json, pointer)) return;
  fields_.check_keys(json, pointer, {"types", "dtypes", "rank", "inputs", "attrs", "requires"});
  if (const Json* types = fields_.member(json, pointer, "types", true)) {
    rule.types = fields_.strings(*types, pointer + "/types", false);
    for (std::size_t i = 0; i < rule.types.size(); ++i) {
      const auto below = [&] { return fmt::format("{}/types/{}", pointer, i); };
      fields_.check_op_type(rule.types[i], below);
      if (std::find(rule.types.begin(), rule.types.begin() + static_cast<std::ptrdiff_t>(i),
                    rule.types[i]) != rule.types.begin() + static_cast<std::ptrdiff_t>(i)) {
        fields_.add(below(), fmt::format("op type '{}' stands here twice", rule.types[i]));
      }
    }
  }
  if (const Json* list = find_member(json, "dtypes"); list != nullptr && *list == "*") {
    rule.dtypes = {};  // every dtype, whatever the device's default
  } else if (list != nullptr) {
    read_dtype_rule(*list, pointer + "/dtypes", rule);
  } else {
    rule.dtypes.any = device.dtypes;
  }
  rule.rank = find_member(json, "rank") == nullptr ? device.rank
                                                   : fields_.range_member(json, pointer, "rank");
  rule.inputs = fields_.range_member(json, pointer, "inputs");
  if (const Json* attributes = find_member(json, "attrs")) {
    const std::string below = pointer + "/attrs";
    if (fields_.check_object(*attributes, below)) {
      for (const auto& [argument, constraint] : attributes->items()) {
        const std::string at = below + "/" + pointer_token(argument);
        check_argument(rule.types, argument, at, false);
        rule.attributes.push_back(read_attribute(argument, constraint, at));
      }
    }
  }
  if (const Json* requirements = find_member(json, "requires")) {
    rule.requirements = fields_.strings(*requirements, pointer + "/requires", false);
    for (std::size_t i = 0; i < rule.requirements.size(); ++i) {
      const std::string& name = rule.requirements[i];
      if (!name.empty()) check_predicate(name, rule, fmt::format("{}/requires/{}", pointer, i));
    }
  }
  for (const std::string& op_type : rule.types) {
    if (!op_type.empty()) device.rules_by_type[op_type].push_back(device.rules.size());
  }
  device.rules.push_back(std::move(rule));
}

void OpRuleReader::read(const Json& ops, const std::string& pointer, Device& device) {
  if (ops == "*") {
    device.any_op = true;
    return;
  }
  if (!ops.is_array()) {
    fields_.add(pointer,
                fmt::format("expected \"*\" or a list of op rules, found {}", json_type_name(ops)));
    return;
  }
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i] == "*") {
      device.any_op = true;
    } else {
      read_rule(ops[i], fmt::format("{}/{}", pointer, i), device);
    }
  }
}

}  // namespace npu
