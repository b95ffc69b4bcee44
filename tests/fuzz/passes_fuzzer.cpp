// SPDX-License-Identifier: Apache-2.0
// A document's way through npu-tag, npu-fuse and npu-partition: every accepted input gives a plan
// that survives writing, reading and the plan's own checks, with every strategy. Plans in the input
// are checked as well.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/partition/partition_graph.hpp"
#include "npu/passes/align.hpp"
#include "npu/passes/fuse.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "partition/placement/certificate.hpp"
#include "partition/report/report.hpp"

using npu::fuzz::require;

namespace {

void check_plan_of_input(const npu::Graph& graph) {
  npu::Diagnostics diagnostics;
  const npu::PartitionPlan plan = npu::read_partition_plan(graph, diagnostics);
  if (diagnostics.has_errors()) return;
  for (const npu::DotLevel level :
       {npu::DotLevel::kNode, npu::DotLevel::kGroup, npu::DotLevel::kPartition}) {
    npu::plan_to_dot(graph, plan, level);
  }
  try {
    npu::plan_metrics(graph, plan, npu::graph_target(graph));
  } catch (const npu::Error&) {  // no target, or one without the plan's devices
  }
}

npu::Json without_explanation(const std::string& text) {
  npu::Json document = npu::parse_json(text, "aligned.json");
  document["npu"].erase("layout");
  return document;
}

// Aligned documents are valid, hold together, keep their plan, and are left alone by a second run.
void check_alignment(const npu::Graph& original, bool partitioned) {
  for (const char* algorithm : {"greedy", "optimal"}) {
    npu::Graph graph = original;
    npu::Diagnostics diagnostics;
    const npu::AlignResult result = npu::align_layout(graph, {.algorithm = algorithm}, diagnostics);
    require(!diagnostics.has_errors(), "alignment only warns");
    require(result.costs.conversions <= result.greedy.conversions, "greedy is never better");
    npu::format_align_report(result);
    npu::format_align_explanation(result);
    npu::alignment_to_dot(graph, result);
    const std::string text = npu::write_graph(graph);
    npu::Graph again = npu::read_graph(text, "aligned.json", diagnostics);
    require(!diagnostics.has_errors(), "an aligned document is valid");
    npu::verify_alignment(again, diagnostics);
    require(!diagnostics.has_errors(), "an aligned document holds together");
    if (partitioned) npu::read_partition_plan(again, diagnostics);
    require(!diagnostics.has_errors(), "a plan survives alignment");
    npu::align_layout(again, {.algorithm = algorithm}, diagnostics);
    // Splitting a group whose ops disagree changes what the second run explains, not what it does.
    require(without_explanation(npu::write_graph(again)) == without_explanation(text),
            "a second run changes nothing");
  }
}

void check_partitions(const npu::Graph& tagged, const npu::PartitionOptions& options) {
  npu::Graph graph = tagged;
  npu::Diagnostics diagnostics;
  npu::PartitionResult result;
  try {
    result = npu::partition_graph(graph, options, diagnostics);
  } catch (const npu::Error& error) {
    // Two parts of equal work need not exist.
    require(
        options.strategy == npu::Strategy::kMetis && error.code() == npu::ErrorCode::kInfeasible,
        "what is tagged can be partitioned");
    return;
  }
  npu::format_partition_report(graph, result);
  npu::plan_to_dot(graph, result.plan, npu::DotLevel::kPartition, result.times);
  require(result.metrics.transfer_bytes >= 0 && result.metrics.copied_bytes >= 0,
          "byte counts fit");
  for (const npu::Json& partition : graph.npu_member("partition")->at("partitions")) {
    require(partition.at("flops") >= 0 && partition.at("bytes") >= 0, "work counts fit");
  }
  const std::string text = npu::write_graph(graph);
  const npu::Graph again = npu::read_graph(text, "partitioned.json", diagnostics);
  require(!diagnostics.has_errors(), "a partitioned document is valid");
  const npu::PartitionPlan plan = npu::read_partition_plan(again, diagnostics);
  require(!diagnostics.has_errors(), "a plan holds together");
  require(plan.partitions.size() == result.plan.partitions.size() &&
              plan.steps.size() == result.plan.steps.size(),
          "a plan is read as it was written");
  if (options.strategy == npu::Strategy::kMinCut) {
    npu::check_certificate(again, npu::roofline_cost(), diagnostics);
    require(!diagnostics.has_errors(), "a certificate proves what it says");
  }
  check_alignment(again, true);
}

// Groups of every choice of patterns are valid, survive writing and reading, and can be
// partitioned.
void check_groups(const npu::Graph& tagged) {
  for (const char* patterns : {"default", "all", "chain"}) {
    npu::Graph graph = tagged;
    npu::Diagnostics diagnostics;
    npu::fuse_ops(graph, {.patterns = {patterns}}, diagnostics);
    require(!npu::fuse_ops(graph, {.patterns = {patterns}}, diagnostics), "fusing is idempotent");
    const npu::FusionReport report = npu::fusion_report(graph);
    require(report.kernels <= report.groups && report.groups <= report.nodes, "groups only merge");
    npu::format_fusion_report(report);
    const npu::Graph again = npu::read_graph(npu::write_graph(graph), "fused.json", diagnostics);
    require(!diagnostics.has_errors(), "a fused document is valid");
    for (const npu::Strategy strategy : {npu::Strategy::kConvex, npu::Strategy::kBlocks}) {
      check_partitions(again, {.strategy = strategy, .depth = 2});
    }
  }
}

void check_tags(const npu::Graph& untagged, const npu::Target& target,
                const npu::TagOptions& options) {
  npu::Graph graph = untagged;
  npu::Diagnostics diagnostics;
  npu::tag_ops(graph, target, options, diagnostics);
  if (diagnostics.has_errors()) return;
  npu::format_tag_report(npu::tag_report(graph, target));
  check_alignment(graph, false);
  check_groups(graph);
  for (const npu::StrategyInfo& strategy : npu::partition_strategies()) {
    for (const std::int64_t min_nodes : {1, 3}) {
      check_partitions(graph, {.strategy = strategy.strategy, .min_nodes = min_nodes});
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const npu::Target host = npu::load_target("host");
  static const npu::Target kpu = npu::load_target("kpu");
  static const npu::Target apple = npu::load_target("pytorch-apple");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::Graph graph;
  try {
    npu::Diagnostics diagnostics;
    graph = npu::read_graph(text, "fuzz.json", diagnostics);
    if (diagnostics.has_errors()) return 0;
  } catch (const npu::Error&) {
    return 0;
  }
  // From here on an Error is a find: tagging collects faults, and what it accepts can be
  // partitioned.
  if (graph.npu_member("partition") != nullptr) check_plan_of_input(graph);
  check_tags(graph, host, {});
  check_tags(graph, host, {.force = {{"cpu", "*[aeu]"}}, .keep_tags = true});
  check_tags(graph, apple, {});
  check_tags(graph, kpu, {});
  return 0;
}
