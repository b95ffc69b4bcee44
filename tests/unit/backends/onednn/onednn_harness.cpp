// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/onednn_harness.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "backends/v3_calls.hpp"
#include "catch.hpp"
#include "compile/sub_ir.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/ids.hpp"
#include "test_paths.hpp"

namespace npu::test::onednn {

DType dtype_of(npu_dtype dtype) {
  return dtype == NPU_INT64      ? DType::kInt64
         : dtype == NPU_INT8     ? DType::kInt8
         : dtype == NPU_UINT8    ? DType::kUInt8
         : dtype == NPU_BFLOAT16 ? DType::kBFloat16
                                 : DType::kFloat32;
}
std::string dtype_text(npu_dtype dtype) { return std::string(dtype_name(dtype_of(dtype))); }

Array random_array(const Shape& shape, std::uint32_t seed) {
  Array array(shape);
  std::uint64_t state = 0x9E3779B97F4A7C15ULL * (seed + 1);
  for (double& value : array.values) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = static_cast<double>(state >> 40) / static_cast<double>(1 << 22) - 2.0;
  }
  return array;
}

Array positive_array(const Shape& shape, std::uint32_t seed) {
  return map_values(random_array(shape, seed), [](double x) { return std::fabs(x) + 0.5; });
}

const npu_backend_api& api() {
  static const npu_backend_api* const loaded = [] {
    const std::string path = std::string(backend_dir()) + "/npu_backend_onednn.so";
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    using Entry = const npu4_backend* (*)(const npu4_host*, npu4_error*);
    const auto entry = reinterpret_cast<Entry>(dlsym(library, NPU4_ENTRY_NAME));
    struct Onednn {};
    return &V3Calls<Onednn>::table(entry(&test_host(), nullptr));
  }();
  return *loaded;
}

bool multiplies_int8() {
  npu_backend_description description{};
  npu_error error{};
  REQUIRE(api().describe(&description, &error) == NPU_OK);
  return std::string(description.fingerprint).find(" int8 native") != std::string::npos;
}

std::string isa_level() {
  npu_backend_description description{};
  npu_error error{};
  if (api().describe(&description, &error) != NPU_OK) throw std::runtime_error(error.text);
  const std::string text = description.fingerprint;
  const std::string key = " isa ";
  const std::size_t begin = text.find(key) + key.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

Device open_device(int threads) {
  npu_device* device = nullptr;
  npu_error error{};
  const std::string options = R"({"threads":)" + std::to_string(threads) + R"(,"unknown":1})";
  REQUIRE(api().open_device(options.c_str(), &device, &error) == NPU_OK);
  return Device(device);
}

Data encode(const std::string& name, const Array& array, npu_dtype dtype) {
  Tensor tensor(dtype_of(dtype), array.shape);
  for (std::size_t i = 0; i < array.values.size(); ++i)
    conformance::set_element(tensor, static_cast<std::int64_t>(i), array.values[i]);
  const auto* bytes = reinterpret_cast<const char*>(tensor.data());
  return {name, dtype, array.shape, {bytes, bytes + tensor.bytes()}};
}

Tensor tensor_of(const Data& data) {
  Tensor tensor(dtype_of(data.dtype), data.shape);
  std::copy(data.bytes.begin(), data.bytes.end(), reinterpret_cast<char*>(tensor.mutable_data()));
  return tensor;
}

Array decode(const Data& data) {
  const Tensor tensor = tensor_of(data);
  Array array(data.shape);
  for (std::size_t i = 0; i < array.values.size(); ++i)
    array.values[i] = tensor.value_as_double(static_cast<std::int64_t>(i));
  return array;
}

void Model::input(const std::string& name, const Array& array, npu_dtype dtype) {
  inputs_.push_back(encode(name, array, dtype));
  tensors_[name] = conformance::values_of(tensor_of(inputs_.back()));
}

void Model::weight(const std::string& name, const Array& array, npu_dtype dtype) {
  weights_.push_back(encode(name, array, dtype));
  tensors_[name] = conformance::values_of(tensor_of(weights_.back()));
}

void Model::node(const std::string& name, const std::string& op,
                 const std::vector<std::string>& operands, const std::string& attrs) {
  std::vector<const Values*> values;
  for (const std::string& operand : operands) values.push_back(&tensors_.at(operand));
  const Json json = Json::parse("{" + attrs + "}");
  // Whatever stands in front may be a product, so that it is part of its epilogue.
  add(name, op, operands, attrs, results_on("npu", "f32", Call(op, values, json), true));
}

void Model::node_stating(const Shape& shape, const std::string& name, const std::string& op,
                         const std::vector<std::string>& operands, const std::string& attrs,
                         std::optional<npu_dtype> dtype) {
  const DType stated = onednn::dtype_of(dtype.value_or(dtype_));
  add(name, op, operands, attrs, {conformance::make_values(shape, stated)});
}

void Model::add(const std::string& name, const std::string& op,
                const std::vector<std::string>& operands, const std::string& attrs,
                std::vector<Values> results) {
  std::string text = R"({"name":")" + name + R"(","op_type":")" + op + R"(","inputs":[)";
  for (const std::string& operand : operands)
    text += (&operand == &operands[0] ? "" : ",") + mention(operand);
  text += R"(],"outputs":[)";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string result = results.size() == 1 ? name : name + "_" + std::to_string(i);
    tensors_[result] = std::move(results[i]);
    text += (i == 0 ? "" : ",") + mention(result);
  }
  nodes_ += (nodes_.empty() ? "" : ",") + text + R"(],"attrs":{)" + attrs + "}}";
  ++node_count_;
}

std::string Model::text() const {
  std::string result = R"({"model_name":"test","pytorch_version":"2.0","graph_inputs":[)";
  for (const Data& data : inputs_) result += (&data == &inputs_[0] ? "" : ",") + mention(data.name);
  result += R"(],"graph_outputs":[)";
  for (const auto& name : outputs_) result += (&name == &outputs_[0] ? "" : ",") + mention(name);
  result += R"(],"weights":[)";
  for (const Data& data : weights_)
    result += (&data == &weights_[0] ? "" : ",") + mention(data.name);
  return result + R"(],"weight_name_mapping":{},"nodes":[)" + nodes_ + "]}";
}

std::vector<npu_tensor> Model::weight_views() const {
  std::vector<npu_tensor> views;
  for (const Data& data : weights_) views.push_back(data.view());
  return views;
}

std::vector<Buffer> Model::import_inputs(npu_device* device) const {
  std::vector<Buffer> buffers;
  for (const Data& data : inputs_) {
    npu_buffer* buffer = nullptr;
    npu_error error{};
    const npu_tensor view = data.view();
    REQUIRE(api().buffer_import(device, &view, &buffer, &error) == NPU_OK);
    buffers.emplace_back(buffer);
  }
  return buffers;
}

std::string Model::mention(const std::string& name) const {
  const Values& values = tensors_.at(name);
  return R"({"name":")" + name + R"(","shape":)" + list_text(values.shape) + R"(,"dtype":")" +
         std::string(dtype_name(values.dtype)) + R"("})";
}

std::string with_groups(const std::string& text) {
  try {
    const Graph graph = read_valid_graph(text, "f");
    std::vector<NodeId> all;
    for (const NodeId id : ids_of<NodeId>(graph.nodes())) all.push_back(id);
    SubgraphBoundary boundary = find_boundary(graph, all);
    boundary.inputs = graph.graph_inputs();
    boundary.outputs = graph.graph_outputs();
    return make_sub_ir(graph, all, boundary, backend_patterns("onednn")).text;
  } catch (const Error&) {
    return text;  // for the backend to refuse
  }
}

Compiled compile(npu_device* device, const Model& model) {
  Compiled result;
  npu_error error{};
  npu_blob blob{};
  const std::string text = with_groups(model.text());
  const auto weights = model.weight_views();
  result.status = api().compile(device, text.data(), text.size(), weights.data(), weights.size(),
                                nullptr, &blob, &error);
  result.text = error.text;
  if (result.status != NPU_OK) return result;
  result.blob.assign(static_cast<const char*>(blob.data), blob.size);
  api().blob_free(&blob);
  npu_program* program = nullptr;
  result.status = api().load(device, result.blob.data(), result.blob.size(), weights.data(),
                             weights.size(), &program, &error);
  result.text = error.text;
  result.program.reset(program);
  return result;
}

Data read_buffer(const npu_buffer* buffer) {
  npu_error error{};
  npu_tensor description{};
  REQUIRE(api().buffer_describe(buffer, &description, &error) == NPU_OK);
  Data data{"", description.dtype, Shape(description.shape, description.shape + description.rank),
            std::vector<char>(description.bytes)};
  REQUIRE(api().buffer_export(buffer, data.bytes.data(), data.bytes.size(), &error) == NPU_OK);
  return data;
}

void check_close(const Data& actual, const Values& expected) {
  REQUIRE(dtype_of(actual.dtype) == expected.dtype);
  REQUIRE(actual.shape == expected.shape);
  const Array found = decode(actual);
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    const auto [value, error] = expected.data[i];
    const double have = found.values[i];
    if (!expected.data[i].is_known()) continue;
    if (std::isnan(value) ? std::isnan(have) : have == value || std::fabs(have - value) <= error)
      continue;
    INFO("element " << i << " of " << found.values.size());
    REQUIRE(have == Approx(value).margin(error).epsilon(0));
  }
}

std::vector<Data> run_once(npu_device* device, const Compiled& compiled, const Model& model) {
  const std::vector<Buffer> inputs = model.import_inputs(device);
  std::vector<npu_buffer*> input_pointers;
  for (const Buffer& input : inputs) input_pointers.push_back(input.get());
  std::vector<npu_buffer*> outputs(model.outputs().size(), nullptr);
  npu_error error{};
  REQUIRE(api().run(compiled.program.get(), input_pointers.data(), input_pointers.size(),
                    outputs.data(), outputs.size(), &error) == NPU_OK);
  std::vector<Data> results;
  for (npu_buffer* output : outputs) {
    results.push_back(read_buffer(output));
    api().buffer_free(output);
  }
  return results;
}

void check_model(const Model& model) {
  const Device device = open_device();
  Compiled compiled = compile(device.get(), model);
  INFO(model.text());
  INFO(compiled.text);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  std::vector<npu_buffer*> input_pointers;
  for (const Buffer& input : inputs) input_pointers.push_back(input.get());
  std::vector<npu_buffer*> outputs(model.outputs().size(), nullptr);
  npu_error error{};
  for (int repeat = 0; repeat < 2; ++repeat) {
    const npu_status status =
        api().run(compiled.program.get(), input_pointers.data(), input_pointers.size(),
                  outputs.data(), outputs.size(), &error);
    INFO(error.text);
    REQUIRE(status == NPU_OK);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      INFO("output " << model.outputs()[i]);
      check_close(read_buffer(outputs[i]), model.expected(model.outputs()[i]));
    }
  }
  for (npu_buffer* output : outputs) api().buffer_free(output);
  std::vector<std::uint64_t> times(model.node_count(), 0);
  REQUIRE(api().node_times(compiled.program.get(), times.data(), times.size(), &error) == NPU_OK);
}

std::string refusal(const Model& model, npu_status status) {
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  INFO(compiled.text);
  REQUIRE(compiled.status == status);
  REQUIRE(compiled.program == nullptr);
  return compiled.text;
}

npu_dtype each_dtype() { return GENERATE(NPU_FLOAT32, NPU_BFLOAT16); }

std::string list_text(const Index& values) { return Json(values).dump(); }

void check_node(npu_dtype dtype, const std::string& op, const std::vector<Shape>& operands,
                const std::string& attrs, bool has_weights) {
  INFO(op << " " << attrs);
  Model model(dtype);
  std::vector<std::string> names;
  // Divisors and variances are positive.
  const bool positive = op.find("div") != std::string::npos || op.find("norm") != std::string::npos;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    names.push_back("x" + std::to_string(i));
    const auto seed = static_cast<std::uint32_t>(i + 1);
    const Array array =
        i > 0 && positive ? positive_array(operands[i], seed) : random_array(operands[i], seed);
    if (i > 0 && has_weights) {
      model.weight(names.back(), array);
    } else {
      model.input(names.back(), array);
    }
  }
  model.node("y", op, names, attrs);
  model.output("y");
  check_model(model);
}

}  // namespace npu::test::onednn
