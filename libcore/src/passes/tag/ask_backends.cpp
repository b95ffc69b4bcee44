// SPDX-License-Identifier: Apache-2.0
// Asks backends which of the nodes that a target allows they take.
//
// Questions are asked in a fixed order: for each device, in the target's order, all nodes that its
// table allows, as one sub-IR; then, once nodes have devices, each connected part of those of a
// device, by its first node. So the answers depend on the document, the target and the backends
// alone. Two questions for each node, and what the backends take for them.
#include "passes/tag/ask_backends.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "npu/ir/subgraph.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "ops/op_name.hpp"
#include "passes/tag/choose_devices.hpp"
#include "target/support_check.hpp"

namespace npu {
namespace {

/// A reason without the name of the node, which stands beside it, so that equal reasons are equal.
std::string without_name(std::string reason, const Node& node) {
  const std::string name = "node '" + node.name + "'";
  if (!reason.starts_with(name)) return reason;
  std::size_t at = name.size();
  const std::string op = " (" + node.op_type + ")";
  if (reason.compare(at, op.size(), op) == 0) at += op.size();
  return reason.compare(at, 2, ": ") == 0 ? reason.substr(at + 2) : reason;
}

/// The connected parts of the nodes for which `is_in` holds, by their first node.
std::vector<std::vector<NodeId>> connected_parts(const Graph& graph,
                                                 const std::vector<char>& is_in) {
  std::vector<std::size_t> root(graph.nodes().size());
  std::iota(root.begin(), root.end(), std::size_t{0});
  const auto find = [&](std::size_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (std::size_t i = 0; i < root.size(); ++i) {
    if (is_in[i] == 0) continue;
    for (const TensorId input : graph.nodes()[i].inputs) {
      const TensorInfo& tensor = graph.tensor(input);
      if (tensor.kind != TensorKind::kResult || is_in[index_of(tensor.producer)] == 0) continue;
      const std::size_t a = find(i);
      const std::size_t b = find(index_of(tensor.producer));
      root[std::max(a, b)] = std::min(a, b);
    }
  }
  std::map<std::size_t, std::vector<NodeId>> parts;
  for (std::size_t i = 0; i < root.size(); ++i) {
    if (is_in[i] != 0) parts[find(i)].push_back(NodeId{static_cast<std::int32_t>(i)});
  }
  std::vector<std::vector<NodeId>> list;
  for (auto& [first, nodes] : parts) list.push_back(std::move(nodes));
  return list;
}

/// Parts run one after another, so the largest scratch memory serves all.
void add(const CostEstimate& part, CostEstimate& sum) {
  sum.weights_bytes += part.weights_bytes;
  sum.scratch_bytes = std::max(sum.scratch_bytes, part.scratch_bytes);
  sum.has_memory = sum.has_memory || part.has_memory;
  if (part.seconds) sum.seconds = sum.seconds.value_or(0) + *part.seconds;
}

}  // namespace

BackendAnswers::BackendAnswers(const Graph& graph, const Target& target) : graph_(graph) {
  std::string why_not;
  // All are loaded before the first device is opened, since loading may start a process.
  std::vector<std::pair<const Device*, std::shared_ptr<const Backend>>> wanted;
  for (const Device& device : target.devices) {
    const auto cannot = [&](const std::string& reason) {
      why_not += (why_not.empty() ? "" : "; ") + device.name + ": " + reason;
    };
    if (device.backend.empty()) {
      cannot("it is for planning only");
      continue;
    }
    if (device.any_op) {
      cannot("it runs every op");
      continue;
    }
    auto backend = Backend::load(device.backend);
    if (!backend->has_feature("check")) {
      cannot("backend '" + device.backend + "' lacks the feature 'check'");
      continue;
    }
    wanted.emplace_back(&device, std::move(backend));
  }
  for (const auto& [device, backend] : wanted) {
    const Json& options = device->backend_options;
    asked_.push_back({.device = device,
                      .instance = DeviceInstance::open(
                          backend, options.is_object() ? options.dump() : std::string("{}")),
                      .refusals = std::vector<std::string>(graph.nodes().size()),
                      .questions = std::make_unique<Digest>()});
  }
  if (!asked_.empty()) return;
  throw Error(ErrorCode::kUnsupported,
              "no device of target '" + target.name + "' can be asked: " + why_not);
}

/// Nodes that the target allows. A getitem stays with its producer, and so the other way round.
std::vector<NodeId> BackendAnswers::candidates(const Device& device) const {
  std::vector<char> is_allowed;
  for (const NodeId id : ids_of<NodeId>(graph_.nodes())) {
    is_allowed.push_back(check_support(graph_, id, device).supported ? 1 : 0);
  }
  const auto producer = [&](const Node& node) -> const TensorInfo* {
    if (node.op_type != kGetitem || node.inputs.empty()) return nullptr;
    const TensorInfo& tensor = graph_.tensor(node.inputs.front());
    return tensor.kind == TensorKind::kResult ? &tensor : nullptr;
  };
  for (std::size_t i = 0; i < is_allowed.size(); ++i) {
    const TensorInfo* from = producer(graph_.nodes()[i]);
    if (from != nullptr && is_allowed[i] == 0) is_allowed[index_of(from->producer)] = 0;
  }
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < is_allowed.size(); ++i) {
    const TensorInfo* from = producer(graph_.nodes()[i]);
    if (from != nullptr && is_allowed[index_of(from->producer)] == 0) is_allowed[i] = 0;
    if (is_allowed[i] != 0) nodes.push_back(NodeId{static_cast<std::int32_t>(i)});
  }
  return nodes;
}

/// The estimates of the nodes that are taken.
CostEstimate BackendAnswers::ask(Asked& asked, const std::vector<NodeId>& nodes) {
  if (nodes.empty()) return {};
  const std::string question = write_subgraph(graph_, nodes, find_boundary(graph_, nodes));
  asked.questions->add(question);
  const CheckAnswer answer = asked.instance->check(question, nodes.size(), "{}");
  const std::vector<NodeAnswer>& answers = answer.nodes;
  std::map<std::int64_t, std::string> broken;  // groups, and a node of each that is refused
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (answers[i].ok || !answers[i].group) continue;
    broken.emplace(*answers[i].group, graph_.node(nodes[i]).name);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::string reason = without_name(answers[i].reason, graph_.node(nodes[i]));
    if (answers[i].ok) {
      const auto with = answers[i].group ? broken.find(*answers[i].group) : broken.end();
      if (with == broken.end()) continue;
      reason = "only together with '" + with->second + "'";
    }
    asked.refusals[index_of(nodes[i])] = asked.instance->backend().name() + ": " + reason;
  }
  return answer.costs;
}

void BackendAnswers::ask_nodes() {
  const LogTimer timer(LogModule::kPass);
  for (Asked& asked : asked_) ask(asked, candidates(*asked.device));
  timer.done([&] { return "asked the backends of " + std::to_string(asked_.size()) + " devices"; });
}

void BackendAnswers::ask_parts(const std::vector<const Device*>& devices) {
  for (Asked& asked : asked_) {
    std::vector<char> is_in;
    for (const Device* device : devices) is_in.push_back(device == asked.device ? 1 : 0);
    asked.costs = {};
    for (const auto& part : connected_parts(graph_, is_in)) add(ask(asked, part), asked.costs);
  }
}

const std::string& BackendAnswers::refusal(const Device& device, NodeId node) const {
  static const std::string kNone;
  for (const Asked& asked : asked_) {
    if (asked.device == &device) return asked.refusals[index_of(node)];
  }
  return kNone;
}

Json BackendAnswers::record(Json target) const {
  for (Json& device : target["devices"]) {
    for (const Asked& asked : asked_) {
      if (device["name"] != asked.device->name) continue;
      const Backend& backend = asked.instance->backend();
      device["asked"] = {{"version", backend.version()},
                         {"fingerprint", asked.instance->facts().fingerprint},
                         {"questions", asked.questions->hex()}};
      if (asked.costs.has_memory) {
        device["asked"]["weights_bytes"] = asked.costs.weights_bytes;
        device["asked"]["scratch_bytes"] = asked.costs.scratch_bytes;
      }
      if (asked.costs.seconds) device["asked"]["seconds"] = *asked.costs.seconds;
    }
  }
  return target;
}

std::unique_ptr<BackendAnswers> ask_backends(const Graph& graph, const Target& target,
                                             const TagOptions& options) {
  auto answers = std::make_unique<BackendAnswers>(graph, target);
  answers->ask_nodes();
  Diagnostics ignored;  // told by tag_nodes, which follows
  answers->ask_parts(DeviceChooser(graph, target, options, ignored, answers.get()).devices());
  return answers;
}

}  // namespace npu
