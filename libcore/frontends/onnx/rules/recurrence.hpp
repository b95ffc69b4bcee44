// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "op.hpp"

namespace npu::onnx {

/// A function of a gate, with its numbers.
struct Activation {
  std::string name;
  std::optional<double> alpha;
  std::optional<double> beta;
};

/// What an LSTM, GRU or RNN says about itself.
struct Recurrence {
  std::string kind;
  std::int64_t gates = 1;
  std::vector<std::int64_t> order;  ///< ONNX's block of each of PyTorch's gates
  std::int64_t directions = 1;
  bool is_reverse = false;
  bool is_batch_first = false;
  std::int64_t hidden = 0;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::vector<Activation> activations;  ///< of one direction after the other
  double clip = 0;                      ///< 0: none
  bool couples_forget = false;          ///< LSTM: the forget gate is 1 - the input gate
  bool resets_before = false;           ///< GRU: the reset gate comes before the product
  Ints lengths;                         ///< of each sequence; empty: all have every step

  bool is_backward(std::int64_t direction) const { return is_reverse || direction == 1; }
};

/// The state in front of the first step, [directions, batch, hidden].
Value* initial_state(Op& op, const Recurrence& net, std::size_t index, DType dtype);

/// Sets the results of a net whose cells ATen does not have, step by step.
void import_cells(Op& op, const Recurrence& net);

}  // namespace npu::onnx
