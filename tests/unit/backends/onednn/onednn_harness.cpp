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

std::string dtype_text(npu_dtype dtype) {
  if (dtype == NPU_INT64) return "int64";
  if (dtype == NPU_INT8) return "int8";
  if (dtype == NPU_UINT8) return "uint8";
  return dtype == NPU_BFLOAT16 ? "bfloat16" : "float32";
}

/// A sub-IR under construction, its data, and the expected results.

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
  Data data{name, dtype, array.shape, {}};
  const auto append = [&](const auto& value) {
    const auto* begin = reinterpret_cast<const char*>(&value);
    data.bytes.insert(data.bytes.end(), begin, begin + sizeof value);
  };
  for (const double value : array.values) {
    if (dtype == NPU_BFLOAT16) {
      append(bfloat16_bits(static_cast<float>(value)));
    } else if (dtype == NPU_INT64) {
      append(static_cast<std::int64_t>(value));
    } else if (dtype == NPU_INT8) {
      append(static_cast<std::int8_t>(value));
    } else if (dtype == NPU_UINT8) {
      append(static_cast<std::uint8_t>(value));
    } else {
      append(static_cast<float>(value));
    }
  }
  return data;
}

Array decode(const Data& data) {
  Array array(data.shape);
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    if (data.dtype == NPU_BFLOAT16) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, data.bytes.data() + i * sizeof bits, sizeof bits);
      array.values[i] = static_cast<double>(bfloat16_value(bits));
    } else if (data.dtype == NPU_INT64) {
      std::int64_t value = 0;
      std::memcpy(&value, data.bytes.data() + i * sizeof value, sizeof value);
      array.values[i] = static_cast<double>(value);
    } else if (data.dtype == NPU_INT8) {
      array.values[i] = static_cast<double>(static_cast<std::int8_t>(data.bytes[i]));
    } else if (data.dtype == NPU_UINT8) {
      array.values[i] = static_cast<double>(static_cast<std::uint8_t>(data.bytes[i]));
    } else {
      float value = 0;
      std::memcpy(&value, data.bytes.data() + i * sizeof value, sizeof value);
      array.values[i] = static_cast<double>(value);
    }
  }
  return array;
}

Array Model::input(const std::string& name, const Array& array, npu_dtype dtype) {
  inputs_.push_back(encode(name, array, dtype));
  return declare(name, round_all(array, dtype), dtype);
}

Array Model::weight(const std::string& name, const Array& array, npu_dtype dtype) {
  weights_.push_back(encode(name, array, dtype));
  return declare(name, round_all(array, dtype), dtype);
}

Array Model::node(const std::string& name, const std::string& op,
                  const std::vector<std::string>& operands, const std::string& attrs,
                  const Array& expected) {
  return node(name, op, operands, attrs, {{name, expected}}).front();
}

Array Model::node(const std::string& name, const std::string& op,
                  const std::vector<std::string>& operands, const std::string& attrs,
                  const Array& expected, npu_dtype dtype) {
  result_dtype_ = dtype;
  Array result = node(name, op, operands, attrs, expected);
  result_dtype_.reset();
  return result;
}

std::vector<Array> Model::node(const std::string& name, const std::string& op,
                               const std::vector<std::string>& operands, const std::string& attrs,
                               const std::vector<std::pair<std::string, Array>>& results) {
  const npu_dtype dtype = result_dtype_.value_or(dtype_);
  std::string text = R"({"name":")" + name + R"(","op_type":")" + op + R"(","inputs":[)";
  for (const std::string& operand : operands)
    text += (&operand == &operands[0] ? "" : ",") + mention(operand);
  text += R"(],"outputs":[)";
  std::vector<Array> rounded_results;
  for (const auto& [result, expected] : results) {
    rounded_results.push_back(declare(result, round_all(expected, dtype), dtype));
    text += (&result == &results[0].first ? "" : ",") + mention(result);
  }
  text += R"(],"attrs":{)" + attrs + "}}";
  nodes_ += (nodes_.empty() ? "" : ",") + text;
  ++node_count_;
  return rounded_results;
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

Array Model::declare(const std::string& name, const Array& array, npu_dtype dtype) {
  tensors_.insert_or_assign(name, std::pair(array, dtype));
  return array;
}

std::string Model::mention(const std::string& name) const {
  std::string shape;
  for (const std::int64_t extent : tensors_.at(name).first.shape) {
    shape += (shape.empty() ? "" : ",") + std::to_string(extent);
  }
  return R"({"name":")" + name + R"(","shape":[)" + shape + R"(],"dtype":")" +
         dtype_text(tensors_.at(name).second) + R"("})";
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

void check_close(const Array& actual, const Array& expected, npu_dtype dtype) {
  REQUIRE(actual.shape == expected.shape);
  double largest = 0.0;
  for (const double value : expected.values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double want = expected.values[i];
    const double have = actual.values[i];
    if (!std::isfinite(want) && (have == want || std::isnan(have) == std::isnan(want))) continue;
    // bfloat16 has 8 bits: two values that float32 sums put on either side of a tie differ by 2^-7
    // of theirs.
    const double tolerance = dtype == NPU_FLOAT32 ? 1e-5 * std::max(largest, 1e-3)
                                                  : std::fabs(want) / 128.0 + 1e-3 * largest;
    if (dtype == NPU_INT64 ? have == want : std::fabs(have - want) <= tolerance) continue;
    INFO("element " << i << " of " << expected.values.size());
    REQUIRE(have == Approx(want).margin(tolerance).epsilon(0));
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
      const Data data = read_buffer(outputs[i]);
      REQUIRE(data.dtype == model.dtype_of(model.outputs()[i]));
      check_close(decode(data), model.expected(model.outputs()[i]), data.dtype);
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

std::string list_text(const Index& values) {
  std::string text;
  for (const std::int64_t value : values)
    text += (text.empty() ? "[" : ",") + std::to_string(value);
  return text + "]";
}

void check_convolution(npu_dtype dtype, const Shape& x_shape, const Shape& w_shape, bool with_bias,
                       const ConvArguments& arguments, const std::string& attrs,
                       const std::string& op) {
  Model model(dtype);
  const Array x = model.input("x", random_array(x_shape, 1));
  const Array w = model.weight("w", random_array(w_shape, 2));
  std::vector<std::string> operands{"x", "w"};
  Array bias;
  if (with_bias) {
    bias = model.weight("b", random_array({w_shape[0]}, 3));
    operands.emplace_back("b");
  }
  model.node("y", op, operands, attrs, convolve(x, w, with_bias ? &bias : nullptr, arguments));
  model.output("y");
  check_model(model);
}

void check_unary(npu_dtype dtype, const std::string& op, const std::string& attrs,
                 const std::function<double(double)>& function, const Shape& shape) {
  INFO(op << " " << attrs);
  Model model(dtype);
  const Array x =
      model.input("x", map_values(random_array(shape, 4), [](double v) { return 4 * v; }));
  model.node("y", op, {"x"}, attrs, map_values(x, function));
  model.output("y");
  check_model(model);
}

void check_binary(npu_dtype dtype, const std::string& op, const Shape& a_shape,
                  const Shape& b_shape, const std::string& attrs,
                  const std::function<double(double, double)>& function) {
  INFO(op << " " << attrs);
  Model model(dtype);
  const Array a = model.input("a", random_array(a_shape, 5));
  const Array b = model.input("b", positive_array(b_shape, 6));
  model.node("y", op, {"a", "b"}, attrs, zip_values(a, b, function));
  model.output("y");
  check_model(model);
}

void check_pool(npu_dtype dtype, const std::string& op, const Shape& x_shape, const Shape& y_shape,
                const PoolArguments& arguments, const std::string& attrs) {
  INFO(op << " " << attrs);
  Model model(dtype);
  const Array x = model.input("x", random_array(x_shape, 7));
  model.node("y", op, {"x"}, attrs,
             pool(x, y_shape, arguments, op.find("max") != std::string::npos));
  model.output("y");
  check_model(model);
}

void check_matmul(npu_dtype dtype, const std::string& op, const Shape& a_shape,
                  const Shape& b_shape, const Shape& y_shape, bool b_is_weight) {
  Model model(dtype);
  const Array a = model.input("a", random_array(a_shape, 8));
  const Array b_values = random_array(b_shape, 9);
  const Array b = b_is_weight ? model.weight("b", b_values) : model.input("b", b_values);
  const Array rows = a_shape.size() == 1 ? reshape(a, {1, a_shape[0]}) : a;
  const Array columns = b_shape.size() == 1 ? reshape(b, {b_shape[0], 1}) : b;
  model.node("y", op, {"a", "b"}, "", reshape(multiply(rows, columns), y_shape));
  model.output("y");
  check_model(model);
}

}  // namespace npu::test::onednn
