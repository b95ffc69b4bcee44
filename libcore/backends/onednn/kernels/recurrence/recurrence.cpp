// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. What the gates get from the inputs of all steps is one product in front of the
// steps. A step multiplies the state with weights that are read in one run: for 16 elements of the
// new state at a time the sums of all gates stay in registers, where the cell's functions are
// applied to them. Sums run over k in its order, whatever the number of rows that share a weight.
//
// Directions and rows of the batch are independent and go to different threads. Where there are
// fewer of them than threads and the weights of a step are worth it, the threads share a step and
// wait for each other behind it.
// O(steps * batch * directions * gates * hidden * (inputs + hidden) / 16) multiply-adds of vectors.
#include "kernels/recurrence/recurrence.hpp"

#include <algorithm>

#include "kernels/base/exponentials.hpp"
#include "kernels/base/footprint_builder.hpp"
#include "kernels/base/share_work.hpp"

namespace npu::onednn {

namespace {

using Cell = Recurrence::Cell;

constexpr std::int64_t kLanes = Recurrence::kLanes;

/// The products of inputs [first, last) with the weights of one block.
struct ProjectionTask {
  const float* source;
  std::int64_t inner;
  const float* weight;  ///< [inner, gates, 16]
  const float* bias;    ///< [gates, 16]
  float* target;
  std::int64_t target_row;
  std::int64_t first;
  std::int64_t last;
};

/// One step of some rows of the batch in one direction, for blocks [first, last) of the state.
struct StepTask {
  std::int64_t hidden;
  std::int64_t rows;
  const float* weight;      ///< [blocks, hidden, gates, 16]
  const float* state_bias;  ///< [blocks, 16], of a GRU
  const float* gates;       ///< [blocks, gates, 16] of a row
  std::int64_t gates_row;
  const float* before;
  std::int64_t before_row;
  float* cells;  ///< [blocks, 16] of a row, of an LSTM
  std::int64_t cells_row;
  float* after;
  std::int64_t after_row;
  std::int64_t first;
  std::int64_t last;
};

template <typename V>
constexpr std::int64_t kVector = sizeof(V) / sizeof(float);

/// Rows that share a weight: their sums fit into the registers.
template <typename V, int kGates>
constexpr int kMostRows = std::min((sizeof(V) == 64 ? 24 : 12) / kGates, 6);

template <typename V>
[[gnu::always_inline]] inline V load_part(const float* from, std::int64_t count) {
  if (count >= kVector<V>) return load_vector<V>(from);
  float values[kVector<V>]{};
  std::copy_n(from, count, values);
  return load_vector<V>(values);
}

template <typename V>
[[gnu::always_inline]] inline void store_part(float* to, V value, std::int64_t count) {
  if (count >= kVector<V>) return store_vector(to, value);
  float values[kVector<V>];
  store_vector(values, value);
  std::copy_n(values, count, to);
}

/// Adds to sums[block][row][gate] the products of `inner` elements of the rows.
template <typename V, int kGates, int kRows, int kBlocks>
[[gnu::always_inline]] inline void multiply_gates(const float* source, std::int64_t source_row,
                                                  std::int64_t inner, const float* weight,
                                                  std::int64_t block,
                                                  V (&sums)[kBlocks][kRows][kGates]) {
  for (std::int64_t k = 0; k < inner; ++k, ++source, weight += kGates * kLanes) {
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 4
      for (int gate = 0; gate < kGates; ++gate) {
        const V factor = load_vector<V>(weight + b * block + gate * kLanes);
#pragma GCC unroll 6
        for (int row = 0; row < kRows; ++row) {
          sums[b][row][gate] += source[row * source_row] * factor;
        }
      }
    }
  }
}

template <typename V, int kGates, int kRows>
[[gnu::always_inline]] inline void project_rows(const ProjectionTask& task, std::int64_t first) {
  for (std::int64_t lane = 0; lane < kLanes; lane += kVector<V>) {
    V sums[1][kRows][kGates];
#pragma GCC unroll 4
    for (int gate = 0; gate < kGates; ++gate) {
      const V bias = load_vector<V>(task.bias + gate * kLanes + lane);
#pragma GCC unroll 6
      for (int row = 0; row < kRows; ++row) sums[0][row][gate] = bias;
    }
    multiply_gates<V, kGates, kRows, 1>(task.source + first * task.inner, task.inner, task.inner,
                                        task.weight + lane, 0, sums);
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
      for (int gate = 0; gate < kGates; ++gate) {
        store_vector(task.target + (first + row) * task.target_row + gate * kLanes + lane,
                     sums[0][row][gate]);
      }
    }
  }
}

template <typename V, int kGates>
[[gnu::always_inline]] inline void project(const ProjectionTask& task) {
  constexpr int kRows = kMostRows<V, kGates>;
  std::int64_t row = task.first;
  for (; row + kRows <= task.last; row += kRows) project_rows<V, kGates, kRows>(task, row);
  for (; row < task.last; ++row) project_rows<V, kGates, 1>(task, row);
}

/// The new state of one vector of one row, from the sums of its gates.
template <typename V, Cell kCell, int kGates>
[[gnu::always_inline]] inline void finish_cell(const StepTask& task, std::int64_t row,
                                               std::int64_t element, const V (&sums)[kGates]) {
  constexpr bool kAvx512 = sizeof(V) == 64;
  const std::int64_t count = task.hidden - element;
  if (count <= 0) return;
  V state{};
  if constexpr (kCell == Cell::kLstm) {
    float* cell = task.cells + row * task.cells_row + element;
    const V input = sigmoid_vector<kAvx512>(sums[0]);
    const V forget = sigmoid_vector<kAvx512>(sums[1]);
    const V candidate = tanh_vector<kAvx512>(sums[2]);
    const V output = sigmoid_vector<kAvx512>(sums[3]);
    const V kept = forget * load_vector<V>(cell) + input * candidate;
    store_vector(cell, kept);
    state = output * tanh_vector<kAvx512>(kept);
  } else if constexpr (kCell == Cell::kGru) {
    const std::int64_t lane = element % kLanes;
    const float* gates = task.gates + row * task.gates_row + (element - lane) * kGates + lane;
    const V reset = sigmoid_vector<kAvx512>(sums[0]);
    const V update = sigmoid_vector<kAvx512>(sums[1]);
    const V candidate = tanh_vector<kAvx512>(load_vector<V>(gates + 2 * kLanes) + reset * sums[2]);
    const V before = load_part<V>(task.before + row * task.before_row + element, count);
    state = (before - candidate) * update + candidate;
  } else if constexpr (kCell == Cell::kTanh) {
    state = tanh_vector<kAvx512>(sums[0]);
  } else {
    state = sums[0] < 0.0F ? V{} : sums[0];
  }
  store_part(task.after + row * task.after_row + element, state, count);
}

/// Vectors of the state that are computed together: of blocks side by side, or of one block.
enum class Together : std::uint8_t { kBlocks, kOfOne };

/// kBlocks blocks, or parts, of the state from `block` on for kRows rows from `row` on.
template <typename V, Cell kCell, int kGates, int kRows, int kBlocks,
          Together kTogether = Together::kBlocks>
[[gnu::always_inline]] inline void step_rows(const StepTask& task, std::int64_t row,
                                             std::int64_t block) {
  constexpr bool kOfOne = kTogether == Together::kOfOne;
  constexpr std::int64_t kLanesApart = kOfOne ? kVector<V> : 0;
  constexpr std::int64_t kBlocksApart = kOfOne ? 0 : 1;
  const std::int64_t block_floats = task.hidden * kGates * kLanes;
  constexpr std::int64_t kStep = kVector<V> + (kBlocks - 1) * kLanesApart;
  for (std::int64_t first = 0; first < kLanes; first += kStep) {
    const auto element = [&](int b) __attribute__((always_inline)) {
      return (block + b * kBlocksApart) * kLanes + first + b * kLanesApart;
    };
    V sums[kBlocks][kRows][kGates];
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 6
      for (int i = 0; i < kRows; ++i) {
        const float* gates = task.gates + (row + i) * task.gates_row +
                             (block + b * kBlocksApart) * kGates * kLanes + first + b * kLanesApart;
#pragma GCC unroll 4
        for (int gate = 0; gate < kGates; ++gate) {
          const bool is_candidate = kCell == Cell::kGru && gate == 2;
          sums[b][i][gate] =
              load_vector<V>(is_candidate ? task.state_bias + element(b) : gates + gate * kLanes);
        }
      }
    }
    multiply_gates<V, kGates, kRows, kBlocks>(
        task.before + row * task.before_row, task.before_row, task.hidden,
        task.weight + block * block_floats + first, kOfOne ? kLanesApart : block_floats, sums);
#pragma GCC unroll 2
    for (int b = 0; b < kBlocks; ++b) {
#pragma GCC unroll 6
      for (int i = 0; i < kRows; ++i) {
        finish_cell<V, kCell, kGates>(task, row + i, element(b), sums[b][i]);
      }
    }
  }
}

template <typename V, Cell kCell, int kGates>
[[gnu::always_inline]] inline void step(const StepTask& task) {
  constexpr int kRows = kMostRows<V, kGates>;
  std::int64_t row = 0;
  for (; row + kRows <= task.rows; row += kRows) {
    for (std::int64_t block = task.first; block < task.last; ++block) {
      step_rows<V, kCell, kGates, kRows, 1>(task, row, block);
    }
  }
  // Two vectors at a time: the sums of one row alone would wait for each other. Short vectors are
  // two of one block, which read whole lines of its weights.
  for (; row < task.rows; ++row) {
    std::int64_t block = task.first;
    if constexpr (2 * kVector<V> <= kLanes) {
      for (; block < task.last; ++block) {
        step_rows<V, kCell, kGates, 1, 2, Together::kOfOne>(task, row, block);
      }
    }
    for (; block + 2 <= task.last; block += 2) {
      step_rows<V, kCell, kGates, 1, 2>(task, row, block);
    }
    if (block < task.last) step_rows<V, kCell, kGates, 1, 1>(task, row, block);
  }
}

template <typename V>
[[gnu::always_inline]] inline void project_any(const ProjectionTask& task, Cell cell) {
  if (cell == Cell::kLstm) return project<V, 4>(task);
  if (cell == Cell::kGru) return project<V, 3>(task);
  return project<V, 1>(task);
}

template <typename V>
[[gnu::always_inline]] inline void step_any(const StepTask& task, Cell cell) {
  switch (cell) {
    case Cell::kLstm:
      return step<V, Cell::kLstm, 4>(task);
    case Cell::kGru:
      return step<V, Cell::kGru, 3>(task);
    case Cell::kTanh:
      return step<V, Cell::kTanh, 1>(task);
    case Cell::kRelu:
      return step<V, Cell::kRelu, 1>(task);
  }
}

void project_anywhere(const ProjectionTask& task, Cell cell) {
  project_any<NarrowFloats>(task, cell);
}
void step_anywhere(const StepTask& task, Cell cell) { step_any<NarrowFloats>(task, cell); }
NPU_TARGET_AVX2 void project_avx2(const ProjectionTask& task, Cell cell) {
  project_any<NarrowFloats>(task, cell);
}
NPU_TARGET_AVX2 void step_avx2(const StepTask& task, Cell cell) {
  step_any<NarrowFloats>(task, cell);
}
NPU_TARGET_AVX512 void project_avx512(const ProjectionTask& task, Cell cell) {
  project_any<Float16>(task, cell);
}
NPU_TARGET_AVX512 void step_avx512(const StepTask& task, Cell cell) {
  step_any<Float16>(task, cell);
}

/// The parts of the scratch memory, in floats.
struct RecurrenceScratch {
  explicit RecurrenceScratch(const Recurrence& call)
      : row(call.directions * call.blocks() * call.gates() * kLanes),
        between(call.steps * call.batch * row),
        cells(between + std::min<std::int64_t>(2, call.layers - 1) * call.output_floats()),
        all(cells + call.directions * call.batch * call.blocks() * kLanes) {}
  std::int64_t row;      ///< what all gates of a step of a row get from its input
  std::int64_t between;  ///< outputs of layers in front of the last one
  std::int64_t cells;    ///< [directions, batch, blocks, 16]
  std::int64_t all;
};

/// A layer at work.
class Layer {
 public:
  Layer(const Recurrence& call, const Recurrence::Operands& operands, std::int64_t index)
      : call_(call),
        operands_(operands),
        index_(index),
        inner_(call.inputs_of(index)),
        space_(call),
        source_(index == 0 ? operands.input : between(index - 1)),
        target_(index + 1 == call.layers ? operands.target : between(index)),
        team_(wanted_threads()) {}

  void run() {
    start_cells();
    project_all();
    run_steps();
    keep_states();
  }

 private:
  /// Of one direction: a run of rows of the batch.
  struct Rows {
    std::int64_t direction;
    std::int64_t first;
    std::int64_t last;
  };

  /// A start of threads costs as much as some 10^5 multiply-adds.
  int wanted_threads() const {
    constexpr double kMinWork = 2e5;
    const double work = static_cast<double>(call_.steps * call_.batch * space_.row) *
                        static_cast<double>(inner_ + call_.hidden);
    return work < kMinWork ? 1 : call_.threads;
  }
  float* between(std::int64_t layer) const {
    return operands_.scratch + space_.between + layer % 2 * call_.output_floats();
  }
  const float* weights(std::int64_t direction) const {
    const auto at = static_cast<std::size_t>(index_ * call_.directions + direction);
    return static_cast<const float*>(static_cast<const void*>(operands_.weights[at]));
  }
  std::int64_t block_floats() const { return call_.gates() * kLanes; }
  const float* state_weights(std::int64_t direction) const {
    return weights(direction) + call_.blocks() * block_floats() * inner_;
  }
  const float* biases(std::int64_t direction) const {
    return state_weights(direction) + call_.blocks() * block_floats() * call_.hidden;
  }
  /// Where step and row of the batch lie among the rows of inputs and outputs.
  std::int64_t row_of(std::int64_t step, std::int64_t row) const {
    return call_.batch_first ? row * call_.steps + step : step * call_.batch + row;
  }
  std::int64_t row_stride() const { return call_.batch_first ? call_.steps : 1; }
  std::int64_t padded() const { return call_.blocks() * kLanes; }
  std::int64_t state_at(std::int64_t direction, std::int64_t row) const {
    return ((index_ * call_.directions + direction) * call_.batch + row) * call_.hidden;
  }

  void start_cells() {
    if (call_.cell != Cell::kLstm) return;
    float* cells = operands_.scratch + space_.cells;
    std::fill_n(cells, call_.directions * call_.batch * padded(), 0.0F);
    for (std::int64_t direction = 0; direction < call_.directions; ++direction) {
      for (std::int64_t row = 0; row < call_.batch; ++row) {
        std::copy_n(operands_.cells + state_at(direction, row), call_.hidden,
                    cells + (direction * call_.batch + row) * padded());
      }
    }
  }

  /// What the gates get from the inputs of all steps.
  void project_all() {
    const auto body = for_isa(call_.isa, project_anywhere, project_avx2, project_avx512);
    const std::int64_t rows = call_.steps * call_.batch;
    const std::int64_t pieces = call_.directions * call_.blocks();
    const std::int64_t chunks =
        std::clamp<std::int64_t>(ceil_div(std::int64_t{4} * team_, pieces), 1, ceil_div(rows, 12));
    share_pieces(pieces * chunks, team_, [&](std::int64_t piece, int) {
      const std::int64_t block = piece / chunks;
      const std::int64_t chunk = piece % chunks;
      const std::int64_t direction = block / call_.blocks();
      const std::int64_t own = block % call_.blocks();
      body({source_, inner_, weights(direction) + own * block_floats() * inner_,
            biases(direction) + own * block_floats(), operands_.scratch + block * block_floats(),
            space_.row, rows * chunk / chunks, rows * (chunk + 1) / chunks},
           call_.cell);
    });
  }

  void run_steps() {
    constexpr std::int64_t kSharedFloats = 1 << 18;  // of weights: more than the L2 of one core
    const std::int64_t parts =
        std::min(call_.batch, ceil_div(std::int64_t{team_}, call_.directions));
    const std::int64_t tasks = call_.directions * parts;
    const auto rows_of = [&](std::int64_t task) {
      const std::int64_t part = task % parts;
      return Rows{task / parts, call_.batch * part / parts, call_.batch * (part + 1) / parts};
    };
    const bool shares_steps =
        tasks < team_ && call_.blocks() * block_floats() * call_.hidden >= kSharedFloats;
    if (!shares_steps) {
      share_pieces(tasks, team_, [&](std::int64_t task, int) {
        for (std::int64_t at = 0; at < call_.steps; ++at) {
          run_step(rows_of(task), at, 0, call_.blocks());
        }
      });
      return;
    }
    // Each thread begins with the same blocks in every step: their weights are in its cache.
    const std::int64_t pieces = std::min(call_.blocks(), std::int64_t{4} * team_);
    for (std::int64_t at = 0; at < call_.steps; ++at) {
      share_pieces(pieces, team_, [&](std::int64_t piece, int) {
        const std::int64_t first = call_.blocks() * piece / pieces;
        const std::int64_t last = call_.blocks() * (piece + 1) / pieces;
        for (std::int64_t task = 0; task < tasks; ++task) run_step(rows_of(task), at, first, last);
      });
    }
  }

  /// `at` counts steps in the direction's order.
  void run_step(const Rows& rows, std::int64_t at, std::int64_t first, std::int64_t last) {
    const auto body = for_isa(call_.isa, step_anywhere, step_avx2, step_avx512);
    const bool reverse = rows.direction == 1;
    const std::int64_t here = reverse ? call_.steps - 1 - at : at;
    const std::int64_t width = call_.directions * call_.hidden;
    const std::int64_t column = rows.direction * call_.hidden;
    StepTask task{};
    task.hidden = call_.hidden;
    task.rows = rows.last - rows.first;
    task.weight = state_weights(rows.direction);
    task.state_bias = biases(rows.direction) + call_.blocks() * block_floats();
    task.gates_row = row_stride() * space_.row;
    task.gates = operands_.scratch + row_of(here, rows.first) * space_.row +
                 rows.direction * call_.blocks() * block_floats();
    task.before_row = at == 0 ? call_.hidden : row_stride() * width;
    task.before =
        at == 0 ? operands_.state + state_at(rows.direction, rows.first)
                : target_ + row_of(reverse ? here + 1 : here - 1, rows.first) * width + column;
    task.cells_row = padded();
    task.cells =
        operands_.scratch + space_.cells + (rows.direction * call_.batch + rows.first) * padded();
    task.after_row = row_stride() * width;
    task.after = target_ + row_of(here, rows.first) * width + column;
    task.first = first;
    task.last = last;
    body(task, call_.cell);
  }

  void keep_states() {
    float* states = operands_.target + call_.output_floats();
    const float* cells = operands_.scratch + space_.cells;
    const std::int64_t width = call_.directions * call_.hidden;
    for (std::int64_t direction = 0; direction < call_.directions; ++direction) {
      const std::int64_t last = direction == 1 ? 0 : call_.steps - 1;
      for (std::int64_t row = 0; row < call_.batch; ++row) {
        const std::int64_t at = state_at(direction, row);
        std::copy_n(target_ + row_of(last, row) * width + direction * call_.hidden, call_.hidden,
                    states + at);
        if (call_.cell != Cell::kLstm) continue;
        std::copy_n(cells + (direction * call_.batch + row) * padded(), call_.hidden,
                    states + call_.state_floats() + at);
      }
    }
  }

  const Recurrence& call_;
  const Recurrence::Operands& operands_;
  std::int64_t index_;
  std::int64_t inner_;
  RecurrenceScratch space_;
  const float* source_;
  float* target_;
  int team_;
};

}  // namespace

std::size_t Recurrence::scratch_bytes() const {
  return static_cast<std::size_t>(RecurrenceScratch(*this).all) * sizeof(float);
}

Recurrence::Operands Recurrence::bind(Addresses addresses) const {
  OperandReader in(addresses);
  const auto* input = in.next<const float>();
  const auto* state = in.next<const float>();
  const auto* cells = in.next_if<const float>(cell == Cell::kLstm);
  const std::size_t first = cells == nullptr ? 2 : 3;
  const std::size_t count = addresses.size() - first - 2;
  const auto floats = [&](std::size_t i) {
    return static_cast<float*>(static_cast<void*>(addresses[i]));
  };
  return {input,
          state,
          cells,
          addresses.subspan(first, count),
          floats(first + count),
          floats(first + count + 1)};
}

void Recurrence::run(const Operands& operands) const {
  for (std::int64_t layer = 0; layer < layers; ++layer) Layer(*this, operands, layer).run();
}

RecurrenceWeights::Operands RecurrenceWeights::bind(Addresses addresses) const {
  OperandReader in(addresses);
  return {in.next<const float>(), in.next<const float>(), in.next_if<const float>(has_biases),
          in.next_if<const float>(has_biases), in.next<float>()};
}

void RecurrenceWeights::run(const Operands& operands) const {
  const Recurrence network = layer();
  const std::int64_t gates = network.gates();
  const std::int64_t blocks = network.blocks();
  float* to = operands.target;
  // Elements behind the state have weights of 0, which are multiplied and not stored.
  const auto add = [&](const float* from, std::int64_t inner) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      for (std::int64_t k = 0; k < inner; ++k) {
        for (std::int64_t i = 0; i < gates * kLanes; ++i) {
          const std::int64_t element = block * kLanes + i % kLanes;
          *to++ = element < hidden ? from[(i / kLanes * hidden + element) * inner + k] : 0.0F;
        }
      }
    }
  };
  add(operands.input_weight, inputs);
  add(operands.state_weight, hidden);
  const auto bias = [&](const float* from, std::int64_t gate, std::int64_t element) {
    return from == nullptr || element >= hidden ? 0.0F : from[gate * hidden + element];
  };
  for (std::int64_t i = 0; i < blocks * gates * kLanes; ++i) {
    const std::int64_t gate = i / kLanes % gates;
    const std::int64_t element = i / (gates * kLanes) * kLanes + i % kLanes;
    *to++ = bias(operands.input_bias, gate, element) +
            (cell == Cell::kGru && gate == 2 ? 0.0F : bias(operands.state_bias, gate, element));
  }
  if (cell != Cell::kGru) return;
  for (std::int64_t i = 0; i < blocks * kLanes; ++i) *to++ = bias(operands.state_bias, 2, i);
}

namespace {

constexpr std::int64_t kMostLayers = 1024;

/// Checks that weight_floats() does not overflow.
void check_weights(const Recurrence& kernel, std::int64_t inputs) {
  static_cast<void>((at_least_one(kernel.hidden, "hidden") + Count{16}) * 4 *
                    (at_least_one(inputs, "inputs") + kernel.hidden + Count{2}) * kFloat);
}

}  // namespace

Footprint footprint(const Recurrence& kernel) {
  require(kernel.layers >= 1 && kernel.layers <= kMostLayers, "'layers' is not in 1..1024");
  require(kernel.directions == 1 || kernel.directions == 2, "'directions' is not 1 or 2");
  check_weights(kernel, kernel.inputs);
  check_weights(kernel, kernel.directions * kernel.hidden);
  const Count rows = at_least_one(kernel.steps, "steps") * at_least_one(kernel.batch, "batch");
  const Count states = Count{kernel.layers} * kernel.directions * kernel.batch * kernel.hidden;
  // Gates of all steps, two outputs and cells.
  const Count scratch = (rows + kernel.batch) * kernel.directions * (Count{kernel.hidden} + 16) * 8;
  FootprintBuilder builder;
  builder.read(rows * kernel.inputs)
      .read(states)
      .read_if(kernel.cell == Recurrence::Cell::kLstm, states);
  for (std::int64_t i = 0; i < kernel.layers * kernel.directions; ++i) {
    builder.read(kernel.weight_floats(kernel.inputs_of(i / kernel.directions)));
  }
  builder.write(kernel.target_floats());
  return builder.with_scratch(kernel, scratch * kFloat);
}

Footprint footprint(const RecurrenceWeights& kernel) {
  const Recurrence layer = kernel.layer();
  check_weights(layer, kernel.inputs);
  const Count rows = Count{layer.gates()} * kernel.hidden;
  return FootprintBuilder()
      .read(rows * kernel.inputs)
      .read(rows * kernel.hidden)
      .read_if(kernel.has_biases, rows)
      .read_if(kernel.has_biases, rows)
      .write(layer.weight_floats(kernel.inputs))
      .done();
}

}  // namespace npu::onednn
