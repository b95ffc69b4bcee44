// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "npu/tensor/dtype.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// How channels are grouped; npu-ir(5) specifies the bytes.
enum class LayoutFamily : std::uint8_t {
  kTx8,           ///< channels in blocks of 64 (128 for one-byte elements) with a padded tail
  kBlocked,       ///< channels in blocks of `block`, the last one padded: nChw16c
  kChannelsLast,  ///< channels innermost, without padding
};

/// "tx8", "blocked", "channels_last".
std::string_view layout_family_name(LayoutFamily family) noexcept;
std::optional<LayoutFamily> parse_layout_family(std::string_view name) noexcept;

/// A channel-aligned layout of tensors [N, C, spatial...]: dimension 0 is the batch and dimension 1
/// the channels; a tensor of rank 1 has only channels, a scalar just one.
struct AlignedLayout {
  LayoutFamily family = LayoutFamily::kTx8;
  std::int64_t block = 64;  ///< kBlocked: channels of a block, at least 1

  bool operator==(const AlignedLayout&) const = default;
};

/// "tx8", "blocked16", "channels_last": its name in documents.
std::string aligned_layout_name(const AlignedLayout& layout);

/// True for elements of 1, 2 or 4 bytes that are not complex; others have no aligned form.
bool has_aligned_form(DType dtype) noexcept;

/// Size of a tensor in the layout, padding included; the largest integer on overflow.
std::int64_t aligned_bytes(const AlignedLayout& layout, DType dtype, const Shape& shape) noexcept;

}  // namespace npu
