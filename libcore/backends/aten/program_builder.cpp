// SPDX-License-Identifier: Apache-2.0
// Turns a graph into the steps of a Program: resolve each op, bind its arguments, decide last uses.
//
// Input:  a verified sub-IR. Output: steps in node order. O(nodes + operands).
// getitem and wrap_with_set_grad_enabled cost nothing at run time: the former makes two values
// share a slot, the latter is replaced by its body.
#include <ATen/core/List.h>
#include <ATen/core/ivalue.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "aten_types.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "op_registry.hpp"
#include "program.hpp"
#include "support/checked.hpp"

namespace npu::aten {
namespace {

// Ops whose kernels require one dtype for all floating operands, for which PyTorch does not promote
// either.
constexpr std::string_view kOneDTypeOps[] = {"aten.conv1d.",
                                             "aten.conv2d.",
                                             "aten.conv3d.",
                                             "aten.conv_transpose1d.",
                                             "aten.conv_transpose2d.",
                                             "aten.conv_transpose3d.",
                                             "aten.convolution.",
                                             "aten._convolution.",
                                             "aten.linear.",
                                             "aten.matmul.",
                                             "aten.mm.",
                                             "aten.bmm.",
                                             "aten.mv.",
                                             "aten.dot.",
                                             "aten.vdot.",
                                             "aten.inner.",
                                             "aten.addmm.",
                                             "aten.addmv.",
                                             "aten.addbmm.",
                                             "aten.baddbmm.",
                                             "aten.einsum.",
                                             "aten.tensordot.",
                                             "aten.bilinear.",
                                             "aten.chain_matmul.",
                                             "aten.linalg_multi_dot.",
                                             "aten.linalg_matmul.",
                                             "aten.lstm.",
                                             "aten.gru.",
                                             "aten.rnn_tanh.",
                                             "aten.rnn_relu.",
                                             "aten.lstm_cell.",
                                             "aten.gru_cell.",
                                             "aten.conv_tbc.",
                                             "aten.scaled_dot_product_attention.",
                                             "aten._scaled_dot_product_flash_attention_for_cpu."};

bool needs_one_dtype(std::string_view op_type) {
  return std::any_of(std::begin(kOneDTypeOps), std::end(kOneDTypeOps),
                     [&](std::string_view prefix) { return op_type.starts_with(prefix); });
}

std::string tensor_text(const TensorInfo& tensor) {
  return fmt::format("{} {}", dtype_name(tensor.dtype), shape_text(tensor.shape));
}

// Describes what an argument was bound to; empty for None.
std::string bound_text(const Graph& graph, const Node& node, const BoundArgument& argument) {
  constexpr std::size_t kLongest = 60;
  const auto operand = [&](std::int32_t input) {
    return input < 0 ? std::string("None")
                     : tensor_text(graph.tensor(node.inputs[static_cast<std::size_t>(input)]));
  };
  std::string text;
  switch (argument.kind) {
    case BoundArgument::Kind::kNone:
      break;
    case BoundArgument::Kind::kTensor:
      text = operand(argument.inputs[0]);
      break;
    case BoundArgument::Kind::kTensors:
      text = "[";
      for (const std::int32_t input : argument.inputs) {
        if (text.size() > 1) text += ", ";
        if (text.size() > kLongest) {
          text += fmt::format("... {} tensors", argument.inputs.size());
          break;
        }
        text += operand(input);
      }
      text += "]";
      break;
    case BoundArgument::Kind::kValue:
      text = argument.value.dump(-1, ' ', true);
      if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
      break;
  }
  return text;
}

void add_to_call(Step& step, std::string_view argument, std::string_view value) {
  step.call += fmt::format("{}{}: {}", step.call.empty() ? "" : ", ", argument, value);
}

StepResult describe(const TensorInfo& tensor, Slot slot) {
  return {slot, scalar_type(tensor.dtype), tensor.shape, tensor.name};
}

std::string text_of(const TensorInfo& tensor) {
  return fmt::format("{} {}", dtype_name(tensor.dtype), shape_text(tensor.shape));
}

}  // namespace

class ProgramBuilder {
 public:
  ProgramBuilder(OpRegistry& registry, const BuildOptions& options, const WeightLookup* weights)
      : registry_(registry), options_(options), weights_(weights) {}

  Program build(const Graph& graph) {
    program_.node_times_.resize(graph.nodes().size());
    for (const TensorId id : graph.graph_inputs()) {
      program_.inputs_.push_back(describe(graph.tensor(id), new_slot()));
    }
    std::vector<Slot> inputs;
    for (const StepResult& input : program_.inputs_) inputs.push_back(input.slot);
    const std::vector<Slot> outputs = add_graph(graph, inputs);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      program_.outputs_.push_back(describe(graph.tensor(graph.graph_outputs()[i]), outputs[i]));
    }
    program_.values_.resize(is_weight_.size());
    for (auto& [slot, tensor] : loaded_)
      program_.values_[static_cast<std::size_t>(slot)] = std::move(tensor);
    program_.is_weight_ = is_weight_;
    mark_last_uses();
    std::size_t deepest = 0;
    for (const Step& step : program_.steps_) {
      deepest = std::max({deepest, step.arguments.size(), step.results.size()});
    }
    program_.stack_.reserve(deepest + 1);
    return std::move(program_);
  }

 private:
  // The names of the node that is being added, for messages.
  struct Place {
    const Node* node;
    [[noreturn]] void fail(npu_status status, const std::string& text) const {
      throw StatusError(status, fmt::format("node '{}' ({}): {}", node->name, node->op_type, text));
    }
  };

  Slot new_slot(bool weight = false) {
    is_weight_.push_back(weight);
    return static_cast<Slot>(is_weight_.size() - 1);
  }

  // Slots of a graph's tensors while it is added; kNoSlot: not known yet.
  using SlotTable = std::vector<Slot>;

  std::vector<Slot> add_graph(const Graph& graph, const std::vector<Slot>& inputs) {
    SlotTable slots(graph.tensors().size(), kNoSlot);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      slots[index_of(graph.graph_inputs()[i])] = inputs[i];
    }
    for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
      if (depth_ == 0) top_node_ = n;
      if (depth_ == 0 && options_.checkpoint) options_.checkpoint(n, graph.nodes().size());
      add_node(graph, graph.nodes()[n], slots);
    }
    std::vector<Slot> outputs;
    for (const TensorId id : graph.graph_outputs()) outputs.push_back(read(graph, id, slots));
    return outputs;
  }

  // The slot of an operand; a weight gets one when it is first read.
  Slot read(const Graph& graph, TensorId id, SlotTable& slots) {
    Slot& slot = slots[index_of(id)];
    const TensorInfo& tensor = graph.tensor(id);
    if (slot == kNoSlot && tensor.kind == TensorKind::kWeight) {
      const auto known = weight_slots_.find(tensor.name);
      if (known != weight_slots_.end()) {
        slot = known->second;
      } else {
        slot = new_slot(true);
        weight_slots_.emplace(tensor.name, slot);
        if (weights_ != nullptr) load_weight(tensor, slot);
      }
    }
    if (slot == kNoSlot) {
      throw StatusError(NPU_INVALID,
                        fmt::format("tensor '{}' is read before it is produced", tensor.name));
    }
    return slot;
  }

  void load_weight(const TensorInfo& tensor, Slot slot) {
    auto data = (*weights_)(tensor);
    if (!data) {
      throw StatusError(NPU_INVALID, fmt::format("weight '{}' is missing", tensor.name));
    }
    if (data->scalar_type() != scalar_type(tensor.dtype) ||
        data->sizes() != c10::IntArrayRef(tensor.shape)) {
      throw StatusError(
          NPU_INVALID,
          fmt::format("weight '{}': expected {}, found {} {}", tensor.name, text_of(tensor),
                      type_text(data->scalar_type()), shape_text(data->sizes().vec())));
    }
    loaded_.emplace_back(slot, *std::move(data));
  }

  void add_node(const Graph& graph, const Node& node, SlotTable& slots) {
    const Place place{&node};
    try {
      const Operation& operation = registry_.find(node.op_type);
      switch (operation.kind) {
        case Operation::Kind::kGetItem:
          add_getitem(graph, node, slots, place);
          return;
        case Operation::Kind::kBody:
          add_body(graph, node, slots, place);
          return;
        case Operation::Kind::kCustom:
          add_custom(graph, node, operation, slots);
          return;
        case Operation::Kind::kDispatch:
        case Operation::Kind::kDecomposition:
          add_call(graph, node, operation, slots, place);
          return;
      }
    } catch (const StatusError& error) {
      // From the registry, without the node; add_call and the rest name it themselves.
      const std::string_view text = error.what();
      if (text.starts_with("node '") || text.starts_with("weight '")) throw;
      place.fail(error.status, std::string(text));
    } catch (const Error& error) {
      place.fail(status_of(error.code()), error.message());
    }
  }

  void add_getitem(const Graph& graph, const Node& node, SlotTable& slots, const Place& place) {
    // The verifier has checked that there is an index and that it is in range.
    const auto count = static_cast<std::int64_t>(node.inputs.size());
    std::int64_t position = find_member(node.attrs(), "index")->get<std::int64_t>();
    if (position < 0) position += count;
    if (node.outputs.size() != 1) {
      place.fail(NPU_INVALID, fmt::format("expected 1 result, found {}", node.outputs.size()));
    }
    const TensorId source = node.inputs[static_cast<std::size_t>(position)];
    const TensorInfo& from = graph.tensor(source);
    const TensorInfo& to = graph.tensor(node.outputs[0]);
    if (from.dtype != to.dtype || from.shape != to.shape) {
      place.fail(NPU_INVALID, fmt::format("result '{}': expected {}, but value {} is {}", to.name,
                                          text_of(to), position, text_of(from)));
    }
    slots[index_of(node.outputs[0])] = read(graph, source, slots);
  }

  // A region in which nothing is computed hands on what it gets.
  void add_empty_body(const Graph& graph, const Node& node, SlotTable& slots, const Place& place) {
    const auto alike = [&](TensorId a, TensorId b) {
      return graph.tensor(a).dtype == graph.tensor(b).dtype &&
             graph.tensor(a).shape == graph.tensor(b).shape;
    };
    if (!std::equal(node.outputs.begin(), node.outputs.end(), node.inputs.begin(),
                    node.inputs.end(), alike)) {
      place.fail(NPU_UNSUPPORTED,
                 "its body is not in the document, and its results are not like its operands: "
                 "export the model under torch.no_grad(), or give the body as an IR document in "
                 "attrs.body");
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      slots[index_of(node.outputs[i])] = read(graph, node.inputs[i], slots);
    }
  }

  void add_body(const Graph& graph, const Node& node, SlotTable& slots, const Place& place) {
    const Json* body = find_member(node.attrs(), "body");
    if (body == nullptr || body->is_null()) return add_empty_body(graph, node, slots, place);
    if (!body->is_object()) {
      place.fail(NPU_INVALID, fmt::format("expected an IR document in attrs.body, found {}",
                                          json_type_name(*body)));
    }
    if (depth_ == kMaxDepth) place.fail(NPU_INVALID, "bodies are nested too deep");
    const Graph inner = valid_graph(*body, fmt::format("body of node '{}'", node.name));
    if (inner.graph_inputs().size() != node.inputs.size() ||
        inner.graph_outputs().size() != node.outputs.size()) {
      place.fail(NPU_INVALID,
                 fmt::format("its body has {} inputs and {} outputs, expected {} and {}",
                             inner.graph_inputs().size(), inner.graph_outputs().size(),
                             node.inputs.size(), node.outputs.size()));
    }
    const auto check = [&](TensorId outside, TensorId inside) {
      const TensorInfo& a = graph.tensor(outside);
      const TensorInfo& b = inner.tensor(inside);
      if (a.dtype != b.dtype || a.shape != b.shape) {
        place.fail(NPU_INVALID, fmt::format("tensor '{}' is {}, but '{}' of its body is {}", a.name,
                                            text_of(a), b.name, text_of(b)));
      }
    };
    std::vector<Slot> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      check(node.inputs[i], inner.graph_inputs()[i]);
      inputs.push_back(read(graph, node.inputs[i], slots));
    }
    ++depth_;
    const std::vector<Slot> outputs = add_graph(inner, inputs);
    --depth_;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      check(node.outputs[i], inner.graph_outputs()[i]);
      slots[index_of(node.outputs[i])] = outputs[i];
    }
  }

  Step& new_step(const Node& node) {
    Step& step = program_.steps_.emplace_back();
    step.node = top_node_;
    step.name = node.name;
    step.op_type = node.op_type;
    return step;
  }

  void add_results(const Graph& graph, const Node& node, SlotTable& slots, Step& step) {
    for (const TensorId id : node.outputs) {
      const Slot slot = new_slot();
      slots[index_of(id)] = slot;
      step.results.push_back(describe(graph.tensor(id), slot));
    }
  }

  void add_custom(const Graph& graph, const Node& node, const Operation& operation,
                  SlotTable& slots) {
    Step& step = new_step(node);
    step.custom = operation.custom;
    step.attrs = node.attrs().dump();
    for (const TensorId id : node.inputs) {
      StepArgument& argument = step.arguments.emplace_back();
      argument.kind = StepArgument::Kind::kTensor;
      argument.operand.slot = read(graph, id, slots);
      const TensorInfo& tensor = graph.tensor(id);
      add_to_call(step, tensor.name, tensor_text(tensor));
    }
    if (!node.attrs().empty()) add_to_call(step, "attrs", step.attrs);
    add_results(graph, node, slots, step);
  }

  void add_call(const Graph& graph, const Node& node, const Operation& operation, SlotTable& slots,
                const Place& place) {
    std::vector<OperandInfo> operands;
    for (const TensorId id : node.inputs) {
      const TensorInfo& tensor = graph.tensor(id);
      operands.push_back({tensor.dtype, &tensor.shape});
    }
    std::vector<BoundArgument> bound;
    // An attr that this schema lacks is refused unless it is null: exports of newer torch versions
    // carry keyword arguments whose None means the behaviour of this version.
    if (const auto error = bind_arguments(operation.schema, operands, node.attrs(), bound)) {
      place.fail(NPU_INVALID, error->text);
    }
    const auto promoted = one_dtype(graph, node, place);

    Step& step = new_step(node);
    step.handle = operation.handle;
    step.decomposition = operation.decomposition;
    step.returns_none = operation.schema.result_count == 0;
    const bool training = is_training(operation.schema, bound);
    const bool is_resampling = node.op_type.find("upsample_") != std::string::npos;
    bool is_transposed = node.op_type.starts_with("aten.conv_transpose");
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const SchemaArgument& declared = operation.schema.arguments[i];
      const Operation::ArgumentTraits& traits = operation.traits[i];
      StepArgument& argument = step.arguments.emplace_back();
      argument.written = traits.written || (traits.written_in_training && training);
      argument.out = traits.out;
      if (const std::string text = bound_text(graph, node, bound[i]); !text.empty()) {
        add_to_call(step, declared.name, text);
      }
      step.has_written = step.has_written || argument.written;
      is_transposed = is_transposed || (declared.name == "transposed" && bound[i].value == true);
      if (promoted) {
        argument.cast = promoted;
        step.has_casts = true;
      }
      const auto slot_of = [&](std::int32_t input) {
        return input < 0 ? kNoSlot
                         : read(graph, node.inputs[static_cast<std::size_t>(input)], slots);
      };
      if (bound[i].kind == BoundArgument::Kind::kTensor) {
        argument.kind = StepArgument::Kind::kTensor;
        argument.operand.slot = slot_of(bound[i].inputs[0]);
      } else if (bound[i].kind == BoundArgument::Kind::kTensors) {
        for (const std::int32_t input : bound[i].inputs)
          argument.operands.push_back({slot_of(input)});
        if (declared.type == ArgumentType::kOptionalTensorList) {
          argument.kind = StepArgument::Kind::kOptionalTensorList;
          c10::List<c10::optional<at::Tensor>> list;
          list.resize(argument.operands.size());
          argument.constant = std::move(list);
        } else {
          argument.kind = StepArgument::Kind::kTensorList;
          c10::List<at::Tensor> list;
          list.resize(argument.operands.size());
          argument.constant = std::move(list);
        }
      } else {
        try {
          argument.constant = argument_value(declared, traits, bound[i]);
        } catch (const StatusError& value_error) {
          place.fail(value_error.status,
                     fmt::format("argument '{}': {}", declared.name, value_error.what()));
        }
      }
    }
    // On CPUs with AVX512_BF16, libtorch 1.13 gives transposed convolutions of bfloat16 to oneDNN
    // as plain ones. It computes the places of resampled elements in 16 bits: others than the
    // nearest.
    if (is_transposed || is_resampling) step.widened = step.has_casts = true;
    add_results(graph, node, slots, step);
    choose_direct(graph, node, operation.schema, bound, step);
  }

  // A small element-wise op on operands with the result's shape and dtype needs no dispatcher.
  static void choose_direct(const Graph& graph, const Node& node, const Schema& schema,
                            const std::vector<BoundArgument>& bound, Step& step) {
    if (!step.handle || step.has_casts || node.outputs.size() != 1) return;
    const TensorInfo& result = graph.tensor(node.outputs[0]);
    const auto count = checked_element_count(result.shape);
    if (!count || *count > kMostDirectElements) return;
    int operands = 0;
    for (std::size_t i = 0; i < bound.size(); ++i) {
      if (bound[i].kind == BoundArgument::Kind::kTensor) {
        const TensorInfo& tensor =
            graph.tensor(node.inputs[static_cast<std::size_t>(bound[i].inputs[0])]);
        if (tensor.dtype != result.dtype || tensor.shape != result.shape) return;
        if (operands != static_cast<int>(i)) return;  // operands come first
        ++operands;
      } else if (schema.arguments[i].name != "alpha" || bound[i].value != 1) {
        return;
      }
    }
    if (operands == 0 || operands > 2) return;
    step.direct = find_direct(node.op_type, scalar_type(result.dtype), operands);
    step.direct_elements = *count;
  }

  static bool is_training(const Schema& schema, const std::vector<BoundArgument>& bound) {
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const std::string& name = schema.arguments[i].name;
      if (name == "training" || name == "train" || name == "use_input_stats") {
        return !(bound[i].value.is_boolean() && !bound[i].value.get<bool>());
      }
    }
    return true;
  }

  // Nothing if the operands of the node agree; else what to cast them to, or an error.
  std::optional<c10::ScalarType> one_dtype(const Graph& graph, const Node& node,
                                           const Place& place) const {
    if (!needs_one_dtype(node.op_type)) return std::nullopt;
    const TensorInfo* first = nullptr;
    std::optional<c10::ScalarType> promoted;
    for (const TensorId id : node.inputs) {
      const TensorInfo& tensor = graph.tensor(id);
      // A mask or indices stay as they are.
      if (!is_floating_point(tensor.dtype)) continue;
      if (first == nullptr) first = &tensor;
      if (tensor.dtype == first->dtype) continue;
      if (!options_.promote) {
        place.fail(
            NPU_UNSUPPORTED,
            fmt::format(
                "operand '{}' is {} and '{}' is {}; this op needs one dtype (npu-run --promote, or "
                "the device option \"promote\": true, converts them)",
                first->name, dtype_name(first->dtype), tensor.name, dtype_name(tensor.dtype)));
      }
      promoted = c10::promoteTypes(promoted.value_or(scalar_type(first->dtype)),
                                   scalar_type(tensor.dtype));
    }
    return promoted;
  }

  // Backwards: the first mention found is the last use. Results without a reader lose their slot.
  void mark_last_uses() {
    std::vector<bool> used = is_weight_;
    for (const StepResult& output : program_.outputs_)
      used[static_cast<std::size_t>(output.slot)] = true;
    const auto visit = [&](Operand& operand) {
      if (operand.slot == kNoSlot || used[static_cast<std::size_t>(operand.slot)]) return;
      used[static_cast<std::size_t>(operand.slot)] = true;
      operand.last_use = true;
    };
    for (auto step = program_.steps_.rbegin(); step != program_.steps_.rend(); ++step) {
      for (StepResult& result : step->results) {
        if (!used[static_cast<std::size_t>(result.slot)]) result.slot = kNoSlot;
        if (result.slot == kNoSlot) step->direct = nullptr;
      }
      for (auto argument = step->arguments.rbegin(); argument != step->arguments.rend();
           ++argument) {
        for (auto operand = argument->operands.rbegin(); operand != argument->operands.rend();
             ++operand) {
          visit(*operand);
        }
        if (argument->kind == StepArgument::Kind::kTensor) visit(argument->operand);
      }
    }
    for (StepResult& input : program_.inputs_) {
      if (!used[static_cast<std::size_t>(input.slot)]) input.slot = kNoSlot;
    }
  }

  static constexpr int kMaxDepth = 32;

  OpRegistry& registry_;
  const BuildOptions& options_;
  const WeightLookup* weights_;
  Program program_;
  std::vector<bool> is_weight_;  // by slot
  std::vector<std::pair<Slot, at::Tensor>> loaded_;
  std::unordered_map<std::string, Slot> weight_slots_;
  std::size_t top_node_ = 0;
  int depth_ = 0;
};

Program build_program(const Graph& graph, OpRegistry& registry, const BuildOptions& options,
                      const WeightLookup* weights) {
  return ProgramBuilder(registry, options, weights).build(graph);
}

}  // namespace npu::aten
