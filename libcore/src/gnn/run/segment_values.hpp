// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "gnn/model/staged_model.hpp"
#include "gnn/run/task_graph.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::gnn {

/// What the segments of one subgraph exchange: values in host memory, whole for the subgraph.
/// Shares of one segment store at the same time, each the rows and edges that are its own.
class SegmentValues {
 public:
  /// The part of a value that a share reads. Every share that makes it has stored it.
  Tensor read(const StageTensor& tensor, const ShareTask& task) const;
  /// Keeps a share's result.
  void store(const StageTensor& tensor, const Tensor& value, const Subgraph& part,
             const ShareTask& task);
  /// Everything there is, to be given back outside of locks.
  std::map<std::string, Tensor> take();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Tensor> values_;
};

}  // namespace npu::gnn
