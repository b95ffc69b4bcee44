// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "conformance/harness/graph_spec.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// One way to use an op.
struct OpSample {
  std::vector<Shape> operands;
  Shape result;
  Json attrs = Json::object();
  std::size_t first_weight = SIZE_MAX;  ///< operands from this one on are weights
};

/// What a backend is asked about an op: samples that it may take or refuse one by one.
struct OpQuestion {
  std::string op;
  bool gives_bool = false;  ///< its result is true or false, whatever its operands are
  std::vector<OpSample> samples;
};

/// The ops that models mostly consist of, first those that cost most: products, convolutions,
/// pooling, norms and copies by hand, then all ops of the catalogue that compute each element by
/// itself. Each with sizes 0 and 1, several ranks, broadcasts, strides and groups.
std::vector<OpQuestion> backend_questions();

/// Samples of an op side by side, in one dtype, named n0, n1, ...; weights are zeros.
conformance::GraphSpec question_graph(const std::string& op, bool gives_bool, DType dtype,
                                      std::span<const OpSample* const> samples);

}  // namespace npu
