// SPDX-License-Identifier: Apache-2.0
#include "aten_harness.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "backends/v3_calls.hpp"
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

}  // namespace

const npu_backend_api& api() {
  static const npu_backend_api* const table = [] {
    const std::string path = std::string(npu::test::backend_dir()) + "/npu_backend_aten.so";
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    INFO((handle == nullptr ? ::dlerror() : ""));
    REQUIRE(handle != nullptr);
    using Entry = const npu4_backend* (*)(const npu4_host*, npu4_error*);
    const auto entry = reinterpret_cast<Entry>(::dlsym(handle, NPU4_ENTRY_NAME));
    REQUIRE(entry != nullptr);
    struct Aten {};
    return &V3Calls<Aten>::table(entry(&test_host(), nullptr));
  }();
  return *table;
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
  return {name,         kDTypes.at(dtype), static_cast<std::uint32_t>(shape.size()),
          shape.data(), bytes.data(),      bytes.size()};
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

std::size_t Model::output_count() const { return document_["graph_outputs"].size(); }

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

Device::Device(const std::string& options) {
  npu_error error = {};
  check(api().open_device(options.c_str(), &device_, &error), error);
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
  if (program_ != nullptr) api().program_free(program_);
  api().blob_free(&blob_);
}

void Loaded::load(const std::vector<npu_tensor>& weights) {
  const std::string text = model_.text();
  npu_error error = {};
  check(api().compile(device_, text.data(), text.size(), weights.data(), weights.size(), "{}",
                      &blob_, &error),
        error);
  const npu_status status = api().load(device_, blob_.data, blob_.size, weights.data(),
                                       weights.size(), &program_, &error);
  if (status != NPU_OK) {
    api().blob_free(&blob_);
    throw Failure{status, error.text};
  }
}

std::vector<npu_buffer*> Loaded::import_inputs() const {
  std::vector<npu_buffer*> inputs;
  for (const auto& [name, tensor] : model_.inputs()) {
    const npu_tensor view = tensor.view(name.c_str());
    npu_error error = {};
    inputs.push_back(nullptr);
    check(api().buffer_import(device_, &view, &inputs.back(), &error), error);
  }
  return inputs;
}

std::vector<HostTensor> Loaded::run() {
  std::vector<npu_buffer*> inputs = import_inputs();
  npu_error error = {};
  std::vector<npu_buffer*> outputs(model_.output_count(), nullptr);
  const npu_status status =
      api().run(program_, inputs.data(), inputs.size(), outputs.data(), outputs.size(), &error);
  // Inputs are never changed, whether the run succeeds or not.
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const HostTensor& before = model_.inputs()[i].second;
    std::vector<char> after(before.bytes.size());
    npu_error ignored = {};
    CHECK(api().buffer_export(inputs[i], after.data(), after.size(), &ignored) == NPU_OK);
    CHECK(after == before.bytes);
    api().buffer_free(inputs[i]);
  }
  check(status, error);
  std::vector<HostTensor> results;
  std::set<const void*> memory;
  for (npu_buffer* output : outputs) {
    npu_tensor description = {};
    check(api().buffer_describe(output, &description, &error), error);
    if (description.data != nullptr) CHECK(memory.insert(description.data).second);
    results.push_back(take(output));
  }
  return results;
}

HostTensor Loaded::take(npu_buffer* output) {
  npu_tensor description = {};
  npu_error error = {};
  check(api().buffer_describe(output, &description, &error), error);
  HostTensor tensor;
  for (const auto& [name, dtype] : kDTypes) {
    if (dtype == description.dtype) tensor.dtype = name;
  }
  tensor.shape.assign(description.shape, description.shape + description.rank);
  tensor.bytes.resize(description.bytes);
  check(api().buffer_export(output, tensor.bytes.data(), tensor.bytes.size(), &error), error);
  api().buffer_free(output);
  return tensor;
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
