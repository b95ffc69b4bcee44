// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace npu::aten {

/// Makes libtorch allocate large blocks of host memory on huge pages and keep some freed ones:
/// otherwise a fresh block of 91 MB costs 22,000 page faults, more time than adding two of them.
/// Only the first call has an effect.
void keep_large_blocks();

}  // namespace npu::aten
