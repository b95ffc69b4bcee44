// SPDX-License-Identifier: Apache-2.0
// Lists of post-ops: what becomes one, what is kept apart, and what is no list.
#include "program/post_ops.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "program/primitive_record.hpp"

namespace npu::onednn {
namespace {

using EltwiseAlgorithm = dnnl::algorithm;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

PostOpRecord post_function(EltwiseAlgorithm algorithm, float alpha = 0.0F, float beta = 0.0F) {
  return {.algorithm = static_cast<std::int64_t>(algorithm), .alpha = alpha, .beta = beta};
}
PostOpRecord linear(float alpha, float beta) {
  return post_function(EltwiseAlgorithm::eltwise_linear, alpha, beta);
}
PostOpRecord clip(float low, float high) {
  return post_function(EltwiseAlgorithm::eltwise_clip, low, high);
}
PostOpRecord relu(float slope) { return post_function(EltwiseAlgorithm::eltwise_relu, slope); }

/// The list that these become, the last of them perhaps refused.
struct Made {
  std::vector<PostOpRecord> list;
  bool all = true;
};
Made made_of(const std::vector<PostOpRecord>& functions) {
  Made made;
  for (const PostOpRecord& each : functions) {
    made.all = append_post_op(made.list, each);
    if (!made.all) break;
  }
  return made;
}

bool is_one(const Made& made, float alpha, float beta) {
  return made.all && made.list.size() == 1 && made.list[0].alpha == alpha &&
         made.list[0].beta == beta;
}

/// A convolution of 16 channels by 16 with these behind it.
PrimitiveRecord convolution_with(std::vector<PostOpRecord> list) {
  const auto record = [](const Shape& shape) {
    return record_of(plain_layout(shape, DType::kFloat32));
  };
  PrimitiveRecord primitive;
  primitive.kind = PrimitiveKind::kConvolution;
  primitive.algorithm = static_cast<std::int64_t>(EltwiseAlgorithm::convolution_direct);
  primitive.strides = {1, 1};
  primitive.dilation = primitive.pad_begin = primitive.pad_end = {0, 0};
  primitive.layouts = {record({1, 16, 4, 4}), record({16, 16, 1, 1}), record({1, 16, 4, 4})};
  primitive.post_ops = std::move(list);
  return primitive;
}

}  // namespace

TEST_CASE("linear after linear, bounds after bounds and ReLU after ReLU become one", "[onednn]") {
  CHECK(is_one(made_of({linear(0.5F, 0), linear(1, 0.25F)}), 0.5F, 0.25F));
  // (2 x + 1) * 3 - 1 = 6 x + 2
  CHECK(is_one(made_of({linear(2, 1), linear(3, 0), linear(1, -1)}), 6, 2));
  CHECK(is_one(made_of({linear(2, 1), linear(0, 5)}), 0, 5));
  CHECK(is_one(made_of({clip(-1, 1), clip(0, 0.5F)}), 0, 0.5F));
  CHECK(is_one(made_of({clip(-1, 1), clip(2, 3)}), 2, 2));
  CHECK(is_one(made_of({clip(2, 3), clip(-1, 1)}), 1, 1));
  CHECK(is_one(made_of({clip(0, kInfinity), clip(-kInfinity, 6)}), 0, 6));
  CHECK(is_one(made_of({relu(0.5F), relu(0.25F)}), 0.125F, 0));
  CHECK(is_one(made_of({relu(0.5F), relu(0)}), 0, 0));
  CHECK(is_one(made_of({relu(0), relu(0.5F)}), 0, 0));
  CHECK(is_one(made_of({relu(-0.5F), relu(0.25F)}), -0.5F, 0));  // -0.5 x is positive
}

TEST_CASE("functions are kept apart where one would not give what both do", "[onednn]") {
  const Made pairs[] = {
      made_of({linear(1e30F, 0), linear(2e30F, 0)}),         // overflows, but not of 0
      made_of({linear(1e-30F, 0), linear(2e-30F, 0)}),       // underflows, but not of 1e30
      made_of({linear(1, 12582912), linear(1, -12582912)}),  // rounds to an integer
      made_of({linear(kInfinity, 0), linear(0.5F, 0)}),
      made_of({relu(1e-30F), relu(2e-30F)}),
      made_of({post_function(EltwiseAlgorithm::eltwise_elu, 1),
               post_function(EltwiseAlgorithm::eltwise_elu, 2)}),
  };
  for (const Made& made : pairs) {
    CHECK_FALSE(made.all);  // of one algorithm, with other numbers
    CHECK(made.list.size() == 1);
  }
}

TEST_CASE("a list has one set of numbers for an algorithm", "[onednn]") {
  const PostOpRecord tanh = post_function(EltwiseAlgorithm::eltwise_tanh);
  const PostOpRecord sum{.kind = PostOpRecord::Kind::kSum, .alpha = 1.0F};
  CHECK(made_of({linear(2, 1), tanh, linear(2, 1)}).all);
  CHECK(made_of({tanh, sum, tanh}).all);
  CHECK(made_of({sum, relu(0), clip(0, 1), linear(2, 1), tanh}).all);
  CHECK_FALSE(made_of({linear(2, 1), tanh, linear(2, 2)}).all);
  CHECK_FALSE(made_of({relu(0.5F), sum, relu(0.25F)}).all);
  CHECK_FALSE(made_of({clip(0, 1), sum, tanh, clip(0, 2)}).all);
  // The first two become one, which is no longer the third.
  CHECK_FALSE(made_of({linear(2, 1), tanh, linear(2, 1), linear(2, 0)}).all);
}

TEST_CASE("a stored list that oneDNN computes as another one is refused", "[onednn]") {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  const PostOpRecord tanh = post_function(EltwiseAlgorithm::eltwise_tanh);
  CHECK_NOTHROW(make_primitive(convolution_with({linear(2, 1), tanh, linear(2, 1)}), engine));
  try {
    make_primitive(convolution_with({linear(2, 1), tanh, linear(2, 2)}), engine);
    FAIL("it was made");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kInvalidGraph);
    CHECK(error.message() == "two of its post-ops are of one algorithm with different numbers");
  }
}

}  // namespace npu::onednn
