// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <vector>

#include "program/plan.hpp"
#include "program/weight_view.hpp"

namespace npu::onednn {

struct FreeDeleter {
  void operator()(std::byte* memory) const noexcept;
};
using AlignedMemory = std::unique_ptr<std::byte, FreeDeleter>;
/// Uninitialised, aligned to kAlignment; never null. Throws std::bad_alloc.
AlignedMemory allocate_aligned(std::size_t bytes);

/// A finite weight that has to become float16 and is beyond its range.
struct Float16Overflow {
  std::size_t node;  ///< of the sub-IR
  std::string text;
};

/// Makes the constants of a plan, laid out as its steps read them, from the host's weights: runs as
/// much of the plan's prologue as the next one needs, and lets go of it afterwards, so that not all
/// of them are in memory at a time.
class ConstantPacker {
 public:
  /// Plan, weights and engine have to outlive it. Throws Error kInvalidGraph if `weights` are not
  /// those of the plan. Calls `checkpoint` before each step, with its number and the number of
  /// steps; it may throw.
  ConstantPacker(const Plan& plan, std::span<const WeightView> weights, const dnnl::engine& engine,
                 Checkpoint checkpoint = {});

  /// How many bytes each has, in the order of Plan::constants.
  std::vector<std::uint64_t> sizes() const;
  /// One after another, in that order; each is valid until the next call. Throws Float16Overflow.
  PackedConstant next();

 private:
  void bind_weights(std::span<const WeightView> weights);
  std::byte* own(std::size_t buffer);
  void run_next_step();
  void require_in_range(const Step& step) const;
  void let_go(std::size_t buffer);

  const Plan& plan_;
  const dnnl::engine& engine_;
  dnnl::stream stream_;
  Checkpoint checkpoint_;
  std::vector<AlignedMemory> owned_;  ///< by BufferId, as is what follows
  std::vector<std::byte*> addresses_;
  std::vector<std::size_t> end_of_use_;  ///< behind the last step of the prologue that touches it
  std::vector<char> is_asked_;           ///< a constant that next() has not given yet
  std::size_t done_ = 0;                 ///< steps of the prologue
  std::size_t given_ = 0;                ///< constants
};

/// A plan with memory and generated code. Not to be used by two threads at once.
class Program {
 public:
  /// Generates code for a plan that was restored from a blob. The constants are those of the blob
  /// and used where they are; they have to outlive the program. Programs of which only one runs at
  /// a time can share memory: that of `sibling` is used if it is large enough.
  Program(Plan plan, const std::vector<PackedConstant>& constants, const dnnl::engine& engine,
          const Program* sibling = nullptr);

  const std::vector<TensorBinding>& inputs() const noexcept { return plan_.inputs; }
  const std::vector<TensorBinding>& outputs() const noexcept { return plan_.outputs; }
  /// Outputs that a run may be given at the address of an input.
  const std::vector<AliasRecord>& aliases() const noexcept { return plan_.aliases; }
  /// What a run can give besides the outputs, in the order in which it comes to be.
  const std::vector<TapRecord>& taps() const noexcept { return plan_.taps; }
  /// One of them, by its number, and where its row-major content goes.
  struct TapTarget {
    std::size_t tap = 0;
    std::byte* target = nullptr;
  };
  /// Addresses in the order of inputs() and outputs(); `taps` by number. Without taps it allocates
  /// nothing. Calls `checkpoint`, if it is not null, before each step with `context`; it may throw,
  /// and the program can run again.
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs,
           std::span<const TapTarget> taps = {}, void (*checkpoint)(const void* context) = nullptr,
           const void* context = nullptr);
  /// Nanoseconds of the last run, by node.
  std::span<const std::uint64_t> node_times() const noexcept { return node_times_; }
  /// The same by step of the plan.
  std::span<const std::uint64_t> step_times() const noexcept { return step_times_; }

 private:
  friend class ConstantPacker;
  /// A step with its code and the oneDNN objects that it is executed with.
  struct Executable {
    const Step* step = nullptr;
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<std::byte*> addresses;  ///< as last set
  };
  static Executable prepare(const Step& step, const dnnl::engine& engine);
  static void execute(Executable& executable, const std::vector<std::byte*>& addresses,
                      const dnnl::stream& stream);

  std::span<const TapTarget> copy_taps(std::span<const TapTarget> taps, std::size_t steps) const;

  Plan plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  std::shared_ptr<std::byte> arena_;
  std::vector<AlignedMemory> owned_;   ///< constants that did not lie at an aligned address
  std::vector<std::byte*> addresses_;  ///< by BufferId
  std::vector<Executable> executables_;
  std::vector<std::uint64_t> node_times_;
  std::vector<std::uint64_t> step_times_;
};

}  // namespace npu::onednn
