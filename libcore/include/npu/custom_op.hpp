// SPDX-License-Identifier: Apache-2.0
// Adds custom ops to the aten backend, without libtorch and without rebuilding npu-tools.
//
// An op that ATen does not have appears in a document under its own name, such as my_ops.scale. A
// shared object that exports npu_custom_op_entry implements it; the backend loads that object
// through its option {"load_ops": ["libmy_ops.so"]}. The boundary is plain C: the structs below, no
// exception, no C++ type. The classes at the end wrap it for C++:
//
//   void scale(const npu::CustomOpCall& call) {
//     const auto x = call.input_data<float>(0);
//     float* y = call.allocate_as<float>(0, call.input(0));
//     for (std::size_t i = 0; i < x.size(); ++i) y[i] = 2.0F * x[i];
//   }
//   NPU_CUSTOM_OPS({"my_ops.scale", npu::custom_op<scale>, nullptr})
//
// Build it with: c++ -std=c++20 -shared -fPIC -I<prefix>/include my_ops.cpp -o libmy_ops.so
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "npu/backend.h"

/// Incremented whenever a struct below changes its meaning or layout.
#define NPU_CUSTOM_OP_ABI_VERSION 1u
/// The name of the entry function, for dlsym.
#define NPU_CUSTOM_OP_ENTRY_NAME "npu_custom_op_entry"

extern "C" {

/// A dense row-major tensor in host memory.
struct npu_custom_tensor {
  const char* name;
  npu_dtype dtype;
  std::uint32_t rank;
  const std::int64_t* shape;  ///< may be null if `rank` is 0
  const void* data;           ///< may be null if `bytes` is 0
  std::uint64_t bytes;
};

/// One execution of one node. Every pointer is valid until the function returns.
struct npu_custom_op_call {
  const char* node;                 ///< name of the node, for messages
  const char* attrs;                ///< its attrs: a JSON object, NUL-terminated
  std::size_t attrs_size;           ///< without the NUL
  const npu_custom_tensor* inputs;  ///< its operands; never write to them
  std::size_t input_count;
  const npu_custom_tensor* results;  ///< as the document declares them; data is null
  std::size_t result_count;
  void* host;  ///< pass it to allocate
  /// Memory for result `index`: dense, row-major, aligned to 64 bytes and uninitialised. Call it
  /// once for every result. It returns null for bad arguments or if there is no memory; return
  /// NPU_MEMORY then. A dtype or shape other than the document's is refused after the
  /// function has returned.
  void* (*allocate)(void* host, std::size_t index, npu_dtype dtype, std::uint32_t rank,
                    const std::int64_t* shape);
};

/// Runs one node. On failure returns a status other than NPU_OK and writes one line to
/// error->text.
typedef npu_status (*npu_custom_op_function)(void* context, const npu_custom_op_call* call,
                                             npu_error* error);

struct npu_custom_op {
  const char* name;            ///< the op_type; must not be an op that the backend has
  npu_custom_op_function run;  ///< called from any thread, but from one at a time per device
  void* context;               ///< passed to run
};

/// What the entry function returns. It and all it points to live as long as the shared object.
struct npu_custom_op_library {
  std::uint32_t abi_version;  ///< NPU_CUSTOM_OP_ABI_VERSION
  std::uint32_t struct_size;  ///< sizeof(npu_custom_op_library)
  const npu_custom_op* ops;
  std::size_t op_count;
};

/// The one function that the shared object exports, as npu_custom_op_entry. Returns null if it
/// cannot serve a host of `host_abi_version`.
typedef const npu_custom_op_library* (*npu_custom_op_entry_function)(
    std::uint32_t host_abi_version);

}  // extern "C"

namespace npu {

/// The npu_dtype of a C++ type. 16-bit floats have no C++ type: access them as raw memory.
template <typename T>
constexpr npu_dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>) {
    return NPU_FLOAT32;
  } else if constexpr (std::is_same_v<T, double>) {
    return NPU_FLOAT64;
  } else if constexpr (std::is_same_v<T, bool>) {
    return NPU_BOOL;
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    return NPU_UINT8;
  } else {
    static_assert(std::is_integral_v<T> && std::is_signed_v<T>, "no dtype has this C++ type");
    return sizeof(T) == 1   ? NPU_INT8
           : sizeof(T) == 2 ? NPU_INT16
           : sizeof(T) == 4 ? NPU_INT32
                            : NPU_INT64;
  }
}

/// npu_custom_op_call with checks. Member functions throw std::runtime_error.
class CustomOpCall {
 public:
  explicit CustomOpCall(const npu_custom_op_call& call) : call_(call) {}

  std::string_view node() const { return call_.node; }
  std::string_view attrs() const { return {call_.attrs, call_.attrs_size}; }
  std::size_t input_count() const { return call_.input_count; }
  std::size_t result_count() const { return call_.result_count; }

  const npu_custom_tensor& input(std::size_t index) const {
    if (index >= call_.input_count) {
      throw std::runtime_error("expected more than " + std::to_string(index) + " operands, found " +
                               std::to_string(call_.input_count));
    }
    return call_.inputs[index];
  }
  /// A result as the document declares it; `data` is null.
  const npu_custom_tensor& result(std::size_t index) const {
    if (index >= call_.result_count) {
      throw std::runtime_error("expected more than " + std::to_string(index) + " results, found " +
                               std::to_string(call_.result_count));
    }
    return call_.results[index];
  }
  template <typename T>
  std::span<const T> input_data(std::size_t index) const {
    const npu_custom_tensor& tensor = input(index);
    if (tensor.dtype != dtype_of<T>()) {
      throw std::runtime_error("operand " + std::to_string(index) +
                               " has another dtype than expected");
    }
    return {static_cast<const T*>(tensor.data), tensor.bytes / sizeof(T)};
  }
  void* allocate(std::size_t index, npu_dtype dtype, std::span<const std::int64_t> shape) const {
    void* data = call_.allocate(call_.host, index, dtype, static_cast<std::uint32_t>(shape.size()),
                                shape.data());
    if (data == nullptr) {
      throw std::runtime_error("result " + std::to_string(index) + " cannot be allocated");
    }
    return data;
  }
  /// Result `index` with elements of T and the shape of `like`.
  template <typename T>
  T* allocate_as(std::size_t index, const npu_custom_tensor& like) const {
    return static_cast<T*>(allocate(index, dtype_of<T>(), {like.shape, like.rank}));
  }

 private:
  const npu_custom_op_call& call_;
};

/// Wraps a C++ function as an npu_custom_op_function: an exception becomes NPU_FAILED.
template <void (*function)(const CustomOpCall&)>
npu_status custom_op(void* /*context*/, const npu_custom_op_call* call, npu_error* error) {
  const char* text = "unknown exception";
  try {
    function(CustomOpCall(*call));
    return NPU_OK;
  } catch (const std::exception& exception) {
    std::snprintf(error->text, sizeof error->text, "%s", exception.what());
  } catch (...) {
    std::snprintf(error->text, sizeof error->text, "%s", text);
  }
  return NPU_FAILED;
}

}  // namespace npu

/// Defines the entry function of a shared object from rows of npu_custom_op.
#define NPU_CUSTOM_OPS(...)                                                           \
  extern "C" __attribute__((visibility("default"))) const npu_custom_op_library*      \
  npu_custom_op_entry(std::uint32_t host_abi_version) {                               \
    static const npu_custom_op ops[] = {__VA_ARGS__};                                 \
    static const npu_custom_op_library library = {NPU_CUSTOM_OP_ABI_VERSION,          \
                                                  sizeof(npu_custom_op_library), ops, \
                                                  sizeof ops / sizeof ops[0]};        \
    return host_abi_version == NPU_CUSTOM_OP_ABI_VERSION ? &library : nullptr;        \
  }
