// SPDX-License-Identifier: Apache-2.0
// Reads target descriptions: built in, from a file, or from `npu.target` of a document.
//
// Every value is checked when it is read, and every fault is reported with its JSON Pointer, so
// that the passes that use a Target need no checks of their own. Unknown keys are faults: a
// misspelt constraint that is ignored would claim ops that the device cannot run.
#include "npu/target/target.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "npu/ops/op_catalogue.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/text.hpp"
#include "npu/target/align_rules.hpp"
#include "npu/target/support_check.hpp"
#include "target/embedded_targets.hpp"

namespace npu {
namespace {

// "; did you mean 'stride'?", or nothing if no name is near.
std::string hint(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string nearest = nearest_word(name, candidates);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", nearest);
}

class TargetReader {
 public:
  TargetReader(const Json& json, const std::string& file, std::string pointer,
               Diagnostics& diagnostics)
      : json_(json), file_(file), root_(std::move(pointer)), diagnostics_(diagnostics) {}

  Target read() {
    Target target;
    target.json = json_;
    if (!check_object(json_, root_)) return target;
    check_keys(json_, root_, {"name", "description", "devices", "links"});
    target.name = text(json_, root_, "name", true);
    target.description = text(json_, root_, "description", false);
    if (const Json* devices = member(json_, root_, "devices", true)) {
      const std::string pointer = root_ + "/devices";
      if (!devices->is_array() || devices->empty()) {
        fault(pointer,
              fmt::format("expected a list of at least one device, found {}", type(*devices)));
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
  void fault(const std::string& pointer, std::string text) {
    diagnostics_.error({.file = file_, .pointer = pointer}, std::move(text));
  }
  static std::string type(const Json& json) { return std::string(json_type_name(json)); }

  bool check_object(const Json& json, const std::string& pointer) {
    if (json.is_object()) return true;
    fault(pointer, fmt::format("expected an object, found {}", type(json)));
    return false;
  }

  void check_keys(const Json& object, const std::string& pointer,
                  const std::vector<std::string>& known) {
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      fault(pointer + "/" + pointer_token(key),
            fmt::format("unknown key '{}'{}", key, hint(key, known)));
    }
  }

  const Json* member(const Json& object, const std::string& pointer, std::string_view key,
                     bool required) {
    const Json* found = find_member(object, key);
    if (found == nullptr && required) fault(pointer, fmt::format("'{}' is missing", key));
    return found;
  }

  std::string text(const Json& object, const std::string& pointer, std::string_view key,
                   bool required) {
    const Json* found = member(object, pointer, key, required);
    if (found == nullptr) return {};
    if (!found->is_string() || (required && found->get_ref<const std::string&>().empty())) {
      fault(
          fmt::format("{}/{}", pointer, key),
          fmt::format("expected a {}string, found {}", required ? "non-empty " : "", type(*found)));
      return {};
    }
    return found->get<std::string>();
  }

  // A finite number, greater than zero or at least zero.
  double rate(const Json& value, const std::string& pointer, bool zero_allowed) {
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(number) || number < 0 || (number == 0 && !zero_allowed)) {
      fault(pointer,
            fmt::format("expected a number {} 0, found {}", zero_allowed ? "of at least" : "above",
                        value.is_number() ? value.dump() : type(value)));
      return 0;
    }
    return number;
  }
  double rate_member(const Json& object, const std::string& pointer, std::string_view key,
                     bool required, bool zero_allowed) {
    const Json* found = member(object, pointer, key, required);
    return found == nullptr ? 0 : rate(*found, fmt::format("{}/{}", pointer, key), zero_allowed);
  }

  static std::optional<std::int64_t> count_of(const Json& json) {
    if (!json.is_number_integer()) return std::nullopt;
    if (json.is_number_unsigned()) {
      const auto value = json.get<std::uint64_t>();
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return std::nullopt;
      }
      return static_cast<std::int64_t>(value);
    }
    const auto value = json.get<std::int64_t>();
    return value < 0 ? std::nullopt : std::optional(value);
  }

  // [min, max]; null as max is open.
  CountRange range_member(const Json& object, const std::string& pointer, std::string_view key) {
    CountRange range;
    const Json* found = find_member(object, key);
    if (found == nullptr) return range;
    const bool pair = found->is_array() && found->size() == 2;
    const auto min = pair ? count_of((*found)[0]) : std::nullopt;
    const auto max = pair ? count_of((*found)[1]) : std::nullopt;
    if (!min || (!max && !(*found)[1].is_null()) || (max && *max < *min)) {
      fault(fmt::format("{}/{}", pointer, key),
            "expected [min, max] with 0 <= min <= max, or null for max");
      return range;
    }
    range.min = *min;
    range.max = max;
    return range;
  }

  std::optional<DType> dtype(const std::string& name, const std::string& pointer) {
    const auto found = parse_dtype(name);
    if (!found) {
      fault(pointer, fmt::format("unknown dtype '{}'; one of {}", name, dtype_names()));
    }
    return found;
  }

  std::vector<std::string> strings(const Json& list, const std::string& pointer,
                                   bool empty_allowed) {
    std::vector<std::string> result;
    if (!list.is_array() || (list.empty() && !empty_allowed)) {
      fault(pointer,
            fmt::format("expected a {}list of strings, found {}", empty_allowed ? "" : "non-empty ",
                        list.is_array() ? "an empty one" : type(list)));
      return result;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].is_string()) {
        result.push_back(list[i].get<std::string>());
      } else {
        fault(fmt::format("{}/{}", pointer, i),
              fmt::format("expected a string, found {}", type(list[i])));
        result.emplace_back();  // keeps indices for later messages
      }
    }
    return result;
  }

  std::vector<DType> dtypes(const Json& list, const std::string& pointer) {
    std::vector<DType> result;
    const std::vector<std::string> names = strings(list, pointer, false);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].empty()) continue;
      if (const auto found = dtype(names[i], fmt::format("{}/{}", pointer, i))) {
        result.push_back(*found);
      }
    }
    return result;
  }

  // An op type that looks like one of PyTorch's but is in no catalogue is a misspelling more often
  // than not. Other names are custom ops.
  void check_op_type(const std::string& op_type, const std::string& pointer) {
    if (op_type.empty() || !op_type.starts_with("aten.") || find_op(op_type) != nullptr) return;
    const std::vector<std::string_view> ops = catalogued_ops();
    fault(pointer,
          fmt::format("unknown op type '{}'{}", op_type, hint(op_type, {ops.begin(), ops.end()})));
  }

  // The arguments that every op type of a rule has are those that may be constrained.
  void check_argument(const std::vector<std::string>& op_types, const std::string& argument,
                      const std::string& pointer, bool tensor) {
    for (const std::string& op_type : op_types) {
      const OpInfo* op = find_op(op_type);
      if (op == nullptr) {
        if (op_type.empty() || op_type.starts_with("aten.")) continue;  // reported already
        fault(pointer,
              fmt::format("the arguments of '{}' are not known, so they cannot be constrained",
                          op_type));
        continue;
      }
      std::vector<std::string> names;
      for (const SchemaArgument& candidate : op->schema.arguments) {
        const bool is_tensor = candidate.type == ArgumentType::kTensor ||
                               candidate.type == ArgumentType::kTensorList ||
                               candidate.type == ArgumentType::kOptionalTensorList;
        // A scalar may stand for a tensor, so an attribute rule may name a single tensor as well.
        if (tensor ? is_tensor
                   : candidate.type != ArgumentType::kTensorList &&
                         candidate.type != ArgumentType::kOptionalTensorList) {
          names.push_back(candidate.name);
        }
      }
      if (std::find(names.begin(), names.end(), argument) != names.end()) continue;
      fault(pointer, fmt::format("{} has no {}argument '{}'{}", op_type, tensor ? "tensor " : "",
                                 argument, hint(argument, names)));
    }
  }

  void read_dtype_rule(const Json& json, const std::string& pointer, OpRule& rule) {
    if (!json.is_object()) {
      rule.dtypes.any = dtypes(json, pointer);
      return;
    }
    for (const auto& [key, list] : json.items()) {
      const std::string below = pointer + "/" + pointer_token(key);
      if (key == "*") {
        rule.dtypes.any = dtypes(list, below);
        continue;
      }
      if (key != "result") check_argument(rule.types, key, below, true);
      rule.dtypes.by_argument[key] = dtypes(list, below);
    }
  }

  std::optional<double> bound(const Json& object, const std::string& pointer,
                              std::string_view key) {
    const Json* found = find_member(object, key);
    if (found == nullptr) return std::nullopt;
    if (!found->is_number()) {
      fault(fmt::format("{}/{}", pointer, key),
            fmt::format("expected a number, found {}", type(*found)));
      return std::nullopt;
    }
    return found->get<double>();
  }

  AttributeRule read_attribute(const std::string& argument, const Json& json,
                               const std::string& pointer) {
    AttributeRule rule;
    rule.argument = argument;
    if (!check_object(json, pointer)) return rule;
    check_keys(json, pointer, {"min", "max", "each", "equals", "in"});
    if (json.empty()) fault(pointer, "expected one of min, max, each, equals, in");
    rule.min = bound(json, pointer, "min");
    rule.max = bound(json, pointer, "max");
    if (const Json* each = find_member(json, "each")) {
      const std::string below = pointer + "/each";
      if (check_object(*each, below)) {
        check_keys(*each, below, {"min", "max"});
        if (each->empty()) fault(below, "expected min or max");
        rule.each_min = bound(*each, below, "min");
        rule.each_max = bound(*each, below, "max");
      }
    }
    if ((rule.min && rule.max && *rule.min > *rule.max) ||
        (rule.each_min && rule.each_max && *rule.each_min > *rule.each_max)) {
      fault(pointer, "min is greater than max");
    }
    if (const Json* equals = find_member(json, "equals")) rule.equals = *equals;
    if (const Json* in = find_member(json, "in")) {
      if (in->is_array() && !in->empty()) {
        rule.in = *in;
      } else {
        fault(pointer + "/in", fmt::format("expected a non-empty list of values, found {}",
                                           in->is_array() ? "an empty one" : type(*in)));
      }
    }
    return rule;
  }

  void check_predicate(const std::string& name, const OpRule& rule, const std::string& pointer) {
    std::vector<std::string> names;
    for (const PredicateSummary& predicate : predicates()) {
      names.emplace_back(predicate.name);
      if (predicate.name != name) continue;
      for (const std::string& op_type : rule.types) {
        if (!predicate.needs_arguments || op_type.starts_with("aten.") || find_op(op_type))
          continue;
        fault(pointer, fmt::format("the arguments of '{}' are not known, as predicate '{}' needs",
                                   op_type, name));
      }
      return;
    }
    fault(pointer, fmt::format("unknown predicate '{}'{}", name, hint(name, names)));
  }

  void read_rule(const Json& json, const std::string& pointer, Device& device) {
    OpRule rule;
    if (!check_object(json, pointer)) return;
    check_keys(json, pointer, {"types", "dtypes", "rank", "inputs", "attrs", "requires"});
    if (const Json* types = member(json, pointer, "types", true)) {
      rule.types = strings(*types, pointer + "/types", false);
      for (std::size_t i = 0; i < rule.types.size(); ++i) {
        const std::string below = fmt::format("{}/types/{}", pointer, i);
        check_op_type(rule.types[i], below);
        if (std::find(rule.types.begin(), rule.types.begin() + static_cast<std::ptrdiff_t>(i),
                      rule.types[i]) != rule.types.begin() + static_cast<std::ptrdiff_t>(i)) {
          fault(below, fmt::format("op type '{}' stands here twice", rule.types[i]));
        }
      }
    }
    if (const Json* list = find_member(json, "dtypes"); list != nullptr && *list == "*") {
      rule.dtypes = {};  // every dtype, whatever the device says
    } else if (list != nullptr) {
      read_dtype_rule(*list, pointer + "/dtypes", rule);
    } else {
      rule.dtypes.any = device.dtypes;
    }
    rule.rank =
        find_member(json, "rank") == nullptr ? device.rank : range_member(json, pointer, "rank");
    rule.inputs = range_member(json, pointer, "inputs");
    if (const Json* attributes = find_member(json, "attrs")) {
      const std::string below = pointer + "/attrs";
      if (check_object(*attributes, below)) {
        for (const auto& [argument, constraint] : attributes->items()) {
          const std::string at = below + "/" + pointer_token(argument);
          check_argument(rule.types, argument, at, false);
          rule.attributes.push_back(read_attribute(argument, constraint, at));
        }
      }
    }
    if (const Json* requirements = find_member(json, "requires")) {
      rule.requirements = strings(*requirements, pointer + "/requires", false);
      for (std::size_t i = 0; i < rule.requirements.size(); ++i) {
        const std::string& name = rule.requirements[i];
        if (!name.empty()) check_predicate(name, rule, fmt::format("{}/requires/{}", pointer, i));
      }
    }
    for (const std::string& op_type : rule.types) {
      if (!op_type.empty()) device.rules_by_type[op_type].push_back(device.rules.size());
    }
    device.rules.push_back(std::move(rule));
  }

  void read_ops(const Json& ops, const std::string& pointer, Device& device) {
    if (ops == "*") {
      device.any_op = true;
      return;
    }
    if (!ops.is_array()) {
      fault(pointer, fmt::format("expected \"*\" or a list of op rules, found {}", type(ops)));
      return;
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i] == "*") {
        device.any_op = true;
      } else {
        read_rule(ops[i], fmt::format("{}/{}", pointer, i), device);
      }
    }
  }

  void read_op_rates(const Json& list, const std::string& pointer, Device& device) {
    if (!list.is_array()) {
      fault(pointer, fmt::format("expected an array, found {}", type(list)));
      return;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string at = fmt::format("{}/{}", pointer, i);
      if (!check_object(list[i], at)) continue;
      check_keys(list[i], at, {"types", "grouped", "peak_flops", "memory_bandwidth"});
      OpRate rate;
      if (const Json* types = member(list[i], at, "types", true)) {
        rate.types = strings(*types, at + "/types", true);
        for (std::size_t t = 0; t < rate.types.size(); ++t) {
          check_op_type(rate.types[t], fmt::format("{}/types/{}", at, t));
        }
      }
      if (const Json* grouped = find_member(list[i], "grouped")) {
        if (grouped->is_boolean()) {
          rate.grouped = grouped->get<bool>();
        } else {
          fault(at + "/grouped", fmt::format("expected a bool, found {}", type(*grouped)));
        }
      }
      rate.peak_flops = rate_member(list[i], at, "peak_flops", false, false);
      rate.memory_bandwidth = rate_member(list[i], at, "memory_bandwidth", false, false);
      device.op_rates.push_back(std::move(rate));
    }
  }

  void read_device(const Json& json, const std::string& pointer, Target& target) {
    if (!check_object(json, pointer)) return;
    check_keys(json, pointer,
               {"name", "backend", "options", "ops", "dtypes", "rank", "aliases", "align",
                "on_chip_bytes", "max_partition_flops", "peak_flops", "memory_bandwidth",
                "launch_overhead_us", "resident_weights", "node_overhead_us", "op_rates"});
    Device device;
    device.name = text(json, pointer, "name", true);
    if (target.find_device(device.name) != nullptr) {
      fault(pointer + "/name", fmt::format("device '{}' is described twice", device.name));
    }
    device.backend = text(json, pointer, "backend", false);
    device.backend_options = Json::object();
    if (const Json* options = find_member(json, "options")) {
      if (check_object(*options, pointer + "/options")) device.backend_options = *options;
    }
    if (const Json* list = find_member(json, "dtypes")) {
      device.dtypes = dtypes(*list, pointer + "/dtypes");
    }
    device.rank = range_member(json, pointer, "rank");
    if (const Json* ops = member(json, pointer, "ops", true))
      read_ops(*ops, pointer + "/ops", device);
    if (const Json* aliases = find_member(json, "aliases")) {
      const std::string below = pointer + "/aliases";
      device.aliases = strings(*aliases, below, true);
      for (std::size_t i = 0; i < device.aliases.size(); ++i) {
        check_op_type(device.aliases[i], fmt::format("{}/{}", below, i));
      }
    }
    if (const Json* align = find_member(json, "align")) {
      if (check_object(*align, pointer + "/align")) {
        check_align_rules(*align, file_, pointer + "/align", diagnostics_);
        device.align = *align;
      }
    }
    if (const Json* bytes = find_member(json, "on_chip_bytes")) {
      if (const auto count = count_of(*bytes)) {
        device.on_chip_bytes = *count;
      } else {
        fault(pointer + "/on_chip_bytes",
              fmt::format("expected an integer of at least 0, found {}",
                          bytes->is_number() ? bytes->dump() : type(*bytes)));
      }
    }
    device.max_partition_flops = rate_member(json, pointer, "max_partition_flops", false, true);
    if (const Json* peaks = member(json, pointer, "peak_flops", true)) {
      const std::string below = pointer + "/peak_flops";
      if (check_object(*peaks, below)) {
        if (peaks->empty()) fault(below, "expected FLOP/s of at least one dtype");
        for (const auto& [name, value] : peaks->items()) {
          const std::string at = below + "/" + pointer_token(name);
          const double flops = rate(value, at, false);
          if (const auto key = dtype(name, at)) device.peak_flops[*key] = flops;
        }
      }
    }
    device.memory_bandwidth = rate_member(json, pointer, "memory_bandwidth", true, false);
    device.launch_overhead_us = rate_member(json, pointer, "launch_overhead_us", false, true);
    device.node_overhead_us = rate_member(json, pointer, "node_overhead_us", false, true);
    if (const Json* rates = find_member(json, "op_rates")) {
      read_op_rates(*rates, pointer + "/op_rates", device);
    }
    if (const Json* resident = find_member(json, "resident_weights")) {
      if (resident->is_boolean()) {
        device.resident_weights = resident->get<bool>();
      } else {
        fault(pointer + "/resident_weights",
              fmt::format("expected a bool, found {}", type(*resident)));
      }
    }
    target.devices.push_back(std::move(device));
  }

  void read_links(Target& target) {
    const std::string pointer = root_ + "/links";
    if (const Json* links = find_member(json_, "links")) {
      if (!links->is_array()) {
        fault(pointer, fmt::format("expected a list of links, found {}", type(*links)));
        return;
      }
      for (std::size_t i = 0; i < links->size(); ++i) {
        read_link((*links)[i], fmt::format("{}/{}", pointer, i), target);
      }
    }
    if (diagnostics_.has_errors()) return;  // a misspelt link would be reported a second time
    for (std::size_t i = 0; i < target.devices.size(); ++i) {
      for (std::size_t j = i + 1; j < target.devices.size(); ++j) {
        const std::string& a = target.devices[i].name;
        const std::string& b = target.devices[j].name;
        if (target.find_link(a, b) == nullptr) {
          fault(pointer, fmt::format("no link between '{}' and '{}'", a, b));
        }
      }
    }
  }

  void read_link(const Json& json, const std::string& pointer, Target& target) {
    if (!check_object(json, pointer)) return;
    check_keys(json, pointer, {"from", "to", "bandwidth", "latency_us"});
    Link link;
    link.from = text(json, pointer, "from", true);
    link.to = text(json, pointer, "to", true);
    for (const auto& [key, name] : {std::pair("from", &link.from), std::pair("to", &link.to)}) {
      if (name->empty() || target.find_device(*name) != nullptr) continue;
      std::vector<std::string_view> names;
      for (const Device& device : target.devices) names.push_back(device.name);
      fault(fmt::format("{}/{}", pointer, key),
            fmt::format("unknown device '{}'; one of {}", *name, fmt::join(names, ", ")));
    }
    if (!link.from.empty() && link.from == link.to) {
      fault(pointer, fmt::format("link from '{}' to itself", link.from));
    }
    for (const Link& other : target.links) {
      if (other.from == link.from && other.to == link.to) {
        fault(pointer,
              fmt::format("the link from '{}' to '{}' is described twice", link.from, link.to));
      }
    }
    link.bandwidth = rate_member(json, pointer, "bandwidth", true, false);
    link.latency_us = rate_member(json, pointer, "latency_us", false, true);
    target.links.push_back(std::move(link));
  }

  const Json& json_;
  const std::string& file_;
  std::string root_;
  Diagnostics& diagnostics_;
};

bool is_file_name(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".json");
}

const EmbeddedTarget& find_embedded(const std::string& name) {
  std::vector<std::string> names;
  for (const EmbeddedTarget& target : embedded_targets()) {
    if (target.name == name) return target;
    names.emplace_back(target.name);
  }
  const std::string nearest = nearest_word(name, names);
  throw Error(
      ErrorCode::kUsage,
      fmt::format("unknown target '{}'{}; built in: {}; a file needs a '/' or ends in .json", name,
                  nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                  fmt::join(names, ", ")));
}

}  // namespace

double Device::flops_per_second(DType dtype) const noexcept {
  if (const auto found = peak_flops.find(dtype); found != peak_flops.end()) return found->second;
  if (const auto found = peak_flops.find(DType::kFloat32); found != peak_flops.end()) {
    return found->second;
  }
  double slowest = 0;
  for (const auto& [other, rate] : peak_flops) {
    slowest = slowest == 0 ? rate : std::min(slowest, rate);
  }
  return slowest;
}

bool Device::is_alias(std::string_view op_type) const noexcept {
  return std::find(aliases.begin(), aliases.end(), op_type) != aliases.end();
}

const Device* Target::find_device(std::string_view wanted) const noexcept {
  for (const Device& device : devices) {
    if (device.name == wanted) return &device;
  }
  return nullptr;
}

const Link* Target::find_link(std::string_view from, std::string_view to) const noexcept {
  if (from == to) return nullptr;
  const Link* reverse = nullptr;
  for (const Link& link : links) {
    if (link.from == from && link.to == to) return &link;
    if (link.from == to && link.to == from) reverse = &link;
  }
  return reverse;
}

Target parse_target(const Json& json, const std::string& file, const std::string& pointer,
                    Diagnostics& diagnostics) {
  Diagnostics own;  // read_links asks whether this target, not the document, has errors
  Target target = TargetReader(json, file, pointer, own).read();
  for (const Diagnostic& entry : own.entries()) diagnostics.error(entry.location, entry.text);
  return target;
}

Target parse_target(const Json& json, const std::string& file, const std::string& pointer) {
  Diagnostics diagnostics;
  Target target = parse_target(json, file, pointer, diagnostics);
  if (diagnostics.has_errors()) {
    const Diagnostic& first = diagnostics.entries().front();
    std::string text = first.text;
    if (diagnostics.error_count() > 1) {
      text += fmt::format(" (and {} more)", diagnostics.error_count() - 1);
    }
    throw Error(ErrorCode::kParse, std::move(text), first.location);
  }
  return target;
}

Target load_target(const std::string& name_or_file) {
  if (is_file_name(name_or_file)) {
    return parse_target(parse_json(read_file(name_or_file), name_or_file), name_or_file);
  }
  const EmbeddedTarget& embedded = find_embedded(name_or_file);
  const std::string file = fmt::format("<target {}>", embedded.name);
  return parse_target(parse_json(embedded.text, file), file);
}

std::string built_in_target_text(const std::string& name) {
  return std::string(find_embedded(name).text);
}

std::vector<BuiltInTarget> built_in_targets() {
  std::vector<BuiltInTarget> targets;
  for (const EmbeddedTarget& embedded : embedded_targets()) {
    const Json json = parse_json(embedded.text, fmt::format("<target {}>", embedded.name));
    const Json* description = find_member(json, "description");
    targets.push_back({std::string(embedded.name),
                       description == nullptr ? std::string() : description->get<std::string>()});
  }
  return targets;
}

Target graph_target(const Graph& graph) {
  const Json* json = graph.npu_member("target");
  if (json == nullptr) {
    throw Error(ErrorCode::kInvalidGraph,
                "the document has no target description; run npu-tag on it first",
                {.file = graph.file, .pointer = "/npu"});
  }
  return parse_target(*json, graph.file, "/npu/target");
}

}  // namespace npu
