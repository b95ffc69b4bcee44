// SPDX-License-Identifier: Apache-2.0
// The calls of the interface as the cases make them: straight to the backend's table, since the
// host's own classes would hide what a backend does wrong. Each wrapper checks what the header
// promises of every call, so that any case finds it.
#include "conformance/harness/harness.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/backend.hpp"
#include "device/backend_table.hpp"
#include "device/plugin.hpp"
#include "device/tensor_views.hpp"
#include "npu/support/error.hpp"

namespace npu::conformance {
namespace {

std::string text_or_empty(const char* text) { return text != nullptr ? text : ""; }

// Bounds what a backend may answer, so that a wrong number does not end the check.
constexpr std::uint64_t kMostDevices = 64;
constexpr std::uint64_t kMostEntries = 256;

DeviceSheet read_facts(const npu_device_info& info) {
  DeviceSheet facts;
  facts.id = text_or_empty(info.id);
  facts.fingerprint = text_or_empty(info.fingerprint);
  facts.arch = text_or_empty(info.arch);
  facts.usable = info.usable != 0;
  for (std::uint64_t i = 0; info.dtypes != nullptr && i < std::min(info.dtype_count, kMostEntries);
       ++i) {
    const npu_dtype_info* dtype = info.dtypes[i];
    if (dtype != nullptr && dtype->dtype < static_cast<std::uint32_t>(kDTypeCount)) {
      const auto known = static_cast<DType>(dtype->dtype);
      facts.dtypes.push_back(known);
      if ((dtype->flags & NPU_DTYPE_STORAGE) != 0) facts.storage.push_back(known);
      if ((dtype->flags & NPU_DTYPE_ARITHMETIC) != 0) facts.arithmetic.push_back(known);
    }
  }
  for (std::uint64_t i = 0;
       info.memories != nullptr && i < std::min(info.memory_count, kMostEntries); ++i) {
    facts.memory_flags.push_back(info.memories[i] != nullptr ? info.memories[i]->flags : 0);
  }
  if ((info.known & NPU_KNOWN_COMPILES) != 0) {
    facts.concurrent_compiles = std::max(info.concurrent_compiles, 1U);
  }
  if ((info.known & NPU_KNOWN_IN_FLIGHT) != 0) {
    facts.programs_in_flight = std::max(info.max_programs_in_flight, 1U);
  }
  if ((info.known & NPU_KNOWN_QUEUES) != 0) facts.queues = std::max(info.max_queues, 1U);
  return facts;
}

void read_devices(Library& library) {
  if (library.table.device_info == nullptr) return;
  for (std::uint64_t i = 0; i < kMostDevices; ++i) {
    auto info = sized<npu_device_info>();
    auto error = sized<npu_error>();
    if (library.table.device_info(i, &info, &error) != NPU_OK) return;
    library.devices.push_back(read_facts(info));
  }
}

void ignore_log(void*, std::uint32_t, const char*) {}

}  // namespace

bool Library::has_feature(std::string_view feature) const {
  return std::find(features.begin(), features.end(), feature) != features.end();
}

npu_status append_bytes(void* context, const void* data, std::uint64_t size, npu_error*) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data),
                                             static_cast<std::size_t>(size));
  return NPU_OK;
}

npu_host test_host() {
  auto host = sized<npu_host>();
  host.abi_version = NPU_ABI_VERSION;
  host.log = ignore_log;
  return host;
}

namespace {

const npu_backend* ask_entry(const Library& library) {
  static const npu_host host = test_host();
  auto error = sized<npu_error>();
  const npu_backend* table = library.entry(&host, &error);
  if (table != nullptr) return table;
  throw Error(ErrorCode::kUnsupported,
              "the backend does not serve this host: " + std::string(error.text),
              {.file = library.path});
}

}  // namespace

Library open_library(const std::string& name) {
  Library library;
  library.name = name;
  library.path = Backend::find_file(name);
  if (library.path.empty()) {
    throw Error(ErrorCode::kUnsupported, "backend '" + name + "' (npu_backend_" + name +
                                             ".so) is not found; set NPU_BACKEND_PATH to its "
                                             "folder");
  }
  library.entry = find_backend_entry(open_plugin(kBackends, library.path), library.path);
  library.raw = ask_entry(library);
  std::memcpy(&library.table, library.raw,
              std::min<std::size_t>(sizeof library.table, library.raw->struct_size));
  auto info = sized<npu_backend_info>();
  auto error = sized<npu_error>();
  if (library.table.backend_info != nullptr &&
      library.table.backend_info(&info, &error) == NPU_OK) {
    library.version = text_or_empty(info.version);
    library.flags = info.flags;
    library.option_keys = text_or_empty(info.option_keys);
  }
  for (const char* const* at = library.table.features; at != nullptr && *at != nullptr; ++at) {
    library.features.emplace_back(*at);
  }
  read_devices(library);
  return library;
}

std::uint64_t tensor_bytes(const TensorSpec& tensor) {
  return Tensor(tensor.dtype, tensor.shape).bytes();
}

npu_buffer_desc buffer_desc(const TensorSpec& tensor) {
  auto desc = sized<npu_buffer_desc>();
  desc.dtype = static_cast<npu_dtype>(tensor.dtype);
  desc.rank = static_cast<std::uint32_t>(tensor.shape.size());
  desc.shape = tensor.shape.data();
  desc.bytes = tensor_bytes(tensor);
  return desc;
}

std::vector<npu_buffer*> handles(const std::vector<BufferPtr>& buffers) {
  std::vector<npu_buffer*> pointers;
  for (const BufferPtr& buffer : buffers) pointers.push_back(buffer.get());
  return pointers;
}

LoadedModel::LoadedModel(const npu_backend& api, std::string blob,
                         const std::vector<WeightSpec>& weights)
    : api_(api), blob_(std::move(blob)) {
  // Copies of its own, which are spoilt where the backend says that it no longer needs them.
  for (const WeightSpec& weight : weights) {
    Tensor copy(weight.tensor.dtype(), weight.tensor.shape());
    if (copy.bytes() != 0) std::memcpy(copy.mutable_data(), weight.tensor.data(), copy.bytes());
    weights_.push_back({weight.name, std::move(copy)});
  }
}

LoadedModel::~LoadedModel() {
  if (model_ != nullptr) api_.model_free(model_);
}

npu_status LoadedModel::load(npu_device* device, npu_error& error) {
  const TensorViews views(weights_);
  auto args = sized<npu_load_args>();
  args.blob = blob_.data();
  args.blob_size = blob_.size();
  args.weights = views.pointers.data();
  args.weight_count = views.pointers.size();
  auto info = sized<npu_model_info>();
  const npu_status status = api_.model_load(device, &args, &info, &model_, &error);
  if (status != NPU_OK) return status;
  if ((info.flags & NPU_RELEASES_BLOB) != 0) std::fill(blob_.begin(), blob_.end(), '\xff');
  if ((info.flags & NPU_RELEASES_WEIGHTS) != 0) {
    for (WeightSpec& weight : weights_) {
      if (weight.tensor.bytes() != 0) {
        std::memset(weight.tensor.mutable_data(), 0xff, weight.tensor.bytes());
      }
    }
  }
  return status;
}

const DeviceSheet& Harness::facts() const {
  for (const DeviceSheet& device : library.devices) {
    if (device.usable) return device;
  }
  throw NotApplicable("the backend has no usable device here");
}

DevicePtr Harness::open(const std::function<void(npu_open_args&)>& change,
                        const std::string& what) const {
  auto args = sized<npu_open_args>();
  args.device_id = facts().id.c_str();
  args.threads = 2;
  if (change) change(args);
  npu_device* device = nullptr;
  auto error = sized<npu_error>();
  require_ok(api.device_open(&args, &device, &error), error, what);
  found.require(device != nullptr, what + " succeeds and gives no device");
  return {device, api.device_close};
}

void Harness::check_error(npu_status status, const npu_error& error,
                          const std::string& what) const {
  if (status == NPU_OK) return;
  const std::string_view text(error.text, ::strnlen(error.text, sizeof error.text));
  found.expect(text.size() < sizeof error.text, what + " leaves a text without a NUL");
  found.expect(!text.empty(), what + " fails with " + status_name(status) + " and no text");
  found.expect(text.find('\n') == std::string_view::npos,
               what + " leaves a text of more than one line");
  found.expect(error.status == status, what + " returns " + status_name(status) + " and leaves " +
                                           status_name(error.status) + " in the error");
}

void Harness::require_ok(npu_status status, const npu_error& error, const std::string& what) const {
  found.require(status == NPU_OK, what + " fails with " + status_name(status) + ": " +
                                      std::string(error.text, ::strnlen(error.text, 300)));
}

Compiled Harness::compile(npu_device* device, const std::string& sub_ir,
                          const std::vector<WeightSpec>& weights, const char* options,
                          std::uint32_t ir_version) const {
  return compile_text(device, sub_ir, weights, options, ir_version, {});
}

Compiled Harness::compile_with(npu_device* device, const GraphSpec& graph,
                               const std::function<void(npu_compile_args&)>& change) const {
  return compile_text(device, sub_ir_text(graph), graph.weights, nullptr, NPU_IR_VERSION, change);
}

Compiled Harness::compile_text(npu_device* device, const std::string& sub_ir,
                               const std::vector<WeightSpec>& weights, const char* options,
                               std::uint32_t ir_version,
                               const std::function<void(npu_compile_args&)>& change) const {
  Compiled result;
  result.error = sized<npu_error>();
  auto writer = sized<npu_writer>();
  writer.context = &result.blob;
  writer.write = append_bytes;
  auto entry = sized<npu_entry>();
  entry.name = "main";
  entry.sub_ir = sub_ir.data();
  entry.sub_ir_size = sub_ir.size();
  const npu_entry* entries[] = {&entry};
  const TensorViews views(weights);
  auto args = sized<npu_compile_args>();
  args.entries = entries;
  args.entry_count = 1;
  args.weights = views.pointers.data();
  args.weight_count = views.pointers.size();
  args.options = options;
  args.ir_version = ir_version;
  args.blob = &writer;
  // A driver that compiles for long shows that it does.
  if (library.has_feature("cancel")) args.progress = beat_of_compile;
  if (change) change(args);
  result.status = api.compile(device, &args, &result.error);
  check_error(result.status, result.error, "compile");
  found.expect(result.status != NPU_OK || !result.blob.empty(),
               "compile succeeds and writes no blob");
  return result;
}

Compiled Harness::compile(npu_device* device, const GraphSpec& graph) const {
  return compile(device, sub_ir_text(graph), graph.weights);
}

std::unique_ptr<LoadedModel> Harness::load(npu_device* device, const std::string& blob,
                                           const std::vector<WeightSpec>& weights) const {
  const bool holds_weights = (library.flags & NPU_BLOB_HOLDS_WEIGHTS) != 0;
  auto model =
      std::make_unique<LoadedModel>(api, blob, holds_weights ? std::vector<WeightSpec>() : weights);
  auto error = sized<npu_error>();
  require_ok(model->load(device, error), error, "model_load");
  found.require(model->get() != nullptr, "model_load succeeds and gives no model");
  return model;
}

ProgramPtr Harness::create(npu_model* model) const {
  const auto args = sized<npu_program_args>();
  npu_program* program = nullptr;
  auto error = sized<npu_error>();
  require_ok(api.program_create(model, &args, &program, &error), error, "program_create");
  found.require(program != nullptr, "program_create succeeds and gives no program");
  return {program, api.program_free};
}

BufferPtr Harness::make_buffer(npu_device* device, const TensorSpec& tensor,
                               std::uint32_t usage) const {
  npu_buffer_desc desc = buffer_desc(tensor);
  desc.usage = usage;
  npu_buffer* buffer = nullptr;
  auto error = sized<npu_error>();
  require_ok(
      api.buffer_create(device, &desc, &buffer, &error), error,
      "buffer_create of " + std::string(dtype_name(tensor.dtype)) + " " + shape_text(tensor.shape));
  found.require(buffer != nullptr, "buffer_create succeeds and gives no buffer");
  return {buffer, api.buffer_free};
}

npu_status Harness::transfer(npu_buffer* buffer, void* data, std::uint64_t bytes, bool is_write,
                             npu_error& error) const {
  const auto function = is_write ? api.buffer_write : api.buffer_read;
  if (function != nullptr) {
    auto piece = sized<npu_transfer>();
    piece.bytes = bytes;
    piece.data = data;
    return function(buffer, &piece, &error);
  }
  void* mapped = nullptr;
  const npu_status status =
      api.buffer_map(buffer, is_write ? NPU_ACCESS_WRITE : NPU_ACCESS_READ, &mapped, &error);
  if (status != NPU_OK) return status;
  if (bytes != 0) std::memcpy(is_write ? mapped : data, is_write ? data : mapped, bytes);
  api.buffer_unmap(buffer);
  return NPU_OK;
}

npu_status Harness::write(npu_buffer* buffer, const Tensor& tensor, npu_error& error) const {
  return transfer(buffer, const_cast<std::byte*>(tensor.data()), tensor.bytes(), true, error);
}

void Harness::write(npu_buffer* buffer, const Tensor& tensor) const {
  auto error = sized<npu_error>();
  require_ok(write(buffer, tensor, error), error, "buffer_write");
}

Tensor Harness::read(npu_buffer* buffer, const TensorSpec& tensor) const {
  Tensor result(tensor.dtype, tensor.shape);
  auto error = sized<npu_error>();
  require_ok(transfer(buffer, result.mutable_data(), result.bytes(), false, error), error,
             "buffer_read");
  return result;
}

Instance make_instance(const Harness& harness, DevicePtr device, const GraphSpec& graph,
                       const std::string& blob, std::uint64_t seed) {
  Instance instance{.graph = graph,
                    .inputs = {},
                    .blob = blob,
                    .device = std::move(device),
                    .model = nullptr,
                    .program = {nullptr, harness.api.program_free},
                    .in = {},
                    .out = {}};
  npu_device* opened = instance.device.get();
  instance.model = harness.load(opened, blob, graph.weights);
  instance.program = harness.create(instance.model->get());
  for (const TensorSpec& input : graph.inputs) {
    instance.inputs.push_back(test_values(input, seed));
    instance.in.push_back(harness.make_buffer(opened, input, NPU_USAGE_INPUT));
    harness.write(instance.in.back().get(), instance.inputs.back());
  }
  for (const std::string& output : graph.outputs) {
    instance.out.push_back(harness.make_buffer(opened, graph.tensor(output), NPU_USAGE_OUTPUT));
  }
  return instance;
}

Instance make_sample(const Harness& harness) {
  DevicePtr device = harness.open();
  for (const DType dtype : harness.facts().dtypes) {
    for (const GraphSpec& graph : sample_graphs(dtype)) {
      const Compiled compiled = harness.compile(device.get(), graph);
      if (compiled.status == NPU_OK) {
        return make_instance(harness, std::move(device), graph, compiled.blob);
      }
      harness.found.expect(compiled.status == NPU_UNSUPPORTED,
                           "compile of " + graph.nodes.front().op + " fails with " +
                               status_name(compiled.status) +
                               ", not UNSUPPORTED: " + compiled.error.text);
    }
  }
  harness.found.require(false, "none of the small graphs of common ops compiles");
  throw CaseStopped();
}

npu_run_args run_args(const std::vector<npu_buffer*>& inputs,
                      const std::vector<npu_buffer*>& outputs) {
  auto args = sized<npu_run_args>();
  args.inputs = inputs.data();
  args.input_count = inputs.size();
  args.outputs = outputs.data();
  args.output_count = outputs.size();
  return args;
}

npu_status run(const Harness& harness, const Instance& instance, npu_error& error) {
  const std::vector<npu_buffer*> inputs = instance.input_handles();
  const std::vector<npu_buffer*> outputs = instance.output_handles();
  const npu_run_args args = run_args(inputs, outputs);
  return harness.api.run(instance.program.get(), &args, &error);
}

std::vector<Tensor> run_and_read(const Harness& harness, const Instance& instance) {
  auto error = sized<npu_error>();
  harness.require_ok(run(harness, instance, error), error, "run");
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < instance.out.size(); ++i) {
    results.push_back(
        harness.read(instance.out[i].get(), instance.graph.tensor(instance.graph.outputs[i])));
  }
  return results;
}

// A result has an error of its dtype, and sums of up to 45 products of numbers up to 16 in it.
Tolerance tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {1e-9, 1e-9};
    case DType::kFloat16:
      return {1e-2, 2e-2};
    case DType::kBFloat16:
      return {5e-2, 1e-1};
    default:
      return {1e-3, 1e-4};
  }
}

std::string status_name(npu_status status) {
  constexpr const char* kNames[] = {"OK",          "UNSUPPORTED",  "INVALID",  "MEMORY",
                                    "FAILED",      "CANCELLED",    "DEADLINE", "BUSY",
                                    "DEVICE_LOST", "INCOMPATIBLE", "INTERNAL", "END"};
  return status < std::size(kNames) ? kNames[status] : "status " + std::to_string(status);
}

}  // namespace npu::conformance
