// SPDX-License-Identifier: Apache-2.0
// Writes a target for a backend by what the backend says of itself and by measurement.
//
// Numbers of the fact sheet stand as they are; what it does not know is measured through the calls
// of the interface. Copies and launches are always measured, since they are the host's as much as
// the device's. The device "cpu", which runs what the others do not, is measured alike. Takes a few
// seconds, besides the compiles of a backend that cannot be asked.
#include "profile/profile_backend.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "device/device_instance.hpp"
#include "npu/target/target.hpp"
#include "profile/ask_ops.hpp"
#include "profile/backend_probes.hpp"
#include "profile/machine_rates.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr const char* kHostBackend = "aten";

std::optional<std::uint64_t> number_of(const KnownNumbers& numbers, std::string_view name) {
  for (const auto& [known, value] : numbers) {
    if (known == name) return value;
  }
  return std::nullopt;
}

class BackendProfiler {
 public:
  BackendProfiler(const ProfileBackendOptions& options, const ProgressCallback& progress,
                  Diagnostics& diagnostics)
      : options_(options), progress_(progress), diagnostics_(diagnostics) {}

  BackendProfile run() {
    // Both are loaded before a device is opened, since loading may start a process.
    const auto backend = Backend::load(options_.backend);
    const bool is_host = backend->name() == kHostBackend;
    const auto host = is_host ? nullptr : Backend::load(kHostBackend);
    std::vector<const DeviceFacts*> usable;
    std::string why_not;
    for (const DeviceFacts& facts : backend->devices()) {
      if (facts.usable) usable.push_back(&facts);
      if (!facts.usable)
        why_not += (why_not.empty() ? ": " : "; ") + facts.id + ": " + facts.why_not;
    }
    if (usable.empty()) {
      throw Error(ErrorCode::kUnsupported,
                  "backend '" + backend->name() + "' has no usable device here" + why_not);
    }
    const auto questions = backend_questions();
    for (const DeviceFacts* facts : usable) {
      add_device(device_name(*facts, usable, is_host), backend, *facts, usable.size() > 1,
                 questions);
    }
    if (host != nullptr) add_device("cpu", host, host->device(""), false, questions);
    add_links();
    profile_.target = {{"name", backend->name()}, {"description", description(*backend)}};
    profile_.target["devices"] = std::move(devices_);
    if (!links_.empty()) profile_.target["links"] = std::move(links_);
    parse_target(profile_.target, "the target of '" + backend->name() + "'");
    return std::move(profile_);
  }

 private:
  struct Measured {
    std::string name;
    std::shared_ptr<DeviceInstance> instance;
    DeviceRates rates;
  };

  static std::string device_name(const DeviceFacts& facts,
                                 const std::vector<const DeviceFacts*>& usable, bool is_host) {
    if (is_host) return "cpu";
    const std::string kind = facts.kind == NPU_DEVICE_GPU ? "gpu" : "npu";
    if (usable.size() == 1) return kind;
    const auto place = std::find(usable.begin(), usable.end(), &facts) - usable.begin();
    return kind + std::to_string(place);
  }

  std::string description(const Backend& backend) const {
    const Measured& first = measured_.front();
    const DeviceFacts& facts = first.instance->facts();
    std::string text = backend.name() + " " + backend.version() + " on " +
                       (facts.name.empty() ? facts.id : facts.name);
    if (!facts.driver.empty()) text += " (" + facts.driver + ")";
    return printable_text(text) + "; ops as the backend answers, copies and launches measured";
  }

  void add_device(const std::string& name, const std::shared_ptr<const Backend>& backend,
                  const DeviceFacts& facts, bool is_one_of_several,
                  const std::vector<OpQuestion>& questions) {
    Json options = {{"threads", options_.threads}};
    if (is_one_of_several) options["instance"] = facts.id;
    tell(name + ": opening");
    const auto instance = DeviceInstance::open(backend, options.dump());
    Json json = {{"name", name}, {"backend", backend->name()}};
    if (is_one_of_several) json["options"] = {{"instance", facts.id}};
    json["ops"] = ops_of(name, instance, questions);
    // The host's device is measured in what the others compute in, and what all models have.
    for (const DType dtype : arithmetic_dtypes(facts)) {
      if (measured_.empty() || backend->name() != kHostBackend) dtypes_.insert(dtype);
    }
    const DeviceRates rates =
        measure_device(instance, dtypes_, [&](const char* what) { tell(name + ": " + what); });
    add_memory(name, facts, json);
    add_rates(name, facts, rates, json);
    devices_.push_back(std::move(json));
    measured_.push_back({name, instance, rates});
  }

  Json ops_of(const std::string& name, const std::shared_ptr<DeviceInstance>& instance,
              const std::vector<OpQuestion>& questions) {
    if (instance->backend().has_flag(NPU_ANY_OP)) {
      add(name, "ops", "all", "fact sheet");
      return "*";
    }
    const AskedOps asked = ask_ops(*instance, questions, options_.ask_seconds,
                                   [&](const std::string& op) { tell(name + ": " + op); });
    BackendRules rules = backend_rules(asked.answers);
    const bool is_asked = instance->backend().has_feature("check");
    add(name, "ops",
        std::to_string(rules.ops) + " of " + std::to_string(asked.answers.size()) + " in " +
            std::to_string(rules.rules.size()) + " rules",
        is_asked ? "asked" : "compiled");
    const auto warn = [&](const std::string& text) {
      diagnostics_.warning({}, "device '" + name + "': " + text);
    };
    if (rules.untold != 0) {
      warn(std::to_string(rules.untold) +
           " nodes that it refuses are like others that it takes, and the rules allow them: "
           "npu-tag --ask asks the backend for each node of a model");
    }
    if (asked.left != 0) {
      warn("there was no time to compile nodes of " + std::to_string(asked.left) +
           " more ops, which the target leaves out");
    }
    if (!asked.unasked.empty()) {
      warn("the backend names " + std::to_string(asked.unasked.size()) +
           " more ops, which the target leaves out: " + asked.unasked.front() +
           (asked.unasked.size() > 1 ? " ..." : ""));
    }
    if (rules.rules.empty()) {
      throw Error(ErrorCode::kUnsupported, "device '" + name + "' of backend '" +
                                               instance->backend().name() +
                                               "' takes none of the nodes that it was asked about");
    }
    return std::move(rules.rules);
  }

  void add_memory(const std::string& name, const DeviceFacts& facts, Json& json) {
    const auto total = facts.memories.empty() ? std::nullopt : facts.memories.front().total_bytes;
    // The last device has the host's memory, of which the tools know more.
    if (total && *total != 0 && *total <= INT64_MAX) {
      json["memory_bytes"] = *total;
      add(name, "memory", bytes_text(static_cast<double>(*total)), "fact sheet");
    }
    const auto on_chip = number_of(facts.numbers, "on_chip_bytes");
    if (on_chip && *on_chip != 0 && *on_chip <= INT64_MAX) {
      json["on_chip_bytes"] = *on_chip;
      add(name, "memory on the chip", bytes_text(static_cast<double>(*on_chip)), "fact sheet");
    }
  }

  void add_rates(const std::string& name, const DeviceFacts& facts, const DeviceRates& rates,
                 Json& json) {
    Json& peaks = json["peak_flops"] = Json::object();
    for (const DTypeFacts& each : facts.dtypes) {
      if (each.dtype >= static_cast<std::uint32_t>(kDTypeCount)) continue;
      const auto dtype = static_cast<DType>(each.dtype);
      const auto found = rates.peak_flops.find(dtype);
      const bool is_known = each.peak_ops_per_second && *each.peak_ops_per_second != 0;
      if (!is_known && found == rates.peak_flops.end()) continue;
      const double rate = is_known ? static_cast<double>(*each.peak_ops_per_second) : found->second;
      peaks[std::string(dtype_name(dtype))] = rounded(rate);
      add(name, "arithmetic, " + std::string(dtype_name(dtype)), flops_text(rate) + "/s",
          is_known ? "fact sheet" : "measured");
    }
    for (const auto& [dtype, rate] : rates.peak_flops) {
      if (!facts.dtypes.empty()) break;
      peaks[std::string(dtype_name(dtype))] = rounded(rate);
      add(name, "arithmetic, " + std::string(dtype_name(dtype)), flops_text(rate) + "/s",
          "measured");
    }
    if (peaks.empty()) {
      peaks["float32"] = kGuess;
      guess(name, "arithmetic", flops_text(kGuess) + "/s");
    }
    const auto stated = number_of(facts.numbers, "memory_bandwidth");
    const bool is_stated = stated && *stated != 0;
    if (is_stated || rates.memory_bandwidth) {
      const double rate = is_stated ? static_cast<double>(*stated) : *rates.memory_bandwidth;
      json["memory_bandwidth"] = rounded(rate);
      add(name, "memory", bytes_text(rate) + "/s", is_stated ? "fact sheet" : "measured");
    } else {
      json["memory_bandwidth"] = kGuess;
      guess(name, "memory", bytes_text(kGuess) + "/s");
    }
    const auto overhead = number_of(facts.numbers, "launch_overhead_ns");
    if (rates.launch_us || overhead) {
      const double us = rates.launch_us ? *rates.launch_us : static_cast<double>(*overhead) / 1000;
      json["launch_overhead_us"] = rounded(us);
      add(name, "launch", fixed_text(us, 2) + " us", rates.launch_us ? "measured" : "fact sheet");
    }
    if (!rates.node_us) return;
    json["node_overhead_us"] = rounded(*rates.node_us);
    add(name, "node", fixed_text(*rates.node_us, 2) + " us", "measured");
  }

  void guess(const std::string& name, const std::string& what, const std::string& value) {
    add(name, what, value, "guess");
    diagnostics_.warning({}, "device '" + name + "': its fact sheet does not state its " + what +
                                 ", and it compiles none of the ops that would show it; " + value +
                                 " is a guess");
  }

  void add_links() {
    for (std::size_t i = 0; i < measured_.size(); ++i) {
      for (std::size_t k = 0; k < measured_.size(); ++k) {
        if (i != k) add_link(measured_[i], measured_[k]);
      }
    }
  }

  /// Out of one device's memory and into the other's, unless the backend copies itself.
  void add_link(const Measured& from, const Measured& to) {
    tell(from.name + " -> " + to.name);
    CopyRate rate{from.rates.read.latency_us + to.rates.write.latency_us,
                  1 / (1 / from.rates.read.bytes_per_s + 1 / to.rates.write.bytes_per_s)};
    // The device of libtorch has its tensors in the host's memory.
    if (from.instance->backend().name() == kHostBackend) rate = to.rates.write;
    if (to.instance->backend().name() == kHostBackend) rate = from.rates.read;
    if (&from.instance->backend() == &to.instance->backend()) {
      if (const auto copied = measure_copy(from.instance, to.instance)) rate = *copied;
    }
    links_.push_back({{"from", from.name},
                      {"to", to.name},
                      {"bandwidth", rounded(rate.bytes_per_s)},
                      {"latency_us", rounded(rate.latency_us)}});
    add(from.name + " -> " + to.name, "copy",
        bytes_text(rate.bytes_per_s) + "/s, " + fixed_text(rate.latency_us, 2) + " us", "measured");
  }

  void add(const std::string& device, const std::string& what, const std::string& value,
           const char* source) {
    profile_.facts.push_back({device, what, value, source});
  }

  void tell(const std::string& what) {
    // There is no telling how many compiles a backend takes; most are done within this time.
    constexpr double kUsualSeconds = 10;
    report_progress(progress_, std::min(0.99, seconds_since(start_) / kUsualSeconds), what);
  }

  static constexpr double kGuess = 1e9;

  const ProfileBackendOptions& options_;
  const ProgressCallback& progress_;
  Diagnostics& diagnostics_;
  const Clock::time_point start_ = Clock::now();
  BackendProfile profile_;
  std::vector<Measured> measured_;
  std::set<DType> dtypes_{DType::kFloat32};
  Json devices_ = Json::array();
  Json links_ = Json::array();
};

}  // namespace

BackendProfile profile_backend(const ProfileBackendOptions& options,
                               const ProgressCallback& progress, Diagnostics& diagnostics) {
  return BackendProfiler(options, progress, diagnostics).run();
}

std::string format_backend_profile(const BackendProfile& profile) {
  std::vector<std::vector<std::string>> rows{{"device", "fact", ">value", "from"}};
  for (const BackendFact& fact : profile.facts) {
    rows.push_back({fact.device, fact.what, fact.value, fact.source});
  }
  return table_text(rows);
}

}  // namespace npu
