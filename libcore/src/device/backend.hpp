// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/backend.h"
#include "npu/support/error.hpp"

namespace npu {

/// What a call of a backend failed with. The code says which exit status it makes.
class BackendError : public Error {
 public:
  BackendError(npu_status status, const std::string& message);
  npu_status status() const noexcept { return status_; }

 private:
  npu_status status_;
};

/// Numbers that a backend knows, by their names in npu/backend.h, in their order there.
using KnownNumbers = std::vector<std::pair<std::string, std::uint64_t>>;

/// A memory of a device.
struct MemoryFacts {
  std::optional<std::uint64_t> total_bytes;
  std::string name = {};
  std::uint32_t kind = 0;   ///< NPU_MEMORY_*
  std::uint32_t flags = 0;  ///< NPU_HOST_MAPPABLE and so on
  KnownNumbers numbers = {};
};

/// A dtype that a device lists.
struct DTypeFacts {
  std::uint32_t dtype = 0;  ///< npu_dtype
  std::uint32_t flags = 0;  ///< NPU_DTYPE_*
  std::optional<std::uint64_t> peak_ops_per_second = {};
};

/// What a backend says of one of its devices, without opening it.
struct DeviceFacts {
  std::string id;
  std::string name;
  std::string driver;
  std::string arch;
  std::string fingerprint;  ///< all that a blob depends on there besides its inputs
  bool usable = true;
  bool is_absent = false;  ///< an architecture that no usable device here has: for compiles alone
  std::string why_not;
  bool is_coherent = false;  ///< memory 0 is the host's, too: a mapping stays good
  bool wraps_host = false;   ///< memory 0 takes over pointers of the host
  /// A memory of the host that the device reads and writes fast, if it has one.
  std::optional<std::uint32_t> pinned_memory = {};
  std::uint64_t alignment = 1;
  std::uint32_t concurrent_compiles = 1;
  std::uint32_t programs_in_flight = 1;  ///< of one model, with queues
  std::uint32_t queues = 1;              ///< open at once, where the backend has any
  std::vector<MemoryFacts> memories;
  std::string vendor = {};
  std::uint32_t kind = 0;  ///< NPU_DEVICE_*
  KnownNumbers numbers = {};
  std::vector<DTypeFacts> dtypes = {};

  /// Whether the device says that buffers may have this dtype.
  bool stores(npu_dtype dtype) const;
};

/// A loaded backend: the C interface of npu/backend.h behind C++ types. Loaded once per process.
class Backend {
 public:
  /// Looks for npu_backend_<name>.so in lib/npu/backends beside the program's bin folder, then in
  /// the folders of NPU_BACKEND_PATH (separated by colons). A file of NPU_BACKEND_PATH is loaded in
  /// a child process first: one that crashes, exits or hangs is refused and does not take the
  /// program down. Throws Error kUnsupported with every path that was tried, or with what is wrong
  /// with the file that was found.
  static std::shared_ptr<const Backend> load(std::string_view name);

  /// The file that load() would take, found the same way but not opened; empty if there is none.
  static std::string find_file(std::string_view name);

  /// Loads a file and asks it what load would, for the helper that does it first. Throws as load.
  static void look_at(const std::string& path, const std::string& name);

  const std::string& name() const noexcept { return name_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& version() const noexcept { return version_; }
  /// NPU_BLOB_HOLDS_WEIGHTS and the like.
  bool has_flag(std::uint64_t flag) const noexcept { return (flags_ & flag) != 0; }
  bool holds_weights() const noexcept { return has_flag(NPU_BLOB_HOLDS_WEIGHTS); }
  bool has_feature(std::string_view name) const;
  const std::vector<DeviceFacts>& devices() const noexcept { return devices_; }
  /// The keys of its own options; nothing if it does not state them.
  const std::optional<std::vector<std::string>>& option_keys() const noexcept {
    return option_keys_;
  }
  /// The device whose id or name matches `instance`, which may end with "*"; the first usable one
  /// if it is empty, or of an architecture for "arch:NAME". If there is none of that architecture,
  /// but the backend compiles without a device, an absent one. Throws Error kUnsupported if there
  /// is none, with those that there are.
  const DeviceFacts& device(std::string_view instance) const;
  const npu_backend& api() const noexcept { return *api_; }

 private:
  const DeviceFacts& absent_device(std::string_view arch) const;
  std::string name_;
  std::string path_;
  std::string version_;
  std::uint64_t flags_ = 0;
  std::optional<std::vector<std::string>> option_keys_;
  std::vector<DeviceFacts> devices_;
  const npu_backend* api_ = nullptr;
};

/// The folders that Backend::load searches, in order.
std::vector<std::string> backend_search_path();

}  // namespace npu
