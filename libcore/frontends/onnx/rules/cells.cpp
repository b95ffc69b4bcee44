// SPDX-License-Identifier: Apache-2.0
// Recurrent cells step by step, for what ATen's nets do not have: peepholes, clipping, other
// activations, coupled gates, a reset in front of the product, and sequences of different lengths.
// The products with the input are one for all steps. O(steps) nodes.
#include <algorithm>
#include <map>
#include <utility>

#include "rules/recurrence.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

constexpr std::int64_t kMostSteps = 512;

// The rows [first, first + count) of one direction's weights or biases.
Value* rows_of(Op& op, Value* weights, std::int64_t direction, std::int64_t first,
               std::int64_t count) {
  Value* own = op.slice(weights, 0, direction, direction + 1);
  own = op.view(own, Shape(own->shape.begin() + 1, own->shape.end()));
  return op.slice(own, 0, first, first + count);
}

struct State {
  Value* hidden = nullptr;
  Value* cell = nullptr;  ///< LSTM only
};

/// The steps of one direction.
class Cells {
 public:
  Cells(Op& op, const Recurrence& net, std::int64_t direction)
      : op_(op), net_(net), direction_(direction) {}

  /// x is [steps, batch, features], in the order in which the steps are taken. Fills `states` with
  /// the hidden state of every step, [1, batch, hidden] each, and returns the last state.
  State run(Value* x, State state, std::vector<Value*>& states) {
    Value* inputs = linear(x, 1, 0, net_.gates, 0);
    for (std::int64_t t = 0; t < net_.steps; ++t) {
      Value* step =
          op_.view(op_.slice(inputs, 0, t, t + 1), {net_.batch, net_.gates * net_.hidden});
      State next = net_.kind == "LSTM"  ? lstm(step, state)
                   : net_.kind == "GRU" ? gru(step, state)
                                        : State{rnn(step, state), nullptr};
      Value* shown = next.hidden;
      if (Value* active = active_at(t)) {
        Value* zero = op_.constant_value(Tensor(x->dtype, {}));
        shown = choose(active, next.hidden, zero);
        next.hidden = choose(active, next.hidden, state.hidden);
        if (next.cell != nullptr) next.cell = choose(active, next.cell, state.cell);
      }
      state = next;
      states.push_back(op_.view(shown, {1, net_.batch, net_.hidden}));
    }
    return state;
  }

 private:
  Value* choose(Value* active, Value* a, Value* b) {
    return op_.emit("aten.where.self", {active, a, b}, Json::object(), a->dtype, a->shape);
  }

  // Which sequences have step t, [batch, 1]; null: all.
  Value* active_at(std::int64_t t) {
    const Ints& lengths = net_.lengths;
    if (std::all_of(lengths.begin(), lengths.end(), [&](auto l) { return l > t; })) return nullptr;
    Tensor mask(DType::kBool, {net_.batch, 1});
    for (std::size_t b = 0; b < lengths.size(); ++b) {
      mask.as_mutable<std::uint8_t>()[b] = lengths[b] > t ? 1 : 0;
    }
    return op_.constant_value(std::move(mask));
  }

  // The blocks [first, first + count) of an operand, made once for all steps.
  Value* rows(std::size_t operand, std::int64_t first, std::int64_t count) {
    Value*& found = rows_[{operand, first}];
    if (found == nullptr) {
      found = rows_of(op_, op_.in(operand), direction_, first * net_.hidden, count * net_.hidden);
    }
    return found;
  }

  // The products with the blocks [first, first + count) of operand `weights`, plus their bias.
  Value* linear(Value* a, std::size_t weights, std::int64_t first, std::int64_t count,
                std::int64_t bias_block) {
    std::vector<Value*> operands{a, rows(weights, first, count)};
    if (op_.has_input(3)) operands.push_back(rows(3, bias_block + first, count));
    Shape shape = a->shape;
    shape.back() = count * net_.hidden;
    return op_.emit("aten.linear.default", operands, Json::object(), a->dtype, shape);
  }

  Value* block(Value* gates, std::int64_t gate) {
    return op_.slice(gates, 1, gate * net_.hidden, (gate + 1) * net_.hidden);
  }

  Value* activate(std::size_t number, Value* x) {
    if (net_.clip > 0) {
      x = op_.emit_like("aten.clamp.default", {x}, Json{{"min", -net_.clip}, {"max", net_.clip}});
    }
    return applied(number, x);
  }
  Value* applied(std::size_t number, Value* x) {
    const std::size_t each = net_.activations.size() / static_cast<std::size_t>(net_.directions);
    const Activation& function =
        net_.activations[static_cast<std::size_t>(direction_) * each + number];
    return activated(op_, function.name, x, function.alpha, function.beta);
  }

  // x plus the peephole of `gate` (input, output, forget) times the cell.
  Value* with_peephole(Value* x, std::int64_t gate, Value* cell) {
    if (!op_.has_input(7)) return x;
    return op_.binary("add", x, op_.binary("mul", cell, rows(7, gate, 1)));
  }

  State lstm(Value* step, const State& state) {
    Value* gates = op_.binary("add", step, linear(state.hidden, 2, 0, 4, 4));
    Value* input = activate(0, with_peephole(block(gates, 0), 0, state.cell));
    Value* forget = net_.couples_forget
                        ? op_.emit_like("aten.rsub.Scalar", {input}, Json{{"other", 1}})
                        : activate(0, with_peephole(block(gates, 2), 2, state.cell));
    Value* candidate = activate(1, block(gates, 3));
    Value* cell = op_.binary("add", op_.binary("mul", forget, state.cell),
                             op_.binary("mul", input, candidate));
    Value* output = activate(0, with_peephole(block(gates, 1), 1, cell));
    return {op_.binary("mul", output, applied(2, cell)), cell};
  }

  State gru(Value* step, const State& state) {
    Value* hidden = state.hidden;
    Value* gates =
        op_.binary("add", op_.slice(step, 1, 0, 2 * net_.hidden), linear(hidden, 2, 0, 2, 3));
    Value* update = activate(0, block(gates, 0));
    Value* reset = activate(0, block(gates, 1));
    Value* inner = net_.resets_before ? linear(op_.binary("mul", reset, hidden), 2, 2, 1, 3)
                                      : op_.binary("mul", reset, linear(hidden, 2, 2, 1, 3));
    Value* next = activate(1, op_.binary("add", block(step, 2), inner));
    return {op_.binary("add", next, op_.binary("mul", update, op_.binary("sub", hidden, next))),
            nullptr};
  }

  Value* rnn(Value* step, const State& state) {
    return activate(0, op_.binary("add", step, linear(state.hidden, 2, 0, 1, 1)));
  }

  Op& op_;
  const Recurrence& net_;
  std::int64_t direction_;
  std::map<std::pair<std::size_t, std::int64_t>, Value*> rows_;
};

// The first elements of each sequence in reverse, the others where they are: its own inverse.
Value* turned(Op& op, const Recurrence& net, Value* x) {
  if (net.lengths.empty()) {
    return op.emit_like("aten.flip.default", {x}, Json{{"dims", Ints{0}}});
  }
  Ints index;
  for (std::int64_t t = 0; t < net.steps; ++t) {
    for (const std::int64_t length : net.lengths) index.push_back(t < length ? length - 1 - t : t);
  }
  Value* places = op.expand(op.integer_constant(index, {net.steps, net.batch, 1}), x->shape);
  return op.emit_like("aten.gather.default", {x, places}, Json{{"dim", 0}});
}

}  // namespace

void import_cells(Op& op, const Recurrence& net) {
  if (net.steps < 1 || net.steps > kMostSteps) {
    Op::refuse("a cell that ATen does not have, with " + std::to_string(net.steps) +
               " steps; at most " + std::to_string(kMostSteps) + " are unrolled");
  }
  Value* x = net.is_batch_first ? op.permute(op.in(0), {1, 0, 2}) : op.in(0);
  Value* hidden = initial_state(op, net, 5, x->dtype);
  const bool is_lstm = net.kind == "LSTM";
  Value* cell = is_lstm ? initial_state(op, net, 6, x->dtype) : nullptr;
  std::vector<Value*> all;
  std::vector<Value*> last_hidden;
  std::vector<Value*> last_cell;
  const Shape state_shape{net.batch, net.hidden};
  const Shape stacked_shape{1, net.batch, net.hidden};
  for (std::int64_t d = 0; d < net.directions; ++d) {
    Value* own = net.is_backward(d) ? turned(op, net, x) : x;
    State state{op.view(op.slice(hidden, 0, d, d + 1), state_shape), nullptr};
    if (is_lstm) state.cell = op.view(op.slice(cell, 0, d, d + 1), state_shape);
    std::vector<Value*> states;
    state = Cells(op, net, d).run(own, state, states);
    last_hidden.push_back(op.view(state.hidden, stacked_shape));
    if (is_lstm) last_cell.push_back(op.view(state.cell, stacked_shape));
    Value* y = concatenated(op, states, 0);
    if (net.is_backward(d)) y = turned(op, net, y);
    all.push_back(op.view(y, {net.steps, 1, net.batch, net.hidden}));
  }
  Value* y = concatenated(op, all, 1);
  op.set(0, net.is_batch_first ? op.permute(y, {2, 0, 1, 3}) : y);
  const auto set_state = [&](std::size_t index, const std::vector<Value*>& parts) {
    Value* state = concatenated(op, parts, 0);
    op.set(index, net.is_batch_first ? op.permute(state, {1, 0, 2}) : state);
  };
  set_state(1, last_hidden);
  if (is_lstm) set_state(2, last_cell);
}

}  // namespace npu::onnx
