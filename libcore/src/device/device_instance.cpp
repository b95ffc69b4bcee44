// SPDX-License-Identifier: Apache-2.0
// Owners of what a backend hands out: devices, weights, models, programs, buffers. Each is freed
// once, in the order that npu/backend.h states, since each keeps what it needs alive.
//
// Every buffer at the boundary is made here, so its type is known without asking. In a run nothing
// is copied or allocated but the arrays of handles.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "device/blob_memory.hpp"
#include "device/compile_hooks.hpp"
#include "device/device_call.hpp"
#include "device/device_options.hpp"
#include "device/tap_views.hpp"
#include "device/tensor_views.hpp"
#include "npu/device/backend.hpp"
#include "npu/support/log.hpp"
#include "support/checked.hpp"

namespace npu {
namespace {

[[noreturn]] void no_memory_mapped(const Backend& backend) {
  break_contract(backend, "buffer_map", "it says that it mapped a buffer, but gave no memory");
}

}  // namespace

// ---- Buffers ----

DeviceBuffer::DeviceBuffer(std::shared_ptr<DeviceInstance> device, npu_buffer* buffer,
                           TensorType type, std::uint64_t bytes, bool is_coherent,
                           std::shared_ptr<const void> owner)
    : device_(std::move(device)),
      buffer_(buffer),
      type_(std::move(type)),
      bytes_(bytes),
      is_coherent_(is_coherent),
      owner_(std::move(owner)) {}

DeviceBuffer::~DeviceBuffer() {
  const npu_backend& api = device_->backend().api();
  if (is_mapped_) api.buffer_unmap(buffer_);
  api.buffer_free(buffer_);
}

std::byte* DeviceBuffer::host_memory() {
  if (is_mapped_) return mapped_;
  const npu_backend& api = device_->backend().api();
  if (!type_.layout.empty() || !is_coherent_ || api.buffer_map == nullptr) return nullptr;
  void* pointer = nullptr;
  npu_error error = empty_error();
  const npu_status status =
      api.buffer_map(buffer_, NPU_ACCESS_READ | NPU_ACCESS_WRITE, &pointer, &error);
  if (status == NPU_UNSUPPORTED) return nullptr;
  check_status(status, error, device_->backend());
  if (pointer == nullptr && bytes_ != 0) no_memory_mapped(device_->backend());
  is_mapped_ = true;
  mapped_ = static_cast<std::byte*>(pointer);
  return mapped_;
}

Tensor DeviceBuffer::to_host() const {
  Tensor tensor(type_.dtype, type_.shape);
  read(tensor.mutable_data());
  return tensor;
}

void DeviceBuffer::read(void* data) const {
  const npu_backend& api = device_->backend().api();
  npu_error error = empty_error();
  if (api.buffer_read != nullptr) {
    npu_transfer transfer = sized<npu_transfer>();
    transfer.bytes = bytes_;
    transfer.data = data;
    check_status(api.buffer_read(buffer_, &transfer, &error), error, device_->backend());
    return;
  }
  void* pointer = mapped_;
  if (!is_mapped_) {
    check_status(api.buffer_map(buffer_, NPU_ACCESS_READ, &pointer, &error), error,
                 device_->backend());
  }
  if (pointer == nullptr && bytes_ != 0) no_memory_mapped(device_->backend());
  if (bytes_ != 0) std::memcpy(data, pointer, bytes_);
  if (!is_mapped_) api.buffer_unmap(buffer_);
}

void DeviceBuffer::write(const void* data) const {
  const npu_backend& api = device_->backend().api();
  npu_error error = empty_error();
  if (api.buffer_write != nullptr) {
    npu_transfer transfer = sized<npu_transfer>();
    transfer.bytes = bytes_;
    transfer.data = const_cast<void*>(data);  // which the backend only reads
    check_status(api.buffer_write(buffer_, &transfer, &error), error, device_->backend());
    return;
  }
  void* pointer = mapped_;
  if (!is_mapped_) {
    check_status(api.buffer_map(buffer_, NPU_ACCESS_WRITE, &pointer, &error), error,
                 device_->backend());
  }
  if (pointer == nullptr && bytes_ != 0) no_memory_mapped(device_->backend());
  if (bytes_ != 0) std::memcpy(pointer, data, bytes_);
  if (!is_mapped_) api.buffer_unmap(buffer_);
}

Tensor DeviceBuffer::view(const std::shared_ptr<DeviceBuffer>& buffer) {
  const std::byte* memory = buffer->host_memory();
  if (memory == nullptr) return buffer->to_host();
  return Tensor(buffer->dtype(), buffer->shape(), std::shared_ptr<const std::byte>(buffer, memory));
}

// ---- Weights and models ----

namespace {

/// Throws if nothing can be loaded, since the device is elsewhere.
void require_present(const DeviceInstance& device) {
  if (!device.facts().is_absent) return;
  throw BackendError(NPU_UNSUPPORTED, "backend '" + device.backend().name() +
                                          "' has no usable device of arch '" + device.facts().arch +
                                          "' here: it compiles for one, and runs nothing");
}

}  // namespace

DeviceWeights::DeviceWeights(std::shared_ptr<DeviceInstance> device,
                             std::vector<NamedTensor> tensors)
    : device_(std::move(device)), tensors_(std::move(tensors)) {
  require_present(*device_);
  const Backend& backend = device_->backend();
  const TensorViews views(tensors_);
  npu_model_info info = sized<npu_model_info>();
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().weights_load(device_->get(), views.pointers.data(), views.pointers.size(),
                                      &info, &weights_, &error);
  });
  if (weights_ == nullptr) {
    break_contract(backend, "weights_load", "it says that it loaded weights, but gave none");
  }
  if ((info.flags & NPU_RELEASES_WEIGHTS) != 0) tensors_.clear();
}

DeviceWeights::~DeviceWeights() { device_->backend().api().weights_free(weights_); }

DeviceModel::DeviceModel(std::shared_ptr<DeviceInstance> device, Blob blob,
                         std::vector<NamedTensor> weights,
                         std::vector<std::shared_ptr<DeviceWeights>> shared)
    : device_(std::move(device)),
      blob_(std::move(blob)),
      weights_(std::move(weights)),
      shared_(std::move(shared)) {
  const Backend& backend = device_->backend();
  require_present(*device_);
  const TensorViews views(weights_);
  std::vector<npu_weights*> handles;
  for (const auto& weights_of_device : shared_) handles.push_back(weights_of_device->get());
  npu_load_args args = sized<npu_load_args>();
  args.blob = blob_.data.get();
  args.blob_size = blob_.size;
  args.weights = views.pointers.data();
  args.weight_count = views.pointers.size();
  args.shared = handles.data();
  args.shared_count = handles.size();
  npu_model_info info = sized<npu_model_info>();
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().model_load(device_->get(), &args, &info, &model_, &error);
  });
  if (model_ == nullptr) {
    break_contract(backend, "model_load", "it says that it loaded a blob, but gave no model");
  }
  // What the device has copies of need not be held twice.
  if ((info.flags & NPU_RELEASES_BLOB) != 0) blob_ = {};
  if ((info.flags & NPU_RELEASES_WEIGHTS) != 0) weights_.clear();
}

DeviceModel::~DeviceModel() { device_->backend().api().model_free(model_); }

// ---- Programs ----

DeviceProgram::DeviceProgram(std::shared_ptr<DeviceModel> model, ProgramSignature signature,
                             const std::string& entry, std::shared_ptr<DeviceBuffer> scratch)
    : model_(std::move(model)), signature_(std::move(signature)), scratch_(std::move(scratch)) {
  const Backend& backend = model_->device()->backend();
  npu_program_args args = sized<npu_program_args>();
  args.entry = entry.empty() ? nullptr : entry.c_str();
  args.flags = (signature_.is_timed ? NPU_PROGRAM_PROFILE : 0U) |
               (signature_.taps.empty() ? 0U : NPU_PROGRAM_TAPS);
  args.scratch = scratch_ != nullptr ? scratch_->get() : nullptr;
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().program_create(model_->get(), &args, &program_, &error);
  });
  if (program_ == nullptr) {
    break_contract(backend, "program_create", "it says that it made a program, but gave none");
  }
}

DeviceProgram::~DeviceProgram() { model_->device()->backend().api().program_free(program_); }

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::make_outputs() const {
  std::vector<std::shared_ptr<DeviceBuffer>> outputs;
  outputs.reserve(signature_.outputs.size());
  for (const TensorType& type : signature_.outputs) {
    outputs.push_back(model_->device()->allocate(type, NPU_USAGE_OUTPUT));
  }
  return outputs;
}

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::make_taps() const {
  std::vector<std::shared_ptr<DeviceBuffer>> taps;
  taps.reserve(signature_.taps.size());
  for (const TapType& tap : signature_.taps) {
    taps.push_back(model_->device()->allocate(tap.type.dtype, tap.type.shape));
  }
  return taps;
}

namespace {

/// Durations of spans; nothing if none was measured.
std::vector<std::uint64_t> durations(const std::vector<npu_span>& spans) {
  std::vector<std::uint64_t> times;
  bool measured = false;
  for (const npu_span& span : spans) {
    const bool has_time = span.flags != 0 && span.end >= span.begin;
    measured = measured || has_time;
    times.push_back(has_time ? span.end - span.begin : 0);
  }
  if (!measured) times.clear();
  return times;
}

}  // namespace

RunProfile::RunProfile(std::size_t nodes, std::size_t steps) : nodes_(nodes), steps_(steps) {
  profile_.struct_size = sizeof profile_;
  profile_.nodes = nodes_.data();
  profile_.node_count = nodes_.size();
  profile_.steps = steps_.data();
  profile_.step_count = steps_.size();
}

namespace {

/// The spans themselves; nothing unless all that were measured lie on the device's clock.
std::vector<npu_span> placed(const std::vector<npu_span>& spans) {
  const bool are_placed = std::all_of(spans.begin(), spans.end(), [](const npu_span& span) {
    const bool has_time = (span.flags & NPU_SPAN_DURATION) != 0 && span.end > span.begin;
    return !has_time || (span.flags & NPU_SPAN_PLACED) != 0;
  });
  return are_placed ? spans : std::vector<npu_span>();
}

}  // namespace

RunTimes RunProfile::times() const {
  return {durations(nodes_), placed(nodes_), durations(steps_)};
}

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::run(
    std::span<npu_buffer* const> inputs, const std::vector<std::shared_ptr<DeviceBuffer>>& outputs,
    RunTimes* times, std::size_t steps, std::uint64_t deadline_ns,
    std::span<const std::shared_ptr<DeviceBuffer>> taps) const {
  std::vector<std::shared_ptr<DeviceBuffer>> results = outputs.empty() ? make_outputs() : outputs;
  std::vector<npu_buffer*> handles;
  handles.reserve(results.size());
  for (const auto& result : results) handles.push_back(result->get());
  npu_run_args args = sized<npu_run_args>();
  args.inputs = inputs.data();
  args.input_count = inputs.size();
  args.outputs = handles.data();
  args.output_count = handles.size();
  args.deadline_ns = deadline_ns;
  const TapViews views(signature_.taps, taps);
  views.put(args);
  std::optional<RunProfile> profile;
  if (times != nullptr) args.profile = profile.emplace(signature_.nodes, steps).get();
  npu_error error = empty_error();
  const Backend& backend = model_->device()->backend();
  check_status(backend.api().run(program_, &args, &error), error, backend);
  if (profile) *times = profile->times();
  return results;
}

bool DeviceProgram::can_cancel() const noexcept {
  return model_->device()->backend().api().program_cancel != nullptr;
}

void DeviceProgram::cancel() const noexcept {
  if (can_cancel()) model_->device()->backend().api().program_cancel(program_);
}

// ---- Devices ----

DeviceInstance::DeviceInstance(std::shared_ptr<const Backend> backend, DeviceFacts facts,
                               npu_device* device)
    : backend_(std::move(backend)), facts_(std::move(facts)), device_(device) {}

DeviceInstance::~DeviceInstance() { backend_->api().device_close(device_); }

std::shared_ptr<DeviceInstance> DeviceInstance::open(std::shared_ptr<const Backend> backend,
                                                     const std::string& options) {
  const LogTimer timer(LogModule::kDevice, LogLevel::kDebug);
  const DeviceOptions wanted = read_device_options(*backend, options);
  const DeviceFacts& facts = backend->device(wanted.instance);
  npu_open_args args = sized<npu_open_args>();
  args.device_id = facts.is_absent ? facts.arch.c_str() : facts.id.c_str();
  args.flags = facts.is_absent ? NPU_OPEN_COMPILE_ONLY : 0U;
  args.threads = wanted.threads;
  args.memory_limit_bytes = wanted.memory_limit;
  args.options = wanted.own.c_str();
  npu_device* device = nullptr;
  call_patiently(*backend, [&](npu_error& error) {
    return backend->api().device_open(&args, &device, &error);
  });
  if (device == nullptr) {
    break_contract(*backend, "device_open", "it says that it opened a device, but gave none");
  }
  timer.done([&] {
    return "device '" + facts.id + "' of backend '" + backend->name() + "' opened with " + options;
  });
  std::shared_ptr<DeviceInstance> opened(new DeviceInstance(std::move(backend), facts, device));
  opened->memory_limit_ = args.memory_limit_bytes;
  return opened;
}

double host_time_ns(const ClockSample& before, const ClockSample& after, std::uint64_t device_ns) {
  const auto difference = [](std::uint64_t a, std::uint64_t b) {
    return a >= b ? static_cast<double>(a - b) : -static_cast<double>(b - a);
  };
  const double ticks = difference(after.device_ns, before.device_ns);
  const double rate = ticks > 0 ? difference(after.host_ns, before.host_ns) / ticks : 1;
  return static_cast<double>(before.host_ns) + rate * difference(device_ns, before.device_ns);
}

std::optional<ClockSample> DeviceInstance::clock() const {
  if (backend_->api().clock_sample == nullptr) return std::nullopt;
  npu_clock_sample sample = sized<npu_clock_sample>();
  npu_error error = empty_error();
  const npu_status status = backend_->api().clock_sample(device_, &sample, &error);
  if (status == NPU_UNSUPPORTED) return std::nullopt;
  check_status(status, error, *backend_);
  return ClockSample{sample.device_ns, sample.host_ns, sample.uncertainty_ns};
}

namespace {

npu_entry describe_entry(const std::string& name, const std::string& sub_ir) {
  npu_entry entry = sized<npu_entry>();
  entry.name = name.c_str();
  entry.sub_ir = sub_ir.data();
  entry.sub_ir_size = sub_ir.size();
  return entry;
}

}  // namespace

Blob DeviceInstance::compile(const std::string& sub_ir, const std::vector<NamedTensor>& weights,
                             const std::string& options, const CompileHooks& hooks) {
  const std::string name = "main";
  return compile_entries({describe_entry(name, sub_ir)}, weights, options, hooks);
}

Blob DeviceInstance::compile(const std::vector<ModelEntry>& entries,
                             const std::vector<NamedTensor>& weights, const std::string& options,
                             const CompileHooks& hooks) {
  std::vector<npu_entry> described;
  for (const ModelEntry& entry : entries) {
    described.push_back(describe_entry(entry.name, entry.sub_ir));
  }
  return compile_entries(described, weights, options, hooks);
}

Blob DeviceInstance::compile_entries(const std::vector<npu_entry>& entries,
                                     const std::vector<NamedTensor>& weights,
                                     const std::string& options, const CompileHooks& hooks) {
  const TensorViews views(weights);
  std::vector<const npu_entry*> pointers;
  for (const npu_entry& entry : entries) pointers.push_back(&entry);
  npu_compile_args args = sized<npu_compile_args>();
  args.entries = pointers.data();
  args.entry_count = pointers.size();
  args.weights = views.pointers.data();
  args.weight_count = views.pointers.size();
  args.options = options.c_str();
  args.ir_version = NPU_IR_VERSION;
  args.memory_limit_bytes = memory_limit_;
  npu_piece_cache pieces = sized<npu_piece_cache>();
  pass_hooks(hooks, args, pieces);
  Blob blob;
  call_patiently(*backend_, [&](npu_error& error) {
    BlobMemory memory(hooks.blob_folder);
    const npu_writer writer = memory.writer();
    args.blob = &writer;
    const npu_status status = backend_->api().compile(device_, &args, &error);
    if (status == NPU_OK) blob = memory.take();
    return status;
  });
  if (blob.size == 0)
    break_contract(*backend_, "compile", "it says that it compiled, but gave no blob");
  return blob;
}

Json DeviceInstance::blob_report(const Blob& blob) {
  if (backend_->api().blob_report == nullptr) return Json::object();
  BlobMemory memory;
  const npu_writer writer = memory.writer();
  npu_error error = empty_error();
  check_status(backend_->api().blob_report(device_, blob.data.get(), blob.size, &writer, &error),
               error, *backend_);
  if (memory.size() == 0) return Json::object();
  const std::string_view text(reinterpret_cast<const char*>(memory.data()), memory.size());
  Json json = parse_json(text, "report of backend '" + backend_->name() + "'");
  if (!json.is_object())
    break_contract(*backend_, "blob_report", "its report of a blob is no JSON object");
  return json;
}

BlobVerdict DeviceInstance::check_blob(const Blob& blob) const {
  if (backend_->api().blob_check == nullptr) return {};
  npu_blob_verdict verdict = sized<npu_blob_verdict>();
  npu_error error = empty_error();
  check_status(backend_->api().blob_check(device_, blob.data.get(), blob.size, &verdict, &error),
               error, *backend_);
  verdict.reason[sizeof verdict.reason - 1] = '\0';
  const std::string reason = text_of(verdict.reason);
  if (verdict.verdict == NPU_BLOB_FITS) return {};
  return {verdict.verdict == NPU_BLOB_SLOW ? BlobFit::kSlow : BlobFit::kOther,
          reason.empty() ? "it gives no reason" : reason};
}

std::shared_ptr<DeviceModel> DeviceInstance::load_model(
    Blob blob, std::vector<NamedTensor> weights,
    std::vector<std::shared_ptr<DeviceWeights>> shared) {
  return std::make_shared<DeviceModel>(shared_from_this(), std::move(blob), std::move(weights),
                                       std::move(shared));
}

std::unique_ptr<DeviceProgram> DeviceInstance::load(
    Blob blob, std::vector<NamedTensor> weights, ProgramSignature signature,
    std::vector<std::shared_ptr<DeviceWeights>> shared, std::shared_ptr<DeviceBuffer> scratch) {
  return std::make_unique<DeviceProgram>(
      load_model(std::move(blob), std::move(weights), std::move(shared)), std::move(signature),
      std::string(), std::move(scratch));
}

std::unique_ptr<DeviceProgram> DeviceInstance::compile_and_load(const std::string& sub_ir,
                                                                std::vector<NamedTensor> weights,
                                                                ProgramSignature signature) {
  Blob blob = compile(sub_ir, weights, "{}");
  // A blob that holds its weights needs no other copy of them.
  if (backend_->holds_weights()) weights.clear();
  return load(std::move(blob), std::move(weights), std::move(signature));
}

std::shared_ptr<DeviceWeights> DeviceInstance::load_weights(std::vector<NamedTensor> tensors) {
  const npu_backend& api = backend_->api();
  if (api.weights_load == nullptr || api.weights_free == nullptr) return nullptr;
  return std::make_shared<DeviceWeights>(shared_from_this(), std::move(tensors));
}

namespace {

/// The description of a row-major tensor; `shape` outlives it.
npu_buffer_desc describe_tensor(DType dtype, const Shape& shape) {
  const auto count = checked_element_count(shape);
  const auto bytes =
      count ? checked_multiply(*count, static_cast<std::int64_t>(dtype_size(dtype))) : std::nullopt;
  if (!bytes) throw Error(ErrorCode::kInvalidGraph, "shape " + shape_text(shape) + " is too large");
  npu_buffer_desc desc = sized<npu_buffer_desc>();
  desc.dtype = static_cast<npu_dtype>(dtype);
  desc.rank = static_cast<std::uint32_t>(shape.size());
  desc.shape = shape.data();
  desc.bytes = static_cast<std::uint64_t>(*bytes);
  return desc;
}

}  // namespace

std::shared_ptr<DeviceBuffer> DeviceInstance::allocate(DType dtype, const Shape& shape,
                                                       std::uint32_t usage, std::uint32_t memory) {
  return allocate(TensorType{dtype, shape}, usage, memory);
}

std::shared_ptr<DeviceBuffer> DeviceInstance::allocate(const TensorType& type, std::uint32_t usage,
                                                       std::uint32_t memory) {
  npu_buffer_desc desc = describe_tensor(type.dtype, type.shape);
  if (!type.layout.empty()) desc.layout = type.layout.c_str();
  desc.usage = usage;
  desc.memory = memory;
  npu_buffer* buffer = nullptr;
  npu_error error = empty_error();
  {
    const std::lock_guard lock(creating_);
    const npu_status status = backend_->api().buffer_create(device_, &desc, &buffer, &error);
    const bool is_listed = facts_.stores(desc.dtype);
    // In a layout, or in a memory of its own, a buffer may be refused.
    if (status == NPU_UNSUPPORTED && is_listed && desc.layout == nullptr && desc.memory == 0) {
      break_contract(*backend_, "dtypes",
                     "the device lists " + std::string(dtype_name(type.dtype)) +
                         ", but makes no buffer of it: " + text_of(error.text));
    }
    check_status(status, error, *backend_);
  }
  if (buffer == nullptr) {
    break_contract(*backend_, "buffer_create", "it says that it made a buffer, but gave none");
  }
  const bool is_coherent = memory == 0 ? facts_.is_coherent : memory == facts_.pinned_memory;
  return std::make_shared<DeviceBuffer>(shared_from_this(), buffer, type, desc.bytes, is_coherent);
}

std::shared_ptr<DeviceBuffer> DeviceInstance::make_scratch(std::uint64_t bytes) {
  if (bytes > INT64_MAX) throw Error(ErrorCode::kInfeasible, "a program needs too much scratch");
  return allocate(DType::kUInt8, {static_cast<std::int64_t>(bytes)}, NPU_USAGE_SCRATCH);
}

std::shared_ptr<DeviceBuffer> DeviceInstance::wrap(DType dtype, const Shape& shape,
                                                   const void* memory,
                                                   std::shared_ptr<const void> owner,
                                                   std::uint32_t access) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  if (!facts_.wraps_host || backend_->api().buffer_wrap == nullptr ||
      address % facts_.alignment != 0) {
    return nullptr;
  }
  const npu_buffer_desc desc = describe_tensor(dtype, shape);
  npu_external external = sized<npu_external>();
  external.type = NPU_HOST_POINTER;
  external.access = access;
  external.pointer = const_cast<void*>(memory);
  external.bytes = desc.bytes;
  npu_buffer* buffer = nullptr;
  npu_error error = empty_error();
  npu_status status = NPU_OK;
  {
    const std::lock_guard lock(creating_);
    status = backend_->api().buffer_wrap(device_, &desc, &external, &buffer, &error);
  }
  if (status == NPU_UNSUPPORTED) return nullptr;
  check_status(status, error, *backend_);
  if (buffer == nullptr) {
    break_contract(*backend_, "buffer_wrap", "it says that it wrapped memory, but gave no buffer");
  }
  return std::make_shared<DeviceBuffer>(shared_from_this(), buffer, TensorType{dtype, shape},
                                        desc.bytes, facts_.is_coherent, std::move(owner));
}

std::shared_ptr<DeviceBuffer> DeviceInstance::import_tensor(const TensorType& type,
                                                            const void* data) {
  auto buffer = allocate(type, 0);
  buffer->write(data);
  return buffer;
}

std::shared_ptr<DeviceBuffer> DeviceInstance::import_tensor(const Tensor& tensor) {
  return import_tensor({tensor.dtype(), tensor.shape()}, tensor.data());
}

void DeviceInstance::list_ops(
    const std::function<void(std::string_view, std::string_view)>& visit) {
  if (backend_->api().list_ops == nullptr) return;
  npu_error error = empty_error();
  const npu_op_visitor forward = [](void* context, const char* op_type, const char* kind) {
    (*static_cast<const std::function<void(std::string_view, std::string_view)>*>(context))(op_type,
                                                                                            kind);
  };
  auto* context = const_cast<void*>(static_cast<const void*>(&visit));
  check_status(backend_->api().list_ops(device_, forward, context, &error), error, *backend_);
}

}  // namespace npu
