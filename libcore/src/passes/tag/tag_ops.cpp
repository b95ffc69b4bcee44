// SPDX-License-Identifier: Apache-2.0
// Gives every node the device that will run it.
//
// Input:  a verified graph and a target.
// Output: the same graph with device and device_reason set, constants folded, and the target in
//         `npu.target`.
// Each node is decided alone, in list order, so O(nodes x devices x rules of the op); only getitem
// nodes look at their producer, since a list of tensors cannot be sent from device to device, and
// conversions at their neighbours, if a device takes integers alone. Views
// and other zero-cost aliases are tagged as any op is, by the table: the contiguous strategy's
// published counts rest on that, and mincut moves those that stand alone.
#include <fnmatch.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "ir/device_reason.hpp"
#include "ir/folded_nodes.hpp"
#include "npu/passes/tag.hpp"
#include "npu/support/log.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_name.hpp"
#include "passes/tag/ask_backends.hpp"
#include "passes/tag/decompose_ops.hpp"
#include "passes/tag/find_constants.hpp"
#include "support/text.hpp"
#include "target/quantization_rules.hpp"
#include "target/support_check.hpp"

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

struct Tag {
  const Device* device = nullptr;
  DeviceReason reason = {};
};

class Tagger {
 public:
  // `answers` may be null.
  Tagger(const Graph& graph, const Target& target, const TagOptions& options,
         Diagnostics& diagnostics, const BackendAnswers* answers = nullptr)
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

  // The device of every node, null where none runs it, whatever the faults.
  std::vector<const Device*> devices() {
    choose_all();
    std::vector<const Device*> devices;
    for (const Tag& tag : tags_) devices.push_back(tag.device);
    return devices;
  }

  // The device on which a rule or a kept tag places the node; null if none does.
  const Device* placed_by_hand(const Node& node) {
    const auto wish = requested(node);
    return wish ? wish->device : nullptr;
  }

  // One tag per node; empty if there is an error.
  std::vector<Tag> run() {
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

 private:
  void choose_all() {
    check_rules();
    tags_.resize(graph_.nodes().size());
    for (std::size_t i = 0; i < tags_.size(); ++i) {
      tags_[i] = choose(NodeId{static_cast<std::int32_t>(i)});
    }
  }

  void check_rules() {
    for (const ForceRule& rule : options_.force) {
      if (target_.find_device(rule.device) != nullptr) continue;
      throw Error(ErrorCode::kUsage,
                  fmt::format("--force {}={}: target '{}' has no device '{}', only {}", rule.device,
                              rule.glob, target_.name, rule.device, device_names(target_)));
    }
  }

  // The device that a rule or a kept tag asks for, with the reason to write down.
  std::optional<Tag> requested(const Node& node) {
    const ForceRule* last = nullptr;
    for (std::size_t r = 0; r < options_.force.size(); ++r) {
      if (!matches(options_.force[r].glob, node)) continue;
      used_.insert(r);
      last = &options_.force[r];
    }
    if (last != nullptr) return Tag{target_.find_device(last->device), DeviceReason(Kind::kForced)};
    if (!options_.keep_tags) return std::nullopt;
    const Json* dev_info = find_member(node.json, "dev_info");
    if (dev_info != nullptr && dev_info->is_string()) {
      if (const Device* device = target_.find_device(dev_info->get_ref<const std::string&>())) {
        return Tag{device, DeviceReason(Kind::kKept)};
      }
    }
    if (!node.device) return std::nullopt;
    const Device* device = target_.find_device(*node.device);
    return device == nullptr ? std::nullopt : std::optional(Tag{device, DeviceReason(Kind::kKept)});
  }

  // Where the operand of a getitem comes from; an invalid id if it is no node.
  NodeId producer(const Node& node) const {
    if (node.op_type != kGetitem || node.inputs.empty()) return {};
    const TensorInfo& tensor = graph_.tensor(node.inputs.front());
    return tensor.kind == TensorKind::kResult ? tensor.producer : NodeId{};
  }

  Tag choose(NodeId id) {
    const Node& node = graph_.node(id);
    std::optional<Tag> wish = requested(node);
    if (const NodeId from = producer(node); from.valid() && from < id) {
      const Tag& tag = tags_[index_of(from)];
      if (tag.device == nullptr) return {};  // reported at the producer
      if (wish && wish->reason.kind() == Kind::kForced && wish->device != tag.device) {
        diagnostics_.error(
            graph_.location(id),
            fmt::format(
                "node '{}' ({}) is forced to '{}', but has to stay with its producer '{}' on "
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
  bool is_at_border(NodeId id, const Device& device) const {
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
  bool may_run(NodeId id, const Device& device) {
    const std::optional<Tag> wish = requested(graph_.node(id));
    const bool is_refused = answers_ != nullptr && !answers_->refusal(device, id).empty();
    return (!wish || wish->device == &device) && !is_refused;
  }

  // By the target's table, and then by the backend, if it was asked.
  SupportResult check_node(NodeId id, const Device& device) {
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
  SupportResult check(NodeId id, const Device& device) {
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

  Tag check_wish(NodeId id, Tag wish) {
    const SupportResult result = check(id, *wish.device);
    if (result.supported) return wish;
    const Node& node = graph_.node(id);
    diagnostics_.error(
        graph_.location(id),
        fmt::format("node '{}' ({}) is {} to '{}', which cannot run it: {}", node.name,
                    node.op_type, wish.reason.text(), wish.device->name, result.reason));
    return {};
  }

  const Graph& graph_;
  const Target& target_;
  const TagOptions& options_;
  Diagnostics& diagnostics_;
  const BackendAnswers* answers_;
  std::set<const Device*> integer_devices_;  // that pass and are passed integers alone
  std::vector<Tag> tags_;
  std::set<std::size_t> used_;
};

std::string percent(double part, double whole) {
  return whole == 0 ? "-" : fixed_text(100 * part / whole, 1) + "%";
}

}  // namespace

namespace {

/// Tells how many nodes went to each device and, for -vv, which ops and why.
void log_tags(const Graph& graph, const Target& target, const LogTimer& timer) {
  timer.done([&] {
    std::string text = "tag for target '" + target.name + "':";
    for (const Device& device : target.devices) {
      const auto count =
          std::count_if(graph.nodes().begin(), graph.nodes().end(),
                        [&](const Node& node) { return node.device == device.name; });
      text += (&device == &target.devices.front() ? " " : ", ") + std::to_string(count) +
              " nodes on " + device.name;
    }
    if (!graph.folded().empty()) text += ", " + std::to_string(graph.folded().size()) + " folded";
    return text;
  });
  if (!log_wants(LogModule::kPass, LogLevel::kDebug)) return;
  for (const TagReportRow& row : tag_report(graph, target).rows) {
    log(LogModule::kPass, LogLevel::kDebug, [&] {
      return "tag: " + std::to_string(row.count) + " x " + printable_text(row.op_type) + " on " +
             row.device + ": " +
             (row.reason.empty() ? "the first device that runs it" : printable_text(row.reason));
    });
  }
}

}  // namespace

namespace {

/// By node: whether it can be folded; one that is placed by hand cannot.
std::vector<char> constants_of(const Graph& graph, const Target& target, Tagger& tagger) {
  std::vector<char> is_fixed;
  for (const Node& node : graph.nodes()) {
    is_fixed.push_back(tagger.placed_by_hand(node) != nullptr ? 1 : 0);
  }
  return find_constants(graph, target, is_fixed);
}

/// By node: whether it is folded; empty if none is.
std::vector<char> nodes_to_fold(const Graph& graph, const Target& target,
                                const TagOptions& options) {
  if (!options.fold) return {};
  Diagnostics ignored;  // of the graph as it is not going to be
  Tagger tagger(graph, target, options, ignored);
  std::vector<char> chosen = constants_of(graph, target, tagger);
  const auto has_any = [&] { return std::find(chosen.begin(), chosen.end(), 1) != chosen.end(); };
  if (has_any()) chosen = choose_folded(graph, chosen, tagger.devices());
  if (!has_any()) chosen.clear();
  return chosen;
}

/// Nodes of ops that a device lacks become nodes that it runs, but for constants, which are
/// computed once whatever they are made of.
bool decompose_nodes(Graph& graph, const Target& target, const TagOptions& options) {
  Diagnostics ignored;  // of the graph as it is not going to be
  Tagger tagger(graph, target, options, ignored);
  std::vector<char> constants(graph.nodes().size(), 0);
  if (options.fold) constants = constants_of(graph, target, tagger);
  return decompose_ops(graph, target, [&](NodeId id) -> NodeWish {
    return {constants[index_of(id)] != 0, tagger.placed_by_hand(graph.node(id))};
  });
}

/// Which nodes are folded, by name.
std::vector<std::string> folded_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const FoldedNode& folded : graph.folded()) names.push_back(folded.node.name);
  return names;
}

}  // namespace

namespace {

/// Asks about single nodes, and then about what would be compiled together.
std::unique_ptr<BackendAnswers> ask_backends(const Graph& graph, const Target& target,
                                             const TagOptions& options) {
  if (!options.ask) return nullptr;
  auto answers = std::make_unique<BackendAnswers>(graph, target);
  answers->ask_nodes();
  Diagnostics ignored;  // told by the tagger that follows
  answers->ask_parts(Tagger(graph, target, options, ignored, answers.get()).devices());
  return answers;
}

}  // namespace

bool tag_ops(Graph& graph, const Target& target, const TagOptions& options,
             Diagnostics& diagnostics) {
  const LogTimer timer(LogModule::kPass);
  const std::size_t errors = diagnostics.error_count();
  const std::vector<std::string> folded_before = folded_names(graph);
  std::optional<Graph> before;  // for an error, if nodes are folded or no longer are
  bool decomposed = false;
  const auto keep = [&] {
    if (!before) before = graph;
  };
  if (!graph.folded().empty()) {
    keep();
    unfold_nodes(graph);
  }
  if (may_decompose(graph, target)) {
    keep();
    decomposed = decompose_nodes(graph, target, options);
  }
  if (const std::vector<char> fold = nodes_to_fold(graph, target, options); !fold.empty()) {
    keep();
    fold_nodes(graph, fold);
  }
  const auto answers = ask_backends(graph, target, options);
  const std::vector<Tag> tags = Tagger(graph, target, options, diagnostics, answers.get()).run();
  if (diagnostics.error_count() != errors) {
    if (before) graph = *std::move(before);
    return false;
  }

  bool changed = decomposed || folded_names(graph) != folded_before;
  const auto set = [&changed](auto& field, auto value) {
    if (field == value) return;
    field = std::move(value);
    changed = true;
  };
  for (std::size_t i = 0; i < tags.size(); ++i) {
    Node& node = graph.nodes()[i];
    const bool preferred = tags[i].device == &target.devices.front();
    set(node.device, std::optional(tags[i].device->name));
    // A node placed by hand says so wherever it is, so that later tools do not move it.
    const bool says_why = !preferred || tags[i].reason.is_by_hand();
    set(node.device_reason,
        says_why ? std::optional(tags[i].reason.text()) : std::optional<std::string>());
    set(node.partition, std::optional<std::int64_t>());
    set(node.fusion_group, std::optional<std::int64_t>());
    if (find_member(node.json, "align_mode") != nullptr) {
      node.json.erase("align_mode");
      changed = true;
    }
  }
  for (FoldedNode& folded : graph.folded()) {
    DeviceReason(Kind::kConstant).store(folded.node);
  }
  for (const std::string_view stale : {"fusion", "partition", "layout"}) {
    if (graph.npu_member(stale) == nullptr) continue;
    graph.erase_npu_member(stale);
    changed = true;
  }
  const Json* known = graph.npu_member("target");
  const Json written = answers != nullptr ? answers->record(*target.json) : *target.json;
  if (known == nullptr || *known != written) {
    graph.set_npu_member("target", written);
    changed = true;
  }
  log_tags(graph, target, timer);
  return changed;
}

namespace {

void add_to(TagReportRow& row, const Node& node, const std::string& device, double flops,
            double bytes) {
  row.op_type = node.op_type;
  row.device = device;
  row.reason = node.device_reason.value_or("");
  ++row.count;
  row.flops += flops;
  row.bytes += bytes;
}

}  // namespace

TagReport tag_report(const Graph& graph, const Target& target) {
  TagReport report;
  std::map<std::string, std::size_t> order;
  for (const Device& device : target.devices) {
    order.emplace(device.name, report.devices.size());
    report.devices.push_back({.device = device.name});
  }
  std::map<std::tuple<std::size_t, std::string, std::string>, TagReportRow> rows;
  for (const Node& node : graph.nodes()) {
    const double flops = node_flops(graph, node);
    const double bytes = node_bytes(graph, node);
    ++report.nodes;
    report.flops += flops;
    report.bytes += bytes;
    const auto found = order.find(node.device.value_or(""));
    if (found == order.end()) continue;  // not tagged for this target
    DeviceShare& share = report.devices[found->second];
    ++share.nodes;
    share.flops += flops;
    share.bytes += bytes;
    const std::string reason = node.device_reason.value_or("");
    add_to(rows[{found->second, node.op_type, reason}], node, share.device, flops, bytes);
  }
  for (const Node* node : document_nodes(graph)) {
    const Json* op_type = find_member(node->json, "decomposed");
    if (op_type != nullptr && op_type->is_string()) {
      ++report.decomposed[op_type->get<std::string>()];
    }
  }
  for (const FoldedNode& folded : graph.folded()) {
    const Node& node = folded.node;
    ++report.folded;
    add_to(rows[{order.size(), node.op_type, node.device_reason.value_or("")}], node, "",
           node_flops(graph, node), node_bytes(graph, node));
  }
  report.kept_constants = count_kept_constants(graph, target);
  const auto place = [&](const TagReportRow& row) {
    return row.device.empty() ? order.size() : order.at(row.device);
  };
  for (auto& [key, row] : rows) report.rows.push_back(std::move(row));
  std::stable_sort(report.rows.begin(), report.rows.end(),
                   [&](const TagReportRow& a, const TagReportRow& b) {
                     return std::tuple(place(a), -a.count) < std::tuple(place(b), -b.count);
                   });
  return report;
}

std::string format_tag_report(const TagReport& report) {
  std::vector<std::vector<std::string>> ops{
      {"op", "device", ">nodes", ">flops", ">bytes", "reason"}};
  for (const TagReportRow& row : report.rows) {
    if (row.device.empty()) continue;
    ops.push_back({row.op_type, row.device, std::to_string(row.count), flops_text(row.flops),
                   bytes_text(row.bytes), row.reason.empty() ? "-" : row.reason});
  }
  std::string text = table_text(ops) + "\n" + format_coverage(report);
  if (report.decomposed.empty()) return text;
  std::vector<std::vector<std::string>> decomposed{{"decomposed", ">nodes"}};
  for (const auto& [op_type, count] : report.decomposed) {
    decomposed.push_back({printable_text(op_type), std::to_string(count)});
  }
  return text + "\n" + table_text(decomposed);
}

namespace {

/// The rows of nodes that left the first device.
std::vector<const TagReportRow*> rows_that_left(const TagReport& report) {
  std::vector<const TagReportRow*> rows;
  for (const TagReportRow& row : report.rows) {
    if (row.device.empty() || row.device == report.devices.front().device) continue;
    if (row.op_type == kGetitem || DeviceReason::parse(row.reason).is_by_hand()) continue;
    rows.push_back(&row);
  }
  return rows;
}

}  // namespace

std::int64_t left_device(const TagReport& report) {
  std::int64_t nodes = 0;
  for (const TagReportRow* row : rows_that_left(report)) nodes += row->count;
  return nodes;
}

std::string format_left_device(const TagReport& report) {
  constexpr std::size_t kMostNamed = 5;
  if (report.devices.empty()) return {};
  const std::string start = "left " + report.devices.front().device + ": ";
  const std::int64_t nodes = left_device(report);
  if (nodes == 0) return start + "nothing\n";
  std::vector<std::string> named;
  const std::vector<const TagReportRow*> rows = rows_that_left(report);
  for (const TagReportRow* row : rows) {
    if (named.size() == kMostNamed) break;
    named.push_back(fmt::format("{} {}", row->count, printable_text(short_name(row->op_type))));
    if (!row->reason.empty()) named.back() += " (" + printable_text(row->reason) + ")";
  }
  const std::size_t others = rows.size() - named.size();
  return fmt::format("{}{} node{}: {}{}\n", start, nodes, nodes == 1 ? "" : "s",
                     fmt::join(named, ", "),
                     others == 0 ? "" : fmt::format(", and {} more kinds", others));
}

std::string format_coverage(const TagReport& report) {
  std::vector<std::vector<std::string>> devices{
      {"device", ">nodes", ">share", ">flops", ">share", ">bytes", ">share"}};
  for (const DeviceShare& share : report.devices) {
    devices.push_back({share.device, std::to_string(share.nodes),
                       percent(static_cast<double>(share.nodes), static_cast<double>(report.nodes)),
                       flops_text(share.flops), percent(share.flops, report.flops),
                       bytes_text(share.bytes), percent(share.bytes, report.bytes)});
  }
  std::string text = table_text(devices);
  const std::int64_t constants = report.folded + report.kept_constants;
  if (constants > 0) {
    text += fmt::format("constant: {} node{}, computed once, when the model is compiled\n",
                        constants, constants == 1 ? "" : "s");
  }
  return text + format_left_device(report);
}

std::map<std::string, double> tag_metrics(const TagReport& report) {
  std::map<std::string, double> metrics{{"nodes", static_cast<double>(report.nodes)},
                                        {"flops", report.flops},
                                        {"bytes", report.bytes},
                                        {"nodes_folded", static_cast<double>(report.folded)}};
  metrics["nodes_decomposed"] = 0;
  for (const auto& [op_type, count] : report.decomposed) {
    metrics["nodes_decomposed"] += static_cast<double>(count);
  }
  for (const DeviceShare& share : report.devices) {
    metrics["nodes_" + share.device] = static_cast<double>(share.nodes);
    metrics["flops_" + share.device] = share.flops;
    metrics["bytes_" + share.device] = share.bytes;
  }
  const DeviceShare first = report.devices.empty() ? DeviceShare{} : report.devices.front();
  const auto coverage = [](double part, double whole) { return whole == 0 ? 1 : part / whole; };
  metrics["coverage_nodes"] =
      coverage(static_cast<double>(first.nodes), static_cast<double>(report.nodes));
  metrics["coverage_flops"] = coverage(first.flops, report.flops);
  metrics["coverage_bytes"] = coverage(first.bytes, report.bytes);
  std::set<std::string_view> unsupported;
  for (const TagReportRow* row : rows_that_left(report)) unsupported.insert(row->op_type);
  metrics["unsupported_ops"] = static_cast<double>(unsupported.size());
  metrics["left_device"] = static_cast<double>(left_device(report));
  return metrics;
}

}  // namespace npu
