// SPDX-License-Identifier: Apache-2.0
// Keeps the entries of a model loaded, on the same open devices, and the states that they share. A
// step is one run of an executor: its inputs are padded as a request of npu-run is, its outputs are
// cut by what the template says of their sizes, and states do not leave their devices. Blobs that
// serve several entries are loaded once.
#include "runtime/session/session.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "ir/bind_sizes.hpp"
#include "ir/states_section.hpp"
#include "npu/support/ids.hpp"
#include "ops/check_template.hpp"
#include "runtime/entries/pad_rows.hpp"
#include "runtime/executor/device_states.hpp"
#include "runtime/executor/loaded_programs.hpp"
#include "runtime/prepared_model.hpp"
#include "runtime/run_options.hpp"
#include "runtime/session/step_tensors.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// The shape of a tensor at sizes that are valid; that of the entry if it does not vary, or if the
/// entry has cut it to one row.
Shape valid_shape(const Template& model, const TensorInfo& info, const SizeBindings& valid) {
  const SizeShape* sizes = model.shape(info.name);
  if (sizes == nullptr || sizes->size() != info.shape.size()) return info.shape;
  Shape shape;
  for (std::size_t d = 0; d < info.shape.size(); ++d) {
    const bool is_row = info.shape[d] == 1;
    shape.push_back(is_row ? 1 : (*sizes)[d].evaluate(valid));
  }
  return shape;
}

/// The places of the entries that a session has.
std::vector<std::size_t> wanted_entries(const Bundle& bundle, SessionLogits logits) {
  std::vector<std::size_t> wanted;
  const std::vector<BundleEntry>& entries = bundle.entries();
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool suits = entries[i].has_last_row == (logits == SessionLogits::kLastRow);
    const bool has_other =
        std::any_of(entries.begin(), entries.end(), [&](const BundleEntry& other) {
          return other.of == entries[i].of && other.bound == entries[i].bound &&
                 other.has_last_row != entries[i].has_last_row;
        });
    if (suits || !has_other) wanted.push_back(i);
  }
  return wanted;
}

}  // namespace

/// A run of a bundle checks the digests of its blobs when it begins, beside its first step. A
/// session has many steps, and the first one is waited for: here that is a part of loading.
void check_digests(const Bundle& bundle, const std::vector<std::size_t>& entries) {
  for (const std::size_t entry : entries) {
    for (const BundlePartition& partition : bundle.entries()[entry].partitions) {
      bundle.check_section(partition.section);
    }
  }
}

/// A loaded entry.
struct LoadedEntry {
  Graph graph;
  PreparedModel model;
  std::unique_ptr<Executor> executor;
  std::set<TensorId> state_inputs;
  std::vector<std::size_t> kept;  ///< places among the graph's outputs of those that are no states
  std::vector<std::string> output_names;
  std::int64_t copied_bytes = 0;
  std::int64_t transfer_bytes = 0;
};

namespace {

/// The order in which entries are loaded: a state lies on the device of the first one that has it,
/// which should be one that reads it in each step, such as a decoder, and not one that writes it
/// once, such as an encoder.
std::vector<std::size_t> by_state_inputs(const std::vector<std::unique_ptr<LoadedEntry>>& loaded) {
  std::vector<std::size_t> order(loaded.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t i) { return state_inputs(loaded[i]->graph).size(); });
  return order;
}

}  // namespace

struct Session::Parts {
  RunModelOptions options;
  std::string file;
  std::vector<Session::Entry> entries;
  std::vector<std::optional<Template>> documents;
  std::vector<std::size_t> document_of;              // by entry
  std::vector<std::unique_ptr<LoadedEntry>> loaded;  // by entry
  std::shared_ptr<DeviceStates> states = std::make_shared<DeviceStates>();
  std::size_t last = 0;  // the entry of the last step
  double load_ms = 0;

  ExecutorOptions executor_options_for_states(const std::shared_ptr<LoadedModels>& models) const {
    ExecutorOptions result = executor_options(options);
    result.in_flight = 1;
    result.queues = true;
    result.states = states;
    result.models = models;
    return result;
  }

  const std::optional<Template>& sizes(std::size_t entry) const {
    return documents[document_of[entry]];
  }

  /// Once its model is prepared.
  void load(LoadedEntry& entry, const ExecutorOptions& executor) {
    entry.executor = load_executor(entry.graph, entry.model, executor);
    Diagnostics known;
    std::set<TensorId> state_outputs;
    for (const State& state : read_states(entry.graph, known)) {
      if (!state.input.empty()) entry.state_inputs.insert(entry.graph.find_tensor(state.input));
      if (!state.output.empty()) state_outputs.insert(entry.graph.find_tensor(state.output));
    }
    const auto& outputs = entry.graph.graph_outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (state_outputs.contains(outputs[i])) continue;
      entry.kept.push_back(i);
      entry.output_names.push_back(entry.graph.tensor(outputs[i]).name);
    }
    for (const StateUse& use : entry.executor->states()) {
      entry.copied_bytes += use.copied_bytes;
      entry.transfer_bytes += use.transfer_bytes;
    }
  }

  /// The sizes of a step: those that are given, else the entry's own.
  SizeBindings sizes_of_step(std::size_t index, const SizeBindings& given) const {
    const Session::Entry& entry = entries[index];
    SizeBindings valid = entry.bound;
    for (const auto& [symbol, value] : given) {
      const auto found = valid.find(symbol);
      if (found == valid.end()) {
        throw Error(ErrorCode::kUsage, "the model has no size '" + printable_text(symbol) + "'",
                    {.file = file});
      }
      if (value < 1 || value > found->second) {
        throw Error(ErrorCode::kUsage,
                    "size " + symbol + " is " + std::to_string(value) + ", entry '" +
                        printable_text(entry.name) + "' takes 1.." + std::to_string(found->second),
                    {.file = file});
      }
      found->second = value;
    }
    return valid;
  }

  Tensor input_of(std::size_t index, const TensorInfo& info, const std::vector<NamedTensor>& inputs,
                  const SizeBindings& valid) const {
    const std::optional<Template>& model = sizes(index);
    const auto given = std::ranges::find_if(
        inputs, [&](const NamedTensor& input) { return input.name == info.name; });
    if (given == inputs.end()) {
      if (auto size = valid_size(info, valid)) return *std::move(size);
      throw Error(ErrorCode::kUsage, "input '" + info.name + "' of a step is missing",
                  {.file = file});
    }
    const Tensor& tensor = given->tensor;
    const Shape shape = model ? valid_shape(*model, info, valid) : info.shape;
    if (tensor.dtype() != info.dtype || tensor.shape() != shape) {
      throw Error(ErrorCode::kUsage,
                  "input '" + info.name + "' of a step is " +
                      std::string(dtype_name(tensor.dtype())) + " " + shape_text(tensor.shape()) +
                      ", expected " + std::string(dtype_name(info.dtype)) + " " + shape_text(shape),
                  {.file = file});
    }
    if (shape != info.shape && loaded[index]->graph.npu_member("padding") == nullptr) {
      throw Error(ErrorCode::kUnsupported,
                  "input '" + info.name +
                      "' is smaller than the entry's, which is not proved for "
                      "padding: give inputs of the entry's sizes",
                  {.file = file});
    }
    if (shape != info.shape) check_proved(loaded[index]->graph, valid);
    return padded_rows(tensor, info.shape);
  }

  std::vector<Tensor> inputs_of(std::size_t index, const std::vector<NamedTensor>& inputs,
                                const SizeBindings& valid) const {
    const LoadedEntry& entry = *loaded[index];
    std::vector<Tensor> all;
    all.reserve(entry.graph.graph_inputs().size());
    for (const TensorId id : entry.graph.graph_inputs()) {
      const bool is_state = entry.state_inputs.contains(id);
      all.push_back(is_state ? Tensor() : input_of(index, entry.graph.tensor(id), inputs, valid));
    }
    for (const NamedTensor& given : inputs) {
      const TensorId id = entry.graph.find_tensor(given.name);
      const bool is_input = id.valid() && !entry.state_inputs.contains(id) &&
                            entry.graph.tensor(id).kind == TensorKind::kGraphInput;
      if (is_input) continue;
      throw Error(ErrorCode::kUsage, "'" + printable_text(given.name) + "' is no input of a step",
                  {.file = file});
    }
    return all;
  }
};

Session::Session(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Session::~Session() = default;

std::unique_ptr<Session> Session::open(const Bundle& bundle, const RunModelOptions& options,
                                       SessionLogits logits, Diagnostics& diagnostics) {
  const auto start = Clock::now();
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  if (parts->options.precision.empty()) parts->options.precision = bundle.precision();
  parts->file = bundle.name();
  for (std::size_t i = 0; i < bundle.documents().size() && !diagnostics.has_errors(); ++i) {
    std::optional<Template>& sizes = parts->documents.emplace_back();
    if (bundle.template_document(i).empty()) continue;
    const std::string file = bundle.name() + " (template)";
    sizes =
        Template::read(parse_json(bundle.template_document(i), file), bundle.name(), diagnostics);
    if (!diagnostics.has_errors()) check_template(*sizes, diagnostics);
  }
  const auto models = std::make_shared<LoadedModels>();
  OpenDevices devices;
  const std::vector<std::size_t> wanted = wanted_entries(bundle, logits);
  for (const std::size_t i : wanted) {
    if (diagnostics.has_errors()) break;
    const BundleEntry& stated = bundle.entries()[i];
    parts->entries.push_back(
        {stated.name, bundle.documents()[stated.of].name, stated.bound, stated.predicted_us});
    parts->document_of.push_back(stated.of);
    LoadedEntry& entry = *parts->loaded.emplace_back(std::make_unique<LoadedEntry>());
    entry.model = prepare_entry(bundle, i, entry.graph, parts->options, devices, diagnostics);
    devices.insert(entry.model.devices.begin(), entry.model.devices.end());
  }
  if (diagnostics.has_errors()) return nullptr;
  check_digests(bundle, wanted);
  for (const std::size_t i : by_state_inputs(parts->loaded)) {
    LoadedEntry& entry = *parts->loaded[i];
    entry.model.devices.insert(devices.begin(), devices.end());
    parts->load(entry, parts->executor_options_for_states(models));
    devices.merge(entry.executor->devices());
  }
  parts->load_ms = milliseconds_since(start);
  return std::unique_ptr<Session>(new Session(std::move(parts)));
}

std::unique_ptr<Session> Session::open(Graph graph, const RunModelOptions& options,
                                       Diagnostics& diagnostics) {
  const auto start = Clock::now();
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  if (parts->options.precision.empty()) parts->options.precision = "f32";
  parts->file = graph.file;
  parts->entries.emplace_back();
  parts->documents.emplace_back();
  parts->document_of.push_back(0);
  LoadedEntry& entry = *parts->loaded.emplace_back(std::make_unique<LoadedEntry>());
  entry.graph = std::move(graph);
  entry.model = prepare_document(entry.graph, parts->options, diagnostics, WithInputs::kNo);
  if (diagnostics.has_errors()) return nullptr;
  parts->load(entry, parts->executor_options_for_states(nullptr));
  parts->load_ms = milliseconds_since(start);
  return std::unique_ptr<Session>(new Session(std::move(parts)));
}

const std::vector<Session::Entry>& Session::entries() const noexcept { return parts_->entries; }

std::vector<Tensor> Session::step(std::size_t entry, const std::vector<NamedTensor>& inputs,
                                  const SizeBindings& valid) {
  LoadedEntry& loaded = *parts_->loaded.at(entry);
  const SizeBindings sizes = parts_->sizes_of_step(entry, valid);
  std::vector<Tensor> all = loaded.executor->run(parts_->inputs_of(entry, inputs, sizes), nullptr);
  parts_->last = entry;
  std::vector<Tensor> outputs;
  for (const std::size_t i : loaded.kept) {
    const TensorInfo& info = loaded.graph.tensor(loaded.graph.graph_outputs()[i]);
    const std::optional<Template>& model = parts_->sizes(entry);
    const bool is_cut = model && sizes != parts_->entries[entry].bound;
    outputs.push_back(is_cut ? first_rows(all[i], valid_shape(*model, info, sizes))
                             : std::move(all[i]));
  }
  return outputs;
}

const std::vector<std::string>& Session::output_names(std::size_t entry) const {
  return parts_->loaded.at(entry)->output_names;
}

const Template* Session::sizes(std::size_t entry) const {
  const std::optional<Template>& model = parts_->sizes(entry);
  return model ? &*model : nullptr;
}

const Graph& Session::graph(std::size_t entry) const { return parts_->loaded.at(entry)->graph; }

void Session::clear() { parts_->states->clear(); }

std::vector<NamedTensor> Session::state_values() const { return parts_->states->values(); }

void Session::set_state_values(const std::vector<NamedTensor>& values) {
  parts_->states->set_values(values);
}

std::vector<StateUse> Session::states() const {
  std::vector<StateUse> uses;
  for (const auto& named : parts_->states->list()) {
    StateUse most;
    for (const auto& entry : parts_->loaded) {
      for (const StateUse& use : entry->executor->states()) {
        if (use.name != named->name) continue;
        const bool is_more =
            use.copied_bytes + use.transfer_bytes > most.copied_bytes + most.transfer_bytes;
        if (most.name.empty() || is_more || most.path == StatePath::kKept) most = use;
      }
    }
    uses.push_back(std::move(most));
  }
  return uses;
}

std::int64_t Session::copied_bytes() const { return parts_->loaded[parts_->last]->copied_bytes; }

std::int64_t Session::transfer_bytes() const {
  return parts_->loaded[parts_->last]->transfer_bytes;
}

double Session::load_ms() const noexcept { return parts_->load_ms; }

}  // namespace npu
