// SPDX-License-Identifier: Apache-2.0
// Finds and loads backends, and wraps the C ABI in owners. A backend that lacks a function, has
// another ABI version or writes nonsense is refused with a message; backends stay loaded, since
// libraries below them (OpenMP, libtorch) do not survive unloading.
//
// A backend of NPU_BACKEND_PATH is somebody else's, so a child process loads it and asks for its
// description first (probe.hpp); the backends of the install are trusted, since loading libtorch
// twice would double the start of every run.
#include "npu/device/backend.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "device/library_folders.hpp"
#include "device/probe.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/log.hpp"
#include "npu/support/text.hpp"

namespace npu {
namespace {

constexpr std::uint32_t kOldestAbiVersion = 2;
/// No tensor has more; a backend's number is compared with it before a single extent is read.
constexpr std::uint32_t kHighestRank = 64;

std::string backend_file(std::string_view name) {
  return "npu_backend_" + std::string(name) + ".so";
}

[[noreturn]] void refuse(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::kUnsupported, text, {.file = path});
}

/// Only "unsupported" says that another device may do better; a number that nobody knows does not.
ErrorCode code_of(npu_status status) {
  switch (static_cast<int>(status)) {
    case NPU_ERROR_UNSUPPORTED:
      return ErrorCode::kUnsupported;
    case NPU_ERROR_INVALID:
      return ErrorCode::kInvalidGraph;
    case NPU_ERROR_MEMORY:
      return ErrorCode::kInfeasible;
    default:
      return ErrorCode::kFailed;
  }
}

void check(npu_status status, const npu_error& error, const std::string& backend) {
  if (status == NPU_OK) return;
  // The text comes from outside: take no more than the array holds.
  const std::string text =
      printable_text(std::string_view(error.text, ::strnlen(error.text, sizeof error.text)));
  throw Error(code_of(status),
              "backend '" + backend + "': " + (text.empty() ? "failed without a message" : text));
}

// A backend's string, which may be null.
std::string text_of(const char* text) { return text == nullptr ? "" : printable_text(text); }

[[noreturn]] void lies(const Backend& backend, const std::string& text) {
  throw Error(ErrorCode::kFailed, "backend '" + backend.name() + "' " + text);
}

// The table of a backend that was built before step_times, with that missing. Backends stay loaded,
// and so do these.
const npu_backend_api* without_step_times(const npu_backend_api& old) {
  static std::mutex mutex;
  static std::map<const npu_backend_api*, npu_backend_api> tables;
  const std::lock_guard lock(mutex);
  npu_backend_api& table = tables[&old];
  std::memcpy(&table, &old, offsetof(npu_backend_api, step_times));
  table.step_times = nullptr;
  return &table;
}

const npu_backend_api* checked_api(void* library, const std::string& path) {
  using Entry = const npu_backend_api* (*)(std::uint32_t);
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, NPU_BACKEND_ENTRY_NAME));
  if (entry == nullptr)
    refuse(path, "no npu-tools backend: it does not export " NPU_BACKEND_ENTRY_NAME);
  const npu_backend_api* api = entry(NPU_BACKEND_ABI_VERSION);
  const std::string expected = std::to_string(NPU_BACKEND_ABI_VERSION);
  // Newest first; a backend answers with its own version, or with null if it is too new.
  for (std::uint32_t asked = NPU_BACKEND_ABI_VERSION;
       api == nullptr && asked-- > kOldestAbiVersion;) {
    api = entry(asked);
  }
  if (api == nullptr) refuse(path, "the backend does not serve ABI version " + expected);
  if (api->abi_version < kOldestAbiVersion || api->abi_version > NPU_BACKEND_ABI_VERSION) {
    refuse(path, "the backend has ABI version " + std::to_string(api->abi_version) + ", expected " +
                     expected);
  }
  const std::size_t size = api->abi_version == NPU_BACKEND_ABI_VERSION
                               ? sizeof(npu_backend_api)
                               : offsetof(npu_backend_api, step_times);
  if (api->struct_size < size) {
    refuse(path, "the backend's function table has " + std::to_string(api->struct_size) +
                     " bytes, expected " + std::to_string(size));
  }
  if (api->abi_version != NPU_BACKEND_ABI_VERSION) api = without_step_times(*api);
  if (!api->describe || !api->open_device || !api->close_device || !api->compile ||
      !api->blob_free || !api->load || !api->program_free || !api->buffer_allocate ||
      !api->buffer_import || !api->buffer_export || !api->buffer_describe || !api->buffer_free ||
      !api->run) {
    refuse(path, "the backend's function table lacks a required function");
  }
  return api;
}

void* open_library(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    refuse(path, "the backend does not load: " + text_of(reason));
  }
  return library;
}

npu_backend_description description_of(const npu_backend_api& api, const std::string& name) {
  npu_backend_description description{};
  npu_error error{};
  check(api.describe(&description, &error), error, name);
  return description;
}

// Backends bring OpenMP. GNU's workers spin at barriers for milliseconds before they sleep, which
// makes a run ten times slower as soon as another process wants a core. The library reads the
// variable when it is loaded; whoever has set a policy keeps it.
void limit_openmp_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) ::setenv("GOMP_SPINCOUNT", "10000", 0);
}

Shape shape_of(const Backend& backend, const npu_tensor& description) {
  Shape shape(description.shape, description.shape + description.rank);
  for (const std::int64_t extent : shape) {
    if (extent < 0) lies(backend, "describes a buffer of shape " + shape_text(shape));
  }
  return shape;
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
  return library_folders("backends", "NPU_BACKEND_PATH");
}

std::string Backend::find_file(std::string_view name) {
  if (!is_library_name(name)) return {};
  for (const std::string& folder : backend_search_path()) {
    std::string path = folder + "/" + backend_file(name);
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return {};
}

std::shared_ptr<const Backend> Backend::load(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Backend>, std::less<>> loaded;
  const std::lock_guard lock(mutex);
  if (const auto found = loaded.find(name); found != loaded.end()) return found->second;
  if (!is_library_name(name)) {
    throw Error(ErrorCode::kUnsupported,
                "'" + std::string(name) + "' is no backend name; expected a-z, 0-9, '_' and '-'");
  }
  const std::string file = backend_file(name);
  std::string tried;
  const std::vector<std::string> folders = backend_search_path();
  for (const std::string& folder : folders) {
    const std::string path = folder + "/" + file;
    if (::access(path.c_str(), F_OK) != 0) {
      tried += (tried.empty() ? "" : ", ") + folder;
      log(LogModule::kDevice, LogLevel::kDebug, [&] { return "no " + file + " in " + folder; });
      continue;
    }
    const LogTimer timer(LogModule::kDevice);
    limit_openmp_spinning();
    if (folder != install_folder("backends")) {
      const LogTimer probing(LogModule::kDevice, LogLevel::kDebug);
      if (!is_regular_file(path)) refuse(path, "is not a regular file, expected a shared object");
      const std::string fault = probe_load(
          [&] { description_of(*checked_api(open_library(path), path), std::string(name)); });
      if (!fault.empty()) refuse(path, "the backend " + fault);
      probing.done([&] {
        return path + ": comes from NPU_BACKEND_PATH, so a child process loaded it first";
      });
    }
    auto backend = std::make_shared<Backend>();
    backend->api_ = checked_api(open_library(path), path);
    backend->path_ = path;
    const npu_backend_description description = description_of(*backend->api_, std::string(name));
    backend->name_ = text_of(description.name);
    backend->version_ = text_of(description.version);
    backend->fingerprint_ = text_of(description.fingerprint);
    backend->capabilities_ = description.capabilities;
    if (backend->name_ != name) {
      refuse(path, "the backend calls itself '" + backend->name_ + "', expected '" +
                       std::string(name) + "'");
    }
    loaded.emplace(backend->name_, backend);
    timer.done([&] {
      return "backend '" + backend->name_ + "' " + backend->version_ + " loaded from " + path;
    });
    log(LogModule::kDevice, LogLevel::kDebug, [&] {
      return "backend '" + backend->name_ + "': ABI version " +
             std::to_string(backend->api_->abi_version) + ", fingerprint " + backend->fingerprint_;
    });
    return backend;
  }
  throw Error(ErrorCode::kUnsupported,
              "backend '" + std::string(name) + "' (" + file + ") is in none of: " + tried +
                  (!knows_program_file() ? " (/proc does not say where the program lies)" : "") +
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
    lies(backend, "describes a buffer wrongly");
  }
  if (description.rank > kHighestRank) {
    lies(backend, "describes a buffer of rank " + std::to_string(description.rank) +
                      ", expected at most " + std::to_string(kHighestRank));
  }
  return description;
}

Tensor DeviceBuffer::to_host() const {
  const npu_tensor description = describe();
  Tensor tensor(static_cast<DType>(description.dtype), shape_of(device_->backend(), description));
  npu_error error{};
  const Backend& backend = device_->backend();
  check(backend.api().buffer_export(buffer_, tensor.mutable_data(), tensor.bytes(), &error), error,
        backend.name());
  return tensor;
}

Tensor DeviceBuffer::view(const std::shared_ptr<DeviceBuffer>& buffer) {
  const npu_tensor description = buffer->describe();
  if (description.data == nullptr) return buffer->to_host();
  const auto* data = static_cast<const std::byte*>(description.data);
  return Tensor(static_cast<DType>(description.dtype),
                shape_of(buffer->device_->backend(), description),
                std::shared_ptr<const std::byte>(buffer, data));
}

DeviceProgram::DeviceProgram(std::shared_ptr<DeviceInstance> device, Blob blob,
                             std::vector<NamedTensor> weights, std::size_t output_count,
                             std::size_t node_count)
    : device_(std::move(device)),
      blob_(std::move(blob)),
      weights_(std::move(weights)),
      output_count_(output_count),
      node_count_(node_count) {
  std::vector<npu_tensor> views;
  for (const NamedTensor& weight : weights_)
    views.push_back(view_of(weight.tensor, weight.name.c_str()));
  const Backend& backend = device_->backend();
  npu_error error{};
  check(backend.api().load(device_->get(), blob_.data.get(), blob_.size, views.data(), views.size(),
                           &program_, &error),
        error, backend.name());
  if (program_ == nullptr) lies(backend, "says that it loaded a blob, but gave no program");
}

DeviceProgram::~DeviceProgram() { device_->backend().api().program_free(program_); }

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::run(
    const std::vector<npu_buffer*>& inputs,
    const std::vector<std::shared_ptr<DeviceBuffer>>& reuse) const {
  std::vector<npu_buffer*> outputs(output_count_, nullptr);
  for (std::size_t i = 0; i < reuse.size(); ++i) outputs[i] = reuse[i]->get();
  npu_error error{};
  const Backend& backend = device_->backend();
  const npu_status status = backend.api().run(program_, inputs.data(), inputs.size(),
                                              outputs.data(), outputs.size(), &error);
  check(status, error, backend.name());
  for (std::size_t i = 0; i < reuse.size(); ++i) {
    if (outputs[i] != reuse[i]->get()) lies(backend, "replaced a result's buffer with another");
  }
  if (!reuse.empty()) return reuse;
  // All are owned before the first is judged, so that none is lost.
  std::vector<std::shared_ptr<DeviceBuffer>> results(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i] != nullptr) results[i] = std::make_shared<DeviceBuffer>(device_, outputs[i]);
  }
  for (const auto& result : results) {
    if (result == nullptr) lies(backend, "left out a result");
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

std::vector<std::uint64_t> DeviceProgram::step_times(std::size_t steps) const {
  const Backend& backend = device_->backend();
  if (backend.api().step_times == nullptr) return {};
  std::vector<std::uint64_t> times(steps, 0);
  npu_error error{};
  check(backend.api().step_times(program_, times.data(), times.size(), &error), error,
        backend.name());
  return times;
}

DeviceInstance::DeviceInstance(std::shared_ptr<const Backend> backend, npu_device* device)
    : backend_(std::move(backend)), device_(device) {}

DeviceInstance::~DeviceInstance() { backend_->api().close_device(device_); }

std::shared_ptr<DeviceInstance> DeviceInstance::open(std::shared_ptr<const Backend> backend,
                                                     const std::string& options) {
  const LogTimer timer(LogModule::kDevice, LogLevel::kDebug);
  npu_device* device = nullptr;
  npu_error error{};
  check(backend->api().open_device(options.c_str(), &device, &error), error, backend->name());
  if (device == nullptr) lies(*backend, "says that it opened a device, but gave none");
  timer.done([&] { return "device of backend '" + backend->name() + "' opened with " + options; });
  return std::shared_ptr<DeviceInstance>(new DeviceInstance(std::move(backend), device));
}

namespace {

/// Gives memory of a backend back when the last owner is gone.
std::shared_ptr<const std::byte> own_blob(std::shared_ptr<const Backend> backend, npu_blob blob) {
  if (blob.data == nullptr) return nullptr;
  return {static_cast<const std::byte*>(blob.data),
          [backend = std::move(backend), blob](const std::byte*) mutable {
            backend->api().blob_free(&blob);
          }};
}

}  // namespace

Blob DeviceInstance::compile(const std::string& sub_ir, const std::vector<NamedTensor>& weights,
                             const std::string& options) {
  std::vector<npu_tensor> views;
  for (const NamedTensor& weight : weights)
    views.push_back(view_of(weight.tensor, weight.name.c_str()));
  npu_blob blob{};
  npu_error error{};
  check(backend_->api().compile(device_, sub_ir.data(), sub_ir.size(), views.data(), views.size(),
                                options.c_str(), &blob, &error),
        error, backend_->name());
  if (blob.data == nullptr || blob.size == 0)
    lies(*backend_, "says that it compiled, but gave no blob");
  return {own_blob(backend_, blob), blob.size};
}

Json DeviceInstance::blob_report(const Blob& blob) {
  if (backend_->api().blob_report == nullptr) return Json::object();
  npu_blob report{};
  npu_error error{};
  check(backend_->api().blob_report(device_, blob.data.get(), blob.size, &report, &error), error,
        backend_->name());
  const auto bytes = own_blob(backend_, report);
  if (bytes == nullptr) return Json::object();
  const std::string_view text(reinterpret_cast<const char*>(bytes.get()), report.size);
  Json json = parse_json(text, "report of backend '" + backend_->name() + "'");
  if (!json.is_object()) lies(*backend_, "gives a report that is no JSON object");
  return json;
}

std::unique_ptr<DeviceProgram> DeviceInstance::load(Blob blob, std::vector<NamedTensor> weights,
                                                    std::size_t output_count,
                                                    std::size_t node_count) {
  return std::make_unique<DeviceProgram>(shared_from_this(), std::move(blob), std::move(weights),
                                         output_count, node_count);
}

std::unique_ptr<DeviceProgram> DeviceInstance::compile_and_load(const std::string& sub_ir,
                                                                std::vector<NamedTensor> weights,
                                                                std::size_t output_count,
                                                                std::size_t node_count) {
  Blob blob = compile(sub_ir, weights, "{}");
  // A blob that holds its weights needs no other copy of them.
  if ((backend_->capabilities() & NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS) != 0) weights.clear();
  return load(std::move(blob), std::move(weights), output_count, node_count);
}

bool DeviceInstance::writes_outputs() const noexcept {
  return (backend_->capabilities() & NPU_CAPABILITY_WRITES_OUTPUTS) != 0;
}

std::shared_ptr<DeviceBuffer> DeviceInstance::allocate(DType dtype, const Shape& shape) {
  npu_buffer* buffer = nullptr;
  npu_error error{};
  check(backend_->api().buffer_allocate(device_, static_cast<npu_dtype>(dtype),
                                        static_cast<std::uint32_t>(shape.size()), shape.data(),
                                        &buffer, &error),
        error, backend_->name());
  if (buffer == nullptr) lies(*backend_, "says that it allocated a buffer, but gave none");
  return std::make_shared<DeviceBuffer>(shared_from_this(), buffer);
}

std::shared_ptr<DeviceBuffer> DeviceInstance::import_tensor(const npu_tensor& tensor) {
  npu_buffer* buffer = nullptr;
  npu_error error{};
  check(backend_->api().buffer_import(device_, &tensor, &buffer, &error), error, backend_->name());
  if (buffer == nullptr) lies(*backend_, "says that it imported a tensor, but gave no buffer");
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
