// SPDX-License-Identifier: Apache-2.0
// Graphs that the onednn backend compiles, whose results are compared with the cpu device's, or in
// a build without it with what ops are by definition.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "backends/onednn/onednn_harness.hpp"
#include "graph_builder.hpp"
#include "npu/ir/graph.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::test::onednn {

/// A graph compiled for the npu, its data, and what the cpu device computes.
struct CompiledGraph {
  explicit CompiledGraph(const GraphBuilder& builder, const std::string& options = "{}",
                         int compile_threads = 2, const std::string& device_options = "{}");
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  std::vector<Tensor> run(npu_device* on) const;
  /// The largest difference from the cpu device, relative to the largest value.
  double error_against_cpu() { return error_against_cpu(device.get()); }
  double error_against_cpu(npu_device* on);
  std::int64_t count(const char* key) const { return report.at(key).get<std::int64_t>(); }

  Graph graph;
  std::string text;
  Device device;
  std::vector<Tensor> weights;
  std::vector<Tensor> inputs;
  std::string blob;
  Json report;
};

/// Whether the report says of a kernel that another number of threads may change bits.
bool has_bits_by_threads(const CompiledGraph& compiled);
/// Other numbers of threads cut the work in other ways, which changes no bit of most kernels.
void check_threads(const CompiledGraph& compiled, const GraphBuilder& graph,
                   std::initializer_list<int> counts);
bool runs_kernel(const CompiledGraph& compiled, const std::string& name);
/// With AVX2 a kernel of our own runs; else the report says why it was not taken.
void check_chosen(const CompiledGraph& compiled, const std::string& name);

inline constexpr const char* kBFloat16 = R"({"precision": "bf16"})";
/// Options of a device that multiplies bfloat16 much faster than float32, and much slower.
inline constexpr const char* kFastBFloat16 = R"({"bfloat16_rate": 100})";
inline constexpr const char* kSlowBFloat16 = R"({"bfloat16_rate": 0.01})";

/// In bfloat16 if the CPU has it; else that is refused.
void check_bfloat16(const GraphBuilder& builder, double most);

/// A batch norm of `input`, whose weights begin with `name`.
GraphBuilder& add_norm(GraphBuilder& graph, const std::string& name, const std::string& input,
                       const Shape& shape);

/// conv, norm, relu, conv, norm, + input, relu
GraphBuilder residual_block(std::int64_t channels);

}  // namespace npu::test::onednn
