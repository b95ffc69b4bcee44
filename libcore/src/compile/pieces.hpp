// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "device/device_instance.hpp"
#include "npu/compile/cache.hpp"

namespace npu {

/// The pieces that the backends of one compilation ask for (npu_piece_cache): from the cache, or,
/// without one, from what this compilation has made. Thread-safe.
class Pieces {
 public:
  /// `cache` may be null.
  explicit Pieces(CompileCache* cache) : cache_(cache) {}

  /// Answers a compile on a device with this fingerprint; `hooks` hold on to this object.
  void serve(CompileHooks& hooks, const Backend& backend, const std::string& fingerprint);

  std::int64_t built() const;  ///< those that were not there
  std::int64_t found() const;

 private:
  std::optional<std::string> find(const std::string& key);
  void keep(const std::string& key, std::string_view piece);
  bool has_cache() const { return cache_ != nullptr && cache_->enabled(); }

  CompileCache* cache_;
  mutable std::mutex mutex_;  ///< of what follows
  std::map<std::string, std::string> made_;
  std::int64_t built_ = 0;
  std::int64_t found_ = 0;
};

}  // namespace npu
