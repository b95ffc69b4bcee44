// SPDX-License-Identifier: Apache-2.0
// The kernel of attention over a cache: what it reads in place of its mask.
#include <algorithm>

#include "catch.hpp"
#include "lowering/lower_graph.hpp"
#include "npu/ir/json_reader.hpp"

namespace npu::opencl {
namespace {

/// Two attentions that share a mask of lengths; the mask is an output if asked for.
Graph attentions(const char* operands, bool gives_mask) {
  const std::string text =
      std::string(R"({"model_name": "cache", "graph_inputs": [
      {"name": "q", "shape": [1, 4, 3, 8], "dtype": "float32"},
      {"name": "k", "shape": [1, 2, 50, 8], "dtype": "float32"},
      {"name": "v", "shape": [1, 2, 50, 8], "dtype": "float32"},
      {"name": "p", "shape": [3], "dtype": "int64"}, {"name": "n", "shape": [], "dtype": "int64"}],
    "weights": [], "nodes": [
      {"name": "m", "op_type": "npu.length_mask", "inputs": [)") +
      (std::string(operands) == "both" ? R"({"name": "p", "shape": [3], "dtype": "int64"},
                                    {"name": "n", "shape": [], "dtype": "int64"}], "attrs":
                                    {"operands": "both", "keys": 50, "causal": true, "window": 7})"
                                       : R"({"name": "p", "shape": [3], "dtype": "int64"}], "attrs":
                                    {"operands": "positions", "keys": 50, "causal": true})") +
      R"(, "outputs": [{"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"}]},
      {"name": "a", "op_type": "aten.scaled_dot_product_attention.default", "inputs": [
        {"name": "q", "shape": [1, 4, 3, 8], "dtype": "float32"},
        {"name": "k", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "v", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"}], "attrs": {"enable_gqa": true},
        "outputs": [{"name": "a", "shape": [1, 4, 3, 8], "dtype": "float32"}]},
      {"name": "b", "op_type": "aten.scaled_dot_product_attention.default", "inputs": [
        {"name": "a", "shape": [1, 4, 3, 8], "dtype": "float32"},
        {"name": "k", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "v", "shape": [1, 2, 50, 8], "dtype": "float32"},
        {"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"}], "attrs": {"enable_gqa": true},
        "outputs": [{"name": "b", "shape": [1, 4, 3, 8], "dtype": "float32"}]}],
    "graph_outputs": [{"name": "b", "shape": [1, 4, 3, 8], "dtype": "float32"})" +
      (gives_mask ? R"(, {"name": "m", "shape": [1, 1, 3, 50], "dtype": "bool"})" : "") + "]}";
  return read_valid_graph(text, "cache.json");
}

}  // namespace

TEST_CASE("attention over a cache reads lengths, and its mask is made for others alone") {
  const bool has_both = GENERATE(false, true);
  const bool gives_mask = GENERATE(false, true);
  Machine machine;
  machine.is_cpu = true;
  const Plan plan = lower_graph(attentions(has_both ? "both" : "positions", gives_mask), machine,
                                [](std::size_t, std::size_t) {})
                        .plan;
  REQUIRE(plan.launches.size() == (gives_mask ? 3U : 2U));
  for (const Launch& launch : plan.launches) {
    const auto reads_input = [&](std::uint64_t which) {
      return std::ranges::any_of(launch.arguments, [&](const Place& place) {
        return place.kind == PlaceKind::kInput && place.value == which;
      });
    };
    CHECK(reads_input(3));              // p
    CHECK(reads_input(4) == has_both);  // n
  }
  CHECK(plan.scratch_bytes == 512);  // the first result, 4 * 3 * 8 floats in pieces of 256 bytes
}

}  // namespace npu::opencl
