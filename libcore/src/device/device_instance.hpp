// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.hpp"
#include "device/device_answers.hpp"
#include "device/device_program.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// One moment on the clock of a device and on the host's, in nanoseconds.
struct ClockSample {
  std::uint64_t device_ns = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t uncertainty_ns = 0;
};

/// What time it was for the host when the device's clock showed `device_ns`, by samples before and
/// after it.
double host_time_ns(const ClockSample& before, const ClockSample& after, std::uint64_t device_ns);

/// A sub-IR beside others that read the same weights: for another size of the inputs, or another
/// part of the work.
struct ModelEntry {
  std::string name;
  std::string sub_ir;
  ProgramSignature signature = {};
};

/// How a compile is watched and stopped, for backends with the feature "cancel".
struct CompileHooks {
  std::uint64_t deadline_ns = 0;  ///< on CLOCK_MONOTONIC; 0: none
  /// From any thread, at least once a second; `total` may be 0. False: stop soon.
  std::function<bool(std::uint64_t done, std::uint64_t total, const char* phase)> progress;
  std::string blob_folder;  ///< where large blobs are kept in a file; empty: in memory
  /// npu_piece_cache; both or none. From any thread.
  std::function<std::optional<std::string>(std::string_view key)> find_piece = {};
  std::function<void(std::string_view key, std::string_view piece)> keep_piece = {};
};

/// One opened device of a backend.
class DeviceInstance : public std::enable_shared_from_this<DeviceInstance> {
 public:
  /// `options` is a JSON object; see npu/backend.h. "threads", "instance" and "memory_limit" in it
  /// are the host's: the number of threads (0: all cores), which device, as in Backend::device, and
  /// the bytes that it may take. Any other key has to be one that the backend states, if it states
  /// any, but for those of npu-run's options, which are dropped.
  static std::shared_ptr<DeviceInstance> open(std::shared_ptr<const Backend> backend,
                                              const std::string& options);
  ~DeviceInstance();
  DeviceInstance(const DeviceInstance&) = delete;
  DeviceInstance& operator=(const DeviceInstance&) = delete;

  const Backend& backend() const noexcept { return *backend_; }
  const DeviceFacts& facts() const noexcept { return facts_; }
  npu_device* get() const noexcept { return device_; }

  /// `options` is a JSON object; see npu/backend.h.
  Blob compile(const std::string& sub_ir, const std::vector<NamedTensor>& weights,
               const std::string& options, const CompileHooks& hooks = {});
  /// One blob of all of them, for backends with the feature "entries".
  Blob compile(const std::vector<ModelEntry>& entries, const std::vector<NamedTensor>& weights,
               const std::string& options, const CompileHooks& hooks = {});
  /// What the backend, which has the feature "check", says of the `nodes` nodes of a sub-IR.
  /// `options` as for compile. Throws BackendError.
  CheckAnswer check(const std::string& sub_ir, std::size_t nodes, const std::string& options);
  /// What time it is on the device's clock; nothing if the backend does not say.
  std::optional<ClockSample> clock() const;
  /// The backend's report of a blob; an empty object if it makes none.
  Json blob_report(const Blob& blob);
  /// Whether a blob is for this device; it is where the backend does not say. Throws BackendError
  /// for one that is none of the backend's.
  BlobVerdict check_blob(const Blob& blob) const;
  /// What a blob will take, before it is loaded; nothing if the backend does not say.
  std::optional<MemoryReport> blob_memory(const Blob& blob) const;
  /// Of memory 0; nothing if the backend does not say.
  std::optional<MemoryState> memory_state() const;
  std::shared_ptr<DeviceModel> load_model(Blob blob, std::vector<NamedTensor> weights,
                                          std::vector<std::shared_ptr<DeviceWeights>> shared = {});
  std::unique_ptr<DeviceProgram> load(Blob blob, std::vector<NamedTensor> weights,
                                      ProgramSignature signature,
                                      std::vector<std::shared_ptr<DeviceWeights>> shared = {},
                                      std::shared_ptr<DeviceBuffer> scratch = nullptr);
  std::unique_ptr<DeviceProgram> compile_and_load(const std::string& sub_ir,
                                                  std::vector<NamedTensor> weights,
                                                  ProgramSignature signature);
  /// Null if the backend does not share weights between models.
  std::shared_ptr<DeviceWeights> load_weights(std::vector<NamedTensor> tensors);
  /// Whether a program writes into buffers of the host again and again; otherwise a run gives them
  /// new memory, and they are made for each run.
  bool keeps_outputs() const noexcept { return !backend_->has_flag(NPU_NEW_OUTPUTS); }
  bool has_memory_limit() const noexcept { return memory_limit_ != 0; }
  /// Buffers are made by one thread at a time, whichever calls.
  std::shared_ptr<DeviceBuffer> allocate(DType dtype, const Shape& shape, std::uint32_t usage = 0,
                                         std::uint32_t memory = 0);
  /// In a layout that the backend, which has the feature "layouts" then, knows for the type.
  std::shared_ptr<DeviceBuffer> allocate(const TensorType& type, std::uint32_t usage,
                                         std::uint32_t memory = 0);
  /// Scratch memory of programs, for backends with the feature "scratch".
  std::shared_ptr<DeviceBuffer> make_scratch(std::uint64_t bytes);
  std::shared_ptr<DeviceBuffer> import_tensor(const Tensor& tensor);
  std::shared_ptr<DeviceBuffer> import_tensor(const TensorType& type, const void* data);
  /// A buffer in memory of the host, which `owner` keeps in its place and which is only read,
  /// unless `access` has more. Null if the backend cannot use that memory as it is.
  std::shared_ptr<DeviceBuffer> wrap(DType dtype, const Shape& shape, const void* memory,
                                     std::shared_ptr<const void> owner = nullptr,
                                     std::uint32_t access = NPU_ACCESS_READ);
  /// Calls `visit` with the name and kind of every op that the backend knows.
  void list_ops(const std::function<void(std::string_view, std::string_view)>& visit);

 private:
  DeviceInstance(std::shared_ptr<const Backend> backend, DeviceFacts facts, npu_device* device);
  Blob compile_entries(const std::vector<npu_entry>& entries,
                       const std::vector<NamedTensor>& weights, const std::string& options,
                       const CompileHooks& hooks);
  std::shared_ptr<const Backend> backend_;
  DeviceFacts facts_;
  npu_device* device_;
  std::mutex creating_;
  std::uint64_t memory_limit_ = 0;
};

}  // namespace npu
