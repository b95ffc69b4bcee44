// SPDX-License-Identifier: Apache-2.0
// A kernel for each fusion group, in an order in which each reads what is there.
//
// Views are no kernels: whoever reads them computes their places; nor is a mask of lengths that
// attentions alone read, by its operands, also by its opposite. A group that no one kernel
// computes is split into its nodes, which the report says. Kernels with the same text are one. A
// graph output is written where it is computed, or copied if it is a view, an input or a weight. A
// state is written where it lies, behind what reads it as it was (state_writes.cpp).
// O(nodes + edges) besides the texts.
#include "lowering/lower_graph.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "kernels/group_kernel.hpp"
#include "lowering/scratch_plan.hpp"
#include "lowering/state_writes.hpp"
#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {
namespace {

constexpr const char* kHelpers = R"cl(
ushort npu_bfloat16(float x) {
  const uint bits = as_uint(x);
  if (x != x) return (ushort)((bits >> 16) | 0x40);
  return (ushort)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
float npu_cubic_near(float x) { return (1.25f * x - 2.25f) * x * x + 1; }
float npu_cubic_far(float x) { return ((-0.75f * x + 3.75f) * x - 6) * x + 3; }
float npu_reflected(float x, float low, float span) {
  if (span <= 0) return 0;
  const float away = fabs(x - low);
  const float rest = fmod(away, span);
  return ((int)floor(away / span)) % 2 == 0 ? rest + low : span - rest + low;
}
)cl";

struct Split {
  std::string pattern;
  std::string node;
  std::string reason;
};

class GroupCompiler {
 public:
  GroupCompiler(const Graph& graph, Machine machine)
      : graph_(graph),
        model_(graph, std::move(machine), find_row),
        kernel_of_(graph.nodes().size(), -1) {}

  LoweredGraph run(const std::function<void(std::size_t, std::size_t)>& progress) {
    find_written_attentions();
    find_readers();
    states_ = find_state_writes(graph_, readers());
    plan_kernels();
    place_states();
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      progress(i, planned_.size());
      compile_kernel(planned_[i]);
    }
    copy_outputs();
    place_tensors();
    fill_tensors();
    LoweredGraph result;
    result.report = report();
    result.source = source();
    result.plan = std::move(plan_);
    for (const Pending& each : pending_) result.tunables.push_back(each.kernel.tunable);
    return result;
  }

 private:
  struct Pending {
    GeneratedKernel kernel;
    std::uint64_t number = 0;
    std::vector<NodeId> nodes;
    std::int32_t output = -1;  ///< that it only copies to
  };

  // ---- What is needed, and by whom ----

  /// The tensor in memory, or computed by a kernel, whose elements a tensor is made of.
  TensorId root_of(TensorId id) const {
    for (;;) {
      const NodeId producer = graph_.tensor(id).producer;
      if (!producer.valid() || !model_.is_view(producer)) return id;
      const Node& node = graph_.node(producer);
      const TensorId next = node.op_type == kGetitem ? same_order_operand(model_, producer)
                            : node.inputs.empty()    ? TensorId{}
                                                     : node.inputs[0];
      if (!next.valid()) return id;
      id = next;
    }
  }

  /// Groups that are attentions over a cache: which of their nodes read which mask of lengths.
  void find_written_attentions() {
    std::map<std::int64_t, std::vector<NodeId>> groups;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      const NodeId id{static_cast<std::int32_t>(i)};
      const auto group = graph_.node(id).fusion_group;
      if (group && !model_.is_view(id)) groups[*group].push_back(id);
    }
    for (const auto& [group, nodes] : groups) {
      const auto form = cached_attention_of(model_, nodes);
      if (!form) continue;
      written_masks_[form->masking] = *form;
    }
  }

  /// What the kernel of a node reads: an attention over a cache positions in place of its mask.
  std::vector<TensorId> reads_of(NodeId id) const {
    const Node& node = graph_.node(id);
    std::vector<TensorId> reads = node.inputs;
    if (node.op_type == kGetitem) return reads;
    const auto written = written_masks_.find(id);
    const auto mask = written != written_masks_.end() ? std::optional(written->second.lengths)
                                                      : length_mask_of(model_, model_.bound(id));
    if (!mask) return reads;
    std::erase(reads, written != written_masks_.end() ? written->second.mask
                                                      : graph_.node(*mask).outputs[0]);
    reads.insert(reads.end(), graph_.node(*mask).inputs.begin(), graph_.node(*mask).inputs.end());
    return reads;
  }

  void find_readers() {
    readers_.resize(graph_.tensors().size());
    is_output_.resize(graph_.tensors().size(), false);
    std::vector<bool> is_needed(graph_.nodes().size(), false);
    std::vector<NodeId> open;
    const auto need = [&](TensorId id) {
      const NodeId producer = graph_.tensor(root_of(id)).producer;
      if (!producer.valid() || is_needed[index(producer)] || model_.is_view(producer)) return;
      is_needed[index(producer)] = true;
      open.push_back(producer);
    };
    for (const TensorId output : graph_.graph_outputs()) {
      is_output_[index(root_of(output))] = true;
      need(output);
    }
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      for (const TensorId input : reads_of(node)) need(input);
    }
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!is_needed[i]) continue;
      const NodeId id{static_cast<std::int32_t>(i)};
      kernel_nodes_.push_back(id);
      for (const TensorId input : reads_of(id)) {
        readers_[index(root_of(input))].push_back(id);
      }
    }
  }

  TensorReaders readers() const { return {readers_, is_output_}; }

  template <typename Id>
  static std::size_t index(Id id) {
    return static_cast<std::size_t>(id.value);
  }

  // ---- Which nodes become a kernel ----

  void plan_kernels() {
    std::map<std::int64_t, std::size_t> by_group;
    std::vector<KernelNodes> kernels;
    for (const NodeId id : kernel_nodes_) {
      const auto group = graph_.node(id).fusion_group;
      const std::size_t next = kernels.size();
      const std::size_t kernel = group ? by_group.emplace(*group, next).first->second : next;
      if (kernel == next) kernels.emplace_back();
      kernels[kernel].nodes.push_back(id);
      const Json* pattern = find_member(graph_.node(id).json, "fusion_pattern");
      if (pattern != nullptr && pattern->is_string())
        kernels[kernel].pattern = pattern->get<std::string>();
    }
    if (order_kernels(kernels, states_)) return;
    std::vector<StateWrite> ordered;
    for (const StateWrite& state : states_) {
      ordered.push_back(state);
      if (order_kernels(kernels, ordered)) continue;
      const auto parted = part_readers(graph_, readers(), state, kernels);
      if (order_kernels(parted, ordered)) {
        kernels = parted;
      } else {
        ordered.pop_back();
      }
    }
    if (order_kernels(kernels, ordered)) return;
    // Groups that depend on each other in a cycle, which npu-fuse does not make.
    planned_.clear();
    written_masks_.clear();
    kernel_nodes_.clear();
    readers_.clear();
    find_readers();
    for (const NodeId id : kernel_nodes_) planned_.push_back({{id}, "single"});
  }

  /// Sorts them so that each stands behind those that it reads, and those that read what it
  /// overwrites; false if that cannot be.
  bool order_kernels(const std::vector<KernelNodes>& kernels, std::span<const StateWrite> states) {
    planned_.clear();
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      for (const NodeId id : kernels[i].nodes) {
        kernel_of_[index(id)] = static_cast<std::int32_t>(i);
      }
    }
    std::vector<std::set<std::size_t>> after(kernels.size());
    std::vector<std::size_t> missing(kernels.size(), 0);
    const auto put = [&](NodeId first, NodeId then) {
      if (!first.valid() || kernel_of_[index(first)] < 0) return;
      const auto before = static_cast<std::size_t>(kernel_of_[index(first)]);
      const auto kernel = static_cast<std::size_t>(kernel_of_[index(then)]);
      if (before != kernel && after[before].insert(kernel).second) ++missing[kernel];
    };
    for (const NodeId id : kernel_nodes_) {
      for (const TensorId input : reads_of(id)) put(graph_.tensor(root_of(input)).producer, id);
    }
    for (const auto& [reader, writer] : reads_before_writes(graph_, readers(), states)) {
      put(reader, writer);
    }
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (missing[i] == 0) ready.insert(i);
    }
    while (!ready.empty()) {
      const std::size_t kernel = *ready.begin();
      ready.erase(ready.begin());
      planned_.push_back(kernels[kernel]);
      for (const std::size_t next : after[kernel]) {
        if (--missing[next] == 0) ready.insert(next);
      }
    }
    return planned_.size() == kernels.size();
  }

  /// Those that are written where they lie, by kernels that stand alone, and thereby in list order
  /// if a group has them with others.
  void place_states() {
    std::map<NodeId, std::pair<std::size_t, std::size_t>> order;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      const KernelNodes& kernel = planned_[i];
      for (const NodeId node : kernel.nodes) order[node] = {i, index(node)};
      if (kernel.split_reason.empty()) continue;
      splits_.push_back(
          {kernel.pattern, graph_.node(kernel.nodes.front()).name, kernel.split_reason});
    }
    keep_ordered(graph_, readers(), states_,
                 [&](NodeId first, NodeId then) { return order.at(first) < order.at(then); });
    for (const StateWrite& state : states_) {
      for (std::size_t i = 1; i < state.chain.size(); ++i) {
        in_place_.insert(graph_.tensor(state.chain[i]).producer);
        written_.emplace(state.chain[i].value, state.pair.output);
      }
    }
  }

  std::vector<KernelResult> results_of(const std::vector<NodeId>& nodes) const {
    std::vector<KernelResult> results;
    for (const NodeId id : nodes) {
      for (const TensorId output : graph_.node(id).outputs) {
        const auto& readers = readers_[index(output)];
        const bool leaves =
            is_output_[index(output)] || std::ranges::any_of(readers, [&](NodeId reader) {
              return std::ranges::find(nodes, reader) == nodes.end();
            });
        if (leaves) results.push_back({output});
      }
    }
    return results;
  }

  void compile_kernel(const KernelNodes& kernel) {
    KernelTask task{model_, kernel.nodes, results_of(kernel.nodes)};
    task.is_in_place =
        std::ranges::any_of(kernel.nodes, [&](NodeId id) { return in_place_.contains(id); });
    if (task.results.empty()) return;
    try {
      add_kernel(generate_kernel(task), kernel.nodes);
    } catch (const CannotFuse& failure) {
      const std::string& name = graph_.node(kernel.nodes.front()).name;
      if (kernel.nodes.size() == 1) {
        throw Error(ErrorCode::kUnsupported, "node '" + name + "' (" +
                                                 graph_.node(kernel.nodes.front()).op_type +
                                                 "): " + failure.reason);
      }
      splits_.push_back({kernel.pattern, name, failure.reason});
      for (const NodeId node : kernel.nodes) compile_kernel({{node}, kernel.pattern});
    }
  }

  void add_kernel(GeneratedKernel kernel, const std::vector<NodeId>& nodes,
                  std::int32_t output = -1) {
    const bool is_empty = std::ranges::any_of(kernel.global, [](auto size) { return size == 0; });
    if (is_empty) return;
    const auto next = static_cast<std::uint64_t>(texts_.size());
    const auto [found, is_new] = numbers_.emplace(kernel.text, next);
    if (is_new) texts_.push_back(kernel.text);
    pending_.push_back({std::move(kernel), found->second, nodes, output});
  }

  // ---- Graph outputs ----

  /// The first output that is a kernel's result in its own order lies where the kernel writes; a
  /// state lies where its input does.
  void copy_outputs() {
    for (std::size_t i = 0; i < graph_.graph_outputs().size(); ++i) {
      const TensorId output = graph_.graph_outputs()[i];
      TensorId root = output;
      while (graph_.tensor(root).producer.valid() && model_.is_view(graph_.tensor(root).producer)) {
        const TensorId next = same_order_operand(model_, graph_.tensor(root).producer);
        if (!next.valid()) break;
        root = next;
      }
      const NodeId producer = graph_.tensor(root).producer;
      const bool is_computed = producer.valid() && !model_.is_view(producer);
      if (is_computed && written_.emplace(root.value, i).first->second == i) continue;
      const KernelTask task{model_, {}, {{output, static_cast<std::int32_t>(i)}}};
      std::vector<NodeId> nodes;
      if (graph_.tensor(output).producer.valid()) nodes.push_back(graph_.tensor(output).producer);
      add_kernel(element_kernel(task), nodes, static_cast<std::int32_t>(i));
    }
  }

  // ---- Memory ----

  /// Whether an output is left in scratch memory, and copied when all kernels are done.
  bool is_copied(std::uint64_t output) const {
    return std::ranges::any_of(states_, [&](const StateWrite& state) {
      return state.pair.output == output && state.chain.empty();
    });
  }

  /// What stands for a tensor in scratch memory: itself, or the output that it is copied to.
  struct ScratchKey {
    std::int32_t tensor = -1;
    std::int64_t output = -1;
    auto operator<=>(const ScratchKey&) const = default;  // NOLINT(modernize-use-nullptr)
  };
  using ScratchPlaces = std::map<ScratchKey, std::size_t>;

  ScratchKey scratch_key(const KernelArgument& argument) const {
    if (kind_of(argument) != PlaceKind::kOutput) return {argument.tensor.value, -1};
    return {-1, static_cast<std::int64_t>(output_of(argument))};
  }

  void place_tensors() {
    ScratchPlaces scratch_of;
    std::vector<ScratchTensor> scratch;
    std::vector<std::size_t> own_scratch;  ///< that no tensor stands for, in the order of arguments
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      for (const KernelArgument& argument : pending_[i].kernel.arguments) {
        if (argument.scratch_bytes != 0) {
          own_scratch.push_back(scratch.size());
          scratch.push_back({static_cast<std::uint64_t>(argument.scratch_bytes), i, i, 0});
        }
        if (!argument.tensor.valid() || !is_scratch(argument)) continue;
        const ScratchKey key = scratch_key(argument);
        const auto [found, is_new] = scratch_of.emplace(key, scratch.size());
        if (is_new) {
          const auto bytes = static_cast<std::uint64_t>(graph_.tensor(argument.tensor).bytes());
          scratch.push_back({std::max<std::uint64_t>(bytes, 1), i, i, 0});
        }
        scratch[found->second].last = key.output < 0 ? i : pending_.size();
      }
    }
    plan_.scratch_bytes = plan_scratch(scratch);
    for (const StateWrite& state : states_) {
      const auto found = scratch_of.find({-1, static_cast<std::int64_t>(state.pair.output)});
      plan_.aliases.push_back({state.pair.input, state.pair.output, !state.chain.empty(),
                               found == scratch_of.end() ? 0 : scratch[found->second].offset});
    }
    auto next_own = own_scratch.begin();
    for (Pending& each : pending_) {
      Launch launch;
      launch.kernel = each.number;
      launch.global = each.kernel.global;
      launch.local = each.kernel.local;
      launch.sizes = each.kernel.sizes;
      for (const NodeId node : each.nodes) launch.nodes.push_back(index(node));
      for (const KernelArgument& argument : each.kernel.arguments) {
        if (argument.scratch_bytes != 0) {
          launch.arguments.push_back({PlaceKind::kScratch, scratch[*next_own++].offset});
          continue;
        }
        launch.arguments.push_back(argument.tensor.valid()
                                       ? place_of(argument, scratch_of, scratch)
                                       : Place{PlaceKind::kFault, plan_.faults.size()});
      }
      if (!each.kernel.indexing.empty()) plan_.faults.push_back(fault_text(each.kernel.indexing));
      plan_.launches.push_back(std::move(launch));
    }
  }

  static std::string fault_text(const std::vector<std::string>& names) {
    std::string text = names.size() == 1 ? "node " : "one of the nodes ";
    for (std::size_t i = 0; i < names.size(); ++i) {
      text += (i == 0 ? "'" : ", '") + names[i] + "'";
    }
    return text + ": an index is outside its dimension";
  }

  PlaceKind kind_of(const KernelArgument& argument) const {
    if (argument.output >= 0 || written_.contains(argument.tensor.value)) return PlaceKind::kOutput;
    switch (graph_.tensor(argument.tensor).kind) {
      case TensorKind::kGraphInput:
        return PlaceKind::kInput;
      case TensorKind::kWeight:
        return PlaceKind::kWeight;
      default:
        return PlaceKind::kScratch;
    }
  }

  /// Of an argument in an output.
  std::uint64_t output_of(const KernelArgument& argument) const {
    return argument.output >= 0 ? static_cast<std::uint64_t>(argument.output)
                                : written_.at(argument.tensor.value);
  }

  bool is_scratch(const KernelArgument& argument) const {
    const PlaceKind kind = kind_of(argument);
    return kind == PlaceKind::kScratch ||
           (kind == PlaceKind::kOutput && is_copied(output_of(argument)));
  }

  Place place_of(const KernelArgument& argument, const ScratchPlaces& scratch_of,
                 const std::vector<ScratchTensor>& scratch) {
    if (is_scratch(argument)) {
      return {PlaceKind::kScratch, scratch[scratch_of.at(scratch_key(argument))].offset};
    }
    const PlaceKind kind = kind_of(argument);
    if (kind == PlaceKind::kOutput) return {kind, output_of(argument)};
    if (kind == PlaceKind::kInput) {
      const auto& inputs = graph_.graph_inputs();
      const auto found = std::ranges::find(inputs, argument.tensor);
      return {kind, static_cast<std::uint64_t>(found - inputs.begin())};
    }
    const std::size_t next = weights_.size();
    const auto [found, is_new] = weight_of_.emplace(argument.tensor.value, next);
    if (is_new) weights_.push_back(argument.tensor);
    return {kind, found->second};
  }

  PlanTensor plan_tensor(TensorId id) const {
    const TensorInfo& info = graph_.tensor(id);
    return {info.name, info.dtype, info.shape, static_cast<std::uint64_t>(info.bytes())};
  }

  void fill_tensors() {
    for (const TensorId id : graph_.graph_inputs()) plan_.inputs.push_back(plan_tensor(id));
    for (const TensorId id : graph_.graph_outputs()) plan_.outputs.push_back(plan_tensor(id));
    for (const TensorId id : weights_) plan_.weights.push_back(plan_tensor(id));
    plan_.nodes = graph_.nodes().size();
  }

  // ---- The rest ----

  /// The text of all programs, which the plan then lists.
  std::string source() {
    std::string all;
    for (std::size_t number = 0; number < texts_.size(); ++number) {
      const std::string text = forms_text(number) + program_text(texts_[number]);
      plan_.programs.push_back({text.size(), 0});
      all += text;
    }
    return all;
  }

  /// Which forms of its kernel the driver finishes, so that a program of one text has one binary,
  /// whatever was compiled before.
  std::string forms_text(std::size_t number) const {
    if (!model_.machine().finishes_at_start) return {};
    std::set<std::string> forms;
    for (const Pending& each : pending_) {
      if (each.number != number) continue;
      const auto& local = each.kernel.local;
      forms.insert(" " + std::to_string(local[0]) + "x" + std::to_string(local[1]) + "x" +
                   std::to_string(local[2]) +
                   (is_small_range(each.kernel.global) ? " small" : " large"));
    }
    std::string text = "//";
    for (const std::string& form : forms) text += form;
    return text + "\n";
  }

  std::string program_text(std::string kernel) const {
    std::string text;
    if (model_.machine().has_float64) text += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    if (kernel.find(kHalfTile) != std::string::npos) {
      text += "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n";
    }
    if (kernel.find("npu_") != std::string::npos) text += kHelpers;
    kernel.replace(kernel.find("KERNEL("), 6, "k");
    return text + "\n" + kernel;
  }

  std::string report() const {
    double flops = 0;
    for (const Node& node : graph_.nodes()) flops += node_flops(graph_, node);
    std::uint64_t weight_bytes = 0;
    for (const TensorId id : weights_)
      weight_bytes += static_cast<std::uint64_t>(graph_.tensor(id).bytes());
    const auto copies =
        std::ranges::count_if(pending_, [](const Pending& each) { return each.output >= 0; });
    Json steps = Json::array();
    for (const Pending& each : pending_) {
      Json row = Json::object();
      if (!each.nodes.empty()) {
        row["node"] = graph_.node(each.nodes.front()).name;
        row["nodes"] = Json::array();
        for (const NodeId node : each.nodes) row["nodes"].push_back(graph_.node(node).name);
      }
      row["kind"] = each.output < 0 ? "compute" : "reorder";
      if (each.output >= 0) {
        row["writes"] =
            graph_.tensor(graph_.graph_outputs()[static_cast<std::size_t>(each.output)]).name;
      }
      row["kernel"] = "k" + std::to_string(each.number);
      steps.push_back(std::move(row));
    }
    Json splits = Json::array();
    for (const Split& split : splits_) {
      splits.push_back(
          {{"pattern", split.pattern}, {"node", split.node}, {"reason", split.reason}});
    }
    Json aliases = Json::object();
    for (const StateWrite& state : states_) {
      aliases[graph_.tensor(graph_.graph_outputs()[state.pair.output]).name] =
          state.chain.empty() ? "copied" : "in_place";
    }
    const Json json = {{"nodes", graph_.nodes().size()},
                       {"kernels", pending_.size()},
                       {"reorders", copies},
                       {"flops", flops},
                       {"weight_bytes", weight_bytes},
                       {"arena_bytes", plan_.scratch_bytes},
                       {"peak_live_bytes", plan_.scratch_bytes},
                       {"precision", "f32"},
                       {"sources", texts_.size()},
                       {"splits", std::move(splits)},
                       {"aliases", std::move(aliases)},
                       {"steps", std::move(steps)}};
    return json.dump();
  }

  const Graph& graph_;
  Model model_;
  std::vector<NodeId> kernel_nodes_;                     ///< needed, and no views
  std::map<NodeId, CachedAttentionForm> written_masks_;  ///< by the node that reads the mask
  std::vector<std::vector<NodeId>> readers_;  ///< by tensor: kernel nodes, behind views, too
  std::vector<bool> is_output_;               ///< by tensor, behind views, too
  std::vector<StateWrite> states_;
  std::set<NodeId> in_place_;  ///< what writes a state where it lies
  std::vector<std::int32_t> kernel_of_;
  std::vector<KernelNodes> planned_;
  std::vector<Split> splits_;
  std::vector<std::string> texts_;
  std::map<std::string, std::uint64_t> numbers_;
  std::vector<Pending> pending_;
  std::map<std::int32_t, std::uint64_t> written_;  ///< tensors that lie in a graph output
  std::map<std::int32_t, std::size_t> weight_of_;
  std::vector<TensorId> weights_;
  Plan plan_;
};

}  // namespace

LoweredGraph lower_graph(const Graph& graph, Machine machine,
                         const std::function<void(std::size_t, std::size_t)>& progress) {
  return GroupCompiler(graph, std::move(machine)).run(progress);
}

}  // namespace npu::opencl
