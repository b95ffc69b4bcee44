// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN, one layer in one or both directions. ONNX has the gates in another order
// (iofc, zrh) than PyTorch (ifgo, rzn), so the weights' blocks are put in order by nodes, which the
// folding of constants removes.
#include <algorithm>

#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

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
};

void check_activations(Op& op, const Recurrence& net) {
  const AttributeProto* given = op.attribute("activations");
  if (given == nullptr) return;
  const std::vector<std::string_view> usual =
      net.kind == "LSTM" ? std::vector<std::string_view>{"Sigmoid", "Tanh", "Tanh"}
      : net.kind == "GRU"
          ? std::vector<std::string_view>{"Sigmoid", "Tanh"}
          : std::vector<std::string_view>{given->strings.empty() ? "Tanh" : given->strings[0]};
  for (std::size_t i = 0; i < given->strings.size(); ++i) {
    if (given->strings[i] != usual[i % usual.size()]) {
      Op::refuse("activation '" + std::string(given->strings[i]) + "'");
    }
  }
}

Recurrence read_recurrence(Op& op) {
  Recurrence net;
  net.kind = op.node().op_type;
  if (net.kind == "LSTM") net.gates = 4, net.order = {0, 2, 3, 1};
  if (net.kind == "GRU") net.gates = 3, net.order = {1, 0, 2};
  if (net.kind == "RNN") net.order = {0};
  const std::string direction = op.text("direction", "forward");
  if (direction == "bidirectional") net.directions = 2;
  net.is_reverse = direction == "reverse";
  net.is_batch_first = op.integer("layout", 0) != 0;
  Value* x = op.in(0);
  Value* r = op.in(2);
  if (x->rank() != 3 || op.in(1)->rank() != 3 || r->rank() != 3 || r->shape[0] != net.directions ||
      r->shape[1] != net.gates * r->shape[2] || op.in(1)->shape[1] != r->shape[1]) {
    Op::refuse("operand and weights do not fit");
  }
  net.hidden = r->shape[2];
  net.steps = x->shape[net.is_batch_first ? 1 : 0];
  net.batch = x->shape[net.is_batch_first ? 0 : 1];
  if (op.has_input(4)) {
    const Ints lengths = op.integers(4, "sequence_lens");
    if (std::any_of(lengths.begin(), lengths.end(), [&](auto l) { return l != net.steps; })) {
      Op::refuse("sequences of different lengths");
    }
  }
  if (op.attribute("clip") != nullptr) Op::refuse("'clip' is not imported");
  if (op.integer("input_forget", 0) != 0) Op::refuse("'input_forget' is not imported");
  if (op.has_input(7)) Op::refuse("peepholes are not imported");
  check_activations(op, net);
  return net;
}

// The blocks of one direction, in PyTorch's order, without the axis of directions.
Value* ordered(Op& op, Value* weights, const Recurrence& net, std::int64_t direction,
               std::int64_t first) {
  Value* own = op.slice(weights, 0, direction, direction + 1);
  Shape shape(own->shape.begin() + 1, own->shape.end());
  own = op.view(own, shape);
  std::vector<Value*> blocks;
  for (const std::int64_t gate : net.order) {
    const std::int64_t at = first + gate * net.hidden;
    blocks.push_back(op.slice(own, 0, at, at + net.hidden));
  }
  shape[0] = net.gates * net.hidden;
  if (blocks.size() == 1) return blocks[0];
  return op.emit("aten.cat.default", blocks, Json{{"dim", 0}}, weights->dtype, shape);
}

Value* initial_state(Op& op, const Recurrence& net, std::size_t index, DType dtype) {
  const Shape shape{net.directions, net.batch, net.hidden};
  if (op.has_input(index)) {
    return net.is_batch_first ? op.permute(op.in(index), {1, 0, 2}) : op.in(index);
  }
  return op.emit(
      "aten.full.default", {},
      Json{
          {"size", shape}, {"fill_value", 0}, {"dtype", "torch." + std::string(dtype_name(dtype))}},
      dtype, shape);
}

std::string aten_name(Op& op, const Recurrence& net) {
  if (net.kind == "LSTM") return "aten.lstm.input";
  if (net.kind == "GRU") return "aten.gru.input";
  const AttributeProto* given = op.attribute("activations");
  if (given == nullptr || given->strings.empty() || given->strings[0] == "Tanh") {
    return "aten.rnn_tanh.input";
  }
  if (given->strings[0] != "Relu") {
    Op::refuse("activation '" + std::string(given->strings[0]) + "'");
  }
  return "aten.rnn_relu.input";
}

// The rows [first, first + count) of one direction's weights or biases.
Value* rows_of(Op& op, Value* weights, std::int64_t direction, std::int64_t first,
               std::int64_t count) {
  Value* own = op.slice(weights, 0, direction, direction + 1);
  own = op.view(own, Shape(own->shape.begin() + 1, own->shape.end()));
  return op.slice(own, 0, first, first + count);
}

// A GRU whose reset gate comes before the product, which PyTorch's has not: step by step. Returns
// the states of all steps, [steps, batch, hidden].
Value* unrolled_gru(Op& op, const Recurrence& net, Value* x, Value* state, std::int64_t direction) {
  const std::int64_t hidden = net.hidden;
  const auto linear = [&](Value* a, Value* weights, std::int64_t first, std::int64_t count,
                          std::int64_t bias_first) {
    std::vector<Value*> operands{a, rows_of(op, weights, direction, first, count)};
    if (op.has_input(3)) {
      operands.push_back(rows_of(op, op.in(3), direction, bias_first + first, count));
    }
    Shape shape = a->shape;
    shape.back() = count;
    return op.emit("aten.linear.default", operands, Json::object(), a->dtype, shape);
  };
  Value* inputs = linear(x, op.in(1), 0, 3 * hidden, 0);
  std::vector<Value*> states;
  for (std::int64_t t = 0; t < net.steps; ++t) {
    Value* step = op.view(op.slice(inputs, 0, t, t + 1), {net.batch, 3 * hidden});
    Value* gates = linear(state, op.in(2), 0, 2 * hidden, 3 * hidden);
    gates = op.emit_like("aten.sigmoid.default",
                         {op.binary("add", gates, op.slice(step, 1, 0, 2 * hidden))});
    Value* update = op.slice(gates, 1, 0, hidden);
    Value* kept = op.binary("mul", op.slice(gates, 1, hidden, 2 * hidden), state);
    Value* next = linear(kept, op.in(2), 2 * hidden, hidden, 3 * hidden);
    next = op.emit_like("aten.tanh.default",
                        {op.binary("add", next, op.slice(step, 1, 2 * hidden, 3 * hidden))});
    state = op.binary("add", next, op.binary("mul", update, op.binary("sub", state, next)));
    states.push_back(op.view(state, {1, net.batch, hidden}));
  }
  if (states.size() == 1) return states[0];
  return op.emit("aten.cat.default", states, Json{{"dim", 0}}, x->dtype,
                 {net.steps, net.batch, hidden});
}

void import_unrolled_gru(Op& op, const Recurrence& net) {
  constexpr std::int64_t kMostSteps = 512;
  if (net.steps < 1 || net.steps > kMostSteps) {
    Op::refuse("linear_before_reset is 0 with more than " + std::to_string(kMostSteps) + " steps");
  }
  Value* x = net.is_batch_first ? op.permute(op.in(0), {1, 0, 2}) : op.in(0);
  Value* initial = initial_state(op, net, 5, x->dtype);
  std::vector<Value*> all;
  std::vector<Value*> last;
  for (std::int64_t d = 0; d < net.directions; ++d) {
    const Json flip{{"dims", Ints{0}}};
    const bool is_backward = net.is_reverse || d == 1;
    Value* own = is_backward ? op.emit_like("aten.flip.default", {x}, flip) : x;
    Value* state = op.view(op.slice(initial, 0, d, d + 1), {net.batch, net.hidden});
    Value* states = unrolled_gru(op, net, own, state, d);
    last.push_back(op.slice(states, 0, net.steps - 1, net.steps));
    if (is_backward) states = op.emit_like("aten.flip.default", {states}, flip);
    all.push_back(op.view(states, {net.steps, 1, net.batch, net.hidden}));
  }
  Value* y = all[0];
  Value* h = last[0];
  if (net.directions == 2) {
    y = op.emit("aten.cat.default", all, Json{{"dim", 1}}, x->dtype,
                {net.steps, 2, net.batch, net.hidden});
    h = op.emit("aten.cat.default", last, Json{{"dim", 0}}, x->dtype, {2, net.batch, net.hidden});
  }
  op.set(0, net.is_batch_first ? op.permute(y, {2, 0, 1, 3}) : y);
  op.set(1, net.is_batch_first ? op.permute(h, {1, 0, 2}) : h);
}

}  // namespace

void import_recurrent(Op& op) {
  const Recurrence net = read_recurrence(op);
  if (net.kind == "GRU" && op.integer("linear_before_reset", 0) == 0) {
    return import_unrolled_gru(op, net);
  }
  Value* x = op.in(0);
  if (net.is_batch_first) x = op.permute(x, {1, 0, 2});
  if (net.is_reverse) x = op.emit_like("aten.flip.default", {x}, Json{{"dims", Ints{0}}});
  std::vector<Value*> operands{x, initial_state(op, net, 5, x->dtype)};
  const bool is_lstm = net.kind == "LSTM";
  if (is_lstm) operands.push_back(initial_state(op, net, 6, x->dtype));
  const bool has_bias = op.has_input(3);
  std::int64_t params = 0;
  for (std::int64_t d = 0; d < net.directions; ++d) {
    operands.push_back(ordered(op, op.in(1), net, d, 0));
    operands.push_back(ordered(op, op.in(2), net, d, 0));
    params += 2;
    if (!has_bias) continue;
    operands.push_back(ordered(op, op.in(3), net, d, 0));
    operands.push_back(ordered(op, op.in(3), net, d, net.gates * net.hidden));
    params += 2;
  }
  Json attrs{{"has_biases", has_bias},
             {"num_layers", 1},
             {"dropout", 0.0},
             {"train", false},
             {"bidirectional", net.directions == 2},
             {"batch_first", false},
             {"_tensor_list_sizes", is_lstm ? Ints{2, params} : Ints{params}}};
  const Shape state{net.directions, net.batch, net.hidden};
  std::vector<ResultType> results{{x->dtype, {net.steps, net.batch, net.directions * net.hidden}},
                                  {x->dtype, state}};
  if (is_lstm) results.push_back({x->dtype, state});
  const auto values =
      op.draft().emit_several(aten_name(op, net), operands, std::move(attrs), results);
  Value* y = op.view(values[0], {net.steps, net.batch, net.directions, net.hidden});
  if (net.is_reverse) y = op.emit_like("aten.flip.default", {y}, Json{{"dims", Ints{0}}});
  op.set(0, op.permute(y, net.is_batch_first ? Ints{1, 0, 2, 3} : Ints{0, 2, 1, 3}));
  for (std::size_t i = 1; i < values.size(); ++i) {
    op.set(i, net.is_batch_first ? op.permute(values[i], {1, 0, 2}) : values[i]);
  }
}

}  // namespace npu::onnx
