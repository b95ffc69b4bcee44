// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "npu/tensor/dtype.hpp"

namespace npu {

/// The largest number with which a mask hides keys of an attention: a score that it replaces, or
/// that it is added to, has the weight 0 beside any score that the mask shows. `scores` is their
/// dtype.
///
/// A weight is exp(score - largest score), which float32 rounds to 0 below -104, since
/// ln 2^-150 = -103.97. So a fill hides if two scores never differ by more than -fill - 104. Scores
/// say less the larger they are: from 2^24 on two floats that follow each other are 2 or more
/// apart, a factor of 7 between weights, so that none beyond is of an attention which works; those
/// of float16 are so from 2^11 on. bfloat16 has the range of float32, and few digits from small
/// scores on, so float32's bound is taken. -1e9 and the lowest number of each dtype hide; -1e4
/// hides scores of float16 alone, for which it is in use.
///
/// Of a row whose keys are all hidden this says nothing: minus infinity gives no numbers, a finite
/// fill the weights of hidden scores. Who leaves out hidden keys shows that each row sees one.
inline double most_hidden_score(DType scores) {
  constexpr double kNoWeight = 104;
  constexpr double kLargest = 1 << 24;
  constexpr double kLargestHalf = 1 << 11;
  const double largest = scores == DType::kFloat16 ? kLargestHalf : kLargest;
  return -(2 * largest + kNoWeight);
}
inline bool hides_score(double fill, DType scores) { return fill <= most_hidden_score(scores); }

}  // namespace npu
