// SPDX-License-Identifier: Apache-2.0
// Expressions of places, evaluated and compared with their definition.
#include "emit/index.hpp"

#include <cctype>
#include <map>

#include "catch.hpp"

namespace npu::opencl {
namespace {

/// Evaluates what index.hpp writes: names, numbers, parentheses, and + - * / %.
class Evaluator {
 public:
  explicit Evaluator(const std::map<std::string, std::int64_t>& names) : names_(names) {}

  std::int64_t value_of(const std::string& text) {
    text_ = text;
    at_ = 0;
    const std::int64_t value = operation();
    REQUIRE(at_ == text_.size());
    return value;
  }

 private:
  std::int64_t operation() {
    std::int64_t left = term();
    while (at_ < text_.size() && text_[at_] == ' ') {
      const char sign = text_[at_ + 1];
      at_ += 3;
      const std::int64_t right = term();
      left = sign == '+'   ? left + right
             : sign == '-' ? left - right
             : sign == '*' ? left * right
             : sign == '/' ? left / right
                           : left % right;
    }
    return left;
  }
  std::int64_t term() {
    if (text_[at_] == '(') {
      ++at_;
      const std::int64_t value = operation();
      REQUIRE(text_[at_] == ')');
      ++at_;
      return value;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::string word = text_.substr(begin, at_ - begin);
    return names_.contains(word) ? names_.at(word) : std::stoll(word);
  }

  const std::map<std::string, std::int64_t>& names_;
  std::string text_;
  std::size_t at_ = 0;
};

/// Every element of `from` keeps its row-major place in `to`.
void check_reshape(const Shape& from, const Shape& to) {
  std::int64_t count = 1;
  for (const std::int64_t extent : from) count *= extent;
  Index names;
  for (std::size_t d = 0; d < from.size(); ++d) names.push_back("i" + std::to_string(d));
  const Index index = reshaped_index(names, from, to);
  REQUIRE(index.size() == to.size());
  for (std::int64_t place = 0; place < count; ++place) {
    std::map<std::string, std::int64_t> values{{"g", place}};
    std::int64_t rest = place;
    for (std::size_t d = from.size(); d-- > 0;) {
      values[names[d]] = rest % from[d];
      rest /= from[d];
    }
    Evaluator evaluator(values);
    CHECK(evaluator.value_of(linear_place(names, from)) == place);
    CHECK(evaluator.value_of(linear_place(index, to)) == place);
    CHECK(evaluator.value_of(linear_place(index_of_place("g", to), to)) == place);
    for (std::size_t d = 0; d < to.size(); ++d) {
      const std::int64_t at = evaluator.value_of(index[d]);
      CHECK((at >= 0 && at < to[d]));
    }
  }
}

}  // namespace

TEST_CASE("a reshape keeps the row-major place of every element") {
  check_reshape({2, 3, 4}, {24});
  check_reshape({24}, {2, 3, 4});
  check_reshape({2, 3, 4}, {6, 4});
  check_reshape({6, 4}, {2, 3, 2, 2});
  check_reshape({4, 6}, {6, 4});
  check_reshape({1, 5, 1}, {5});
  check_reshape({}, {1, 1});
  check_reshape({3, 1, 4, 2}, {1, 3, 8, 1});
}

TEST_CASE("dimensions that both shapes have keep their index") {
  const Index index = reshaped_index({"a", "b", "c"}, {7, 3, 4}, {7, 12});
  CHECK(index[0] == "a");
  CHECK(reshaped_index({"a", "b"}, {7, 3}, {7, 1, 3}) == Index{"a", "0", "b"});
}

TEST_CASE("numbers are folded") {
  CHECK(plus("0", "x") == "x");
  CHECK(plus("2", "3") == "5");
  CHECK(plus("x", -2) == "(x - 2)");
  CHECK(times("x", 1) == "x");
  CHECK(times("x", 0) == "0");
  CHECK(divided("x", 1) == "x");
  CHECK(modulo("x", 1) == "0");
  CHECK(broadcast_index({"a", "b", "c"}, {1, 4}) == Index{"0", "c"});
}

TEST_CASE("an index that was taken apart is one place again") {
  CHECK(linear_place(index_of_place("g", {4, 3, 5}), {4, 3, 5}) == "g");
  CHECK(linear_place(index_of_place("g", {4, 1, 5, 1}), {4, 1, 5, 1}) == "g");
  // The place in the dimensions behind others.
  Index index = index_of_place("k", {8, 3, 3});
  index.insert(index.begin(), "m");
  CHECK(linear_place(index, {64, 8, 3, 3}) == "((m * 72) + k)");
  // Of other extents, or in another order, it is not.
  CHECK(linear_place(index, {64, 8, 3, 4}) != "((m * 96) + k)");
  std::swap(index[2], index[3]);
  CHECK(linear_place(index, {64, 8, 3, 3}) != "((m * 72) + k)");
}

}  // namespace npu::opencl
