// SPDX-License-Identifier: Apache-2.0
// Every case of testdata/ops, made by scripts/op_corpus/make_op_corpus.py, against PyTorch's
// results: as a whole on the cpu device, and once more with the nodes that the npu device claims on
// npu.
//
// On the cpu device the tolerance is the case's own. The npu device computes float32 in another
// order and bfloat16 with other roundings in between, so there it is npu-run's default.
#include "backends/op_corpus.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/passes/tag.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

using test::op_cases;
using test::OpCase;

constexpr std::size_t kLeastCases = 250;

void find_backends() { ::setenv("NPU_BACKEND_PATH", npu::test::backend_dir(), 1); }

std::vector<Tensor> run_case(const OpCase& one, const Graph& graph, const PartitionPlan& plan,
                             const Target& target) {
  return test::run_graph(graph, plan, target, weights_of(one, graph), inputs_of(one, graph));
}

// A NaN stands for every NaN: which bits a conversion gives one depends on the CPU's instructions.
std::string bit_difference(const Tensor& actual, const Tensor& expected) {
  const std::size_t size = dtype_size(actual.dtype());
  for (std::int64_t i = 0; i < actual.element_count(); ++i) {
    const std::size_t offset = static_cast<std::size_t>(i) * size;
    if (std::memcmp(actual.data() + offset, expected.data() + offset, size) == 0) continue;
    const double found = actual.value_as_double(i);
    const double wanted = expected.value_as_double(i);
    if (std::isnan(found) && std::isnan(wanted)) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(found) +
           ", bit for bit expected " + std::to_string(wanted);
  }
  return {};
}

// libtorch computes bfloat16 with oneDNN's kernels on CPUs that have AVX-512 and with its own
// elsewhere. Results that come from a cancellation near 1 (gelu's 1 + erf) differ by up to a unit
// of bfloat16 there, 2^-8, from those of the CPU that the corpus was made on.
Tolerance cpu_tolerance(const OpCase& one, DType dtype) {
  const bool is_narrow = dtype == DType::kBFloat16 && !one.exact;
  return {one.tolerance.rtol, std::max(one.tolerance.atol, is_narrow ? 1.0 / 256 : 0.0)};
}

// npu-run's defaults, or the case's own where that is wider.
Tolerance npu_tolerance(const OpCase& one, DType dtype) {
  Tolerance least{0, 0};
  if (dtype == DType::kFloat32) least = {1e-3, 1e-4};
  if (dtype == DType::kBFloat16 || dtype == DType::kFloat16) least = {2e-2, 2e-2};
  return {std::max(one.tolerance.rtol, least.rtol), std::max(one.tolerance.atol, least.atol)};
}

// Empty if every output agrees.
std::string difference(const OpCase& one, const Graph& graph, const std::vector<Tensor>& outputs,
                       bool on_npu) {
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.tensor(graph.graph_outputs()[i]).name;
    const Tensor expected = one.tensor("out/" + name);
    const Tolerance tolerance =
        on_npu ? npu_tolerance(one, expected.dtype()) : cpu_tolerance(one, expected.dtype());
    const Comparison comparison = compare_tensors(outputs[i], expected, tolerance);
    std::string fault = comparison.mismatch;
    if (fault.empty() && !comparison.ok) {
      fault = "element " + std::to_string(comparison.worst_index) + " is " +
              std::to_string(comparison.worst_actual) + ", expected " +
              std::to_string(comparison.worst_expected) + "; " +
              std::to_string(comparison.out_of_tolerance) + " of " +
              std::to_string(comparison.elements) + " differ, by up to " +
              std::to_string(comparison.max_abs);
    }
    if (fault.empty() && one.exact) fault = bit_difference(outputs[i], expected);
    if (!fault.empty()) text += (text.empty() ? "" : "; ") + ("output '" + name + "': " + fault);
  }
  return text;
}

}  // namespace

TEST_CASE("the cpu device runs the op corpus as PyTorch does", "[corpus]") {
  find_backends();
  const Target target = load_target("host");
  CHECK(op_cases().size() >= kLeastCases);
  for (const OpCase& one : op_cases()) {
    INFO(one.name);
    std::string fault;
    try {
      Graph graph = read_valid_graph(one.ir, one.name);
      for (Node& node : graph.nodes()) node.device = "cpu";
      const PartitionPlan plan = single_partition_plan(graph, "cpu");
      fault = difference(one, graph, run_case(one, graph, plan, target), false);
    } catch (const Error& error) {
      fault = error.what();
    }
    CHECK(fault == "");
  }
}

// oneDNN's relu, clip and max pooling drop NaN, as npu-onednn(7) says.
const std::set<std::string> kDropsNan{"activation/relu_nan", "elementwise/clamp_infinite",
                                      "pooling/max_pool2d_nan"};

TEST_CASE("the npu device agrees with PyTorch on what it claims of the op corpus", "[corpus]") {
  find_backends();
  const Target target = load_target("host");
  std::map<std::string, std::int64_t> nodes;
  for (const OpCase& one : op_cases()) {
    INFO(one.name);
    if (kDropsNan.contains(one.name)) continue;
    std::string fault;
    try {
      Graph graph = read_valid_graph(one.ir, one.name);
      Diagnostics diagnostics;
      tag_ops(graph, target, {}, diagnostics);
      for (const Diagnostic& entry : diagnostics.entries())
        fault += format_diagnostic(entry) + "\n";
      bool on_npu = false;
      for (const Node& node : graph.nodes()) {
        if (node.device) ++nodes[*node.device];
        on_npu = on_npu || node.device == "npu";
      }
      // Without the npu device it would be the other test again.
      if (fault.empty() && on_npu) {
        const PartitionPlan plan = partition_convex(graph);
        fault = difference(one, graph, run_case(one, graph, plan, target), true);
      }
    } catch (const Error& error) {
      fault = error.what();
    }
    CHECK(fault == "");
  }
  CHECK(nodes["npu"] > 100);
}

}  // namespace npu
