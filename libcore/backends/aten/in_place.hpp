// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "decompositions.hpp"

namespace npu::aten {

/// The op of libtorch that writes into the first operand what this one writes into a copy of it;
/// nothing if there is none. Both have the same arguments.
std::optional<std::string_view> in_place_op(std::string_view op_type);

/// The same for ops that libtorch has no such form of, written with others; null if there is none.
const Decomposition* in_place_decomposition(std::string_view op_type);
std::span<const Decomposition> in_place_decompositions();

}  // namespace npu::aten
