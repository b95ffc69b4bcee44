// SPDX-License-Identifier: Apache-2.0
// Counts what a plan holds: kernels, reorders, memory. O(steps + buffers).
#include "program/compile_report.hpp"

#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cmath>

#include "npu/support/json.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "program/thread_bits.hpp"

namespace npu::onednn {

namespace {

const char* kind_name(KernelKind kind) {
  switch (kind) {
    case KernelKind::kReorder:
      return "reorder";
    case KernelKind::kMove:
      return "move";
    default:
      return "compute";
  }
}

/// What a step that only changes a layout is there for, by the tensor at the sub-IR's border.
void add_border(const Plan& plan, const Step& step, Json& row) {
  const auto buffer_of = [&](std::size_t operand) -> const BufferInfo& {
    return plan.buffers[index_of(step.operands[operand].buffer)];
  };
  if (step.kind == KernelKind::kReorder && !step.binds_output && step.read_count > 0 &&
      buffer_of(0).kind == BufferKind::kInput) {
    row["reads"] = plan.inputs[buffer_of(0).index].name;
  } else if ((step.kind == KernelKind::kReorder || step.binds_output) &&
             step.read_count < step.operands.size() &&
             buffer_of(step.read_count).kind == BufferKind::kOutput) {
    row["writes"] = plan.outputs[buffer_of(step.read_count).index].name;
  }
}

/// "convolution".
std::string primitive_name(const Step& step) {
  dnnl_primitive_kind_t kind = dnnl_undefined_primitive;
  dnnl_primitive_desc_query(step.primitive.get(), dnnl_query_primitive_kind, 0, &kind);
  return dnnl_prim_kind2str(kind);
}

/// Which kernel it is, what threads mean for its bits, and why it is no other one.
void add_kernel(const Step& step, const StepRecord& record, Json& row) {
  if (step.kernel) {
    row["kernel"] = std::string(kernel_name(*step.kernel));
    row["bits_by_threads"] = false;
  } else {
    row["kernel"] = primitive_name(step);
    row["implementation"] = step.primitive.impl_info_str();
    row["bits_by_threads"] = bits_by_threads(*record.primitive, step.primitive);
  }
  if (step.choice.cycles) row["estimate"] = std::llround(*step.choice.cycles);
  if (step.choice.rounding) row["rounding"] = std::round(*step.choice.rounding * 10.0) / 10.0;
  for (const KernelChoice::Rejected& each : step.choice.rejected) {
    row["why"].push_back({{"kernel", each.kernel}, {"reason", each.reason}});
  }
}

/// A primitive whose first operand is numbers of a byte.
bool multiplies_bytes(const Step& step) {
  if (step.kernel && step.node >= 0) {
    const auto* product = std::get_if<IntegerProduct>(&*step.kernel);
    return product != nullptr && is_byte(product->type);
  }
  if (step.kernel || step.node < 0 || step.kind != KernelKind::kCompute) return false;
  const dnnl_data_type_t type = step.layouts.front().data.data_type;
  return type == dnnl_u8 || type == dnnl_s8;
}

/// Multiply-adds of convolutions and matrix products, and how many of them are of int8 numbers;
/// only for sub-IRs that have quantized tensors.
void add_multiply_adds(const Graph& graph, const Plan& plan, Json& report) {
  double all = 0.0;
  double int8 = 0.0;
  bool is_quantized = false;
  for (const Node& node : graph.nodes()) {
    is_quantized = is_quantized || is_dequantization(node.op_type);
    if (is_product(fusion_role(node.op_type))) all += node_flops(graph, node) / 2;
  }
  is_quantized =
      is_quantized || std::any_of(plan.steps.begin(), plan.steps.end(), multiplies_bytes);
  if (!is_quantized) return;
  for (const Step& step : plan.steps) {
    if (!multiplies_bytes(step)) continue;
    const Node& node = graph.nodes()[static_cast<std::size_t>(step.node)];
    if (is_product(fusion_role(node.op_type))) int8 += node_flops(graph, node) / 2;
  }
  report["macs"] = all;
  report["int8_macs"] = int8;
}

}  // namespace

std::string compile_report(const Graph& graph, const Plan& plan, const StoredPlan& stored,
                           std::string_view precision) {
  double flops = 0.0;
  for (const Node& node : graph.nodes()) flops += node_flops(graph, node);
  std::size_t weight_bytes = 0;
  for (const BufferId id : plan.constants) {
    weight_bytes += plan.buffers[index_of(id)].bytes;
  }
  std::int64_t reorders = 0;
  Json steps = Json::array();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (step.kind == KernelKind::kReorder) ++reorders;
    Json row = Json::object();
    if (step.node >= 0) row["node"] = graph.nodes()[static_cast<std::size_t>(step.node)].name;
    if (step.group >= 0 && step.kind == KernelKind::kCompute) {
      Json& nodes = row["nodes"] = Json::array();
      for (const NodeId id : plan.groups[static_cast<std::size_t>(step.group)]) {
        nodes.push_back(graph.node(id).name);
      }
    }
    row["kind"] = kind_name(step.kind);
    add_border(plan, step, row);
    add_kernel(step, stored.record.steps[i], row);
    steps.push_back(std::move(row));
  }
  Json splits = Json::array();
  for (const PlanSplit& split : plan.splits) {
    splits.push_back({{"pattern", split.pattern},
                      {"node", graph.node(split.node).name},
                      {"reason", split.reason}});
  }
  Json taps = Json::array();
  for (const TapRecord& tap : stored.record.taps) taps.push_back(tap.tensor.name);
  Json aliases = Json::object();
  for (const AliasRecord& alias : plan.aliases) {
    aliases[plan.outputs[alias.output].name] = alias.is_in_place ? "in_place" : "copied";
  }
  Json report = {{"nodes", graph.nodes().size()},
                 {"kernels", plan.steps.size()},
                 {"reorders", reorders},
                 {"flops", flops},
                 {"weight_bytes", weight_bytes},
                 {"arena_bytes", stored.record.arena_bytes},
                 {"peak_live_bytes", stored.peak_live_bytes},
                 {"precision", precision},
                 {"splits", std::move(splits)},
                 {"taps", std::move(taps)},
                 {"aliases", std::move(aliases)},
                 {"steps", std::move(steps)}};
  if (precision == "bf16") {
    report["computes_in"] = plan.computes_in_bfloat16 ? "bfloat16" : "float32";
  }
  add_multiply_adds(graph, plan, report);
  return report.dump();
}

}  // namespace npu::onednn
