// SPDX-License-Identifier: Apache-2.0
// Why each conversion is there.
//
// A conversion is forced by two decisions that meet there. Each is the nearest op or boundary with
// a fixed layout that the tensor's form on that side is connected to; one breadth-first search that
// starts from all of them finds them for every conversion. O(units + uses).
#include "passes/align/align_origins.hpp"

namespace npu::align {
namespace {

/// Breadth-first search over units and the two forms of each value.
class OriginSearch {
 public:
  OriginSearch(const Graph& graph, const Problem& problem, const std::vector<AlignMode>& modes)
      : graph_(graph),
        problem_(problem),
        modes_(modes),
        forms_of_unit_(problem.units.size()),
        units_of_form_(2 * problem.values.size()),
        origin_of_unit_(problem.units.size(), -1),
        origin_of_form_(2 * problem.values.size(), -1) {
    for (std::size_t v = 0; v < problem.values.size(); ++v) connect(static_cast<std::int32_t>(v));
    start();
    search();
  }

  Origin origin(std::int32_t value, AlignMode form) const {
    const std::int32_t found = origin_of_form_[index_of(form_index(value, form))];
    if (found < 0) return {{}, "free"};
    return origins_[index_of(found)];
  }

 private:
  static std::int32_t form_index(std::int32_t value, AlignMode form) {
    return 2 * value + (form == AlignMode::kAlign ? 1 : 0);
  }

  void connect(std::int32_t v) {
    const Value& value = problem_.values[index_of(v)];
    if (!value.can_differ) return;
    const auto add = [&](std::int32_t unit, AlignMode form) {
      forms_of_unit_[index_of(unit)].push_back(form_index(v, form));
      units_of_form_[index_of(form_index(v, form))].push_back(unit);
    };
    if (value.producer >= 0) add(value.producer, modes_[index_of(value.producer)]);
    for (const Use& use : value.uses) add(use.unit, problem_.required(use, modes_));
  }

  std::int32_t add_origin(std::string name, std::string_view rule) {
    origins_.push_back({std::move(name), std::string(rule)});
    return static_cast<std::int32_t>(origins_.size() - 1);
  }

  void reach_form(std::int32_t form, std::int32_t origin) {
    if (origin_of_form_[index_of(form)] >= 0) return;
    origin_of_form_[index_of(form)] = origin;
    queue_.push_back(form);
  }

  void start() {
    for (std::size_t v = 0; v < problem_.values.size(); ++v) {
      const Value& value = problem_.values[v];
      const TensorInfo& tensor = graph_.tensor(value.tensor);
      const std::int32_t plain = form_index(static_cast<std::int32_t>(v), AlignMode::kNalign);
      if (value.producer < 0) {
        reach_form(plain, add_origin(tensor.name, tensor.kind == TensorKind::kGraphInput
                                                      ? "graph input"
                                                      : boundary_rule(value, tensor.producer)));
      } else if (value.leaves) {
        reach_form(plain, add_origin(tensor.name, leaving_rule(value, tensor)));
      }
    }
    for (std::size_t u = 0; u < problem_.units.size(); ++u) {
      const Unit& unit = problem_.units[u];
      if (unit.mode.mode == AlignMode::kBoth) continue;
      origin_of_unit_[u] = add_origin(graph_.node(unit.decisive).name, unit.mode.rule);
      for (const std::int32_t form : forms_of_unit_[u]) reach_form(form, origin_of_unit_[u]);
    }
  }

  std::string_view boundary_rule(const Value& value, NodeId other) const {
    return graph_.node(other).device == problem_.regions[index_of(value.region)].device
               ? "partition"
               : "transfer";
  }

  std::string_view leaving_rule(const Value& value, const TensorInfo& tensor) const {
    for (const NodeId consumer : tensor.consumers) {
      if (problem_.region_of[index_of(consumer.value)] != value.region) {
        return boundary_rule(value, consumer);
      }
    }
    return "graph output";
  }

  void search() {
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const std::int32_t form = queue_[i];
      const std::int32_t origin = origin_of_form_[index_of(form)];
      for (const std::int32_t unit : units_of_form_[index_of(form)]) {
        if (origin_of_unit_[index_of(unit)] >= 0) continue;
        origin_of_unit_[index_of(unit)] = origin;
        for (const std::int32_t next : forms_of_unit_[index_of(unit)]) reach_form(next, origin);
      }
    }
  }

  const Graph& graph_;
  const Problem& problem_;
  const std::vector<AlignMode>& modes_;
  std::vector<std::vector<std::int32_t>> forms_of_unit_;
  std::vector<std::vector<std::int32_t>> units_of_form_;
  std::vector<std::int32_t> origin_of_unit_;
  std::vector<std::int32_t> origin_of_form_;
  std::vector<Origin> origins_;
  std::vector<std::int32_t> queue_;
};

}  // namespace

std::vector<std::pair<Origin, Origin>> origins_of(const Graph& graph, const Problem& problem,
                                                  const std::vector<AlignMode>& modes,
                                                  const std::vector<Conversion>& conversions) {
  const OriginSearch search(graph, problem, modes);
  std::vector<std::pair<Origin, Origin>> origins;
  for (const Conversion& conversion : conversions) {
    const AlignMode from = conversion.to_nalign ? AlignMode::kAlign : AlignMode::kNalign;
    const AlignMode to = conversion.to_nalign ? AlignMode::kNalign : AlignMode::kAlign;
    origins.emplace_back(search.origin(conversion.value, from),
                         search.origin(conversion.value, to));
  }
  return origins;
}

}  // namespace npu::align
