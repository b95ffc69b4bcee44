// SPDX-License-Identifier: Apache-2.0
#include "backends/onednn/onednn_harness.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

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

const BackendCalls& api() {
  static const BackendCalls loaded(std::string(backend_dir()) + "/npu_backend_onednn.so");
  return loaded;
}

bool multiplies_int8() { return api().fingerprint().find(" int8 native") != std::string::npos; }

std::string isa_level() {
  const std::string text = api().fingerprint();
  const std::string key = " isa ";
  const std::size_t begin = text.find(key) + key.size();
  return text.substr(begin, text.find(' ', begin) - begin);
}

Device open_device(int threads, const std::string& options) {
  npu_device* device = nullptr;
  CallError error;
  const auto count = static_cast<std::uint32_t>(threads);
  REQUIRE(api().open_device(count, options.c_str(), &device, &error) == NPU_OK);
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
    CallError error;
    REQUIRE(api().import_tensor(device, data.view(), &buffer, &error) == NPU_OK);
    buffers.emplace_back(buffer);
  }
  return buffers;
}

std::vector<Buffer> Model::make_outputs(npu_device* device) const {
  std::vector<Buffer> buffers;
  for (const std::string& name : outputs_) {
    const Values& like = tensors_.at(name);
    npu_buffer* buffer = nullptr;
    CallError error;
    const auto dtype = static_cast<npu_dtype>(like.dtype);
    REQUIRE(api().create_buffer(device, dtype, like.shape, &buffer, &error) == NPU_OK);
    buffers.emplace_back(buffer);
  }
  return buffers;
}

std::vector<npu_buffer*> handles(const std::vector<Buffer>& buffers) {
  std::vector<npu_buffer*> pointers;
  for (const Buffer& buffer : buffers) pointers.push_back(buffer.get());
  return pointers;
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
  CallError error;
  const auto weights = model.weight_views();
  result.status =
      api().compile(device, with_groups(model.text()), weights, nullptr, &result.blob, &error);
  if (result.status == NPU_OK) {
    result.status = load(device, result.blob, weights, result.model, result.program, error);
  }
  result.text = error.text;
  return result;
}

npu_status load(npu_device* device, std::string_view blob, const std::vector<npu_tensor>& weights,
                LoadedModel& model, Program& program, CallError& error) {
  npu_model* loaded = nullptr;
  npu_status status = api().load(device, blob, weights, &loaded, &error);
  model.reset(loaded);
  if (status != NPU_OK) return status;
  npu_program* made = nullptr;
  status = api().create_program(loaded, &made, &error);
  program.reset(made);
  return status;
}

Data read_buffer(npu_buffer* buffer, const Values& like) {
  Data data{"", static_cast<npu_dtype>(like.dtype), like.shape, {}};
  const Tensor tensor(like.dtype, like.shape);
  data.bytes.resize(tensor.bytes());
  CallError error;
  REQUIRE(api().read(buffer, data.bytes.data(), data.bytes.size(), &error) == NPU_OK);
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
  const std::vector<Buffer> outputs = model.make_outputs(device);
  CallError error;
  REQUIRE(api().run(compiled.program.get(), handles(inputs), handles(outputs), &error) == NPU_OK);
  std::vector<Data> results;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    results.push_back(read_buffer(outputs[i].get(), model.expected(model.outputs()[i])));
  }
  return results;
}

void check_model(const Model& model) {
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  INFO(model.text());
  INFO(compiled.text);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  const std::vector<Buffer> outputs = model.make_outputs(device.get());
  std::vector<npu_span> times(model.node_count());
  auto profile = sized_struct<npu_profile>();
  profile.nodes = times.data();
  profile.node_count = times.size();
  CallError error;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const npu_status status = api().run(compiled.program.get(), handles(inputs), handles(outputs),
                                        &error, repeat == 0 ? nullptr : &profile);
    INFO(error.text);
    REQUIRE(status == NPU_OK);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = model.outputs()[i];
      INFO("output " << name);
      check_close(read_buffer(outputs[i].get(), model.expected(name)), model.expected(name));
    }
  }
  for (const npu_span& node : times) REQUIRE(node.flags != 0);
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
