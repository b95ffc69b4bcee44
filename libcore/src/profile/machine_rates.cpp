// SPDX-License-Identifier: Apache-2.0
// Computes the rates of a target from the times of probes, and formats them as a table.
#include "profile/machine_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "support/text.hpp"

namespace npu {
namespace {

// A rate so high that it never determines the time.
constexpr double kNoLimit = 1e15;
constexpr double kLeastShare = 0.01;

std::string rate_text(double value, const std::string& unit) {
  if (value <= 0) return "-";
  if (unit.empty()) return fixed_text(value, 2);
  if (unit == "us") return fixed_text(value, 2) + " us";
  return fixed_text(value / 1e9, 1) + (unit == "B/s" ? " GB/s" : " GFLOP/s");
}

}  // namespace

double rounded(double value) { return std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr); }

double work_us(const ProbeTime& time, double node_overhead_us) {
  const double nodes = std::max(1.0, time.nodes);
  const double us = (time.longer_us - time.shorter_us) / nodes - node_overhead_us;
  return std::max({us, kLeastShare * time.longer_us / nodes, 1e-3});
}

void RateWriter::add(const std::string& what, const char* unit, double before, double measured,
                     double spread) {
  rates_.push_back({device_, what, unit, before, measured, spread});
}

void RateWriter::node_overhead(const ProbeTime& time, double before) {
  node_overhead_us_ = rounded(work_us(time, 0));
  json_["node_overhead_us"] = node_overhead_us_;
  add("node", "us", before, node_overhead_us_, time.spread);
}

void RateWriter::launch_overhead(double partition_us, double before) {
  const double us = rounded(std::max(0.0, partition_us - node_overhead_us_));
  json_["launch_overhead_us"] = us;
  add("launch", "us", before, us, 0);
}

void RateWriter::memory(const ProbeTime& time, double before) {
  const double us = work_us(time, node_overhead_us_);
  const double rate = rounded(1e6 * time.bytes / std::max(1.0, time.nodes) / us);
  json_["memory_bandwidth"] = rate;
  add("memory", "B/s", before, rate, time.spread);
}

void RateWriter::peak_flops(
    const Device& device,
    const std::function<std::optional<ProbeTime>(const std::string&)>& measured) {
  const auto rate_of = [&](const ProbeTime& time) {
    const double us = work_us(time, node_overhead_us_);
    return rounded(1e6 * time.flops / std::max(1.0, time.nodes) / us);
  };
  const double before = device.flops_per_second(DType::kFloat32);
  const std::optional<ProbeTime> single = measured("float32");
  const double scale = single && before > 0 ? rate_of(*single) / before : 1;
  for (auto& [dtype, value] : json_["peak_flops"].items()) {
    const double old = value.get<double>();
    const std::optional<ProbeTime> time = measured(dtype);
    const double rate = time ? rate_of(*time) : rounded(old * scale);
    value = rate;
    add("convolution, 3 x 3, " + dtype + (time ? "" : " (scaled)"), "FLOP/s", old, rate,
        time ? time->spread : 0);
  }
}

void RateWriter::bfloat16_rate(const ProbeTime& floats, const ProbeTime& narrow) {
  const double rate =
      rounded(work_us(floats, node_overhead_us_) / work_us(narrow, node_overhead_us_));
  Json& option = json_["options"][kBFloat16RateOption];
  const double before = option.is_number() ? option.get<double>() : 0;
  option = rate;
  add("bfloat16 beside float32", "", before, rate, std::max(floats.spread, narrow.spread));
}

Json RateWriter::op_rate(const MachineProbe& probe, const ProbeTime& time) {
  const double us = work_us(time, node_overhead_us_);
  const double nodes = std::max(1.0, time.nodes);
  Json json = {{"types", probe.where.types}};
  for (const auto& [key, flag] :
       {std::pair("grouped", probe.where.grouped), std::pair("pointwise", probe.where.pointwise),
        std::pair("strided", probe.where.strided)}) {
    if (flag) json[key] = *flag;
  }
  for (const auto& [key, range] :
       {std::pair("kernel", probe.where.kernel), std::pair("positions", probe.where.positions)}) {
    if (range.min == 0 && !range.max) continue;
    json[key] = {range.min, range.max ? Json(*range.max) : Json(nullptr)};
  }
  if (probe.by_flops) {
    // Products of few rows with many weights are memory-bound nevertheless.
    json["peak_flops"] = rounded(1e6 * time.flops / nodes / us);
    add(probe.name, "FLOP/s", 0, json["peak_flops"].get<double>(), time.spread);
  } else {
    json["peak_flops"] = kNoLimit;
    json["memory_bandwidth"] = rounded(1e6 * time.bytes / nodes / us);
    add(probe.name, "B/s", 0, json["memory_bandwidth"].get<double>(), time.spread);
  }
  return json;
}

std::string format_machine_profile(const MachineProfile& profile) {
  std::vector<std::vector<std::string>> rows{
      {"device", "rate of", ">target", ">measured", ">spread"}};
  for (const MachineRate& rate : profile.rates) {
    rows.push_back({rate.device, rate.what, rate_text(rate.before, rate.unit),
                    rate_text(rate.measured, rate.unit),
                    rate.spread > 0 ? fixed_text(100 * rate.spread, 1) + " %" : "-"});
  }
  return table_text(rows) + std::to_string(profile.rounds) + " rounds\n";
}

}  // namespace npu
