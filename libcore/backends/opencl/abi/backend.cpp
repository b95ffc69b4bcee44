// SPDX-License-Identifier: Apache-2.0
// The table of the opencl backend, see npu-opencl(7).
#include "abi/boundary.hpp"
#include "ops/op_catalogue.hpp"
#include "ops/op_table.hpp"

namespace npu::opencl {

npu_status list_ops(npu_device* /*device*/, npu_op_visitor visit, void* context, npu_error* error) {
  return guarded(error, [&] {
    require(visit != nullptr, "visit is null");
    for (const std::string_view op : catalogued_ops()) {
      if (find_row(op) != nullptr) visit(context, std::string(op).c_str(), "opencl");
    }
  });
}

namespace {

npu_backend make_table() {
  static constexpr const char* kFeatures[] = {"memory.limit", "cancel", "queue", "copy",
                                              "check",        "alias",  nullptr};
  npu_backend table = empty_table(kFeatures);
  NPU_EACH(NPU_PLACE, NPU_FUNCTIONS)
  return table;
}

}  // namespace
}  // namespace npu::opencl

extern "C" __attribute__((visibility("default"))) const npu_backend* npu_backend_entry(
    const npu_host* host, npu_error* error) {
  static const npu_backend table = npu::opencl::make_table();
  return npu::table_for(host, error, table);
}
