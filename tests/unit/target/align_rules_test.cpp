// SPDX-License-Identifier: Apache-2.0
#include "target/align_rules.hpp"

#include "catch.hpp"

namespace npu {
namespace {

std::vector<std::string> faults(const std::string& text) {
  Diagnostics diagnostics;
  check_align_rules(parse_json(text, "test.json"), "test.json", "/align", diagnostics);
  std::vector<std::string> lines;
  for (const Diagnostic& entry : diagnostics.entries()) {
    lines.push_back(entry.location.pointer + ": " + entry.text);
  }
  return lines;
}

AlignRules rules(const std::string& text) {
  CHECK(faults(text).empty());
  Device device;
  device.align = parse_json(text, "test.json");
  device.memory_bandwidth = 5e9;
  return align_rules(device);
}

using Faults = std::vector<std::string>;

TEST_CASE("an empty section has the rules of LayoutAlignToNPU") {
  const AlignRules found = rules("{}");
  CHECK(found.layout == AlignedLayout{});
  CHECK(aligned_layout_name(found.layout) == "tx8");
  CHECK(found.channel_multiple == 64);
  CHECK(found.ranks == std::vector<std::int64_t>{2, 4});
  CHECK(found.align_only_classes.size() == 8);
  CHECK(found.nalign_only_classes.empty());
  CHECK(found.slice_axis == 1);
  CHECK(found.min_channels == 0);
  CHECK(found.to_align.bandwidth == 5e9);
  CHECK(found.to_nalign.latency_us == 0);
}

TEST_CASE("every key is read") {
  const AlignRules found = rules(R"({
    "layout": "blocked", "channel_multiple": 8, "ranks": [4, 5], "dtypes": ["float32", "int8"],
    "min_channels": 3, "align_only": ["conv", "aten.gelu.default", "my.op"], "nalign_only": ["gemm"],
    "slice_axis": null, "to_align": {"latency_us": 2, "bandwidth": 1e9}, "to_nalign": {}})");
  CHECK(aligned_layout_name(found.layout) == "blocked8");
  CHECK(found.channel_multiple == 8);
  CHECK(found.ranks == std::vector<std::int64_t>{4, 5});
  CHECK(found.dtypes == std::vector<DType>{DType::kFloat32, DType::kInt8});
  CHECK(found.min_channels == 3);
  CHECK(found.align_only_classes == std::vector<AlignClass>{AlignClass::kConv});
  CHECK(found.align_only_ops == std::vector<std::string>{"aten.gelu.default", "my.op"});
  CHECK(found.nalign_only_classes == std::vector<AlignClass>{AlignClass::kGemm});
  CHECK_FALSE(found.slice_axis);
  CHECK(found.to_align.latency_us == 2);
  CHECK(found.to_align.bandwidth == 1e9);
  CHECK(found.to_nalign.bandwidth == 5e9);
}

TEST_CASE("faults of a section are all reported") {
  CHECK(faults(R"({"layuot": "tx8"})") ==
        Faults{"/align/layuot: unknown key 'layuot'; did you mean 'layout'?"});
  CHECK(faults(R"({"layout": "nhwc", "channel_multiple": 0, "min_channels": -1})") ==
        Faults{"/align/layout: expected one of tx8, blocked, channels_last, found \"nhwc\"",
               "/align/channel_multiple: expected an integer in 1..1048576, found 0",
               "/align/min_channels: expected an integer in 0..1048576, found -1"});
  CHECK(faults(R"({"layout": 3, "channel_multiple": 1.5, "ranks": 4})") ==
        Faults{"/align/layout: expected one of tx8, blocked, channels_last, found 3",
               "/align/channel_multiple: expected an integer in 1..1048576, found 1.5",
               "/align/ranks: expected a list of integers, found 4"});
  CHECK(faults(R"({"ranks": [4, "x"], "dtypes": ["int64", "float31"]})") ==
        Faults{"/align/ranks/1: expected an integer in 1..64, found string",
               "/align/dtypes/0: int64 has no aligned form; elements have 1, 2 or 4 bytes",
               "/align/dtypes/1: unknown dtype \"float31\"; one of " + std::string(dtype_names())});
  CHECK(faults(R"({"align_only": ["convs", "aten.conv2.default"], "nalign_only": {}})") ==
        Faults{"/align/align_only/0: unknown class 'convs'; one of gemm, conv, pool, reduce, "
               "transpose, concatenate, scatter, pad, slice, reshape, normalization, softmax",
               "/align/align_only/1: unknown op type 'aten.conv2.default'; did you mean "
               "'aten.conv2d.default'?",
               "/align/nalign_only: expected a list of classes and op types, found object"});
  CHECK(
      faults(R"({"nalign_only": ["gemm", "softmax"]})") ==
      Faults{"/align/nalign_only: class 'gemm' is in align_only, too; give align_only without it"});
  CHECK(
      faults(R"({"to_align": {"bandwith": 1, "latency_us": -1}, "to_nalign": {"bandwidth": 0}})") ==
      Faults{"/align/to_align/bandwith: unknown key 'bandwith'; did you mean 'bandwidth'?",
             "/align/to_align/latency_us: expected a number of at least 0, found -1",
             "/align/to_nalign/bandwidth: expected a number above 0, found 0"});
  CHECK(faults(R"({"slice_axis": 99})") ==
        Faults{"/align/slice_axis: expected an integer in -64..63, found 99"});
}

TEST_CASE("built-in targets have valid sections") {
  for (const BuiltInTarget& target : built_in_targets()) {
    for (const Device& device : load_target(target.name).devices) {
      if (device.align.is_object()) CHECK_NOTHROW(align_rules(device));
    }
  }
}

}  // namespace
}  // namespace npu
