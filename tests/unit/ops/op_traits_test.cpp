// SPDX-License-Identifier: Apache-2.0
#include "ops/op_traits.hpp"

#include <map>

#include "catch.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"

using namespace npu;

TEST_CASE("Every op of the catalogue has a rule, one of its kind where its row has none") {
  for (const std::string_view op_type : catalogued_ops()) {
    CAPTURE(op_type);
    const auto rule = find_flop_rule(op_type);
    REQUIRE(rule);
    CHECK(rule->basis != FlopBasis::kByKind);
    CHECK(rule->per_element >= 1);
  }
  CHECK(find_flop_rule("aten.mm.default")->basis == FlopBasis::kMatrixProduct);
  CHECK(find_flop_rule("aten.sum.dim_IntList")->basis == FlopBasis::kFirstOperand);
  CHECK(find_flop_rule("aten.permute.default")->basis == FlopBasis::kNoFlops);
  CHECK(find_flop_rule("aten.add.Tensor")->basis == FlopBasis::kAllResults);
  CHECK_FALSE(find_flop_rule("aten.no_such_op.default"));
}

TEST_CASE("Only rules by arguments need arguments") {
  CHECK(find_flop_rule("aten.conv2d.default")->needs_arguments());
  CHECK(find_flop_rule("aten.max_pool2d.default")->needs_arguments());
  CHECK_FALSE(find_flop_rule("aten.layer_norm.default")->needs_arguments());
  CHECK(find_flop_rule("aten.layer_norm.default")->per_element == 7);
}

TEST_CASE("All overloads of an op, in place or not, have one rule and one class") {
  std::map<std::string, std::string_view> first;
  for (const std::string_view op_type : catalogued_ops()) {
    const std::string name(functional_name(op_type));
    // The maximum of two tensors is element-wise, that of one a reduction.
    if (name.empty() || op_type.ends_with(".other")) continue;
    const std::string_view other = first.emplace(name, op_type).first->second;
    CAPTURE(op_type, other);
    CHECK(find_flop_rule(op_type)->basis == find_flop_rule(other)->basis);
    CHECK(find_flop_rule(op_type)->per_element == find_flop_rule(other)->per_element);
    CHECK(align_class(op_type) == align_class(other));
    CHECK(catalogued_align_class(name) == align_class(op_type));
  }
}
