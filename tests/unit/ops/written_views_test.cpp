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
  const auto count = [](GraphBuilder builder) { return warnings_of(builder).size(); };
  const Json first{{"dim", 1}, {"start", 0}, {"end", 2}};
  const Json second{{"dim", 1}, {"start", 2}, {"end", 4}};
  // An output, a view of a view, a view that was made before, one of those of a list.
  CHECK(count(with_view("aten.slice.Tensor", {2, 2}, first)
                  .node("w", "aten.zero_.default", {"v"})
                  .output("x")) == 1);
  CHECK(count(with_view("aten.slice.Tensor", {2, 2}, first)
                  .node("t", "aten.t.default", {"v"}, Shape{2, 2})
                  .node("w", "aten.zero_.default", {"t"})
                  .node("r", "aten.neg.default", {"x"})
                  .output("r")) == 1);
  CHECK(count(with_view("aten.view.default", {8})
                  .node("w", "aten.zero_.default", {"x"})
                  .node("r", "aten.neg.default", {"v"})
                  .output("r")) == 1);
  CHECK(count(with_view("aten.slice.Tensor", {2, 2}, first)
                  .node("a", "aten.t.default", {"x"}, Shape{4, 2})
                  .node("w", "aten.zero_.default", {"v"})
                  .node("r", "aten.neg.default", {"a"})
                  .output("r")) == 1);
  CHECK(count(GraphBuilder()
                  .input("x", {2, 4})
                  .node_with_results("s", "aten.chunk.default", {"x"}, {{2, 2}, {2, 2}})
                  .node("i", "<built-in function getitem>", {"s_0", "s_1"}, Shape{2, 2},
                        {{"index", 1}})
                  .node("w", "aten.zero_.default", {"i"})
                  .node("r", "aten.neg.default", {"x"})
                  .output("r")) == 1);
  // The other chunk, the operand itself, the result, a copy, and what was read before: none.
  CHECK(count(with_view("aten.slice.Tensor", {2, 2}, first)
                  .node("u", "aten.slice.Tensor", {"x"}, Shape{2, 2}, second)
                  .node("w", "aten.zero_.default", {"v"})
                  .node("r", "aten.neg.default", {"u"})
                  .output("r")) == 0);
  CHECK(count(with_view("aten.neg.default", {2, 4})
                  .node("w", "aten.relu_.default", {"v"})
                  .node("r", "aten.add.Tensor", {"v", "w"})
                  .output("r")) == 0);
  CHECK(count(with_view("aten.t.default", {4, 2})
                  .node("c", "aten.reshape.default", {"v"}, Shape{8})
                  .node("w", "aten.relu_.default", {"c"})
                  .node("r", "aten.neg.default", {"x"})
                  .output("r")) == 0);
  CHECK(count(with_view("aten.view.default", {8})
                  .node("r", "aten.neg.default", {"x"})
                  .node("w", "aten.relu_.default", {"v"})
                  .output("r")
                  .output("w")) == 0);
  CHECK(count(with_view("aten.view.default", {8})
                  .node("d", "aten.detach_.default", {"v"})
                  .node("r", "aten.neg.default", {"x"})
                  .output("r")
                  .output("d")) == 0);
  // One warning for a writer, however many read.
  CHECK(count(with_view("aten.view.default", {8})
                  .node("w", "aten.relu_.default", {"v"})
                  .node("r", "aten.neg.default", {"x"})
                  .node("s", "aten.abs.default", {"x"})
                  .output("r")
                  .output("s")) == 1);
}

}  // namespace npu::test
