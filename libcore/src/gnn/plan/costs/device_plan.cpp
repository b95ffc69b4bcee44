// SPDX-License-Identifier: Apache-2.0
// Enumerates the structures of parallel execution plans: every cut with every assignment of
// disjoint device groups. 7 stages on 3 devices in up to 3 segments: 7 + 72 + 90 = 169.
#include "gnn/plan/costs/device_plan.hpp"

namespace npu::gnn {
namespace {

class Enumerator {
 public:
  Enumerator(std::int32_t stages, std::int32_t devices) : stages_(stages), devices_(devices) {}

  std::vector<DevicePlan> run(std::int32_t max_segments) {
    for (std::int32_t count = 1; count <= max_segments && count <= stages_; ++count) {
      extend(1, count, 0);
    }
    return std::move(found_);
  }

 private:
  void extend(std::int32_t first, std::int32_t left, std::uint32_t used) {
    for (std::int32_t last = first; last + left - 1 <= stages_; ++last) {
      if (left == 1 && last != stages_) continue;
      for (std::uint32_t group = 1; group < (1U << devices_); ++group) {
        if ((group & used) != 0) continue;
        StageSegment segment{first, last, {}};
        const bool alone = (group & (group - 1)) == 0;
        for (std::int32_t d = 0; d < devices_; ++d) {
          if ((group >> d & 1) != 0) segment.shares.push_back({d, alone ? 100 : 0});
        }
        current_.segments.push_back(std::move(segment));
        if (left == 1) {
          found_.push_back(current_);
        } else {
          extend(last + 1, left - 1, used | group);
        }
        current_.segments.pop_back();
      }
    }
  }

  std::int32_t stages_;
  std::int32_t devices_;
  DevicePlan current_;
  std::vector<DevicePlan> found_;
};

}  // namespace

std::string device_plan_text(const DevicePlan& device_plan,
                             const std::vector<std::string>& device_names) {
  std::string text;
  for (const StageSegment& segment : device_plan.segments) {
    if (!text.empty()) text += "|";
    for (std::size_t i = 0; i < segment.shares.size(); ++i) {
      const GroupShare& share = segment.shares[i];
      if (i > 0) text += "+";
      text += device_names[static_cast<std::size_t>(share.device)];
      if (segment.shares.size() > 1 && share.percent > 0) {
        text += ":" + std::to_string(share.percent);
      }
    }
    text += "[" + std::to_string(segment.first) + "-" + std::to_string(segment.last) + "]";
  }
  return text;
}

std::vector<DevicePlan> enumerate_device_plans(std::int32_t stage_count, std::int32_t device_count,
                                               std::int32_t max_segments) {
  return Enumerator(stage_count, device_count).run(max_segments);
}

}  // namespace npu::gnn
