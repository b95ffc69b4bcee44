// SPDX-License-Identifier: Apache-2.0
#include "profile/tensor_conversions.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "cost/node_table.hpp"
#include "graph_builder.hpp"

namespace npu::test {
namespace {

NodeTime time_of(const std::string& node, double us, const std::string& kernel = "") {
  return {.node = node, .device = "npu", .time = {.us = us}, .kernel = kernel};
}

double us_of(const std::vector<TensorConversion>& conversions, const std::string& tensor) {
  for (const TensorConversion& each : conversions) {
    if (each.tensor == tensor) return each.us;
  }
  return -1;
}

/// x -> a -> b -> c -> y, where b is int8: "a" is quantized by a kernel of its own, "b" becomes
/// float in b's kernel, and c takes longer than by itself.
struct Chain {
  Graph model;
  Graph document;
  QuantizeResult choice;
  NodeTable table;

  Chain() {
    model = graph_of(R"(
      input x [2,4]
      a = relu(x)
      b = sigmoid(a)
      c = tanh(b); output c)");
    document = graph_of(R"(
      input x [2,4]
      a = relu(x)
      a_q = neg(a)
      b = sigmoid(a_q)
      b_dq = neg(b)
      c = tanh(b_dq); output c)");
    choice.nodes = {{"a", "", Precision::kFloat, ""},
                    {"b", "", Precision::kInt8, ""},
                    {"c", "", Precision::kFloat, ""}};
    choice.conversions = {{"a", true, "a", "b"}, {"b", false, "b", "c"}};
    table.devices = {{"npu", "onednn", 0}, {"cpu", "aten", 0}};
    table.nodes = {time_of("a", 10), time_of("b", 20), time_of("c", 30)};
    table.int8 = {time_of("b", 5)};
  }
};

}  // namespace

TEST_CASE("what kernels take beyond their nodes is the time of conversions", "[profile]") {
  const Chain chain;
  NodeTable times;
  times.nodes = {time_of("a", 10), time_of("a_q", 7), time_of("b", 4, "b"), time_of("b_dq", 3, "b"),
                 time_of("c", 42)};
  const auto conversions =
      conversions_of(chain.model, chain.document, chain.choice, times, chain.table);
  REQUIRE(conversions.size() == 2);  // of npu alone: nothing ran on cpu
  CHECK(conversions[0].device == "npu");
  // b's kernel took 2 beyond b's own 5, half of it for each conversion beside it; c took 12 more.
  CHECK(us_of(conversions, "a") == Approx(7 + 1));
  CHECK(us_of(conversions, "b") == Approx(1 + 12));
  // The document's time is that of its nodes and conversions.
  CHECK(10 + 5 + 30 + us_of(conversions, "a") + us_of(conversions, "b") == Approx(66));
  CHECK(conversions[0].to_int8);
  CHECK_FALSE(conversions[1].to_int8);
}

TEST_CASE("a machine that became slower is not the conversions' fault", "[profile]") {
  Chain chain;
  chain.choice.conversions = {{"b", false, "b", "c"}};
  NodeTable times;
  // a takes twice as long, and no conversion is beside it.
  times.nodes = {time_of("a", 20), time_of("b", 10), time_of("c", 84)};
  const auto conversions =
      conversions_of(chain.model, chain.document, chain.choice, times, chain.table);
  REQUIRE(conversions.size() == 1);
  CHECK(us_of(conversions, "b") == Approx(12));
}

TEST_CASE("no conversion takes less than nothing", "[profile]") {
  const Chain chain;
  NodeTable times;
  times.nodes = {time_of("a", 10), time_of("a_q", 7), time_of("b", 5), time_of("c", 1)};
  const auto conversions =
      conversions_of(chain.model, chain.document, chain.choice, times, chain.table);
  CHECK(us_of(conversions, "a") == Approx(7));
  CHECK(us_of(conversions, "b") == 0);
}

}  // namespace npu::test
