// SPDX-License-Identifier: Apache-2.0
// The same as in special_values_test.cpp for what normalizes, samples, walks along a sequence,
// compares, selects and copies: elements that a result does not read leave no trace in it, and the
// others count as they do in the definition.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "backends/onednn/kernels/special_values.hpp"
#include "catch.hpp"
#include "kernels/kernel.hpp"

namespace npu::onednn {
namespace {

using namespace test;

/// What float32 holds of a number.
double in_float(double value) {
  return std::abs(value) > kMost ? std::copysign(HUGE_VAL, value) : value;
}

/// Runs a kernel as a step does, with `count` elements in the target.
template <typename To, typename... From>
std::vector<To> run(Kernel kernel, VectorIsa isa, std::size_t count, std::vector<From>... reads) {
  set_isa(kernel, isa);
  std::vector<To> target(count);
  std::vector<std::byte*> addresses{bytes(reads)...};
  addresses.push_back(bytes(target));
  run_kernel(kernel, addresses);
  return target;
}

bool same_number(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

}  // namespace

TEST_CASE("GroupNorm keeps groups apart", "[onednn][kernels][special]") {
  constexpr std::int64_t kOuter = 2;
  constexpr std::int64_t kChannels = 32;
  constexpr std::int64_t kSpatial = 7;
  const std::int64_t group = GENERATE(1, 4, 16);
  const std::int64_t lanes = GENERATE(1, 16);
  GroupNorm call;
  call.outer = kOuter;
  call.channels = call.vector = kChannels;
  call.spatial = kSpatial;
  call.lanes = lanes;
  call.group_size = group;
  call.epsilon = 1e-5F;
  const std::int64_t count = group * kSpatial;
  for (const Data& data : special_data(kOuter * kChannels * kSpatial, 37 * kSpatial + 3)) {
    std::vector<double> expected;
    std::vector<double> terms;
    for (std::int64_t first = 0; first < kOuter * kChannels * kSpatial; first += count) {
      double mean = 0.0;
      double variance = 0.0;
      for (std::int64_t i = 0; i < count; ++i) mean += at(data.values, first + i);
      mean /= static_cast<double>(count);
      for (std::int64_t i = 0; i < count; ++i) {
        variance += std::pow(at(data.values, first + i) - mean, 2.0) / static_cast<double>(count);
      }
      const double root = std::sqrt(variance + static_cast<double>(call.epsilon));
      for (std::int64_t i = 0; i < count; ++i) {
        const double x = at(data.values, first + i);
        expected.push_back((x - mean) / root);
        terms.push_back((std::abs(x) + std::abs(mean)) / root);
      }
    }
    const auto source =
        lanes == 1 ? data.values : in_blocks(data.values, kOuter, kChannels, kSpatial, lanes);
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      call.isa = isa;
      std::vector<float> target(source.size());
      call.run({bytes(source), nullptr, nullptr, bytes(target)});
      INFO(data.name << ", groups of " << group << ", lanes " << lanes);
      CHECK(
          first_fault(lanes == 1 ? target : from_blocks(target, kOuter, kChannels, kSpatial, lanes),
                      expected, terms) == "");
    }
  }
}

TEST_CASE("Resample reads the elements of its taps and no others", "[onednn][kernels][special]") {
  const std::int64_t lanes = GENERATE(1, 16);
  const std::int64_t width = GENERATE(1, 2, 4);
  constexpr std::int64_t kExtent = 9;
  constexpr std::int64_t kTarget = 13;
  Resample call;
  call.lanes = lanes;
  call.extents[1] = call.extents[2] = kExtent;
  for (const int d : {1, 2}) {
    call.width[d] = width;
    call.taps[d].clear();
    for (std::int64_t i = 0; i < kTarget; ++i) {
      for (std::int64_t k = 0; k < width; ++k) {  // weights of both signs, none of them 0
        call.taps[d].push_back({std::min(i * kExtent / kTarget + k, kExtent - 1),
                                (k % 2 == 0 ? 0.75F : -0.25F) + 0.01F * static_cast<float>(i)});
      }
    }
  }
  for (const Data& data : special_data(kExtent * kExtent * lanes, (4 * kExtent + 5) * lanes)) {
    std::vector<double> expected;
    std::vector<double> terms;
    for (std::int64_t i = 0; i < kTarget * kTarget * lanes; ++i) {
      const std::int64_t y = i / lanes / kTarget;
      const std::int64_t x = i / lanes % kTarget;
      double sum = 0.0;
      double magnitude = 0.0;
      for (std::int64_t k = 0; k < width * width; ++k) {
        const Tap& row = call.taps[1][static_cast<std::size_t>(y * width + k / width)];
        const Tap& column = call.taps[2][static_cast<std::size_t>(x * width + k % width)];
        const double product =
            static_cast<double>(row.weight) * static_cast<double>(column.weight) *
            at(data.values, (row.index * kExtent + column.index) * lanes + i % lanes);
        sum += product;
        magnitude += std::abs(product);
      }
      expected.push_back(sum);
      terms.push_back(magnitude);
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      call.isa = isa;
      std::vector<float> target(expected.size());
      std::vector<float> scratch(call.scratch_bytes() / sizeof(float));
      call.run({bytes(data.values), bytes(target), scratch.data()});
      INFO(data.name << ", lanes " << lanes << ", width " << width);
      CHECK(first_fault(target, expected, terms) == "");
    }
  }
}

TEST_CASE("GridSample reads the neighbours of a position and no others",
          "[onednn][kernels][special]") {
  constexpr std::int64_t kExtent = 7;
  constexpr std::int64_t kPlaces = 60;
  GridSample call;
  call.align_corners = true;
  call.channels = 2;
  call.source_extent[0] = call.source_extent[1] = kExtent;
  call.target_extent[1] = kPlaces;
  const auto grid = random_floats(2 * kPlaces, 3);  // inside: no neighbour is padding
  for (const Data& data : special_data(2 * kExtent * kExtent, kExtent * kExtent + 24)) {
    std::vector<double> expected;
    std::vector<double> terms;
    for (std::int64_t i = 0; i < 2 * kPlaces; ++i) {
      const std::int64_t place = i % kPlaces;
      const double x = (at(grid, 2 * place) + 1.0) / 2.0 * (kExtent - 1);
      const double y = (at(grid, 2 * place + 1) + 1.0) / 2.0 * (kExtent - 1);
      double sum = 0.0;
      double magnitude = 0.0;
      for (int k = 0; k < 4; ++k) {
        const double column = std::floor(x) + k % 2;
        const double row = std::floor(y) + static_cast<double>(k / 2);
        const double product =
            (1.0 - std::abs(x - column)) * (1.0 - std::abs(y - row)) *
            at(data.values, (i / kPlaces * kExtent + static_cast<std::int64_t>(row)) * kExtent +
                                static_cast<std::int64_t>(column));
        sum += product;
        magnitude += std::abs(product);
      }
      expected.push_back(sum);
      terms.push_back(magnitude);
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      call.isa = isa;
      std::vector<float> target(expected.size());
      call.run({data.values.data(), grid.data(), target.data()});
      INFO(data.name);
      // A neighbour's factor is a difference of positions, which float32 rounds.
      CHECK(first_fault(target, expected, terms, 64.0) == "");
    }
  }
}

TEST_CASE("Recurrence keeps rows of a batch apart, and its gates saturate",
          "[onednn][kernels][special]") {
  constexpr std::int64_t kBatch = 3;
  constexpr std::int64_t kSteps = 4;
  constexpr std::int64_t kInputs = 6;
  constexpr std::int64_t kHidden = 19;
  using Cell = Recurrence::Cell;
  Recurrence call;
  call.cell = GENERATE(Cell::kLstm, Cell::kGru, Cell::kTanh);
  call.batch = kBatch;
  call.steps = kSteps;
  call.inputs = kInputs;
  call.hidden = kHidden;
  const std::int64_t rows = call.gates() * kHidden;
  const auto input_weight = normal_floats(rows * kInputs, 4, 0.4F);
  const auto state_weight = normal_floats(rows * kHidden, 5, 0.2F);
  std::vector<float> packed(static_cast<std::size_t>(call.weight_floats(kInputs)));
  RecurrenceWeights{call.cell, kInputs, kHidden, false}.run(
      {input_weight.data(), state_weight.data(), nullptr, nullptr, packed.data()});
  // One element of the second row's second step.
  for (const Data& data : special_data(kSteps * kBatch * kInputs, (kBatch + 1) * kInputs + 2)) {
    std::vector<double> expected(static_cast<std::size_t>(call.target_floats()));
    std::vector<double> terms(expected.size());
    for (std::int64_t row = 0; row < kBatch; ++row) {
      std::vector<double> state(kHidden, 0.0);
      std::vector<double> cell(kHidden, 0.0);
      double largest = 1.0;  // what a sum of this row is made of, up to now
      for (std::int64_t step = 0; step < kSteps; ++step) {
        const std::vector<double> before = state;
        for (std::int64_t i = 0; i < kHidden; ++i) {
          double from_input[4]{};
          double from_state[4]{};
          for (std::int64_t gate = 0; gate < call.gates(); ++gate) {
            const std::int64_t at_row = gate * kHidden + i;
            for (std::int64_t k = 0; k < kInputs; ++k) {
              const double product = at(input_weight, at_row * kInputs + k) *
                                     at(data.values, (step * kBatch + row) * kInputs + k);
              from_input[gate] += product;
              if (std::isfinite(product)) largest = std::max(largest, kInputs * std::abs(product));
            }
            for (std::int64_t k = 0; k < kHidden; ++k) {
              from_state[gate] +=
                  at(state_weight, at_row * kHidden + k) * before[static_cast<std::size_t>(k)];
            }
          }
          const auto both = [&](int gate) { return from_input[gate] + from_state[gate]; };
          const auto here = static_cast<std::size_t>(i);
          if (call.cell == Cell::kLstm) {
            cell[here] = sigmoid(both(1)) * cell[here] + sigmoid(both(0)) * std::tanh(both(2));
            state[here] = sigmoid(both(3)) * std::tanh(cell[here]);
          } else if (call.cell == Cell::kGru) {
            const double candidate = std::tanh(from_input[2] + sigmoid(both(0)) * from_state[2]);
            const double update = sigmoid(both(1));
            state[here] = (1.0 - update) * candidate + update * before[here];
          } else {
            state[here] = std::tanh(both(0));
          }
          const auto place = static_cast<std::size_t>((step * kBatch + row) * kHidden + i);
          const auto last = static_cast<std::size_t>(call.output_floats() + row * kHidden + i);
          expected[place] = expected[last] = state[here];
          terms[place] = terms[last] = largest;
          if (call.cell == Cell::kLstm) {
            expected[last + kBatch * kHidden] = cell[here];
            terms[last + kBatch * kHidden] = largest;
          }
        }
      }
    }
    const std::vector<float> zeros(static_cast<std::size_t>(call.state_floats()), 0.0F);
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      call.isa = isa;
      std::vector<float> target(expected.size());
      std::vector<float> scratch(call.scratch_bytes() / sizeof(float));
      std::vector<std::byte*> weights{bytes(packed)};
      call.run({data.values.data(), zeros.data(), call.cell == Cell::kLstm ? zeros.data() : nullptr,
                weights, target.data(), scratch.data()});
      INFO(data.name << ", cell " << static_cast<int>(call.cell));
      CHECK(first_fault(target, expected, terms) == "");
    }
  }
}

TEST_CASE("running sums carry NaN and infinities onwards only", "[onednn][kernels][special]") {
  constexpr std::int64_t kOuter = 3;
  constexpr std::int64_t kCount = 20;
  const std::int64_t inner = GENERATE(1, 5);
  for (const Data& data : special_data(kOuter * kCount * inner, (kCount + 7) * inner)) {
    std::vector<double> expected(data.values.size());
    for (std::int64_t row = 0; row < kOuter * inner; ++row) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < kCount; ++i) {
        const std::int64_t place = (row / inner * kCount + i) * inner + row % inner;
        sum += at(data.values, place);
        expected[static_cast<std::size_t>(place)] = in_float(sum);
      }
    }
    std::vector<float> target(data.values.size());
    RunningSum{DType::kFloat32, kOuter, kCount, inner}.run({bytes(data.values), bytes(target)});
    INFO(data.name << ", inner " << inner);
    CHECK(first_fault(target, expected) == "");
  }
}

TEST_CASE("reductions of every kind keep rows apart", "[onednn][kernels][special]") {
  constexpr std::int64_t kOuter = 3;
  constexpr std::int64_t kCount = 37;
  const std::int64_t inner = GENERATE(1, 5);
  const auto op = GENERATE(ReductionOp::kMean, ReductionOp::kMaximum, ReductionOp::kMinimum,
                           ReductionOp::kProduct, ReductionOp::kNorm1, ReductionOp::kNorm2);
  for (const Data& data : special_data(kOuter * kCount * inner, (kCount + 7) * inner)) {
    std::vector<double> expected;
    std::vector<double> terms;
    for (std::int64_t row = 0; row < kOuter * inner; ++row) {
      double sum = 0.0;
      double squares = 0.0;
      double magnitude = 0.0;
      double product = 1.0;
      double greatest = -HUGE_VAL;
      double least = HUGE_VAL;
      bool has_nan = false;
      for (std::int64_t i = 0; i < kCount; ++i) {
        const double x = at(data.values, (row / inner * kCount + i) * inner + row % inner);
        sum += x;
        squares += x * x;
        magnitude += std::abs(x);
        product *= x;
        greatest = std::fmax(greatest, x);
        least = std::fmin(least, x);
        has_nan = has_nan || std::isnan(x);
      }
      double result = sum / kCount;
      if (op == ReductionOp::kMaximum) result = greatest;
      if (op == ReductionOp::kMinimum) result = least;
      if (op == ReductionOp::kProduct) result = product;
      if (op == ReductionOp::kNorm1) result = magnitude;
      if (op == ReductionOp::kNorm2) result = std::sqrt(squares);
      expected.push_back(has_nan ? static_cast<double>(kNaN) : in_float(result));
      terms.push_back(op == ReductionOp::kMean ? magnitude / kCount : std::abs(expected.back()));
    }
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      std::vector<float> target(expected.size());
      MiddleReduction{op, DType::kFloat32, kOuter, kCount, inner, isa}.run(
          {bytes(data.values), bytes(target)});
      INFO(data.name << ", inner " << inner << ", op " << static_cast<int>(op));
      CHECK(first_fault(target, expected, terms) == "");
    }
  }
}

TEST_CASE("the place of an extremum is the first one's, NaN before all",
          "[onednn][kernels][special]") {
  constexpr std::int64_t kOuter = 3;
  constexpr std::int64_t kCount = 37;
  const std::int64_t inner = GENERATE(1, 5);
  const bool greatest = GENERATE(true, false);
  for (const Data& data : special_data(kOuter * kCount * inner, (kCount + 7) * inner)) {
    std::vector<std::int64_t> expected;
    for (std::int64_t row = 0; row < kOuter * inner; ++row) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < kCount; ++i) {
        const auto value = [&](std::int64_t k) {
          return at(data.values, (row / inner * kCount + k) * inner + row % inner);
        };
        const bool precedes = greatest ? value(i) > value(best) : value(i) < value(best);
        if (!std::isnan(value(best)) && (precedes || std::isnan(value(i)))) best = i;
      }
      expected.push_back(best);
    }
    const ArgReduction call{DType::kFloat32, greatest, false, kOuter, kCount, inner};
    INFO(data.name << ", inner " << inner << (greatest ? ", greatest" : ", least"));
    CHECK(run<std::int64_t>(call, cpu_vector_isa(), expected.size(), data.values) == expected);
  }
}

TEST_CASE("divisions, remainders and comparisons of special numbers are PyTorch's",
          "[onednn][kernels][special]") {
  using Op = TypedBinary::Op;
  std::vector<float> a;
  std::vector<float> b;
  const auto numbers = special_numbers();
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t k = 0; k < 40; ++k) {
      a.push_back(numbers[i]);
      b.push_back(numbers[k]);
    }
  }
  const auto count = static_cast<std::int64_t>(a.size());
  const auto call = [&](Op op) {
    return TypedBinary{op, DType::kFloat32, 1, {count}, {1}, {1}, {1}, "node 'n'"};
  };
  const auto check = [&](Op op, float (*definition)(float, float)) {
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      const auto results = run<float>(call(op), isa, a.size(), a, b);
      for (std::size_t i = 0; i < a.size(); ++i) {
        INFO("op " << static_cast<int>(op) << " of " << a[i] << " and " << b[i]);
        REQUIRE(same_number(results[i], definition(a[i], b[i])));
      }
    }
  };
  check(Op::kFmod, [](float x, float y) { return std::fmod(x, y); });
  check(Op::kRemainder, [](float x, float y) {
    const float rest = std::fmod(x, y);
    return rest != 0.0F && (rest < 0.0F) != (y < 0.0F) ? rest + y : rest;
  });
  check(Op::kTruncateDivide, [](float x, float y) { return std::trunc(x / y); });
  check(Op::kFloorDivide, [](float x, float y) {
    if (y == 0.0F) return x / y;
    const float rest = std::fmod(x, y);
    float quotient = (x - rest) / y;
    if (rest != 0.0F && (y < 0.0F) != (rest < 0.0F)) quotient -= 1.0F;
    if (quotient == 0.0F) return std::copysign(0.0F, x / y);
    const float below = std::floor(quotient);
    return quotient - below > 0.5F ? below + 1.0F : below;
  });
  const auto compare = [&](Op op, bool (*definition)(float, float)) {
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      const auto results = run<std::uint8_t>(call(op), isa, a.size(), a, b);
      for (std::size_t i = 0; i < a.size(); ++i) {
        INFO("op " << static_cast<int>(op) << " of " << a[i] << " and " << b[i]);
        REQUIRE(int{results[i]} == int{definition(a[i], b[i])});
      }
    }
  };
  compare(Op::kEqual, [](float x, float y) { return x == y; });
  compare(Op::kNotEqual, [](float x, float y) { return x != y; });
  compare(Op::kLess, [](float x, float y) { return x < y; });
  compare(Op::kLessEqual, [](float x, float y) { return x <= y; });
  compare(Op::kGreater, [](float x, float y) { return x > y; });
  compare(Op::kGreaterEqual, [](float x, float y) { return x >= y; });
  compare(Op::kLogicalXor, [](float x, float y) { return (x != 0.0F) != (y != 0.0F); });
}

TEST_CASE("broadcast operations of special numbers are those of float32",
          "[onednn][kernels][special]") {
  const auto numbers = special_numbers();
  const auto count = static_cast<std::int64_t>(numbers.size());
  struct Definition {
    BinaryOp op;
    double (*exact)(double, double);
  };
  const auto either = [](double x, double y, double chosen) {
    return std::isnan(x) || std::isnan(y) ? static_cast<double>(kNaN) : chosen;
  };
  const auto [op, exact] =
      GENERATE(Definition{BinaryOp::kAdd, [](double x, double y) { return x + y; }},
               Definition{BinaryOp::kSubtract, [](double x, double y) { return x - y; }},
               Definition{BinaryOp::kMultiply, [](double x, double y) { return x * y; }},
               Definition{BinaryOp::kDivide, [](double x, double y) { return x / y; }},
               Definition{BinaryOp::kMaximum, [](double x, double y) { return std::fmax(x, y); }},
               Definition{BinaryOp::kMinimum, [](double x, double y) { return std::fmin(x, y); }},
               Definition{BinaryOp::kPower, [](double x, double y) { return std::pow(x, y); }});
  BroadcastBinary call;
  call.op = op;
  call.extents = {count, count};
  call.a_strides = {1, 0};
  call.b_strides = {0, 1};
  call.target_strides = {count, 1};
  const bool keeps_nan = op == BinaryOp::kMaximum || op == BinaryOp::kMinimum;
  std::vector<double> expected;
  for (const double x : doubles(numbers)) {
    for (const double y : doubles(numbers)) {
      const double result = in_float(exact(x, y));
      expected.push_back(keeps_nan ? either(x, y, result) : result);
    }
  }
  std::vector<float> target(expected.size());
  call.run({bytes(numbers), bytes(numbers), bytes(target)});
  INFO("op " << static_cast<int>(op));
  CHECK(first_fault(target, expected) == "");
}

TEST_CASE("copies of every kind keep all bits, those of NaN, too", "[onednn][kernels][special]") {
  // Signalling and quiet NaN with payloads, negative zero, the smallest and largest numbers.
  const std::vector<std::uint32_t> source{0x7F800001, 0xFFC12345, 0x80000000, 0x00000001,
                                          0x7F7FFFFF, 0xFF800000, 0x7FFFFFFF, 0x3F800000};
  const auto reversed = std::vector<std::uint32_t>(source.rbegin(), source.rend());
  const auto everywhere = [&](const Kernel& kernel, const std::vector<std::uint32_t>& expected) {
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      CHECK(run<std::uint32_t>(kernel, isa, expected.size(), source) == expected);
    }
  };
  everywhere(CopyBytes{32}, source);
  everywhere(StridedCopy{4, {4, 2}, {1, 4}, {2, 1}}, {source[0], source[4], source[1], source[5],
                                                      source[2], source[6], source[3], source[7]});
  everywhere(PaddedCopy{DType::kFloat32, kNaN, 8, 0, StridedCopy{4, {8}, {1}, {1}}}, source);
  everywhere(PlainConcat{1, {32}}, source);
  everywhere(CopyParts{1, {{0, 7, 0, {4, {8}, {-1}, {1}}}}}, reversed);
  everywhere(Triangle{4, 1, 2, 4, -1, true}, source);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    const std::vector<std::int64_t> places{7, 6, 5, 4, 3, 2, 1, 0};
    CHECK(run<std::uint32_t>(GatherRows{8, 8, 4, true, "n"}, isa, 8, source, places) == reversed);
    IndexedCopy indexed;
    indexed.wraps = true;
    indexed.count = 8;
    indexed.extents = {8};
    indexed.indexed_strides = {0};
    indexed.other_strides = {1};
    indexed.indices = {{8, 1, {1}}};
    indexed.node = "n";
    CHECK(run<std::uint32_t>(indexed, isa, 8, source, places) == reversed);
    Select select;
    select.extents = {8};
    select.condition_strides = select.a_strides = select.b_strides = select.target_strides = {1};
    const std::vector<std::uint8_t> condition{1, 0, 1, 0, 1, 0, 1, 0};
    const auto chosen = run<std::uint32_t>(select, isa, 8, condition, source, reversed);
    for (std::size_t i = 0; i < 8; ++i) {
      CHECK(chosen[i] == (condition[i] != 0 ? source[i] : reversed[i]));
    }
  }
}

TEST_CASE("conversions of what the other type does not hold", "[onednn][kernels][special]") {
  const VectorIsa isa = cpu_vector_isa();
  const std::vector<float> source{kNaN,  kInfinity, -kInfinity, 3.4e38F, -3.4e38F,
                                  -0.0F, 1e-40F,    65519.0F,   65520.0F};
  const auto count = static_cast<std::int64_t>(source.size());
  const auto back = [&](DType type) {
    const auto middle =
        run<std::uint16_t>(Convert{DType::kFloat32, type, count}, isa, source.size(), source);
    return run<float>(Convert{type, DType::kFloat32, count}, isa, source.size(), middle);
  };
  for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
    const auto result = back(type);
    CHECK(std::isnan(result[0]));
    CHECK(result[1] == kInfinity);
    CHECK(result[2] == -kInfinity);
    CHECK(std::signbit(result[5]));
    CHECK(result[5] == 0.0F);
  }
  // Half way between the largest bfloat16 and 2^128 lies 3.396e38; between the largest float16 and
  // 2^16 lies 65520, which goes to the even side, infinity.
  CHECK(back(DType::kBFloat16)[3] == kInfinity);
  CHECK(back(DType::kBFloat16)[4] == -kInfinity);
  CHECK(back(DType::kFloat16)[3] == kInfinity);
  CHECK(back(DType::kFloat16)[7] == 65504.0F);
  CHECK(back(DType::kFloat16)[8] == kInfinity);
  CHECK(back(DType::kFloat16)[6] == 0.0F);
  auto rounded = source;
  RoundToBFloat16{count}.run({bytes(rounded), bytes(rounded)});
  const auto expected = back(DType::kBFloat16);
  for (std::size_t i = 0; i < source.size(); ++i) CHECK(same_number(rounded[i], expected[i]));
  const auto truth =
      run<std::uint8_t>(Cast{DType::kFloat32, DType::kBool, count}, isa, source.size(), source);
  CHECK(truth == std::vector<std::uint8_t>{1, 1, 1, 1, 1, 0, 1, 1, 1});
}

TEST_CASE("sums and products of quantized numbers hold at the ends of their range",
          "[onednn][kernels][special]") {
  struct Range {
    std::int64_t zero;
    float factor;
  };
  const auto [zero, factor] = GENERATE(Range{0, 1e-6F}, Range{255, 0.5F}, Range{128, 1e6F});
  std::vector<std::uint8_t> a;
  std::vector<std::uint8_t> b;
  for (int i = 0; i < 256; ++i) {
    for (const int k : {0, 1, 127, 128, 254, 255}) {
      a.push_back(static_cast<std::uint8_t>(i));
      b.push_back(static_cast<std::uint8_t>(k));
    }
  }
  QuantizedBinary call;
  call.a_factor = call.b_factor = factor;
  call.a_zero = zero;
  call.b_zero = 255 - zero;
  call.zero = 13;
  call.inner = static_cast<std::int64_t>(a.size());
  for (const bool multiplies : {false, true}) {
    call.multiplies = multiplies;
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      const auto found = run<std::uint8_t>(call, isa, a.size(), a, b);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(factor) * static_cast<double>(a[i] - call.a_zero);
        const double y = static_cast<double>(factor) * static_cast<double>(b[i] - call.b_zero);
        const double wanted =
            std::clamp(std::nearbyint(multiplies ? x * y : x + y) + 13.0, 0.0, 255.0);
        INFO(int{a[i]} << " and " << int{b[i]} << ", factor " << factor);
        REQUIRE(std::abs(static_cast<double>(found[i]) - wanted) <= 1.0);
      }
    }
  }
}

TEST_CASE("folded norms of variances that are no number, or as large as they come",
          "[onednn][kernels][special]") {
  const std::vector<float> variance{1.0F, 3e38F, kInfinity, kNaN, 0.0F};
  const std::vector<float> mean{0.5F, 3e38F, 1.0F, 1.0F, kInfinity};
  NormFold fold;
  fold.epsilon = 1e-5F;
  fold.channels = 5;
  const std::vector<float> weights(5, 2.0F);
  std::vector<double> scaled;
  std::vector<double> shifted;
  std::vector<double> both;
  for (std::size_t i = 0; i < 5; ++i) {
    const double factor = 1.0 / std::sqrt(static_cast<double>(variance[i]) + 1e-5);
    scaled.push_back(2.0 * factor);
    shifted.push_back(-static_cast<double>(mean[i]) * factor);
    both.push_back(factor);
  }
  both.insert(both.end(), shifted.begin(), shifted.end());
  std::vector<float> target(5);
  FoldNormWeights{fold}.run({weights.data(), variance.data(), nullptr, target.data()});
  CHECK(first_fault(target, scaled) == "");
  FoldNormBias{fold}.run({variance.data(), mean.data(), nullptr, nullptr, nullptr, target.data()});
  CHECK(first_fault(target, shifted) == "");
  std::vector<float> vectors(10);
  NormVectors{1e-5F, 5, 5, false, false}.run(
      {variance.data(), mean.data(), nullptr, nullptr, vectors.data()});
  CHECK(first_fault(vectors, both) == "");
}

}  // namespace npu::onednn
