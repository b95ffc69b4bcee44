// SPDX-License-Identifier: Apache-2.0
#pragma once

// All passes; include one of these alone where one will do.
#include "npu/passes/align.hpp"  // IWYU pragma: export
#include "npu/passes/fuse.hpp"   // IWYU pragma: export
#include "npu/passes/tag.hpp"    // IWYU pragma: export
