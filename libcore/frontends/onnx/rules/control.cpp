// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan. A document has no control flow: what decides has to be known at import, then
// If is its branch, and the trips of a loop stand one after another. O(trips * nodes of the body),
// of which a loop has kMostUnrolled at most.
#include <algorithm>
#include <cstring>

#include "rules/rules.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

constexpr std::size_t kMostUnrolled = 10'000;

const GraphProto& graph_attribute(Op& op, std::string_view name) {
  const AttributeProto* found = op.attribute(name);
  if (found == nullptr || !found->graph) Op::refuse("has no '" + std::string(name) + "'");
  return *found->graph;
}

std::string prefix_of(Op& op) {
  const NodeProto& node = op.node();
  return op.scope().prefix + std::string(node.name.empty() ? node.op_type : node.name) + "/";
}

/// The trips of one loop.
class Trips {
 public:
  Trips(Op& op, const GraphProto& body)
      : op_(op),
        body_(body),
        constants_(op.importer().body_scope(body, op.scope())),
        first_(op.importer().steps()),
        faults_(faults()) {}

  /// The results of one more trip. Nothing: it has a fault, which is told, or reads what a fault
  /// left open.
  std::optional<std::vector<Value*>> run(const std::vector<Value*>& inputs) {
    const std::string prefix = prefix_of(op_) + std::to_string(count_) + "/";
    ++count_;
    if (op_.importer().steps() - first_ + 1 > kMostUnrolled) {
      Op::refuse("unfolds into more than " + std::to_string(kMostUnrolled) + " nodes, after " +
                 std::to_string(count_ - 1) + " trips of " + std::to_string(body_.nodes.size()) +
                 " nodes each");
    }
    std::vector<Value*> results = op_.importer().run_body(body_, constants_, inputs, prefix);
    op_.draft().set_origin(op_.origin());
    const bool has_unknown = std::any_of(results.begin(), results.end(), [](const Value* value) {
      return value->kind == Value::Kind::kUnknown;
    });
    if (has_unknown || faults() != faults_) return std::nullopt;
    return results;
  }

 private:
  std::ptrdiff_t faults() const { return op_.importer().error_count(); }

  Op& op_;
  const GraphProto& body_;
  const Scope constants_;
  const std::size_t first_;
  const std::ptrdiff_t faults_;
  std::size_t count_ = 0;
};

void set_unknown(Op& op) {
  for (std::size_t i = 0; i < op.output_count(); ++i) op.set(i, op.draft().add_unknown());
}

// Constants one after another along the first axis; null if one is none, or they are too many.
Value* joined_constants(Op& op, const std::vector<Value*>& parts, const Shape& shape) {
  const auto count = checked_element_count(shape);
  if (!count || *count > Importer::kMostKnown) return nullptr;
  Tensor whole(parts[0]->dtype, shape);
  std::byte* to = whole.mutable_data();
  for (Value* part : parts) {
    const Tensor* tensor = op.importer().known(part);
    if (tensor == nullptr) return nullptr;
    const std::size_t bytes =
        static_cast<std::size_t>(tensor->element_count()) * dtype_size(tensor->dtype());
    if (bytes > 0) std::memcpy(to, tensor->data(), bytes);
    to += bytes;
  }
  return op.constant_value(std::move(whole));
}

// The results of all trips along a new axis.
Value* stacked(Op& op, const std::vector<Value*>& values, std::int64_t axis,
               const ValueProto& stated) {
  if (values.empty()) {
    const auto dtype = onnx_dtype(stated.data_type);
    Shape shape;
    for (const DimProto& dim : stated.dims) shape.push_back(dim.value.value_or(-1));
    if (!dtype || !stated.has_shape || std::find(shape.begin(), shape.end(), -1) != shape.end()) {
      Op::refuse("makes no trip, and its body does not state the shape of its result");
    }
    shape.insert(shape.begin() + Op::axis_of(axis, static_cast<std::int64_t>(shape.size()) + 1), 0);
    return op.constant_value(Tensor(*dtype, shape));
  }
  axis = Op::axis_of(axis, values[0]->rank() + 1);
  std::vector<Value*> parts;
  for (Value* value : values) {
    if (value->is_sequence()) Op::refuse("its trips' results are sequences");
    if (value->shape != values[0]->shape || value->dtype != values[0]->dtype) {
      Op::refuse("the shapes of its trips' results differ");
    }
    Shape shape = value->shape;
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(op.view(value, std::move(shape)));
  }
  if (parts.size() == 1) return parts[0];
  Shape shape = parts[0]->shape;
  shape[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(parts.size());
  if (axis == 0) {
    if (Value* known = joined_constants(op, parts, shape)) return known;
  }
  const DType dtype = parts[0]->dtype;
  return op.emit("aten.cat.default", std::move(parts), Json{{"dim", axis}}, dtype, shape);
}

/// What Scan says about its operands and results.
struct ScanForm {
  std::int64_t scanned = 0;  ///< operands that are walked along
  std::size_t states = 0;
  Ints axes;
  Ints directions;
  Ints result_axes;
  Ints result_directions;
};

Ints list_or_zeros(Op& op, std::string_view name, std::size_t size) {
  Ints values = op.list(name).value_or(Ints(size, 0));
  if (values.size() != size) Op::refuse("'" + std::string(name) + "' has another length");
  return values;
}

struct ScanResults {
  std::vector<Value*> states;
  std::vector<Value*> stacks;
};

// Walks along the scanned operands; nothing after a fault.
std::optional<ScanResults> scan(Op& op, Trips& trips, const GraphProto& body, const ScanForm& form,
                                std::vector<Value*> states, const std::vector<Value*>& scanned) {
  std::int64_t length = -1;
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    const auto axis = Op::axis_of(form.axes[i], scanned[i]->rank());
    const std::int64_t extent = scanned[i]->shape[static_cast<std::size_t>(axis)];
    if (length >= 0 && extent != length) Op::refuse("its operands are of different lengths");
    length = extent;
  }
  std::vector<std::vector<Value*>> made(body.outputs.size() - form.states);
  for (std::int64_t t = 0; t < length; ++t) {
    std::vector<Value*> inputs = states;
    for (std::size_t i = 0; i < scanned.size(); ++i) {
      const auto axis = Op::axis_of(form.axes[i], scanned[i]->rank());
      const std::int64_t at = form.directions[i] != 0 ? length - 1 - t : t;
      Value* item = op.slice(scanned[i], axis, at, at + 1);
      Shape shape = item->shape;
      shape.erase(shape.begin() + axis);
      inputs.push_back(op.view(item, std::move(shape)));
    }
    const auto results = trips.run(inputs);
    if (!results) return std::nullopt;
    const auto split = results->begin() + static_cast<std::ptrdiff_t>(form.states);
    states.assign(results->begin(), split);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].push_back(split[static_cast<std::ptrdiff_t>(i)]);
    }
  }
  ScanResults results{std::move(states), {}};
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (form.result_directions[i] != 0) std::reverse(made[i].begin(), made[i].end());
    results.stacks.push_back(
        stacked(op, made[i], form.result_axes[i], body.outputs[form.states + i]));
  }
  return results;
}

// Opset 8: every element of a batch by itself.
void import_batched_scan(Op& op, Trips& trips, const GraphProto& body, const ScanForm& form) {
  const std::size_t operands = op.input_count() - 1;
  const std::int64_t batch = op.in(1)->rank() > 0 ? op.in(1)->shape[0] : 0;
  if (batch < 1 || batch > 1024) Op::refuse("a batch of " + std::to_string(batch));
  if (op.has_input(0)) {
    const Value* last = op.in(op.input_count() - 1);
    for (const std::int64_t length : op.integers(0, "sequence_lens")) {
      if (last->rank() < 2 || length != last->shape[1]) {
        Op::refuse("sequences of different lengths");
      }
    }
  }
  std::vector<std::vector<Value*>> made(op.output_count());
  for (std::int64_t b = 0; b < batch; ++b) {
    std::vector<Value*> items;
    for (std::size_t i = 0; i < operands; ++i) {
      Value* whole = op.in(i + 1);
      if (whole->rank() < 1 || whole->shape[0] != batch) Op::refuse("its batches differ");
      Value* item = op.slice(whole, 0, b, b + 1);
      items.push_back(op.view(item, Shape(item->shape.begin() + 1, item->shape.end())));
    }
    const auto split = items.begin() + static_cast<std::ptrdiff_t>(form.states);
    auto results = scan(op, trips, body, form, {items.begin(), split}, {split, items.end()});
    if (!results) return set_unknown(op);
    results->states.insert(results->states.end(), results->stacks.begin(), results->stacks.end());
    for (std::size_t i = 0; i < made.size() && i < results->states.size(); ++i) {
      made[i].push_back(results->states[i]);
    }
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    op.set(i, stacked(op, made[i], 0, body.outputs[i]));
  }
}

}  // namespace

void import_if(Op& op) {
  const double condition = op.number(0, "the condition");
  const GraphProto& branch = graph_attribute(op, condition != 0 ? "then_branch" : "else_branch");
  const Scope constants = op.importer().body_scope(branch, op.scope());
  const auto results = op.importer().run_body(branch, constants, {}, prefix_of(op));
  if (results.size() != op.output_count()) Op::refuse("its branch has another number of results");
  for (std::size_t i = 0; i < results.size(); ++i) op.set(i, results[i]);
}

void import_loop(Op& op) {
  const GraphProto& body = graph_attribute(op, "body");
  const std::size_t carried = op.input_count() < 2 ? 0 : op.input_count() - 2;
  if (body.outputs.size() < carried + 1 || body.outputs.size() != op.output_count() + 1) {
    Op::refuse("its body has " + std::to_string(body.outputs.size()) + " results");
  }
  std::int64_t most = INT64_MAX;
  if (op.has_input(0)) {
    most = integer_operand(op, 0, "the trip count");
  }
  bool goes_on = !op.has_input(1) || op.number(1, "the condition") != 0;
  Tensor truth(DType::kBool, {});
  truth.as_mutable<std::uint8_t>()[0] = 1;
  Value* condition = op.has_input(1) ? op.in(1) : op.constant_value(std::move(truth));
  std::vector<Value*> state;
  for (std::size_t i = 0; i < carried; ++i) state.push_back(op.in(i + 2));
  std::vector<std::vector<Value*>> made(body.outputs.size() - 1 - carried);
  Trips trips(op, body);
  for (std::int64_t t = 0; t < most && goes_on; ++t) {
    std::vector<Value*> inputs{op.integer_constant({t}, {}), condition};
    inputs.insert(inputs.end(), state.begin(), state.end());
    const auto results = trips.run(inputs);
    if (!results) return set_unknown(op);
    condition = (*results)[0];
    const Tensor& answer = op.known_or_refuse(condition, "the condition of its next trip");
    goes_on = answer.element_count() == 1 && answer.value_as_double(0) != 0;
    const auto split = results->begin() + 1 + static_cast<std::ptrdiff_t>(carried);
    state.assign(results->begin() + 1, split);
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i].push_back(split[static_cast<std::ptrdiff_t>(i)]);
    }
  }
  for (std::size_t i = 0; i < carried; ++i) op.set(i, state[i]);
  for (std::size_t i = 0; i < made.size(); ++i) {
    op.set(carried + i, stacked(op, made[i], 0, body.outputs[1 + carried + i]));
  }
}

void import_sequence_map(Op& op) {
  const GraphProto& body = graph_attribute(op, "body");
  if (!op.in(0)->is_sequence()) Op::refuse("operand 0 is no sequence");
  if (body.outputs.size() != op.output_count())
    Op::refuse("its body has another number of results");
  std::vector<Value*> operands;
  for (std::size_t i = 0; i < op.input_count(); ++i) operands.push_back(op.in(i));
  const std::size_t length = op.in(0)->items.size();
  std::vector<std::vector<Value*>> made(body.outputs.size());
  op.importer().spend(static_cast<std::int64_t>(length * made.size()));
  Trips trips(op, body);
  for (std::size_t t = 0; t < length; ++t) {
    std::vector<Value*> inputs;
    for (Value* value : operands) {
      if (value->is_sequence() && value->items.size() != length) {
        Op::refuse("its sequences are of different lengths");
      }
      inputs.push_back(value->is_sequence() ? value->items[t] : value);
    }
    const auto results = trips.run(inputs);
    if (!results) return set_unknown(op);
    for (std::size_t i = 0; i < made.size(); ++i) made[i].push_back((*results)[i]);
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    op.set(i, op.draft().add_sequence(std::move(made[i])));
  }
}

void import_scan(Op& op) {
  const GraphProto& body = graph_attribute(op, "body");
  const bool is_batched = op.opset() < 9;
  const std::size_t first = is_batched ? 1 : 0;
  ScanForm form;
  form.scanned = op.integer("num_scan_inputs", 0);
  const auto operands =
      static_cast<std::int64_t>(op.input_count() - std::min(first, op.input_count()));
  if (form.scanned < 1 || form.scanned > operands) Op::refuse("'num_scan_inputs' does not fit");
  form.states = static_cast<std::size_t>(operands - form.scanned);
  const auto scanned = static_cast<std::size_t>(form.scanned);
  if (body.outputs.size() < form.states || body.outputs.size() != op.output_count()) {
    Op::refuse("its body has " + std::to_string(body.outputs.size()) + " results");
  }
  const std::size_t stacks = body.outputs.size() - form.states;
  form.axes = list_or_zeros(op, "scan_input_axes", scanned);
  form.directions = list_or_zeros(op, is_batched ? "directions" : "scan_input_directions", scanned);
  form.result_axes = list_or_zeros(op, "scan_output_axes", stacks);
  form.result_directions = list_or_zeros(op, "scan_output_directions", stacks);
  Trips trips(op, body);
  if (is_batched) return import_batched_scan(op, trips, body, form);
  std::vector<Value*> states;
  std::vector<Value*> items;
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    (i < form.states ? states : items).push_back(op.in(i));
  }
  const auto results = scan(op, trips, body, form, std::move(states), items);
  if (!results) return set_unknown(op);
  for (std::size_t i = 0; i < form.states; ++i) op.set(i, results->states[i]);
  for (std::size_t i = 0; i < stacks; ++i) op.set(form.states + i, results->stacks[i]);
}

}  // namespace npu::onnx
