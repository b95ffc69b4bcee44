// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrence/recurrence.hpp"

#include <cmath>

#include "backends/onednn/kernels/kernel_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {
namespace {

using namespace test;
using Cell = Recurrence::Cell;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// One direction of a layer.
struct LayerWeights {
  std::vector<float> input_weight;
  std::vector<float> state_weight;
  std::vector<float> input_bias;
  std::vector<float> state_bias;
  std::vector<float> packed;
};

/// A matrix whose products with vectors are no larger than they: states stay sane.
std::vector<float> random_matrix(std::int64_t rows, std::int64_t columns, unsigned seed) {
  std::vector<float> result = random_floats(rows * columns, seed);
  for (float& value : result) value /= std::sqrt(static_cast<float>(columns));
  return result;
}

LayerWeights layer_weights(const Recurrence& call, std::int64_t inputs, unsigned seed) {
  const std::int64_t rows = call.gates() * call.hidden;
  LayerWeights all{random_matrix(rows, inputs, seed),
                   random_matrix(rows, call.hidden, seed + 1),
                   random_floats(rows, seed + 2),
                   random_floats(rows, seed + 3),
                   {}};
  all.packed.resize(static_cast<std::size_t>(call.weight_floats(inputs)));
  RecurrenceWeights order;
  order.cell = call.cell;
  order.inputs = inputs;
  order.hidden = call.hidden;
  order.has_biases = true;
  order.run({all.input_weight.data(), all.state_weight.data(), all.input_bias.data(),
             all.state_bias.data(), all.packed.data()});
  return all;
}

/// Sums of one element of one gate.
double gate_sum(const std::vector<float>& weight, const std::vector<float>& bias, std::int64_t row,
                const std::vector<double>& values) {
  double sum = static_cast<double>(bias[static_cast<std::size_t>(row)]);
  for (std::size_t k = 0; k < values.size(); ++k) {
    sum +=
        static_cast<double>(weight[static_cast<std::size_t>(row) * values.size() + k]) * values[k];
  }
  return sum;
}

/// The definition of a cell in float64; `state` and `cell` become the next ones.
void apply_cell(const Recurrence& call, const LayerWeights& weights,
                const std::vector<double>& input, std::vector<double>& state,
                std::vector<double>& cell) {
  const std::vector<double> before = state;
  for (std::int64_t i = 0; i < call.hidden; ++i) {
    double from_input[4];
    double from_state[4];
    for (std::int64_t gate = 0; gate < call.gates(); ++gate) {
      const std::int64_t row = gate * call.hidden + i;
      from_input[gate] = gate_sum(weights.input_weight, weights.input_bias, row, input);
      from_state[gate] = gate_sum(weights.state_weight, weights.state_bias, row, before);
    }
    const auto both = [&](int gate) { return from_input[gate] + from_state[gate]; };
    const auto at = static_cast<std::size_t>(i);
    switch (call.cell) {
      case Cell::kLstm:
        cell[at] = sigmoid(both(1)) * cell[at] + sigmoid(both(0)) * std::tanh(both(2));
        state[at] = sigmoid(both(3)) * std::tanh(cell[at]);
        break;
      case Cell::kGru: {
        const double candidate = std::tanh(from_input[2] + sigmoid(both(0)) * from_state[2]);
        const double update = sigmoid(both(1));
        state[at] = (1.0 - update) * candidate + update * before[at];
        break;
      }
      case Cell::kTanh:
        state[at] = std::tanh(both(0));
        break;
      case Cell::kRelu:
        state[at] = std::max(both(0), 0.0);
        break;
    }
  }
}

struct Network {
  Recurrence call;
  std::vector<LayerWeights> weights;
  std::vector<float> input;
  std::vector<float> state;
  std::vector<float> cells;
};

Network make_network(const Recurrence& call) {
  Network all{call,
              {},
              random_floats(call.steps * call.batch * call.inputs, 1),
              random_floats(call.state_floats(), 2),
              random_floats(call.state_floats(), 3)};
  for (std::int64_t i = 0; i < call.layers * call.directions; ++i) {
    all.weights.push_back(layer_weights(call, call.inputs_of(i / call.directions),
                                        static_cast<unsigned>(10 + 4 * i)));
  }
  return all;
}

std::vector<float> run_network(const Network& all, VectorIsa isa, int threads) {
  Recurrence call = all.call;
  call.isa = isa;
  call.threads = threads;
  const auto bytes = [](const std::vector<float>& floats) {
    return static_cast<std::byte*>(
        static_cast<void*>(const_cast<float*>(floats.data())));  // NOLINT: kernels only read it
  };
  std::vector<float> target(static_cast<std::size_t>(call.target_floats()), -9.0F);
  std::vector<float> scratch(call.scratch_bytes() / sizeof(float), NAN);
  std::vector<std::byte*> addresses{bytes(all.input), bytes(all.state)};
  if (call.cell == Cell::kLstm) addresses.push_back(bytes(all.cells));
  for (const LayerWeights& weights : all.weights) addresses.push_back(bytes(weights.packed));
  addresses.push_back(bytes(target));
  addresses.push_back(bytes(scratch));
  call.run(call.bind(addresses));
  return target;
}

std::vector<double> expected_of(const Network& all) {
  const Recurrence& call = all.call;
  const auto row_of = [&](std::int64_t step, std::int64_t row) {
    return static_cast<std::size_t>(call.batch_first ? row * call.steps + step
                                                     : step * call.batch + row);
  };
  std::vector<std::vector<double>> source(static_cast<std::size_t>(call.steps * call.batch));
  const auto inputs = static_cast<std::size_t>(call.inputs);
  for (std::size_t i = 0; i < source.size(); ++i) {
    for (std::size_t k = 0; k < inputs; ++k) {
      source[i].push_back(static_cast<double>(all.input[i * inputs + k]));
    }
  }
  std::vector<double> states;
  std::vector<double> cells;
  for (std::int64_t layer = 0; layer < call.layers; ++layer) {
    std::vector<std::vector<double>> target(source.size());
    for (std::int64_t direction = 0; direction < call.directions; ++direction) {
      const auto at = static_cast<std::size_t>(layer * call.directions + direction);
      for (std::int64_t row = 0; row < call.batch; ++row) {
        const auto begin = static_cast<std::ptrdiff_t>(states.size());
        std::vector<double> state(all.state.begin() + begin,
                                  all.state.begin() + begin + call.hidden);
        std::vector<double> cell(all.cells.begin() + begin,
                                 all.cells.begin() + begin + call.hidden);
        for (std::int64_t i = 0; i < call.steps; ++i) {
          const std::size_t here = row_of(direction == 1 ? call.steps - 1 - i : i, row);
          apply_cell(call, all.weights[at], source[here], state, cell);
          target[here].insert(target[here].end(), state.begin(), state.end());
        }
        states.insert(states.end(), state.begin(), state.end());
        cells.insert(cells.end(), cell.begin(), cell.end());
      }
    }
    source = target;
  }
  std::vector<double> result;
  for (const auto& row : source) result.insert(result.end(), row.begin(), row.end());
  result.insert(result.end(), states.begin(), states.end());
  if (call.cell == Cell::kLstm) result.insert(result.end(), cells.begin(), cells.end());
  return result;
}

void check_network(const Network& network) {
  const std::vector<double> expected = expected_of(network);
  for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
    const auto alone = run_network(network, isa, 1);
    INFO("cell " << static_cast<int>(network.call.cell) << ", hidden " << network.call.hidden
                 << ", isa " << static_cast<int>(isa));
    CHECK(worst_error(alone, expected) < 2e-5);
    for (const int threads : {2, 5}) CHECK(run_network(network, isa, threads) == alone);
  }
}

}  // namespace

TEST_CASE("Recurrence computes every cell, in any layout and on any number of threads",
          "[onednn][kernels]") {
  for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu}) {
    for (const std::int64_t hidden : {5, 16, 43}) {
      Recurrence call;
      call.cell = cell;
      call.hidden = hidden;
      call.layers = 3;
      call.directions = hidden == 16 ? 1 : 2;
      call.batch = hidden == 16 ? 9 : 2;
      call.steps = 7;
      call.inputs = 11;
      call.batch_first = hidden == 43;
      check_network(make_network(call));
    }
  }
}

TEST_CASE("threads share the steps of a large Recurrence", "[onednn][kernels]") {
  Recurrence call;
  call.hidden = 270;
  call.inputs = 3;
  call.steps = 4;
  check_network(make_network(call));
}

TEST_CASE("Recurrence passes on what is no number, to its own row only", "[onednn][kernels]") {
  for (const Cell cell : {Cell::kLstm, Cell::kGru, Cell::kTanh, Cell::kRelu}) {
    Recurrence call;
    call.cell = cell;
    call.batch = 2;
    call.steps = 3;
    call.inputs = call.hidden = 20;
    Network network = make_network(call);
    network.input[20] = NAN;  // of step 0, row 1
    for (const VectorIsa isa : instruction_sets(VectorIsa::kAny)) {
      const auto result = run_network(network, isa, 1);
      for (std::size_t i = 0; i < result.size(); ++i) {
        CHECK(std::isnan(result[i]) == (i / 20 % 2 == 1));
      }
    }
  }
}

}  // namespace npu::onednn
