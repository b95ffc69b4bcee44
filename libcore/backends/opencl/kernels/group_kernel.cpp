// SPDX-License-Identifier: Apache-2.0
// Chooses the form of a kernel by the ops that are more than single elements: none of them, rows
// that are reduced together, or one product or block with element-wise ops behind it.
#include "kernels/group_kernel.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

#include "ops/op_name.hpp"
#include "support/digest.hpp"

namespace npu::opencl {
namespace {

constexpr std::uint64_t kElementGroup = 64;

std::set<NodeId> set_of(const std::vector<NodeId>& nodes) { return {nodes.begin(), nodes.end()}; }

std::uint64_t groups_for(std::int64_t items, std::uint64_t local) {
  return (static_cast<std::uint64_t>(std::max<std::int64_t>(items, 0)) + local - 1) / local;
}

/// The kernels of one text differ in their number of elements alone.
Tunable element_tunable(const Emitter& emitter, std::int64_t count) {
  const std::string text = emitter.text("");
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016llx",
                static_cast<unsigned long long>(xxh3_64(text.data(), text.size())));
  Tunable tunable{"element n" + std::to_string(count) + " " + digest,
                  {{static_cast<std::int64_t>(kElementGroup)}}};
  for (const std::int64_t group : {16, 32, 128, 256}) {
    if (group <= emitter.model().machine().max_group) tunable.candidates.push_back({group});
  }
  return tunable;
}

std::uint64_t element_group(const Machine& machine, const Tunable& tunable) {
  const auto* sizes = tuned_sizes(machine, tunable.key);
  if (sizes == nullptr) return kElementGroup;
  if (sizes->size() != 1 || sizes->front() < 1 || sizes->front() > machine.max_group) {
    refuse_tuning(tunable.key, *sizes);
  }
  return static_cast<std::uint64_t>(sizes->front());
}

/// Takes the place of a value from an operand to the results of a node, if it can be told.
void carry_place(const Emitter& emitter, const KernelTask& task, NodeId id,
                 std::map<TensorId, Index>& places) {
  const Node& node = task.model.node(id);
  const bool view = task.model.is_view(id);
  for (const TensorId input : node.inputs) {
    const auto found = places.find(input);
    if (found == places.end()) continue;
    if (view) {
      if (input != node.inputs[0]) continue;
      const auto moved = view_forward(task.model, id, found->second);
      if (moved) places.emplace(node.outputs[0], *moved);
      return;
    }
    if (!emitter.is_inlined(id) || task.model.row(id).element == nullptr) return;
    for (const TensorId output : node.outputs) {
      if (task.model.shape(output) == task.model.shape(input)) {
        places.emplace(output, found->second);
      }
    }
    return;
  }
}

}  // namespace

void require_all_stored(const std::vector<bool>& stored) {
  if (std::ranges::find(stored, false) != stored.end()) {
    throw CannotFuse{"a result does not follow element by element"};
  }
}

void store_results(Emitter& emitter, const KernelTask& task, std::map<TensorId, Index> places,
                   std::vector<bool>& stored) {
  const std::set<TensorId> given = [&] {
    std::set<TensorId> keys;
    for (const auto& [tensor, index] : places) keys.insert(tensor);
    return keys;
  }();
  const std::int32_t last = task.nodes.back().value;
  for (std::int32_t i = task.nodes.front().value; i <= last; ++i) {
    const NodeId id{i};
    const bool may_carry = emitter.is_inlined(id) || task.model.is_view(id);
    if (!may_carry) continue;
    const std::size_t before = places.size();
    carry_place(emitter, task, id, places);
    if (places.size() == before) continue;
    for (const TensorId output : task.model.node(id).outputs) {
      const auto place = places.find(output);
      if (place == places.end() || given.contains(output) || !task.model.is_view(id)) continue;
      // The value behind the view is known where its operand is.
      const std::string value =
          emitter.element(task.model.node(id).inputs[0], places.at(task.model.node(id).inputs[0]));
      emitter.bind_value(output, place->second, value);
    }
  }
  for (std::size_t i = 0; i < task.results.size(); ++i) {
    const KernelResult& result = task.results[i];
    const auto place = places.find(result.tensor);
    if (stored[i] || place == places.end()) continue;
    emitter.store(result.tensor, place->second, emitter.element(result.tensor, place->second),
                  result.output);
    stored[i] = true;
  }
}

GeneratedKernel finished(const Emitter& emitter, std::array<std::uint64_t, 3> groups,
                         std::array<std::uint64_t, 3> local) {
  GeneratedKernel kernel;
  kernel.text =
      emitter.text("__attribute__((reqd_work_group_size(" + std::to_string(local[0]) + ", " +
                   std::to_string(local[1]) + ", " + std::to_string(local[2]) + ")))");
  kernel.arguments = emitter.arguments();
  kernel.sizes = emitter.sizes();
  kernel.indexing.assign(emitter.indexing().begin(), emitter.indexing().end());
  kernel.local = local;
  for (std::size_t d = 0; d < 3; ++d) kernel.global[d] = groups[d] * local[d];
  return kernel;
}

GeneratedKernel element_kernel(const KernelTask& task) {
  Emitter emitter(task.model, set_of(task.nodes));
  std::int64_t most = 0;
  bool same = true;
  const Shape& shape = task.model.shape(task.results.front().tensor);
  for (const KernelResult& result : task.results) {
    most = std::max(most, task.model.count(result.tensor));
    same = same && task.model.shape(result.tensor) == shape;
  }
  emitter.line("const " + emitter.index_type() + " g = get_global_id(0);");
  if (same) {
    emitter.line("if (g >= " + emitter.size(most) + ") return;");
    const Index index = emitter.define_index(index_of_place("g", shape));
    for (const KernelResult& result : task.results) {
      emitter.store(result.tensor, index, emitter.element(result.tensor, index), result.output);
    }
  } else {
    for (const KernelResult& result : task.results) {
      emitter.open("if (g < " + emitter.size(task.model.count(result.tensor)) + ")");
      const Index index =
          emitter.define_index(index_of_place("g", task.model.shape(result.tensor)));
      emitter.store(result.tensor, index, emitter.element(result.tensor, index), result.output);
      emitter.close();
    }
  }
  Tunable tunable = element_tunable(emitter, most);
  const std::uint64_t group = element_group(task.model.machine(), tunable);
  GeneratedKernel kernel = finished(emitter, {groups_for(most, group), 1, 1}, {group, 1, 1});
  kernel.tunable = std::move(tunable);
  return kernel;
}

GeneratedKernel generate_kernel(const KernelTask& task) {
  if (task.is_in_place) return overwrite_kernel(task);
  if (const auto form = cached_attention_of(task.model, task.nodes)) {
    return written_attention_kernel(task, *form);
  }
  std::vector<NodeId> rows;
  std::vector<NodeId> others;
  for (const NodeId id : task.nodes) {
    const OpClass kind = class_of(task.model, id);
    if (kind == OpClass::kRows) rows.push_back(id);
    if (kind == OpClass::kProduct || kind == OpClass::kBlock) others.push_back(id);
  }
  if (others.empty()) return rows.empty() ? element_kernel(task) : row_kernel(task, rows);
  if (others.size() > 1 || !rows.empty()) throw CannotFuse{"it has several ops with loops"};
  const NodeId heavy = others.front();
  if (class_of(task.model, heavy) == OpClass::kProduct) return product_kernel(task, heavy);
  const std::string& op = task.model.node(heavy).op_type;
  if (op.find("attention") != std::string::npos) return attention_kernel(task, heavy);
  if (op == "npu.segment_reduce") return segment_kernel(task, heavy);
  const std::string_view name = functional_name(op);
  if (name == "sort" || name == "argsort" || name == "topk") return sort_kernel(task, heavy);
  if (name == "lstm" || name == "gru" || name.starts_with("rnn_")) {
    return recurrence_kernel(task, heavy);
  }
  return scatter_kernel(task, heavy);
}

}  // namespace npu::opencl
