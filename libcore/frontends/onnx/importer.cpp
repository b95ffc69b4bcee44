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

#include "evaluate.hpp"
#include "names.hpp"
#include "npu/support/error.hpp"
#include "op.hpp"
#include "relate_sizes.hpp"
#include "support/checked.hpp"
#include "support/text.hpp"
#include "unread.hpp"

namespace npu::onnx {
namespace {

constexpr std::string_view kMicrosoftDomain = "com.microsoft";

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

std::ptrdiff_t Importer::error_count() const noexcept {
  return std::count_if(findings_.begin(), findings_.end(), [](const Finding& finding) {
    return finding.level == Finding::Level::kError;
  });
}

void Importer::run() {
  model_ = parse_onnx_model(bytes_);
  if (!model_.has_graph) return add_error("the model has no graph");
  read_opsets();
  for (std::string& fault : name_faults(model_)) add_error(std::move(fault));
  Scope scope;
  scope.opsets = &opsets_;
  read_initializers(model_.graph, scope);
  bind_sizes();
  read_inputs(scope);
  if (has_errors()) return;
  run_nodes(model_.graph.nodes, scope);
  read_outputs(scope);
}

// Adds what is given to `opsets`. What a newer opset says of an op is not known here, so its nodes
// are read as those of the newest one that is.
void Importer::import_opsets(const std::vector<OpsetProto>& given,
                             std::map<std::string_view, std::int64_t>& opsets) {
  std::map<std::string_view, std::int64_t> own;
  for (const OpsetProto& opset : given) {
    const std::string_view domain = own_domain(opset.domain);
    const std::int64_t newest = domain.empty()               ? kNewestOpset
                                : domain == kMicrosoftDomain ? kNewestMicrosoftOpset
                                                             : INT64_MAX;
    const auto [known, is_new] = own.emplace(domain, opset.version);
    const std::string name = domain.empty() ? "ONNX" : quoted_name(domain);
    if (!is_new && known->second != opset.version) {
      add_error("opsets " + std::to_string(known->second) + " and " +
                std::to_string(opset.version) + " of " + name + " are imported, expected one");
    }
    if (opset.version > newest && newer_opsets_.emplace(domain, opset.version).second) {
      add_warning("opset " + std::to_string(opset.version) + " of " + name + " is newer than " +
                  std::to_string(newest) + ", the newest that is known: its nodes are read as " +
                  "those of opset " + std::to_string(newest));
    }
    opsets[domain] = std::min(opset.version, newest);
  }
}

void Importer::read_opsets() {
  import_opsets(model_.opsets, opsets_);
  if (opsets_.count("") == 0 && model_.ir_version < 3) opsets_[""] = 1;
  for (const FunctionProto& function : model_.functions) {
    auto& opsets = function_opsets_[&function];
    opsets = opsets_;
    import_opsets(function.opsets, opsets);
  }
}

// Sizes that follow from those that are bound get their values; what has none is told at once.
void Importer::bind_sizes() {
  const SizeRelations relations(model_, bytes_, settings_);
  std::set<std::string> names;
  for (const ValueProto& input : model_.graph.inputs) {
    for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
      const std::string name = SizeRelations::name_of(input, axis);
      names.insert(name);
      names.insert(printable_text(input.name) + "." + std::to_string(axis));
    }
  }
  for (const auto& [name, value] : settings_.bindings) {
    if (names.count(name) == 0) {
      add_error("--bind: no input has the symbolic dimension " + quoted_name(name));
    }
  }
  for (const std::string& name : names) {
    const auto number = relations.number(name);
    if (number) settings_.bindings.emplace(name, *number);
  }
  std::string unbound = unbound_sizes_text(relations.open());
  if (!unbound.empty()) add_error(std::move(unbound));
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
    // Without a value it is told already, and what is read goes on with any.
    const auto bound = settings_.bindings.find(SizeRelations::name_of(input, i));
    shape.push_back(bound != settings_.bindings.end() ? bound->second : 1);
  }
  if (const auto count = checked_element_count(shape); !count || !checked_multiply(*count, 16)) {
    throw Refusal{"of shape " + shape_text(shape) + " is too large"};
  }
  return shape;
}

void Importer::read_inputs(Scope& scope) {
  std::set<std::string_view> given;
  for (const ValueProto& input : model_.graph.inputs) {
    if (const auto initializer = scope.names.find(input.name); initializer != scope.names.end()) {
      check_stated("input", input, *initializer->second);  // which is its default
      continue;
    }
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
  const auto add = [&](std::string_view name, const auto& constant) {
    try {
      scope.names[name] = constant();
    } catch (const Refusal& refusal) {
      add_error(refusal.reason);
    } catch (const Exhausted&) {
      throw;
    } catch (const Error& error) {
      add_error(error.message());
    }
  };
  for (const OnnxTensor& tensor : graph.initializers) {
    add(tensor.name, [&] { return constant_of(tensor); });
  }
  for (const SparseProto& sparse : graph.sparse_initializers) {
    add(sparse.values.name, [&] { return sparse_constant(sparse); });
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
          return known.name == node.op_type && own_domain(known.domain) == domain &&
                 known.overload == node.overload;
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
    if (value != nullptr && value->kind == Value::Kind::kAbsent) value = nullptr;
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
  check_attributes(op, row->notes);
  if (op.is_kept() || !evaluate(op)) row->rule(op);
  const auto is_unknown = [](const Value* value) {
    return value != nullptr && value->kind == Value::Kind::kUnknown;
  };
  // A rule that met a fault inside of the node has told it, and stopped there.
  if (std::none_of(op.outputs().begin(), op.outputs().end(), is_unknown)) {
    check_reads(op, row->notes);
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Value* value = op.outputs()[i];
    if (value == nullptr || node.outputs[i].empty()) continue;
    if (!checked_element_count(value->shape) ||
        !checked_multiply(*checked_element_count(value->shape), 16)) {
      throw Refusal{"its result of shape " + shape_text(value->shape) + " is too large"};
    }
    // No device has to know how its kernel takes operands without elements.
    if (value->kind == Value::Kind::kResult && value->count() == 0) {
      value = op.filled(value->shape, value->dtype, 0);
    }
    if (value->name.empty()) value->name = scope.prefix + std::string(node.outputs[i]);
    if (settings_.notes_computed && value->is_constant() && value->stored == nullptr) {
      if (const Tensor* tensor = known(value)) {
        computed_.insert_or_assign(scope.prefix + std::string(node.outputs[i]), *tensor);
      }
    }
    scope.names[node.outputs[i]] = value;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (op.outputs()[i] == nullptr && op.wants(i)) {
      throw Refusal{"its result " + std::to_string(i) + " is not imported"};
    }
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
    if (value == nullptr || value->kind == Value::Kind::kAbsent) {
      throw Refusal{"its body does not make " + quoted_name(output.name)};
    }
    outputs.push_back(value);
  }
  return outputs;
}

// What a model states of a value that it makes: a dtype that is not the value's is a fault, and the
// value's own shape holds.
void Importer::check_stated(const char* what, const ValueProto& stated, const Value& made) {
  if (!stated.is_tensor || made.is_sequence() || made.kind == Value::Kind::kUnknown) return;
  const std::string name = std::string(what) + " " + quoted_name(stated.name);
  const std::string maker = made.is_constant() ? "its constant is " : "its nodes make ";
  if (stated.data_type != 0 && onnx_dtype(stated.data_type) != made.dtype) {
    const auto dtype = onnx_dtype(stated.data_type);
    return add_error(name + " is stated to be " +
                     (dtype ? std::string(dtype_name(*dtype)) : onnx_dtype_text(stated.data_type)) +
                     ", and " + maker + std::string(dtype_name(made.dtype)));
  }
  if (!stated.has_shape) return;
  bool is_same = stated.dims.size() == made.shape.size();
  std::string text;
  for (std::size_t i = 0; i < stated.dims.size(); ++i) {
    const DimProto& dim = stated.dims[i];
    std::int64_t extent = dim.value.value_or(-1);
    const auto bound = settings_.bindings.find(std::string(dim.symbol));
    if (!dim.value && bound != settings_.bindings.end()) extent = bound->second;
    // Some exporters write 0 for what they do not know.
    const bool is_stated = extent > 0;
    is_same = is_same && (!is_stated || extent == made.shape[i]);
    text += (i == 0 ? "" : ", ") + (is_stated            ? std::to_string(extent)
                                    : dim.symbol.empty() ? "?"
                                                         : short_text(dim.symbol));
  }
  if (is_same) return;
  add_warning(name + " is stated to be of shape [" + text + "], and " + maker +
              shape_text(made.shape) + ", which holds");
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
    check_stated("output", output, *value);
    draft_.set_origin(std::string(output.name));
    // An output is an input or another output of its own name, or the result of a node.
    const auto& taken = draft_.outputs();
    const bool is_taken = std::find(taken.begin(), taken.end(), value) != taken.end();
    const bool is_named = value->name == output.name;
    if (is_named && (is_taken || value->kind == Value::Kind::kInput)) {
      draft_.outputs().push_back(value);
      continue;
    }
    if (value->kind != Value::Kind::kResult || is_taken) {
      value =
          draft_.emit("aten.clone.default", {value}, Json::object(), value->dtype, value->shape);
    }
    value->name = output.name;
    draft_.outputs().push_back(value);
  }
}

}  // namespace npu::onnx
