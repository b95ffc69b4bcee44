// SPDX-License-Identifier: Apache-2.0
// An encoder in a token loop: the source of a request goes through it once, and what the decoder
// needs of it, such as keys and values of cross attention, stays in states.
//
// A source is padded to its entry as every input of a template is, by copies of its last row; the
// document says how many rows count, so that a decoder does not look at the others. The cost is one
// run of an executor.
#include "runtime/generate/source_encoder.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "ir/states_section.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

/// Rows of the table that ids are looked up in; 0 if no table is.
std::int64_t table_rows(const Graph& graph, const TensorInfo& ids) {
  for (const NodeId id : ids.consumers) {
    const Node& node = graph.node(id);
    if (node.op_type != "aten.embedding.default" || node.inputs.size() < 2) continue;
    const TensorInfo& table = graph.tensor(node.inputs.front());
    if (&graph.tensor(node.inputs[1]) == &ids && !table.shape.empty()) return table.shape.front();
  }
  return 0;
}

std::string type_text(DType dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

}  // namespace

void SourceEncoder::add_entry(const Session& session, std::size_t entry, const std::string& source,
                              const std::string& file) {
  const Graph& graph = session.graph(entry);
  const Session::Entry& known = session.entries()[entry];
  Diagnostics ignored;  // the session has read them
  std::set<std::string> states;
  for (const State& state : read_states(graph, ignored)) states.insert(state.input);
  for (const TensorId id : graph.graph_inputs()) {
    const std::string& name = graph.tensor(id).name;
    if (name == source || states.contains(name) || name.starts_with("npu.n.")) continue;
    throw Error(ErrorCode::kUnsupported,
                "input '" + name + "' of the encoder is neither a state nor its source",
                {.file = file});
  }
  const TensorInfo& info = graph.tensor(graph.find_tensor(source));
  if (!is_empty() && (session.entries()[places_.front()].document != known.document ||
                      input_.name != source || input_.dtype != info.dtype)) {
    throw Error(ErrorCode::kUnsupported,
                "entries '" + session.entries()[places_.front()].name + "' and '" + known.name +
                    "' are of two encoders; expected one document with the role 'source'",
                {.file = file});
  }
  if (is_empty() || info.shape > input_.shape) input_.shape = info.shape;
  input_.name = source;
  input_.dtype = info.dtype;
  if (info.dtype == DType::kInt64 && info.shape.size() == 2) {
    constexpr std::int64_t kAnyId = std::int64_t{1} << 31;
    const std::int64_t rows = table_rows(graph, info);
    input_.vocabulary = rows > 0 ? rows : kAnyId;
  }
  places_.push_back(entry);
  BundleEntry named;
  named.name = known.name;
  named.bound = known.bound;
  named.predicted_us = known.predicted_us;
  entries_.push_back(std::move(named));
}

ChosenEntry SourceEncoder::choose(const Session& session, const Tensor& source) const {
  if (source.dtype() != input_.dtype || source.shape().size() != input_.shape.size()) {
    throw Error(ErrorCode::kUsage, "the source is " + type_text(source.dtype(), source.shape()) +
                                       ", input '" + input_.name + "' is " +
                                       type_text(input_.dtype, input_.shape));
  }
  ChosenEntry chosen;
  const Template* model = session.sizes(places_.front());
  if (model != nullptr) {
    chosen =
        choose_entry(entries_, *model, asked_sizes(*model, {{input_.name, source.shape()}}, {}));
  }
  // Dimensions that do not vary.
  const SizeShape* sizes = model == nullptr ? nullptr : model->shape(input_.name);
  for (std::size_t d = 0; d < input_.shape.size(); ++d) {
    const bool varies = sizes != nullptr && !(*sizes)[d].is_constant();
    if (varies || source.shape()[d] == input_.shape[d]) continue;
    throw Error(source.shape()[d] > input_.shape[d] ? ErrorCode::kInfeasible : ErrorCode::kUsage,
                "the source has " + std::to_string(source.shape()[d]) + " rows along dimension " +
                    std::to_string(d) + " of input '" + input_.name + "', expected " +
                    std::to_string(input_.shape[d]) +
                    ": compile a template with --buckets for other sizes");
  }
  return chosen;
}

void SourceEncoder::check(const Session& session, const Tensor& source) const {
  choose(session, source);
}

std::string SourceEncoder::encode(Session& session, const Tensor& source) const {
  const ChosenEntry chosen = choose(session, source);
  const std::size_t entry = places_[chosen.index];
  session.step(entry, {{input_.name, source}}, chosen.valid);
  const std::string& name = session.entries()[entry].name;
  return name.empty() ? session.graph(entry).model_name() : name;
}

}  // namespace npu
