// SPDX-License-Identifier: Apache-2.0
// Makes rules of a target from answers about single nodes.
//
// A rule begins with the op alone. Restrictions are tried in a fixed order, those that people would
// write first; one stays if all that was taken still passes and something that was refused no
// longer does. Each is tried with the code that reads targets. O(ops x dtypes x restrictions x
// samples).
#include "profile/backend_rules.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "npu/ir/json_reader.hpp"
#include "npu/support/ids.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

// In this order; the others are about neighbours, or about dtypes, which all samples share.
constexpr const char* kRuleRequirements[] = {
    "not_empty",         "weights_are_constant", "same_shape_operands",       "tensor_operands",
    "keeps_first_shape", "over_last_dim",        "mean_over_last_or_spatial", "three_dims"};

class RuleFinder {
 public:
  RuleFinder(const OpQuestion& question, const DTypeAnswer& answer)
      : question_(question), taken_(answer.taken) {
    std::vector<const OpSample*> samples;
    for (const OpSample& sample : question.samples) samples.push_back(&sample);
    const auto graph = question_graph(question.op, question.gives_bool, answer.dtype, samples);
    graph_ = valid_graph(conformance::sub_ir_json(graph), "questions");
  }

  /// Without "types" and "dtypes".
  Json find() {
    untold_ = wrongly_allowed(rule_).value_or(0);
    restrict_counts("inputs", [](const OpSample& sample) { return sample.operands.size(); });
    restrict_counts("rank", [](const OpSample& sample) { return sample.operands.front().size(); });
    for (const char* requirement : kRuleRequirements) {
      Json changed = rule_;
      changed["requires"].push_back(requirement);
      keep_if_better(std::move(changed));
    }
    restrict_attributes();
    return rule_;
  }
  /// How many refused samples it allows.
  std::size_t untold() const { return untold_; }

 private:
  template <typename Count>
  void restrict_counts(const char* key, const Count& count) {
    std::optional<std::pair<std::size_t, std::size_t>> range;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (!taken_[i]) continue;
      const std::size_t value = count(question_.samples[i]);
      if (!range) range = {value, value};
      range = {std::min(range->first, value), std::max(range->second, value)};
    }
    Json changed = rule_;
    changed[key] = {range->first, range->second};
    keep_if_better(std::move(changed));
  }

  /// Arguments that have one value in all that is taken.
  void restrict_attributes() {
    const Json names = question_.samples.front().attrs;
    for (const auto& [name, first] : names.items()) {
      std::optional<Json> only;
      bool is_one = true;
      for (std::size_t i = 0; i < taken_.size(); ++i) {
        if (!taken_[i]) continue;
        const Json* value = find_member(question_.samples[i].attrs, name);
        is_one = is_one && value != nullptr && (!only || *only == *value);
        if (value != nullptr) only = *value;
      }
      if (!is_one || !only) continue;
      const bool is_even = only->is_array() && !only->empty() &&
                           std::all_of(only->begin(), only->end(),
                                       [&](const Json& each) { return each == only->front(); });
      Json changed = rule_;
      changed["attrs"][name] = {{"equals", is_even ? only->front() : *only}};
      keep_if_better(std::move(changed));
    }
  }

  void keep_if_better(Json changed) {
    const std::optional<std::size_t> wrong = wrongly_allowed(changed);
    if (!wrong || *wrong >= untold_) return;
    untold_ = *wrong;
    rule_ = std::move(changed);
  }

  /// Nothing if the rule refuses what is taken.
  std::optional<std::size_t> wrongly_allowed(Json rule) const {
    rule["types"] = {question_.op};
    const Json target = {{"name", "asked"},
                         {"devices",
                          {{{"name", "asked"},
                            {"ops", Json::array({std::move(rule)})},
                            {"peak_flops", {{"float32", 1}}},
                            {"memory_bandwidth", 1}}}}};
    const Target parsed = parse_target(target, "rules");
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      const NodeId node{static_cast<std::int32_t>(i)};
      const bool is_allowed = check_support(graph_, node, parsed.devices.front()).supported;
      if (taken_[i] && !is_allowed) return std::nullopt;
      wrong += !taken_[i] && is_allowed ? 1 : 0;
    }
    return wrong;
  }

  const OpQuestion& question_;
  const std::vector<bool>& taken_;
  Graph graph_;
  Json rule_ = Json::object();
  std::size_t untold_ = 0;
};

Json dtype_rule(const std::vector<DType>& dtypes, bool gives_bool_result) {
  Json names = Json::array();
  for (const DType dtype : dtypes) names.push_back(dtype_name(dtype));
  if (!gives_bool_result) return names;
  return {{"*", names}, {"result", {"bool"}}};
}

}  // namespace

bool DTypeAnswer::any() const { return std::find(taken.begin(), taken.end(), true) != taken.end(); }

BackendRules backend_rules(const std::vector<OpAnswer>& answers) {
  BackendRules result;
  std::map<std::string, std::size_t> places;  // of rules, by what they say without the types
  for (const OpAnswer& answer : answers) {
    const OpQuestion& question = *answer.question;
    std::vector<std::pair<const DTypeAnswer*, std::vector<DType>>> kinds;
    for (const DTypeAnswer& each : answer.dtypes) {
      if (!each.any()) continue;
      const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
        return kind.first->taken == each.taken;
      });
      if (same != kinds.end()) {
        same->second.push_back(each.dtype);
      } else {
        kinds.push_back({&each, {each.dtype}});
      }
    }
    result.ops += kinds.empty() ? 0 : 1;
    for (const auto& [kind, dtypes] : kinds) {
      RuleFinder finder(question, *kind);
      Json rule = {{"types", Json::array()}, {"dtypes", dtype_rule(dtypes, question.gives_bool)}};
      rule.update(finder.find());
      result.untold += finder.untold();
      const auto [place, is_new] = places.try_emplace(rule.dump(), result.rules.size());
      if (is_new) result.rules.push_back(std::move(rule));
      result.rules[place->second]["types"].push_back(question.op);
    }
  }
  return result;
}

}  // namespace npu
