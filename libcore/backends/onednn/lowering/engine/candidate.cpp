// SPDX-License-Identifier: Apache-2.0
// Candidates for one node: those that do not take their numbers, or do not do what stands behind
// the node, say so; the cheapest of the others is taken. O(candidates).
#include "lowering/engine/candidate.hpp"

#include <algorithm>
#include <cmath>

namespace npu::onednn {

namespace {

/// Our kernels that do not take their numbers, or do not do an epilogue, are no candidates.
void ask_kernels(std::vector<Candidate>& candidates, const Epilogue& epilogue) {
  const std::string no_epilogue = operand_kernel_refusal(epilogue);
  for (Candidate& each : candidates) {
    if (!each.is_own() || !each.cycles) continue;
    std::string refusal = kernel_refusal(*each.kernel);
    if (refusal.empty()) refusal = no_epilogue;
    if (refusal.empty()) continue;
    each.cycles.reset();
    each.refusal = std::move(refusal);
  }
}

/// The cheapest first, then those that cost more, then those that are none.
std::vector<Candidate> sorted(std::vector<Candidate> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     if (!a.cycles || !b.cycles) return a.cycles.has_value() && !b.cycles;
                     return *a.cycles < *b.cycles;
                   });
  return candidates;
}

}  // namespace

double direct_cycles(double multiplications, double weight_bytes, std::int64_t lanes,
                     const CpuRates& rates) {
  return multiplications / static_cast<double>(lanes) * rates.multiply / kThreads +
         weight_bytes / rates.weight_bytes;
}

std::vector<Candidate> ranked(std::vector<Candidate> candidates, const Epilogue& epilogue) {
  ask_kernels(candidates, epilogue);
  return sorted(std::move(candidates));
}

void refuse_first(std::vector<Candidate>& candidates, std::string reason) {
  candidates.front().cycles.reset();
  candidates.front().refusal = std::move(reason);
  candidates = sorted(std::move(candidates));
}

KernelChoice choice_of(const std::vector<Candidate>& candidates) {
  KernelChoice result;
  result.cycles = candidates.front().cycles;
  result.rounding = candidates.front().rounding;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& each = candidates[i];
    if (each.name == kOneDnn) result.primitive_cycles = each.cycles;
    if (i == 0) continue;
    result.rejected.push_back(
        {std::string(each.name),
         each.cycles ? "its estimate is " + std::to_string(std::llround(*each.cycles)) + " cycles"
                     : each.refusal});
  }
  return result;
}

}  // namespace npu::onednn
