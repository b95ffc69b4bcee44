// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/device_instance.hpp"
#include "npu/backend.h"

namespace npu {

/// Passes hooks to a compile as `args` and `pieces`, a sized struct, hold them; all three stay
/// until it is done.
void pass_hooks(const CompileHooks& hooks, npu_compile_args& args, npu_piece_cache& pieces);

}  // namespace npu
