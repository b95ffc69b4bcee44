// SPDX-License-Identifier: Apache-2.0
// Gives backends what an earlier compilation made of a piece, by a key that has all that it depends
// on. O(bytes of the piece) for each question.
#include "compile/pieces.hpp"

namespace npu {

void Pieces::serve(CompileHooks& hooks, const Backend& backend, const std::string& fingerprint) {
  const auto key_of = [&backend, fingerprint](std::string_view piece) {
    return piece_key(backend.name(), backend.version(), fingerprint, piece);
  };
  hooks.find_piece = [this, key_of](std::string_view piece) { return find(key_of(piece)); };
  hooks.keep_piece = [this, key_of](std::string_view piece, std::string_view made) {
    keep(key_of(piece), made);
  };
}

std::int64_t Pieces::built() const {
  const std::lock_guard lock(mutex_);
  return built_;
}

std::int64_t Pieces::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

std::optional<std::string> Pieces::find(const std::string& key) {
  std::optional<std::string> piece;
  if (has_cache()) piece = cache_->find_piece(key);
  const std::lock_guard lock(mutex_);
  if (const auto made = made_.find(key); made != made_.end()) piece = made->second;
  ++(piece ? found_ : built_);
  return piece;
}

void Pieces::keep(const std::string& key, std::string_view piece) {
  if (has_cache()) return cache_->store_piece(key, piece);
  const std::lock_guard lock(mutex_);
  made_.emplace(key, piece);
}

}  // namespace npu
