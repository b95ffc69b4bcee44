// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Where predicted times come from, in microseconds. An implementation is deterministic and can be
/// asked for any node on any device of the target, also one that does not run it.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// One node, once everything it reads is on the device.
  virtual double node_us(const Graph& graph, NodeId node, const Device& device) const = 0;
  /// The same for several devices at once; `us` is as long as `devices`.
  virtual void node_us_on_each(const Graph& graph, NodeId node, std::span<const Device> devices,
                               std::span<double> us) const {
    for (std::size_t d = 0; d < devices.size(); ++d) us[d] = node_us(graph, node, devices[d]);
  }
  /// What every partition on the device takes on top of its nodes.
  virtual double launch_us(const Device& device) const = 0;
  /// So many bytes from one device to another; 0 if they are the same.
  virtual double transfer_us(const Target& target, std::string_view from, std::string_view to,
                             double bytes) const = 0;
  /// One tensor from one device to another, with what both do only because of that (changes of
  /// layout); 0 if they are the same.
  virtual double tensor_us(const Graph& graph, TensorId tensor, const Target& target,
                           std::string_view from, std::string_view to) const {
    return transfer_us(target, from, to, static_cast<double>(graph.tensor(tensor).bytes()));
  }
  /// Whether node_us was measured for this node on this device.
  virtual bool is_measured(const Graph& /*graph*/, NodeId /*node*/,
                           const Device& /*device*/) const {
    return false;
  }
  /// What documents say about where their times come from; null for a model that needs no input but
  /// the target.
  virtual Json provenance() const { return nullptr; }
};

/// The rates of the target, see roofline.hpp.
const CostModel& roofline_cost();

}  // namespace npu
