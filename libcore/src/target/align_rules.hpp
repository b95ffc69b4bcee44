// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "ops/align_class.hpp"
#include "tensor/aligned_layout.hpp"

namespace npu {

/// The time of a conversion: latency + (bytes read + bytes written) / bandwidth.
struct ConversionRate {
  double latency_us = 0;
  double bandwidth = 0;  ///< bytes/s; 0: no time per byte
};

/// The `align` section of a device: the layouts that its ops want. The defaults are the rules of
/// the TX8 compiler's LayoutAlignToNPU pass.
struct AlignRules {
  AlignedLayout layout;
  std::int64_t channel_multiple = 64;        ///< of the slice rule
  std::vector<std::int64_t> ranks = {2, 4};  ///< of results that may be aligned
  std::vector<DType> dtypes;                 ///< with an aligned form; empty: all that can have one
  std::int64_t min_channels = 0;             ///< tensors with fewer are read in either layout
  std::vector<AlignClass> align_only_classes = {
      AlignClass::kGemm,      AlignClass::kConv,        AlignClass::kPool,    AlignClass::kReduce,
      AlignClass::kTranspose, AlignClass::kConcatenate, AlignClass::kScatter, AlignClass::kPad};
  std::vector<std::string> align_only_ops;  ///< op types
  std::vector<AlignClass> nalign_only_classes;
  std::vector<std::string> nalign_only_ops;
  std::optional<std::int64_t> slice_axis = 1;  ///< of the slice rule; nothing: slices take both
  ConversionRate to_align, to_nalign;
};

/// The rules of a device: the defaults, overridden by its `align` section; conversions run at its
/// memory bandwidth unless that says otherwise. The section must have passed check_align_rules.
AlignRules align_rules(const Device& device);

/// Adds an error for every fault of an `align` section, located below `pointer`.
void check_align_rules(const Json& align, const std::string& file, const std::string& pointer,
                       Diagnostics& diagnostics);

}  // namespace npu
