// SPDX-License-Identifier: Apache-2.0
// Keeps compiled partitions in a folder, one file each, named by the key of what was compiled.
//
// An entry appears under its name by rename, complete or not at all, so readers and writers of any
// number of processes need no lock. It starts with its key and digests of everything in it, which a
// reader checks: what a crash of the machine, a full disk or a stray program left there is removed
// and compiled again. That is why nothing is synced: a lost entry costs a compilation, no more.
// Where a file cannot be without a name, its writer holds a lock on the temporary one, so what a
// killed writer left behind is told from what is being written, and the next eviction removes it.
// Last use is the
// file's modification time, since access times are often switched off.
// The digests guard against damage, not against somebody who can compute one: so what other users
// could have written, entry or folder, is not used.
// Finding is O(bytes of the entry), storing that and O(entries) for the eviction.
#include "npu/compile/cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "device/cpu_family.hpp"
#include "device/isa_level.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/log.hpp"
#include "support/byte_order.hpp"
#include "support/checked.hpp"
#include "support/descriptor.hpp"
#include "support/digest.hpp"
#include "support/new_file.hpp"
#include "support/open_file.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

// magic, key, sizes and digests of report and blob, digest of all of these: 8 + 32 + 5 * 8 bytes.
constexpr std::string_view kEntryMagic = "npucach1";
constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kEntryHeaderBytes = 8 + kKeyBytes + 40;
constexpr std::size_t kBlobAlignment = 4096;
constexpr std::string_view kSuffix = ".npublob";
constexpr std::string_view kTemporaryPrefix = "tmp-";
constexpr int kStaleSeconds = 60;
// Where files cannot be locked, for which nobody takes so long.
constexpr int kStaleUnlockedSeconds = 24 * 3600;

std::uint64_t blob_offset(std::uint64_t report_size) {
  return (kEntryHeaderBytes + report_size + kBlobAlignment - 1) / kBlobAlignment * kBlobAlignment;
}

bool make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    // 0755: whoever writes to the folder decides what is run, so not
    // even a umask of 002 adds others.
    if (::mkdir(part.c_str(), 0755) != 0 && errno != EEXIST) {
      struct stat status {};
      if (::stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
    }
    if (slash == std::string::npos) break;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  if (S_ISDIR(status.st_mode)) return true;
  errno = ENOTDIR;
  return false;
}

/// The blob and report of an entry's bytes; nothing if anything in it is not as it was written.
std::optional<CachedBlob> parse_entry(const std::string& key,
                                      const std::shared_ptr<const MappedFile>& file) {
  const std::byte* bytes = file->data();
  const std::uint64_t size = file->size();
  if (size < kEntryHeaderBytes || std::memcmp(bytes, kEntryMagic.data(), kEntryMagic.size()) != 0 ||
      std::memcmp(bytes + kEntryMagic.size(), key.data(), kKeyBytes) != 0 ||
      read_u64(bytes + kEntryHeaderBytes - 8) != xxh3_64(bytes, kEntryHeaderBytes - 8)) {
    return std::nullopt;
  }
  const std::byte* numbers = bytes + kEntryMagic.size() + kKeyBytes;
  const std::uint64_t report_size = read_u64(numbers);
  const std::uint64_t report_digest = read_u64(numbers + 8);
  const std::uint64_t blob_size = read_u64(numbers + 16);
  const std::uint64_t blob_digest = read_u64(numbers + 24);
  if (report_size > size - kEntryHeaderBytes) return std::nullopt;
  const std::uint64_t offset = blob_offset(report_size);
  if (offset > size || blob_size != size - offset || blob_size == 0) return std::nullopt;
  if (xxh3_64(bytes + kEntryHeaderBytes, report_size) != report_digest ||
      xxh3_64(bytes + offset, blob_size) != blob_digest) {
    return std::nullopt;
  }
  const std::string_view report(reinterpret_cast<const char*>(bytes + kEntryHeaderBytes),
                                report_size);
  CachedBlob entry;
  entry.blob = {std::shared_ptr<const std::byte>(file, bytes + offset), blob_size};
  try {
    entry.report = parse_json(report, file->path());
  } catch (const Error&) {
    return std::nullopt;
  }
  return entry;
}

// Makes the folder if it is missing, and says why it cannot be used; empty if it can.
std::string folder_fault(const std::string& folder) {
  if (!make_folders(folder)) return std::string("cannot create it: ") + std::strerror(errno);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    return std::string("cannot look at it: ") + std::strerror(errno);
  }
  return distrust_reason(status);
}

// Whether nobody writes a temporary file any more: it is not locked, or, on file systems that lock
// nothing, it is old. Nothing depends on the answer but the space: a writer that loses its file
// goes on without the cache.
bool is_abandoned(int folder, const std::string& name, bool is_old) {
  const Descriptor left(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC));
  if (left.get() < 0) return false;
  return ::flock(left.get(), LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && is_old);
}

}  // namespace

// Entries are code that is run, so a program with raised privileges has no folder by default.
std::string default_cache_folder() {
  if (const char* folder = ::secure_getenv("XDG_CACHE_HOME"); folder != nullptr && *folder == '/') {
    return std::string(folder) + "/npu";
  }
  if (const char* home = ::secure_getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.cache/npu";
  }
  return {};
}

std::optional<std::int64_t> parse_byte_size(const std::string& text) {
  std::int64_t value = 0;
  std::size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    const auto shifted = checked_multiply(value, 10);
    if (!shifted || __builtin_add_overflow(*shifted, text[digits] - '0', &value)) {
      return std::nullopt;
    }
    ++digits;
  }
  if (digits == 0 || text.size() > digits + 1) return std::nullopt;
  if (text.size() == digits) return value;
  switch (text[digits]) {
    case 'k':
    case 'K':
      return checked_multiply(value, 1'000);
    case 'M':
      return checked_multiply(value, 1'000'000);
    case 'G':
      return checked_multiply(value, 1'000'000'000);
    case 'T':
      return checked_multiply(value, 1'000'000'000'000);
    default:
      return std::nullopt;
  }
}

std::string cache_key(const CacheKeyInput& input) {
  Digest digest;
  digest.add(kEntryMagic);
  for (const std::string* field : {&input.backend, &input.backend_version, &input.fingerprint,
                                   &cpu_features(), &input.device, &input.options, &input.sub_ir}) {
    digest.add(*field);
  }
  digest.add(cpu_family());
  for (const NamedTensor& weight : *input.weights) {
    digest.add(weight.name);
    digest.add(static_cast<std::uint64_t>(weight.tensor.dtype()));
    digest.add(std::uint64_t{weight.tensor.shape().size()});
    for (const std::int64_t d : weight.tensor.shape()) digest.add(static_cast<std::uint64_t>(d));
    digest.add(weight.tensor.data(), weight.tensor.bytes());
  }
  return digest.hex();
}

std::string piece_key(const std::string& backend, const std::string& backend_version,
                      const std::string& fingerprint, std::string_view piece) {
  Digest digest;
  digest.add(kEntryMagic);
  digest.add("piece");
  for (const std::string* field : {&backend, &backend_version, &fingerprint, &cpu_features()}) {
    digest.add(*field);
  }
  digest.add(piece);
  return digest.hex();
}

CompileCache::CompileCache(const CacheOptions& options) : limit_(options.limit_bytes) {
  if (!options.enabled) {
    log(LogModule::kCache, LogLevel::kInfo, [] { return "off, as asked for"; });
    return;
  }
  folder_ = options.folder.empty() ? default_cache_folder() : options.folder;
  // Without a home there is no place for one; that is no fault worth a warning.
  if (folder_.empty()) {
    log(LogModule::kCache, LogLevel::kInfo,
        [] { return "off: neither XDG_CACHE_HOME nor HOME is an absolute path"; });
    return;
  }
  if (const std::string fault = folder_fault(folder_); !fault.empty()) {
    warn(fault);
    return;
  }
  enabled_ = true;
}

void CompileCache::warn(const std::string& text) {
  const std::lock_guard lock(mutex_);
  if (has_warned_) return;
  has_warned_ = true;
  warnings_.push_back("cache " + folder_ + ": " + text + "; going on without it");
}

std::vector<std::string> CompileCache::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

std::optional<CachedBlob> CompileCache::find(const std::string& key) {
  if (!enabled_) return std::nullopt;
  const LogTimer timer(LogModule::kCache);
  const auto miss = [&](const std::string& reason) -> std::optional<CachedBlob> {
    timer.done([&] { return "miss " + key + ": " + reason; });
    return std::nullopt;
  };
  const std::string path = folder_ + "/" + key + std::string(kSuffix);
  std::shared_ptr<const MappedFile> file;
  try {
    file = MappedFile::find(path, FileTrust::kOwn);
  } catch (const Error& error) {
    // Not readable, or not to be trusted: it stays, as what somebody else put there.
    warn("entry " + key + std::string(kSuffix) + " " + error.message());
    return miss("this user cannot use " + path);
  }
  if (!file) return miss("nothing like it was compiled yet in " + folder_);
  std::optional<CachedBlob> entry = parse_entry(key, file);
  if (!entry) {
    ::unlink(path.c_str());
    return miss("its entry was damaged and is removed");
  }
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  timer.done(
      [&] { return "hit " + key + ": " + bytes_text(static_cast<double>(entry->blob.size)); });
  return entry;
}

void CompileCache::store(const std::string& key, const Blob& blob, const Json& report) {
  const std::string_view bytes(reinterpret_cast<const char*>(blob.data.get()), blob.size);
  if (write(key, report.dump(), bytes)) evict(key + std::string(kSuffix));
}

std::optional<std::string> CompileCache::find_piece(const std::string& key) {
  const auto entry = find(key);
  if (!entry) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(entry->blob.data.get()), entry->blob.size);
}

void CompileCache::store_piece(const std::string& key, std::string_view piece) {
  write(key, "{}", piece);
}

/// False if it is not kept.
bool CompileCache::write(const std::string& key, std::string_view report, std::string_view blob) {
  if (!enabled_) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!is_writable_) return false;
  }
  const std::uint64_t offset = blob_offset(report.size());
  if (offset + blob.size() > static_cast<std::uint64_t>(limit_)) {
    log(LogModule::kCache, LogLevel::kInfo, [&] {
      return key + " is not kept: " + bytes_text(static_cast<double>(offset + blob.size())) +
             " exceed the limit of " + bytes_text(static_cast<double>(limit_));
    });
    return false;
  }
  const LogTimer timer(LogModule::kCache, LogLevel::kDebug);
  std::string header(kEntryMagic);
  header += key;
  append_u64(header, report.size());
  append_u64(header, xxh3_64(report.data(), report.size()));
  append_u64(header, blob.size());
  append_u64(header, xxh3_64(blob.data(), blob.size()));
  append_u64(header, xxh3_64(header.data(), header.size()));
  header += report;
  header.resize(offset, '\0');

  const std::string path = folder_ + "/" + key + std::string(kSuffix);
  try {
    NewFile file(path,
                 {.create_mode = 0644,
                  .exists = ::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0,
                  .temporary = folder_ + "/" + std::string(kTemporaryPrefix)});
    file.write(header);
    file.write(blob);
    file.publish(false);
  } catch (const Error& error) {
    warn(error.message());
    const std::lock_guard lock(mutex_);
    is_writable_ = false;
    return false;
  }
  timer.done(
      [&] { return "kept " + key + ": " + bytes_text(static_cast<double>(offset + blob.size())); });
  return true;
}

void CompileCache::evict(const std::string& newest) {
  struct Entry {
    std::string name;
    std::int64_t bytes;
    timespec used;
  };
  DIR* folder = ::opendir(folder_.c_str());
  if (folder == nullptr) return;
  const int at = ::dirfd(folder);
  std::vector<Entry> entries;
  std::int64_t total = 0;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  while (const dirent* item = ::readdir(folder)) {
    const std::string name = item->d_name;
    struct stat status {};
    if (::fstatat(at, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISREG(status.st_mode)) continue;
    if (name.ends_with(kSuffix)) {
      entries.push_back({name, status.st_size, status.st_mtim});
      total += status.st_size;
    } else if (name.starts_with(kTemporaryPrefix) &&
               status.st_mtim.tv_sec + kStaleSeconds < now.tv_sec) {
      const bool is_old = status.st_mtim.tv_sec + kStaleUnlockedSeconds < now.tv_sec;
      if (is_abandoned(at, name, is_old)) ::unlinkat(at, name.c_str(), 0);
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec, a.name) <
           std::tie(b.used.tv_sec, b.used.tv_nsec, b.name);
  });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    if (entry.name == newest) continue;
    if (::unlinkat(at, entry.name.c_str(), 0) == 0 || errno == ENOENT) total -= entry.bytes;
  }
  ::closedir(folder);
}

}  // namespace npu
