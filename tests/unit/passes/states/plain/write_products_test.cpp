// SPDX-License-Identifier: Apache-2.0
// Equations that become products of matrices, and those that stay.
#include "passes/states/plain/write_products.hpp"

#include <string>

#include "catch.hpp"
#include "support/json_fields.hpp"
#include "template_lines.hpp"

namespace npu::write_products_test {
namespace {

std::string product(const std::string& shapes, const std::string& result,
                    const std::string& equation) {
  const Template model =
      test::template_of("size T 1..64; size S 1..64; input t [T]; input s [S]; " + shapes + R"(
    y = einsum(a, b) )" +
                        result + R"( {"equation": ")" + equation +
                        R"(", "_tensor_list_sizes": [2]}
    output y)");
  const auto document = states::write_products(model);
  if (!document) return "stays";
  std::string text;
  for (const Json& node : (*document)["nodes"]) {
    const std::string op = node["op_type"].get<std::string>();
    const Json& to = node["outputs"][0];
    text += (text.empty() ? "" : "; ") + to["name"].get<std::string>() + to["shape"].dump() + " " +
            op.substr(5, op.find('.', 5) - 5);
    for (const Json& input : node["inputs"]) text += " " + input["name"].get<std::string>();
    for (const auto& [key, value] : node["attrs"].items()) text += " " + value.dump();
  }
  return text;
}

}  // namespace

TEST_CASE("states: equations are products of matrices", "[states]") {
  CHECK(product("input a [2,4,T,8]; input b [2,4,S,8]", "[2,4,T,S]", "bhqd,bhkd->bhqk") ==
        R"(y.part[2,4,8,"S"] permute b [0,1,3,2]; y[2,4,"T","S"] matmul a y.part)");
  CHECK(product("input a [2,4,T,S]; input b [2,4,S,8]", "[2,4,T,8]", "bhqk,bhkd->bhqd") ==
        R"(y[2,4,"T",8] matmul a b)");
  // Heads behind rows.
  CHECK(product("input a [2,T,4,8]; input b [2,S,4,8]", "[2,4,T,S]", "bqhd,bkhd->bhqk") ==
        R"(y.part[2,4,"T",8] permute a [0,2,1,3]; y.part_[2,4,"S",8] permute b [0,2,1,3]; )"
        R"(y.part__[2,4,8,"S"] permute y.part_ [0,1,3,2]; y[2,4,"T","S"] matmul y.part y.part__)");
  // Operands change places, and the result is turned.
  CHECK(product("input a [2,4,S,8]; input b [2,4,T,S]", "[2,T,4,8]", "bhkd,bhqk->bqhd") ==
        R"(y.part[2,4,"T",8] matmul b a; y[2,"T",4,8] permute y.part [0,2,1,3])");
  // Keys that heads share.
  CHECK(product("input a [2,4,T,8]; input b [2,S,8]", "[2,4,T,S]", "bhqd,bkd->bhqk") ==
        R"(y.part[2,1,"S",8] unsqueeze b 1; y.part_[2,1,8,"S"] permute y.part [0,1,3,2]; )"
        R"(y[2,4,"T","S"] matmul a y.part_)");
  // A mixture of heads.
  CHECK(
      product("input a [2,4,T,S]; input b [4,5]", "[2,5,T,S]", "bhqk,hg->bgqk") ==
      R"(y.part[5,4] permute b [1,0]; y.part_[2,"T",4,"S"] permute a [0,2,1,3]; )"
      R"(y.part__[2,"T",5,"S"] matmul y.part y.part_; y[2,5,"T","S"] permute y.part__ [0,2,1,3])");
}

TEST_CASE("states: equations that are no product of two matrices stay", "[states]") {
  CHECK(product("input a [T]; input b [8]", "[T,8]", "i,j->ij") == "stays");
  CHECK(product("input a [T,8]; input b [T,8]", "[T]", "td,td->t") == "stays");
  CHECK(product("input a [T,8]; input b [8]", "[T]", "td,d->t") == "stays");
  CHECK(product("input a [T,8,3]; input b [8,3,S]", "[T,S]", "tde,des->ts") == "stays");
  CHECK(product("input a [T,8]; input b [8,S]", "[T,S]", "...d,ds->...s") == "stays");
  CHECK(product("input a [T,1]; input b [8,S]", "[T,S]", "td,ds->ts") == "stays");
}

}  // namespace npu::write_products_test
