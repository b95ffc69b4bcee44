// SPDX-License-Identifier: Apache-2.0
// What a stage table contains, for people. O(points^2) for the points that are left out in turn.
#include <algorithm>
#include <optional>

#include "gnn/profile/profile_gnn.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu::gnn {
namespace {

/// ", 0.7 ms more for blocks that take turns with 4.2 MB between them", of the largest size.
std::string handover_text(const ProfileLink& link) {
  if (link.handovers.empty()) return "";
  const auto& [bytes, ms] = link.handovers.back();
  return ", " + fixed_text(ms, 3) + " ms more for blocks that take turns with " +
         bytes_text(bytes) + " between them";
}

std::string hold_out_text(const StageTable::HoldOut& held) {
  if (held.points == 0) {
    return "interpolation: error unknown, since no point lies between others\n";
  }
  return "interpolation, each of " + std::to_string(held.points) +
         " points left out in turn: median error " + fixed_text(100 * held.median_error, 1) +
         " %, worst " + fixed_text(100 * held.worst_error, 1) + " % " + held.worst + "\n";
}

}  // namespace

std::string format_profile_report(const StageTable& table) {
  std::vector<std::vector<std::string>> rows{
      {"device", ">layer", "block", ">points", ">smallest ms", ">largest ms", ">worst MAD"}};
  for (std::size_t begin = 0; begin < table.entries.size();) {
    const ProfileEntry& first = table.entries[begin];
    std::size_t end = begin;
    double least = first.ms;
    double most = first.ms;
    std::optional<double> noise;
    for (; end < table.entries.size(); ++end) {
      const ProfileEntry& entry = table.entries[end];
      if (entry.device != first.device || entry.layer != first.layer ||
          entry.first != first.first || entry.last != first.last) {
        break;
      }
      least = std::min(least, entry.ms);
      most = std::max(most, entry.ms);
      if (entry.ms > 0 && entry.mad_ms) {
        noise = std::max(noise.value_or(0), *entry.mad_ms / entry.ms);
      }
    }
    rows.push_back({first.device, std::to_string(first.layer),
                    std::to_string(first.first) + "-" + std::to_string(first.last),
                    std::to_string(end - begin), fixed_text(least, 3), fixed_text(most, 3),
                    noise ? fixed_text(100 * *noise, 1) + " %" : "unknown"});
    begin = end;
  }
  std::string text = table_text(rows);
  for (const ProfileLink& link : table.links) {
    text += link.from + " -> " + link.to + ": " + bytes_text(link.bytes_per_s) + "/s, " +
            fixed_text(link.latency_ms * 1000, 1) + " us" +
            (link.in_block ? " (contained in the blocks)" : "") + handover_text(link) + "\n";
  }
  text += hold_out_text(table.leave_one_out());
  if (const auto repaired = member_integer(table.extra, "repaired"); repaired && *repaired > 0) {
    text += std::to_string(*repaired) + " of " + std::to_string(table.entries.size()) +
            " points changed so that no time falls while the graph grows\n";
  }
  if (const std::int32_t disturbed = table.disturbed_count(); disturbed > 0) {
    text += std::to_string(disturbed) + " of " + std::to_string(table.entries.size()) +
            " points were disturbed by other work on the machine\n";
  }
  return text;
}

}  // namespace npu::gnn
