// SPDX-License-Identifier: Apache-2.0
// What all kernels have in common: a name, a footprint, and that they run on the addresses of a
// step. O(fields), but for running.
#include "kernels/kernel.hpp"

#include "kernels/base/refuse.hpp"

namespace npu::onednn {

std::string_view kernel_name(const Kernel& kernel) {
  return std::visit(
      [](const auto& each) {
        if constexpr (requires { each.name(); }) {
          return each.name();
        } else {
          return each.kName;
        }
      },
      kernel);
}

Footprint footprint_of(const Kernel& kernel) {
  return std::visit(
      [](const auto& each) {
        if constexpr (requires { each.isa; }) {
          require(each.isa <= cpu_vector_isa(), "'isa' is more than this CPU has");
        }
        return footprint(each);
      },
      kernel);
}

std::string kernel_refusal(const Kernel& kernel) {
  try {
    std::visit([](const auto& each) { static_cast<void>(footprint(each)); }, kernel);
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

std::size_t scratch_bytes_of(const Kernel& kernel) {
  return std::visit(
      [](const auto& each) -> std::size_t {
        if constexpr (requires { each.scratch_bytes(); }) {
          return each.scratch_bytes();
        } else {
          return 0;
        }
      },
      kernel);
}

void run_kernel(const Kernel& kernel, Addresses addresses) {
  std::visit([&](const auto& each) { each.run(each.bind(addresses)); }, kernel);
}

void set_isa(Kernel& kernel, VectorIsa isa) {
  std::visit(
      [&](auto& each) {
        if constexpr (requires { each.isa; }) each.isa = isa;
      },
      kernel);
}

void set_threads(Kernel& kernel, int threads) {
  std::visit(
      [&](auto& each) {
        if constexpr (requires { each.threads; }) each.threads = threads;
        if constexpr (requires { each.winograd; }) each.winograd.threads = threads;
        if constexpr (requires { each.gemm; }) each.gemm.threads = threads;
      },
      kernel);
}

}  // namespace npu::onednn
