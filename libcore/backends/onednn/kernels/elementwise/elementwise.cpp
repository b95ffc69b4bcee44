// SPDX-License-Identifier: Apache-2.0
// Functions of one operand, each to two units in the last place of float32 (the functions say how);
// bfloat16 is rounded once from that. oneDNN 2.6 does not have them, or is further off: its log by
// 6,144 units near 1, its GELU and ELU by all places where the result is small.
//
// O(count), bound by memory or by some 10 to 60 operations a vector; cut among threads in runs that
// stay in the L1.
#include "kernels/elementwise/elementwise.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"
#include "kernels/elementwise/elementwise_functions.hpp"
#include "kernels/elementwise/logarithms.hpp"
#include "kernels/elementwise/vector_parts.hpp"

namespace npu::onednn {

namespace {

using Function = Elementwise::Function;

template <Function kFunction, typename V>
[[gnu::always_inline]] inline V apply(V x, float alpha) {
  constexpr bool kAvx512 = kIsWide<V>;
  if constexpr (kFunction == Function::kExp) return exp_vector(x);
  if constexpr (kFunction == Function::kLog) return log_vector(x);
  if constexpr (kFunction == Function::kSigmoid) return sigmoid_vector<kAvx512>(x);
  if constexpr (kFunction == Function::kTanh) return tanh_vector<kAvx512>(x);
  if constexpr (kFunction == Function::kSwish) return swish_vector<false>(x, x);
  if constexpr (kFunction == Function::kElu) return elu_vector(x, alpha, 1.0F);
  if constexpr (kFunction == Function::kSelu) return elu_vector(x, 1.75809934F, 1.05070099F);
  if constexpr (kFunction == Function::kCelu) return celu_vector(x, alpha);
  if constexpr (kFunction == Function::kGelu) return gelu_vector(x);
  if constexpr (kFunction == Function::kGeluTanh) return gelu_tanh_vector(x);
  if constexpr (kFunction == Function::kMish) return mish_vector(x);
  if constexpr (kFunction == Function::kSoftplus) {
    return plus_log_of_one_and_exp(x > 0.0F ? x : V{}, x);
  }
  if constexpr (kFunction == Function::kLogSigmoid) {
    return -plus_log_of_one_and_exp(x < 0.0F ? -x : V{}, x);
  }
  if constexpr (kFunction == Function::kErf) return erf_vector(x);
  if constexpr (kFunction == Function::kHardSigmoid) return hard_sigmoid_vector<kAvx512>(x);
  if constexpr (kFunction == Function::kReciprocal) return 1.0F / x;
  if constexpr (kFunction == Function::kReciprocalRoot) return reciprocal_root_vector(x);
  if constexpr (kFunction == Function::kSine) return sine_vector<false>(x);
  if constexpr (kFunction == Function::kCosine) return sine_vector<true>(x);
  if constexpr (kFunction == Function::kFloor) return floor_vector(x);
  if constexpr (kFunction == Function::kCeil) return ceil_vector(x);
  if constexpr (kFunction == Function::kRound) return nearest_integer(x);
  if constexpr (kFunction == Function::kTruncate) return truncate_vector(x);
  if constexpr (kFunction == Function::kSign) {
    return (x > 0.0F ? V{} + 1.0F : V{}) - (x < 0.0F ? V{} + 1.0F : V{});
  }
}

template <Function kFunction, typename V, typename T>
[[gnu::always_inline]] inline void run_function(const T* source, T* target, std::int64_t count,
                                                float alpha) {
  constexpr std::int64_t kLanes = sizeof(V) / sizeof(float);
  const std::int64_t whole = count / kLanes * kLanes;
  for (std::int64_t i = 0; i < whole; i += kLanes) {
    store_floats<V>(target + i, apply<kFunction>(load_as_floats<V>(source + i), alpha));
  }
  if (whole == count) return;
  T rest[kLanes]{};
  std::copy_n(source + whole, count - whole, rest);
  store_floats<V>(rest, apply<kFunction>(load_as_floats<V>(rest), alpha));
  std::copy_n(rest, count - whole, target + whole);
}

template <typename V, typename T, int... kFunctions>
[[gnu::always_inline]] inline void run_typed(const Elementwise& call, const T* source, T* target,
                                             std::int64_t count,
                                             std::integer_sequence<int, kFunctions...> /*all*/) {
  const auto run = [&]<Function kFunction>() __attribute__((always_inline)) {
    if (call.function == kFunction) {
      run_function<kFunction, V>(source, target, count, call.alpha);
    }
  };
  (run.template operator()<static_cast<Function>(kFunctions)>(), ...);
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
  constexpr auto kAll = std::make_integer_sequence<int, Elementwise::kFunctions>{};
  if (part.call->type == DType::kFloat32) {
    run_typed<V>(*part.call, static_cast<const float*>(part.source) + part.begin,
                 static_cast<float*>(part.target) + part.begin, part.count, kAll);
  } else {
    run_typed<V>(*part.call, static_cast<const std::uint16_t*>(part.source) + part.begin,
                 static_cast<std::uint16_t*>(part.target) + part.begin, part.count, kAll);
  }
}

void run_anywhere(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX2 void run_avx2(const Part& part) { run_part<NarrowFloats>(part); }
NPU_TARGET_AVX512 void run_avx512(const Part& part) { run_part<Float16>(part); }

}  // namespace

bool Elementwise::keeps_zero(Function function) noexcept {
  switch (function) {
    case Function::kExp:
    case Function::kLog:
    case Function::kSigmoid:
    case Function::kSoftplus:
    case Function::kLogSigmoid:
    case Function::kHardSigmoid:
    case Function::kReciprocal:
    case Function::kReciprocalRoot:
    case Function::kCosine:
      return false;
    default:
      return true;
  }
}

void Elementwise::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  constexpr std::int64_t kRun = 4096;
  share_range(count, kRun, threads_for(count > 4 * kRun),
              [&](std::int64_t begin, std::int64_t end) {
                body({this, operands.source, operands.target, begin, end - begin});
              });
}

Footprint footprint(const Elementwise& kernel) {
  require(is_float(kernel.type), "'type' is no float type");
  const Count count = at_least_one(kernel.count, "count");
  return FootprintBuilder()
      .read(count, size_of(kernel.type), true)
      .write(count, size_of(kernel.type))
      .done();
}

}  // namespace npu::onednn
