// SPDX-License-Identifier: Apache-2.0
// The case of ops: nodes drawn at random, in every dtype that the device lists. A backend may
// refuse any of them; what it takes it has to compute as the op is defined.
#include <string>

#include "conformance/cases.hpp"
#include "conformance/op_oracle.hpp"
#include "npu/runtime/compare.hpp"

namespace npu::conformance {
namespace {

bool is_drawn(const OpDefinition& op, DType dtype) {
  if (dtype == DType::kBool || dtype == DType::kComplex64 || dtype == DType::kComplex128) {
    return false;
  }
  if (is_floating_point(dtype)) return true;
  return dtype == DType::kUInt8 ? op.takes_unsigned : op.takes_integers;
}

// A result has an error of its dtype, and sums of up to 45 products of numbers up to 16 in it.
Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {1e-9, 1e-9};
    case DType::kFloat16:
      return {1e-2, 2e-2};
    case DType::kBFloat16:
      return {5e-2, 1e-1};
    default:
      return {1e-3, 1e-4};
  }
}

GraphSpec graph_of(const DrawnNode& node, DType dtype) {
  std::vector<TensorSpec> operands;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    operands.push_back({"x" + std::to_string(i), dtype, node.operands[i]});
  }
  return one_node(node.op, operands, {"result", dtype, node.result}, node.attrs);
}

std::string description(const DrawnNode& node, DType dtype) {
  std::string text = node.op + " of " + std::string(dtype_name(dtype));
  for (const Shape& shape : node.operands) text += " " + shape_text(shape);
  return text + " " + node.attrs.dump();
}

Tensor expected_of(const DrawnNode& node, const Instance& instance, DType dtype) {
  std::vector<Values> operands;
  for (const Tensor& input : instance.inputs) {
    Values values{input.shape(), {}};
    for (std::int64_t i = 0; i < input.element_count(); ++i) {
      values.data.push_back(input.value_as_double(i));
    }
    operands.push_back(std::move(values));
  }
  const Values result = node.evaluate(operands);
  Tensor expected(dtype, node.result);
  for (std::int64_t i = 0; i < expected.element_count(); ++i) {
    set_element(expected, i, result.data[static_cast<std::size_t>(i)]);
  }
  return expected;
}

bool sums_products(const std::string& op) {
  return op == "aten.mm.default" || op == "aten.bmm.default" || op == "aten.linear.default" ||
         op == "aten.conv2d.default";
}

void compare(const Harness& harness, const DrawnNode& node, DType dtype, const Tensor& actual,
             const Tensor& expected) {
  Tolerance tolerance = tolerance_of(dtype);
  // Terms of up to 16 may cancel, and some libraries add them up in the dtype of the result.
  if (sums_products(node.op)) tolerance.atol *= 10;
  const Comparison comparison = compare_tensors(actual, expected, tolerance);
  harness.found.expect(
      comparison.ok, description(node, dtype) + ": " + std::to_string(comparison.out_of_tolerance) +
                         " of " + std::to_string(comparison.elements) +
                         " values are wrong, the worst is " +
                         std::to_string(comparison.worst_actual) + " in place of " +
                         std::to_string(comparison.worst_expected));
}

// Whether the node was taken.
bool check_node(const Harness& harness, const DrawnNode& node, DType dtype, std::uint64_t seed) {
  const GraphSpec graph = graph_of(node, dtype);
  DevicePtr device = harness.open();
  const Compiled compiled = harness.compile(device.get(), graph);
  if (compiled.status != NPU4_OK) {
    harness.found.expect(compiled.status == NPU4_UNSUPPORTED,
                         description(node, dtype) + ": compile gives " +
                             status_name(compiled.status) + ": " + compiled.error.text);
    return false;
  }
  const Instance instance = make_instance(harness, std::move(device), graph, compiled.blob, seed);
  compare(harness, node, dtype, run_and_read(harness, instance).front(),
          expected_of(node, instance, dtype));
  return true;
}

}  // namespace

void check_ops(const Harness& harness) {
  const int draws = harness.quick ? 3 : 12;
  std::int64_t taken = 0;
  std::uint64_t drawn = 0;
  for (const OpDefinition& op : op_definitions()) {
    for (const DType dtype : harness.facts().dtypes) {
      if (!is_drawn(op, dtype)) continue;
      Random random(1000 * ++drawn + static_cast<std::uint64_t>(dtype));
      for (int i = 0; i < draws; ++i) {
        const DrawnNode node = op.draw(random);
        taken += check_node(harness, node, dtype, static_cast<std::uint64_t>(i)) ? 1 : 0;
      }
    }
  }
  harness.found.expect(taken > 0, "not one node of common ops compiles");
}

}  // namespace npu::conformance
