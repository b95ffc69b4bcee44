// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "npu/tensor/tensor.hpp"

namespace npu {

struct Tolerance {
  double rtol = 1e-3;
  double atol = 1e-4;
  double steps = 0;  ///< by which integers may differ
};

/// How far `actual` is from `expected`: an element is out of tolerance if |a - e| > atol + rtol *
/// |e|. NaN equals NaN, an infinity only itself. Integers may differ by `steps`, and bools
/// not at all.
struct Comparison {
  bool ok = true;
  std::string mismatch;  ///< set if dtype or shape differ
  std::int64_t elements = 0;
  std::int64_t out_of_tolerance = 0;
  double max_abs = 0;             ///< largest |a - e|
  double max_rel = 0;             ///< largest |a - e| / |e| over elements with e != 0
  std::int64_t worst_index = -1;  ///< the element furthest out of tolerance; -1 if none is
  double worst_actual = 0;
  double worst_expected = 0;
};

Comparison compare_tensors(const Tensor& actual, const Tensor& expected,
                           const Tolerance& tolerance);

/// Whether tensors have the same bytes, one by one: a NaN equals itself, 0 does not equal -0.
bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

/// Largest |a - e| over largest |e|, for floats of one shape: the error of a result as a whole,
/// which single elements near 0 do not inflate. 0 for equal tensors, infinity if only `expected` is
/// all 0 or `actual` has a NaN where `expected` has none.
double relative_error(const Tensor& actual, const Tensor& expected);

/// Of the finite values; 0 if there are none.
double root_mean_square(const Tensor& values);

/// 10 log10 of the energy of `expected` over that of the difference, both of one shape: infinity if
/// they are equal, NaN if the difference is not finite.
double signal_to_noise_db(const Tensor& actual, const Tensor& expected);

}  // namespace npu
