// SPDX-License-Identifier: Apache-2.0
// The C library's settings for memory that is freed.
#include "heap.hpp"

#if defined(__GLIBC__) || __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace npu::cli {

void keep_freed_memory() {
#if defined(M_MMAP_THRESHOLD) && defined(M_TRIM_THRESHOLD) && defined(M_ARENA_MAX)
  // Larger blocks still come from the system alone; 32 MiB is the most that glibc takes.
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // Threads free what others allocated.
  ::mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace npu::cli
