// SPDX-License-Identifier: Apache-2.0
// Which in-place nodes PyTorch would let others see: every op that makes a view, every op that
// writes in place, and the cases in which nothing else has the elements.
#include "ops/written_views.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

std::vector<std::string> warnings_of(const GraphBuilder& builder) {
  Diagnostics diagnostics;
  warn_of_written_views(builder.build(), diagnostics);
  std::vector<std::string> texts;
  for (const Diagnostic& entry : diagnostics.entries()) {
    CHECK(entry.level == Level::kWarning);
    texts.push_back(entry.text);
  }
  return texts;
}

/// x [2, 4], and v, a view of it.
GraphBuilder with_view(const std::string& op, const Shape& shape,
                       const Json& attrs = Json::object()) {
  return GraphBuilder().input("x", {2, 4}).node("v", op, {"x"}, shape, attrs);
}

}  // namespace

TEST_CASE("written views: a write through each kind of view is told", "[ops]") {
  for (const std::string_view op : catalogued_ops()) {
    const OpInfo& info = *find_op(op);
    // A node without arguments stands for every form that the op has.
    if (!info.is_alias || info.is_in_place || op.find("_assert") != std::string_view::npos)
      continue;
    Json attrs = Json::object();
    if (op.find("dropout") != std::string_view::npos) attrs = {{"p", 0.5}, {"train", false}};
    if (op == kGetitem) attrs = {{"index", 0}};
    CAPTURE(op);
    GraphBuilder builder = with_view(std::string(op), {2, 4}, attrs);
    builder.node("w", "aten.relu_.default", {"v"}).node("r", "aten.neg.default", {"x"});
    CHECK(warnings_of(builder.output("w").output("r")).size() == 1);
  }
}

TEST_CASE("written views: a scatter puts back what was written", "[ops]") {
  const Json place{{"dim", 0}, {"index", 1}};
  GraphBuilder builder = with_view("aten.select.int", {4}, place);
  builder.node("w", "aten.relu_.default", {"v"});
  builder.node("s", "aten.select_scatter.default", {"x", "w"}, Shape{2, 4}, place).output("s");
  CHECK(warnings_of(builder).empty());
  CHECK(warnings_of(builder.node("r", "aten.neg.default", {"x"}).output("r")).size() == 1);
}

TEST_CASE("written views: each op that writes in place is told", "[ops]") {
  std::vector<std::string> ops{"aten.lerp_.Scalar", "aten.index_add_.default"};  // not catalogued
  for (const std::string_view op : catalogued_ops()) {
    if (find_op(op)->is_in_place && !find_op(op)->is_alias) ops.emplace_back(op);
  }
  CHECK(ops.size() > 30);
  for (const std::string& op : ops) {
    CAPTURE(op);
    GraphBuilder builder = with_view("aten.view.default", {8});
    builder.node("w", op, {"v"}).node("r", "aten.neg.default", {"x"});
    CHECK(warnings_of(builder.output("w").output("r")) ==
          std::vector<std::string>{
              "node 'w' (" + op +
              ") writes into 'v', which shares its elements with 'x', and node 'r' reads that "
              "later: PyTorch would show it the change, here it sees none, since nodes are "
              "functional; what is to see it has to read the result of 'w'"});
  }
}

TEST_CASE("written views: who else has the elements", "[ops]") {
  const auto count = [](const std::string& lines) {
    return warnings_of(GraphBuilder().lines("input x [2,4]\n" + lines)).size();
  };
  const auto slice = [](const char* name, int start) {
    return std::string(name) +
           " = aten.slice.Tensor(x) [2,2] {\"dim\": 1, \"start\": " + std::to_string(start) +
           ", \"end\": " + std::to_string(start + 2) + "}; ";
  };
  const std::string first = slice("v", 0);
  const std::string flat = "v = view(x) [8]; ";
  // An output, a view of a view, a view that was made before, one of those of a list.
  CHECK(count(first + "w = zero_(v); output x") == 1);
  CHECK(count(first + "t = t(v) [2,2]; w = zero_(t); r = neg(x); output r") == 1);
  CHECK(count(flat + "w = zero_(x); r = neg(v); output r") == 1);
  CHECK(count(first + "a = t(x) [4,2]; w = zero_(v); r = neg(a); output r") == 1);
  CHECK(count(R"(s = chunk(x) [2,2] [2,2]; i = getitem(s_0, s_1) {"index": 1}
                 w = zero_(i); r = neg(x); output r)") == 1);
  // The other chunk, the operand itself, the result, a copy, and what was read before: none.
  CHECK(count(first + slice("u", 2) + "w = zero_(v); r = neg(u); output r") == 0);
  CHECK(count("v = neg(x); w = relu_(v); r = aten.add.Tensor(v, w); output r") == 0);
  CHECK(count("v = t(x) [4,2]; c = reshape(v) [8]; w = relu_(c); r = neg(x); output r") == 0);
  CHECK(count(flat + "r = neg(x); w = relu_(v); output r, w") == 0);
  CHECK(count(flat + "d = detach_(v); r = neg(x); output r, d") == 0);
  // One warning for a writer, however many read.
  CHECK(count(flat + "w = relu_(v); r = neg(x); s = abs(x); output r, s") == 1);
}

}  // namespace npu::test
