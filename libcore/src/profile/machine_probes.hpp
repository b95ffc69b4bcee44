// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/target/target.hpp"

namespace npu {

/// Two models of which the longer one has more nodes of some types, and otherwise the same work.
struct MachineProbe {
  std::string name;      ///< for people
  OpRate where;          ///< what shares the rate; the longer model has more of the first type
  bool by_flops = true;  ///< the rate is FLOP/s, else bytes/s
  Graph longer;
  Graph shorter;
};

/// A chain of 3 x 3 convolutions of 128 channels, in `dtype`. Their rate in
/// float32 is taken as the device's peak.
MachineProbe convolution_probe(const Target& target, DType dtype);
/// Linear layers of many rows in `dtype`, of which no kernel multiplies less than the definition.
MachineProbe product_probe(const Target& target, DType dtype);
/// Additions of tensors that exceed a core's caches: the device's memory bandwidth.
MachineProbe memory_probe(const Target& target);
/// Additions of 16 numbers: the overhead of a node.
MachineProbe node_probe(const Target& target);
/// Kinds of ops whose rates differ from those. Ops that run in epilogues of models follow a
/// convolution or a linear layer here, whose time is subtracted.
std::vector<MachineProbe> kind_probes(const Target& target);

/// `nodes` additions of 16 numbers, alternating between both devices: launches and latencies.
Graph turns_of_additions(const Target& target, const std::string& first, const std::string& second,
                         std::int32_t nodes);
/// Pointwise convolutions on one device alternating with additions on the other, or (with an empty
/// name) only those of the other device. The tensor between them has `bytes`.
Graph turns_of_layers(const Target& target, const std::string& convolutions,
                      const std::string& additions, std::int32_t turns);
inline constexpr double kTurnBytes = 4.0 * 64 * 112 * 112;  ///< of the tensor that changes device

/// Sums over the additional nodes of `types` in the longer model.
struct ProbeWork {
  double nodes = 0;
  double flops = 0;
  double bytes = 0;
};
ProbeWork work_of(const MachineProbe& probe);

}  // namespace npu
