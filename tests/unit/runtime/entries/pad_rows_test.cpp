// SPDX-License-Identifier: Apache-2.0
// Padding repeats the last row of each dimension, and cutting takes the rows out again.
#include "runtime/entries/pad_rows.hpp"

#include <algorithm>
#include <random>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

Tensor counted(const Shape& shape) {
  Tensor tensor(DType::kInt32, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    tensor.as_mutable<std::int32_t>()[i] = static_cast<std::int32_t>(i + 1);
  }
  return tensor;
}

/// Element by element.
bool repeats_last_rows(const Tensor& whole, const Tensor& given) {
  Shape place(whole.shape().size(), 0);
  for (std::int64_t i = 0; i < whole.element_count(); ++i) {
    std::int64_t rest = i;
    for (std::size_t d = place.size(); d-- > 0;) {
      place[d] = rest % whole.shape()[d];
      rest /= whole.shape()[d];
    }
    std::int64_t index = 0;
    for (std::size_t d = 0; d < place.size(); ++d) {
      index = index * given.shape()[d] + std::min(place[d], given.shape()[d] - 1);
    }
    if (whole.as<std::int32_t>()[i] != given.as<std::int32_t>()[index]) return false;
  }
  return true;
}

bool has_same_bytes(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() &&
         std::equal(a.data(), a.data() + a.bytes(), b.data(), b.data() + b.bytes());
}

}  // namespace

TEST_CASE("padding: tensors of any rank come back as they were", "[runtime][entries]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    Shape given(random() % 5);
    Shape capacity(given.size());
    for (std::size_t d = 0; d < given.size(); ++d) {
      given[d] = 1 + static_cast<std::int64_t>(random() % 4);
      capacity[d] = given[d] + static_cast<std::int64_t>(random() % 3);
    }
    const Tensor tensor = counted(given);
    const Tensor padded = padded_rows(tensor, capacity);
    CAPTURE(shape_text(given), shape_text(capacity));
    REQUIRE(padded.shape() == capacity);
    CHECK(repeats_last_rows(padded, tensor));
    CHECK(has_same_bytes(first_rows(padded, given), tensor));
  }
}

TEST_CASE("padding: what has its shape already is not copied", "[runtime][entries]") {
  const Tensor tensor = counted({2, 3});
  CHECK(padded_rows(tensor, {2, 3}).data() == tensor.data());
  CHECK(first_rows(tensor, {2, 3}).data() == tensor.data());
}

TEST_CASE("padding: rows that are not there are refused", "[runtime][entries]") {
  CHECK_THROWS_AS(padded_rows(counted({3}), {2}), Error);
  CHECK_THROWS_AS(padded_rows(counted({3}), {3, 1}), Error);
  CHECK_THROWS_AS(padded_rows(counted({0, 2}), {1, 2}), Error);
  CHECK_THROWS_AS(first_rows(counted({3}), {4}), Error);
  CHECK_THROWS_AS(first_rows(counted({3}), {}), Error);
  CHECK(padded_rows(counted({0, 2}), {0, 3}).element_count() == 0);
  CHECK(first_rows(counted({3, 2}), {0, 2}).element_count() == 0);
}

TEST_CASE("sizes that a padded entry is not proved for are told", "[entries]") {
  Graph graph = test::GraphBuilder().lines("input x [2]; y = relu(x) [2]; output y").build();
  CHECK(unproved_size(graph, {{"S", 1}}).empty());
  graph.set_npu_member("padding", {{"symbols", {{"S", {{"capacity", 8}, {"min", 3}}}}}});
  CHECK(unproved_size(graph, {{"S", 3}, {"T", 1}}).empty());
  CHECK(unproved_size(graph, {{"S", 2}}) == "S is 2, expected at least 3");
  CHECK_NOTHROW(check_proved(graph, {{"S", 8}}));
  CHECK_THROWS_AS(check_proved(graph, {{"S", 1}}), Error);
}
