// SPDX-License-Identifier: Apache-2.0
// The bytes of a plan: they come back as they were, and are refused where they end too early.
#include "program/plan_format.hpp"

#include <array>
#include <cstring>
#include <string>

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::onednn {
namespace {

/// Gives every field another value, so that two that change places change the bytes.
class Filler {
 public:
  void operator()(const char* /*name*/, auto& value) { fill(value); }

  template <typename T>
  void fill(T& value) {
    if constexpr (kHasFields<T>) {
      for_each_field(value, *this);
    } else if constexpr (std::is_array_v<T>) {
      for (auto& each : value) fill(each);
    } else if constexpr (std::is_same_v<T, bool>) {
      value = ++next_ % 2 != 0;
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(++next_ % kEnumerators<T>);
    } else {
      value = static_cast<T>(++next_);
    }
  }
  template <typename T>
  void fill(std::vector<T>& list) {
    list.resize(2);
    for (T& each : list) fill(each);
  }
  template <typename T, std::size_t kCount>
  void fill(std::array<T, kCount>& list) {
    for (T& each : list) fill(each);
  }
  template <typename T>
  void fill(std::optional<T>& value) {
    fill(value.emplace());
  }
  void fill(std::string& text) { text = "text " + std::to_string(++next_); }
  void fill(Kernel& kernel) {
    std::visit([&](auto& each) { fill(each); }, kernel);
  }

 private:
  int next_ = 0;
};

template <std::size_t... kIndex>
void add_kernels(PlanRecord& plan, std::index_sequence<kIndex...> /*kernels*/) {
  (plan.steps.emplace_back().kernel.emplace(std::in_place_index<kIndex>), ...);
}

/// One step for every kernel, and one with a primitive.
PlanRecord canonical_plan() {
  Filler filler;
  PlanRecord plan;
  filler.fill(plan);
  plan.steps.clear();
  add_kernels(plan, std::make_index_sequence<std::variant_size_v<Kernel>>());
  for (StepRecord& step : plan.steps) {
    filler.fill(step.node);
    filler.fill(step.operands);
    filler.fill(step.scratch_bytes);
    filler.fill(step.scratch_offset);
    filler.fill(*step.kernel);
  }
  filler.fill(plan.steps.emplace_back().primitive);
  return plan;
}

}  // namespace

TEST_CASE("a plan comes back from its bytes", "[onednn][plan]") {
  const std::vector<std::byte> bytes = write_plan(canonical_plan());
  const PlanRecord plan = read_plan(bytes);
  CHECK(plan.steps.size() == std::variant_size_v<Kernel> + 1);
  CHECK(write_plan(plan) == bytes);
  CHECK(write_plan(read_plan(write_plan(PlanRecord{}))) == write_plan(PlanRecord{}));
}

TEST_CASE("a plan that ends too early or too late is refused", "[onednn][plan]") {
  std::vector<std::byte> bytes = write_plan(canonical_plan());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_THROWS_AS(read_plan(std::span(bytes).first(size)), Error);
  }
  bytes.push_back(std::byte{0});
  CHECK_THROWS_WITH(read_plan(bytes), Catch::Contains("bytes follow its end"));
}

TEST_CASE("a plan says which of its fields is none", "[onednn][plan]") {
  PlanRecord plan;
  plan.steps.resize(2);
  plan.steps[1].kernel = MiddleReduction{static_cast<ReductionOp>(9)};
  CHECK_THROWS_WITH(read_plan(write_plan(plan)), Catch::Contains("step 1: 'op': found 9"));
  plan.steps[1].kernel = Gemv{};
  std::vector<std::byte> bytes = write_plan(plan);
  const char name[] = {'g', 'e', 'm', 'v'};
  const auto* text = static_cast<const std::byte*>(static_cast<const void*>(name));
  auto found = std::search(bytes.begin(), bytes.end(), text, text + sizeof name);
  REQUIRE(found != bytes.end());
  *found = std::byte{'h'};
  CHECK_THROWS_WITH(read_plan(bytes), Catch::Contains("step 1: there is no kernel"));
}

}  // namespace npu::onednn
