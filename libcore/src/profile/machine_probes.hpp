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
  std::string name;                ///< for people
  std::vector<std::string> types;  ///< that the rate is for; the longer model has more of the first
  std::optional<bool> grouped;     ///< as in OpRate
  std::optional<bool> pointwise;   ///< as in OpRate
  bool by_flops = true;            ///< the rate is FLOP/s, else bytes/s
  Graph longer;
  Graph shorter;
};

/// Copies of one op in a row, in `dtype`: 3 x 3 convolutions of 128 channels. What they take in
/// float32 is the device's peak.
MachineProbe convolution_probe(const Target& target, const std::string& dtype);
/// Additions of tensors that no cache of a core holds: the device's memory bandwidth.
MachineProbe memory_probe(const Target& target);
/// Additions of 16 numbers: what a node takes besides its work.
MachineProbe node_probe(const Target& target);
/// Kinds of ops whose rates differ from those. Ops that run as an epilogue in models stand behind a
/// convolution or a linear layer here, which is taken off.
std::vector<MachineProbe> kind_probes(const Target& target);

/// `nodes` additions of 16 numbers, in turns on both devices: launches and latencies.
Graph turns_of_additions(const Target& target, const std::string& first, const std::string& second,
                         std::int32_t nodes);
/// Pointwise convolutions on one device and additions on the other, in turns, or (with an empty
/// name) only those of the other device. `bytes` of the tensor between them.
Graph turns_of_layers(const Target& target, const std::string& convolutions,
                      const std::string& additions, std::int32_t turns);
inline constexpr double kTurnBytes = 4.0 * 64 * 112 * 112;  ///< of the tensor that changes device

/// Sums over the nodes of `types` that the longer model has more of.
struct ProbeWork {
  double nodes = 0;
  double flops = 0;
  double bytes = 0;
};
ProbeWork work_of(const MachineProbe& probe);

}  // namespace npu
