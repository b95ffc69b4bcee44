// SPDX-License-Identifier: Apache-2.0
#pragma once

// All passes; include a single one of these headers if it is enough.
#include "npu/passes/align.hpp"     // IWYU pragma: export
#include "npu/passes/fuse.hpp"      // IWYU pragma: export
#include "npu/passes/quantize.hpp"  // IWYU pragma: export
#include "npu/passes/tag.hpp"       // IWYU pragma: export
