// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace npu::onednn {

/// A share of the threads that OpenMP has.
constexpr int kAllThreads = 0;

/// All threads where there is enough work for them, else the calling one alone.
inline int threads_for(bool is_enough) { return is_enough ? kAllThreads : 1; }

namespace share_work {
using Call = void (*)(const void* body, std::int64_t piece, int thread);
void run(std::int64_t count, int threads, Call call, const void* body);
}  // namespace share_work

/// Calls body(piece, thread) once for each piece below `count`, on up to `threads` threads, which
/// take pieces as they come to them; `thread` is below `threads`, and of no two calls at the same
/// time. Returns when all are done. What a piece is must follow from shapes alone where it decides
/// how sums are rounded. `body` must not throw.
template <typename Body>
void share_pieces(std::int64_t count, int threads, const Body& body) {
  share_work::run(
      count, threads,
      [](const void* each, std::int64_t piece, int thread) {
        (*static_cast<const Body*>(each))(piece, thread);
      },
      &body);
}

/// Calls body(first, last) for pieces of [0, count) with up to `length` elements.
template <typename Body>
void share_range(std::int64_t count, std::int64_t length, int threads, const Body& body) {
  share_pieces((count + length - 1) / length, threads, [&](std::int64_t piece, int) {
    body(piece * length, std::min(count, (piece + 1) * length));
  });
}

}  // namespace npu::onednn
