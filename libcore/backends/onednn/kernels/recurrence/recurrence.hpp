// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/base/fields.hpp"
#include "kernels/base/footprint.hpp"
#include "kernels/base/operands.hpp"
#include "kernels/base/simd.hpp"

namespace npu::onednn {

/// A recurrent network of several layers, each in one or two directions, over all steps of a batch:
/// LSTM, GRU (with the reset gate behind the product, as PyTorch has it), or a layer of tanh or
/// ReLU. float32; the sums of an element do not depend on the number of threads.
struct Recurrence {
  static constexpr std::string_view kName = "recurrence";
  static constexpr std::int64_t kLanes = 16;
  enum class Cell : std::uint8_t { kLstm, kGru, kTanh, kRelu };
  Cell cell = Cell::kLstm;
  std::int64_t layers = 1;
  std::int64_t directions = 1;  ///< 2: the second one runs from the last step to the first
  std::int64_t batch = 1;
  std::int64_t steps = 1;
  std::int64_t inputs = 1;  ///< elements of an input of the first layer
  std::int64_t hidden = 1;  ///< of a state
  bool batch_first = false;
  int threads = 1;
  VectorIsa isa = VectorIsa::kAny;

  std::int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
  /// Blocks of 16 elements of a state.
  std::int64_t blocks() const { return ceil_div(hidden, kLanes); }
  std::int64_t inputs_of(std::int64_t layer) const {
    return layer == 0 ? inputs : directions * hidden;
  }
  /// Floats that RecurrenceWeights makes for one direction of a layer with that many inputs.
  std::int64_t weight_floats(std::int64_t layer_inputs) const {
    return blocks() * kLanes *
           (gates() * (layer_inputs + hidden + 1) + (cell == Cell::kGru ? 1 : 0));
  }
  std::int64_t output_floats() const { return steps * batch * directions * hidden; }
  std::int64_t state_floats() const { return layers * directions * batch * hidden; }
  /// Outputs of the last layer, last states of all layers and, for an LSTM, last cells.
  std::int64_t target_floats() const {
    return output_floats() + state_floats() * (cell == Cell::kLstm ? 2 : 1);
  }
  std::size_t scratch_bytes() const;

  struct Operands {
    const float* input;  ///< [steps, batch, inputs], or with batch_first [batch, steps, inputs]
    const float* state;  ///< [layers * directions, batch, hidden]
    const float* cells;  ///< the same; null but for an LSTM
    std::span<std::byte* const> weights;  ///< of each direction of each layer
    float* target;                        ///< outputs lie like the input
    float* scratch;                       ///< of scratch_bytes()
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

/// The weights of one direction of a layer as a Recurrence reads them: for each block of 16
/// elements of the state those of its gates, an input's after another; the same for the state; and
/// the biases.
struct RecurrenceWeights {
  static constexpr std::string_view kName = "recurrence-weights";
  Recurrence::Cell cell = Recurrence::Cell::kLstm;
  std::int64_t inputs = 1;
  std::int64_t hidden = 1;
  bool has_biases = false;

  /// A network of that one layer.
  Recurrence layer() const {
    Recurrence result;
    result.cell = cell;
    result.inputs = inputs;
    result.hidden = hidden;
    return result;
  }

  struct Operands {
    const float* input_weight;  ///< [gates * hidden, inputs]
    const float* state_weight;  ///< [gates * hidden, hidden]
    const float* input_bias;    ///< [gates * hidden]; null without, as the next
    const float* state_bias;
    float* target;
  };
  Operands bind(Addresses addresses) const;
  void run(const Operands& operands) const;
};

template <>
inline constexpr int kEnumerators<Recurrence::Cell> = 4;

NPU_FIELDS(Recurrence, cell, layers, directions, batch, steps, inputs, hidden, batch_first, isa);
NPU_FIELDS(RecurrenceWeights, cell, inputs, hidden, has_biases);
Footprint footprint(const Recurrence& kernel);
Footprint footprint(const RecurrenceWeights& kernel);

}  // namespace npu::onednn
