// SPDX-License-Identifier: Apache-2.0
// Ops that move elements through the C ABI of the onednn backend: gathers, concatenations, views,
// splits.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "backends/backend_calls.hpp"
#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

namespace npu::test::onednn {
namespace {

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

TEST_CASE("onednn copies rows to places, of equal ones the last", "[onednn]") {
  const npu_dtype dtype = GENERATE(NPU_FLOAT32, NPU_BFLOAT16, NPU_INT64);
  const int dim = GENERATE(0, 1, -1);
  Model model(dtype);
  Array values({4, 5, 6});
  std::iota(values.values.begin(), values.values.end(), 1.0);
  Array indices({3});
  indices.values = {3, 0, 3};
  Shape part{4, 5, 6};
  part[dim < 0 ? 2 : std::size_t(dim)] = 3;
  Array rows(part);
  std::iota(rows.values.begin(), rows.values.end(), 201.0);
  model.input("x", values);
  model.input("i", indices, NPU_INT64);
  model.input("s", rows);
  model.node("y", "aten.index_copy.default", {"x", "i", "s"}, "\"dim\":" + std::to_string(dim));
  model.output("y");
  check_model(model);
}

TEST_CASE("onednn fails on a place of index_copy outside, negative ones too", "[onednn]") {
  const std::int64_t place = GENERATE(5, -1);
  Array indices({2});
  indices.values = {1, static_cast<double>(place)};
  Model model(NPU_FLOAT32);
  model.input("x", random_array({2, 5, 7}, 1));
  model.input("i", indices, NPU_INT64);
  model.input("s", random_array({2, 2, 7}, 2));
  model.node_stating({2, 5, 7}, "y", "aten.index_copy.default", {"x", "i", "s"}, R"("dim":1)");
  model.output("y");
  const Device device = open_device();
  const Compiled compiled = compile(device.get(), model);
  REQUIRE(compiled.status == NPU_OK);
  const std::vector<Buffer> inputs = model.import_inputs(device.get());
  const std::vector<Buffer> outputs = model.make_outputs(device.get());
  CallError error;
  CHECK(api().run(compiled.program.get(), handles(inputs), handles(outputs), &error) == NPU_FAILED);
  CHECK(std::string(error.text)
            .find("node 'y' (aten.index_copy.default): index " + std::to_string(place) +
                  " is outside its dimension of 5") != std::string::npos);
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

}  // namespace
}  // namespace npu::test::onednn
