// SPDX-License-Identifier: Apache-2.0
// Checks of option values, each with a message that fits on a line, so that programs complain
// alike.
#include "options/validators.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <utility>

#include "io.hpp"
#include "npu/compile/cache.hpp"
#include "support/text.hpp"

namespace npu::cli {
namespace {

// Accepts text that is a number as a whole and satisfies `accept`; else "value TEXT COMPLAINT".
template <typename Number>
CLI::Validator number_check(std::function<bool(Number)> accept, std::string complaint) {
  return CLI::Validator(
      [accept = std::move(accept), complaint = std::move(complaint)](std::string& text) {
        Number value{};
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool is_number = error == std::errc() && end == text.data() + text.size();
        return is_number && accept(value) ? std::string() : "value " + text + " " + complaint;
      },
      "");
}

}  // namespace

CLI::Option* repeatable(CLI::Option* option) {
  option->expected(1)->allow_extra_args(false);
  return option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Validator in_range(std::int64_t minimum, std::int64_t maximum) {
  return number_check<std::int64_t>(
      [minimum, maximum](std::int64_t value) { return value >= minimum && value <= maximum; },
      "is not in " + std::to_string(minimum) + ".." + std::to_string(maximum));
}

CLI::Validator one_of(std::vector<std::string> words) {
  return CLI::Validator(
      [words = std::move(words)](std::string& text) {
        std::string list;
        for (const std::string& word : words) {
          if (word == text) return std::string();
          list += (list.empty() ? "" : ", ") + word;
        }
        return "value " + text + " is not one of " + list;
      },
      "");
}

CLI::Validator byte_size() {
  return CLI::Validator(
      [](std::string& text) {
        if (parse_byte_size(text)) return std::string();
        const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
        const bool is_large = unit > 0 && parse_byte_size("1" + text.substr(unit));
        return "value " + text +
               (is_large ? " is above " + std::to_string(INT64_MAX) + " bytes"
                         : " is no size, for example 500M or 8G");
      },
      "");
}

CLI::Validator seed() {
  return number_check<std::uint64_t>([](std::uint64_t) { return true; },
                                     "is not in 0.." + std::to_string(UINT64_MAX));
}

CLI::Validator file_beside_stdout() {
  return CLI::Validator(
      [](std::string& text) {
        return is_stdout(text) || text.empty()
                   ? "'" + text + "' is no file name, and stdout carries the document"
                   : std::string();
      },
      "");
}

CLI::Validator not_empty() {
  return CLI::Validator(
      [](std::string& text) { return text.empty() ? "'' is no name" : std::string(); }, "");
}

CLI::Validator finite_at_least_zero() {
  return number_check<double>([](double value) { return std::isfinite(value) && value >= 0; },
                              "is not a finite number of at least 0");
}

CLI::Validator temperature() {
  return number_check<double>(
      [](double value) { return value == 0 || (value >= 1e-6 && value <= 1e6); },
      "is neither 0 nor a number from 1e-6 to 1e6");
}

CLI::Validator share() {
  return number_check<double>([](double value) { return value > 0 && value <= 1; },
                              "is not a number above 0 and at most 1");
}

CLI::Validator seconds_to_wait() {
  constexpr double kYear = 365.0 * 24 * 3600;
  return number_check<double>([](double value) { return value > 0 && value <= kYear; },
                              "is not a number of seconds above 0 and at most 31536000, a year");
}

CLI::Validator id_list() {
  constexpr std::int64_t kLargest = (std::int64_t{1} << 31) - 1;
  return CLI::Validator(
      [](std::string& text) {
        const auto ids = integer_list(text);
        bool suits = ids && !ids->empty();
        for (std::size_t i = 0; suits && i < ids->size(); ++i) {
          suits = (*ids)[i] >= 0 && (*ids)[i] <= kLargest;
        }
        return suits ? std::string() : "value " + text + " is no list of ids, for example 2,107";
      },
      "");
}

}  // namespace npu::cli
