// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace npu::gnn {

/// Rows of a layer's input that come from elsewhere while the layer is computed.
class LateRows {
 public:
  virtual ~LateRows() = default;
  /// By row of the tensors per node: 1 if it may come late, the same in every layer.
  virtual const std::vector<char>& is_late() const = 0;
  /// Waits until all rows are there. Any thread may call, any number of times.
  virtual void await() = 0;
  /// Throws what await() threw, if it did: no device is to blame for that. Does not wait.
  virtual void rethrow_failure() {}
};

}  // namespace npu::gnn
