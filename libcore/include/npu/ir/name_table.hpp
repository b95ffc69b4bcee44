// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace npu {

/// Finds the elements of a list by their names, of which it keeps no copies: each function is given
/// `name_of`, which gives the name of an index. Names must not change, and elements must not move.
/// An open-addressing table with 8 bytes per slot, of which at least a quarter stays free: a graph
/// of a million nodes is looked up in 32 MiB.
class NameTable {
 public:
  /// Room for so many elements without another allocation.
  void reserve(std::size_t count) {
    std::size_t size = kMinSlots;
    while (size - size / 4 < count) size *= 2;
    if (size > slots_.size()) grow(size);
  }

  /// The index of the element with this name; -1 if there is none.
  template <typename NameOf>
  std::int32_t find(std::string_view name, const NameOf& name_of) const {
    if (slots_.empty()) return -1;
    return slots_[slot_of(name, hash_of(name), name_of)].index;
  }

  /// Adds element `index`, whose name is `name`. The index that had the name before, and keeps it;
  /// -1 if none had.
  template <typename NameOf>
  std::int32_t insert(std::string_view name, std::int32_t index, const NameOf& name_of) {
    reserve(count_ + 1);
    const std::uint32_t hash = hash_of(name);
    Slot& slot = slots_[slot_of(name, hash, name_of)];
    if (slot.index >= 0) return slot.index;
    slot = {index, hash};
    ++count_;
    return -1;
  }

 private:
  static constexpr std::size_t kMinSlots = 16;

  struct Slot {
    std::int32_t index = -1;
    std::uint32_t hash = 0;
  };

  static std::uint32_t hash_of(std::string_view name) noexcept {
    const std::size_t hash = std::hash<std::string_view>{}(name);
    return static_cast<std::uint32_t>(hash ^ (hash >> 32));
  }

  /// The slot that has the name, or the free one where it belongs.
  template <typename NameOf>
  std::size_t slot_of(std::string_view name, std::uint32_t hash, const NameOf& name_of) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash & mask;
    while (slots_[at].index >= 0) {
      if (slots_[at].hash == hash && std::string_view(name_of(slots_[at].index)) == name) return at;
      at = (at + 1) & mask;
    }
    return at;
  }

  void grow(std::size_t size) {
    std::vector<Slot> old(size);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index < 0) continue;
      std::size_t at = slot.hash & (size - 1);
      while (slots_[at].index >= 0) at = (at + 1) & (size - 1);
      slots_[at] = slot;
    }
  }

  std::vector<Slot> slots_;  // a power of two of them, or none
  std::size_t count_ = 0;
};

}  // namespace npu
