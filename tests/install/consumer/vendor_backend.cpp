// SPDX-License-Identifier: Apache-2.0
// A small backend as a vendor writes it: outside the tree, against the installed package.
//
// It runs aten.relu, aten.neg and aten.add (Tensor, same shapes) on float32. A blob is a magic
// number, the sub-IR and the packed weights; load uses all of it in place. The library npu::core
// reads the sub-IR; a vendor may use any other JSON parser, since
// npu/backend.h is all that the two sides share.
//
// VENDOR_FAULT makes it misbehave, for the tests of what the host does then: crash, exit, exit-0,
// print, abi, table, name, shape, rank, dtype, bytes, status, silent, no-blob, no-program,
// no-buffer, text, refuse; exit-compile, exit-load and exit-run, which call exit(0) there; and
// thread-memory and thread-fault, which throw in a thread of a run.
// VENDOR_REFUSE=OP refuses partitions that have a node of that op. VENDOR_FAR=1 keeps buffers where
// the host cannot see them. A node whose name starts with "meet" returns only once two of them run
// at the same time.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "npu/backend.h"
#include "npu/ir/json_reader.hpp"
#include "npu/support/error.hpp"

struct npu_device {};
struct npu_buffer {
  std::vector<std::int64_t> shape;
  npu_dtype dtype = NPU_FLOAT32;
  std::vector<char> data;
};
struct npu_program {
  npu::Graph graph;
  std::vector<const float*> weights;  ///< by tensor, in the blob
  std::vector<std::uint64_t> nanoseconds;
};

namespace {

constexpr std::string_view kMagic = "vendor 1";
constexpr std::size_t kAlignment = 64;

bool has_fault(const char* name) {
  const char* fault = std::getenv("VENDOR_FAULT");
  return fault != nullptr && std::strcmp(fault, name) == 0;
}

/// Runs when the library is loaded, before anybody can ask for its version.
struct AtLoad {
  AtLoad() {
    if (has_fault("crash")) std::raise(SIGSEGV);
    if (has_fault("exit")) std::_Exit(3);
    if (has_fault("exit-0")) std::exit(0);
    if (has_fault("print")) std::puts("the vendor greets");
  }
} at_load;

npu_status fail(npu_error* error, npu_status status, const std::string& text) {
  if (error != nullptr) {
    const std::size_t size = std::min<std::size_t>(text.size(), NPU_ERROR_TEXT_SIZE - 1);
    std::memcpy(error->text, text.data(), size);
    error->text[size] = '\0';
  }
  return status;
}

template <typename Body>
npu_status guarded(npu_error* error, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return fail(error, NPU_ERROR_MEMORY, "out of memory");
  } catch (const npu::Error& failure) {  // of the reader
    const bool memory = failure.code() == npu::ErrorCode::kInfeasible;
    return fail(error, memory ? NPU_ERROR_MEMORY : NPU_ERROR_INVALID, failure.message());
  } catch (const std::exception& failure) {
    return fail(error, NPU_ERROR_FAILED, failure.what());
  } catch (...) {
    return fail(error, NPU_ERROR_FAILED, "an unknown error");
  }
}

std::size_t aligned(std::size_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t count_of(const npu::Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::size_t index_of(npu::TensorId id) { return static_cast<std::size_t>(id.value); }

/// Why this device does not run a node; empty if it does. Everything is checked that run relies on:
/// a target is only a description, and may lack a rule.
std::string why_not(const npu::Graph& graph, const npu::Node& node) {
  const bool is_add = node.op_type == "aten.add.Tensor";
  const bool known =
      is_add || node.op_type == "aten.relu.default" || node.op_type == "aten.neg.default";
  if (!known) return "is not for this device";
  if (node.inputs.size() != (is_add ? 2U : 1U) || node.outputs.size() != 1) {
    return "has another number of tensors than this device takes";
  }
  for (const auto& [key, value] : node.attrs().items()) {
    if (!value.is_null() && (key != "alpha" || value != 1)) return "has the argument '" + key + "'";
  }
  const npu::TensorInfo& result = graph.tensor(node.outputs.front());
  if (result.dtype != npu::DType::kFloat32) return "gives no float32";
  for (const npu::TensorId id : node.inputs) {
    const npu::TensorInfo& operand = graph.tensor(id);
    if (operand.dtype != npu::DType::kFloat32) return "reads '" + operand.name + "', no float32";
    if (operand.shape != result.shape) {
      return "reads '" + operand.name + "', whose shape is not the result's";
    }
  }
  return "";
}

std::string text_of(const npu::Node& node, const std::string& reason) {
  return "node '" + node.name + "' (" + node.op_type + ") " + reason;
}

npu_status describe(npu_backend_description* description, npu_error*) {
  *description = {has_fault("name") ? "somebody" : "vendor", "1.0", "vendor 1.0 any CPU",
                  NPU_CAPABILITY_BLOB_HOLDS_WEIGHTS};
  return NPU_OK;
}

npu_status open_device(const char*, npu_device** device, npu_error*) {
  *device = new npu_device;
  return NPU_OK;
}
void close_device(npu_device* device) { delete device; }

npu_status compile(npu_device*, const char* sub_ir, size_t sub_ir_size, const npu_tensor* weights,
                   size_t weight_count, const char*, npu_blob* blob, npu_error* error) {
  return guarded(error, [&]() -> npu_status {
    if (has_fault("no-blob")) return NPU_OK;
    if (has_fault("exit-compile")) std::exit(0);
    if (has_fault("text")) {
      if (error != nullptr) std::memset(error->text, 0xff, sizeof error->text);
      return NPU_ERROR_UNSUPPORTED;
    }
    const std::string text(sub_ir, sub_ir_size);
    const npu::Graph graph = npu::read_valid_graph(text, "sub-IR");
    const char* refused = std::getenv("VENDOR_REFUSE");
    for (const npu::Node& node : graph.nodes()) {
      std::string reason = why_not(graph, node);
      if (has_fault("refuse") || (refused != nullptr && node.op_type == refused)) {
        reason = "is not for this device";
      }
      if (!reason.empty()) return fail(error, NPU_ERROR_UNSUPPORTED, text_of(node, reason));
    }
    std::string packed(kMagic);
    const std::uint64_t size = sub_ir_size;
    packed.append(reinterpret_cast<const char*>(&size), sizeof size);
    packed += text;
    for (const npu::TensorInfo& tensor : graph.tensors()) {
      if (tensor.kind != npu::TensorKind::kWeight) continue;
      const npu_tensor* found = nullptr;
      for (size_t i = 0; i < weight_count; ++i) {
        if (tensor.name == weights[i].name) found = &weights[i];
      }
      if (found == nullptr || tensor.dtype != npu::DType::kFloat32) {
        return fail(error, NPU_ERROR_INVALID, "weight '" + tensor.name + "' is not float32");
      }
      packed.resize(aligned(packed.size()), '\0');
      packed.append(static_cast<const char*>(found->data), found->bytes);
    }
    void* memory = std::malloc(packed.size());
    if (memory == nullptr) return fail(error, NPU_ERROR_MEMORY, "out of memory");
    std::memcpy(memory, packed.data(), packed.size());
    *blob = {memory, packed.size()};
    return NPU_OK;
  });
}
void blob_free(npu_blob* blob) { std::free(const_cast<void*>(blob->data)); }

npu_status load(npu_device*, const void* blob, uint64_t blob_size, const npu_tensor*,
                size_t weight_count, npu_program** program, npu_error* error) {
  return guarded(error, [&]() -> npu_status {
    if (has_fault("no-program")) return NPU_OK;
    if (has_fault("exit-load")) std::exit(0);
    if (weight_count != 0) return fail(error, NPU_ERROR_INVALID, "the blob has the weights");
    const auto* bytes = static_cast<const char*>(blob);
    const std::size_t header = kMagic.size() + sizeof(std::uint64_t);
    if (blob_size < header || std::string_view(bytes, kMagic.size()) != kMagic) {
      return fail(error, NPU_ERROR_INVALID, "the blob is not one of this backend");
    }
    std::uint64_t size = 0;
    std::memcpy(&size, bytes + kMagic.size(), sizeof size);
    if (size > blob_size - header) return fail(error, NPU_ERROR_INVALID, "the blob is cut short");
    auto loaded = std::make_unique<npu_program>();
    loaded->graph = npu::read_valid_graph({bytes + header, static_cast<std::size_t>(size)}, "blob");
    // A blob may come from anywhere.
    for (const npu::Node& node : loaded->graph.nodes()) {
      const std::string reason = why_not(loaded->graph, node);
      if (!reason.empty()) return fail(error, NPU_ERROR_INVALID, text_of(node, reason));
    }
    std::size_t at = header + static_cast<std::size_t>(size);
    for (const npu::TensorInfo& tensor : loaded->graph.tensors()) {
      loaded->weights.push_back(nullptr);
      if (tensor.kind != npu::TensorKind::kWeight) continue;
      at = aligned(at);
      const auto needed = static_cast<std::size_t>(tensor.bytes());
      if (at > blob_size || needed > blob_size - at) {
        return fail(error, NPU_ERROR_INVALID, "the blob is cut short");
      }
      loaded->weights.back() = reinterpret_cast<const float*>(bytes + at);
      at += needed;
    }
    loaded->nanoseconds.resize(loaded->graph.nodes().size());
    *program = loaded.release();
    return NPU_OK;
  });
}
void program_free(npu_program* program) { delete program; }

npu_status buffer_allocate(npu_device*, npu_dtype dtype, uint32_t rank, const int64_t* shape,
                           npu_buffer** buffer, npu_error* error) {
  return guarded(error, [&]() -> npu_status {
    if (dtype != NPU_FLOAT32) return fail(error, NPU_ERROR_UNSUPPORTED, "float32 alone is known");
    auto made = std::make_unique<npu_buffer>();
    if (rank != 0) made->shape.assign(shape, shape + rank);
    made->data.resize(static_cast<std::size_t>(count_of(made->shape)) * sizeof(float));
    *buffer = made.release();
    return NPU_OK;
  });
}
npu_status buffer_import(npu_device* device, const npu_tensor* tensor, npu_buffer** buffer,
                         npu_error* error) {
  if (has_fault("no-buffer")) return NPU_OK;
  const npu_status status =
      buffer_allocate(device, tensor->dtype, tensor->rank, tensor->shape, buffer, error);
  if (status == NPU_OK && tensor->bytes != 0) {
    std::memcpy((*buffer)->data.data(), tensor->data, tensor->bytes);
  }
  return status;
}
npu_status buffer_export(const npu_buffer* buffer, void* data, uint64_t bytes, npu_error* error) {
  if (bytes != buffer->data.size()) return fail(error, NPU_ERROR_INVALID, "another size");
  if (bytes != 0) std::memcpy(data, buffer->data.data(), bytes);
  return NPU_OK;
}
npu_status buffer_describe(const npu_buffer* buffer, npu_tensor* description, npu_error*) {
  description->dtype = buffer->dtype;
  description->rank =
      has_fault("rank") ? 4'000'000'000U : static_cast<uint32_t>(buffer->shape.size());
  description->shape = buffer->shape.data();
  description->data = std::getenv("VENDOR_FAR") != nullptr ? nullptr : buffer->data.data();
  description->bytes = buffer->data.size() + (has_fault("bytes") ? 1U << 20 : 0);
  return NPU_OK;
}
void buffer_free(npu_buffer* buffer) { delete buffer; }

/// False if nobody else came within ten seconds.
bool meet() {
  static std::mutex mutex;
  static std::condition_variable changed;
  static int present = 0;
  static int met = 0;
  std::unique_lock lock(mutex);
  if (++present == 2) {
    present = 0;
    ++met;
    changed.notify_all();
    return true;
  }
  const int before = met;
  if (changed.wait_for(lock, std::chrono::seconds(10), [&] { return met != before; })) return true;
  --present;
  return false;
}

npu_status run(npu_program* program, npu_buffer* const* inputs, size_t input_count,
               npu_buffer** outputs, size_t output_count, npu_error* error) {
  return guarded(error, [&]() -> npu_status {
    if (has_fault("status")) {
      npu_status unknown = NPU_OK;
      const int number = 77;
      std::memcpy(&unknown, &number, sizeof unknown);
      return unknown;
    }
    if (has_fault("silent")) return NPU_OK;
    if (has_fault("exit-run")) std::exit(0);
    if (has_fault("thread-memory")) std::thread([] { throw std::bad_alloc(); }).join();
    if (has_fault("thread-fault")) std::thread([] { throw std::runtime_error("a\x1b[1m"); }).join();
    if (has_fault("print")) std::puts("the vendor runs");
    const npu::Graph& graph = program->graph;
    if (input_count != graph.graph_inputs().size() ||
        output_count != graph.graph_outputs().size()) {
      return fail(error, NPU_ERROR_INVALID, "another number of tensors than the program has");
    }
    for (size_t i = 0; i < input_count; ++i) {
      const npu::TensorInfo& input = graph.tensor(graph.graph_inputs()[i]);
      if (inputs[i] == nullptr || inputs[i]->shape != input.shape) {
        return fail(error, NPU_ERROR_INVALID, "input '" + input.name + "' has another shape");
      }
    }
    std::vector<std::vector<float>> made(graph.tensors().size());
    std::vector<const float*> data = program->weights;
    for (size_t i = 0; i < input_count; ++i) {
      data[index_of(graph.graph_inputs()[i])] =
          reinterpret_cast<const float*>(inputs[i]->data.data());
    }
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      const npu::Node& node = graph.nodes()[n];
      const auto start = std::chrono::steady_clock::now();
      if (node.name.starts_with("meet") && !meet()) {
        return fail(error, NPU_ERROR_FAILED, "node '" + node.name + "' waited for another in vain");
      }
      const std::size_t result = index_of(node.outputs.front());
      const auto count = static_cast<std::size_t>(count_of(graph.tensors()[result].shape));
      const float* a = data[index_of(node.inputs.front())];
      const float* b = data[index_of(node.inputs.back())];
      std::vector<float>& out = made[result];
      out.resize(count);
      for (std::size_t i = 0; i < count; ++i) {
        out[i] = node.op_type == "aten.relu.default"  ? std::max(a[i], 0.0F)
                 : node.op_type == "aten.neg.default" ? -a[i]
                                                      : a[i] + b[i];
      }
      data[result] = out.data();
      program->nanoseconds[n] = static_cast<std::uint64_t>(
          std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
    }
    for (size_t i = 0; i < output_count; ++i) {
      const npu::TensorInfo& tensor = graph.tensor(graph.graph_outputs()[i]);
      auto buffer = std::make_unique<npu_buffer>();
      buffer->shape = tensor.shape;
      if (has_fault("shape")) buffer->shape.push_back(1);
      if (has_fault("dtype")) buffer->dtype = NPU_INT32;
      const auto bytes = static_cast<std::size_t>(tensor.bytes());
      const char* from = reinterpret_cast<const char*>(data[index_of(graph.graph_outputs()[i])]);
      buffer->data.assign(from, from + bytes);
      outputs[i] = buffer.release();
    }
    return NPU_OK;
  });
}

npu_status list_ops(npu_device*, npu_op_visitor visit, void* context, npu_error*) {
  for (const char* op : {"aten.add.Tensor", "aten.neg.default", "aten.relu.default"}) {
    visit(context, op, "kernel");
  }
  return NPU_OK;
}

npu_status node_times(const npu_program* program, uint64_t* nanoseconds, size_t count,
                      npu_error* error) {
  if (count != program->nanoseconds.size()) {
    return fail(error, NPU_ERROR_INVALID, "another number of nodes");
  }
  std::copy(program->nanoseconds.begin(), program->nanoseconds.end(), nanoseconds);
  return NPU_OK;
}

npu_status blob_report(npu_device*, const void*, uint64_t, npu_blob* report, npu_error* error) {
  constexpr std::string_view kText = R"({"kernels": 1, "reorders": 0})";
  void* memory = std::malloc(kText.size());
  if (memory == nullptr) return fail(error, NPU_ERROR_MEMORY, "out of memory");
  std::memcpy(memory, kText.data(), kText.size());
  *report = {memory, kText.size()};
  return NPU_OK;
}

npu_backend_api make_api() {
  npu_backend_api api{};
  api.abi_version = has_fault("abi") ? NPU_BACKEND_ABI_VERSION + 1 : NPU_BACKEND_ABI_VERSION;
  api.struct_size = sizeof api;
  if (has_fault("old")) {  // none: as if built before step_times was added
    api.abi_version = 2;
    api.struct_size = offsetof(npu_backend_api, step_times);
  }
  api.describe = describe;
  api.open_device = open_device;
  api.close_device = close_device;
  api.compile = compile;
  api.blob_free = blob_free;
  api.load = load;
  api.program_free = program_free;
  api.buffer_allocate = buffer_allocate;
  api.buffer_import = buffer_import;
  api.buffer_export = buffer_export;
  api.buffer_describe = buffer_describe;
  api.buffer_free = buffer_free;
  api.run = has_fault("table") ? nullptr : run;
  api.list_ops = list_ops;
  api.node_times = node_times;
  api.blob_report = blob_report;
  return api;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const npu_backend_api* npu_backend_entry(
    std::uint32_t host_abi_version) {
  static const npu_backend_api api = make_api();
  // A newer host serves older backends, and judges the table itself.
  return host_abi_version >= api.abi_version || has_fault("abi") ? &api : nullptr;
}
