// SPDX-License-Identifier: Apache-2.0
// The onednn backend through its C ABI alone: every op against slow loops written here, in float32
// and bfloat16, and what the ABI promises about buffers, aliases and errors.
//
// References compute in float64 on operands that are rounded to the tested type, and round their
// result to it. Tolerances: float32 1e-5 relative to the largest magnitude, bfloat16 one unit in
// the last of 8 bits.
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "npu/backend.h"
#include "test_paths.hpp"

namespace {

using Shape = std::vector<std::int64_t>;
using Index = std::vector<std::int64_t>;

// ---- Arrays and their references ----

std::int64_t count_of(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  explicit Array(Shape dimensions) : shape(std::move(dimensions)) {
    values.resize(static_cast<std::size_t>(count_of(shape)));
  }
  std::size_t offset(const Index& index) const {
    std::int64_t result = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) result = result * shape[i] + index[i];
    return static_cast<std::size_t>(result);
  }
  double& at(const Index& index) { return values[offset(index)]; }
  double at(const Index& index) const { return values[offset(index)]; }
};

void for_each(const Shape& shape, const std::function<void(const Index&)>& visit) {
  Index index(shape.size(), 0);
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    visit(index);
    for (std::size_t d = shape.size(); d > 0; --d) {
      if (++index[d - 1] < shape[d - 1]) break;
      index[d - 1] = 0;
    }
  }
}

std::uint16_t bfloat16_bits(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float bfloat16_value(std::uint16_t stored) {
  const std::uint32_t bits = static_cast<std::uint32_t>(stored) << 16;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double rounded(double value, npu_dtype dtype) {
  const auto single = static_cast<float>(value);
  if (dtype != NPU_BFLOAT16 || !std::isfinite(single)) return static_cast<double>(single);
  return static_cast<double>(bfloat16_value(bfloat16_bits(single)));
}

/// Values in about -2..2 that no two seeds share.
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
  Array array = random_array(shape, seed);
  for (double& value : array.values) value = std::fabs(value) + 0.5;
  return array;
}

Array round_all(Array array, npu_dtype dtype) {
  for (double& value : array.values) value = rounded(value, dtype);
  return array;
}

Array map_values(const Array& a, const std::function<double(double)>& function) {
  Array result = a;
  for (double& value : result.values) value = function(value);
  return result;
}

Array zip_values(const Array& a, const Array& b,
                 const std::function<double(double, double)>& function) {
  const std::size_t rank = std::max(a.shape.size(), b.shape.size());
  const auto extent = [&](const Array& array, std::size_t i) {
    const std::size_t missing = rank - array.shape.size();
    return i < missing ? 1 : array.shape[i - missing];
  };
  Shape shape;
  for (std::size_t i = 0; i < rank; ++i) shape.push_back(std::max(extent(a, i), extent(b, i)));
  Array result(shape);
  const auto pick = [&](const Array& array, const Index& index) {
    Index own;
    for (std::size_t i = rank - array.shape.size(); i < rank; ++i) {
      own.push_back(extent(array, i) == 1 ? 0 : index[i]);
    }
    return array.at(own);
  };
  for_each(shape, [&](const Index& index) {
    result.at(index) = function(pick(a, index), pick(b, index));
  });
  return result;
}

struct ConvArguments {
  Index stride{1, 1};
  Index pad_begin{0, 0};
  Index pad_end{0, 0};
  Index dilation{1, 1};
  std::int64_t groups = 1;
};

Array convolve(const Array& x, const Array& w, const Array* bias, const ConvArguments& arguments) {
  Shape shape{x.shape[0], w.shape[0]};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t span = arguments.dilation[i] * (w.shape[i + 2] - 1) + 1;
    shape.push_back((x.shape[i + 2] + arguments.pad_begin[i] + arguments.pad_end[i] - span) /
                        arguments.stride[i] +
                    1);
  }
  const std::int64_t inputs = w.shape[1];
  const std::int64_t outputs = w.shape[0] / arguments.groups;
  Array result(shape);
  for_each(shape, [&](const Index& o) {
    double sum = bias != nullptr ? bias->at({o[1]}) : 0.0;
    for_each({inputs, w.shape[2], w.shape[3]}, [&](const Index& k) {
      const std::int64_t y =
          o[2] * arguments.stride[0] - arguments.pad_begin[0] + k[1] * arguments.dilation[0];
      const std::int64_t z =
          o[3] * arguments.stride[1] - arguments.pad_begin[1] + k[2] * arguments.dilation[1];
      if (y < 0 || y >= x.shape[2] || z < 0 || z >= x.shape[3]) return;
      sum += x.at({o[0], o[1] / outputs * inputs + k[0], y, z}) * w.at({o[1], k[0], k[1], k[2]});
    });
    result.at(o) = sum;
  });
  return result;
}

Array normalize_channels(const Array& x, const Array* weight, const Array* bias, const Array& mean,
                         const Array& variance, double epsilon) {
  Array result(x.shape);
  for_each(x.shape, [&](const Index& i) {
    const Index c{i[1]};
    double value = (x.at(i) - mean.at(c)) / std::sqrt(variance.at(c) + epsilon);
    if (weight != nullptr) value *= weight->at(c);
    if (bias != nullptr) value += bias->at(c);
    result.at(i) = value;
  });
  return result;
}

struct PoolArguments {
  Index kernel{2, 2};
  Index stride{2, 2};
  Index padding{0, 0};
  Index dilation{1, 1};
  bool count_include_pad = true;
  std::int64_t divisor = 0;
};

/// `shape` is the result's: the tests write it down themselves.
Array pool(const Array& x, const Shape& shape, const PoolArguments& arguments, bool maximum) {
  Array result(shape);
  for_each(shape, [&](const Index& o) {
    double best = -INFINITY;
    double sum = 0.0;
    std::int64_t inside = 0;
    std::int64_t padded = 0;
    for_each(arguments.kernel, [&](const Index& k) {
      std::int64_t at[2];
      bool in = true;
      bool in_padding = true;
      for (std::size_t i = 0; i < 2; ++i) {
        at[i] =
            o[i + 2] * arguments.stride[i] - arguments.padding[i] + k[i] * arguments.dilation[i];
        in = in && at[i] >= 0 && at[i] < x.shape[i + 2];
        in_padding = in_padding && at[i] < x.shape[i + 2] + arguments.padding[i];
      }
      padded += in_padding ? 1 : 0;
      if (!in) return;
      ++inside;
      const double value = x.at({o[0], o[1], at[0], at[1]});
      best = std::max(best, value);
      sum += value;
    });
    std::int64_t divisor = arguments.count_include_pad ? padded : inside;
    if (arguments.divisor != 0) divisor = arguments.divisor;
    result.at(o) = maximum ? best : sum / static_cast<double>(divisor);
  });
  return result;
}

Array pool_adaptively(const Array& x, std::int64_t height, std::int64_t width) {
  Array result({x.shape[0], x.shape[1], height, width});
  for_each(result.shape, [&](const Index& o) {
    const std::int64_t y0 = o[2] * x.shape[2] / height;
    const std::int64_t y1 = ((o[2] + 1) * x.shape[2] + height - 1) / height;
    const std::int64_t x0 = o[3] * x.shape[3] / width;
    const std::int64_t x1 = ((o[3] + 1) * x.shape[3] + width - 1) / width;
    double sum = 0.0;
    for_each({y1 - y0, x1 - x0}, [&](const Index& k) {
      sum += x.at({o[0], o[1], y0 + k[0], x0 + k[1]});
    });
    result.at(o) = sum / static_cast<double>((y1 - y0) * (x1 - x0));
  });
  return result;
}

Array mean_over(const Array& x, const std::set<std::size_t>& dimensions, bool keep) {
  Shape kept = x.shape;
  double count = 1.0;
  for (const std::size_t d : dimensions) {
    count *= static_cast<double>(x.shape[d]);
    kept[d] = 1;
  }
  Array sums(kept);
  for_each(x.shape, [&](Index index) {
    const double value = x.at(index);
    for (const std::size_t d : dimensions) index[d] = 0;
    sums.at(index) += value / count;
  });
  if (!keep) {
    for (auto d = dimensions.rbegin(); d != dimensions.rend(); ++d) {
      sums.shape.erase(sums.shape.begin() + static_cast<std::ptrdiff_t>(*d));
    }
  }
  return sums;
}

/// Both of rank 2 or more; batches broadcast.
Array multiply(const Array& a, const Array& b) {
  const std::int64_t rows = a.shape[a.shape.size() - 2];
  const std::int64_t inner = a.shape.back();
  const std::int64_t columns = b.shape.back();
  Array a_batch(Shape(a.shape.begin(), a.shape.end() - 2));
  Array b_batch(Shape(b.shape.begin(), b.shape.end() - 2));
  std::iota(a_batch.values.begin(), a_batch.values.end(), 0.0);
  std::iota(b_batch.values.begin(), b_batch.values.end(), 0.0);
  const Array a_at = zip_values(a_batch, b_batch, [](double x, double) { return x; });
  const Array b_at = zip_values(a_batch, b_batch, [](double, double y) { return y; });
  Shape shape = a_at.shape;
  shape.insert(shape.end(), {rows, columns});
  Array result(shape);
  for (std::size_t batch = 0; batch < a_at.values.size(); ++batch) {
    const auto a_begin = static_cast<std::int64_t>(a_at.values[batch]) * rows * inner;
    const auto b_begin = static_cast<std::int64_t>(b_at.values[batch]) * inner * columns;
    for_each({rows, columns, inner}, [&](const Index& i) {
      result.values[batch * static_cast<std::size_t>(rows * columns) +
                    static_cast<std::size_t>(i[0] * columns + i[1])] +=
          a.values[static_cast<std::size_t>(a_begin + i[0] * inner + i[2])] *
          b.values[static_cast<std::size_t>(b_begin + i[2] * columns + i[1])];
    });
  }
  return result;
}

Array permute(const Array& x, const std::vector<std::size_t>& order) {
  Shape shape;
  for (const std::size_t d : order) shape.push_back(x.shape[d]);
  Array result(shape);
  for_each(shape, [&](const Index& o) {
    Index i(o.size());
    for (std::size_t d = 0; d < order.size(); ++d) i[order[d]] = o[d];
    result.at(o) = x.at(i);
  });
  return result;
}

Array swap_last(const Array& x) {
  std::vector<std::size_t> order(x.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute(x, order);
}

Array softmax(const Array& x, std::size_t dimension, bool logarithm) {
  Array result(x.shape);
  for_each(x.shape, [&](Index index) {
    const std::int64_t own = index[dimension];
    double largest = -INFINITY;
    for (index[dimension] = 0; index[dimension] < x.shape[dimension]; ++index[dimension]) {
      largest = std::max(largest, x.at(index));
    }
    double sum = 0.0;
    for (index[dimension] = 0; index[dimension] < x.shape[dimension]; ++index[dimension]) {
      sum += std::exp(x.at(index) - largest);
    }
    index[dimension] = own;
    const double shifted = x.at(index) - largest;
    result.at(index) = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
  });
  return result;
}

/// Over the last dimensions that make up `width` elements.
Array normalize_rows(const Array& x, std::size_t width, const Array* weight, const Array* bias,
                     double epsilon) {
  Array result = x;
  for (std::size_t begin = 0; begin < x.values.size(); begin += width) {
    double mean = 0.0;
    double variance = 0.0;
    for (std::size_t i = 0; i < width; ++i)
      mean += x.values[begin + i] / static_cast<double>(width);
    for (std::size_t i = 0; i < width; ++i) {
      variance +=
          (x.values[begin + i] - mean) * (x.values[begin + i] - mean) / static_cast<double>(width);
    }
    for (std::size_t i = 0; i < width; ++i) {
      double value = (x.values[begin + i] - mean) / std::sqrt(variance + epsilon);
      if (weight != nullptr) value *= weight->values[i];
      if (bias != nullptr) value += bias->values[i];
      result.values[begin + i] = value;
    }
  }
  return result;
}

Array concatenate(const std::vector<Array>& parts, std::size_t dimension) {
  Shape shape = parts.front().shape;
  shape[dimension] = 0;
  for (const Array& part : parts) shape[dimension] += part.shape[dimension];
  Array result(shape);
  std::int64_t begin = 0;
  for (const Array& part : parts) {
    for_each(part.shape, [&](Index index) {
      const double value = part.at(index);
      index[dimension] += begin;
      result.at(index) = value;
    });
    begin += part.shape[dimension];
  }
  return result;
}

Array slice(const Array& x, std::size_t dimension, std::int64_t start, std::int64_t count,
            std::int64_t step) {
  Shape shape = x.shape;
  shape[dimension] = count;
  Array result(shape);
  for_each(shape, [&](Index index) {
    const Index target = index;
    index[dimension] = start + index[dimension] * step;
    result.at(target) = x.at(index);
  });
  return result;
}

Array reshape(Array x, Shape shape) {
  x.shape = std::move(shape);
  return x;
}

// ---- The backend ----

class Backend {
 public:
  static const npu_backend_api& api() {
    static const npu_backend_api* const loaded = [] {
      const std::string path = std::string(npu::test::backend_dir()) + "/npu_backend_onednn.so";
      void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (library == nullptr) throw std::runtime_error(dlerror());
      using Entry = const npu_backend_api* (*)(std::uint32_t);
      const auto entry = reinterpret_cast<Entry>(dlsym(library, NPU_BACKEND_ENTRY_NAME));
      return entry(NPU_BACKEND_ABI_VERSION);
    }();
    return *loaded;
  }
};

struct DeviceCloser {
  void operator()(npu_device* device) const { Backend::api().close_device(device); }
};
struct ProgramFreer {
  void operator()(npu_program* program) const { Backend::api().program_free(program); }
};
struct BufferFreer {
  void operator()(npu_buffer* buffer) const { Backend::api().buffer_free(buffer); }
};
using Device = std::unique_ptr<npu_device, DeviceCloser>;
using Program = std::unique_ptr<npu_program, ProgramFreer>;
using Buffer = std::unique_ptr<npu_buffer, BufferFreer>;

Device open_device() {
  npu_device* device = nullptr;
  npu_error error{};
  REQUIRE(Backend::api().open_device(R"({"threads":2,"unknown":1})", &device, &error) == NPU_OK);
  return Device(device);
}

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
    } else {
      float value = 0;
      std::memcpy(&value, data.bytes.data() + i * sizeof value, sizeof value);
      array.values[i] = static_cast<double>(value);
    }
  }
  return array;
}

std::string dtype_text(npu_dtype dtype) {
  if (dtype == NPU_INT64) return "int64";
  return dtype == NPU_BFLOAT16 ? "bfloat16" : "float32";
}

/// A sub-IR under construction, its data, and the expected results.
class Model {
 public:
  explicit Model(npu_dtype dtype) : dtype_(dtype) {}
  npu_dtype dtype() const { return dtype_; }

  /// Adds a graph input; returns its values as the type holds them.
  Array input(const std::string& name, const Array& array, npu_dtype dtype) {
    inputs_.push_back(encode(name, array, dtype));
    return declare(name, round_all(array, dtype), dtype);
  }
  Array input(const std::string& name, const Array& array) { return input(name, array, dtype_); }
  Array weight(const std::string& name, const Array& array) {
    weights_.push_back(encode(name, array, dtype_));
    return declare(name, round_all(array, dtype_), dtype_);
  }

  /// Adds a node with one result, which is called what the node is called. `expected` gives its
  /// shape.
  Array node(const std::string& name, const std::string& op,
             const std::vector<std::string>& operands, const std::string& attrs,
             const Array& expected) {
    return node(name, op, operands, attrs, {{name, expected}}).front();
  }
  Array node(const std::string& name, const std::string& op,
             const std::vector<std::string>& operands, const std::string& attrs,
             const Array& expected, npu_dtype dtype) {
    result_dtype_ = dtype;
    Array result = node(name, op, operands, attrs, expected);
    result_dtype_.reset();
    return result;
  }
  std::vector<Array> node(const std::string& name, const std::string& op,
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
  void output(const std::string& name) { outputs_.push_back(name); }

  std::string text() const {
    std::string result = R"({"model_name":"test","pytorch_version":"2.0","graph_inputs":[)";
    for (const Data& data : inputs_)
      result += (&data == &inputs_[0] ? "" : ",") + mention(data.name);
    result += R"(],"graph_outputs":[)";
    for (const auto& name : outputs_) result += (&name == &outputs_[0] ? "" : ",") + mention(name);
    result += R"(],"weights":[)";
    for (const Data& data : weights_)
      result += (&data == &weights_[0] ? "" : ",") + mention(data.name);
    return result + R"(],"weight_name_mapping":{},"nodes":[)" + nodes_ + "]}";
  }

  std::vector<npu_tensor> weight_views() const {
    std::vector<npu_tensor> views;
    for (const Data& data : weights_) views.push_back(data.view());
    return views;
  }
  std::vector<Buffer> import_inputs(npu_device* device) const {
    std::vector<Buffer> buffers;
    for (const Data& data : inputs_) {
      npu_buffer* buffer = nullptr;
      npu_error error{};
      const npu_tensor view = data.view();
      REQUIRE(Backend::api().buffer_import(device, &view, &buffer, &error) == NPU_OK);
      buffers.emplace_back(buffer);
    }
    return buffers;
  }
  const std::vector<std::string>& outputs() const { return outputs_; }
  const Array& expected(const std::string& name) const { return tensors_.at(name).first; }
  npu_dtype dtype_of(const std::string& name) const { return tensors_.at(name).second; }
  std::size_t node_count() const { return node_count_; }

 private:
  Array declare(const std::string& name, const Array& array, npu_dtype dtype) {
    tensors_.insert_or_assign(name, std::pair(array, dtype));
    return array;
  }
  std::string mention(const std::string& name) const {
    std::string shape;
    for (const std::int64_t extent : tensors_.at(name).first.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(extent);
    }
    return R"({"name":")" + name + R"(","shape":[)" + shape + R"(],"dtype":")" +
           dtype_text(tensors_.at(name).second) + R"("})";
  }

  npu_dtype dtype_;
  std::optional<npu_dtype> result_dtype_;
  std::vector<Data> inputs_;
  std::vector<Data> weights_;
  std::vector<std::string> outputs_;
  std::string nodes_;
  std::size_t node_count_ = 0;
  std::map<std::string, std::pair<Array, npu_dtype>> tensors_;
};

struct Compiled {
  npu_status status = NPU_OK;
  std::string text;
  Program program;
  std::string blob;  ///< outlives the program
};

Compiled compile(npu_device* device, const Model& model) {
  const npu_backend_api& api = Backend::api();
  Compiled result;
  npu_error error{};
  npu_blob blob{};
  const std::string text = model.text();
  const auto weights = model.weight_views();
  result.status = api.compile(device, text.data(), text.size(), weights.data(), weights.size(),
                              nullptr, &blob, &error);
  result.text = error.text;
  if (result.status != NPU_OK) return result;
  result.blob.assign(static_cast<const char*>(blob.data), blob.size);
  api.blob_free(&blob);
  npu_program* program = nullptr;
  result.status = api.load(device, result.blob.data(), result.blob.size(), weights.data(),
                           weights.size(), &program, &error);
  result.text = error.text;
  result.program.reset(program);
  return result;
}

Data read_buffer(const npu_buffer* buffer) {
  npu_error error{};
  npu_tensor description{};
  REQUIRE(Backend::api().buffer_describe(buffer, &description, &error) == NPU_OK);
  Data data{"", description.dtype, Shape(description.shape, description.shape + description.rank),
            std::vector<char>(description.bytes)};
  REQUIRE(Backend::api().buffer_export(buffer, data.bytes.data(), data.bytes.size(), &error) ==
          NPU_OK);
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

/// Compiles and runs a model, twice (a second run meets used memory), and compares every output.
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
        Backend::api().run(compiled.program.get(), input_pointers.data(), input_pointers.size(),
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
  for (npu_buffer* output : outputs) Backend::api().buffer_free(output);
  std::vector<std::uint64_t> times(model.node_count(), 0);
  REQUIRE(Backend::api().node_times(compiled.program.get(), times.data(), times.size(), &error) ==
          NPU_OK);
}

/// Compiles a model that has to be refused; returns the text.
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

// ---- Models with one node ----

void check_convolution(npu_dtype dtype, const Shape& x_shape, const Shape& w_shape, bool with_bias,
                       const ConvArguments& arguments, const std::string& attrs,
                       const std::string& op = "aten.conv2d.default") {
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
                 const std::function<double(double)>& function, const Shape& shape = {2, 3, 5, 7}) {
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

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double clip(double x, double low, double high) { return std::min(std::max(x, low), high); }

}  // namespace

TEST_CASE("onednn describes itself and its ops", "[onednn]") {
  npu_backend_description description{};
  npu_error error{};
  REQUIRE(Backend::api().describe(&description, &error) == NPU_OK);
  CHECK(std::string(description.name) == "onednn");
  CHECK(std::string(description.version).find("oneDNN 2.") != std::string::npos);
  CHECK(std::string(description.fingerprint).find("isa") != std::string::npos);
  CHECK(std::string(description.fingerprint).find(" compiler ") != std::string::npos);
  std::set<std::string> ops;
  const Device device = open_device();
  const auto visit = [](void* context, const char* op, const char* kind) {
    static_cast<std::set<std::string>*>(context)->insert(op);
    CHECK(std::string(kind) == "onednn");
  };
  REQUIRE(Backend::api().list_ops(device.get(), visit, &ops, &error) == NPU_OK);
  for (const char* op : {"aten.conv2d.default", "aten.batch_norm.default", "aten.linear.default",
                         "aten.relu_.default", "aten.cat.default", "<built-in function getitem>"}) {
    CHECK(ops.count(op) == 1);
  }
}

TEST_CASE("onednn refuses another ABI and malformed device options", "[onednn]") {
  const std::string path = std::string(npu::test::backend_dir()) + "/npu_backend_onednn.so";
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto entry = reinterpret_cast<const npu_backend_api* (*)(std::uint32_t)>(
      dlsym(library, NPU_BACKEND_ENTRY_NAME));
  CHECK(entry(NPU_BACKEND_ABI_VERSION + 1) == nullptr);
  npu_device* device = nullptr;
  npu_error error{};
  for (const char* options : {"[]", "{", R"({"threads":-1})", R"({"threads":"two"})"}) {
    CHECK(Backend::api().open_device(options, &device, &error) == NPU_ERROR_INVALID);
    CHECK(device == nullptr);
  }
  REQUIRE(Backend::api().open_device(nullptr, &device, &error) == NPU_OK);
  Backend::api().close_device(device);
}

TEST_CASE("onednn runs a graph without nodes", "[onednn]") {
  Model model(each_dtype());
  model.input("x", random_array({2, 3}, 1));
  model.input("i", Array({4}), NPU_INT64);
  model.weight("w", random_array({5}, 2));
  for (const char* name : {"x", "i", "w"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn conv2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  check_convolution(dtype, {1, 3, 8, 9}, {5, 3, 3, 3}, true, {}, "");
  check_convolution(dtype, {2, 16, 9, 9}, {16, 16, 3, 3}, false,
                    {{2, 2}, {1, 1}, {1, 1}, {1, 1}, 1}, R"("stride":[2,2],"padding":[1,1])");
  check_convolution(dtype, {2, 8, 7, 6}, {12, 4, 3, 2}, true, {{1, 2}, {2, 0}, {2, 0}, {1, 1}, 2},
                    R"("stride":[1,2],"padding":[2,0],"groups":2)");
  check_convolution(dtype, {1, 24, 9, 9}, {24, 1, 3, 3}, true, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, 24},
                    R"("padding":[1,1],"groups":24)");  // depthwise
  check_convolution(dtype, {1, 8, 12, 11}, {8, 8, 3, 3}, true, {{1, 1}, {2, 3}, {2, 3}, {2, 3}, 1},
                    R"("padding":[2,3],"dilation":[2,3])");
  check_convolution(dtype, {1, 16, 5, 5}, {32, 16, 1, 1}, true, {}, R"("stride":1)");
}

TEST_CASE("onednn conv2d with padding by name", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  // 'same' with kernels of 4 and 3, dilated by 1 and 2: 3 = 1 + 2 and 4 = 2 + 2 elements of
  // padding.
  check_convolution(dtype, {1, 3, 8, 9}, {4, 3, 4, 3}, true, {{1, 1}, {1, 2}, {2, 2}, {1, 2}, 1},
                    R"("padding":"same","dilation":[1,2])", "aten.conv2d.padding");
  check_convolution(dtype, {1, 3, 8, 9}, {4, 3, 4, 3}, false, {}, R"("padding":"valid")",
                    "aten.conv2d.padding");
}

TEST_CASE("onednn conv1d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 6, 11}, 1));
  const Array w = model.weight("w", random_array({8, 3, 3}, 2));
  ConvArguments arguments{{1, 2}, {0, 1}, {0, 1}, {1, 1}, 2};
  const Array y = convolve(reshape(x, {2, 6, 1, 11}), reshape(w, {8, 3, 1, 3}), nullptr, arguments);
  model.node("y", "aten.conv1d.default", {"x", "w"}, R"("stride":[2],"padding":[1],"groups":2)",
             reshape(y, {2, 8, y.shape[3]}));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn convolution with a computed weight", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({1, 8, 6, 6}, 1));
  const Array w = model.input("w", random_array({8, 8, 3, 3}, 2));
  const Array r = model.node("r", "aten.relu.default", {"w"}, "",
                             map_values(w, [](double v) { return std::max(v, 0.0); }));
  model.node("y", "aten.conv2d.default", {"x", "r"}, "", convolve(x, r, nullptr, {}));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn batch_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const bool affine = GENERATE(true, false);
  const Shape shape = GENERATE(Shape{2, 5, 4, 3}, Shape{4, 6}, Shape{2, 7, 5}, Shape{1, 16, 3, 3});
  Model model(dtype);
  const Shape channels{shape[1]};
  const Array x = model.input("x", random_array(shape, 1));
  const Array weight = affine ? model.weight("weight", random_array(channels, 2)) : Array();
  const Array bias = affine ? model.weight("bias", random_array(channels, 3)) : Array();
  const Array mean = model.weight("mean", random_array(channels, 4));
  const Array variance = model.weight("var", positive_array(channels, 5));
  const std::vector<std::string> operands =
      affine ? std::vector<std::string>{"x", "weight", "bias", "mean", "var"}
             : std::vector<std::string>{"x", "mean", "var"};
  model.node("y", "aten.batch_norm.default", operands,
             R"("training":false,"momentum":0.1,"eps":1e-3,"cudnn_enabled":true)",
             normalize_channels(x, affine ? &weight : nullptr, affine ? &bias : nullptr, mean,
                                variance, 1e-3));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn functions of one operand", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const auto relu = [](double x) { return std::max(x, 0.0); };
  check_unary(dtype, "aten.relu.default", "", relu);
  check_unary(dtype, "aten.relu_.default", "", relu, {});
  check_unary(dtype, "aten.relu.default", "", relu, {1});
  check_unary(dtype, "aten.hardtanh_.default", R"("min_val":0.0,"max_val":6.0)",
              [](double x) { return clip(x, 0, 6); });
  check_unary(dtype, "aten.hardtanh.default", "", [](double x) { return clip(x, -1, 1); });
  check_unary(dtype, "aten.relu6.default", "", [](double x) { return clip(x, 0, 6); });
  check_unary(dtype, "aten.silu_.default", "", [](double x) { return x * sigmoid(x); });
  check_unary(dtype, "aten.sigmoid.default", "", sigmoid);
  check_unary(dtype, "aten.tanh.default", "", [](double x) { return std::tanh(x); });
  check_unary(dtype, "aten.hardswish_.default", "",
              [](double x) { return x * clip(x + 3, 0, 6) / 6; });
  check_unary(dtype, "aten.hardsigmoid.default", "",
              [](double x) { return clip(x + 3, 0, 6) / 6; });
  check_unary(dtype, "aten.leaky_relu_.default", R"("negative_slope":0.2)",
              [](double x) { return x > 0 ? x : 0.2 * x; });
  check_unary(dtype, "aten.elu.default", R"("alpha":1.5)",
              [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); });
  check_unary(dtype, "aten.gelu.default", "",
              [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); });
  check_unary(dtype, "aten.gelu.default", R"("approximate":"tanh")", [](double x) {
    return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  });
  check_unary(dtype, "aten.clamp.default", R"("min":-0.5)",
              [](double x) { return std::max(x, -0.5); });
  check_unary(dtype, "aten.exp.default", "", [](double x) { return std::exp(x); });
  check_unary(dtype, "aten.abs.default", "", [](double x) { return std::fabs(x); });
  check_unary(dtype, "aten.neg.default", "", [](double x) { return -x; });
  check_unary(dtype, "aten.mish.default", "",
              [](double x) { return x * std::tanh(std::log1p(std::exp(x))); });
}

TEST_CASE("onednn arithmetic on two operands broadcasts", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::pair<Shape, Shape> shapes = GENERATE(values<std::pair<Shape, Shape>>({
      {{2, 3, 4, 5}, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {3, 1, 1}},
      {{3, 1, 1}, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {5}},
      {{2, 3, 4, 5}, {}},
      {{}, {2, 3}},
      {{4, 1}, {1, 6}},
      {{2, 3, 1, 5}, {2, 1, 4, 5}},
      {{1, 1}, {1, 1}},
      {{7}, {1}},
  }));
  const auto& [a, b] = shapes;
  check_binary(dtype, "aten.add.Tensor", a, b, "", [](double x, double y) { return x + y; });
  check_binary(dtype, "aten.add.Tensor", a, b, R"("alpha":-2.5)",
               [](double x, double y) { return x - 2.5 * y; });
  check_binary(dtype, "aten.sub.Tensor", a, b, R"("alpha":2)",
               [](double x, double y) { return x - 2 * y; });
  check_binary(dtype, "aten.mul.Tensor", a, b, "", [](double x, double y) { return x * y; });
  check_binary(dtype, "aten.div.Tensor", a, b, "", [](double x, double y) { return x / y; });
  check_binary(dtype, "aten.maximum.default", a, b, "",
               [](double x, double y) { return std::max(x, y); });
  check_binary(dtype, "aten.minimum.default", a, b, "",
               [](double x, double y) { return std::min(x, y); });
}

TEST_CASE("onednn arithmetic with a number", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  check_unary(dtype, "aten.add.Tensor", R"("other":1.5)", [](double x) { return x + 1.5; });
  check_unary(dtype, "aten.add_.Tensor", R"("other":3,"alpha":2)", [](double x) { return x + 6; });
  check_unary(dtype, "aten.sub.Tensor", R"("other":1.5)", [](double x) { return x - 1.5; });
  check_unary(dtype, "aten.mul.Tensor", R"("other":-0.3)", [](double x) { return x * -0.3; });
  check_unary(dtype, "aten.mul_.Scalar", R"("other":2)", [](double x) { return x * 2; });
  check_unary(dtype, "aten.div.Tensor", R"("other":3.0)", [](double x) { return x / 3; });
  check_unary(dtype, "aten.rsub.Scalar", R"("other":1.0)", [](double x) { return 1 - x; });
}

TEST_CASE("onednn maximum keeps NaN", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array a = random_array({4}, 1);
  Array b = random_array({4}, 2);
  a.values[1] = NAN;
  b.values[2] = NAN;
  model.input("a", a);
  model.input("b", b);
  Array y = zip_values(a, b, [](double p, double q) { return p > q ? p : q; });
  y.values[1] = NAN;
  y.values[2] = NAN;
  model.node("y", "aten.maximum.default", {"a", "b"}, "", y);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn max_pool2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.max_pool2d.default";
  check_pool(dtype, op, {2, 3, 8, 8}, {2, 3, 4, 4}, {}, R"("kernel_size":[2,2])");
  check_pool(dtype, op, {1, 16, 9, 11}, {1, 16, 5, 6}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true, 0},
             R"("kernel_size":[3,3],"stride":[2,2],"padding":[1,1])");
  // 7 with windows of 2, stride 2: floor 3, ceil 4.
  check_pool(dtype, op, {1, 3, 7, 7}, {1, 3, 4, 4}, {}, R"("kernel_size":2,"ceil_mode":true)");
  // 6 with padding 1, windows of 2, stride 3: ceil(6 / 3) + 1 = 3 windows at -1, 2, 5.
  check_pool(dtype, op, {1, 3, 6, 6}, {1, 3, 3, 3}, {{2, 2}, {3, 3}, {1, 1}, {1, 1}, true, 0},
             R"("kernel_size":2,"stride":3,"padding":1,"ceil_mode":true)");
  // 5 with padding 1, windows of 2, stride 3: a third window at 5 would start behind the input.
  check_pool(dtype, op, {1, 3, 4, 4}, {1, 3, 2, 2}, {{2, 2}, {3, 3}, {1, 1}, {1, 1}, true, 0},
             R"("kernel_size":2,"stride":3,"padding":1,"ceil_mode":true)");
  check_pool(dtype, op, {1, 3, 9, 9}, {1, 3, 5, 5}, {{3, 3}, {1, 1}, {0, 0}, {2, 2}, true, 0},
             R"("kernel_size":3,"stride":1,"dilation":2)");
}

TEST_CASE("onednn avg_pool2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.avg_pool2d.default";
  check_pool(dtype, op, {2, 3, 8, 8}, {2, 3, 4, 4}, {}, R"("kernel_size":[2,2])");
  for (const bool counts : {true, false}) {
    const std::string flag = counts ? "" : R"(,"count_include_pad":false)";
    check_pool(dtype, op, {1, 16, 9, 9}, {1, 16, 9, 9}, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, counts, 0},
               R"("kernel_size":3,"stride":1,"padding":1)" + flag);
    // 7 with padding 1, windows of 3, stride 3: ceil gives 3 windows at -1, 2, 5; the last ends at
    // 8, the end of the padding.
    check_pool(dtype, op, {1, 3, 7, 7}, {1, 3, 3, 3}, {{3, 3}, {3, 3}, {1, 1}, {1, 1}, counts, 0},
               R"("kernel_size":3,"stride":3,"padding":1,"ceil_mode":true)" + flag);
    // 8 with padding 1, windows of 3, stride 2: windows at -1, 1, 3, 5, 7; the last ends behind the
    // padding.
    check_pool(dtype, op, {1, 3, 8, 8}, {1, 3, 5, 5}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, counts, 0},
               R"("kernel_size":3,"stride":2,"padding":1,"ceil_mode":true)" + flag);
  }
  check_pool(dtype, op, {1, 3, 7, 7}, {1, 3, 4, 4}, {}, R"("kernel_size":2,"ceil_mode":true)");
  check_pool(dtype, op, {1, 3, 8, 8}, {1, 3, 4, 4}, {{2, 2}, {2, 2}, {0, 0}, {1, 1}, true, 3},
             R"("kernel_size":2,"divisor_override":3)");
}

TEST_CASE("onednn adaptive_avg_pool2d", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const auto [height, width] =
      GENERATE(table<std::int64_t, std::int64_t>({{1, 1}, {5, 3}, {7, 4}, {3, 12}}));
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 5, 10, 6}, 1));
  model.node("y", "aten.adaptive_avg_pool2d.default", {"x"},
             R"("output_size":)" + list_text({height, width}), pool_adaptively(x, height, width));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn pooling without a batch dimension", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({5, 6, 6}, 1));
  const Array batched = reshape(x, {1, 5, 6, 6});
  model.node("y", "aten.adaptive_avg_pool2d.default", {"x"}, R"("output_size":[4,3])",
             reshape(pool_adaptively(batched, 4, 3), {5, 4, 3}));
  model.node("z", "aten.max_pool2d.default", {"x"}, R"("kernel_size":2)",
             reshape(pool(batched, {1, 5, 3, 3}, {}, true), {5, 3, 3}));
  model.output("y");
  model.output("z");
  check_model(model);
}

TEST_CASE("onednn mean", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const bool keep = GENERATE(false, true);
  const auto [list, dimensions] =
      GENERATE(table<std::string, std::set<std::size_t>>({{"[-1,-2]", {2, 3}},
                                                          {"[1]", {1}},
                                                          {"[-1]", {3}},
                                                          {"[0,2]", {0, 2}},
                                                          {"[0,1,2,3]", {0, 1, 2, 3}},
                                                          {"[]", {0, 1, 2, 3}}}));
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 9, 5, 6}, 1));
  model.node("y", "aten.mean.dim", {"x"}, R"("dim":)" + list + (keep ? R"(,"keepdim":true)" : ""),
             mean_over(x, dimensions, keep));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn linear", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape = GENERATE(Shape{3, 10}, Shape{10}, Shape{2, 3, 10}, Shape{1, 10});
  const bool with_bias = GENERATE(false, true);
  Model model(dtype);
  const Array x = model.input("x", random_array(shape, 1));
  const Array w = model.weight("w", random_array({7, 10}, 2));
  Array y = multiply(reshape(x, {count_of(shape) / 10, 10}), swap_last(w));
  std::vector<std::string> operands{"x", "w"};
  if (with_bias) {
    y = zip_values(y, model.weight("b", random_array({7}, 3)), std::plus<>());
    operands.emplace_back("b");
  }
  Shape result = shape;
  result.back() = 7;
  model.node("y", "aten.linear.default", operands, "", reshape(y, result));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn addmm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape bias = GENERATE(Shape{7}, Shape{1, 7}, Shape{4, 7}, Shape{4, 1}, Shape{});
  const auto [attrs, beta, alpha] = GENERATE(table<std::string, double, double>(
      {{"", 1.0, 1.0}, {R"("alpha":0.5,"beta":-2)", -2.0, 0.5}, {R"("beta":0)", 0.0, 1.0}}));
  Model model(dtype);
  const Array self = model.input("self", random_array(bias, 1));
  const Array a = model.input("a", random_array({4, 5}, 2));
  const Array b = model.weight("b", random_array({5, 7}, 3));
  const double b_factor = beta;
  const double a_factor = alpha;
  model.node("y", "aten.addmm.default", {"self", "a", "b"}, attrs,
             zip_values(multiply(a, b), self,
                        [=](double p, double s) { return a_factor * p + b_factor * s; }));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn matrix products of any rank", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const bool weight = GENERATE(false, true);
  check_matmul(dtype, "aten.mm.default", {4, 5}, {5, 6}, {4, 6}, weight);
  check_matmul(dtype, "aten.bmm.default", {3, 4, 5}, {3, 5, 6}, {3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {5}, {5}, {}, weight);
  check_matmul(dtype, "aten.matmul.default", {4, 5}, {5}, {4}, weight);
  check_matmul(dtype, "aten.matmul.default", {5}, {5, 6}, {6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 3, 4, 5}, {5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {2, 3, 4, 5}, {1, 1, 5, 6}, {2, 3, 4, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {5}, {3, 5, 6}, {3, 6}, weight);
  check_matmul(dtype, "aten.matmul.default", {3, 4, 5}, {5}, {3, 4}, weight);
}

TEST_CASE("onednn matrix products of transposed and sliced views", "[onednn]") {
  Model model(each_dtype());
  const Array q = model.input("q", random_array({2, 5, 3, 4}, 1));
  const Array k = model.input("k", random_array({2, 6, 3, 4}, 2));
  const Array qt = model.node("qt", "aten.transpose.int", {"q"}, R"("dim0":1,"dim1":2)",
                              permute(q, {0, 2, 1, 3}));
  const Array kt = model.node("kt", "aten.permute.default", {"k"}, R"("dims":[0,2,3,1])",
                              permute(k, {0, 2, 3, 1}));
  model.node("s", "aten.matmul.default", {"qt", "kt"}, "", multiply(qt, kt));
  const Array part = model.node("part", "aten.slice.Tensor", {"kt"},
                                R"("dim":3,"start":1,"end":6,"step":2)", slice(kt, 3, 1, 3, 2));
  model.node("t", "aten.matmul.default", {"qt", "part"}, "", multiply(qt, part));
  for (const char* name : {"s", "t", "kt"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn softmax and log_softmax", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const int dimension = GENERATE(0, 1, 2, -1);
  const auto axis = static_cast<std::size_t>(dimension < 0 ? 3 + dimension : dimension);
  Model model(dtype);
  const Array x = model.input("x", random_array({3, 5, 7}, 1));
  const std::string attrs = R"("dim":)" + std::to_string(dimension);
  model.node("y", "aten.softmax.int", {"x"}, attrs, softmax(x, axis, false));
  model.node("z", "aten.log_softmax.int", {"x"}, attrs, softmax(x, axis, true));
  model.output("y");
  model.output("z");
  check_model(model);
}

TEST_CASE("onednn softmax converts by its dtype argument", "[onednn]") {
  Model model(NPU_BFLOAT16);
  const Array x = model.input("x", random_array({3, 7}, 1));
  model.node("y", "aten.softmax.int", {"x"}, R"("dim":-1,"dtype":"torch.float32")",
             softmax(x, 1, false), NPU_FLOAT32);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn layer_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const auto [list, width] = GENERATE(table<std::string, std::size_t>({{"[6]", 6}, {"[5,6]", 30}}));
  const bool affine = GENERATE(true, false);
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 4, 5, 6}, 1));
  std::vector<std::string> operands{"x"};
  Array weight;
  Array bias;
  if (affine) {
    const Shape shape = width == 6 ? Shape{6} : Shape{5, 6};
    weight = model.weight("w", random_array(shape, 2));
    bias = model.weight("b", random_array(shape, 3));
    operands.insert(operands.end(), {"w", "b"});
  }
  model.node("y", "aten.layer_norm.default", operands,
             R"("normalized_shape":)" + list + R"(,"eps":1e-4)",
             normalize_rows(x, width, affine ? &weight : nullptr, affine ? &bias : nullptr, 1e-4));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn scaled_dot_product_attention", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string variant = GENERATE(as<std::string>(), "plain", "mask", "causal", "scale");
  Model model(dtype);
  const Array q = model.input("q", random_array({2, 3, 5, 8}, 1));
  const Array k = model.input("k", random_array({2, 3, 6, 8}, 2));
  const Array v = model.input("v", random_array({2, 3, 6, 4}, 3));
  std::vector<std::string> operands{"q", "k", "v"};
  const double scale = variant == "scale" ? 0.7 : 1 / std::sqrt(8.0);
  Array scores = map_values(multiply(q, swap_last(k)), [=](double s) { return scale * s; });
  std::string attrs;
  if (variant == "scale") attrs = R"("scale":0.7)";
  if (variant == "mask") {
    scores = zip_values(scores, model.input("m", random_array({2, 1, 5, 6}, 4)), std::plus<>());
    operands.emplace_back("m");
  }
  if (variant == "causal") {
    attrs = R"("is_causal":true)";
    for_each(scores.shape, [&](const Index& i) {
      if (i[3] > i[2]) scores.at(i) = -INFINITY;
    });
  }
  model.node("y", "aten.scaled_dot_product_attention.default", operands, attrs,
             multiply(softmax(scores, 3, false), v));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn embedding", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  Model model(dtype);
  Array indices({2, 3});
  indices.values = {0, 4, 2, 4, 1, 3};
  const Array table = model.weight("table", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  Array y({2, 3, 7});
  for_each(y.shape, [&](const Index& o) {
    y.at(o) = table.at({static_cast<std::int64_t>(indices.at({o[0], o[1]})), o[2]});
  });
  model.node("y", "aten.embedding.default", {"table", "i"}, "", y);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn embedding fails on an index outside the table", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array indices({1});
  indices.values = {static_cast<double>(GENERATE(5, -1))};
  model.weight("table", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.node("y", "aten.embedding.default", {"table", "i"}, "", Array({1, 7}));
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* input = inputs[0].get();
  npu_buffer* output = nullptr;
  npu_error error{};
  CHECK(Backend::api().run(compiled.program.get(), &input, 1, &output, 1, &error) ==
        NPU_ERROR_FAILED);
  CHECK(std::string(error.text).find("node 'y'") != std::string::npos);
  CHECK(output == nullptr);
}

TEST_CASE("onednn cat", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::size_t dimension = GENERATE(std::size_t{0}, std::size_t{1}, std::size_t{2});
  Model model(dtype);
  Shape other{2, 3, 4};
  other[dimension] = 5;
  const Array a = model.input("a", random_array({2, 3, 4}, 1));
  const Array b = model.input("b", random_array(other, 2));
  const Array t = model.node("t", "aten.transpose.int", {"b"}, R"("dim0":0,"dim1":0)", b);
  model.node("y", "aten.cat.default", {"a", "t", "a"},
             R"("_tensor_list_sizes":[3],"dim":)" + std::to_string(dimension),
             concatenate({a, b, a}, dimension));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn cat of convolutions on channels", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  // 8 and 16 fill blocks; 5 does not; 32 alone fills those of AVX-512.
  const auto [first, second] =
      GENERATE(table<std::int64_t, std::int64_t>({{8, 16}, {5, 8}, {8, 5}, {32, 16}}));
  Model model(dtype);
  const Array x = model.input("x", random_array({1, 16, 6, 6}, 1));
  const Array u = model.weight("u", random_array({first, 16, 3, 3}, 2));
  const Array v = model.weight("v", random_array({second, 16, 3, 3}, 3));
  const Array a =
      model.node("a", "aten.conv2d.default", {"x", "u"}, "", convolve(x, u, nullptr, {}));
  const Array b =
      model.node("b", "aten.conv2d.default", {"x", "v"}, "", convolve(x, v, nullptr, {}));
  const Array c = model.node("c", "aten.cat.default", {"a", "b"},
                             R"("_tensor_list_sizes":[2],"dim":1)", concatenate({a, b}, 1));
  model.node("y", "aten.relu_.default", {"c"}, "",
             map_values(c, [](double r) { return std::max(r, 0.0); }));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn moves elements without changing them", "[onednn]") {
  const npu_dtype dtype = GENERATE(NPU_FLOAT32, NPU_BFLOAT16, NPU_INT64);
  Model model(dtype);
  Array values({2, 3, 4});
  std::iota(values.values.begin(), values.values.end(), 1.0);
  const Array x = model.input("x", values);
  const auto add = [&](const std::string& name, const std::string& op, const std::string& from,
                       const std::string& attrs, const Array& expected) {
    model.node(name, op, {from}, attrs, expected);
    model.output(name);
    return expected;
  };
  add("view", "aten.view.default", "x", R"("size":[6,-1])", reshape(x, {6, 4}));
  add("reshape", "aten.reshape.default", "x", R"("shape":[2,12])", reshape(x, {2, 12}));
  add("flatten", "aten.flatten.using_ints", "x", R"("start_dim":1)", reshape(x, {2, 12}));
  const Array p =
      add("permute", "aten.permute.default", "x", R"("dims":[2,0,-2])", permute(x, {2, 0, 1}));
  add("pview", "aten.reshape.default", "permute", R"("shape":[-1])", reshape(p, {24}));
  const Array t =
      add("transpose", "aten.transpose.int", "x", R"("dim0":-1,"dim1":0)", permute(x, {2, 1, 0}));
  add("tcontiguous", "aten.contiguous.default", "transpose", "", t);
  add("unsqueeze", "aten.unsqueeze.default", "x", R"("dim":-2)", reshape(x, {2, 3, 1, 4}));
  add("squeeze", "aten.squeeze.dim", "unsqueeze", R"("dim":2)", x);
  add("squeeze0", "aten.squeeze.dim", "x", R"("dim":1)", x);
  const Array s =
      add("slice", "aten.slice.Tensor", "x",
          R"("dim":2,"start":-3,"end":9223372036854775807,"step":2)", slice(x, 2, 1, 2, 2));
  add("sview", "aten.view.default", "slice", R"("size":[12])", reshape(s, {12}));
  add("select", "aten.select.int", "x", R"("dim":1,"index":-1)",
      reshape(slice(x, 1, 2, 1, 1), {2, 4}));
  add("expand", "aten.expand.default", "select", R"("size":[3,2,-1])",
      concatenate(std::vector<Array>(3, reshape(slice(x, 1, 2, 1, 1), {1, 2, 4})), 0));
  add("alias", "aten.alias.default", "x", "", x);
  add("clone", "aten.clone.default", "x", "", x);
  add("dropout", "aten.dropout.default", "x", R"("p":0.5,"train":false)", x);
  add("to", "aten.to.dtype", "x", R"("dtype":"torch.)" + dtype_text(dtype) + "\"", x);
  check_model(model);
}

TEST_CASE("onednn splits and getitem", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({2, 7, 3}, 1));
  const auto parts = [&](const std::string& name, const std::string& op, const std::string& attrs,
                         const Index& sizes) {
    std::vector<std::pair<std::string, Array>> results;
    std::vector<std::string> names;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      names.push_back(name + "_" + std::to_string(i));
      results.emplace_back(names.back(), slice(x, 1, begin, sizes[i], 1));
      begin += sizes[i];
    }
    model.node(name, op, {"x"}, attrs, results);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const std::string item = name + "_item_" + std::to_string(i);
      model.node(item, "<built-in function getitem>", names, R"("index":)" + std::to_string(i),
                 results[i].second);
      model.output(item);
    }
  };
  parts("split", "aten.split.Tensor", R"("split_size":3,"dim":1)", {3, 3, 1});
  parts("sizes", "aten.split_with_sizes.default", R"("split_sizes":[2,5],"dim":-2)", {2, 5});
  parts("chunk", "aten.chunk.default", R"("chunks":3,"dim":1)", {3, 3, 1});
  check_model(model);
}

TEST_CASE("onednn converts between float32 and bfloat16", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({3, 5}, 1));
  const Array narrow =
      model.node("narrow", "aten.to.dtype", {"x"}, R"("dtype":"torch.bfloat16")", x, NPU_BFLOAT16);
  model.node("wide", "aten.to.dtype", {"narrow"}, R"("dtype":"torch.float32")", narrow);
  for (const char* name : {"narrow", "wide", "x"}) model.output(name);
  check_model(model);
}

// ---- Layouts, aliases and in-place ops across nodes ----

TEST_CASE("onednn adds a residual behind a convolution", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::int64_t channels = GENERATE(16, 5);
  Model model(dtype);
  const Array x = model.input("x", random_array({2, channels, 6, 6}, 1));
  const Array w = model.weight("w", random_array({channels, channels, 3, 3}, 2));
  const Array s = model.weight("s", random_array({channels, 1, 1}, 3));
  const ConvArguments arguments{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  const Array c = model.node("c", "aten.conv2d.default", {"x", "w"}, R"("padding":[1,1])",
                             convolve(x, w, nullptr, arguments));
  const Array a =
      model.node("a", "aten.add_.Tensor", {"c", "x"}, "", zip_values(c, x, std::plus<>()));
  const Array b =
      model.node("b", "aten.add.Tensor", {"x", "c"}, "", zip_values(x, c, std::plus<>()));
  const Array m =
      model.node("m", "aten.mul.Tensor", {"a", "s"}, "", zip_values(a, s, std::multiplies<>()));
  const Array d = model.node("d", "aten.conv2d.default", {"m", "w"}, R"("padding":[1,1])",
                             convolve(m, w, nullptr, arguments));
  const Array g = model.node("g", "aten.adaptive_avg_pool2d.default", {"d"},
                             R"("output_size":[1,1])", pool_adaptively(d, 1, 1));
  const Array e =
      model.node("e", "aten.mul.Tensor", {"g", "d"}, "", zip_values(g, d, std::multiplies<>()));
  model.node("q", "aten.div.Tensor", {"e"}, R"("other":3.0)",
             map_values(e, [](double v) { return v / 3; }));
  for (const char* name : {"a", "b", "m", "q"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn keeps the operand of an in-place op for its other readers", "[onednn]") {
  Model model(each_dtype());
  const auto relu = [](double v) { return std::max(v, 0.0); };
  const Array x = model.input("x", random_array({2, 8, 4, 4}, 1));
  const Array w = model.weight("w", random_array({8, 8, 1, 1}, 2));
  const Array c =
      model.node("c", "aten.conv2d.default", {"x", "w"}, "", convolve(x, w, nullptr, {}));
  const Array v =
      model.node("v", "aten.view.default", {"c"}, R"("size":[2,128])", reshape(c, {2, 128}));
  const Array r = model.node("r", "aten.relu_.default", {"c"}, "", map_values(c, relu));
  model.node("xr", "aten.relu_.default", {"x"}, "", map_values(x, relu));
  const Array u = model.node("u", "aten.add_.Tensor", {"v"}, R"("other":1)",
                             map_values(v, [](double p) { return p + 1; }));
  model.node("s", "aten.add.Tensor", {"c", "r"}, "", zip_values(c, r, std::plus<>()));
  model.node("t", "aten.mul.Tensor", {"v", "u"}, "", zip_values(v, u, std::multiplies<>()));
  for (const char* name : {"c", "v", "r", "xr", "s", "t", "x"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn reshapes and permutes what a convolution made", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::int64_t channels = GENERATE(16, 12);
  Model model(dtype);
  const Array x = model.input("x", random_array({2, 3, 8, 8}, 1));
  const Array w = model.weight("w", random_array({channels, 3, 4, 4}, 2));
  const Array c = model.node("c", "aten.conv2d.default", {"x", "w"}, R"("stride":[4,4])",
                             convolve(x, w, nullptr, {{4, 4}, {0, 0}, {0, 0}, {1, 1}, 1}));
  const Array r = model.node("r", "aten.reshape.default", {"c"}, R"("shape":[2,-1,4])",
                             reshape(c, {2, channels, 4}));
  const Array p =
      model.node("p", "aten.permute.default", {"r"}, R"("dims":[0,2,1])", permute(r, {0, 2, 1}));
  model.node("n", "aten.layer_norm.default", {"p"},
             R"("normalized_shape":)" + list_text({channels}),
             normalize_rows(p, static_cast<std::size_t>(channels), nullptr, nullptr, 1e-5));
  const Array h = model.node("h", "aten.permute.default", {"c"}, R"("dims":[0,2,3,1])",
                             permute(c, {0, 2, 3, 1}));
  model.node("hr", "aten.relu.default", {"h"}, "",
             map_values(h, [](double v) { return std::max(v, 0.0); }));
  const Array g = model.node("g", "aten.adaptive_avg_pool2d.default", {"c"},
                             R"("output_size":[1,1])", pool_adaptively(c, 1, 1));
  const Array f = model.node("f", "aten.flatten.using_ints", {"g"}, R"("start_dim":1)",
                             reshape(g, {2, channels}));
  model.node("m", "aten.softmax.int", {"c"}, R"("dim":1)", softmax(c, 1, false));
  for (const char* name : {"n", "h", "hr", "f", "g", "m"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn computes what depends on weights alone", "[onednn]") {
  Model model(each_dtype());
  const Array x = model.input("x", random_array({4, 6}, 1));
  const Array w = model.weight("w", random_array({5, 6}, 2));
  const Array t = model.node("t", "aten.t.default", {"w"}, "", permute(w, {1, 0}));
  const Array d = model.node("d", "aten.mul.Tensor", {"t"}, R"("other":2.0)",
                             map_values(t, [](double v) { return 2 * v; }));
  model.node("y", "aten.mm.default", {"x", "d"}, "", multiply(x, d));
  for (const char* name : {"y", "d", "t", "w"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn gives outputs memory of their own", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({2, 6}, 1));
  model.node("a", "aten.view.default", {"x"}, R"("size":[3,4])", reshape(x, {3, 4}));
  const Array r = model.node("r", "aten.relu.default", {"x"}, "",
                             map_values(x, [](double v) { return std::max(v, 0.0); }));
  model.node("b", "aten.view.default", {"r"}, R"("size":[12])", reshape(r, {12}));
  for (const char* name : {"x", "a", "r", "b"}) model.output(name);
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* input = inputs[0].get();
  // One output passed in, the others made by the backend.
  npu_error error{};
  npu_buffer* own = nullptr;
  const Shape shape{12};
  REQUIRE(Backend::api().buffer_allocate(device.get(), NPU_FLOAT32, 1, shape.data(), &own,
                                         &error) == NPU_OK);
  npu_buffer* outputs[4] = {nullptr, nullptr, nullptr, own};
  REQUIRE(Backend::api().run(compiled.program.get(), &input, 1, outputs, 4, &error) == NPU_OK);
  CHECK(outputs[3] == own);
  std::set<const void*> addresses;
  npu_tensor description{};
  REQUIRE(Backend::api().buffer_describe(input, &description, &error) == NPU_OK);
  addresses.insert(description.data);
  for (npu_buffer* output : outputs) {
    REQUIRE(Backend::api().buffer_describe(output, &description, &error) == NPU_OK);
    CHECK(reinterpret_cast<std::uintptr_t>(description.data) % 64 == 0);
    addresses.insert(description.data);
  }
  CHECK(addresses.size() == 5);
  check_close(decode(read_buffer(outputs[3])), model.expected("b"), NPU_FLOAT32);
  for (npu_buffer* output : outputs) Backend::api().buffer_free(output);
}

// ---- Refusals ----

TEST_CASE("onednn refuses what it does not run, with node, op, argument and reason", "[onednn]") {
  const auto one_node = [](const std::string& op, const Shape& shape, const std::string& attrs,
                           npu_dtype dtype = NPU_FLOAT32) {
    Model model(dtype);
    model.input("x", Array(shape));
    model.node("bad", op, {"x"}, attrs, Array(shape));
    model.output("bad");
    return refusal(model, NPU_ERROR_UNSUPPORTED);
  };
  CHECK(
      one_node("aten.cumsum.default", {2}, R"("dim":0)").find("node 'bad' (aten.cumsum.default)") ==
      0);
  CHECK(one_node("aten.dropout.default", {2}, R"("p":0.5,"train":true)").find("argument 'train'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", {2}, "", NPU_INT64).find("dtype int64") != std::string::npos);
  CHECK(one_node("aten.elu.default", {2}, R"("scale":2)").find("argument 'scale'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", {2, 0}, "").find("no elements") != std::string::npos);
  CHECK(one_node("aten.to.dtype", {2}, R"("dtype":"torch.float16")").find("'dtype'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", Shape(9, 1), "").find("rank 9") != std::string::npos);
}

TEST_CASE("onednn refuses a sub-IR that contradicts itself", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({2, 6}, 1));
  const std::string variant =
      GENERATE(as<std::string>(), "shape", "elements", "dimension", "broadcast");
  if (variant == "shape") model.node("bad", "aten.relu.default", {"x"}, "", Array({2, 5}));
  if (variant == "elements")
    model.node("bad", "aten.view.default", {"x"}, R"("size":[5,-1])", Array({5, 2}));
  if (variant == "dimension")
    model.node("bad", "aten.softmax.int", {"x"}, R"("dim":2)", Array({2, 6}));
  if (variant == "broadcast") {
    model.input("y", random_array({4}, 2));
    model.node("bad", "aten.add.Tensor", {"x", "y"}, "", Array({2, 6}));
  }
  model.output("bad");
  CHECK(refusal(model, NPU_ERROR_INVALID).find("node 'bad'") != std::string::npos);
}

TEST_CASE("onednn refuses weights, blobs and buffers that do not fit", "[onednn]") {
  const npu_backend_api& api = Backend::api();
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({2, 6}, 1));
  const Array w = model.weight("w", random_array({6}, 2));
  model.node("y", "aten.add.Tensor", {"x", "w"}, "", zip_values(x, w, std::plus<>()));
  model.output("y");
  const Device device = open_device();
  npu_error error{};
  const std::string text = model.text();
  npu_blob blob{};
  CHECK(api.compile(device.get(), text.data(), text.size(), nullptr, 0, nullptr, &blob, &error) ==
        NPU_ERROR_INVALID);
  CHECK(std::string(error.text).find("'w'") != std::string::npos);
  CHECK(blob.data == nullptr);
  CHECK(api.compile(device.get(), text.data(), text.size() - 1, nullptr, 0, nullptr, &blob,
                    &error) == NPU_ERROR_INVALID);

  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  npu_program* program = nullptr;
  auto weights = model.weight_views();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{16}, compiled.blob.size() - 1}) {
    CHECK(api.load(device.get(), compiled.blob.data(), size, weights.data(), 1, &program, &error) ==
          NPU_ERROR_INVALID);
  }
  const Shape wrong{3};
  weights[0].shape = wrong.data();
  CHECK(api.compile(device.get(), text.data(), text.size(), weights.data(), 1, nullptr, &blob,
                    &error) == NPU_ERROR_INVALID);
  CHECK(api.compile(device.get(), text.data(), text.size(), model.weight_views().data(), 1,
                    R"({"precision":"f16"})", &blob, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text).find("'precision'") != std::string::npos);
  CHECK(blob.data == nullptr);
  CHECK(program == nullptr);

  npu_buffer* buffer = nullptr;
  const Shape negative{2, -1};
  CHECK(api.buffer_allocate(device.get(), NPU_FLOAT32, 2, negative.data(), &buffer, &error) ==
        NPU_ERROR_INVALID);
  const Shape huge{std::int64_t{1} << 40, std::int64_t{1} << 40};
  CHECK(api.buffer_allocate(device.get(), NPU_FLOAT32, 2, huge.data(), &buffer, &error) ==
        NPU_ERROR_INVALID);
  const Shape transposed{6, 2};
  REQUIRE(api.buffer_allocate(device.get(), NPU_FLOAT32, 2, transposed.data(), &buffer, &error) ==
          NPU_OK);
  npu_buffer* output = nullptr;
  CHECK(api.run(compiled.program.get(), &buffer, 1, &output, 1, &error) == NPU_ERROR_INVALID);
  CHECK(std::string(error.text).find("input 'x'") != std::string::npos);
  CHECK(api.run(compiled.program.get(), &buffer, 0, &output, 1, &error) == NPU_ERROR_INVALID);
  float few[3];
  CHECK(api.buffer_export(buffer, few, sizeof few, &error) == NPU_ERROR_INVALID);
  api.buffer_free(buffer);
}

TEST_CASE("onednn reads weights at any address", "[onednn]") {
  Model model(NPU_FLOAT32);
  const Array x = model.input("x", random_array({3, 4}, 1));
  const Array w = model.weight("w", random_array({4}, 2));
  model.node("y", "aten.add.Tensor", {"x", "w"}, "", zip_values(x, w, std::plus<>()));
  model.output("y");
  const Device device = open_device();
  auto weights = model.weight_views();
  std::vector<char> odd(weights[0].bytes + 1);
  std::memcpy(odd.data() + 1, weights[0].data, weights[0].bytes);
  weights[0].data = odd.data() + 1;
  npu_program* program = nullptr;
  npu_error error{};
  npu_blob blob{};
  const std::string text = model.text();
  REQUIRE(Backend::api().compile(device.get(), text.data(), text.size(), weights.data(), 1, "{}",
                                 &blob, &error) == NPU_OK);
  // The blob, too, may lie anywhere; it alone has what load needs.
  std::vector<char> moved(blob.size + 1);
  std::memcpy(moved.data() + 1, blob.data, blob.size);
  Backend::api().blob_free(&blob);
  REQUIRE(Backend::api().load(device.get(), moved.data() + 1, moved.size() - 1, nullptr, 0,
                              &program, &error) == NPU_OK);
  const Program owner(program);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  npu_buffer* input = inputs[0].get();
  npu_buffer* output = nullptr;
  REQUIRE(Backend::api().run(program, &input, 1, &output, 1, &error) == NPU_OK);
  const Buffer result(output);
  check_close(decode(read_buffer(output)), model.expected("y"), NPU_FLOAT32);
}
