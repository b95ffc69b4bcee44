// SPDX-License-Identifier: Apache-2.0
// One table says how ONNX spells ops: since which opset, and how each argument of the schema
// becomes an attribute or, from some opset on, an operand.
#include "onnx_network.hpp"

#include <algorithm>

#include "frontend/onnx_model.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

bool is_last(const Call& c, std::int64_t) {
  const std::int64_t rank = c.operand(0).rank();
  return rank > 0 && c.dim("dim", rank) == rank - 1;
}
bool is_bool(const Call& c, std::int64_t) { return c.operand(0).dtype == DType::kBool; }
bool is_batched(const Call& c, std::int64_t) {
  return c.operand(0).rank() == spatial_rank(c.op()) + 2;
}
bool has_dim(const Call& c, std::int64_t) { return c.has("dim"); }
bool is_float(const Call& c, std::int64_t) { return is_floating_point(c.operand(0).dtype); }
template <std::size_t count>
bool has_operands(const Call& c, std::int64_t) {
  return c.operand_count() == count;
}
template <int order>
bool has_order(const Call& c, std::int64_t) {
  return c.number_or("ord", c.number_or("p", 2)) == order;
}
bool is_gemm(const Call& c, std::int64_t opset) {
  return c.operand(0).rank() == 2 && (opset >= 11 || c.operand_count() == 3);
}
bool is_matrix(const Call& c, std::int64_t) { return c.operand(0).rank() == 2; }
bool flattens_all(const Call& c, std::int64_t) {
  const std::int64_t rank = c.operand(0).rank();
  return rank > 1 && c.dim("start_dim", rank) == 1 && c.dim("end_dim", rank) == rank - 1;
}
bool is_one(const Call& c, std::int64_t) {
  const Values& x = c.operand(0);
  const std::int64_t rank = x.rank();
  return rank > 0 && x.extent(c.dim("dim", rank)) == 1;
}
bool repeats_all(const Call& c, std::int64_t) {
  return std::ssize(c.integers("repeats")) == c.operand(0).rank();
}
bool is_cast(const Call& c, std::int64_t) {
  return c.dtype_or("dtype", DType::kFloat32) != DType::kBFloat16;  // imported by bits
}
bool fills_all(const Call& c, std::int64_t) {
  return c.boolean("use_input_stats") && c.operand_count() == 3;
}

/// `arguments` are "name=kind:argument", with "@11" behind the name of what is an operand from
/// opset 11 on, ">10" of what opset 10 has first, "?1" behind the argument if that is the default,
/// and "-name" for what has no meaning. The kinds are those of Writer::attribute.
struct Form {
  std::string_view names;  ///< as in an OpRow
  std::string_view onnx;   ///< empty: its name with a capital letter
  std::int64_t since;
  std::string_view arguments = {};
  std::string_view operands = {};  ///< in their order; else as they stand
  bool (*fits)(const Call&, std::int64_t opset) = nullptr;
};
constexpr std::string_view kReduce = "axes@18=d:dim keepdims=i:keepdim?1";
constexpr std::string_view kOther = "other@1=n:other";
const Form kForms[] = {
    {"softplus", "", 1},
    {"abs exp log neg reciprocal sqrt tanh sigmoid selu", "", 6},
    {"relu ceil floor", "", 6, "", "", is_float},
    {"acos asin atan cos sin tan", "", 7},
    {"cosh erf sinh sign", "", 9},
    {"round", "", 11, "", "", is_float},
    {"mish", "", 18},
    {"elu", "", 6, "alpha=f:alpha?1"},
    {"celu", "", 12, "alpha=f:alpha?1"},
    {"add sub mul", "", 7, kOther},
    {"isnan", "IsNaN", 9, "", "", is_float},
    {"isinf", "IsInf", 10, "", "", is_float},
    {"logical_not", "Not", 1, "", "", is_bool},
    {"hardswish", "HardSwish", 14},
    {"gelu", "Gelu", 20, "approximate=s:approximate?none"},
    {"leaky_relu", "LeakyRelu", 6, "alpha=f:negative_slope?0.01"},
    {"clamp.default", "Clip", 6, "min@11=n:min max@11=n:max", "", is_float},
    {"hardtanh", "Clip", 6, "min@11=n:min_val max@11=n:max_val", "", is_float},
    {"div.Tensor div.Scalar", "Div", 7, kOther, "", is_float},
    {"maximum", "Max", 12},
    {"minimum", "Min", 12},
    {"pow.Tensor_Tensor", "Pow", 12},
    {"pow.Tensor_Scalar", "Pow", 12, "exponent@1=n:exponent"},
    {"fmod.Tensor fmod.Scalar", "Mod", 10, "fmod=c:1 other@1=n:other"},
    {"eq", "Equal", 11, kOther},
    {"lt", "Less", 9, kOther},
    {"gt", "Greater", 9, kOther},
    {"le", "LessOrEqual", 12, kOther},
    {"ge", "GreaterOrEqual", 12, kOther},
    {"logical_and", "And", 7, "", "", is_bool},
    {"logical_or", "Or", 7, "", "", is_bool},
    {"logical_xor", "Xor", 7, "", "", is_bool},
    {"where.self", "Where", 9},
    {"to.dtype", "Cast", 6, "to=T:dtype", "", is_cast},
    {"clone contiguous detach alias", "Identity", 1, "-memory_format"},
    {"dropout", "Dropout", 7, "-p -train"},
    {"softmax.int", "Softmax", 13, "axis=x:dim?-1"},
    {"log_softmax.int", "LogSoftmax", 13, "axis=x:dim?-1"},
    {"softmax.int", "Softmax", 1, "axis=x:dim?1", "", is_last},
    {"log_softmax.int", "LogSoftmax", 1, "axis=x:dim?1", "", is_last},
    {"sum.default sum.dim_IntList", "ReduceSum", 1, "axes@13=d:dim keepdims=i:keepdim?1", "",
     is_float},
    {"mean", "ReduceMean", 1, kReduce},
    {"amax", "ReduceMax", 1, kReduce, "", is_float},
    {"amin", "ReduceMin", 1, kReduce, "", is_float},
    {"prod", "ReduceProd", 1, kReduce, "", is_float},
    {"logsumexp", "ReduceLogSumExp", 1, kReduce},
    {"linalg_vector_norm norm", "ReduceL1", 1, "axes@18=d:dim keepdims=i:keepdim?1 -ord -p", "",
     has_order<1>},
    {"linalg_vector_norm norm", "ReduceL2", 1, "axes@18=d:dim keepdims=i:keepdim?1 -ord -p", "",
     has_order<2>},
    {"argmax", "ArgMax", 1, "axis=x:dim?0 keepdims=i:keepdim?1", "", has_dim},
    {"argmin", "ArgMin", 1, "axis=x:dim?0 keepdims=i:keepdim?1", "", has_dim},
    {"topk", "TopK", 10, "k@10=v:k axis=x:dim?-1 largest>11=i:largest?1 -sorted"},
    {"cumsum", "CumSum", 11, "axis@11=i:dim", "", is_float},
    {"conv1d.default conv2d.default conv3d.default", "Conv", 1,
     "strides=l:stride?1 pads=p:padding?0 dilations=l:dilation?1 group=i:groups?1"},
    {"conv1d.padding conv2d.padding conv3d.padding", "Conv", 1,
     "strides=l:stride?1 auto_pad=a:padding dilations=l:dilation?1 group=i:groups?1"},
    {"conv_transpose1d conv_transpose2d conv_transpose3d", "ConvTranspose", 1,
     "strides=l:stride?1 pads=p:padding?0 dilations=l:dilation?1 group=i:groups?1 "
     "output_padding=l:output_padding?0"},
    {"max_pool1d max_pool2d max_pool3d", "MaxPool", 1,
     "kernel_shape=l:kernel_size strides=k:stride?1 pads=p:padding?0 dilations>10=l:dilation?1 "
     "ceil_mode>10=i:ceil_mode?0",
     "", is_batched},
    {"avg_pool1d avg_pool2d avg_pool3d", "AveragePool", 1,
     "kernel_shape=l:kernel_size strides=k:stride?1 pads=p:padding?0 ceil_mode>10=i:ceil_mode?0 "
     "count_include_pad>7=i:count_include_pad?0",
     "", is_batched},
    {"batch_norm", "BatchNormalization", 7,
     "epsilon=f:eps?1e-05 -training -momentum -cudnn_enabled -_none_args", "", has_operands<5>},
    {"instance_norm", "InstanceNormalization", 6,
     "epsilon=f:eps?1e-05 -use_input_stats -momentum -cudnn_enabled -_none_args",
     "input weight bias", fills_all},
    {"layer_norm", "LayerNormalization", 17, "axis=r:normalized_shape?-1 epsilon=f:eps?1e-05",
     "input weight bias"},
    {"rms_norm", "RMSNormalization", 23, "axis=r:normalized_shape?-1 epsilon=f:eps?1e-05",
     "input weight"},
    {"group_norm", "GroupNormalization", 21, "num_groups=i:num_groups epsilon=f:eps?1e-05",
     "input weight bias", has_operands<3>},
    {"mm bmm matmul", "MatMul", 1},
    {"addmm", "Gemm", 7, "alpha=f:alpha?1 beta=f:beta?1", "mat1 mat2 self"},
    {"linear", "Gemm", 7, "transB=c:1", "", is_gemm},
    {"einsum", "Einsum", 12, "equation=s:equation -_tensor_list_sizes"},
    {"view _unsafe_view", "Reshape", 1, "shape@5=l:size"},
    {"reshape", "Reshape", 1, "shape@5=l:shape"},
    {"flatten", "Flatten", 1, "-start_dim -end_dim", "", flattens_all},
    {"squeeze.default", "Squeeze", 1},
    {"squeeze.dim", "Squeeze", 1, "axes@13=v:dim", "", is_one},
    {"unsqueeze", "Unsqueeze", 1, "axes@13=v:dim"},
    {"permute", "Transpose", 1, "perm=o:dims"},
    {"t", "Transpose", 1, "", "", is_matrix},
    {"expand", "Expand", 8, "shape@8=S:size -implicit"},
    {"repeat", "Tile", 6, "repeats@6=l:repeats", "", repeats_all},
    {"cat concat", "Concat", 4, "axis=x:dim -_tensor_list_sizes"},
    {"split_with_sizes", "Split", 2, "split@13=l:split_sizes axis=x:dim?0"},
    {"slice.Tensor", "Slice", 1,
     "starts@10=v:start ends@10=v:end axes@10=v:dim steps@10>10=v:step?1"},
    {"constant_pad_nd", "Pad", 2, "pads@11=P:pad value@11=n:value", "", is_float},
    {"index_select", "Gather", 1, "axis=x:dim?0"},
    {"gather", "GatherElements", 11, "axis=x:dim?0 -sparse_grad"},
    {"embedding", "Gather", 1, "-padding_idx"},
    {"pixel_shuffle", "DepthToSpace", 11, "blocksize=i:upscale_factor mode=c:CRD"},
    {"triu", "Trilu", 14, "k@14=i:diagonal?0 upper=c:1"},
    {"tril", "Trilu", 14, "k@14=i:diagonal?0 upper=c:0"}};

std::uint64_t onnx_type(DType dtype) {
  constexpr std::pair<DType, std::uint64_t> kTypes[] = {
      {DType::kFloat32, 1},  {DType::kUInt8, 2},    {DType::kInt8, 3}, {DType::kInt16, 5},
      {DType::kInt32, 6},    {DType::kInt64, 7},    {DType::kBool, 9}, {DType::kFloat16, 10},
      {DType::kFloat64, 11}, {DType::kBFloat16, 16}};
  for (const auto& [own, type] : kTypes) {
    if (own == dtype) return type;
  }
  refuse("no such type in ONNX");
}

/// What one form makes of one argument.
struct Argument {
  std::string name, key, otherwise;
  char kind = 0;
  std::int64_t operand_since = 1000, since = 0;
  bool has_default = false;

  explicit Argument(std::string_view text) {
    if (text.starts_with('-')) {
      key = text.substr(1);
      return;
    }
    const std::size_t equals = text.find('='), question = text.find('?');
    kind = text[equals + 1];
    key = text.substr(equals + 3, question == text.npos ? text.npos : question - equals - 3);
    has_default = question != text.npos;
    if (has_default) otherwise = text.substr(question + 1);
    const std::string left(text.substr(0, equals));
    if (const std::size_t at = left.find('@'); at != left.npos)
      operand_since = std::stoll(left.substr(at + 1));
    if (const std::size_t at = left.find('>'); at != left.npos)
      since = std::stoll(left.substr(at + 1));
    name = left.substr(0, left.find_first_of("@>"));
  }
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    words.push_back(text.substr(0, text.find(' ')));
    text.remove_prefix(std::min(text.size(), words.back().size() + 1));
  }
  return words;
}

/// The value of an argument: a number, a list or a text; null: there is none.
Json value_of(const Call& call, const Argument& argument, std::int64_t opset, const Shape& result) {
  const std::string& key = argument.key;
  const std::int64_t rank = call.operand_count() > 0 ? call.operand(0).rank() : 0;
  const auto axis = [&](std::int64_t dim, std::int64_t of) {
    return opset < 11 && dim < 0 ? dim + of : dim;
  };
  switch (argument.kind) {
    case 'c':
      return key == "CRD" ? Json(key) : Json(std::stoll(key));
    case 'S':
      return result;
    case 'k':
      return call.integers(call.integers(key).empty() ? "kernel_size" : key);
    case 'i':
      return static_cast<std::int64_t>(call.number_or(key, 0));
    case 'd':
      return dims_of(call, rank);
    default:
      break;
  }
  if (argument.kind == 'v' && key == "end" && !call.has(key)) return Ints{2147483647};
  if (argument.kind == 'v' && !call.has(key)) return Ints{0};
  if (!call.has(key) || call.find(key) != nullptr) return nullptr;
  switch (argument.kind) {
    case 'f':
    case 'n':
      return call.number(key);
    case 's':
      return call.text(key);
    case 'a':
      return call.text(key) == "same" ? "SAME_UPPER" : "VALID";
    case 'T':
      return onnx_type(call.dtype_or(key, DType::kFloat32));
    case 'r':
      return -std::ssize(call.integers(key));
    case 'x':
      return axis(call.integer(key), rank);
    case 'v':
      return Ints{key == "dim" ? axis(call.integer(key), rank + (call.is("unsqueeze") ? 1 : 0))
                               : call.integer(key)};
    default:
      break;
  }
  Ints list = call.integers(key);
  if (argument.kind == 'p') list.insert(list.end(), list.begin(), list.end());
  if (argument.kind == 'o') {
    for (std::int64_t& dim : list) dim += dim < 0 ? rank : 0;
  }
  if (argument.kind == 'P') {
    Ints pads(index_of(2 * rank), 0);
    for (std::size_t i = 0; i < list.size(); ++i)
      pads[index_of((i % 2 + 1) * rank) - 1 - i / 2] = list[i];
    return pads;
  }
  return list;
}

bool is_default(const Json& value, const Argument& argument) {
  if (!argument.has_default) return false;
  const auto is_same = [&](const Json& one) {
    return one.is_string() ? one.get<std::string>() == argument.otherwise
                           : one.get<double>() == std::stod(argument.otherwise);
  };
  return value.is_array() ? std::all_of(value.begin(), value.end(), is_same) : is_same(value);
}

const Form* form_of(const Call& call, const Json& attrs, std::int64_t opset) {
  for (const Form& form : kForms) {
    const OpRow row{form.names, nullptr, nullptr};
    if (opset < form.since || find_row({&row, 1}, call.op()) == nullptr ||
        (form.fits != nullptr && !form.fits(call, opset)))
      continue;
    std::vector<Argument> arguments;
    for (const std::string_view word : words_of(form.arguments)) arguments.emplace_back(word);
    bool is_whole =
        words_of(form.operands).empty() || words_of(form.operands).size() >= call.operand_count();
    for (const auto& [key, value] : attrs.items())
      is_whole = is_whole && std::any_of(arguments.begin(), arguments.end(),
                                         [&](const Argument& one) { return one.key == key; });
    for (const Argument& one : arguments)
      is_whole =
          is_whole && (one.since <= opset || is_default(value_of(call, one, opset, {}), one));
    for (const std::string_view name : words_of(form.operands))
      is_whole = is_whole && (name == "bias" || name == "self" || call.find(name) != nullptr);
    if (is_whole) return &form;
  }
  return nullptr;
}

class Writer {
 public:
  Writer(const Network& network, std::int64_t opset, std::uint64_t seed)
      : network_(network), opset_(opset), random_(seed), dice_(random_, "", DType::kFloat32) {}

  std::string write() {
    for (const NetworkTensor& tensor : network_.tensors) {
      if (tensor.kind == NetworkTensor::Kind::kInput) graph_.message(11, stated(tensor));
      if (tensor.kind == NetworkTensor::Kind::kWeight) constant(tensor.name, tensor.data);
    }
    for (const NetworkNode& node : network_.nodes) write(node);
    for (const std::size_t id : network_.outputs) graph_.message(12, stated(network_.tensors[id]));
    graph_.bytes(2, "network");
    Proto whole = Proto().number(1, 8).message(7, graph_).message(8, imported());
    if (!functions_.empty()) whole.message(8, Proto().bytes(1, "local").number(2, 1));
    for (const Proto& function : functions_) whole.message(25, function);
    return whole.text();
  }

 private:
  Proto imported() const { return Proto().number(2, static_cast<std::uint64_t>(opset_)); }
  static Proto stated(const NetworkTensor& tensor) {
    return onnx_value(tensor.name, tensor.values.shape, onnx_type(tensor.values.dtype));
  }

  const std::string& constant(const std::string& name, const Tensor& value) {
    Proto tensor;
    for (const std::int64_t extent : value.shape())
      tensor.number(1, static_cast<std::uint64_t>(extent));
    const std::string_view bytes(reinterpret_cast<const char*>(value.data()), value.bytes());
    graph_.message(5, tensor.number(2, onnx_type(value.dtype())).bytes(8, name).bytes(9, bytes));
    return name;
  }
  std::string constant(const Json& value, DType dtype) {
    Tensor tensor(dtype, value.is_array() ? Shape{std::ssize(value)} : Shape{});
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      const Json& one = value.is_array() ? value[index_of(i)] : value;
      set_element(tensor, i, json_number(one).value());
    }
    return constant("c" + std::to_string(constants_++), tensor);
  }
  static Proto attribute(const std::string& name, const Json& value) {
    if (value.is_array()) return onnx_ints(name, value.get<Ints>());
    if (value.is_number_integer()) return onnx_int(name, value.get<std::int64_t>());
    const Proto named = Proto().bytes(1, name);
    if (value.is_string()) return Proto(named).bytes(4, value.get<std::string>()).number(20, 3);
    const auto narrow = value.get<float>();
    const std::string_view bytes(reinterpret_cast<const char*>(&narrow), sizeof narrow);
    return Proto(named).fixed32(2, bytes).number(20, 1);
  }

  void write(const NetworkNode& node) {
    std::vector<const Values*> operands;
    std::vector<std::string> inputs, outputs;
    for (const std::size_t id : node.operands) {
      operands.push_back(&network_.tensors[id].values);
      inputs.push_back(network_.tensors[id].name);
    }
    for (const std::size_t id : node.results) outputs.push_back(network_.tensors[id].name);
    if (node.op == kGetitem) {
      const std::string picked = inputs[index_of(node.attrs["index"].get<std::int64_t>())];
      return graph_.message(1, onnx_node("Identity", {picked}, outputs)), void();
    }
    const Call call(node.op, operands, node.attrs);
    const Form* form = form_of(call, node.attrs, opset_);
    if (form == nullptr) refuse("no form of " + node.op);
    const std::vector<std::string> given = inputs;
    if (!form->operands.empty()) inputs.clear();
    for (const std::string_view name : words_of(form->operands)) {
      const auto found = std::find(operands.begin(), operands.end(), call.find(name));
      inputs.push_back(found == operands.end() ? "" : given[index_of(found - operands.begin())]);
    }
    std::vector<Proto> attributes;
    const Shape& result = network_.tensors[node.results[0]].values.shape;
    for (const std::string_view word : words_of(form->arguments)) {
      const Argument one(word);
      if (one.kind == 0) continue;
      const Json value = value_of(call, one, opset_, result);
      const bool is_operand = opset_ >= one.operand_since;
      const bool is_absent =
          value.is_null() || opset_ < one.since || (is_default(value, one) && dice_.chance(50));
      if (is_operand) {
        const bool is_number = one.kind == 'n';
        inputs.push_back(
            is_absent ? "" : constant(value, is_number ? operands[0]->dtype : DType::kInt64));
      } else if (!is_absent) {
        attributes.push_back(
            attribute(one.name, one.kind == 'n' ? Json(value.get<double>()) : value));
      }
    }
    while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
    std::string op(form->onnx.empty() ? call.name() : form->onnx);
    op[0] = static_cast<char>(std::toupper(op[0]));
    put(op, inputs, outputs, attributes, network_.tensors[node.results[0]]);
  }

  /// As it is, in a function, or in a branch.
  void put(const std::string& op, const std::vector<std::string>& inputs,
           const std::vector<std::string>& outputs, const std::vector<Proto>& attributes,
           const NetworkTensor& result) {
    const auto node = [&](const std::vector<std::string>& from,
                          const std::vector<std::string>& to) {
      Proto written = onnx_node(op, from, to, "node" + outputs[0]);
      for (const Proto& attribute : attributes) written.message(5, attribute);
      return written;
    };
    const std::int64_t wrap = dice_.pick(0, 19);
    if (wrap == 0 && opset_ >= 15) {
      const std::string name = "F" + std::to_string(functions_.size());
      Proto function = Proto().bytes(1, name);
      std::vector<std::string> from, to;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        from.push_back(inputs[i].empty() ? "" : "a" + std::to_string(i));
        function.bytes(4, "a" + std::to_string(i));
      }
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        to.push_back("r" + std::to_string(i));
        function.bytes(5, to.back());
      }
      functions_.push_back(
          function.message(7, node(from, to)).message(9, imported()).bytes(10, "local"));
      graph_.message(1, onnx_node(name, inputs, outputs).bytes(7, "local"));
    } else if (wrap == 1 && outputs.size() == 1) {
      const bool is_then = dice_.chance(50);
      const Proto taken =
          Proto().message(1, node(inputs, outputs)).bytes(2, "taken").message(12, stated(result));
      const Proto other = Proto()
                              .message(1, onnx_node("Identity", {"c_other"}, outputs))
                              .bytes(2, "other")
                              .message(5, onnx_tensor("c_other", {1}, {0}))
                              .message(12, onnx_value(outputs[0], {1}, 1));
      Proto branch = onnx_node("If", {constant(Json(is_then), DType::kBool)}, outputs);
      branch.message(5, onnx_graph("then_branch", is_then ? taken : other))
          .message(5, onnx_graph("else_branch", is_then ? other : taken));
      graph_.message(1, branch);
    } else {
      graph_.message(1, node(inputs, outputs));
    }
  }

  const Network& network_;
  std::int64_t opset_;
  Random random_;
  NodeDraw dice_;
  Proto graph_;
  std::vector<Proto> functions_;
  std::size_t constants_ = 0;
};

}  // namespace

bool has_onnx_form(const Call& call, const Json& attrs, std::int64_t opset) {
  return call.op() == kGetitem || form_of(call, attrs, opset) != nullptr;
}

std::string onnx_model_of(const Network& network, std::int64_t opset, std::uint64_t seed) {
  return Writer(network, opset, seed).write();
}

}  // namespace npu::test
