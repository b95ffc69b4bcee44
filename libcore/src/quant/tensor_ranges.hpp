// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/json.hpp"
#include "quant/histogram.hpp"

namespace npu {

/// The least and the greatest number among 0 and each slice along an axis.
struct ChannelExtremes {
  std::int32_t axis = -1;  ///< -1: not recorded
  std::vector<float> low;
  std::vector<float> high;
};

/// What a tensor held in all samples.
struct TensorRange {
  static constexpr double kMostGain = 1e300;

  std::string name;
  Shape shape;
  Histogram histogram;
  double average_low = 0;  ///< moving average of the samples' extremes, 0.01 of each new one
  double average_high = 0;
  ChannelExtremes channels;
  /// Powers of two by which the channels may be divided, and the weights that read them multiplied,
  /// for products in int8 with less error; empty: nothing is gained.
  std::vector<float> factors = {};
  double gain = 1;  ///< with factors: the predicted ratio of the powers of errors
};

/// A weight that an op multiplies with; along the axis of that op's results.
struct WeightRange {
  std::string name;
  ChannelExtremes channels;
};

/// A convolution or matrix product with a weight in int8.
struct ProductRange {
  std::string node;
  /// What to add to each channel of the result to make up for weights rounded to integers from -127
  /// to 127; empty: not known.
  std::vector<float> correction = {};
  // If its operand has factors, the same with the weight multiplied by them, and the extremes of
  // that weight by channel of the result.
  std::vector<float> factored_correction = {};
  std::vector<float> factored_low = {};
  std::vector<float> factored_high = {};
};

/// The error at the model's outputs if one op alone is int8.
struct OpError {
  static constexpr double kMostPower = 1e300;  ///< also that of an error which is not finite

  std::string node;
  double power = 0;  ///< mean over the outputs of the error's power, relative to the output's
};

/// What npu-profile --calibrate writes: a document of kind "ranges" (npu-ranges(5)).
struct TensorRanges {
  /// Throws Error kParse with the place of the first fault.
  static TensorRanges parse(const Json& json, const std::string& file);
  Json to_json() const;
  /// Null if there is no such tensor.
  const TensorRange* find(std::string_view name) const noexcept;
  const WeightRange* find_weight(std::string_view name, std::int32_t axis) const;
  const ProductRange* find_product(std::string_view node) const noexcept;
  /// Fills the index of find(); parse() has done so.
  void index();

  std::string file;  ///< where it was read from, for messages
  std::string model;
  std::string model_digest;  ///< see model_digest() in cost/node_table.hpp
  std::int64_t samples = 0;
  std::vector<TensorRange> tensors;  ///< as recorded: inputs, outputs, other results
  std::vector<WeightRange> weights;
  std::vector<ProductRange> products;
  std::vector<OpError> errors;  ///< of those that can be int8; empty if not measured

 private:
  NameIndex<std::size_t> places_;
  NameIndex<std::size_t> product_places_;
  std::map<std::pair<std::string, std::int32_t>, std::size_t, std::less<>> weight_places_;
};

TensorRanges read_tensor_ranges(const std::string& path);

}  // namespace npu
