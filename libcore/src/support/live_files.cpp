// SPDX-License-Identifier: Apache-2.0
// Lists the files that are mapped or being written, in a form that a signal handler can read.
//
// Both lists only grow: a slot is created once, pushed to the front with one atomic store, and
// reused when it is free, so a handler can walk the list at any moment. Slots are taken and
// returned under a mutex, which the handler never touches; it reads only lock-free atomics, and
// texts that change only while their slot is marked as free. O(live files) per call.
#include "support/live_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "support/signal_hooks.hpp"
#include "support/text.hpp"

namespace npu {

struct MappingMark::Slot {
  std::atomic<std::uintptr_t> begin{0};  ///< 0: free
  std::atomic<std::uintptr_t> end{0};
  std::array<char, 256> name{};  ///< holds every short_text
  Slot* next = nullptr;
};

struct UnfinishedMark::Slot {
  enum State : int { kFree, kLive, kRemoving };
  std::atomic<int> state{kFree};
  Kind kind = Kind::kFile;
  pid_t owner = 0;  ///< not one that was forked meanwhile
  std::array<char, PATH_MAX> path{};
  Slot* next = nullptr;
};

namespace {

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);
static_assert(std::atomic<int>::is_always_lock_free);

std::mutex slot_mutex;
std::atomic<MappingMark::Slot*> mapping_slots{nullptr};
std::atomic<UnfinishedMark::Slot*> unfinished_slots{nullptr};

// The first slot that `is_free`, or a new one. Slots live until the process ends, since a handler
// may be reading them.
template <typename Slot, typename IsFree>
Slot* take_slot(std::atomic<Slot*>& slots, const IsFree& is_free) {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    if (is_free(*slot)) return slot;
  }
  auto* slot = new Slot;
  slot->next = slots.load();
  slots.store(slot);
  return slot;
}

}  // namespace

MappingMark::MappingMark(const void* address, std::size_t size, const std::string& path) {
  const std::string name = short_text(path);
  const std::lock_guard lock(slot_mutex);
  slot_ = take_slot(mapping_slots, [](const Slot& slot) { return slot.begin.load() == 0; });
  const std::size_t length = std::min(name.size(), slot_->name.size() - 1);
  std::memcpy(slot_->name.data(), name.data(), length);
  slot_->name[length] = '\0';
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  slot_->end.store(begin + size);
  slot_->begin.store(begin);
}

// Under the mutex, so that no range is released that means something else by then.
MappingMark::~MappingMark() {
  const std::lock_guard lock(slot_mutex);
  slot_->begin.store(0);
}

void release_mapped_files() {
  const std::lock_guard lock(slot_mutex);
  for (const MappingMark::Slot* slot = mapping_slots.load(); slot != nullptr; slot = slot->next) {
    const std::uintptr_t begin = slot->begin.load();
    // Private mappings that nobody can write to: nothing is lost.
    if (begin != 0) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the start of the mapping
      ::madvise(reinterpret_cast<void*>(begin), slot->end.load() - begin, MADV_DONTNEED);
    }
  }
}

const char* mapped_file_at(const void* address) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (const MappingMark::Slot* slot = mapping_slots.load(); slot != nullptr; slot = slot->next) {
    const std::uintptr_t begin = slot->begin.load();
    if (begin != 0 && begin <= wanted && wanted < slot->end.load()) return slot->name.data();
  }
  return nullptr;
}

UnfinishedMark::UnfinishedMark(const std::string& path, Kind kind) {
  const std::lock_guard lock(slot_mutex);
  Slot* slot = take_slot(unfinished_slots,
                         [](const Slot& other) { return other.state.load() == Slot::kFree; });
  if (path.size() >= slot->path.size()) return;
  std::memcpy(slot->path.data(), path.c_str(), path.size() + 1);
  slot->kind = kind;
  slot->owner = ::getpid();
  slot->state.store(Slot::kLive);
  slot_ = slot;
}

UnfinishedMark::~UnfinishedMark() {
  if (slot_ == nullptr) return;
  // A handler that is about to remove the file reads the path until the process ends.
  int expected = Slot::kLive;
  slot_->state.compare_exchange_strong(expected, Slot::kFree);
}

namespace {

// What the kernel lists in a folder: readdir(3) allocates, which a signal handler must not.
struct FolderEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t bytes;
  unsigned char type;
  char name[1];  // and more
};

// Removes the files of a folder; those that other threads add meanwhile stay.
void empty_folder(const char* path) noexcept {
  const int folder = ::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return;
  alignas(FolderEntry) std::array<char, 4096> entries;
  for (;;) {
    const long bytes = ::syscall(SYS_getdents64, folder, entries.data(), entries.size());
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const FolderEntry*>(entries.data() + at);
      ::unlinkat(folder, entry->name, 0);  // not "." and "..", which are folders
      at += entry->bytes;
    }
  }
  ::close(folder);
}

void remove_folder(const char* path) noexcept {
  constexpr int kMostTries = 20;  // threads that fill it run on until the process ends
  for (int i = 0; i < kMostTries; ++i) {
    empty_folder(path);
    if (::rmdir(path) == 0 || errno != ENOTEMPTY) return;
  }
}

}  // namespace

void remove_unfinished_files() noexcept {
  for (UnfinishedMark::Slot* slot = unfinished_slots.load(); slot != nullptr; slot = slot->next) {
    int expected = UnfinishedMark::Slot::kLive;
    if (slot->owner == ::getpid() &&
        slot->state.compare_exchange_strong(expected, UnfinishedMark::Slot::kRemoving)) {
      slot->kind == UnfinishedMark::Kind::kFolder ? remove_folder(slot->path.data())
                                                  : void(::unlink(slot->path.data()));
    }
  }
}

}  // namespace npu
