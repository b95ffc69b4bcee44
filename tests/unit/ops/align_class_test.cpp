// SPDX-License-Identifier: Apache-2.0
#include "ops/align_class.hpp"

#include "catch.hpp"
#include "ops/op_catalogue.hpp"

namespace npu {
namespace {

using enum AlignClass;

TEST_CASE("classes of ops") {
  const std::vector<std::pair<AlignClass, std::vector<const char*>>> rows{
      {kGemm,
       {"aten.linear.default", "aten.addmm.default", "aten.mm.default", "aten.bmm.default",
        "aten.matmul.default", "aten.baddbmm.default", "aten.einsum.default", "aten.mv.default",
        "aten.scaled_dot_product_attention.default"}},
      {kConv,
       {"aten.conv2d.default", "aten.conv2d.padding", "aten.conv1d.default", "aten.conv3d.default",
        "aten.convolution.default", "aten._convolution.default", "aten.conv_transpose2d.input"}},
      {kPool,
       {"aten.max_pool2d.default", "aten.avg_pool2d.default",
        "aten.max_pool2d_with_indices.default", "aten.adaptive_avg_pool2d.default",
        "aten._adaptive_avg_pool2d.default"}},
      {kReduce,
       {"aten.mean.dim", "aten.sum.dim_IntList", "aten.max.dim", "aten.max.default",
        "aten.amax.default", "aten.argmin.default", "aten.var.correction", "aten.prod.dim_int",
        "aten.any.dim"}},
      {kTranspose, {"aten.t.default", "aten.transpose.int", "aten.permute.default"}},
      {kConcatenate, {"aten.cat.default", "aten.stack.default"}},
      {kScatter,
       {"aten.scatter.src", "aten.scatter_add.default", "aten.index_put_.default",
        "aten.index_copy.default", "aten.slice_scatter.default"}},
      {kPad, {"aten.constant_pad_nd.default", "aten.pad.default", "aten.reflection_pad2d.default"}},
      {kSlice, {"aten.slice.Tensor", "aten.narrow.default"}},
      {kReshape,
       {"aten.view.default", "aten.reshape.default", "aten.flatten.using_ints",
        "aten.unsqueeze.default", "aten.squeeze.dims", "aten.expand.default"}},
      {kNormalization, {"aten.layer_norm.default", "aten.group_norm.default"}},
      {kSoftmax, {"aten.softmax.int", "aten._log_softmax.default"}},
      {kNone,
       {"aten.relu_.default", "aten.add.Tensor", "aten.max.other", "aten.maximum.default",
        "aten.batch_norm.default", "aten.gelu.default", "aten.embedding.default",
        "aten.clamp.default", "aten.channel_shuffle.default", "aten.pixel_unshuffle.default",
        "custom.conv2d", "<built-in function getitem>", "npu.channel_norm", "aten", "aten.", ""}}};
  for (const auto& [expected, ops] : rows) {
    for (const char* op_type : ops) {
      CAPTURE(op_type);
      CHECK(align_class_name(align_class(op_type)) == align_class_name(expected));
    }
  }
}

TEST_CASE("matrix products and convolutions of the catalogue have a class") {
  for (const std::string_view op_type : catalogued_ops()) {
    // Those of PyTorch: the classes are of its ops.
    if (find_op(op_type)->kind != OpKind::kAnchor || op_type.starts_with("npu.")) continue;
    CAPTURE(op_type);
    const AlignClass found = align_class(op_type);
    CHECK((found == kGemm || found == kConv));
  }
}

TEST_CASE("class names") {
  CHECK(align_class_names().size() == 12);
  for (const std::string& name : align_class_names()) {
    CHECK(align_class_name(parse_align_class(name).value()) == name);
  }
  CHECK_FALSE(parse_align_class("none"));
  CHECK_FALSE(parse_align_class("Conv"));
}

}  // namespace
}  // namespace npu
