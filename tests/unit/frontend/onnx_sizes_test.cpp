// SPDX-License-Identifier: Apache-2.0
// Symbolic dimensions of ONNX models: which are one size, and which follow from others.
#include <string>
#include <vector>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"
#include "ir/bind_sizes.hpp"

using namespace npu;
using namespace npu::test;

namespace {

std::string unbound(const Proto& graph, const std::vector<std::string>& bindings = {}) {
  ImportOptions options;
  for (const std::string& text : bindings) add_binding(options, text);
  return import_bytes(onnx_model(graph).text(), options).errors;
}

Shape shape_of_input(const Proto& graph, const std::vector<std::string>& bindings,
                     std::string_view input) {
  ImportOptions options;
  for (const std::string& text : bindings) add_binding(options, text);
  const Imported model = import_bytes(onnx_model(graph).text(), options);
  CHECK(model.errors == "");
  const TensorId id = model.graph.find_tensor(input);
  REQUIRE(id.valid());
  return model.graph.tensor(id).shape;
}

/// A cache joined with new rows, keys and values of lengths with names of their own, an attention
/// that multiplies them, and a mask that is added, as exporters of today write it.
Proto cached_attention() {
  return Proto()
      .message(1,
               onnx_node("Concat", {"past_k", "k"}, {"present_k"}).message(5, onnx_int("axis", 1)))
      .message(1,
               onnx_node("Concat", {"past_v", "v"}, {"present_v"}).message(5, onnx_int("axis", 1)))
      .message(1, onnx_node("Transpose", {"present_k"}, {"turned"})
                      .message(5, onnx_ints("perm", {0, 2, 1})))
      .message(1, onnx_node("MatMul", {"k", "turned"}, {"scores"}))
      .message(1, onnx_node("Add", {"scores", "mask"}, {"masked"}))
      .message(1, onnx_node("MatMul", {"masked", "present_v"}, {"y"}))
      .message(11, named_value("k", {"batch", "new", "4"}))
      .message(11, named_value("v", {"batch", "new", "4"}))
      .message(11, named_value("mask", {"b2", "1", "total"}))
      .message(11, named_value("past_k", {"batch", "s2", "4"}))
      .message(11, named_value("past_v", {"batch", "s74", "4"}))
      .message(12, named_value("y", {"batch", "new", "4"}));
}

}  // namespace

TEST_CASE("onnx: sizes that nodes make equal are bound by one name, sums follow", "[frontend]") {
  const Proto graph = cached_attention();
  CHECK(unbound(graph) ==
        "3 sizes have no value; give each one with --bind NAME=N: 'batch' (dimension 0 of input "
        "'k'), 'new' (dimension 1 of input 'k'), 's2' (dimension 1 of input 'past_k')\n");
  CHECK(shape_of_input(graph, {"batch=1", "new=2", "s2=6"}, "past_v") == Shape{1, 6, 4});
  CHECK(shape_of_input(graph, {"batch=1", "new=2", "s2=6"}, "mask") == Shape{1, 1, 8});
  CHECK(shape_of_input(graph, {"batch=3", "new=2", "total=8"}, "past_k") == Shape{3, 6, 4});
}

TEST_CASE("onnx: a mask is as long as what indexes it", "[frontend]") {
  // GatherND(mask, [0, arange(past + new)]), as PyTorch writes a padding mask.
  const Proto graph =
      Proto()
          .message(1, onnx_node("Shape", {"ids"}, {"ids_shape"}))
          .message(1, onnx_node("Gather", {"ids_shape", "one"}, {"new"}))
          .message(1, onnx_node("Shape", {"past"}, {"past_shape"}))
          .message(1, onnx_node("Gather", {"past_shape", "one"}, {"old"}))
          .message(1, onnx_node("Add", {"old", "new"}, {"total"}))
          .message(1, onnx_node("Range", {"zero", "total", "one"}, {"places"}))
          .message(
              1, onnx_node("Gather", {"mask", "places"}, {"taken"}).message(5, onnx_int("axis", 1)))
          .message(5, onnx_integers("zero", {}, {0}))
          .message(5, onnx_integers("one", {}, {1}))
          .message(11, named_value("ids", {"1", "s70"}, 7))
          .message(11, named_value("mask", {"1", "s53"}, 7))
          .message(11, named_value("past", {"1", "s18"}, 7))
          .message(12, named_value("taken", {"1", "s18 + s70"}, 7))
          .message(12, named_value("past", {"1", "s18"}, 7));
  CHECK(unbound(graph) ==
        "2 sizes have no value; give each one with --bind NAME=N: 's70' (dimension 1 of input "
        "'ids'), 's18' (dimension 1 of input 'past')\n");
  CHECK(shape_of_input(graph, {"s70=3", "s18=5"}, "mask") == Shape{1, 8});
  // Solved for either of them; and one that is given holds.
  CHECK(shape_of_input(graph, {"s70=3", "s53=8"}, "past") == Shape{1, 5});
  CHECK(shape_of_input(graph, {"s70=3", "s18=5", "s53=9"}, "mask") == Shape{1, 9});
}

TEST_CASE("onnx: rows of a source are one size in planes of batch and heads", "[frontend]") {
  // view(batch * 2, -1, 4) of keys, and expand(batch * 2, rows) of a mask, as exporters write them.
  const Proto graph =
      Proto()
          .message(1, onnx_node("Shape", {"keys"}, {"keys_shape"}))
          .message(1, onnx_node("Gather", {"keys_shape", "zero"}, {"batch"}))
          .message(1, onnx_node("Mul", {"batch", "two"}, {"planes"}))
          .message(1, onnx_node("Unsqueeze", {"planes", "zeros"}, {"planes_list"}))
          .message(1, onnx_node("Concat", {"planes_list", "minus", "four"}, {"flat_shape"})
                          .message(5, onnx_int("axis", 0)))
          .message(1, onnx_node("Reshape", {"keys", "flat_shape"}, {"flat"}))
          .message(1, onnx_node("ReduceMax", {"flat"}, {"scores"})
                          .message(5, onnx_ints("axes", {2}))
                          .message(5, onnx_int("keepdims", 0)))
          .message(1, onnx_node("Shape", {"mask"}, {"mask_shape"}))
          .message(1, onnx_node("Gather", {"mask_shape", "ones_list"}, {"rows"}))
          .message(1, onnx_node("Concat", {"planes_list", "rows"}, {"wanted"})
                          .message(5, onnx_int("axis", 0)))
          .message(1, onnx_node("ConstantOfShape", {"two_list"}, {"ones"})
                          .message(5, Proto()
                                          .bytes(1, "value")
                                          .number(20, 4)
                                          .message(5, onnx_integers("", {1}, {1}))))
          .message(1, onnx_node("Mul", {"ones", "minus"}, {"minuses"}))
          .message(1, onnx_node("Equal", {"wanted", "minuses"}, {"is_open"}))
          .message(1, onnx_node("Where", {"is_open", "ones", "wanted"}, {"size"}))
          .message(1, onnx_node("Expand", {"mask", "size"}, {"spread"}))
          .message(1, onnx_node("Add", {"scores", "spread"}, {"y"}))
          .message(5, onnx_integers("zero", {}, {0}))
          .message(5, onnx_integers("two", {}, {2}))
          .message(5, onnx_integers("zeros", {1}, {0}))
          .message(5, onnx_integers("ones_list", {1}, {1}))
          .message(5, onnx_integers("two_list", {1}, {2}))
          .message(5, onnx_integers("four", {1}, {4}))
          .message(5, onnx_integers("minus", {1}, {-1}))
          .message(11, named_value("keys", {"batch_size", "2", "rows_out", "4"}))
          .message(11, named_value("mask", {"1", "rows"}))
          .message(12, named_value("y", {"planes", "rows"}));
  CHECK(unbound(graph) ==
        "2 sizes have no value; give each one with --bind NAME=N: 'batch_size' (dimension 0 of "
        "input 'keys'), 'rows_out' (dimension 2 of input 'keys')\n");
  CHECK(shape_of_input(graph, {"batch_size=3", "rows_out=5"}, "mask") == Shape{1, 5});
}

TEST_CASE("onnx: a name may say what it is", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Relu", {"mask"}, {"y"}))
                          .message(1, onnx_node("Relu", {"x"}, {"z"}))
                          .message(1, onnx_node("Relu", {"past"}, {"w"}))
                          .message(11, named_value("x", {"sequence"}))
                          .message(11, named_value("mask", {"past + sequence"}))
                          .message(11, named_value("past", {"past"}))
                          .message(12, named_value("y", {"?"}))
                          .message(12, named_value("z", {"?"}))
                          .message(12, named_value("w", {"?"}));
  CHECK(unbound(graph).starts_with("2 sizes have no value"));
  CHECK(shape_of_input(graph, {"past=2", "sequence=3"}, "mask") == Shape{5});
}

TEST_CASE("onnx: dimensions without a name have one, and a product fixes a size", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("MatMul", {"x", "W"}, {"y"}))
                          .message(5, onnx_tensor("W", {2, 3}, {1, 2, 3, 4, 5, 6}))
                          .message(11, named_value("x", {"", ""}))
                          .message(12, named_value("y", {"", ""}));
  CHECK(unbound(graph) ==
        "size 'x.0' (dimension 0 of input 'x') has no value; give it one with --bind x.0=N\n");
  CHECK(shape_of_input(graph, {"x.0=7"}, "x") == Shape{7, 2});
}

TEST_CASE("onnx: what is stretched from 1 is no reason for equal sizes", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Add", {"a", "b"}, {"y"}))
                          .message(11, named_value("a", {"n", "4"}))
                          .message(11, named_value("b", {"m", "4"}))
                          .message(12, named_value("y", {"n", "4"}));
  CHECK(unbound(graph).starts_with("size 'n'"));
  CHECK(shape_of_input(graph, {"n=3"}, "b") == Shape{3, 4});
  // Given, they may differ.
  CHECK(shape_of_input(graph, {"n=3", "m=1"}, "b") == Shape{1, 4});
}

TEST_CASE("onnx: sizes that contradict are left to the import", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Add", {"a", "b"}, {"y"}))
                          .message(1, onnx_node("MatMul", {"a", "W"}, {"z"}))
                          .message(5, onnx_tensor("W", {2, 1}, {1, 2}))
                          .message(11, named_value("a", {"1", "n"}))
                          .message(11, named_value("b", {"1", "3"}))
                          .message(12, named_value("y", {"1", "n"}))
                          .message(12, named_value("z", {"1", "1"}));
  // n is 3 or 1 by the sum, and 2 by the product.
  CHECK(unbound(graph).find("MatMul") != std::string::npos);
}

TEST_CASE("onnx: '*' is no name", "[frontend]") {
  ImportOptions options;
  CHECK_THROWS_WITH(add_binding(options, "*=1"),
                    Catch::Contains("expected the name of one size; without --bind"));
  add_binding(options, "n=1");
  add_binding(options, "n=1");
  CHECK_THROWS_WITH(add_binding(options, "n=2"), Catch::Contains("n has the value 1"));
}

namespace {

std::string size_texts(const Json& shape) { return shape.dump(); }

Json template_of(const Proto& graph, const std::vector<std::string>& bindings = {}) {
  ImportOptions options;
  for (const std::string& text : bindings) add_binding(options, text);
  Diagnostics faults;
  auto document = import_template("", onnx_model(graph).text(), options, faults);
  for (const Diagnostic& fault : faults.entries()) UNSCOPED_INFO(fault.text);
  CHECK(!faults.has_errors());
  return document.value_or(Json());
}

/// As a document that a frontend imports at these sizes has it.
void check_binding(const Json& model, const Proto& graph, const SizeBindings& values,
                   const std::vector<std::string>& bindings) {
  Diagnostics faults;
  const Template sized = Template::read(model, "model", faults);
  const Graph bound = bind_sizes(sized, values, faults);
  REQUIRE(!faults.has_errors());
  ImportOptions options;
  for (const std::string& text : bindings) add_binding(options, text);
  const Imported imported = import_bytes(onnx_model(graph).text(), options);
  CHECK(imported.errors.empty());
  for (const TensorId id : imported.graph.graph_outputs()) {
    const TensorInfo& output = imported.graph.tensor(id);
    CHECK(bound.tensor(bound.find_tensor(output.name)).shape == output.shape);
  }
}

}  // namespace

TEST_CASE("onnx: open sizes make a template", "[frontend]") {
  const Json model = template_of(cached_attention());
  CHECK(size_texts(model["graph_inputs"][2]["shape"]) == R"(["batch",1,"new + s2"])");
  CHECK(model["npu"]["symbols"]["s2"]["of"].dump() == R"([["past_k",1],["past_v",1]])");
  check_binding(model, cached_attention(), {{"batch", 2}, {"new", 3}, {"s2", 9}},
                {"batch=2", "new=3", "s2=9"});
  check_binding(model, cached_attention(), {{"batch", 1}, {"new", 1}, {"s2", 1}},
                {"batch=1", "new=1", "s2=1"});
  const Json part = template_of(cached_attention(), {"s2=6", "batch=1"});
  CHECK(size_texts(part["graph_inputs"][2]["shape"]) == R"([1,1,"new + 6"])");
  CHECK(part["npu"]["symbols"].size() == 1);
}

TEST_CASE("onnx: what is cut to a number of rows has that many", "[frontend]") {
  // A mask up to as many as there are keys, and the last rows of a bias, as many as there are ids.
  const Proto graph =
      Proto()
          .message(1, onnx_node("Shape", {"keys"}, {"keys_shape"}))
          .message(1, onnx_node("Gather", {"keys_shape", "ones_list"}, {"count"}))
          .message(1, onnx_node("Slice", {"mask", "zeros", "count", "ones_list"}, {"cut"}))
          .message(1, onnx_node("Shape", {"ids"}, {"ids_shape"}))
          .message(1, onnx_node("Neg", {"ids_shape"}, {"begin"}))
          .message(1, onnx_node("Slice", {"bias", "begin", "far", "zeros"}, {"last"}))
          .message(1, onnx_node("Add", {"last", "keys"}, {"a"}))
          .message(1, onnx_node("Add", {"a", "cut"}, {"b"}))
          .message(1, onnx_node("Unsqueeze", {"ids", "ones_list"}, {"column"}))
          .message(1, onnx_node("Add", {"b", "column"}, {"c"}))
          .message(1, onnx_node("ReduceMax", {"old"}, {"most"}).message(5, onnx_ints("axes", {0})))
          .message(1, onnx_node("Add", {"c", "most"}, {"y"}))
          .message(5, onnx_integers("zeros", {1}, {0}))
          .message(5, onnx_integers("ones_list", {1}, {1}))
          .message(5, onnx_integers("far", {1}, {INT64_MAX}))
          .message(11, named_value("ids", {"new"}))
          .message(11, named_value("keys", {"1", "rows_out"}))
          .message(11, named_value("old", {"past"}))
          .message(11, named_value("bias", {"past + new", "rows_out"}))
          .message(11, named_value("mask", {"1", "rows"}))
          .message(12, named_value("y", {"new", "rows_out"}));
  const Json model = template_of(graph);
  CHECK(model["npu"]["symbols"].size() == 3);
  CHECK(size_texts(model["graph_inputs"][4]["shape"]) == R"([1,"rows_out"])");
  check_binding(model, graph, {{"new", 2}, {"past", 4}, {"rows_out", 5}},
                {"new=2", "past=4", "rows_out=5", "rows=5"});
  // Given, they may differ.
  CHECK(shape_of_input(graph, {"new=2", "past=4", "rows_out=5", "rows=7"}, "mask") == Shape{1, 7});
}

TEST_CASE("onnx: a table of positions is as long as the longest text, not as each", "[frontend]") {
  const Proto graph =
      Proto()
          .message(1, onnx_node("Shape", {"ids"}, {"shape"}))
          .message(1, onnx_node("Gather", {"shape", "zero"}, {"length"}))
          .message(1, onnx_node("Add", {"length", "one"}, {"end"}))
          .message(1, onnx_node("Range", {"one", "end", "one"}, {"places"}))
          .message(1, onnx_node("Gather", {"table", "places"}, {"rows"}))
          .message(1, onnx_node("Gather", {"table", "ids"}, {"words"}))
          .message(1, onnx_node("Add", {"rows", "words"}, {"y"}))
          .message(5, onnx_integers("zero", {}, {0}))
          .message(5, onnx_integers("one", {}, {1}))
          .message(5, onnx_integers("table", {100, 2}, std::vector<std::int64_t>(200, 3)))
          .message(11, named_value("ids", {"length"}, 7))
          .message(12, named_value("y", {"length", "2"}, 7));
  const Json model = template_of(graph);
  INFO(model.dump(1));
  CHECK(size_texts(model["graph_outputs"][0]["shape"]) == R"(["length",2])");
  CHECK(model["npu"]["symbols"]["length"]["max"] == 99);
  CHECK(shape_of_input(graph, {"length=99"}, "ids") == Shape{99});
}

TEST_CASE("onnx: what is made of sizes stays nodes in a template", "[frontend]") {
  // x + arange(n) * float(n), a position table and sqrt(n) among them.
  const Proto graph =
      Proto()
          .message(1, onnx_node("Shape", {"x"}, {"shape"}))
          .message(1, onnx_node("Gather", {"shape", "zero"}, {"n"}))
          .message(1, onnx_node("Range", {"zero", "n", "one"}, {"places"}))
          .message(1, onnx_node("Cast", {"places"}, {"floats"}).message(5, onnx_int("to", 1)))
          .message(1, onnx_node("Cast", {"n"}, {"float_n"}).message(5, onnx_int("to", 1)))
          .message(1, onnx_node("Sqrt", {"float_n"}, {"root"}))
          .message(1, onnx_node("Mul", {"floats", "root"}, {"scaled"}))
          .message(1, onnx_node("Add", {"x", "scaled"}, {"y"}))
          .message(5, onnx_integers("zero", {}, {0}))
          .message(5, onnx_integers("one", {}, {1}))
          .message(11, named_value("x", {"n.tokens"}))
          .message(12, named_value("y", {"n.tokens"}));
  const Json model = template_of(graph);
  std::string ops;
  for (const Json& node : model["nodes"]) ops += node["op_type"].get<std::string>() + " ";
  INFO(model.dump(1));
  CHECK(ops.find("aten.arange.start_step") != std::string::npos);
  CHECK(ops.find("aten.sqrt.default") != std::string::npos);
  CHECK(model["npu"]["symbols"].contains("n.tokens"));
  check_binding(model, graph, {{"n.tokens", 12}}, {"n.tokens=12"});
}

TEST_CASE("onnx: names that are no symbols get one", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Relu", {"x"}, {"y"}))
                          .message(11, named_value("x", {"seq-len", "seq len", "max"}))
                          .message(12, named_value("y", {"", "", ""}));
  const Json model = template_of(graph);
  CHECK(size_texts(model["graph_inputs"][0]["shape"]) == R"(["seq_len","seq_len_2","_max"])");
}

TEST_CASE("onnx: a size takes what it takes alone, whatever another needs", "[frontend]") {
  const Proto graph = Proto()
                          .message(1, onnx_node("Reshape", {"x", "pairs"}, {"y"}))
                          .message(5, onnx_integers("pairs", {4}, {0, 3, -1, 2}))
                          .message(11, named_value("x", {"batch", "3", "length"}))
                          .message(12, named_value("y", {"batch", "3", "", "2"}));
  const Json model = template_of(graph);
  INFO(model.dump(1));
  CHECK(model["npu"]["symbols"]["batch"]["min"] == 1);
  CHECK_FALSE(model["npu"]["symbols"]["batch"].contains("multiple_of"));
  CHECK(model["npu"]["symbols"]["length"]["multiple_of"] == 2);
  check_binding(model, graph, {{"batch", 1}, {"length", 10}}, {"batch=1", "length=10"});
}

TEST_CASE("onnx: a row that a model picks does not say how many there are", "[frontend]") {
  for (const std::int64_t row : {-1, 0, 3}) {
    const Proto graph =
        Proto()
            .message(1, onnx_node("Gather", {"x", "row"}, {"y"}).message(5, onnx_int("axis", 1)))
            .message(5, onnx_integers("row", {}, {row}))
            .message(11, named_value("x", {"batch", "length", "4"}))
            .message(12, named_value("y", {"batch", "4"}));
    const Json model = template_of(graph);
    INFO(row << model.dump(1));
    CHECK(model["npu"]["symbols"].contains("length"));
    check_binding(model, graph, {{"batch", 2}, {"length", 9}}, {"batch=2", "length=9"});
  }
}

TEST_CASE("onnx: sizes of which one is set are known", "[frontend]") {
  const auto import = [](const std::vector<std::int64_t>& places,
                         const std::vector<std::int64_t>& sizes) {
    const auto count = static_cast<std::int64_t>(places.size());
    return import_bytes(onnx_model(Proto()
                                       .message(1, onnx_node("Shape", {"x"}, {"shape"}))
                                       .message(1, onnx_node("ScatterElements",
                                                             {"shape", "places", "sizes"}, {"to"}))
                                       .message(1, onnx_node("Expand", {"row", "to"}, {"y"}))
                                       .message(5, onnx_integers("places", {count}, places))
                                       .message(5, onnx_integers("sizes", {count}, sizes))
                                       .message(11, onnx_value("x", {5, 4}))
                                       .message(11, onnx_value("row", {1, 4}))
                                       .message(12, onnx_value("y", {3, 4})))
                            .text());
  };
  const Imported one = import({-2}, {3});
  CHECK(one.errors.empty());
  CHECK(one.graph.tensor(one.graph.graph_outputs()[0]).shape == Shape{3, 4});
  CHECK(import({0, 0}, {3, 7}).errors.find("has to be known at import") != std::string::npos);
}

namespace {

/// x [n, m] with y in rows from 0 and columns from `column` on, as PyTorch's exporter writes it.
Proto assignment(std::int64_t column, const std::string& columns_end) {
  const auto seen = [](Proto graph, const std::string& name, const std::vector<std::string>& from,
                       const std::string& shape, std::int64_t axis) {
    graph.message(1, onnx_node("Range", {from[0], from[1], "one"}, {name + "_all"}))
        .message(1, onnx_node("Reshape", {name + "_all", shape}, {name + "_seen"}))
        .message(1, onnx_node("Expand", {name + "_seen", "y_shape"}, {name + "_each"}))
        .message(1, onnx_node("Unsqueeze", {name + "_each", "last"}, {name}));
    return graph.message(5, onnx_integers(shape, {2}, {axis == 0 ? -1 : 1, axis == 0 ? 1 : -1}));
  };
  Proto whole = Proto().message(1, onnx_node("Shape", {"x"}, {"x_shape"}));
  whole.message(1, onnx_node("Shape", {"y"}, {"y_shape"}))
      .message(1, onnx_node("Gather", {"x_shape", "zero"}, {"x_rows"}))
      .message(1, onnx_node("Gather", {"x_shape", "one"}, {"x_columns"}));
  whole = seen(whole, "rows", {"zero", "x_rows"}, "down", 0);
  whole = seen(whole, "columns", {"column", columns_end}, "along", 1);
  return whole
      .message(1,
               onnx_node("Concat", {"rows", "columns"}, {"index"}).message(5, onnx_int("axis", -1)))
      .message(1, onnx_node("ScatterND", {"x", "index", "y"}, {"z"}))
      .message(1, onnx_node("Relu", {"z"}, {"result"}))
      .message(5, onnx_integers("zero", {}, {0}))
      .message(5, onnx_integers("one", {}, {1}))
      .message(5, onnx_integers("column", {}, {column}))
      .message(5, onnx_integers("three", {}, {3}))
      .message(5, onnx_integers("last", {1}, {-1}))
      .message(11, named_value("x", {"n", "m"}))
      .message(12, named_value("result", {"n", "m"}));
}

}  // namespace

TEST_CASE("onnx: an assignment to a part of a tensor", "[frontend]") {
  const auto nodes = [](const Json& model) {
    std::string text;
    for (const Json& node : model["nodes"]) {
      const Json& attrs = node["attrs"];
      text += (text.empty() ? "" : " ") + node["op_type"].get<std::string>();
      if (attrs.contains("dim")) text += attrs.dump();
    }
    return text;
  };
  const Json part =
      template_of(assignment(1, "x_columns").message(11, named_value("y", {"n", "k"})));
  CAPTURE(nodes(part));
  CHECK(nodes(part).find(
            R"(aten.slice_scatter.default{"dim":1,"start":1,"end":"k + 1"} aten.relu)") !=
        std::string::npos);
  CAPTURE(nodes(part));
  CHECK(nodes(part).find("index_put") == std::string::npos);
  const Json fixed = template_of(assignment(1, "three").message(11, named_value("y", {"n", "2"})));
  CHECK(nodes(fixed).find(R"(aten.slice_scatter.default{"dim":1,"start":1,"end":3})") !=
        std::string::npos);
  // All of it is what is assigned.
  const Json all =
      template_of(assignment(0, "x_columns").message(11, named_value("y", {"n", "m"})));
  CHECK(all["nodes"].back()["inputs"][0]["name"] == "y");
}

TEST_CASE("onnx: a row of each of several matrices is picked by two indices", "[frontend]") {
  // x[arange(n), at], as PyTorch's exporter writes it: rows of one matrix, i m + at.
  const auto ops = [](const std::string& factor) {
    const Json model = template_of(
        Proto()
            .message(1, onnx_node("Shape", {"x"}, {"sizes"}))
            .message(1, onnx_node("Gather", {"sizes", "zero"}, {"n"}))
            .message(1, onnx_node("Gather", {"sizes", "one"}, {"m"}))
            .message(1, onnx_node("Range", {"zero", "n", "one"}, {"i"}))
            .message(1, onnx_node("Mul", {"i", factor}, {"begin"}))
            .message(1, onnx_node("Add", {"at", "begin"}, {"row"}))
            .message(1, onnx_node("Flatten", {"x"}, {"rows"}).message(5, onnx_int("axis", 2)))
            .message(1, onnx_node("Gather", {"rows", "row"}, {"y"}))
            .message(5, onnx_integers("zero", {}, {0}))
            .message(5, onnx_integers("one", {}, {1}))
            .message(11, named_value("x", {"n", "m", "4"}))
            .message(11, named_value("at", {"n"}, 7))
            .message(12, named_value("y", {"n", "4"})));
    std::string text;
    for (const Json& node : model["nodes"]) {
      text += (text.empty() ? "" : " ") + node["op_type"].get<std::string>();
    }
    return text;
  };
  // An `at` below 0 is one of the matrix in front.
  CHECK(ops("m") ==
        "aten.arange.start_step aten.lt.Tensor aten.to.dtype aten.sub.Tensor aten.index.Tensor");
  // Steps of another number of rows are what they are.
  CHECK(ops("n").find("aten.mul.Tensor") != std::string::npos);
}

TEST_CASE("onnx: parts in another order are no roll along a size that varies", "[frontend]") {
  const auto ops = [](const std::vector<std::string>& shape) {
    const Json model = template_of(
        Proto()
            .message(1, onnx_node("Slice", {"x", "one", "end", "axis"}, {"behind"}))
            .message(1, onnx_node("Slice", {"x", "zero", "one", "axis"}, {"first"}))
            .message(
                1, onnx_node("Concat", {"behind", "first"}, {"y"}).message(5, onnx_int("axis", 1)))
            .message(5, onnx_integers("zero", {1}, {0}))
            .message(5, onnx_integers("one", {1}, {1}))
            .message(5, onnx_integers("axis", {1}, {1}))
            .message(5, onnx_integers("end", {1}, {INT64_MAX}))
            .message(11, named_value("x", shape))
            .message(12, onnx_result("y")));
    std::string names;
    for (const Json& node : model["nodes"]) names += node["op_type"].get<std::string>() + " ";
    return names;
  };
  CHECK(ops({"n", "6"}) == "aten.roll.default ");
  CHECK(ops({"2", "n"}) == "aten.slice.Tensor aten.slice.Tensor aten.cat.default ");
}

TEST_CASE("onnx: a size is as large as convolutions need it", "[frontend]") {
  const Json model = template_of(Proto()
                                     .message(1, onnx_node("Conv", {"x", "w"}, {"y"}))
                                     .message(5, onnx_tensor("w", {1, 1, 4}, {1, 2, 3, 4}))
                                     .message(11, named_value("x", {"1", "1", "length"}))
                                     .message(12, named_value("y", {"1", "1", "rest"})));
  CHECK(model["npu"]["symbols"]["length"]["min"] == 4);
}

TEST_CASE("onnx: a size may be the least that a convolution takes", "[frontend]") {
  const std::vector<float> ones(13, 1);
  const Json model = template_of(Proto()
                                     .message(1, onnx_node("Conv", {"x", "w"}, {"y"}))
                                     .message(5, onnx_tensor("w", {1, 1, 13}, ones))
                                     .message(11, named_value("x", {"1", "1", "length"}))
                                     .message(12, named_value("y", {"1", "1", "rest"})));
  CHECK(model["npu"]["symbols"]["length"]["min"] == 13);
}

TEST_CASE("onnx: as many last rows as another tensor has do not fix a size", "[frontend]") {
  // As WaveNet adds what is left of its input behind a convolution: x[:, -count:] + x[:, 1:].
  const Proto graph = Proto()
                          .message(1, onnx_node("Slice", {"x", "one", "end", "one"}, {"rest"}))
                          .message(1, onnx_node("Shape", {"rest"}, {"shape"}))
                          .message(1, onnx_node("Gather", {"shape", "one"}, {"count"}))
                          .message(1, onnx_node("Neg", {"count"}, {"start"}))
                          .message(1, onnx_node("Slice", {"x", "start", "end", "one"}, {"last"}))
                          .message(1, onnx_node("Add", {"rest", "last"}, {"y"}))
                          .message(5, onnx_integers("one", {1}, {1}))
                          .message(5, onnx_integers("end", {1}, {INT64_MAX}))
                          .message(11, named_value("x", {"batch", "length", "4"}))
                          .message(12, named_value("y", {"batch", "", "4"}));
  const Json model = template_of(graph);
  REQUIRE(model["npu"]["symbols"].contains("length"));
  check_binding(model, graph, {{"batch", 2}, {"length", 9}}, {"batch=2", "length=9"});
}

TEST_CASE("onnx: what is made for each size is an op in a template", "[frontend]") {
  const auto text = [](std::string_view name, std::string_view value) {
    return Proto().bytes(1, name).bytes(4, value).number(20, 3);
  };
  const auto op_of = [](const Json& model) { return model["nodes"].back()["op_type"]; };
  const auto resized = [&](const std::string& mode, const std::vector<std::string>& shape,
                           const std::vector<float>& scales) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    return op_of(template_of(
        Proto()
            .message(1, onnx_node("Resize", {"x", "", "scales"}, {"y"})
                            .message(5, text("mode", mode))
                            .message(5, text("nearest_mode", "floor"))
                            .message(5, text("coordinate_transformation_mode",
                                             mode == "nearest" ? "asymmetric" : "half_pixel")))
            .message(5, onnx_tensor("scales", {rank}, scales))
            .message(11, named_value("x", shape))
            .message(12, named_value("y", std::vector<std::string>(shape.size())))));
  };
  CHECK(resized("nearest", {"1", "2", "n"}, {1, 1, 2}) == "aten.upsample_nearest1d.default");
  CHECK(resized("linear", {"1", "2", "n"}, {1, 1, 2}) == "aten.upsample_linear1d.default");
  CHECK(resized("cubic", {"1", "2", "n", "4"}, {1, 1, 2, 2}) == "aten.upsample_bicubic2d.default");
  CHECK(resized("linear", {"1", "2", "n", "4", "3"}, {1, 1, 2, 2, 2}) ==
        "aten.upsample_trilinear3d.default");
  const auto padded = [&](const std::string& mode) {
    return template_of(
        Proto()
            .message(1, onnx_node("Pad", {"x", "pads"}, {"y"}).message(5, text("mode", mode)))
            .message(5, onnx_integers("pads", {6}, {0, 0, 2, 0, 0, 1}))
            .message(11, named_value("x", {"1", "2", "n"}))
            .message(12, named_value("y", {"1", "2", ""})));
  };
  CHECK(op_of(padded("edge")) == "aten.replication_pad1d.default");
  CHECK(op_of(padded("reflect")) == "aten.reflection_pad1d.default");
  CHECK(padded("reflect")["npu"]["symbols"]["n"]["min"] == 3);
  const Json unit = template_of(Proto()
                                    .message(1, onnx_node("EyeLike", {"x"}, {"y"}))
                                    .message(11, named_value("x", {"n", "n"}))
                                    .message(12, named_value("y", {"n", "n"})));
  CHECK(unit["npu"]["symbols"].contains("n"));
}
