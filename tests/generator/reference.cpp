// SPDX-License-Identifier: Apache-2.0
// Walks over a graph in its order and computes each node with the arithmetic of its device.
#include "reference.hpp"

#include <algorithm>
#include <cmath>

#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/tensor/tensor.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

using Where = StatedDifference::Where;

constexpr std::string_view kPage = "npu-onednn.7";
constexpr StatedDifference kStated[] = {
    {"npu", "relu relu_ clamp hardtanh relu6 clamp_min clamp_max max_pool1d max_pool2d max_pool3d",
     Where::kNaN, kPage, "relu, clamp, hardtanh and max pooling drop NaN;"},
    {"npu", "sigmoid sigmoid_", Where::kNaN, kPage,
     "a sigmoid behind a convolution may give 0 for NaN;"},
    {"*", "hardswish", Where::kHuge, kPage, "hardswish of numbers near 3.4e38 differs;"},
    {"cpu", "log1p", Where::kHuge, kPage, "log1p of numbers above 1e38 is infinite on"},
    {"npu", "softmax _softmax log_softmax _log_softmax", Where::kNarrowNaN, kPage,
     "a softmax in bfloat16 gives NaN for a NaN or +Inf element alone, not for its row."},
    {"npu", "layer_norm group_norm instance_norm rms_norm", Where::kHuge, kPage,
     "Layer norm and group norm of numbers of 1e20 and above are finite where cpu overflows."},
    {"*", "batch_norm instance_norm", Where::kAnywhere, kPage,
     "A batch norm multiplies its mean by the weight first: numbers that are not finite, or "
     "overflow "
     "by that, may give NaN."},
    {"*", "conv1d conv2d conv3d convolution", Where::kWeight, kPage,
     "A weight that is not finite counts as it is where it falls on the padding of a convolution, "
     "too, so that 0 times it is NaN there."},
    {"npu",
     "conv1d conv2d conv3d convolution linear matmul mm bmm addmm baddbmm addbmm einsum mv addmv",
     Where::kNarrowBeside, kPage,
     "In bfloat16 a convolution or a product may multiply an element, or the one beside it, by 0 "
     "as well, which is NaN if that is not finite."},
    {"npu", "conv_transpose1d conv_transpose2d conv_transpose3d convolution", Where::kUnreached,
     kPage,
     "Where no tap of a transposed convolution reaches, 0 times an element beside it may be added, "
     "which is NaN if that is not finite."},
    {"*", "to _to_copy type_as", Where::kOutOfRange, kPage,
     "to an integer towards zero, and undefined for what the integer does not hold, as in "
     "PyTorch."}};

double unit_of(DType dtype) {
  return dtype == DType::kBFloat16 ? 0x1p-8 : dtype == DType::kFloat16 ? 0x1p-11 : 0x1p-24;
}

/// Nodes behind a product, over what a kernel may compute along with it.
class Epilogues {
 public:
  explicit Epilogues(const Graph& graph) : graph_(graph), behind_(graph.nodes().size(), false) {
    for (std::size_t i = 0; i < behind_.size(); ++i) {
      const Node& node = graph.nodes()[i];
      const OpInfo* info = find_op(node.op_type);
      if (info == nullptr) continue;
      behind_[i] = is_product(info->role) || info->role == FusionRole::kAttention;
      const bool passes = info->kind == OpKind::kElementwise || info->kind == OpKind::kBroadcast ||
                          info->kind == OpKind::kInjective;
      for (const TensorId id : node.inputs) {
        const NodeId producer = graph.tensor(id).producer;
        if (passes && producer.valid() && behind_[index_of(producer)]) behind_[i] = true;
      }
    }
  }
  bool has(NodeId node) const { return behind_[index_of(node)]; }

 private:
  const Graph& graph_;
  std::vector<bool> behind_;
};

bool is_narrow(const std::string& precision) { return precision == "bf16" || precision == "f16"; }

Arithmetic arithmetic_of(const std::string& device, const std::string& precision,
                         const Call& call) {
  DType dtype = call.dtype_or("dtype", DType::kFloat32);
  for (std::size_t i = 0; i < call.operand_count(); ++i) {
    const DType own = call.operand(i).dtype;  // the coarser one counts
    const bool is_16_bits = own == DType::kBFloat16 || own == DType::kFloat16;
    if (is_16_bits && unit_of(own) > unit_of(dtype)) dtype = own;
  }
  const bool by_option = device == "npu" && is_narrow(precision) && dtype != DType::kBFloat16 &&
                         dtype != DType::kFloat16;
  if (by_option) dtype = precision == "bf16" ? DType::kBFloat16 : DType::kFloat16;
  Arithmetic by;
  by.stored = unit_of(dtype);
  if (dtype == DType::kFloat16) by.most = 65504;
  if (dtype == DType::kFloat16) by.least = 0x1p-24;
  if (dtype == DType::kBFloat16) by.least = by_option ? 0x1p-126 : 0x1p-133;
  if (device != "npu") {
    by.unit = by.stored;
    by.ulps = by.formula = 4;
    by.least = std::max(by.least, 0x1p-121);  // sigmoid is 0 where 1 + e^-x overflows
    return by;
  }
  by.tile_growth = 256;
  const OpInfo* info = find_op(call.op());
  const bool is_anchor = info != nullptr && info->kind == OpKind::kAnchor;
  // Of float16 a CPU may add up 64 products at a time as such.
  if (is_anchor && dtype == DType::kFloat16) by.unit = 0x1p-11;
  if (precision == "int8") by.row_least = 0x1p-16;
  // A bias over the scale, what is added to it, the scale of both and its product.
  if (precision == "int8" && is_anchor) by.unit = 0x1p-22;
  return by;
}

/// Whether a batch norm behind the node may be multiplied into its weights, which rounds these once
/// more in bfloat16, as npu-onednn(7) says.
bool takes_norm(const Graph& graph, const Node& node) {
  const OpInfo* info = find_op(node.op_type);
  if (info == nullptr || !is_product(info->role)) return false;
  return std::ranges::any_of(graph.nodes(), [&](const Node& reader) {
    return fusion_role(reader.op_type) == FusionRole::kBatchNorm &&
           reader.inputs.front() == node.outputs.front();
  });
}

/// In 16 bits by option results are stored so, also those that are numbers of the document.
void add_storage(Values& values, const std::string& precision) {
  if (!is_narrow(precision) || values.dtype != DType::kFloat32) return;
  for (Bounded& x : values.data) {
    const auto number = static_cast<float>(x.value);
    const float stored = precision == "f16" ? float16_to_float(float_to_float16(number))
                                            : bfloat16_to_float(float_to_bfloat16(number));
    const double lost = std::abs(static_cast<double>(stored) - x.value);
    if (std::isfinite(lost)) x.error = std::max(x.error, lost * (1 + 0x1p-20));
  }
}

/// An epilogue's functions keep what is small beside the largest result absolutely.
void add_to_all(Values& values, double share) {
  if (share == 0 || !is_floating_point(values.dtype)) return;
  double largest = 0;
  for (const Bounded x : values.data) {
    if (std::isfinite(x.value)) largest = std::max(largest, std::abs(x.value));
  }
  for (Bounded& x : values.data) x.error += share * largest + 0x1p-121;
}

bool holds(Where where, const std::string& precision, const Call& call) {
  const auto any = [&](std::size_t operand, auto&& test) {
    if (operand >= call.operand_count()) return false;
    const std::vector<Bounded>& data = call.operand(operand).data;
    return std::any_of(data.begin(), data.end(), [&](Bounded x) { return test(x.value); });
  };
  switch (where) {
    case Where::kNarrowNaN:
      if (call.operand(0).dtype == DType::kFloat32 && !is_narrow(precision)) return false;
      [[fallthrough]];
    case Where::kNaN:
      return any(0, [](double x) { return !std::isfinite(x); });
    case Where::kHuge:
      return any(0, [](double x) { return std::abs(x) > 1e18; });
    case Where::kWeight: {
      // In 16 bits what is larger than any number becomes infinite.
      const double most = precision == "f16" ? 65504 : precision == "bf16" ? 0x1.fep127 : HUGE_VAL;
      return any(1, [&](double x) { return !std::isfinite(x) || std::abs(x) > most; });
    }
    case Where::kNarrowBeside: {
      const bool is_narrow_type = call.operand(0).dtype == DType::kBFloat16 || precision == "bf16";
      const auto overflows = [](double x) { return !(std::abs(x) <= 0x1.fep127); };
      const std::size_t first = call.is("add") ? 1 : 0;  // addmm: behind what is added
      return is_narrow_type && (any(first, overflows) || any(first + 1, overflows));
    }
    case Where::kAnywhere: {
      bool is_anywhere = false;
      for (std::size_t i = 0; i < call.operand_count(); ++i) {
        is_anywhere = is_anywhere || any(i, [](double x) { return !(std::abs(x) <= 1e18); });
      }
      return is_anywhere;
    }
    case Where::kUnreached: {
      const std::vector<Bounded>& data = call.operand(0).data;
      return (call.name() != "convolution" || call.boolean("transposed")) &&
             std::any_of(data.begin(), data.end(),
                         [](Bounded x) { return !std::isfinite(x.value + x.error); });
    }
    case Where::kOutOfRange:
      return false;  // the conversion itself says what it does not hold
  }
  return false;
}

void skip_stated(const Call& call, const std::string& device, const std::string& precision,
                 Values& result) {
  for (const StatedDifference& stated : kStated) {
    const OpRow row{stated.ops, nullptr, nullptr};
    const bool is_meant = (stated.device == "*" || stated.device == device) &&
                          find_row({&row, 1}, call.op()) != nullptr;
    if (is_meant && holds(stated.where, precision, call))
      std::fill(result.data.begin(), result.data.end(), anything());
  }
}

class Reference {
 public:
  Reference(const Run& run, const std::string& precision)
      : run_(run), graph_(run.graph), precision_(precision), epilogues_(graph_) {
    values_.resize(graph_.tensors().size());
  }

  std::vector<Values> compute() {
    for (std::size_t i = 0; i < run_.inputs.size(); ++i)
      hold(graph_.graph_inputs()[i], run_.inputs[i]);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const TensorInfo& tensor = graph_.tensors()[i];
      if (tensor.kind == TensorKind::kWeight)
        hold(TensorId{static_cast<std::int32_t>(i)}, run_.data.at(tensor.name));
    }
    for (const NodeId id : ids_of<NodeId>(graph_.nodes())) compute_node(id);
    std::vector<Values> outputs;
    for (const TensorId id : graph_.graph_outputs()) outputs.push_back(values_[index_of(id)]);
    return outputs;
  }

 private:
  /// In 16 bits the values that a model is given are rounded, too.
  void hold(TensorId id, const Tensor& tensor) {
    Values& values = values_[index_of(id)] = values_of(tensor);
    if (!is_narrow(precision_) || tensor.dtype() != DType::kFloat32) return;
    const bool is_half = precision_ == "f16";
    for (Bounded& x : values.data) {
      if (!std::isfinite(x.value)) continue;
      x.error += (is_half ? 0x1p-11 : 0x1p-8) * std::abs(x.value) + (is_half ? 0x1p-24 : 0x1p-126);
      if (is_half && std::abs(x.value) + x.error > 65504) x.error = anything().error;
    }
  }

  void compute_node(NodeId id) {
    const Node& node = graph_.node(id);
    const auto placed = run_.devices.find(node.name);
    const std::string device = placed == run_.devices.end() ? "" : placed->second;
    std::vector<const Values*> operands;
    for (const TensorId operand : node.inputs) operands.push_back(&values_[index_of(operand)]);
    Values weight;  // that a batch norm is multiplied into
    if (device == "npu" && takes_norm(graph_, node)) {
      const Values*& operand = operands.at(functional_name(node.op_type) == "addmm" ? 2 : 1);
      weight = *operand;
      for (Bounded& x : weight.data) {
        if (weight.dtype == DType::kBFloat16) x.error += 0x1p-8 * std::abs(x.value);
      }
      operand = &weight;
    }
    Results results = results_on(device, precision_, Call(node.op_type, operands, node.attrs()),
                                 epilogues_.has(id));
    // A mean over padded rows is a sum, which is rounded, divided by their number: npu-align(1).
    if (run_.is_padded && functional_name(node.op_type) == "mean") {
      for (Bounded& x : results.front().data) {
        x.error += unit_of(results.front().dtype) * std::abs(x.value);
      }
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const TensorInfo& tensor = graph_.tensor(node.outputs.at(i));
      if (tensor.shape != results[i].shape || tensor.dtype != results[i].dtype)
        refuse("the document states another shape or dtype of " + tensor.name);
      values_[index_of(node.outputs[i])] = std::move(results[i]);
    }
  }

  const Run& run_;
  const Graph& graph_;
  const std::string& precision_;
  Epilogues epilogues_;
  std::vector<Values> values_;
};

}  // namespace

std::span<const StatedDifference> stated_differences() { return kStated; }

Results results_on(const std::string& device, const std::string& precision, const Call& call,
                   bool in_epilogue) {
  Arithmetic by = arithmetic_of(device, precision, call);
  in_epilogue = in_epilogue && device == "npu";
  if (in_epilogue) by.ulps = 4;
  const Rounding rounding(by);
  Results results = results_of(call);
  const bool rounds = row_of(call.op())->rounds == OpRow::Rounds::kResults;
  for (Values& values : results) {
    add_to_all(values, in_epilogue && rounds ? 8 * by.unit * 0x1p-20 : 0);
    if (device != "cpu") add_storage(values, precision);
    skip_stated(call, device, precision, values);
  }
  return results;
}

std::vector<Values> reference(const Run& run, const std::string& precision) {
  return Reference(run, precision).compute();
}

std::optional<Mismatch> compare(const Run& run, const std::vector<Values>& expected,
                                std::int64_t& compared, std::int64_t& unknown) {
  std::optional<Mismatch> first;
  for (std::size_t o = 0; o < expected.size(); ++o) {
    const Tensor& actual = run.outputs.at(o);
    const std::string& name = run.graph.tensor(run.graph.graph_outputs()[o]).name;
    if (actual.shape() != expected[o].shape || actual.dtype() != expected[o].dtype) {
      return Mismatch{name, "shape or dtype is " + shape_text(actual.shape()) + " " +
                                std::string(dtype_name(actual.dtype()))};
    }
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < expected[o].data.size(); ++i) {
      const Bounded e = expected[o].data[i];
      const double a = actual.value_as_double(static_cast<std::int64_t>(i));
      if (!e.is_known()) {
        ++unknown;
        continue;
      }
      ++compared;
      const bool is_right = std::isnan(e.value)   ? std::isnan(a)
                            : std::isinf(e.value) ? a == e.value
                                                  : std::abs(a - e.value) <= e.error;
      if (is_right || wrong++ > 0 || first) continue;
      char text[160];
      std::snprintf(text, sizeof text, "element %zu of %s is %.9g, expected %.9g +- %.3g", i,
                    shape_text(actual.shape()).c_str(), a, e.value, e.error);
      first = Mismatch{name, text};
    }
    if (wrong > 1 && first && first->output == name)
      first->text += ", " + std::to_string(wrong) + " of " +
                     std::to_string(expected[o].data.size()) + " are wrong";
  }
  return first;
}

}  // namespace npu::test
