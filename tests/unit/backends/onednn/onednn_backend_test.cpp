// SPDX-License-Identifier: Apache-2.0
// The onednn backend through its C ABI alone: ops in float32 and bfloat16, and what the ABI
// promises about buffers, aliases and errors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/backend_calls.hpp"
#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"
#include "test_paths.hpp"

namespace npu::test::onednn {
namespace {

TEST_CASE("onednn describes itself and its ops", "[onednn]") {
  CallError error;
  const npu_backend_info info = api().info();
  CHECK(std::string(info.name) == "onednn");
  CHECK(std::string(info.version).find("oneDNN 2.") != std::string::npos);
  CHECK(api().fingerprint().find("isa") != std::string::npos);
  CHECK(api().fingerprint().find(" plan format ") != std::string::npos);
  std::set<std::string> ops;
  const Device device = open_device();
  const auto visit = [](void* context, const char* op, const char* kind) {
    static_cast<std::set<std::string>*>(context)->insert(op);
    CHECK(std::string(kind) == "onednn");
  };
  REQUIRE(api()->list_ops(device.get(), visit, &ops, &error) == NPU_OK);
  for (const char* op : {"aten.conv2d.default", "aten.batch_norm.default", "aten.linear.default",
                         "aten.relu_.default", "aten.cat.default", "<built-in function getitem>"}) {
    CHECK(ops.count(op) == 1);
  }
}

TEST_CASE("onednn refuses another ABI and malformed device options", "[onednn]") {
  const std::string path = std::string(npu::test::backend_dir()) + "/npu_backend_onednn.so";
  const BackendEntry entry = entry_of(path);
  npu_host host = test_host();
  host.abi_version = NPU_ABI_VERSION + 1;
  CHECK(entry(&host, nullptr) != nullptr);
  host.abi_version = NPU_ABI_VERSION - 1;
  CallError reason;
  CHECK(entry(&host, &reason) == nullptr);
  CHECK_THAT(reason.text, Catch::Contains("expected a host of version 1"));
  npu_device* device = nullptr;
  CallError error;
  for (const char* options : {"[]", "{"}) {
    CHECK(api().open_device(2, options, &device, &error) == NPU_INVALID);
    CHECK(device == nullptr);
  }
  CHECK(api().open_device(~0U, "{}", &device, &error) == NPU_INVALID);
  CHECK(device == nullptr);
  for (const char* options : {static_cast<const char*>(nullptr), ""}) {
    REQUIRE(api().open_device(0, options, &device, &error) == NPU_OK);
    api()->device_close(std::exchange(device, nullptr));
  }
}

TEST_CASE("onednn runs a graph without nodes", "[onednn]") {
  Model model(each_dtype());
  model.input("x", random_array({2, 3}, 1));
  model.input("i", Array({4}), NPU_INT64);
  model.weight("w", random_array({5}, 2));
  for (const char* name : {"x", "i", "w"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn convolutions", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.conv2d.default";
  check_node(dtype, op, {{1, 3, 8, 9}, {5, 3, 3, 3}, {5}});
  check_node(dtype, op, {{2, 16, 9, 9}, {16, 16, 3, 3}}, R"("stride":[2,2],"padding":[1,1])");
  check_node(dtype, op, {{2, 8, 7, 6}, {12, 4, 3, 2}, {12}},
             R"("stride":[1,2],"padding":[2,0],"groups":2)");
  check_node(dtype, op, {{1, 24, 9, 9}, {24, 1, 3, 3}, {24}}, R"("padding":[1,1],"groups":24)");
  check_node(dtype, op, {{1, 8, 12, 11}, {8, 8, 3, 3}, {8}}, R"("padding":[2,3],"dilation":[2,3])");
  check_node(dtype, op, {{1, 16, 5, 5}, {32, 16, 1, 1}, {32}}, R"("stride":1)");
  check_node(dtype, op, {{1, 8, 6, 6}, {8, 8, 3, 3}}, "", false);
  // Padding as large as a kernel that Winograd's filters suit.
  check_node(dtype, op, {{1, 64, 14, 14}, {64, 64, 1, 3}, {64}}, R"("padding":[1,1])");
  check_node(dtype, op, {{1, 64, 14, 14}, {64, 64, 3, 3}, {64}}, R"("padding":[4,3])");
  // 'same' with kernels of 4 and 3, dilated by 1 and 2.
  check_node(dtype, "aten.conv2d.padding", {{1, 3, 8, 9}, {4, 3, 4, 3}, {4}},
             R"("padding":"same","dilation":[1,2])");
  check_node(dtype, "aten.conv2d.padding", {{1, 3, 8, 9}, {4, 3, 4, 3}}, R"("padding":"valid")");
  check_node(dtype, "aten.conv1d.default", {{2, 6, 11}, {8, 3, 3}},
             R"("stride":[2],"padding":[1],"groups":2)");
}

TEST_CASE("onednn batch_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape = GENERATE(Shape{2, 5, 4, 3}, Shape{4, 6}, Shape{2, 7, 5}, Shape{1, 16, 3, 3});
  const Shape c{shape[1]};
  const std::string attrs = R"("training":false,"momentum":0.1,"eps":1e-3,"cudnn_enabled":true)";
  check_node(dtype, "aten.batch_norm.default", {shape, c, c, c, c}, attrs);
  check_node(dtype, "aten.batch_norm.default", {shape, c, c},
             attrs + R"(,"_none_args":["weight","bias"])");
}

TEST_CASE("onednn functions of one operand", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape{2, 3, 5, 7};
  for (const Shape& each : {shape, Shape{}, Shape{1}})
    check_node(dtype, "aten.relu_.default", {each});
  const std::pair<std::string, std::string> attrs_of[] = {
      {"hardtanh_", R"("min_val":0.0,"max_val":6.0)"},
      {"leaky_relu_", R"("negative_slope":0.2)"},
      {"elu", R"("alpha":1.5)"},
      {"gelu", R"("approximate":"tanh")"},
      {"clamp", R"("min":-0.5)"}};
  for (const auto& [name, attrs] : attrs_of)
    check_node(dtype, "aten." + name + ".default", {shape}, attrs);
  for (const std::string name : {"relu", "hardtanh", "relu6", "silu_", "sigmoid", "tanh",
                                 "hardswish_", "hardsigmoid", "gelu", "exp", "abs", "neg", "mish"})
    check_node(dtype, "aten." + name + ".default", {shape});
}

TEST_CASE("onednn arithmetic on two operands broadcasts", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::pair<Shape, Shape> shapes = GENERATE(values<std::pair<Shape, Shape>>({
      {{2, 3, 4, 5}, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {3, 1, 1}},
      {{3, 1, 1}, {2, 3, 4, 5}},
      {{2, 3, 4, 5}, {5}},
      {{2, 3, 4, 5}, {}},
      {{}, {2, 3}},
      {{4, 1}, {1, 6}},
      {{2, 3, 1, 5}, {2, 1, 4, 5}},
      {{1, 1}, {1, 1}},
      {{7}, {1}},
  }));
  const auto& [a, b] = shapes;
  check_node(dtype, "aten.add.Tensor", {a, b}, R"("alpha":-2.5)", false);
  check_node(dtype, "aten.sub.Tensor", {a, b}, R"("alpha":2)", false);
  for (const std::string op :
       {"add.Tensor", "mul.Tensor", "div.Tensor", "maximum.default", "minimum.default"})
    check_node(dtype, "aten." + op, {a, b}, "", false);
}

TEST_CASE("onednn arithmetic with a number", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const Shape shape{2, 3, 5, 7};
  check_node(dtype, "aten.add.Tensor", {shape}, R"("other":1.5)");
  check_node(dtype, "aten.add_.Tensor", {shape}, R"("other":3,"alpha":2)");
  check_node(dtype, "aten.sub.Tensor", {shape}, R"("other":1.5)");
  check_node(dtype, "aten.mul.Tensor", {shape}, R"("other":-0.3)");
  check_node(dtype, "aten.mul_.Scalar", {shape}, R"("other":2)");
  check_node(dtype, "aten.div.Tensor", {shape}, R"("other":3.0)");
  check_node(dtype, "aten.rsub.Scalar", {shape}, R"("other":1.0)");
}

TEST_CASE("onednn maximum keeps NaN", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array a = random_array({4}, 1);
  Array b = random_array({4}, 2);
  a.values[1] = NAN;
  b.values[2] = NAN;
  model.input("a", a);
  model.input("b", b);
  model.node("y", "aten.maximum.default", {"a", "b"});
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn poolings", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string most = "aten.max_pool2d.default", mean = "aten.avg_pool2d.default";
  check_node(dtype, most, {{2, 3, 8, 8}}, R"("kernel_size":[2,2])");
  check_node(dtype, most, {{5, 6, 6}}, R"("kernel_size":2)");
  check_node(dtype, most, {{1, 16, 9, 11}},
             R"("kernel_size":[3,3],"stride":[2,2],"padding":[1,1])");
  check_node(dtype, most, {{1, 3, 9, 9}}, R"("kernel_size":3,"stride":1,"dilation":2)");
  for (const std::string& op : {most, mean}) {
    // 7 with windows of 2, stride 2: floor 3, ceil 4.
    check_node(dtype, op, {{1, 3, 7, 7}}, R"("kernel_size":2,"ceil_mode":true)");
    // 6 with padding 1, windows of 2, stride 3: ceil(6 / 3) + 1 = 3 windows at -1, 2, 5; of 4 a
    // third window at 5 would start behind the input.
    for (const Shape& shape : {Shape{1, 3, 6, 6}, Shape{1, 3, 4, 4}})
      check_node(dtype, op, {shape}, R"("kernel_size":2,"stride":3,"padding":1,"ceil_mode":true)");
  }
  check_node(dtype, mean, {{2, 3, 8, 8}}, R"("kernel_size":[2,2])");
  check_node(dtype, mean, {{1, 3, 8, 8}}, R"("kernel_size":2,"divisor_override":3)");
  for (const std::string flag : {"", R"(,"count_include_pad":false)"}) {
    check_node(dtype, mean, {{1, 16, 9, 9}}, R"("kernel_size":3,"stride":1,"padding":1)" + flag);
    // 7 with padding 1, windows of 3, stride 3: the last of 3 windows ends at 8, the end of the
    // padding; 8 with stride 2: the last of 5 ends behind it.
    check_node(dtype, mean, {{1, 3, 7, 7}},
               R"("kernel_size":3,"stride":3,"padding":1,"ceil_mode":true)" + flag);
    check_node(dtype, mean, {{1, 3, 8, 8}},
               R"("kernel_size":3,"stride":2,"padding":1,"ceil_mode":true)" + flag);
  }
  for (const std::string size : {"[1,1]", "[5,3]", "[7,4]", "[3,12]"}) {
    for (const Shape& shape : {Shape{2, 5, 10, 6}, Shape{5, 10, 6}})
      check_node(dtype, "aten.adaptive_avg_pool2d.default", {shape}, R"("output_size":)" + size);
  }
}

TEST_CASE("onednn poolings of a convolution, in blocks of channels", "[onednn]") {
  const auto [op, attrs] = GENERATE(table<std::string, std::string>({
      {"max_pool2d", R"("kernel_size":3,"stride":2,"padding":1)"},
      {"max_pool2d", R"("kernel_size":3,"stride":1,"dilation":2)"},
      {"max_pool2d", R"("kernel_size":2,"ceil_mode":true)"},
      {"avg_pool2d", R"("kernel_size":3,"stride":1,"padding":1)"},
      {"avg_pool2d", R"("kernel_size":3,"stride":1,"padding":1,"count_include_pad":false)"},
      {"avg_pool2d", R"("kernel_size":2,"ceil_mode":true)"},
      {"adaptive_avg_pool2d", R"("output_size":[1,1])"},
      {"adaptive_avg_pool2d", R"("output_size":[5,3])"},
  }));
  Model model(each_dtype());
  model.input("x", random_array({1, 16, 9, 9}, 1));
  model.weight("w", random_array({16, 16, 1, 1}, 2));
  model.node("c", "aten.conv2d.default", {"x", "w"});
  model.node("y", "aten." + op + ".default", {"c"}, attrs);
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn rows: mean, softmax and layer_norm", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  for (const std::string dims : {"[-1,-2]", "[1]", "[-1]", "[0,2]", "[0,1,2,3]", "[]"}) {
    for (const std::string keep : {"false", "true"})
      check_node(dtype, "aten.mean.dim", {{2, 9, 5, 6}},
                 R"("dim":)" + dims + R"(,"keepdim":)" + keep);
  }
  for (const std::string dim : {"0", "1", "2", "-1"}) {
    check_node(dtype, "aten.softmax.int", {{3, 5, 7}}, R"("dim":)" + dim);
    check_node(dtype, "aten.log_softmax.int", {{3, 5, 7}}, R"("dim":)" + dim);
  }
  check_node(NPU_BFLOAT16, "aten.softmax.int", {{3, 7}}, R"("dim":-1,"dtype":"torch.float32")");
  for (const Shape& width : {Shape{6}, Shape{5, 6}}) {
    const std::string attrs = R"("normalized_shape":)" + list_text(width) + R"(,"eps":1e-4)";
    check_node(dtype, "aten.layer_norm.default", {{2, 4, 5, 6}}, attrs);
    check_node(dtype, "aten.layer_norm.default", {{2, 4, 5, 6}, width, width}, attrs);
  }
}

TEST_CASE("onednn products", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  for (const Shape& shape : {Shape{3, 10}, Shape{10}, Shape{2, 3, 10}, Shape{1, 10}}) {
    check_node(dtype, "aten.linear.default", {shape, {7, 10}});
    check_node(dtype, "aten.linear.default", {shape, {7, 10}, {7}});
  }
  for (const Shape& bias : {Shape{7}, Shape{1, 7}, Shape{4, 7}, Shape{4, 1}, Shape{}}) {
    for (const std::string attrs : {"", R"("alpha":0.5,"beta":-2)", R"("beta":0)"})
      check_node(dtype, "aten.addmm.default", {bias, {4, 5}, {5, 7}}, attrs, false);
  }
  const bool weight = GENERATE(false, true);
  check_node(dtype, "aten.mm.default", {{4, 5}, {5, 6}}, "", weight);
  check_node(dtype, "aten.bmm.default", {{3, 4, 5}, {3, 5, 6}}, "", weight);
  const std::pair<Shape, Shape> pairs[] = {{{5}, {5}},
                                           {{4, 5}, {5}},
                                           {{5}, {5, 6}},
                                           {{2, 3, 4, 5}, {5, 6}},
                                           {{4, 5}, {2, 3, 5, 6}},
                                           {{2, 1, 4, 5}, {3, 5, 6}},
                                           {{2, 3, 4, 5}, {2, 3, 5, 6}},
                                           {{2, 3, 4, 5}, {1, 1, 5, 6}},
                                           {{4, 4, 5}, {1, 4, 5, 6}},
                                           {{5}, {3, 5, 6}},
                                           {{3, 4, 5}, {5}}};
  for (const auto& [a, b] : pairs) check_node(dtype, "aten.matmul.default", {a, b}, "", weight);
}

TEST_CASE("onednn matrix products of transposed and sliced views", "[onednn]") {
  Model model(each_dtype());
  model.input("q", random_array({2, 5, 3, 4}, 1));
  model.input("k", random_array({2, 6, 3, 4}, 2));
  model.node("qt", "aten.transpose.int", {"q"}, R"("dim0":1,"dim1":2)");
  model.node("kt", "aten.permute.default", {"k"}, R"("dims":[0,2,3,1])");
  model.node("s", "aten.matmul.default", {"qt", "kt"});
  model.node("part", "aten.slice.Tensor", {"kt"}, R"("dim":3,"start":1,"end":6,"step":2)");
  model.node("t", "aten.matmul.default", {"qt", "part"});
  for (const char* name : {"s", "t", "kt"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn scaled_dot_product_attention", "[onednn]") {
  const npu_dtype dtype = each_dtype();
  const std::string op = "aten.scaled_dot_product_attention.default";
  const Shape q{2, 3, 5, 8}, k{2, 3, 6, 8}, v{2, 3, 6, 4};
  for (const std::string attrs : {"", R"("is_causal":true)", R"("scale":0.7)"})
    check_node(dtype, op, {q, k, v}, attrs, false);
  check_node(dtype, op, {q, k, v, {2, 1, 5, 6}}, "", false);
}

TEST_CASE("onednn embedding", "[onednn]") {
  Model model(each_dtype());
  Array indices({2, 3});
  indices.values = {0, 4, 2, 4, 1, 3};
  model.weight("table", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.node("y", "aten.embedding.default", {"table", "i"});
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn fails on an index outside its dimension, and names the node", "[onednn]") {
  struct Case {
    const char* op;
    const char* attrs;
    Shape result;
  };
  const Case one =
      GENERATE(Case{"aten.index.Tensor", R"("_tensor_list_none_masks":[[false]])", {2, 7}},
               Case{"aten.index_select.default", R"("dim":0)", {2, 7}},
               Case{"aten.gather.default", R"("dim":0)", {2, 1}},
               Case{"aten.scatter.value", R"("dim":0,"value":1.5)", {5, 7}});
  const bool wraps = std::string(one.op) == "aten.index.Tensor";
  const bool is_matrix = std::string(one.op).find("index") == std::string::npos;
  Array indices(is_matrix ? Shape{2, 1} : Shape{2});
  indices.values = {1, static_cast<double>(GENERATE_COPY(5, wraps ? -6 : -1))};
  Model model(NPU_FLOAT32);
  model.input("x", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.node_stating(one.result, "y", one.op, {"x", "i"}, one.attrs);
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  const std::vector<Buffer> outputs = model.make_outputs(device.get());
  CallError error;
  CHECK(api().run(compiled.program.get(), handles(inputs), handles(outputs), &error) == NPU_FAILED);
  CHECK(std::string(error.text).find("node 'y' (" + std::string(one.op)) != std::string::npos);
}

TEST_CASE("onednn embedding fails on an index outside the table", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array indices({1});
  indices.values = {static_cast<double>(GENERATE(5, -1))};
  model.weight("table", random_array({5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.node_stating({1, 7}, "y", "aten.embedding.default", {"table", "i"});
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  const std::vector<Buffer> outputs = model.make_outputs(device.get());
  CallError error;
  CHECK(api().run(compiled.program.get(), handles(inputs), handles(outputs), &error) == NPU_FAILED);
  CHECK(std::string(error.text).find("node 'y'") != std::string::npos);
}

TEST_CASE("onednn cat", "[onednn]") {
  const int dim = GENERATE(0, 1, 2);
  Model model(each_dtype());
  Shape other{2, 3, 4};
  other[std::size_t(dim)] = 5;
  model.input("a", random_array({2, 3, 4}, 1));
  model.input("b", random_array(other, 2));
  model.node("t", "aten.transpose.int", {"b"}, R"("dim0":0,"dim1":0)");
  model.node("y", "aten.cat.default", {"a", "t", "a"},
             R"("_tensor_list_sizes":[3],"dim":)" + std::to_string(dim));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn cat of convolutions on channels", "[onednn]") {
  // 8 and 16 fill blocks; 5 does not; 32 alone fills those of AVX-512.
  const auto [first, second] =
      GENERATE(table<std::int64_t, std::int64_t>({{8, 16}, {5, 8}, {8, 5}, {32, 16}}));
  Model model(each_dtype());
  model.input("x", random_array({1, 16, 6, 6}, 1));
  model.weight("u", random_array({first, 16, 3, 3}, 2));
  model.weight("v", random_array({second, 16, 3, 3}, 3));
  model.node("a", "aten.conv2d.default", {"x", "u"});
  model.node("b", "aten.conv2d.default", {"x", "v"});
  model.node("c", "aten.cat.default", {"a", "b"}, R"("_tensor_list_sizes":[2],"dim":1)");
  model.node("y", "aten.relu_.default", {"c"});
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn computes with slices where they lie", "[onednn]") {
  const auto dimension = GENERATE(0, 1, 2, 3);
  const std::string dim = R"("dim":)" + std::to_string(dimension);
  Model model(each_dtype());
  model.input("x", random_array({3, 4, 5, 6}, 1));
  model.node("a", "aten.slice.Tensor", {"x"}, dim + R"(,"start":1)");
  model.node("b", "aten.slice.Tensor", {"x"}, dim + R"(,"end":-1)");
  model.node("c", "aten.relu.default", {"a"});
  const std::string op = GENERATE("sub", "mul", "div");
  model.node("y", "aten." + op + ".Tensor", {"a", "b"});
  model.node("z", "aten." + op + ".Tensor", {"c", "b"});
  model.output("y");
  model.output("z");
  check_model(model);
}

TEST_CASE("onednn moves elements without changing them", "[onednn]") {
  const npu_dtype dtype = GENERATE(NPU_FLOAT32, NPU_BFLOAT16, NPU_INT64);
  Model model(dtype);
  Array values({2, 3, 4});
  std::iota(values.values.begin(), values.values.end(), 1.0);
  model.input("x", values);
  const auto add = [&](const std::string& name, const std::string& op, const std::string& from,
                       const std::string& attrs) {
    model.node(name, "aten." + op, {from}, attrs);
    model.output(name);
  };
  add("view", "view.default", "x", R"("size":[6,-1])");
  add("reshape", "reshape.default", "x", R"("shape":[2,12])");
  add("flatten", "flatten.using_ints", "x", R"("start_dim":1)");
  add("permute", "permute.default", "x", R"("dims":[2,0,-2])");
  add("pview", "reshape.default", "permute", R"("shape":[-1])");
  add("transpose", "transpose.int", "x", R"("dim0":-1,"dim1":0)");
  add("tcontiguous", "contiguous.default", "transpose", "");
  add("unsqueeze", "unsqueeze.default", "x", R"("dim":-2)");
  add("squeeze", "squeeze.dim", "unsqueeze", R"("dim":2)");
  add("squeeze0", "squeeze.dim", "x", R"("dim":1)");
  add("slice", "slice.Tensor", "x", R"("dim":2,"start":-3,"end":9223372036854775807,"step":2)");
  add("sview", "view.default", "slice", R"("size":[12])");
  add("select", "select.int", "x", R"("dim":1,"index":-1)");
  add("expand", "expand.default", "select", R"("size":[3,2,-1])");
  add("alias", "alias.default", "x", "");
  add("clone", "clone.default", "x", "");
  add("dropout", "dropout.default", "x", R"("p":0.5,"train":false)");
  add("to", "to.dtype", "x", R"("dtype":"torch.)" + dtype_text(dtype) + "\"");
  check_model(model);
}

TEST_CASE("onednn splits and getitem", "[onednn]") {
  Model model(each_dtype());
  model.input("x", random_array({2, 7, 3}, 1));
  const auto parts = [&](const std::string& name, const std::string& op, const std::string& attrs,
                         int count) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) names.push_back(name + "_" + std::to_string(i));
    model.node(name, op, {"x"}, attrs);
    for (int i = 0; i < count; ++i) {
      const std::string item = name + "_item_" + std::to_string(i);
      model.node(item, "<built-in function getitem>", names, R"("index":)" + std::to_string(i));
      model.output(item);
    }
  };
  parts("split", "aten.split.Tensor", R"("split_size":3,"dim":1)", 3);
  parts("sizes", "aten.split_with_sizes.default", R"("split_sizes":[2,5],"dim":-2)", 2);
  parts("chunk", "aten.chunk.default", R"("chunks":3,"dim":1)", 3);
  parts("cuts", "aten.tensor_split.indices", R"("indices":[1,-2],"dim":1)", 3);
  parts("sections", "aten.tensor_split.sections", R"("sections":3,"dim":1)", 3);
  check_model(model);
}

TEST_CASE("onednn converts between float32 and bfloat16", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({3, 5}, 1));
  model.node("narrow", "aten.to.dtype", {"x"}, R"("dtype":"torch.bfloat16")");
  model.node("wide", "aten.to.dtype", {"narrow"}, R"("dtype":"torch.float32")");
  for (const char* name : {"narrow", "wide", "x"}) model.output(name);
  check_model(model);
}

// ---- Layouts, aliases and in-place ops across nodes ----

TEST_CASE("onednn adds a residual behind a convolution", "[onednn]") {
  const std::int64_t channels = GENERATE(16, 5);
  Model model(each_dtype());
  model.input("x", random_array({2, channels, 6, 6}, 1));
  model.weight("w", random_array({channels, channels, 3, 3}, 2));
  model.weight("s", random_array({channels, 1, 1}, 3));
  model.node("c", "aten.conv2d.default", {"x", "w"}, R"("padding":[1,1])");
  model.node("a", "aten.add_.Tensor", {"c", "x"});
  model.node("b", "aten.add.Tensor", {"x", "c"});
  model.node("m", "aten.mul.Tensor", {"a", "s"});
  model.node("d", "aten.conv2d.default", {"m", "w"}, R"("padding":[1,1])");
  model.node("g", "aten.adaptive_avg_pool2d.default", {"d"}, R"("output_size":[1,1])");
  model.node("e", "aten.mul.Tensor", {"g", "d"});
  model.node("q", "aten.div.Tensor", {"e"}, R"("other":3.0)");
  for (const char* name : {"a", "b", "m", "q"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn keeps the operand of an in-place op for its other readers", "[onednn]") {
  Model model(each_dtype());
  model.input("x", random_array({2, 8, 4, 4}, 1));
  model.weight("w", random_array({8, 8, 1, 1}, 2));
  model.node("c", "aten.conv2d.default", {"x", "w"});
  model.node("v", "aten.view.default", {"c"}, R"("size":[2,128])");
  model.node("r", "aten.relu_.default", {"c"});
  model.node("xr", "aten.relu_.default", {"x"});
  model.node("u", "aten.add_.Tensor", {"v"}, R"("other":1)");
  model.node("s", "aten.add.Tensor", {"c", "r"});
  model.node("t", "aten.mul.Tensor", {"v", "u"});
  for (const char* name : {"c", "v", "r", "xr", "s", "t", "x"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn reshapes and permutes what a convolution made", "[onednn]") {
  const std::int64_t channels = GENERATE(16, 12);
  Model model(each_dtype());
  model.input("x", random_array({2, 3, 8, 8}, 1));
  model.weight("w", random_array({channels, 3, 4, 4}, 2));
  model.node("c", "aten.conv2d.default", {"x", "w"}, R"("stride":[4,4])");
  model.node("r", "aten.reshape.default", {"c"}, R"("shape":[2,-1,4])");
  model.node("p", "aten.permute.default", {"r"}, R"("dims":[0,2,1])");
  model.node("n", "aten.layer_norm.default", {"p"},
             R"("normalized_shape":)" + list_text({channels}));
  model.node("h", "aten.permute.default", {"c"}, R"("dims":[0,2,3,1])");
  model.node("hr", "aten.relu.default", {"h"});
  model.node("g", "aten.adaptive_avg_pool2d.default", {"c"}, R"("output_size":[1,1])");
  model.node("f", "aten.flatten.using_ints", {"g"}, R"("start_dim":1)");
  model.node("m", "aten.softmax.int", {"c"}, R"("dim":1)");
  for (const char* name : {"n", "h", "hr", "f", "g", "m"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn computes what depends on weights alone", "[onednn]") {
  Model model(each_dtype());
  model.input("x", random_array({4, 6}, 1));
  model.weight("w", random_array({5, 6}, 2));
  model.node("t", "aten.t.default", {"w"});
  model.node("d", "aten.mul.Tensor", {"t"}, R"("other":2.0)");
  model.node("y", "aten.mm.default", {"x", "d"});
  for (const char* name : {"y", "d", "t", "w"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn gives outputs memory of their own", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({2, 6}, 1));
  model.node("a", "aten.view.default", {"x"}, R"("size":[3,4])");
  model.node("r", "aten.relu.default", {"x"});
  model.node("b", "aten.view.default", {"r"}, R"("size":[12])");
  for (const char* name : {"x", "a", "r", "b"}) model.output(name);
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  const std::vector<Buffer> outputs = model.make_outputs(device.get());
  CallError error;
  REQUIRE(api().run(compiled.program.get(), handles(inputs), handles(outputs), &error) == NPU_OK);
  std::set<const void*> addresses{api().map(inputs[0].get())};
  for (const Buffer& output : outputs) {
    const void* address = api().map(output.get());
    CHECK(reinterpret_cast<std::uintptr_t>(address) % 64 == 0);
    addresses.insert(address);
  }
  CHECK(addresses.size() == 5);
  check_close(read_buffer(outputs[3].get(), model.expected("b")), model.expected("b"));
}

// ---- Refusals ----

TEST_CASE("onednn refuses what it does not run, with node, op, argument and reason", "[onednn]") {
  const auto one_node = [](const std::string& op, const Shape& shape, const std::string& attrs,
                           npu_dtype dtype = NPU_FLOAT32) {
    Model model(dtype);
    model.input("x", Array(shape));
    model.node_stating(shape, "bad", op, {"x"}, attrs);
    model.output("bad");
    return refusal(model, NPU_UNSUPPORTED);
  };
  CHECK(one_node("aten.cumprod.default", {2}, R"("dim":0)")
            .find("node 'bad' (aten.cumprod.default)") == 0);
  CHECK(one_node("aten.dropout.default", {2}, R"("p":0.5,"train":true)").find("argument 'train'") !=
        std::string::npos);
  CHECK(one_node("aten.exp.default", {2}, "", NPU_INT64).find("dtype int64") != std::string::npos);
  CHECK(one_node("aten.elu.default", {2}, R"("scale":2)").find("argument 'scale'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", {2, 0}, "").find("no elements") != std::string::npos);
  CHECK(one_node("aten.to.dtype", {2}, R"("dtype":"torch.float16")").find("'dtype'") !=
        std::string::npos);
  CHECK(one_node("aten.relu.default", Shape(9, 1), "").find("rank 9") != std::string::npos);
}

TEST_CASE("onednn refuses a sub-IR that contradicts itself", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({2, 6}, 1));
  const std::string variant =
      GENERATE(as<std::string>(), "shape", "elements", "dimension", "broadcast");
  if (variant == "shape") model.node_stating({2, 5}, "bad", "aten.relu.default", {"x"});
  if (variant == "elements")
    model.node_stating({5, 2}, "bad", "aten.view.default", {"x"}, R"("size":[5,-1])");
  if (variant == "dimension")
    model.node_stating({2, 6}, "bad", "aten.softmax.int", {"x"}, R"("dim":2)");
  if (variant == "broadcast") {
    model.input("y", random_array({4}, 2));
    model.node_stating({2, 6}, "bad", "aten.add.Tensor", {"x", "y"});
  }
  model.output("bad");
  CHECK(refusal(model, NPU_INVALID).find("node 'bad'") != std::string::npos);
}

TEST_CASE("onednn refuses extents that oneDNN does not count", "[onednn]") {
  const std::int64_t rows =
      GENERATE(std::int64_t{1} << 31, std::int64_t{1} << 32, std::int64_t{1} << 40);
  const std::string op =
      GENERATE(as<std::string>(), "aten.linear.default", "aten.mm.default", "aten.relu.default");
  const std::string shape = "[" + std::to_string(rows) + ",8]";
  const bool has_weight = op != "aten.relu.default";
  const std::string operand = R"({"name":"w","shape":[8,8],"dtype":"float32"})";
  const std::string x = R"({"name":"x","shape":)" + shape + R"(,"dtype":"float32"})";
  const std::string y = R"({"name":"y","shape":)" + shape + R"(,"dtype":"float32"})";
  const std::string text =
      R"({"model_name":"m","graph_inputs":[)" + x + (has_weight ? "," + operand : "") +
      R"(],"graph_outputs":[)" + y +
      R"(],"weights":[],"weight_name_mapping":{},"nodes":[{"name":"y","op_type":")" + op +
      R"(","inputs":[)" + x + (has_weight ? "," + operand : "") + R"(],"outputs":[)" + y +
      R"(],"attrs":{}}]})";
  const Device device = open_device();
  std::string blob;
  CallError error;
  CHECK(api().compile(device.get(), text, {}, "{}", &blob, &error) == NPU_UNSUPPORTED);
  CHECK(std::string(error.text).find("an extent above 2147483647") != std::string::npos);
}

TEST_CASE("onednn refuses a stated result that the operands do not give", "[onednn]") {
  struct Wrong {
    const char* op;
    const char* attrs;
    Shape stated;
    bool has_second;
  };
  const Wrong wrong = GENERATE(
      Wrong{"aten.linear.default", "", {3, 8}, true}, Wrong{"aten.mm.default", "", {6, 4}, true},
      Wrong{"aten.matmul.default", "", {1, 6, 8}, true},
      Wrong{"aten.gelu.default", "", {8, 6}, false}, Wrong{"aten.add.Tensor", "", {6, 8, 8}, true},
      Wrong{"aten.softmax.int", R"("dim":1)", {6, 7}, false},
      Wrong{"aten.view.default", R"("size":[4,12])", {4, 11}, false},
      Wrong{"aten.permute.default", R"("dims":[1,0])", {6, 8}, false},
      Wrong{"aten.sum.dim_IntList", R"("dim":[1])", {8}, false},
      Wrong{"aten.unsqueeze.default", R"("dim":0)", {6, 1, 8}, false});
  Model model(NPU_FLOAT32);
  model.input("x", random_array({6, 8}, 1));
  if (wrong.has_second) model.input("z", random_array({8, 8}, 2));
  std::vector<std::string> operands{"x"};
  if (wrong.has_second) operands.emplace_back("z");
  model.node_stating(wrong.stated, "bad", wrong.op, operands, wrong.attrs);
  model.output("bad");
  const std::string text = refusal(model, NPU_INVALID);
  INFO(wrong.op << ": " << text);
  CHECK(text.find("node 'bad'") != std::string::npos);
}

TEST_CASE("onednn keeps NaN through exp, hardsigmoid and softmax behind a product", "[onednn]") {
  Model model(NPU_FLOAT32);
  Array x = random_array({2, 4}, 1);
  x.values[1] = std::nan("");
  model.input("x", x);
  model.input("w", random_array({4, 4}, 2));
  model.node("p", "aten.mm.default", {"x", "w"});
  model.node("e", "aten.exp.default", {"p"});
  model.node("h", "aten.hardsigmoid.default", {"p"});
  model.node("s", "aten.softplus.default", {"p"});
  model.node("l", "aten.log_sigmoid.default", {"p"});
  model.node("m", "aten.softmax.int", {"p"}, R"("dim":1)");
  for (const char* name : {"e", "h", "s", "l", "m"}) model.output(name);
  check_model(model);
}

TEST_CASE("onednn refuses weights, blobs and buffers that do not fit", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({2, 6}, 1));
  model.weight("w", random_array({6}, 2));
  model.node("y", "aten.add.Tensor", {"x", "w"});
  model.output("y");
  const Device device = open_device();
  CallError error;
  const std::string text = model.text();
  std::string blob;
  CHECK(api().compile(device.get(), text, {}, nullptr, &blob, &error) == NPU_INVALID);
  CHECK(std::string(error.text).find("'w'") != std::string::npos);
  CHECK(api().compile(device.get(), text.substr(0, text.size() - 1), {}, nullptr, &blob, &error) ==
        NPU_INVALID);

  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  npu_model* loaded = nullptr;
  auto weights = model.weight_views();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{7}, std::size_t{16}, compiled.blob.size() - 1}) {
    CHECK(api().load(device.get(), compiled.blob.substr(0, size), weights, &loaded, &error) ==
          NPU_INVALID);
  }
  const Shape wrong{3};
  weights[0].shape = wrong.data();
  CHECK(api().compile(device.get(), text, weights, nullptr, &blob, &error) == NPU_INVALID);
  CHECK(api().compile(device.get(), text, model.weight_views(), R"({"precision":"f8"})", &blob,
                      &error) == NPU_INVALID);
  CHECK(std::string(error.text).find("'precision'") != std::string::npos);
  CHECK(blob.empty());
  CHECK(loaded == nullptr);

  npu_buffer* buffer = nullptr;
  CHECK(api().create_buffer(device.get(), NPU_FLOAT32, {2, -1}, &buffer, &error) == NPU_INVALID);
  const std::int64_t large = std::int64_t{1} << 40;
  CHECK(api().create_buffer(device.get(), NPU_FLOAT32, {large, large}, &buffer, &error) ==
        NPU_INVALID);
  REQUIRE(api().create_buffer(device.get(), NPU_FLOAT32, {6, 2}, &buffer, &error) == NPU_OK);
  const Buffer transposed(buffer);
  const std::vector<npu_buffer*> outputs = {nullptr};
  CHECK(api().run(compiled.program.get(), {buffer}, outputs, &error) == NPU_INVALID);
  CHECK(std::string(error.text).find("input 'x'") != std::string::npos);
  CHECK(api().run(compiled.program.get(), {}, outputs, &error) == NPU_INVALID);
  float many[13];
  CHECK(api().read(buffer, many, sizeof many, &error) == NPU_INVALID);
}

TEST_CASE("onednn reads weights at any address", "[onednn]") {
  Model model(NPU_FLOAT32);
  model.input("x", random_array({3, 4}, 1));
  model.weight("w", random_array({4}, 2));
  model.node("y", "aten.add.Tensor", {"x", "w"});
  model.output("y");
  const Device device = open_device();
  auto weights = model.weight_views();
  std::vector<char> odd(weights[0].bytes + 1);
  std::memcpy(odd.data() + 1, weights[0].data, weights[0].bytes);
  weights[0].data = odd.data() + 1;
  CallError error;
  std::string blob;
  REQUIRE(api().compile(device.get(), model.text(), weights, "{}", &blob, &error) == NPU_OK);
  // The blob, too, may lie anywhere; it alone has what load needs.
  blob.insert(blob.begin(), '\0');
  LoadedModel loaded;
  Program program;
  REQUIRE(load(device.get(), std::string_view(blob).substr(1), {}, loaded, program, error) ==
          NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  const std::vector<Buffer> outputs = model.make_outputs(device.get());
  REQUIRE(api().run(program.get(), handles(inputs), handles(outputs), &error) == NPU_OK);
  check_close(read_buffer(outputs[0].get(), model.expected("y")), model.expected("y"));
}

}  // namespace
}  // namespace npu::test::onednn
