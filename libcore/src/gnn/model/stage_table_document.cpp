// SPDX-License-Identifier: Apache-2.0
// Stage tables as documents: our own (kind "profile"), and the published form, which is only read.
// O(size of the document).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "gnn/model/stage_table.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

constexpr std::int32_t kMaxStages = 64;
constexpr std::int32_t kMaxLayers = 256;
constexpr std::size_t kMaxDevices = 64;
// Nodes, edges and bytes beyond this are no counts.
constexpr double kMaxCount = 0x1p50;

[[noreturn]] void refuse(const std::string& file, const std::string& pointer,
                         const std::string& text) {
  throw Error(ErrorCode::kParse, text, {.file = file, .pointer = pointer});
}

double number_of(const Json& object, std::string_view key, const std::string& file,
                 const std::string& pointer, double otherwise, bool required) {
  const Json* member = find_member(object, key);
  if (member == nullptr) {
    if (required) refuse(file, pointer, "the key '" + std::string(key) + "' is missing");
    return otherwise;
  }
  if (!member->is_number() || !(member->get<double>() >= 0)) {
    refuse(file, pointer + "/" + std::string(key),
           "expected a number of at least 0, found " + value_or_type(member));
  }
  return member->get<double>();
}

bool flag_of(const Json& object, std::string_view key, const std::string& file,
             const std::string& pointer) {
  const Json* member = find_member(object, key);
  if (member == nullptr) return false;
  if (!member->is_boolean()) {
    refuse(file, pointer + "/" + std::string(key), "expected true or false");
  }
  return member->get<bool>();
}

std::string string_of(const Json& object, std::string_view key, const std::string& file,
                      const std::string& pointer) {
  const Json* member = find_member(object, key);
  if (member == nullptr || !member->is_string() || member->get_ref<const std::string&>().empty()) {
    refuse(file, pointer, "expected a string '" + std::string(key) + "'");
  }
  return member->get<std::string>();
}

// Of nodes, edges or bytes.
double size_of(const Json& object, std::string_view key, const std::string& file,
               const std::string& pointer, bool required) {
  const double value = number_of(object, key, file, pointer, 0, required);
  if (value > kMaxCount) {
    refuse(file, pointer + "/" + std::string(key), "expected a count of at most 2^50");
  }
  return value;
}

std::int32_t count_of(const Json& object, std::string_view key, const std::string& file,
                      const std::string& pointer, std::int32_t otherwise, bool required,
                      std::int32_t largest) {
  const double value =
      number_of(object, key, file, pointer, static_cast<double>(otherwise), required);
  if (value != std::floor(value) || value > largest) {
    refuse(file, pointer + "/" + std::string(key),
           "expected an integer of at most " + std::to_string(largest));
  }
  return static_cast<std::int32_t>(value);
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

ProfileEntry parse_published_key(const std::string& key, const std::string& file) {
  std::vector<std::string> parts(1);
  for (const char c : key) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  ProfileEntry entry;
  const auto number = [&](const std::string& text, double& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && value >= 0 &&
           value <= kMaxCount;
  };
  double stage = 0;
  if (parts.size() != 4 || !number(parts[0], entry.n) || !number(parts[1], entry.m) ||
      parts[2].empty() || !number(parts[3], stage) || stage < 1 || stage > kMaxStages ||
      stage != std::floor(stage) || !(entry.n >= 1)) {
    refuse(file, "/" + pointer_token(key),
           "expected a key 'n,m,DEVICE,stage', found '" + key + "'");
  }
  entry.device = lower(parts[2]);
  entry.first = entry.last = static_cast<std::int32_t>(stage);
  return entry;
}

// The published form.
StageTable parse_published(const Json& json, const std::string& file) {
  StageTable table;
  for (const auto& [key, value] : json.items()) {
    ProfileEntry entry = parse_published_key(key, file);
    const std::string pointer = "/" + pointer_token(key);
    if (value.is_number()) {
      entry.ms = value.get<double>();
      if (!(entry.ms >= 0)) refuse(file, pointer, "expected a time of at least 0");
    } else {
      entry.ms = number_of(value, "total_time_ms", file, pointer, 0, true);
    }
    table.entries.push_back(std::move(entry));
  }
  if (table.entries.empty()) refuse(file, "", "the table has no entries");
  std::set<std::string> names;
  for (const ProfileEntry& entry : table.entries) names.insert(entry.device);
  for (const std::string& name : names) {
    ProfileDevice& device = table.devices.emplace_back();
    device.name = device.resource = name;
    device.is_static = name == "npu";
  }
  return table;
}

const Json* array_of(const Json& json, std::string_view key, const std::string& file,
                     bool required) {
  const Json* member = find_member(json, key);
  if (member == nullptr && !required) return nullptr;
  if (member == nullptr || !member->is_array()) {
    refuse(file, "/" + std::string(key), "expected an array '" + std::string(key) + "'");
  }
  return member;
}

ProfileDevice parse_device(const Json& json, const std::string& file, const std::string& pointer) {
  ProfileDevice device;
  device.name = string_of(json, "name", file, pointer);
  device.resource = find_member(json, "resource") == nullptr
                        ? device.name
                        : string_of(json, "resource", file, pointer);
  device.is_static = flag_of(json, "static", file, pointer);
  device.memory_bytes = size_of(json, "memory_bytes", file, pointer, false);
  for (const auto& [key, text] :
       {std::pair("backend", &device.backend), std::pair("rules", &device.rules)}) {
    if (find_member(json, key) != nullptr) *text = string_of(json, key, file, pointer);
  }
  if (find_member(json, "switch_ms") != nullptr) {
    device.switch_ms = number_of(json, "switch_ms", file, pointer, 0, true);
  }
  return device;
}

ProfileEntry parse_entry(const Json& json, const std::string& file, const std::string& pointer) {
  ProfileEntry entry;
  entry.device = string_of(json, "device", file, pointer);
  entry.layer = count_of(json, "layer", file, pointer, 0, false, kMaxLayers);
  entry.first = count_of(json, "first", file, pointer, 0, true, kMaxStages);
  entry.last = count_of(json, "last", file, pointer, entry.first, false, kMaxStages);
  if (entry.first < 1 || entry.last < entry.first) {
    refuse(file, pointer, "expected stages first <= last, counted from 1");
  }
  entry.n = size_of(json, "n", file, pointer, true);
  entry.m = size_of(json, "m", file, pointer, true);
  if (!(entry.n >= 1)) refuse(file, pointer + "/n", "expected at least 1 node");
  entry.ms = number_of(json, "ms", file, pointer, 0, true);
  entry.whole_ms = number_of(json, "whole_ms", file, pointer, 0, false);
  entry.halo_ms = number_of(json, "halo_ms", file, pointer, 0, false);
  if (find_member(json, "mad_ms") != nullptr) {
    entry.mad_ms = number_of(json, "mad_ms", file, pointer, 0, true);
  }
  entry.runs = count_of(json, "runs", file, pointer, 1, false, 1 << 30);
  entry.disturbed = flag_of(json, "disturbed", file, pointer);
  entry.peak_bytes = size_of(json, "peak_bytes", file, pointer, false);
  entry.compile_ms = number_of(json, "compile_ms", file, pointer, 0, false);
  return entry;
}

/// [[bytes, milliseconds], ...] with ascending bytes.
std::vector<std::pair<double, double>> handovers_of(const Json& json, const std::string& file,
                                                    const std::string& pointer) {
  std::vector<std::pair<double, double>> handovers;
  bool is_right = json.is_array();
  for (const Json& pair : json) {
    if (!is_right) break;
    is_right = pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
    if (!is_right) break;
    handovers.emplace_back(pair[0].get<double>(), pair[1].get<double>());
    const auto& [bytes, ms] = handovers.back();
    const double before = handovers.size() > 1 ? handovers[handovers.size() - 2].first : 0;
    is_right = std::isfinite(bytes) && std::isfinite(ms) && bytes > before && ms >= 0;
  }
  if (!is_right) {
    refuse(file, pointer, "expected a list of [bytes, milliseconds] with ascending bytes");
  }
  return handovers;
}

ProfileLink parse_link(const Json& json, const std::string& file, const std::string& pointer) {
  ProfileLink link;
  link.from = string_of(json, "from", file, pointer);
  link.to = string_of(json, "to", file, pointer);
  link.latency_ms = number_of(json, "latency_ms", file, pointer, 0, false);
  link.bytes_per_s = number_of(json, "bytes_per_s", file, pointer, 0, true);
  if (const Json* samples = find_member(json, "samples")) link.samples = *samples;
  link.in_block = flag_of(json, "in_block", file, pointer);
  if (const Json* handovers = find_member(json, "handovers")) {
    link.handovers = handovers_of(*handovers, file, pointer + "/handovers");
  }
  return link;
}

// A document of kind "profile".
StageTable parse_document(const Json& json, const std::string& file) {
  const Json* npu = find_member(json, "npu");
  const Json* kind = npu == nullptr ? nullptr : find_member(*npu, "kind");
  if (kind == nullptr || *kind != "profile") {
    refuse(file, "/npu/kind", "expected a document of kind 'profile'");
  }
  const Json* version = find_member(*npu, "version");
  if (version == nullptr || *version != 1) refuse(file, "/npu/version", "expected version 1");
  StageTable table;
  const Json& devices = *array_of(json, "devices", file, true);
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string pointer = "/devices/" + std::to_string(i);
    ProfileDevice device = parse_device(devices[i], file, pointer);
    if (table.find_device(device.name) >= 0) {
      refuse(file, pointer, "device '" + device.name + "' is listed twice");
    }
    table.devices.push_back(std::move(device));
  }
  if (table.devices.empty()) refuse(file, "/devices", "the profile has no devices");
  if (table.devices.size() > kMaxDevices) {
    refuse(file, "/devices", "expected at most " + std::to_string(kMaxDevices) + " devices");
  }
  const Json& entries = *array_of(json, "entries", file, true);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string pointer = "/entries/" + std::to_string(i);
    const std::string device = string_of(entries[i], "device", file, pointer);
    if (table.find_device(device) < 0) {
      refuse(file, pointer + "/device", "device '" + device + "' is not in 'devices'");
    }
    table.entries.push_back(parse_entry(entries[i], file, pointer));
  }
  if (const Json* links = array_of(json, "transfers", file, false)) {
    for (std::size_t i = 0; i < links->size(); ++i) {
      const std::string pointer = "/transfers/" + std::to_string(i);
      ProfileLink link = parse_link((*links)[i], file, pointer);
      for (const auto& [key, name] : {std::pair("/from", link.from), std::pair("/to", link.to)}) {
        if (table.find_device(name) >= 0) continue;
        refuse(file, pointer + key, "device '" + name + "' is not in 'devices'");
      }
      table.links.push_back(std::move(link));
    }
  }
  if (const Json* fingerprint = find_member(json, "fingerprint")) table.fingerprint = *fingerprint;
  for (const auto& [key, text] :
       {std::pair("model", &table.model), std::pair("model_hash", &table.model_hash),
        std::pair("target", &table.target), std::pair("precision", &table.precision)}) {
    if (find_member(json, key) != nullptr) *text = string_of(json, key, file, {});
  }
  if (!table.precision.empty() && table.precision != "bf16") {
    refuse(file, "/precision", "expected \"bf16\", found \"" + table.precision + "\"");
  }
  const std::set<std::string_view> known{"npu",       "model",       "model_hash",
                                         "target",    "fingerprint", "devices",
                                         "transfers", "entries",     "precision"};
  for (const auto& [key, value] : json.items()) {
    if (!known.contains(key)) table.extra[key] = value;
  }
  return table;
}

}  // namespace

StageTable StageTable::parse(const Json& json, const std::string& file) {
  if (!json.is_object()) {
    refuse(file, "", "expected an object, found " + std::string(json_type_name(json)));
  }
  const bool is_document =
      find_member(json, "npu") != nullptr || find_member(json, "entries") != nullptr;
  StageTable table = is_document ? parse_document(json, file) : parse_published(json, file);
  table.index();
  // Entries are in order now. Two at one place would leave a time between them to chance.
  const auto same = std::adjacent_find(
      table.entries.begin(), table.entries.end(), [](const auto& a, const auto& b) {
        return a.device == b.device && a.layer == b.layer && a.first == b.first &&
               a.last == b.last && a.n == b.n && a.m == b.m;
      });
  if (same != table.entries.end()) {
    refuse(file, "",
           same->device + "[" + std::to_string(same->first) + "-" + std::to_string(same->last) +
               "] is listed twice at n = " + std::to_string(static_cast<std::int64_t>(same->n)) +
               ", m = " + std::to_string(static_cast<std::int64_t>(same->m)));
  }
  return table;
}

namespace {

// The two devices of a key FROM_TO of published form: either name may have an underscore itself.
std::pair<std::string, std::string> ends_of(const StageTable& table, const std::string& key,
                                            const std::string& file, const std::string& pointer) {
  std::vector<std::pair<std::string, std::string>> found;
  for (std::size_t middle = key.find('_'); middle != std::string::npos;
       middle = key.find('_', middle + 1)) {
    const std::string from = lower(key.substr(0, middle));
    const std::string to = lower(key.substr(middle + 1));
    std::pair<std::string, std::string> ends;
    for (const ProfileDevice& device : table.devices) {
      if (lower(device.name) == from) ends.first = device.name;
      if (lower(device.name) == to) ends.second = device.name;
    }
    if (!ends.first.empty() && !ends.second.empty()) found.push_back(std::move(ends));
  }
  if (found.size() == 1 && found.front().first != found.front().second) return found.front();
  refuse(file, pointer,
         "expected a key FROM_TO with two devices of the table, which has " + table.device_list() +
             "; found '" + key + "'");
}

}  // namespace

void StageTable::add_bandwidths(const Json& json, const std::string& file) {
  const Json* rates = find_member(json, "inter_device");
  if (rates == nullptr || !rates->is_object()) {
    refuse(file, "/inter_device", "expected an object 'inter_device'");
  }
  const Json* latencies = find_member(json, "device_switch_overhead_ms");
  if (latencies != nullptr && !latencies->is_object()) {
    refuse(file, "/device_switch_overhead_ms", "expected an object");
  }
  for (const auto& [key, value] : rates->items()) {
    const std::string pointer = "/inter_device/" + pointer_token(key);
    const auto [from, to] = ends_of(*this, key, file, pointer);
    if (!value.is_number() || !(value.get<double>() > 0)) {
      refuse(file, pointer, "expected a positive number of GB/s, found " + value_or_type(&value));
    }
    ProfileLink link;
    link.from = from;
    link.to = to;
    link.bytes_per_s = value.get<double>() * 1e9;
    if (latencies != nullptr) {
      link.latency_ms = number_of(*latencies, key, file, "/device_switch_overhead_ms", 0, false);
    }
    links.push_back(std::move(link));
  }
  if (latencies == nullptr) return;
  for (const auto& [key, value] : latencies->items()) {
    if (rates->contains(key)) continue;
    refuse(file, "/device_switch_overhead_ms/" + pointer_token(key),
           "'inter_device' has no rate for '" + key + "'");
  }
}

Json StageTable::to_json() const {
  Json json = {{"npu", {{"version", 1}, {"kind", "profile"}}}};
  if (!model.empty()) json["model"] = model;
  if (!model_hash.empty()) json["model_hash"] = model_hash;
  if (!target.empty()) json["target"] = target;
  if (!precision.empty()) json["precision"] = precision;
  for (const auto& [key, value] : extra.items()) json[key] = value;
  json["fingerprint"] = fingerprint;
  Json& device_list = json["devices"] = Json::array();
  for (const ProfileDevice& device : devices) {
    Json entry = {
        {"name", device.name}, {"resource", device.resource}, {"static", device.is_static}};
    if (!device.backend.empty()) entry["backend"] = device.backend;
    if (!device.rules.empty()) entry["rules"] = device.rules;
    if (device.memory_bytes > 0) {
      entry["memory_bytes"] = static_cast<std::int64_t>(device.memory_bytes);
    }
    if (device.switch_ms) entry["switch_ms"] = *device.switch_ms;
    device_list.push_back(std::move(entry));
  }
  Json& link_list = json["transfers"] = Json::array();
  for (const ProfileLink& link : links) {
    Json entry = {{"from", link.from},
                  {"to", link.to},
                  {"latency_ms", link.latency_ms},
                  {"bytes_per_s", link.bytes_per_s}};
    if (link.in_block) entry["in_block"] = true;
    if (!link.samples.empty()) entry["samples"] = link.samples;
    if (!link.handovers.empty()) entry["handovers"] = link.handovers;
    link_list.push_back(std::move(entry));
  }
  Json& entry_list = json["entries"] = Json::array();
  for (const ProfileEntry& entry : entries) {
    Json item = {{"device", entry.device}};
    if (entry.layer > 0) item["layer"] = entry.layer;
    item["first"] = entry.first;
    item["last"] = entry.last;
    item["n"] = static_cast<std::int64_t>(entry.n);
    item["m"] = static_cast<std::int64_t>(entry.m);
    item["ms"] = entry.ms;
    if (entry.whole_ms > 0) item["whole_ms"] = entry.whole_ms;
    if (entry.halo_ms > 0) item["halo_ms"] = entry.halo_ms;
    if (entry.mad_ms) item["mad_ms"] = *entry.mad_ms;
    item["runs"] = entry.runs;
    if (entry.disturbed) item["disturbed"] = true;
    if (entry.peak_bytes > 0) item["peak_bytes"] = static_cast<std::int64_t>(entry.peak_bytes);
    if (entry.compile_ms > 0) item["compile_ms"] = entry.compile_ms;
    entry_list.push_back(std::move(item));
  }
  return json;
}

StageTable read_profile(const std::string& path) {
  return StageTable::parse(parse_json(read_file(path), path), path);
}

}  // namespace npu::gnn
