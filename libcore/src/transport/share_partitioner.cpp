// SPDX-License-Identifier: Apache-2.0
// Loads a partitioner for several processes and calls it from the thread that joined them. Its
// symbols stay its own: they are nobody else's business, and libraries of graph partitioning like
// to share names.
#include "transport/share_partitioner.hpp"

#include "device/plugin.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/text.hpp"

namespace npu {
SharePartitioner::SharePartitioner(const std::string& name) : api_(nullptr) {
  std::string tried;
  const std::string path = find_plugin(kPartitioners, name, &tried);
  if (path.empty()) {
    throw Error(ErrorCode::kUnsupported,
                "the partitioner '" + name + "' is not in " + tried +
                    ": install the package npu-transport-mpi, or build with libptscotch-dev");
  }
  void* library =
      open_plugin(kPartitioners, path, RTLD_LOCAL, "; Debian's package is libptscotch-7.0");
  api_ = plugin_table<npu_partitioner>(kPartitioners, library, path, NPU_PARTITIONER_ENTRY_NAME,
                                       NPU_PARTITIONER_ABI_VERSION);
  if (const char* fault = api_->check()) {
    throw Error(ErrorCode::kUnsupported, printable_text(fault), {.file = path});
  }
}

std::vector<std::int32_t> SharePartitioner::cut(const Transport& processes,
                                                const npu_graph_share& share, std::int32_t parts,
                                                double imbalance, std::uint64_t seed) const {
  std::vector<std::int32_t> part_of;
  // Before the partitioner speaks to the other processes, which could wait for this one then.
  do_together(&processes, [&] { part_of.resize(index_of(share.nodes)); });
  do_together(&processes, [&] {
    processes.call([&] {
      const char* fault = api_->cut(&share, parts, imbalance, seed, part_of.data());
      if (fault == nullptr) return;
      if (*fault == '\0') throw FailedElsewhere{};
      throw Error(ErrorCode::kFailed,
                  "partitioner '" + std::string(api_->name) + "': " + printable_text(fault));
    });
  });
  return part_of;
}

}  // namespace npu
