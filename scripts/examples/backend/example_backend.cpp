// SPDX-License-Identifier: Apache-2.0
// The smallest useful backend: your own device for npu-compile and npu-run, in one shared object.
// It computes aten.relu, aten.neg, aten.add and aten.mul on float32, one element after another;
// replace the loops by your device's compiler and driver.
//
//   cmake -S . -B build && cmake --build build        # makes build/npu_backend_example.so
//   export NPU_BACKEND_PATH=$PWD/build
//   npu-tag --target example_target.json example_model.json | npu-partition |
//     npu-run --random-inputs 0 --verify cpu
//
// npu/backend.h is the whole contract, in C; this file follows its order. The sub-IR is a JSON
// document of npu-ir(5), which the library npu::core reads here; any other JSON parser would do.
#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "npu/backend.h"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"

// The host only sees pointers to these; their content is private to the backend.
struct npu_device {};
struct npu_buffer {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};
struct npu_program {
  npu::Graph graph;
  std::vector<const float*> weights;  // by tensor of the graph; null for what is computed
};

namespace {

npu_status fail(npu_error* error, npu_status status, const std::string& text) {
  const std::size_t size = std::min<std::size_t>(text.size(), NPU_ERROR_TEXT_SIZE - 1);
  std::memcpy(error->text, text.data(), size);
  error->text[size] = '\0';
  return status;
}

// No exception may leave the backend. Only "unsupported" makes the host try another device.
template <typename Body>
npu_status guarded(npu_error* error, Body&& body) noexcept {
  try {
    return body();
  } catch (const npu::Error& failure) {
    const bool refused = failure.code() == npu::ErrorCode::kUnsupported;
    return fail(error, refused ? NPU_ERROR_UNSUPPORTED : NPU_ERROR_INVALID, failure.message());
  } catch (const std::bad_alloc&) {
    return fail(error, NPU_ERROR_MEMORY, "out of memory");
  } catch (const std::exception& failure) {
    return fail(error, NPU_ERROR_FAILED, failure.what());
  }
}

std::size_t index(npu::TensorId id) { return static_cast<std::size_t>(id.value); }

// The function of an op's first and last operand; null for an op that this device lacks.
using Function = float (*)(float, float);
Function function_of(const std::string& op_type) {
  if (op_type == "aten.relu.default") return [](float a, float) { return std::max(a, 0.0F); };
  if (op_type == "aten.neg.default") return [](float a, float) { return -a; };
  if (op_type == "aten.add.Tensor") return [](float a, float b) { return a + b; };
  if (op_type == "aten.mul.Tensor") return [](float a, float b) { return a * b; };
  return nullptr;
}

// Throws if a node is not for this device. What run relies on is checked here, for a target is only
// a description, and a blob may come from anywhere.
void check(const npu::Graph& graph) {
  for (const npu::Node& node : graph.nodes()) {
    bool known = function_of(node.op_type) != nullptr && node.outputs.size() == 1 &&
                 node.inputs.size() == (node.op_type.ends_with(".Tensor") ? 2U : 1U) &&
                 (node.attrs().empty() || node.attrs() == npu::Json{{"alpha", 1}});
    for (const npu::TensorId id : node.inputs) {
      known = known && graph.tensor(id).dtype == npu::DType::kFloat32 &&
              graph.tensor(id).shape == graph.tensor(node.outputs.front()).shape;
    }
    if (known && graph.tensor(node.outputs.front()).dtype == npu::DType::kFloat32) continue;
    throw npu::Error(npu::ErrorCode::kUnsupported, "node '" + node.name + "' does not run here");
  }
}

npu_status describe(npu_backend_description* description, npu_error*) {
  // The cache looks programs up by the fingerprint: change it when old blobs must not run.
  *description = {"example", "1.0", "example 1.0", 0};
  return NPU_OK;
}

npu_status open_device(const char*, npu_device** device, npu_error*) {
  *device = new npu_device;
  return NPU_OK;
}
void close_device(npu_device* device) { delete device; }

// Compiling happens once, perhaps on another machine. Here the blob is the sub-IR itself.
npu_status compile(npu_device*, const char* sub_ir, size_t size, const npu_tensor*, size_t,
                   const char*, npu_blob* blob, npu_error* error) {
  return guarded(error, [&] {
    check(npu::read_valid_graph(std::string(sub_ir, size), "sub-IR"));
    char* memory = new char[size];
    std::memcpy(memory, sub_ir, size);
    *blob = {memory, size};
    return NPU_OK;
  });
}
void blob_free(npu_blob* blob) { delete[] static_cast<const char*>(blob->data); }

npu_status load(npu_device*, const void* blob, uint64_t size, const npu_tensor* weights,
                size_t weight_count, npu_program** program, npu_error* error) {
  return guarded(error, [&] {
    auto made = std::make_unique<npu_program>();
    // Blobs are untrusted; this reader refuses anything that is not a document.
    const std::string text(static_cast<const char*>(blob), static_cast<std::size_t>(size));
    made->graph = npu::read_valid_graph(text, "blob");
    check(made->graph);
    for (const npu::TensorInfo& tensor : made->graph.tensors()) {
      made->weights.push_back(nullptr);
      for (size_t i = 0; i < weight_count; ++i) {
        // The host keeps it in place until program_free.
        if (tensor.name == weights[i].name) {
          made->weights.back() = static_cast<const float*>(weights[i].data);
        }
      }
    }
    *program = made.release();
    return NPU_OK;
  });
}
void program_free(npu_program* program) { delete program; }

npu_status buffer_allocate(npu_device*, npu_dtype dtype, uint32_t rank, const int64_t* shape,
                           npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&] {
    if (dtype != NPU_FLOAT32) return fail(error, NPU_ERROR_UNSUPPORTED, "expected float32");
    auto made = std::make_unique<npu_buffer>();
    std::size_t count = 1;
    for (uint32_t i = 0; i < rank; ++i) {
      made->shape.push_back(shape[i]);
      count *= static_cast<std::size_t>(shape[i]);
    }
    made->values.resize(count);
    *buffer = made.release();
    return NPU_OK;
  });
}
npu_status buffer_import(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                         npu_error* error) {
  const npu_status status =
      buffer_allocate(device, tensor->dtype, tensor->rank, tensor->shape, buffer, error);
  if (status == NPU_OK && tensor->bytes != 0) {
    std::memcpy((*buffer)->values.data(), tensor->data, tensor->bytes);
  }
  return status;
}
npu_status buffer_export(const npu_buffer* buffer, void* data, uint64_t bytes, npu_error*) {
  if (bytes != 0) std::memcpy(data, buffer->values.data(), bytes);
  return NPU_OK;
}
npu_status buffer_describe(const npu_buffer* buffer, npu_tensor* description, npu_error*) {
  const auto rank = static_cast<uint32_t>(buffer->shape.size());
  const std::size_t bytes = buffer->values.size() * sizeof(float);
  *description = {nullptr, NPU_FLOAT32, rank, buffer->shape.data(), buffer->values.data(), bytes};
  return NPU_OK;
}
void buffer_free(npu_buffer* buffer) { delete buffer; }

npu_status run(npu_program* program, npu_buffer* const* inputs, size_t input_count,
               npu_buffer** outputs, size_t output_count, npu_error* error) {
  return guarded(error, [&] {
    const npu::Graph& graph = program->graph;
    std::vector<const float*> values = program->weights;
    std::vector<std::vector<float>> made(values.size());
    for (size_t i = 0; i < input_count; ++i) {
      values[index(graph.graph_inputs()[i])] = inputs[i]->values.data();
    }
    for (const npu::Node& node : graph.nodes()) {
      const Function function = function_of(node.op_type);
      const float* a = values[index(node.inputs.front())];
      const float* b = values[index(node.inputs.back())];
      const std::size_t to = index(node.outputs.front());
      made[to].resize(static_cast<std::size_t>(graph.tensors()[to].bytes()) / sizeof(float));
      for (std::size_t i = 0; i < made[to].size(); ++i) made[to][i] = function(a[i], b[i]);
      values[to] = made[to].data();
    }
    for (size_t i = 0; i < output_count; ++i) {
      const std::size_t from = index(graph.graph_outputs()[i]);
      outputs[i] = new npu_buffer{graph.tensors()[from].shape, made[from]};
    }
    return NPU_OK;
  });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const npu_backend_api* npu_backend_entry(
    uint32_t host_abi_version) {
  static const npu_backend_api api = {
      NPU_BACKEND_ABI_VERSION, sizeof(npu_backend_api), describe, open_device, close_device,
      compile, blob_free, load, program_free, buffer_allocate, buffer_import, buffer_export,
      buffer_describe, buffer_free, run,
      // list_ops, node_times, blob_report and step_times are optional.
      nullptr, nullptr, nullptr, nullptr};
  return host_abi_version >= NPU_BACKEND_ABI_VERSION ? &api : nullptr;
}
