// SPDX-License-Identifier: Apache-2.0
// The aten backend's interface: devices, buffers, arguments, results, weights and in-place ops.
//
// Expected values are computed here or written beside their arithmetic.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backends/aten/aten_harness.hpp"
#include "catch.hpp"

namespace npu::test::aten {
namespace {

// ---- the interface

TEST_CASE("the aten backend describes itself", "[aten]") {
  const npu_backend_info info = api().info();
  CHECK(std::string(info.name) == "aten");
  CHECK(std::string(info.version).find("libtorch") != std::string::npos);
  CHECK(api().fingerprint().find("libtorch") != std::string::npos);
  CHECK((info.flags & NPU_ANY_OP) != 0);
  CHECK(api()->abi_version == NPU_ABI_VERSION);
  CHECK(api()->struct_size == sizeof(npu_backend));
}

TEST_CASE("device options are checked", "[aten]") {
  const auto text = [](const std::string& options, std::uint32_t threads = 1) {
    try {
      const Device device(options, threads);
    } catch (const Failure& failure) {
      CHECK(failure.status == NPU_INVALID);
      return failure.text;
    }
    return std::string();
  };
  CHECK(text("").empty());
  CHECK(text("{}").empty());
  CHECK(text(R"({"unknown": [1]})", 0).empty());
  CHECK(text("{}", ~0U) == "threads: expected at most 4096");
  CHECK(text(R"({"promote": 1})") == "option 'promote': expected true or false, found 1");
  CHECK(text(R"({"load_ops": "x.so"})").starts_with("option 'load_ops': expected a list of paths"));
  CHECK(text("[1]") == "device options: expected an object");
  CHECK_FALSE(text("{").empty());
}

// The kernel's number of a new thread.
pid_t new_thread_id() {
  pid_t id = 0;
  std::thread([&] { id = ::gettid(); }).join();
  return id;
}

// A library that starts its threads anew with each run leaves them spinning beside it. Numbers are
// given in order, to other programs, too; one of many tries is left alone by them.
TEST_CASE("runs start no threads", "[aten]") {
  const Device device("{}", 3);
  Model model = one_node("aten.relu.default", {{"x", range({8}, -3.0F)}}, {}, {{"y", {8}}});
  Loaded loaded(device, model);
  bool none = false;
  for (int i = 0; i < 200 && !none; ++i) {
    const pid_t before = new_thread_id();
    loaded.run();
    none = new_thread_id() == before + 1;
  }
  CHECK(none);
}

TEST_CASE("list_ops names ops of every kind once", "[aten]") {
  const Device device;
  std::map<std::string, std::string> kinds;
  bool twice = false;
  std::pair<std::map<std::string, std::string>*, bool*> context{&kinds, &twice};
  CallError error;
  const npu_op_visitor visit = [](void* opaque, const char* op_type, const char* kind) {
    const auto& [map, again] = *static_cast<decltype(context)*>(opaque);
    if (!map->emplace(op_type, kind).second) *again = true;
  };
  REQUIRE(api()->list_ops(device.get(), visit, &context, &error) == NPU_OK);
  CHECK_FALSE(twice);
  CHECK(kinds.size() > 2000);
  CHECK(kinds["aten.conv2d.default"] == "aten");
  CHECK(kinds["aten.add.Tensor"] == "aten");
  CHECK(kinds.contains("aten.scaled_dot_product_attention.default"));
  CHECK(kinds["<built-in function getitem>"] == "builtin");
}

TEST_CASE("buffers keep every bit", "[aten]") {
  const Device device;
  CallError error;
  // A signalling NaN, a subnormal, minus zero, infinity.
  for (const char* dtype : {"float16", "bfloat16"}) {
    const HostTensor tensor = bits16(dtype, {4}, {0x7d01, 0x0001, 0x8000, 0x7c00});
    npu_buffer* buffer = nullptr;
    REQUIRE(api().import_tensor(device.get(), tensor.view("x"), &buffer, &error) == NPU_OK);
    std::vector<char> copy(8);
    REQUIRE(api().read(buffer, copy.data(), copy.size(), &error) == NPU_OK);
    CHECK(copy == tensor.bytes);
    CHECK(api().read(buffer, copy.data(), 9, &error) == NPU_INVALID);
    CHECK(std::string(error.text) == "the buffer has 8 bytes, expected 9 behind 0");
    api()->buffer_free(buffer);
  }
  SECTION("allocation") {
    npu_buffer* buffer = nullptr;
    REQUIRE(api().create_buffer(device.get(), NPU_INT32, {2, 0, 3}, &buffer, &error) == NPU_OK);
    CHECK(api().read(buffer, nullptr, 0, &error) == NPU_OK);
    api()->buffer_free(buffer);
    CHECK(api().create_buffer(device.get(), NPU_INT32, {2, -1}, &buffer, &error) == NPU_INVALID);
    const std::int64_t large = std::int64_t{1} << 40;
    CHECK(api().create_buffer(device.get(), NPU_INT32, {large, large}, &buffer, &error) ==
          NPU_INVALID);
    CHECK(api().create_buffer(device.get(), 15, {}, &buffer, &error) == NPU_INVALID);
  }
  SECTION("wrong byte count") {
    HostTensor tensor = range({2});
    tensor.bytes.pop_back();
    npu_buffer* buffer = nullptr;
    CHECK(api().import_tensor(device.get(), tensor.view("x"), &buffer, &error) == NPU_INVALID);
    CHECK(std::string(error.text) == "buffer: expected 8 bytes, found 7");
  }
}

TEST_CASE("a program without nodes copies its inputs", "[aten]") {
  Model model;
  model.input("x", range({2, 2})).output("x");
  const auto results = run(model);
  CHECK(results[0].floats() == std::vector<float>{0, 1, 2, 3});
}

TEST_CASE("a blob that is no blob is refused", "[aten]") {
  const Device device;
  CallError error;
  npu_model* model = nullptr;
  const std::string text = Model().input("x", range({1})).output("x").text();
  std::string blob;
  REQUIRE(api().compile(device.get(), text, {}, nullptr, &blob, &error) == NPU_OK);
  CHECK(api().load(device.get(), blob.substr(0, 4), {}, &model, &error) == NPU_INVALID);
  CHECK(std::string(error.text) == "the blob is too short");
  CHECK(api().load(device.get(), blob.substr(0, blob.size() - 1), {}, &model, &error) ==
        NPU_INVALID);
  CHECK(api().load(device.get(), text, {}, &model, &error) == NPU_INVALID);
  CHECK(std::string(error.text) == "the blob is not of the aten backend");
  std::string newer = blob;
  newer[8] = 9;
  CHECK(api().load(device.get(), newer, {}, &model, &error) == NPU_INVALID);
  CHECK(std::string(error.text) == "the blob has version 9, expected 1; compile it again");
  CHECK(model == nullptr);
  CHECK(api().compile(device.get(), "{", {}, nullptr, &blob, &error) == NPU_INVALID);
}

TEST_CASE("inputs and outputs are checked against the sub-IR", "[aten]") {
  const Device device;
  Model model = one_node("aten.relu.default", {{"x", range({3})}}, {}, {{"y", {3}}});
  Loaded loaded(device, model);
  CallError error;
  const std::vector<npu_buffer*> outputs = loaded.make_outputs();
  CHECK(api().run(loaded.program(), {}, outputs, &error) == NPU_INVALID);
  CHECK(std::string(error.text) == "expected 1 inputs, found 0");
  npu_buffer* input = nullptr;
  const HostTensor other = i64({3}, {1, 2, 3});
  REQUIRE(api().import_tensor(device.get(), other.view("x"), &input, &error) == NPU_OK);
  CHECK(api().run(loaded.program(), {input}, outputs, &error) == NPU_INVALID);
  CHECK(std::string(error.text) == "input 'x': expected float32 [3], found int64 [3]");
  CHECK(api().run(loaded.program(), {input}, {}, &error) == NPU_INVALID);
  api()->buffer_free(input);
  api()->buffer_free(outputs[0]);
}

TEST_CASE("times have one entry per node", "[aten]") {
  const Device device;
  Model model;
  model.input("x", range({64, 64}))
      .node("mm", "aten.mm.default", {"x", "x"}, {}, {{"mm", {64, 64}}})
      .node("relu", "aten.relu.default", {"mm"}, {}, {{"relu", {64, 64}}})
      .output("relu");
  Loaded loaded(device, model);
  std::vector<npu_span> times(3);
  CHECK(loaded.run(times.data(), 2).size() == 1);
  CHECK(times[0].end > times[0].begin);
  CHECK(times[1].end > times[1].begin);
  CHECK_THROWS_AS(loaded.run(times.data(), 3), Failure);
}

// ---- arguments

TEST_CASE("defaults come from libtorch's schema", "[aten]") {
  // 1x1x3x3 of 0..8, kernel of ones 2x2: 0+1+3+4 = 8, 1+2+4+5 = 12, 3+4+6+7 = 20, 4+5+7+8 = 24.
  const std::vector<std::pair<std::string, HostTensor>> operands = {
      {"x", range({1, 1, 3, 3})}, {"w", range({1, 1, 2, 2}, 1, 0)}};
  SECTION("none given") {
    const auto y = run(one_node("aten.conv2d.default", operands, {}, {{"y", {1, 1, 2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{8, 12, 20, 24});
  }
  SECTION("a list, and one value for all") {
    // stride 2, padding 1: windows at -1 and 1: {0}, {1,2}, {3,6}, {4,5,7,8}.
    for (const Json& stride : {Json({2, 2}), Json({2}), Json(2)}) {
      if (stride == Json({2})) continue;  // int[2] of one element: see the next section
      const auto y =
          run(one_node("aten.conv2d.default", operands, {{"stride", stride}, {"padding", {1, 1}}},
                       {{"y", {1, 1, 2, 2}}}));
      CHECK(y[0].floats() == std::vector<float>{0, 3, 9, 24});
    }
  }
  SECTION("an optional tensor in the middle") {
    auto with_bias = operands;
    with_bias.emplace_back("b", f32({1}, {100}));
    const auto y =
        run(one_node("aten.conv2d.default", with_bias, {{"groups", 1}}, {{"y", {1, 1, 2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{108, 112, 120, 124});
  }
}

TEST_CASE("resampled elements of 16 bits come from the places of float32", "[aten]") {
  // 0, 1, ..., 14 twice; row 3 of 9 is row 3 * 15 / 9 = 5.
  std::vector<std::uint16_t> numbers;
  for (int i = 0; i < 30; ++i) {
    numbers.push_back(
        static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(i % 15)) >> 16));
  }
  const HostTensor y = run(one_node(
      "aten.upsample_nearest2d.vec", {{"x", bits16("bfloat16", {1, 2, 15, 1}, numbers)}},
      {{"output_size", {9, 1}}, {"scale_factors", nullptr}}, {{"y", {1, 2, 9, 1}, "bfloat16"}}))[0];
  std::vector<std::uint16_t> rows;
  for (const int row : {0, 1, 3, 5, 6, 8, 10, 11, 13}) rows.push_back(numbers[row]);
  rows.insert(rows.end(), rows.begin(), rows.begin() + 9);
  CHECK(y.as<std::uint16_t>() == rows);
}

TEST_CASE("a number in place of a tensor does not widen the other operand", "[aten]") {
  const auto one = [](const HostTensor& x, const std::string& op, const Json& other,
                      const std::string& dtype) {
    return run(one_node(op, {{"x", x}}, {{"other", other}}, {{"y", x.shape, dtype}}))[0];
  };
  CHECK(one(f32({2}, {1, 3}), "aten.mul.Tensor", 0.5, "float32").floats() ==
        std::vector<float>{0.5F, 1.5F});
  CHECK(one(i64({2}, {1, 3}), "aten.add.Tensor", 2, "int64").ints() ==
        std::vector<std::int64_t>{3, 5});
  // 3.0 and 1.5 in bfloat16.
  CHECK(one(bits16("bfloat16", {1}, {0x4040}), "aten.mul.Tensor", 0.5, "bfloat16")
            .as<std::uint16_t>() == std::vector<std::uint16_t>{0x3fc0});
  CHECK(one(i64({2}, {1, 3}), "aten.mul.Tensor", 0.5, "float32").floats() ==
        std::vector<float>{0.5F, 1.5F});
  CHECK(one(f32({2}, {1, 3}), "aten.add.Tensor", true, "float32").floats() ==
        std::vector<float>{2, 4});
  CHECK(one(f32({2}, {1, 3}), "aten.maximum.default", "-inf", "float32").floats() ==
        std::vector<float>{1, 3});
  CHECK(one(i64({1}, {9007199254740993}), "aten.add.Tensor", 9007199254740993, "int64").ints() ==
        std::vector<std::int64_t>{18014398509481986});
}

TEST_CASE("aten: argument types", "[aten]") {
  const auto x = range({2, 3});  // 0 1 2 / 3 4 5
  SECTION("Scalar, keyword only") {
    const auto y =
        run(one_node("aten.add.Tensor", {{"x", x}, {"z", x}}, {{"alpha", 3}}, {{"y", {2, 3}}}));
    CHECK(y[0].floats() == std::vector<float>{0, 4, 8, 12, 16, 20});
  }
  SECTION("int list, bool, dtype") {
    const auto y = run(one_node("aten.sum.dim_IntList", {{"x", x}},
                                {{"dim", {-1}}, {"keepdim", true}, {"dtype", "torch.float64"}},
                                {{"y", {2, 1}, "float64"}}));
    CHECK(y[0].as<double>() == std::vector<double>{3, 12});
  }
  SECTION("None for an optional list") {
    const auto y =
        run(one_node("aten.sum.dim_IntList", {{"x", x}}, {{"dim", nullptr}}, {{"y", {}}}));
    CHECK(y[0].floats() == std::vector<float>{15});
  }
  SECTION("infinities as strings") {
    const auto y = run(one_node("aten.clamp.default", {{"x", f32({3}, {-kInfinity, 2, kInfinity})}},
                                {{"min", "-inf"}, {"max", 1.5}}, {{"y", {3}}}));
    CHECK(y[0].floats() == std::vector<float>{-kInfinity, 1.5F, 1.5F});
    const auto full =
        run(one_node("aten.full.default", {},
                     {{"size", {2}}, {"fill_value", "nan"}, {"dtype", "float32"}}, {{"y", {2}}}));
    CHECK(std::isnan(full[0].floats()[0]));
  }
  SECTION("device meta, layout, pin_memory") {
    const auto y = run(one_node("aten.zeros.default", {},
                                {{"size", {2, 2}},
                                 {"dtype", "torch.int64"},
                                 {"device", "meta"},
                                 {"layout", "torch.strided"},
                                 {"pin_memory", false}},
                                {{"y", {2, 2}, "int64"}}));
    CHECK(y[0].ints() == std::vector<std::int64_t>(4, 0));
  }
  SECTION("a device of the exporting machine") {
    const auto y =
        run(one_node("aten._to_copy.default", {{"x", x}},
                     {{"device", "cuda:0"}, {"dtype", "torch.int32"}}, {{"y", {2, 3}, "int32"}}));
    CHECK(y[0].as<std::int32_t>() == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  }
  SECTION("memory format; the output is row-major whatever it is") {
    const auto image = range({1, 2, 2, 2});
    const auto y = run(one_node("aten.clone.default", {{"x", image}},
                                {{"memory_format", "torch.channels_last"}}, {{"y", {1, 2, 2, 2}}}));
    CHECK(y[0].floats() == image.floats());
  }
  SECTION("string") {
    const auto y =
        run(one_node("aten.div.Tensor_mode", {{"x", f32({2}, {7, -7})}, {"z", f32({2}, {2, 2})}},
                     {{"rounding_mode", "floor"}}, {{"y", {2}}}));
    CHECK(y[0].floats() == std::vector<float>{3, -4});
    const auto e =
        run(one_node("aten.einsum.default", {{"x", x}},
                     {{"equation", "ij->ji"}, {"_tensor_list_sizes", {1}}}, {{"y", {3, 2}}}));
    CHECK(e[0].floats() == std::vector<float>{0, 3, 1, 4, 2, 5});
  }
  SECTION("float list") {
    const auto y = run(one_node("aten.upsample_nearest2d.vec", {{"x", range({1, 1, 1, 2})}},
                                {{"output_size", nullptr}, {"scale_factors", {2.0, 1.0}}},
                                {{"y", {1, 1, 2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{0, 1, 0, 1});
  }
  SECTION("generator") {
    const auto y = run(one_node("aten.bernoulli.p", {{"x", x}},
                                {{"p", 1.0}, {"generator", nullptr}}, {{"y", {2, 3}}}));
    CHECK(y[0].floats() == std::vector<float>(6, 1));
  }
  SECTION("int for a float, SymInt lists") {
    const auto y = run(one_node("aten.dropout.default", {{"x", x}}, {{"p", 0}, {"train", false}},
                                {{"y", {2, 3}}}));
    CHECK(y[0].floats() == x.floats());
    const auto e = run(one_node("aten.expand.default", {{"x", range({1, 2})}}, {{"size", {2, -1}}},
                                {{"y", {2, 2}}}));
    CHECK(e[0].floats() == std::vector<float>{0, 1, 0, 1});
  }
  SECTION("scalar list") {
    const auto y = run(
        one_node("aten._foreach_add.ScalarList", {{"x", range({1})}, {"z", range({2})}},
                 {{"scalars", {1.5, 2}}, {"_tensor_list_sizes", {2}}}, {{"a", {1}}, {"b", {2}}}));
    CHECK(y[0].floats() == std::vector<float>{1.5F});
    CHECK(y[1].floats() == std::vector<float>{2, 3});
  }
  SECTION("an unknown keyword argument that is None") {
    const auto y = run(
        one_node("aten.relu.default", {{"x", x}}, {{"newer_argument", nullptr}}, {{"y", {2, 3}}}));
    CHECK(y[0].floats() == x.floats());
  }
}

TEST_CASE("tensor lists", "[aten]") {
  SECTION("cat") {
    const auto y =
        run(one_node("aten.cat.default", {{"a", range({1, 2})}, {"b", range({2, 2}, 10)}},
                     {{"_tensor_list_sizes", {2}}}, {{"y", {3, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{0, 1, 10, 11, 12, 13});
  }
  SECTION("one tensor twice") {
    Model model;
    model.input("x", range({1, 2}))
        .node("r", "aten.neg.default", {"x"}, {}, {{"r", {1, 2}}})
        .node("c", "aten.cat.default", {"r", "r"}, {{"_tensor_list_sizes", {2}}, {"dim", 1}},
              {{"c", {1, 4}}})
        .output("c");
    CHECK(run(model)[0].floats() == std::vector<float>{-0.0F, -1, -0.0F, -1});
  }
  SECTION("None masks") {
    // x[:, [2, 0]]
    const auto y =
        run(one_node("aten.index.Tensor", {{"x", range({2, 3})}, {"i", i64({2}, {2, 0})}},
                     {{"_tensor_list_sizes", {1}}, {"_tensor_list_none_masks", {{true, false}}}},
                     {{"y", {2, 2}}}));
    CHECK(y[0].floats() == std::vector<float>{2, 0, 5, 3});
  }
  SECTION("two lists") {
    // lstm with hidden size 1: input lists hx (2) and params (4).
    const auto zeros = [](Shape shape) { return range(std::move(shape), 0, 0); };
    const auto y = run(one_node("aten.lstm.input",
                                {{"x", range({2, 1, 3})},
                                 {"h", range({1, 1, 1}, 0, 0)},
                                 {"c", range({1, 1, 1}, 4, 0)},
                                 {"wi", zeros({4, 3})},
                                 {"wh", zeros({4, 1})},
                                 {"bi", zeros({4})},
                                 {"bh", zeros({4})}},
                                {{"_tensor_list_sizes", {2, 4}},
                                 {"has_biases", true},
                                 {"num_layers", 1},
                                 {"dropout", 0.0},
                                 {"train", false},
                                 {"bidirectional", false},
                                 {"batch_first", false}},
                                {{"o", {2, 1, 1}}, {"hn", {1, 1, 1}}, {"cn", {1, 1, 1}}}));
    // All gates are 0.5, the candidate is 0: the cell halves from 4 to 2 to 1; h = 0.5 tanh(cell).
    check_near(y[0].floats(), {0.5F * std::tanh(2.0F), 0.5F * std::tanh(1.0F)});
    check_near(y[2].floats(), {1.0F});
  }
}

TEST_CASE("zero-size and 0-d tensors", "[aten]") {
  const auto sum = run(one_node("aten.sum.default", {{"x", f32({0, 3}, {})}}, {}, {{"y", {}}}));
  CHECK(sum[0].floats() == std::vector<float>{0});
  const auto empty =
      run(one_node("aten.mul.Tensor", {{"x", f32({0, 3}, {})}}, {{"other", 2}}, {{"y", {0, 3}}}));
  CHECK(empty[0].bytes.empty());
  const auto scalar = run(one_node("aten.neg.default", {{"x", f32({}, {2})}}, {}, {{"y", {}}}));
  CHECK(scalar[0].floats() == std::vector<float>{-2});
  Model weights;
  weights.weight("w", f32({0}, {}))
      .node("n", "aten.sum.default", {"w"}, {}, {{"y", {}}})
      .output("y");
  CHECK(run(weights)[0].floats() == std::vector<float>{0});
}

TEST_CASE("every dtype passes bit for bit", "[aten]") {
  const std::vector<HostTensor> tensors = {range({2}),
                                           make<double>("float64", {2}, {1e300, -0.0}),
                                           bits16("float16", {2}, {0x0001, 0xfc00}),
                                           bits16("bfloat16", {2}, {0x0001, 0xff80}),
                                           make<std::int8_t>("int8", {2}, {-128, 127}),
                                           make<std::uint8_t>("uint8", {2}, {0, 255}),
                                           make<std::int16_t>("int16", {2}, {-32768, 1}),
                                           make<std::int32_t>("int32", {2}, {INT32_MIN, 1}),
                                           i64({2}, {INT64_MIN, 1}),
                                           boolean({2}, {0, 1}),
                                           make<float>("complex64", {1}, {1, -2}),
                                           make<double>("complex128", {1}, {1, -2})};
  for (const HostTensor& tensor : tensors) {
    INFO(tensor.dtype);
    Model model;
    model.input("x", tensor)
        .weight("w", tensor)
        .node("c", "aten.cat.default", {"x", "w"}, {{"_tensor_list_sizes", {2}}},
              {{"c", {2 * tensor.shape[0]}, tensor.dtype}})
        .output("c");
    auto expected = tensor.bytes;
    expected.insert(expected.end(), tensor.bytes.begin(), tensor.bytes.end());
    CHECK(run(model)[0].bytes == expected);
  }
}

// ---- in-place ops

TEST_CASE("in-place ops are functional", "[aten]") {
  const auto x = f32({3}, {-1, 2, -3});
  const std::vector<float> relu = {0, 2, 0};
  SECTION("on an input") {  // Loaded::run checks that the input stays
    CHECK(run(one_node("aten.relu_.default", {{"x", x}}, {}, {{"y", {3}}}))[0].floats() == relu);
  }
  SECTION("with another reader, before and after") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("r", "aten.relu_.default", {"a"}, {}, {{"r", {3}}})
        .node("s", "aten.add.Tensor", {"a", "r"}, {}, {{"s", {3}}})
        .output("s");
    CHECK(run(model)[0].floats() == std::vector<float>{-1, 4, -3});
  }
  SECTION("as the only reader, twice in a row") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("r", "aten.relu_.default", {"a"}, {}, {{"r", {3}}})
        .node("s", "aten.add_.Tensor", {"r"}, {{"other", 1}}, {{"s", {3}}})
        .output("s");
    CHECK(run(model)[0].floats() == std::vector<float>{1, 3, 1});
  }
  SECTION("on a view of a value that is read later") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("v", "aten.view.default", {"a"}, {{"size", {1, 3}}}, {{"v", {1, 3}}})
        .node("r", "aten.relu_.default", {"v"}, {}, {{"r", {1, 3}}})
        .output("r")
        .output("a");
    const auto results = run(model);
    CHECK(results[0].floats() == relu);
    CHECK(results[1].floats() == x.floats());
  }
  SECTION("on a view of an input and of a weight in read-only memory") {
    void* const page =
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(page != MAP_FAILED);
    std::memcpy(page, x.bytes.data(), x.bytes.size());
    REQUIRE(::mprotect(page, 4096, PROT_READ) == 0);
    Model model;
    model.input("x", x).weight("w", x);
    for (const std::string operand : {"x", "w"}) {
      model
          .node("v" + operand, "aten.unsqueeze.default", {operand}, {{"dim", 0}},
                {{"v" + operand, {1, 3}}})
          .node("r" + operand, "aten.relu_.default", {"v" + operand}, {}, {{"r" + operand, {1, 3}}})
          .output("r" + operand);
    }
    const Device device;
    Loaded loaded(device, model, {tensor_view("w", NPU_FLOAT32, x.shape, page, 12)});
    for (const HostTensor& result : loaded.run()) CHECK(result.floats() == relu);
    ::munmap(page, 4096);
  }
  SECTION("writing an operand that is read by the same op") {
    Model model;
    model.input("x", x)
        .node("a", "aten.mul.Tensor", {"x"}, {{"other", 1.0}}, {{"a", {3}}})
        .node("s", "aten.add_.Tensor", {"a", "a"}, {}, {{"s", {3}}})
        .output("s")
        .output("a");
    const auto results = run(model);
    CHECK(results[0].floats() == std::vector<float>{-2, 4, -6});
    CHECK(results[1].floats() == x.floats());
  }
  SECTION("on an expanded value, whose elements share memory") {
    Model model;
    model.input("x", f32({1}, {5}))
        .node("a", "aten.neg.default", {"x"}, {}, {{"a", {1}}})
        .node("e", "aten.expand.default", {"a"}, {{"size", {2}}}, {{"e", {2}}})
        .node("s", "aten.add_.Tensor", {"e"}, {{"other", 1}}, {{"s", {2}}})
        .output("s");
    CHECK(run(model)[0].floats() == std::vector<float>{-4, -4});
  }
  SECTION("copy_, fill_, masked_fill_") {
    CHECK(run(one_node("aten.copy_.default", {{"x", x}, {"y", f32({1}, {7})}}, {}, {{"r", {3}}}))[0]
              .floats() == std::vector<float>{7, 7, 7});
    CHECK(
        run(one_node("aten.fill_.Scalar", {{"x", x}}, {{"value", 2}}, {{"r", {3}}}))[0].floats() ==
        std::vector<float>{2, 2, 2});
    CHECK(run(one_node("aten.masked_fill_.Scalar", {{"x", x}, {"m", boolean({3}, {1, 0, 0})}},
                       {{"value", "-inf"}}, {{"r", {3}}}))[0]
              .floats() == std::vector<float>{-kInfinity, 2, -3});
  }
  SECTION("an op that changes the shape") {
    Model model;
    model.input("x", x)
        .node("u", "aten.unsqueeze_.default", {"x"}, {{"dim", 0}}, {{"u", {1, 3}}})
        .node("s", "aten.neg.default", {"x"}, {}, {{"s", {3}}})
        .output("u")
        .output("s");
    CHECK(run(model)[0].floats() == x.floats());
    const auto r = run(one_node("aten.resize_.default", {{"x", x}}, {{"size", {2}}}, {{"r", {2}}}));
    CHECK(r[0].floats() == std::vector<float>{-1, 2});
  }
  SECTION("out arguments, given, too small, and left away") {
    const std::vector<float> sum = {-2, 4, -6};
    for (const HostTensor& out : {range({3}), f32({0}, {})}) {
      CHECK(run(one_node("aten.add.out", {{"x", x}, {"y", x}, {"out", out}}, {}, {{"r", {3}}}))[0]
                .floats() == sum);
    }
    CHECK(run(one_node("aten.add.out", {{"x", x}, {"y", x}}, {}, {{"r", {3}}}))[0].floats() == sum);
  }
  SECTION("an op that returns nothing gives what it wrote") {
    const auto r = run(one_node("aten._foreach_neg_.default", {{"x", x}, {"y", f32({1}, {4})}},
                                {{"_tensor_list_sizes", {2}}}, {{"a", {3}}, {"b", {1}}}));
    CHECK(r[0].floats() == std::vector<float>{1, -2, 3});
    CHECK(r[1].floats() == std::vector<float>{-4});
  }
}

TEST_CASE("running statistics of a batch norm in training stay as they are", "[aten]") {
  // The schema does not annotate that they are written; the weights are read-only memory in
  // practice.
  Model model;
  const auto ones = range({2}, 1, 0);
  const auto zeros = range({2}, 0, 0);
  model.input("x", f32({2, 2}, {0, 0, 2, 4}))
      .weight("g", ones)
      .weight("b", zeros)
      .weight("m", zeros)
      .weight("v", ones)
      .node("n", "aten.batch_norm.default", {"x", "g", "b", "m", "v"},
            {{"training", true}, {"momentum", 0.5}, {"eps", 0.0}, {"cudnn_enabled", false}},
            {{"y", {2, 2}}})
      .node("s", "aten.add.Tensor", {"m", "v"}, {}, {{"s", {2}}})
      .output("y")
      .output("s");
  const auto results = run(model);
  check_near(results[0].floats(), {-1, -1, 1, 1});
  CHECK(results[1].floats() == std::vector<float>{1, 1});
}

// ---- results

TEST_CASE("several results and getitem", "[aten]") {
  Model model;
  model.input("x", f32({2, 3}, {1, 5, 3, 9, 7, 8}))
      .node("t", "aten.topk.default", {"x"}, {{"k", 2}},
            {{"t_0", {2, 2}}, {"t_1", {2, 2}, "int64"}})
      .node("v", "<built-in function getitem>", {"t_0", "t_1"}, {{"index", 0}}, {{"v", {2, 2}}})
      .node("i", "<built-in function getitem>", {"t_0", "t_1"}, {{"index", -1}},
            {{"i", {2, 2}, "int64"}})
      .node("n", "aten.neg.default", {"v"}, {}, {{"n", {2, 2}}});
  SECTION("both") {
    model.output("n").output("i").output("v");
    const auto results = run(model);
    CHECK(results[0].floats() == std::vector<float>{-5, -3, -9, -8});
    CHECK(results[1].ints() == std::vector<std::int64_t>{1, 2, 0, 2});
    CHECK(results[2].floats() == std::vector<float>{5, 3, 9, 8});
  }
  SECTION("one that nobody reads") {
    model.output("n");
    CHECK(run(model)[0].floats() == std::vector<float>{-5, -3, -9, -8});
  }
}

TEST_CASE("getitem is checked when it is compiled", "[aten]") {
  const auto text = [](const Json& attrs, const Shape& shape) {
    Model model;
    model.input("x", range({2}))
        .input("y", range({3}))
        .node("g", "<built-in function getitem>", {"x", "y"}, attrs, {{"g", shape}})
        .output("g");
    const Failure failure = failure_of(model);
    CHECK(failure.status == NPU_INVALID);
    return failure.text;
  };
  for (const Json& attrs :
       {Json{{"index", 2}}, Json{{"index", -3}}, Json{{"index", "a"}}, Json::object()}) {
    CHECK(text(attrs, {2}).starts_with("node 'g' "));
  }
  CHECK(text({{"index", 1}}, {2}) ==
        "node 'g' (<built-in function getitem>): result 'g': expected float32 [2], but value 1 is "
        "float32 [3]");
}

TEST_CASE("lists of results are flattened", "[aten]") {
  const auto r = run(one_node("aten.split.Tensor", {{"x", range({5})}}, {{"split_size", 2}},
                              {{"a", {2}}, {"b", {2}}, {"c", {1}}}));
  CHECK(r[0].floats() == std::vector<float>{0, 1});
  CHECK(r[1].floats() == std::vector<float>{2, 3});
  CHECK(r[2].floats() == std::vector<float>{4});
}

TEST_CASE("numbers as results become 0-d tensors", "[aten]") {
  CHECK(
      run(one_node("aten.item.default", {{"x", f32({1}, {2.5F})}}, {}, {{"y", {}}}))[0].floats() ==
      std::vector<float>{2.5F});
  CHECK(run(one_node("aten._local_scalar_dense.default", {{"x", i64({}, {7})}}, {},
                     {{"y", {}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{7});
  CHECK(run(one_node("aten.equal.default", {{"x", range({2})}, {"y", range({2})}}, {},
                     {{"e", {}, "bool"}}))[0]
            .bytes == std::vector<char>{1});
  CHECK(run(one_node("aten.sym_size.int", {{"x", range({2, 5})}}, {{"dim", -1}},
                     {{"y", {}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{5});
  CHECK(run(one_node("aten.sym_numel.default", {{"x", range({2, 5})}}, {}, {{"y", {}, "int64"}}))[0]
            .ints() == std::vector<std::int64_t>{10});
}

TEST_CASE("outputs share memory with nothing and are row-major", "[aten]") {
  // Loaded::run checks that outputs lie at different addresses and that inputs stay.
  Model model;
  model.input("x", range({2, 3}))
      .weight("w", range({2}, 5))
      .node("t", "aten.t.default", {"x"}, {}, {{"t", {3, 2}}})
      .node("v", "aten.view.default", {"x"}, {{"size", {6}}}, {{"v", {6}}})
      .node("e", "aten.expand.default", {"w"}, {{"size", {2, 2}}}, {{"e", {2, 2}}})
      .node("d", "aten.detach.default", {"w"}, {}, {{"d", {2}}})
      .output("t")
      .output("v")
      .output("v")
      .output("x")
      .output("e")
      .output("d")
      .output("w");
  const auto results = run(model);
  CHECK(results[0].floats() == std::vector<float>{0, 3, 1, 4, 2, 5});
  CHECK(results[1].floats() == results[2].floats());
  CHECK(results[3].floats() == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(results[4].floats() == std::vector<float>{5, 6, 5, 6});
  CHECK(results[6].floats() == std::vector<float>{5, 6});
  const auto conjugate =
      run(one_node("aten._conj.default", {{"x", make<float>("complex64", {1}, {1, 2})}}, {},
                   {{"y", {1}, "complex64"}}));
  CHECK(conjugate[0].as<float>() == std::vector<float>{1, -2});
}

TEST_CASE("a view of a value with other strides becomes a copy", "[aten]") {
  Model model;
  model.input("x", range({2, 3}))
      .node("t", "aten.t.default", {"x"}, {}, {{"t", {3, 2}}})
      .node("v", "aten.view.default", {"t"}, {{"size", {6}}}, {{"v", {6}}})
      .output("v");
  CHECK(run(model)[0].floats() == std::vector<float>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("a result that disagrees with the document fails", "[aten]") {
  const Failure shape =
      failure_of(one_node("aten.relu.default", {{"x", range({2, 3})}}, {}, {{"y", {3, 2}}}));
  CHECK(shape.status == NPU_FAILED);
  CHECK(shape.text ==
        "node 'n' (aten.relu.default): result 'y': expected float32 [3, 2], found float32 [2, 3]");
  const Failure dtype = failure_of(
      one_node("aten.gt.Scalar", {{"x", range({2})}}, {{"other", 0}}, {{"y", {2}, "int64"}}));
  CHECK(dtype.text == "node 'n' (aten.gt.Scalar): result 'y': expected int64 [2], found bool [2]");
  const Failure count =
      failure_of(one_node("aten.relu.default", {{"x", range({2})}}, {}, {{"y", {2}}, {"z", {2}}}));
  CHECK(count.text == "node 'n' (aten.relu.default): expected 2 results, found 1");
}

TEST_CASE("a program runs again after it failed", "[aten]") {
  const Device device;
  Model model;
  model.input("x", f32({2}, {1, 0}))
      .node("c", "aten.cat.default", {"x", "x"}, {{"_tensor_list_sizes", {2}}}, {{"c", {4}}})
      .node("a", "aten._assert_async.default", {"x"}, {}, {})
      .output("c");
  Loaded loaded(device, model);
  for (int i = 0; i < 2; ++i) {
    try {
      loaded.run();
      FAIL("expected a failure");
    } catch (const Failure& failure) {
      CHECK(failure.status == NPU_FAILED);
      CHECK(failure.text.starts_with("node 'a' (aten._assert_async.default): "));
    }
  }
}

TEST_CASE("a long chain", "[aten]") {
  Model model;
  model.input("x", range({4})).input("y", range({4}, 1, 0));
  std::string previous = "x";
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "add_" + std::to_string(i);
    model.node(name, "aten.add.Tensor", {previous, "y"}, {}, {{name, {4}}});
    previous = name;
  }
  model.output(previous);
  CHECK(run(model)[0].floats() == std::vector<float>{1000, 1001, 1002, 1003});
}

// ---- weights

TEST_CASE("weights are checked when they are loaded", "[aten]") {
  Model model;
  model.input("x", range({2}))
      .weight("w", range({2}, 3))
      .node("n", "aten.add.Tensor", {"x", "w"}, {}, {{"y", {2}}})
      .output("y");
  CHECK(run(model)[0].floats() == std::vector<float>{3, 5});
  SECTION("missing") {
    model.weights().clear();
    const Failure failure = failure_of(model);
    CHECK(failure.status == NPU_INVALID);
    CHECK(failure.text == "weight 'w' is missing");
  }
  SECTION("another shape") {
    model.weights()[0].second = range({1, 2});
    CHECK(failure_of(model).text == "weight 'w': expected float32 [2], found float32 [1, 2]");
  }
  SECTION("another dtype") {
    model.weights()[0].second = i64({2}, {1, 2});
    CHECK(failure_of(model).text == "weight 'w': expected float32 [2], found int64 [2]");
  }
  SECTION("twice") {
    model.weights().push_back(model.weights()[0]);
    CHECK(failure_of(model).text == "weight 'w' is given twice");
  }
  SECTION("not aligned") {
    std::vector<char> storage(9);
    std::memcpy(storage.data() + 1, model.weights()[0].second.bytes.data(), 8);
    const Shape shape = {2};
    const Device device;
    const npu_tensor weight = tensor_view("w", NPU_FLOAT32, shape, storage.data() + 1, 8);
    Loaded loaded(device, model, {weight});
    CHECK(loaded.run()[0].floats() == std::vector<float>{3, 5});
  }
}

}  // namespace
}  // namespace npu::test::aten
