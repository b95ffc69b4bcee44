// SPDX-License-Identifier: Apache-2.0
// Settings of the C library's allocator.
#include "memory.hpp"

#include <cstdlib>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace npu::cli {

void keep_freed_memory() {
#ifdef __GLIBC__
  // 32 MiB is the largest threshold that glibc takes; larger blocks are mapped and unmapped.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // Workers free what other ones allocated.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace npu::cli
