// SPDX-License-Identifier: Apache-2.0
// Which models let sums over edges stand for rows, and by which factors.
#include "gnn/model/edge_sums.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

const std::string kGnnData = std::string(NPU_TEST_DATA_DIR) + "/gnn/";

// The refusal of a model whose stage of this id has another operator type in its node `node`.
std::string refusal_with(const std::string& name, std::size_t stage, std::size_t node,
                         const Json& change) {
  Json document = parse_json(read_file(kGnnData + name + ".json"), name);
  document["stages"][stage]["ir"]["nodes"][node].merge_patch(change);
  return edge_sums(parse_staged_model(document, name)).refusal;
}

}  // namespace

TEST_CASE("sums stand for rows only where a layer sums rows", "[gnn][sums]") {
  const EdgeSums sage = edge_sums(read_staged_model(kGnnData + "graphsage.json"));
  CHECK(sage.refusal.empty());
  CHECK(sage.factor.empty());
  // rsqrt(degree + 1) of both ends: the source's comes into the sum, and a sum has degree 0.
  const EdgeSums gcn = edge_sums(read_staged_model(kGnnData + "gcn.json"));
  CHECK(gcn.refusal.empty());
  CHECK(gcn.factor ==
        std::vector<DegreeStep>{{DegreeStep::Op::kAdd, 1}, {DegreeStep::Op::kReciprocalRoot, 0}});
  CHECK(gcn.neutral_degree == 0);
  CHECK(factor_of(gcn.factor, 3) == 0.5F);  // 1 / sqrt(3 + 1)
  CHECK(factor_of({{DegreeStep::Op::kMultiply, 2}, {DegreeStep::Op::kPower, -2}}, 1) == 0.25F);
  CHECK(edge_sums(read_staged_model(kGnnData + "gat.json")).refusal ==
        "layer 1: stage 'gather_both' does more with edges than to sum rows of its input");
}

TEST_CASE("the largest of rows is taken without factors", "[gnn][sums]") {
  const EdgeSums largest = edge_sums(read_staged_model(kGnnData + "largest.json"));
  CHECK(largest.refusal.empty());
  CHECK(largest.is_max);
  CHECK(largest.factor.empty());
}

TEST_CASE("other uses of edges keep sums from crossing", "[gnn][sums]") {
  const std::string text = "layer 1: stage '";
  // Each message of GraphSAGE twice: no sum of rows, since nothing says that it is linear.
  CHECK(refusal_with("graphsage", 1, 0, {{"op_type", "aten.exp.default"}}) ==
        text + "message' does more with edges than to sum rows of its input");
  // A sum that is not into zeros.
  CHECK(refusal_with("graphsage", 2, 0, {{"op_type", "aten.ones.default"}}) ==
        text + "reduce_sum' does more with edges than to sum rows of its input");
  // By source.
  CHECK(refusal_with("graphsage", 2, 1, {{"attrs", {{"dim", 0}, {"index", 0}}}}) ==
        text + "reduce_sum' does more with edges than to sum rows of its input");
  CHECK(refusal_with("graphsage", 0, 0, {{"attrs", {{"dim", 0}, {"index", 0}}}}).empty());
}
