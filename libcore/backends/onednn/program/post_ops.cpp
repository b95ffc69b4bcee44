// SPDX-License-Identifier: Apache-2.0
// Lists of post-ops: every one that a primitive gets is made here, from lowering or from a blob.
//
// oneDNN 2.6 generates the code of an element-wise function once for each algorithm, whatever the
// numbers: a second one of that algorithm is computed with the first one's numbers, wherever it
// stands in the list. So a function becomes one with that in front of it where both are linear,
// both bounds, or both ReLUs; and a list with two of one algorithm and different numbers is none.
//
// Two become one only where every result is what both give, but for the rounding of one: numbers
// that overflow or lose digits keep them apart, and so does a term that the second takes away
// again, since it may be there for its rounding. O(post-ops).
#include "program/post_ops.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>

#include "kernels/base/refuse.hpp"

namespace npu::onednn {

namespace {

using PostOpKind = PostOpRecord::Kind;
using Algorithm = dnnl::algorithm;

bool is(const PostOpRecord& each, Algorithm algorithm) {
  return each.kind == PostOpKind::kEltwise &&
         each.algorithm == static_cast<std::int64_t>(algorithm);
}

bool has_same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// True if oneDNN computes the later one with the numbers of the earlier one.
bool clashes(const PostOpRecord& earlier, const PostOpRecord& later) {
  return earlier.kind == PostOpKind::kEltwise && later.kind == PostOpKind::kEltwise &&
         earlier.algorithm == later.algorithm &&
         !(has_same_bits(earlier.alpha, later.alpha) && has_same_bits(earlier.beta, later.beta));
}

bool has_clash(std::span<const PostOpRecord> list) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (clashes(list[j], list[i])) return true;
    }
  }
  return false;
}

/// The product of two factors as a float with all its digits; nothing if that is none.
std::optional<float> factor_of(float first, float second) {
  const auto product = static_cast<float>(static_cast<double>(first) * static_cast<double>(second));
  const bool is_zero = first == 0.0F || second == 0.0F;
  if (!std::isfinite(first) || !std::isfinite(second)) return std::nullopt;
  if (!std::isnormal(product) && !is_zero) return std::nullopt;
  return product;
}

/// (x * a + b) * c + d.
std::optional<PostOpRecord> one_linear(const PostOpRecord& first, const PostOpRecord& second) {
  constexpr double kLeastRest = 1.0 / 256.0;  // of what is added first
  const auto factor = factor_of(first.alpha, second.alpha);
  const double carried = static_cast<double>(first.beta) * static_cast<double>(second.alpha);
  const double term = carried + static_cast<double>(second.beta);
  const bool is_exact = term == 0.0 ? carried == 0.0 : std::isnormal(static_cast<float>(term));
  if (!factor || !is_exact || std::abs(term) < kLeastRest * std::abs(carried)) return std::nullopt;
  PostOpRecord both = first;
  both.alpha = *factor;
  both.beta = static_cast<float>(term);
  return both;
}

std::optional<PostOpRecord> one_clip(const PostOpRecord& first, const PostOpRecord& second) {
  if (!(first.alpha <= first.beta) || !(second.alpha <= second.beta)) return std::nullopt;
  PostOpRecord both = first;
  both.alpha = std::clamp(first.alpha, second.alpha, second.beta);
  both.beta = std::clamp(first.beta, second.alpha, second.beta);
  return both;
}

/// A negative slope makes what was negative positive, which the second one leaves as it is.
std::optional<PostOpRecord> one_relu(const PostOpRecord& first, const PostOpRecord& second) {
  if (first.alpha < 0.0F) return first;
  const auto slope = factor_of(first.alpha, second.alpha);
  if (!slope) return std::nullopt;
  PostOpRecord both = first;
  both.alpha = *slope;
  return both;
}

std::optional<PostOpRecord> as_one(const PostOpRecord& first, const PostOpRecord& second) {
  if (first.kind != PostOpKind::kEltwise || second.kind != PostOpKind::kEltwise)
    return std::nullopt;
  if (first.algorithm != second.algorithm) return std::nullopt;
  if (is(first, Algorithm::eltwise_linear)) return one_linear(first, second);
  if (is(first, Algorithm::eltwise_clip)) return one_clip(first, second);
  if (is(first, Algorithm::eltwise_relu)) return one_relu(first, second);
  return std::nullopt;
}

/// Of what stands in a list.
Algorithm algorithm_of(const PostOpRecord& each) {
  require(each.algorithm >= 0 && each.algorithm <= 0xFFFFFF,
          "there is no algorithm of this number");
  return static_cast<Algorithm>(each.algorithm);
}

void append_sum(dnnl::post_ops& operations, const PostOpRecord& sum) {
  if (sum.type == DType::kFloat32) {
    require(sum.zero_point == 0, "a sum of floats has a zero point");
    return operations.append_sum(sum.alpha);
  }
  require(sum.type == DType::kInt8 || sum.type == DType::kUInt8, "a sum is of another type");
  require(sum.zero_point >= INT32_MIN && sum.zero_point <= INT32_MAX, "a zero point is too large");
  operations.append_sum(sum.alpha, static_cast<std::int32_t>(sum.zero_point),
                        primitive_type(sum.type));
}

}  // namespace

bool append_post_op(std::vector<PostOpRecord>& list, const PostOpRecord& next) {
  std::vector<PostOpRecord> longer = list;
  const auto both = list.empty() ? std::nullopt : as_one(list.back(), next);
  if (both) {
    longer.back() = *both;
  } else {
    longer.push_back(next);
  }
  if (has_clash(longer)) return false;
  list = std::move(longer);
  return true;
}

dnnl::post_ops make_post_ops(std::span<const PostOpRecord> list, std::span<const Layout> operands) {
  constexpr std::size_t kMaxPostOps = 32;
  require(list.size() <= kMaxPostOps, "it has too many post-ops");
  require(!has_clash(list), "two of its post-ops are of one algorithm with different numbers");
  dnnl::post_ops operations;
  std::size_t operand = 0;
  for (const PostOpRecord& each : list) {
    switch (each.kind) {
      case PostOpKind::kEltwise:
        operations.append_eltwise(1.0F, algorithm_of(each), each.alpha, each.beta);
        break;
      case PostOpKind::kSum:
        append_sum(operations, each);
        break;
      case PostOpKind::kBinary:
        require(operand < operands.size(), "a post-op has no operand");
        operations.append_binary(algorithm_of(each), operands[operand++]);
        break;
    }
  }
  return operations;
}

}  // namespace npu::onednn
