// SPDX-License-Identifier: Apache-2.0
// LSTM, GRU, and recurrent layers of tanh or ReLU, of any number of layers and in one or two
// directions, in one kernel: a work group, or on a CPU a work item, has an element of the batch and
// goes through layers and steps, its items through the hidden units. Hidden states of two layers
// lie in memory of the kernel's own, in the order of the steps of each direction, so that a step
// needs one barrier: it writes behind what it reads.
// O(batch * steps * layers * hidden * (inputs + hidden)); elements of the batch run side by side.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/group_kernel.hpp"
#include "ops/op_name.hpp"
#include "support/checked.hpp"

namespace npu::opencl {
namespace {

enum class Cell : std::uint8_t { kLstm, kGru, kTanh, kRelu };

constexpr std::int64_t kMostCellLanes = 256;
constexpr std::int64_t kMostLayers = 256;

struct Recurrence {
  Cell cell = Cell::kTanh;
  DType dtype = DType::kFloat32;
  TensorId input;
  std::vector<TensorId> states;  ///< first hidden states, and cells of an LSTM
  std::vector<TensorId> parameters;
  bool has_biases = false;
  bool batch_first = false;
  std::int64_t layers = 1;
  std::int64_t directions = 1;
  std::int64_t steps = 0;
  std::int64_t batch = 0;
  std::int64_t hidden = 0;

  std::int64_t gates() const { return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1; }
  /// Tensors of one direction of a layer.
  std::size_t parameters_each() const { return has_biases ? 4 : 2; }
  TensorId parameter(std::int64_t layer, std::int64_t direction, std::size_t which) const {
    return parameters[static_cast<std::size_t>(layer * directions + direction) * parameters_each() +
                      which];
  }
};

Cell cell_of(const Node& node) {
  const std::string_view name = functional_name(node.op_type);
  if (name == "lstm") return Cell::kLstm;
  if (name == "gru") return Cell::kGru;
  return name == "rnn_relu" ? Cell::kRelu : Cell::kTanh;
}

void check_tensor(const Emitter& emitter, const Node& node, const Recurrence& r, TensorId tensor,
                  const Shape& expected, const char* what) {
  if (emitter.shape(tensor) == expected && emitter.dtype(tensor) == r.dtype) return;
  emitter.refuse(node, std::string(what) + ": expected " + std::string(dtype_name(r.dtype)) + " " +
                           shape_text(expected) + ", found " +
                           std::string(dtype_name(emitter.dtype(tensor))) + " " +
                           shape_text(emitter.shape(tensor)));
}

void check_tensors(const Emitter& emitter, const Node& node, const Recurrence& r) {
  const std::int64_t inputs = emitter.shape(r.input)[2];
  const std::size_t each = r.parameters_each();
  const Shape state{r.layers * r.directions, r.batch, r.hidden};
  for (const TensorId id : r.states) check_tensor(emitter, node, r, id, state, "a state");
  if (r.parameters.size() != static_cast<std::size_t>(r.layers * r.directions) * each) {
    emitter.refuse(node, "its parameters are of another number of layers");
  }
  for (std::size_t i = 0; i < r.parameters.size(); ++i) {
    const auto layer = static_cast<std::int64_t>(i / each) / r.directions;
    const std::int64_t width = layer == 0 ? inputs : r.directions * r.hidden;
    const std::int64_t rows = r.gates() * r.hidden;
    const std::size_t which = i % each;
    const Shape expected = which == 0   ? Shape{rows, width}
                           : which == 1 ? Shape{rows, r.hidden}
                                        : Shape{rows};
    check_tensor(emitter, node, r, r.parameters[i], expected, "a parameter");
  }
  const std::vector<TensorId>& results = node.outputs;
  if (results.size() != r.states.size() + 1) emitter.refuse(node, "it has other results");
  Shape output = emitter.shape(r.input);
  output[2] = r.directions * r.hidden;
  for (std::size_t i = 0; i < results.size(); ++i) {
    check_tensor(emitter, node, r, results[i], i == 0 ? output : state, "a result");
  }
}

Recurrence read_recurrence(const Emitter& emitter, const BoundNode& bound) {
  const Node& node = bound.node();
  Recurrence r;
  r.cell = cell_of(node);
  r.input = tensor_of(emitter, bound, "input");
  r.dtype = emitter.dtype(r.input);
  r.states = bound.tensors("hx");
  r.parameters = bound.tensors("params");
  r.has_biases = bound.boolean("has_biases");
  r.batch_first = bound.boolean("batch_first");
  r.layers = bound.integer("num_layers");
  r.directions = bound.boolean("bidirectional") ? 2 : 1;
  if (bound.boolean("train") && bound.number("dropout") != 0) {
    emitter.refuse(node, "it is in training mode");
  }
  if (!is_floating_point(r.dtype)) emitter.refuse(node, "it needs floats");
  if (r.layers < 1 || r.layers > kMostLayers) {
    emitter.refuse(node, "expected 1 to " + std::to_string(kMostLayers) + " layers, found " +
                             std::to_string(r.layers));
  }
  if (r.states.size() != (r.cell == Cell::kLstm ? 2 : 1)) {
    emitter.refuse(node, "it has another number of states");
  }
  const Shape& input = emitter.shape(r.input);
  const Shape& state = emitter.shape(r.states.front());
  const Shape& last = emitter.shape(r.states.back());
  if (input.size() != 3 || state.size() != 3 || last.size() != 3) {
    emitter.refuse(node, "its input and states need three dimensions");
  }
  if (state[2] != last[2]) {
    emitter.refuse(node, "a projection of the hidden state (proj_size) is not supported");
  }
  r.steps = input[r.batch_first ? 1 : 0];
  r.batch = input[r.batch_first ? 0 : 1];
  r.hidden = state[2];
  check_tensors(emitter, node, r);
  return r;
}

std::string number_text(std::int64_t number) { return std::to_string(number); }
std::string sigmoid(const std::string& x) { return "(1 / (1 + exp(-" + x + ")))"; }

class RecurrenceWriter {
 public:
  RecurrenceWriter(Emitter& emitter, const KernelTask& task, const Node& node, const Recurrence& r)
      : emitter_(emitter), task_(task), node_(node), r_(r), type_(value_type(r.dtype)) {
    const Machine& machine = emitter.model().machine();
    while (!machine.is_cpu && lanes_ < kMostCellLanes && lanes_ < r.hidden &&
           2 * lanes_ <= machine.max_group) {
      lanes_ *= 2;
    }
  }

  GeneratedKernel write() {
    const std::int64_t units = r_.directions * r_.hidden;
    const std::int64_t slots = (r_.layers > 1 ? 2 : 1) * (r_.steps + 1);
    const auto count = checked_element_count({slots + 1, r_.batch, units});
    if (!count || !checked_multiply(*count, 8)) emitter_.refuse(node_, "it is too large");
    sequence_count_ = slots * r_.batch * units;
    memory_ = emitter_.scratch(r_.dtype, *count);
    emitter_.line("const " + emitter_.index_type() + " b = get_group_id(0);");
    emitter_.line("const int lane = get_local_id(0);");
    for (std::int64_t layer = 0; layer < r_.layers; ++layer) write_layer(layer);
    return finished(emitter_, {static_cast<std::uint64_t>(r_.batch), 1, 1},
                    {static_cast<std::uint64_t>(lanes_), 1, 1});
  }

 private:
  bool is_asked_for(std::size_t result) const {
    return result < node_.outputs.size() &&
           std::ranges::any_of(task_.results, [&](const KernelResult& each) {
             return each.tensor == node_.outputs[result];
           });
  }

  std::string pointer_to(const std::string& place) {
    std::string name = emitter_.fresh("q");
    emitter_.line("__global " + type_ + "* const " + name + " = " + place + ";");
    return name;
  }
  /// A pointer to the states of a direction of a layer: [step + 1][unit], the first state in front.
  std::string states_of(std::int64_t layer, std::int64_t direction) {
    const std::string at = "((" + number_text(layer % 2 * r_.batch) + "L + b) * " +
                           number_text(r_.directions) + " + " + number_text(direction) + ") * " +
                           number_text((r_.steps + 1) * r_.hidden);
    return pointer_to(memory_ + " + " + at + "L");
  }
  std::string cells_of(std::int64_t direction) {
    return pointer_to(memory_ + " + " + number_text(sequence_count_) + "L + ((long)b * " +
                      number_text(r_.directions) + " + " + number_text(direction) + ") * " +
                      number_text(r_.hidden));
  }

  void open_units() {
    emitter_.open("for (" + emitter_.index_type() + " j = lane; j < " + number_text(r_.hidden) +
                  "; j += " + number_text(lanes_) + ")");
  }
  void open_loop(const std::string& name, std::int64_t count) {
    emitter_.open("for (" + emitter_.index_type() + " " + name + " = 0; " + name + " < " +
                  number_text(count) + "; ++" + name + ")");
  }
  void barrier() {
    if (lanes_ > 1) emitter_.line("barrier(CLK_GLOBAL_MEM_FENCE);");
  }

  void write_layer(std::int64_t layer) {
    emitter_.open("");
    std::vector<std::string> own;
    std::vector<std::string> cells;
    std::vector<std::string> below;
    for (std::int64_t d = 0; d < r_.directions; ++d) {
      own.push_back(states_of(layer, d));
      if (r_.cell == Cell::kLstm) cells.push_back(cells_of(d));
      if (layer > 0) below.push_back(states_of(layer - 1, d));
    }
    const auto slot = [&](std::int64_t d) { return number_text(layer * r_.directions + d); };
    for (std::int64_t d = 0; d < r_.directions; ++d) {
      const auto at = static_cast<std::size_t>(d);
      open_units();
      emitter_.line(own[at] + "[j] = " + emitter_.element(r_.states[0], {slot(d), "b", "j"}) + ";");
      if (!cells.empty()) {
        emitter_.line(cells[at] + "[j] = " + emitter_.element(r_.states[1], {slot(d), "b", "j"}) +
                      ";");
      }
      emitter_.close();
    }
    barrier();
    open_loop("s", r_.steps);
    for (std::int64_t d = 0; d < r_.directions; ++d) {
      const auto at = static_cast<std::size_t>(d);
      open_units();
      write_step(layer, d, own[at], cells.empty() ? "" : cells[at], below);
      emitter_.close();
    }
    barrier();
    emitter_.close();
    for (std::int64_t d = 0; d < r_.directions; ++d) {
      const auto at = static_cast<std::size_t>(d);
      open_units();
      if (is_asked_for(1)) {
        emitter_.store(node_.outputs[1], {slot(d), "b", "j"},
                       own[at] + "[" + number_text(r_.steps * r_.hidden) + "L + j]");
      }
      if (is_asked_for(2)) {
        emitter_.store(node_.outputs[2], {slot(d), "b", "j"}, cells[at] + "[j]");
      }
      emitter_.close();
    }
    emitter_.close();
  }

  /// A sum for each gate, and for a GRU one more, since the reset gate is applied in between.
  void write_sums(std::int64_t layer, std::int64_t direction) {
    for (std::int64_t g = 0; g < r_.gates(); ++g) {
      std::string of_input = literal(0.0, r_.dtype);
      std::string of_state = of_input;
      if (r_.has_biases) {
        const std::string row = plus("j", g * r_.hidden);
        of_input = emitter_.element(r_.parameter(layer, direction, 2), {row});
        of_state = emitter_.element(r_.parameter(layer, direction, 3), {row});
      }
      const bool is_apart = r_.cell == Cell::kGru && g == 2;
      emitter_.line(type_ + " a" + number_text(g) + " = " + of_input +
                    (is_apart ? ";" : " + " + of_state + ";"));
      if (is_apart) emitter_.line(type_ + " a3 = " + of_state + ";");
    }
  }

  void add_products(TensorId weights, const std::string& value, const std::string& column,
                    bool is_state) {
    for (std::int64_t g = 0; g < r_.gates(); ++g) {
      const bool is_apart = is_state && r_.cell == Cell::kGru && g == 2;
      emitter_.line("a" + number_text(is_apart ? 3 : g) + " += " + value + " * " +
                    emitter_.element(weights, {plus("j", g * r_.hidden), column}) + ";");
    }
  }

  void write_step(std::int64_t layer, std::int64_t direction, const std::string& own,
                  const std::string& cells, const std::vector<std::string>& below) {
    const std::string t = emitter_.define(
        emitter_.index_type(), direction == 0 ? "s" : number_text(r_.steps - 1) + " - s");
    write_sums(layer, direction);
    const TensorId of_input = r_.parameter(layer, direction, 0);
    if (layer == 0) {
      open_loop("k", emitter_.shape(r_.input)[2]);
      const Index place = r_.batch_first ? Index{"b", t, "k"} : Index{t, "b", "k"};
      add_products(of_input, emitter_.element(r_.input, place), "k", false);
      emitter_.close();
    }
    for (std::size_t d = 0; d < below.size(); ++d) {
      // Step t of the layer below, in the order of its direction.
      const std::string step =
          d == 0 ? "(" + t + " + 1)" : "(" + number_text(r_.steps) + " - " + t + ")";
      open_loop("k", r_.hidden);
      const std::string value = emitter_.define(
          r_.dtype, below[d] + "[(long)" + step + " * " + number_text(r_.hidden) + " + k]");
      add_products(of_input, value, plus("k", static_cast<std::int64_t>(d) * r_.hidden), false);
      emitter_.close();
    }
    open_loop("k", r_.hidden);
    const std::string state =
        emitter_.define(r_.dtype, own + "[(long)s * " + number_text(r_.hidden) + " + k]");
    add_products(r_.parameter(layer, direction, 1), state, "k", true);
    emitter_.close();
    const std::string hidden = emitter_.define(r_.dtype, cell_value(own, cells));
    emitter_.line(own + "[(long)(s + 1) * " + number_text(r_.hidden) + " + j] = " + hidden + ";");
    if (layer + 1 == r_.layers && is_asked_for(0)) {
      const std::string column = plus("j", direction * r_.hidden);
      emitter_.store(node_.outputs[0],
                     r_.batch_first ? Index{"b", t, column} : Index{t, "b", column}, hidden);
    }
  }

  std::string cell_value(const std::string& own, const std::string& cells) {
    switch (r_.cell) {
      case Cell::kLstm: {
        const std::string cell = emitter_.define(
            r_.dtype, sigmoid("a1") + " * " + cells + "[j] + " + sigmoid("a0") + " * tanh(a2)");
        emitter_.line(cells + "[j] = " + cell + ";");
        return sigmoid("a3") + " * tanh(" + cell + ")";
      }
      case Cell::kGru: {
        const std::string update = emitter_.define(r_.dtype, sigmoid("a1"));
        const std::string candidate =
            emitter_.define(r_.dtype, "tanh(a2 + " + sigmoid("a0") + " * a3)");
        return "(1 - " + update + ") * " + candidate + " + " + update + " * " + own +
               "[(long)s * " + number_text(r_.hidden) + " + j]";
      }
      case Cell::kRelu:
        return "a0 < 0 ? 0 : a0";
      default:
        return "tanh(a0)";
    }
  }

  Emitter& emitter_;
  const KernelTask& task_;
  const Node& node_;
  const Recurrence& r_;
  std::string type_;
  std::string memory_;
  std::int64_t sequence_count_ = 0;
  std::int64_t lanes_ = 1;
};

}  // namespace

GeneratedKernel recurrence_kernel(const KernelTask& task, NodeId heavy) {
  if (task.nodes.size() != 1) throw CannotFuse{"a recurrent layer stands alone"};
  Emitter emitter(task.model, {heavy});
  const BoundNode& node = task.model.bound(heavy);
  const Recurrence recurrence = read_recurrence(emitter, node);
  return RecurrenceWriter(emitter, task, node.node(), recurrence).write();
}

}  // namespace npu::opencl
