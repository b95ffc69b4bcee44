// SPDX-License-Identifier: Apache-2.0
// The join of the token loop and the session: tokens and positions become the inputs that have
// these roles, and the output that has the logits becomes rows of floats. Entries of an encoder are
// those of SourceEncoder.
//
// What a step costs besides the session's: nothing for logits of float32, a pass over them for
// those of 16 bits. A step of all rows of an entry uses tensors that are kept; one of fewer makes
// them, since the session pads them.
#include "runtime/generate/session_model.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "ir/states_section.hpp"
#include "runtime/entries/pad_rows.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

const TensorInfo* state_tensor(const Graph& graph, const State& state) {
  const TensorId id = graph.find_tensor(state.input.empty() ? state.output : state.input);
  return id.valid() ? &graph.tensor(id) : nullptr;
}

/// The name of the size that dimension 1 of a template's input has, if it is one.
std::optional<std::string> size_of_rows(const Template* model, const std::string& input,
                                        const SizeBindings& bound) {
  const SizeShape* shape = model == nullptr ? nullptr : model->shape(input);
  if (shape == nullptr || shape->size() != 2) return std::nullopt;
  std::string size = (*shape)[1].text();
  if (!bound.contains(size)) return std::nullopt;
  return size;
}

/// Bytes of weights that a step of one token reads. Of a table that is only looked up it reads a
/// row.
std::int64_t read_weight_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const TensorInfo& tensor : graph.tensors()) {
    if (tensor.kind != TensorKind::kWeight || tensor.consumers.empty()) continue;
    const bool is_table =
        !tensor.shape.empty() && tensor.shape[0] > 0 &&
        std::all_of(tensor.consumers.begin(), tensor.consumers.end(),
                    [&](NodeId id) { return graph.node(id).op_type == "aten.embedding.default"; });
    bytes += is_table ? tensor.bytes() / tensor.shape[0] : tensor.bytes();
  }
  return bytes;
}

const Json* target_json(const Graph& graph) {
  const Json* target = graph.npu_member("target");
  return target != nullptr && target->is_object() ? target : nullptr;
}

/// The bandwidth of a device, of the document's target; 0 if it states none.
double bandwidth_of(const Graph& graph, const std::string& name) {
  const Json* target = target_json(graph);
  const Json* devices = target == nullptr ? nullptr : member_list(*target, "devices");
  for (std::size_t i = 0; devices != nullptr && i < devices->size(); ++i) {
    const std::string* own = member_text((*devices)[i], "name");
    if (own != nullptr && *own == name) {
      return member_double((*devices)[i], "memory_bandwidth").value_or(0);
    }
  }
  return 0;
}

[[noreturn]] void refuse_decoder(const std::string& file, const std::string& text) {
  throw Error(ErrorCode::kUnsupported, text, {.file = file});
}

/// Tokens, and positions from `first` on.
void fill(std::vector<NamedTensor>& inputs, std::span<const std::int64_t> ids, std::int64_t first) {
  std::copy(ids.begin(), ids.end(), inputs.front().tensor.as_mutable<std::int64_t>());
  if (inputs.size() < 2) return;
  auto* positions = inputs[1].tensor.as_mutable<std::int64_t>();
  std::iota(positions, positions + ids.size(), first);
}

}  // namespace

SessionModel::SessionModel(std::unique_ptr<Session> session, const std::string& file)
    : session_(std::move(session)), capacity_(std::numeric_limits<std::int64_t>::max()) {
  for (std::size_t i = 0; i < session_->entries().size(); ++i) add_entry(i, file);
  if (decoders_.empty()) {
    refuse_decoder(file,
                   "the model is no decoder: no entry has roles for tokens and logits "
                   "(npu.generate of npu-ir(5))");
  }
  for (const std::int64_t id : roles_.start) {
    if (id < vocabulary_) continue;
    refuse_decoder(file, "npu.generate starts with id " + std::to_string(id) +
                             ", which is not below the size of the vocabulary, " +
                             std::to_string(vocabulary_));
  }
}

std::unique_ptr<SessionModel> SessionModel::open(const Bundle& bundle,
                                                 const RunModelOptions& options,
                                                 SessionLogits logits, Diagnostics& diagnostics) {
  auto session = Session::open(bundle, options, logits, diagnostics);
  if (session == nullptr || diagnostics.has_errors()) return nullptr;
  auto model = std::make_unique<SessionModel>(std::move(session), bundle.name());
  model->precision_ = options.precision.empty() ? bundle.precision() : options.precision;
  return model;
}

std::unique_ptr<SessionModel> SessionModel::open(Graph graph, const RunModelOptions& options,
                                                 Diagnostics& diagnostics) {
  const std::string file = graph.file;
  auto session = Session::open(std::move(graph), options, diagnostics);
  if (session == nullptr || diagnostics.has_errors()) return nullptr;
  auto model = std::make_unique<SessionModel>(std::move(session), file);
  model->precision_ = options.precision.empty() ? "f32" : options.precision;
  return model;
}

void SessionModel::add_entry(std::size_t entry, const std::string& file) {
  const Graph& graph = session_->graph(entry);
  Diagnostics faults;
  const auto roles = read_generate_roles(graph.document(), file, faults);
  const std::vector<State> states = read_states(graph, faults);
  if (faults.has_errors()) refuse_decoder(file, faults.entries().front().text);
  if (!roles) return;
  if (!roles->source.empty()) return encoder_.add_entry(*session_, entry, roles->source, file);
  if (!decoders_.empty() && *roles != roles_) {
    refuse_decoder(file, "entries of the model disagree about the roles of npu.generate");
  }
  roles_ = *roles;
  const Session::Entry& known = session_->entries()[entry];
  const TensorInfo& tokens = graph.tensor(graph.find_tensor(roles->tokens));
  const std::int64_t rows = tokens.shape[1];
  Decoder decoder;
  decoder.entry = entry;
  decoder.inputs.push_back({roles->tokens, Tensor(DType::kInt64, tokens.shape)});
  decoder.new_rows = size_of_rows(session_->sizes(entry), roles->tokens, known.bound);
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& input = graph.tensor(id);
    const bool is_state = std::any_of(states.begin(), states.end(), [&](const State& state) {
      return state.input == input.name;
    });
    if (input.name == roles->positions) {
      if (input.shape.back() != rows) {
        refuse_decoder(file, "input '" + input.name + "' has " +
                                 std::to_string(input.shape.back()) + " positions for " +
                                 std::to_string(rows) + " tokens");
      }
      decoder.inputs.push_back({input.name, Tensor(DType::kInt64, input.shape)});
    } else if (input.name != roles->tokens && !is_state && !input.name.starts_with("npu.n.")) {
      refuse_decoder(
          file, "input '" + input.name + "' is neither a state nor has it a role of npu.generate");
    }
  }
  const std::vector<std::string>& outputs = session_->output_names(entry);
  const auto output = std::find(outputs.begin(), outputs.end(), roles->logits);
  const TensorInfo& logits = graph.tensor(graph.find_tensor(roles->logits));
  if (output == outputs.end()) {
    refuse_decoder(file, "output '" + roles->logits + "' is a state, not logits");
  }
  decoder.logits = static_cast<std::size_t>(output - outputs.begin());
  const std::int64_t given = logits.shape[1];
  if ((given != rows && given != 1) || logits.shape[2] < 1 ||
      (vocabulary_ != 0 && logits.shape[2] != vocabulary_)) {
    refuse_decoder(file, "output '" + logits.name + "' has the shape " + shape_text(logits.shape) +
                             ", expected [1, " + std::to_string(rows) + " or 1, " +
                             (vocabulary_ == 0 ? "V" : std::to_string(vocabulary_)) + "]");
  }
  vocabulary_ = logits.shape[2];
  const bool is_proved = decoder.new_rows && graph.npu_member("padding") != nullptr &&
                         unproved_size(graph, {{*decoder.new_rows, 1}}).empty();
  entries_.push_back({.name = known.name.empty() ? graph.model_name() : known.name,
                      .rows = rows,
                      .predicted_us = known.predicted_us,
                      .gives_all_rows = given == rows,
                      .pads = is_proved || rows == 1});
  decoders_.push_back(std::move(decoder));
  measure_states(graph);
}

/// Room for positions, and bytes, of the states of an entry that takes tokens.
void SessionModel::measure_states(const Graph& graph) {
  Diagnostics ignored;  // read before
  row_bytes_ = 0;
  fixed_bytes_ = 0;
  for (const State& state : read_states(graph, ignored)) {
    const TensorInfo* tensor = state_tensor(graph, state);
    if (tensor == nullptr) continue;
    // What is only read, such as keys of a source, has no room for tokens.
    const bool has_room = state.axis && !state.output.empty();
    const std::int64_t rows = has_room ? tensor->shape[static_cast<std::size_t>(*state.axis)] : 0;
    if (rows > 0) {
      capacity_ = std::min(capacity_, rows);
      row_bytes_ += tensor->bytes() / rows;
    } else {
      fixed_bytes_ += tensor->bytes();
    }
  }
}

std::span<const float> SessionModel::step(std::size_t entry, std::span<const std::int64_t> ids,
                                          std::int64_t first) {
  Decoder& decoder = decoders_[entry];
  const auto count = static_cast<std::int64_t>(ids.size());
  if (count == entries_[entry].rows) {
    fill(decoder.inputs, ids, first);
    outputs_ = session_->step(decoder.entry, decoder.inputs, {});
  } else {
    std::vector<NamedTensor> inputs;
    for (const NamedTensor& whole : decoder.inputs) {
      Shape shape = whole.tensor.shape();
      shape.back() = count;
      inputs.push_back({whole.name, Tensor(DType::kInt64, shape)});
    }
    fill(inputs, ids, first);
    outputs_ = session_->step(decoder.entry, inputs, {{decoder.new_rows.value(), count}});
  }
  const Tensor& logits = outputs_[decoder.logits];
  const std::int64_t rows = entries_[entry].gives_all_rows ? count : 1;
  if (logits.element_count() != rows * vocabulary_) {
    throw Error(ErrorCode::kFailed, "a step of " + std::to_string(count) + " tokens gave logits " +
                                        shape_text(logits.shape()));
  }
  if (logits.dtype() == DType::kFloat32) {
    return {logits.as<float>(), static_cast<std::size_t>(rows * vocabulary_)};
  }
  widened_.resize(static_cast<std::size_t>(rows * vocabulary_));
  const auto* bits = logits.as<std::uint16_t>();
  const bool is_half = logits.dtype() == DType::kFloat16;
  std::transform(bits, bits + widened_.size(), widened_.begin(), [&](std::uint16_t value) {
    return is_half ? float16_to_float(value) : bfloat16_to_float(value);
  });
  return widened_;
}

StepModelFacts SessionModel::facts() const {
  std::size_t smallest = 0;
  for (std::size_t i = 1; i < entries_.size(); ++i) {
    if (entries_[i].rows < entries_[smallest].rows) smallest = i;
  }
  const Graph& graph = session_->graph(decoders_[smallest].entry);
  StepModelFacts facts;
  facts.model = graph.model_name();
  const Json* target = target_json(graph);
  const std::string* name = target == nullptr ? nullptr : member_text(*target, "name");
  if (name != nullptr) facts.target = *name;
  facts.precision = precision_;
  facts.load_ms = session_->load_ms();
  facts.weight_bytes = read_weight_bytes(graph);
  facts.row_bytes = row_bytes_;
  facts.fixed_bytes = fixed_bytes_;
  for (const StateUse& state : session_->states()) {
    facts.states.push_back({.name = state.name,
                            .device = state.device,
                            .path = state_path_name(state.path),
                            .bytes = state.bytes});
    if (facts.memory_bandwidth == 0) facts.memory_bandwidth = bandwidth_of(graph, state.device);
  }
  return facts;
}

}  // namespace npu
