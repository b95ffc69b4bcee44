// SPDX-License-Identifier: Apache-2.0
// Describes a bundle: as tables, as JSON, and what it says of the CPU that it was compiled for.
// What its manifest states is untrusted: what is no number is shown as "-". O(partitions +
// sections).
#include <string>
#include <vector>

#include "device/isa_level.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/compile/compile_report.hpp"
#include "support/digest.hpp"
#include "support/json_fields.hpp"
#include "support/text.hpp"

namespace npu {

std::optional<std::size_t> bundle_isa_level(const Bundle& bundle) {
  const Json* isa = find_member(bundle.manifest(), "isa");
  if (isa == nullptr || !isa->is_string()) return std::nullopt;
  const auto level = find_isa_level(isa->get<std::string>());
  return level && is_native_isa_level(*level) ? level : std::nullopt;
}

std::string bundle_cpu_family(const Bundle& bundle) {
  const std::string* family = member_text(bundle.manifest(), "cpu_family");
  return family == nullptr ? std::string() : printable_text(*family);
}

Json bundle_info(const Bundle& bundle, const std::string& sha256) {
  Json info = {{"bundle_version", kBundleVersion}, {"bytes", bundle.size()}};
  if (!sha256.empty()) info["sha256"] = sha256;
  // Facts about the file take precedence over what its manifest states.
  for (const auto& [key, value] : bundle.manifest().items()) {
    if (!info.contains(key)) info[key] = value;
  }
  return info;
}

namespace {

using BundleRows = std::vector<std::vector<std::string>>;

/// "0", or with the name of its entry.
std::string partition_label(const BundleEntry& entry, std::size_t partition) {
  const std::string number = std::to_string(partition);
  return entry.name.empty() ? number : printable_text(entry.name) + " " + number;
}

/// What each partition takes of memory by its backend's report; "-" for what that does not say.
std::string memory_table(const Bundle& bundle) {
  BundleRows rows{{"memory", ">weights", ">scratch", ">in and out", ">other", "accuracy"}};
  for (const BundleEntry& entry : bundle.entries()) {
    for (std::size_t i = 0; i < entry.partitions.size(); ++i) {
      std::vector<std::string> cells{"memory of partition " + partition_label(entry, i)};
      static const Json kNone;
      const Json* found = member_object(*entry.partitions[i].report, "memory");
      const Json& memory = found != nullptr ? *found : kNone;
      for (const char* key : {"weights_bytes", "scratch_bytes", "boundary_bytes", "other_bytes"}) {
        const auto bytes = member_double(memory, key);
        cells.push_back(bytes ? bytes_text(*bytes) : "-");
      }
      const std::string* accuracy = member_text(memory, "accuracy");
      cells.push_back(accuracy != nullptr ? *accuracy : "-");
      rows.push_back(std::move(cells));
    }
  }
  return table_text(rows);
}

std::string partitions_table(const Bundle& bundle) {
  BundleRows rows{{">partition", "device", "backend", ">nodes", ">kernels", ">reorders", ">flops",
                   ">weights", ">arena", "fingerprint"}};
  for (const BundleEntry& entry : bundle.entries()) {
    for (std::size_t i = 0; i < entry.partitions.size(); ++i) {
      const BundlePartition& row = entry.partitions[i];
      std::vector<std::string> cells{partition_label(entry, i), row.device, row.backend};
      for (std::string& cell : number_cells(read_compile_numbers(*row.report))) {
        cells.push_back(std::move(cell));
      }
      cells.push_back(row.fingerprint);
      rows.push_back(std::move(cells));
    }
  }
  return table_text(rows);
}

/// What each entry is for, if they have names. Begins with an empty line.
std::string entries_table(const Bundle& bundle) {
  if (bundle.entries().front().name.empty()) return "";
  BundleRows rows{{"entry", ">partitions", ">weights", ">predicted ms"}};
  for (const BundleEntry& entry : bundle.entries()) {
    rows.push_back({printable_text(entry.name), std::to_string(entry.partitions.size()),
                    std::to_string(entry.weights.size()),
                    fixed_text(entry.predicted_us / 1000, 3)});
  }
  return "\n" + table_text(rows);
}

}  // namespace

std::string format_bundle(const Bundle& bundle) {
  BundleRows head{{"bundle", bundle.name()}};
  for (const char* key : {"producer", "model", "target", "precision", "isa", "cpu_family"}) {
    const Json* value = find_member(bundle.manifest(), key);
    head.push_back({key, value == nullptr     ? "-"
                         : value->is_string() ? value->get<std::string>()
                                              : value->dump()});
  }
  head.push_back({"size", bytes_text(static_cast<double>(bundle.size()))});
  BundleRows sections{{"section", ">offset", ">bytes", "xxh3"}};
  for (const BundleSection& section : bundle.sections()) {
    sections.push_back({section.name, std::to_string(section.offset), std::to_string(section.size),
                        hex_text(section.digest)});
  }
  return table_text(head) + entries_table(bundle) + "\n" + partitions_table(bundle) + "\n" +
         memory_table(bundle) + "\n" + table_text(sections);
}

}  // namespace npu
