// SPDX-License-Identifier: Apache-2.0
// Which epilogues the kernels of this backend do, asked before anything is laid out for them.
//
// They apply the functions that EpilogueStep lists, and add or multiply with tensors that lie as
// their results do. Subtraction is left to the moment when the operand's memory is known: where the
// result may be stored over it, it is an accumulation. O(ops).
#include "lowering/engine/epilogue.hpp"

#include "kernels/base/operands.hpp"

namespace npu::onednn {

namespace {

std::string quoted(const EpilogueOp& op) { return "'" + std::string(op.op) + "'"; }

}  // namespace

std::string operand_kernel_refusal(const Epilogue& epilogue) {
  std::size_t operands = 0;
  for (const EpilogueOp& op : epilogue.ops) {
    if (op.kind == EpilogueOp::Kind::kFunction) {
      if (!op.step) return "it does not compute " + quoted(op) + " behind the node";
      continue;
    }
    if (op.kind == EpilogueOp::Kind::kDivide) return "it does not divide behind the node";
    if (op.operand != EpilogueOp::Operand::kPerElement) {
      return "the operand of " + quoted(op) + " behind the node would have to be broadcast";
    }
    ++operands;
  }
  // One of them may be accumulated to.
  if (operands > kMaxEpilogueOperands + 1) {
    return "more than " + std::to_string(kMaxEpilogueOperands) +
           " tensors are read behind the node";
  }
  return "";
}

std::string plain_kernel_refusal(const Epilogue& epilogue) {
  for (const EpilogueOp& op : epilogue.ops) {
    if (!op.step) return "it does not compute " + quoted(op) + " behind a convolution";
  }
  return "";
}

}  // namespace npu::onednn
