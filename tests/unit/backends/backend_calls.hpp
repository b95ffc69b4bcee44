// SPDX-License-Identifier: Apache-2.0
// The calls of npu/backend.h as tests of one backend make them: arguments as values, blobs as
// strings. What a backend checks, it is asked to check; nothing is checked here.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/backend.h"
#include "npu/tensor/dtype.hpp"

namespace npu::test {

/// A struct as calls take it: zeroed, with its size.
template <typename Struct>
Struct sized_struct() {
  Struct made{};
  made.struct_size = sizeof made;
  return made;
}

/// What a call fails with.
struct CallError : npu_error {
  CallError() : npu_error(sized_struct<npu_error>()) {}
};

/// `name` and the data outlive it, and so does `shape`.
inline npu_tensor tensor_view(const char* name, npu_dtype dtype,
                              const std::vector<std::int64_t>& shape, const void* data,
                              std::uint64_t bytes) {
  auto tensor = sized_struct<npu_tensor>();
  tensor.name = name;
  tensor.dtype = dtype;
  tensor.rank = static_cast<std::uint32_t>(shape.size());
  tensor.shape = shape.data();
  tensor.data = data;
  tensor.bytes = bytes;
  return tensor;
}

/// A host's table, as entry functions take it.
inline const npu_host& test_host() {
  static const npu_host host = [] {
    auto made = sized_struct<npu_host>();
    made.abi_version = NPU_ABI_VERSION;
    made.log = [](void*, std::uint32_t, const char*) {};
    return made;
  }();
  return host;
}

using BackendEntry = const npu_backend* (*)(const npu_host*, npu_error*);

/// Loads a shared object; it stays loaded. Throws std::runtime_error.
inline BackendEntry entry_of(const std::string& file) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* entry = library == nullptr ? nullptr : ::dlsym(library, NPU_ENTRY_NAME);
  if (entry == nullptr) throw std::runtime_error(::dlerror());
  return reinterpret_cast<BackendEntry>(entry);
}

/// One backend. Arguments may be null where a backend has to refuse them.
class BackendCalls {
 public:
  explicit BackendCalls(const std::string& file) : table_(entry_of(file)(&test_host(), nullptr)) {}

  /// The calls that are as they are.
  const npu_backend* operator->() const { return table_; }

  npu_backend_info info() const {
    auto info = sized_struct<npu_backend_info>();
    CallError error;
    if (table_->backend_info(&info, &error) != NPU_OK) throw std::runtime_error(error.text);
    return info;
  }
  /// Of the first device.
  std::string fingerprint() const {
    auto info = sized_struct<npu_device_info>();
    CallError error;
    if (table_->device_info(0, &info, &error) != NPU_OK) throw std::runtime_error(error.text);
    return info.fingerprint;
  }

  npu_status open_device(std::uint32_t threads, const char* options, npu_device** device,
                         npu_error* error) const {
    auto args = sized_struct<npu_open_args>();
    args.threads = threads;
    args.options = options;
    return table_->device_open(&args, device, error);
  }

  /// Leaves `blob` as it is where it fails.
  npu_status compile(npu_device* device, std::string_view sub_ir,
                     const std::vector<npu_tensor>& weights, const char* options, std::string* blob,
                     npu_error* error) const {
    auto entry = sized_struct<npu_entry>();
    entry.name = "main";
    entry.sub_ir = sub_ir.data();
    entry.sub_ir_size = sub_ir.size();
    const npu_entry* const entries[] = {&entry};
    const auto pointers = pointers_to(weights);
    std::string bytes;
    const npu_writer writer = writer_of(bytes);
    auto args = sized_struct<npu_compile_args>();
    args.entries = entries;
    args.entry_count = 1;
    args.weights = pointers.data();
    args.weight_count = pointers.size();
    args.options = options;
    args.ir_version = NPU_IR_VERSION;
    args.blob = &writer;
    const npu_status status = table_->compile(device, &args, error);
    if (status == NPU_OK) *blob = std::move(bytes);
    return status;
  }

  npu_status blob_report(npu_device* device, std::string_view blob, std::string* report,
                         npu_error* error) const {
    const npu_writer writer = writer_of(*report);
    return table_->blob_report(device, blob.data(), blob.size(), &writer, error);
  }

  npu_status load(npu_device* device, std::string_view blob, const std::vector<npu_tensor>& weights,
                  npu_model** model, npu_error* error) const {
    const auto pointers = pointers_to(weights);
    auto args = sized_struct<npu_load_args>();
    args.blob = blob.data();
    args.blob_size = blob.size();
    args.weights = pointers.data();
    args.weight_count = pointers.size();
    auto info = sized_struct<npu_model_info>();
    return table_->model_load(device, &args, &info, model, error);
  }
  /// Its runs may be asked for times.
  npu_status create_program(npu_model* model, npu_program** program, npu_error* error) const {
    auto args = sized_struct<npu_program_args>();
    args.flags = NPU_PROGRAM_PROFILE;
    return table_->program_create(model, &args, program, error);
  }

  /// With the bytes of its dtype and shape, modulo 2^64.
  npu_status create_buffer(npu_device* device, npu_dtype dtype,
                           const std::vector<std::int64_t>& shape, npu_buffer** buffer,
                           npu_error* error) const {
    std::uint64_t bytes = dtype < kDTypeCount ? dtype_size(static_cast<DType>(dtype)) : 0;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    return create_buffer(device, tensor_view("", dtype, shape, nullptr, bytes), buffer, error);
  }
  /// With the content of a tensor.
  npu_status import_tensor(npu_device* device, const npu_tensor& tensor, npu_buffer** buffer,
                           npu_error* error) const {
    npu_status status = create_buffer(device, tensor, buffer, error);
    if (status != NPU_OK) return status;
    auto transfer = sized_struct<npu_transfer>();
    transfer.bytes = tensor.bytes;
    transfer.data = const_cast<void*>(tensor.data);
    status = table_->buffer_write(*buffer, &transfer, error);
    if (status != NPU_OK) table_->buffer_free(std::exchange(*buffer, nullptr));
    return status;
  }
  npu_status read(npu_buffer* buffer, void* data, std::uint64_t bytes, npu_error* error) const {
    auto transfer = sized_struct<npu_transfer>();
    transfer.bytes = bytes;
    transfer.data = data;
    return table_->buffer_read(buffer, &transfer, error);
  }
  /// Its memory; null if the host does not see it.
  void* map(npu_buffer* buffer) const {
    void* data = nullptr;
    CallError error;
    constexpr std::uint32_t kBoth = NPU_ACCESS_READ | NPU_ACCESS_WRITE;
    return table_->buffer_map(buffer, kBoth, &data, &error) == NPU_OK ? data : nullptr;
  }

  npu_status run(npu_program* program, const std::vector<npu_buffer*>& inputs,
                 const std::vector<npu_buffer*>& outputs, npu_error* error,
                 npu_profile* profile = nullptr) const {
    auto args = sized_struct<npu_run_args>();
    args.inputs = inputs.data();
    args.input_count = inputs.size();
    args.outputs = outputs.data();
    args.output_count = outputs.size();
    args.profile = profile;
    return table_->run(program, &args, error);
  }

 private:
  static npu_status append(void* text, const void* data, std::uint64_t size, npu_error*) {
    static_cast<std::string*>(text)->append(static_cast<const char*>(data), size);
    return NPU_OK;
  }
  static npu_writer writer_of(std::string& text) {
    auto writer = sized_struct<npu_writer>();
    writer.context = &text;
    writer.write = append;
    return writer;
  }
  static std::vector<const npu_tensor*> pointers_to(const std::vector<npu_tensor>& tensors) {
    std::vector<const npu_tensor*> pointers;
    for (const npu_tensor& tensor : tensors) pointers.push_back(&tensor);
    return pointers;
  }
  npu_status create_buffer(npu_device* device, const npu_tensor& like, npu_buffer** buffer,
                           npu_error* error) const {
    auto desc = sized_struct<npu_buffer_desc>();
    desc.dtype = like.dtype;
    desc.rank = like.rank;
    desc.shape = like.shape;
    desc.bytes = like.bytes;
    return table_->buffer_create(device, &desc, buffer, error);
  }

  const npu_backend* table_;
};

}  // namespace npu::test
