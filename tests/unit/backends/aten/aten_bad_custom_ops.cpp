// SPDX-License-Identifier: Apache-2.0
// A shared object of custom ops with one fault, chosen by the environment; aten_backend_test loads
// it. A fault of "exit-0", "crash" or "print" happens when it is loaded.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "npu/custom_op.hpp"

namespace {

struct AtLoad {
  AtLoad() {
    const char* const fault = std::getenv("NPU_TEST_FAULT");
    const std::string_view chosen = fault == nullptr ? "" : fault;
    if (chosen == "exit-0") std::_Exit(0);
    if (chosen == "crash") std::raise(SIGSEGV);
    if (chosen == "print") std::puts("custom ops greet");
  }
} at_load;

npu_status do_nothing(void* /*context*/, const npu_custom_op_call* /*call*/, npu_error* /*error*/) {
  return NPU_OK;
}
}  // namespace

extern "C" __attribute__((visibility("default"))) const npu_custom_op_library* npu_custom_op_entry(
    std::uint32_t /*host_abi_version*/) {
  static npu_custom_op ops[2] = {{"test.one", do_nothing, nullptr},
                                 {"test.two", do_nothing, nullptr}};
  static npu_custom_op_library library = {NPU_CUSTOM_OP_ABI_VERSION, sizeof(npu_custom_op_library),
                                          ops, 2};
  const char* const fault = std::getenv("NPU_TEST_FAULT");
  const std::string_view chosen = fault == nullptr ? "" : fault;
  library.abi_version =
      chosen == "version" ? NPU_CUSTOM_OP_ABI_VERSION + 1 : NPU_CUSTOM_OP_ABI_VERSION;
  ops[0].name = chosen == "clash"   ? "aten.relu.default"
                : chosen == "twice" ? "test.two"
                                    : "test.one";
  ops[0].run = chosen == "function" ? nullptr : do_nothing;
  return chosen == "null" ? nullptr : &library;
}
