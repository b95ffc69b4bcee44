// SPDX-License-Identifier: Apache-2.0
// Asks a device about single nodes. Samples of an op lie side by side in one sub-IR: one call of
// the backend's for all of them, or one compile, and one for each if some are refused.
#include "profile/ask_ops.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "npu/support/error.hpp"
#include "support/elapsed.hpp"

namespace npu {
namespace {

bool is_refused(const BackendError& error) {
  return error.status() == NPU_UNSUPPORTED || error.status() == NPU_INVALID;
}

class OpAsker {
 public:
  OpAsker(DeviceInstance& device, const OpQuestion& question, DType dtype)
      : device_(device), question_(question), dtype_(dtype) {
    for (const OpSample& sample : question.samples) samples_.push_back(&sample);
  }

  DTypeAnswer ask() {
    DTypeAnswer answer{dtype_, std::vector<bool>(samples_.size(), false)};
    ask(0, samples_.size(), answer.taken);
    return answer;
  }

 private:
  /// All at once, or each by itself if the backend refuses them together: some may be no nodes at
  /// all in this dtype, such as a sum of bytes that is a byte.
  void ask(std::size_t first, std::size_t count, std::vector<bool>& taken) {
    try {
      const auto graph = question_graph(question_.op, question_.gives_bool, dtype_,
                                        std::span(samples_).subspan(first, count));
      const std::string sub_ir = conformance::sub_ir_text(graph);
      if (device_.backend().has_feature("check")) {
        const CheckAnswer said = device_.check(sub_ir, count, "{}");
        for (std::size_t i = 0; i < count; ++i) taken[first + i] = said.nodes[i].ok;
      } else {
        device_.compile(sub_ir, graph.weights, "{}");
        std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(first), count, true);
      }
    } catch (const BackendError& error) {
      if (!is_refused(error)) throw;
      for (std::size_t i = 0; count > 1 && i < count; ++i) ask(first + i, 1, taken);
    }
  }

  DeviceInstance& device_;
  const OpQuestion& question_;
  const DType dtype_;
  std::vector<const OpSample*> samples_;
};

/// The dtypes that a device lists and this library knows.
std::vector<DType> listed_dtypes(const DeviceFacts& facts) {
  std::vector<DType> dtypes;
  for (const DTypeFacts& each : facts.dtypes) {
    if (each.dtype < static_cast<std::uint32_t>(kDTypeCount)) {
      dtypes.push_back(static_cast<DType>(each.dtype));
    }
  }
  // One that says nothing of dtypes is asked about the one that all models have.
  if (dtypes.empty()) dtypes.push_back(DType::kFloat32);
  return dtypes;
}

}  // namespace

AskedOps ask_ops(DeviceInstance& device, const std::vector<OpQuestion>& questions, double seconds,
                 const std::function<void(const std::string&)>& tell) {
  const auto start = Clock::now();
  std::set<std::string> named;
  if (device.backend().api().list_ops != nullptr) {
    device.list_ops([&](std::string_view op, std::string_view) { named.emplace(op); });
  }
  const bool is_listed = !named.empty();
  const bool is_quick = device.backend().has_feature("check");
  AskedOps asked;
  for (const OpQuestion& question : questions) {
    if (is_listed && named.erase(question.op) == 0) continue;
    if (!is_quick && seconds_since(start) > seconds) {
      ++asked.left;
      continue;
    }
    tell(question.op);
    OpAnswer answer{&question, {}};
    for (const DType dtype : listed_dtypes(device.facts())) {
      answer.dtypes.push_back(OpAsker(device, question, dtype).ask());
    }
    asked.answers.push_back(std::move(answer));
  }
  asked.unasked.assign(named.begin(), named.end());
  return asked;
}

}  // namespace npu
