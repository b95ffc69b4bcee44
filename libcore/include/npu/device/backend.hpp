// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "npu/backend.h"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

class DeviceInstance;

/// A loaded backend: the C ABI of npu/backend.h behind C++ types. Loaded at most once a process.
class Backend {
 public:
  /// Looks for npu_backend_<name>.so in lib/npu/backends beside the program's bin folder, then in
  /// the folders of NPU_BACKEND_PATH (separated by colons). A file of NPU_BACKEND_PATH is loaded in
  /// a child process first: one that crashes, ends the process or hangs is refused, and takes
  /// nothing with it. Throws Error kUnsupported with every place that was tried, or with what is
  /// wrong with the file that was found.
  static std::shared_ptr<const Backend> load(std::string_view name);

  const std::string& name() const noexcept { return name_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& version() const noexcept { return version_; }
  const std::string& fingerprint() const noexcept { return fingerprint_; }
  std::uint32_t capabilities() const noexcept { return capabilities_; }
  const npu_backend_api& api() const noexcept { return *api_; }

 private:
  std::string name_;
  std::string path_;
  std::string version_;
  std::string fingerprint_;
  std::uint32_t capabilities_ = 0;
  const npu_backend_api* api_ = nullptr;
};

/// The folders that Backend::load searches, in order.
std::vector<std::string> backend_search_path();

/// A tensor in device memory. Keeps its device open.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<DeviceInstance> device, npu_buffer* buffer);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  npu_buffer* get() const noexcept { return buffer_; }
  /// Dtype, shape and, where the device's memory is the host's, the data. The shape belongs to the
  /// buffer.
  npu_tensor describe() const;
  /// Copies to a new host tensor, bit for bit.
  Tensor to_host() const;
  /// The buffer's own memory as a tensor that keeps the buffer alive; a copy where the device's
  /// memory is not the host's.
  static Tensor view(const std::shared_ptr<DeviceBuffer>& buffer);

 private:
  std::shared_ptr<DeviceInstance> device_;
  npu_buffer* buffer_;
};

/// What compile made, with whoever keeps the bytes alive: a backend, a mapped file.
struct Blob {
  std::shared_ptr<const std::byte> data;
  std::uint64_t size = 0;
};

/// A named host tensor, as programs take their weights.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A compiled and loaded sub-IR. Keeps its device open and the data of its weights alive.
class DeviceProgram {
 public:
  DeviceProgram(std::shared_ptr<DeviceInstance> device, Blob blob, std::vector<NamedTensor> weights,
                std::size_t output_count, std::size_t node_count);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  /// One result per graph output of the sub-IR. Throws Error kUnsupported with the backend's text.
  /// `reuse` is empty, or holds a buffer for each result (see DeviceInstance::writes_outputs): the
  /// results are then those buffers, overwritten.
  std::vector<std::shared_ptr<DeviceBuffer>> run(
      const std::vector<npu_buffer*>& inputs,
      const std::vector<std::shared_ptr<DeviceBuffer>>& reuse = {}) const;
  /// Nanoseconds per node of the last run; empty if the backend does not measure them.
  std::vector<std::uint64_t> node_times() const;
  /// Nanoseconds per step of the blob's report, of which it has `steps`, of the last run; empty if
  /// the backend does not measure them.
  std::vector<std::uint64_t> step_times(std::size_t steps) const;

 private:
  std::shared_ptr<DeviceInstance> device_;
  Blob blob_;
  std::vector<NamedTensor> weights_;
  std::size_t output_count_;
  std::size_t node_count_;
  npu_program* program_ = nullptr;
};

/// One opened device of a backend.
class DeviceInstance : public std::enable_shared_from_this<DeviceInstance> {
 public:
  /// `options` is a JSON object; see npu/backend.h.
  static std::shared_ptr<DeviceInstance> open(std::shared_ptr<const Backend> backend,
                                              const std::string& options);
  ~DeviceInstance();
  DeviceInstance(const DeviceInstance&) = delete;
  DeviceInstance& operator=(const DeviceInstance&) = delete;

  const Backend& backend() const noexcept { return *backend_; }
  npu_device* get() const noexcept { return device_; }

  /// `options` is a JSON object; see npu/backend.h.
  Blob compile(const std::string& sub_ir, const std::vector<NamedTensor>& weights,
               const std::string& options);
  /// What compile made, as the backend reports it; an empty object if it does not.
  Json blob_report(const Blob& blob);
  std::unique_ptr<DeviceProgram> load(Blob blob, std::vector<NamedTensor> weights,
                                      std::size_t output_count, std::size_t node_count);
  std::unique_ptr<DeviceProgram> compile_and_load(const std::string& sub_ir,
                                                  std::vector<NamedTensor> weights,
                                                  std::size_t output_count, std::size_t node_count);
  /// Whether programs write into buffers that the host passes.
  bool writes_outputs() const noexcept;
  std::shared_ptr<DeviceBuffer> allocate(DType dtype, const Shape& shape);
  std::shared_ptr<DeviceBuffer> import_tensor(const npu_tensor& tensor);
  std::shared_ptr<DeviceBuffer> import_tensor(const Tensor& tensor);
  /// Calls `visit` with name and kind of every op that the backend knows.
  void list_ops(const std::function<void(std::string_view, std::string_view)>& visit);

 private:
  DeviceInstance(std::shared_ptr<const Backend> backend, npu_device* device);
  std::shared_ptr<const Backend> backend_;
  npu_device* device_;
};

}  // namespace npu
