// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// A measured time, in microseconds. `us` is what to count with: the mean over the runs between the
/// fastest eighth and three eighths by whole time, so that the parts of a run add up to it.
struct MeasuredTime {
  double us = 0;
  double median_us = 0;
  double mad_us = 0;  ///< median absolute deviation
  std::int32_t runs = 0;
};

/// A node on a device, once everything that it reads is there.
struct NodeTime {
  std::string node;
  std::string device;
  MeasuredTime time;
  std::string kernel;  ///< first node of the kernel that computes it, where that computes several
};

/// A tensor that goes from one device to another: the copy, the changes of layout on both sides,
/// and what its readers take longer for it.
struct BorderTime {
  std::string tensor;
  std::string from;
  std::string to;
  std::int64_t bytes = 0;
  MeasuredTime time;
};

/// Time of any tensor from one device to another: latency_us + bytes / bytes_per_s.
struct LinkFit {
  std::string from;
  std::string to;
  double latency_us = 0;
  double bytes_per_s = 0;  ///< 0: bytes cost nothing
  std::int32_t samples = 0;
};

struct NodeTableDevice {
  std::string name;
  std::string backend;
  double partition_us = 0;  ///< what every partition takes on top of its nodes
};

/// A whole run that was measured.
struct PlacementTime {
  std::string name;  ///< "all on cpu", "as tagged", "mincut 1"
  std::int64_t partitions = 0;
  std::int64_t copied_tensors = 0;
  double predicted_us = 0;  ///< by the table
  MeasuredTime time;
};

/// What npu-profile measures of an ordinary model, and npu-partition places by: a document of kind
/// "node-profile" (npu-profile(1)).
struct NodeTable {
  /// Throws Error kParse with the place of the first fault.
  static NodeTable parse(const Json& json, const std::string& file);
  Json to_json() const;
  /// Index into `devices`; -1 if there is none.
  std::int32_t find_device(std::string_view name) const noexcept;

  std::string file;  ///< where it was read from, for messages
  std::string model;
  std::string model_digest;  ///< see model_digest()
  std::string target;
  std::string precision = "f32";
  std::int32_t threads = 0;
  Json fingerprint = Json::object();
  std::vector<NodeTableDevice> devices;
  std::vector<NodeTime> nodes;
  std::vector<BorderTime> borders;
  std::vector<LinkFit> links;
  std::vector<PlacementTime> placements;
};

NodeTable read_node_table(const std::string& path);

/// True for a document that says that it is one.
bool is_node_table(const Json& json) noexcept;

/// What a table belongs to: names, ops, arguments, shapes and dtypes of a graph, without what the
/// tools add and without the data of weights. 32 hexadecimal digits.
std::string model_digest(const Graph& graph);

}  // namespace npu
