// SPDX-License-Identifier: Apache-2.0
// Blobs of the opencl backend: what is written is read, and damage is found.
#include "lowering/blob.hpp"

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::opencl {
namespace {

Plan sample_plan() {
  Plan plan;
  plan.inputs = {{"x", DType::kFloat32, {2, 3}, 24}};
  plan.outputs = {{"y", DType::kInt64, {}, 8}, {"next", DType::kFloat32, {2, 3}, 24}};
  plan.weights = {{"w", DType::kBool, {5}, 5}};
  plan.programs = {{11, 2}};  // "kernel text" and two bytes
  plan.nodes = 2;
  plan.scratch_bytes = 512;
  plan.faults = {"node 'a': an index is outside its dimension"};
  plan.launches = {{0,
                    {{PlaceKind::kInput, 0},
                     {PlaceKind::kScratch, 256},
                     {PlaceKind::kOutput, 0},
                     {PlaceKind::kFault, 0}},
                    {64, 2, 1},
                    {64, 1, 1},
                    {1, 0},
                    {50}}};
  plan.aliases = {{0, 1, false, 488}};
  return plan;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

std::string blob_of(const Plan& plan) {
  return joined(write_blob(plan, "{}", "a device", "kernel text", std::string("\0\1", 2)));
}

bool is_refused(const Plan& plan) {
  const std::string blob = blob_of(plan);
  try {
    read_blob(blob.data(), blob.size());
  } catch (const Error& error) {
    return error.code() == ErrorCode::kInvalidGraph;
  }
  return false;
}

}  // namespace

TEST_CASE("a blob gives what was written") {
  const std::string blob = blob_of(sample_plan());
  const BlobParts parts = read_blob(blob.data(), blob.size());
  CHECK(parts.report == "{}");
  CHECK(parts.fingerprint == "a device");
  CHECK(parts.source == "kernel text");
  CHECK(parts.binary == std::string("\0\1", 2));
  CHECK(parts.plan.inputs.front().bytes == 24);
  CHECK(parts.plan.outputs.front().dtype == DType::kInt64);
  CHECK(parts.plan.weights.front().name == "w");
  REQUIRE(parts.plan.launches.size() == 1);
  CHECK(parts.plan.launches[0].arguments[1].value == 256);
  CHECK(parts.plan.launches[0].arguments[3].kind == PlaceKind::kFault);
  CHECK(parts.plan.faults == sample_plan().faults);
  CHECK(parts.plan.launches[0].global == std::array<std::uint64_t, 3>{64, 2, 1});
  CHECK(parts.plan.launches[0].sizes == std::vector<std::uint64_t>{50});
  REQUIRE(parts.plan.aliases.size() == 1);
  CHECK(parts.plan.aliases[0].output == 1);
  CHECK(parts.plan.aliases[0].offset == 488);
  CHECK_FALSE(parts.plan.aliases[0].is_in_place);
  CHECK(blob_of(parts.plan) == blob);
}

TEST_CASE("code is found by program") {
  Plan plan;
  plan.programs = {{3, 1}, {4, 0}, {2, 2}};
  const auto sources = pieces_of(plan, "abcdefghi", &ProgramPart::source_bytes);
  CHECK(sources == std::vector<std::string_view>{"abc", "defg", "hi"});
  const auto binaries = pieces_of(plan, "xyz", &ProgramPart::binary_bytes);
  CHECK(binaries == std::vector<std::string_view>{"x", "", "yz"});
}

TEST_CASE("a blob that is cut or changed is refused") {
  const std::string blob = blob_of(sample_plan());
  for (std::size_t size = 0; size < blob.size(); ++size) {
    CHECK_THROWS_AS(read_blob(blob.data(), size), Error);
    std::string changed = blob;
    changed[size] = static_cast<char>(changed[size] ^ 0x20);
    CHECK_THROWS_AS(read_blob(changed.data(), changed.size()), Error);
  }
}

TEST_CASE("numbers of a plan that are out of range are refused") {
  Plan plan = sample_plan();
  plan.launches[0].arguments[1].value = 512;
  CHECK(is_refused(plan));
  plan = sample_plan();
  plan.launches[0].arguments[0].value = 1;
  CHECK(is_refused(plan));
  plan = sample_plan();
  plan.launches[0].kernel = 1;
  CHECK(is_refused(plan));
  plan = sample_plan();
  plan.launches[0].global[0] = 65;
  CHECK(is_refused(plan));
  plan = sample_plan();
  plan.launches[0].nodes = {2};
  CHECK(is_refused(plan));
  for (const ProgramPart part : {ProgramPart{12, 2}, ProgramPart{11, 1}, ProgramPart{0, 2},
                                 ProgramPart{10, 2}, ProgramPart{~std::uint64_t{0}, 2}}) {
    plan = sample_plan();
    plan.programs = {part};
    CHECK(is_refused(plan));
  }
}

TEST_CASE("aliases that are no pairs of like tensors, or that a run would not keep, are refused") {
  const auto with = [](const PlanAlias& alias) {
    Plan plan = sample_plan();
    plan.aliases = {alias};
    return plan;
  };
  CHECK_FALSE(is_refused(with({0, 1, false, 0})));
  CHECK(is_refused(with({0, 1, false, 489})));  // 24 of 512 bytes
  CHECK(is_refused(with({0, 1, false, ~std::uint64_t{0}})));
  CHECK(is_refused(with({1, 1, false, 0})));
  CHECK(is_refused(with({0, 2, false, 0})));
  CHECK(is_refused(with({0, 0, false, 0})));  // float32 and int64
  Plan plan = with({0, 1, false, 0});
  plan.outputs[1].shape = {3, 2};
  CHECK(is_refused(plan));
  plan = with({0, 1, false, 0});
  plan.inputs.push_back(plan.inputs[0]);
  plan.outputs.push_back(plan.outputs[1]);
  plan.aliases.push_back({1, 2, false, 256});
  CHECK_FALSE(is_refused(plan));
  plan.aliases[1] = {0, 2, false, 256};
  CHECK(is_refused(plan));
  plan.aliases[1] = {1, 1, false, 256};
  CHECK(is_refused(plan));
}

TEST_CASE("aliases whose launches would read what is overwritten are refused") {
  Plan plan = sample_plan();
  plan.aliases = {{0, 1, true, 0}};
  CHECK_FALSE(is_refused(plan));  // nothing writes it: it is as it was
  Launch write = plan.launches[0];
  write.arguments = {{PlaceKind::kScratch, 0}, {PlaceKind::kOutput, 1}};
  plan.launches.push_back(write);
  CHECK_FALSE(is_refused(plan));  // behind the launch that reads it
  std::swap(plan.launches[0], plan.launches[1]);
  CHECK(is_refused(plan));
  plan.launches = {write};
  plan.launches[0].arguments.push_back({PlaceKind::kInput, 0});
  CHECK(is_refused(plan));
  // One that is copied is written by nobody else.
  plan.launches = {write};
  plan.aliases[0].is_in_place = false;
  CHECK(is_refused(plan));
}

}  // namespace npu::opencl
