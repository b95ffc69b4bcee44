// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/support/json.hpp"

namespace npu::gnn {

/// One measured point: stages first..last of a layer on one device, for a graph of n nodes and m
/// edges.
struct ProfileEntry {
  std::string device;
  std::int32_t layer = 0;  ///< 0: every layer
  std::int32_t first = 1;
  std::int32_t last = 1;
  double n = 0;
  double m = 0;
  double ms = 0;        ///< median, for a part of a larger graph
  double whole_ms = 0;  ///< for a graph in one part; 0: the same as `ms`
  /// For a part that reads as many halo nodes as it owns; 0: halo nodes make no difference.
  double halo_ms = 0;
  std::optional<double> mad_ms = {};  ///< median absolute deviation, if there are enough runs
  std::int32_t runs = 1;
  bool disturbed = false;  ///< other work slowed every visit: the time is likely too long
  double peak_bytes = 0;   ///< 0: not known
  double compile_ms = 0;   ///< of a static program; 0: not known
};

struct ProfileDevice {
  std::string name;
  std::string resource;      ///< devices that share one (such as a host's cores) take turns
  bool is_static = false;    ///< runs programs compiled for fixed, padded shapes
  double memory_bytes = 0;   ///< 0: no limit
  std::string backend = {};  ///< the one that was measured; empty: not known
  std::string rules = {};    ///< device_rules_digest of the target's device; empty: not known
  std::optional<double> switch_ms = {};  ///< to switch to another program; nothing: not known
};

/// Time of a transfer: latency_ms + bytes / bytes_per_s.
struct ProfileLink {
  std::string from;
  std::string to;
  double latency_ms = 0;
  double bytes_per_s = 0;
  Json samples = Json::array();  ///< [[bytes, ms], ...]
  bool in_block = false;         ///< already part of the blocks' times: it adds nothing
  /// What it adds to a block of `from` and one of `to` behind it that they take turns on the same
  /// processors, by the bytes that go from one to the other: [bytes, ms], in ascending order.
  std::vector<std::pair<double, double>> handovers = {};
};

enum class Interpolation : std::uint8_t {
  kBilinear,  ///< in n and m / n
  kNearest,   ///< the entry nearest in n and m, as published tables are meant
};

struct Estimate {
  double value = 0;
  bool known = false;         ///< the table covers the block
  bool extrapolated = false;  ///< the point lies outside the measured range
  bool disturbed = false;     ///< it comes from a disturbed point
};

/// The times that npu-profile measures and npu-plan plans with.
class StageTable {
 public:
  /// Reads a document of kind "profile", or the published form, an object of
  /// "n,m,DEVICE,stage": {"total_time_ms": t}. Throws Error kParse.
  static StageTable parse(const Json& json, const std::string& file);
  /// Adds links from the published form: inter_device in GB/s, device_switch_overhead_ms, by keys
  /// FROM_TO, where both are devices of the table in any case. Throws Error kParse.
  void add_bandwidths(const Json& json, const std::string& file);
  Json to_json() const;

  std::string model;       ///< name; empty: not known
  std::string model_hash;  ///< StagedModel::hash; empty: not known
  std::string target;      ///< whose devices were measured; empty: not known
  std::string precision;   ///< "bf16", with features of that; empty: float32
  std::vector<ProfileDevice> devices;
  std::vector<ProfileLink> links;
  std::vector<ProfileEntry> entries;
  std::int32_t stage_count = 0;
  Json fingerprint = Json::object();
  Json extra = Json::object();  ///< further members, kept

  /// Builds the index; call it after entries change.
  void index();
  std::int32_t find_device(std::string_view name) const noexcept;  ///< -1 if there is none
  std::string device_list() const;                                 ///< "cpu, npu"
  /// Time of a block; where no entry covers it, the sum over its stages.
  Estimate time_ms(std::int32_t device, std::int32_t layer, std::int32_t first, std::int32_t last,
                   double n, double m, Interpolation mode = Interpolation::kBilinear) const;
  /// Time of a block on a graph that is not cut: its features already lie on the device, and its
  /// results are used in place.
  Estimate whole_ms(std::int32_t device, std::int32_t layer, std::int32_t first, std::int32_t last,
                    double n, double m, Interpolation mode = Interpolation::kBilinear) const;
  /// As time_ms, for a part that reads `halo` nodes of other parts.
  Estimate halo_ms(std::int32_t device, std::int32_t layer, std::int32_t first, std::int32_t last,
                   double n, double m, double halo,
                   Interpolation mode = Interpolation::kBilinear) const;
  /// Whether the table has the cost of halo nodes.
  bool has_halo_times() const noexcept { return has_halo_times_; }
  Estimate peak_bytes(std::int32_t device, std::int32_t layer, std::int32_t first,
                      std::int32_t last, double n, double m) const;
  /// 0 if there is no such link or both ends are the same device.
  double transfer_ms(std::string_view from, std::string_view to, double bytes) const;
  /// What the change from one device to another within a plan takes besides, by the link's
  /// handovers: between two of them linear in the bytes, above the largest in proportion to them. 0
  /// without any.
  double handover_ms(std::string_view from, std::string_view to, double bytes) const;
  bool has_link(std::string_view from, std::string_view to) const;
  double compile_ms(std::int32_t device, std::int32_t layer, std::int32_t first,
                    std::int32_t last) const;

  /// Times that devices take to switch to another cluster, by device: what the table says of the
  /// device, else of all of them, else 0.
  std::vector<double> switch_ms() const;
  /// Whether the table states one time for all devices.
  bool has_common_switch_ms() const;

  /// Makes the times of each block monotone in nodes and edges, with the least change: isotonic
  /// regression by least squares, weighted by spread, with little weight for disturbed points.
  /// Returns the number of entries that changed.
  std::int32_t repair_monotone();
  /// Number of entries that are disturbed.
  std::int32_t disturbed_count() const noexcept;

  struct HoldOut {
    std::int32_t points = 0;  ///< 0: nothing is known
    double median_error = 0;  ///< relative
    double worst_error = 0;
    std::string worst;  ///< which entry
  };
  /// Leaves out each interior entry in turn and compares it with the interpolation of the others.
  HoldOut leave_one_out() const;
  /// As the document states it; most tables that npu-profile has not written do not.
  std::optional<HoldOut> stated_hold_out() const;

 private:
  struct Point {
    double ratio = 0;
    double ms = 0;
    double whole_ms = 0;
    double halo_ms = 0;
    double peak = 0;
    bool disturbed = false;
  };
  struct Series {
    std::vector<double> sizes;               ///< n, ascending
    std::vector<std::vector<Point>> points;  ///< by n, by ascending m / n
    double compile_ms = 0;
  };
  const Series* series(std::int32_t device, std::int32_t layer, std::int32_t first,
                       std::int32_t last) const;
  static Estimate evaluate(const Series& series, double n, double m, Interpolation mode,
                           double Point::*value);
  Estimate combine(std::int32_t device, std::int32_t layer, std::int32_t first, std::int32_t last,
                   double n, double m, Interpolation mode, double Point::*value) const;

  std::vector<Series> series_;
  std::vector<std::int32_t> slots_;  // by device, layer, first, last; -1: none
  std::int32_t layers_ = 0;
  bool has_halo_times_ = false;
};

/// Reads a profile from a file.
StageTable read_profile(const std::string& path);

}  // namespace npu::gnn
