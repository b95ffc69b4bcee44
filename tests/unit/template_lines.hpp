// SPDX-License-Identifier: Apache-2.0
// Small templates for tests, one line per node.
#pragma once

#include <string>
#include <string_view>

#include "ir/bind_sizes.hpp"

namespace npu::test {

/// Lines as GraphBuilder::lines has them, with sizes in the shapes:
///
///     size S 1..64; size T 2..8 multiple 2
///     input x [1,S,8]; input ids [1,S] int64
///     weight w [8,8]
///     y = linear(x, w) [1,S,8] {"attr": 1}
///     output y
///
/// The op of a name with no dot is that of ATen, its default overload. Results are float32 unless a
/// dtype follows the shape.
Json template_document(std::string_view lines);
Template template_of(std::string_view lines);

}  // namespace npu::test
