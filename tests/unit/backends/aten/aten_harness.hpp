// SPDX-License-Identifier: Apache-2.0
// The aten backend through its C ABI: documents as JSON text, tensors as bytes, and the results of
// opening a device, of load and of run.
//
// test::backend_dir() is the folder of npu_backend_aten.so.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend_calls.hpp"

namespace npu::test::aten {

using Json = nlohmann::ordered_json;
using Shape = std::vector<std::int64_t>;

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Loads the backend at the first call.
const BackendCalls& api();

// ---- tensors in host memory

struct HostTensor {
  std::string dtype;
  Shape shape;
  std::vector<char> bytes;

  template <typename T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<float> floats() const;
  std::vector<std::int64_t> ints() const;
  /// `name` has to live as long as the view.
  npu_tensor view(const char* name) const;
};

template <typename T>
HostTensor make(const std::string& dtype, Shape shape, const std::vector<T>& values) {
  HostTensor tensor{dtype, std::move(shape), std::vector<char>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}
HostTensor f32(Shape shape, const std::vector<float>& values);
HostTensor i64(Shape shape, const std::vector<std::int64_t>& values);
HostTensor boolean(Shape shape, const std::vector<std::uint8_t>& values);
/// Raw bits of float16 or bfloat16.
HostTensor bits16(const std::string& dtype, Shape shape, const std::vector<std::uint16_t>& values);
/// 0, 1, 2, ... times `step` plus `start`.
HostTensor range(Shape shape, float start = 0.0F, float step = 1.0F);

// ---- documents

Json tensor_json(const std::string& name, const HostTensor& tensor);

/// What a node gives: name, dtype, shape.
struct Result {
  std::string name;
  Shape shape;
  std::string dtype = "float32";
};

class Model {
 public:
  Model();
  Model& input(const std::string& name, HostTensor tensor);
  Model& weight(const std::string& name, HostTensor tensor);
  Model& node(const std::string& name, const std::string& op_type,
              const std::vector<std::string>& inputs, Json attrs,
              const std::vector<Result>& results);
  Model& output(const std::string& name);

  std::string text() const;
  Json json() const { return document_; }
  const std::vector<std::pair<std::string, HostTensor>>& inputs() const { return inputs_; }
  std::vector<std::pair<std::string, HostTensor>>& weights() { return weights_; }
  /// Without their data.
  std::vector<HostTensor> outputs() const;
  std::size_t node_count() const;

 private:
  Json document_;
  std::map<std::string, Json> known_;
  std::vector<std::pair<std::string, HostTensor>> inputs_;
  std::vector<std::pair<std::string, HostTensor>> weights_;
};

/// One node whose results are the outputs.
Model one_node(const std::string& op_type,
               const std::vector<std::pair<std::string, HostTensor>>& inputs, Json attrs,
               const std::vector<Result>& results);

// ---- running

/// What a call that does not give NPU_OK throws.
struct Failure {
  npu_status status;
  std::string text;
};

class Device {
 public:
  explicit Device(const std::string& options = "{}", std::uint32_t threads = 1);
  ~Device() { api()->device_close(device_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  npu_device* get() const { return device_; }

 private:
  npu_device* device_ = nullptr;
};

/// A model that is compiled and loaded; the model outlives it.
class Loaded {
 public:
  Loaded(const Device& device, Model& model);
  Loaded(const Device& device, Model& model, const std::vector<npu_tensor>& weights);
  ~Loaded();
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  npu_program* program() const { return program_; }
  /// Buffers like the outputs; the caller frees them.
  std::vector<npu_buffer*> make_outputs() const;
  /// Checks besides that the inputs stay as they are and that outputs share no memory. `times`
  /// takes the times of `count` nodes.
  std::vector<HostTensor> run(npu_span* times = nullptr, std::size_t count = 0);

 private:
  void load(const std::vector<npu_tensor>& weights);
  std::vector<npu_buffer*> import_inputs() const;

  Model& model_;
  npu_device* device_;
  std::string blob_;
  npu_model* loaded_ = nullptr;
  npu_program* program_ = nullptr;
};

/// Runs twice, for a program keeps its state: both runs must agree bit for bit.
std::vector<HostTensor> run(Model model, const std::string& options = "{}");
/// Of compiling, loading or running; fails the test where all succeed.
Failure failure_of(Model model, const std::string& options = "{}");
void check_near(const std::vector<float>& found, const std::vector<float>& expected,
                float tolerance = 1e-5F);

}  // namespace npu::test::aten
