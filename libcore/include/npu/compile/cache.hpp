// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/device/blob.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

struct CacheOptions {
  bool enabled = true;
  std::string folder;  ///< empty: default_cache_folder()
  std::int64_t limit_bytes = 8'000'000'000;
};

/// $XDG_CACHE_HOME/npu, else $HOME/.cache/npu; empty if neither is set to an absolute path.
std::string default_cache_folder();

/// "8G", "500M", "64k", "1000": decimal units. Nothing if the text is not a size.
std::optional<std::int64_t> parse_byte_size(const std::string& text);

/// Everything that a compilation depends on. Inputs that differ in anything have different
/// keys.
struct CacheKeyInput {
  std::string backend;
  std::string backend_version;
  std::string fingerprint;
  std::string device;   ///< the target's description of the device, as JSON
  std::string options;  ///< passed to compile, as JSON
  std::string sub_ir;
  const std::vector<NamedTensor>* weights = nullptr;
};
/// 32 hexadecimal digits.
std::string cache_key(const CacheKeyInput& input);

/// The key of a piece that a backend names `piece`, likewise.
std::string piece_key(const std::string& backend, const std::string& backend_version,
                      const std::string& fingerprint, std::string_view piece);

/// A compiled partition as the cache stores it.
struct CachedBlob {
  Blob blob;    ///< mapped
  Json report;  ///< the backend's, an object
};

/// A folder with one file per compiled partition. Any number of processes may use it at once and be
/// killed at any moment. Every entry carries digests of all its bytes; a damaged entry is removed
/// and treated as absent. Write access to an entry decides what is run, so a folder or an entry
/// that other users could have written is not used. That, and a folder that cannot be read or
/// written, causes a warning, never a failure. Thread-safe.
class CompileCache {
 public:
  explicit CompileCache(const CacheOptions& options);

  bool enabled() const noexcept { return enabled_; }
  const std::string& folder() const noexcept { return folder_; }

  /// The entry of a key, if it is there and intact. Marks it as just used.
  std::optional<CachedBlob> find(const std::string& key);
  /// Stores a blob, then evicts the least recently used entries until the rest fit the limit. A
  /// blob that alone exceeds the limit is not stored.
  void store(const std::string& key, const Blob& blob, const Json& report);

  /// What a backend made of one piece of a compilation (npu_piece_cache), by piece_key; as entries
  /// are. The least recently used ones go when a blob is stored.
  std::optional<std::string> find_piece(const std::string& key);
  void store_piece(const std::string& key, std::string_view piece);

  /// Warnings for the user about what has gone wrong so far, one of each kind.
  std::vector<std::string> take_warnings();

 private:
  void warn(const std::string& text);
  bool write(const std::string& key, std::string_view report, std::string_view blob);
  void evict(const std::string& newest);

  bool enabled_ = false;
  std::string folder_;
  std::int64_t limit_ = 0;
  std::mutex mutex_;
  std::vector<std::string> warnings_;
  bool has_warned_ = false;
  bool is_writable_ = true;
};

}  // namespace npu
