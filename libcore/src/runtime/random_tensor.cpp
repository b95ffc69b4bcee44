// SPDX-License-Identifier: Apache-2.0
// Seeded data. The generator is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) and the normal
// distribution a sum of twelve uniforms: integer arithmetic and exact float sums only, so every
// machine and compiler draws the same bits.
#include "runtime/random_tensor.hpp"

#include <algorithm>
#include <cmath>

namespace npu {
namespace {

class Generator {
 public:
  Generator(std::uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) {  // FNV-1a
      hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    }
    state_ ^= hash_;
  }
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [0, 1), a multiple of 2^-24.
  double uniform() { return static_cast<double>(next() >> 40) * 0x1p-24; }
  /// Mean 0, deviation 1, at most 6 in magnitude. Sums integers, whose additions wait less for each
  /// other.
  double normal() {
    std::uint64_t sum = 0;
    for (int i = 0; i < 12; ++i) sum += next() >> 40;
    return static_cast<double>(sum) * 0x1p-24 - 6;
  }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::uint64_t state_;
};

void store_float(Tensor& tensor, std::int64_t index, double value) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      tensor.as_mutable<float>()[index] = static_cast<float>(value);
      break;
    case DType::kFloat64:
      tensor.as_mutable<double>()[index] = value;
      break;
    case DType::kFloat16:
      tensor.as_mutable<std::uint16_t>()[index] = float_to_float16(static_cast<float>(value));
      break;
    case DType::kBFloat16:
      tensor.as_mutable<std::uint16_t>()[index] = float_to_bfloat16(static_cast<float>(value));
      break;
    case DType::kComplex64:
      tensor.as_mutable<float>()[2 * index] = static_cast<float>(value);
      break;
    case DType::kComplex128:
      tensor.as_mutable<double>()[2 * index] = value;
      break;
    default:
      break;
  }
}

void store_integer(Tensor& tensor, std::int64_t index, std::uint64_t value) {
  switch (dtype_size(tensor.dtype())) {
    case 1:
      tensor.as_mutable<std::uint8_t>()[index] = static_cast<std::uint8_t>(value);
      break;
    case 2:
      tensor.as_mutable<std::uint16_t>()[index] = static_cast<std::uint16_t>(value);
      break;
    case 4:
      tensor.as_mutable<std::uint32_t>()[index] = static_cast<std::uint32_t>(value);
      break;
    default:
      tensor.as_mutable<std::uint64_t>()[index] = value;
  }
}

bool is_real_or_complex(DType dtype) { return !is_integer(dtype) && dtype != DType::kBool; }

/// The smallest row count of the embeddings that read the tensor; 2 if none does.
std::uint64_t index_bound(const Graph& graph, TensorId input) {
  std::int64_t bound = 0;
  for (const NodeId consumer : graph.tensor(input).consumers) {
    const Node& node = graph.node(consumer);
    if (node.op_type != "aten.embedding.default" || node.inputs.size() < 2) continue;
    const Shape& table = graph.tensor(node.inputs[0]).shape;
    if (!table.empty()) bound = bound == 0 ? table[0] : std::min(bound, table[0]);
  }
  return bound > 0 ? static_cast<std::uint64_t>(bound) : 2;
}

}  // namespace

Tensor random_weight(DType dtype, const Shape& shape, std::string_view name, std::uint64_t seed) {
  Tensor tensor(dtype, shape);
  if (!is_real_or_complex(dtype)) return tensor;
  Generator generator(seed, name);
  double fan_in = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) fan_in *= static_cast<double>(shape[d]);
  const double deviation = 1 / std::sqrt(std::max(fan_in, 1.0));
  const bool is_variance = name.ends_with("var");
  const double centre = is_variance || name.ends_with("weight") ? 1 : 0;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (shape.size() > 1) {
      store_float(tensor, i, deviation * generator.normal());
    } else {
      const double width = is_variance ? 1.0 : 0.2;
      store_float(tensor, i, centre + width * (generator.uniform() - 0.5));
    }
  }
  return tensor;
}

Tensor random_input(const Graph& graph, TensorId input, std::uint64_t seed) {
  const TensorInfo& info = graph.tensor(input);
  Tensor tensor(info.dtype, info.shape);
  Generator generator(seed, info.name);
  const std::uint64_t bound = info.dtype == DType::kBool ? 2 : index_bound(graph, input);
  // A narrow integer type cannot hold every row number of a large table.
  const std::uint64_t limit =
      dtype_size(info.dtype) == 1 ? std::min<std::uint64_t>(bound, 128) : bound;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    if (is_real_or_complex(info.dtype)) {
      store_float(tensor, i, generator.normal());
    } else {
      store_integer(tensor, i, generator.next() % limit);
    }
  }
  return tensor;
}

}  // namespace npu
