// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/support/error.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/schema.hpp"

namespace npu {
namespace {

using Kind = BoundArgument::Kind;

// Binds operands of the given shapes; the arguments by name, or the error.
struct Bound {
  std::optional<BindError> error;
  const Schema* schema = nullptr;
  std::vector<BoundArgument> arguments;

  const BoundArgument& operator[](std::string_view name) const {
    REQUIRE_FALSE(error);
    for (std::size_t i = 0; i < schema->arguments.size(); ++i) {
      if (schema->arguments[i].name == name) return arguments[i];
    }
    FAIL("no argument " << name);
    return arguments.front();
  }
  std::string text() const { return error ? error->text : std::string(); }
};

Bound call(const std::string& op, const std::vector<Shape>& shapes,
           const Json& attrs = Json::object()) {
  const OpInfo* info = find_op(op);
  REQUIRE(info != nullptr);
  std::vector<OperandInfo> operands;
  for (const Shape& shape : shapes) operands.push_back({DType::kFloat32, &shape});
  Bound bound;
  bound.schema = &info->schema;
  bound.error = bind_arguments(info->schema, operands, attrs, bound.arguments);
  return bound;
}

const Shape kImage{1, 8, 4, 4};
const Shape kChannels{8};
const Json kEval = {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}};

Json with(Json attrs, const std::string& key, const Json& value) {
  attrs[key] = value;
  return attrs;
}

TEST_CASE("a mask over a cache says which of its operands it has") {
  const Json attrs{{"keys", 8}, {"causal", true}};
  const auto bound = [&](const char* operands, const std::vector<Shape>& shapes) {
    return call("npu.length_mask", shapes, with(attrs, "operands", operands));
  };
  CHECK(bound("positions", {{3}})["positions"].inputs == std::vector<std::int32_t>{0});
  CHECK(bound("positions", {{3}})["valid"].kind == Kind::kNone);
  CHECK(bound("valid", {{}})["positions"].kind == Kind::kNone);
  CHECK(bound("valid", {{}})["valid"].inputs == std::vector<std::int32_t>{0});
  CHECK(bound("both", {{3}, {}})["valid"].inputs == std::vector<std::int32_t>{1});
  CHECK(bound("valid", {{3}, {}}).text() == "npu.length_mask takes at most 1 tensor, found 2");
}

TEST_CASE("defaults stand for what attrs leave out") {
  const Bound bound = call("aten.conv2d.default", {kImage, {8, 8, 1, 1}});
  CHECK(bound["input"].inputs == std::vector<std::int32_t>{0});
  CHECK(bound["weight"].inputs == std::vector<std::int32_t>{1});
  CHECK(bound["bias"].kind == Kind::kNone);
  CHECK(bound["stride"].value == Json(1));
  CHECK(bound["stride"].from_default);
  CHECK(bound["padding"].value == Json(0));
  CHECK(bound["dilation"].value == Json(1));
  CHECK(bound["groups"].value == Json(1));
}

TEST_CASE("attrs win over defaults, each under its own name") {
  const Bound bound =
      call("aten.conv2d.default", {kImage, {8, 8, 1, 1}, kChannels},
           {{"stride", {2, 3}}, {"padding", {4, 5}}, {"dilation", {6, 7}}, {"groups", 8}});
  CHECK(bound["bias"].inputs == std::vector<std::int32_t>{2});
  CHECK(bound["stride"].value == Json({2, 3}));
  CHECK_FALSE(bound["stride"].from_default);
  CHECK(bound["padding"].value == Json({4, 5}));
  CHECK(bound["dilation"].value == Json({6, 7}));
  CHECK(bound["groups"].value == Json(8));
}

TEST_CASE("a scalar in attrs stands for a tensor and takes no operand") {
  const Bound bound = call("aten.add.Tensor", {kImage}, {{"other", 2}});
  CHECK(bound["self"].kind == Kind::kTensor);
  CHECK(bound["other"].kind == Kind::kValue);
  CHECK(bound["other"].value == Json(2));
  CHECK(bound["alpha"].value == Json(1));

  const Bound first = call("aten.sub.Tensor", {kImage}, {{"self", true}});
  CHECK(first["self"].value == Json(true));
  CHECK(first["other"].inputs == std::vector<std::int32_t>{0});

  CHECK(call("aten.add.Tensor", {kImage, kImage}, {{"other", 2}}).text() ==
        "aten.add.Tensor takes at most 1 tensor, found 2");
  CHECK(call("aten.add.Tensor", {kImage}, {{"other", {1, 2}}}).text() ==
        "argument 'other': expected a number or a bool in place of a tensor, found array [1,2]");
  CHECK(call("aten.add.Tensor", {kImage}, {{"other", nullptr}}).text() ==
        "argument 'other': expected a tensor, found null");
}

TEST_CASE("too few and too many operands") {
  CHECK(call("aten.conv2d.default", {kImage}).text() ==
        "argument 'weight': needs a tensor, but the node has only 1 input");
  CHECK(call("aten.relu.default", {}).text() ==
        "argument 'self': needs a tensor, but the node has only 0 inputs");
  CHECK(call("aten.relu.default", {kImage, kImage, kImage}).text() ==
        "aten.relu.default takes at most 1 tensor, found 3");
  CHECK(call("aten.conv2d.default", {kImage, kImage, kImage, kImage}).text() ==
        "aten.conv2d.default takes at most 3 tensors, found 4");
}

TEST_CASE("unknown attrs are refused with the nearest name") {
  const Bound bound = call("aten.conv2d.default", {kImage, kImage}, {{"strides", {1, 1}}});
  CHECK(bound.text() == "aten.conv2d.default has no argument 'strides'; did you mean 'stride'?");
  CHECK(bound.error->argument == "strides");
  CHECK(call("aten.relu.default", {kImage}, {{"zzzzzzzz", 1}}).text() ==
        "aten.relu.default has no argument 'zzzzzzzz'");
  CHECK(call("aten.relu.default", {kImage}, {{"dtype", nullptr}}).text().empty());
  CHECK(call("aten.relu.default", {kImage}, {{"_note", "ours"}}).text().empty());
  std::vector<BoundArgument> arguments;
  const auto error = bind_arguments(find_op("aten.relu.default")->schema, {}, Json({1}), arguments);
  REQUIRE(error);
  CHECK(error->text == "attrs: expected an object, found array [1]");
}

TEST_CASE("types of values") {
  const auto conv = [](const std::string& key, const Json& value) {
    return call("aten.conv2d.default", {kImage, kImage}, {{key, value}}).text();
  };
  CHECK(conv("stride", "same") ==
        "argument 'stride': expected an integer or a list of integers, found string \"same\"");
  CHECK(conv("stride", {1, true}) ==
        "argument 'stride': expected an integer or a list of integers, found array [1,true]");
  CHECK(conv("stride", {1.5, 1}) ==
        "argument 'stride': expected an integer or a list of integers, found array [1.5,1]");
  CHECK(conv("stride", 2).empty());
  CHECK(conv("stride", nullptr) ==
        "argument 'stride': expected an integer or a list of integers, found null");
  CHECK(conv("groups", true) == "argument 'groups': expected an integer, found boolean true");
  CHECK(conv("groups", 18446744073709551615ULL) ==
        "argument 'groups': expected an integer, found integer 18446744073709551615");

  const auto view = [](const Json& value) {
    return call("aten.view.default", {kImage}, {{"size", value}}).text();
  };
  CHECK(view({-1, 8}).empty());
  CHECK(view(Json::array()).empty());
  CHECK(view(8) == "argument 'size': expected a list of integers, found integer 8");

  const auto dropout = [](const Json& p, const Json& train) {
    return call("aten.dropout.default", {kImage}, {{"p", p}, {"train", train}}).text();
  };
  CHECK(dropout(1, false).empty());
  CHECK(dropout(0.5, 0) == "argument 'train': expected true or false, found integer 0");
  CHECK(dropout("half", false) == "argument 'p': expected a number, found string \"half\"");
  CHECK(dropout("inf", false).empty());

  const auto cast = [](const Json& value) {
    return call("aten.to.dtype", {kImage}, {{"dtype", value}}).text();
  };
  CHECK(cast("torch.float16").empty());
  CHECK(cast("float16").empty());
  CHECK(cast("float17") ==
        "argument 'dtype': expected the name of a dtype, found string \"float17\"");
  CHECK(cast(6) == "argument 'dtype': expected the name of a dtype, found integer 6");

  CHECK(call("aten.gelu.default", {kImage}, {{"approximate", 1}}).text() ==
        "argument 'approximate': expected a string, found integer 1");
  CHECK(call("aten.clamp.default", {kImage}, {{"min", "-inf"}, {"max", true}}).text().empty());
  CHECK(call("aten.clamp.default", {kImage}, {{"min", "low"}}).text() ==
        "argument 'min': expected a number or a bool, found string \"low\"");
  CHECK(call("aten._convolution.default", {kImage, kImage},
             {{"stride", {1}},
              {"padding", {0}},
              {"dilation", {1}},
              {"transposed", false},
              {"output_padding", {0}},
              {"groups", 1},
              {"benchmark", "no"}})
            .text() == "argument 'benchmark': expected true or false, found string \"no\"");
  const Json scales = {{"output_size", nullptr}, {"align_corners", false}};
  CHECK(call("aten.upsample_bilinear2d.vec", {kImage}, with(scales, "scale_factors", {2, 2.5}))
            .text()
            .empty());
  CHECK(
      call("aten.upsample_bilinear2d.vec", {kImage}, with(scales, "scale_factors", {"a"})).text() ==
      "argument 'scale_factors': expected a list of numbers, found array [\"a\"]");
}

TEST_CASE("a required value that is missing") {
  CHECK(call("aten.softmax.int", {kImage}).text() ==
        "argument 'dim': is missing and has no default");
}

TEST_CASE("_tensor_list_sizes regroups lists") {
  const Bound cat =
      call("aten.cat.default", {kImage, kImage, kImage}, {{"_tensor_list_sizes", {3}}});
  CHECK(cat["tensors"].inputs == std::vector<std::int32_t>{0, 1, 2});
  CHECK(cat["dim"].value == Json(0));

  const Json attrs = {{"_tensor_list_sizes", {2, 4}},
                      {"has_biases", true},
                      {"num_layers", 1},
                      {"dropout", 0.0},
                      {"train", false},
                      {"bidirectional", false},
                      {"batch_first", true}};
  const std::vector<Shape> shapes(7, Shape{1});
  const Bound lstm = call("aten.lstm.input", shapes, attrs);
  CHECK(lstm["input"].inputs == std::vector<std::int32_t>{0});
  CHECK(lstm["hx"].inputs == std::vector<std::int32_t>{1, 2});
  CHECK(lstm["params"].inputs == std::vector<std::int32_t>{3, 4, 5, 6});
  CHECK(call("aten.lstm.input", shapes, with(attrs, "_tensor_list_sizes", {4, 2}))["hx"].inputs ==
        std::vector<std::int32_t>{1, 2, 3, 4});

  Json none = attrs;
  none.erase("_tensor_list_sizes");
  CHECK(call("aten.lstm.input", shapes, none).text() ==
        "argument 'hx': several lists of tensors need _tensor_list_sizes");
  CHECK(
      call("aten.lstm.input", shapes, with(attrs, "_tensor_list_sizes", Json::array({2}))).text() ==
      "argument 'params': _tensor_list_sizes has no size for it");
  CHECK(call("aten.lstm.input", shapes, with(attrs, "_tensor_list_sizes", {2, 5})).text() ==
        "argument 'params': needs 5 tensors, but only 4 of the node's 7 inputs are left");
  CHECK(call("aten.lstm.input", shapes, with(attrs, "_tensor_list_sizes", {2, 3})).text() ==
        "aten.lstm.input takes at most 6 tensors, found 7");
  CHECK(call("aten.cat.default", {kImage}, {{"_tensor_list_sizes", {1, 1}}}).text() ==
        "_tensor_list_sizes: has 2 sizes, but aten.cat.default has 1 lists of tensors");
  CHECK(call("aten.cat.default", {kImage}, {{"_tensor_list_sizes", Json::array({-1})}}).text() ==
        "_tensor_list_sizes: expected a list of sizes, found array [-1]");
}

TEST_CASE("a single list takes what is left without _tensor_list_sizes") {
  CHECK(call("aten.cat.default", {kImage, kImage})["tensors"].inputs ==
        std::vector<std::int32_t>{0, 1});
  CHECK(call("aten.index.Tensor", {kImage, {2}, {2}})["indices"].inputs ==
        std::vector<std::int32_t>{1, 2});
  // index_put(self, indices, values): the last operand is no index.
  const Bound put = call("aten.index_put.default", {kImage, {2}, {2}});
  CHECK(put["indices"].inputs == std::vector<std::int32_t>{1});
  CHECK(put["values"].inputs == std::vector<std::int32_t>{2});
}

TEST_CASE("_tensor_list_none_masks puts None back") {
  // x[None, i]: sizes count tensors only.
  const Bound bound =
      call("aten.index.Tensor", {kImage, {2}},
           {{"_tensor_list_sizes", {1}}, {"_tensor_list_none_masks", {{true, false}}}});
  CHECK(bound["indices"].kind == Kind::kTensors);
  CHECK(bound["indices"].inputs == std::vector<std::int32_t>{-1, 1});
  // Sizes that count the None entries, too.
  CHECK(call("aten.index.Tensor", {kImage, {2}},
             {{"_tensor_list_sizes", {2}}, {"_tensor_list_none_masks", {{true, false}}}})["indices"]
            .inputs == std::vector<std::int32_t>{-1, 1});
  CHECK(call("aten.index.Tensor", {kImage, {2}},
             {{"_tensor_list_none_masks", {{false, true}}}})["indices"]
            .inputs == std::vector<std::int32_t>{1, -1});
  CHECK(call("aten.index.Tensor", {kImage, {2}},
             {{"_tensor_list_sizes", {1}},
              {"_tensor_list_none_masks", {{true, false, false, false}}}})
            .text() == "_tensor_list_none_masks: a mask fits no list of optional tensors");
  CHECK(call("aten.index.Tensor", {kImage, {2}}, {{"_tensor_list_none_masks", {1}}}).text() ==
        "_tensor_list_none_masks: expected a list of lists of bools, found array [1]");
}

TEST_CASE("trailing optional tensors are None") {
  const Bound bound = call("aten.layer_norm.default", {kImage, {4}}, {{"normalized_shape", {4}}});
  CHECK(bound["weight"].inputs == std::vector<std::int32_t>{1});
  CHECK(bound["bias"].kind == Kind::kNone);
  CHECK(bound["eps"].value == Json(1e-5));
}

TEST_CASE("batch norm without weight and bias is recognised") {
  const Bound bound = call("aten.batch_norm.default", {kImage, kChannels, kChannels}, kEval);
  CHECK(bound["weight"].kind == Kind::kNone);
  CHECK(bound["bias"].kind == Kind::kNone);
  CHECK(bound["running_mean"].inputs == std::vector<std::int32_t>{1});
  CHECK(bound["running_var"].inputs == std::vector<std::int32_t>{2});

  const std::vector<Shape> all(4, kChannels);
  std::vector<Shape> five = all;
  five.insert(five.begin(), kImage);
  const Bound full = call("aten.batch_norm.default", five, kEval);
  CHECK(full["weight"].inputs == std::vector<std::int32_t>{1});
  CHECK(full["bias"].inputs == std::vector<std::int32_t>{2});
  CHECK(full["running_mean"].inputs == std::vector<std::int32_t>{3});
  CHECK(full["running_var"].inputs == std::vector<std::int32_t>{4});

  // Statistics of the batch itself: the two vectors are weight and bias.
  const Bound training = call("aten.batch_norm.default", {kImage, kChannels, kChannels},
                              with(kEval, "training", true));
  CHECK(training["weight"].inputs == std::vector<std::int32_t>{1});
  CHECK(training["running_mean"].kind == Kind::kNone);

  CHECK(call("aten.batch_norm.default", {kImage, kChannels, kChannels, kChannels}, kEval).text() ==
        "argument 'running_mean': cannot tell which of the 4 operands are weight, bias, "
        "running_mean and "
        "running_var; name those that were None in _none_args");
  CHECK(call("aten.batch_norm.default", {kImage, {5}, {8}}, kEval).text() ==
        "argument 'running_mean': operand 1 has shape [5] and is no vector with one element a "
        "channel; "
        "name the arguments that were None in _none_args");
  CHECK(call("aten.batch_norm.default", {kImage, {8}, {8, 1}}, kEval).text() ==
        "argument 'running_var': operand 2 has shape [8, 1] and is no vector with one element a "
        "channel; "
        "name the arguments that were None in _none_args");

  const Bound required = call("aten._native_batch_norm_legit_no_training.default",
                              {kImage, kChannels, kChannels}, {{"momentum", 0.1}, {"eps", 1e-5}});
  CHECK(required["weight"].kind == Kind::kNone);
  CHECK(required["running_mean"].inputs == std::vector<std::int32_t>{1});
}

TEST_CASE("instance norm with running statistics") {
  const Json attrs = {
      {"use_input_stats", false}, {"momentum", 0.1}, {"eps", 1e-5}, {"cudnn_enabled", true}};
  CHECK(call("aten.instance_norm.default", {kImage, kChannels, kChannels}, attrs)["running_mean"]
            .inputs == std::vector<std::int32_t>{1});
  CHECK(call("aten.instance_norm.default", {kImage, kChannels, kChannels},
             with(attrs, "use_input_stats", true))["weight"]
            .inputs == std::vector<std::int32_t>{1});
}

TEST_CASE("_none_args wins") {
  const Bound bound = call("aten.batch_norm.default", {kImage, kChannels, kChannels, kChannels},
                           with(kEval, "_none_args", Json::array({"bias"})));
  CHECK(bound["weight"].inputs == std::vector<std::int32_t>{1});
  CHECK(bound["bias"].kind == Kind::kNone);
  CHECK(bound["running_mean"].inputs == std::vector<std::int32_t>{2});
  CHECK(bound["running_var"].inputs == std::vector<std::int32_t>{3});

  const Bound norm = call("aten.layer_norm.default", {kImage, {4}},
                          {{"normalized_shape", {4}}, {"_none_args", Json::array({"weight"})}});
  CHECK(norm["weight"].kind == Kind::kNone);
  CHECK(norm["bias"].inputs == std::vector<std::int32_t>{1});

  CHECK(call("aten.conv2d.default", {kImage, kImage}, {{"_none_args", Json::array({"weight"})}})
            .text() == "_none_args: aten.conv2d.default has no optional tensor argument 'weight'");
  CHECK(call("aten.conv2d.default", {kImage, kImage}, {{"_none_args", Json::array({"stride"})}})
            .text() == "_none_args: aten.conv2d.default has no optional tensor argument 'stride'");
  CHECK(call("aten.conv2d.default", {kImage, kImage}, {{"_none_args", "bias"}}).text() ==
        "_none_args: expected a list of argument names, found string \"bias\"");
  CHECK(call("aten.conv2d.default", {kImage, kImage, kChannels},
             {{"_none_args", Json::array({"bias"})}})
            .text() == "aten.conv2d.default takes at most 2 tensors, found 3 (see _none_args)");
  CHECK(call("aten.clamp.Tensor", {kImage}, {{"min", 1}, {"_none_args", Json::array({"min"})}})
            .text() == "argument 'min': is named in _none_args and has a value, too");
}

TEST_CASE("one bound of clamp is ambiguous") {
  CHECK(call("aten.clamp.Tensor", {kImage, kImage}).text() ==
        "argument 'min': one bound is given, and it may be min or max; name the other one in "
        "_none_args");
  CHECK(call("aten.clamp.Tensor", {kImage, kImage}, {{"_none_args", Json::array({"min"})}})["max"]
            .inputs == std::vector<std::int32_t>{1});
  CHECK(call("aten.clamp.Tensor", {kImage, kImage}, {{"min", 0}})["max"].inputs ==
        std::vector<std::int32_t>{1});
  CHECK(call("aten.clamp.Tensor", {kImage, kImage, kImage})["max"].inputs ==
        std::vector<std::int32_t>{2});
}

TEST_CASE("null is None for an optional tensor") {
  const Bound bound = call("aten.layer_norm.default", {kImage, {4}},
                           {{"normalized_shape", {4}}, {"weight", nullptr}});
  CHECK(bound["weight"].kind == Kind::kNone);
  CHECK(bound["bias"].inputs == std::vector<std::int32_t>{1});
}

TEST_CASE("numbers that JSON cannot write") {
  CHECK(json_number(2) == 2.0);
  CHECK(json_number(2.5) == 2.5);
  CHECK(json_number(true) == 1.0);
  CHECK(json_number("inf") == std::numeric_limits<double>::infinity());
  CHECK(json_number("-Infinity") == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(*json_number("nan")));
  CHECK_FALSE(json_number("1"));
  CHECK_FALSE(json_number(nullptr));
}

TEST_CASE("a bound node looks its arguments up by name") {
  const Graph graph = test::graph_of(R"(
    input x [1,8,4,4]; weight w [8,8,1,1]
    c = conv2d(x, p_w) [1,8,2,2] {"stride": [2, 2], "padding": [1]}; output c)");
  const Node& node = graph.nodes()[0];
  const BoundNode bound(graph, node, find_op("aten.conv2d.default")->schema);
  CHECK(bound.tensor("input") == graph.find_tensor("x"));
  CHECK(bound.tensor("weight") == graph.find_tensor("p_w"));
  CHECK_FALSE(bound.tensor("bias"));
  CHECK(bound.is_none("bias"));
  CHECK(bound.is_none("no such argument"));
  CHECK(bound.find("no such argument") == nullptr);
  CHECK(bound.integers("stride") == std::vector<std::int64_t>{2, 2});
  CHECK(bound.integers("padding") == std::vector<std::int64_t>{1, 1});   // one value of int[2]
  CHECK(bound.integers("dilation") == std::vector<std::int64_t>{1, 1});  // the default 1
  CHECK(bound.integer("groups") == 1);
  CHECK(bound.number("groups") == 1.0);
  CHECK_THROWS_AS(bound.boolean("groups"), Error);
  CHECK_THROWS_AS(bound.string("groups"), Error);
  CHECK_THROWS_AS(bound.integer("bias"), Error);
}

TEST_CASE("values of a bound node") {
  const Graph graph = test::graph_of(R"(
    input x, y
    a = aten.to.dtype(x) float16 {"dtype": "torch.float16"}
    b = gelu(x)
    c = clamp(x) {"min": "-inf"}
    d = aten.index.Tensor(x, y) {"_tensor_list_sizes": [1], "_tensor_list_none_masks": [[true,
        false]]}; output a)");
  const auto bind_node = [&](std::size_t i) {
    return BoundNode(graph, graph.nodes()[i], find_op(graph.nodes()[i].op_type)->schema);
  };
  CHECK(bind_node(0).dtype("dtype") == DType::kFloat16);
  CHECK_FALSE(bind_node(0).boolean("non_blocking"));
  CHECK_FALSE(bind_node(0).dtype("memory_format"));
  CHECK(bind_node(1).string("approximate") == "none");
  CHECK(bind_node(2).number("min") == -std::numeric_limits<double>::infinity());
  CHECK(bind_node(2).is_none("max"));
  CHECK(bind_node(3).tensors("indices") ==
        std::vector<TensorId>{TensorId{}, graph.find_tensor("y")});
}

TEST_CASE("a node that does not bind is located") {
  const Graph graph = test::graph_of(R"(
    input x
    a = relu(x)
    b = aten.softmax.int(a); output b)");
  const Schema& schema = find_op("aten.softmax.int")->schema;
  BindError error;
  CHECK_FALSE(BoundNode::try_bind(graph, graph.nodes()[1], schema, error));
  CHECK(error.argument == "dim");
  try {
    const BoundNode bound(graph, graph.nodes()[1], schema);
    FAIL("no error");
  } catch (const Error& thrown) {
    CHECK(thrown.code() == ErrorCode::kInvalidGraph);
    CHECK(thrown.location().pointer == "/nodes/1");
    CHECK(thrown.message() ==
          "node 'b' (aten.softmax.int): argument 'dim': is missing and has no default");
  }
}

}  // namespace
}  // namespace npu
