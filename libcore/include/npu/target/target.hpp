// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/shared_json.hpp"
#include "npu/tensor/dtype.hpp"

namespace npu {

/// An inclusive range of counts; a missing bound is open.
struct CountRange {
  std::int64_t min = 0;
  std::optional<std::int64_t> max;
  bool contains(std::int64_t value) const noexcept {
    return value >= min && (!max || value <= *max);
  }
};

/// Restricts one argument of an op, after the schema's defaults have been applied.
struct AttributeRule {
  std::string argument;
  std::optional<double> min, max;            ///< of a number
  std::optional<double> each_min, each_max;  ///< of every element of a list
  std::optional<Json> equals;                ///< exactly this
  std::optional<Json> in;                    ///< one of these
};

/// The dtypes that the tensors of a node may have; an empty list allows every dtype.
struct DTypeRule {
  std::vector<DType> any;  ///< operands and results that `by_argument` does not name
  std::map<std::string, std::vector<DType>, std::less<>> by_argument;  ///< "result": the results
};

/// One alternative under which a device runs an op. Empty parts do not restrict.
struct OpRule {
  std::vector<std::string> types;
  DTypeRule dtypes;
  CountRange rank;    ///< of the first operand (of the first result if there is none)
  CountRange inputs;  ///< number of operands
  std::vector<AttributeRule> attributes;
  std::vector<std::string> requirements;  ///< names of predicates(), see support_check.hpp
};

/// Rates of certain ops, if they differ from the device's.
struct OpRate {
  std::vector<std::string> types = {};
  // Conditions, all of which have to hold. A convolution has groups or a stride above 1, or not:
  std::optional<bool> grouped = {};
  std::optional<bool> pointwise = {};  ///< whether its kernel has extent 1 in all dimensions
  std::optional<bool> strided = {};    ///< whether a stride or a dilation is above 1
  CountRange kernel = {};              ///< product of the extents of its kernel; 0: no convolution
  CountRange positions = {};           ///< elements of the first result for one channel; for ops
                                       ///< other than convolutions, for one index of the last axis
  double peak_flops = 0;               ///< FLOP/s of every dtype; 0: the device's
  double memory_bandwidth = 0;         ///< bytes/s; 0: the device's
};

/// One kind of processor of a target.
struct Device {
  std::string name;
  std::string backend;        ///< name of the backend that runs it; empty: for planning only
  Json backend_options;       ///< an object; passed to the backend unchanged
  bool any_op = false;        ///< runs every aten op, getitem and wrap_with_set_grad_enabled,
                              ///< besides the op types that have rules
  std::vector<DType> dtypes;  ///< for rules without dtypes of their own; empty: every dtype
  CountRange rank;            ///< for rules without a rank of their own
  std::vector<OpRule> rules;
  std::vector<std::string> aliases;  ///< op types that cost nothing on the device; one without a
                                     ///< rule runs with every dtype and rank
  Json align;                        ///< the `align` section, or null
  /// The fusion patterns that "default" stands for on the device; nothing: those of npu-fuse.
  std::optional<std::vector<std::string>> fusion;
  std::int64_t on_chip_bytes = 0;      ///< 0: not known, no limit
  double max_partition_flops = 0;      ///< FLOP in one partition; 0: no limit
  std::map<DType, double> peak_flops;  ///< FLOP/s
  double memory_bandwidth = 0;         ///< bytes/s
  double launch_overhead_us = 0;       ///< per partition
  bool narrows_float64 = false;        ///< in a byte_region(): counts as float32
  bool resident_weights = false;       ///< predicted times ignore the traffic of weights
  double node_overhead_us = 0;         ///< per node that is not an alias
  std::vector<OpRate> op_rates;        ///< the first that matches a node applies

  /// Indices into `rules` of the alternatives for an op type; filled by parse_target.
  NameIndex<std::vector<std::size_t>> rules_by_type;

  /// FLOP/s for a dtype; without an entry for it, that of float32; without that, the smallest.
  double flops_per_second(DType dtype) const noexcept;
  bool is_alias(std::string_view op_type) const noexcept;
};

/// The link from one device's memory to another's.
struct Link {
  std::string from;
  std::string to;
  double bandwidth = 0;   ///< bytes/s
  double latency_us = 0;  ///< per tensor
};

/// What npu-target(5) describes: devices in priority order and the links between them.
struct Target {
  std::string name;
  std::string description;
  std::vector<Device> devices;
  std::vector<Link> links;
  SharedJson json;  ///< as it was read, for `npu.target`

  /// Null if there is none of this name.
  const Device* find_device(std::string_view name) const noexcept;
  /// The link from one device to the other; a link that is given for one direction only serves
  /// both. Null if both are the same device; never null otherwise in a target that parse_target
  /// accepted.
  const Link* find_link(std::string_view from, std::string_view to) const noexcept;
};

/// The device that computes the nodes that are folded: the last one with a backend, which runs what
/// others do not. Null if no device has one.
const Device* folding_device(const Target& target) noexcept;

struct BuiltInTarget {
  std::string name;
  std::string description;
};

/// Built-in targets by name. An argument that contains '/' or ends in ".json" is a file. Throws
/// Error: kUsage for an unknown name (lists the names), kIo, kParse.
Target load_target(const std::string& name_or_file);

/// By name.
std::vector<BuiltInTarget> built_in_targets();

/// Checks a description and adds each fault to `diagnostics`, located below `pointer`. The result
/// is usable only if no error was added.
Target parse_target(const Json& json, const std::string& file, const std::string& pointer,
                    Diagnostics& diagnostics);

/// As above for `npu.target` of a document or a whole file; throws Error kParse with the first
/// fault.
Target parse_target(const Json& json, const std::string& file, const std::string& pointer = {});

/// The target in `npu.target` of a document. Throws Error kInvalidGraph if there is none (npu-tag
/// writes it), kParse if it is not valid.
Target graph_target(const Graph& graph);

}  // namespace npu
