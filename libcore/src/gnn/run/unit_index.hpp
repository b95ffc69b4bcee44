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
inline constexpr std::string_view kUnitIndexFile = "index.json";

/// A backend that compiled programs for a device.
struct UnitBackend {
  std::string name;
  std::string version;
  std::string fingerprint;
  bool operator==(const UnitBackend&) const = default;
};

/// A device of the plan, with the backends of its units.
struct UnitDevice {
  std::string name;
  std::vector<UnitBackend> backends;
  bool operator==(const UnitDevice&) const = default;
};

/// What a unit computes: stages of a layer on a device, compiled for one shape.
struct UnitKey {
  std::int32_t device = 0;  ///< index into the plan's devices
  std::int32_t layer = 1;
  std::int32_t first = 1;
  std::int32_t last = 1;
  std::int64_t owned = 1;
  std::int64_t local = 1;
  std::int64_t edges = 0;
  bool operator==(const UnitKey&) const = default;
  bool operator<(const UnitKey& other) const {
    const auto fields = [](const UnitKey& key) {
      return std::tie(key.device, key.layer, key.first, key.last, key.owned, key.local, key.edges);
    };
    return fields(*this) < fields(other);
  }
};

/// A program of a unit, whose blob is a partition of its bundle.
struct UnitProgram {
  std::string key;     ///< gnn_program_key
  std::string digest;  ///< of the blob, as 16 hexadecimal digits
  bool operator==(const UnitProgram&) const = default;
};

struct UnitEntry {
  UnitKey key;
  std::string backend;                  ///< one of its device's
  bool is_narrow = false;               ///< features of bfloat16
  std::vector<UnitProgram> programs;    ///< in order
  std::vector<std::int64_t> subgraphs;  ///< that use it, ascending
  bool operator==(const UnitEntry&) const = default;
};

/// The index of a folder of units; npu-gnn(5) describes its keys.
struct UnitIndex {
  std::string producer;
  std::string plan;   ///< units_plan_digest
  std::string model;  ///< StagedModel::hash
  std::int64_t graph_nodes = 0;
  std::int64_t graph_edges = 0;
  std::string partition;            ///< partition_hash
  std::string weights;              ///< weights_digest
  std::string precision;            ///< "f32" or "bf16"
  std::vector<UnitDevice> devices;  ///< those of the plan, in its order
  std::vector<UnitEntry> units;     ///< by key, ascending
  bool operator==(const UnitIndex&) const = default;
};

/// The name of the files of a unit without what follows the last dot. Letters, digits, '_' and '-'
/// of the device's name stay; a name with others is told apart by the device's number.
std::string unit_name(const UnitKey& key, const std::string& device);

Json to_json(const UnitIndex& index);
/// Throws Error kParse with the place of the first fault: names, keys and numbers of an index that
/// is read fit each other.
UnitIndex unit_index_from_json(const Json& document, const std::string& file);

}  // namespace npu::gnn
