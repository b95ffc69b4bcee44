// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the tests of kernels on integers, truth and indices share.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/kernel.hpp"

namespace npu::onednn::test {

/// Runs a kernel on vectors; `count` elements of the target.
template <typename To, typename... From>
std::vector<To> run_for_isa(const Kernel& kernel, std::size_t count, std::vector<From>... reads) {
  std::vector<To> target(count);
  std::vector<std::byte*> addresses{static_cast<std::byte*>(static_cast<void*>(reads.data()))...};
  addresses.push_back(static_cast<std::byte*>(static_cast<void*>(target.data())));
  run_kernel(kernel, addresses);
  return target;
}
template <typename To, typename... From>
std::vector<To> run(Kernel kernel, std::size_t count, const std::vector<From>&... reads) {
  set_isa(kernel, cpu_vector_isa());
  return run_for_isa<To>(kernel, count, reads...);
}

using Longs = std::vector<std::int64_t>;
using Ints = std::vector<std::int32_t>;
using Bytes = std::vector<std::uint8_t>;
using Floats = std::vector<float>;

}  // namespace npu::onednn::test
