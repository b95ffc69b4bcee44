// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "npu/support/json.hpp"

namespace npu {

/// The machine that times were measured on: processor, cores, threads, and the kernels that the
/// BLAS of libtorch has for it.
Json host_fingerprint(std::int32_t threads);

/// The memory that this process may use: the machine's, or less if a
/// control group limits it; 0 if not known.
double host_memory_bytes();

}  // namespace npu
