// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU and plain recurrent layers as ONNX has them.
//
// A node of the document is a stack of layers, ONNX's is one layer of one or two directions. Gates
// stand in another order there, by which the constant weights are written: i, o, f, c where PyTorch
// has i, f, c, o, and z, r, h where it has r, z, h. Dropout between layers is nothing in inference.
// O(elements of the weights).
#include <algorithm>
#include <cstring>
#include <utility>

#include "export/export_rules.hpp"
#include "ops/op_name.hpp"

namespace npu::onnx_export {
namespace {

struct CellForm {
  const char* op;
  std::vector<std::size_t> gates;  ///< PyTorch's number of each gate of ONNX
  bool has_cell = false;
};

CellForm form_of(const NodeExport& node) {
  const std::string_view name = functional_name(node.node().op_type);
  if (name == "lstm") return {"LSTM", {0, 3, 1, 2}, true};
  if (name == "gru") return {"GRU", {1, 0, 2}, false};
  return {"RNN", {0}, false};
}

/// The weights of one kind of all directions, one below the other.
class GateRows {
 public:
  GateRows(NodeExport& node, const CellForm& form) : node_(node), form_(form) {}

  /// Adds a constant of all gates; the first one says how many columns there are.
  void add(TensorId id) {
    const Tensor* known = node_.known(id);
    if (known == nullptr) NodeExport::refuse("its weights are no constants");
    if (known->shape().empty() || known->bytes() % form_.gates.size() != 0) {
      NodeExport::refuse("weights of these shapes");
    }
    dtype_ = known->dtype();
    row_ = known->shape();
    const std::size_t gate = known->bytes() / form_.gates.size();
    for (const std::size_t from : form_.gates) {
      const std::byte* begin = known->data() + from * gate;
      bytes_.insert(bytes_.end(), begin, begin + gate);
    }
  }

  /// The name of the constant [directions, rows of all gates, columns].
  std::string finish(const std::string& name, std::int64_t directions) const {
    Shape shape{directions};
    const std::size_t width = dtype_size(dtype_);
    const std::int64_t columns = row_.size() > 1 ? row_.back() : 1;
    const auto elements = static_cast<std::int64_t>(bytes_.size() / width);
    shape.push_back(columns > 0 ? elements / directions / columns : row_.front());
    if (row_.size() > 1) shape.push_back(columns);
    Tensor tensor(dtype_, shape);
    if (!bytes_.empty()) std::memcpy(tensor.mutable_data(), bytes_.data(), bytes_.size());
    return node_.onnx.constant(name, tensor);
  }

 private:
  NodeExport& node_;
  const CellForm& form_;
  DType dtype_ = DType::kFloat32;
  Shape row_;
  std::vector<std::byte> bytes_;
};

class RecurrentExport {
 public:
  explicit RecurrentExport(NodeExport& node)
      : node_(node), form_(form_of(node)), has_biases_(node.args.boolean("has_biases")) {
    layers_ = node.args.integer("num_layers");
    directions_ = node.args.boolean("bidirectional") ? 2 : 1;
    params_ = node.args.tensors("params");
    if (node.args.boolean("train") && node.args.number("dropout") != 0) {
      NodeExport::refuse("a dropout in training");
    }
    if (node.first_info().shape.size() != 3) NodeExport::refuse("an operand without a batch");
    const std::int64_t each = has_biases_ ? 4 : 2;
    if (layers_ < 1 || static_cast<std::int64_t>(params_.size()) != layers_ * directions_ * each) {
      NodeExport::refuse("a projection behind its cells");
    }
  }

  void run() {
    const bool has_batch_first = node_.args.boolean("batch_first");
    const OnnxInts swapped{1, 0, 2};
    std::string value = node_.value("input");
    if (has_batch_first) value = node_.emit("Transpose", {value}, {{"perm", swapped}});
    std::vector<std::string> states = initial_states();
    std::vector<std::vector<std::string>> last(states.size());
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      std::vector<std::string> of_layer;
      for (const std::string& state : states) of_layer.push_back(part_of(state, layer));
      const std::vector<std::string> results = add_layer(layer, value, of_layer);
      value = joined(results.front());
      for (std::size_t i = 0; i < last.size(); ++i) last[i].push_back(results[i + 1]);
    }
    if (has_batch_first) value = node_.emit("Transpose", {value}, {{"perm", swapped}});
    node_.finish_output(0, value);
    for (std::size_t i = 0; i < last.size(); ++i) {
      const bool is_one = last[i].size() == 1;
      node_.finish_output(i + 1, is_one
                                     ? last[i].front()
                                     : node_.emit("Concat", last[i], {{"axis", std::int64_t{0}}}));
    }
  }

 private:
  /// Of all layers, [layers * directions, batch, width].
  std::vector<std::string> initial_states() {
    if (!form_.has_cell) return {node_.value("hx")};
    std::vector<std::string> names;
    for (const TensorId id : node_.args.tensors("hx")) names.push_back(node_.value(id));
    if (names.size() != 2) NodeExport::refuse("states of another number");
    return names;
  }

  std::string part_of(const std::string& state, std::int64_t layer) {
    if (layers_ == 1) return state;
    const std::int64_t begin = layer * directions_;
    return node_.emit(
        "Slice", {state, node_.onnx.integers({begin}), node_.onnx.integers({begin + directions_}),
                  node_.onnx.integers({0})});
  }

  /// The layer's results at all steps, and its last states.
  std::vector<std::string> add_layer(std::int64_t layer, const std::string& value,
                                     const std::vector<std::string>& states) {
    GateRows weights(node_, form_);
    GateRows recurrences(node_, form_);
    GateRows biases(node_, form_);
    const std::size_t each = has_biases_ ? 4 : 2;
    for (std::int64_t direction = 0; direction < directions_; ++direction) {
      const std::size_t at = static_cast<std::size_t>(layer * directions_ + direction) * each;
      weights.add(params_[at]);
      recurrences.add(params_[at + 1]);
      if (!has_biases_) continue;
      biases.add(params_[at + 2]);
      biases.add(params_[at + 3]);
    }
    const std::int64_t width = node_.graph.tensor(params_[1]).shape.back();
    OnnxAttributes attributes{{"hidden_size", width}};
    const std::string_view name = functional_name(node_.node().op_type);
    if (name == "rnn_relu") {
      attributes.push_back(
          {"activations", std::vector<std::string>(static_cast<std::size_t>(directions_), "Relu")});
    }
    if (directions_ == 2) attributes.push_back({"direction", std::string("bidirectional")});
    if (name == "gru") attributes.push_back({"linear_before_reset", std::int64_t{1}});
    std::vector<std::string> inputs{
        value, weights.finish(node_.result().name + "_weight", directions_),
        recurrences.finish(node_.result().name + "_recurrence", directions_),
        has_biases_ ? biases.finish(node_.result().name + "_bias", directions_) : std::string(),
        std::string()};
    inputs.insert(inputs.end(), states.begin(), states.end());
    return node_.emit_several(form_.op, std::move(inputs), std::move(attributes),
                              states.size() + 1);
  }

  /// [steps, directions, batch, width] as [steps, batch, directions * width].
  std::string joined(const std::string& value) {
    const Shape& shape = node_.first_info().shape;
    const bool has_batch_first = node_.args.boolean("batch_first");
    const std::int64_t steps = shape[has_batch_first ? 1 : 0];
    const std::int64_t batch = shape[has_batch_first ? 0 : 1];
    const std::int64_t width = node_.result().shape.back();
    const std::string behind =
        directions_ == 1 ? value
                         : node_.emit("Transpose", {value}, {{"perm", OnnxInts{0, 2, 1, 3}}});
    return node_.emit_reshape(behind, {steps, batch, width});
  }

  NodeExport& node_;
  CellForm form_;
  bool has_biases_ = false;
  std::int64_t layers_ = 1;
  std::int64_t directions_ = 1;
  std::vector<TensorId> params_;  // of each layer and direction: of input, of state, two biases
};

}  // namespace

void export_recurrent(NodeExport& node) { RecurrentExport(node).run(); }

}  // namespace npu::onnx_export
