// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gnn/block/gnn_block.hpp"
#include "gnn/block/gnn_programs.hpp"
#include "gnn/plan/document/plan_document.hpp"
#include "gnn/run/block_index.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// Digest of what the programs of a plan depend on in it: devices, parts, device plans, clusters
/// and ranks, but no times. O(size of the plan).
std::string blocks_plan_digest(const GnnPlan& plan);

/// Digest of weights by state-dict key. O(bytes).
std::string weights_digest(const std::map<std::string, Tensor>& weights);

/// What an index says of a plan, less the weights, the backends and the units.
BlockIndex index_head(const GnnPlan& plan, const std::string& precision);

/// The backends of a device that is open: its own and that of its products.
std::vector<IndexedBackend> block_backends(const GnnDevice& device);

/// A folder of units that npu-compile has written.
class BlockStore {
 public:
  /// Reads the index. Throws Error kIo and kParse.
  explicit BlockStore(std::string folder);

  /// Throws Error kInvalidGraph, with the first thing that differs, if the units are not those of a
  /// plan: of its index_head with the weights.
  void check_plan(const BlockIndex& expected) const;
  /// Throws Error kUnsupported if the units were compiled for other backends than the devices have.
  void check_backends(const std::vector<GnnDevice>& devices) const;

  /// The programs of a unit for a device, mapped and free of damage; nothing if there is no such
  /// unit. Throws Error for a file that is missing, damaged or not that of the index, and
  /// kUnsupported if the device does not take a program.
  std::optional<CompiledBlock> find(const BlockKey& key, const GnnDevice& device) const;
  /// Throws Error kInvalidGraph: there is none.
  [[noreturn]] void refuse_missing(const BlockKey& key, const std::string& device) const;

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& pointer,
                           const std::string& text) const;

  std::string folder_;
  std::string file_;  // the index
  BlockIndex index_;
};

}  // namespace npu::gnn
