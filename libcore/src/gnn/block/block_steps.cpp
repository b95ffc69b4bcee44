// SPDX-License-Identifier: Apache-2.0
// Cuts a block into programs for the backend between our own kernels. It works backwards from the
// outputs: what they need is collected up to our own kernels, whose operands are then computed
// first in the same way. O(nodes * own kernels), plus compiling.
#include "gnn/block/block_steps.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "compile/sub_ir.hpp"
#include "gnn/block/bfloat16_features.hpp"
#include "npu/support/error.hpp"

namespace npu::gnn {
namespace {

template <typename... Actions>
struct Overloaded : Actions... {
  using Actions::operator()...;
};
template <typename... Actions>
Overloaded(Actions...) -> Overloaded<Actions...>;

// What a kernel reads that has to be made first.
std::vector<TensorId> operands_of(const OwnKernel& kernel) {
  std::vector<TensorId> operands;
  const auto add = [&](TensorId id) {
    if (id.valid()) operands.push_back(id);
  };
  std::visit(Overloaded{[&](const Reduction& reduction) {
                          add(reduction.rows);
                          if (reduction.factor_steps.empty()) add(reduction.factor);
                          for (const EdgeFactor& each : reduction.factor_steps) add(each.node);
                          add(reduction.own);
                          add(reduction.own_factor);
                          add(reduction.addend);
                        },
                        [&](const OwnedSlice& slice) { add(slice.rows); },
                        [&](const Product& product) {
                          add(product.rows);
                          add(product.addend);
                        }},
             kernel);
  return operands;
}

class StepBuilder {
 public:
  StepBuilder(const Graph& graph, OwnKernels own, const GnnDevice& device, DeviceInstance& instance,
              const std::map<std::string, Tensor>& weights, const ProgramSource& source)
      : graph_(graph),
        own_(std::move(own)),
        device_(device),
        instance_(instance),
        weights_(weights),
        source_(source) {}

  std::vector<BlockStep> build() {
    evaluate(graph_.graph_outputs());
    if (source_.stored != nullptr && loaded_ != source_.stored->size()) refuse_stored();
    mark_collected_slices();
    return std::move(steps_);
  }

 private:
  // Adds the steps that make the tensors.
  void evaluate(const std::vector<TensorId>& wanted) {
    for (;;) {
      std::set<std::int32_t> nodes;
      std::vector<std::int32_t> needed;
      for (const TensorId id : wanted) collect(id, nodes, needed);
      if (needed.empty()) {
        if (!nodes.empty()) add_program(nodes);
        return;
      }
      for (const std::int32_t n : needed) {
        if (done_.contains(n)) continue;
        evaluate(operands_of(own_.at(n)));
        done_.insert(n);
        std::visit([&](auto& kernel) { steps_.emplace_back(std::move(kernel)); }, own_.at(n));
      }
    }
  }

  // The nodes that a tensor needs and that are not done, and the own kernels where they end.
  void collect(TensorId id, std::set<std::int32_t>& nodes, std::vector<std::int32_t>& needed) {
    const TensorInfo& tensor = graph_.tensor(id);
    if (tensor.kind != TensorKind::kResult) return;
    const std::int32_t n = tensor.producer.value;
    if (done_.contains(n) || nodes.contains(n)) return;
    if (own_.contains(n)) {
      if (std::find(needed.begin(), needed.end(), n) == needed.end()) needed.push_back(n);
      return;
    }
    nodes.insert(n);
    for (const TensorId input : graph_.node(tensor.producer).inputs) collect(input, nodes, needed);
  }

  void add_program(const std::set<std::int32_t>& members) {
    std::vector<NodeId> nodes;
    for (const std::int32_t n : members) {
      nodes.push_back(NodeId{n});
      done_.insert(n);
    }
    ProgramStep step;
    // A result that only dead nodes read stays inside; the boundary cannot know that, but it costs
    // one export at most.
    step.boundary = find_boundary(graph_, nodes);
    SubIr sub_ir =
        make_sub_ir(graph_, nodes, step.boundary, backend_patterns(instance_.backend().name()));
    GnnProgramInput input{std::move(sub_ir.text), weights_of(step.boundary),
                          program_signature(graph_, nodes.size(), step.boundary.outputs)};
    Blob blob = source_.stored != nullptr ? stored_blob(input)
                                          : compile_gnn_program(device_, instance_, input);
    if (source_.keeps) {
      step.kept = {{gnn_program_key(device_, instance_, input), blob},
                   std::move(nodes),
                   input.weights,
                   sub_ir.predicted_kernels};
    }
    step.program = load_gnn_program(instance_, std::move(blob), std::move(input));
    steps_.emplace_back(std::move(step));
  }

  // The next program that was compiled before, which has to be made of just this.
  Blob stored_blob(const GnnProgramInput& input) {
    if (loaded_ == source_.stored->size()) refuse_stored();
    const StoredProgram& program = (*source_.stored)[loaded_++];
    if (program.key != gnn_program_key(device_, instance_, input)) refuse_stored();
    return program.blob;
  }

  [[noreturn]] void refuse_stored() const {
    throw Error(ErrorCode::kInvalidGraph,
                "the programs are not those that the plan needs here: compile the plan again with "
                "npu-compile",
                {.file = source_.stored_in});
  }

  std::vector<NamedTensor> weights_of(const SubgraphBoundary& boundary) const {
    std::vector<NamedTensor> used;
    for (const TensorId id : boundary.weights) {
      const TensorInfo& weight = graph_.tensor(id);
      const auto found = weights_.find(weight.weight_key);
      if (found == weights_.end()) {
        throw Error(ErrorCode::kInvalidGraph, "weight '" + weight.weight_key + "' is missing");
      }
      if (found->second.shape() == weight.shape && weight.dtype == DType::kBFloat16 &&
          found->second.dtype() == DType::kFloat32) {
        used.push_back({weight.name, to_bfloat16(found->second, device_.threads)});
        continue;
      }
      if (found->second.shape() != weight.shape || found->second.dtype() != weight.dtype) {
        throw Error(ErrorCode::kInvalidGraph, "weight '" + weight.weight_key + "' has shape " +
                                                  shape_text(found->second.shape()) +
                                                  ", the model says " + shape_text(weight.shape));
      }
      used.push_back({weight.name, found->second});
    }
    return used;
  }

  void mark_collected_slices() {
    std::set<std::int32_t> read;  // inputs of programs
    for (const BlockStep& step : steps_) {
      if (const auto* program = std::get_if<ProgramStep>(&step)) {
        for (const TensorId id : program->boundary.inputs) read.insert(id.value);
      }
    }
    for (BlockStep& step : steps_) {
      if (auto* slice = std::get_if<OwnedSlice>(&step)) {
        slice->is_collected = read.contains(slice->rows.value);
      }
    }
  }

  const Graph& graph_;
  OwnKernels own_;
  const GnnDevice& device_;
  DeviceInstance& instance_;
  const std::map<std::string, Tensor>& weights_;
  const ProgramSource& source_;
  std::size_t loaded_ = 0;  // of the stored programs
  std::set<std::int32_t> done_;
  std::vector<BlockStep> steps_;
};

}  // namespace

std::set<NodeId> nodes_in_programs(const Graph& graph, const OwnKernels& own) {
  std::set<NodeId> nodes;
  std::set<std::int32_t> seen;
  std::vector<TensorId> open = graph.graph_outputs();
  while (!open.empty()) {
    const TensorInfo& tensor = graph.tensor(open.back());
    open.pop_back();
    if (tensor.kind != TensorKind::kResult || !seen.insert(tensor.producer.value).second) continue;
    const auto kernel = own.find(tensor.producer.value);
    if (kernel == own.end()) nodes.insert(tensor.producer);
    const std::vector<TensorId> operands =
        kernel == own.end() ? graph.node(tensor.producer).inputs : operands_of(kernel->second);
    open.insert(open.end(), operands.begin(), operands.end());
  }
  return nodes;
}

std::vector<BlockStep> build_block_steps(const Graph& graph, OwnKernels own,
                                         const GnnDevice& device, DeviceInstance& instance,
                                         const std::map<std::string, Tensor>& weights,
                                         const ProgramSource& source) {
  return StepBuilder(graph, std::move(own), device, instance, weights, source).build();
}

}  // namespace npu::gnn
