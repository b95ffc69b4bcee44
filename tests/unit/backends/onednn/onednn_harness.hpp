// SPDX-License-Identifier: Apache-2.0
// The onednn backend through its C ABI: sub-IRs of a few nodes with the results that
// reference_ops.hpp expects of them, compiled, run and compared.
//
// Tolerances: float32 1e-5 relative to the largest magnitude, bfloat16 one unit in the last of 8
// bits.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/reference_ops.hpp"
#include "npu/backend.h"

namespace npu::test::onednn {

/// Loads the backend at the first call.
const npu_backend_api& api();
/// The level of the instruction set that it uses: "avx2".
std::string isa_level();
inline bool has_avx512() { return isa_level().starts_with("avx512") || isa_level() == "amx"; }
/// Or what has its place on another architecture.
inline bool has_avx2() { return isa_level() != "generic"; }

/// Else int8 convolutions and products are computed with floats.
bool multiplies_int8();

struct DeviceCloser {
  void operator()(npu_device* device) const { api().close_device(device); }
};
struct ProgramFreer {
  void operator()(npu_program* program) const { api().program_free(program); }
};
struct BufferFreer {
  void operator()(npu_buffer* buffer) const { api().buffer_free(buffer); }
};
using Device = std::unique_ptr<npu_device, DeviceCloser>;
using Program = std::unique_ptr<npu_program, ProgramFreer>;
using Buffer = std::unique_ptr<npu_buffer, BufferFreer>;

Device open_device(int threads = 2);

/// A tensor's bytes in its dtype.
struct Data {
  std::string name;
  npu_dtype dtype = NPU_FLOAT32;
  Shape shape;
  std::vector<char> bytes;

  npu_tensor view() const {
    return {name.c_str(), dtype,        static_cast<std::uint32_t>(shape.size()),
            shape.data(), bytes.data(), bytes.size()};
  }
};

/// As documents spell it.
std::string dtype_text(npu_dtype dtype);
Data encode(const std::string& name, const Array& array, npu_dtype dtype);
Array decode(const Data& data);

/// A sub-IR under construction, its data, and the expected results.
class Model {
 public:
  explicit Model(npu_dtype dtype) : dtype_(dtype) {}
  npu_dtype dtype() const { return dtype_; }

  /// Adds a graph input; returns its values as the type holds them.
  Array input(const std::string& name, const Array& array, npu_dtype dtype);
  Array input(const std::string& name, const Array& array) { return input(name, array, dtype_); }
  Array weight(const std::string& name, const Array& array, npu_dtype dtype);
  Array weight(const std::string& name, const Array& array) { return weight(name, array, dtype_); }

  /// Adds a node with one result, which is called what the node is called. `expected` gives its
  /// shape.
  Array node(const std::string& name, const std::string& op,
             const std::vector<std::string>& operands, const std::string& attrs,
             const Array& expected);
  Array node(const std::string& name, const std::string& op,
             const std::vector<std::string>& operands, const std::string& attrs,
             const Array& expected, npu_dtype dtype);
  std::vector<Array> node(const std::string& name, const std::string& op,
                          const std::vector<std::string>& operands, const std::string& attrs,
                          const std::vector<std::pair<std::string, Array>>& results);
  void output(const std::string& name) { outputs_.push_back(name); }

  std::string text() const;
  std::vector<npu_tensor> weight_views() const;
  std::vector<Buffer> import_inputs(npu_device* device) const;
  const std::vector<std::string>& outputs() const { return outputs_; }
  const Array& expected(const std::string& name) const { return tensors_.at(name).first; }
  npu_dtype dtype_of(const std::string& name) const { return tensors_.at(name).second; }
  std::size_t node_count() const { return node_count_; }

 private:
  Array declare(const std::string& name, const Array& array, npu_dtype dtype);
  std::string mention(const std::string& name) const;

  npu_dtype dtype_;
  std::optional<npu_dtype> result_dtype_;
  std::vector<Data> inputs_;
  std::vector<Data> weights_;
  std::vector<std::string> outputs_;
  std::string nodes_;
  std::size_t node_count_ = 0;
  std::map<std::string, std::pair<Array, npu_dtype>> tensors_;
};

/// A sub-IR with the groups that libcore makes for the backend; as it is if it is no document, or
/// has groups already.
std::string with_groups(const std::string& text);

struct Compiled {
  npu_status status = NPU_OK;
  std::string text;
  Program program;
  std::string blob;  ///< outlives the program
};

Compiled compile(npu_device* device, const Model& model);
Data read_buffer(const npu_buffer* buffer);
/// The outputs of one run.
std::vector<Data> run_once(npu_device* device, const Compiled& compiled, const Model& model);
void check_close(const Array& actual, const Array& expected, npu_dtype dtype);
/// Compiles and runs a model, twice (a second run meets used memory), and compares every output.
void check_model(const Model& model);
/// Compiles a model that has to be refused; returns the text.
std::string refusal(const Model& model, npu_status status);
/// Runs the test case once with each of float32 and bfloat16.
npu_dtype each_dtype();
/// As JSON.
std::string list_text(const Index& values);

// ---- Models with one node ----

void check_convolution(npu_dtype dtype, const Shape& x_shape, const Shape& w_shape, bool with_bias,
                       const ConvArguments& arguments, const std::string& attrs,
                       const std::string& op = "aten.conv2d.default");
void check_unary(npu_dtype dtype, const std::string& op, const std::string& attrs,
                 const std::function<double(double)>& function, const Shape& shape = {2, 3, 5, 7});
void check_binary(npu_dtype dtype, const std::string& op, const Shape& a_shape,
                  const Shape& b_shape, const std::string& attrs,
                  const std::function<double(double, double)>& function);
void check_pool(npu_dtype dtype, const std::string& op, const Shape& x_shape, const Shape& y_shape,
                const PoolArguments& arguments, const std::string& attrs);
void check_matmul(npu_dtype dtype, const std::string& op, const Shape& a_shape,
                  const Shape& b_shape, const Shape& y_shape, bool b_is_weight);

}  // namespace npu::test::onednn
