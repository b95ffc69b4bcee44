// SPDX-License-Identifier: Apache-2.0
// How far the functions of one operand are from float64, in units in the last place of float32: on
// floats of every exponent, around the places where the functions change their ways, and on random
// ones. `[.all_floats]`, which scripts/check/function_ulps.sh runs, measures all 2^32.
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <limits>
#include <numbers>
#include <random>
#include <thread>
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"
#include "kernels/elementwise/elementwise.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Function = Elementwise::Function;

struct Definition {
  const char* name;
  Function function;
  double (*exact)(double);
  float alpha = 1.0F;
};

double logistic(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double softplus(double x) { return (x > 0.0 ? x : 0.0) + std::log1p(std::exp(-std::abs(x))); }
double mish(double x) {
  const double e = std::exp(x);
  const double w = e * (e + 2.0);
  return x > 40.0 ? x : x * w / (w + 2.0);
}
double gelu_tanh(double x) {
  const double g = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return x / (1.0 + std::exp(-2.0 * g));
}
constexpr double kSeluScale = 1.0507009873554804934193349852946;
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;

const auto kDefinitions = std::to_array<Definition>({
    {"exp", Function::kExp, [](double x) { return std::exp(x); }},
    {"log", Function::kLog, [](double x) { return std::log(x); }},
    {"sigmoid", Function::kSigmoid, logistic},
    {"tanh", Function::kTanh, [](double x) { return std::tanh(x); }},
    {"silu", Function::kSwish, [](double x) { return x / (1.0 + std::exp(-x)); }},
    {"elu", Function::kElu, [](double x) { return x > 0.0 ? x : std::expm1(x); }},
    {"elu, alpha 0.3", Function::kElu,
     [](double x) { return x > 0.0 ? x : static_cast<double>(0.3F) * std::expm1(x); }, 0.3F},
    {"selu", Function::kSelu,
     [](double x) { return kSeluScale * (x > 0.0 ? x : kSeluAlpha * std::expm1(x)); }},
    {"celu", Function::kCelu, [](double x) { return x > 0.0 ? x : std::expm1(x); }},
    {"celu, alpha 0.7", Function::kCelu,
     [](double x) {
       constexpr double kAlpha = static_cast<double>(0.7F);
       return x > 0.0 ? x : kAlpha * std::expm1(x / kAlpha);
     },
     0.7F},
    {"gelu", Function::kGelu,
     [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }},
    {"gelu, tanh", Function::kGeluTanh, gelu_tanh},
    {"mish", Function::kMish, mish},
    {"softplus", Function::kSoftplus, softplus},
    {"log_sigmoid", Function::kLogSigmoid, [](double x) { return -softplus(-x); }},
    {"erf", Function::kErf, [](double x) { return std::erf(x); }},
    {"hardsigmoid", Function::kHardSigmoid,
     [](double x) { return std::isnan(x) ? x : std::clamp((x + 3.0) / 6.0, 0.0, 1.0); }},
    {"reciprocal", Function::kReciprocal, [](double x) { return 1.0 / x; }},
    {"rsqrt", Function::kReciprocalRoot, [](double x) { return 1.0 / std::sqrt(x); }},
    {"sin", Function::kSine, [](double x) { return std::sin(x); }},
    {"cos", Function::kCosine, [](double x) { return std::cos(x); }},
    {"floor", Function::kFloor, [](double x) { return std::floor(x); }},
    {"ceil", Function::kCeil, [](double x) { return std::ceil(x); }},
    {"round", Function::kRound, [](double x) { return std::nearbyint(x); }},
    {"trunc", Function::kTruncate, [](double x) { return std::trunc(x); }},
    {"sign", Function::kSign, [](double x) { return static_cast<double>((x > 0.0) - (x < 0.0)); }},
});

/// What the page promises.
constexpr double kMostUlps = 2.0;

/// The distance of floats around a number.
double ulp_of(double number) {
  if (std::abs(number) < 0x1p-126) return 0x1p-149;
  int exponent = 0;
  std::frexp(number, &exponent);
  return std::ldexp(1.0, exponent - 24);
}

/// Infinity counts as the number behind the largest one.
double error_of(float found, double exact) {
  constexpr double kBehind = 0x1p128;
  if (std::isnan(exact) || std::isnan(found)) {
    return std::isnan(exact) && std::isnan(found) ? 0.0 : std::numeric_limits<double>::infinity();
  }
  const double wanted = std::clamp(exact, -kBehind, kBehind);
  const double result = std::clamp(static_cast<double>(found), -kBehind, kBehind);
  return std::abs(result - wanted) / ulp_of(std::min(std::abs(wanted), 0x1.fp127));
}

struct Worst {
  double ulps = 0.0;
  float at = 0.0F;

  void take(double error, float x) {
    if (error > ulps) *this = {error, x};
  }
};

/// Of each level of instructions. The exact results, which take most of the time, are those of all
/// levels, and so is what they make of the same bits.
using WorstOfLevels = std::vector<Worst>;

WorstOfLevels worst_of(const Definition& definition, const std::vector<VectorIsa>& levels,
                       const std::vector<float>& source) {
  std::vector<double> exact(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    exact[i] = definition.exact(static_cast<double>(source[i]));
  }
  WorstOfLevels worst;
  std::vector<float> target(source.size());
  std::vector<float> before;
  for (const VectorIsa isa : levels) {
    Elementwise{definition.function, DType::kFloat32, static_cast<std::int64_t>(source.size()), isa,
                definition.alpha}
        .run({bytes(source), bytes(target)});
    if (!before.empty() &&
        std::memcmp(before.data(), target.data(), target.size() * sizeof(float)) == 0) {
      worst.push_back(worst.back());
      continue;
    }
    Worst of_level;
    for (std::size_t i = 0; i < source.size(); ++i) {
      of_level.take(error_of(target[i], exact[i]), source[i]);
    }
    worst.push_back(of_level);
    before = target;
  }
  return worst;
}

void take_all(WorstOfLevels& worst, const WorstOfLevels& others) {
  for (std::size_t level = 0; level < worst.size(); ++level) {
    worst[level].take(others[level].ulps, others[level].at);
  }
}

/// Neighbours of a float on both sides of zero.
void add_around(std::vector<float>& sample, float place) {
  const auto bits = std::bit_cast<std::uint32_t>(place);
  for (std::uint32_t i = 0; i < 64; ++i) {
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      sample.push_back(std::bit_cast<float>((bits - 32 + i) | sign));
    }
  }
}

std::vector<float> sample_of_floats() {
  std::vector<float> sample;
  std::mt19937 random(11);  // NOLINT(cert-msc51-cpp): the same sample in every run
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (int i = 0; i < 64; ++i) {
      auto mantissa = static_cast<std::uint32_t>(random() & 0x7FFFFFU);
      if (i < 4) mantissa = i < 2 ? static_cast<std::uint32_t>(i) : 0x800001U - i;
      for (const std::uint32_t sign : {0U, 0x80000000U}) {
        sample.push_back(std::bit_cast<float>(sign | exponent << 23 | (mantissa & 0x7FFFFFU)));
      }
    }
  }
  // Where polynomials meet, functions leave the range of floats, or their zeros lie.
  for (const float place :
       {0.5F,      0.5495F,   0.70710678F, 0.9F,   0.95F,  1.0F,   2.0F,       3.0F,
        4.0F,      9.01F,     10.9F,       16.0F,  16.63F, 17.33F, 20.0F,      44.3614F,
        87.33654F, 88.72284F, 103.97208F,  104.0F, 110.0F, 112.0F, 8388608.0F, 131072.0F}) {
    add_around(sample, place);
  }
  for (int n = 1; n <= 65536; n = n < 64 ? n + 1 : n + 61) {
    const double multiple = n * std::numbers::pi / 2;
    for (int i = -1; i <= 1; ++i) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(multiple));
      sample.push_back(std::bit_cast<float>(bits + static_cast<std::uint32_t>(i)));
    }
  }
  std::uniform_real_distribution<float> usual(-20.0F, 20.0F);
  for (int i = 0; i < 60000; ++i) sample.push_back(usual(random));
  for (int i = 0; i < 60000; ++i)
    sample.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return sample;
}

/// Of all floats.
WorstOfLevels worst_of_all(const Definition& definition, const std::vector<VectorIsa>& levels) {
  constexpr std::uint64_t kPiece = std::uint64_t{1} << 20;
  std::atomic<std::uint64_t> next = 0;
  std::vector<WorstOfLevels> found(std::max(1U, std::thread::hardware_concurrency()),
                                   WorstOfLevels(levels.size()));
  std::vector<std::thread> threads;
  for (WorstOfLevels& worst : found) {
    threads.emplace_back([&] {
      std::vector<float> piece(kPiece);
      for (std::uint64_t from = next += kPiece; from <= std::uint64_t{1} << 32;
           from = next += kPiece) {
        for (std::uint64_t i = 0; i < kPiece; ++i) {
          piece[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from - kPiece + i));
        }
        take_all(worst, worst_of(definition, levels, piece));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  WorstOfLevels worst(levels.size());
  for (const WorstOfLevels& of_thread : found) take_all(worst, of_thread);
  return worst;
}

void check(const Definition& definition, const std::vector<VectorIsa>& levels,
           const WorstOfLevels& worst) {
  for (std::size_t level = 0; level < levels.size(); ++level) {
    INFO(definition.name << " of " << worst[level].at << ", instruction set "
                         << static_cast<int>(levels[level]));
    CHECK(worst[level].ulps <= kMostUlps);
  }
}

}  // namespace

TEST_CASE("functions of one operand are two units in the last place away at most",
          "[onednn][kernels][ulps]") {
  const std::vector<float> sample = sample_of_floats();
  const std::vector<VectorIsa> levels = instruction_sets(VectorIsa::kAny);
  for (const Definition& definition : kDefinitions) {
    check(definition, levels, worst_of(definition, levels, sample));
  }
}

TEST_CASE("functions of bfloat16 are rounded once", "[onednn][kernels][ulps]") {
  std::vector<std::uint16_t> source(65536);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide;
  for (const std::uint32_t bits : source) wide.push_back(std::bit_cast<float>(bits << 16));
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    for (const Definition& definition : kDefinitions) {
      Elementwise call{definition.function, DType::kFloat32, 65536, isa, definition.alpha};
      std::vector<float> exact(source.size());
      call.run({bytes(wide), bytes(exact)});
      std::vector<std::uint16_t> rounded(source.size());
      call.type = DType::kBFloat16;
      call.run({bytes(source), bytes(rounded)});
      int wrong = 0;
      for (std::size_t i = 0; i < source.size(); ++i) {
        if (std::isnan(exact[i])) continue;
        const auto bits = std::bit_cast<std::uint32_t>(exact[i]);
        wrong += (bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16 == rounded[i] ? 0 : 1;
      }
      INFO(definition.name << ", instruction set " << static_cast<int>(isa));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("functions of one operand, over all floats", "[.all_floats]") {
  const std::vector<VectorIsa> levels = instruction_sets(VectorIsa::kAny);
  for (const Definition& definition : kDefinitions) {
    const WorstOfLevels worst = worst_of_all(definition, levels);
    for (std::size_t level = 0; level < levels.size(); ++level) {
      std::cout << definition.name << "\tinstruction set " << static_cast<int>(levels[level])
                << "\t" << worst[level].ulps << " ulp\tat " << worst[level].at << std::endl;
    }
    check(definition, levels, worst);
  }
}

}  // namespace npu::onednn
