// SPDX-License-Identifier: Apache-2.0
// In which layout are oneDNN's convolutions fastest? Forward float32 and bfloat16 convolutions of
// ResNet-50, MobileNetV2 and InceptionV3, batch 1, with source and result with channels last (nhwc)
// and in blocks of 8 and 16 channels (nChw8c, nChw16c); weights are packed in oneDNN's preferred
// layout. Variants take turns, and the best of several rounds counts; -1 if there is only a
// reference kernel. The geometric means are the reason why the target `host` uses blocks of 16.
//
// Build and run:
//   g++ -O2 -std=c++20 scripts/bench/conv_layouts.cpp -ldnnl -o conv_layouts
//   OMP_NUM_THREADS=2 ./conv_layouts [ROUNDS]
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <unordered_map>
#include <vector>

using dnnl::memory;

struct Conv {
  const char* name;
  int channels, filters, size, kernel, stride, groups;
};

struct Run {
  dnnl::convolution_forward primitive;
  std::unordered_map<int, memory> arguments;
};

static bool make_run(const dnnl::engine& engine, const Conv& conv, memory::data_type type,
                     memory::format_tag tag, Run& run) {
  const int pad = conv.kernel / 2;
  const int out = (conv.size + 2 * pad - conv.kernel) / conv.stride + 1;
  const memory::desc source({1, conv.channels, conv.size, conv.size}, type, tag);
  const memory::desc target({1, conv.filters, out, out}, type, tag);
  memory::dims filter{conv.filters, conv.channels / conv.groups, conv.kernel, conv.kernel};
  if (conv.groups > 1) {
    filter[0] /= conv.groups;
    filter.insert(filter.begin(), conv.groups);
  }
  const memory::desc weights(filter, type, memory::format_tag::any);
  try {
    const dnnl::convolution_forward::primitive_desc description(
        {dnnl::prop_kind::forward_inference,
         dnnl::algorithm::convolution_direct,
         source,
         weights,
         target,
         {conv.stride, conv.stride},
         {pad, pad},
         {pad, pad}},
        engine);
    if (std::string_view(description.impl_info_str()).starts_with("ref")) return false;
    run.primitive = dnnl::convolution_forward(description);
    run.arguments = {{DNNL_ARG_SRC, memory(description.src_desc(), engine)},
                     {DNNL_ARG_WEIGHTS, memory(description.weights_desc(), engine)},
                     {DNNL_ARG_DST, memory(description.dst_desc(), engine)}};
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 15;
  const std::array<Conv, 14> convs{{{"r50 1x1 64>256", 64, 256, 56, 1, 1, 1},
                                    {"r50 3x3 64", 64, 64, 56, 3, 1, 1},
                                    {"r50 1x1 512>128", 512, 128, 28, 1, 1, 1},
                                    {"r50 3x3 128", 128, 128, 28, 3, 1, 1},
                                    {"r50 3x3/2 128", 128, 128, 56, 3, 2, 1},
                                    {"r50 3x3 256", 256, 256, 14, 3, 1, 1},
                                    {"r50 1x1 1024>256", 1024, 256, 14, 1, 1, 1},
                                    {"r50 3x3 512", 512, 512, 7, 3, 1, 1},
                                    {"mv2 1x1 24>144", 24, 144, 56, 1, 1, 1},
                                    {"mv2 dw 144", 144, 144, 56, 3, 1, 144},
                                    {"mv2 dw/2 192", 192, 192, 28, 3, 2, 192},
                                    {"mv2 1x1 160>960", 160, 960, 7, 1, 1, 1},
                                    {"inc 5x5 48>64", 48, 64, 35, 5, 1, 1},
                                    {"inc 1x1 768>192", 768, 192, 17, 1, 1, 1}}};
  const std::array<std::pair<const char*, memory::format_tag>, 3> layouts{
      {{"nhwc", memory::format_tag::nhwc},
       {"nChw8c", memory::format_tag::nChw8c},
       {"nChw16c", memory::format_tag::nChw16c}}};
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  for (const auto& [type_name, type] :
       {std::pair("float32", memory::data_type::f32), {"bfloat16", memory::data_type::bf16}}) {
    std::printf("%-18s", type_name);
    for (const auto& layout : layouts) std::printf(" %10s", layout.first);
    std::printf("   us\n");
    std::array<double, 3> logs{};
    std::array<int, 3> counts{};
    for (const Conv& conv : convs) {
      std::array<Run, 3> runs;
      std::array<double, 3> best{};
      for (std::size_t l = 0; l < layouts.size(); ++l) {
        best[l] = make_run(engine, conv, type, layouts[l].second, runs[l]) ? 1e30 : -1;
      }
      for (int round = 0; round < rounds; ++round) {
        for (std::size_t l = 0; l < layouts.size(); ++l) {
          if (best[l] < 0) continue;
          const auto start = std::chrono::steady_clock::now();
          runs[l].primitive.execute(stream, runs[l].arguments);
          stream.wait();
          const std::chrono::duration<double, std::micro> time =
              std::chrono::steady_clock::now() - start;
          best[l] = std::min(best[l], time.count());
        }
      }
      std::printf("%-18s", conv.name);
      for (std::size_t l = 0; l < layouts.size(); ++l) {
        std::printf(" %10.1f", best[l]);
        if (best[l] > 0 && best[0] > 0) {
          logs[l] += std::log(best[l] / best[0]);
          ++counts[l];
        }
      }
      std::printf("\n");
      std::fflush(stdout);
    }
    std::printf("%-18s", "mean, nhwc = 1");
    for (std::size_t l = 0; l < layouts.size(); ++l) {
      std::printf(" %10.2f", counts[l] > 0 ? std::exp(logs[l] / counts[l]) : -1.0);
    }
    std::printf("\n");
  }
}
