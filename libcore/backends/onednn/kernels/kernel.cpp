// SPDX-License-Identifier: Apache-2.0
// What all kernels have in common: a name, and that they run on the addresses of a step.
#include "kernels/kernel.hpp"

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

}  // namespace npu::onednn
