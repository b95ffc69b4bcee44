// SPDX-License-Identifier: Apache-2.0
// Measured tables and what they say between their points.
//
// Time is nearly linear in nodes and in edges per node, so a query (n, m) is answered in the
// coordinates n and m / n: linear in m / n among the points of the next smaller and the next larger
// n, then linear in n. Below the smallest n the line is kept between proportional and constant,
// above the largest it never falls; both are flagged, as is a ratio outside the measured ones. A
// query costs O(log points); repair and hold-out are quadratic in the points of a block.
#include "npu/gnn/stage_table.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

namespace npu::gnn {
namespace {

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
           "expected a number of at least 0, found " + member->dump());
  }
  return member->get<double>();
}

std::string string_of(const Json& object, std::string_view key, const std::string& file,
                      const std::string& pointer) {
  const Json* member = find_member(object, key);
  if (member == nullptr || !member->is_string() || member->get_ref<const std::string&>().empty()) {
    refuse(file, pointer, "expected a string '" + std::string(key) + "'");
  }
  return member->get<std::string>();
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

constexpr std::int32_t kMaxStages = 64;
constexpr std::int32_t kMaxLayers = 256;

// Entries are ordered so that documents and indices do not depend on the order of measuring.
auto entry_key(const ProfileEntry& entry) {
  return std::tuple(entry.device, entry.layer, entry.first, entry.last, entry.n, entry.m);
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
    return error == std::errc() && end == text.data() + text.size() && value >= 0;
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
    table.devices.push_back({name, name, name == "npu", 0});
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
  if (const Json* is_static = find_member(json, "static")) {
    if (!is_static->is_boolean()) refuse(file, pointer + "/static", "expected true or false");
    device.is_static = is_static->get<bool>();
  }
  device.memory_bytes = number_of(json, "memory_bytes", file, pointer, 0, false);
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
  entry.n = number_of(json, "n", file, pointer, 0, true);
  entry.m = number_of(json, "m", file, pointer, 0, true);
  if (!(entry.n >= 1)) refuse(file, pointer + "/n", "expected at least 1 node");
  entry.ms = number_of(json, "ms", file, pointer, 0, true);
  entry.whole_ms = number_of(json, "whole_ms", file, pointer, 0, false);
  entry.mad_ms = number_of(json, "mad_ms", file, pointer, 0, false);
  entry.runs = count_of(json, "runs", file, pointer, 1, false, 1 << 30);
  entry.peak_bytes = number_of(json, "peak_bytes", file, pointer, 0, false);
  entry.compile_ms = number_of(json, "compile_ms", file, pointer, 0, false);
  return entry;
}

ProfileLink parse_link(const Json& json, const std::string& file, const std::string& pointer) {
  ProfileLink link;
  link.from = string_of(json, "from", file, pointer);
  link.to = string_of(json, "to", file, pointer);
  link.latency_ms = number_of(json, "latency_ms", file, pointer, 0, false);
  link.bytes_per_s = number_of(json, "bytes_per_s", file, pointer, 0, true);
  if (const Json* samples = find_member(json, "samples")) link.samples = *samples;
  if (const Json* inside = find_member(json, "in_block")) link.in_block = *inside == true;
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
      table.links.push_back(parse_link((*links)[i], file, "/transfers/" + std::to_string(i)));
    }
  }
  if (const Json* fingerprint = find_member(json, "fingerprint")) table.fingerprint = *fingerprint;
  for (const auto& [key, value] : json.items()) {
    if (key != "npu" && key != "devices" && key != "entries" && key != "transfers" &&
        key != "fingerprint") {
      table.extra[key] = value;
    }
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
  return table;
}

void StageTable::add_bandwidths(const Json& json, const std::string& file) {
  const Json* rates = find_member(json, "inter_device");
  if (rates == nullptr || !rates->is_object()) {
    refuse(file, "/inter_device", "expected an object 'inter_device'");
  }
  const Json* overheads = find_member(json, "device_switch_overhead_ms");
  for (const auto& [key, value] : rates->items()) {
    const std::size_t middle = key.find('_');
    const std::string pointer = "/inter_device/" + pointer_token(key);
    if (middle == std::string::npos || !value.is_number() || !(value.get<double>() > 0)) {
      refuse(file, pointer, "expected 'FROM_TO' and a positive number of GB/s");
    }
    ProfileLink link;
    link.from = lower(key.substr(0, middle));
    link.to = lower(key.substr(middle + 1));
    link.bytes_per_s = value.get<double>() * 1e9;
    if (overheads != nullptr) {
      link.latency_ms = number_of(*overheads, key, file, "/device_switch_overhead_ms", 0, false);
    }
    links.push_back(std::move(link));
  }
}

Json StageTable::to_json() const {
  Json json = {{"npu", {{"version", 1}, {"kind", "profile"}}}};
  for (const auto& [key, value] : extra.items()) json[key] = value;
  json["fingerprint"] = fingerprint;
  Json& device_list = json["devices"] = Json::array();
  for (const ProfileDevice& device : devices) {
    Json entry = {
        {"name", device.name}, {"resource", device.resource}, {"static", device.is_static}};
    if (device.memory_bytes > 0) entry["memory_bytes"] = device.memory_bytes;
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
    item["mad_ms"] = entry.mad_ms;
    item["runs"] = entry.runs;
    if (entry.peak_bytes > 0) item["peak_bytes"] = static_cast<std::int64_t>(entry.peak_bytes);
    if (entry.compile_ms > 0) item["compile_ms"] = entry.compile_ms;
    entry_list.push_back(std::move(item));
  }
  return json;
}

void StageTable::index() {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return entry_key(a) < entry_key(b); });
  stage_count = 0;
  layers_ = 0;
  for (const ProfileEntry& entry : entries) {
    stage_count = std::max(stage_count, entry.last);
    layers_ = std::max(layers_, entry.layer);
  }
  const auto stages = static_cast<std::size_t>(stage_count);
  slots_.assign(devices.size() * static_cast<std::size_t>(layers_ + 1) * stages * stages, -1);
  series_.clear();
  for (const ProfileEntry& entry : entries) {
    const auto device = static_cast<std::size_t>(find_device(entry.device));
    const std::size_t slot =
        ((device * static_cast<std::size_t>(layers_ + 1) + static_cast<std::size_t>(entry.layer)) *
             stages +
         static_cast<std::size_t>(entry.first - 1)) *
            stages +
        static_cast<std::size_t>(entry.last - 1);
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<std::int32_t>(series_.size());
      series_.emplace_back();
    }
    Series& row = series_[static_cast<std::size_t>(slots_[slot])];
    if (row.sizes.empty() || row.sizes.back() != entry.n) {
      row.sizes.push_back(entry.n);
      row.points.emplace_back();
    }
    const double whole_ms = entry.whole_ms > 0 ? entry.whole_ms : entry.ms;
    row.points.back().push_back({entry.m / entry.n, entry.ms, whole_ms, entry.peak_bytes});
    row.compile_ms = std::max(row.compile_ms, entry.compile_ms);
  }
}

std::int32_t StageTable::find_device(std::string_view name) const noexcept {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].name == name) return static_cast<std::int32_t>(d);
  }
  return -1;
}

const StageTable::Series* StageTable::series(std::int32_t device, std::int32_t layer,
                                             std::int32_t first, std::int32_t last) const {
  if (device < 0 || first < 1 || last > stage_count) return nullptr;
  const auto stages = static_cast<std::size_t>(stage_count);
  for (const std::int32_t l : {layer, 0}) {
    if (l > layers_) continue;
    const std::size_t slot =
        ((static_cast<std::size_t>(device) * static_cast<std::size_t>(layers_ + 1) +
          static_cast<std::size_t>(l)) *
             stages +
         static_cast<std::size_t>(first - 1)) *
            stages +
        static_cast<std::size_t>(last - 1);
    if (slots_[slot] >= 0) return &series_[static_cast<std::size_t>(slots_[slot])];
  }
  return nullptr;
}

Estimate StageTable::evaluate(const Series& row, double n, double m, Interpolation mode,
                              double Point::*value) {
  Estimate estimate{0, true, false};
  if (mode == Interpolation::kNearest) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      for (const Point& point : row.points[i]) {
        const double dn = row.sizes[i] - n;
        const double dm = point.ratio * row.sizes[i] - m;
        if (dn * dn + dm * dm < least) {
          least = dn * dn + dm * dm;
          estimate.value = point.*value;
        }
      }
    }
    return estimate;
  }
  const double ratio = n > 0 ? m / n : 0;
  // A line through two points, held between constant and proportional outside of them.
  const auto line = [&](double x0, double y0, double x1, double y1, double x) {
    const double y = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
    if (x < x0) return std::clamp(y, std::min(y0, y0 * std::max(x, 0.0) / x0), y0);
    return x > x1 ? std::max(y, y1) : y;
  };
  const auto at_size = [&](std::size_t i) {
    const auto& points = row.points[i];
    if (points.size() == 1) {
      if (std::abs(points[0].ratio - ratio) > 1e-9 * std::max(1.0, ratio)) {
        estimate.extrapolated = true;
      }
      return points[0].*value;
    }
    if (ratio < points.front().ratio * (1 - 1e-9) || ratio > points.back().ratio * (1 + 1e-9)) {
      estimate.extrapolated = true;
    }
    std::size_t p = 1;
    while (p + 1 < points.size() && points[p].ratio < ratio) ++p;
    const double x0 = points[p - 1].ratio;
    if (x0 == 0 && ratio <= 0) return points[p - 1].*value;
    return line(x0, points[p - 1].*value, points[p].ratio, points[p].*value, ratio);
  };
  if (row.sizes.size() == 1) {
    const double y = at_size(0);
    if (std::abs(row.sizes[0] - n) > 1e-9 * n) estimate.extrapolated = true;
    estimate.value = y * std::max(1.0, n / row.sizes[0]);
    if (n < row.sizes[0]) estimate.value = y * n / row.sizes[0];
    return estimate;
  }
  if (n < row.sizes.front() || n > row.sizes.back()) estimate.extrapolated = true;
  const auto above = std::lower_bound(row.sizes.begin() + 1, row.sizes.end() - 1, n);
  const auto i = static_cast<std::size_t>(above - row.sizes.begin());
  estimate.value = line(row.sizes[i - 1], at_size(i - 1), row.sizes[i], at_size(i), n);
  return estimate;
}

Estimate StageTable::combine(std::int32_t device, std::int32_t layer, std::int32_t first,
                             std::int32_t last, double n, double m, Interpolation mode,
                             double Point::*value) const {
  if (const Series* row = series(device, layer, first, last)) {
    return evaluate(*row, n, m, mode, value);
  }
  Estimate sum{0, true, false};
  for (std::int32_t stage = first; stage <= last; ++stage) {
    const Series* row = series(device, layer, stage, stage);
    if (row == nullptr) return {};
    const Estimate estimate = evaluate(*row, n, m, mode, value);
    sum.value += estimate.value;
    sum.extrapolated = sum.extrapolated || estimate.extrapolated;
  }
  return sum;
}

Estimate StageTable::time_ms(std::int32_t device, std::int32_t layer, std::int32_t first,
                             std::int32_t last, double n, double m, Interpolation mode) const {
  return combine(device, layer, first, last, n, m, mode, &Point::ms);
}

Estimate StageTable::whole_ms(std::int32_t device, std::int32_t layer, std::int32_t first,
                              std::int32_t last, double n, double m, Interpolation mode) const {
  return combine(device, layer, first, last, n, m, mode, &Point::whole_ms);
}

Estimate StageTable::peak_bytes(std::int32_t device, std::int32_t layer, std::int32_t first,
                                std::int32_t last, double n, double m) const {
  return combine(device, layer, first, last, n, m, Interpolation::kBilinear, &Point::peak);
}

double StageTable::transfer_ms(std::string_view from, std::string_view to, double bytes) const {
  if (from == to || bytes <= 0) return 0;
  for (const ProfileLink& link : links) {
    if (link.from != from || link.to != to) continue;
    if (link.in_block) return 0;
    return link.latency_ms + (link.bytes_per_s > 0 ? bytes / link.bytes_per_s * 1e3 : 0);
  }
  return 0;
}

bool StageTable::has_link(std::string_view from, std::string_view to) const {
  return from == to || std::any_of(links.begin(), links.end(), [&](const ProfileLink& link) {
           return link.from == from && link.to == to;
         });
}

double StageTable::compile_ms(std::int32_t device, std::int32_t layer, std::int32_t first,
                              std::int32_t last) const {
  if (const Series* row = series(device, layer, first, last)) return row->compile_ms;
  double sum = 0;
  for (std::int32_t stage = first; stage <= last; ++stage) {
    if (const Series* row = series(device, layer, stage, stage)) sum += row->compile_ms;
  }
  return sum;
}

double StageTable::switch_ms() const {
  const Json* value = find_member(extra, "switch_ms");
  return value != nullptr && value->is_number() ? value->get<double>() : 0;
}

std::int32_t StageTable::repair_monotone() {
  index();
  std::int32_t changed = 0;
  for (std::size_t begin = 0; begin < entries.size();) {
    std::size_t end = begin + 1;
    const auto block = [](const ProfileEntry& entry) {
      return std::tuple(entry.device, entry.layer, entry.first, entry.last);
    };
    while (end < entries.size() && block(entries[end]) == block(entries[begin])) ++end;
    // Entries ascend in n, then m, so whatever an entry has to reach stands before it, or beside it
    // with fewer edges.
    for (std::size_t i = begin; i < end; ++i) {
      ProfileEntry& entry = entries[i];
      double least = entry.ms;
      double least_whole = entry.whole_ms;
      for (std::size_t j = begin; j < end; ++j) {
        if (entries[j].n <= entry.n && entries[j].m <= entry.m) {
          least = std::max(least, entries[j].ms);
          if (entry.whole_ms > 0) least_whole = std::max(least_whole, entries[j].whole_ms);
        }
      }
      if (least > entry.ms || least_whole > entry.whole_ms) ++changed;
      entry.ms = least;
      entry.whole_ms = least_whole;
    }
    begin = end;
  }
  index();
  return changed;
}

StageTable::HoldOut StageTable::leave_one_out() const {
  HoldOut result;
  std::vector<double> errors;
  for (std::size_t s = 0; s < entries.size(); ++s) {
    const ProfileEntry& held = entries[s];
    Series row;
    for (const ProfileEntry& entry : entries) {
      if (&entry == &held || entry.device != held.device || entry.layer != held.layer ||
          entry.first != held.first || entry.last != held.last) {
        continue;
      }
      if (row.sizes.empty() || row.sizes.back() != entry.n) {
        row.sizes.push_back(entry.n);
        row.points.emplace_back();
      }
      row.points.back().push_back({entry.m / entry.n, entry.ms, 0});
    }
    if (row.sizes.size() < 2 || !(held.ms > 0)) continue;
    const Estimate estimate = evaluate(row, held.n, held.m, Interpolation::kBilinear, &Point::ms);
    if (estimate.extrapolated) continue;
    const double error = std::abs(estimate.value - held.ms) / held.ms;
    errors.push_back(error);
    if (error >= result.worst_error) {
      result.worst_error = error;
      result.worst = held.device + "[" + std::to_string(held.first) + "-" +
                     std::to_string(held.last) +
                     "] n=" + std::to_string(static_cast<std::int64_t>(held.n)) +
                     " m=" + std::to_string(static_cast<std::int64_t>(held.m));
    }
  }
  result.points = static_cast<std::int32_t>(errors.size());
  if (!errors.empty()) {
    std::nth_element(errors.begin(),
                     errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2), errors.end());
    result.median_error = errors[errors.size() / 2];
  }
  return result;
}

StageTable read_profile(const std::string& path) {
  return StageTable::parse(parse_json(read_file(path), path), path);
}

}  // namespace npu::gnn
