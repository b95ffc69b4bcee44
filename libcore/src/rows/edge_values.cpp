// SPDX-License-Identifier: Apache-2.0
// Values per edge, such as norms and attention weights, for a few rows at a time: they stay in the
// L1 between the steps that make them and the reduction that reads them, and are never stored for
// all edges. Edges of a row lie together, so a sum over the edges of a target is one over a run.
#include "rows/edge_values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace npu {
namespace {

void read_sources(const EdgeStep& step, const EdgeRange& range, float* out) {
  const std::int64_t heads = range.heads;
  for (std::int64_t e = range.offsets[range.first_row]; e < range.offsets[range.last_row]; ++e) {
    const float* node = step.node + range.sources[e] * heads;
    for (std::int64_t h = 0; h < heads; ++h) *out++ = node[h];
  }
}

void read_targets(const EdgeStep& step, const EdgeRange& range, float* out) {
  const std::int64_t heads = range.heads;
  for (std::int64_t v = range.first_row; v < range.last_row; ++v) {
    const float* node = step.node + v * heads;
    for (std::int64_t e = range.offsets[v]; e < range.offsets[v + 1]; ++e) {
      for (std::int64_t h = 0; h < heads; ++h) *out++ = node[h];
    }
  }
}

/// Folds the values of each row's edges, from `first` on, into one for all of them.
template <typename Combine>
void fold_rows(const EdgeRange& range, const float* left, float first, float* out,
               const Combine& combine) {
  const std::int64_t heads = range.heads;
  for (std::int64_t v = range.first_row; v < range.last_row; ++v) {
    const std::int64_t count = (range.offsets[v + 1] - range.offsets[v]) * heads;
    for (std::int64_t h = 0; h < heads; ++h) {
      float folded = first;
      for (std::int64_t i = h; i < count; i += heads) folded = combine(folded, left[i]);
      for (std::int64_t i = h; i < count; i += heads) out[i] = folded;
    }
    left += count;
    out += count;
  }
}

template <typename Function>
void each(const float* left, const float* right, std::size_t count, float* out,
          const Function& function) {
  for (std::size_t i = 0; i < count; ++i) out[i] = function(left[i], right[i]);
}

void compute(const EdgeStep& step, const EdgeRange& range, const float* a, const float* b,
             std::size_t count, float* out) {
  switch (step.kind) {
    case EdgeStep::Kind::kSource:
      return read_sources(step, range, out);
    case EdgeStep::Kind::kTarget:
      return read_targets(step, range, out);
    case EdgeStep::Kind::kEdge:
      std::copy_n(step.node + range.offsets[range.first_row] * range.heads, count, out);
      return;
    case EdgeStep::Kind::kAdd:
      return each(a, b, count, out, [](float x, float y) { return x + y; });
    case EdgeStep::Kind::kSubtract:
      return each(a, b, count, out, [](float x, float y) { return x - y; });
    case EdgeStep::Kind::kMultiply:
      return each(a, b, count, out, [](float x, float y) { return x * y; });
    case EdgeStep::Kind::kDivide:
      return each(a, b, count, out, [](float x, float y) { return x / y; });
    case EdgeStep::Kind::kLeakyRelu:
      return each(a, a, count, out, [&](float x, float) { return x < 0.0F ? x * step.first : x; });
    case EdgeStep::Kind::kClamp:
      return each(a, a, count, out, [&](float x, float) {
        const float least = x < step.first ? step.first : x;
        return least > step.second ? step.second : least;
      });
    case EdgeStep::Kind::kExp:
      return each(a, a, count, out, [](float x, float) { return std::exp(x); });
    case EdgeStep::Kind::kRowSum:
      return fold_rows(range, a, 0.0F, out, [](float sum, float x) { return sum + x; });
    case EdgeStep::Kind::kRowMax:
      return fold_rows(range, a, -std::numeric_limits<float>::infinity(), out,
                       [](float most, float x) { return x <= most || most != most ? most : x; });
  }
}

}  // namespace

const float* edge_values(std::span<const EdgeStep> steps, const EdgeRange& range,
                         std::vector<std::vector<float>>& values) {
  const auto count = static_cast<std::size_t>(range.edges() * range.heads);
  values.resize(std::max(values.size(), steps.size()));
  for (std::size_t s = 0; s < steps.size(); ++s) {
    if (values[s].size() < count) values[s].resize(count);
    compute(steps[s], range, values[steps[s].left].data(), values[steps[s].right].data(), count,
            values[s].data());
  }
  return values[steps.size() - 1].data();
}

}  // namespace npu
