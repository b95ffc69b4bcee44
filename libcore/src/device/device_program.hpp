// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device_buffer.hpp"
#include "device/device_model.hpp"
#include "npu/backend.h"

namespace npu {

/// Nanoseconds that a run took; what a backend does not measure stays empty.
struct RunTimes {
  std::vector<std::uint64_t> node_ns;  ///< by node of the sub-IR
  std::vector<npu_span> placed;        ///< the same on the device's clock, if they lie there
  std::vector<std::uint64_t> step_ns;  ///< by step of the blob's report
};

/// Room for the times of one run, as a backend fills it.
class RunProfile {
 public:
  RunProfile(std::size_t nodes, std::size_t steps);
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;
  npu_profile* get() noexcept { return &profile_; }
  /// Once the run is done.
  RunTimes times() const;

 private:
  std::vector<npu_span> nodes_;
  std::vector<npu_span> steps_;
  npu_profile profile_{};
};

/// A result that a run gives besides the outputs, for backends with the feature "taps".
struct TapType {
  std::string name;
  TensorType type;
};

/// What a host knows of a program's sub-IR, and asks of its runs.
struct ProgramSignature {
  std::vector<TensorType> outputs;
  std::size_t nodes = 0;
  std::vector<TapType> taps = {};
  bool is_timed = false;  ///< its runs may be asked for times
};

/// An instance of a model: one run at a time.
class DeviceProgram {
 public:
  /// Of the first entry, if no other is named. `scratch` is memory of make_scratch that programs
  /// share which never run at once; null: it has its own.
  DeviceProgram(std::shared_ptr<DeviceModel> model, ProgramSignature signature,
                const std::string& entry = {}, std::shared_ptr<DeviceBuffer> scratch = nullptr);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  /// Buffers for the results of one run, or of all: see DeviceInstance::keeps_outputs.
  std::vector<std::shared_ptr<DeviceBuffer>> make_outputs() const;
  /// The same for the taps of its signature.
  std::vector<std::shared_ptr<DeviceBuffer>> make_taps() const;
  /// One result per graph output of the sub-IR, in `outputs` if they are given, which the run
  /// overwrites. Throws BackendError. `times`, if it is not null, takes the times of the nodes, and
  /// of `steps` steps of the report. `deadline_ns` on CLOCK_MONOTONIC is advice; 0: none. `taps`
  /// are buffers of make_taps, or none.
  std::vector<std::shared_ptr<DeviceBuffer>> run(
      std::span<npu_buffer* const> inputs,
      const std::vector<std::shared_ptr<DeviceBuffer>>& outputs = {}, RunTimes* times = nullptr,
      std::size_t steps = 0, std::uint64_t deadline_ns = 0,
      std::span<const std::shared_ptr<DeviceBuffer>> taps = {}) const;
  bool can_cancel() const noexcept;
  /// Asks its run, if there is one, to end soon with NPU_CANCELLED. From any thread.
  void cancel() const noexcept;
  const std::shared_ptr<DeviceModel>& model() const noexcept { return model_; }
  const ProgramSignature& signature() const noexcept { return signature_; }
  npu_program* get() const noexcept { return program_; }

 private:
  std::shared_ptr<DeviceModel> model_;
  ProgramSignature signature_;
  std::shared_ptr<DeviceBuffer> scratch_;
  npu_program* program_ = nullptr;
};

}  // namespace npu
