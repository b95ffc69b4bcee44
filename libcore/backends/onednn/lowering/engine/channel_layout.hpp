// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "kernels/norm/scale_shift.hpp"
#include "program/layout.hpp"

namespace npu::onednn {

/// The memory of a dense layout as channels (dimension 1) and the rest; nothing if it is laid out
/// in another way. Padded channels count.
std::optional<ScaleShift> channel_layout(const Layout& layout);

}  // namespace npu::onednn
