// SPDX-License-Identifier: Apache-2.0
// Settings of the C library's allocator for freed memory.
#include "heap.hpp"

#if defined(__GLIBC__) || __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace npu::cli {

void keep_freed_memory() {
#if defined(M_MMAP_THRESHOLD) && defined(M_TRIM_THRESHOLD) && defined(M_ARENA_MAX)
  // Larger blocks still come straight from the system; 32 MiB is the most that glibc accepts.
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  // Threads free memory that others allocated.
  ::mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace npu::cli
