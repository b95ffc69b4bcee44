// SPDX-License-Identifier: Apache-2.0
// A backend of version 4 behind the calls of version 3, in which the tests of the two backends are
// written: one call to load, results that run allocates, times that are asked for afterwards. What
// a backend checks, it is asked to check; nothing is checked here.
#pragma once

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "npu/backend.h"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu::test {

/// Dtype and shape of a tensor.
struct V3Type {
  npu4_dtype dtype = NPU4_FLOAT32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes() const {
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::uint64_t>(extent);
    return count * dtype_size(static_cast<DType>(dtype));
  }
};

/// What a compiled sub-IR has; blobs do not say it.
struct V3Signature {
  std::vector<V3Type> outputs;
  std::size_t nodes = 0;
};

}  // namespace npu::test

struct npu_device {
  npu4_device* device = nullptr;
};

struct npu_program {
  npu4_device* device = nullptr;
  npu4_model* model = nullptr;
  npu4_program* program = nullptr;
  npu::test::V3Signature signature;
  std::vector<npu4_span> nodes;
  std::vector<npu4_span> steps;
};

struct npu_buffer {
  npu4_buffer* buffer = nullptr;
  npu::test::V3Type type;
};

namespace npu::test {

/// The calls for one backend; `Tag` tells several apart.
template <typename Tag>
struct V3Calls {
  static inline const npu4_backend* backend = nullptr;
  static inline std::map<std::size_t, V3Signature> signatures;  ///< by digest of the blob
  static inline V3Signature last_signature;

  template <typename Struct>
  static Struct sized() {
    Struct made{};
    made.struct_size = sizeof made;
    return made;
  }

  static npu_status result(npu4_status status, const npu4_error& found, npu_error* error) {
    if (status != NPU4_OK && error != nullptr) {
      std::memset(error->text, 0, sizeof error->text);
      std::memcpy(error->text, found.text, ::strnlen(found.text, sizeof found.text - 1));
    }
    return static_cast<npu_status>(status);
  }

  static npu4_status collect(void* context, const void* data, std::uint64_t size, npu4_error*) {
    static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
    return NPU4_OK;
  }

  static npu_blob blob_of(const std::string& bytes) {
    const std::size_t size = (bytes.size() + 4095) / 4096 * 4096 + 4096;
    void* memory = std::aligned_alloc(4096, size);
    std::memcpy(memory, bytes.data(), bytes.size());
    return {memory, bytes.size()};
  }

  static npu_status describe(npu_backend_description* description, npu_error* error) {
    auto info = sized<npu4_backend_info>();
    auto device = sized<npu4_device_info>();
    auto found = sized<npu4_error>();
    npu4_status status = backend->backend_info(&info, &found);
    if (status == NPU4_OK) status = backend->device_info(0, &device, &found);
    if (status != NPU4_OK) return result(status, found, error);
    const bool holds = (info.flags & NPU4_BLOB_HOLDS_WEIGHTS) != 0;
    const bool any = (info.flags & NPU4_ANY_OP) != 0;
    const bool writes = (info.flags & NPU4_NEW_OUTPUTS) == 0;
    *description = {info.name, info.version, device.fingerprint,
                    (holds ? NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS : 0) |
                        (any ? NPU_CAPABILITY_ANY_OP : 0) |
                        (writes ? NPU_CAPABILITY_WRITES_OUTPUTS : 0)};
    return NPU_OK;
  }

  static npu_status open_device(const char* options, npu_device** device, npu_error* error) {
    auto args = sized<npu4_open_args>();
    std::string rest = options == nullptr ? "" : options;
    try {
      Json json = parse_json(rest, "options");
      if (const Json* threads = json.is_object() ? find_member(json, "threads") : nullptr) {
        args.threads = threads->is_number_integer() ? threads->get<std::uint32_t>() : ~0U;
        json.erase("threads");
        rest = json.dump();
      }
    } catch (const Error&) {  // for the backend to refuse
    }
    args.options = rest.c_str();
    auto found = sized<npu4_error>();
    npu4_device* opened = nullptr;
    const npu4_status status =
        backend->device_open(&args, device == nullptr ? nullptr : &opened, &found);
    if (status == NPU4_OK) *device = new npu_device{opened};
    return result(status, found, error);
  }

  static void close_device(npu_device* device) {
    if (device != nullptr) backend->device_close(device->device);
    delete device;
  }

  /// Tensors as an array of pointers.
  struct Tensors {
    Tensors(const npu_tensor* tensors, std::size_t count) {
      for (std::size_t i = 0; tensors != nullptr && i < count; ++i) {
        auto tensor = sized<npu4_tensor>();
        tensor.name = tensors[i].name;
        tensor.dtype = static_cast<npu4_dtype>(tensors[i].dtype);
        tensor.rank = tensors[i].rank;
        tensor.shape = tensors[i].shape;
        tensor.data = tensors[i].data;
        tensor.bytes = tensors[i].bytes;
        values.push_back(tensor);
      }
      for (const npu4_tensor& value : values) pointers.push_back(&value);
    }
    std::vector<npu4_tensor> values;
    std::vector<const npu4_tensor*> pointers;
  };

  static V3Signature signature_of(std::string_view sub_ir) {
    V3Signature signature;
    const Json json = parse_json(sub_ir, "sub-IR");
    for (const Json& output : json.at("graph_outputs")) {
      V3Type type;
      for (int i = 0; i < kDTypeCount; ++i) {
        if (output.at("dtype") == std::string(dtype_name(static_cast<DType>(i)))) {
          type.dtype = static_cast<npu4_dtype>(i);
        }
      }
      type.shape = output.at("shape").get<std::vector<std::int64_t>>();
      signature.outputs.push_back(type);
    }
    signature.nodes = json.at("nodes").size();
    return signature;
  }

  static npu_status compile(npu_device* device, const char* sub_ir, size_t sub_ir_size,
                            const npu_tensor* weights, size_t weight_count, const char* options,
                            npu_blob* blob, npu_error* error) {
    auto entry = sized<npu4_entry>();
    entry.name = "main";
    entry.sub_ir = sub_ir;
    entry.sub_ir_size = sub_ir_size;
    const npu4_entry* const entries[] = {&entry};
    const Tensors tensors(weights, weight_count);
    std::string bytes;
    auto writer = sized<npu4_writer>();
    writer.context = &bytes;
    writer.write = collect;
    auto args = sized<npu4_compile_args>();
    args.entries = entries;
    args.entry_count = 1;
    args.weights = weights == nullptr ? nullptr : tensors.pointers.data();
    args.weight_count = weight_count;
    args.options = options;
    args.ir_version = NPU4_IR_VERSION;
    args.blob = blob == nullptr ? nullptr : &writer;
    auto found = sized<npu4_error>();
    const npu4_status status =
        backend->compile(device == nullptr ? nullptr : device->device, &args, &found);
    if (status == NPU4_OK) {
      *blob = blob_of(bytes);
      last_signature = signature_of({sub_ir, sub_ir_size});
      signatures[std::hash<std::string>()(bytes)] = last_signature;
    }
    return result(status, found, error);
  }

  static void blob_free(npu_blob* blob) {
    if (blob == nullptr) return;
    std::free(const_cast<void*>(blob->data));
    *blob = {nullptr, 0};
  }

  static npu_status blob_report(npu_device* device, const void* blob, uint64_t blob_size,
                                npu_blob* report, npu_error* error) {
    std::string text;
    auto writer = sized<npu4_writer>();
    writer.context = &text;
    writer.write = collect;
    auto found = sized<npu4_error>();
    const npu4_status status =
        backend->blob_report(device == nullptr ? nullptr : device->device, blob, blob_size,
                             report == nullptr ? nullptr : &writer, &found);
    if (status == NPU4_OK) *report = blob_of(text);
    return result(status, found, error);
  }

  static npu_status load(npu_device* device, const void* blob, uint64_t blob_size,
                         const npu_tensor* weights, size_t weight_count, npu_program** program,
                         npu_error* error) {
    const Tensors tensors(weights, weight_count);
    auto args = sized<npu4_load_args>();
    args.blob = blob;
    args.blob_size = blob_size;
    args.weights = weights == nullptr ? nullptr : tensors.pointers.data();
    args.weight_count = weight_count;
    auto info = sized<npu4_model_info>();
    auto found = sized<npu4_error>();
    auto made = std::make_unique<npu_program>();
    made->device = device == nullptr ? nullptr : device->device;
    npu4_device* on = device == nullptr ? nullptr : device->device;
    npu4_status status =
        backend->model_load(on, &args, &info, program == nullptr ? nullptr : &made->model, &found);
    const auto program_args = sized<npu4_program_args>();
    if (status == NPU4_OK) {
      status = backend->program_create(made->model, &program_args, &made->program, &found);
      if (status != NPU4_OK) backend->model_free(made->model);
    }
    if (status != NPU4_OK) return result(status, found, error);
    const std::string bytes(static_cast<const char*>(blob), blob_size);
    const auto known = signatures.find(std::hash<std::string>()(bytes));
    made->signature = known == signatures.end() ? last_signature : known->second;
    if (known != signatures.end()) {
      made->nodes.resize(made->signature.nodes);
      made->steps.resize(step_count(on, blob, blob_size));
    }
    *program = made.release();
    return NPU_OK;
  }

  static std::size_t step_count(npu4_device* device, const void* blob, std::uint64_t size) {
    if (backend->blob_report == nullptr) return 0;
    std::string text;
    auto writer = sized<npu4_writer>();
    writer.context = &text;
    writer.write = collect;
    if (backend->blob_report(device, blob, size, &writer, nullptr) != NPU4_OK) return 0;
    const Json json = parse_json(text, "report");
    const Json* steps = find_member(json, "steps");
    return steps == nullptr ? 0 : steps->size();
  }

  static void program_free(npu_program* program) {
    if (program == nullptr) return;
    backend->program_free(program->program);
    backend->model_free(program->model);
    delete program;
  }

  static npu_status make_buffer(npu_device* device, V3Type type, std::uint64_t bytes,
                                npu_buffer** buffer, npu_error* error) {
    auto desc = sized<npu4_buffer_desc>();
    desc.dtype = type.dtype;
    desc.rank = static_cast<std::uint32_t>(type.shape.size());
    desc.shape = type.shape.data();
    desc.bytes = bytes;
    auto found = sized<npu4_error>();
    npu4_buffer* made = nullptr;
    const npu4_status status =
        backend->buffer_create(device == nullptr ? nullptr : device->device, &desc,
                               buffer == nullptr ? nullptr : &made, &found);
    if (status == NPU4_OK) *buffer = new npu_buffer{made, std::move(type)};
    return result(status, found, error);
  }

  static V3Type type_of(npu_dtype dtype, uint32_t rank, const int64_t* shape) {
    V3Type type{static_cast<npu4_dtype>(dtype), {}};
    if (shape != nullptr) type.shape.assign(shape, shape + rank);
    return type;
  }

  static npu_status buffer_allocate(npu_device* device, npu_dtype dtype, uint32_t rank,
                                    const int64_t* shape, npu_buffer** buffer, npu_error* error) {
    V3Type type = type_of(dtype, rank, shape);
    const std::uint64_t bytes = type.dtype < kDTypeCount ? type.bytes() : 0;
    if (shape == nullptr && rank != 0) return NPU_ERROR_INVALID;  // no vector holds that
    return make_buffer(device, std::move(type), bytes, buffer, error);
  }

  static npu_status buffer_import(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                                  npu_error* error) {
    npu_status status = make_buffer(device, type_of(tensor->dtype, tensor->rank, tensor->shape),
                                    tensor->bytes, buffer, error);
    if (status != NPU_OK) return status;
    auto transfer = sized<npu4_transfer>();
    transfer.bytes = tensor->bytes;
    transfer.data = const_cast<void*>(tensor->data);
    auto found = sized<npu4_error>();
    status = result(backend->buffer_write((*buffer)->buffer, &transfer, &found), found, error);
    if (status == NPU_OK) return status;
    buffer_free(*buffer);
    *buffer = nullptr;
    return status;
  }

  static npu_status buffer_export(const npu_buffer* buffer, void* data, uint64_t bytes,
                                  npu_error* error) {
    auto transfer = sized<npu4_transfer>();
    transfer.bytes = bytes;
    transfer.data = data;
    auto found = sized<npu4_error>();
    return result(
        backend->buffer_read(buffer == nullptr ? nullptr : buffer->buffer, &transfer, &found),
        found, error);
  }

  static npu_status buffer_describe(const npu_buffer* buffer, npu_tensor* description,
                                    npu_error* error) {
    void* data = nullptr;
    auto found = sized<npu4_error>();
    const npu4_status status = backend->buffer_map(buffer == nullptr ? nullptr : buffer->buffer,
                                                   NPU4_ACCESS_READ, &data, &found);
    if (status != NPU4_OK) return result(status, found, error);
    const V3Type& type = buffer->type;
    *description = {nullptr,
                    static_cast<npu_dtype>(type.dtype),
                    static_cast<std::uint32_t>(type.shape.size()),
                    type.shape.data(),
                    data,
                    type.bytes()};
    return NPU_OK;
  }

  static void buffer_free(npu_buffer* buffer) {
    if (buffer != nullptr) backend->buffer_free(buffer->buffer);
    delete buffer;
  }

  static npu_status run(npu_program* program, npu_buffer* const* inputs, size_t input_count,
                        npu_buffer** outputs, size_t output_count, npu_error* error) {
    auto args = sized<npu4_run_args>();
    std::vector<npu4_buffer*> in;
    for (std::size_t i = 0; inputs != nullptr && i < input_count; ++i) {
      in.push_back(inputs[i] == nullptr ? nullptr : inputs[i]->buffer);
    }
    npu_device device{program->device};
    std::vector<npu_buffer*> made(output_count, nullptr);
    std::vector<npu4_buffer*> out(output_count, nullptr);
    for (std::size_t i = 0; outputs != nullptr && i < output_count; ++i) {
      if (outputs[i] != nullptr) {
        out[i] = outputs[i]->buffer;
      } else if (i < program->signature.outputs.size()) {
        const V3Type& type = program->signature.outputs[i];
        if (make_buffer(&device, type, type.bytes(), &made[i], error) == NPU_OK) {
          out[i] = made[i]->buffer;
        }
      }
    }
    args.inputs = inputs == nullptr ? nullptr : in.data();
    args.input_count = input_count;
    args.outputs = outputs == nullptr ? nullptr : out.data();
    args.output_count = output_count;
    auto profile = sized<npu4_profile>();
    profile.nodes = program->nodes.data();
    profile.node_count = program->nodes.size();
    profile.steps = program->steps.data();
    profile.step_count = program->steps.size();
    args.profile = &profile;
    auto found = sized<npu4_error>();
    const npu4_status status = backend->run(program->program, &args, &found);
    for (std::size_t i = 0; i < output_count; ++i) {
      if (made[i] == nullptr) continue;
      if (status == NPU4_OK) {
        outputs[i] = made[i];
      } else {
        buffer_free(made[i]);
      }
    }
    return result(status, found, error);
  }

  static npu_status list_ops(npu_device* device, npu_op_visitor visit, void* context,
                             npu_error* error) {
    auto found = sized<npu4_error>();
    return result(
        backend->list_ops(device == nullptr ? nullptr : device->device, visit, context, &found),
        found, error);
  }

  static npu_status times(const std::vector<npu4_span>& spans, uint64_t* nanoseconds,
                          size_t count) {
    if (count != spans.size()) return NPU_ERROR_INVALID;
    for (std::size_t i = 0; i < count; ++i) nanoseconds[i] = spans[i].end - spans[i].begin;
    return NPU_OK;
  }
  static npu_status node_times(const npu_program* program, uint64_t* nanoseconds, size_t count,
                               npu_error*) {
    return times(program->nodes, nanoseconds, count);
  }
  static npu_status step_times(const npu_program* program, uint64_t* nanoseconds, size_t count,
                               npu_error*) {
    return times(program->steps, nanoseconds, count);
  }

  /// The calls for a backend that its entry function has given.
  static const npu_backend_api& table(const npu4_backend* given) {
    backend = given;
    static const npu_backend_api api = {NPU_BACKEND_ABI_VERSION,
                                        sizeof(npu_backend_api),
                                        describe,
                                        open_device,
                                        close_device,
                                        compile,
                                        blob_free,
                                        load,
                                        program_free,
                                        buffer_allocate,
                                        buffer_import,
                                        buffer_export,
                                        buffer_describe,
                                        buffer_free,
                                        run,
                                        list_ops,
                                        node_times,
                                        given->blob_report == nullptr ? nullptr : blob_report,
                                        step_times};
    return api;
  }
};

/// A host's table, as entry functions take it.
inline const npu4_host& test_host() {
  static const npu4_host host = [] {
    npu4_host made{};
    made.struct_size = sizeof made;
    made.abi_version = NPU4_ABI_VERSION;
    made.log = [](void*, std::uint32_t, const char*) {};
    return made;
  }();
  return host;
}

}  // namespace npu::test
