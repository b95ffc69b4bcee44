// SPDX-License-Identifier: Apache-2.0
// Segment reductions against sums in double precision: at every level of instructions, on float32
// and bfloat16, with all that finishes a row; the largest of rows with numbers that are none.
#include "rows/segment_reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "catch.hpp"
#include "npu/tensor/tensor.hpp"
#include "set_variable.hpp"

using namespace npu;
using npu::test::IsaLimit;

namespace {

constexpr std::int64_t kRows = 60;

/// Values as float32 and, where they are used as such, rounded to bfloat16.
struct Values {
  std::vector<float> wide;
  std::vector<std::uint16_t> narrow;

  Values(std::int64_t count, bool is_narrow, std::mt19937& engine) {
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < count; ++i) {
      wide.push_back(normal(engine));
      narrow.push_back(float_to_bfloat16(wide.back()));
      if (is_narrow) wide.back() = bfloat16_to_float(narrow.back());
    }
  }
  RowsOf rows(bool is_narrow, std::int64_t stride, std::int64_t column = 0) const {
    return is_narrow ? RowsOf{narrow.data() + column, true, stride}
                     : RowsOf{wide.data() + column, false, stride};
  }
};

struct Edges {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> sources;

  explicit Edges(std::mt19937& engine) {
    for (std::int64_t v = 0; v < kRows; ++v) {
      for (std::int64_t e = 0; e < v % 7; ++e) {
        sources.push_back(static_cast<std::int32_t>(engine() % kRows));
      }
      offsets.push_back(static_cast<std::int64_t>(sources.size()));
    }
  }
};

}  // namespace

TEST_CASE("rows of either type are summed and finished as in double precision", "[rows]") {
  const std::string level = GENERATE("generic", "avx2", "amx");
  const bool is_narrow = GENERATE(false, true);
  const std::int64_t width = GENERATE(1, 5, 16, 21, 64, 300);
  CAPTURE(level, is_narrow, width);
  const IsaLimit limit(level);
  std::mt19937 engine(5);
  const Edges edges(engine);
  const std::int64_t stride = width + 9;
  const Values x(kRows * stride, is_narrow, engine);
  const Values bias(width, false, engine);
  const Values factors(kRows, false, engine);
  std::vector<float> out(static_cast<std::size_t>(kRows * width));
  std::vector<std::uint16_t> narrow_out(out.size());
  SegmentReduce reduce;
  reduce.offsets = edges.offsets.data();
  reduce.sources = edges.sources.data();
  reduce.x = x.rows(is_narrow, stride);
  reduce.rows = kRows;
  reduce.width = width;
  reduce.aggregate = Aggregate::kMean;
  reduce.own = x.rows(is_narrow, stride, 2);
  reduce.own_factors = factors.wide.data();
  reduce.bias = bias.wide.data();
  reduce.addend = x.rows(is_narrow, stride, 9);
  reduce.relu = true;
  reduce.out = out.data();
  segment_reduce(reduce, 2);
  reduce.out = narrow_out.data();
  reduce.out_is_bfloat16 = true;
  segment_reduce(reduce, 1);
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return static_cast<double>(x.wide[static_cast<std::size_t>(row * stride + column)]);
  };
  for (std::int64_t v = 0; v < kRows; ++v) {
    const std::int64_t begin = edges.offsets[static_cast<std::size_t>(v)];
    const std::int64_t end = edges.offsets[static_cast<std::size_t>(v) + 1];
    for (std::int64_t i = 0; i < width; ++i) {
      double expected = 0;
      for (std::int64_t e = begin; e < end; ++e) {
        expected += at(edges.sources[static_cast<std::size_t>(e)], i);
      }
      expected /= static_cast<double>(std::max<std::int64_t>(1, end - begin));
      expected += static_cast<double>(factors.wide[static_cast<std::size_t>(v)]) * at(v, 2 + i);
      expected += static_cast<double>(bias.wide[static_cast<std::size_t>(i)]) + at(v, 9 + i);
      expected = std::max(expected, 0.0);
      const auto place = static_cast<std::size_t>(v * width + i);
      REQUIRE(std::abs(static_cast<double>(out[place]) - expected) < 1e-5);
      // Rounded once, to 8 bits.
      REQUIRE(narrow_out[place] == float_to_bfloat16(out[place]));
    }
  }
}

TEST_CASE("weights are computed for the edges of a row at a time", "[rows]") {
  std::mt19937 engine(7);
  const Edges edges(engine);
  constexpr std::int64_t kHeads = 2;
  constexpr std::int64_t kWidth = 3;
  const Values x(kRows * kHeads * kWidth, false, engine);
  const Values source(kRows * kHeads, false, engine);
  const Values target(kRows * kHeads, false, engine);
  using Kind = EdgeStep::Kind;
  SegmentReduce reduce;
  const std::vector<EdgeStep> steps = {
      {.kind = Kind::kSource, .node = source.wide.data()},
      {.kind = Kind::kTarget, .node = target.wide.data()},
      {.kind = Kind::kAdd, .left = 0, .right = 1},
      {.kind = Kind::kLeakyRelu, .left = 2, .right = 2, .first = 0.2F},
      {.kind = Kind::kClamp, .left = 3, .right = 3, .first = -1, .second = 1},
      {.kind = Kind::kExp, .left = 4, .right = 4},
      {.kind = Kind::kRowSum, .left = 5, .right = 5},
      {.kind = Kind::kDivide, .left = 5, .right = 6}};
  reduce.weight_steps = steps;
  reduce.offsets = edges.offsets.data();
  reduce.sources = edges.sources.data();
  reduce.x = x.rows(false, 0);
  reduce.rows = kRows;
  reduce.heads = kHeads;
  reduce.width = kWidth;
  std::vector<float> out(static_cast<std::size_t>(kRows * kHeads * kWidth));
  reduce.out = out.data();
  segment_reduce(reduce, 2);
  // Some rows first and the others later: the same bits.
  std::vector<char> group;
  for (std::int64_t v = 0; v < kRows; ++v) group.push_back(static_cast<char>(engine() % 2));
  std::vector<float> in_turns(out.size(), 77);
  reduce.out = in_turns.data();
  reduce.group = group.data();
  segment_reduce(reduce, 1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    CHECK(in_turns[i] == (group[i / (kHeads * kWidth)] == 0 ? out[i] : 77));
  }
  reduce.wanted_group = 1;
  segment_reduce(reduce, 2);
  CHECK(in_turns == out);
  for (std::int64_t v = 0; v < kRows; ++v) {
    const std::int64_t begin = edges.offsets[static_cast<std::size_t>(v)];
    const std::int64_t end = edges.offsets[static_cast<std::size_t>(v) + 1];
    for (std::int64_t h = 0; h < kHeads; ++h) {
      const auto power = [&](std::int64_t e) {
        const std::int64_t u = edges.sources[static_cast<std::size_t>(e)];
        const double score =
            static_cast<double>(source.wide[static_cast<std::size_t>(u * kHeads + h)]) +
            static_cast<double>(target.wide[static_cast<std::size_t>(v * kHeads + h)]);
        return std::exp(std::clamp(score < 0 ? 0.2 * score : score, -1.0, 1.0));
      };
      double total = 0;
      for (std::int64_t e = begin; e < end; ++e) total += power(e);
      for (std::int64_t i = 0; i < kWidth; ++i) {
        double expected = 0;
        for (std::int64_t e = begin; e < end; ++e) {
          const std::int64_t u = edges.sources[static_cast<std::size_t>(e)];
          expected +=
              power(e) / total *
              static_cast<double>(x.wide[static_cast<std::size_t>((u * kHeads + h) * kWidth + i)]);
        }
        const auto place = static_cast<std::size_t>((v * kHeads + h) * kWidth + i);
        REQUIRE(std::abs(static_cast<double>(out[place]) - expected) < 1e-5);
      }
    }
  }
}

TEST_CASE("the largest of rows is exact, and NaN is larger than all", "[rows]") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::string level = GENERATE("generic", "avx2", "amx");
  const bool is_narrow = GENERATE(false, true);
  const bool has_weights = GENERATE(false, true);
  const std::int64_t width = GENERATE(1, 7, 16, 40);
  CAPTURE(level, is_narrow, has_weights, width);
  const IsaLimit limit(level);
  std::mt19937 engine(9);
  const Edges edges(engine);
  Values x(kRows * width, is_narrow, engine);
  for (std::size_t i = 0; i < x.wide.size(); ++i) {
    const auto draw = engine() % 12;
    if (draw > 3) continue;
    x.wide[i] = draw == 0   ? std::numeric_limits<float>::quiet_NaN()
                : draw == 1 ? kInfinity
                            : -kInfinity;
    x.narrow[i] = float_to_bfloat16(x.wide[i]);
  }
  const Values weights(static_cast<std::int64_t>(edges.sources.size()), false, engine);
  std::vector<float> out(static_cast<std::size_t>(kRows * width));
  SegmentReduce reduce;
  reduce.offsets = edges.offsets.data();
  reduce.sources = edges.sources.data();
  reduce.x = x.rows(is_narrow, 0);
  reduce.weights = has_weights ? weights.wide.data() : nullptr;
  reduce.rows = kRows;
  reduce.width = width;
  reduce.aggregate = Aggregate::kLargest;
  reduce.out = out.data();
  segment_reduce(reduce, 2);
  for (std::int64_t v = 0; v < kRows; ++v) {
    const std::int64_t begin = edges.offsets[static_cast<std::size_t>(v)];
    const std::int64_t end = edges.offsets[static_cast<std::size_t>(v) + 1];
    for (std::int64_t i = 0; i < width; ++i) {
      float expected = begin == end ? 0 : -kInfinity;
      for (std::int64_t e = begin; e < end; ++e) {
        const std::int64_t u = edges.sources[static_cast<std::size_t>(e)];
        const float weight = has_weights ? weights.wide[static_cast<std::size_t>(e)] : 1;
        const float value = weight * x.wide[static_cast<std::size_t>(u * width + i)];
        if (std::isnan(value) || value > expected) expected = value;
        if (std::isnan(expected)) break;
      }
      const float found = out[static_cast<std::size_t>(v * width + i)];
      REQUIRE((found == expected || (std::isnan(found) && std::isnan(expected))));
    }
  }
}

TEST_CASE("a softmax of large scores is shifted by the largest of a row", "[rows]") {
  std::mt19937 engine(11);
  const Edges edges(engine);
  Values source(kRows, false, engine);
  Values target(kRows, false, engine);
  const Values x(kRows, false, engine);
  for (float& each : source.wide) each *= 300;
  for (float& each : target.wide) each *= 300;
  source.wide[5] = std::numeric_limits<float>::quiet_NaN();
  using Kind = EdgeStep::Kind;
  SegmentReduce reduce;
  const std::vector<EdgeStep> steps = {{.kind = Kind::kSource, .node = source.wide.data()},
                                       {.kind = Kind::kTarget, .node = target.wide.data()},
                                       {.kind = Kind::kAdd, .left = 0, .right = 1},
                                       {.kind = Kind::kRowMax, .left = 2, .right = 2},
                                       {.kind = Kind::kSubtract, .left = 2, .right = 3},
                                       {.kind = Kind::kExp, .left = 4, .right = 4},
                                       {.kind = Kind::kRowSum, .left = 5, .right = 5},
                                       {.kind = Kind::kDivide, .left = 5, .right = 6}};
  reduce.weight_steps = steps;
  reduce.offsets = edges.offsets.data();
  reduce.sources = edges.sources.data();
  reduce.x = x.rows(false, 0);
  reduce.rows = kRows;
  reduce.width = 1;
  std::vector<float> out(kRows);
  reduce.out = out.data();
  segment_reduce(reduce, 2);
  for (std::size_t v = 0; v < out.size(); ++v) {
    double most = -std::numeric_limits<double>::infinity();
    double magnitude = 0;
    bool has_nan = false;
    const auto score = [&](std::int64_t e) {
      const std::int32_t u = edges.sources[static_cast<std::size_t>(e)];
      return double{source.wide[static_cast<std::size_t>(u)]} + double{target.wide[v]};
    };
    for (std::int64_t e = edges.offsets[v]; e < edges.offsets[v + 1]; ++e) {
      has_nan = has_nan || std::isnan(score(e));
      most = std::max(most, score(e));
      magnitude = std::max(magnitude, std::abs(score(e)));
    }
    if (has_nan) {
      CHECK(std::isnan(out[v]));
      continue;
    }
    double total = 0;
    double expected = 0;
    double size = 0;
    for (std::int64_t e = edges.offsets[v]; e < edges.offsets[v + 1]; ++e) {
      const double power = std::exp(score(e) - most);
      const double value =
          x.wide[static_cast<std::size_t>(edges.sources[static_cast<std::size_t>(e)])];
      total += power;
      expected += power * value;
      size += power * std::abs(value);
    }
    if (total > 0) {
      expected /= total;
      size /= total;
    }
    // The sum and the shift of a score are rounded, which exp makes relative; 6 edges at most.
    const double bound = (2 * 2 * magnitude + 2 * 6 + 8) * 0x1p-24 * size;
    CHECK(std::abs(double{out[v]} - expected) <= bound);
  }
}

TEST_CASE("sums are finished where they are stored", "[rows]") {
  constexpr std::int64_t kNodes = 40;
  constexpr std::int64_t kWidth = 21;
  constexpr std::int64_t kStride = 50;
  std::mt19937 engine(3);
  std::normal_distribution<float> normal;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> sources;
  for (std::int64_t v = 0; v < kNodes; ++v) {
    for (std::int64_t e = 0; e < v % 5; ++e) {
      sources.push_back(static_cast<std::int32_t>(engine() % kNodes));
    }
    offsets.push_back(static_cast<std::int64_t>(sources.size()));
  }
  std::vector<float> both(kNodes * kStride);
  for (float& value : both) value = normal(engine);
  std::vector<float> bias(kWidth);
  for (float& value : bias) value = normal(engine);
  const bool in_place = GENERATE(false, true);
  const bool relu = GENERATE(false, true);
  const bool mean = GENERATE(false, true);
  SegmentReduce reduce;
  reduce.offsets = offsets.data();
  reduce.sources = sources.data();
  reduce.x = {both.data(), false, kStride};
  reduce.rows = kNodes;
  reduce.width = kWidth;
  reduce.aggregate = mean ? Aggregate::kMean : Aggregate::kSum;
  reduce.bias = bias.data();
  reduce.relu = relu;
  std::vector<float> out(kNodes * kWidth);
  for (std::int64_t v = 0; v < kNodes; ++v) {
    for (std::int64_t i = 0; i < kWidth; ++i) out[v * kWidth + i] = both[v * kStride + 25 + i];
  }
  reduce.addend = in_place ? RowsOf{out.data()} : RowsOf{both.data() + 25, false, kStride};
  reduce.out = out.data();
  segment_reduce(reduce, 2);
  for (std::int64_t v = 0; v < kNodes; ++v) {
    for (std::int64_t i = 0; i < kWidth; ++i) {
      double expected = 0;
      for (std::int64_t e = offsets[v]; e < offsets[v + 1]; ++e) {
        expected += static_cast<double>(both[sources[e] * kStride + i]);
      }
      if (mean && offsets[v + 1] > offsets[v]) {
        expected /= static_cast<double>(offsets[v + 1] - offsets[v]);
      }
      expected += static_cast<double>(bias[i]) + static_cast<double>(both[v * kStride + 25 + i]);
      if (relu) expected = std::max(expected, 0.0);
      REQUIRE(std::abs(static_cast<double>(out[v * kWidth + i]) - expected) < 1e-5);
    }
  }
}
