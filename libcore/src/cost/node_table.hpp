// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "npu/ir/graph.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// A measured time, in microseconds. `us` is the one to use: the mean over the runs whose total
/// time ranks between 1/8 and 3/8 of all, so that the times of the parts add up to the whole.
struct MeasuredTime {
  double us = 0;
  double median_us = 0;
  double mad_us = 0;  ///< median absolute deviation
  std::int32_t runs = 0;
};

/// A node on a device that holds all of its operands.
struct NodeTime {
  std::string node;
  std::string device;
  MeasuredTime time;
  std::string kernel;  ///< first node of its kernel, if that computes several
};

/// A tensor that goes from one device to another: the copy, the layout conversions on both sides,
/// and the extra time of its readers.
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

/// Time of a conversion of any float32 tensor to integers of 8 bits, or back: latency_us + bytes of
/// the float32 tensor / bytes_per_s.
struct ConversionFit {
  std::string device;
  bool to_int8 = false;
  double latency_us = 0;
  double bytes_per_s = 0;  ///< 0: bytes cost nothing
  std::int32_t samples = 0;
};

/// Time of the conversion of a tensor to integers of 8 bits, or back, in a document of both
/// precisions: the conversion itself, and what it costs the kernels before and behind it.
struct TensorConversion {
  std::string tensor;
  std::string device;
  bool to_int8 = false;
  double us = 0;
};

struct NodeTableDevice {
  std::string name;
  std::string backend;
  double partition_us = 0;  ///< overhead of each partition, on top of its nodes
};

/// A placement that was measured as a whole.
struct PlacementTime {
  std::string name;  ///< "all on cpu", "as tagged", "mincut 1"
  std::int64_t partitions = 0;
  std::int64_t copied_tensors = 0;
  double predicted_us = 0;  ///< by the table
  MeasuredTime time;
};

/// The times that npu-profile measures for an ordinary model, npu-partition places by and npu-align
/// chooses precisions by: a document of kind "node-profile" (npu-profile(1)).
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
  /// The model in int8: its nodes that work on integers, with the conversions in their kernels.
  std::vector<NodeTime> int8;
  std::vector<ConversionFit> conversions;
  std::vector<TensorConversion> tensor_conversions;
};

NodeTable read_node_table(const std::string& path);

/// True for a document whose kind is "node-profile".
bool is_node_table(const Json& json) noexcept;

/// Identifies the model that a table belongs to by names, ops, arguments, shapes and dtypes of the
/// graph, but not by the tools' annotations or the data of weights. 32 hexadecimal digits.
std::string model_digest(const Graph& graph);

}  // namespace npu
