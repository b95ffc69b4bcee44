// SPDX-License-Identifier: Apache-2.0
// What an ONNX model says and the import does not know is refused by name: attributes and operands
// that no rule reads, names with two makers, types that are not what the nodes make.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"
#include "tensor/protobuf_wire.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Proto onnx_float(std::string_view name, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  std::string text;
  for (int i = 0; i < 4; ++i) text += static_cast<char>(bits >> (8 * i));
  return Proto().bytes(1, name).fixed32(2, text).number(20, 1);
}

Proto onnx_text(std::string_view name, std::string_view value) {
  return Proto().bytes(1, name).bytes(4, value).number(20, 3);
}

// The errors of a model with one node 'n' of operands x, y, z, ..., four floats each.
std::string refusals_of(std::string_view op, std::uint64_t opset, std::size_t operands,
                        const std::vector<Proto>& attributes, std::string_view domain = "",
                        const std::vector<std::int64_t>& shape = {1, 1, 2, 2}) {
  const std::vector<std::string> names{"x", "y", "z", "u", "v"};
  Proto node = onnx_node(op, {names.begin(), names.begin() + static_cast<std::ptrdiff_t>(operands)},
                         {"out"}, "n");
  for (const Proto& attribute : attributes) node.message(5, attribute);
  Proto graph = Proto().message(1, node.bytes(7, domain));
  for (std::size_t i = 0; i < operands; ++i) graph.message(11, onnx_value(names[i], shape));
  graph.message(12, onnx_result("out"));
  Proto model = onnx_model(graph, opset);
  if (!domain.empty()) model.message(8, Proto().bytes(1, domain).number(2, 1));
  return import_bytes(model.text()).errors;
}

Proto relu_graph() {
  return Proto()
      .message(1, onnx_node("Relu", {"x"}, {"y"}, "r"))
      .message(11, onnx_value("x", {2, 3}));
}

std::string refusals_of(const Proto& graph, std::uint64_t opset = 13) {
  return import_bytes(onnx_model(graph, opset).text()).errors;
}

std::vector<std::string> output_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const TensorId id : graph.graph_outputs()) names.push_back(graph.tensor(id).name);
  return names;
}

// A model whose nodes have one attribute or operand more than they had.
std::string with_surplus(const std::string& model, const Proto& surplus, bool pads_operands) {
  Proto changed;
  for (WireReader field(model); field.next();) {
    if (field.field() != 7) {
      if (field.is_number()) {
        changed.number(field.field(), field.number());
      } else {
        changed.bytes(field.field(), field.bytes());
      }
      continue;
    }
    Proto graph;
    for (WireReader part(field.bytes()); part.next();) {
      if (part.field() != 1) {
        graph.bytes(part.field(), part.bytes());
        continue;
      }
      std::string node(part.bytes());
      std::string operand = "none";
      std::size_t operands = 0;
      for (WireReader own(node); own.next();) {
        if (own.field() != 1) continue;
        ++operands;
        if (!own.bytes().empty()) operand = own.bytes();
      }
      Proto more;
      for (; pads_operands && operands < 20; ++operands) more.bytes(1, "");
      if (pads_operands) more.bytes(1, operand);
      graph.bytes(1, node + more.text() + (pads_operands ? "" : surplus.text()));
    }
    changed.message(7, graph);
  }
  return changed.text();
}

}  // namespace

TEST_CASE("onnx: an attribute that no rule knows is refused by name", "[frontend]") {
  CHECK(refusals_of("Clip", 11, 1, {onnx_float("min", 0), onnx_float("max", 6)}) ==
        "node 'n' (Clip-11): attribute 'min' is one of opsets up to 10 only\n");
  CHECK(refusals_of("Clip", 6, 1, {onnx_float("min", 0), onnx_float("max", 6)}).empty());
  CHECK(refusals_of("Clip", 11, 1, {}).empty());
  CHECK(refusals_of("LeakyRelu", 16, 1, {onnx_float("aplha", 0.2F)}) ==
        "node 'n' (LeakyRelu-16): attribute 'aplha' is not known; known are 'alpha'\n");
  CHECK(refusals_of("Relu", 14, 1, {onnx_float("alpha", 0.2F)}) ==
        "node 'n' (Relu-14): attribute 'alpha' is not known; the op has none\n");
  CHECK(refusals_of("Relu", 5, 1, {onnx_ints("consumed_inputs", {0})}).empty());
  CHECK(refusals_of("Relu", 6, 1, {onnx_ints("consumed_inputs", {0})}) ==
        "node 'n' (Relu-6): attribute 'consumed_inputs' is one of opsets up to 5 only\n");
  CHECK(refusals_of("ReduceSum", 13, 1, {onnx_ints("axes", {1})}) ==
        "node 'n' (ReduceSum-13): attribute 'axes' is one of opsets up to 12 only\n");
  CHECK(refusals_of("ReduceMean", 18, 1, {onnx_ints("axes", {1})}) ==
        "node 'n' (ReduceMean-18): attribute 'axes' is one of opsets up to 17 only\n");
  CHECK(refusals_of("ReduceMean", 17, 1, {onnx_ints("axes", {1})}).empty());
  CHECK(refusals_of("AveragePool", 11, 1,
                    {onnx_ints("kernel_shape", {2, 2}), onnx_ints("dilations", {2, 2})}) ==
        "node 'n' (AveragePool-11): attribute 'dilations' is one of opsets from 19 on\n");
  CHECK(
      refusals_of("MaxPool", 8, 1, {onnx_ints("kernel_shape", {2, 2}), onnx_int("ceil_mode", 1)}) ==
      "node 'n' (MaxPool-8): attribute 'ceil_mode' is one of opsets from 10 on\n");
  CHECK(refusals_of("Add", 7, 2, {onnx_int("broadcast", 1)}) ==
        "node 'n' (Add-7): attribute 'broadcast' is one of opsets up to 6 only\n");
  CHECK(refusals_of("Softmax", 13, 1, {onnx_int("axis", 1), onnx_int("axes", 1)}) ==
        "node 'n' (Softmax-13): attribute 'axes' is not known; known are 'axis'\n");
  CHECK(refusals_of("Softmax", 13, 1, {onnx_int("axis", 1), onnx_int("axis", 2)}) ==
        "node 'n' (Softmax-13): attribute 'axis' stands there twice\n");
  CHECK(refusals_of("DepthToSpace", 10, 1, {onnx_int("blocksize", 1), onnx_text("mode", "CRD")}) ==
        "node 'n' (DepthToSpace-10): attribute 'mode' is one of opsets from 11 on\n");
  CHECK(refusals_of("RotaryEmbedding", 13, 4, {onnx_float("scale", 2)}, "com.microsoft")
            .find("com.microsoft.RotaryEmbedding-1") != std::string::npos);
}

TEST_CASE("onnx: what an attribute has to agree with is compared", "[frontend]") {
  CHECK(refusals_of("Conv", 13, 2, {onnx_ints("kernel_shape", {2, 2})}).empty());
  CHECK(refusals_of("Conv", 13, 2, {onnx_ints("kernel_shape", {3, 3})}) ==
        "node 'n' (Conv-13): 'kernel_shape' is not that of the weights, [2, 2]\n");
  CHECK(refusals_of("ConvTranspose", 13, 2, {onnx_ints("kernel_shape", {3, 3})}) ==
        "node 'n' (ConvTranspose-13): 'kernel_shape' is not that of the weights, [2, 2]\n");
  CHECK(refusals_of("Split", 18, 1, {onnx_int("num_outputs", 2)}) ==
        "node 'n' (Split-18): 'num_outputs' is not the number of its results, 1\n");
  CHECK(refusals_of("Gelu", 20, 1, {onnx_text("approximate", "erf")}) ==
        "node 'n' (Gelu-20): approximate 'erf'\n");
  CHECK(refusals_of("DepthToSpace", 13, 1, {onnx_int("blocksize", 1), onnx_text("mode", "dcr")}) ==
        "node 'n' (DepthToSpace-13): mode 'dcr'\n");
}

TEST_CASE("onnx: an operand that no rule reads is refused by name", "[frontend]") {
  CHECK(refusals_of("Relu", 13, 2, {}) ==
        "node 'n' (Relu-13): operand 1 ('y') is not known; operand 0 is read\n");
  CHECK(refusals_of("Add", 13, 3, {}) ==
        "node 'n' (Add-13): operand 2 ('z') is not known; operands 0 to 1 are read\n");
  CHECK(refusals_of("Clip", 10, 2, {}) ==
        "node 'n' (Clip-10): operand 1 ('y') is not known; operand 0 is read\n");
  CHECK(refusals_of("Sum", 13, 3, {}).empty());
  // Constants are computed at import, by other code than the rules.
  const auto folded = [](const std::string& op, const std::vector<std::string>& operands) {
    return refusals_of(Proto()
                           .message(1, onnx_node(op, operands, {"c"}, "n"))
                           .message(1, onnx_node("Add", {"x", "c"}, {"y"}, "a"))
                           .message(5, onnx_integers("k", {2}, {3, 4}))
                           .message(11, onnx_value("x", {2}, 7))
                           .message(12, onnx_value("y", {2}, 7)));
  };
  CHECK(folded("Neg", {"k"}).empty());
  CHECK(folded("Neg", {"k", "k"}) ==
        "node 'n' (Neg-13): operand 1 ('k') is not known; operand 0 is read\n");
  CHECK(folded("Mul", {"k", "k", "k"}) ==
        "node 'n' (Mul-13): operand 2 ('k') is not known; operands 0 to 1 are read\n");
}

TEST_CASE("onnx: what may be ignored is ignored", "[frontend]") {
  CHECK(refusals_of("Dropout", 10, 1, {onnx_float("ratio", 0.3F)}).empty());
  CHECK(refusals_of("Dropout", 13, 1, {onnx_int("seed", 3)}).empty());
  CHECK(refusals_of("MaxPool", 12, 1,
                    {onnx_ints("kernel_shape", {2, 2}), onnx_int("storage_order", 1)})
            .empty());
  CHECK(refusals_of("Cast", 19, 1, {onnx_int("to", 1), onnx_int("saturate", 0)}).empty());
  CHECK(refusals_of("Resize", 10, 2, {onnx_text("nearest_mode", "floor")}).find("from 11 on") !=
        std::string::npos);
}

TEST_CASE("onnx: no node of ONNX's own cases takes what it does not know", "[frontend]") {
  const std::filesystem::path folder("/usr/share/libonnx-testdata/data/node");
  if (!std::filesystem::exists(folder)) {
    WARN("no ONNX cases; on Debian: apt-get install libonnx-testdata");
    return;
  }
  const Proto attribute = Proto().message(5, onnx_int("surplus", 1));
  std::vector<std::string> taken;
  int tried = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path() / "model.onnx", std::ios::binary);
    const std::string model{std::istreambuf_iterator<char>(file), {}};
    if (model.empty()) continue;
    Diagnostics diagnostics;
    import_model("", model, {}, diagnostics);
    if (diagnostics.has_errors()) continue;
    ++tried;
    for (const bool pads_operands : {false, true}) {
      Diagnostics found;
      import_model("", with_surplus(model, attribute, pads_operands), {}, found);
      if (!found.has_errors()) {
        taken.push_back(entry.path().filename().string() +
                        (pads_operands ? ": operand" : ": attribute"));
      }
    }
  }
  CHECK(tried > 500);
  CHECK(taken == std::vector<std::string>{});
}

TEST_CASE("onnx: a call of a function may leave out what its nodes may leave out", "[frontend]") {
  const Proto clip = Proto()
                         .bytes(1, "C")
                         .bytes(4, "a")
                         .bytes(4, "lo")
                         .bytes(4, "hi")
                         .bytes(5, "b")
                         .message(7, onnx_node("Clip", {"a", "lo", "hi"}, {"b"}, "c"))
                         .bytes(10, "d");
  const auto model = [&](const std::vector<std::string>& operands,
                         const std::vector<std::string>& results, const Proto& more) {
    const Proto graph =
        Proto()
            .message(1, onnx_node("C", operands, results, "n").bytes(7, "d").bytes(5, more.text()))
            .message(5, onnx_tensor("one", {}, {1}))
            .message(11, onnx_value("x", {4}))
            .message(12, onnx_value("y", {4}));
    return import_bytes(
        onnx_model(graph).message(8, Proto().bytes(1, "d").number(2, 1)).message(25, clip).text());
  };
  const auto attrs_of = [&](const std::vector<std::string>& operands) {
    const Proto graph = Proto()
                            .message(1, onnx_node("C", operands, {"y"}, "n").bytes(7, "d"))
                            .message(5, onnx_tensor("one", {}, {1}))
                            .message(11, onnx_value("x", {4}))
                            .message(12, onnx_value("y", {4}));
    const Imported imported = import_bytes(
        onnx_model(graph).message(8, Proto().bytes(1, "d").number(2, 1)).message(25, clip).text());
    CHECK(imported.errors.empty());
    REQUIRE(imported.graph.nodes().size() == 1);
    return imported.graph.nodes()[0].attrs();
  };
  CHECK(attrs_of({"x", "", "one"})["max"] == 1);
  CHECK_FALSE(attrs_of({"x", "", "one"}).contains("min"));
  CHECK(attrs_of({"x", "one"})["min"] == 1);
  CHECK(attrs_of({"x", "one", ""})["min"] == 1);
  CHECK(model({"x", "one", "one", "one"}, {"y"}, onnx_int("k", 1)).errors ==
        "node 'n' (d.C-1): operand 3 ('one') is not known; the function has 3\n");
  CHECK(model({"x"}, {"y", "z"}, onnx_int("k", 1)).errors ==
        "node 'n' (d.C-1): result 1 ('z') is not known; the function has 1\n");
  CHECK(model({"x"}, {"y"}, onnx_int("k", 1)).errors ==
        "node 'n' (d.C-1): attribute 'k' is not one of the function\n");
}

TEST_CASE("onnx: of functions with one name the overload is called", "[frontend]") {
  const auto function = [](const char* op, const char* overload) {
    return Proto()
        .bytes(1, "f")
        .bytes(4, "a")
        .bytes(5, "b")
        .message(7, onnx_node(op, {"a"}, {"b"}))
        .bytes(10, "d")
        .bytes(13, overload);
  };
  const auto imported = [&](const char* first, const char* second, const char* called) {
    const Proto graph =
        Proto()
            .message(1, onnx_node("f", {"x"}, {"y"}, "n").bytes(7, "d").bytes(8, called))
            .message(11, onnx_value("x", {4}))
            .message(12, onnx_value("y", {4}));
    return import_bytes(onnx_model(graph)
                            .message(8, Proto().bytes(1, "d").number(2, 1))
                            .message(25, function("Relu", first))
                            .message(25, function("Exp", second))
                            .text());
  };
  CHECK(imported("one", "two", "two").ops() == std::vector<std::string>{"aten.exp.default"});
  CHECK(imported("one", "two", "one").ops() == std::vector<std::string>{"aten.relu.default"});
  CHECK(imported("one", "two", "").errors.find("is not an op that is imported") !=
        std::string::npos);
  CHECK(imported("", "", "")
            .errors.find(
                "function 'd.f' is defined twice, by functions[0] and by functions[1]\n") == 0);
}

TEST_CASE("onnx: a name has one maker", "[frontend]") {
  const Proto twice = relu_graph()
                          .message(1, onnx_node("Exp", {"x"}, {"y"}, "e"))
                          .message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(twice) ==
        "'y' is made twice, by node[0] 'r' (Relu) and by node[1] 'e' (Exp)\n");
  const Proto initializers = relu_graph()
                                 .message(5, onnx_tensor("w", {1}, {1}))
                                 .message(5, onnx_tensor("v", {1}, {1}))
                                 .message(5, onnx_tensor("w", {1}, {2}))
                                 .message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(initializers) ==
        "'w' is made twice, by initializer[0] and by initializer[2]\n");
  const Proto inputs =
      relu_graph().message(11, onnx_value("x", {2, 3})).message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(inputs) == "'x' is made twice, by input[0] and by input[1]\n");
  const Proto input =
      relu_graph().message(1, onnx_node("Exp", {"y"}, {"x"})).message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(input) == "'x' is made twice, by input[0] and by node[1] (Exp)\n");
  // Results of one node; bodies; a default is no second maker.
  const Proto split = Proto()
                          .message(1, onnx_node("Split", {"x"}, {"y", "y"}, "s"))
                          .message(11, onnx_value("x", {2, 3}))
                          .message(12, onnx_value("y", {1, 3}));
  CHECK(refusals_of(split) ==
        "'y' is made twice, by node[0] 's' (Split) and by node[0] 's' (Split)\n");
  const Proto body = Proto()
                         .message(1, onnx_node("Relu", {"x"}, {"b"}))
                         .message(1, onnx_node("Exp", {"x"}, {"b"}))
                         .message(12, onnx_result("b"));
  const Proto branch = Proto()
                           .message(1, onnx_node("If", {"c"}, {"y"}, "i")
                                           .message(5, onnx_graph("then_branch", body))
                                           .message(5, onnx_graph("else_branch", body)))
                           .message(5, onnx_integers("c", {}, {1}, 9))
                           .message(11, onnx_value("x", {2, 3}))
                           .message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(branch).find("'b' in the body of node 'i' is made twice, by node[0] (Relu) and "
                                 "by node[1] (Exp)\n") == 0);
  const Proto given = Proto()
                          .message(1, onnx_node("Add", {"x", "w"}, {"y"}))
                          .message(5, onnx_tensor("w", {1}, {1}))
                          .message(11, onnx_value("x", {2, 3}))
                          .message(11, onnx_value("w", {1}))
                          .message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(given).empty());
}

TEST_CASE("onnx: outputs have ONNX's names", "[frontend]") {
  const auto names = [](Proto graph, const std::vector<std::string>& outputs) {
    for (const std::string& output : outputs) graph.message(12, onnx_value(output, {2, 3}));
    const Imported imported = import_bytes(onnx_model(graph).text());
    CHECK(imported.errors.empty());
    return output_names(imported.graph);
  };
  using Names = std::vector<std::string>;
  CHECK(names(relu_graph(), {"x", "y"}) == Names{"x", "y"});
  CHECK(names(relu_graph(), {"y", "x", "x"}) == Names{"y", "x", "x"});
  CHECK(names(relu_graph(), {"y", "y"}) == Names{"y", "y"});
  const Proto alias = relu_graph()
                          .message(1, onnx_node("Identity", {"y"}, {"z"}))
                          .message(1, onnx_node("Identity", {"x"}, {"v"}))
                          .message(5, onnx_tensor("w", {2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(names(alias, {"z", "y", "v", "x", "w"}) == Names{"z", "y", "v", "x", "w"});
  CHECK(names(alias, {"y", "z", "x", "v", "w"}) == Names{"y", "z", "x", "v", "w"});
}

TEST_CASE("onnx: what is stated of outputs is compared with what is made", "[frontend]") {
  const auto stated = [](const Proto& output) {
    return refusals_of(relu_graph().message(12, output));
  };
  CHECK(stated(onnx_value("y", {2, 3})).empty());
  CHECK(stated(onnx_value("y", {0, 3})).empty());
  CHECK(stated(onnx_value("y", {2, 3}, 7)) ==
        "output 'y' is stated to be int64, and its nodes make float32\n");
  CHECK(stated(onnx_value("y", {2, 3}, 8)) ==
        "output 'y' is stated to be STRING, and its nodes make float32\n");
  const Imported other =
      import_bytes(onnx_model(relu_graph().message(12, onnx_value("y", {2, 4}))).text());
  CHECK(other.errors ==
        "output 'y' is stated to be of shape [2, 4], and its nodes make [2, 3], which holds\n");
  CHECK(other.graph.tensor(other.graph.graph_outputs()[0]).shape == Shape{2, 3});
  CHECK(stated(onnx_value("y", {0, 4})).find("[s, 4], and its nodes make [2, 3]") !=
        std::string::npos);
  CHECK(stated(onnx_value("y", {6})).find("[6], and its nodes make [2, 3]") != std::string::npos);
  const Proto defaults = relu_graph()
                             .message(5, onnx_tensor("w", {1}, {1}))
                             .message(11, onnx_value("w", {1}, 7))
                             .message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(defaults) == "input 'w' is stated to be int64, and its constant is float32\n");
}

TEST_CASE("onnx: a newer opset is read as the newest that is known, with a warning", "[frontend]") {
  const Proto graph = relu_graph().message(12, onnx_value("y", {2, 3}));
  CHECK(refusals_of(graph, 28).empty());
  CHECK(refusals_of(graph, 99) ==
        "opset 99 of ONNX is newer than 28, the newest that is known: its nodes are read as those "
        "of opset 28\n");
  const Proto two = onnx_model(graph, 13).message(8, Proto().number(2, 14));
  CHECK(import_bytes(two.text()).errors == "opsets 13 and 14 of ONNX are imported, expected one\n");
}

TEST_CASE("onnx: sparse constants become dense ones", "[frontend]") {
  const auto sparse = [](const std::vector<std::int64_t>& index_shape,
                         const std::vector<std::int64_t>& indices) {
    return Proto()
        .message(1, onnx_tensor("w", {2}, {5, 7}))
        .message(2, onnx_integers("", index_shape, indices))
        .number(3, 2)
        .number(3, 3);
  };
  const auto check = [](const Imported& imported) {
    CHECK(imported.errors.empty());
    const TensorId id = imported.graph.find_tensor("w");
    REQUIRE(id.value >= 0);
    const Json& constants = imported.graph.document()["constants"];
    CHECK(constants["w"]["data"] == Json({0, 5, 0, 0, 0, 7}));
  };
  const auto initializer = [&](const Proto& tensor) {
    return import_bytes(onnx_model(Proto()
                                       .message(1, onnx_node("Add", {"x", "w"}, {"y"}))
                                       .message(15, tensor)
                                       .message(11, onnx_value("x", {2, 3}))
                                       .message(12, onnx_value("y", {2, 3})))
                            .text());
  };
  check(initializer(sparse({2}, {1, 5})));
  check(initializer(sparse({2, 2}, {0, 1, 1, 2})));
  const Proto value =
      Proto().bytes(1, "sparse_value").message(22, sparse({2}, {1, 5})).number(20, 11);
  check(import_bytes(onnx_model(Proto()
                                    .message(1, onnx_node("Constant", {}, {"w"}).message(5, value))
                                    .message(1, onnx_node("Add", {"x", "w"}, {"y"}))
                                    .message(11, onnx_value("x", {2, 3}))
                                    .message(12, onnx_value("y", {2, 3})))
                         .text()));
  const std::string fault =
      "sparse tensor 'w': index 1 is out of range or not above the one before it\n";
  CHECK(initializer(sparse({2}, {1, 6})).errors == fault);
  CHECK(initializer(sparse({2}, {1, 1})).errors == fault);
  CHECK(initializer(sparse({2, 2}, {0, 1, 2, 0})).errors == fault);
  CHECK(initializer(sparse({2}, {1, INT64_MIN})).errors == fault);
  CHECK(initializer(sparse({3}, {1, 2, 3})).errors.find("and indices of shape [3]") !=
        std::string::npos);
}
