// SPDX-License-Identifier: Apache-2.0
// Random data is the same everywhere. The golden bits come from another implementation of the same
// generator (SplitMix64 on seed xor FNV-1a of the name), in Python.
#include "runtime/random_tensor.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "catch.hpp"
#include "graph_builder.hpp"

using namespace npu;
using npu::test::graph_of;
using npu::test::GraphBuilder;

namespace {

std::vector<std::uint32_t> float_bits(const Tensor& tensor) {
  std::vector<std::uint32_t> bits;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i)
    bits.push_back(std::bit_cast<std::uint32_t>(tensor.as<float>()[i]));
  return bits;
}
using Bits = std::vector<std::uint32_t>;

bool same(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

TEST_CASE("random: golden bits of weights") {
  // A matrix with four columns: deviation 1 / sqrt(4).
  CHECK(float_bits(random_weight(DType::kFloat32, {2, 4}, "layer.weight", 1)) ==
        Bits{0xbea1b010, 0x3f809494, 0xbed78301, 0xbf00bc30, 0x3b716980, 0xbe9e0b84, 0xbe4db268,
             0xbebd4661});
  CHECK(float_bits(random_weight(DType::kFloat32, {3}, "bn.running_var", 1)) ==
        Bits{0x3f8626ec, 0x3f17e62b, 0x3f55ac1c});
  CHECK(float_bits(random_weight(DType::kFloat32, {3}, "bn.weight", 1)) ==
        Bits{0x3f703f6c, 0x3f67531e, 0x3f7a3e9d});
  CHECK(float_bits(random_weight(DType::kFloat32, {3}, "bn.bias", 1)) ==
        Bits{0x3c7f3d1a, 0xbd999aa2, 0xbd92e88a});
}

TEST_CASE("random: golden values of inputs") {
  const Graph graph = graph_of(R"(
    input x [4]; input ids [6] int64; input mask [12] bool; weight table [30522,8]
    e = embedding(p_table, ids) [6,8])");
  CHECK(float_bits(random_input(graph, graph.find_tensor("x"), 7)) ==
        Bits{0x3f5318ca, 0xbf2502b6, 0xbfcf3ad6, 0xbec0923c});
  const Tensor ids = random_input(graph, graph.find_tensor("ids"), 7);
  const std::vector<std::int64_t> rows{18201, 14781, 7457, 11862, 4355, 16372};  // below 30522
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(ids.as<std::int64_t>()[i] == rows[i]);
  const Tensor mask = random_input(graph, graph.find_tensor("mask"), 7);
  const std::vector<int> values{0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0};
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(mask.as<std::uint8_t>()[i] == values[i]);
}

TEST_CASE("random: seed and name decide, nothing else") {
  const auto weight = [](const char* name, std::uint64_t seed) {
    return random_weight(DType::kFloat32, {2, 8}, name, seed);
  };
  CHECK(same(weight("a", 1), weight("a", 1)));
  CHECK_FALSE(same(weight("a", 1), weight("a", 2)));
  CHECK_FALSE(same(weight("a", 1), weight("b", 1)));
  const Graph one = GraphBuilder().input("x").build();
  const Graph other = GraphBuilder().input("y").input("x").build();
  CHECK(same(random_input(one, one.find_tensor("x"), 3),
             random_input(other, other.find_tensor("x"), 3)));
}

TEST_CASE("random: the same values in every float format, rounded") {
  const Tensor single = random_weight(DType::kFloat32, {4, 16}, "w", 5);
  const Tensor wide = random_weight(DType::kFloat64, {4, 16}, "w", 5);
  const Tensor half = random_weight(DType::kFloat16, {4, 16}, "w", 5);
  const Tensor bfloat = random_weight(DType::kBFloat16, {4, 16}, "w", 5);
  for (std::int64_t i = 0; i < 64; ++i) {
    const float value = single.as<float>()[i];
    CHECK(static_cast<float>(wide.as<double>()[i]) == value);
    CHECK(half.as<std::uint16_t>()[i] == float_to_float16(value));
    CHECK(bfloat.as<std::uint16_t>()[i] == float_to_bfloat16(value));
  }
}

TEST_CASE("random: weights keep the ranges that the names promise") {
  const auto range = [](const Shape& shape, const char* name) {
    const Tensor tensor = random_weight(DType::kFloat64, shape, name, 11);
    double low = 1e9;
    double high = -1e9;
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      const double value = tensor.as<double>()[i];
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
      squares += value * value;
    }
    const auto count = static_cast<double>(tensor.element_count());
    return std::array<double, 4>{low, high, sum / count, std::sqrt(squares / count)};
  };
  const auto var = range({10000}, "bn.running_var");
  CHECK(var[0] >= 0.5);
  CHECK(var[1] < 1.5);
  CHECK(std::abs(var[2] - 1) < 0.02);  // the mean of 10,000 has deviation 0.003
  const auto scale = range({10000}, "bn.weight");
  CHECK(scale[0] >= 0.9);
  CHECK(scale[1] < 1.1);
  const auto bias = range({10000}, "bn.bias");
  CHECK(bias[0] >= -0.1);
  CHECK(bias[1] < 0.1);
  const auto kernel = range({100, 4, 5, 5}, "conv.weight");  // fan-in 100, deviation 0.1
  CHECK(std::abs(kernel[2]) < 0.01);
  CHECK(std::abs(kernel[3] - 0.1) < 0.01);
}

TEST_CASE("random: integer and bool weights are 0") {
  for (const DType dtype :
       {DType::kInt8, DType::kUInt8, DType::kInt16, DType::kInt32, DType::kInt64, DType::kBool}) {
    const Tensor tensor = random_weight(dtype, {50}, "num_batches_tracked", 3);
    for (std::int64_t i = 0; i < 50; ++i) CHECK(tensor.value_as_double(i) == 0);
  }
}

TEST_CASE("random: integer inputs stay below the rows of every table that they select from") {
  const auto largest = [](const std::string& dtype, const std::vector<std::int64_t>& tables) {
    GraphBuilder builder;
    builder.input("ids", {500}, dtype);
    for (std::size_t t = 0; t < tables.size(); ++t) {
      const std::string n = std::to_string(t);
      builder.weight("t" + n, {tables[t], 2});
      builder.node("e" + n, "aten.embedding.default", {"p_t" + n, "ids"}, Shape{500, 2});
    }
    const Graph graph = builder.build();
    const Tensor tensor = random_input(graph, graph.find_tensor("ids"), 1);
    double most = -1;
    for (std::int64_t i = 0; i < 500; ++i) {
      CHECK(tensor.value_as_double(i) >= 0);
      most = std::max(most, tensor.value_as_double(i));
    }
    return most;
  };
  CHECK(largest("int64", {}) == 1);  // 0 and 1
  CHECK(largest("int64", {10}) == 9);
  CHECK(largest("int32", {100, 5}) == 4);
  CHECK(largest("int64", {1}) == 0);
  CHECK(largest("int8", {1000}) == 127);  // what the type holds
  CHECK(largest("bool", {}) == 1);
}

TEST_CASE("random: tensors without elements and scalars") {
  CHECK(random_weight(DType::kFloat32, {0, 3}, "w", 1).element_count() == 0);
  CHECK(random_weight(DType::kFloat32, {}, "w", 1).element_count() == 1);
}
