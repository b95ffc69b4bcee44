// SPDX-License-Identifier: Apache-2.0
// Functions of one operand that oneDNN 2.6 does not have, or for which it gives wrong results at
// the ends of their range: exp(NaN) is infinite there, hardsigmoid(NaN) 0, softplus below 0 and
// log_sigmoid above it.
//
// O(count), bound by memory; cut among threads in runs that stay in the L1. log(1 + t) for t in
// (0, 1] is 2 artanh(t / (2 + t)), a series in at most a third: its error is a few units in the
// last place relative to t, however small t is.
#include "kernels/elementwise.hpp"

#include <algorithm>

#include "kernels/elementwise_functions.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

namespace {

/// log(1 + exp(-|x|)); NaN for NaN.
template <typename V>
[[gnu::always_inline]] inline V log_of_one_and_exp(V x) {
  const V t = exp_vector_negative(x < 0.0F ? x : -x);
  const V s = t / (t + 2.0F);
  const V square = s * s;
  V p = V{} + 2.0F / 13.0F;
  p = p * square + 2.0F / 11.0F;
  p = p * square + 2.0F / 9.0F;
  p = p * square + 2.0F / 7.0F;
  p = p * square + 2.0F / 5.0F;
  p = p * square + 2.0F / 3.0F;
  p = p * square + 2.0F;
  return p * s;
}

template <Elementwise::Function kFunction, typename V>
[[gnu::always_inline]] inline V apply(V x) {
  using Function = Elementwise::Function;
  if constexpr (kFunction == Function::kExp) return exp_vector(x);
  if constexpr (kFunction == Function::kHardSigmoid) {
    return clamp_vector<sizeof(V) == 64>(x * (1.0F / 6.0F) + 0.5F, 0.0F, 1.0F);
  }
  if constexpr (kFunction == Function::kSoftplus) {
    return (x > 0.0F ? x : V{}) + log_of_one_and_exp(x);
  }
  if constexpr (kFunction == Function::kReciprocal) return 1.0F / x;
  if constexpr (kFunction == Function::kReciprocalRoot) return reciprocal_root_vector(x);
  if constexpr (kFunction == Function::kSine) return sine_vector<false>(x);
  if constexpr (kFunction == Function::kCosine) return sine_vector<true>(x);
  if constexpr (kFunction == Function::kErf) return erf_vector(x);
  if constexpr (kFunction == Function::kFloor) return floor_vector(x);
  if constexpr (kFunction == Function::kCeil) return ceil_vector(x);
  if constexpr (kFunction == Function::kRound) return nearest_integer(x);
  if constexpr (kFunction == Function::kTruncate) return truncate_vector(x);
  if constexpr (kFunction == Function::kSign) {
    return (x > 0.0F ? V{} + 1.0F : V{}) - (x < 0.0F ? V{} + 1.0F : V{});
  }
  return (x < 0.0F ? x : V{}) - log_of_one_and_exp(x);
}

template <Elementwise::Function kFunction, typename V, typename T>
[[gnu::always_inline]] inline void run_function(const T* source, T* target, std::int64_t count) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    store_floats<V>(target + i, apply<kFunction>(load_as_floats<V>(source + i)));
  }
  if (whole == count) return;
  T rest[kLanes]{};
  std::copy_n(source + whole, count - whole, rest);
  store_floats<V>(rest, apply<kFunction>(load_as_floats<V>(rest)));
  std::copy_n(rest, count - whole, target + whole);
}

template <typename V, typename T>
[[gnu::always_inline]] inline void run_typed(const Elementwise& call, const T* source, T* target,
                                             std::int64_t count) {
  using Function = Elementwise::Function;
  switch (call.function) {
    case Function::kExp:
      return run_function<Function::kExp, V>(source, target, count);
    case Function::kHardSigmoid:
      return run_function<Function::kHardSigmoid, V>(source, target, count);
    case Function::kSoftplus:
      return run_function<Function::kSoftplus, V>(source, target, count);
    case Function::kLogSigmoid:
      return run_function<Function::kLogSigmoid, V>(source, target, count);
    case Function::kReciprocal:
      return run_function<Function::kReciprocal, V>(source, target, count);
    case Function::kReciprocalRoot:
      return run_function<Function::kReciprocalRoot, V>(source, target, count);
    case Function::kSine:
      return run_function<Function::kSine, V>(source, target, count);
    case Function::kCosine:
      return run_function<Function::kCosine, V>(source, target, count);
    case Function::kErf:
      return run_function<Function::kErf, V>(source, target, count);
    case Function::kFloor:
      return run_function<Function::kFloor, V>(source, target, count);
    case Function::kCeil:
      return run_function<Function::kCeil, V>(source, target, count);
    case Function::kRound:
      return run_function<Function::kRound, V>(source, target, count);
    case Function::kTruncate:
      return run_function<Function::kTruncate, V>(source, target, count);
    case Function::kSign:
      return run_function<Function::kSign, V>(source, target, count);
  }
}

/// Elements [begin, begin + count).
struct Part {
  const Elementwise* call;
  const void* source;
  void* target;
  std::int64_t begin;
  std::int64_t count;
};

template <typename V>
[[gnu::always_inline]] inline void run_part(const Part& part) {
  if (part.call->type == DType::kFloat32) {
    run_typed<V>(*part.call, static_cast<const float*>(part.source) + part.begin,
                 static_cast<float*>(part.target) + part.begin, part.count);
  } else {
    run_typed<V>(*part.call, static_cast<const std::uint16_t*>(part.source) + part.begin,
                 static_cast<std::uint16_t*>(part.target) + part.begin, part.count);
  }
}

void run_anywhere(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX2 void run_avx2(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX512 void run_avx512(const Part& part) { run_part<Float16>(part); }

}  // namespace

void Elementwise::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  constexpr std::int64_t kRun = 4096;
  share_range(count, kRun, threads_for(count > 4 * kRun),
              [&](std::int64_t begin, std::int64_t end) {
                body({this, operands.source, operands.target, begin, end - begin});
              });
}

}  // namespace npu::onednn
