// SPDX-License-Identifier: Apache-2.0
// One opened device: compiles, loads and makes buffers. Every buffer at the boundary is made here,
// so its type is known without asking.
#include "device/device_instance.hpp"

#include <optional>
#include <utility>

#include "device/blob_memory.hpp"
#include "device/compile_hooks.hpp"
#include "device/device_call.hpp"
#include "device/device_options.hpp"
#include "device/tensor_views.hpp"
#include "npu/support/log.hpp"
#include "support/checked.hpp"

namespace npu {

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
