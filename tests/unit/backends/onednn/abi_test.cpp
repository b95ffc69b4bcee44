// SPDX-License-Identifier: Apache-2.0
// The onednn backend through its C ABI alone: what it says of itself, what it refuses, and what the
// ABI promises about buffers, aliases and errors.
#include <cstdint>
#include <cstring>
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
