// SPDX-License-Identifier: Apache-2.0
// Presents a backend of version 2 or 3 as one of version 4, so that the host knows that alone.
//
// Old tables know nothing of who calls: what begins without an object (infos, device_open) exists
// once per old backend, as instances of templates; everything else finds the old table through its
// object. Answers are checked here, where they are still the old ones: results that are missing or
// are not what the graph says, and blobs and programs that were promised but not given.
#include "device/old_backend.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "device/device_call.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {
namespace {

/// One old backend, and what its description says.
struct OldBackend {
  const npu_backend_api* api = nullptr;
  std::string name;
  std::string version;
  std::string fingerprint;
  std::string id;
  std::uint32_t capabilities = 0;
  npu4_memory_info memory = sized<npu4_memory_info>();
  const npu4_memory_info* memories[1] = {&memory};
};

struct OldDevice {
  const OldBackend* backend;
  npu_device* device;
  const npu_backend_api& api() const { return *backend->api; }
  bool writes_outputs() const {
    return (backend->capabilities & NPU_CAPABILITY_WRITES_OUTPUTS) != 0;
  }
};

struct OldModel {
  OldDevice* device = nullptr;
  const void* blob = nullptr;
  std::uint64_t blob_size = 0;
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  std::vector<npu_tensor> weights;
  npu_program* first = nullptr;  ///< taken by the first program
};

struct OldProgram {
  OldDevice* device;
  npu_program* program;
};

struct OldBuffer {
  OldDevice* device = nullptr;
  npu_dtype dtype = NPU_FLOAT32;
  Shape shape;
  std::uint64_t bytes = 0;
  npu_buffer* buffer = nullptr;  ///< null until something is in it
};

template <typename Old, typename New>
Old* old_of(New* object) {
  return reinterpret_cast<Old*>(object);
}

npu4_status fail(npu4_error* error, npu4_status status, std::string_view text) {
  if (error == nullptr) return status;
  error->status = status;
  const std::size_t size = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), size);
  error->text[size] = '\0';
  return status;
}

/// Statuses keep their numbers; those that nobody knew are the backend's own fault.
npu4_status new_status(npu_status status, const npu_error& old, npu4_error* error) {
  const auto number = static_cast<std::uint32_t>(status);
  if (number == NPU4_OK) return NPU4_OK;
  return fail(error, number <= NPU4_FAILED ? number : NPU4_INTERNAL,
              std::string_view(old.text, ::strnlen(old.text, sizeof old.text)));
}

/// Runs the body of a call; no exception leaves it.
template <typename Body>
npu4_status guarded(npu4_error* error, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(error, NPU4_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return fail(error, NPU4_INTERNAL, failure.what());
  }
}

// ---- Device ----

void device_close(npu4_device* handle) {
  std::unique_ptr<OldDevice> device(old_of<OldDevice>(handle));
  if (device != nullptr) device->api().close_device(device->device);
}

npu4_status open_on(const OldBackend& backend, const npu4_open_args* args, npu4_device** device,
                    npu4_error* error) {
  return guarded(error, [&] {
    Json options = args->options == nullptr ? Json::object() : parse_json(args->options, "options");
    options["threads"] = args->threads;
    auto opened = std::make_unique<OldDevice>(OldDevice{&backend, nullptr});
    npu_error old{};
    const npu4_status status = new_status(
        backend.api->open_device(options.dump().c_str(), &opened->device, &old), old, error);
    if (status != NPU4_OK) return status;
    if (opened->device == nullptr) {
      return fail(error, NPU4_INTERNAL, "it says that it opened a device, but gave none");
    }
    *device = reinterpret_cast<npu4_device*>(opened.release());
    return NPU4_OK;
  });
}

npu4_status list_ops(npu4_device* handle, npu4_op_visitor visit, void* context, npu4_error* error) {
  const OldDevice& device = *old_of<OldDevice>(handle);
  if (device.api().list_ops == nullptr) return NPU4_OK;
  npu_error old{};
  return new_status(device.api().list_ops(device.device, visit, context, &old), old, error);
}

// ---- Compile and load ----

std::vector<npu_tensor> old_tensors(const npu4_tensor* const* tensors, std::uint64_t count) {
  std::vector<npu_tensor> old;
  for (std::uint64_t i = 0; i < count; ++i) {
    const npu4_tensor& tensor = *tensors[i];
    old.push_back({tensor.name, static_cast<npu_dtype>(tensor.dtype), tensor.rank, tensor.shape,
                   tensor.data, tensor.bytes});
  }
  return old;
}

npu4_status compile(npu4_device* handle, const npu4_compile_args* args, npu4_error* error) {
  return guarded(error, [&] {
    const OldDevice& device = *old_of<OldDevice>(handle);
    const npu4_entry& entry = *args->entries[0];
    const auto weights = old_tensors(args->weights, args->weight_count);
    npu_blob blob{};
    npu_error old{};
    npu4_status status =
        new_status(device.api().compile(device.device, entry.sub_ir,
                                        static_cast<std::size_t>(entry.sub_ir_size), weights.data(),
                                        weights.size(), args->options, &blob, &old),
                   old, error);
    if (status != NPU4_OK) return status;
    if (blob.data == nullptr) return NPU4_OK;  // the host finds that nothing was written
    status = args->blob->write(args->blob->context, blob.data, blob.size, error);
    device.api().blob_free(&blob);
    return status;
  });
}

npu4_status blob_report(npu4_device* handle, const void* blob, std::uint64_t blob_size,
                        const npu4_writer* report, npu4_error* error) {
  const OldDevice& device = *old_of<OldDevice>(handle);
  if (device.api().blob_report == nullptr) return NPU4_OK;
  npu_blob text{};
  npu_error old{};
  npu4_status status =
      new_status(device.api().blob_report(device.device, blob, blob_size, &text, &old), old, error);
  if (status != NPU4_OK || text.data == nullptr) return status;
  status = report->write(report->context, text.data, text.size, error);
  device.api().blob_free(&text);
  return status;
}

npu4_status load_program(const OldModel& model, npu_program** program, npu4_error* error) {
  npu_error old{};
  const OldDevice& device = *model.device;
  const npu4_status status =
      new_status(device.api().load(device.device, model.blob, model.blob_size, model.weights.data(),
                                   model.weights.size(), program, &old),
                 old, error);
  if (status != NPU4_OK || *program != nullptr) return status;
  return fail(error, NPU4_INTERNAL, "it says that it loaded a blob, but gave no program");
}

npu4_status model_load(npu4_device* handle, const npu4_load_args* args, npu4_model_info* /*info*/,
                       npu4_model** model, npu4_error* error) {
  return guarded(error, [&] {
    auto loaded = std::make_unique<OldModel>();
    loaded->device = old_of<OldDevice>(handle);
    loaded->blob = args->blob;
    loaded->blob_size = args->blob_size;
    loaded->weights = old_tensors(args->weights, args->weight_count);
    // For a second program: the names and shapes of arguments end with this call.
    for (const npu_tensor& tensor : loaded->weights) {
      loaded->names.emplace_back(tensor.name);
      loaded->shapes.emplace_back(tensor.shape, tensor.shape + tensor.rank);
    }
    for (std::size_t i = 0; i < loaded->weights.size(); ++i) {
      loaded->weights[i].name = loaded->names[i].c_str();
      loaded->weights[i].shape = loaded->shapes[i].data();
    }
    const npu4_status status = load_program(*loaded, &loaded->first, error);
    if (status == NPU4_OK) *model = reinterpret_cast<npu4_model*>(loaded.release());
    return status;
  });
}

void model_free(npu4_model* handle) {
  const std::unique_ptr<OldModel> model(old_of<OldModel>(handle));
  if (model != nullptr && model->first != nullptr) model->device->api().program_free(model->first);
}

npu4_status program_create(npu4_model* handle, const npu4_program_args* /*args*/,
                           npu4_program** program, npu4_error* error) {
  return guarded(error, [&] {
    OldModel& model = *old_of<OldModel>(handle);
    auto made = std::make_unique<OldProgram>(OldProgram{model.device, nullptr});
    made->program = std::exchange(model.first, nullptr);
    const npu4_status status =
        made->program != nullptr ? NPU4_OK : load_program(model, &made->program, error);
    if (status == NPU4_OK) *program = reinterpret_cast<npu4_program*>(made.release());
    return status;
  });
}

void program_free(npu4_program* handle) {
  const std::unique_ptr<OldProgram> program(old_of<OldProgram>(handle));
  if (program != nullptr) program->device->api().program_free(program->program);
}

// ---- Buffers ----

npu4_status buffer_create(npu4_device* handle, const npu4_buffer_desc* desc, npu4_buffer** buffer,
                          npu4_error* error) {
  return guarded(error, [&] {
    auto made = std::make_unique<OldBuffer>();
    made->device = old_of<OldDevice>(handle);
    made->dtype = static_cast<npu_dtype>(desc->dtype);
    made->shape.assign(desc->shape, desc->shape + desc->rank);
    made->bytes = desc->bytes;
    *buffer = reinterpret_cast<npu4_buffer*>(made.release());
    return NPU4_OK;
  });
}

void buffer_free(npu4_buffer* handle) {
  const std::unique_ptr<OldBuffer> buffer(old_of<OldBuffer>(handle));
  if (buffer != nullptr && buffer->buffer != nullptr) {
    buffer->device->api().buffer_free(buffer->buffer);
  }
}

/// Takes the place of what was in a buffer.
void replace(OldBuffer& buffer, npu_buffer* by) {
  if (buffer.buffer != nullptr) buffer.device->api().buffer_free(buffer.buffer);
  buffer.buffer = by;
}

npu4_status allocate(OldBuffer& buffer, npu4_error* error) {
  if (buffer.buffer != nullptr) return NPU4_OK;
  npu_error old{};
  const OldDevice& device = *buffer.device;
  const npu4_status status =
      new_status(device.api().buffer_allocate(device.device, buffer.dtype,
                                              static_cast<std::uint32_t>(buffer.shape.size()),
                                              buffer.shape.data(), &buffer.buffer, &old),
                 old, error);
  if (status != NPU4_OK || buffer.buffer != nullptr) return status;
  return fail(error, NPU4_INTERNAL, "it says that it allocated a buffer, but gave none");
}

npu4_status buffer_write(npu4_buffer* handle, const npu4_transfer* transfer, npu4_error* error) {
  OldBuffer& buffer = *old_of<OldBuffer>(handle);
  if (transfer->offset != 0 || transfer->bytes != buffer.bytes) {
    return fail(error, NPU4_UNSUPPORTED, "old backends copy whole tensors only");
  }
  const npu_tensor tensor{"",
                          buffer.dtype,
                          static_cast<std::uint32_t>(buffer.shape.size()),
                          buffer.shape.data(),
                          transfer->data,
                          buffer.bytes};
  npu_buffer* made = nullptr;
  npu_error old{};
  const OldDevice& device = *buffer.device;
  const npu4_status status =
      new_status(device.api().buffer_import(device.device, &tensor, &made, &old), old, error);
  if (status != NPU4_OK) return status;
  if (made == nullptr) {
    return fail(error, NPU4_INTERNAL, "it says that it imported a tensor, but gave no buffer");
  }
  replace(buffer, made);
  return NPU4_OK;
}

npu4_status buffer_read(npu4_buffer* handle, const npu4_transfer* transfer, npu4_error* error) {
  OldBuffer& buffer = *old_of<OldBuffer>(handle);
  if (transfer->offset != 0 || transfer->bytes != buffer.bytes) {
    return fail(error, NPU4_UNSUPPORTED, "old backends copy whole tensors only");
  }
  const npu4_status status = allocate(buffer, error);
  if (status != NPU4_OK) return status;
  npu_error old{};
  return new_status(
      buffer.device->api().buffer_export(buffer.buffer, transfer->data, transfer->bytes, &old), old,
      error);
}

std::string type_text(const npu_tensor& tensor, bool same_rank) {
  const auto dtype = static_cast<DType>(tensor.dtype);
  return std::string(dtype_name(dtype)) + " " +
         (same_rank ? shape_text(Shape(tensor.shape, tensor.shape + tensor.rank))
                    : "of rank " + std::to_string(tensor.rank)) +
         " (" + std::to_string(tensor.bytes) + " bytes)";
}

/// Asks what an old buffer is, and whether that is what it was made for. No extent is read behind
/// the rank that is known.
npu4_status describe(const OldBuffer& buffer, npu_buffer* old_buffer, const std::string& which,
                     npu_tensor& found, npu4_error* error) {
  npu_error old{};
  const npu4_status status =
      new_status(buffer.device->api().buffer_describe(old_buffer, &found, &old), old, error);
  if (status != NPU4_OK) return status;
  const bool same_rank = found.rank == buffer.shape.size();
  if (found.dtype < NPU_FLOAT32 || found.dtype > NPU_COMPLEX128 ||
      (same_rank && found.rank != 0 && found.shape == nullptr)) {
    return fail(error, NPU4_INTERNAL, "it describes " + which + " wrongly");
  }
  if (found.dtype == buffer.dtype && same_rank && found.bytes == buffer.bytes &&
      std::equal(buffer.shape.begin(), buffer.shape.end(), found.shape)) {
    return NPU4_OK;
  }
  const npu_tensor expected{
      "",      buffer.dtype, static_cast<std::uint32_t>(buffer.shape.size()), buffer.shape.data(),
      nullptr, buffer.bytes};
  return fail(
      error, NPU4_INTERNAL,
      which + " is " + type_text(found, same_rank) + ", expected " + type_text(expected, true));
}

npu4_status buffer_map(npu4_buffer* handle, std::uint32_t /*access*/, void** pointer,
                       npu4_error* error) {
  return guarded(error, [&] {
    OldBuffer& buffer = *old_of<OldBuffer>(handle);
    npu4_status status = allocate(buffer, error);
    if (status != NPU4_OK) return status;
    npu_tensor found{};
    status = describe(buffer, buffer.buffer, "a buffer", found, error);
    if (status != NPU4_OK) return status;
    if (found.data == nullptr && buffer.bytes != 0) {
      return fail(error, NPU4_UNSUPPORTED, "the host does not see this device's memory");
    }
    *pointer = const_cast<void*>(found.data);
    return NPU4_OK;
  });
}

void buffer_unmap(npu4_buffer* /*buffer*/) {}

// ---- Run ----

/// Makes the results of a run, where the backend allocated them, the content of the host's buffers.
npu4_status take_results(const npu4_run_args& args, const std::vector<npu_buffer*>& results,
                         npu4_error* error) {
  npu4_status worst = NPU4_OK;
  for (std::size_t i = 0; i < results.size(); ++i) {
    OldBuffer& buffer = *old_of<OldBuffer>(args.outputs[i]);
    npu_tensor found{};
    if (buffer.device->writes_outputs()) {
      if (results[i] == buffer.buffer) continue;
      return fail(error, NPU4_INTERNAL, "it replaced a result's buffer with another");
    }
    // All are owned before one is judged, so that none is lost.
    replace(buffer, results[i]);
    if (worst != NPU4_OK) continue;
    if (results[i] == nullptr) {
      worst = fail(error, NPU4_INTERNAL, "it left out result " + std::to_string(i));
    } else {
      worst = describe(buffer, results[i], "result " + std::to_string(i), found, error);
    }
  }
  return worst;
}

/// Times as spans that begin at 0.
void fill_spans(npu4_span* spans, std::uint64_t count, const std::vector<std::uint64_t>& times) {
  for (std::uint64_t i = 0; i < count; ++i) spans[i] = {0, times[i], NPU4_SPAN_DURATION};
}

npu4_status fill_profile(const OldProgram& program, const npu4_profile& profile,
                         npu4_error* error) {
  const npu_backend_api& api = program.device->api();
  npu_error old{};
  npu4_status status = NPU4_OK;
  if (api.node_times != nullptr && profile.node_count != 0) {
    std::vector<std::uint64_t> times(profile.node_count);
    status =
        new_status(api.node_times(program.program, times.data(), times.size(), &old), old, error);
    if (status != NPU4_OK) return status;
    fill_spans(profile.nodes, profile.node_count, times);
  }
  // Version 2 has no times of steps.
  const bool has_steps = api.abi_version >= 3 && api.step_times != nullptr;
  if (has_steps && profile.step_count != 0) {
    std::vector<std::uint64_t> times(profile.step_count);
    status =
        new_status(api.step_times(program.program, times.data(), times.size(), &old), old, error);
    if (status != NPU4_OK) return status;
    fill_spans(profile.steps, profile.step_count, times);
  }
  return NPU4_OK;
}

npu4_status run(npu4_program* handle, const npu4_run_args* args, npu4_error* error) {
  return guarded(error, [&] {
    const OldProgram& program = *old_of<OldProgram>(handle);
    std::vector<npu_buffer*> inputs;
    std::vector<npu_buffer*> outputs;
    npu4_status status = NPU4_OK;
    for (std::uint64_t i = 0; i < args->input_count && status == NPU4_OK; ++i) {
      OldBuffer& input = *old_of<OldBuffer>(args->inputs[i]);
      status = allocate(input, error);
      inputs.push_back(input.buffer);
    }
    for (std::uint64_t i = 0; i < args->output_count && status == NPU4_OK; ++i) {
      OldBuffer& output = *old_of<OldBuffer>(args->outputs[i]);
      if (program.device->writes_outputs()) status = allocate(output, error);
      outputs.push_back(program.device->writes_outputs() ? output.buffer : nullptr);
    }
    if (status != NPU4_OK) return status;
    npu_error old{};
    status = new_status(program.device->api().run(program.program, inputs.data(), inputs.size(),
                                                  outputs.data(), outputs.size(), &old),
                        old, error);
    if (status != NPU4_OK) return status;
    status = take_results(*args, outputs, error);
    if (status != NPU4_OK || args->profile == nullptr) return status;
    return fill_profile(program, *args->profile, error);
  });
}

// ---- One table per old backend ----

std::array<OldBackend, kMostOldBackends> old_backends;

npu4_status describe_once(OldBackend& backend, npu4_error* error) {
  if (!backend.name.empty()) return NPU4_OK;
  npu_backend_description description{};
  npu_error old{};
  const npu4_status status = new_status(backend.api->describe(&description, &old), old, error);
  if (status != NPU4_OK) return status;
  backend.name = text_of(description.name);
  backend.version = text_of(description.version);
  backend.fingerprint = text_of(description.fingerprint);
  backend.capabilities = description.capabilities;
  backend.id = backend.name + ":0";
  backend.memory.name = "default";
  backend.memory.flags = NPU4_HOST_MAPPABLE | NPU4_HOST_COHERENT;
  return NPU4_OK;
}

template <std::size_t Index>
npu4_status backend_info(npu4_backend_info* info, npu4_error* error) {
  return guarded(error, [&] {
    OldBackend& backend = old_backends[Index];
    const npu4_status status = describe_once(backend, error);
    if (status != NPU4_OK) return status;
    info->name = backend.name.c_str();
    info->version = backend.version.c_str();
    info->ir_version_min = info->ir_version_max = NPU4_IR_VERSION;
    const std::uint32_t capabilities = backend.capabilities;
    info->flags = 0;
    if ((capabilities & NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS) != 0) {
      info->flags |= NPU4_BLOB_HOLDS_WEIGHTS;
    }
    if ((capabilities & NPU_CAPABILITY_ANY_OP) != 0) info->flags |= NPU4_ANY_OP;
    if ((capabilities & NPU_CAPABILITY_WRITES_OUTPUTS) == 0) info->flags |= NPU4_NEW_OUTPUTS;
    return NPU4_OK;
  });
}

template <std::size_t Index>
npu4_status device_info(std::uint64_t index, npu4_device_info* info, npu4_error* error) {
  return guarded(error, [&]() -> npu4_status {
    OldBackend& backend = old_backends[Index];
    const npu4_status status = describe_once(backend, error);
    if (status != NPU4_OK) return status;
    if (index != 0) return NPU4_END;
    info->id = backend.id.c_str();
    info->name = backend.name.c_str();
    info->vendor = info->arch = "";
    info->driver = backend.version.c_str();
    info->fingerprint = backend.fingerprint.c_str();
    info->kind = NPU4_DEVICE_OTHER;
    info->usable = 1;
    info->memories = backend.memories;
    info->memory_count = 1;
    return NPU4_OK;
  });
}

template <std::size_t Index>
npu4_status device_open(const npu4_open_args* args, npu4_device** device, npu4_error* error) {
  return open_on(old_backends[Index], args, device, error);
}

template <std::size_t Index>
npu4_backend make_table() {
  npu4_backend table = sized<npu4_backend>();
  table.abi_version = NPU4_ABI_VERSION;
  table.backend_info = backend_info<Index>;
  table.device_info = device_info<Index>;
  table.device_open = device_open<Index>;
  table.device_close = device_close;
  table.compile = compile;
  table.model_load = model_load;
  table.model_free = model_free;
  table.program_create = program_create;
  table.program_free = program_free;
  table.buffer_create = buffer_create;
  table.buffer_free = buffer_free;
  table.run = run;
  table.buffer_write = buffer_write;
  table.buffer_read = buffer_read;
  table.buffer_map = buffer_map;
  table.buffer_unmap = buffer_unmap;
  table.blob_report = blob_report;
  table.list_ops = list_ops;
  return table;
}

template <std::size_t... Index>
std::array<npu4_backend, sizeof...(Index)> make_tables(std::index_sequence<Index...>) {
  return {make_table<Index>()...};
}

const std::array<npu4_backend, kMostOldBackends>& old_tables() {
  static const auto tables = make_tables(std::make_index_sequence<kMostOldBackends>());
  return tables;
}

}  // namespace

const npu4_backend* adapt_old_backend(const npu_backend_api& api) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  for (std::size_t i = 0; i < kMostOldBackends; ++i) {
    if (old_backends[i].api == nullptr) old_backends[i].api = &api;
    if (old_backends[i].api == &api) return &old_tables()[i];
  }
  return nullptr;
}

bool is_adapted(const npu4_backend& table) {
  const auto& tables = old_tables();
  return std::any_of(tables.begin(), tables.end(),
                     [&](const npu4_backend& known) { return &known == &table; });
}

}  // namespace npu
