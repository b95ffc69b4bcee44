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

/// A loaded backend: the C ABI of npu/backend.h behind C++ types. Loaded once per process.
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
  /// Dtype, shape and, if the device shares the host's memory, the
  /// data. The buffer owns the shape.
  npu_tensor describe() const;
  /// Copies to a new host tensor, bit for bit.
  Tensor to_host() const;
  /// The buffer's memory as a tensor that keeps the buffer alive; a copy if the device does not
  /// share the host's memory.
  static Tensor view(const std::shared_ptr<DeviceBuffer>& buffer);

 private:
  std::shared_ptr<DeviceInstance> device_;
  npu_buffer* buffer_;
};

/// The bytes that compile made; the pointer shares ownership with a backend or a mapped file.
struct Blob {
  std::shared_ptr<const std::byte> data;
  std::uint64_t size = 0;
};

/// A named host tensor, as programs take their weights.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// A compiled and loaded sub-IR. Keeps its device open and its weights alive.
class DeviceProgram {
 public:
  DeviceProgram(std::shared_ptr<DeviceInstance> device, Blob blob, std::vector<NamedTensor> weights,
                std::size_t output_count, std::size_t node_count);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  /// One result per graph output of the sub-IR. Throws Error kUnsupported with the backend's text.
  /// `reuse` is empty, or holds one buffer per result (see DeviceInstance::writes_outputs), which
  /// the run overwrites and returns.
  std::vector<std::shared_ptr<DeviceBuffer>> run(
      const std::vector<npu_buffer*>& inputs,
      const std::vector<std::shared_ptr<DeviceBuffer>>& reuse = {}) const;
  /// Nanoseconds per node of the last run; empty if the backend does not measure them.
  std::vector<std::uint64_t> node_times() const;
  /// Nanoseconds per step of the last run, in the order of the blob's report, which lists `steps`
  /// of them; empty if the backend does not measure them.
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
  /// The backend's report of a blob; an empty object if it makes none.
  Json blob_report(const Blob& blob);
  std::unique_ptr<DeviceProgram> load(Blob blob, std::vector<NamedTensor> weights,
                                      std::size_t output_count, std::size_t node_count);
  std::unique_ptr<DeviceProgram> compile_and_load(const std::string& sub_ir,
                                                  std::vector<NamedTensor> weights,
                                                  std::size_t output_count, std::size_t node_count);
  /// Whether programs write into output buffers that the host passes.
  bool writes_outputs() const noexcept;
  std::shared_ptr<DeviceBuffer> allocate(DType dtype, const Shape& shape);
  std::shared_ptr<DeviceBuffer> import_tensor(const npu_tensor& tensor);
  std::shared_ptr<DeviceBuffer> import_tensor(const Tensor& tensor);
  /// Calls `visit` with the name and kind of every op that the backend knows.
  void list_ops(const std::function<void(std::string_view, std::string_view)>& visit);

 private:
  DeviceInstance(std::shared_ptr<const Backend> backend, npu_device* device);
  std::shared_ptr<const Backend> backend_;
  npu_device* device_;
};

}  // namespace npu
