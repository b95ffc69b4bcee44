// SPDX-License-Identifier: Apache-2.0
// The file of `npu-compile --tune`: which sizes of kernels were the fastest on which device. The
// table reaches a backend as an option of its device, and so is part of the key of whatever is
// compiled with it; what a backend measures comes back in its report. O(entries).
#include "compile/tuning_table.hpp"

#include <algorithm>

#include "npu/support/error.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

constexpr int kTuningVersion = 1;
constexpr std::size_t kLongestKey = 512;
constexpr std::size_t kMostSizes = 8;
constexpr std::int64_t kLargestSize = 65536;

[[noreturn]] void refuse(const std::string& file, const std::string& pointer,
                         const std::string& text) {
  throw Error(ErrorCode::kParse, text, {.file = file, .pointer = pointer});
}

void check_keys(const Json& object, const std::string& file, const std::string& pointer,
                std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, std::string_view(key)) == known.end()) {
      refuse(file, pointer + "/" + pointer_token(key), "there is no such member");
    }
  }
}

void check_head(const Json& document, const std::string& file) {
  const Json* npu = find_member(document, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  if (kind == nullptr || *kind != "tuning") {
    refuse(file, "/npu/kind", "expected the kind \"tuning\", a file of npu-compile --tune");
  }
  const Json* version = find_member(*npu, "version");
  if (version == nullptr || !version->is_number_integer() || *version != kTuningVersion) {
    refuse(file, "/npu/version", "expected version " + std::to_string(kTuningVersion));
  }
  check_keys(*npu, file, "/npu", {"version", "kind"});
  check_keys(document, file, "", {"npu", "devices"});
}

TuningTable::Sizes read_sizes(const Json& json, const std::string& file,
                              const std::string& pointer) {
  if (!json.is_array() || json.empty() || json.size() > kMostSizes) {
    refuse(file, pointer, "expected 1 to " + std::to_string(kMostSizes) + " sizes");
  }
  TuningTable::Sizes sizes;
  for (const Json& each : json) {
    const bool is_size = each.is_number_integer() && each >= 1 && each <= kLargestSize;
    if (!is_size) {
      refuse(file, pointer + "/" + std::to_string(sizes.size()),
             "expected a size in 1.." + std::to_string(kLargestSize));
    }
    sizes.push_back(each.get<std::int64_t>());
  }
  return sizes;
}

std::map<std::string, TuningTable::Sizes> read_kernels(const Json& json, const std::string& file,
                                                       const std::string& pointer) {
  if (!json.is_object()) refuse(file, pointer, "expected an object with kernels");
  std::map<std::string, TuningTable::Sizes> kernels;
  for (const auto& [key, value] : json.items()) {
    const std::string below = pointer + "/" + pointer_token(key);
    if (key.empty() || key.size() > kLongestKey) {
      refuse(file, below, "expected 1 to " + std::to_string(kLongestKey) + " characters");
    }
    kernels.emplace(key, read_sizes(value, file, below));
  }
  return kernels;
}

Json devices_json(const TuningTable& table) {
  Json devices = Json::object();
  for (const auto& [fingerprint, kernels] : table.devices) {
    Json& device = devices[fingerprint] = Json::object();
    for (const auto& [kernel, sizes] : kernels) device[kernel] = sizes;
  }
  return devices;
}

}  // namespace

TuningTable tuning_table_from_json(const Json& document, const std::string& file) {
  if (!document.is_object()) refuse(file, "", "expected an object");
  check_head(document, file);
  const Json* devices = find_member(document, "devices");
  if (devices == nullptr || !devices->is_object()) {
    refuse(file, "/devices", "expected an object with devices");
  }
  TuningTable table;
  for (const auto& [fingerprint, kernels] : devices->items()) {
    const std::string pointer = "/devices/" + pointer_token(fingerprint);
    table.devices.emplace(fingerprint, read_kernels(kernels, file, pointer));
  }
  return table;
}

Json to_json(const TuningTable& table) {
  Json json = Json::object();
  json["npu"] = {{"version", kTuningVersion}, {"kind", "tuning"}};
  json["devices"] = devices_json(table);
  return json;
}

Json tuning_options(const TuningTable& table) {
  Json json = Json::object();
  json["tuning"] = devices_json(table);
  json["tune"] = true;
  return json;
}

std::size_t add_measured(TuningTable& table, const BundleContent& content) {
  std::size_t count = 0;
  for (const BundleContent::Entry& entry : content.entries) {
    for (const BundleContent::PartitionPiece& piece : entry.partitions) {
      const BundlePartition& partition = piece.entry;
      const Json* measured = member_object(*partition.report, "tuned");
      if (measured == nullptr) continue;
      const std::string name = "the report of backend '" + partition.backend + "'";
      for (auto& [kernel, sizes] : read_kernels(*measured, name, "/tuned")) {
        if (table.devices[partition.fingerprint].emplace(kernel, sizes).second) ++count;
      }
    }
  }
  return count;
}

}  // namespace npu
