// SPDX-License-Identifier: Apache-2.0
// Latency and rate of links, from copies of 4 KiB to 64 MiB. What goes from one accelerator to
// another goes through the host's memory, as it does when a plan runs. O(devices^2) copies.
#include "gnn/profile/measure_links.hpp"

#include <algorithm>
#include <memory>

#include "device/device_instance.hpp"
#include "npu/tensor/tensor.hpp"
#include "support/elapsed.hpp"
#include "support/statistics.hpp"

namespace npu::gnn {
namespace {

constexpr int kRuns = 7;

// The largest sample gives the rate, the smallest the latency: robust against the rest.
void fit(ProfileLink& link) {
  const Json& large = link.samples.back();
  const Json& small = link.samples.front();
  const double bytes = large[0].get<double>() - small[0].get<double>();
  const double ms = std::max(1e-6, large[1].get<double>() - small[1].get<double>());
  link.bytes_per_s = bytes / ms * 1e3;
  link.latency_ms =
      std::max(0.0, small[1].get<double>() - small[0].get<double>() / link.bytes_per_s * 1e3);
}

// Null stands for the host's memory.
double copy_ms(const Tensor& tensor, DeviceInstance* from, DeviceInstance* to) {
  const std::shared_ptr<DeviceBuffer> source =
      from == nullptr ? nullptr : from->import_tensor(tensor);
  const auto start = Clock::now();
  const Tensor fetched = source == nullptr ? tensor : source->to_host();
  if (to != nullptr) to->import_tensor(fetched);
  return milliseconds_since(start);
}

}  // namespace

std::vector<ProfileLink> measure_links(const std::vector<GnnDevice>& devices) {
  std::vector<ProfileLink> links;
  if (devices.empty()) return links;
  const auto named_cpu = std::find_if(devices.begin(), devices.end(),
                                      [](const GnnDevice& device) { return device.name == "cpu"; });
  const GnnDevice& host = named_cpu == devices.end() ? devices.front() : *named_cpu;
  const auto memory_of = [&](const GnnDevice& device) {
    return &device == &host ? nullptr : device.instance.get();
  };
  for (const GnnDevice& from : devices) {
    for (const GnnDevice& to : devices) {
      if (&from == &to) continue;
      // Where buffers lie in host memory the times of blocks contain the copies.
      ProfileLink link{from.name, to.name, 0, 0, Json::array(), true};
      for (std::int64_t bytes = 4096; bytes <= (std::int64_t{64} << 20); bytes *= 16) {
        const Tensor tensor(DType::kFloat32, {bytes / 4});
        std::vector<double> times;
        for (int run = 0; run < kRuns; ++run) {
          times.push_back(copy_ms(tensor, memory_of(from), memory_of(to)));
        }
        link.samples.push_back({bytes, lower_median(std::move(times))});
      }
      fit(link);
      links.push_back(std::move(link));
    }
  }
  return links;
}

}  // namespace npu::gnn
