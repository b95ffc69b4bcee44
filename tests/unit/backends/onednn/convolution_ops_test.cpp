// SPDX-License-Identifier: Apache-2.0
// Convolutions, poolings and what follows them through the C ABI of the onednn backend, in float32
// and bfloat16.
#include <cstdint>
#include <cstring>
#include <string>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

namespace npu::test::onednn {
namespace {

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

}  // namespace
}  // namespace npu::test::onednn
