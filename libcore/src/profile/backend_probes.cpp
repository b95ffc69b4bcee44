// SPDX-License-Identifier: Apache-2.0
// Measures a device through the calls of its backend: copies, launches, arithmetic, memory.
//
// A rate is the difference of two chains of one op that differ in length, so that launches and
// copies drop out. Which op is the first that the device compiles: convolutions before matrix
// products before additions. Leaves out how rates depend on sizes, which npu-profile --machine
// measures for a whole target.
#include "profile/backend_probes.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "conformance/harness/graph_spec.hpp"
#include "device/queue.hpp"
#include "profile/machine_rates.hpp"
#include "support/elapsed.hpp"

namespace npu {
namespace {

using conformance::GraphSpec;
using conformance::TensorSpec;

constexpr double kProbeSeconds = 0.12;
constexpr int kLeastCalls = 3;
constexpr std::int64_t kCopiedFloats = std::int64_t{4} << 20;  // 16 MiB

/// The least time of a call, of as many as fit into the time.
template <typename Call>
double least_us(const Call& call) {
  call();  // touches memory and caches first
  double least = std::numeric_limits<double>::max();
  const auto start = Clock::now();
  for (int calls = 0; calls < kLeastCalls || seconds_since(start) < kProbeSeconds; ++calls) {
    const auto begin = Clock::now();
    call();
    least = std::min(least, microseconds_since(begin));
  }
  return least;
}

/// An op whose result is like its first operand, so that nodes of it form a chain.
struct ChainOp {
  const char* op;
  std::vector<Shape> others;  ///< operands besides the value that goes along the chain
  Json attrs = Json::object();
  double flops = 0;  ///< of a node
};

GraphSpec chain_graph(const ChainOp& link, const Shape& shape, DType dtype, int length) {
  GraphSpec graph;
  graph.inputs = {{"x", dtype, shape}};
  std::vector<std::string> others;
  for (std::size_t i = 0; i < link.others.size(); ++i) {
    const std::string name = "w" + std::to_string(i);
    // An addend is an input like the first one; what a product multiplies with is a weight.
    if (link.others[i] == shape) {
      graph.inputs.push_back({name, dtype, shape});
    } else {
      const TensorSpec spec{name, dtype, link.others[i]};
      graph.weights.push_back({name, conformance::test_values(spec, 1)});
    }
    others.push_back(name);
  }
  std::string last = "x";
  for (int i = 0; i < length; ++i) {
    const std::string name = "n" + std::to_string(i);
    conformance::NodeSpec node{name, link.op, {last}, {name, dtype, shape}, link.attrs};
    node.operands.insert(node.operands.end(), others.begin(), others.end());
    graph.nodes.push_back(std::move(node));
    last = name;
  }
  graph.outputs = {last};
  return graph;
}

class DeviceProbe {
 public:
  DeviceProbe(std::shared_ptr<DeviceInstance> device, const std::set<DType>& wanted,
              const std::function<void(const char*)>& tell)
      : device_(std::move(device)), wanted_(wanted), tell_(tell) {}

  DeviceRates measure() {
    DeviceRates rates;
    const std::vector<DType> dtypes = arithmetic_dtypes(device_->facts());
    tell_("copies");
    rates.write = copy(true);
    rates.read = copy(false);
    tell_("launches");
    for (const DType dtype : dtypes) {
      if (measure_launches(dtype, rates)) break;
    }
    tell_("memory");
    for (const DType dtype : dtypes) {
      if (measure_memory(dtype, rates)) break;
    }
    for (const DType dtype : dtypes) {
      if (!wanted_.contains(dtype)) continue;
      tell_("arithmetic");
      if (const auto flops = measure_flops(dtype, rates)) rates.peak_flops[dtype] = *flops;
    }
    return rates;
  }

 private:
  CopyRate copy(bool is_write) const {
    const auto time = [&](std::int64_t floats) {
      const auto buffer = device_->allocate(copied_dtype(), {floats}, NPU_USAGE_INPUT);
      const Tensor tensor(copied_dtype(), {floats});
      buffer->write(tensor.data());
      return least_us([&] {
        if (is_write) {
          buffer->write(tensor.data());
        } else {
          buffer->to_host();
        }
      });
    };
    const double latency = time(1);
    const double bytes = static_cast<double>(Tensor(copied_dtype(), {1}).bytes()) * kCopiedFloats;
    return {latency, bytes / std::max(time(kCopiedFloats) - latency, 1e-3) * 1e6};
  }

  /// One that buffers may have.
  DType copied_dtype() const {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kInt8, DType::kUInt8}) {
      if (device_->facts().stores(static_cast<npu_dtype>(dtype))) return dtype;
    }
    return DType::kFloat32;
  }

  /// The time of a chain; nothing if the device refuses it.
  std::optional<double> time(const ChainOp& link, const Shape& shape, DType dtype,
                             int length) const {
    const GraphSpec graph = chain_graph(link, shape, dtype, length);
    try {
      const auto program =
          device_->compile_and_load(conformance::sub_ir_text(graph), graph.weights,
                                    {.outputs = {{dtype, shape}}, .nodes = graph.nodes.size()});
      std::vector<std::shared_ptr<DeviceBuffer>> inputs;
      std::vector<npu_buffer*> handles;
      for (const TensorSpec& input : graph.inputs) {
        inputs.push_back(device_->import_tensor(conformance::test_values(input, 1)));
        handles.push_back(inputs.back()->get());
      }
      auto outputs = program->make_outputs();
      return least_us([&] {
        if (!device_->keeps_outputs()) outputs = program->make_outputs();
        program->run(handles, outputs);
      });
    } catch (const BackendError& error) {
      // What one device refuses, or has no room for, is left out.
      const bool is_left_out = error.status() == NPU_UNSUPPORTED || error.status() == NPU_INVALID ||
                               error.status() == NPU_MEMORY;
      if (!is_left_out) throw;
      return std::nullopt;
    }
  }

  static std::vector<ChainOp> cheap_ops(const Shape& shape) {
    double flops = 1;
    for (const std::int64_t extent : shape) flops *= static_cast<double>(extent);
    return {{.op = "aten.add.Tensor", .others = {shape}, .flops = flops},
            {.op = "aten.mul.Tensor", .others = {shape}, .flops = flops},
            {.op = "aten.relu.default", .others = {}, .flops = flops},
            {.op = "aten.neg.default", .others = {}, .flops = flops}};
  }

  bool measure_launches(DType dtype, DeviceRates& rates) const {
    constexpr int kMany = 33;
    const Shape shape{16};
    for (const ChainOp& link : cheap_ops(shape)) {
      const auto one = time(link, shape, dtype, 1);
      if (!one) continue;
      const auto many = time(link, shape, dtype, kMany);
      const double node = many ? std::max(*many - *one, 0.0) / (kMany - 1) : 0;
      rates.node_us = node;
      rates.launch_us = std::max(*one - node, 0.0);
      return true;
    }
    return false;
  }

  bool measure_memory(DType dtype, DeviceRates& rates) const {
    const Shape shape{16, 64, 64, 64};  // beyond any core's caches
    for (const ChainOp& link : cheap_ops(shape)) {
      const auto rate = rate_of(link, shape, dtype, rates);
      if (!rate) continue;
      const double bytes = static_cast<double>(Tensor(dtype, shape).bytes()) *
                           static_cast<double>(2 + link.others.size());
      rates.memory_bandwidth = *rate / link.flops * bytes;
      return true;
    }
    return false;
  }

  std::optional<double> measure_flops(DType dtype, const DeviceRates& rates) const {
    const Shape image{1, 128, 28, 28};
    const Json padded = {{"stride", {1, 1}}, {"padding", {1, 1}}};
    const ChainOp convolution{
        "aten.conv2d.default", {{128, 128, 3, 3}, {128}}, padded, 2.0 * 128 * 128 * 9 * 28 * 28};
    if (const auto rate = rate_of(convolution, image, dtype, rates)) return rate;
    const Shape matrix{200, 256};
    for (const char* op : {"aten.mm.default", "aten.linear.default"}) {
      const ChainOp product{op, {{256, 256}}, Json::object(), 2.0 * 200 * 256 * 256};
      if (const auto rate = rate_of(product, matrix, dtype, rates)) return rate;
    }
    const Shape small{64, 128};
    for (const ChainOp& link : cheap_ops(small)) {
      if (const auto rate = rate_of(link, small, dtype, rates)) return rate;
    }
    return std::nullopt;
  }

  /// FLOP/s of the nodes that a chain of five has more than one of one.
  std::optional<double> rate_of(const ChainOp& link, const Shape& shape, DType dtype,
                                const DeviceRates& rates) const {
    constexpr int kMore = 4;
    const auto one = time(link, shape, dtype, 1);
    if (!one) return std::nullopt;
    const auto many = time(link, shape, dtype, 1 + kMore);
    if (!many) return std::nullopt;
    const ProbeTime both{.longer_us = *many, .shorter_us = *one, .nodes = kMore};
    return 1e6 * link.flops / work_us(both, rates.node_us.value_or(0));
  }

  std::shared_ptr<DeviceInstance> device_;
  const std::set<DType>& wanted_;
  const std::function<void(const char*)>& tell_;
};

}  // namespace

std::vector<DType> arithmetic_dtypes(const DeviceFacts& facts) {
  std::vector<DType> dtypes;
  for (const DTypeFacts& each : facts.dtypes) {
    if ((each.flags & NPU_DTYPE_ARITHMETIC) == 0) continue;
    if (each.dtype >= static_cast<std::uint32_t>(kDTypeCount)) continue;
    const auto dtype = static_cast<DType>(each.dtype);
    if (dtype != DType::kBool) dtypes.push_back(dtype);
  }
  if (dtypes.empty()) dtypes.push_back(DType::kFloat32);
  std::stable_partition(dtypes.begin(), dtypes.end(), is_floating_point);
  return dtypes;
}

DeviceRates measure_device(const std::shared_ptr<DeviceInstance>& device,
                           const std::set<DType>& dtypes,
                           const std::function<void(const char*)>& tell) {
  return DeviceProbe(device, dtypes, tell).measure();
}

std::optional<CopyRate> measure_copy(const std::shared_ptr<DeviceInstance>& from,
                                     const std::shared_ptr<DeviceInstance>& to) {
  if (!DeviceQueue::is_offered(*to) || !DeviceQueue::copies(*to)) return std::nullopt;
  const auto time = [&](std::int64_t floats) {
    const auto source = from->allocate(DType::kFloat32, {floats});
    const auto destination = to->allocate(DType::kFloat32, {floats});
    const Tensor tensor(DType::kFloat32, {floats});
    source->write(tensor.data());
    DeviceQueue queue(to);
    return least_us([&] { queue.copy(*source, *destination, {})->wait(); });
  };
  const double latency = time(1);
  const double us = std::max(time(kCopiedFloats) - latency, 1e-3);
  return CopyRate{latency, 4.0 * kCopiedFloats / us * 1e6};
}

}  // namespace npu
