// SPDX-License-Identifier: Apache-2.0
// Finds and loads backends, and wraps the C ABI in owners. A backend that lacks a function, has
// another ABI version or writes nonsense is refused with a message; backends stay loaded, since
// libraries below them (OpenMP, libtorch) do not survive unloading.
#include "npu/device/backend.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "npu/support/checked.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

std::string program_folder() {
  std::array<char, PATH_MAX> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length <= 0) return {};
  const std::string_view text(path.data(), static_cast<std::size_t>(length));
  return std::string(text.substr(0, text.rfind('/')));
}

bool is_safe_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

[[noreturn]] void refuse(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::kUnsupported, text, {.file = path});
}

void check(npu_status status, const npu_error& error, const std::string& backend) {
  if (status == NPU_OK) return;
  // The text comes from outside: take no more than the array holds.
  const std::string text(error.text, ::strnlen(error.text, sizeof error.text));
  ErrorCode code = ErrorCode::kUnsupported;
  if (status == NPU_ERROR_MEMORY) code = ErrorCode::kInfeasible;
  if (status == NPU_ERROR_INVALID) code = ErrorCode::kInvalidGraph;
  throw Error(code,
              "backend '" + backend + "': " + (text.empty() ? "failed without a message" : text));
}

// A backend's string, which may be null.
std::string text_of(const char* text) { return text == nullptr ? "" : text; }

const npu_backend_api* checked_api(void* library, const std::string& path) {
  using Entry = const npu_backend_api* (*)(std::uint32_t);
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, NPU_BACKEND_ENTRY_NAME));
  if (entry == nullptr)
    refuse(path, "no npu-tools backend: it does not export " NPU_BACKEND_ENTRY_NAME);
  const npu_backend_api* api = entry(NPU_BACKEND_ABI_VERSION);
  const std::string expected = std::to_string(NPU_BACKEND_ABI_VERSION);
  if (api == nullptr) refuse(path, "the backend does not serve ABI version " + expected);
  if (api->abi_version != NPU_BACKEND_ABI_VERSION) {
    refuse(path, "the backend has ABI version " + std::to_string(api->abi_version) + ", expected " +
                     expected);
  }
  if (api->struct_size < sizeof(npu_backend_api)) {
    refuse(path, "the backend's function table has " + std::to_string(api->struct_size) +
                     " bytes, expected " + std::to_string(sizeof(npu_backend_api)));
  }
  if (!api->describe || !api->open_device || !api->close_device || !api->compile ||
      !api->blob_free || !api->load || !api->program_free || !api->buffer_allocate ||
      !api->buffer_import || !api->buffer_export || !api->buffer_describe || !api->buffer_free ||
      !api->run) {
    refuse(path, "the backend's function table lacks a required function");
  }
  return api;
}

// Backends bring OpenMP. GNU's workers spin at barriers for milliseconds before they sleep, which
// makes a run ten times slower as soon as another process wants a core. The library reads the
// variable when it is loaded; whoever has set a policy keeps it.
void limit_openmp_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
}

npu_tensor view_of(const Tensor& tensor, const char* name) {
  return {name,
          static_cast<npu_dtype>(tensor.dtype()),
          static_cast<std::uint32_t>(tensor.shape().size()),
          tensor.shape().data(),
          tensor.data(),
          tensor.bytes()};
}

}  // namespace

std::vector<std::string> backend_search_path() {
  std::vector<std::string> folders;
  if (const std::string folder = program_folder(); !folder.empty()) {
    folders.push_back(folder.substr(0, folder.rfind('/')) + "/lib/npu/backends");
  }
  if (const char* extra = std::getenv("NPU_BACKEND_PATH")) {
    std::string_view rest = extra;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return folders;
}

std::shared_ptr<const Backend> Backend::load(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Backend>, std::less<>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(name); found != loaded.end()) return found->second;
  if (!is_safe_name(name)) {
    throw Error(ErrorCode::kUnsupported,
                "'" + std::string(name) + "' is no backend name; expected a-z, 0-9, '_' and '-'");
  }
  const std::string file = "npu_backend_" + std::string(name) + ".so";
  std::string tried;
  for (const std::string& folder : backend_search_path()) {
    const std::string path = folder + "/" + file;
    if (::access(path.c_str(), F_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + folder;
      continue;
    }
    limit_openmp_spinning();
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = ::dlerror();
      refuse(path, "the backend does not load: " + text_of(reason));
    }
    auto backend = std::make_shared<Backend>();
    backend->api_ = checked_api(library, path);
    backend->path_ = path;
    npu_backend_description description{};
    npu_error error{};
    check(backend->api_->describe(&description, &error), error, std::string(name));
    backend->name_ = text_of(description.name);
    backend->version_ = text_of(description.version);
    backend->fingerprint_ = text_of(description.fingerprint);
    backend->capabilities_ = description.capabilities;
    if (backend->name_ != name) {
      refuse(path, "the backend calls itself '" + backend->name_ + "', expected '" +
                       std::string(name) + "'");
    }
    loaded.emplace(backend->name_, backend);
    return backend;
  }
  throw Error(ErrorCode::kUnsupported, "backend '" + std::string(name) + "' (" + file +
                                           ") is in none of: " + tried +
                                           "; set NPU_BACKEND_PATH to its folder");
}

DeviceBuffer::DeviceBuffer(std::shared_ptr<DeviceInstance> device, npu_buffer* buffer)
    : device_(std::move(device)), buffer_(buffer) {}

DeviceBuffer::~DeviceBuffer() { device_->backend().api().buffer_free(buffer_); }

npu_tensor DeviceBuffer::describe() const {
  npu_tensor description{};
  npu_error error{};
  const Backend& backend = device_->backend();
  check(backend.api().buffer_describe(buffer_, &description, &error), error, backend.name());
  if (description.dtype < NPU_FLOAT32 || description.dtype > NPU_COMPLEX128 ||
      (description.rank > 0 && description.shape == nullptr)) {
    throw Error(ErrorCode::kUnsupported,
                "backend '" + backend.name() + "' describes a buffer wrongly");
  }
  return description;
}

Tensor DeviceBuffer::to_host() const {
  const npu_tensor description = describe();
  Tensor tensor(static_cast<DType>(description.dtype),
                Shape(description.shape, description.shape + description.rank));
  npu_error error{};
  const Backend& backend = device_->backend();
  check(backend.api().buffer_export(buffer_, tensor.mutable_data(), tensor.bytes(), &error), error,
        backend.name());
  return tensor;
}

DeviceProgram::DeviceProgram(std::shared_ptr<DeviceInstance> device, npu_blob blob,
                             std::vector<NamedTensor> weights, std::size_t output_count,
                             std::size_t node_count)
    : device_(std::move(device)),
      blob_(blob),
      weights_(std::move(weights)),
      output_count_(output_count),
      node_count_(node_count) {
  std::vector<npu_tensor> views;
  for (const NamedTensor& weight : weights_)
    views.push_back(view_of(weight.tensor, weight.name.c_str()));
  const npu_backend_api& api = device_->backend().api();
  npu_error error{};
  const npu_status status = api.load(device_->get(), blob_.data, blob_.size, views.data(),
                                     views.size(), &program_, &error);
  if (status != NPU_OK) api.blob_free(&blob_);
  check(status, error, device_->backend().name());
}

DeviceProgram::~DeviceProgram() {
  const npu_backend_api& api = device_->backend().api();
  api.program_free(program_);
  api.blob_free(&blob_);
}

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::run(
    const std::vector<npu_buffer*>& inputs) const {
  std::vector<npu_buffer*> outputs(output_count_, nullptr);
  npu_error error{};
  const Backend& backend = device_->backend();
  const npu_status status = backend.api().run(program_, inputs.data(), inputs.size(),
                                              outputs.data(), outputs.size(), &error);
  check(status, error, backend.name());
  std::vector<std::shared_ptr<DeviceBuffer>> results;
  results.reserve(outputs.size());
  for (npu_buffer* output : outputs) {
    if (output == nullptr) {
      throw Error(ErrorCode::kUnsupported, "backend '" + backend.name() + "' left out a result");
    }
    results.push_back(std::make_shared<DeviceBuffer>(device_, output));
  }
  return results;
}

std::vector<std::uint64_t> DeviceProgram::node_times() const {
  const Backend& backend = device_->backend();
  if (backend.api().node_times == nullptr) return {};
  std::vector<std::uint64_t> times(node_count_, 0);
  npu_error error{};
  check(backend.api().node_times(program_, times.data(), times.size(), &error), error,
        backend.name());
  return times;
}

DeviceInstance::DeviceInstance(std::shared_ptr<const Backend> backend, npu_device* device)
    : backend_(std::move(backend)), device_(device) {}

DeviceInstance::~DeviceInstance() { backend_->api().close_device(device_); }

std::shared_ptr<DeviceInstance> DeviceInstance::open(std::shared_ptr<const Backend> backend,
                                                     const std::string& options) {
  npu_device* device = nullptr;
  npu_error error{};
  check(backend->api().open_device(options.c_str(), &device, &error), error, backend->name());
  return std::shared_ptr<DeviceInstance>(new DeviceInstance(std::move(backend), device));
}

std::unique_ptr<DeviceProgram> DeviceInstance::compile_and_load(const std::string& sub_ir,
                                                                std::vector<NamedTensor> weights,
                                                                std::size_t output_count,
                                                                std::size_t node_count) {
  std::vector<npu_tensor> views;
  for (const NamedTensor& weight : weights)
    views.push_back(view_of(weight.tensor, weight.name.c_str()));
  npu_blob blob{};
  npu_error error{};
  check(backend_->api().compile(device_, sub_ir.data(), sub_ir.size(), views.data(), views.size(),
                                "{}", &blob, &error),
        error, backend_->name());
  // A blob that holds its weights needs no other copy of them.
  if ((backend_->capabilities() & NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS) != 0) weights.clear();
  return std::make_unique<DeviceProgram>(shared_from_this(), blob, std::move(weights), output_count,
                                         node_count);
}

std::shared_ptr<DeviceBuffer> DeviceInstance::import_tensor(const npu_tensor& tensor) {
  npu_buffer* buffer = nullptr;
  npu_error error{};
  check(backend_->api().buffer_import(device_, &tensor, &buffer, &error), error, backend_->name());
  return std::make_shared<DeviceBuffer>(shared_from_this(), buffer);
}

std::shared_ptr<DeviceBuffer> DeviceInstance::import_tensor(const Tensor& tensor) {
  return import_tensor(view_of(tensor, ""));
}

void DeviceInstance::list_ops(
    const std::function<void(std::string_view, std::string_view)>& visit) {
  if (backend_->api().list_ops == nullptr) return;
  npu_error error{};
  const npu_op_visitor forward = [](void* context, const char* op_type, const char* kind) {
    (*static_cast<const std::function<void(std::string_view, std::string_view)>*>(context))(op_type,
                                                                                            kind);
  };
  auto* context = const_cast<void*>(static_cast<const void*>(&visit));
  check(backend_->api().list_ops(device_, forward, context, &error), error, backend_->name());
}

}  // namespace npu
