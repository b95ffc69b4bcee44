// SPDX-License-Identifier: Apache-2.0
// Measured tables and what they say between their points.
//
// Time is nearly linear in nodes and in edges per node, so a query (n, m) is answered in the
// coordinates n and m / n: linear in m / n among the points of the next smaller and the next larger
// n, then linear in n. Below the smallest n the line is kept between proportional and constant,
// above the largest it never falls; both are flagged, as is a ratio outside the measured ones. A
// query costs O(log points); repair and hold-out are quadratic in the points of a block.
#include "gnn/model/stage_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gnn/model/isotonic.hpp"
#include "support/json_fields.hpp"

namespace npu::gnn {
namespace {

// Entries are ordered so that documents and indices do not depend on the order of measuring.
auto entry_key(const ProfileEntry& entry) {
  return std::tuple(entry.device, entry.layer, entry.first, entry.last, entry.n, entry.m);
}

// How far a time can be trusted: one over the square of its spread. The spread is assumed where it
// is not known and where the time was disturbed.
double weight_of(const ProfileEntry& entry, double ms) {
  constexpr double kLeastSpread = 0.01;
  constexpr double kUnknownSpread = 0.05;
  constexpr double kDisturbedSpread = 0.5;
  double spread = kUnknownSpread;
  if (entry.mad_ms && entry.ms > 0) spread = std::max(kLeastSpread, *entry.mad_ms / entry.ms);
  if (entry.disturbed) spread = std::max(spread, kDisturbedSpread);
  return 1 / (spread * ms * spread * ms);
}

}  // namespace

void StageTable::index() {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return entry_key(a) < entry_key(b); });
  stage_count = 0;
  layers_ = 0;
  has_halo_times_ = false;
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
    const double halo_ms = entry.halo_ms > 0 ? entry.halo_ms : entry.ms;
    has_halo_times_ = has_halo_times_ || entry.halo_ms > 0;
    row.points.back().push_back(
        {entry.m / entry.n, entry.ms, whole_ms, halo_ms, entry.peak_bytes, entry.disturbed});
    row.compile_ms = std::max(row.compile_ms, entry.compile_ms);
  }
}

std::int32_t StageTable::find_device(std::string_view name) const noexcept {
  for (std::size_t d = 0; d < devices.size(); ++d) {
    if (devices[d].name == name) return static_cast<std::int32_t>(d);
  }
  return -1;
}

std::string StageTable::device_list() const {
  std::string list;
  for (const ProfileDevice& device : devices) list += (list.empty() ? "" : ", ") + device.name;
  return list;
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
  Estimate estimate{.known = true};
  if (mode == Interpolation::kNearest) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      for (const Point& point : row.points[i]) {
        const double dn = row.sizes[i] - n;
        const double dm = point.ratio * row.sizes[i] - m;
        if (dn * dn + dm * dm < least) {
          least = dn * dn + dm * dm;
          estimate.value = point.*value;
          estimate.disturbed = point.disturbed;
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
  const auto read = [&](const Point& point) {
    estimate.disturbed = estimate.disturbed || point.disturbed;
    return point.*value;
  };
  const auto at_size = [&](std::size_t i) {
    const auto& points = row.points[i];
    if (points.size() == 1) {
      if (std::abs(points[0].ratio - ratio) > 1e-9 * std::max(1.0, ratio)) {
        estimate.extrapolated = true;
      }
      return read(points[0]);
    }
    if (ratio < points.front().ratio * (1 - 1e-9) || ratio > points.back().ratio * (1 + 1e-9)) {
      estimate.extrapolated = true;
    }
    std::size_t p = 1;
    while (p + 1 < points.size() && points[p].ratio < ratio) ++p;
    const double x0 = points[p - 1].ratio;
    if (x0 == 0 && ratio <= 0) return read(points[p - 1]);
    return line(x0, read(points[p - 1]), points[p].ratio, read(points[p]), ratio);
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
  Estimate sum{.known = true};
  for (std::int32_t stage = first; stage <= last; ++stage) {
    const Series* row = series(device, layer, stage, stage);
    if (row == nullptr) return {};
    const Estimate estimate = evaluate(*row, n, m, mode, value);
    sum.value += estimate.value;
    sum.extrapolated = sum.extrapolated || estimate.extrapolated;
    sum.disturbed = sum.disturbed || estimate.disturbed;
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

Estimate StageTable::halo_ms(std::int32_t device, std::int32_t layer, std::int32_t first,
                             std::int32_t last, double n, double m, double halo,
                             Interpolation mode) const {
  Estimate estimate = time_ms(device, layer, first, last, n, m, mode);
  const Estimate with = combine(device, layer, first, last, n, m, mode, &Point::halo_ms);
  // Linear in the halo; noise must not make it a gain.
  estimate.value += std::max(0.0, with.value - estimate.value) * halo / std::max(1.0, n);
  return estimate;
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

double StageTable::handover_ms(std::string_view from, std::string_view to, double bytes) const {
  const auto link = std::ranges::find_if(
      links, [&](const ProfileLink& each) { return each.from == from && each.to == to; });
  if (link == links.end() || link->handovers.empty() || bytes <= 0) return 0;
  const auto& known = link->handovers;
  const auto above = std::ranges::upper_bound(known, bytes, {}, &std::pair<double, double>::first);
  if (above == known.begin()) return known.front().second;
  const auto& [low_bytes, low_ms] = *std::prev(above);
  if (above == known.end()) return low_ms * bytes / low_bytes;
  const double share = (bytes - low_bytes) / (above->first - low_bytes);
  return low_ms + share * (above->second - low_ms);
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

bool StageTable::has_common_switch_ms() const {
  return json_double(find_member(extra, "switch_ms")).has_value();
}

std::vector<double> StageTable::switch_ms() const {
  const double common = std::max(0.0, json_double(find_member(extra, "switch_ms")).value_or(0));
  std::vector<double> times;
  for (const ProfileDevice& device : devices) times.push_back(device.switch_ms.value_or(common));
  return times;
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
    std::vector<char> differs(end - begin, 0);
    for (double ProfileEntry::*time :
         {&ProfileEntry::ms, &ProfileEntry::whole_ms, &ProfileEntry::halo_ms}) {
      std::vector<std::size_t> measured;
      std::vector<IsotonicPoint> points;
      for (std::size_t i = begin; i < end; ++i) {
        if (!(entries[i].*time > 0)) continue;
        measured.push_back(i);
        points.push_back({entries[i].n, entries[i].m, entries[i].*time,
                          weight_of(entries[i], entries[i].*time)});
      }
      const std::vector<double> fitted = isotonic_fit(points);
      for (std::size_t p = 0; p < measured.size(); ++p) {
        if (fitted[p] == points[p].value) continue;
        entries[measured[p]].*time = fitted[p];
        differs[measured[p] - begin] = 1;
      }
    }
    changed += static_cast<std::int32_t>(std::count(differs.begin(), differs.end(), 1));
    begin = end;
  }
  index();
  return changed;
}

std::int32_t StageTable::disturbed_count() const noexcept {
  return static_cast<std::int32_t>(std::count_if(
      entries.begin(), entries.end(), [](const ProfileEntry& entry) { return entry.disturbed; }));
}

std::optional<StageTable::HoldOut> StageTable::stated_hold_out() const {
  const Json* stated = member_object(extra, "leave_one_out");
  if (stated == nullptr) return std::nullopt;
  const auto points = member_integer(*stated, "points");
  if (!points) return std::nullopt;
  HoldOut result;
  result.points = static_cast<std::int32_t>(std::clamp<std::int64_t>(*points, 0, 1 << 30));
  result.median_error = member_double(*stated, "median_error").value_or(0);
  return result;
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
      row.points.back().push_back({entry.m / entry.n, entry.ms});
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

}  // namespace npu::gnn
