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
  plan.outputs = {{"y", DType::kInt64, {}, 8}};
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
  const auto is_refused = [](const Plan& plan) {
    const std::string blob = blob_of(plan);
    try {
      read_blob(blob.data(), blob.size());
    } catch (const Error& error) {
      return error.code() == ErrorCode::kInvalidGraph;
    }
    return false;
  };
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

}  // namespace npu::opencl
