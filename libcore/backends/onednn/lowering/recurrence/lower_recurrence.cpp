// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: LSTM, GRU, and layers of tanh or ReLU, of any number of layers and in one or
// two directions, in one kernel. The weights of each direction of a layer are brought into its
// order when a program is compiled. Results are parts of one buffer. O(layers).
#include "lowering/recurrence/recurrence.hpp"
#include "ops/op_name.hpp"

namespace npu::onednn {

namespace {

/// The operands of one node, checked.
struct RecurrentNode {
  Recurrence call;
  TensorId input;
  std::vector<TensorId> states;  ///< first hidden states, and cells of an LSTM
  std::vector<TensorId> parameters;
  bool has_biases = false;
};

Recurrence::Cell cell_of(const Lowering& lowering) {
  const std::string_view name = functional_name(lowering.node().op_type);
  if (name == "lstm") return Recurrence::Cell::kLstm;
  if (name == "gru") return Recurrence::Cell::kGru;
  return name == "rnn_relu" ? Recurrence::Cell::kRelu : Recurrence::Cell::kTanh;
}

void require_shape(const Lowering& lowering, std::string_view argument, TensorId tensor,
                   const Shape& expected) {
  lowering.require_float(argument, tensor);
  if (lowering.shape(tensor) == expected) return;
  lowering.invalid("argument '" + std::string(argument) + "': expected shape " +
                   shape_text(expected) + ", found " + shape_text(lowering.shape(tensor)));
}

std::vector<TensorId> read_states(const Lowering& lowering, const BoundNode& node) {
  if (cell_of(lowering) != Recurrence::Cell::kLstm) return {tensor_argument(lowering, node, "hx")};
  std::vector<TensorId> states = node.tensors("hx");
  if (states.size() != 2) {
    lowering.invalid("argument 'hx': expected a state and a cell, found " +
                     std::to_string(states.size()) + " tensors");
  }
  return states;
}

/// Tensors of one direction of a layer.
std::size_t parameters_each(bool has_biases) { return has_biases ? 4 : 2; }

void check_parameters(const Lowering& lowering, const RecurrentNode& all) {
  const Recurrence& call = all.call;
  const std::size_t each = parameters_each(all.has_biases);
  const std::int64_t rows = call.gates() * call.hidden;
  for (std::size_t i = 0; i < all.parameters.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i / each) / call.directions;
    const std::size_t which = i % each;
    const Shape expected = which == 0   ? Shape{rows, call.inputs_of(layer)}
                           : which == 1 ? Shape{rows, call.hidden}
                                        : Shape{rows};
    require_shape(lowering, "params", all.parameters[i], expected);
  }
}

RecurrentNode read_recurrence(const Lowering& lowering, const BoundNode& node) {
  constexpr std::int64_t kMostLayers = 1024;
  RecurrentNode all;
  Recurrence& call = all.call;
  call.cell = cell_of(lowering);
  all.input = tensor_argument(lowering, node, "input");
  all.states = read_states(lowering, node);
  all.parameters = node.tensors("params");
  all.has_biases = node.boolean("has_biases");
  call.layers = node.integer("num_layers");
  call.directions = node.boolean("bidirectional") ? 2 : 1;
  call.batch_first = node.boolean("batch_first");
  if (node.boolean("train") && node.number("dropout") != 0) {
    lowering.refuse("train", "only inference is supported");
  }
  lowering.require_float("input", all.input);
  const Shape& input = lowering.shape(all.input);
  const Shape& state = lowering.shape(all.states.front());
  if (input.size() != 3 || state.size() != 3) {
    lowering.refuse("input", "an input of rank " + std::to_string(input.size()) +
                                 " and a state of rank " + std::to_string(state.size()) +
                                 " are not supported; both need rank 3");
  }
  if (call.layers < 1 || call.layers > kMostLayers) {
    lowering.refuse("num_layers",
                    number_text(call.layers) + " is not in 1.." + number_text(kMostLayers));
  }
  call.steps = input[call.batch_first ? 1 : 0];
  call.batch = input[call.batch_first ? 0 : 1];
  call.inputs = input[2];
  call.hidden = lowering.shape(all.states.back())[2];
  if (state[2] != call.hidden) {
    lowering.refuse("hx", "a projection of the hidden state (proj_size) is not supported");
  }
  const auto directions = static_cast<std::size_t>(call.layers * call.directions);
  if (all.parameters.size() != directions * parameters_each(all.has_biases)) {
    lowering.invalid("argument 'params': expected " +
                     std::to_string(directions * parameters_each(all.has_biases)) +
                     " tensors, found " + std::to_string(all.parameters.size()));
  }
  for (const TensorId id : all.states) {
    require_shape(lowering, "hx", id, {call.layers * call.directions, call.batch, call.hidden});
  }
  check_parameters(lowering, all);
  return all;
}

/// The weights in the kernel's order, one value for each direction of each layer.
std::vector<Value> packed_weights(Lowering& lowering, const RecurrentNode& all) {
  const std::size_t each = parameters_each(all.has_biases);
  std::vector<Value> result;
  for (std::size_t first = 0; first < all.parameters.size(); first += each) {
    RecurrenceWeights order;
    order.cell = all.call.cell;
    order.hidden = all.call.hidden;
    order.inputs = lowering.shape(all.parameters[first])[1];
    order.has_biases = all.has_biases;
    std::vector<Value> reads;
    for (std::size_t i = 0; i < each; ++i) {
      reads.push_back(lowering.plain(lowering.operand(all.parameters[first + i], DType::kFloat32)));
    }
    const std::int64_t floats = order.layer().weight_floats(order.inputs);
    result.push_back(lowering.temporary(DType::kFloat32, plain_layout({floats}, DType::kFloat32)));
    lowering.add_kernel(reads, result.back(), order);
  }
  return result;
}

}  // namespace

void lower_recurrence(Lowering& lowering, const GroupContext& context, const BoundNode& node) {
  RecurrentNode all = read_recurrence(lowering, node);
  Recurrence& call = all.call;
  Shape output = lowering.shape(all.input);
  output[2] = call.directions * call.hidden;
  const Shape& state = lowering.shape(all.states.front());
  const std::vector<TensorId>& results = node.node().outputs;
  if (results.size() != all.states.size() + 1) {
    lowering.invalid("expected " + std::to_string(all.states.size() + 1) + " results, found " +
                     std::to_string(results.size()));
  }
  const DType dtype = lowering.dtype(all.input);
  for (std::size_t i = 0; i < results.size(); ++i) {
    lowering.check_result(results[i], i == 0 ? output : state, dtype);
  }

  call.threads = lowering.machine().threads;
  std::vector<Value> reads{lowering.plain(lowering.operand(all.input, DType::kFloat32))};
  for (const TensorId id : all.states) {
    reads.push_back(lowering.plain(lowering.operand(id, DType::kFloat32)));
  }
  for (const Value& weights : packed_weights(lowering, all)) reads.push_back(weights);
  const Value target =
      lowering.temporary(DType::kFloat32, plain_layout({call.target_floats()}, DType::kFloat32));
  lowering.add_kernel(reads, target, call);

  Value part = target;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Shape& shape = i == 0 ? output : state;
    part.layout = plain_layout(shape, DType::kFloat32);
    part.offset =
        i == 0 ? 0
               : call.output_floats() + (static_cast<std::int64_t>(i) - 1) * call.state_floats();
    lowering.define_computed(context, results[i], shape, dtype, part);
  }
}

}  // namespace npu::onednn
