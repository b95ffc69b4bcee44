// SPDX-License-Identifier: Apache-2.0
// The rate of multiply-adds that this CPU reaches when nothing but them is done: a loop of
// independent ones in registers, for each level of instructions and dtype that it has, on all
// threads at once, since they share a budget of power and AVX-512 lowers the clock of some CPUs.
//
//   peak_rates [THREADS [SECONDS]]
//
// Prints one JSON object: FLOP/s (two for a multiply-add) by "LEVEL DTYPE", the best of five rounds
// of SECONDS (0.2) each. NPU_MAX_ISA leaves out the levels above it.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "device/isa_level.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace {

using npu::CpuFeature;

constexpr int kChains = 12;
constexpr int kSteps = 1000;

/// Does kSteps multiply-adds in each of kChains chains, as many as hide the latency of all units:
/// at most 6 cycles, two a cycle. The result depends on all of them.
using Loop = float (*)();

/// One step of a chain, which is a variable of its own: an array would lie in memory.
#define NPU_STEP(number, vector, step) \
  {                                    \
    vector& chain = c##number;         \
    step                               \
  }

// Loops of 16 bits and less start from registers of zeros: the rate does not depend on numbers.
#define NPU_LOOP(name, isa, vector, zero, step)                                                \
  __attribute__((target(isa))) float name() {                                                  \
    vector c0 = zero, c1 = zero, c2 = zero, c3 = zero, c4 = zero, c5 = zero;                   \
    vector c6 = zero, c7 = zero, c8 = zero, c9 = zero, c10 = zero, c11 = zero;                 \
    for (int i = 0; i < kSteps; ++i) {                                                         \
      NPU_STEP(0, vector, step)                                                                \
      NPU_STEP(1, vector, step)                                                                \
      NPU_STEP(2, vector, step)                                                                \
      NPU_STEP(3, vector, step)                                                                \
      NPU_STEP(4, vector, step)                                                                \
      NPU_STEP(5, vector, step)                                                                \
      NPU_STEP(6, vector, step)                                                                \
      NPU_STEP(7, vector, step)                                                                \
      NPU_STEP(8, vector, step)                                                                \
      NPU_STEP(9, vector, step)                                                                \
      NPU_STEP(10, vector, step)                                                               \
      NPU_STEP(11, vector, step)                                                               \
    }                                                                                          \
    const auto total = c0[0] + c1[0] + c2[0] + c3[0] + c4[0] + c5[0] + c6[0] + c7[0] + c8[0] + \
                       c9[0] + c10[0] + c11[0];                                                \
    return static_cast<float>(total);                                                          \
  }

#if defined(__x86_64__)
// An empty statement that might change a register keeps the compiler from joining equal chains.
#define NPU_HIDE(chain) asm volatile("" : "+x"(chain));
NPU_LOOP(avx2_float, "avx2,fma", __m256, _mm256_set1_ps(0.5F),
         chain = _mm256_fmadd_ps(chain, _mm256_set1_ps(0.5F), _mm256_set1_ps(0.25F));
         NPU_HIDE(chain))
NPU_LOOP(avx2_int8, "avx2,avxvnni", __m256i, _mm256_setzero_si256(),
         chain = _mm256_dpbusd_avx_epi32(chain, _mm256_set1_epi8(1), _mm256_set1_epi8(2));
         NPU_HIDE(chain))
#undef NPU_HIDE
#define NPU_HIDE(chain) asm volatile("" : "+v"(chain));
NPU_LOOP(avx512_float, "avx512f", __m512, _mm512_set1_ps(0.5F),
         chain = _mm512_fmadd_ps(chain, _mm512_set1_ps(0.5F), _mm512_set1_ps(0.25F));
         NPU_HIDE(chain))
NPU_LOOP(avx512_int8, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(),
         chain = _mm512_dpbusd_epi32(chain, _mm512_set1_epi32(0x01010101),
                                     _mm512_set1_epi32(0x02020202));
         NPU_HIDE(chain))
NPU_LOOP(avx512_bfloat16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
         chain = _mm512_dpbf16_ps(chain, reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3f00)),
                                  reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3e80)));
         NPU_HIDE(chain))
#undef NPU_HIDE
#elif defined(__aarch64__)
#define NPU_HIDE(chain) asm volatile("" : "+w"(chain));
NPU_LOOP(neon_float, "+simd", float32x4_t, vdupq_n_f32(0.5F),
         chain = vfmaq_f32(chain, vdupq_n_f32(0.5F), vdupq_n_f32(0.25F));
         NPU_HIDE(chain))
#undef NPU_HIDE
#endif

struct Kind {
  const char* name;
  CpuFeature feature;
  double flops;  ///< of one instruction
  Loop loop;
};

const Kind kKinds[] = {
#if defined(__x86_64__)
    {"avx2 float32", CpuFeature::kAvx2, 16, avx2_float},
    {"avx2_vnni int8", CpuFeature::kAvxVnni, 64, avx2_int8},
    {"avx512 float32", CpuFeature::kAvx512, 32, avx512_float},
    {"avx512_vnni int8", CpuFeature::kAvx512Vnni, 128, avx512_int8},
    {"avx512_bf16 bfloat16", CpuFeature::kAvx512BFloat16, 64, avx512_bfloat16},
#elif defined(__aarch64__)
    {"neon float32", CpuFeature::kNeon, 8, neon_float},
#endif
};

/// FLOP/s of all threads in one round.
double rate_of(const Kind& kind, unsigned threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  std::atomic<bool> stop = false;
  std::atomic<long> loops = 0;
  std::atomic<float> sink = 0;
  std::barrier start(static_cast<std::ptrdiff_t>(threads) + 1);
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      start.arrive_and_wait();
      long done = 0;
      float total = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        total += kind.loop();
        ++done;
      }
      loops += done;
      sink = total;
    });
  }
  start.arrive_and_wait();
  const auto begin = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
  for (std::thread& worker : workers) worker.join();
  return static_cast<double>(loops) * kSteps * kChains * kind.flops / passed;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.2;
  if (argc > 3 || threads < 1 || threads > 1024 || !(seconds > 0)) {
    std::fprintf(stderr, "usage: peak_rates [THREADS [SECONDS]]\n");
    return 2;
  }
  std::string text = "{";
  for (const Kind& kind : kKinds) {
    if (!npu::cpu_has(kind.feature)) continue;
    double best = 0;
    for (int round = 0; round < 5; ++round) {
      best = std::max(best, rate_of(kind, static_cast<unsigned>(threads), seconds));
    }
    char row[80];
    std::snprintf(row, sizeof row, "%s\"%s\": %.4g", text.size() == 1 ? "" : ", ", kind.name, best);
    text += row;
  }
  std::printf("%s}\n", text.c_str());
  return 0;
}
