// SPDX-License-Identifier: Apache-2.0
// Text about targets, for npu-tag's --list-* options.
#include "target/list_ops.hpp"

#include <algorithm>

#include "npu/ir/json_writer.hpp"
#include "support/text.hpp"
#include "target/decompose_list.hpp"

namespace npu {
namespace {

std::string range_text(const CountRange& range) {
  if (range.min == 0 && !range.max) return "any";
  if (!range.max) return std::to_string(range.min) + "+";
  if (*range.max == range.min) return std::to_string(range.min);
  return std::to_string(range.min) + "-" + std::to_string(*range.max);
}

std::string dtypes_text(const std::vector<DType>& dtypes) {
  if (dtypes.empty()) return "any";
  std::string text;
  for (const DType dtype : dtypes)
    text += (text.empty() ? "" : ",") + std::string(dtype_name(dtype));
  return text;
}

std::string dtypes_text(const DTypeRule& rule) {
  std::string text = dtypes_text(rule.any);
  for (const auto& [argument, dtypes] : rule.by_argument)
    text += " " + argument + ":" + dtypes_text(dtypes);
  return text;
}

// A number without a fraction if it is whole.
std::string number_text(double value) {
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? std::to_string(whole) : Json(value).dump();
}

std::string rule_text(const AttributeRule& rule) {
  std::string text;
  const auto add = [&](const std::string& condition) {
    text += (text.empty() ? "" : " ") + condition;
  };
  if (rule.equals) add(rule.argument + "=" + rule.equals->dump());
  if (rule.in) add(rule.argument + " in " + rule.in->dump());
  if (rule.min) add(rule.argument + ">=" + number_text(*rule.min));
  if (rule.max) add(rule.argument + "<=" + number_text(*rule.max));
  if (rule.each_min) add("each " + rule.argument + ">=" + number_text(*rule.each_min));
  if (rule.each_max) add("each " + rule.argument + "<=" + number_text(*rule.each_max));
  return text;
}

std::string conditions_text(const OpRule& rule) {
  std::string text;
  for (const AttributeRule& attribute : rule.attributes) {
    text += (text.empty() ? "" : ", ") + rule_text(attribute);
  }
  for (const std::string& requirement : rule.requirements) {
    text += (text.empty() ? "" : ", ") + requirement;
  }
  return text;
}

void add_device(const Target& target, const Device& device,
                std::vector<std::vector<std::string>>& rows) {
  if (device.any_op)
    rows.push_back({device.name, "*", dtypes_text(device.dtypes), "any", "any",
                    "every aten and quantized_decomposed op"});
  std::vector<std::vector<std::string>> own;
  for (const OpRule& rule : device.rules) {
    for (const std::string& type : rule.types) {
      own.push_back({device.name, type, dtypes_text(rule.dtypes), range_text(rule.rank),
                     range_text(rule.inputs), conditions_text(rule)});
    }
  }
  for (const std::string& alias : device.aliases) {
    if (!device.rules_by_type.contains(alias))
      own.push_back({device.name, alias, "any", "any", "any", "no cost"});
  }
  for (const std::string& op : decompose_list(target, device.name)) {
    own.push_back({device.name, op, "any", "any", "any", "decomposed"});
  }
  std::stable_sort(own.begin(), own.end(),
                   [](const auto& a, const auto& b) { return a[1] < b[1]; });
  rows.insert(rows.end(), own.begin(), own.end());
}

}  // namespace

std::string format_targets() {
  std::vector<std::vector<std::string>> rows{{"target", "description"}};
  for (const BuiltInTarget& target : built_in_targets())
    rows.push_back({target.name, target.description});
  return table_text(rows);
}

std::string format_target(const Target& target) { return write_document(*target.json); }

std::string format_target_ops(const Target& target, const std::string& device) {
  std::vector<std::vector<std::string>> rows{
      {"device", "op", "dtypes", "rank", "operands", "conditions"}};
  std::string names;
  for (const Device& candidate : target.devices) {
    names += (names.empty() ? "" : ", ") + candidate.name;
    if (device.empty() || candidate.name == device) add_device(target, candidate, rows);
  }
  if (!device.empty() && target.find_device(device) == nullptr) {
    throw Error(ErrorCode::kUsage,
                "--list-ops " + device + ": target '" + target.name + "' has the devices " + names);
  }
  return table_text(rows);
}

}  // namespace npu
