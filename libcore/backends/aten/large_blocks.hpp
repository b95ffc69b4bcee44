// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu::aten {

/// Has libtorch take large blocks of host memory on huge pages and keep some that were freed: a
/// fresh block of 91 MB costs 22,000 page faults otherwise, more time than adding two of them. Any
/// number of calls; the first one counts.
void keep_large_blocks();

}  // namespace npu::aten
