// SPDX-License-Identifier: Apache-2.0
#include "aten_harness.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "catch.hpp"
#include "test_paths.hpp"

namespace npu::test::aten {

namespace {

const std::map<std::string, npu_dtype> kDTypes = {
    {"float32", NPU_FLOAT32},   {"float64", NPU_FLOAT64},     {"float16", NPU_FLOAT16},
    {"bfloat16", NPU_BFLOAT16}, {"int8", NPU_INT8},           {"uint8", NPU_UINT8},
    {"int16", NPU_INT16},       {"int32", NPU_INT32},         {"int64", NPU_INT64},
    {"bool", NPU_BOOL},         {"complex64", NPU_COMPLEX64}, {"complex128", NPU_COMPLEX128}};

void check(npu_status status, const npu_error& error) {
  if (status != NPU_OK) throw Failure{status, error.text};
}

std::size_t bytes_of(const HostTensor& tensor) {
  std::size_t bytes = dtype_size(static_cast<DType>(kDTypes.at(tensor.dtype)));
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

}  // namespace

const BackendCalls& api() {
  static const BackendCalls loaded(std::string(backend_dir()) + "/npu_backend_aten.so");
  return loaded;
}

std::vector<float> HostTensor::floats() const {
  REQUIRE(dtype == "float32");
  return as<float>();
}

std::vector<std::int64_t> HostTensor::ints() const {
  REQUIRE(dtype == "int64");
  return as<std::int64_t>();
}

npu_tensor HostTensor::view(const char* name) const {
  return tensor_view(name, kDTypes.at(dtype), shape, bytes.data(), bytes.size());
}

HostTensor f32(Shape shape, const std::vector<float>& values) {
  return make("float32", std::move(shape), values);
}

HostTensor i64(Shape shape, const std::vector<std::int64_t>& values) {
  return make("int64", std::move(shape), values);
}

HostTensor boolean(Shape shape, const std::vector<std::uint8_t>& values) {
  return make("bool", std::move(shape), values);
}

HostTensor bits16(const std::string& dtype, Shape shape, const std::vector<std::uint16_t>& values) {
  return make(dtype, std::move(shape), values);
}

HostTensor range(Shape shape, float start, float step) {
  const auto count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(start + step * static_cast<float>(i));
  return f32(std::move(shape), values);
}

Json tensor_json(const std::string& name, const HostTensor& tensor) {
  return {{"name", name}, {"shape", tensor.shape}, {"dtype", tensor.dtype}};
}

Model::Model()
    : document_({{"model_name", "test"},
                 {"pytorch_version", "2.5.0"},
                 {"graph_inputs", Json::array()},
                 {"graph_outputs", Json::array()},
                 {"weights", Json::array()},
                 {"weight_name_mapping", Json::object()},
                 {"nodes", Json::array()}}) {}

Model& Model::input(const std::string& name, HostTensor tensor) {
  known_[name] = tensor_json(name, tensor);
  document_["graph_inputs"].push_back(known_[name]);
  inputs_.emplace_back(name, std::move(tensor));
  return *this;
}

Model& Model::weight(const std::string& name, HostTensor tensor) {
  known_[name] = tensor_json(name, tensor);
  document_["weights"].push_back(known_[name]);
  weights_.emplace_back(name, std::move(tensor));
  return *this;
}

Model& Model::node(const std::string& name, const std::string& op_type,
                   const std::vector<std::string>& inputs, Json attrs,
                   const std::vector<Result>& results) {
  Json node = {
      {"name", name}, {"op_type", op_type}, {"inputs", Json::array()}, {"outputs", Json::array()}};
  for (const std::string& operand : inputs) node["inputs"].push_back(known_.at(operand));
  for (const Result& result : results) {
    known_[result.name] = {{"name", result.name}, {"shape", result.shape}, {"dtype", result.dtype}};
    node["outputs"].push_back(known_[result.name]);
  }
  node["attrs"] = attrs.is_null() ? Json::object() : std::move(attrs);
  document_["nodes"].push_back(node);
  return *this;
}

Model& Model::output(const std::string& name) {
  document_["graph_outputs"].push_back(known_.at(name));
  return *this;
}

std::string Model::text() const { return document_.dump(); }

std::vector<HostTensor> Model::outputs() const {
  std::vector<HostTensor> outputs;
  for (const Json& output : document_["graph_outputs"]) {
    outputs.push_back({output["dtype"], output["shape"], {}});
  }
  return outputs;
}

std::size_t Model::node_count() const { return document_["nodes"].size(); }

Model one_node(const std::string& op_type,
               const std::vector<std::pair<std::string, HostTensor>>& inputs, Json attrs,
               const std::vector<Result>& results) {
  Model model;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : inputs) {
    model.input(name, tensor);
    names.push_back(name);
  }
  model.node("n", op_type, names, std::move(attrs), results);
  for (const Result& result : results) model.output(result.name);
  return model;
}

Device::Device(const std::string& options, std::uint32_t threads) {
  CallError error;
  check(api().open_device(threads, options.c_str(), &device_, &error), error);
}

Loaded::Loaded(const Device& device, Model& model) : model_(model), device_(device.get()) {
  std::vector<npu_tensor> weights;
  for (const auto& [name, tensor] : model.weights()) weights.push_back(tensor.view(name.c_str()));
  load(weights);
}

Loaded::Loaded(const Device& device, Model& model, const std::vector<npu_tensor>& weights)
    : model_(model), device_(device.get()) {
  load(weights);
}

Loaded::~Loaded() {
  api()->program_free(program_);
  api()->model_free(loaded_);
}

void Loaded::load(const std::vector<npu_tensor>& weights) {
  CallError error;
  check(api().compile(device_, model_.text(), weights, "{}", &blob_, &error), error);
  check(api().load(device_, blob_, weights, &loaded_, &error), error);
  const npu_status status = api().create_program(loaded_, &program_, &error);
  if (status != NPU_OK) api()->model_free(loaded_);
  check(status, error);
}

std::vector<npu_buffer*> Loaded::import_inputs() const {
  std::vector<npu_buffer*> inputs;
  for (const auto& [name, tensor] : model_.inputs()) {
    CallError error;
    inputs.push_back(nullptr);
    check(api().import_tensor(device_, tensor.view(name.c_str()), &inputs.back(), &error), error);
  }
  return inputs;
}

std::vector<npu_buffer*> Loaded::make_outputs() const {
  std::vector<npu_buffer*> outputs;
  for (const HostTensor& like : model_.outputs()) {
    CallError error;
    outputs.push_back(nullptr);
    check(api().create_buffer(device_, kDTypes.at(like.dtype), like.shape, &outputs.back(), &error),
          error);
  }
  return outputs;
}

std::vector<HostTensor> Loaded::run(npu_span* times, std::size_t count) {
  const std::vector<npu_buffer*> inputs = import_inputs();
  const std::vector<npu_buffer*> outputs = make_outputs();
  auto profile = sized_struct<npu_profile>();
  profile.nodes = times;
  profile.node_count = count;
  CallError error;
  const npu_status status =
      api().run(program_, inputs, outputs, &error, times != nullptr ? &profile : nullptr);
  // Inputs are never changed, whether the run succeeds or not.
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const HostTensor& before = model_.inputs()[i].second;
    std::vector<char> after(before.bytes.size());
    CallError ignored;
    CHECK(api().read(inputs[i], after.data(), after.size(), &ignored) == NPU_OK);
    CHECK(after == before.bytes);
    api()->buffer_free(inputs[i]);
  }
  std::vector<HostTensor> results = status == NPU_OK ? model_.outputs() : std::vector<HostTensor>();
  std::set<const void*> memory;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (status == NPU_OK) {
      const void* address = api().map(outputs[i]);
      if (address != nullptr) CHECK(memory.insert(address).second);
      results[i].bytes.resize(bytes_of(results[i]));
      check(api().read(outputs[i], results[i].bytes.data(), results[i].bytes.size(), &error),
            error);
    }
    api()->buffer_free(outputs[i]);
  }
  check(status, error);
  return results;
}

std::vector<HostTensor> run(Model model, const std::string& options) {
  const Device device(options);
  Loaded loaded(device, model);
  const auto first = loaded.run();
  const auto second = loaded.run();
  REQUIRE(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i].bytes == second[i].bytes);
  return second;
}

Failure failure_of(Model model, const std::string& options) {
  try {
    const Device device(options);
    Loaded loaded(device, model);
    loaded.run();
  } catch (const Failure& failure) {
    CHECK(failure.text.find('\n') == std::string::npos);
    return failure;
  }
  FAIL("expected a failure");
  return {};
}

void check_near(const std::vector<float>& found, const std::vector<float>& expected,
                float tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance * std::max(1.0F, std::abs(expected[i])));
  }
}

}  // namespace npu::test::aten
