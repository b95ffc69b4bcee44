// SPDX-License-Identifier: Apache-2.0
// The sources of weights, and the messages for weights that are missing.
#include "npu/runtime/weight_store.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

// Reads w [2] float32 by placeholder and b [] int64 unmapped; the weight that nobody reads is not
// needed.
Graph two_weights() {
  return read_valid_graph(R"({
    "graph_inputs": [{"name": "x", "shape": [2], "dtype": "float32"}], "graph_outputs": [{"name": "n"}],
    "weights": [{"name": "layer.w", "shape": [2], "dtype": "float32"}, {"name": "b", "shape": [], "dtype": "int64"},
                {"name": "unread", "shape": [9], "dtype": "float32"}],
    "weight_name_mapping": {"p_layer_w": "layer.w"},
    "nodes": [{"name": "n", "op_type": "custom", "inputs": [{"name": "x"}, {"name": "p_layer_w"}, {"name": "b"}],
               "outputs": [{"shape": [2], "dtype": "float32"}]}]})",
                          "m.json");
}

Tensor as_floats(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as_mutable<float>()[i] = values[i];
  return tensor;
}

Tensor int64_scalar(std::int64_t value) {
  Tensor tensor(DType::kInt64, {});
  tensor.as_mutable<std::int64_t>()[0] = value;
  return tensor;
}

const Tensor& weight(const Graph& graph, const std::vector<Tensor>& weights, const char* name) {
  return weights.at(static_cast<std::size_t>(graph.find_tensor(name).value));
}

std::vector<std::string> faults(const Graph& graph, const WeightSource& source) {
  Diagnostics diagnostics;
  load_weights(graph, source, diagnostics);
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics.entries()) {
    lines.push_back(diagnostic.location.file + ": " + diagnostic.text);
  }
  return lines;
}

Graph with_constant(const std::string& dtype, const std::string& shape, const std::string& data) {
  return read_valid_graph(R"({"graph_inputs": [], "graph_outputs": [{"name": "c", "shape": )" +
                              shape + R"(, "dtype": ")" + dtype +
                              R"("}], "nodes": [], "constants": {"c": {"data": )" + data +
                              R"(, "dtype": ")" + dtype + R"("}}})",
                          "c.json");
}

Tensor constant(const std::string& dtype, const std::string& shape, const std::string& data) {
  const Graph graph = with_constant(dtype, shape, data);
  return constant_tensor(graph, graph.tensor(graph.find_tensor("c")));
}

std::string constant_fault(const std::string& dtype, const std::string& shape,
                           const std::string& data) {
  try {
    constant(dtype, shape, data);
    return "good";
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    return error.message();
  }
}

}  // namespace

TEST_CASE("weights: a graph without weights needs none") {
  CHECK(faults(GraphBuilder().build(), {}).empty());
  CHECK(faults(GraphBuilder().input("x").node("a", "custom", {"x"}).build(), {}).empty());
}

TEST_CASE("weights: from a file by state-dict key, or by placeholder name") {
  const TemporaryFolder folder;
  const Graph graph = two_weights();
  for (const char* name : {"layer.w", "p_layer_w"}) {
    CAPTURE(name);
    write_safetensors(
        folder / "w",
        {{name, as_floats({1.5, 2.5})}, {"b", int64_scalar(7)}, {"more", as_floats({1})}});
    Diagnostics diagnostics;
    const std::vector<Tensor> weights =
        load_weights(graph, {.file = folder / "w", .random_seed = {}}, diagnostics);
    CHECK(errors_of(diagnostics).empty());
    CHECK(weights.size() == graph.tensors().size());
    CHECK(weight(graph, weights, "p_layer_w").as<float>()[1] == 2.5F);
    CHECK(weight(graph, weights, "b").as<std::int64_t>()[0] == 7);
    CHECK(weight(graph, weights, "x").data() == nullptr);  // no weight
  }
}

TEST_CASE("weights: the key wins over the placeholder name") {
  const TemporaryFolder folder;
  const Graph graph = two_weights();
  write_safetensors(
      folder / "w",
      {{"p_layer_w", as_floats({1, 1})}, {"layer.w", as_floats({2, 2})}, {"b", int64_scalar(0)}});
  Diagnostics diagnostics;
  const auto weights = load_weights(graph, {.file = folder / "w", .random_seed = {}}, diagnostics);
  CHECK(weight(graph, weights, "p_layer_w").as<float>()[0] == 2);
}

TEST_CASE("weights: everything that is missing or of another type is listed") {
  const TemporaryFolder folder;
  const std::string file = folder / "w";
  write_safetensors(file, {});
  CHECK(faults(two_weights(), {.file = file, .random_seed = {}}) ==
        std::vector<std::string>{file + ": weight 'layer.w' (float32 [2]) is missing",
                                 file + ": weight 'b' (int64 []) is missing"});
  write_safetensors(file, {{"layer.w", as_floats({1, 2, 3})}, {"b", as_floats({1})}});
  CHECK(faults(two_weights(), {.file = file, .random_seed = {}}) ==
        std::vector<std::string>{
            file + ": weight 'layer.w' is float32 [3], the graph says float32 [2]",
            file + ": weight 'b' is float32 [1], the graph says int64 []"});
  // Either of the two alone.
  Tensor bfloats(DType::kBFloat16, {2});
  write_safetensors(file, {{"layer.w", bfloats}, {"b", int64_scalar(1)}});
  CHECK(faults(two_weights(), {.file = file, .random_seed = {}}) ==
        std::vector<std::string>{file +
                                 ": weight 'layer.w' is bfloat16 [2], the graph says float32 [2]"});
  write_safetensors(file, {{"layer.w", as_floats({1})}, {"b", int64_scalar(1)}});
  CHECK(faults(two_weights(), {.file = file, .random_seed = {}}) ==
        std::vector<std::string>{file +
                                 ": weight 'layer.w' is float32 [1], the graph says float32 [2]"});
}

TEST_CASE("weights: without file and seed the advice comes once") {
  CHECK(faults(two_weights(), {}) ==
        std::vector<std::string>{
            "m.json: weight 'layer.w' has no data: give --weights FILE or --random-weights SEED"});
}

TEST_CASE("weights: a file that is missing or damaged is an error") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(faults(two_weights(), {.file = folder / "none", .random_seed = {}}), Error);
  write_file_atomically(folder / "short", "abc");
  CHECK_THROWS_AS(faults(two_weights(), {.file = folder / "short", .random_seed = {}}), Error);
}

TEST_CASE("weights: a seed makes up what the file lacks, the same every time") {
  const TemporaryFolder folder;
  const Graph graph = two_weights();
  write_safetensors(folder / "w", {{"b", int64_scalar(7)}});
  Diagnostics diagnostics;
  const auto first = load_weights(graph, {.file = folder / "w", .random_seed = 3}, diagnostics);
  const auto again = load_weights(graph, {.file = {}, .random_seed = 3}, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(weight(graph, first, "b").as<std::int64_t>()[0] == 7);
  CHECK(weight(graph, again, "b").as<std::int64_t>()[0] == 0);
  CHECK(weight(graph, first, "p_layer_w").as<float>()[0] ==
        weight(graph, again, "p_layer_w").as<float>()[0]);
}

TEST_CASE("weights: two placeholders of one key get the same data") {
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [], "graph_outputs": [{"name": "p_one"}, {"name": "p_two"}],
    "weights": [{"name": "shared", "shape": [2], "dtype": "float32"}],
    "weight_name_mapping": {"p_one": "shared", "p_two": "shared"}, "nodes": []})",
                                       "f");
  const TemporaryFolder folder;
  write_safetensors(folder / "w", {{"shared", as_floats({1, 2})}});
  Diagnostics diagnostics;
  const auto from_file =
      load_weights(graph, {.file = folder / "w", .random_seed = {}}, diagnostics);
  CHECK(weight(graph, from_file, "p_one").data() == weight(graph, from_file, "p_two").data());
  const auto made_up = load_weights(graph, {.file = {}, .random_seed = 1}, diagnostics);
  CHECK(weight(graph, made_up, "p_one").as<float>()[1] ==
        weight(graph, made_up, "p_two").as<float>()[1]);
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("weights: a constant has the data of the document, unless the file has it") {
  const Graph graph = with_constant("float32", "[2]", "[1.5, 2.5]");
  Diagnostics diagnostics;
  auto weights = load_weights(graph, {}, diagnostics);
  CHECK(weight(graph, weights, "c").as<float>()[1] == 2.5F);
  const TemporaryFolder folder;
  write_safetensors(folder / "w", {{"c", as_floats({8, 9})}});
  weights = load_weights(graph, {.file = folder / "w", .random_seed = {}}, diagnostics);
  CHECK(weight(graph, weights, "c").as<float>()[1] == 9);
  weights = load_weights(graph, {.file = {}, .random_seed = 1}, diagnostics);
  CHECK(weight(graph, weights, "c").as<float>()[1] == 2.5F);
  CHECK_FALSE(diagnostics.has_errors());
}

TEST_CASE("constants: flat, nested and scalar data") {
  CHECK(constant("float32", "[]", "3").as<float>()[0] == 3);
  CHECK(constant("int64", "[2, 2]", "[[1, 2], [3, 4]]").as<std::int64_t>()[3] == 4);
  CHECK(constant("int64", "[2, 2]", "[1, 2, 3, 4]").as<std::int64_t>()[2] == 3);
  CHECK(constant("int64", "[0]", "[]").element_count() == 0);
}

TEST_CASE("constants: floats of every width, infinite and NaN ones as text") {
  CHECK(constant("float64", "[]", "0.1").as<double>()[0] == 0.1);
  CHECK(constant("float32", "[]", "0.1").as<float>()[0] == 0.1F);
  CHECK(constant("float16", "[]", "1.5").as<std::uint16_t>()[0] == 0x3e00);
  CHECK(constant("bfloat16", "[]", "-1.5").as<std::uint16_t>()[0] == 0xbfc0);
  CHECK(constant("float32", "[]", "\"-inf\"").as<float>()[0] == -HUGE_VALF);
  CHECK(std::isnan(constant("float32", "[]", "\"nan\"").as<float>()[0]));
  CHECK(constant("float32", "[]", "true").as<float>()[0] == 1);
}

TEST_CASE("constants: integers at the limits of their dtype") {
  struct Row {
    const char* dtype;
    const char* least;
    const char* below;
    const char* most;
    const char* above;
  };
  for (const Row& row :
       std::vector<Row>{{"int8", "-128", "-129", "127", "128"},
                        {"uint8", "0", "-1", "255", "256"},
                        {"int16", "-32768", "-32769", "32767", "32768"},
                        {"int32", "-2147483648", "-2147483649", "2147483647", "2147483648"}}) {
    CAPTURE(row.dtype);
    for (const char* good : {row.least, row.most}) {
      CHECK(constant(row.dtype, "[]", good).value_as_double(0) == std::stod(good));
    }
    for (const char* bad : {row.below, row.above}) {
      CHECK(constant_fault(row.dtype, "[]", bad) == "constant 'c' holds " + std::string(bad) +
                                                        ", which " + row.dtype +
                                                        " cannot represent");
    }
    CHECK(constant_fault(row.dtype, "[]", "18446744073709551615") ==
          "constant 'c' holds 18446744073709551615, which is no 64-bit integer");
  }
  CHECK(constant("int64", "[]", "9223372036854775807").as<std::int64_t>()[0] == INT64_MAX);
  CHECK(constant("int64", "[]", "-9223372036854775808").as<std::int64_t>()[0] == INT64_MIN);
  CHECK(constant_fault("int64", "[]", "9223372036854775808") ==
        "constant 'c' holds 9223372036854775808, which is no 64-bit integer");
}

TEST_CASE("constants: integers from floats and bools, where nothing is lost") {
  CHECK(constant("int32", "[]", "3.0").as<std::int32_t>()[0] == 3);
  CHECK(constant("int32", "[]", "true").as<std::int32_t>()[0] == 1);
  CHECK(constant_fault("int32", "[]", "3.5") ==
        "constant 'c' holds 3.5, which is no 64-bit integer");
  CHECK(constant_fault("int64", "[]", "1e19") ==
        "constant 'c' holds 1e+19, which is no 64-bit integer");
  CHECK(constant_fault("int64", "[]", "\"inf\"") ==
        "constant 'c' holds \"inf\", which is no 64-bit integer");
  CHECK(constant("bool", "[4]", "[true, false, 1, 0]").as<std::uint8_t>()[2] == 1);
  CHECK(constant("bool", "[4]", "[true, false, 1, 0]").as<std::uint8_t>()[3] == 0);
  CHECK(constant("bool", "[1]", "[0.5]").as<std::uint8_t>()[0] == 1);
}

TEST_CASE("constants: complex ones belong into the weights file") {
  CHECK(constant_fault("complex64", "[]", "1") ==
        "constant 'c' has dtype complex64, which `constants` cannot hold; put it into the weights "
        "file");
}

TEST_CASE("constants: a number of values that only a later mention refutes") {
  // The first mention has no shape, so the reader cannot compare yet.
  const Graph graph = read_valid_graph(R"({
    "graph_inputs": [], "graph_outputs": [{"name": "c", "shape": [3]}],
    "nodes": [{"name": "n", "op_type": "custom", "inputs": [{"name": "c"}], "outputs": [{"shape": [3], "dtype": "int64"}]}],
    "constants": {"c": {"data": [1, 2], "dtype": "int64"}}})",
                                       "f");
  CHECK_THROWS_WITH(constant_tensor(graph, graph.tensor(graph.find_tensor("c"))),
                    "error: constant 'c' has 2 values, its shape [3] needs 3");
}

TEST_CASE("weights file: is found beside the document that names it") {
  Graph graph = GraphBuilder().build();
  CHECK(weights_file_of(graph).empty());
  graph.set_npu_member("weights_file", "w.safetensors");
  graph.file = "models/m.json";
  CHECK(weights_file_of(graph) == "models/w.safetensors");
  graph.file = "m.json";
  CHECK(weights_file_of(graph) == "w.safetensors");
  graph.file = "/data/m.json";
  CHECK(weights_file_of(graph) == "/data/w.safetensors");
  for (const char* file : {"<stdin>", ""}) {
    graph.file = file;
    CHECK(weights_file_of(graph) == "w.safetensors");
  }
  graph.set_npu_member("weights_file", "/abs/w.safetensors");
  graph.file = "models/m.json";
  CHECK(weights_file_of(graph) == "/abs/w.safetensors");
}

TEST_CASE("weights file: is rewritten so that the next reader finds the same file") {
  const auto rebased = [](const std::string& path, const std::string& file,
                          const std::string& output) {
    Graph graph = GraphBuilder().build();
    graph.file = file;
    graph.set_npu_member("weights_file", path);
    rebase_weights_file(graph, output);
    return graph.npu_member("weights_file")->get<std::string>();
  };
  CHECK(rebased("w", "models/m.json", "") == "models/w");  // to stdout
  CHECK(rebased("w", "models/m.json", "models/out.json") == "w");
  CHECK(rebased("w", "models/m.json", "out.json") == "models/w");
  CHECK(rebased("w", "models/m.json", "build/out.json") == "../models/w");
  CHECK(rebased("models/w", "<stdin>", "build/out.json") == "../models/w");
  CHECK(rebased("models/w", "<stdin>", "models/out.json") == "w");
  CHECK(rebased("../w", "a/b/m.json", "") == "a/w");
  CHECK(rebased("/abs/w", "models/m.json", "build/out.json") == "/abs/w");
  // There and back again.
  Graph graph = GraphBuilder().build();
  graph.file = "a/m.json";
  graph.set_npu_member("weights_file", "sub/w");
  rebase_weights_file(graph, "x/y/out.json");
  CHECK(*graph.npu_member("weights_file") == "../../a/sub/w");
  graph.file = "x/y/out.json";
  rebase_weights_file(graph, "a/again.json");
  CHECK(*graph.npu_member("weights_file") == "sub/w");
  // A document that names none stays without.
  Graph none = GraphBuilder().build();
  rebase_weights_file(none, "build/out.json");
  CHECK(none.npu_member("weights_file") == nullptr);
}

TEST_CASE("weights file: of a small model loads for its graph") {
  const std::string file = std::string(NPU_TEST_DATA_DIR) + "/models/small/residual.json";
  Graph graph = read_valid_graph(read_file(file), file);
  const std::string weights = std::string(NPU_TEST_DATA_DIR) + "/models/small/residual.safetensors";
  CHECK(faults(graph, {.file = weights, .random_seed = {}}).empty());
  CHECK((weights_file_of(graph).empty() ||
         std::filesystem::equivalent(weights_file_of(graph), weights)));
}
