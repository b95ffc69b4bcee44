// SPDX-License-Identifier: Apache-2.0
// Loads a partitioner for several processes and calls it from the thread that joined them. Its
// symbols stay its own: they are nobody else's business, and libraries of graph partitioning like
// to share names.
#include "transport/share_partitioner.hpp"

#include <dlfcn.h>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/text.hpp"
#include "transport/transport_folders.hpp"

namespace npu {
namespace {

std::string find_partitioner(const std::string& name) {
  std::string looked_in;
  for (const std::string& folder : transport_folders()) {
    std::string path = folder + "/npu_partitioner_" + name + ".so";
    if (is_regular_file(path)) return path;
    looked_in += (looked_in.empty() ? "" : ", ") + folder;
  }
  throw Error(ErrorCode::kUnsupported,
              "the partitioner '" + name + "' is not in " + looked_in +
                  ": install the package npu-transport-mpi, or build with libptscotch-dev");
}

}  // namespace

SharePartitioner::SharePartitioner(const std::string& name) : api_(nullptr) {
  const std::string path = find_partitioner(name);
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    throw Error(ErrorCode::kUnsupported,
                "the partitioner does not load: " +
                    (reason == nullptr ? std::string() : printable_text(reason)) +
                    "; Debian's package is libptscotch-7.0",
                {.file = path});
  }
  const auto entry = reinterpret_cast<npu_partitioner_entry_function>(
      ::dlsym(library, NPU_PARTITIONER_ENTRY_NAME));
  api_ = entry == nullptr ? nullptr : entry(NPU_PARTITIONER_ABI_VERSION);
  if (api_ == nullptr || api_->abi_version != NPU_PARTITIONER_ABI_VERSION) {
    throw Error(ErrorCode::kUnsupported, "the partitioner is of another version of npu-tools",
                {.file = path});
  }
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
