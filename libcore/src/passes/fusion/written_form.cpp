// SPDX-License-Identifier: Apache-2.0
// Matches expressions of ops from their result upwards. Of alternatives the first one that fits is
// taken, and so of the two orders of operands; neither is looked at again for what follows.
#include "passes/fusion/written_form.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ops/op_name.hpp"

namespace npu::fusion {
namespace {

/// The parts of an expression between separators that stand in no parentheses.
std::vector<std::string_view> parts_of(std::string_view form, char separator) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= form.size(); ++i) {
    if (i == form.size() || (depth == 0 && form[i] == separator)) {
      parts.push_back(form.substr(begin, i - begin));
      begin = i + 1;
      continue;
    }
    depth += form[i] == '(' ? 1 : form[i] == ')' ? -1 : 0;
  }
  return parts;
}

bool is_number(std::string_view form) { return form.front() >= '0' && form.front() <= '9'; }

/// Whether the number is a node's only attribute.
bool has_number(const Node& node, std::string_view form) {
  double wanted = 0;
  std::from_chars(form.data(), form.data() + form.size(), wanted);
  const std::optional<double> number = only_number(node);
  return number && std::abs(*number - wanted) <= 1e-6 * wanted;
}

}  // namespace

bool has_factor(const Node& node) {
  const Json* alpha = find_member(node.attrs(), "alpha");
  return alpha != nullptr && !(alpha->is_number() && alpha->get<double>() == 1.0);
}

std::optional<double> only_number(const Node& node) {
  const Json& attrs = node.attrs();
  if (!attrs.is_object() || has_factor(node)) return std::nullopt;
  std::optional<double> number;
  for (const auto& [key, value] : attrs.items()) {
    if (key == "alpha") continue;
    if (number || !value.is_number()) return std::nullopt;
    number = value.get<double>();
  }
  return number;
}

bool WrittenForm::matches_operand(TensorId id, std::int32_t reader, std::string_view form) {
  const auto choices = parts_of(form, '|');
  return std::any_of(choices.begin(), choices.end(), [&](std::string_view choice) {
    if (choice == "_") return true;
    if (choice == "x") {
      if (!x_.valid()) x_ = id;
      return x_ == id;
    }
    const std::int32_t n = builder_.above(id, reader, readers_);
    return n >= 0 && matches(n, choice);
  });
}

bool WrittenForm::matches(std::int32_t n, std::string_view form) {
  const auto choices = parts_of(form, '|');
  if (choices.size() > 1) {
    return std::any_of(choices.begin(), choices.end(),
                       [&](std::string_view choice) { return matches(n, choice); });
  }
  const Node& node = builder_.node(n);
  const std::string_view name = form.substr(0, form.find('('));
  if (functional_name(node.op_type) != name || node.outputs.size() != 1) return false;
  form.remove_prefix(name.size() + 1);
  form.remove_suffix(1);
  auto operands = parts_of(form, ',');
  if (is_number(operands.back())) {
    if (!has_number(node, operands.back())) return false;
    operands.pop_back();
  }
  if (node.inputs.size() != operands.size()) return false;
  const TensorId x = x_;
  nodes_.push_back(n);
  const std::size_t count = nodes_.size();
  const bool commutes = operands.size() == 2 && (name == "add" || name == "mul");
  for (int order = 0; order <= (commutes ? 1 : 0); ++order) {
    bool fits = true;
    for (std::size_t i = 0; i < operands.size() && fits; ++i) {
      fits = matches_operand(node.inputs[order == 0 ? i : 1 - i], n, operands[i]);
    }
    if (fits) return true;
    nodes_.resize(count);
    x_ = x;
  }
  nodes_.pop_back();
  return false;
}

}  // namespace npu::fusion
