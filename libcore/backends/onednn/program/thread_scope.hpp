// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <omp.h>

namespace npu::onednn {

/// OpenMP's number of threads for the calling thread while it lives; 0 leaves it alone.
class ThreadScope {
 public:
  explicit ThreadScope(int threads) : before_(threads == 0 ? 0 : omp_get_max_threads()) {
    if (before_ != threads) omp_set_num_threads(threads);
  }
  ~ThreadScope() {
    if (before_ != 0) omp_set_num_threads(before_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int before_;
};

}  // namespace npu::onednn
