// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gnn/model/staged_model.hpp"
#include "npu/support/json.hpp"

namespace npu::gnn {

/// The file of a folder of units that lists them.
inline constexpr std::string_view kBlockIndexFile = "index.json";

/// A backend that compiled programs for a device.
struct IndexedBackend {
  std::string name;
  std::string version;
  std::string fingerprint;
  bool operator==(const IndexedBackend&) const = default;
};

/// A device of the plan, with the backends of its units.
struct IndexedDevice {
  std::string name;
  std::vector<IndexedBackend> backends;
  bool operator==(const IndexedDevice&) const = default;
};

/// What a unit computes: stages of a layer on a device, compiled for one shape.
struct BlockKey {
  std::int32_t device = 0;  ///< index into the plan's devices
  std::int32_t layer = 1;
  std::int32_t first = 1;
  std::int32_t last = 1;
  std::int64_t owned = 1;
  std::int64_t local = 1;
  std::int64_t edges = 0;
  BlockShape shape() const { return {owned, local, edges}; }
  bool operator==(const BlockKey&) const = default;
  bool operator<(const BlockKey& other) const {
    const auto fields = [](const BlockKey& key) {
      return std::tie(key.device, key.layer, key.first, key.last, key.owned, key.local, key.edges);
    };
    return fields(*this) < fields(other);
  }
};

/// A program of a unit, whose blob is a partition of its bundle.
struct IndexedProgram {
  std::string key;     ///< gnn_program_key
  std::string digest;  ///< of the blob, as 16 hexadecimal digits
  bool operator==(const IndexedProgram&) const = default;
};

struct IndexedBlock {
  BlockKey key;
  std::string backend;                   ///< one of its device's
  bool is_narrow = false;                ///< features of bfloat16
  std::vector<IndexedProgram> programs;  ///< in order
  std::vector<std::int64_t> subgraphs;   ///< that use it, ascending
  bool operator==(const IndexedBlock&) const = default;
};

/// The index of a folder of units; npu-gnn(5) describes its keys.
struct BlockIndex {
  std::string producer;
  std::string plan;   ///< blocks_plan_digest
  std::string model;  ///< StagedModel::hash
  std::int64_t graph_nodes = 0;
  std::int64_t graph_edges = 0;
  std::string partition;               ///< partition_hash
  std::string weights;                 ///< weights_digest
  std::string precision;               ///< "f32" or "bf16"
  std::vector<IndexedDevice> devices;  ///< those of the plan, in its order
  std::vector<IndexedBlock> units;     ///< by key, ascending
  bool operator==(const BlockIndex&) const = default;
};

/// The name of the files of a unit without what follows the last dot. Letters, digits, '_' and '-'
/// of the device's name stay; a name with others is told apart by the device's number.
std::string block_name(const BlockKey& key, const std::string& device);

Json to_json(const BlockIndex& index);
/// Throws Error kParse with the place of the first fault: names, keys and numbers of an index that
/// is read fit each other.
BlockIndex block_index_from_json(const Json& document, const std::string& file);

}  // namespace npu::gnn
