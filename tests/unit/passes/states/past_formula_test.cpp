// SPDX-License-Identifier: Apache-2.0
// What constants hold, as formulas of the place.
#include "passes/states/past_formula.hpp"

#include <string>
#include <vector>

#include "catch.hpp"

namespace npu::past_formula_test {
namespace {

using states::Affine;

bool holds(const Affine& atom, std::int64_t row, std::int64_t column) {
  return atom.factors[0] * row + atom.factors[1] * column + *atom.rest.constant() <= 0;
}

/// Rows of 1 and 0, as "110/111"; says whether the formula gives each of them again.
std::string again(const std::string& text) {
  const std::size_t columns = text.find('/');
  std::vector<double> values;
  for (const char c : text) {
    if (c != '/') values.push_back(c - '0');
  }
  const auto rows = static_cast<std::int64_t>(values.size() / columns);
  const Shape shape{rows, static_cast<std::int64_t>(columns)};
  const auto formula = states::constant_formula(values, shape, false);
  if (!formula) return "none";
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const std::int64_t row = i / shape[1];
    bool all = true;
    for (const Affine& atom : formula->when.atoms) all = all && holds(atom, row, i % shape[1]);
    const double value = all ? formula->yes : formula->no;
    if (value != values[static_cast<std::size_t>(i)]) return "other numbers";
  }
  return std::to_string(formula->when.atoms.size());
}

}  // namespace

TEST_CASE("states: a constant of two numbers has diagonals", "[states]") {
  CHECK(again("1000/1100/1110/1111") == "1");
  CHECK(again("0111/0011/0001/0000") == "1");
  CHECK(again("1111/0111/0011/0001") == "1");
  CHECK(again("111/111") == "0");
  // A window, as GPT-Neo has it, and the same of what is hidden.
  CHECK(again("1000/1100/0110/0011") == "2");
  CHECK(again("0111/0011/1001/1100") == "2");
  CHECK(again("110000/111000/011100/001110") == "2");
}

TEST_CASE("states: a constant without diagonals has no formula", "[states]") {
  CHECK(again("1000/1100/1110/1110") == "none");
  CHECK(again("1000/1100/0110/1011") == "none");
  CHECK(again("1010/1100/1110/1111") == "none");
  CHECK(again("1000/1200/1120/1112") == "none");
  CHECK(again("2000/1100/1110/1111") == "none");
}

}  // namespace npu::past_formula_test
