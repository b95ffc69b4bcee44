// SPDX-License-Identifier: Apache-2.0
// Tables that say what was decided and why. O(nodes + conversions).
#include <spdlog/fmt/fmt.h>

#include <map>
#include <tuple>

#include "passes/align/align_section.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

std::string count_text(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string_view direction_text(bool to_nalign) {
  return to_nalign ? "ALIGN to NALIGN" : "NALIGN to ALIGN";
}

}  // namespace

std::string format_align_report(const AlignResult& result) {
  std::vector<std::vector<std::string>> rows{{"algorithm", ">conversions", ">to ALIGN",
                                              ">to NALIGN", ">bytes", ">predicted us", ">padding"}};
  const auto add = [&](const std::string& name, const AlignCosts& costs) {
    rows.push_back({name, std::to_string(costs.conversions), std::to_string(costs.to_align),
                    std::to_string(costs.to_nalign), bytes_text(static_cast<double>(costs.bytes)),
                    fixed_text(costs.predicted_us, 1),
                    bytes_text(static_cast<double>(costs.padded_bytes))});
  };
  if (result.options.algorithm != "greedy") {
    add(result.options.algorithm + " (" + result.options.weight + ")", result.costs);
  }
  add("greedy", result.greedy);
  std::string text = table_text(rows) + "\n";
  // Ops by rule.
  std::map<std::tuple<std::string, std::string, std::string>, std::int64_t> by_rule;
  for (const AlignNode& node : result.nodes) {
    ++by_rule[{std::string(align_mode_name(node.allowed)), std::string(node.rule),
               std::string(align_mode_name(node.mode))}];
  }
  std::vector<std::vector<std::string>> ops{{"allowed", "rule", "mode", ">ops"}};
  for (const auto& [key, count] : by_rule) {
    ops.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::to_string(count)});
  }
  text += table_text(ops);
  for (const AlignSplit& split : result.splits) {
    text +=
        fmt::format("\nfusion group {} is split into {}: '{}' ({}) is ALIGN, '{}' ({}) NALIGN\n",
                    split.group, split.groups.size(), split.aligned, split.aligned_rule,
                    split.unaligned, split.unaligned_rule);
  }
  return text;
}

std::string format_align_explanation(const AlignResult& result) {
  std::string text;
  if (!result.conversions.empty()) {
    std::vector<std::vector<std::string>> rows{
        {"tensor", "direction", ">bytes", ">us", "for", "because"}};
    for (const AlignConversion& conversion : result.conversions) {
      std::string users = conversion.users.empty() ? "-" : "'" + conversion.users.front() + "'";
      if (!conversion.users.empty() && conversion.users.front() == "graph output") {
        users = "graph output";
      }
      if (conversion.users.size() > 1) users += fmt::format(" +{}", conversion.users.size() - 1);
      rows.push_back({conversion.tensor, std::string(direction_text(conversion.to_nalign)),
                      bytes_text(static_cast<double>(conversion.bytes)),
                      fixed_text(conversion.predicted_us, 1), users,
                      align::reason_text(conversion)});
    }
    text += table_text(rows) + "\n";
    std::map<std::pair<std::string, std::string>, std::tuple<std::int64_t, double, double>> causes;
    for (const AlignConversion& conversion : result.conversions) {
      auto& [count, bytes, us] = causes[{conversion.from_rule, conversion.to_rule}];
      ++count;
      bytes += static_cast<double>(conversion.bytes);
      us += conversion.predicted_us;
    }
    rows = {{"from", "to", ">conversions", ">bytes", ">us"}};
    for (const auto& [cause, total] : causes) {
      const auto& [count, bytes, us] = total;
      rows.push_back(
          {cause.first, cause.second, std::to_string(count), bytes_text(bytes), fixed_text(us, 1)});
    }
    text += table_text(rows) + "\n";
  }
  if (!result.removed.empty()) {
    std::map<std::string, std::int64_t> causes;
    for (const AlignRemoval& removal : result.removed) ++causes[removal.cause];
    std::vector<std::vector<std::string>> rows{{"not needed", ">conversions"}};
    for (const auto& [cause, count] : causes) rows.push_back({cause, std::to_string(count)});
    text += table_text(rows) + "\n";
  }
  text += count_text(result.costs.conversions, "conversion") + " (" + result.options.algorithm +
          "); greedy: " + std::to_string(result.greedy.conversions) + "\n";
  if (result.certificate) {
    const AlignCertificate& certificate = *result.certificate;
    text +=
        fmt::format("certificate: cut {} = flow {}, in units of 1/{} {}; {} vertices, {} arcs\n",
                    certificate.cut, certificate.flow, certificate.scale,
                    result.options.weight == "count"   ? "conversion"
                    : result.options.weight == "bytes" ? "byte"
                                                       : "ns",
                    certificate.vertices, certificate.arcs);
  }
  return text;
}

}  // namespace npu
