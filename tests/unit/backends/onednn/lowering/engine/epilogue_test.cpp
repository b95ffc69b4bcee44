// SPDX-License-Identifier: Apache-2.0
// Which epilogues the kernels of this backend do.
#include "lowering/engine/epilogue.hpp"

#include <optional>
#include <vector>

#include "backends/onednn/lowering/choice_fixture.hpp"
#include "catch.hpp"

namespace npu::onednn {

using namespace test;

TEST_CASE("kernels say which epilogues they do", "[onednn][choose]") {
  CHECK(operand_kernel_refusal({}).empty());
  CHECK(plain_kernel_refusal({}).empty());
  const Epilogue relu{{function("relu", kRelu)}};
  CHECK(operand_kernel_refusal(relu).empty());
  CHECK(plain_kernel_refusal(relu).empty());
  const Epilogue residual{{kResidual, function("relu", kRelu)}};
  CHECK(operand_kernel_refusal(residual).empty());
  CHECK(plain_kernel_refusal(residual) == "it does not compute 'add' behind a convolution");
  const Epilogue tanh{{function("relu", kRelu), function("tanh", std::nullopt)}};
  CHECK(operand_kernel_refusal(tanh) == "it does not compute 'tanh' behind the node");
  CHECK(plain_kernel_refusal(tanh) == "it does not compute 'tanh' behind a convolution");
  for (const OpOperand operand : {OpOperand::kPerElement, OpOperand::kNumber}) {
    CHECK(operand_kernel_refusal({{arithmetic(OpKind::kDivide, operand, "div")}}) ==
          "it does not divide behind the node");
  }
  for (const OpOperand operand : {OpOperand::kOneElement, OpOperand::kPerChannel}) {
    CHECK(operand_kernel_refusal({{arithmetic(OpKind::kMultiply, operand, "mul")}}) ==
          "the operand of 'mul' behind the node would have to be broadcast");
  }
  // Whether the result may be stored over what is subtracted is known later.
  const EpilogueOp difference = arithmetic(OpKind::kSubtract, OpOperand::kPerElement, "sub");
  CHECK(operand_kernel_refusal({{difference}}).empty());
  // Eight operands, and one more that the result is stored over.
  CHECK(operand_kernel_refusal({std::vector(9, kResidual)}).empty());
  CHECK(operand_kernel_refusal({std::vector(10, kResidual)}) ==
        "more than 8 tensors are read behind the node");
}

}  // namespace npu::onednn
