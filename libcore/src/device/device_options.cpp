// SPDX-License-Identifier: Apache-2.0
// Reads the options that a device is opened with: those of the host are taken out, those of a
// command line go to the backends that know them, and any other key has to be one that
// the backend states, so that a misspelt one is not ignored. O(keys of both).
#include "device/device_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::int64_t kMostThreads = 4096;

/// Options that every backend of a run is opened with, whichever of them they are for.
constexpr std::array<std::string_view, 4> kForWhomItConcerns{"load_ops", "promote", "tune",
                                                             "tuning"};

/// Takes out a member; nothing if there is none.
std::optional<Json> take(Json& json, const char* key) {
  const Json* found = find_member(json, key);
  if (found == nullptr) return std::nullopt;
  std::optional<Json> value = *found;
  json.erase(key);
  return value;
}

[[noreturn]] void refuse_value(const char* key, const std::string& expected, const Json& found) {
  throw Error(ErrorCode::kUsage, std::string("device option '") + key + "': expected " + expected +
                                     ", found " + found.dump());
}

/// Drops what is for other backends, and refuses what is for none.
void check_keys(const Backend& backend, Json& json) {
  const auto& known = backend.option_keys();
  if (!known) return;  // it does not say, so it gets everything
  const auto states = [&](std::string_view key) {
    return std::find(known->begin(), known->end(), key) != known->end();
  };
  for (const std::string_view key : kForWhomItConcerns) {
    if (!states(key)) json.erase(std::string(key));
  }
  for (const auto& [key, value] : json.items()) {
    if (states(key)) continue;
    std::string all;
    for (const std::string& name : *known) all += (all.empty() ? "" : ", ") + name;
    throw Error(ErrorCode::kInvalidGraph, "backend '" + backend.name() + "' has no option '" +
                                              printable_text(key) + "'; it has " +
                                              (all.empty() ? "none" : all) +
                                              " (\"options\" of a device in the target)");
  }
}

}  // namespace

DeviceOptions read_device_options(const Backend& backend, const std::string& text) {
  Json json = parse_json(text, "device options");
  if (!json.is_object()) throw Error(ErrorCode::kUsage, "device options: expected a JSON object");
  DeviceOptions options;
  if (const auto threads = take(json, "threads")) {
    if (!threads->is_number_integer() || *threads < 0 || *threads > kMostThreads) {
      refuse_value("threads", "an integer in 0.." + std::to_string(kMostThreads), *threads);
    }
    options.threads = threads->get<std::uint32_t>();
  }
  if (const auto limit = take(json, "memory_limit")) {
    if (!limit->is_number_unsigned()) refuse_value("memory_limit", "bytes", *limit);
    options.memory_limit = limit->get<std::uint64_t>();
  }
  if (const auto instance = take(json, "instance")) {
    if (!instance->is_string()) refuse_value("instance", "a device's id or name", *instance);
    options.instance = instance->get<std::string>();
  }
  check_keys(backend, json);
  options.own = json.dump();
  return options;
}

}  // namespace npu
