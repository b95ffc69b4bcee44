// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "npu/passes/align.hpp"
#include "passes/align/align_problem.hpp"

namespace npu::align {

/// The aligned layout of one device.
struct AlignedDevice {
  std::string device;
  std::string layout;
  std::int64_t channel_multiple = 0;
};

/// `npu.layout` of a document.
struct AlignLayout {
  AlignOptions options;
  std::vector<AlignedDevice> devices;
  std::vector<AlignNode> nodes;
  std::vector<AlignConversion> conversions;
  std::vector<AlignRemoval> removed;
  std::vector<AlignSplit> splits;
  AlignCosts costs;
  AlignCosts greedy;
  std::optional<AlignCertificate> certificate;

  Json to_json() const;
  /// What a later run needs of an earlier one: the target, the conversions as far as they name
  /// nodes and tensors, and the groups that were split. Entries that are not as to_json writes them
  /// are left out: the section is a report, and a user may have cut it.
  static AlignLayout from_json(const Json* json);
};

AlignLayout layout_of(const AlignResult& result, const Problem& problem);

/// "'conv' (conv) is ALIGN, 'add' (graph output) is NALIGN".
std::string reason_text(const AlignConversion& conversion);

}  // namespace npu::align
