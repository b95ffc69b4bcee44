// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decompositions.hpp"
#include "device/in_tree_backend.hpp"
#include "direct_elementwise.hpp"
#include "npu/custom_op.hpp"
#include "npu/ir/graph.hpp"

namespace npu::aten {

class OpRegistry;

/// A value is one entry of a program's table of tensors: an input, a weight or a result.
using Slot = std::int32_t;
inline constexpr Slot kNoSlot = -1;

/// An operand of a step: its value, and whether this is the last use, so that it can be moved.
struct Operand {
  Slot slot = kNoSlot;  ///< kNoSlot: None, in a Tensor?[]
  bool last_use = false;
};

/// What to push on the stack for one argument.
struct StepArgument {
  enum class Kind : std::uint8_t { kConstant, kTensor, kTensorList, kOptionalTensorList };
  Kind kind = Kind::kConstant;
  bool written = false;  ///< the op changes it in place
  bool out = false;      ///< written, and its old value is never read: may be omitted
  std::optional<c10::ScalarType> cast;  ///< floating operands are converted to this first
  Operand operand;                      ///< kTensor
  std::vector<Operand> operands;        ///< lists
  c10::IValue
      constant;  ///< kConstant: the value; lists: the c10::List that is refilled for each run
};

struct StepResult {
  Slot slot = kNoSlot;  ///< kNoSlot: it has no reader
  c10::ScalarType type = c10::ScalarType::Float;
  Shape shape;
  std::string name;
};

/// One call: an op of the dispatcher, a decomposition or a custom op.
struct Step {
  std::size_t node = 0;  ///< index into the document's nodes, for node_times
  std::string name;      ///< of the node; differs from that node's in the body of another
  std::string op_type;
  std::string call;  ///< its arguments, "self: float32 [2, 3], dim: 1", for messages
  c10::optional<c10::OperatorHandle> handle;
  const Decomposition* decomposition = nullptr;
  npu_custom_op custom = {};
  std::string attrs;                ///< custom ops: JSON text
  DirectFunction direct = nullptr;  ///< runs instead of the call if operands are contiguous
  std::int64_t direct_elements = 0;
  std::vector<StepArgument> arguments;
  std::vector<StepResult> results;
  bool has_written = false;   ///< some argument is written
  bool returns_none = false;  ///< the schema has no results
  bool has_casts = false;     ///< some argument is cast, so results may have to be cast back
  bool widened = false;       ///< runs in float32, for libtorch lacks its 16-bit kernel
};

/// A sub-IR with every op resolved and every argument bound. Run from one thread at a time.
class Program {
 public:
  /// Results follow the sub-IR's graph_outputs: contiguous, and none shares memory. Throws
  /// StatusError; the program can run again after that. Asks `stop` before each step. Once it
  /// has_run, it takes its inputs, and may write into those that nobody else holds.
  void run(std::span<at::Tensor> inputs, std::vector<at::Tensor>& outputs, const RunBreak& stop);
  /// To its end. Only before that can a run begin again, with its inputs.
  bool has_run() const noexcept { return has_run_; }

  const std::vector<StepResult>& inputs() const noexcept { return inputs_; }
  const std::vector<StepResult>& outputs() const noexcept { return outputs_; }
  /// Nanoseconds of the last run, one entry for each node of the sub-IR.
  const std::vector<std::uint64_t>& node_times() const noexcept { return node_times_; }

 private:
  friend class ProgramBuilder;

  void execute(const RunBreak& stop);
  bool run_direct(const Step& step);
  void push_arguments(Step& step);
  void protect_written(Step& step);
  void call(Step& step);
  void call_custom(const Step& step);
  void take_results(Step& step, const std::vector<at::Tensor>& written);
  void store(const Step& step, const StepResult& result, at::Tensor tensor);
  void forget_values() noexcept;
  bool widen(const std::string& error_text);

  std::vector<Step> steps_;
  std::vector<at::Tensor> values_;  // by Slot
  std::vector<bool> is_weight_;     // by Slot: kept between runs
  std::vector<StepResult> inputs_;
  std::vector<StepResult> outputs_;
  std::vector<std::uint64_t> node_times_;
  torch::jit::Stack stack_;
  bool has_run_ = false;
  std::size_t current_ = 0;  // the step that runs, for messages
};

struct BuildOptions {
  bool promote = false;  ///< promote operands of ops that need one dtype, instead of refusing
  /// Called before each node with its number and the number of nodes; it may throw.
  std::function<void(std::size_t done, std::size_t total)> checkpoint = {};
};

/// The tensor of a weight; nothing if there is none.
using WeightLookup = std::function<std::optional<at::Tensor>(const TensorInfo& weight)>;

/// Resolves and binds all nodes of `graph`. Without `weights` the program can only be checked, not
/// run. Throws StatusError that names the node.
Program build_program(const Graph& graph, OpRegistry& registry, const BuildOptions& options,
                      const WeightLookup* weights);

/// First line of an exception's text, without libtorch's backtrace.
std::string first_line(std::string_view text);

}  // namespace npu::aten
