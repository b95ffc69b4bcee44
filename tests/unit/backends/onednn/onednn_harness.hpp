// SPDX-License-Identifier: Apache-2.0
// The onednn backend through its C ABI: sub-IRs of a few nodes with the results that the
// generator's oracle expects of them (tests/generator), compiled, run and compared within the
// bounds that it derives.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend_calls.hpp"
#include "reference.hpp"

namespace npu::test::onednn {

using Index = Shape;

/// Numbers of a tensor.
struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(Shape dimensions)
      : shape(std::move(dimensions)), values(std::size_t(conformance::count_of(shape)), 0.0) {}
};
/// In about -2..2, which no two seeds share.
Array random_array(const Shape& shape, std::uint32_t seed);
/// From 0.5 on.
Array positive_array(const Shape& shape, std::uint32_t seed);
/// With each value changed.
template <typename Function>
Array map_values(Array array, const Function& function) {
  for (double& value : array.values) value = function(value);
  return array;
}

/// Loads the backend at the first call.
const BackendCalls& api();
/// The level of the instruction set that it uses: "avx2".
std::string isa_level();
inline bool has_avx512() { return isa_level().starts_with("avx512") || isa_level() == "amx"; }
/// Or what has its place on another architecture.
inline bool has_avx2() { return isa_level() != "generic"; }

/// Else int8 convolutions and products are computed with floats.
bool multiplies_int8();

struct Freer {
  void operator()(npu_device* device) const { api()->device_close(device); }
  void operator()(npu_model* model) const { api()->model_free(model); }
  void operator()(npu_program* program) const { api()->program_free(program); }
  void operator()(npu_buffer* buffer) const { api()->buffer_free(buffer); }
};
using Device = std::unique_ptr<npu_device, Freer>;
using LoadedModel = std::unique_ptr<npu_model, Freer>;
using Program = std::unique_ptr<npu_program, Freer>;
using Buffer = std::unique_ptr<npu_buffer, Freer>;
/// As calls take them.
std::vector<npu_buffer*> handles(const std::vector<Buffer>& buffers);

/// With an option of which the backend knows nothing, unless others are given.
Device open_device(int threads = 2, const std::string& options = R"({"unknown":1})");

/// A tensor's bytes in its dtype.
struct Data {
  std::string name;
  npu_dtype dtype = NPU_FLOAT32;
  Shape shape;
  std::vector<char> bytes;

  npu_tensor view() const {
    return tensor_view(name.c_str(), dtype, shape, bytes.data(), bytes.size());
  }
};

DType dtype_of(npu_dtype dtype);
/// As documents spell it.
std::string dtype_text(npu_dtype dtype);
Data encode(const std::string& name, const Array& array, npu_dtype dtype);
Array decode(const Data& data);

/// A sub-IR under construction, its data, and the expected results.
class Model {
 public:
  explicit Model(npu_dtype dtype) : dtype_(dtype) {}
  npu_dtype dtype() const { return dtype_; }

  /// Adds a graph input, whose values are rounded to the type.
  void input(const std::string& name, const Array& array, npu_dtype dtype);
  void input(const std::string& name, const Array& array) { input(name, array, dtype_); }
  void weight(const std::string& name, const Array& array, npu_dtype dtype);
  void weight(const std::string& name, const Array& array) { weight(name, array, dtype_); }

  /// Adds a node, whose results have its name, or "_0" and so on behind it.
  void node(const std::string& name, const std::string& op,
            const std::vector<std::string>& operands, const std::string& attrs = "");
  /// The same for one that states another shape, or has no definition.
  void node_stating(const Shape& shape, const std::string& name, const std::string& op,
                    const std::vector<std::string>& operands, const std::string& attrs = "",
                    std::optional<npu_dtype> dtype = {});
  void output(const std::string& name) { outputs_.push_back(name); }

  std::string text() const;
  std::vector<npu_tensor> weight_views() const;
  std::vector<Buffer> import_inputs(npu_device* device) const;
  std::vector<Buffer> make_outputs(npu_device* device) const;
  const std::vector<std::string>& outputs() const { return outputs_; }
  const Values& expected(const std::string& name) const { return tensors_.at(name); }
  std::size_t node_count() const { return node_count_; }

 private:
  void add(const std::string& name, const std::string& op, const std::vector<std::string>& operands,
           const std::string& attrs, std::vector<Values> results);
  std::string mention(const std::string& name) const;

  npu_dtype dtype_;
  std::vector<Data> inputs_;
  std::vector<Data> weights_;
  std::vector<std::string> outputs_;
  std::string nodes_;
  std::size_t node_count_ = 0;
  std::map<std::string, Values> tensors_;
};

/// A sub-IR with the groups that libcore makes for the backend; as it is if it is no document, or
/// has groups already.
std::string with_groups(const std::string& text);

struct Compiled {
  npu_status status = NPU_OK;
  std::string text;
  std::string blob;
  LoadedModel model;  ///< reads the blob
  Program program;
};

Compiled compile(npu_device* device, const Model& model);
/// What a device compiled, loaded with one program. The blob outlives both.
npu_status load(npu_device* device, std::string_view blob, const std::vector<npu_tensor>& weights,
                LoadedModel& model, Program& program, CallError& error);
/// A buffer like a value.
Data read_buffer(npu_buffer* buffer, const Values& like);
/// The outputs of one run.
std::vector<Data> run_once(npu_device* device, const Compiled& compiled, const Model& model);
void check_close(const Data& actual, const Values& expected);
/// Compiles and runs a model, twice (a second run meets used memory), and compares every output.
void check_model(const Model& model);
/// Compiles a model that has to be refused; returns the text.
std::string refusal(const Model& model, npu_status status);
/// Runs the test case once with each of float32 and bfloat16.
npu_dtype each_dtype();
/// As JSON.
std::string list_text(const Index& values);

/// A node of random operands, of which the first is an input, and the others weights if asked for.
void check_node(npu_dtype dtype, const std::string& op, const std::vector<Shape>& operands,
                const std::string& attrs = "", bool has_weights = true);

}  // namespace npu::test::onednn
