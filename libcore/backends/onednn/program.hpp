// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "npu/backend.h"
#include "plan.hpp"

namespace npu::onednn {

struct FreeDeleter {
  void operator()(std::byte* memory) const noexcept;
};
using AlignedMemory = std::unique_ptr<std::byte, FreeDeleter>;
/// Uninitialised, aligned to kAlignment; never null. Throws std::bad_alloc.
AlignedMemory allocate_aligned(std::size_t bytes);

/// A plan with memory and generated code. Not to be used by two threads at once.
class Program {
 public:
  /// Binds weights (whose data has to outlive the program), generates code and runs the prologue.
  /// Throws Error kInvalidGraph if `weights` are not those of the plan.
  Program(Plan plan, std::span<const npu_tensor> weights, const dnnl::engine& engine);

  const std::vector<TensorBinding>& inputs() const noexcept { return plan_.inputs; }
  const std::vector<TensorBinding>& outputs() const noexcept { return plan_.outputs; }
  /// Addresses in the order of inputs() and outputs(). Allocates nothing.
  void run(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs);
  /// Nanoseconds of the last run, by node.
  std::span<const std::uint64_t> node_times() const noexcept { return node_times_; }

 private:
  /// A step with its code and the oneDNN objects that it is executed with.
  struct Executable {
    const Step* step = nullptr;
    dnnl::primitive primitive;
    std::vector<dnnl::memory> memories;
    std::vector<dnnl_exec_arg_t> arguments;
    std::vector<std::byte*> addresses;  ///< as last set
  };
  Executable prepare(const Step& step) const;
  void execute(Executable& executable);
  void bind_weights(std::span<const npu_tensor> weights);
  void run_prologue();

  Plan plan_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  AlignedMemory arena_;
  std::vector<AlignedMemory> owned_;   ///< by BufferId: constants, and weights that had to be moved
  std::vector<std::byte*> addresses_;  ///< by BufferId
  std::vector<Executable> executables_;
  std::vector<std::uint64_t> node_times_;
};

}  // namespace npu::onednn
