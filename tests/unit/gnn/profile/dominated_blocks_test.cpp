// SPDX-License-Identifier: Apache-2.0
// Which blocks need no measurement at larger sizes, since no plan would have them.
#include "gnn/profile/dominated_blocks.hpp"

#include "catch.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

constexpr std::int32_t kStages = 3;

StageTable table_of(const std::string& second_resource) {
  StageTable table;
  table.devices.push_back({"cpu", "host"});
  table.devices.push_back({"npu", second_resource});
  return table;
}

void add(StageTable& table, const std::string& device, std::int32_t first, std::int32_t last,
         double ms, double n = 1000, std::int32_t layer = 1) {
  ProfileEntry entry;
  entry.device = device;
  entry.layer = layer;
  entry.first = first;
  entry.last = last;
  entry.n = n;
  entry.m = 4 * n;
  entry.ms = ms;
  table.entries.push_back(entry);
}

BlockPoint point(std::int32_t device, std::int32_t first, std::int32_t last, std::int64_t n = 4000,
                 std::int64_t degree = 4) {
  return {device, 1, first, last, n, degree * n, 0};
}

}  // namespace

TEST_CASE("a block that alone takes longer than its layer is dominated", "[gnn][profile]") {
  StageTable table = table_of("other");
  add(table, "cpu", 1, 3, 2.0);
  add(table, "cpu", 1, 1, 3.1);
  add(table, "cpu", 1, 2, 2.9);
  CHECK(is_dominated(table, point(0, 1, 1), kStages));
  CHECK_FALSE(is_dominated(table, point(0, 1, 2), kStages));           // not by enough
  CHECK_FALSE(is_dominated(table, point(0, 1, 3), kStages));           // the layer itself
  CHECK_FALSE(is_dominated(table, point(0, 2, 3), kStages));           // nothing is known
  CHECK_FALSE(is_dominated(table, point(0, 1, 1, 1000), kStages));     // nothing smaller
  CHECK_FALSE(is_dominated(table, point(0, 1, 1, 4000, 5), kStages));  // another degree
  // At every smaller size.
  add(table, "cpu", 1, 3, 4.0, 2000);
  add(table, "cpu", 1, 1, 5.0, 2000);
  CHECK_FALSE(is_dominated(table, point(0, 1, 1), kStages));
  CHECK(is_dominated(table, point(0, 1, 1, 2000), kStages));
}

TEST_CASE("blocks that take no time to speak of may change places at larger sizes",
          "[gnn][profile]") {
  StageTable table = table_of("other");
  add(table, "cpu", 1, 3, 0.1);
  add(table, "cpu", 1, 1, 0.9);
  CHECK_FALSE(is_dominated(table, point(0, 1, 1), kStages));
  add(table, "cpu", 1, 3, 0.4, 2000);
  add(table, "cpu", 1, 1, 1.0, 2000);
  CHECK(is_dominated(table, point(0, 1, 1), kStages));
}

TEST_CASE("a device is compared with itself, else with those of its resource", "[gnn][profile]") {
  StageTable shared = table_of("host");
  add(shared, "cpu", 1, 3, 2.0);
  add(shared, "npu", 1, 1, 3.1);
  add(shared, "npu", 2, 3, 1.0);
  CHECK(is_dominated(shared, point(1, 1, 1), kStages));
  // It has to do where the cpu takes no part.
  add(shared, "npu", 1, 3, 9.0);
  CHECK_FALSE(is_dominated(shared, point(1, 1, 1), kStages));
  // What another resource does in the time of a block costs this one nothing.
  StageTable apart = table_of("card");
  add(apart, "cpu", 1, 3, 2.0);
  add(apart, "npu", 1, 1, 3.1);
  CHECK_FALSE(is_dominated(apart, point(1, 1, 1), kStages));
}

TEST_CASE("on a single resource the rest of the layer counts", "[gnn][profile]") {
  StageTable table = table_of("host");
  add(table, "cpu", 1, 3, 2.0);
  add(table, "cpu", 1, 1, 1.5);
  add(table, "cpu", 2, 3, 1.8);
  add(table, "cpu", 2, 2, 1.1);
  add(table, "cpu", 3, 3, 0.4);
  // 1.5 and the faster of 1.8 and 1.1 + 0.4: 3.0 for 2.0.
  CHECK(is_dominated(table, point(0, 1, 1), kStages));
  CHECK(is_dominated(table, point(0, 2, 3), kStages));
  // The npu's last stages make the first one worth it, and the other way round.
  add(table, "npu", 2, 3, 1.2);
  CHECK_FALSE(is_dominated(table, point(0, 1, 1), kStages));
  CHECK_FALSE(is_dominated(table, point(1, 2, 3), kStages));
  // Elsewhere they cost the cpu nothing.
  table.devices[1].resource = "card";
  table.entries.pop_back();
  CHECK_FALSE(is_dominated(table, point(0, 1, 1), kStages));
}
