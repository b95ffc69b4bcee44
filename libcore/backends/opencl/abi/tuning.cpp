// SPDX-License-Identifier: Apache-2.0
// Which sizes are the fastest: the graph is lowered once for each place in the lists of candidates,
// with that candidate for all kernels at once, and each kernel is built and started alone, on
// memory of zeros. The best of three starts counts, so that others on the device disturb little;
// of equal times the rule's. The cost is that of building each kernel once for each candidate.
#include "abi/tuning.hpp"

#include <algorithm>
#include <limits>
#include <optional>

#include "abi/first_start.hpp"
#include "lowering/blob.hpp"
#include "lowering/lower_graph.hpp"

namespace npu::opencl {
namespace {

constexpr int kStarts = 3;

struct Best {
  std::uint64_t time_ns = std::numeric_limits<std::uint64_t>::max();
  std::vector<std::int64_t> sizes;
};

/// The time of one kernel, whose program is built if it is not there.
std::optional<std::uint64_t> best_time(npu_device& device, const LoweredGraph& lowered,
                                       const Launch& launch, const TrialMemory& memory) {
  const auto sources = pieces_of(lowered.plan, lowered.source, &ProgramPart::source_bytes);
  const std::shared_ptr<BuiltProgram> built = device.programs.of(sources[launch.kernel]);
  const std::lock_guard lock(built->mutex);
  if (!built->program) built->program = build_source(device, sources[launch.kernel]);
  const ClKernel kernel = make_kernel(built->program.get(), launch);
  std::optional<std::uint64_t> best;
  memory.start(launch, kernel.get());  // where drivers compile, and caches are cold
  for (int i = 0; i < kStarts; ++i) {
    const auto time = memory.start(launch, kernel.get());
    if (time && (!best || *time < *best)) best = time;
  }
  return best;
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> measure_sizes(
    npu_device& device, const Graph& graph, Machine& machine,
    const std::function<void(std::size_t done, std::size_t total)>& progress) {
  const auto lower = [&](const Machine& with) {
    return lower_graph(graph, with, [](std::size_t, std::size_t) {});
  };
  std::map<std::string, Tunable> open;
  for (const auto& tunable : lower(machine).tunables) {
    if (tunable && tunable->candidates.size() > 1 && !machine.tuning.contains(tunable->key)) {
      open.emplace(tunable->key, *tunable);
    }
  }
  std::size_t rounds = 0;
  std::size_t all = 0;
  for (const auto& [key, tunable] : open) {
    rounds = std::max(rounds, tunable.candidates.size());
    all += tunable.candidates.size();
  }
  std::map<std::string, Best> best;
  std::size_t done = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    Machine with = machine;
    for (const auto& [key, tunable] : open) {
      if (round < tunable.candidates.size()) with.tuning[key] = tunable.candidates[round];
    }
    const LoweredGraph lowered = lower(with);
    std::optional<TrialMemory> memory;
    std::map<std::string, bool> seen;
    for (std::size_t i = 0; i < lowered.tunables.size(); ++i) {
      const auto& tunable = lowered.tunables[i];
      const auto found = tunable ? open.find(tunable->key) : open.end();
      if (found == open.end() || round >= found->second.candidates.size()) continue;
      if (!seen.emplace(found->first, true).second) continue;
      progress(done++, all);
      try {
        if (!memory) memory.emplace(device, lowered.plan);
        const auto time = best_time(device, lowered, lowered.plan.launches[i], *memory);
        Best& so_far = best[found->first];
        if (time && *time < so_far.time_ns) so_far = {*time, found->second.candidates[round]};
      } catch (const MemoryLimitError&) {
        break;  // the memory is that of all kernels of a round
      } catch (const ClError& failure) {
        // Some sizes need more registers or memory than the device has.
        if (!is_out_of_memory(failure.code) && failure.code != CL_INVALID_WORK_GROUP_SIZE) throw;
      } catch (const StatusError&) {
        if (round == 0)
          throw;  // a driver may refuse to build some sizes, but not those of the rules
      }
    }
  }
  std::map<std::string, std::vector<std::int64_t>> measured;
  for (const auto& [key, each] : best) {
    if (each.sizes.empty()) continue;
    measured.emplace(key, each.sizes);
    machine.tuning[key] = each.sizes;
  }
  return measured;
}

}  // namespace npu::opencl
