// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "layout.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::onednn {

/// result = x * scale[channel] + shift[channel], with an optional ReLU that keeps NaN, on memory
/// [outer, groups, spatial, lanes] whose channels are groups * lanes: row-major planes have one
/// lane, channels last one group, blocked layouts 8 or 16 lanes.
struct ChannelAffine {
  DType type = DType::kFloat32;
  std::int64_t outer = 1;
  std::int64_t groups = 1;
  std::int64_t spatial = 1;
  std::int64_t lanes = 1;
  bool has_shift = false;
  bool relu = false;
  bool scale_by_outer = false;         ///< scale has a row of channels for every outer index
  DType scale_type = DType::kFloat32;  ///< of scale; shift is float32

  std::int64_t channels() const noexcept { return groups * lanes; }
  void run(const std::byte* source, const std::byte* scale, const std::byte* shift,
           std::byte* target) const;
};

/// The memory of a dense layout as channels (dimension 1) and the rest; nothing if it is laid out
/// in another way. Padded channels count.
std::optional<ChannelAffine> channel_space(const Layout& layout);

}  // namespace npu::onednn
