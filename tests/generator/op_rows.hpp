// SPDX-License-Identifier: Apache-2.0
// The ops of the catalogue that the generator draws: those of conformance/oracle/op_oracle.hpp, and
// the rows here.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "conformance/oracle/op_oracle.hpp"
#include "conformance/oracle/reduce.hpp"

namespace npu::test {

using namespace conformance;  // NOLINT: rows are the oracle's
using Results = std::vector<Values>;
using Ints = std::vector<std::int64_t>;

std::span<const OpRow> elementwise_rows();
std::span<const OpRow> movement_rows();
std::span<const OpRow> index_rows();
std::span<const OpRow> layer_rows();
std::span<const OpRow> reduction_rows();
std::span<const OpRow> sampling_rows();

/// The row of an op, whichever list has it; null if none has.
const OpRow* row_of(std::string_view op_type);
/// What a node gives. Throws Error kInvalidGraph if no row has the op.
Results results_of(const Call& call);

/// Mostly the dtype of the draw, else one of the others.
DType draw_dtype(NodeDraw& draw, std::initializer_list<DType> others);
/// `dim` from the front or from the back.
inline std::int64_t draw_dim(NodeDraw& d, std::int64_t rank, std::int64_t dim) {
  return d.chance(60) ? dim : dim - rank;
}
inline bool is_filled(const Shape& shape) { return count_of(shape) > 0; }
inline Bounded number(double value) { return {value, 0}; }
inline Bounded square_root(Bounded x) {
  return apply([](double v) { return std::sqrt(std::max(v, 0.0)); }, x);
}
inline Bounded sum_of(std::span<const Bounded> elements) {
  Sum sum;
  for (const Bounded one : elements) sum.add(one);
  return sum.result();
}
inline Bounded mean_of(std::span<const Bounded> elements) {
  return sum_of(elements) / number(static_cast<double>(elements.size()));
}
constexpr auto kNothing = OpRow::Rounds::kNothing;

}  // namespace npu::test
