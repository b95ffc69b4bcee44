// SPDX-License-Identifier: Apache-2.0
// Finds the fusion group whose results differ from those of the reference.
//
// In one run of each side all results at borders of groups are kept and compared, in O(bytes). A
// group that reads values that are out of tolerance already has inherited its error; one that reads
// good values and gives bad ones is at fault. Fed with the reference's inputs, a group shows its
// own error alone. --bisect keeps only the values that cross one cut of the order of execution: if
// all of them agree, the fault is behind it, else in front of it, so that log2 of the number of
// groups runs are enough, each with the memory of a cut. An error that later groups hide (a maximum
// that picks another element) is then taken to be none.
#include "runtime/groups/compare_groups.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "npu/ir/subgraph.hpp"
#include "npu/support/error.hpp"
#include "ops/op_name.hpp"
#include "runtime/executor/tap_places.hpp"
#include "runtime/groups/reduce_group.hpp"
#include "runtime/tap_tensors.hpp"

namespace npu {
namespace {

using Names = std::vector<std::string>;

class GroupComparer {
 public:
  explicit GroupComparer(const GroupSides& sides)
      : sides_(sides), model_(find_model_groups(*sides.graph, *sides.plan, *sides.runner.target)) {
    find_last_uses();
    const std::vector<TensorId>& inputs = sides.graph->graph_inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      graph_inputs_[sides.graph->tensor(inputs[i]).name] = sides.inputs[i];
    }
    report_.groups = static_cast<std::int64_t>(model_.groups.size());
  }

  GroupReport run(const GroupComparisonOptions& options) {
    if (model_.groups.empty()) return std::move(report_);
    if (options.each || options.isolate) {
      compare_all(options.each, options.isolate);
    } else {
      bisect();
    }
    find_first();
    if (!options.reduce.empty() && report_.first) reduce(options.reduce);
    return std::move(report_);
  }

 private:
  /// Behind the last group that reads a tensor; a graph output is read behind all of them.
  void find_last_uses() {
    for (std::size_t g = 0; g < model_.groups.size(); ++g) {
      for (const std::string& input : model_.groups[g].inputs) last_use_[input] = g;
    }
    for (const TensorId output : sides_.graph->graph_outputs()) {
      last_use_[sides_.graph->tensor(output).name] = model_.groups.size();
    }
  }

  /// The results of groups up to `last` that are read behind it.
  Names crossing(std::size_t last) const {
    Names names;
    for (std::size_t g = 0; g <= last; ++g) {
      for (const std::string& result : model_.groups[g].results) {
        const auto use = last_use_.find(result);
        if (use != last_use_.end() && use->second > last) names.push_back(result);
      }
    }
    return names;
  }

  /// Runs the plan up to a group, each partition as a whole but for the last one, and keeps the
  /// tensors that `keeps` names besides those that later partitions read.
  TensorMap run_plan(std::size_t last, const std::unordered_set<std::string>& keeps) {
    ++report_.runs;
    TensorMap values = graph_inputs_;
    const std::size_t last_piece = model_.groups[last].piece;
    kernels_.clear();
    for (std::size_t p = 0; p <= last_piece; ++p) {
      std::vector<NodeId> nodes;
      Names outputs;
      for (std::size_t g = 0; g <= last; ++g) {
        const ModelGroup& group = model_.groups[g];
        if (group.piece != p) continue;
        nodes.insert(nodes.end(), group.nodes.begin(), group.nodes.end());
        for (const std::string& result : group.results) {
          if (keeps.contains(result) || is_read_behind(result, p, last)) outputs.push_back(result);
        }
      }
      if (outputs.empty()) continue;
      std::sort(nodes.begin(), nodes.end());
      run_piece(model_.pieces[p], nodes, outputs, values);
    }
    return values;
  }

  /// Runs the program that runs anyway, if there is one, for what it hands out, if that is
  /// anything; what is left is compiled as outputs.
  void run_piece(const ModelPiece& piece, const std::vector<NodeId>& nodes, Names outputs,
                 TensorMap& values) {
    ResultSources& sources = report_.sources[piece.device];
    if (sides_.compiled != nullptr) {
      const CompiledPartition& compiled = sides_.compiled->at(piece.partition);
      const Names taps = handed_out(compiled, outputs);
      note_kernels(*compiled.report);
      if (!taps.empty() || has_output(piece.graph, outputs)) {
        sides_.runner.run_compiled(piece, compiled, taps, values);
      }
      const std::size_t all = outputs.size();
      std::erase_if(outputs, [&](const std::string& name) { return values.contains(name); });
      sources.tapped += static_cast<std::int64_t>(all - outputs.size());
    }
    if (outputs.empty()) return;
    sources.compiled += static_cast<std::int64_t>(outputs.size());
    note_kernels(sides_.runner.run(piece.graph, nodes, outputs, piece.device, values));
  }

  static bool has_output(const Graph& graph, const Names& names) {
    const Names outputs = tensor_names(graph, graph.graph_outputs());
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::find(outputs.begin(), outputs.end(), name) != outputs.end();
    });
  }

  bool is_read_behind(const std::string& tensor, std::size_t piece, std::size_t last) const {
    const auto use = last_use_.find(tensor);
    return use != last_use_.end() && use->second <= last &&
           model_.groups[use->second].piece > piece;
  }

  /// The reference's values of some tensors.
  TensorMap run_reference(const Names& names) const {
    const Graph& graph = *sides_.reference;
    TensorMap values = graph_inputs_;
    Names outputs;
    for (const std::string& name : names) {
      if (!values.contains(name)) outputs.push_back(name);
    }
    if (outputs.empty()) return values;
    sides_.reference_runner.run(graph, all_nodes(graph), outputs, sides_.reference_device, values);
    return values;
  }

  /// Which kernel a backend took for each node.
  void note_kernels(const Json& report) {
    const auto steps = report.find("steps");
    if (steps == report.end() || !steps->is_array()) return;
    for (const Json& step : *steps) {
      if (step.value("kind", "") == "reorder") continue;
      std::string name = step.value("kernel", "");
      const std::string implementation = step.value("implementation", "");
      if (!implementation.empty()) name += " " + implementation;
      if (step.contains("node")) kernels_.emplace(step.at("node").get<std::string>(), name);
    }
  }

  /// What is promised for outputs holds for no result in between: its elements are judged by the
  /// size of all of them, and numbers that were rounded by one step.
  Tolerance tolerance_of(const std::string& tensor, const Tensor& expected) const {
    Tolerance tolerance = tolerance_for(expected.dtype(), sides_.tolerance);
    if (!sides_.tolerance.atol) {
      tolerance.atol = std::max(tolerance.atol, tolerance.rtol * root_mean_square(expected));
    }
    const Graph& graph = *sides_.reference;
    const TensorId id = graph.find_tensor(tensor);
    if (!id.valid() || !graph.tensor(id).producer.valid()) return tolerance;
    const Node& producer = graph.node(graph.tensor(id).producer);
    if (is_quantization(producer.op_type)) tolerance.steps = 1;
    const Json* scale = find_member(producer.attrs(), "scale");
    if (is_dequantization(producer.op_type) && scale != nullptr && scale->is_number()) {
      tolerance.atol = std::max(tolerance.atol, scale->get<double>());
    }
    return tolerance;
  }

  ResultComparison compare(const std::string& tensor, const Tensor& actual,
                           const Tensor& expected) const {
    return {tensor, compare_tensors(actual, expected, tolerance_of(tensor, expected)),
            signal_to_noise_db(actual, expected)};
  }

  /// Of each result of a group.
  std::vector<ResultComparison> compare_results(const ModelGroup& group, const TensorMap& actual,
                                                const TensorMap& expected) const {
    std::vector<ResultComparison> results;
    for (const std::string& name : group.results) {
      results.push_back(compare(name, actual.at(name), expected.at(name)));
    }
    return results;
  }

  /// The one that is furthest off.
  static const ResultComparison& worst_of(const std::vector<ResultComparison>& results) {
    const ResultComparison* worst = &results.front();
    for (const ResultComparison& found : results) {
      const bool is_worse = (worst->comparison.ok && !found.comparison.ok) ||
                            (worst->comparison.ok == found.comparison.ok &&
                             found.comparison.max_abs > worst->comparison.max_abs);
      if (is_worse) worst = &found;
    }
    return *worst;
  }

  GroupComparison row_of(const ModelGroup& group) const {
    const Graph& graph = model_.pieces[group.piece].graph;
    GroupComparison row;
    row.device = model_.pieces[group.piece].device;
    for (const NodeId id : group.nodes) {
      row.nodes.push_back(graph.node(id).name);
      const auto kernel = kernels_.find(row.nodes.back());
      if (row.kernel.empty() && kernel != kernels_.end()) row.kernel = kernel->second;
    }
    return row;
  }

  /// The group alone, on the reference's values.
  ResultComparison isolate(const ModelGroup& group, const TensorMap& expected) {
    TensorMap values;
    for (const std::string& input : group.inputs) values[input] = expected.at(input);
    const ModelPiece& piece = model_.pieces[group.piece];
    note_kernels(sides_.runner.run(piece.graph, group.nodes, group.results, piece.device, values));
    return worst_of(compare_results(group, values, expected));
  }

  void compare_all(bool in_run, bool alone) {
    Names borders;
    for (const ModelGroup& group : model_.groups) {
      borders.insert(borders.end(), group.results.begin(), group.results.end());
    }
    const TensorMap expected = run_reference(borders);
    TensorMap actual;
    if (in_run) {
      actual = run_plan(model_.groups.size() - 1, {borders.begin(), borders.end()});
    }
    std::unordered_set<std::string> bad;
    std::unordered_set<std::string> stepped;
    for (const ModelGroup& group : model_.groups) {
      std::optional<ResultComparison> own;
      if (alone) own = isolate(group, expected);
      GroupComparison row = row_of(group);
      row.isolated = std::move(own);
      if (in_run) {
        const std::vector<ResultComparison> results = compare_results(group, actual, expected);
        row.in_run = worst_of(results);
        judge(group, row, results, expected, bad, stepped);
      }
      // Alone, it has nobody to inherit from.
      if (row.isolated && !row.isolated->comparison.ok) row.error = GroupComparison::Error::kOwn;
      report_.rows.push_back(std::move(row));
    }
  }

  /// Whether the error of a group is its own. `bad` are tensors that are out of tolerance;
  /// `stepped` are those that differ by a step of a quantization, and what differs behind them: the
  /// error of a group that reads such is its own if it has one alone.
  void judge(const ModelGroup& group, GroupComparison& row,
             const std::vector<ResultComparison>& results, const TensorMap& expected,
             std::unordered_set<std::string>& bad, std::unordered_set<std::string>& stepped) {
    const auto reads = [&](const std::unordered_set<std::string>& tensors) {
      return std::any_of(group.inputs.begin(), group.inputs.end(),
                         [&](const std::string& name) { return tensors.contains(name); });
    };
    const auto is_good_alone = [&] {
      return (row.isolated ? *row.isolated : isolate(group, expected)).comparison.ok;
    };
    const bool reads_steps = reads(stepped);
    bool is_passed_on = reads_steps;
    if (!row.in_run->comparison.ok) {
      const bool is_inherited = reads(bad) || (reads_steps && is_good_alone());
      row.error = is_inherited ? GroupComparison::Error::kInherited : GroupComparison::Error::kOwn;
      is_passed_on = is_inherited && !reads(bad);
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::string& name = group.results[i];
      const Comparison& result = results[i].comparison;
      if (!result.ok && !is_passed_on) bad.insert(name);
      const bool is_step = is_integer(expected.at(name).dtype()) && result.max_abs > 0;
      if (is_passed_on || (result.ok && is_step)) stepped.insert(name);
    }
  }

  bool differs_behind(std::size_t last) {
    const Names names = crossing(last);
    const TensorMap expected = run_reference(names);
    const TensorMap actual = run_plan(last, {names.begin(), names.end()});
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return !compare(name, actual.at(name), expected.at(name)).comparison.ok;
    });
  }

  void bisect() {
    std::size_t bad = model_.groups.size();  // one behind a group that is known to be bad
    if (!differs_behind(bad - 1)) return;
    std::size_t good = 0;  // groups in front of this one are known to be good
    while (bad - good > 1) {
      const std::size_t middle = good + (bad - good) / 2;
      (differs_behind(middle - 1) ? bad : good) = middle;
    }
    const ModelGroup& group = model_.groups[bad - 1];
    Names names = group.inputs;
    names.insert(names.end(), group.results.begin(), group.results.end());
    ResultComparison own = isolate(group, run_reference(names));
    GroupComparison row = row_of(group);
    row.error =
        own.comparison.ok ? GroupComparison::Error::kInherited : GroupComparison::Error::kOwn;
    row.isolated = std::move(own);
    report_.rows.push_back(std::move(row));
    found_ = bad - 1;
  }

  void find_first() {
    for (std::size_t i = 0; i < report_.rows.size() && !report_.first; ++i) {
      if (report_.rows[i].error == GroupComparison::Error::kOwn) report_.first = i;
    }
  }

  void reduce(const std::string& file) {
    const ModelGroup& group = model_.groups[found_ ? *found_ : *report_.first];
    const ModelPiece& piece = model_.pieces[group.piece];
    Names names = group.inputs;
    for (const NodeId id : group.nodes) {
      for (const TensorId output : piece.graph.node(id).outputs) {
        names.push_back(piece.graph.tensor(output).name);
      }
    }
    const auto differs = [&](const std::vector<NodeId>& nodes, const Names& results,
                             const TensorMap& expected) {
      TensorMap values = expected;
      sides_.runner.run(piece.graph, nodes, results, piece.device, values);
      return std::any_of(results.begin(), results.end(), [&](const std::string& name) {
        return !compare(name, values.at(name), expected.at(name)).comparison.ok;
      });
    };
    const ReducedPart part = reduce_part(piece.graph, group.nodes, run_reference(names), differs);
    report_.files = write_part(piece, part, sides_.runner, file);
    for (const NodeId id : part.nodes) {
      report_.reduced_to.push_back(piece.graph.node(id).name);
    }
  }

  const GroupSides& sides_;
  ModelGroups model_;
  std::unordered_map<std::string, std::size_t> last_use_;
  TensorMap graph_inputs_;
  std::unordered_map<std::string, std::string> kernels_;  ///< by node
  std::optional<std::size_t> found_;                      ///< by bisect()
  GroupReport report_;
};

}  // namespace

GroupReport compare_groups(const GroupSides& sides, const GroupComparisonOptions& options) {
  return GroupComparer(sides).run(options);
}

}  // namespace npu
