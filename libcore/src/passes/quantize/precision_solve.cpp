// SPDX-License-Identifier: Apache-2.0
// The choice of precisions as a minimum cut.
//
// A vertex for each unit, float on the source's side; two for each value, so that a conversion is
// paid once however many readers want it: one on the sink's side as soon as a reader is int8, cut
// off from a producer that is float, and one the other way round. The network has O(values + reads)
// arcs.
#include "passes/quantize/precision_solve.hpp"

#include <algorithm>

#include "npu/support/ids.hpp"

namespace npu::quantize {

using Vertex = CutNetwork::Vertex;

PrecisionCosts conversion_counts(const PrecisionProblem& problem) {
  PrecisionCosts costs;
  costs.float_cost.assign(problem.units.size(), 0);
  costs.int8_cost.assign(problem.units.size(), 0);
  costs.to_int8.assign(problem.values.size(), 1);
  costs.to_float.assign(problem.values.size(), 1);
  return costs;
}

CutNetwork precision_network(const PrecisionProblem& problem, const PrecisionCosts& costs) {
  CutNetwork network(problem.units.size());
  for (std::size_t u = 0; u < problem.units.size(); ++u) {
    const auto vertex = static_cast<Vertex>(u);
    const Allowed allowed = problem.units[u].allowed;
    network.add_source_capacity(
        vertex, allowed == Allowed::kFloat ? kInfiniteCapacity : costs.int8_cost[u]);
    network.add_sink_capacity(vertex,
                              allowed == Allowed::kInt8 ? kInfiniteCapacity : costs.float_cost[u]);
  }
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const Value& value = problem.values[v];
    const Vertex wants_int8 = network.add_vertex();
    for (const std::int32_t reader : value.readers) {
      network.add_arc(wants_int8, reader, kInfiniteCapacity);
    }
    if (value.producer < 0) {
      network.add_source_capacity(wants_int8, costs.to_int8[v]);
      continue;
    }
    network.add_arc(value.producer, wants_int8, costs.to_int8[v]);
    const Vertex wants_float = network.add_vertex();
    network.add_arc(wants_float, value.producer, costs.to_float[v]);
    for (const std::int32_t reader : value.readers) {
      network.add_arc(reader, wants_float, kInfiniteCapacity);
    }
    if (value.is_output) network.add_source_capacity(wants_float, kInfiniteCapacity);
  }
  return network;
}

std::vector<char> int8_units(const PrecisionProblem& problem, const MinCut& cut) {
  std::vector<char> int8(problem.units.size());
  for (std::size_t u = 0; u < int8.size(); ++u) int8[u] = cut.source_side[u] == 0 ? 1 : 0;
  return int8;
}

Changes changes_of(const Value& value, const std::vector<char>& int8) {
  const bool is_int8 = value.producer >= 0 && int8[index_of(value.producer)] != 0;
  const auto reads_int8 = [&](std::int32_t unit) { return int8[index_of(unit)] != 0; };
  const std::vector<std::int32_t>& readers = value.readers;
  Changes changes;
  changes.to_int8 = !is_int8 && std::any_of(readers.begin(), readers.end(), reads_int8);
  changes.to_float =
      is_int8 && (value.is_output || !std::all_of(readers.begin(), readers.end(), reads_int8));
  return changes;
}

std::int64_t cost_of(const PrecisionProblem& problem, const PrecisionCosts& costs,
                     const std::vector<char>& int8) {
  std::int64_t cost = 0;
  for (std::size_t u = 0; u < int8.size(); ++u) {
    cost += int8[u] != 0 ? costs.int8_cost[u] : costs.float_cost[u];
  }
  for (std::size_t v = 0; v < problem.values.size(); ++v) {
    const Changes changes = changes_of(problem.values[v], int8);
    if (changes.to_int8) cost += costs.to_int8[v];
    if (changes.to_float) cost += costs.to_float[v];
  }
  return cost;
}

}  // namespace npu::quantize
