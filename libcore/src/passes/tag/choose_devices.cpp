// SPDX-License-Identifier: Apache-2.0
// Chooses the device of every node.
//
// Each node is decided alone, in list order, so O(nodes x devices x rules of the op); only getitem
// nodes look at their producer, since a list of tensors cannot be sent from device to device, and
// conversions at their neighbours, if a device takes integers alone. Views and other zero-cost
// aliases are tagged as any op is, by the table: the contiguous strategy's published counts rest on
// that, and mincut moves those that stand alone.
#include "passes/tag/choose_devices.hpp"

#include <fnmatch.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "target/quantization_rules.hpp"

namespace npu {
namespace {

bool matches(const std::string& glob, const Node& node) {
  return fnmatch(glob.c_str(), node.op_type.c_str(), 0) == 0 ||
         fnmatch(glob.c_str(), node.name.c_str(), 0) == 0;
}

std::string device_names(const Target& target) {
  std::vector<std::string> names;
  for (const Device& device : target.devices) names.push_back(device.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

using Kind = DeviceReason::Kind;

}  // namespace

DeviceChooser::DeviceChooser(const Graph& graph, const Target& target, const TagOptions& options,
                             Diagnostics& diagnostics, const BackendAnswers* answers)
    : graph_(graph),
      target_(target),
      options_(options),
      diagnostics_(diagnostics),
      answers_(answers) {
  for (const Device& device : target.devices) {
    const auto rules = quantization_rules(target, device.name);
    if (rules && rules->integer_io) integer_devices_.insert(&device);
  }
}

std::vector<const Device*> DeviceChooser::devices() {
  choose_all();
  std::vector<const Device*> devices;
  for (const DeviceTag& tag : tags_) devices.push_back(tag.device);
  return devices;
}

const Device* DeviceChooser::placed_by_hand(const Node& node) {
  const auto wish = requested(node);
  return wish ? wish->device : nullptr;
}

std::vector<DeviceTag> DeviceChooser::tags() {
  const std::size_t errors = diagnostics_.error_count();
  choose_all();
  for (std::size_t r = 0; r < options_.force.size(); ++r) {
    if (used_.contains(r)) continue;
    diagnostics_.warning({.file = graph_.file},
                         fmt::format("--force {}={} matches no node", options_.force[r].device,
                                     options_.force[r].glob));
  }
  if (diagnostics_.error_count() != errors) tags_.clear();
  return std::move(tags_);
}

void DeviceChooser::choose_all() {
  check_rules();
  tags_.resize(graph_.nodes().size());
  for (std::size_t i = 0; i < tags_.size(); ++i) {
    tags_[i] = choose(NodeId{static_cast<std::int32_t>(i)});
  }
}

void DeviceChooser::check_rules() {
  for (const ForceRule& rule : options_.force) {
    if (target_.find_device(rule.device) != nullptr) continue;
    throw Error(ErrorCode::kUsage,
                fmt::format("--force {}={}: target '{}' has no device '{}', only {}", rule.device,
                            rule.glob, target_.name, rule.device, device_names(target_)));
  }
}

// The device that a rule or a kept tag asks for, with the reason to write down.
std::optional<DeviceTag> DeviceChooser::requested(const Node& node) {
  const ForceRule* last = nullptr;
  for (std::size_t r = 0; r < options_.force.size(); ++r) {
    if (!matches(options_.force[r].glob, node)) continue;
    used_.insert(r);
    last = &options_.force[r];
  }
  if (last != nullptr)
    return DeviceTag{target_.find_device(last->device), DeviceReason(Kind::kForced)};
  if (!options_.keep_tags) return std::nullopt;
  const Json* dev_info = find_member(node.json, "dev_info");
  if (dev_info != nullptr && dev_info->is_string()) {
    if (const Device* device = target_.find_device(dev_info->get_ref<const std::string&>())) {
      return DeviceTag{device, DeviceReason(Kind::kKept)};
    }
  }
  if (!node.device) return std::nullopt;
  const Device* device = target_.find_device(*node.device);
  return device == nullptr ? std::nullopt
                           : std::optional(DeviceTag{device, DeviceReason(Kind::kKept)});
}

// Where the operand of a getitem comes from; an invalid id if it is no node.
NodeId DeviceChooser::producer(const Node& node) const {
  if (node.op_type != kGetitem || node.inputs.empty()) return {};
  const TensorInfo& tensor = graph_.tensor(node.inputs.front());
  return tensor.kind == TensorKind::kResult ? tensor.producer : NodeId{};
}

DeviceTag DeviceChooser::choose(NodeId id) {
  const Node& node = graph_.node(id);
  std::optional<DeviceTag> wish = requested(node);
  if (const NodeId from = producer(node); from.valid() && from < id) {
    const DeviceTag& tag = tags_[index_of(from)];
    if (tag.device == nullptr) return {};  // reported at the producer
    if (wish && wish->reason.kind() == Kind::kForced && wish->device != tag.device) {
      diagnostics_.error(
          graph_.location(id),
          fmt::format("node '{}' ({}) is forced to '{}', but has to stay with its producer '{}' on "
                      "'{}'",
                      node.name, node.op_type, wish->device->name, graph_.node(from).name,
                      tag.device->name));
      return {};
    }
    if (tag.reason.kind() == Kind::kNone || tag.reason.is_by_hand()) return tag;
    return {tag.device, DeviceReason(Kind::kFollowsProducer)};
  }
  if (wish) return check_wish(id, *std::move(wish));

  std::string first_reason;
  std::string all_reasons;
  for (const Device& device : target_.devices) {
    const SupportResult result = check(id, device);
    if (result.supported) return {&device, DeviceReason::parse(first_reason)};
    if (first_reason.empty()) first_reason = result.reason;
    all_reasons +=
        fmt::format("{}{}: {}", all_reasons.empty() ? "" : "; ", device.name, result.reason);
  }
  const bool may_be_custom = !node.op_type.starts_with("aten.") &&
                             DeviceReason::parse(first_reason).kind() == Kind::kUnsupportedOp;
  diagnostics_.error(
      graph_.location(id),
      fmt::format("no device of target '{}' runs node '{}' ({}): {}{}", target_.name, node.name,
                  node.op_type, all_reasons,
                  may_be_custom ? "; --load-ops makes the ops of a library known" : ""));
  return {};
}

// Whether what a device that is passed integers alone would be passed, or would pass on, is
// float32: a conversion that stands between it and the rest of the model.
bool DeviceChooser::is_at_border(NodeId id, const Device& device) const {
  const Node& node = graph_.node(id);
  const auto runs = [&](NodeId other) { return check_support(graph_, other, device).supported; };
  if (is_quantization(node.op_type) && !node.inputs.empty()) {
    const TensorInfo& operand = graph_.tensor(node.inputs.front());
    if (operand.kind == TensorKind::kWeight) return false;
    return operand.kind != TensorKind::kResult || !runs(operand.producer);
  }
  if (!is_dequantization(node.op_type) || node.outputs.empty()) return false;
  const TensorId result = node.outputs.front();
  const std::vector<NodeId>& readers = graph_.tensor(result).consumers;
  const auto& outputs = graph_.graph_outputs();
  return std::find(outputs.begin(), outputs.end(), result) != outputs.end() ||
         !std::all_of(readers.begin(), readers.end(), runs);
}

// Whether nothing puts the node on another device: what runs with it or not at all has to know.
bool DeviceChooser::may_run(NodeId id, const Device& device) {
  const std::optional<DeviceTag> wish = requested(graph_.node(id));
  const bool is_refused = answers_ != nullptr && !answers_->refusal(device, id).empty();
  return (!wish || wish->device == &device) && !is_refused;
}

// By the target's table, and then by the backend, if it was asked.
SupportResult DeviceChooser::check_node(NodeId id, const Device& device) {
  SupportResult result =
      check_support(graph_, id, device, [&](NodeId other) { return may_run(other, device); });
  if (result.supported && integer_devices_.contains(&device) && is_at_border(id, device)) {
    return {false, "only integers enter and leave"};
  }
  if (!result.supported || answers_ == nullptr) return result;
  const std::string& refusal = answers_->refusal(device, id);
  return refusal.empty() ? result : SupportResult{false, refusal};
}

// A device that runs an op with several results also has to run the getitems of them.
SupportResult DeviceChooser::check(NodeId id, const Device& device) {
  SupportResult result = check_node(id, device);
  if (!result.supported) return result;
  for (const TensorId output : graph_.node(id).outputs) {
    for (const NodeId consumer : graph_.tensor(output).consumers) {
      const Node& node = graph_.node(consumer);
      if (producer(node) != id) continue;
      result = check_node(consumer, device);
      if (!result.supported)
        return {false, DeviceReason(Kind::kNotTakenApart, result.reason).text()};
    }
  }
  return result;
}

DeviceTag DeviceChooser::check_wish(NodeId id, DeviceTag wish) {
  const SupportResult result = check(id, *wish.device);
  if (result.supported) return wish;
  const Node& node = graph_.node(id);
  diagnostics_.error(
      graph_.location(id),
      fmt::format("node '{}' ({}) is {} to '{}', which cannot run it: {}", node.name, node.op_type,
                  wish.reason.text(), wish.device->name, result.reason));
  return {};
}

}  // namespace npu
