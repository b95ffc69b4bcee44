// SPDX-License-Identifier: Apache-2.0
// Mean, variance and result of a group in three passes over it, of which the last two find it in a
// cache where it is small. Sums are float64, of eight elements at a time, in an order that depends
// on neither the instruction set nor the number of threads. A piece of work is a group, or as many
// as fill a block of channels. O(elements).
#include "kernels/norm/group_norm.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/elements.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/norm/double_sums.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kBlock = GroupNorm::kMaxLanes;

/// The channels of some whole groups of one image.
struct NormTask {
  const GroupNorm* call;
  const std::byte* source;
  const float* weight;
  const float* bias;
  std::byte* target;
  std::int64_t outer;
  std::int64_t first;  ///< channel
  std::int64_t count;  ///< channels
};

/// The same for each of 16 lanes; `values` holds their means and gets their sums.
template <bool kSquares, typename T>
[[gnu::always_inline]] inline void sums_of_lanes(const T* from, std::int64_t spatial,
                                                 double* values) {
  Double8 means[2];
  std::memcpy(means, values, sizeof means);
  Double8 sums[2][2]{};
  std::int64_t i = 0;
  for (; i + 2 <= spatial; i += 2) {
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      const T* row = from + (i + j) * kBlock;
      sums[j][0] += summand<kSquares>(load_doubles(row), means[0]);
      sums[j][1] += summand<kSquares>(load_doubles(row + 8), means[1]);
    }
  }
  if (i < spatial) {
    sums[0][0] += summand<kSquares>(load_doubles(from + i * kBlock), means[0]);
    sums[0][1] += summand<kSquares>(load_doubles(from + i * kBlock + 8), means[1]);
  }
  const Double8 all[2]{sums[0][0] + sums[1][0], sums[0][1] + sums[1][1]};
  std::memcpy(values, all, sizeof all);
}

/// Factor and term of one channel.
struct Affine {
  float factor;
  float term;
};

Affine affine_of(const NormTask& task, std::int64_t channel, double mean, double variance) {
  const GroupNorm& call = *task.call;
  if (channel >= call.vector) return {0.0F, 0.0F};  // it only fills a block
  const double scale = call.has_weight ? static_cast<double>(task.weight[channel]) : 1.0;
  const double shift = call.has_bias ? static_cast<double>(task.bias[channel]) : 0.0;
  const double factor = scale / std::sqrt(variance + static_cast<double>(call.epsilon));
  return {static_cast<float>(factor), static_cast<float>(shift - mean * factor)};
}

/// One group of channels that are consecutive.
template <typename V, typename T>
[[gnu::always_inline]] inline void norm_planes(const NormTask& task, const T* from, T* to) {
  constexpr std::int64_t kVector = sizeof(V) / sizeof(float);
  const std::int64_t spatial = task.call->spatial;
  const std::int64_t count = task.count * spatial;
  const double mean = sum_of_run<false>(from, count, 0.0) / static_cast<double>(count);
  const double variance = sum_of_run<true>(from, count, mean) / static_cast<double>(count);
  for (std::int64_t channel = 0; channel < task.count; ++channel) {
    const Affine affine = affine_of(task, task.first + channel, mean, variance);
    const T* source = from + channel * spatial;
    T* target = to + channel * spatial;
    std::int64_t i = 0;
    for (; i + kVector <= spatial; i += kVector) {
      store_floats(target + i, load_as_floats<V>(source + i) * affine.factor + affine.term);
    }
    for (; i < spatial; ++i) store(target[i], load(source[i]) * affine.factor + affine.term);
  }
}

/// Makes every value the mean of those of its group, of which each is for `spatial` elements.
void average_groups(std::int64_t group, double* values, std::int64_t count, std::int64_t spatial) {
  for (std::int64_t first = 0; first < count; first += group) {
    double sum = 0.0;
    for (std::int64_t i = first; i < first + group; ++i) sum += values[i];
    std::fill_n(values + first, group, sum / static_cast<double>(group * spatial));
  }
}

/// The mean of the sums of blocks that are one group, for all of its channels.
template <bool kSquares, typename T>
[[gnu::always_inline]] inline double mean_of_blocks(const NormTask& task, const T* from,
                                                    double mean) {
  const std::int64_t spatial = task.call->spatial;
  double sum = 0.0;
  for (std::int64_t block = 0; block < task.count / kBlock; ++block) {
    sum += sum_of_run<kSquares>(from + block * spatial * kBlock, spatial * kBlock, mean);
  }
  return sum / static_cast<double>(task.count * spatial);
}

/// Whole blocks of channels, which are one group, or several within one block.
template <typename V, typename T>
[[gnu::always_inline]] inline void norm_blocks(const NormTask& task, const T* from, T* to) {
  constexpr std::int64_t kVector = sizeof(V) / sizeof(float);
  const GroupNorm& call = *task.call;
  double means[kBlock]{};
  double variances[kBlock]{};
  if (call.group_size >= kBlock) {
    std::fill_n(means, kBlock, mean_of_blocks<false>(task, from, 0.0));
    std::fill_n(variances, kBlock, mean_of_blocks<true>(task, from, means[0]));
  } else {
    sums_of_lanes<false>(from, call.spatial, means);
    average_groups(call.group_size, means, kBlock, call.spatial);
    std::copy_n(means, kBlock, variances);
    sums_of_lanes<true>(from, call.spatial, variances);
    average_groups(call.group_size, variances, kBlock, call.spatial);
  }
  for (std::int64_t block = 0; block < task.count / kBlock; ++block) {
    float factors[kBlock];
    float terms[kBlock];
    for (std::int64_t lane = 0; lane < kBlock; ++lane) {
      const Affine affine =
          affine_of(task, task.first + block * kBlock + lane, means[lane], variances[lane]);
      factors[lane] = affine.factor;
      terms[lane] = affine.term;
    }
    const std::int64_t begin = block * call.spatial * kBlock;
    for (std::int64_t i = begin; i < begin + call.spatial * kBlock; i += kBlock) {
#pragma GCC unroll 2
      for (std::int64_t lane = 0; lane < kBlock; lane += kVector) {
        store_floats(to + i + lane,
                     load_as_floats<V>(from + i + lane) * load_vector<V>(factors + lane) +
                         load_vector<V>(terms + lane));
      }
    }
  }
}

template <typename V, typename T>
[[gnu::always_inline]] inline void norm_typed(const NormTask& task) {
  const GroupNorm& call = *task.call;
  const std::int64_t begin = (task.outer * call.channels + task.first) * call.spatial;
  const T* from = elements<T>(task.source) + begin;
  T* to = elements<T>(task.target) + begin;
  call.lanes == 1 ? norm_planes<V>(task, from, to) : norm_blocks<V>(task, from, to);
}

template <typename V>
[[gnu::always_inline]] inline void norm_any(const NormTask& task) {
  task.call->type == DType::kFloat32 ? norm_typed<V, float>(task) : norm_typed<V, BFloat16>(task);
}

void norm_anywhere(const NormTask& task) { norm_any<NarrowFloats>(task); }
NPU_TARGET_AVX2 void norm_avx2(const NormTask& task) { norm_any<NarrowFloats>(task); }
NPU_TARGET_AVX512 void norm_avx512(const NormTask& task) { norm_any<Float16>(task); }

}  // namespace

GroupNorm::Operands GroupNorm::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const std::byte>(), in.next_if<const float>(has_weight),
          in.next_if<const float>(has_bias), in.next<std::byte>()};
}

void GroupNorm::run(const Operands& operands) const {
  const auto body = for_isa(isa, norm_anywhere, norm_avx2, norm_avx512);
  const std::int64_t each = std::max(group_size, lanes);
  const std::int64_t pieces = channels / each;
  const int threads = threads_for(outer * channels * spatial >= kParallelElements);
  share_pieces(outer * pieces, threads, [&](std::int64_t piece, int) {
    body({this, operands.source, operands.weight, operands.bias, operands.target, piece / pieces,
          piece % pieces * each, each});
  });
}

Footprint footprint(const GroupNorm& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count channels = at_least_one(kernel.channels, "channels");
  static_cast<void>(at_least_one(kernel.group_size, "group_size"));
  require(kernel.lanes == 1 || kernel.lanes == GroupNorm::kMaxLanes, "'lanes' is not 1 or 16");
  require(GroupNorm::supports(kernel.lanes, kernel.group_size),
          "'group_size' neither divides 16 nor is a multiple of it");
  require(kernel.channels % std::max(kernel.group_size, kernel.lanes) == 0,
          "'channels' is no multiple of 'group_size' and 'lanes'");
  require(kernel.vector >= 1 && kernel.vector <= kernel.channels,
          "'vector' is not in 1..'channels'");
  const Count elements =
      at_least_one(kernel.outer, "outer") * channels * at_least_one(kernel.spatial, "spatial");
  return FootprintBuilder()
      .read(elements, size_of(kernel.type), true)
      .read_if(kernel.has_weight, kernel.vector)
      .read_if(kernel.has_bias, kernel.vector)
      .write(elements, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn
