// SPDX-License-Identifier: Apache-2.0
// Walks over a model: initializers and inputs become values, functions are inlined, constant work
// on shapes is done here, and every other node is handed to its rule (op_table). All faults are
// collected; what a refused node would have made is unknown, and what reads that is skipped, so a
// fault is told once.
//
// O(nodes + attributes); data of weights is not read but for what shapes need.
#include "importer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "fold.hpp"
#include "npu/support/checked.hpp"
#include "npu/support/error.hpp"
#include "npu/support/text.hpp"
#include "op.hpp"

namespace npu::onnx {
namespace {

constexpr int kDeepestScope = 64;

std::string_view own_domain(std::string_view domain) { return domain == "ai.onnx" ? "" : domain; }

std::string quoted_name(std::string_view name) { return "'" + short_text(name) + "'"; }

// Other ops compute with tensors.
bool takes_sequences(std::string_view op) {
  constexpr std::array<std::string_view, 13> kOps{"ConcatFromSequence",
                                                  "Identity",
                                                  "If",
                                                  "Loop",
                                                  "Optional",
                                                  "OptionalGetElement",
                                                  "OptionalHasElement",
                                                  "SequenceAt",
                                                  "SequenceConstruct",
                                                  "SequenceErase",
                                                  "SequenceInsert",
                                                  "SequenceLength",
                                                  "SequenceMap"};
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

std::string op_text(const NodeProto& node, std::int64_t opset) {
  const std::string_view domain = own_domain(node.domain);
  return (domain.empty() ? "" : short_text(domain) + ".") + short_text(node.op_type) +
         (opset > 0 ? "-" + std::to_string(opset) : "");
}

const OpRow* find_row(std::string_view domain, std::string_view name, std::int64_t opset,
                      bool& is_known) {
  const OpRow* best = nullptr;
  is_known = false;
  for (const OpRow& row : op_table()) {
    if (row.domain != domain || row.name != name) continue;
    is_known = true;
    if (row.since <= opset && (best == nullptr || row.since > best->since)) best = &row;
  }
  return best;
}

std::uint64_t unsigned_text(std::string_view text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw Refusal{std::string(what) + " of external data is " + quoted_name(text) +
                  ", expected a number"};
  }
  return value;
}

}  // namespace

Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    const auto found = scope->names.find(name);
    if (found != scope->names.end()) return found->second;
  }
  return nullptr;
}

Importer::Importer(std::string_view bytes, Settings settings, Surroundings& surroundings)
    : bytes_(bytes), settings_(std::move(settings)), surroundings_(surroundings) {}

bool Importer::has_errors() const noexcept {
  return std::any_of(findings_.begin(), findings_.end(),
                     [](const Finding& finding) { return finding.is_error; });
}

void Importer::run() {
  model_ = parse_onnx_model(bytes_);
  if (!model_.has_graph) return add_error("the model has no graph");
  read_opsets();
  Scope scope;
  scope.opsets = &opsets_;
  read_initializers(model_.graph, scope);
  read_inputs(scope);
  if (has_errors()) return;
  run_nodes(model_.graph.nodes, scope);
  read_outputs(scope);
}

void Importer::read_opsets() {
  for (const OpsetProto& opset : model_.opsets) {
    opsets_[own_domain(opset.domain)] = opset.version;
  }
  if (opsets_.count("") == 0 && model_.ir_version < 3) opsets_[""] = 1;
  for (const FunctionProto& function : model_.functions) {
    auto& opsets = function_opsets_[&function];
    opsets = opsets_;
    for (const OpsetProto& opset : function.opsets) {
      opsets[own_domain(opset.domain)] = opset.version;
    }
  }
}

Shape Importer::shape_of_input(const ValueProto& input) {
  Shape shape;
  if (!input.has_shape) {
    throw Refusal{"has no shape"};
  }
  for (std::size_t i = 0; i < input.dims.size(); ++i) {
    const DimProto& dim = input.dims[i];
    if (dim.value && *dim.value >= 0) {
      shape.push_back(*dim.value);
      continue;
    }
    if (dim.value && *dim.value < -1) {
      throw Refusal{"has the negative dimension " + std::to_string(*dim.value)};
    }
    const std::string symbol = dim.symbol.empty()
                                   ? printable_text(input.name) + "." + std::to_string(i)
                                   : std::string(dim.symbol);
    const auto bound = settings_.bindings.find(symbol);
    if (bound == settings_.bindings.end()) {
      if (unbound_.insert(symbol).second) {
        add_error("dimension " + std::to_string(i) + " of input " + quoted_name(input.name) +
                  " is symbolic; give it a value with --bind " + short_text(symbol) + "=N");
      }
      shape.push_back(1);
    } else {
      shape.push_back(bound->second);
    }
  }
  if (const auto count = checked_element_count(shape); !count || !checked_multiply(*count, 16)) {
    throw Refusal{"of shape " + shape_text(shape) + " is too large"};
  }
  return shape;
}

void Importer::read_inputs(Scope& scope) {
  std::set<std::string_view> given;
  for (const ValueProto& input : model_.graph.inputs) {
    if (scope.names.count(input.name) != 0) continue;  // an initializer is its default
    try {
      if (!input.is_tensor) throw Refusal{"is no tensor"};
      const auto dtype = onnx_dtype(input.data_type);
      if (!dtype) {
        throw Refusal{"is of type " + onnx_dtype_text(input.data_type) +
                      ", which npu-tools does not have"};
      }
      const auto frozen = settings_.frozen.find(std::string(input.name));
      if (frozen != settings_.frozen.end()) {
        given.insert(input.name);
        if (frozen->second.dtype() != *dtype) throw Refusal{"is frozen with another dtype"};
        Value* value = draft_.add_known(frozen->second);
        value->name = input.name;
        scope.names[input.name] = value;
        continue;
      }
      scope.names[input.name] =
          draft_.add_input(std::string(input.name), *dtype, shape_of_input(input));
    } catch (const Refusal& refusal) {
      add_error("input " + quoted_name(input.name) + " " + refusal.reason);
    }
  }
  for (const auto& [name, tensor] : settings_.frozen) {
    if (given.count(name) == 0) add_error("--freeze: there is no input " + quoted_name(name));
  }
  std::set<std::string> symbols;
  for (const ValueProto& input : model_.graph.inputs) {
    for (std::size_t i = 0; i < input.dims.size(); ++i) {
      symbols.insert(std::string(input.dims[i].symbol));
      symbols.insert(printable_text(input.name) + "." + std::to_string(i));
    }
  }
  for (const auto& [name, value] : settings_.bindings) {
    if (symbols.count(name) == 0) {
      add_error("--bind: no input has the symbolic dimension " + quoted_name(name));
    }
  }
}

Value* Importer::constant_of(const OnnxTensor& tensor) {
  const auto dtype = onnx_dtype(tensor.data_type);
  if (!dtype) {
    throw Refusal{"constant " + quoted_name(tensor.name) + " is of type " +
                  onnx_dtype_text(tensor.data_type) + ", which npu-tools does not have"};
  }
  const auto count = checked_element_count(tensor.dims);
  if (!count || !checked_multiply(*count, 16)) {
    throw Refusal{"constant " + quoted_name(tensor.name) + " of shape " + shape_text(tensor.dims) +
                  " is too large"};
  }
  Value* value = draft_.add_stored(tensor, *dtype);
  const auto bytes = static_cast<std::uint64_t>(*count) * dtype_size(*dtype);
  const auto place = place_of(*value);
  if (place && !place->is_varint && place->bytes != bytes) {
    throw Refusal{"constant " + quoted_name(tensor.name) + " of shape " + shape_text(tensor.dims) +
                  " needs " + std::to_string(bytes) + " bytes, its data has " +
                  std::to_string(place->bytes)};
  }
  // Encoded so that no range of the file holds it, or one that a look at its data has to check.
  if (!place || (*dtype == DType::kBool && *count <= kMostKnown)) {
    value->known = decode_onnx_tensor(tensor, bytes_, 1 << 20);
  }
  return value;
}

Value* Importer::attribute_constant(const OnnxTensor& tensor) {
  const auto found = attribute_constants_.find(&tensor);
  if (found != attribute_constants_.end()) return found->second;
  Value* value = constant_of(tensor);
  attribute_constants_.emplace(&tensor, value);
  return value;
}

void Importer::read_initializers(const GraphProto& graph, Scope& scope) {
  if (graph.sparse_initializers > 0) add_error("the graph has sparse initializers");
  for (const OnnxTensor& tensor : graph.initializers) {
    try {
      scope.names[tensor.name] = constant_of(tensor);
    } catch (const Refusal& refusal) {
      add_error(refusal.reason);
    } catch (const Error& error) {
      add_error(error.message());
    }
  }
}

std::string_view Importer::external_data(const OnnxTensor& tensor, WeightPlace& place) {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
  for (const auto& [key, value] : tensor.external) {
    if (key == "location") location = value;
    if (key == "offset") offset = unsigned_text(value, key);
    if (key == "length") length = unsigned_text(value, key);
  }
  auto found = files_.find(location);
  if (found == files_.end()) {
    try {
      found = files_.emplace(location, surroundings_.open(location)).first;
    } catch (const Refusal& refusal) {
      throw Refusal{"constant " + quoted_name(tensor.name) + ": external data " +
                    quoted_name(location) + ": " + refusal.reason};
    }
  }
  const std::string_view bytes = found->second.bytes;
  if (offset > bytes.size() || (length && *length > bytes.size() - offset)) {
    throw Refusal{"constant " + quoted_name(tensor.name) + ": its external data lies behind the " +
                  "end of " + quoted_name(location)};
  }
  place.file = found->second.number;
  place.offset = offset;
  const auto dtype = onnx_dtype(tensor.data_type);
  const auto count = checked_element_count(tensor.dims);
  place.bytes = length ? *length
                       : std::min<std::uint64_t>(bytes.size() - offset,
                                                 static_cast<std::uint64_t>(count.value_or(0)) *
                                                     dtype_size(dtype.value_or(DType::kInt8)));
  return bytes.substr(offset, place.bytes);
}

std::optional<WeightPlace> Importer::place_of(const Value& value) {
  const OnnxTensor& tensor = *value.stored;
  WeightPlace place;
  place.transposed = value.transposed;
  std::string_view data;
  if (tensor.is_external) {
    external_data(tensor, place);
    return place;
  }
  if (tensor.raw) {
    data = *tensor.raw;
  } else {
    if (tensor.loose || tensor.packed.size() > 1) return std::nullopt;
    const std::uint32_t field = onnx_data_field(value.dtype);
    if (!tensor.packed.empty() && tensor.packed.front().first == field) {
      data = tensor.packed.front().second;
    }
    place.is_varint = !data.empty() && (field == 5 || field == 7);
    if (place.is_varint && value.transposed) return std::nullopt;
  }
  place.offset = data.empty() ? 0 : static_cast<std::uint64_t>(data.data() - bytes_.data());
  place.bytes = data.size();
  return place;
}

const Tensor* Importer::known(Value* value, std::int64_t most) {
  if (value == nullptr || !value->is_constant()) return nullptr;
  if (value->known) return value->count() <= most ? &*value->known : nullptr;
  if (value->count() > most || value->transposed) return nullptr;
  const OnnxTensor& stored = *value->stored;
  if (!stored.is_external) {
    value->known = in_shape(decode_onnx_tensor(stored, bytes_, most), value->shape);
  } else {
    WeightPlace place;
    OnnxTensor inline_tensor = stored;
    inline_tensor.raw = external_data(stored, place);
    value->known =
        in_shape(decode_onnx_tensor(inline_tensor, *inline_tensor.raw, most), value->shape);
  }
  return &*value->known;
}

bool Importer::may_spend(std::int64_t elements) noexcept {
  if (elements > kMostWork - work_) return false;
  work_ += elements;
  return true;
}

void Importer::spend(std::int64_t elements) {
  if (!may_spend(elements)) {
    throw Exhausted("its nodes look at more than " + std::to_string(kMostWork) +
                    " elements that are known");
  }
}

// ---- Nodes ----

std::string Importer::label(const NodeProto& node, const Scope& scope, std::size_t index) const {
  std::string name(node.name);
  if (name.empty()) {
    const auto named = std::find_if(node.outputs.begin(), node.outputs.end(),
                                    [](std::string_view output) { return !output.empty(); });
    name = named != node.outputs.end() ? std::string(*named)
                                       : std::string(node.op_type) + "_" + std::to_string(index);
  }
  return scope.prefix + name;
}

void Importer::run_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
  for (std::size_t i = 0; i < nodes.size(); ++i) run_node(nodes[i], scope, i);
}

void Importer::run_node(const NodeProto& node, Scope& scope, std::size_t index) {
  if (++steps_ > kMostNodes || draft_.size() > kMostNodes) {
    throw Exhausted("the model unfolds into more than " + std::to_string(kMostNodes) + " nodes");
  }
  const std::string name = label(node, scope, index);
  const std::string_view domain = own_domain(node.domain);
  const auto imported = scope.opsets->find(domain);
  const std::int64_t opset = imported == scope.opsets->end() ? 0 : imported->second;
  const auto refuse = [&](const std::string& reason) {
    add_error("node " + quoted_name(name) + " (" + op_text(node, opset) + "): " + reason);
  };
  for (const std::string_view output : node.outputs) {
    if (!output.empty()) scope.names[output] = nullptr;
  }
  draft_.set_origin(name);
  try {
    const auto function = std::find_if(
        model_.functions.begin(), model_.functions.end(), [&](const FunctionProto& known) {
          return known.name == node.op_type && own_domain(known.domain) == domain;
        });
    if (function != model_.functions.end()) {
      run_function(*function, node, scope);
    } else {
      lower(node, scope, opset);
    }
  } catch (const Refusal& refusal) {
    refuse(refusal.reason);
  } catch (const Exhausted&) {
    throw;
  } catch (const Error& error) {
    refuse(error.message());
  }
  for (const std::string_view output : node.outputs) {
    if (!output.empty() && scope.names[output] == nullptr) {
      scope.names[output] = draft_.add_unknown();
    }
  }
}

void Importer::lower(const NodeProto& node, Scope& scope, std::int64_t opset) {
  bool is_known = false;
  const OpRow* row = find_row(own_domain(node.domain), node.op_type, opset, is_known);
  if (row == nullptr) {
    if (opset == 0) throw Refusal{"the model imports no opset of its domain"};
    throw Refusal{is_known ? "is not in this opset" : "is not an op that is imported"};
  }
  if (row->rule == nullptr) throw Refusal{std::string(row->becomes)};
  std::vector<Value*> inputs;
  bool has_unknown = false;
  for (const std::string_view name : node.inputs) {
    Value* value = name.empty() ? nullptr : scope.find(name);
    if (value == nullptr && !name.empty()) {
      throw Refusal{"reads " + quoted_name(name) + ", which nothing before it makes"};
    }
    has_unknown = has_unknown || (value != nullptr && value->kind == Value::Kind::kUnknown);
    inputs.push_back(value);
  }
  if (has_unknown) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] != nullptr && inputs[i]->is_sequence() && !takes_sequences(node.op_type)) {
      throw Refusal{"operand " + std::to_string(i) + " is a sequence"};
    }
  }
  Op op(*this, node, scope, opset, std::move(inputs));
  if (!fold(op)) row->rule(op);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value* value = op.outputs()[i];
    if (value == nullptr || node.outputs[i].empty()) continue;
    if (!checked_element_count(value->shape) ||
        !checked_multiply(*checked_element_count(value->shape), 16)) {
      throw Refusal{"its result of shape " + shape_text(value->shape) + " is too large"};
    }
    if (value->name.empty()) value->name = scope.prefix + std::string(node.outputs[i]);
    scope.names[node.outputs[i]] = value;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (op.outputs()[i] == nullptr && op.wants(i)) {
      throw Refusal{"its result " + std::to_string(i) + " is not imported"};
    }
  }
}

void Importer::run_function(const FunctionProto& function, const NodeProto& node, Scope& scope) {
  if (scope.depth >= kDeepestScope) {
    throw Refusal{"functions call each other more than " + std::to_string(kDeepestScope) + " deep"};
  }
  Scope inner;
  inner.function = &function;
  inner.call = &node;
  inner.call_scope = &scope;
  inner.opsets = &function_opsets_[&function];
  inner.depth = scope.depth + 1;
  inner.prefix = label(node, scope, 0) + "/";
  for (std::size_t i = 0; i < function.inputs.size(); ++i) {
    const std::string_view name = i < node.inputs.size() ? node.inputs[i] : std::string_view();
    Value* value = name.empty() ? nullptr : scope.find(name);
    if (value == nullptr && !name.empty()) {
      throw Refusal{"reads " + quoted_name(name) + ", which nothing before it makes"};
    }
    if (value != nullptr) inner.names[function.inputs[i]] = value;
  }
  run_nodes(function.nodes, inner);
  for (std::size_t i = 0; i < node.outputs.size() && i < function.outputs.size(); ++i) {
    Value* value = inner.find(function.outputs[i]);
    if (value == nullptr) {
      throw Refusal{"its function does not make " + quoted_name(function.outputs[i])};
    }
    scope.names[node.outputs[i]] = value;
  }
}

Scope Importer::body_scope(const GraphProto& body, const Scope& outer) {
  if (outer.depth >= kDeepestScope) {
    throw Refusal{"bodies are nested more than " + std::to_string(kDeepestScope) + " deep"};
  }
  Scope scope;
  scope.outer = &outer;
  scope.opsets = outer.opsets;
  scope.depth = outer.depth + 1;
  read_initializers(body, scope);
  return scope;
}

std::vector<Value*> Importer::run_body(const GraphProto& body, const Scope& constants,
                                       const std::vector<Value*>& inputs,
                                       const std::string& prefix) {
  // A body may be empty, and still be run by a loop in a loop.
  if (++steps_ > kMostNodes) {
    throw Exhausted("the model unfolds into more than " + std::to_string(kMostNodes) + " nodes");
  }
  Scope scope;
  scope.outer = &constants;
  scope.opsets = constants.opsets;
  scope.depth = constants.depth;
  scope.prefix = prefix;
  if (inputs.size() != body.inputs.size()) {
    throw Refusal{"its body has " + std::to_string(body.inputs.size()) + " inputs, expected " +
                  std::to_string(inputs.size())};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) scope.names[body.inputs[i].name] = inputs[i];
  run_nodes(body.nodes, scope);
  std::vector<Value*> outputs;
  for (const ValueProto& output : body.outputs) {
    Value* value = scope.find(output.name);
    if (value == nullptr) throw Refusal{"its body does not make " + quoted_name(output.name)};
    outputs.push_back(value);
  }
  return outputs;
}

void Importer::read_outputs(const Scope& scope) {
  for (const ValueProto& output : model_.graph.outputs) {
    Value* value = scope.find(output.name);
    if (value == nullptr) {
      add_error("nothing makes the output " + quoted_name(output.name));
      continue;
    }
    if (value->kind == Value::Kind::kUnknown) continue;  // told already
    if (value->is_sequence()) {
      add_error("output " + quoted_name(output.name) +
                " is a sequence, and a document has tensors");
      continue;
    }
    draft_.set_origin(std::string(output.name));
    // An output is the result of a node of its own name.
    const auto& taken = draft_.outputs();
    const bool is_taken = std::find(taken.begin(), taken.end(), value) != taken.end();
    if (value->kind != Value::Kind::kResult || is_taken) {
      value =
          draft_.emit("aten.clone.default", {value}, Json::object(), value->dtype, value->shape);
    }
    value->name = output.name;
    draft_.outputs().push_back(value);
  }
}

}  // namespace npu::onnx
