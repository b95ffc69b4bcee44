// SPDX-License-Identifier: Apache-2.0
// Units that were compiled before: whether they fit a plan, and their programs.
//
// A program depends on the sizes of parts alone, but a plan fits only if it decides the same for
// the same parts: a folder is of one plan. Weights may be packed into programs, so they have to be
// the same. What the index cannot know is caught by the key of each program, a digest of all that
// it is made of. O(index), and the bytes of a unit when it is asked for.
#include "gnn/run/block_store.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "device/device_instance.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "support/digest.hpp"

namespace npu::gnn {
namespace {

constexpr const char* kAgain = ": compile the plan again with npu-compile";

void add_device_plan(Digest& digest, const PlannedStages& stages) {
  digest.add(static_cast<std::uint64_t>(stages.layer));
  digest.add(std::uint64_t{stages.segments.size()});
  for (const PlannedSegment& segment : stages.segments) {
    digest.add(static_cast<std::uint64_t>(segment.first));
    digest.add(static_cast<std::uint64_t>(segment.last));
    digest.add(std::uint64_t{segment.shares.size()});
    for (const PlannedShare& share : segment.shares) {
      digest.add(share.device);
      digest.add(&share.ratio, sizeof share.ratio);
    }
  }
}

std::string of_device(const std::string& name) { return " of device '" + name + "'"; }

}  // namespace

std::string blocks_plan_digest(const GnnPlan& plan) {
  Digest digest;
  const auto add = [&](std::int64_t number) { digest.add(static_cast<std::uint64_t>(number)); };
  for (const PlanDevice& device : plan.devices) {
    digest.add(device.name);
    add(device.is_static ? 1 : 0);
  }
  add(plan.choice.k);
  add(plan.choice.pad);
  for (const PlanSubgraph& part : plan.choice.subgraphs) {
    add(part.size.id);
    add(part.size.n);
    add(part.size.m);
    add(part.size.halo);
  }
  for (const PlannedStages& stages : plan.choice.device_plans) add_device_plan(digest, stages);
  for (const PlanCluster& cluster : plan.choice.clusters) {
    add(cluster.layer);
    add(cluster.device_plan);
    add(static_cast<std::int64_t>(cluster.subgraphs.size()));
    for (const std::int64_t part : cluster.subgraphs) add(part);
  }
  if (plan.choice.ranks) {
    add(plan.choice.ranks->sums ? 1 : 0);
    for (const PlannedRank& rank : plan.choice.ranks->ranks) {
      add(static_cast<std::int64_t>(rank.parts.size()));
      for (const std::int32_t part : rank.parts) add(part);
    }
  }
  return digest.hex();
}

std::string weights_digest(const std::map<std::string, Tensor>& weights) {
  Digest digest;
  for (const auto& [name, tensor] : weights) {
    digest.add(name);
    digest.add(static_cast<std::uint64_t>(tensor.dtype()));
    digest.add(std::uint64_t{tensor.shape().size()});
    for (const std::int64_t d : tensor.shape()) digest.add(static_cast<std::uint64_t>(d));
    digest.add(tensor.data(), tensor.bytes());
  }
  return digest.hex();
}

BlockIndex index_head(const GnnPlan& plan, const std::string& precision) {
  BlockIndex head;
  head.plan = blocks_plan_digest(plan);
  head.model = plan.files.model_hash;
  head.graph_nodes = plan.files.graph_nodes;
  head.graph_edges = plan.files.graph_edges;
  head.partition = plan.choice.partition ? plan.choice.partition->hash : std::string();
  head.precision = precision;
  for (const PlanDevice& device : plan.devices) head.devices.push_back({device.name, {}});
  return head;
}

std::vector<IndexedBackend> block_backends(const GnnDevice& device) {
  std::vector<IndexedBackend> backends;
  for (const auto& instance : {device.instance, device.products}) {
    if (instance == nullptr) continue;
    const Backend& backend = instance->backend();
    backends.push_back({backend.name(), backend.version(), instance->facts().fingerprint});
  }
  return backends;
}

BlockStore::BlockStore(std::string folder)
    : folder_(std::move(folder)),
      file_((std::filesystem::path(folder_) / kBlockIndexFile).string()) {
  index_ = block_index_from_json(parse_json(read_file(file_), file_), file_);
}

void BlockStore::refuse(ErrorCode code, const std::string& pointer, const std::string& text) const {
  throw Error(code, text, {.file = file_, .pointer = pointer});
}

void BlockStore::check_plan(const BlockIndex& expected) const {
  const auto compare = [&](const char* key, const auto& stated, const auto& here,
                           const std::string& text) {
    if (stated != here) refuse(ErrorCode::kInvalidGraph, key, text + kAgain);
  };
  const std::string other = "the units were compiled for another ";
  compare("/model_hash", index_.model, expected.model, other + "model");
  compare("/graph_nodes", index_.graph_nodes, expected.graph_nodes, other + "graph");
  compare("/graph_edges", index_.graph_edges, expected.graph_edges, other + "graph");
  compare("/partition", index_.partition, expected.partition, other + "partition of the graph");
  compare("/plan", index_.plan, expected.plan, other + "plan");
  const bool same_devices =
      std::equal(index_.devices.begin(), index_.devices.end(), expected.devices.begin(),
                 expected.devices.end(),
                 [](const IndexedDevice& a, const IndexedDevice& b) { return a.name == b.name; });
  compare("/devices", same_devices, true, other + "plan");
  compare("/precision", index_.precision, expected.precision,
          "the units were compiled for features of " + index_.precision + ", the plan runs in " +
              expected.precision);
  compare("/weights", index_.weights, expected.weights,
          "the units were compiled with other weights");
}

void BlockStore::check_backends(const std::vector<GnnDevice>& devices) const {
  std::vector<bool> in_use(index_.devices.size(), false);
  for (const IndexedBlock& unit : index_.units) in_use[index_of(unit.key.device)] = true;
  for (std::size_t d = 0; d < index_.devices.size(); ++d) {
    const IndexedDevice& stated = index_.devices[d];
    const std::string pointer = "/devices/" + std::to_string(d);
    const auto device = std::find_if(devices.begin(), devices.end(), [&](const GnnDevice& other) {
      return other.name == stated.name;
    });
    if (!in_use[d] || device == devices.end() || device->instance == nullptr) continue;
    const std::vector<IndexedBackend> here = block_backends(*device);
    for (const IndexedBackend& backend : stated.backends) {
      const auto same = std::find_if(here.begin(), here.end(), [&](const IndexedBackend& other) {
        return other.name == backend.name;
      });
      if (same == here.end()) {
        refuse(ErrorCode::kUnsupported, pointer,
               "the units" + of_device(stated.name) + " were compiled by backend '" + backend.name +
                   "', here it runs on '" + here.front().name + "'" + kAgain);
      }
      if (*same == backend) continue;
      refuse(ErrorCode::kUnsupported, pointer,
             "the units" + of_device(stated.name) +
                 " were compiled for another machine or another version of backend '" +
                 backend.name + "' ('" + backend.version + "', '" + backend.fingerprint +
                 "'; here it is '" + same->version + "', '" + same->fingerprint + "')" + kAgain);
    }
  }
}

std::optional<CompiledBlock> BlockStore::find(const BlockKey& key, const GnnDevice& device) const {
  const auto entry = std::lower_bound(
      index_.units.begin(), index_.units.end(), key,
      [](const IndexedBlock& unit, const BlockKey& wanted) { return unit.key < wanted; });
  if (entry == index_.units.end() || !(entry->key == key)) return std::nullopt;
  CompiledBlock unit;
  unit.on_products =
      device.products != nullptr && device.products->backend().name() == entry->backend;
  unit.is_narrow = entry->is_narrow;
  const std::filesystem::path name = block_name(key, device.name) + ".npub";
  unit.file = (std::filesystem::path(folder_) / name).string();
  if (entry->programs.empty()) return unit;
  const auto bundle = Bundle::open(unit.file);
  const std::vector<BundlePartition>& partitions = bundle->entries().front().partitions;
  if (partitions.size() != entry->programs.size()) {
    throw Error(ErrorCode::kParse,
                "holds " + std::to_string(partitions.size()) + " programs, the index lists " +
                    std::to_string(entry->programs.size()) + kAgain,
                {.file = unit.file});
  }
  const DeviceInstance& instance = unit.on_products ? *device.products : *device.instance;
  for (std::size_t i = 0; i < entry->programs.size(); ++i) {
    const std::size_t section = partitions[i].section;
    StoredProgram& program = unit.programs.emplace_back();
    program.key = entry->programs[i].key;
    program.blob = {bundle->section(section), bundle->sections()[section].size};
    if (hex_text(bundle->sections()[section].digest) != entry->programs[i].digest) {
      throw Error(ErrorCode::kParse,
                  "program " + std::to_string(i) + " is not the one that the index lists" + kAgain,
                  {.file = unit.file});
    }
    const BlobVerdict verdict = instance.check_blob(program.blob);
    if (verdict.fit != BlobFit::kOther) continue;
    throw Error(ErrorCode::kUnsupported,
                "program " + std::to_string(i) + " does not fit device '" + device.name +
                    "': " + verdict.reason + kAgain,
                {.file = unit.file});
  }
  return unit;
}

void BlockStore::refuse_missing(const BlockKey& key, const std::string& device) const {
  refuse(ErrorCode::kInvalidGraph, "/units",
         "there is no unit " + block_name(key, device) + kAgain);
}

}  // namespace npu::gnn
