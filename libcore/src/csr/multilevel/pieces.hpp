// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace npu {

inline constexpr std::size_t kPieceSize = 4096;

inline std::size_t piece_count(std::size_t items) { return (items + kPieceSize - 1) / kPieceSize; }

/// Calls job(begin, end) for pieces of kPieceSize of `items` items, on up to `threads` threads.
/// What a job throws, the lack of memory for example, is thrown once all have ended.
void in_pieces(std::size_t items, std::size_t threads,
               const std::function<void(std::size_t begin, std::size_t end)>& job);

}  // namespace npu
