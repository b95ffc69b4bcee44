// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "transport/partitioner_abi.h"
#include "transport/transport.hpp"

namespace npu {

/// A shared object that cuts a graph of which every process has a share.
class SharePartitioner {
 public:
  /// Loads it from beside the transports. Throws Error kUnsupported if there is none that can cut
  /// graphs in this process.
  explicit SharePartitioner(const std::string& name);
  /// Over a table of functions, which has to outlive the object.
  explicit SharePartitioner(const npu_partitioner& api) : api_(&api) {}

  /// The part of each node of the own share; collective. Throws what do_together throws, Error
  /// kFailed with what the partitioner says.
  std::vector<std::int32_t> cut(const Transport& processes, const npu_graph_share& share,
                                std::int32_t parts, double imbalance, std::uint64_t seed) const;

 private:
  const npu_partitioner* api_;
};

}  // namespace npu
