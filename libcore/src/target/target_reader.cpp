// SPDX-License-Identifier: Apache-2.0
// Reads target descriptions (npu-target(5)).
//
// Every value is checked when it is read, and every fault is reported with its JSON Pointer, so
// passes that use a Target need not check it again. Unknown keys are faults: ignoring a misspelt
// constraint would claim ops that the device cannot run.
// O(size of the description).
#include "target/target_reader.hpp"

#include <spdlog/fmt/fmt.h>

#include <utility>
#include <vector>

#include "target/align_rules.hpp"
#include "target/decompose_list.hpp"
#include "target/op_rule_reader.hpp"
#include "target/quantization_rules.hpp"
#include "target/target_fields.hpp"

namespace npu {
namespace {

class TargetReader {
 public:
  TargetReader(const Json& json, const std::string& file, std::string pointer,
               Diagnostics& diagnostics)
      : json_(json),
        file_(file),
        root_(std::move(pointer)),
        diagnostics_(diagnostics),
        fields_(file, diagnostics) {}

  Target read() {
    Target target;
    target.json = json_;
    if (!fields_.check_object(json_, root_)) return target;
    fields_.check_keys(json_, root_, {"name", "description", "devices", "links"});
    target.name = fields_.text(json_, root_, "name", true);
    target.description = fields_.text(json_, root_, "description", false);
    if (const Json* devices = fields_.member(json_, root_, "devices", true)) {
      const std::string pointer = root_ + "/devices";
      if (!devices->is_array() || devices->empty()) {
        fields_.add(pointer, fmt::format("expected a list of at least one device, found {}",
                                         json_type_name(*devices)));
      } else {
        for (std::size_t i = 0; i < devices->size(); ++i) {
          read_device((*devices)[i], fmt::format("{}/{}", pointer, i), target);
        }
      }
    }
    read_links(target);
    return target;
  }

 private:
  void read_peaks(const Json& json, const std::string& pointer, Device& device) {
    const Json* peaks = fields_.member(json, pointer, "peak_flops", true);
    if (peaks == nullptr) return;
    const std::string below = pointer + "/peak_flops";
    if (fields_.check_object(*peaks, below)) {
      if (peaks->empty()) fields_.add(below, "expected FLOP/s of at least one dtype");
      for (const auto& [name, value] : peaks->items()) {
        const std::string at = below + "/" + pointer_token(name);
        const double flops = fields_.rate(value, at, false);
        if (const auto key = fields_.dtype(name, at)) device.peak_flops[*key] = flops;
      }
    }
  }

  std::int64_t read_bytes(const Json& json, const std::string& pointer, const std::string& key) {
    const Json* bytes = find_member(json, key);
    if (bytes == nullptr) return 0;
    if (const auto count = count_of(*bytes)) return *count;
    fields_.add(pointer + "/" + key,
                fmt::format("expected an integer of at least 0, found {}", number_or_type(bytes)));
    return 0;
  }

  void read_aliases(const Json& json, const std::string& below, Device& device) {
    const Json* aliases = find_member(json, "aliases");
    if (aliases == nullptr) return;
    device.aliases = fields_.strings(*aliases, below, true);
    for (std::size_t i = 0; i < device.aliases.size(); ++i) {
      fields_.check_op_type(device.aliases[i], [&] { return fmt::format("{}/{}", below, i); });
    }
  }

  void read_device(const Json& json, const std::string& pointer, Target& target) {
    if (!fields_.check_object(json, pointer)) return;
    fields_.check_keys(json, pointer,
                       {"name",
                        "backend",
                        "options",
                        "ops",
                        "dtypes",
                        "rank",
                        "aliases",
                        "decompose",
                        "align",
                        "quantization",
                        "fusion",
                        "narrows_float64",
                        "on_chip_bytes",
                        "memory_bytes",
                        "max_partition_flops",
                        "peak_flops",
                        "memory_bandwidth",
                        "launch_overhead_us",
                        "resident_weights",
                        "node_overhead_us",
                        "switch_us",
                        "op_rates",
                        "asked"});
    Device device;
    device.name = fields_.text(json, pointer, "name", true);
    if (target.find_device(device.name) != nullptr) {
      fields_.add(pointer + "/name", fmt::format("device '{}' is described twice", device.name));
    }
    device.backend = fields_.text(json, pointer, "backend", false);
    device.backend_options = Json::object();
    if (const Json* options = find_member(json, "options")) {
      if (fields_.check_object(*options, pointer + "/options")) device.backend_options = *options;
    }
    if (const Json* list = find_member(json, "dtypes")) {
      device.dtypes = fields_.dtypes(*list, pointer + "/dtypes");
    }
    device.rank = fields_.range_member(json, pointer, "rank");
    if (const Json* ops = fields_.member(json, pointer, "ops", true))
      OpRuleReader(fields_).read(*ops, pointer + "/ops", device);
    read_aliases(json, pointer + "/aliases", device);
    check_decompose_list(json, file_, pointer, diagnostics_);  // kept in Target::json
    if (const Json* align = find_member(json, "align")) {
      if (fields_.check_object(*align, pointer + "/align")) {
        check_align_rules(*align, file_, pointer + "/align", diagnostics_);
        device.align = *align;
      }
    }
    // Kept in Target::json, see quantization_rules.hpp.
    if (const Json* section = find_member(json, "quantization")) {
      if (fields_.check_object(*section, pointer + "/quantization")) {
        check_quantization_rules(*section, file_, pointer + "/quantization", diagnostics_);
      }
    }
    if (const Json* patterns = find_member(json, "fusion")) {
      device.fusion = fields_.strings(*patterns, pointer + "/fusion", true);
    }
    device.on_chip_bytes = read_bytes(json, pointer, "on_chip_bytes");
    read_bytes(json, pointer, "memory_bytes");  // kept in Target::json, see device_facts.hpp
    device.max_partition_flops =
        fields_.rate_member(json, pointer, "max_partition_flops", false, true);
    read_peaks(json, pointer, device);
    device.memory_bandwidth = fields_.rate_member(json, pointer, "memory_bandwidth", true, false);
    device.launch_overhead_us =
        fields_.rate_member(json, pointer, "launch_overhead_us", false, true);
    device.node_overhead_us = fields_.rate_member(json, pointer, "node_overhead_us", false, true);
    fields_.rate_member(json, pointer, "switch_us", false, true);  // see device_facts.hpp
    if (const Json* rates = find_member(json, "op_rates")) {
      read_op_rates(*rates, pointer + "/op_rates", device);
    }
    device.narrows_float64 =
        fields_.flag(json, pointer, "narrows_float64").value_or(device.narrows_float64);
    device.resident_weights =
        fields_.flag(json, pointer, "resident_weights").value_or(device.resident_weights);
    target.devices.push_back(std::move(device));
  }

  void read_op_rates(const Json& list, const std::string& pointer, Device& device) {
    if (!list.is_array()) {
      fields_.add(pointer, fmt::format("expected an array, found {}", json_type_name(list)));
      return;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string at = fmt::format("{}/{}", pointer, i);
      if (!fields_.check_object(list[i], at)) continue;
      fields_.check_keys(list[i], at,
                         {"types", "grouped", "pointwise", "strided", "kernel", "positions",
                          "peak_flops", "memory_bandwidth"});
      OpRate rate;
      if (const Json* types = fields_.member(list[i], at, "types", true)) {
        rate.types = fields_.strings(*types, at + "/types", true);
        for (std::size_t t = 0; t < rate.types.size(); ++t) {
          fields_.check_op_type(rate.types[t], [&] { return fmt::format("{}/types/{}", at, t); });
        }
      }
      rate.grouped = fields_.flag(list[i], at, "grouped");
      rate.pointwise = fields_.flag(list[i], at, "pointwise");
      rate.strided = fields_.flag(list[i], at, "strided");
      rate.kernel = fields_.range_member(list[i], at, "kernel");
      rate.positions = fields_.range_member(list[i], at, "positions");
      rate.peak_flops = fields_.rate_member(list[i], at, "peak_flops", false, false);
      rate.memory_bandwidth = fields_.rate_member(list[i], at, "memory_bandwidth", false, false);
      device.op_rates.push_back(std::move(rate));
    }
  }

  void read_links(Target& target) {
    const std::string pointer = root_ + "/links";
    if (const Json* links = find_member(json_, "links")) {
      if (!links->is_array()) {
        fields_.add(pointer,
                    fmt::format("expected a list of links, found {}", json_type_name(*links)));
        return;
      }
      for (std::size_t i = 0; i < links->size(); ++i) {
        read_link((*links)[i], fmt::format("{}/{}", pointer, i), target);
      }
    }
    if (diagnostics_.has_errors()) return;  // a misspelt link would be reported twice
    for (std::size_t i = 0; i < target.devices.size(); ++i) {
      for (std::size_t j = i + 1; j < target.devices.size(); ++j) {
        const std::string& a = target.devices[i].name;
        const std::string& b = target.devices[j].name;
        if (target.find_link(a, b) == nullptr) {
          fields_.add(pointer, fmt::format("no link between '{}' and '{}'", a, b));
        }
      }
    }
  }

  void read_link(const Json& json, const std::string& pointer, Target& target) {
    if (!fields_.check_object(json, pointer)) return;
    fields_.check_keys(json, pointer, {"from", "to", "bandwidth", "latency_us"});
    Link link;
    link.from = fields_.text(json, pointer, "from", true);
    link.to = fields_.text(json, pointer, "to", true);
    for (const auto& [key, name] : {std::pair("from", &link.from), std::pair("to", &link.to)}) {
      if (name->empty() || target.find_device(*name) != nullptr) continue;
      std::vector<std::string_view> names;
      for (const Device& device : target.devices) names.push_back(device.name);
      fields_.add(fmt::format("{}/{}", pointer, key),
                  fmt::format("unknown device '{}'; one of {}", *name, fmt::join(names, ", ")));
    }
    if (!link.from.empty() && link.from == link.to) {
      fields_.add(pointer, fmt::format("link from '{}' to itself", link.from));
    }
    for (const Link& other : target.links) {
      if (other.from == link.from && other.to == link.to) {
        fields_.add(pointer, fmt::format("the link from '{}' to '{}' is described twice", link.from,
                                         link.to));
      }
    }
    link.bandwidth = fields_.rate_member(json, pointer, "bandwidth", true, false);
    link.latency_us = fields_.rate_member(json, pointer, "latency_us", false, true);
    target.links.push_back(std::move(link));
  }

  const Json& json_;
  const std::string& file_;
  std::string root_;
  Diagnostics& diagnostics_;
  TargetFields fields_;
};

}  // namespace

Target read_target(const Json& json, const std::string& file, const std::string& pointer,
                   Diagnostics& diagnostics) {
  return TargetReader(json, file, pointer, diagnostics).read();
}

}  // namespace npu
