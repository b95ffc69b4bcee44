// SPDX-License-Identifier: Apache-2.0
#include "backends/padding/rule_trial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "catch.hpp"
#include "npu/compile/compiler.hpp"
#include "npu/partition/partition_plan.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/target/target.hpp"
#include "passes/padding/infer_tails.hpp"
#include "template_lines.hpp"

namespace npu::test {

using namespace padding;

namespace {

void set_element(Tensor& tensor, std::int64_t at, double value) {
  switch (tensor.dtype()) {
    case DType::kInt64:
      tensor.as_mutable<std::int64_t>()[at] = static_cast<std::int64_t>(value);
      break;
    case DType::kBool:
      tensor.as_mutable<std::uint8_t>()[at] = value != 0;
      break;
    default:
      tensor.as_mutable<float>()[at] = static_cast<float>(value);
  }
}

/// The index of a tensor's element, dimension by dimension.
class Position {
 public:
  explicit Position(const Shape& shape) : shape_(shape), index_(shape.size(), 0) {}
  const std::vector<std::int64_t>& index() const { return index_; }
  bool next() {
    for (std::size_t d = shape_.size(); d-- > 0;) {
      if (++index_[d] < shape_[d]) return true;
      index_[d] = 0;
    }
    return false;
  }
  static std::int64_t offset(const Shape& shape, const std::vector<std::int64_t>& index) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + index[d];
    return at;
  }

 private:
  Shape shape_;
  std::vector<std::int64_t> index_;
};

bool is_close(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return true;
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= 1e-6 * (1 + std::abs(b));
}

/// A graph that is compiled for the device, with its plan.
struct RunnableGraph {
  Graph graph;
  PartitionPlan plan;
  std::unique_ptr<Executor> executor;
};

}  // namespace

struct RuleTrial::Parts {
  Parts(const std::string& lines, const SizeBindings& at, std::int64_t below)
      : model(template_of(lines)), capacities(at), index_below(below), target(load_target("host")) {
    std::vector<PaddedSymbol> symbols;
    for (const auto& [name, value] : capacities) {
      const SizeSymbol& symbol = *model.symbols().find(name);
      symbols.push_back({.name = name,
                         .capacity = value,
                         .min = std::max<std::int64_t>(1, *symbol.min.constant()),
                         .multiple_of = symbol.multiple_of});
    }
    sizes = PaddedSizes(symbols);
    whole().graph.file = "t.json";
    std::mt19937 random(7);
    for (const TensorInfo& tensor : whole().graph.tensors()) {
      Tensor weight;
      if (tensor.kind == TensorKind::kWeight) weight = drawn(tensor, tensor.shape, random);
      weights_by_name[tensor.name] = weight;
    }
  }

  Tensor drawn(const TensorInfo& tensor, const Shape& shape, std::mt19937& random) const {
    Tensor values(tensor.dtype, shape);
    for (std::int64_t i = 0; i < values.element_count(); ++i) {
      set_element(values, i, drawn_value(tensor.dtype, random));
    }
    return values;
  }

  double drawn_value(DType dtype, std::mt19937& random) const {
    if (dtype == DType::kInt64) return static_cast<double>(random() % index_below);
    if (dtype == DType::kBool) return random() % 2 == 0 ? 0 : 1;
    return std::uniform_real_distribution<double>(-2, 2)(random);
  }

  RunnableGraph& whole() { return graph_at(capacities); }

  RunnableGraph& graph_at(const SizeBindings& values) {
    std::unique_ptr<RunnableGraph>& kept = graphs[values];
    if (kept != nullptr) return *kept;
    kept = std::make_unique<RunnableGraph>();
    Diagnostics faults;
    kept->graph = bind_sizes(model, values, faults);
    for (const Diagnostic& fault : faults.entries()) FAIL(format_diagnostic(fault));
    for (Node& node : kept->graph.nodes()) node.device = "cpu";
    return *kept;
  }

  std::vector<Tensor> run(const SizeBindings& values, const std::vector<Tensor>& inputs) {
    RunnableGraph& runnable = graph_at(values);
    if (runnable.executor == nullptr) {
      std::vector<Tensor> weights;
      for (const TensorInfo& tensor : runnable.graph.tensors()) {
        weights.push_back(weights_by_name[tensor.name]);
      }
      runnable.plan = single_partition_plan(runnable.graph, "cpu");
      ExecutorOptions options;
      options.threads = 1;
      // In place: an executor does not move.
      runnable.executor.reset(new Executor(  // NOLINT(cppcoreguidelines-owning-memory)
          compile_and_load(runnable.graph, runnable.plan, target, weights, options)));
    }
    return runnable.executor->run(inputs, nullptr);
  }

  TensorSizes shapes() {
    const Graph& graph = whole().graph;
    TensorSizes result(graph);
    for (const TensorId id : ids_of<TensorId>(graph.tensors())) {
      const SizeShape* shape = model.shape(graph.tensor(id).name);
      if (shape == nullptr) continue;
      for (std::size_t d = 0; d < shape->size(); ++d) {
        if (!(*shape)[d].is_constant()) result.set(id, d, (*shape)[d]);
      }
    }
    return result;
  }

  Template model;
  SizeBindings capacities;
  std::int64_t index_below;
  Target target;
  PaddedSizes sizes;
  std::map<SizeBindings, std::unique_ptr<RunnableGraph>> graphs;
  std::map<std::string, Tensor> weights_by_name;
  NodeRule plain_rule;
};

namespace {

TailClass drawn_class(DType dtype, std::mt19937& random) {
  const bool is_float = is_floating_point(dtype);
  switch (random() % (is_float ? 4 : 3)) {
    case 0:
      return {.repeat = true, .finite = true};
    case 1:
      return {.zero = true, .finite = true};
    case 2:
      return {.finite = true};
    default:
      return {.lowest = true};
  }
}

// Classes of several dimensions that can hold at once: minus infinity in one of them is not 0.
bool can_hold(const std::vector<TailClass>& dims, const SizeShape& shape) {
  bool has_lowest = false;
  bool has_other = false;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (shape[d].is_constant()) continue;
    has_lowest = has_lowest || dims[d].lowest;
    has_other = has_other || dims[d].zero;
  }
  return !has_lowest || !has_other;
}

/// Writes the rows behind the valid ones: constants first, then copies.
void fill_tails(Tensor& tensor, const std::vector<TailClass>& dims,
                const std::vector<std::int64_t>& valid) {
  for (const bool repeats : {false, true}) {
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (valid[d] == tensor.shape()[d] || dims[d].repeat != repeats) continue;
      Position position(tensor.shape());
      do {
        std::vector<std::int64_t> from = position.index();
        if (from[d] < valid[d]) continue;
        const std::int64_t at = Position::offset(tensor.shape(), from);
        from[d] = valid[d] - 1;
        if (dims[d].repeat) {
          set_element(tensor, at, tensor.value_as_double(Position::offset(tensor.shape(), from)));
        } else if (dims[d].zero) {
          set_element(tensor, at, 0);
        } else if (dims[d].lowest) {
          set_element(tensor, at, -std::numeric_limits<double>::infinity());
        }
      } while (position.next());
    }
  }
}

bool is_lowest_elsewhere(const TensorTails& tails, const std::vector<std::int64_t>& index,
                         const Shape& valid) {
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] >= valid[d] && tails.dims[d].lowest) return true;
  }
  return false;
}

/// What is wrong with a padded result.
std::string fault_of(const Tensor& padded, const Tensor& exact, const TensorTails& tails,
                     const std::string& name) {
  Position position(padded.shape());
  do {
    const std::vector<std::int64_t>& index = position.index();
    const double value = padded.value_as_double(Position::offset(padded.shape(), index));
    bool is_valid = true;
    for (std::size_t d = 0; d < index.size(); ++d) {
      if (index[d] < exact.shape()[d]) continue;
      is_valid = false;
      const TailClass& tail = tails.dims[d];
      std::vector<std::int64_t> last = index;
      last[d] = exact.shape()[d] - 1;
      const double copied = padded.value_as_double(Position::offset(padded.shape(), last));
      if (tail.zero && value != 0) return name + ": not 0";
      if (tail.lowest && !(std::isinf(value) && value < 0)) return name + ": not -inf";
      if (tail.finite && !tail.repeat && !std::isfinite(value) &&
          !is_lowest_elsewhere(tails, index, exact.shape())) {
        return name + ": not finite";
      }
      if (tail.repeat && !is_close(value, copied)) return name + ": not repeated";
    }
    if (!is_valid) continue;
    const double wanted = exact.value_as_double(Position::offset(exact.shape(), index));
    if (!is_close(value, wanted)) {
      return name + ": " + std::to_string(value) + ", expected " + std::to_string(wanted);
    }
  } while (position.next());
  return {};
}

}  // namespace

RuleTrial::RuleTrial(const std::string& lines, const SizeBindings& capacities,
                     std::int64_t index_below)
    : parts_(std::make_unique<Parts>(lines, capacities, index_below)) {
  const Graph& graph = parts_->whole().graph;
  IdVector<TensorId, TensorTails> tails;
  tails.resize(graph.tensors().size());
  for (const TensorId id : ids_of<TensorId>(graph.tensors())) {
    tails[id] = source_tails(graph.tensor(id));
  }
  parts_->plain_rule =
      rule_of_node(graph, graph.nodes().back(), parts_->sizes, parts_->shapes(), tails);
}

RuleTrial::~RuleTrial() = default;

const NodeRule& RuleTrial::rule() const { return parts_->plain_rule; }

std::string RuleTrial::run(std::mt19937& random, const RuleMutation& mutate, TrialCount& count) {
  SizeBindings valid;
  for (const PaddedSymbol& symbol : parts_->sizes.symbols()) {
    const std::int64_t steps = (symbol.capacity - symbol.min) / symbol.multiple_of + 1;
    valid[symbol.name] =
        symbol.min + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(steps)) *
                         symbol.multiple_of;
  }
  const Graph& graph = parts_->whole().graph;
  const TensorSizes shapes = parts_->shapes();
  IdVector<TensorId, TensorTails> tails;
  tails.resize(graph.tensors().size());
  std::vector<Tensor> exact_inputs;
  std::vector<Tensor> padded_inputs;
  for (const TensorId id : ids_of<TensorId>(graph.tensors())) {
    tails[id] = source_tails(graph.tensor(id));
  }
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& tensor = graph.tensor(id);
    do {
      for (TailClass& tail : tails[id].dims) tail = drawn_class(tensor.dtype, random);
    } while (!can_hold(tails[id].dims, shapes.of(id)));
    Shape shape;
    for (const SizeExpression& size : shapes.of(id)) shape.push_back(size.evaluate(valid));
    Tensor padded = parts_->drawn(tensor, tensor.shape, random);
    fill_tails(padded, tails[id].dims, shape);
    Tensor exact(tensor.dtype, shape);
    Position position(shape);
    do {
      set_element(exact, Position::offset(shape, position.index()),
                  padded.value_as_double(Position::offset(tensor.shape, position.index())));
    } while (position.next());
    exact_inputs.push_back(std::move(exact));
    padded_inputs.push_back(std::move(padded));
  }
  const Node& node = graph.nodes().back();
  NodeRule rule = rule_of_node(graph, node, parts_->sizes, shapes, tails);
  if (!rule.refusal.empty()) return "refused: " + rule.refusal;
  if (mutate) mutate(rule);
  const bool is_met_everywhere =
      std::all_of(rule.needs.begin(), rule.needs.end(),
                  [&](const TailNeed& need) { return is_met(need, node, tails); });
  const bool is_rewritten =
      rule.rewriting == Rewriting::kMean || rule.rewriting == Rewriting::kAttentionMask;
  if (!is_met_everywhere || is_rewritten) {
    ++count.skipped;
    return {};
  }
  ++count.run;
  const std::vector<TensorTails> results = result_tails(graph, node, rule, shapes, tails);
  const std::vector<Tensor> padded = parts_->run(parts_->capacities, padded_inputs);
  const std::vector<Tensor> exact = parts_->run(valid, exact_inputs);
  for (std::size_t r = 0; r < padded.size(); ++r) {
    const TensorId output = graph.graph_outputs()[r];
    const std::string fault =
        fault_of(padded[r], exact[r], results[index_of(graph.tensor(output).result)],
                 graph.tensor(output).name);
    if (!fault.empty()) return fault + " at " + bindings_text(valid);
  }
  return {};
}

}  // namespace npu::test
