// SPDX-License-Identifier: Apache-2.0
// Sequences of ONNX models: inside of a model they are lists that the import keeps; at its borders,
// and where an op takes tensors, they are refused.
#include <algorithm>

#include "frontend/onnx_imported.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Proto ends(Proto graph, const std::vector<std::int64_t>& result) {
  return graph.message(11, onnx_value("x", {2, 4}))
      .message(11, onnx_value("z", {2, 4}))
      .message(12, onnx_value("y", result))
      .message(5, onnx_integers("first", {}, {0}))
      .message(5, onnx_integers("last", {}, {-1}))
      .message(5, onnx_integers("far", {}, {3}));
}

std::vector<std::string> ops_of(const Proto& graph, std::vector<std::int64_t> result) {
  const Imported model = import_bytes(onnx_model(ends(graph, result)).text());
  CHECK(model.errors.empty());
  if (!model.errors.empty()) return {};
  CHECK(model.graph.tensor(model.graph.graph_outputs()[0]).shape == result);
  return model.ops();
}

std::string errors_of(const Proto& graph) {
  return import_bytes(onnx_model(ends(graph, {2, 4})).text()).errors;
}

}  // namespace

TEST_CASE("onnx: sequences are lists of the import", "[frontend]") {
  // [x, z], then [z, x, z], [z, x], and its last.
  const Proto graph = Proto()
                          .message(1, onnx_node("SequenceConstruct", {"x", "z"}, {"a"}))
                          .message(1, onnx_node("SequenceInsert", {"a", "z", "first"}, {"b"}))
                          .message(1, onnx_node("SequenceErase", {"b", "last"}, {"c"}))
                          .message(1, onnx_node("SequenceAt", {"c", "last"}, {"d"}))
                          .message(1, onnx_node("Relu", {"d"}, {"y"}));
  const Imported model = import_bytes(onnx_model(ends(graph, {2, 4})).text());
  CHECK(model.errors.empty());
  REQUIRE(model.ops() == std::vector<std::string>{"aten.relu.default"});
  CHECK(model.graph.tensor(model.graph.nodes()[0].inputs[0]).name == "x");
}

TEST_CASE("onnx: tensors become sequences and back", "[frontend]") {
  const Proto joined = Proto()
                           .message(1, onnx_node("SequenceEmpty", {}, {"a"}))
                           .message(1, onnx_node("SequenceInsert", {"a", "x"}, {"b"}))
                           .message(1, onnx_node("SequenceInsert", {"b", "z"}, {"c"}));
  Proto along = joined;
  CHECK(
      ops_of(along.message(
                 1, onnx_node("ConcatFromSequence", {"c"}, {"y"}).message(5, onnx_int("axis", -1))),
             {2, 8}) == std::vector<std::string>{"aten.cat.default"});
  Proto stacked = joined;
  const auto ops = ops_of(stacked.message(1, onnx_node("ConcatFromSequence", {"c"}, {"y"})
                                                 .message(5, onnx_int("axis", -1))
                                                 .message(5, onnx_int("new_axis", 1))),
                          {2, 4, 2});
  CHECK(std::count(ops.begin(), ops.end(), "aten.cat.default") == 1);
  const auto split = [](const std::vector<std::string>& operands, std::int64_t keeps) {
    return Proto()
        .message(1, onnx_node("SplitToSequence", operands, {"s"})
                        .message(5, onnx_int("axis", 1))
                        .message(5, onnx_int("keepdims", keeps)))
        .message(1, onnx_node("SequenceAt", {"s", "last"}, {"y"}))
        .message(5, onnx_integers("three", {}, {3}))
        .message(5, onnx_integers("sizes", {2}, {1, 3}));
  };
  CHECK(ops_of(split({"x"}, 1), {2, 1}).front() == "aten.split_with_sizes.default");
  CHECK(ops_of(split({"x"}, 0), {2}).front() == "aten.split_with_sizes.default");
  // Three and the rest.
  CHECK(ops_of(split({"x", "three"}, 1), {2, 1}).front() == "aten.split_with_sizes.default");
  CHECK(ops_of(split({"x", "sizes"}, 1), {2, 3}).front() == "aten.split_with_sizes.default");
}

TEST_CASE("onnx: a sequence is mapped, and carried by a loop", "[frontend]") {
  Proto body;
  body.message(11, onnx_value("e", {2, 4})).message(11, onnx_value("k", {2, 4}));
  body.message(1, onnx_node("Add", {"e", "k"}, {"r"})).message(12, onnx_value("r", {2, 4}));
  const Proto map =
      Proto()
          .message(1, onnx_node("SequenceConstruct", {"x", "z"}, {"a"}))
          .message(1,
                   onnx_node("SequenceMap", {"a", "x"}, {"b"}).message(5, onnx_graph("body", body)))
          .message(1, onnx_node("SequenceLength", {"b"}, {"n"}))
          .message(1,
                   onnx_node("ConcatFromSequence", {"b"}, {"y"}).message(5, onnx_int("axis", 0)));
  const Imported mapped = import_bytes(onnx_model(ends(map, {4, 4}), 17).text());
  CHECK(mapped.errors.empty());
  CHECK(mapped.ops() ==
        std::vector<std::string>{"aten.add.Tensor", "aten.add.Tensor", "aten.cat.default"});
  Proto trip;
  trip.message(11, onnx_value("i", {})).message(11, onnx_value("c", {}));
  trip.message(11, onnx_value("s", {}));
  trip.message(1, onnx_node("Identity", {"c"}, {"c_out"}))
      .message(1, onnx_node("SequenceInsert", {"s", "x"}, {"s_out"}))
      .message(12, onnx_value("c_out", {}))
      .message(12, onnx_value("s_out", {}));
  const Proto loop =
      Proto()
          .message(5, onnx_integers("yes", {}, {1}, 9))
          .message(1, onnx_node("SequenceEmpty", {}, {"a"}))
          .message(
              1, onnx_node("Loop", {"far", "yes", "a"}, {"b"}).message(5, onnx_graph("body", trip)))
          .message(1,
                   onnx_node("ConcatFromSequence", {"b"}, {"y"}).message(5, onnx_int("axis", 0)));
  CHECK(ops_of(loop, {6, 4}) == std::vector<std::string>{"aten.cat.default"});
}

TEST_CASE("onnx: optionals that have an element are that", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Optional", {"x"}, {"a"}))
                          .message(1, onnx_node("OptionalHasElement", {"a"}, {"has"}))
                          .message(1, onnx_node("OptionalGetElement", {"a"}, {"b"}))
                          .message(1, onnx_node("Where", {"has", "b", "z"}, {"y"}));
  const Imported model = import_bytes(onnx_model(ends(graph, {2, 4}), 18).text());
  CHECK(model.errors.empty());
  CHECK(model.ops() == std::vector<std::string>{"aten.where.self"});
}

TEST_CASE("onnx: sequences are refused where tensors have to be", "[frontend]") {
  const Proto pair = Proto().message(1, onnx_node("SequenceConstruct", {"x", "z"}, {"a"}, "seq"));
  Proto output = pair;
  CHECK(errors_of(output.message(1, onnx_node("Identity", {"a"}, {"y"}))) ==
        "output 'y' is a sequence, and a document has tensors\n");
  Proto operand = pair;
  CHECK(errors_of(operand.message(1, onnx_node("Relu", {"a"}, {"y"}, "relu"))) ==
        "node 'relu' (Relu-13): operand 0 is a sequence\n");
  Proto far = pair;
  CHECK(errors_of(far.message(1, onnx_node("SequenceAt", {"a", "far"}, {"y"}, "at"))) ==
        "node 'at' (SequenceAt-13): position 3 of a sequence of 2\n");
  Proto nested = pair;
  CHECK(errors_of(nested.message(1, onnx_node("SequenceInsert", {"a", "a"}, {"y"}, "in"))) ==
        "node 'in' (SequenceInsert-13): a sequence of sequences\n");
  const Proto none = Proto()
                         .message(1, onnx_node("SequenceEmpty", {}, {"a"}))
                         .message(1, onnx_node("ConcatFromSequence", {"a"}, {"y"}, "join")
                                         .message(5, onnx_int("axis", 0)));
  CHECK(errors_of(none) == "node 'join' (ConcatFromSequence-13): an empty sequence\n");
  const Proto tensor = Proto().message(1, onnx_node("SequenceLength", {"x"}, {"y"}, "length"));
  CHECK(errors_of(tensor) == "node 'length' (SequenceLength-13): operand 0 is no sequence\n");
  // A part for each of many elements.
  const Proto many = Proto()
                         .message(5, onnx_integers("big", {}, {1}))
                         .message(1, onnx_node("Expand", {"x", "shape"}, {"wide"}))
                         .message(5, onnx_integers("shape", {3}, {1'000'000'000, 2, 4}))
                         .message(1, onnx_node("SplitToSequence", {"wide", "big"}, {"y"}, "split"));
  CHECK(errors_of(many) ==
        "node 'split' (SplitToSequence-13): a sequence of more than 10000 tensors\n");
}
