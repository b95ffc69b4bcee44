// SPDX-License-Identifier: Apache-2.0
// Where the ranges of sizes end that ONNX files leave open.
#include <string>

#include "catch.hpp"
#include "frontend/onnx_imported.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// {"min": ..., "max": ...} of the rows of x, [rows, 3].
Json range_of(Proto graph) {
  graph.message(11, named_value("x", {"rows", "3"})).message(12, onnx_result("y"));
  Diagnostics faults;
  auto document = import_template("", onnx_model(graph).text(), ImportOptions{}, faults);
  for (const Diagnostic& fault : faults.entries()) UNSCOPED_INFO(fault.text);
  REQUIRE(document.has_value());
  Json range = (*document)["npu"]["symbols"]["rows"];
  range.erase("of");
  return range;
}

Proto cut_to(std::int64_t rows) {
  return Proto()
      .message(1, onnx_node("Slice", {"x", "begin", "end"}, {"part"}))
      .message(1, onnx_node("Relu", {"part"}, {"y"}))
      .message(5, onnx_integers("begin", {1}, {0}))
      .message(5, onnx_integers("end", {1}, {rows}));
}

/// x, or twice x if it has `op` than `rows` rows.
Proto branched(const char* op, std::int64_t rows) {
  const Proto doubled =
      Proto().message(1, onnx_node("Add", {"x", "x"}, {"more"})).message(12, onnx_result("more"));
  const Proto plain =
      Proto().message(1, onnx_node("Relu", {"x"}, {"less"})).message(12, onnx_result("less"));
  return Proto()
      .message(1, onnx_node("Shape", {"x"}, {"shape"}))
      .message(1, onnx_node("Gather", {"shape", "zero"}, {"size"}))
      .message(1, onnx_node(op, {"size", "limit"}, {"is_so"}))
      .message(1, onnx_node("If", {"is_so"}, {"y"})
                      .message(5, onnx_graph("then_branch", doubled))
                      .message(5, onnx_graph("else_branch", plain)))
      .message(5, onnx_integers("zero", {}, {0}))
      .message(5, onnx_integers("limit", {}, {rows}));
}

}  // namespace

TEST_CASE("onnx: a size ends where the model takes another branch", "[frontend]") {
  // All rows up to 3 are fewer than 3; more than 50 are cut.
  CHECK(range_of(cut_to(3)) == Json{{"min", 3}});
  CHECK(range_of(cut_to(50)) == Json{{"min", 1}, {"max", 50}});
  CHECK(range_of(cut_to(3000)) == Json{{"min", 1}, {"max", 3000}});
  CHECK(range_of(branched("Less", 4)) == Json{{"min", 4}});
  CHECK(range_of(branched("Greater", 70)) == Json{{"min", 1}, {"max", 70}});
  CHECK(range_of(branched("Less", 1)) == Json{{"min", 1}});
}
