// SPDX-License-Identifier: Apache-2.0
// Convolutions at the edges of what kernels take: padding at and above the kernel's extent, a pixel
// or two, strides, dilation, groups, channels around whole vectors. Whatever kernel is chosen, they
// compile, load and give what float64 gives.
//
// NPU_EDGE_CASES sets their number, NPU_EDGE_SEED the seed.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "backends/onednn/onednn_harness.hpp"
#include "catch.hpp"

namespace npu::test::onednn {
namespace {

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

struct Drawn {
  Shape source;
  Shape weight;
  ConvArguments arguments;
  bool has_bias = false;

  std::string attrs() const {
    return R"("stride":)" + list_text(arguments.stride) + R"(,"padding":)" +
           list_text(arguments.pad_begin) + R"(,"dilation":)" + list_text(arguments.dilation) +
           R"(,"groups":)" + std::to_string(arguments.groups);
  }
};

Drawn draw(std::minstd_rand& random) {
  const auto one_of = [&](std::initializer_list<std::int64_t> values) {
    return values.begin()[random() % values.size()];
  };
  Drawn drawn;
  ConvArguments& arguments = drawn.arguments;
  const std::int64_t inputs = one_of({1, 4, 15, 16, 32});
  const std::int64_t outputs = one_of({1, 8, 16, 17, 32});
  arguments.groups = one_of({1, 1, 1, 2, 4});
  drawn.source = {one_of({1, 2}), inputs * arguments.groups};
  drawn.weight = {outputs * arguments.groups, inputs};
  drawn.has_bias = one_of({0, 1}) == 1;
  const std::int64_t stride = one_of({1, 1, 2});
  const std::int64_t dilation = one_of({1, 1, 2});
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t taps = one_of({1, 2, 3, 3, 5});
    arguments.stride[i] = one_of({stride, stride, 3});
    arguments.dilation[i] = dilation;
    const std::int64_t span = dilation * (taps - 1) + 1;
    arguments.pad_begin[i] = arguments.pad_end[i] = one_of({0, taps / 2, taps, span, span + 1});
    drawn.source.push_back(std::max(one_of({1, taps, 7, 12}), span - 2 * arguments.pad_begin[i]));
    drawn.weight.push_back(taps);
  }
  return drawn;
}

}  // namespace

TEST_CASE("onednn runs convolutions at the edges of its kernels", "[onednn][convolution]") {
  std::minstd_rand random(static_cast<unsigned>(setting("NPU_EDGE_SEED", 1)));
  for (int i = 0; i < setting("NPU_EDGE_CASES", 80); ++i) {
    const Drawn drawn = draw(random);
    check_convolution(NPU_FLOAT32, drawn.source, drawn.weight, drawn.has_bias, drawn.arguments,
                      drawn.attrs());
  }
  // Padding as large as a kernel that Winograd's filters suit.
  check_convolution(NPU_FLOAT32, {1, 64, 14, 14}, {64, 64, 1, 3}, true,
                    {.pad_begin = {1, 1}, .pad_end = {1, 1}}, R"("padding":[1,1])");
  check_convolution(NPU_FLOAT32, {1, 64, 14, 14}, {64, 64, 3, 3}, true,
                    {.pad_begin = {4, 3}, .pad_end = {4, 3}}, R"("padding":[4,3])");
}

}  // namespace npu::test::onednn
