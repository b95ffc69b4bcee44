// SPDX-License-Identifier: Apache-2.0
// Plans that could touch memory that is not theirs are refused, each with what is wrong about it.
#include "program/check_plan.hpp"

#include <functional>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "npu/support/error.hpp"
#include "program/memory_plan.hpp"

namespace npu::onednn {
namespace {

const std::vector<std::size_t> kConstants{48};

Elementwise exponentials(std::int64_t count) { return {.count = count}; }

/// input [3, 4] + constant [3, 4] into the arena, the exponential function of that in
/// place, a copy of it to the output.
PlanRecord sound_plan() {
  PlanRecord plan;
  plan.node_count = 2;
  plan.inputs = {{"x", DType::kFloat32, {3, 4}}};
  plan.outputs = {{"y", DType::kFloat32, {3, 4}}};
  plan.buffers = {{BufferKind::kInput, 48, 0, 0},
                  {BufferKind::kConstant, 48, 0, 0},
                  {BufferKind::kArena, 48, 0, 0},
                  {BufferKind::kOutput, 48, 0, 0}};
  plan.steps.resize(3);
  plan.steps[0].operands = {{0, 0}, {1, 0}, {2, 0}};
  plan.steps[0].kernel =
      BroadcastBinary{BinaryOp::kAdd, 1.0F, DType::kFloat32, DType::kFloat32, {12}, {1}, {1}, {1}};
  plan.steps[1].node = 1;
  plan.steps[1].operands = {{2, 0}, {2, 0}};
  plan.steps[1].kernel = exponentials(12);
  plan.steps[2].operands = {{2, 0}, {3, 0}};
  plan.steps[2].kernel = CopyBytes{48};
  plan.taps = {{{"sum", DType::kFloat32, {3, 4}},
                DType::kFloat32,
                {DType::kFloat32, {3, 4}, {4, 1}, {}, {}, 0, 0, 0, 0},
                {2, 0},
                1}};
  place_in_arena(plan);
  return plan;
}

void check(PlanRecord plan) {
  const std::vector<std::size_t> scratch(plan.steps.size(), 0);
  check_plan(plan, scratch, kConstants);
}

struct Fault {
  const char* message;
  std::function<void(PlanRecord&)> make;
};

const std::vector<Fault> kFaults{
    {"a tensor has a layout that there is not",
     [](PlanRecord& plan) { plan.inputs[0].layout = "onednn:channels_last"; }},
    {"a tensor has a layout that there is not",
     [](PlanRecord& plan) { plan.outputs[0].layout = "nobody's"; }},
    {"tap 0: it is not row-major",
     [](PlanRecord& plan) { plan.taps[0].tensor.layout = "onednn:channels_last"; }},
    {"step 1 (elementwise): operand 0: 52 bytes from 0 on do not lie in a buffer of 48",
     [](PlanRecord& plan) { plan.steps[1].kernel = exponentials(13); }},
    {"step 2 (copy): operand 0: 48 bytes from 4 on do not lie in a buffer of 48",
     [](PlanRecord& plan) { plan.steps[2].operands[0].offset_bytes = 4; }},
    {"from 18446744073709551612 on do not lie in",
     [](PlanRecord& plan) { plan.steps[2].operands[0].offset_bytes = ~std::uint64_t{3}; }},
    {"step 0 (broadcast): operand 2: it is misaligned",
     [](PlanRecord& plan) { plan.steps[0].operands[2].offset_bytes = 2; }},
    {"step 0 (broadcast): operand 1: its buffer is not there",
     [](PlanRecord& plan) { plan.steps[0].operands[1].buffer = 4; }},
    {"step 1 (elementwise): it has another number of operands",
     [](PlanRecord& plan) { plan.steps[1].operands.pop_back(); }},
    {"step 1 (elementwise): it has another number of operands",
     [](PlanRecord& plan) { plan.steps[1].operands.clear(); }},
    {"step 1 (elementwise): 'count' is -12",
     [](PlanRecord& plan) { plan.steps[1].kernel = exponentials(-12); }},
    {"step 1 (elementwise): a size is negative or too large",
     [](PlanRecord& plan) { plan.steps[1].kernel = exponentials(INT64_MAX); }},
    {"it writes what may only be read",
     [](PlanRecord& plan) {
       plan.steps[2].operands = {{2, 0}, {0, 0}};
     }},
    {"it writes what may only be read",
     [](PlanRecord& plan) {
       plan.steps[2].operands = {{2, 0}, {1, 0}};
     }},
    {"operand 0: no step has written it",
     [](PlanRecord& plan) { plan.steps.erase(plan.steps.begin()); }},
    {"no step writes an output", [](PlanRecord& plan) { plan.steps.pop_back(); }},
    {"an output has no buffer",
     [](PlanRecord& plan) {
       plan.outputs.push_back({"z", DType::kFloat32, {1}});
     }},
    {"operand 0: it overlaps what the step writes",
     [](PlanRecord& plan) {
       plan.steps[2].operands = {{2, 0}, {2, 0}};
     }},
    {"operand 0: it overlaps what the step writes",
     [](PlanRecord& plan) {
       plan.buffers[2].bytes = 64;
       plan.steps[1].operands[1].offset_bytes = 16;
     }},
    {"a buffer has another size than the tensor",
     [](PlanRecord& plan) { plan.buffers[0].bytes = 52; }},
    {"a buffer has another size than the tensor",
     [](PlanRecord& plan) { plan.buffers[1].bytes = 52; }},
    {"a buffer has another size than the tensor",
     [](PlanRecord& plan) {
       plan.outputs[0].shape = {3, 5};
     }},
    {"a tensor's shape is none", [](PlanRecord& plan) { plan.inputs[0].shape = {-1}; }},
    {"a tensor's shape is none",
     [](PlanRecord& plan) { plan.inputs[0].shape = {std::int64_t{1} << 60}; }},
    {"a buffer is bound to a tensor that is not there",
     [](PlanRecord& plan) { plan.buffers[1].index = 1; }},
    {"two buffers are bound to one tensor",
     [](PlanRecord& plan) { plan.buffers.push_back(plan.buffers[3]); }},
    {"a buffer is a weight of the host",
     [](PlanRecord& plan) { plan.buffers[1].kind = BufferKind::kWeight; }},
    {"a buffer is empty or too large", [](PlanRecord& plan) { plan.buffers[2].bytes = 0; }},
    {"a buffer is empty or too large",
     [](PlanRecord& plan) { plan.buffers[2].bytes = ~std::uint64_t{0}; }},
    {"its node is not there", [](PlanRecord& plan) { plan.steps[1].node = 2; }},
    {"its node is not there", [](PlanRecord& plan) { plan.steps[1].node = -2; }},
    {"it has too many nodes", [](PlanRecord& plan) { plan.node_count = ~std::uint64_t{0}; }},
    {"it is not either a kernel or a primitive",
     [](PlanRecord& plan) { plan.steps[1].kernel.reset(); }},
    {"it is not either a kernel or a primitive",
     [](PlanRecord& plan) { plan.steps[1].primitive.emplace(); }},
    {"tap 0: it waits for steps that are not there",
     [](PlanRecord& plan) { plan.taps[0].steps = 4; }},
    {"tap 0: no step has written it", [](PlanRecord& plan) { plan.taps[0].steps = 0; }},
    {"tap 0: its buffer is not there", [](PlanRecord& plan) { plan.taps[0].source.buffer = 4; }},
    {"tap 0: 48 bytes from 4 on do not lie in a buffer of 48",
     [](PlanRecord& plan) { plan.taps[0].source.offset_bytes = 4; }},
    {"tap 0: it is misaligned", [](PlanRecord& plan) { plan.taps[0].source.offset_bytes = 1; }},
    {"tap 0: its layout is of another shape",
     [](PlanRecord& plan) {
       plan.taps[0].tensor.shape = {4, 3};
     }},
    {"tap 0: its elements are of another dtype",
     [](PlanRecord& plan) { plan.taps[0].tensor.dtype = DType::kInt32; }},
    {"tap 0: two elements of a layout lie in one place",
     [](PlanRecord& plan) {
       plan.taps[0].layout.strides = {3, 1};
     }},
    {"tap 0: 56 bytes from 0 on do not lie in a buffer of 48",
     [](PlanRecord& plan) {
       plan.taps[0].layout.strides = {5, 1};
     }},
    {"its taps are not in the order of their steps",
     [](PlanRecord& plan) {
       plan.taps.push_back(plan.taps[0]);
       plan.taps[0].steps = 2;
     }},
    {"buffers overlap, or lie outside the arena",
     [](PlanRecord& plan) { plan.buffers[2].offset = 64; }},
    {"buffers overlap, or lie outside the arena", [](PlanRecord& plan) { plan.arena_bytes = 48; }},
    {"buffers overlap, or lie outside the arena",
     [](PlanRecord& plan) {
       plan.arena_bytes = 256;
       plan.buffers[2].offset = 4;
     }},
    {"its arena is too large", [](PlanRecord& plan) { plan.arena_bytes = ~std::uint64_t{0}; }},
};

/// Two buffers that are alive at the same time.
PlanRecord plan_of_two() {
  PlanRecord plan = sound_plan();
  plan.buffers.push_back({BufferKind::kArena, 48, 0, 0});
  plan.steps[1].operands = {{2, 0}, {4, 0}};
  plan.steps[2].operands = {{4, 0}, {3, 0}};
  place_in_arena(plan);
  return plan;
}

/// The output may be the buffer of the input, which the first step alone reads.
PlanRecord plan_with_alias() {
  PlanRecord plan = sound_plan();
  plan.aliases = {{0, 0, false}};
  return plan;
}

/// A state and its next value that no step touches.
void add_state(PlanRecord& plan) {
  plan.inputs.push_back(plan.inputs[0]);
  plan.outputs.push_back(plan.outputs[0]);
}

const std::vector<Fault> kAliasFaults{
    {"an alias is no pair of an input and an output",
     [](PlanRecord& plan) { plan.aliases[0].input = 1; }},
    {"an alias is no pair of an input and an output",
     [](PlanRecord& plan) { plan.aliases[0].output = ~std::uint64_t{0}; }},
    {"an alias is no pair of an input and an output",  // an output in two of them
     [](PlanRecord& plan) {
       add_state(plan);
       plan.buffers.push_back({BufferKind::kOutput, 48, 1, 0});
       plan.aliases.push_back({1, 0, false});
     }},
    {"an alias is no pair of an input and an output",  // an input in two of them
     [](PlanRecord& plan) {
       add_state(plan);
       plan.buffers.push_back({BufferKind::kOutput, 48, 1, 0});
       plan.aliases.push_back({0, 1, false});
     }},
    {"an alias is a pair of tensors that differ",
     [](PlanRecord& plan) { plan.outputs[0].dtype = DType::kInt32; }},
    {"an alias is a pair of tensors that differ",
     [](PlanRecord& plan) { plan.outputs[0].shape = {12}; }},
    {"step 3 (copy): operand 0: a step may have overwritten it",
     [](PlanRecord& plan) {
       plan.steps.push_back(plan.steps[2]);
       plan.steps[3].operands = {{0, 0}, {2, 0}};
     }},
    {"step 2 (copy): operand 0: it overlaps what the step writes",
     [](PlanRecord& plan) {
       plan.steps[2].operands = {{0, 0}, {3, 0}};
     }},
    {"step 2 (elementwise): operand 0: it overlaps what the step writes",
     [](PlanRecord& plan) {
       plan.steps[2].kernel = exponentials(6);
       plan.steps[2].operands = {{0, 12}, {3, 0}};
     }},
    {"tap 0: a step may have overwritten it",
     [](PlanRecord& plan) {
       plan.taps[0].source = {0, 0};
       plan.taps[0].steps = 3;
     }},
};

LayoutRecord blocked() { return {DType::kFloat32, {2, 24, 5}, {160, 80, 16}, {16}, {1}}; }

}  // namespace

TEST_CASE("a sound plan passes", "[onednn][plan]") {
  CHECK_NOTHROW(check(sound_plan()));
  CHECK_NOTHROW(check(plan_of_two()));
}

TEST_CASE("a plan that leads out of its buffers is refused", "[onednn][plan]") {
  for (const Fault& fault : kFaults) {
    PlanRecord plan = sound_plan();
    fault.make(plan);
    INFO(fault.message);
    CHECK_THROWS_WITH(check(plan), Catch::Contains("the blob's plan is damaged") &&
                                       Catch::Contains(fault.message));
  }
}

TEST_CASE("an output in an input's place is written behind what reads the input",
          "[onednn][plan]") {
  CHECK_NOTHROW(check(plan_with_alias()));
  // Element by element, a step may read where it writes, and another step what lies apart.
  PlanRecord plan = plan_with_alias();
  plan.steps[2].kernel = exponentials(12);
  plan.steps[2].operands = {{0, 0}, {3, 0}};
  CHECK_NOTHROW(check(plan));
  plan.steps[2].kernel = exponentials(6);
  plan.steps[2].operands = {{0, 24}, {3, 0}};
  CHECK_NOTHROW(check(plan));
  // Before the output is begun, a tap may have the input.
  plan = plan_with_alias();
  plan.taps[0].source = {0, 0};
  plan.taps[0].steps = 2;
  CHECK_NOTHROW(check(plan));
  for (const Fault& fault : kAliasFaults) {
    plan = plan_with_alias();
    fault.make(plan);
    INFO(fault.message);
    CHECK_THROWS_WITH(check(plan), Catch::Contains("the blob's plan is damaged") &&
                                       Catch::Contains(fault.message));
    // Some of them are sound where the two have buffers of their own.
    plan.aliases.clear();
    if (std::string_view(fault.message).find("step") != std::string_view::npos) {
      CHECK_NOTHROW(check(plan));
    }
  }
}

TEST_CASE("buffers that are alive together have places of their own", "[onednn][plan]") {
  PlanRecord plan = plan_of_two();
  REQUIRE(plan.buffers[2].offset != plan.buffers[4].offset);
  plan.buffers[2].offset = plan.buffers[4].offset;
  CHECK_THROWS_WITH(check(plan), Catch::Contains("buffers overlap"));
}

TEST_CASE("scratch memory that grows has the arena planned again", "[onednn][plan]") {
  SqueezeExcite kernel;
  kernel.lanes = lanes_of(cpu_vector_isa());
  kernel.isa = cpu_vector_isa();
  PlanRecord plan;
  plan.inputs = {{"x", DType::kFloat32, {16}}};
  plan.outputs = {{"y", DType::kFloat32, {16}}};
  plan.buffers = {{BufferKind::kInput, 64, 0, 0},
                  {BufferKind::kConstant, 64, 0, 0},
                  {BufferKind::kConstant, 64, 1, 0},
                  {BufferKind::kOutput, 64, 0, 0}};
  plan.steps.resize(1);
  plan.steps[0].operands = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  plan.steps[0].kernel = kernel;
  const std::vector<std::size_t> scratch{0};
  const std::vector<std::size_t> constants{64, 64};
  plan.steps[0].scratch_bytes = 4;  // of 17 floats
  check_plan(plan, scratch, constants);
  CHECK(plan.steps[0].scratch_bytes == 68);
  CHECK(plan.arena_bytes == 128);
  plan.steps[0].scratch_offset = 64;
  CHECK_THROWS_WITH(check_plan(plan, scratch, constants), Catch::Contains("outside the arena"));
}

TEST_CASE("the span of a layout counts its padding", "[onednn][plan]") {
  CHECK(checked_span(blocked()) == std::size_t{4} * 2 * 32 * 5);
  // 2 rows of 3 that are 8 apart: the last element is number 10.
  CHECK(checked_span({DType::kBFloat16, {2, 3}, {8, 1}, {}, {}}) == 2 * 11);
  CHECK(checked_span({DType::kFloat32, {1, 3}, {0, 1}, {}, {}}) == 12);
}

TEST_CASE("layouts that are none are refused", "[onednn][plan]") {
  const auto refused = [](const std::function<void(LayoutRecord&)>& make, const char* message) {
    LayoutRecord layout = blocked();
    make(layout);
    CHECK_THROWS_WITH(checked_span(layout), Catch::Contains(message));
  };
  refused([](LayoutRecord& layout) { layout.sums = kSignSums; }, "sums that it cannot have");
  const auto refused_sums = [&](const std::function<void(LayoutRecord&)>& make,
                                const char* message) {
    refused(
        [&](LayoutRecord& layout) {
          layout.type = DType::kInt8;
          layout.sums = kSignSums;
          layout.sign_mask = 1;
          layout.sum_bytes = 8;
          make(layout);
        },
        message);
  };
  refused_sums([](LayoutRecord& layout) { layout.sums = 4; }, "that there are not");
  refused_sums([](LayoutRecord& layout) { layout.sums = -1; }, "that there are not");
  refused_sums([](LayoutRecord& layout) { layout.sign_mask = 8; }, "a mask");
  refused_sums([](LayoutRecord& layout) { layout.zero_point_mask = -1; }, "a mask");
  refused_sums([](LayoutRecord& layout) { layout.sum_bytes = -1; }, "no size");
  refused_sums([](LayoutRecord& layout) { layout.sum_bytes = INT64_MAX; }, "no size");
  refused([](LayoutRecord& layout) { layout.type = DType::kInt64; }, "float32 or bfloat16");
  refused([](LayoutRecord& layout) { layout.strides.pop_back(); }, "strides");
  refused([](LayoutRecord& layout) { layout.extents.assign(13, 1); }, "strides");
  refused([](LayoutRecord& layout) { layout.extents[2] = 0; }, "an extent");
  refused([](LayoutRecord& layout) { layout.extents[2] = -5; }, "an extent");
  refused([](LayoutRecord& layout) { layout.inner_dimensions[0] = 3; }, "a dimension");
  refused([](LayoutRecord& layout) { layout.inner_dimensions[0] = -1; }, "a dimension");
  refused([](LayoutRecord& layout) { layout.inner_blocks[0] = 0; }, "a block");
  refused([](LayoutRecord& layout) { layout.inner_blocks[0] = INT64_MAX; }, "a block");
  refused([](LayoutRecord& layout) { layout.inner_blocks.push_back(16); }, "have no dimensions");
  refused([](LayoutRecord& layout) { layout.strides[2] = 8; }, "in one place");
  refused([](LayoutRecord& layout) { layout.strides[0] = 0; }, "in one place");
  refused([](LayoutRecord& layout) { layout.strides[0] = -160; }, "a stride");
  refused([](LayoutRecord& layout) { layout.strides[0] = INT64_MAX; }, "a stride");
}

}  // namespace npu::onednn
