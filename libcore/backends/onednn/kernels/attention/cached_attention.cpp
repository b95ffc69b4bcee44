// SPDX-License-Identifier: Apache-2.0
// Attention over a cache: work and traffic follow the positions of the queries, not the capacity.
//
// Queries that share keys and values go over them together, in blocks of 64 keys with a running
// maximum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018), so that a
// key and a value come from memory once. Few queries, as of a step that makes one token, are cut
// into runs of 256 keys, whose sums are joined in their order; many queries into blocks of rows,
// each of which goes up to the last key that one of them looks at. Either way what is summed
// together follows from shapes and positions alone, so the bits do not depend on the threads.
//
// Scores are products of rows as they lie, as many at a time as a vector has elements, whose
// elements are then added up in a tree; nothing is packed. O(planes * queries * keys in the ranges
// * (width + value width)); memory for sums of a row, by run or by thread.
#include "kernels/attention/cached_attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/attention/cached_attention_tiles.hpp"
#include "kernels/attention/planes.hpp"
#include "kernels/base/elements.hpp"
#include "kernels/base/exponentials.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kBlock = cached::kBlock;
constexpr std::int64_t kRun = 256;      // keys of a part
constexpr std::int64_t kFew = 8;        // queries up to which parts are runs of keys
constexpr std::int64_t kRowBlock = 32;  // rows of a part of many queries
constexpr std::int64_t kMostLanes = 16;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

std::int64_t padded(std::int64_t count) { return ceil_div(count, kMostLanes) * kMostLanes; }

using Range = KeyRanges::Range;

/// Planes that share keys and values, and how their rows are cut.
struct Parts {
  explicit Parts(const CachedAttention& call)
      : shared(planes_that_share(call.key_offsets, call.value_offsets)),
        groups(static_cast<std::int64_t>(call.query_offsets.size()) / shared),
        rows(shared * call.queries),
        is_few(call.queries <= kFew),
        slot_rows(is_few ? rows : std::min(rows, kRowBlock)),
        slot_floats(slot_rows * (padded(call.width) + padded(call.value_width)) +
                    padded(2 * slot_rows)) {}

  std::int64_t shared;  ///< planes of a group
  std::int64_t groups;
  std::int64_t rows;  ///< of a group
  bool is_few;
  std::int64_t slot_rows;
  std::int64_t slot_floats;  ///< of scratch memory
};

/// What a part has summed up, in scratch memory.
struct Slot {
  float* queries;  ///< [rows, padded width], scaled, zeros behind the width
  float* sums;     ///< [rows, padded value width]
  float* most;     ///< by row: the largest score
  float* total;    ///< by row: the sum of its weights

  Slot(const CachedAttention& call, const Parts& parts, float* memory)
      : queries(memory),
        sums(queries + parts.slot_rows * padded(call.width)),
        most(sums + parts.slot_rows * padded(call.value_width)),
        total(most + parts.slot_rows) {}
};

/// One part: rows of a group, and the keys that they go over.
struct Part {
  const CachedAttention* call;
  const CachedAttention::Operands* operands;
  const Parts* parts;
  std::int64_t plane;  ///< the first of the group
  std::int64_t first;  ///< of the rows in the group
  std::int64_t rows;
  Range keys;
  Slot slot;

  std::int64_t query_of(std::int64_t row) const { return (first + row) % call->queries; }
  std::size_t plane_of(std::int64_t row) const {
    return static_cast<std::size_t>(plane + (first + row) / call->queries);
  }
  Range range_of(std::int64_t row) const {
    return call->ranges.of(query_of(row), operands->positions, operands->valid);
  }
  template <typename T>
  static const T* typed(const std::byte* data) {
    return static_cast<const T*>(static_cast<const void*>(data));
  }
};

/// Scores become weights by the largest one so far; gives what earlier sums shrink by.
template <typename V>
NPU_INLINE float weigh_row(float* scores, std::int64_t count, float& most, float& total) {
  constexpr std::int64_t kLanes = kLanesOf<V>;
  V largest = V{} + most;
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const V score = load_vector<V>(scores + i);
    largest = score > largest ? score : largest;
  }
  const float now = largest_element(largest);
  // NaN is passed over so far; it comes back by the total.
  const float base = now == kLowest ? 0.0F : now;
  const V shrink = exp_vector_negative(V{} + (most - base));
  V sums = V{};
  for (std::int64_t i = 0; i < count; i += kLanes) {
    const V weight = exp_vector_negative(load_vector<V>(scores + i) - base);
    sums += weight;
    store_vector(scores + i, weight);
  }
  most = now;
  total = total * shrink[0] + sum_of_elements(sums);
  return shrink[0];
}

inline float as_float(float value) { return value; }
inline float as_float(std::uint16_t bits) { return load(BFloat16{bits}); }

/// Adds the bias of a row to its scores with `count` keys from `begin` on.
template <typename T>
NPU_INLINE void add_bias(const Part& part, std::int64_t row, std::int64_t begin, std::int64_t count,
                         float* scores) {
  const CachedAttention& call = *part.call;
  const std::int64_t stride = call.bias_strides[1];
  const T* from = Part::typed<T>(part.operands->bias) + call.bias_offsets[part.plane_of(row)] +
                  part.query_of(row) * call.bias_strides[0] + begin * stride;
  if (stride == 1) {  // a loop of its own, which becomes vectors
    for (std::int64_t i = 0; i < count; ++i) scores[i] += as_float(from[i]);
  } else {
    for (std::int64_t i = 0; i < count; ++i) scores[i] += as_float(from[i * stride]);
  }
}

/// A block of keys for up to four rows.
template <typename Isa, typename T, int kRows>
NPU_INLINE void attend_tile(const Part& part, std::int64_t row, std::int64_t begin,
                            std::int64_t count) {
  using V = typename Isa::V;
  const CachedAttention& call = *part.call;
  const std::int64_t query_row = padded(call.width);
  const std::int64_t sum_row = padded(call.value_width);
  const auto plane = static_cast<std::size_t>(part.plane);
  alignas(64) float scores[kRows * kBlock];
  Isa::template scores<T, kRows>(
      {part.slot.queries + row * query_row, query_row,
       Part::typed<T>(part.operands->key) + call.key_offsets[plane] + begin * call.key_strides[0],
       call.key_strides[0], call.width, count, scores});
  const std::int64_t length = ceil_div(count, kLanesOf<V>) * kLanesOf<V>;
  float shrink[kRows];
  for (int r = 0; r < kRows; ++r) {
    float* const each = scores + r * kBlock;
    if (call.cap != 0.0F) Isa::cap_scores(each, length, call.cap);
    if (call.has_bias) add_bias<T>(part, row + r, begin, count, each);
    const Range range = part.range_of(row + r);
    const std::int64_t from = std::clamp<std::int64_t>(range.begin - begin, 0, length);
    const std::int64_t to = std::clamp<std::int64_t>(range.end - begin, 0, count);
    for (std::int64_t i = 0; i < from; ++i) each[i] = kLowest;
    for (std::int64_t i = to; i < length; ++i) each[i] = kLowest;
    shrink[r] = weigh_row<V>(each, length, part.slot.most[row + r], part.slot.total[row + r]);
  }
  Isa::template values<T, kRows>({part.slot.sums + row * sum_row, sum_row,
                                  Part::typed<T>(part.operands->value) + call.value_offsets[plane] +
                                      begin * call.value_strides[0],
                                  call.value_strides[0], call.value_width, count, scores, shrink});
}

template <typename T>
NPU_INLINE void begin_rows(const Part& part) {
  const CachedAttention& call = *part.call;
  const std::int64_t width = padded(call.width);
  for (std::int64_t i = 0; i < part.rows; ++i) {
    const T* from = Part::typed<T>(part.operands->query) + call.query_offsets[part.plane_of(i)] +
                    part.query_of(i) * call.query_strides[0];
    float* const to = part.slot.queries + i * width;
    for (std::int64_t c = 0; c < call.width; ++c) {
      float query = 0.0F;
      if constexpr (std::is_same_v<T, float>) {
        query = from[c * call.query_strides[1]];
      } else {
        query = load(BFloat16{from[c * call.query_strides[1]]});
      }
      to[c] = query * call.scale;
    }
    std::fill(to + call.width, to + width, 0.0F);
  }
  std::fill_n(part.slot.sums, part.rows * padded(call.value_width), 0.0F);
  std::fill_n(part.slot.most, part.rows, kLowest);
  std::fill_n(part.slot.total, part.rows, 0.0F);
}

template <typename Isa, typename T>
NPU_INLINE void attend(const Part& part) {
  begin_rows<T>(part);
  for (std::int64_t begin = part.keys.begin; begin < part.keys.end; begin += kBlock) {
    const std::int64_t count = std::min(kBlock, part.keys.end - begin);
    std::int64_t row = 0;
    for (; row + 4 <= part.rows; row += 4) attend_tile<Isa, T, 4>(part, row, begin, count);
    for (; row + 2 <= part.rows; row += 2) attend_tile<Isa, T, 2>(part, row, begin, count);
    for (; row < part.rows; ++row) attend_tile<Isa, T, 1>(part, row, begin, count);
  }
}

/// The result of a row from what `count` parts have of it, whose slots are `slot_floats` apart.
template <typename Isa, typename T>
NPU_INLINE void join_row(const Part& part, std::int64_t count, std::int64_t row) {
  using V = typename Isa::V;
  constexpr std::int64_t kLanes = kLanesOf<V>;
  const CachedAttention& call = *part.call;
  const std::int64_t apart = part.parts->slot_floats;
  float most = kLowest;
  for (std::int64_t s = 0; s < count; ++s) most = std::max(most, part.slot.most[s * apart + row]);
  float sink = kLowest;
  if (call.has_sinks) {
    sink = part.operands->sinks[call.sink_offsets[part.plane_of(row)]];
    most = std::max(most, sink);
  }
  const float base = most == kLowest ? 0.0F : most;
  float total = exp_vector_negative(V{} + (sink - base))[0];  // 0 without one
  for (std::int64_t s = 0; s < count; ++s) {
    float& each = part.slot.most[s * apart + row];
    each = exp_vector_negative(V{} + (each - base))[0];  // from now on what the part counts
    total += each * part.slot.total[s * apart + row];
  }
  const bool has_keys = total != 0.0F;
  const float factor = has_keys ? 1.0F / total : 0.0F;
  const float blocked = call.zero_blocked ? 0.0F : std::numeric_limits<float>::quiet_NaN();
  T* const to = static_cast<T*>(static_cast<void*>(part.operands->result)) +
                call.result_offsets[part.plane_of(row)] + part.query_of(row) * call.result_row;
  const float* const sums = part.slot.sums + row * padded(call.value_width);
  for (std::int64_t c = 0; c < call.value_width; c += kLanes) {
    V sum = V{};
    for (std::int64_t s = 0; s < count; ++s) {
      sum += load_vector<V>(sums + s * apart + c) * part.slot.most[s * apart + row];
    }
    T result[kLanes];
    store_floats(result, has_keys ? sum * factor : V{} + blocked);
    std::memcpy(to + c, result,
                static_cast<std::size_t>(std::min(kLanes, call.value_width - c)) * sizeof(T));
  }
}

/// What is done with a part: its keys are gone over, or results are made of it and those behind it,
/// `count` in all.
struct Task {
  Part part;
  bool joins = false;
  std::int64_t count = 1;
};

template <typename Isa, typename T>
NPU_INLINE void run_typed(const Task& task) {
  if (!task.joins) return attend<Isa, T>(task.part);
  for (std::int64_t i = 0; i < task.part.rows; ++i) join_row<Isa, T>(task.part, task.count, i);
}
template <typename Isa>
NPU_INLINE void run_task(const Task& task) {
  if (task.part.call->type == DType::kFloat32) {
    run_typed<Isa, float>(task);
  } else {
    run_typed<Isa, std::uint16_t>(task);
  }
}
void run_anywhere(const Task& task) { run_task<cached::Anywhere>(task); }
NPU_TARGET_AVX2 void run_avx2(const Task& task) { run_task<cached::Avx2>(task); }
NPU_TARGET_AVX512 void run_avx512(const Task& task) { run_task<cached::Avx512>(task); }

/// The keys from the first to the last one that the bias shows to any query; all if it shows none
/// to one.
template <typename T>
Range keys_shown(const CachedAttention& call, const CachedAttention::Operands& operands) {
  const std::int64_t keys = call.ranges.keys;
  const auto is_shown = [&](T bias) { return !(as_float(bias) <= call.hidden_bias); };
  Range shown{keys, 0};
  const T* before = nullptr;
  for (const std::int64_t offset : call.bias_offsets) {
    for (std::int64_t query = 0; query < call.queries; ++query) {
      const T* row = Part::typed<T>(operands.bias) + offset + query * call.bias_strides[0];
      if (row == before) continue;
      before = row;
      const auto at = [&](std::int64_t key) { return row[key * call.bias_strides[1]]; };
      std::int64_t begin = 0;
      while (begin < keys && !is_shown(at(begin))) ++begin;
      if (begin == keys) return {0, keys};
      std::int64_t end = keys;
      while (!is_shown(at(end - 1))) --end;
      shown = {std::min(shown.begin, begin), std::max(shown.end, end)};
    }
  }
  return shown;
}
Range keys_shown(const CachedAttention& call, const CachedAttention::Operands& operands) {
  if (call.hidden_bias == 0.0F) return {0, call.ranges.keys};
  return call.type == DType::kFloat32 ? keys_shown<float>(call, operands)
                                      : keys_shown<std::uint16_t>(call, operands);
}

/// The keys that any of some queries looks at, from first to last.
Range joined_range(const CachedAttention& call, const CachedAttention::Operands& operands,
                   Range shown, std::int64_t first, std::int64_t count) {
  Range all{call.ranges.keys, 0};
  for (std::int64_t i = first; i < first + count; ++i) {
    const Range range = call.ranges.of(i % call.queries, operands.positions, operands.valid);
    if (range.begin >= range.end) continue;
    all = {std::min(all.begin, range.begin), std::max(all.end, range.end)};
  }
  all = {std::max(all.begin, shown.begin), std::min(all.end, shown.end)};
  return all.begin < all.end ? all : Range{};
}

/// The parts of many queries: blocks of rows.
template <typename Body>
void run_blocks(const CachedAttention& call, const CachedAttention::Operands& operands,
                const Parts& parts, Range shown, const Body& body) {
  const std::int64_t blocks = ceil_div(parts.rows, kRowBlock);
  share_pieces(parts.groups * blocks, call.threads, [&](std::int64_t piece, int thread) {
    const std::int64_t first = piece % blocks * kRowBlock;
    const std::int64_t rows = std::min(kRowBlock, parts.rows - first);
    Task task{{&call, &operands, &parts, piece / blocks * parts.shared, first, rows,
               joined_range(call, operands, shown, first, rows),
               Slot(call, parts, operands.scratch + thread * parts.slot_floats)}};
    body(task);
    task.joins = true;
    body(task);
  });
}

/// The parts of few queries: runs of keys, and then rows whose results are joined.
template <typename Body>
void run_runs(const CachedAttention& call, const CachedAttention::Operands& operands,
              const Parts& parts, Range shown, const Body& body) {
  const Range keys = joined_range(call, operands, shown, 0, call.queries);
  const std::int64_t first_run = keys.begin / kRun;
  const std::int64_t runs = ceil_div(keys.end, kRun) - first_run;
  const auto part_of = [&](std::int64_t group, std::int64_t run) {
    return Part{&call,
                &operands,
                &parts,
                group * parts.shared,
                0,
                parts.rows,
                {std::max(keys.begin, (first_run + run) * kRun),
                 std::min(keys.end, (first_run + run + 1) * kRun)},
                Slot(call, parts, operands.scratch + (group * runs + run) * parts.slot_floats)};
  };
  const auto threads_for_work = [&](std::int64_t products) {
    return products >= 8 * kParallelElements ? call.threads : 1;
  };
  const std::int64_t width = call.width + call.value_width;
  share_pieces(parts.groups * runs,
               threads_for_work(parts.groups * parts.rows * (keys.end - keys.begin) * width),
               [&](std::int64_t piece, int) {
                 Task task{part_of(piece / runs, piece % runs)};
                 body(task);
                 task.joins = runs == 1;
                 if (task.joins) body(task);
               });
  if (runs == 1) return;
  share_pieces(parts.groups, threads_for_work(parts.groups * parts.rows * runs * call.value_width),
               [&](std::int64_t group, int) {
                 body(Task{part_of(group, 0), true, runs});
               });
}

}  // namespace

std::size_t CachedAttention::scratch_bytes() const {
  const Parts parts(*this);
  const std::int64_t slots =
      parts.is_few ? parts.groups * (ceil_div(ranges.keys, kRun)) : std::int64_t{threads};
  return static_cast<std::size_t>(slots * parts.slot_floats) * sizeof(float);
}

CachedAttention::Operands CachedAttention::bind(Addresses addresses) const {
  OperandReader in(addresses);
  Operands operands{};
  operands.query = in.next<const std::byte>();
  operands.key = in.next<const std::byte>();
  operands.value = in.next<const std::byte>();
  operands.positions = in.next_if<const std::int64_t>(ranges.has_positions);
  operands.valid = in.next_if<const std::int64_t>(ranges.has_valid);
  operands.sinks = in.next_if<const float>(has_sinks);
  operands.bias = in.next_if<const std::byte>(has_bias);
  operands.result = in.next<std::byte>();
  operands.scratch = in.next<float>();
  return operands;
}

void CachedAttention::run(const Operands& operands) const {
  const auto body = for_isa(isa, run_anywhere, run_avx2, run_avx512);
  const Parts parts(*this);
  const Range shown = keys_shown(*this, operands);
  if (parts.is_few) {
    run_runs(*this, operands, parts, shown, body);
  } else {
    run_blocks(*this, operands, parts, shown, body);
  }
}

std::int64_t CachedAttention::visited_keys(const Operands& operands) const {
  const Parts parts(*this);
  const std::int64_t rows = parts.is_few ? parts.rows : kRowBlock;
  std::int64_t keys = 0;
  for (std::int64_t first = 0; first < parts.rows; first += rows) {
    const Range range = joined_range(*this, operands, keys_shown(*this, operands), first,
                                     std::min(rows, parts.rows - first));
    keys += parts.groups * (range.end - range.begin);
  }
  return keys;
}

Footprint footprint(const CachedAttention& kernel) {
  require(is_float(kernel.type), "a type is no float type");
  require(kernel.key_strides[1] == 1 && kernel.value_strides[1] == 1,
          "keys or values are not dense along their width");
  const Count queries = at_least_one(kernel.queries, "queries");
  const Count keys = at_least_one(kernel.ranges.keys, "keys");
  const Count width = at_least_one(kernel.width, "width");
  const Count values = at_least_one(kernel.value_width, "value_width");
  const std::size_t planes = kernel.query_offsets.size();
  require(planes > 0, "'query_offsets' is empty");
  const Count size = size_of(kernel.type);
  const Count result =
      planes_span(kernel.result_offsets, planes, queries, kernel.result_row, values, 1);
  const Count rows = Count{static_cast<std::int64_t>(planes)} * queries;
  require((rows * values).value() <= result.value(), "results repeat elements");
  FootprintBuilder builder;
  builder
      .read(planes_span(kernel.query_offsets, planes, queries, kernel.query_strides[0], width,
                        kernel.query_strides[1]),
            size)
      .read(planes_span(kernel.key_offsets, planes, keys, kernel.key_strides[0], width, 1), size)
      .read(planes_span(kernel.value_offsets, planes, keys, kernel.value_strides[0], values, 1),
            size);
  require(std::isfinite(kernel.cap), "'cap' is no number");
  kernel.ranges.check(builder, kernel.queries);
  require(kernel.has_sinks == !kernel.sink_offsets.empty(), "'sink_offsets' is for sinks alone");
  if (kernel.has_sinks) builder.read(planes_span(kernel.sink_offsets, planes, 1, 1, 1, 1), kFloat);
  require(kernel.has_bias == !kernel.bias_offsets.empty(), "'bias_offsets' is for a bias alone");
  require(kernel.has_bias || kernel.hidden_bias == 0.0F, "'hidden_bias' is for a bias alone");
  if (kernel.has_bias) {
    builder.read(planes_span(kernel.bias_offsets, planes, queries, kernel.bias_strides[0], keys,
                             kernel.bias_strides[1]),
                 size);
  }
  builder.write(result, size);
  const Count runs = keys.value() / kRun + 1;
  const Count each = (rows * runs + kRowBlock) * (width + values + 4 * kMostLanes);
  return builder.with_scratch(kernel, each * kFloat);
}

}  // namespace npu::onednn
