// SPDX-License-Identifier: Apache-2.0
// Programs and their runs. In a run nothing is copied or allocated but the arrays of handles.
#include "device/device_program.hpp"

#include <algorithm>
#include <utility>

#include "device/backend.hpp"
#include "device/device_call.hpp"
#include "device/device_instance.hpp"
#include "device/tap_views.hpp"

namespace npu {

DeviceProgram::DeviceProgram(std::shared_ptr<DeviceModel> model, ProgramSignature signature,
                             const std::string& entry, std::shared_ptr<DeviceBuffer> scratch)
    : model_(std::move(model)), signature_(std::move(signature)), scratch_(std::move(scratch)) {
  const Backend& backend = model_->device()->backend();
  npu_program_args args = sized<npu_program_args>();
  args.entry = entry.empty() ? nullptr : entry.c_str();
  args.flags = (signature_.is_timed ? NPU_PROGRAM_PROFILE : 0U) |
               (signature_.taps.empty() ? 0U : NPU_PROGRAM_TAPS);
  args.scratch = scratch_ != nullptr ? scratch_->get() : nullptr;
  call_patiently(backend, [&](npu_error& error) {
    return backend.api().program_create(model_->get(), &args, &program_, &error);
  });
  if (program_ == nullptr) {
    break_contract(backend, "program_create", "it says that it made a program, but gave none");
  }
}

DeviceProgram::~DeviceProgram() { model_->device()->backend().api().program_free(program_); }

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::make_outputs() const {
  std::vector<std::shared_ptr<DeviceBuffer>> outputs;
  outputs.reserve(signature_.outputs.size());
  for (const TensorType& type : signature_.outputs) {
    outputs.push_back(model_->device()->allocate(type, NPU_USAGE_OUTPUT));
  }
  return outputs;
}

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::make_taps() const {
  std::vector<std::shared_ptr<DeviceBuffer>> taps;
  taps.reserve(signature_.taps.size());
  for (const TapType& tap : signature_.taps) {
    taps.push_back(model_->device()->allocate(tap.type.dtype, tap.type.shape));
  }
  return taps;
}

namespace {

/// Durations of spans; nothing if none was measured.
std::vector<std::uint64_t> durations(const std::vector<npu_span>& spans) {
  std::vector<std::uint64_t> times;
  bool measured = false;
  for (const npu_span& span : spans) {
    const bool has_time = span.flags != 0 && span.end >= span.begin;
    measured = measured || has_time;
    times.push_back(has_time ? span.end - span.begin : 0);
  }
  if (!measured) times.clear();
  return times;
}

}  // namespace

RunProfile::RunProfile(std::size_t nodes, std::size_t steps) : nodes_(nodes), steps_(steps) {
  profile_.struct_size = sizeof profile_;
  profile_.nodes = nodes_.data();
  profile_.node_count = nodes_.size();
  profile_.steps = steps_.data();
  profile_.step_count = steps_.size();
}

namespace {

/// The spans themselves; nothing unless all that were measured lie on the device's clock.
std::vector<npu_span> placed(const std::vector<npu_span>& spans) {
  const bool are_placed = std::all_of(spans.begin(), spans.end(), [](const npu_span& span) {
    const bool has_time = (span.flags & NPU_SPAN_DURATION) != 0 && span.end > span.begin;
    return !has_time || (span.flags & NPU_SPAN_PLACED) != 0;
  });
  return are_placed ? spans : std::vector<npu_span>();
}

}  // namespace

RunTimes RunProfile::times() const {
  return {durations(nodes_), placed(nodes_), durations(steps_)};
}

std::vector<std::shared_ptr<DeviceBuffer>> DeviceProgram::run(
    std::span<npu_buffer* const> inputs, const std::vector<std::shared_ptr<DeviceBuffer>>& outputs,
    RunTimes* times, std::size_t steps, std::uint64_t deadline_ns,
    std::span<const std::shared_ptr<DeviceBuffer>> taps) const {
  std::vector<std::shared_ptr<DeviceBuffer>> results = outputs.empty() ? make_outputs() : outputs;
  std::vector<npu_buffer*> handles;
  handles.reserve(results.size());
  for (const auto& result : results) handles.push_back(result->get());
  npu_run_args args = sized<npu_run_args>();
  args.inputs = inputs.data();
  args.input_count = inputs.size();
  args.outputs = handles.data();
  args.output_count = handles.size();
  args.deadline_ns = deadline_ns;
  const TapViews views(signature_.taps, taps);
  views.put(args);
  std::optional<RunProfile> profile;
  if (times != nullptr) args.profile = profile.emplace(signature_.nodes, steps).get();
  npu_error error = empty_error();
  const Backend& backend = model_->device()->backend();
  check_status(backend.api().run(program_, &args, &error), error, backend);
  if (profile) *times = profile->times();
  return results;
}

bool DeviceProgram::can_cancel() const noexcept {
  return model_->device()->backend().api().program_cancel != nullptr;
}

void DeviceProgram::cancel() const noexcept {
  if (can_cancel()) model_->device()->backend().api().program_cancel(program_);
}

}  // namespace npu
