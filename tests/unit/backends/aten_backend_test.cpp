// SPDX-License-Identifier: Apache-2.0
// The aten backend through its C ABI alone: documents as JSON text, tensors as bytes.
//
// test::backend_dir() is the folder of npu_backend_aten.so; NPU_TEST_CUSTOM_OPS and
// NPU_TEST_BAD_CUSTOM_OPS are the shared objects built of aten_custom_ops.cpp and
// aten_bad_custom_ops.cpp. Expected values are computed here or written beside their arithmetic.
#include <dlfcn.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "npu/backend.h"
#include "test_paths.hpp"

namespace {

using Json = nlohmann::ordered_json;
using Shape = std::vector<std::int64_t>;

const npu_backend_api& api() {
  static const npu_backend_api* const table = [] {
    const std::string path = std::string(npu::test::backend_dir()) + "/npu_backend_aten.so";
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    INFO((handle == nullptr ? ::dlerror() : ""));
    REQUIRE(handle != nullptr);
    using Entry = const npu_backend_api* (*)(std::uint32_t);
    const auto entry = reinterpret_cast<Entry>(::dlsym(handle, NPU_BACKEND_ENTRY_NAME));
    REQUIRE(entry != nullptr);
    CHECK(entry(NPU_BACKEND_ABI_VERSION + 1) == nullptr);
    return entry(NPU_BACKEND_ABI_VERSION);
  }();
  REQUIRE(table != nullptr);
  return *table;
}

// ---- tensors in host memory

const std::map<std::string, npu_dtype> kDTypes = {
    {"float32", NPU_FLOAT32},   {"float64", NPU_FLOAT64},     {"float16", NPU_FLOAT16},
    {"bfloat16", NPU_BFLOAT16}, {"int8", NPU_INT8},           {"uint8", NPU_UINT8},
    {"int16", NPU_INT16},       {"int32", NPU_INT32},         {"int64", NPU_INT64},
    {"bool", NPU_BOOL},         {"complex64", NPU_COMPLEX64}, {"complex128", NPU_COMPLEX128}};

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
  std::vector<float> floats() const {
    REQUIRE(dtype == "float32");
    return as<float>();
  }
  std::vector<std::int64_t> ints() const {
    REQUIRE(dtype == "int64");
    return as<std::int64_t>();
  }
  // `name` has to live as long as the view.
  npu_tensor view(const char* name) const {
    return {name,         kDTypes.at(dtype), static_cast<std::uint32_t>(shape.size()),
            shape.data(), bytes.data(),      bytes.size()};
  }
};

template <typename T>
HostTensor make(const std::string& dtype, Shape shape, const std::vector<T>& values) {
  HostTensor tensor{dtype, std::move(shape), std::vector<char>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
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
// Raw bits of float16 or bfloat16.
HostTensor bits16(const std::string& dtype, Shape shape, const std::vector<std::uint16_t>& values) {
  return make(dtype, std::move(shape), values);
}
// 0, 1, 2, ... times `step` plus `start`.
HostTensor range(Shape shape, float start = 0.0F, float step = 1.0F) {
  const auto count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(start + step * static_cast<float>(i));
  return f32(std::move(shape), values);
}

// ---- documents

Json tensor_json(const std::string& name, const HostTensor& tensor) {
  return {{"name", name}, {"shape", tensor.shape}, {"dtype", tensor.dtype}};
}

// What a node gives: name, dtype, shape.
struct Result {
  std::string name;
  Shape shape;
  std::string dtype = "float32";
};

class Model {
 public:
  Model& input(const std::string& name, HostTensor tensor) {
    known_[name] = tensor_json(name, tensor);
    document_["graph_inputs"].push_back(known_[name]);
    inputs_.emplace_back(name, std::move(tensor));
    return *this;
  }
  Model& weight(const std::string& name, HostTensor tensor) {
    known_[name] = tensor_json(name, tensor);
    document_["weights"].push_back(known_[name]);
    weights_.emplace_back(name, std::move(tensor));
    return *this;
  }
  Model& node(const std::string& name, const std::string& op_type,
              const std::vector<std::string>& inputs, Json attrs,
              const std::vector<Result>& results) {
    Json node = {{"name", name},
                 {"op_type", op_type},
                 {"inputs", Json::array()},
                 {"outputs", Json::array()}};
    for (const std::string& operand : inputs) node["inputs"].push_back(known_.at(operand));
    for (const Result& result : results) {
      known_[result.name] = {
          {"name", result.name}, {"shape", result.shape}, {"dtype", result.dtype}};
      node["outputs"].push_back(known_[result.name]);
    }
    node["attrs"] = attrs.is_null() ? Json::object() : std::move(attrs);
    document_["nodes"].push_back(node);
    return *this;
  }
  Model& output(const std::string& name) {
    document_["graph_outputs"].push_back(known_.at(name));
    return *this;
  }

  std::string text() const { return document_.dump(); }
  Json json() const { return document_; }
  const std::vector<std::pair<std::string, HostTensor>>& inputs() const { return inputs_; }
  std::vector<std::pair<std::string, HostTensor>>& weights() { return weights_; }
  std::size_t output_count() const { return document_["graph_outputs"].size(); }
  std::size_t node_count() const { return document_["nodes"].size(); }

 private:
  Json document_ = {{"model_name", "test"},          {"pytorch_version", "2.5.0"},
                    {"graph_inputs", Json::array()}, {"graph_outputs", Json::array()},
                    {"weights", Json::array()},      {"weight_name_mapping", Json::object()},
                    {"nodes", Json::array()}};
  std::map<std::string, Json> known_;
  std::vector<std::pair<std::string, HostTensor>> inputs_;
  std::vector<std::pair<std::string, HostTensor>> weights_;
};

// One node whose results are the outputs.
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

// ---- running

struct Failure {
  npu_status status;
  std::string text;
};

class Device {
 public:
  explicit Device(const std::string& options = R"({"threads": 1})") {
    npu_error error = {};
    if (const npu_status status = api().open_device(options.c_str(), &device_, &error);
        status != NPU_OK) {
      throw Failure{status, error.text};
    }
  }
  ~Device() { api().close_device(device_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  npu_device* get() const { return device_; }

 private:
  npu_device* device_ = nullptr;
};

// A model that is compiled and loaded; the model outlives it.
class Loaded {
 public:
  Loaded(const Device& device, Model& model) : model_(model), device_(device.get()) {
    std::vector<npu_tensor> weights;
    for (const auto& [name, tensor] : model.weights()) weights.push_back(tensor.view(name.c_str()));
    load(weights);
  }
  Loaded(const Device& device, Model& model, const std::vector<npu_tensor>& weights)
      : model_(model), device_(device.get()) {
    load(weights);
  }
  ~Loaded() {
    if (program_ != nullptr) api().program_free(program_);
    api().blob_free(&blob_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  npu_program* program() const { return program_; }

  std::vector<HostTensor> run() {
    std::vector<npu_buffer*> inputs;
    npu_error error = {};
    for (const auto& [name, tensor] : model_.inputs()) {
      const npu_tensor view = tensor.view(name.c_str());
      inputs.push_back(nullptr);
      check(api().buffer_import(device_, &view, &inputs.back(), &error), error);
    }
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
      HostTensor tensor;
      for (const auto& [name, dtype] : kDTypes) {
        if (dtype == description.dtype) tensor.dtype = name;
      }
      tensor.shape.assign(description.shape, description.shape + description.rank);
      tensor.bytes.resize(description.bytes);
      check(api().buffer_export(output, tensor.bytes.data(), tensor.bytes.size(), &error), error);
      api().buffer_free(output);
      results.push_back(std::move(tensor));
    }
    return results;
  }

 private:
  static void check(npu_status status, const npu_error& error) {
    if (status != NPU_OK) throw Failure{status, error.text};
  }
  void load(const std::vector<npu_tensor>& weights) {
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

  Model& model_;
  npu_device* device_;
  npu_blob blob_ = {};
  npu_program* program_ = nullptr;
};

// Runs twice, for a program keeps its state: both runs must agree bit for bit.
std::vector<HostTensor> run(Model model, const std::string& options = R"({"threads": 1})") {
  const Device device(options);
  Loaded loaded(device, model);
  const auto first = loaded.run();
  const auto second = loaded.run();
  REQUIRE(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) CHECK(first[i].bytes == second[i].bytes);
  return second;
}

Failure failure_of(Model model, const std::string& options = R"({"threads": 1})") {
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
                float tolerance = 1e-5F) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(found[i] - expected[i]) <= tolerance * std::max(1.0F, std::abs(expected[i])));
  }
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

}  // namespace

// ---- the interface

TEST_CASE("the aten backend describes itself", "[aten]") {
  npu_backend_description description = {};
  npu_error error = {};
  REQUIRE(api().describe(&description, &error) == NPU_OK);
  CHECK(std::string(description.name) == "aten");
  CHECK(std::string(description.version).find("libtorch") != std::string::npos);
  CHECK(std::string(description.fingerprint).find("libtorch") != std::string::npos);
  CHECK((description.capabilities & NPU_CAPABILITY_ANY_OP) != 0);
  CHECK(api().abi_version == NPU_BACKEND_ABI_VERSION);
  CHECK(api().struct_size == sizeof(npu_backend_api));
}

TEST_CASE("device options are checked", "[aten]") {
  const auto text = [](const std::string& options) {
    try {
      const Device device(options);
    } catch (const Failure& failure) {
      CHECK(failure.status == NPU_ERROR_INVALID);
      return failure.text;
    }
    return std::string();
  };
  CHECK(text("").empty());
  CHECK(text("{}").empty());
  CHECK(text(R"({"threads": 0, "unknown": [1]})").empty());
  CHECK(text(R"({"threads": -1})") == "option 'threads': expected an integer in 0..4096, found -1");
  CHECK(text(R"({"promote": 1})") == "option 'promote': expected true or false, found 1");
  CHECK(text(R"({"load_ops": "x.so"})").starts_with("option 'load_ops': expected a list of paths"));
  CHECK(text("[1]") == "device options: expected an object");
  CHECK_FALSE(text("{").empty());
}

TEST_CASE("list_ops names ops of every kind once", "[aten]") {
  const Device device;
  std::map<std::string, std::string> kinds;
  bool twice = false;
  std::pair<std::map<std::string, std::string>*, bool*> context{&kinds, &twice};
  npu_error error = {};
  const npu_op_visitor visit = [](void* opaque, const char* op_type, const char* kind) {
    const auto& [map, again] = *static_cast<decltype(context)*>(opaque);
    if (!map->emplace(op_type, kind).second) *again = true;
  };
  REQUIRE(api().list_ops(device.get(), visit, &context, &error) == NPU_OK);
  CHECK_FALSE(twice);
  CHECK(kinds.size() > 2000);
  CHECK(kinds["aten.conv2d.default"] == "aten");
  CHECK(kinds["aten.add.Tensor"] == "aten");
  CHECK(kinds.contains("aten.scaled_dot_product_attention.default"));
  CHECK(kinds["<built-in function getitem>"] == "builtin");
}

TEST_CASE("buffers keep every bit", "[aten]") {
  const Device device;
  npu_error error = {};
  // A signalling NaN, a subnormal, minus zero, infinity.
  for (const char* dtype : {"float16", "bfloat16"}) {
    const HostTensor tensor = bits16(dtype, {4}, {0x7d01, 0x0001, 0x8000, 0x7c00});
    const npu_tensor view = tensor.view("x");
    npu_buffer* buffer = nullptr;
    REQUIRE(api().buffer_import(device.get(), &view, &buffer, &error) == NPU_OK);
    std::vector<char> copy(8);
    REQUIRE(api().buffer_export(buffer, copy.data(), copy.size(), &error) == NPU_OK);
    CHECK(copy == tensor.bytes);
    CHECK(api().buffer_export(buffer, copy.data(), 7, &error) == NPU_ERROR_INVALID);
    CHECK(std::string(error.text) == "the buffer has 8 bytes, expected 7");
    api().buffer_free(buffer);
  }
  SECTION("allocation") {
    const Shape shape = {2, 0, 3};
    npu_buffer* buffer = nullptr;
    REQUIRE(api().buffer_allocate(device.get(), NPU_INT32, 3, shape.data(), &buffer, &error) ==
            NPU_OK);
    npu_tensor description = {};
    REQUIRE(api().buffer_describe(buffer, &description, &error) == NPU_OK);
    CHECK(description.rank == 3);
    CHECK(description.bytes == 0);
    CHECK(description.dtype == NPU_INT32);
    api().buffer_free(buffer);
    const Shape negative = {2, -1};
    CHECK(api().buffer_allocate(device.get(), NPU_INT32, 2, negative.data(), &buffer, &error) ==
          NPU_ERROR_INVALID);
    const Shape huge = {std::int64_t{1} << 40, std::int64_t{1} << 40};
    CHECK(api().buffer_allocate(device.get(), NPU_INT32, 2, huge.data(), &buffer, &error) ==
          NPU_ERROR_INVALID);
    CHECK(api().buffer_allocate(device.get(), static_cast<npu_dtype>(15), 0, nullptr, &buffer,
                                &error) == NPU_ERROR_INVALID);
  }
  SECTION("wrong byte count") {
    HostTensor tensor = range({2});
    tensor.bytes.pop_back();
    const npu_tensor view = tensor.view("x");
    npu_buffer* buffer = nullptr;
    CHECK(api().buffer_import(device.get(), &view, &buffer, &error) == NPU_ERROR_INVALID);
    CHECK(std::string(error.text) == "tensor 'x': expected 8 bytes, found 7");
  }
}

TEST_CASE("a program without nodes copies its inputs", "[aten]") {
  Model model;
  model.input("x", range({2, 2})).output("x");
  const auto results = run(model);
  CHECK(results[0].floats() == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("a blob that is no blob is refused", "[aten]") {
  const Device device;
  npu_error error = {};
  npu_program* program = nullptr;
  const std::string text = Model().input("x", range({1})).output("x").text();
  npu_blob blob = {};
  REQUIRE(api().compile(device.get(), text.data(), text.size(), nullptr, 0, nullptr, &blob,
                        &error) == NPU_OK);
  CHECK(api().load(device.get(), blob.data, 4, nullptr, 0, &program, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text) == "the blob is too short");
  CHECK(api().load(device.get(), blob.data, blob.size - 1, nullptr, 0, &program, &error) ==
        NPU_ERROR_INVALID);
  CHECK(api().load(device.get(), text.data(), text.size(), nullptr, 0, &program, &error) ==
        NPU_ERROR_INVALID);
  CHECK(std::string(error.text) == "the blob is not of the aten backend");
  std::string newer(static_cast<const char*>(blob.data), blob.size);
  newer[8] = 9;
  CHECK(api().load(device.get(), newer.data(), newer.size(), nullptr, 0, &program, &error) ==
        NPU_ERROR_INVALID);
  CHECK(std::string(error.text) == "the blob has version 9, expected 1; compile it again");
  api().blob_free(&blob);
  CHECK(blob.data == nullptr);
  CHECK(api().compile(device.get(), "{", 1, nullptr, 0, nullptr, &blob, &error) ==
        NPU_ERROR_INVALID);
}

TEST_CASE("inputs and outputs are checked against the sub-IR", "[aten]") {
  const Device device;
  Model model = one_node("aten.relu.default", {{"x", range({3})}}, {}, {{"y", {3}}});
  Loaded loaded(device, model);
  npu_error error = {};
  npu_buffer* output = nullptr;
  CHECK(api().run(loaded.program(), nullptr, 0, &output, 1, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text) == "expected 1 inputs, found 0");
  npu_buffer* input = nullptr;
  const HostTensor other = i64({3}, {1, 2, 3});
  const npu_tensor view = other.view("x");
  REQUIRE(api().buffer_import(device.get(), &view, &input, &error) == NPU_OK);
  CHECK(api().run(loaded.program(), &input, 1, &output, 1, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text) == "input 'x': expected float32 [3], found int64 [3]");
  CHECK(api().run(loaded.program(), &input, 1, &output, 0, &error) == NPU_ERROR_INVALID);
  CHECK(output == nullptr);
  api().buffer_free(input);
}

TEST_CASE("node_times has one entry per node", "[aten]") {
  const Device device;
  Model model;
  model.input("x", range({64, 64}))
      .node("mm", "aten.mm.default", {"x", "x"}, {}, {{"mm", {64, 64}}})
      .node("relu", "aten.relu.default", {"mm"}, {}, {{"relu", {64, 64}}})
      .output("relu");
  Loaded loaded(device, model);
  loaded.run();
  std::vector<std::uint64_t> times(2);
  npu_error error = {};
  REQUIRE(api().node_times(loaded.program(), times.data(), 2, &error) == NPU_OK);
  CHECK(times[0] > 0);
  CHECK(times[1] > 0);
  CHECK(api().node_times(loaded.program(), times.data(), 3, &error) == NPU_ERROR_INVALID);
}

// ---- arguments

TEST_CASE("defaults come from libtorch's schema", "[aten]") {
  // 1x1x3x3 of 0..8, kernel of ones 2x2: 0+1+3+4 = 8, 1+2+4+5 = 12, 3+4+6+7 = 20, 4+5+7+8 = 24.
  const std::vector<std::pair<std::string, HostTensor>> operands = {
      {"x", range({1, 1, 3, 3})}, {"w", range({1, 1, 2, 2}, 1, 0)}};
  SECTION("none given") {
    const auto y = run(one_node("aten.conv2d.default", operands, {}, {{"y", {1, 1, 2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{8, 12, 20, 24});
  }
  SECTION("a list, and one value for all") {
    // stride 2, padding 1: windows at -1 and 1: {0}, {1,2}, {3,6}, {4,5,7,8}.
    for (const Json& stride : {Json({2, 2}), Json({2}), Json(2)}) {
      if (stride == Json({2})) continue;  // int[2] of one element: see the next section
      const auto y =
          run(one_node("aten.conv2d.default", operands, {{"stride", stride}, {"padding", {1, 1}}},
                       {{"y", {1, 1, 2, 2}}}));
      CHECK(y[0].floats() == std::vector<float>{0, 3, 9, 24});
    }
  }
  SECTION("an optional tensor in the middle") {
    auto with_bias = operands;
    with_bias.emplace_back("b", f32({1}, {100}));
    const auto y =
        run(one_node("aten.conv2d.default", with_bias, {{"groups", 1}}, {{"y", {1, 1, 2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{108, 112, 120, 124});
  }
}

TEST_CASE("a number in place of a tensor does not widen the other operand", "[aten]") {
  const auto one = [](const HostTensor& x, const std::string& op, const Json& other,
                      const std::string& dtype) {
    return run(one_node(op, {{"x", x}}, {{"other", other}}, {{"y", x.shape, dtype}}))[0];
  };
  CHECK(one(f32({2}, {1, 3}), "aten.mul.Tensor", 0.5, "float32").floats() ==
        std::vector<float>{0.5F, 1.5F});
  CHECK(one(i64({2}, {1, 3}), "aten.add.Tensor", 2, "int64").ints() ==
        std::vector<std::int64_t>{3, 5});
  // 3.0 and 1.5 in bfloat16.
  CHECK(one(bits16("bfloat16", {1}, {0x4040}), "aten.mul.Tensor", 0.5, "bfloat16")
            .as<std::uint16_t>() == std::vector<std::uint16_t>{0x3fc0});
  CHECK(one(i64({2}, {1, 3}), "aten.mul.Tensor", 0.5, "float32").floats() ==
        std::vector<float>{0.5F, 1.5F});
  CHECK(one(f32({2}, {1, 3}), "aten.add.Tensor", true, "float32").floats() ==
        std::vector<float>{2, 4});
  CHECK(one(f32({2}, {1, 3}), "aten.maximum.default", "-inf", "float32").floats() ==
        std::vector<float>{1, 3});
  CHECK(one(i64({1}, {9007199254740993}), "aten.add.Tensor", 9007199254740993, "int64").ints() ==
        std::vector<std::int64_t>{18014398509481986});
}

TEST_CASE("aten: argument types", "[aten]") {
  const auto x = range({2, 3});  // 0 1 2 / 3 4 5
  SECTION("Scalar, keyword only") {
    const auto y =
        run(one_node("aten.add.Tensor", {{"x", x}, {"z", x}}, {{"alpha", 3}}, {{"y", {2, 3}}}));
    CHECK(y[0].floats() == std::vector<float>{0, 4, 8, 12, 16, 20});
  }
  SECTION("int list, bool, dtype") {
    const auto y = run(one_node("aten.sum.dim_IntList", {{"x", x}},
                                {{"dim", {-1}}, {"keepdim", true}, {"dtype", "torch.float64"}},
                                {{"y", {2, 1}, "float64"}}));
    CHECK(y[0].as<double>() == std::vector<double>{3, 12});
  }
  SECTION("None for an optional list") {
    const auto y =
        run(one_node("aten.sum.dim_IntList", {{"x", x}}, {{"dim", nullptr}}, {{"y", {}}}));
    CHECK(y[0].floats() == std::vector<float>{15});
  }
  SECTION("infinities as strings") {
    const auto y = run(one_node("aten.clamp.default", {{"x", f32({3}, {-kInfinity, 2, kInfinity})}},
                                {{"min", "-inf"}, {"max", 1.5}}, {{"y", {3}}}));
    CHECK(y[0].floats() == std::vector<float>{-kInfinity, 1.5F, 1.5F});
    const auto full =
        run(one_node("aten.full.default", {},
                     {{"size", {2}}, {"fill_value", "nan"}, {"dtype", "float32"}}, {{"y", {2}}}));
    CHECK(std::isnan(full[0].floats()[0]));
  }
  SECTION("device meta, layout, pin_memory") {
    const auto y = run(one_node("aten.zeros.default", {},
                                {{"size", {2, 2}},
                                 {"dtype", "torch.int64"},
                                 {"device", "meta"},
                                 {"layout", "torch.strided"},
                                 {"pin_memory", false}},
                                {{"y", {2, 2}, "int64"}}));
    CHECK(y[0].ints() == std::vector<std::int64_t>(4, 0));
  }
  SECTION("a device of the exporting machine") {
    const auto y =
        run(one_node("aten._to_copy.default", {{"x", x}},
                     {{"device", "cuda:0"}, {"dtype", "torch.int32"}}, {{"y", {2, 3}, "int32"}}));
    CHECK(y[0].as<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  }
  SECTION("memory format; the output is row-major whatever it is") {
    const auto image = range({1, 2, 2, 2});
    const auto y = run(one_node("aten.clone.default", {{"x", image}},
                                {{"memory_format", "torch.channels_last"}}, {{"y", {1, 2, 2, 2}}}));
    CHECK(y[0].floats() == image.floats());
  }
  SECTION("string") {
    const auto y =
        run(one_node("aten.div.Tensor_mode", {{"x", f32({2}, {7, -7})}, {"z", f32({2}, {2, 2})}},
                     {{"rounding_mode", "floor"}}, {{"y", {2}}}));
    CHECK(y[0].floats() == std::vector<float>{3, -4});
    const auto e =
        run(one_node("aten.einsum.default", {{"x", x}},
                     {{"equation", "ij->ji"}, {"_tensor_list_sizes", {1}}}, {{"y", {3, 2}}}));
    CHECK(e[0].floats() == std::vector<float>{0, 3, 1, 4, 2, 5});
  }
  SECTION("float list") {
    const auto y = run(one_node("aten.upsample_nearest2d.vec", {{"x", range({1, 1, 1, 2})}},
                                {{"output_size", nullptr}, {"scale_factors", {2.0, 1.0}}},
                                {{"y", {1, 1, 2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{0, 1, 0, 1});
  }
  SECTION("generator") {
    const auto y = run(one_node("aten.bernoulli.p", {{"x", x}},
                                {{"p", 1.0}, {"generator", nullptr}}, {{"y", {2, 3}}}));
    CHECK(y[0].floats() == std::vector<float>(6, 1));
  }
  SECTION("int for a float, SymInt lists") {
    const auto y = run(one_node("aten.dropout.default", {{"x", x}}, {{"p", 0}, {"train", false}},
                                {{"y", {2, 3}}}));
    CHECK(y[0].floats() == x.floats());
    const auto e = run(one_node("aten.expand.default", {{"x", range({1, 2})}}, {{"size", {2, -1}}},
                                {{"y", {2, 2}}}));
    CHECK(e[0].floats() == std::vector<float>{0, 1, 0, 1});
  }
  SECTION("scalar list") {
    const auto y = run(
        one_node("aten._foreach_add.ScalarList", {{"x", range({1})}, {"z", range({2})}},
                 {{"scalars", {1.5, 2}}, {"_tensor_list_sizes", {2}}}, {{"a", {1}}, {"b", {2}}}));
    CHECK(y[0].floats() == std::vector<float>{1.5F});
    CHECK(y[1].floats() == std::vector<float>{2, 3});
  }
  SECTION("an unknown keyword argument that is None") {
    const auto y = run(
        one_node("aten.relu.default", {{"x", x}}, {{"newer_argument", nullptr}}, {{"y", {2, 3}}}));
    CHECK(y[0].floats() == x.floats());
  }
}

TEST_CASE("tensor lists", "[aten]") {
  SECTION("cat") {
    const auto y =
        run(one_node("aten.cat.default", {{"a", range({1, 2})}, {"b", range({2, 2}, 10)}},
                     {{"_tensor_list_sizes", {2}}}, {{"y", {3, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{0, 1, 10, 11, 12, 13});
  }
  SECTION("one tensor twice") {
    Model model;
    model.input("x", range({1, 2}))
        .node("r", "aten.neg.default", {"x"}, {}, {{"r", {1, 2}}})
        .node("c", "aten.cat.default", {"r", "r"}, {{"_tensor_list_sizes", {2}}, {"dim", 1}},
              {{"c", {1, 4}}})
        .output("c");
    CHECK(run(model)[0].floats() == std::vector<float>{-0.0F, -1, -0.0F, -1});
  }
  SECTION("None masks") {
    // x[:, [2, 0]]
    const auto y =
        run(one_node("aten.index.Tensor", {{"x", range({2, 3})}, {"i", i64({2}, {2, 0})}},
                     {{"_tensor_list_sizes", {1}}, {"_tensor_list_none_masks", {{true, false}}}},
                     {{"y", {2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{2, 0, 5, 3});
  }
  SECTION("two lists") {
    // lstm with hidden size 1: input lists hx (2) and params (4).
    const auto zeros = [](Shape shape) { return range(std::move(shape), 0, 0); };
    const auto y = run(one_node("aten.lstm.input",
                                {{"x", range({2, 1, 3})},
                                 {"h", range({1, 1, 1}, 0, 0)},
                                 {"c", range({1, 1, 1}, 4, 0)},
                                 {"wi", zeros({4, 3})},
                                 {"wh", zeros({4, 1})},
                                 {"bi", zeros({4})},
                                 {"bh", zeros({4})}},
                                {{"_tensor_list_sizes", {2, 4}},
                                 {"has_biases", true},
                                 {"num_layers", 1},
                                 {"dropout", 0.0},
                                 {"train", false},
                                 {"bidirectional", false},
                                 {"batch_first", false}},
                                {{"o", {2, 1, 1}}, {"hn", {1, 1, 1}}, {"cn", {1, 1, 1}}}));
    // All gates are 0.5, the candidate is 0: the cell halves from 4 to 2 to 1; h = 0.5 tanh(cell).
    check_near(y[0].floats(), {0.5F * std::tanh(2.0F), 0.5F * std::tanh(1.0F)});
    check_near(y[2].floats(), {1.0F});
  }
}

TEST_CASE("zero-size and 0-d tensors", "[aten]") {
  const auto sum = run(one_node("aten.sum.default", {{"x", f32({0, 3}, {})}}, {}, {{"y", {}}}));
  CHECK(sum[0].floats() == std::vector<float>{0});
  const auto empty =
      run(one_node("aten.mul.Tensor", {{"x", f32({0, 3}, {})}}, {{"other", 2}}, {{"y", {0, 3}}}));
  CHECK(empty[0].bytes.empty());
  const auto scalar = run(one_node("aten.neg.default", {{"x", f32({}, {2})}}, {}, {{"y", {}}}));
  CHECK(scalar[0].floats() == std::vector<float>{-2});
  Model weights;
  weights.weight("w", f32({0}, {}))
      .node("n", "aten.sum.default", {"w"}, {}, {{"y", {}}})
      .output("y");
  CHECK(run(weights)[0].floats() == std::vector<float>{0});
}

TEST_CASE("every dtype passes bit for bit", "[aten]") {
  const std::vector<HostTensor> tensors = {range({2}),
                                           make<double>("float64", {2}, {1e300, -0.0}),
                                           bits16("float16", {2}, {0x0001, 0xfc00}),
                                           bits16("bfloat16", {2}, {0x0001, 0xff80}),
                                           make<std::int8_t>("int8", {2}, {-128, 127}),
                                           make<std::uint8_t>("uint8", {2}, {0, 255}),
                                           make<std::int16_t>("int16", {2}, {-32768, 1}),
                                           make<std::int32_t>("int32", {2}, {INT32_MIN, 1}),
                                           i64({2}, {INT64_MIN, 1}),
                                           boolean({2}, {0, 1}),
                                           make<float>("complex64", {1}, {1, -2}),
                                           make<double>("complex128", {1}, {1, -2})};
  for (const HostTensor& tensor : tensors) {
    INFO(tensor.dtype);
    Model model;
    model.input("x", tensor)
        .weight("w", tensor)
        .node("c", "aten.cat.default", {"x", "w"}, {{"_tensor_list_sizes", {2}}},
              {{"c", {2 * tensor.shape[0]}, tensor.dtype}})
        .output("c");
    auto expected = tensor.bytes;
    expected.insert(expected.end(), tensor.bytes.begin(), tensor.bytes.end());
    CHECK(run(model)[0].bytes == expected);
  }
}

// ---- in-place ops

TEST_CASE("in-place ops are functional", "[aten]") {
  const auto x = f32({3}, {-1, 2, -3});
  const std::vector<float> relu = {0, 2, 0};
  SECTION("on an input") {  // Loaded::run checks that the input stays
    CHECK(run(one_node("aten.relu_.default", {{"x", x}}, {}, {{"y", {3}}}))[0].floats() == relu);
  }
  SECTION("with another reader, before and after") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("r", "aten.relu_.default", {"a"}, {}, {{"r", {3}}})
        .node("s", "aten.add.Tensor", {"a", "r"}, {}, {{"s", {3}}})
        .output("s");
    CHECK(run(model)[0].floats() == std::vector<float>{-1, 4, -3});
  }
  SECTION("as the only reader, twice in a row") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("r", "aten.relu_.default", {"a"}, {}, {{"r", {3}}})
        .node("s", "aten.add_.Tensor", {"r"}, {{"other", 1}}, {{"s", {3}}})
        .output("s");
    CHECK(run(model)[0].floats() == std::vector<float>{1, 3, 1});
  }
  SECTION("on a view of a value that is read later") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("v", "aten.view.default", {"a"}, {{"size", {1, 3}}}, {{"v", {1, 3}}})
        .node("r", "aten.relu_.default", {"v"}, {}, {{"r", {1, 3}}})
        .output("r")
        .output("a");
    const auto results = run(model);
    CHECK(results[0].floats() == relu);
    CHECK(results[1].floats() == x.floats());
  }
  SECTION("on a view of an input and of a weight in read-only memory") {
    void* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    std::memcpy(page, x.bytes.data(), x.bytes.size());
    REQUIRE(::mprotect(page, 4096, PROT_READ) == 0);
    Model model;
    model.input("x", x).weight("w", x);
    for (const std::string operand : {"x", "w"}) {
      model
          .node("v" + operand, "aten.unsqueeze.default", {operand}, {{"dim", 0}},
                {{"v" + operand, {1, 3}}})
          .node("r" + operand, "aten.relu_.default", {"v" + operand}, {}, {{"r" + operand, {1, 3}}})
          .output("r" + operand);
    }
    const Device device;
    const npu_tensor weight = {"w", NPU_FLOAT32, 1, x.shape.data(), page, 12};
    Loaded loaded(device, model, {weight});
    for (const HostTensor& result : loaded.run()) CHECK(result.floats() == relu);
    ::munmap(page, 4096);
  }
  SECTION("writing an operand that is read by the same op") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("s", "aten.add_.Tensor", {"a", "a"}, {}, {{"s", {3}}})
        .output("s")
        .output("a");
    const auto results = run(model);
    CHECK(results[0].floats() == std::vector<float>{-2, 4, -6});
    CHECK(results[1].floats() == x.floats());
  }
  SECTION("on an expanded value, whose elements share memory") {
    Model model;
    model.input("x", f32({1}, {5}))
        .node("a", "aten.neg.default", {"x"}, {}, {{"a", {1}}})
        .node("e", "aten.expand.default", {"a"}, {{"size", {2}}}, {{"e", {2}}})
        .node("s", "aten.add_.Tensor", {"e"}, {{"other", 1}}, {{"s", {2}}})
        .output("s");
    CHECK(run(model)[0].floats() == std::vector<float>{-4, -4});
  }
  SECTION("copy_, fill_, masked_fill_") {
    CHECK(run(one_node("aten.copy_.default", {{"x", x}, {"y", f32({1}, {7})}}, {}, {{"r", {3}}}))[0]
              .floats() == std::vector<float>{7, 7, 7});
    CHECK(
        run(one_node("aten.fill_.Scalar", {{"x", x}}, {{"value", 2}}, {{"r", {3}}}))[0].floats() ==
        std::vector<float>{2, 2, 2});
    CHECK(run(one_node("aten.masked_fill_.Scalar", {{"x", x}, {"m", boolean({3}, {1, 0, 0})}},
                       {{"value", "-inf"}}, {{"r", {3}}}))[0]
              .floats() == std::vector<float>{-kInfinity, 2, -3});
  }
  SECTION("an op that changes the shape") {
    Model model;
    model.input("x", x)
        .node("u", "aten.unsqueeze_.default", {"x"}, {{"dim", 0}}, {{"u", {1, 3}}})
        .node("s", "aten.neg.default", {"x"}, {}, {{"s", {3}}})
        .output("u")
        .output("s");
    CHECK(run(model)[0].floats() == x.floats());
    const auto r = run(one_node("aten.resize_.default", {{"x", x}}, {{"size", {2}}}, {{"r", {2}}}));
    CHECK(r[0].floats() == std::vector<float>{-1, 2});
  }
  SECTION("out arguments, given, too small, and left away") {
    const std::vector<float> sum = {-2, 4, -6};
    for (const HostTensor& out : {range({3}), f32({0}, {})}) {
      CHECK(run(one_node("aten.add.out", {{"x", x}, {"y", x}, {"out", out}}, {}, {{"r", {3}}}))[0]
                .floats() == sum);
    }
    CHECK(run(one_node("aten.add.out", {{"x", x}, {"y", x}}, {}, {{"r", {3}}}))[0].floats() == sum);
  }
  SECTION("an op that returns nothing gives what it wrote") {
    const auto r = run(one_node("aten._foreach_neg_.default", {{"x", x}, {"y", f32({1}, {4})}},
                                {{"_tensor_list_sizes", {2}}}, {{"a", {3}}, {"b", {1}}}));
    CHECK(r[0].floats() == std::vector<float>{1, -2, 3});
    CHECK(r[1].floats() == std::vector<float>{-4});
  }
}

TEST_CASE("running statistics of a batch norm in training stay as they are", "[aten]") {
  // The schema does not annotate that they are written; the weights are read-only memory in
  // practice.
  Model model;
  const auto ones = range({2}, 1, 0);
  const auto zeros = range({2}, 0, 0);
  model.input("x", f32({2, 2}, {0, 0, 2, 4}))
      .weight("g", ones)
      .weight("b", zeros)
      .weight("m", zeros)
      .weight("v", ones)
      .node("n", "aten.batch_norm.default", {"x", "g", "b", "m", "v"},
            {{"training", true}, {"momentum", 0.5}, {"eps", 0.0}, {"cudnn_enabled", false}},
            {{"y", {2, 2}}})
      .node("s", "aten.add.Tensor", {"m", "v"}, {}, {{"s", {2}}})
      .output("y")
      .output("s");
  const auto results = run(model);
  check_near(results[0].floats(), {-1, -1, 1, 1});
  CHECK(results[1].floats() == std::vector<float>{1, 1});
}

// ---- results

TEST_CASE("several results and getitem", "[aten]") {
  Model model;
  model.input("x", f32({2, 3}, {1, 5, 3, 9, 7, 8}))
      .node("t", "aten.topk.default", {"x"}, {{"k", 2}},
            {{"t_0", {2, 2}}, {"t_1", {2, 2}, "int64"}})
      .node("v", "<built-in function getitem>", {"t_0", "t_1"}, {{"index", 0}}, {{"v", {2, 2}}})
      .node("i", "<built-in function getitem>", {"t_0", "t_1"}, {{"index", -1}},
            {{"i", {2, 2}, "int64"}})
      .node("n", "aten.neg.default", {"v"}, {}, {{"n", {2, 2}}});
  SECTION("both") {
    model.output("n").output("i").output("v");
    const auto results = run(model);
    CHECK(results[0].floats() == std::vector<float>{-5, -3, -9, -8});
    CHECK(results[1].ints() == std::vector<std::int64_t>{1, 2, 0, 2});
    CHECK(results[2].floats() == std::vector<float>{5, 3, 9, 8});
  }
  SECTION("one that nobody reads") {
    model.output("n");
    CHECK(run(model)[0].floats() == std::vector<float>{-5, -3, -9, -8});
  }
}

TEST_CASE("getitem is checked when it is compiled", "[aten]") {
  const auto text = [](const Json& attrs, const Shape& shape) {
    Model model;
    model.input("x", range({2}))
        .input("y", range({3}))
        .node("g", "<built-in function getitem>", {"x", "y"}, attrs, {{"g", shape}})
        .output("g");
    const Failure failure = failure_of(model);
    CHECK(failure.status == NPU_ERROR_INVALID);
    return failure.text;
  };
  for (const Json& attrs :
       {Json{{"index", 2}}, Json{{"index", -3}}, Json{{"index", "a"}}, Json::object()}) {
    CHECK(text(attrs, {2}).starts_with("node 'g' "));
  }
  CHECK(text({{"index", 1}}, {2}) ==
        "node 'g' (<built-in function getitem>): result 'g': expected float32 [2], but value 1 is "
        "float32 [3]");
}

TEST_CASE("lists of results are flattened", "[aten]") {
  const auto r = run(one_node("aten.split.Tensor", {{"x", range({5})}}, {{"split_size", 2}},
                              {{"a", {2}}, {"b", {2}}, {"c", {1}}}));
  CHECK(r[0].floats() == std::vector<float>{0, 1});
  CHECK(r[1].floats() == std::vector<float>{2, 3});
  CHECK(r[2].floats() == std::vector<float>{4});
}

TEST_CASE("numbers as results become 0-d tensors", "[aten]") {
  CHECK(
      run(one_node("aten.item.default", {{"x", f32({1}, {2.5F})}}, {}, {{"y", {}}}))[0].floats() ==
      std::vector<float>{2.5F});
  CHECK(run(one_node("aten._local_scalar_dense.default", {{"x", i64({}, {7})}}, {},
                     {{"y", {}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{7});
  CHECK(run(one_node("aten.equal.default", {{"x", range({2})}, {"y", range({2})}}, {},
                     {{"e", {}, "bool"}}))[0]
            .bytes == std::vector<char>{1});
  CHECK(run(one_node("aten.sym_size.int", {{"x", range({2, 5})}}, {{"dim", -1}},
                     {{"y", {}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{5});
  CHECK(run(one_node("aten.sym_numel.default", {{"x", range({2, 5})}}, {}, {{"y", {}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{10});
}

TEST_CASE("outputs share memory with nothing and are row-major", "[aten]") {
  // Loaded::run checks that outputs lie at different addresses and that inputs stay.
  Model model;
  model.input("x", range({2, 3}))
      .weight("w", range({2}, 5))
      .node("t", "aten.t.default", {"x"}, {}, {{"t", {3, 2}}})
      .node("v", "aten.view.default", {"x"}, {{"size", {6}}}, {{"v", {6}}})
      .node("e", "aten.expand.default", {"w"}, {{"size", {2, 2}}}, {{"e", {2, 2}}})
      .node("d", "aten.detach.default", {"w"}, {}, {{"d", {2}}})
      .output("t")
      .output("v")
      .output("v")
      .output("x")
      .output("e")
      .output("d")
      .output("w");
  const auto results = run(model);
  CHECK(results[0].floats() == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(results[1].floats() == results[2].floats());
  CHECK(results[3].floats() == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(results[4].floats() == std::vector<float>{5, 6, 5, 6});
  CHECK(results[6].floats() == std::vector<float>{5, 6});
  const auto conjugate =
      run(one_node("aten._conj.default", {{"x", make<float>("complex64", {1}, {1, 2})}}, {},
                   {{"y", {1}, "complex64"}}));
  CHECK(conjugate[0].as<float>() == std::vector<float>{1, -2});
}

TEST_CASE("a view of a value with other strides becomes a copy", "[aten]") {
  Model model;
  model.input("x", range({2, 3}))
      .node("t", "aten.t.default", {"x"}, {}, {{"t", {3, 2}}})
      .node("v", "aten.view.default", {"t"}, {{"size", {6}}}, {{"v", {6}}})
      .output("v");
  CHECK(run(model)[0].floats() == std::vector<float>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("a result that disagrees with the document fails", "[aten]") {
  const Failure shape =
      failure_of(one_node("aten.relu.default", {{"x", range({2, 3})}}, {}, {{"y", {3, 2}}}));
  CHECK(shape.status == NPU_ERROR_FAILED);
  CHECK(shape.text ==
        "node 'n' (aten.relu.default): result 'y': expected float32 [3, 2], found float32 [2, 3]");
  const Failure dtype = failure_of(
      one_node("aten.gt.Scalar", {{"x", range({2})}}, {{"other", 0}}, {{"y", {2}, "int64"}}));
  CHECK(dtype.text == "node 'n' (aten.gt.Scalar): result 'y': expected int64 [2], found bool [2]");
  const Failure count =
      failure_of(one_node("aten.relu.default", {{"x", range({2})}}, {}, {{"y", {2}}, {"z", {2}}}));
  CHECK(count.text == "node 'n' (aten.relu.default): expected 2 results, found 1");
}

TEST_CASE("a program runs again after it failed", "[aten]") {
  const Device device;
  Model model;
  model.input("x", f32({2}, {1, 0}))
      .node("c", "aten.cat.default", {"x", "x"}, {{"_tensor_list_sizes", {2}}}, {{"c", {4}}})
      .node("a", "aten._assert_async.default", {"x"}, {}, {})
      .output("c");
  Loaded loaded(device, model);
  for (int i = 0; i < 2; ++i) {
    try {
      loaded.run();
      FAIL("expected a failure");
    } catch (const Failure& failure) {
      CHECK(failure.status == NPU_ERROR_FAILED);
      CHECK(failure.text.starts_with("node 'a' (aten._assert_async.default): "));
    }
  }
}

TEST_CASE("a long chain", "[aten]") {
  Model model;
  model.input("x", range({4})).input("y", range({4}, 1, 0));
  std::string previous = "x";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "add_" + std::to_string(i);
    model.node(name, "aten.add.Tensor", {previous, "y"}, {}, {{name, {4}}});
    previous = name;
  }
  model.output(previous);
  CHECK(run(model)[0].floats() == std::vector<float>{1000, 1001, 1002, 1003});
}

// ---- weights

TEST_CASE("weights are checked when they are loaded", "[aten]") {
  Model model;
  model.input("x", range({2}))
      .weight("w", range({2}, 3))
      .node("n", "aten.add.Tensor", {"x", "w"}, {}, {{"y", {2}}})
      .output("y");
  CHECK(run(model)[0].floats() == std::vector<float>{3, 5});
  SECTION("missing") {
    model.weights().clear();
    const Failure failure = failure_of(model);
    CHECK(failure.status == NPU_ERROR_INVALID);
    CHECK(failure.text == "weight 'w' is missing");
  }
  SECTION("another shape") {
    model.weights()[0].second = range({1, 2});
    CHECK(failure_of(model).text == "weight 'w': expected float32 [2], found float32 [1, 2]");
  }
  SECTION("another dtype") {
    model.weights()[0].second = i64({2}, {1, 2});
    CHECK(failure_of(model).text == "weight 'w': expected float32 [2], found int64 [2]");
  }
  SECTION("twice") {
    model.weights().push_back(model.weights()[0]);
    CHECK(failure_of(model).text == "weight 'w' is given twice");
  }
  SECTION("not aligned") {
    std::vector<char> storage(9);
    std::memcpy(storage.data() + 1, model.weights()[0].second.bytes.data(), 8);
    const Shape shape = {2};
    const Device device;
    Loaded loaded(device, model, {{"w", NPU_FLOAT32, 1, shape.data(), storage.data() + 1, 8}});
    CHECK(loaded.run()[0].floats() == std::vector<float>{3, 5});
  }
}

// ---- decompositions

namespace {

// softmax(q k^T * scale + mask) v for one head, in double.
std::vector<float> attention(const std::vector<float>& q, const std::vector<float>& k,
                             const std::vector<float>& v, std::size_t length, std::size_t source,
                             std::size_t width, double scale, const std::vector<double>& mask,
                             std::vector<float>* logsumexp = nullptr) {
  std::vector<float> result(length * width);
  for (std::size_t i = 0; i < length; ++i) {
    std::vector<double> weights(source);
    double sum = 0.0;
    for (std::size_t j = 0; j < source; ++j) {
      double score = 0.0;
      for (std::size_t d = 0; d < width; ++d)
        score += double{q[i * width + d]} * double{k[j * width + d]};
      weights[j] = std::exp(score * scale + (mask.empty() ? 0.0 : mask[i * source + j]));
      sum += weights[j];
    }
    if (logsumexp != nullptr) logsumexp->push_back(static_cast<float>(std::log(sum)));
    for (std::size_t d = 0; d < width; ++d) {
      double value = 0.0;
      for (std::size_t j = 0; j < source; ++j) value += weights[j] * double{v[j * width + d]};
      result[i * width + d] = sum == 0.0 ? 0.0F : static_cast<float>(value / sum);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("scaled_dot_product_attention", "[aten]") {
  const std::string op = "aten.scaled_dot_product_attention.default";
  const auto q = range({1, 1, 2, 4}, -0.5F, 0.1F);
  const auto k = range({1, 1, 3, 4}, 0.2F, -0.1F);
  const auto v = range({1, 1, 3, 4}, 1.0F, 0.5F);
  const std::vector<std::pair<std::string, HostTensor>> qkv = {{"q", q}, {"k", k}, {"v", v}};
  const auto expected = [&](double scale, const std::vector<double>& mask) {
    return attention(q.floats(), k.floats(), v.floats(), 2, 3, 4, scale, mask);
  };
  const double out = -std::numeric_limits<double>::infinity();
  const std::vector<Result> y = {{"y", {1, 1, 2, 4}}};
  SECTION("plain") { check_near(run(one_node(op, qkv, {}, y))[0].floats(), expected(0.5, {})); }
  SECTION("scale") {
    check_near(run(one_node(op, qkv, {{"scale", 2.0}}, y))[0].floats(), expected(2.0, {}));
    check_near(run(one_node(op, qkv, {{"scale", nullptr}, {"enable_gqa", false}}, y))[0].floats(),
               expected(0.5, {}));
    check_near(run(one_node(op, qkv, {{"scale", -1.0}}, y))[0].floats(), expected(-1.0, {}));
  }
  SECTION("causal") {
    check_near(run(one_node(op, qkv, {{"is_causal", true}}, y))[0].floats(),
               expected(0.5, {0, out, out, 0, 0, out}));
  }
  SECTION("masks, and a row that lets nothing through") {
    auto operands = qkv;
    operands.emplace_back("m", boolean({2, 3}, {1, 0, 1, 0, 0, 0}));
    check_near(run(one_node(op, operands, {}, y))[0].floats(),
               expected(0.5, {0, out, 0, out, out, out}));
    operands.back().second = f32({1, 1, 2, 3}, {0, 1, -kInfinity, 0.5F, 0, 0});
    check_near(run(one_node(op, operands, {}, y))[0].floats(),
               expected(0.5, {0, 1, out, 0.5, 0, 0}));
  }
  SECTION("fewer heads of keys than of queries") {
    const auto q4 = range({1, 4, 2, 2}, 0, 0.05F);
    const auto k2 = range({1, 2, 2, 2}, 0.3F, -0.1F);
    const auto result = run(one_node(op, {{"q", q4}, {"k", k2}, {"v", k2}}, {{"enable_gqa", true}},
                                     {{"y", {1, 4, 2, 2}}}))[0]
                            .floats();
    for (std::size_t head = 0; head < 4; ++head) {
      const auto part = [](const HostTensor& tensor, std::size_t index) {
        const auto all = tensor.floats();
        return std::vector<float>(all.begin() + static_cast<std::ptrdiff_t>(4 * index),
                                  all.begin() + static_cast<std::ptrdiff_t>(4 * index + 4));
      };
      const auto reference = attention(part(q4, head), part(k2, head / 2), part(k2, head / 2), 2, 2,
                                       2, 1.0 / std::sqrt(2.0), {});
      check_near(std::vector<float>(result.begin() + static_cast<std::ptrdiff_t>(4 * head),
                                    result.begin() + static_cast<std::ptrdiff_t>(4 * head + 4)),
                 reference);
    }
  }
  SECTION("dropout is refused") {
    const Failure failure = failure_of(one_node(op, qkv, {{"dropout_p", 0.1}}, y));
    CHECK(failure.text.starts_with("node 'n' (" + op +
                                   "): dropout_p is 0.1, but only 0 runs here; arguments: "));
  }
  SECTION("the flash variant, whose second result is the logarithm of the sum") {
    std::vector<float> logsumexp;
    const auto reference =
        attention(q.floats(), k.floats(), v.floats(), 2, 3, 4, 0.5, {}, &logsumexp);
    const auto results = run(one_node("aten._scaled_dot_product_flash_attention_for_cpu.default",
                                      qkv, {}, {{"y", {1, 1, 2, 4}}, {"l", {1, 1, 2}}}));
    check_near(results[0].floats(), reference);
    check_near(results[1].floats(), logsumexp);
  }
}

TEST_CASE("normalisation that libtorch 1.13 lacks", "[aten]") {
  SECTION("rms_norm") {
    // Mean squares of (3, 4) and (6, 8): 12.5 and 50.
    const auto y = run(one_node("aten.rms_norm.default",
                                {{"x", f32({2, 2}, {3, 4, 6, 8})}, {"w", f32({2}, {1, 2})}},
                                {{"normalized_shape", {2}}, {"eps", 0.0}}, {{"y", {2, 2}}}));
    const float a = 3 / std::sqrt(12.5F);
    const float b = 4 / std::sqrt(12.5F);
    check_near(y[0].floats(), {a, 2 * b, a, 2 * b});
  }
  SECTION("batch norm without training") {
    // (x - 1) / sqrt(4) * 3 + 0.5
    const auto y =
        run(one_node("aten._native_batch_norm_legit_no_training.default",
                     {{"x", f32({2, 1}, {1, 3})},
                      {"w", f32({1}, {3})},
                      {"b", f32({1}, {0.5F})},
                      {"m", f32({1}, {1})},
                      {"v", f32({1}, {4})}},
                     {{"momentum", 0.1}, {"eps", 0.0}}, {{"y", {2, 1}}, {"s", {0}}, {"t", {0}}}));
    check_near(y[0].floats(), {0.5F, 3.5F});
  }
  SECTION("batch norm of the batch's own statistics") {
    const auto y =
        run(one_node("aten._native_batch_norm_legit.no_stats", {{"x", f32({2, 1}, {1, 3})}},
                     {{"training", true},
                      {"momentum", 0.1},
                      {"eps", 0.0},
                      {"weight", nullptr},
                      {"bias", nullptr}},
                     {{"y", {2, 1}}, {"s", {1}}, {"t", {1}}}));
    check_near(y[0].floats(), {-1, 1});
    check_near(y[1].floats(), {2});
  }
  SECTION("safe softmax") {
    const auto y = run(one_node("aten._safe_softmax.default",
                                {{"x", f32({2, 2}, {0, 0, -kInfinity, -kInfinity})}}, {{"dim", -1}},
                                {{"y", {2, 2}}}));
    check_near(y[0].floats(), {0.5F, 0.5F, 0, 0});
  }
}

TEST_CASE("statistics with a correction that is a float", "[aten]") {
  // 1 and 3: mean 2, squares 1 + 1; divided by 2 - correction.
  const auto x = f32({2}, {1, 3});
  const auto var = [&](const Json& attrs) {
    return run(one_node("aten.var.correction", {{"x", x}}, attrs, {{"y", {}}}))[0].floats();
  };
  check_near(var({{"dim", {0}}, {"correction", 0.0}}), {1});
  check_near(var({{"dim", {0}}, {"correction", 1}}), {2});
  check_near(var(Json::object()), {2});
  const auto both = run(one_node("aten.std_mean.correction", {{"x", x}},
                                 {{"dim", {0}}, {"correction", 1.0}, {"keepdim", true}},
                                 {{"s", {1}}, {"m", {1}}}));
  check_near(both[0].floats(), {std::sqrt(2.0F)});
  check_near(both[1].floats(), {2});
}

TEST_CASE("shape and index ops that libtorch 1.13 lacks", "[aten]") {
  const auto x = range({1, 2, 1});
  CHECK(run(one_node("aten.squeeze.dims", {{"x", x}}, {{"dim", {0, -1}}}, {{"y", {2}}}))[0]
            .floats() == x.floats());
  CHECK(run(one_node("aten.squeeze.dims", {{"x", x}}, {{"dim", {0, 1}}}, {{"y", {2, 1}}}))[0]
            .floats() == x.floats());
  const auto flags = boolean({2, 2}, {1, 1, 1, 0});
  CHECK(run(one_node("aten.all.dims", {{"x", flags}}, {{"dim", {1}}}, {{"y", {2}, "bool"}}))[0]
            .bytes == std::vector<char>{1, 0});
  CHECK(run(one_node("aten.all.dims", {{"x", flags}}, {{"dim", {0, 1}}}, {{"y", {}, "bool"}}))[0]
            .bytes == std::vector<char>{0});
  CHECK(run(one_node("aten.any.dims", {{"x", flags}}, {}, {{"y", {}, "bool"}}))[0].bytes ==
        std::vector<char>{1});
  CHECK(run(one_node("aten._unsafe_index.Tensor", {{"x", range({3})}, {"i", i64({2}, {2, -1})}},
                     {{"_tensor_list_sizes", {1}}}, {{"y", {2}}}))[0]
            .floats() == std::vector<float>{2, 2});
  CHECK(run(one_node("aten.nonzero_static.default", {{"x", f32({3}, {0, 5, 6})}}, {{"size", 3}},
                     {{"y", {3, 1}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{1, 2, -1});
  CHECK(run(one_node("aten.view_copy.default", {{"x", x}}, {{"size", {-1}}}, {{"y", {2}}}))[0]
            .floats() == x.floats());
  CHECK(run(one_node("aten.lift_fresh_copy.default", {{"x", x}}, {}, {{"y", {1, 2, 1}}}))[0]
            .floats() == x.floats());
  CHECK(run(one_node("aten.alias.default", {{"x", x}}, {}, {{"y", {1, 2, 1}}}))[0].floats() ==
        x.floats());
  CHECK(run(one_node("aten.detach_.default", {{"x", x}}, {}, {{"y", {1, 2, 1}}}))[0].floats() ==
        x.floats());
  const auto dropout =
      run(one_node("aten.native_dropout.default", {{"x", x}}, {{"p", 0.5}, {"train", false}},
                   {{"y", {1, 2, 1}}, {"m", {1, 2, 1}, "bool"}}));
  CHECK(dropout[0].floats() == x.floats());
}

TEST_CASE("assertions of exported programs", "[aten]") {
  const auto model = [](const Json& attrs) {
    Model result;
    result.input("x", range({2}))
        .node("a", "aten._assert_tensor_metadata.default", {"x"}, attrs, {})
        .output("x");
    return result;
  };
  CHECK(
      run(model({{"dtype", "torch.float32"}, {"device", "cuda:0"}, {"layout", "torch.strided"}}))[0]
          .floats() == std::vector<float>{0, 1});
  CHECK(failure_of(model({{"dtype", "torch.int64"}}))
            .text.starts_with(
                "node 'a' (aten._assert_tensor_metadata.default): the tensor has dtype"));
  CHECK(failure_of(model({{"size", {3}}})).text.find("the tensor has shape [2], expected [3]") !=
        std::string::npos);
  Model async;
  async.input("x", boolean({}, {0}))
      .node("a", "aten._assert_async.msg", {"x"}, {{"assert_msg", "x must hold"}}, {})
      .output("x");
  CHECK(failure_of(async).text ==
        "node 'a' (aten._assert_async.msg): x must hold; arguments: self: bool [], assert_msg: \"x "
        "must hold\"");
}

// ---- dtypes that do not fit

TEST_CASE("small element-wise ops that need no dispatcher", "[aten]") {
  // In-place and functional forms, an operand that is read again later, one that is read twice by
  // one node, a view in another order (the dispatcher's case) and an operand that dies.
  Model model;
  model.input("x", f32({2, 2}, {1, 2, 3, 4}))
      .input("y", f32({2, 2}, {10, 20, 30, 40}))
      .node("twice", "aten.add.Tensor", {"x", "x"}, Json::object(), {{"twice", {2, 2}}})
      .node("product", "aten.mul_.Tensor", {"twice", "y"}, Json::object(), {{"product", {2, 2}}})
      .node("turned", "aten.t.default", {"product"}, Json::object(), {{"turned", {2, 2}}})
      .node("mixed", "aten.sub.Tensor", {"turned", "twice"}, Json::object(), {{"mixed", {2, 2}}})
      .node("minus", "aten.neg.default", {"mixed"}, Json::object(), {{"minus", {2, 2}}})
      .node("ratio", "aten.div.Tensor", {"minus", "y"}, Json::object(), {{"ratio", {2, 2}}})
      .node("weighted", "aten.add.Tensor", {"ratio", "x"}, {{"alpha", 3}}, {{"weighted", {2, 2}}})
      .output("product")
      .output("weighted");
  const auto results = run(model);
  // twice = 2 4 6 8; product = 20 80 180 320; turned = 20 180 80 320; mixed = 18 176 74 312
  CHECK(results[0].floats() == std::vector<float>{20, 80, 180, 320});
  // ratio = -1.8 -8.8 -74/30 -7.8; weighted = ratio + 3 x
  CHECK(results[1].floats() ==
        std::vector<float>{-1.8F + 3, -8.8F + 6, -74.0F / 30 + 9, -7.8F + 12});

  // Integers wrap; the sum of int32 and int64 is the dispatcher's.
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  Model integers;
  integers.input("a", i64({2}, {kLargest, -5}))
      .input("b", i64({2}, {1, 7}))
      .node("sum", "aten.add.Tensor", {"a", "b"}, Json::object(), {{"sum", {2}, "int64"}})
      .node("minus", "aten.neg.default", {"sum"}, Json::object(), {{"minus", {2}, "int64"}})
      .node("square", "aten.mul.Tensor", {"sum", "sum"}, Json::object(), {{"square", {2}, "int64"}})
      .output("minus")
      .output("square");
  const auto wrapped = run(integers);
  constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
  CHECK(wrapped[0].ints() == std::vector<std::int64_t>{kSmallest, -2});
  CHECK(wrapped[1].ints() == std::vector<std::int64_t>{0, 4});

  // Inputs and weights stay as they are over runs, and no elements are fine.
  Model weights;
  weights.input("x", f32({0}, {}))
      .weight("w", f32({0}, {}))
      .node("sum", "aten.add_.Tensor", {"w", "x"}, Json::object(), {{"sum", {0}}})
      .output("sum");
  CHECK(run(weights)[0].floats().empty());
}

TEST_CASE("operands of different floating dtypes", "[aten]") {
  // 1.5 in bfloat16 is 0x3fc0.
  const auto model = [](const std::string& dtype) {
    return one_node("aten.linear.default",
                    {{"x", bits16("bfloat16", {1, 1}, {0x3fc0})}, {"w", f32({1, 1}, {1.001F})}}, {},
                    {{"y", {1, 1}, dtype}});
  };
  const Failure failure = failure_of(model("float32"));
  CHECK(failure.status == NPU_ERROR_UNSUPPORTED);
  CHECK(failure.text ==
        "node 'n' (aten.linear.default): operand 'x' is bfloat16 and 'w' is float32; this op needs "
        "one dtype (npu-run --promote, or the device option \"promote\": true, converts them)");
  check_near(run(model("float32"), R"({"promote": true})")[0].floats(), {1.5015F});
  // Ops that promote need no option.
  const auto sum = run(one_node("aten.add.Tensor",
                                {{"x", bits16("bfloat16", {1}, {0x3fc0})}, {"y", f32({1}, {1})}},
                                {}, {{"z", {1}}}));
  CHECK(sum[0].floats() == std::vector<float>{2.5F});
}

TEST_CASE("16-bit ops without a kernel run in float32", "[aten]") {
  // 1.0, 2.0 and 3.0 in float16; 1 * 1 + 2 * 3 = 7.
  Model model;
  model.input("x", bits16("float16", {1, 2}, {0x3c00, 0x4000}))
      .weight("w", bits16("float16", {1, 2}, {0x3c00, 0x4200}))
      .node("n", "aten.linear.default", {"x", "w"}, {}, {{"y", {1, 1}, "float16"}})
      .node("m", "aten.linear.default", {"y", "y"}, {}, {{"z", {1, 1}, "float16"}})
      .output("y")
      .output("z");
  const auto results = run(model);
  CHECK(results[0].as<std::uint16_t>() == std::vector<std::uint16_t>{0x4700});
  CHECK(results[1].as<std::uint16_t>() == std::vector<std::uint16_t>{0x5220});  // 49
}

// ---- errors

TEST_CASE("errors name node, op and argument", "[aten]") {
  const std::vector<std::pair<std::string, HostTensor>> conv = {{"x", range({1, 1, 3, 3})},
                                                                {"w", range({1, 1, 2, 2})}};
  const Failure type = failure_of(
      one_node("aten.conv2d.default", conv, {{"stride", "same"}}, {{"y", {1, 1, 2, 2}}}));
  CHECK(type.status == NPU_ERROR_INVALID);
  CHECK(type.text.starts_with("node 'n' (aten.conv2d.default): argument 'stride': expected"));
  const Failure missing =
      failure_of(one_node("aten.softmax.int", {{"x", range({2})}}, {}, {{"y", {2}}}));
  CHECK(missing.text.starts_with("node 'n' (aten.softmax.int): argument 'dim': "));
  const Failure extra =
      failure_of(one_node("aten.relu.default", {{"x", range({2})}}, {{"alpha", 1}}, {{"y", {2}}}));
  CHECK(extra.text.find("alpha") != std::string::npos);
  const Failure run_time = failure_of(one_node(
      "aten.mm.default", {{"x", range({2, 3})}, {"y", range({2, 3})}}, {}, {{"z", {2, 3}}}));
  CHECK(run_time.status == NPU_ERROR_FAILED);
  CHECK(run_time.text.starts_with("node 'n' (aten.mm.default): "));
  CHECK(run_time.text.ends_with("; arguments: self: float32 [2, 3], mat2: float32 [2, 3]"));
  const Failure dim =
      failure_of(one_node("aten.softmax.int", {{"x", range({2})}}, {{"dim", 5}}, {{"y", {2}}}));
  CHECK(dim.status == NPU_ERROR_FAILED);
  CHECK(dim.text.ends_with("; arguments: self: float32 [2], dim: 5"));
  const Failure list =
      failure_of(one_node("aten.cat.default", {{"x", range({2, 3})}, {"y", range({2, 2})}},
                          {{"dim", 0}}, {{"z", {4, 3}}}));
  CHECK(list.text.ends_with("; arguments: tensors: [float32 [2, 3], float32 [2, 2]], dim: 0"));
}

TEST_CASE("unknown ops are refused with the nearest names", "[aten]") {
  const auto text = [](const std::string& op_type) {
    const Failure failure = failure_of(one_node(op_type, {{"x", range({2})}}, {}, {{"y", {2}}}));
    CHECK(failure.status == NPU_ERROR_UNSUPPORTED);
    return failure.text;
  };
  const std::string misspelt = text("aten.sigmoidd.default");
  CHECK(misspelt.starts_with("node 'n' (aten.sigmoidd.default): libtorch "));
  CHECK(misspelt.find("aten.sigmoid.default") != std::string::npos);
  const std::string overload = text("aten.relu.Tensor");
  CHECK(overload.find("overloads of 'aten.relu': default") != std::string::npos);
  CHECK(text("my_op").find("has no such op") != std::string::npos);
  CHECK(text("aten.cudnn_convolution.default").ends_with("has no CPU kernel for this op"));
}

// ---- bodies

TEST_CASE("wrap_with_set_grad_enabled runs the body it is given", "[aten]") {
  Model body;
  body.input("a", range({2}))
      .weight("w", range({2}, 10))
      .node("s", "aten.add.Tensor", {"a", "w"}, {}, {{"s", {2}}})
      .node("r", "aten.neg_.default", {"s"}, {}, {{"r", {2}}})
      .output("r");
  Model model;
  model.input("x", range({2}))
      .weight("w", range({2}, 10))
      .node("g", "wrap_with_set_grad_enabled", {"x"}, {{"body", body.json()}}, {{"y", {2}}})
      .node("m", "aten.mul.Tensor", {"y", "w"}, {}, {{"z", {2}}})
      .output("z");
  // -(0 + 10) * 10, -(1 + 11) * 11
  CHECK(run(model)[0].floats() == std::vector<float>{-100, -132});
  const Failure failure =
      failure_of(one_node("wrap_with_set_grad_enabled", {{"x", range({2})}}, {}, {{"y", {2}}}));
  CHECK(failure.status == NPU_ERROR_UNSUPPORTED);
  CHECK(failure.text.starts_with(
      "node 'n' (wrap_with_set_grad_enabled): its body is not in the document"));
}

// ---- custom ops

TEST_CASE("custom ops are loaded from a shared object", "[aten]") {
  const std::string options = Json{{"threads", 1}, {"load_ops", {NPU_TEST_CUSTOM_OPS}}}.dump();
  const auto x = range({2, 2});
  CHECK(run(one_node("test.scale", {{"x", x}}, {}, {{"y", {2, 2}}}), options)[0].floats() ==
        std::vector<float>{0, 2, 4, 6});
  CHECK(run(one_node("test.scale", {{"x", x}}, {{"triple", true}}, {{"y", {2, 2}}}), options)[0]
            .floats() == std::vector<float>{0, 3, 6, 9});
  SECTION("operands are row-major, results may be of several dtypes") {
    Model model;
    model.input("x", x)
        .node("t", "aten.t.default", {"x"}, {}, {{"t", {2, 2}}})
        .node("s", "test.scale", {"t"}, {}, {{"s", {2, 2}}})
        .node("u", "test.summary", {"s", "x"}, {}, {{"u_0", {}, "float64"}, {"u_1", {}, "int64"}})
        .output("s")
        .output("u_0")
        .output("u_1");
    const auto results = run(model, options);
    CHECK(results[0].floats() == std::vector<float>{0, 4, 2, 6});
    CHECK(results[1].as<double>() == std::vector<double>{18});
    CHECK(results[2].ints() == std::vector<std::int64_t>{8});
  }
  SECTION("failures") {
    CHECK(failure_of(one_node("test.fail", {{"x", x}}, {}, {{"y", {2, 2}}}), options).text ==
          "node 'n' (test.fail): cannot run on n");
    CHECK(failure_of(one_node("test.forget", {{"x", x}}, {}, {{"y", {2, 2}}}), options).text ==
          "node 'n' (test.forget): the custom op did not allocate result 0");
    CHECK(failure_of(one_node("test.scale", {{"x", x}}, {}, {{"y", {4}}}), options).text ==
          "node 'n' (test.scale): result 'y': expected float32 [4], found float32 [2, 2]");
    CHECK(failure_of(one_node("test.scale", {{"x", i64({1}, {1})}}, {}, {{"y", {1}}}), options)
              .text.starts_with("node 'n' (test.scale): operand 0 has another dtype"));
    CHECK(failure_of(one_node("test.scale", {{"x", x}}, {}, {{"y", {2, 2}}})).status ==
          NPU_ERROR_UNSUPPORTED);
  }
}

TEST_CASE("a bad shared object of custom ops is refused", "[aten]") {
  const auto text = [](const std::vector<std::string>& paths, const char* fault) {
    ::setenv("NPU_TEST_FAULT", fault, 1);
    std::string found;
    try {
      const Device device(Json{{"load_ops", paths}}.dump());
    } catch (const Failure& failure) {
      CHECK(failure.status == NPU_ERROR_INVALID);
      found = failure.text;
    }
    ::unsetenv("NPU_TEST_FAULT");
    return found;
  };
  const std::string path = NPU_TEST_BAD_CUSTOM_OPS;
  const std::string file = "custom ops '" + path + "': ";
  CHECK(text({path}, "").empty());
  CHECK(text({"/nonexistent/ops.so"}, "").starts_with("custom ops '/nonexistent/ops.so': "));
  CHECK(text({"libm.so.6"}, "") == "custom ops 'libm.so.6': exports no npu_custom_op_entry");
  CHECK(text({path}, "clash") == file + "the backend has an op 'aten.relu.default' of its own");
  CHECK(text({path}, "version") ==
        file + "was built for version 2 of npu/custom_op.hpp, expected 1");
  CHECK(text({path}, "null") == file + "does not serve version 1 of npu/custom_op.hpp");
  CHECK(text({path}, "twice") == file + "op 'test.two' stands there twice");
  CHECK(text({path}, "function") == file + "op 'test.one' has no function");
  CHECK(text({path, path}, "") == file + "op 'test.one' stands in '" + path + "' already");
}
