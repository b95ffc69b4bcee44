// SPDX-License-Identifier: Apache-2.0
// Rows of a tensor as loops of a kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kernels/group_kernel.hpp"

namespace npu::opencl {

/// What reduces rows: kernels of other ops or another type are other ones to be measured.
struct RowForm {
  std::string ops;
  DType dtype = DType::kFloat32;
  std::int64_t reductions = 1;  ///< at most; each has local memory of its own
};

/// Rows that work groups, or single work items, reduce.
class RowWriter {
 public:
  /// Opens the kernel: `rows` rows of `inner` elements each.
  RowWriter(Emitter& emitter, const Shape& rows, Shape inner, const RowForm& form);

  Emitter& emitter() noexcept { return emitter_; }
  /// Which row this is.
  const Index& row() const noexcept { return row_; }
  std::int64_t inner_count() const noexcept { return inner_count_; }
  /// A loop over the elements of the row; gives their index within it. end_loop() closes it.
  Index begin_loop();
  void end_loop();
  /// Reduces `value` over the row: "+", "*", "max", "min", "|" or "&".
  std::string reduce(DType dtype, const std::string& operation,
                     const std::function<std::string(const Index&)>& value);
  /// Opens a block that one work item of the row runs; close() of the emitter ends it.
  void begin_single();
  GeneratedKernel finish();

 private:
  /// Lanes as they were measured, if they were.
  void tune_lanes(const Machine& machine, const RowForm& form);

  Emitter& emitter_;
  std::optional<Tunable> tunable_;
  std::int64_t row_count_;
  Shape inner_;
  std::int64_t inner_count_;
  std::uint64_t lanes_;  ///< work items of a row
  std::uint64_t local_;  ///< work items of a work group
  Index row_;
};

}  // namespace npu::opencl
