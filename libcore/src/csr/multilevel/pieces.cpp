// SPDX-License-Identifier: Apache-2.0
// Loops over nodes on several threads.
#include "csr/multilevel/pieces.hpp"

#include <algorithm>
#include <exception>
#include <mutex>

#include "support/thread_pool.hpp"

namespace npu {

void in_pieces(std::size_t items, std::size_t threads,
               const std::function<void(std::size_t begin, std::size_t end)>& job) {
  std::mutex mutex;
  std::exception_ptr fault;
  run_pieces(piece_count(items), threads, [&](std::size_t piece) {
    try {
      job(piece * kPieceSize, std::min(piece * kPieceSize + kPieceSize, items));
    } catch (...) {
      const std::lock_guard lock(mutex);
      fault = std::current_exception();
    }
  });
  if (fault) std::rethrow_exception(fault);
}

}  // namespace npu
