// SPDX-License-Identifier: Apache-2.0
// Losses over classes.
#include "rules/rules.hpp"

namespace npu::onnx {
namespace {

Value* loss_of(Op& op, Value* scores) {
  Value* target = op.cast(op.in(1), DType::kInt64);
  const std::string reduction = op.text("reduction", "mean");
  if (reduction != "mean" && reduction != "sum" && reduction != "none") {
    Op::refuse("reduction '" + reduction + "'");
  }
  Shape expected = scores->shape;
  if (scores->rank() < 2) Op::refuse("scores of rank " + std::to_string(scores->rank()));
  expected.erase(expected.begin() + 1);
  if (target->shape != expected) Op::refuse("target and scores do not fit");
  std::vector<Value*> operands{scores, target};
  if (op.has_input(2)) operands.push_back(op.in(2));
  const int number = reduction == "none" ? 0 : reduction == "mean" ? 1 : 2;
  // Without ignore_index every class counts, also that which PyTorch leaves out by default.
  Json attrs{{"reduction", number}, {"ignore_index", op.integer("ignore_index", -100)}};
  return op.emit("aten.nll_loss_nd.default", operands, std::move(attrs), scores->dtype,
                 reduction == "none" ? target->shape : Shape{});
}

}  // namespace

void import_nll_loss(Op& op) { op.set(0, loss_of(op, op.in(0))); }

void import_cross_entropy(Op& op) {
  Value* scores = op.emit_like("aten.log_softmax.int", {op.in(0)}, Json{{"dim", 1}});
  op.set(0, loss_of(op, scores));
  op.set(1, scores);
}

}  // namespace npu::onnx
