// SPDX-License-Identifier: Apache-2.0
// Rates follow from differences of times, and no noise makes one negative or infinite.
#include "profile/machine_rates.hpp"

#include "catch.hpp"

using namespace npu;
using Catch::Detail::Approx;

namespace {

Target host() { return load_target("host"); }

}  // namespace

TEST_CASE("machine rates: the difference of two models, by node, without overhead") {
  const ProbeTime time{.longer_us = 1000, .shorter_us = 200, .nodes = 8, .flops = 8e6};
  CHECK(work_us(time, 0) == Approx(100));
  CHECK(work_us(time, 30) == Approx(70));
  // Noise may make the longer model the faster one: a hundredth of its time by node is left.
  const ProbeTime noise{.longer_us = 1000, .shorter_us = 1100, .nodes = 10};
  CHECK(work_us(noise, 0) == Approx(1));
  CHECK(work_us({}, 0) > 0);
}

TEST_CASE("machine rates: three digits") {
  CHECK(rounded(123456) == 123000);
  CHECK(rounded(0.0123456) == 0.0123);
  CHECK(rounded(0) == 0);
}

TEST_CASE("machine rates: what goes into a device") {
  const Target target = host();
  Json json = (*target.json)["devices"][0];
  std::vector<MachineRate> rates;
  RateWriter writer("npu", json, rates);
  writer.node_overhead({.longer_us = 90, .shorter_us = 10, .nodes = 80}, 0);
  writer.launch_overhead(5, 10);
  writer.memory({.longer_us = 108, .shorter_us = 0, .nodes = 8, .bytes = 8e5}, 1e9);
  // 100 us of 101 a node are work: float32 at twice the rate that the target states.
  const double flops = target.devices[0].flops_per_second(DType::kFloat32);
  writer.peak_flops(target.devices[0], [&](const std::string& dtype) -> std::optional<ProbeTime> {
    if (dtype != "float32") return std::nullopt;
    return ProbeTime{.longer_us = 404, .shorter_us = 202, .nodes = 2, .flops = 2 * flops * 2e-4};
  });
  CHECK(json["node_overhead_us"] == 1.0);
  CHECK(json["launch_overhead_us"] == 4.0);
  CHECK(json["memory_bandwidth"] == Approx(8e9).epsilon(1e-3));  // 1e5 bytes in 12.5 us
  CHECK(json["peak_flops"]["float32"].get<double>() == Approx(2 * flops).epsilon(1e-2));
  // Not measured: as much faster as float32.
  CHECK(json["peak_flops"]["bfloat16"].get<double>() ==
        Approx(2 * target.devices[0].flops_per_second(DType::kBFloat16)).epsilon(1e-2));
  CHECK(json["peak_flops"]["float16"] == json["peak_flops"]["float32"]);
  // 40 us of a node in float32, 20 in bfloat16.
  writer.bfloat16_rate({.longer_us = 122, .shorter_us = 40, .nodes = 2},
                       {.longer_us = 62, .shorter_us = 20, .nodes = 2});
  CHECK(json["options"]["bfloat16_rate"] == 2.0);
  REQUIRE(rates.size() == 7);
  CHECK(rates[0].what == "node");
  CHECK(rates[4].what.ends_with("(scaled)"));
  CHECK(rates[5].what.ends_with("(scaled)"));
  CHECK(rates[6].what == "bfloat16 beside float32");

  MachineProbe probe;
  probe.where = {.types = {"aten.conv2d.default"}, .grouped = true, .positions = {98, 391}};
  const Json rate =
      writer.op_rate(probe, {.longer_us = 303, .shorter_us = 202, .nodes = 1, .flops = 1e8});
  CHECK(rate["grouped"] == true);
  CHECK(rate["positions"] == Json::array({98, 391}));
  CHECK_FALSE(rate.contains("pointwise"));
  CHECK_FALSE(rate.contains("kernel"));
  CHECK(rate["peak_flops"] == 1e12);
  CHECK_FALSE(rate.contains("memory_bandwidth"));

  json["op_rates"] = Json::array({rate});
  Json changed = *target.json;
  changed["devices"][0] = json;
  CHECK(parse_target(changed, "host.json").devices[0].op_rates.size() == 1);
}

TEST_CASE("machine probes: the longer model has more of what is measured, and the rest is equal") {
  const Target target = host();
  std::vector<MachineProbe> probes = kind_probes(target);
  probes.push_back(memory_probe(target));
  probes.push_back(node_probe(target));
  probes.push_back(convolution_probe(target, DType::kBFloat16));
  for (const MachineProbe& probe : probes) {
    CAPTURE(probe.name);
    const ProbeWork work = work_of(probe);
    CHECK(work.nodes >= 1);
    CHECK((probe.by_flops ? work.flops : work.bytes) > 0);
    const auto other_nodes = [&](const Graph& graph) {
      return std::count_if(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
        return std::find(probe.where.types.begin(), probe.where.types.end(), node.op_type) ==
               probe.where.types.end();
      });
    };
    CHECK(other_nodes(probe.longer) == other_nodes(probe.shorter));
  }
}

TEST_CASE("machine profile: the table has a row for each rate") {
  MachineProfile profile;
  profile.rounds = 7;
  profile.rates = {{"npu", "memory", "B/s", 25e9, 31.5e9, 0.021}, {"npu", "node", "us", 0, 1.5, 0}};
  CHECK(format_machine_profile(profile) ==
        "device  rate of     target   measured  spread\n"
        "npu     memory   25.0 GB/s  31.5 GB/s   2.1 %\n"
        "npu     node             -    1.50 us       -\n"
        "7 rounds\n");
}
