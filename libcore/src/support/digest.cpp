// SPDX-License-Identifier: Apache-2.0
// The only file that includes xxHash. Its code is compiled in, so that users of the static library
// need no further library. Runs at memory speed, O(bytes).
#include "support/digest.hpp"

#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace npu {

std::uint64_t xxh3_64(const void* data, std::size_t size) noexcept {
  return XXH3_64bits(data, size);
}

namespace {

struct FreeState {
  void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
};

std::unique_ptr<XXH3_state_t, FreeState> make_state() {
  std::unique_ptr<XXH3_state_t, FreeState> state(XXH3_createState());
  if (state == nullptr) throw std::bad_alloc();
  return state;
}

}  // namespace

std::uint64_t xxh3_64(const std::vector<std::string_view>& pieces) {
  const auto state = make_state();
  XXH3_64bits_reset(state.get());
  for (const std::string_view piece : pieces) {
    XXH3_64bits_update(state.get(), piece.data(), piece.size());
  }
  return XXH3_64bits_digest(state.get());
}

std::string hex_text(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = kDigits[(value >> (4 * i)) & 15];
  return text;
}

struct Digest::State {
  std::unique_ptr<XXH3_state_t, FreeState> xxh3 = make_state();
};

Digest::Digest() : state_(std::make_unique<State>()) { XXH3_128bits_reset(state_->xxh3.get()); }

Digest::~Digest() = default;

void Digest::add(const void* data, std::size_t size) {
  add(std::uint64_t{size});
  XXH3_128bits_update(state_->xxh3.get(), data, size);
}

void Digest::add(std::string_view field) { add(field.data(), field.size()); }

void Digest::add(std::uint64_t number) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(number >> (8 * i));
  XXH3_128bits_update(state_->xxh3.get(), bytes, sizeof bytes);
}

std::string Digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh3.get());
  return hex_text(hash.high64) + hex_text(hash.low64);
}

}  // namespace npu
