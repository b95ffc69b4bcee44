// SPDX-License-Identifier: Apache-2.0
// One number for what a run depends on besides graph, features and weights. Hosts can see different
// files under one name: without it, ranks of two plans would exchange rows of each other. Every
// field is added with its length, so that no two lists read alike.
#include "gnn/ranks/run_digest.hpp"

#include "gnn/ranks/option_digest.hpp"

namespace npu::gnn {
namespace {

void add_devices(const GnnPlan& plan, OptionDigest& digest) {
  for (const PlanDevice& device : plan.devices) {
    digest.add(device.name);
    digest.add(device.backend);
    digest.add(device.is_static);
  }
  for (const PlannedStages& stages : plan.choice.device_plans) {
    for (const PlannedSegment& segment : stages.segments) {
      digest.add(segment.first);
      digest.add(segment.last);
      for (const PlannedShare& share : segment.shares) {
        digest.add(share.device);
        digest.add(share.ratio);
      }
      digest.add(static_cast<std::int64_t>(segment.shares.size()));
    }
    digest.add(static_cast<std::int64_t>(stages.segments.size()));
  }
  for (const PlanCluster& cluster : plan.choice.clusters) {
    digest.add(cluster.layer);
    digest.add(cluster.device_plan);
    digest.add_all(cluster.subgraphs);
  }
}

void add_ranks(const RankPlan& plan, OptionDigest& digest) {
  digest.add(plan.sums);
  digest.add(plan.memory_limit);
  digest.add_all(plan.row_bytes);
  for (const PlannedRank& rank : plan.ranks) digest.add_all(rank.parts);
  for (const RankPair& pair : plan.pairs) {
    digest.add(pair.from);
    digest.add(pair.to);
    for (const CrossingRow& row : pair.cover) {
      digest.add(row.source);
      digest.add(2 * std::int64_t{row.target} + (row.is_sum ? 1 : 0));
    }
    digest.add(pair.rows);
  }
}

}  // namespace

std::int64_t run_digest(const GnnPlan& plan, const RunPlanOptions& options) {
  OptionDigest digest;
  digest.add(plan.files.model_hash);
  if (plan.choice.partition) digest.add(plan.choice.partition->hash);
  digest.add(plan.choice.k);
  digest.add(plan.choice.pad);
  digest.add(plan.files.graph_nodes);
  digest.add(plan.files.graph_edges);
  digest.add(plan.files.precision);
  add_devices(plan, digest);
  if (plan.choice.ranks) add_ranks(*plan.choice.ranks, digest);
  digest.add(options.precision);
  digest.add(options.target);
  for (const DeviceBackend& device : options.devices) {
    digest.add(device.device);
    digest.add(device.backend);
  }
  digest.add(options.threads);
  digest.add(options.bench);
  digest.add(static_cast<double>(options.padding));
  return digest.value();
}

}  // namespace npu::gnn
