// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Predicts times, in microseconds. An implementation is deterministic and can be asked for any
/// node on any device of the target, even one that does not run the node.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Time of one node whose operands are all on the device.
  virtual double node_us(const Graph& graph, NodeId node, const Device& device) const = 0;
  /// The same for several devices at once; `us` is as long as `devices`.
  virtual void node_us_on_each(const Graph& graph, NodeId node, std::span<const Device> devices,
                               std::span<double> us) const {
    for (std::size_t d = 0; d < devices.size(); ++d) us[d] = node_us(graph, node, devices[d]);
  }
  /// Overhead of each partition on the device, on top of its nodes.
  virtual double launch_us(const Device& device) const = 0;
  /// Time to copy `bytes` from one device to another; 0 if they are the same.
  virtual double transfer_us(const Target& target, std::string_view from, std::string_view to,
                             double bytes) const = 0;
  /// Time to move one tensor from one device to another, including layout conversions that the move
  /// causes on either side; 0 if they are the same.
  virtual double tensor_us(const Graph& graph, TensorId tensor, const Target& target,
                           std::string_view from, std::string_view to) const {
    return transfer_us(target, from, to, static_cast<double>(graph.tensor(tensor).bytes()));
  }
  /// Whether node_us was measured for this node on this device.
  virtual bool is_measured(const Graph& /*graph*/, NodeId /*node*/,
                           const Device& /*device*/) const {
    return false;
  }
  /// What documents record about the source of their times; null for a model that needs nothing but
  /// the target.
  virtual Json provenance() const { return nullptr; }
};

/// The roofline of the target's rates, see roofline.hpp.
const CostModel& roofline_cost();

}  // namespace npu
