// SPDX-License-Identifier: Apache-2.0
// The models that npu-profile --machine runs: short chains, built in
// memory, with shapes of real models.
//
// A rate has to be the cost of an op inside a model: its operands are in the caches where a
// producer left them, in the layout of its neighbours, and an activation or a norm after a
// convolution runs in its epilogue. So no op is measured in isolation: each probe is a pair of
// chains that differ only in the nodes in question.
#include "profile/machine_probes.hpp"

#include <set>

#include "ir/document_builder.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/dtype.hpp"
#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

/// Builds a document whose nodes follow each other.
class Chain {
 public:
  Chain(const Target& target, Shape shape, DType dtype = DType::kFloat32)
      : dtype_(dtype), shape_(std::move(shape)) {
    builder_.add_input({input_, shape_, dtype_});
    builder_.document()["npu"] = {{"version", 1}, {"target", *target.json}};
  }

  /// Sets the device of the nodes that follow.
  Chain& on(const std::string& device) {
    device_ = device;
    return *this;
  }

  /// Appends a node that reads the current value and weights of these shapes.
  Chain& op(const std::string& type, const std::vector<Shape>& weights, const Json& attrs,
            std::optional<Shape> result = {}) {
    if (result) shape_ = std::move(*result);
    return add(type, operands(type, weights), attrs);
  }

  /// Appends a node that reads the current value and an earlier value of its shape.
  Chain& op_with(const std::string& type, const std::vector<std::string>& others) {
    std::vector<std::string> operands{last_};
    operands.insert(operands.end(), others.begin(), others.end());
    return add(type, operands, Json::object());
  }

  Chain& convolution(std::int64_t channels, std::int64_t kernel, std::int64_t groups = 1,
                     std::int64_t stride = 1) {
    const std::int64_t in = shape_[1];
    const Json attrs = {
        {"stride", {stride, stride}}, {"padding", {kernel / 2, kernel / 2}}, {"groups", groups}};
    const Shape result = {shape_[0], channels, (shape_[2] - 1) / stride + 1,
                          (shape_[3] - 1) / stride + 1};
    return op("aten.conv2d.default", {{channels, in / groups, kernel, kernel}}, attrs, result);
  }

  /// Doubles the image, each position by itself.
  Chain& transposed_convolution() {
    const std::int64_t channels = shape_[1];
    return op("aten.conv_transpose2d.input", {{channels, channels, 2, 2}}, {{"stride", {2, 2}}},
              Shape{shape_[0], channels, 2 * shape_[2], 2 * shape_[3]});
  }

  Chain& linear(std::int64_t features) {
    Shape result = shape_;
    const std::int64_t in = result.back();
    result.back() = features;
    return op("aten.linear.default", {{features, in}, {features}}, Json::object(), result);
  }

  /// Appends a layer of an LSTM over the rows of the value, with the state from weights.
  Chain& lstm(const std::string& type) {
    const std::int64_t width = shape_.back();
    const Shape state = {1, shape_[0], width};
    return add(
        type,
        operands(type,
                 {state, state, {4 * width, width}, {4 * width, width}, {4 * width}, {4 * width}}),
        {{"_tensor_list_sizes", {2, 4}},
         {"has_biases", true},
         {"num_layers", 1},
         {"dropout", 0.0},
         {"train", false},
         {"bidirectional", false},
         {"batch_first", true}},
        {{"_h", state, dtype_}, {"_c", state, dtype_}});
  }

  /// Appends the means of all channels, so that the result of a model costs next to nothing.
  Chain& pool_to_one() {
    return op("aten.adaptive_avg_pool2d.default", {}, {{"output_size", {1, 1}}},
              Shape{shape_[0], shape_[1], 1, 1});
  }

  const std::string& last() const { return last_; }
  /// The value before the last one: a reader of it keeps the two from being fused into one kernel.
  const std::string& before_last() const { return before_last_; }
  const std::string& input() const { return input_; }

  Graph graph() {
    builder_.add_output(last_);
    return builder_.build("machine probe");
  }

 private:
  /// The current value and weights of these shapes.
  std::vector<std::string> operands(const std::string& type, const std::vector<Shape>& weights) {
    std::vector<std::string> names{last_};
    for (const Shape& shape : weights) {
      std::string name = "w" + std::to_string(builder_.document()["weights"].size());
      // Random weights with this name are positive, as a variance has to be.
      if (type == "aten.batch_norm.default" && names.size() == 4) name += "_var";
      builder_.add_weight({name, shape, dtype_});
      names.push_back(std::move(name));
    }
    return names;
  }

  /// A node whose first result is the current value; `more` are named after it.
  Chain& add(const std::string& type, const std::vector<std::string>& operands, const Json& attrs,
             std::vector<StatedTensor> more = {}) {
    before_last_ = last_;
    last_ = "n" + std::to_string(builder_.document()["nodes"].size());
    for (StatedTensor& result : more) result.name = last_ + result.name;
    more.insert(more.begin(), {last_, shape_, dtype_});
    builder_.add_node(last_, type, operands, more, attrs);
    if (!device_.empty()) builder_.set("device", device_);
    return *this;
  }

  DocumentBuilder builder_{"machine"};
  DType dtype_;
  std::string device_;
  std::string input_ = "x";
  std::string last_ = input_;
  std::string before_last_ = input_;
  Shape shape_;
};

const Shape kImage = {1, 96, 56, 56};
const Shape kWords = {1, 128, 768};
const Shape kHeads = {1, 12, 128, 64};
const Shape kScores = {1, 12, 128, 128};
const Shape kSteps = {1, 32, 128};
// The first is the one that probes use.
const std::vector<std::string> kConvolutions = {
    "aten.conv2d.default", "aten.conv2d.padding", "aten.convolution.default", "aten.conv1d.default",
    "aten.conv1d.padding", "aten.conv3d.default", "aten.conv3d.padding"};
const std::string kAdd = "aten.add.Tensor";

/// One kind of op, as a step of a chain.
struct Kind {
  std::string name;
  std::vector<std::string> types;
  bool by_flops;
  Shape shape;
  void (*context)(Chain&);  ///< in both models, before the op; null: nothing
  void (*step)(Chain&, const std::string& type);
  std::int32_t few, many;  ///< steps of the two models
  CountRange positions = {};
};

/// A convolution inside a network, and what else has its rate. Without a stride, the probe is a
/// chain of such layers (a pointwise one and one back to the channels of the input, if it changes
/// them); else one layer behind a pointwise one.
struct Convolution {
  std::string name;
  Shape shape;
  std::int64_t channels;
  std::int64_t extent;  ///< of the kernel, in both dimensions
  std::int64_t groups;
  std::int64_t stride;
  OpRate where;
};

void pointwise_layer(Chain& chain) { chain.convolution(96, 1); }
void linear_layer(Chain& chain) { chain.linear(768); }

void unary(Chain& chain, const std::string& type) { chain.op(type, {}, Json::object()); }
void clamp(Chain& chain, const std::string& type) {
  chain.op(type, {}, {{"min_val", 0}, {"max_val", 6}});
}
void residual(Chain& chain, const std::string& type) { chain.op_with(type, {chain.input()}); }
void batch_norm(Chain& chain, const std::string& type) {
  chain.op(type, {{96}, {96}, {96}, {96}},
           {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}});
}
void layer_norm(Chain& chain, const std::string& type) {
  chain.op(type, {{768}, {768}}, {{"normalized_shape", {768}}});
}
void recurrence(Chain& chain, const std::string& type) { chain.lstm(type); }
void rise(Chain& chain, const std::string& /*type*/) { chain.transposed_convolution(); }
void pool(Chain& chain, const std::string& type) {
  chain.op(type, {}, {{"kernel_size", {3, 3}}, {"stride", {1, 1}}, {"padding", {1, 1}}});
}
void softmax(Chain& chain, const std::string& type) { chain.op(type, {}, {{"dim", -1}}); }

// Networks halve their images again and again and double their channels; the kernels that serve
// them change on the way, from much data and few weights to the opposite.
constexpr std::int64_t kLarge = 1568;  // positions: from 40 x 40 on, as at 56 x 56
constexpr std::int64_t kMiddle = 392;  // from 20 x 20 on, as at 28 x 28
constexpr std::int64_t kSmall = 98;    // from 10 x 10 on, as at 14 x 14; less, as at 7 x 7

/// Layers as in ResNet and MobileNetV2. The first that matches a node applies.
std::vector<Convolution> convolutions() {
  const CountRange large{kLarge, {}}, middle{kMiddle, kLarge - 1}, small{kSmall, kMiddle - 1},
      least{0, kSmall - 1}, rest{0, kMiddle - 1};
  const auto grouped = [](CountRange positions, std::optional<bool> strided) {
    return OpRate{.grouped = true, .strided = strided, .positions = positions};
  };
  const auto pointwise = [](CountRange positions) {
    return OpRate{.pointwise = true, .positions = positions};
  };
  const auto strided = [](CountRange positions) {
    return OpRate{.strided = true, .positions = positions};
  };
  const auto kernel = [](CountRange extents, CountRange positions) {
    return OpRate{.kernel = extents, .positions = positions};
  };
  const CountRange three{9, 9};
  return {
      {"grouped, strided", {1, 144, 56, 56}, 144, 3, 144, 2, grouped({}, true)},
      {"grouped, 56 x 56", {1, 96, 56, 56}, 96, 3, 96, 1, grouped(large, {})},
      {"grouped, 28 x 28", {1, 192, 28, 28}, 192, 3, 192, 1, grouped(middle, {})},
      {"grouped, 14 x 14", {1, 384, 14, 14}, 384, 3, 384, 1, grouped(rest, {})},
      {"pointwise, 56 x 56", {1, 64, 56, 56}, 256, 1, 1, 1, pointwise(large)},
      {"pointwise, 28 x 28", {1, 96, 28, 28}, 384, 1, 1, 1, pointwise(middle)},
      {"pointwise, 14 x 14", {1, 192, 14, 14}, 768, 1, 1, 1, pointwise(small)},
      {"pointwise, 7 x 7", {1, 512, 7, 7}, 2048, 1, 1, 1, pointwise(least)},
      {"of an image", {1, 3, 224, 224}, 64, 7, 1, 2, strided({kLarge * 4, {}})},
      {"strided, 28 x 28", {1, 64, 56, 56}, 128, 3, 1, 2, strided({kMiddle, kLarge * 4 - 1})},
      {"strided, 14 x 14", {1, 128, 28, 28}, 256, 3, 1, 2, strided(small)},
      {"strided, 7 x 7", {1, 256, 14, 14}, 512, 3, 1, 2, strided(least)},
      {"3 x 3, 56 x 56", {1, 64, 56, 56}, 64, 3, 1, 1, kernel(three, large)},
      {"3 x 3, 28 x 28", {1, 128, 28, 28}, 128, 3, 1, 1, kernel(three, middle)},
      {"3 x 3, 14 x 14", {1, 256, 14, 14}, 256, 3, 1, 1, kernel(three, small)},
      {"3 x 3, 7 x 7", {1, 512, 7, 7}, 512, 3, 1, 1, kernel(three, least)},
      {"5 x 5", {1, 64, 28, 28}, 64, 5, 1, 1, kernel({2, {}}, {})},
  };
}

/// A chain of `layers` of them.
Graph layers_of(const Target& target, const Convolution& layer, std::int32_t layers) {
  Chain chain(target, layer.shape);
  const std::int64_t in = layer.shape[1];
  if (layer.stride > 1) {
    if (in > 3) chain.convolution(in, 1);
    if (layers > 1) chain.convolution(layer.channels, layer.extent, layer.groups, layer.stride);
    return chain.pool_to_one().graph();
  }
  for (std::int32_t i = 0; i < layers; ++i) {
    chain.convolution(layer.channels, layer.extent, layer.groups);
    if (layer.channels != in) chain.convolution(in, layer.extent, layer.groups);
  }
  return chain.graph();
}

/// Compute-bound ops.
std::vector<Kind> arithmetic_kinds() {
  const auto linear = [](Chain& chain, const std::string&) { chain.linear(768); };
  const auto wide = [](Chain& chain, const std::string&) { chain.linear(2048); };
  const auto attention = [](Chain& chain, const std::string& type) {
    const std::string value = chain.last();
    chain.op_with(type, {value, value});
  };
  const std::vector<std::string> products = {"aten.linear.default", "aten.addmm.default",
                                             "aten.mm.default",     "aten.matmul.default",
                                             "aten.bmm.default",    "aten.baddbmm.default"};
  return {// Weights that exceed the caches: their way from memory is what counts.
          {"matrix product, 1 row", products, true, {1, 2048}, nullptr, wide, 1, 4, {0, 7}},
          {"matrix product", products, true, kWords, nullptr, linear, 2, 8},
          {"attention",
           {"aten.scaled_dot_product_attention.default"},
           true,
           kHeads,
           nullptr,
           attention,
           2,
           10},
          {"transposed convolution",
           {"aten.conv_transpose2d.input", "aten.conv_transpose1d.default",
            "aten.conv_transpose3d.input"},
           true,
           {1, 64, 14, 14},
           nullptr,
           rise,
           1,
           3},
          // Steps wait for each other, and read their weights again.
          {"recurrence",
           {"aten.lstm.input", "aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input"},
           true,
           kSteps,
           nullptr,
           recurrence,
           1,
           4}};
}

/// Ops that run in epilogues of models, and memory-bound ops.
std::vector<Kind> memory_kinds() {
  return {
      {"batch norm", {"aten.batch_norm.default"}, false, kImage, pointwise_layer, batch_norm, 6, 6},
      {"ReLU",
       {"aten.relu.default", "aten.relu_.default"},
       false,
       kImage,
       pointwise_layer,
       unary,
       6,
       6},
      {"clamp",
       {"aten.hardtanh.default", "aten.hardtanh_.default", "aten.relu6.default",
        "aten.relu6_.default", "aten.clamp.default", "aten.clamp_.default"},
       false,
       kImage,
       pointwise_layer,
       clamp,
       6,
       6},
      {"sigmoid",
       {"aten.silu.default", "aten.silu_.default", "aten.sigmoid.default", "aten.sigmoid_.default",
        "aten.tanh.default", "aten.tanh_.default", "aten.hardswish.default",
        "aten.hardswish_.default"},
       false,
       kImage,
       pointwise_layer,
       unary,
       6,
       6},
      {"addition", {kAdd, "aten.add_.Tensor"}, false, kImage, pointwise_layer, residual, 6, 6},
      {"GELU",
       {"aten.gelu.default", "aten.gelu_.default"},
       false,
       kWords,
       linear_layer,
       unary,
       6,
       6},
      {"layer norm", {"aten.layer_norm.default"}, false, kWords, linear_layer, layer_norm, 6, 6},
      // Behind a convolution, as in models, whose layout it takes.
      {"pooling",
       {"aten.max_pool2d.default", "aten.avg_pool2d.default"},
       false,
       kImage,
       pointwise_layer,
       pool,
       6,
       6},
      {"softmax",
       {"aten.softmax.int", "aten._softmax.default"},
       false,
       kScores,
       nullptr,
       softmax,
       3,
       12},
  };
}

/// With `with` false, omits the op of a kind that has a context.
Graph chain_of(const Target& target, const Kind& kind, std::int32_t steps, bool with) {
  Chain chain(target, kind.shape);
  for (std::int32_t i = 0; i < steps; ++i) {
    if (kind.context != nullptr) kind.context(chain);
    if (with) kind.step(chain, kind.types.front());
  }
  return chain.graph();
}

MachineProbe repeated(const Target& target, const std::string& name, const Shape& shape,
                      DType dtype, std::int32_t few, std::int32_t many, void (*step)(Chain&)) {
  MachineProbe probe;
  probe.name = name;
  for (const std::int32_t count : {few, many}) {
    Chain chain(target, shape, dtype);
    for (std::int32_t i = 0; i < count; ++i) step(chain);
    (count == few ? probe.shorter : probe.longer) = chain.graph();
  }
  return probe;
}

void addition_step(Chain& chain) { chain.op_with(kAdd, {chain.before_last()}); }

}  // namespace

MachineProbe convolution_probe(const Target& target, DType dtype) {
  MachineProbe probe =
      repeated(target, "convolution, 3 x 3, " + std::string(dtype_name(dtype)), {1, 128, 28, 28},
               dtype, 1, 5, [](Chain& chain) { chain.convolution(128, 3); });
  probe.where.types = {"aten.conv2d.default"};
  return probe;
}

MachineProbe product_probe(const Target& target, DType dtype) {
  MachineProbe probe = repeated(target, "matrix product, " + std::string(dtype_name(dtype)),
                                {256, 480}, dtype, 2, 8, [](Chain& chain) { chain.linear(480); });
  probe.where.types = {"aten.linear.default"};
  return probe;
}

MachineProbe memory_probe(const Target& target) {
  MachineProbe probe =
      repeated(target, "memory", {1, 64, 112, 112}, DType::kFloat32, 2, 10, addition_step);
  probe.where.types = {kAdd};
  probe.by_flops = false;
  return probe;
}

MachineProbe node_probe(const Target& target) {
  MachineProbe probe = repeated(target, "node", {16}, DType::kFloat32, 10, 90, addition_step);
  probe.where.types = {kAdd};
  probe.by_flops = false;
  return probe;
}

std::vector<MachineProbe> kind_probes(const Target& target) {
  std::vector<MachineProbe> probes;
  for (Convolution& layer : convolutions()) {
    MachineProbe& probe = probes.emplace_back();
    probe.name = "convolution, " + layer.name;
    probe.where = std::move(layer.where);
    probe.where.types = kConvolutions;
    probe.longer = layers_of(target, layer, 4);
    probe.shorter = layers_of(target, layer, 1);
  }
  std::vector<Kind> kinds = arithmetic_kinds();
  for (Kind& kind : memory_kinds()) kinds.push_back(std::move(kind));
  for (const Kind& kind : kinds) {
    MachineProbe& probe = probes.emplace_back();
    probe.name = kind.name;
    probe.where.types = kind.types;
    probe.where.positions = kind.positions;
    probe.by_flops = kind.by_flops;
    probe.longer = chain_of(target, kind, kind.many, true);
    probe.shorter = chain_of(target, kind, kind.few, kind.context == nullptr);
  }
  return probes;
}

Graph turns_of_additions(const Target& target, const std::string& first, const std::string& second,
                         std::int32_t nodes) {
  Chain chain(target, {16});
  for (std::int32_t i = 0; i < nodes; ++i) {
    addition_step(chain.on(i % 2 == 0 ? first : second));
  }
  return chain.graph();
}

Graph turns_of_layers(const Target& target, const std::string& convolutions,
                      const std::string& additions, std::int32_t turns) {
  Chain chain(target, {1, 64, 112, 112});
  for (std::int32_t i = 0; i < turns; ++i) {
    if (!convolutions.empty()) chain.on(convolutions).convolution(64, 1);
    if (!additions.empty()) addition_step(chain.on(additions));
  }
  return chain.graph();
}

ProbeWork work_of(const MachineProbe& probe) {
  ProbeWork work;
  const std::set<std::string> types(probe.where.types.begin(), probe.where.types.end());
  const auto count = [&](const Graph& graph, double sign) {
    for (const Node& node : graph.nodes()) {
      if (!types.contains(node.op_type)) continue;
      work.nodes += sign;
      work.flops += sign * node_flops(graph, node);
      work.bytes += sign * node_bytes(graph, node);
    }
  };
  count(probe.longer, 1);
  count(probe.shorter, -1);
  return work;
}

}  // namespace npu
