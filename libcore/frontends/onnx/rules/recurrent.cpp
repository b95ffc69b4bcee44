// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and RNN, one layer in one or both directions. ONNX has the gates in another order
// (iofc, zrh) than PyTorch (ifgo, rzn), so the weights' blocks are put in order by nodes, which the
// folding of constants removes. What PyTorch's nets do not have is unrolled (cells.cpp).
#include <algorithm>

#include "rules/recurrence.hpp"
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

std::vector<std::string> usual_activations(const std::string& kind) {
  if (kind == "LSTM") return {"Sigmoid", "Tanh", "Tanh"};
  if (kind == "GRU") return {"Sigmoid", "Tanh"};
  return {"Tanh"};
}

// The numbers of activations are lists from which each takes those that it has.
std::vector<Activation> read_activations(Op& op, const Recurrence& net) {
  const std::vector<std::string> usual = usual_activations(net.kind);
  const auto given = op.texts("activations");
  const std::size_t count = usual.size() * static_cast<std::size_t>(net.directions);
  if (given && given->size() != count) {
    Op::refuse(std::to_string(given->size()) + " activations, expected " + std::to_string(count));
  }
  const std::vector<float> alphas = op.reals("activation_alpha");
  const std::vector<float> betas = op.reals("activation_beta");
  std::size_t alpha = 0;
  std::size_t beta = 0;
  std::vector<Activation> activations;
  for (std::size_t i = 0; i < count; ++i) {
    Activation& function = activations.emplace_back();
    function.name = given ? (*given)[i] : usual[i % usual.size()];
    const ActivationRow* row = find_activation(function.name);
    if (row == nullptr) continue;
    if (row->alpha.absent && alpha < alphas.size()) {
      function.alpha = static_cast<double>(alphas[alpha++]);
    }
    if (row->beta.absent && beta < betas.size()) {
      function.beta = static_cast<double>(betas[beta++]);
    }
  }
  return activations;
}

bool is_usual(const Recurrence& net) {
  const std::vector<std::string> usual = usual_activations(net.kind);
  for (std::size_t i = 0; i < net.activations.size(); ++i) {
    const std::string& name = net.activations[i].name;
    const bool is_relu = net.kind == "RNN" && name == "Relu" && net.activations[0].name == "Relu";
    if (name != usual[i % usual.size()] && !is_relu) return false;
    if (name != net.activations[i % usual.size()].name) return false;
  }
  return true;
}

void read_lengths(Op& op, Recurrence& net) {
  if (!op.has_input(4)) return;
  net.lengths = op.integers(4, "sequence_lens");
  if (static_cast<std::int64_t>(net.lengths.size()) != net.batch) {
    Op::refuse("sequence_lens do not fit the batch");
  }
  for (const std::int64_t length : net.lengths) {
    if (length < 0 || length > net.steps) Op::refuse("a sequence that is longer than its operand");
  }
  if (std::all_of(net.lengths.begin(), net.lengths.end(),
                  [&](auto length) { return length == net.steps; })) {
    net.lengths.clear();
  }
}

Recurrence read_recurrence(Op& op) {
  Recurrence net;
  net.kind = op.node().op_type;
  if (net.kind == "LSTM") net.gates = 4, net.order = {0, 2, 3, 1};
  if (net.kind == "GRU") net.gates = 3, net.order = {1, 0, 2};
  if (net.kind == "RNN") net.order = {0};
  const std::string direction = op.text("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
    Op::refuse("direction '" + direction + "'");
  }
  if (direction == "bidirectional") net.directions = 2;
  net.is_reverse = direction == "reverse";
  net.is_batch_first = op.integer("layout", 0) != 0;
  Value* x = op.in(0);
  Value* r = op.in(2);
  if (x->rank() != 3 || op.in(1)->rank() != 3 || r->rank() != 3 || r->shape[0] != net.directions ||
      op.in(1)->shape[0] != net.directions || r->shape[1] != net.gates * r->shape[2] ||
      op.in(1)->shape[1] != r->shape[1] || op.in(1)->shape[2] != x->shape[2]) {
    Op::refuse("operand and weights do not fit");
  }
  net.hidden = r->shape[2];
  if (op.integer("hidden_size", net.hidden) != net.hidden) {
    Op::refuse("'hidden_size' is not that of the weights, " + std::to_string(net.hidden));
  }
  net.steps = x->shape[net.is_batch_first ? 1 : 0];
  net.batch = x->shape[net.is_batch_first ? 0 : 1];
  if (op.has_input(3) && op.in(3)->shape != Shape{net.directions, 2 * r->shape[1]}) {
    Op::refuse("the bias does not fit");
  }
  if (op.has_input(7) &&
      (net.kind != "LSTM" || op.in(7)->shape != Shape{net.directions, 3 * net.hidden})) {
    Op::refuse("the peepholes do not fit");
  }
  read_lengths(op, net);
  net.clip = op.real("clip", 0);
  net.couples_forget = net.kind == "LSTM" && op.integer("input_forget", 0) != 0;
  net.resets_before = net.kind == "GRU" && op.integer("linear_before_reset", 0) == 0;
  net.activations = read_activations(op, net);
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

std::string aten_name(const Recurrence& net) {
  if (net.kind == "LSTM") return "aten.lstm.input";
  if (net.kind == "GRU") return "aten.gru.input";
  return net.activations[0].name == "Relu" ? "aten.rnn_relu.input" : "aten.rnn_tanh.input";
}

// No step leaves the states as they are.
void import_no_steps(Op& op, const Recurrence& net) {
  const DType dtype = op.in(0)->dtype;
  op.set(0, op.filled(net.is_batch_first ? Shape{net.batch, 0, net.directions, net.hidden}
                                         : Shape{0, net.directions, net.batch, net.hidden},
                      dtype, 0));
  for (std::size_t i = 1; i < (net.kind == "LSTM" ? 3U : 2U); ++i) {
    Value* state = initial_state(op, net, i + 4, dtype);
    op.set(i, net.is_batch_first ? op.permute(state, {1, 0, 2}) : state);
  }
}

}  // namespace

Value* initial_state(Op& op, const Recurrence& net, std::size_t index, DType dtype) {
  const Shape shape{net.directions, net.batch, net.hidden};
  if (op.has_input(index)) {
    return net.is_batch_first ? op.permute(op.in(index), {1, 0, 2}) : op.in(index);
  }
  return op.filled(shape, dtype, 0);
}

void import_recurrent(Op& op) {
  const Recurrence net = read_recurrence(op);
  if (net.steps == 0) return import_no_steps(op, net);
  if (net.resets_before || net.couples_forget || net.clip > 0 || op.has_input(7) ||
      !net.lengths.empty() || !is_usual(net)) {
    return import_cells(op, net);
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
  const auto values = op.draft().emit_several(aten_name(net), operands, std::move(attrs), results);
  Value* y = op.view(values[0], {net.steps, net.batch, net.directions, net.hidden});
  if (net.is_reverse) y = op.emit_like("aten.flip.default", {y}, Json{{"dims", Ints{0}}});
  op.set(0, op.permute(y, net.is_batch_first ? Ints{1, 0, 2, 3} : Ints{0, 2, 1, 3}));
  for (std::size_t i = 1; i < values.size(); ++i) {
    op.set(i, net.is_batch_first ? op.permute(values[i], {1, 0, 2}) : values[i]);
  }
}

}  // namespace npu::onnx
