// SPDX-License-Identifier: Apache-2.0
// What a backend may call back while it compiles, as the functions of backend.h. O(1).
#include "device/compile_hooks.hpp"

namespace npu {
namespace {

/// Passes on what a backend asks for in a compile: no exception crosses it.
std::uint32_t forward_progress(void* context, std::uint64_t done, std::uint64_t total,
                               const char* phase) {
  try {
    return static_cast<const CompileHooks*>(context)->progress(done, total, phase) ? 0 : 1;
  } catch (...) {
    return 1;
  }
}

npu_status find_piece(void* context, const void* key, std::uint64_t size, const npu_writer* piece,
                      npu_error* error) {
  try {
    const auto found = static_cast<const CompileHooks*>(context)->find_piece(
        {static_cast<const char*>(key), static_cast<std::size_t>(size)});
    if (!found) return NPU_UNSUPPORTED;
    return piece->write(piece->context, found->data(), found->size(), error);
  } catch (...) {
    return NPU_UNSUPPORTED;
  }
}

void keep_piece(void* context, const void* key, std::uint64_t key_size, const void* piece,
                std::uint64_t size) {
  try {
    static_cast<const CompileHooks*>(context)->keep_piece(
        {static_cast<const char*>(key), static_cast<std::size_t>(key_size)},
        {static_cast<const char*>(piece), static_cast<std::size_t>(size)});
  } catch (...) {
    // Nothing comes of it.
  }
}

}  // namespace

void pass_hooks(const CompileHooks& hooks, npu_compile_args& args, npu_piece_cache& pieces) {
  auto* context = const_cast<CompileHooks*>(&hooks);  // which is only called
  args.deadline_ns = hooks.deadline_ns;
  if (hooks.progress) {
    args.progress = forward_progress;
    args.progress_context = context;
  }
  if (!hooks.find_piece) return;
  pieces.context = context;
  pieces.find = find_piece;
  pieces.keep = keep_piece;
  args.pieces = &pieces;
}

}  // namespace npu
