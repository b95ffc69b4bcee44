// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/bind_sizes.hpp"
#include "npu/support/error.hpp"

namespace npu {

/// Checks what the catalogue knows of a template without faults: sizes in attrs stand where the
/// op's schema has an integer or a number, and results of ops with a rule (ops/result_shapes.hpp)
/// have the shapes that the operands give, for all of SizeSymbols::samples. Of ops that the
/// catalogue does not know nothing is checked.
void check_template(const Template& model, Diagnostics& diagnostics);

}  // namespace npu
