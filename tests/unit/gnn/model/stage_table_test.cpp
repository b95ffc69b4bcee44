// SPDX-License-Identifier: Apache-2.0
// Measured tables: reading them, and estimates between and beyond their points.
#include "gnn/model/stage_table.hpp"

#include <cmath>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;
using namespace npu::gnn;

namespace {

// ms = 2 + 0.01 n + 0.001 m, exact under interpolation in n and m / n.
double truth(double n, double m) { return 2 + 0.01 * n + 0.001 * m; }

StageTable exact_table() {
  Json json = Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
    "devices": [{"name": "cpu"}, {"name": "npu", "static": true, "resource": "host"}],
    "transfers": [{"from": "cpu", "to": "npu", "latency_ms": 1, "bytes_per_s": 1000000}],
    "entries": []})");
  for (const int n : {100, 1000, 5000}) {
    for (const int degree : {2, 10, 30}) {
      for (const int stage : {1, 2}) {
        json["entries"].push_back({{"device", "cpu"},
                                   {"first", stage},
                                   {"n", n},
                                   {"m", n * degree},
                                   {"ms", truth(n, n * degree)},
                                   {"peak_bytes", 8 * n}});
      }
    }
  }
  json["entries"].push_back(
      {{"device", "cpu"}, {"first", 1}, {"last", 2}, {"layer", 3}, {"n", 7}, {"m", 7}, {"ms", 5}});
  return StageTable::parse(json, "table.json");
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(1.0, std::abs(b)); }

}  // namespace

TEST_CASE("interpolation is exact for linear times", "[cost][profile]") {
  const StageTable table = exact_table();
  for (const double n : {100.0, 350.0, 1000.0, 4999.0}) {
    for (const double degree : {2.0, 3.7, 10.0, 29.0}) {
      const Estimate estimate = table.time_ms(0, 1, 1, 1, n, n * degree);
      CAPTURE(n, degree);
      CHECK(estimate.known);
      CHECK_FALSE(estimate.extrapolated);
      CHECK(near(estimate.value, truth(n, n * degree)));
    }
  }
  // A block without entries of its own is the sum of its stages; one of a layer goes first.
  CHECK(near(table.time_ms(0, 1, 1, 2, 350, 700).value, 2 * truth(350, 700)));
  CHECK(table.time_ms(0, 3, 1, 2, 7, 7).value == 5);
  CHECK(near(table.peak_bytes(0, 1, 1, 1, 550, 1100).value, 4400));
  CHECK_FALSE(table.time_ms(1, 1, 1, 1, 100, 200).known);
  CHECK_FALSE(table.time_ms(0, 1, 2, 3, 100, 200).known);
}

TEST_CASE("beyond the points", "[cost][profile]") {
  const StageTable table = exact_table();
  const auto at = [&](double n, double m) { return table.time_ms(0, 1, 1, 1, n, m); };
  CHECK(at(10, 100).extrapolated);
  CHECK(at(10000, 100000).extrapolated);
  CHECK(at(1000, 1000).extrapolated);
  // Linear, never below proportional nor above the nearest point.
  CHECK(near(at(10, 100).value, truth(10, 100)));
  CHECK(near(at(10000, 100000).value, truth(10000, 100000)));
  CHECK(at(1, 10).value > 0);
  CHECK(near(table.time_ms(0, 1, 1, 1, 90, 950, Interpolation::kNearest).value, truth(100, 1000)));
}

TEST_CASE("transfers", "[cost][profile]") {
  const StageTable table = exact_table();
  CHECK(near(table.transfer_ms("cpu", "npu", 2e6), 1 + 2000));
  CHECK(table.transfer_ms("npu", "cpu", 2e6) == 0);
  CHECK(table.transfer_ms("cpu", "cpu", 2e6) == 0);
  CHECK(table.devices[1].resource == "host");
  CHECK(table.devices[0].resource == "cpu");
}

TEST_CASE("a change of devices takes what was measured for the bytes", "[cost][profile]") {
  StageTable table = exact_table();
  CHECK(table.handover_ms("cpu", "npu", 1000) == 0);
  table.links[0].handovers = {{1000, 0.1}, {3000, 0.5}};
  CHECK(near(table.handover_ms("cpu", "npu", 10), 0.1));
  CHECK(near(table.handover_ms("cpu", "npu", 1000), 0.1));
  CHECK(near(table.handover_ms("cpu", "npu", 2000), 0.3));
  CHECK(near(table.handover_ms("cpu", "npu", 3000), 0.5));
  CHECK(near(table.handover_ms("cpu", "npu", 6000), 1));
  CHECK(table.handover_ms("cpu", "npu", 0) == 0);
  CHECK(table.handover_ms("npu", "cpu", 2000) == 0);
  const StageTable again = StageTable::parse(table.to_json(), "again.json");
  CHECK(again.links[0].handovers == table.links[0].handovers);
}

TEST_CASE("switches take what the device says, else what the table says", "[cost][profile]") {
  StageTable table = exact_table();
  CHECK(table.switch_ms() == std::vector<double>{0, 0});
  CHECK_FALSE(table.has_common_switch_ms());
  table.devices[1].switch_ms = 0.5;
  CHECK(table.switch_ms() == std::vector<double>{0, 0.5});
  CHECK(StageTable::parse(table.to_json(), "again.json").switch_ms() == table.switch_ms());
  table.extra["switch_ms"] = 2;
  CHECK(table.has_common_switch_ms());
  CHECK(table.switch_ms() == std::vector<double>{2, 0.5});
  table.devices[0].switch_ms = 0;
  CHECK(table.switch_ms() == std::vector<double>{0, 0.5});
  table.extra["switch_ms"] = -1;
  table.devices[0].switch_ms.reset();
  CHECK(table.switch_ms() == std::vector<double>{0, 0.5});
}

TEST_CASE("own documents survive a round trip", "[cost][profile]") {
  const StageTable table = exact_table();
  const Json json = table.to_json();
  CHECK(StageTable::parse(json, "again.json").to_json() == json);
}

TEST_CASE("published tables", "[cost][profile]") {
  const Json json = Json::parse(
      R"({"10,20,CPU,1": {"total_time_ms": 1}, "10,40,CPU,1": {"total_time_ms": 2},
          "10,20,NPU,2": {"total_time_ms": 3}})");
  StageTable table = StageTable::parse(json, "t.json");
  REQUIRE(table.devices.size() == 2);
  CHECK(table.devices[1].name == "npu");
  CHECK(table.devices[1].is_static);
  CHECK(table.stage_count == 2);
  CHECK(near(table.time_ms(0, 1, 1, 1, 10, 30).value, 1.5));
  table.add_bandwidths(Json::parse(R"({"inter_device": {"CPU_NPU": 2.0},
                                       "device_switch_overhead_ms": {"CPU_NPU": 0.5}})"),
                       "b.json");
  CHECK(near(table.transfer_ms("cpu", "npu", 2e9), 1000.5));
  const auto fault = [&](const char* text) {
    try {
      table.add_bandwidths(Json::parse(text), "b.json");
    } catch (const Error& error) {
      return error.location().pointer + ": " + error.message();
    }
    return std::string("no error");
  };
  CHECK(fault(R"({"inter_device": {"CPU_GPU": 2.0}})") ==
        "/inter_device/CPU_GPU: expected a key FROM_TO with two devices of the table, which has "
        "cpu, npu; found 'CPU_GPU'");
  CHECK(fault(R"({"inter_device": {"CPU": 2.0}})").starts_with("/inter_device/CPU: expected"));
  CHECK(fault(R"({"inter_device": {"CPU_CPU": 2.0}})").starts_with("/inter_device/CPU_CPU: "));
  CHECK(fault(R"({"inter_device": {"NPU_CPU": 0}})") ==
        "/inter_device/NPU_CPU: expected a positive number of GB/s, found 0");
  CHECK(fault(R"({"inter_device": {"NPU_CPU": 1}, "device_switch_overhead_ms": {"CPU_NUP": 1}})") ==
        "/device_switch_overhead_ms/CPU_NUP: 'inter_device' has no rate for 'CPU_NUP'");
}

TEST_CASE("names of devices may have underscores", "[cost][profile]") {
  StageTable table =
      StageTable::parse(Json::parse(R"({"npu": {"version": 1, "kind": "profile"}, "entries": [],
                      "devices": [{"name": "big_gpu"}, {"name": "cpu"}]})"),
                        "t.json");
  table.add_bandwidths(Json::parse(R"({"inter_device": {"BIG_GPU_CPU": 1, "cpu_big_gpu": 2}})"),
                       "b.json");
  CHECK(near(table.transfer_ms("big_gpu", "cpu", 1e9), 1000));
  CHECK(near(table.transfer_ms("cpu", "big_gpu", 1e9), 500));
}

TEST_CASE("halo nodes have a price of their own", "[cost][profile]") {
  StageTable table = StageTable::parse(Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
    "devices": [{"name": "cpu"}], "entries": [
    {"device": "cpu", "first": 1, "n": 100, "m": 100, "ms": 10, "halo_ms": 14},
    {"device": "cpu", "first": 1, "n": 200, "m": 200, "ms": 20, "halo_ms": 28},
    {"device": "cpu", "first": 2, "n": 100, "m": 100, "ms": 3},
    {"device": "cpu", "first": 2, "n": 200, "m": 200, "ms": 4}]})"),
                                       "t.json");
  CHECK(table.has_halo_times());
  CHECK(near(table.halo_ms(0, 1, 1, 1, 150, 150, 0).value, 15));
  CHECK(near(table.halo_ms(0, 1, 1, 1, 150, 150, 75).value, 18));  // half of 6
  CHECK(near(table.halo_ms(0, 1, 1, 1, 150, 150, 300).value, 27));
  CHECK(near(table.halo_ms(0, 1, 2, 2, 150, 150, 300).value, 3.5));
  CHECK(StageTable::parse(table.to_json(), "again.json").to_json() == table.to_json());
  CHECK_FALSE(exact_table().has_halo_times());
}

TEST_CASE("repair makes times grow with the graph", "[cost][profile]") {
  Json json = Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
    "devices": [{"name": "cpu"}], "entries": [
    {"device": "cpu", "first": 1, "n": 10, "m": 10, "ms": 5},
    {"device": "cpu", "first": 1, "n": 10, "m": 20, "ms": 4},
    {"device": "cpu", "first": 1, "n": 20, "m": 20, "ms": 3},
    {"device": "cpu", "first": 1, "n": 20, "m": 40, "ms": 9}]})");
  StageTable table = StageTable::parse(json, "t.json");
  // 5, 4 and 3 ascend in n and m: pooled, weighted by 1 / ms^2.
  const double pooled = (5.0 / 25 + 4.0 / 16 + 3.0 / 9) / (1.0 / 25 + 1.0 / 16 + 1.0 / 9);
  CHECK(table.repair_monotone() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(near(table.entries[i].ms, pooled));
  CHECK(table.entries[3].ms == 9);
  CHECK(table.repair_monotone() == 0);
}

TEST_CASE("a spike does not lift larger points", "[cost][profile]") {
  Json json = Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
    "devices": [{"name": "cpu"}], "entries": []})");
  for (int i = 1; i <= 20; ++i) {
    json["entries"].push_back({{"device", "cpu"},
                               {"first", 1},
                               {"n", 100 * i},
                               {"m", 500 * i},
                               {"ms", i == 2 ? 80.0 : 1.0 * i},
                               {"mad_ms", i == 2 ? 30.0 : 0.02 * i},
                               {"runs", 7}});
  }
  StageTable table = StageTable::parse(json, "t.json");
  CHECK(table.repair_monotone() <= 2);
  CHECK(table.entries[1].ms < 3.1);  // the spike
  for (std::size_t i = 3; i < 20; ++i) CHECK(table.entries[i].ms == static_cast<double>(i + 1));
  // As well where nothing is known of spreads but that the point was disturbed.
  for (Json& entry : json["entries"]) {
    entry.erase("mad_ms");
    entry["runs"] = 1;
    if (entry["n"] == 200) entry["disturbed"] = true;
  }
  table = StageTable::parse(json, "t.json");
  table.repair_monotone();
  CHECK(table.entries[1].ms < 3.1);
  CHECK(table.disturbed_count() == 1);
  CHECK(table.time_ms(0, 1, 1, 1, 150, 750).disturbed);
  CHECK_FALSE(table.time_ms(0, 1, 1, 1, 450, 2250).disturbed);
}

TEST_CASE("a graph in one part has times of its own", "[cost][profile]") {
  const Json json = Json::parse(R"({"npu": {"version": 1, "kind": "profile"},
    "devices": [{"name": "cpu"}],
    "entries": [
      {"device": "cpu", "first": 1, "n": 100, "m": 100, "ms": 10, "whole_ms": 8},
      {"device": "cpu", "first": 1, "n": 200, "m": 200, "ms": 20, "whole_ms": 6},
      {"device": "cpu", "first": 2, "n": 100, "m": 100, "ms": 3},
      {"device": "cpu", "first": 2, "n": 200, "m": 200, "ms": 4}]})");
  StageTable table = StageTable::parse(json, "table.json");
  CHECK(near(table.time_ms(0, 1, 1, 1, 150, 150).value, 15));
  CHECK(near(table.whole_ms(0, 1, 1, 1, 150, 150).value, 7));
  // Where only one of them was measured they are the same.
  CHECK(near(table.whole_ms(0, 1, 2, 2, 150, 150).value, 3.5));
  CHECK(near(table.whole_ms(0, 1, 1, 2, 150, 150).value, 10.5));
  // 8 and 6, weighted by 1 / ms^2: (8 / 64 + 6 / 36) / (1 / 64 + 1 / 36) = 6.72.
  CHECK(table.repair_monotone() == 2);
  CHECK(near(table.whole_ms(0, 1, 1, 1, 200, 200).value, 6.72));
  CHECK(StageTable::parse(table.to_json(), "again.json").to_json() == table.to_json());
  Json bad = json;
  bad["entries"][0]["whole_ms"] = -1;
  CHECK_THROWS_AS(StageTable::parse(bad, "bad.json"), Error);
}

TEST_CASE("leaving points out measures the table", "[cost][profile]") {
  StageTable table = exact_table();
  CHECK(table.leave_one_out().points == 6);  // the middle size, and the middle ratio of the ends
  CHECK(table.leave_one_out().worst_error < 1e-9);
  for (ProfileEntry& entry : table.entries) {
    if (entry.n == 1000 && entry.m == 10000 && entry.first == 1) entry.ms *= 2;
  }
  table.index();
  CHECK(table.leave_one_out().worst_error > 0.4);
}

TEST_CASE("documents that are refused", "[cost][profile]") {
  const auto fault = [](const std::string& text) {
    try {
      StageTable::parse(Json::parse(text), "t.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string head = R"({"npu": {"version": 1, "kind": "profile"}, )";
  CHECK(fault(head + R"("devices": [{"name": "a"}], "entries": [], "transfers": [{"from": "a",
                     "to": "b", "bytes_per_s": 1}]})") ==
        "t.json: /transfers/0/to: error: device 'b' is not in 'devices'");
  for (const char* handovers :
       {"7", "[[1]]", "[[1, -1]]", "[[2, 1], [2, 1]]", R"([["a", 1]])", "[[0, 1]]"}) {
    CHECK(fault(head + R"("devices": [{"name": "a"}], "entries": [], "transfers": [{"from": "a",
                       "to": "a", "bytes_per_s": 1, "handovers": )" +
                handovers + "}]}") ==
          "t.json: /transfers/0/handovers: error: expected a list of [bytes, milliseconds] with "
          "ascending bytes");
  }
  CHECK(fault(head + R"("devices": [{"name": "a"}], "entries": [{"device": "a", "first": 1,
                     "n": 1e300, "m": 1, "ms": 1}]})") ==
        "t.json: /entries/0/n: error: expected a count of at most 2^50");
  CHECK(fault(R"({"10,20,CPU,1": 1, "10,20,cpu,1": 2})") ==
        "t.json: error: cpu[1-1] is listed twice at n = 10, m = 20");
  CHECK(fault("[]") == "t.json: error: expected an object, found array");
  CHECK(fault(head + R"("devices": [], "entries": []})") ==
        "t.json: /devices: error: the profile has no devices");
  CHECK(fault(head + R"("devices": [{"name": "a"}, {"name": "a"}], "entries": []})") ==
        "t.json: /devices/1: error: device 'a' is listed twice");
  CHECK(fault(head + R"("devices": [{"name": "a"}], "entries": [{"device": "b"}]})") ==
        "t.json: /entries/0/device: error: device 'b' is not in 'devices'");
  CHECK(fault(head + R"("devices": [{"name": "a"}], "entries": [{"device": "a", "first": 2,
                     "last": 1, "n": 1, "m": 1, "ms": 1}]})") ==
        "t.json: /entries/0: error: expected stages first <= last, counted from 1");
  CHECK(fault(head + R"("devices": [{"name": "a"}], "entries": [{"device": "a", "first": 1,
                     "n": 1, "m": 1, "ms": "fast"}]})") ==
        "t.json: /entries/0/ms: error: expected a number of at least 0, found \"fast\"");
}

TEST_CASE("whatever is changed in a table, it is read or refused", "[cost][profile]") {
  StageTable table = exact_table();
  table.extra["leave_one_out"] = {{"points", 3}, {"median_error", 0.1}};
  const Json document = table.to_json();
  std::vector<Json::json_pointer> pointers;
  const auto add = [&](const auto& self, const Json& json, const Json::json_pointer& at) -> void {
    pointers.push_back(at);
    if (json.is_object()) {
      for (const auto& [key, value] : json.items()) self(self, value, at / key);
    } else if (json.is_array()) {
      for (std::size_t i = 0; i < json.size(); ++i) self(self, json[i], at / i);
    }
  };
  add(add, document, Json::json_pointer());
  const std::vector<Json> values{7,    -1.5, "n", Json(), Json::array({"m"}), Json{{"name", 1}},
                                 1e300};
  for (std::size_t p = 0; p < pointers.size(); ++p) {
    for (std::size_t v : {p % values.size(), (p + 3) % values.size()}) {
      Json changed = document;
      changed[pointers[p]] = values[v];
      CAPTURE(pointers[p].to_string(), values[v].dump());
      // Anything but Error escapes, and fails the test.
      try {
        StageTable read = StageTable::parse(changed, "t.json");
        read.repair_monotone();
        read.stated_hold_out();
        CHECK(read.time_ms(0, 1, 1, 2, 500, 2000).value >= 0);
        CHECK_FALSE(read.to_json().empty());
      } catch (const Error& error) {
        CHECK_FALSE(error.message().empty());
      }
    }
  }
}
