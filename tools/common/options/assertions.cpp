// SPDX-License-Identifier: Apache-2.0
// --assert 'METRIC OP VALUE': compares a number of a report with one from the command line, so that
// a script learns from the exit status that a model has become worse.
#include "options/assertions.hpp"

#include <array>
#include <charconv>
#include <string_view>

#include "npu/support/error.hpp"

namespace npu::cli {
namespace {

struct Assertion {
  std::string metric = {};
  std::string comparison = {};
  double value = 0;
};

std::string trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(' ') - begin + 1));
}

Assertion parse_assertion(const std::string& text) {
  const std::size_t begin = text.find_first_of("<>=!");
  const std::size_t end = text.find_first_not_of("<>=!", begin);
  if (begin != std::string::npos && end != std::string::npos) {
    Assertion assertion{trimmed(std::string_view(text).substr(0, begin)),
                        text.substr(begin, end - begin)};
    const std::string number = trimmed(std::string_view(text).substr(end));
    const auto [last, error] =
        std::from_chars(number.data(), number.data() + number.size(), assertion.value);
    const std::string& op = assertion.comparison;
    const bool known =
        op == "<=" || op == ">=" || op == "==" || op == "!=" || op == "<" || op == ">";
    if (known && !assertion.metric.empty() && error == std::errc() &&
        last == number.data() + number.size()) {
      return assertion;
    }
  }
  throw Error(ErrorCode::kUsage,
              "'" + text + "' is not METRIC OP VALUE, for example 'transfers<=4'");
}

bool holds(double value, const std::string& comparison, double bound) {
  if (comparison == "<=") return value <= bound;
  if (comparison == ">=") return value >= bound;
  if (comparison == "==") return value == bound;
  if (comparison == "!=") return value != bound;
  if (comparison == "<") return value < bound;
  return value > bound;
}

std::string metric_names(const Metrics& metrics) {
  std::string names;
  for (const auto& [name, value] : metrics) names += (names.empty() ? "" : ", ") + name;
  return names;
}

std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("?");
}

}  // namespace

void check_assertion(const std::string& text) { parse_assertion(text); }

bool assertions_hold(const std::vector<std::string>& texts, const Metrics& metrics,
                     const std::function<void(const std::string&)>& complain) {
  bool all = true;
  for (const std::string& text : texts) {
    const Assertion assertion = parse_assertion(text);
    const auto metric = metrics.find(assertion.metric);
    if (metric == metrics.end()) {
      throw Error(ErrorCode::kUsage, "--assert '" + text + "': unknown metric '" +
                                         assertion.metric +
                                         "', expected one of: " + metric_names(metrics));
    }
    if (holds(metric->second, assertion.comparison, assertion.value)) continue;
    complain("assertion '" + text + "' does not hold: " + assertion.metric + " is " +
             number_text(metric->second));
    all = false;
  }
  return all;
}

}  // namespace npu::cli
