// SPDX-License-Identifier: Apache-2.0
// Programs that the driver has built, which models of one device share.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cl_handle.hpp"
#include "npu/backend.h"
#include "plan.hpp"

struct npu_device;

namespace npu::opencl {

struct BuiltProgram {
  std::mutex mutex;  ///< of what follows
  ClProgram program;
};

/// The last programs that a device has built, by their source, which models of one process share.
class ProgramStore {
 public:
  /// Not built yet if it is new. Thread-safe.
  std::shared_ptr<BuiltProgram> of(std::string_view source);

 private:
  std::mutex mutex_;
  /// The last one asked for is in front.
  std::list<std::pair<std::string, std::shared_ptr<BuiltProgram>>> programs_;
};

using Programs = std::vector<std::shared_ptr<BuiltProgram>>;

/// The driver's binaries of a plan's programs, one behind the other, with their sizes in the plan;
/// empty where the driver gives none. Those that `pieces`, which may be null, does not have are
/// built, and finished where the driver does that at a start. `progress` is called between two of
/// them. Throws StatusError with what the driver says.
std::string compile_programs(
    npu_device& device, Plan& plan, std::string_view source, const npu_piece_cache* pieces,
    const std::function<void(std::size_t done, std::size_t total, const char* what)>& progress);

/// The programs of a plan: those that this device has built, or else from binaries that the driver
/// gave for such a device, or from their sources if there are none or the driver does not take
/// them.
Programs load_programs(npu_device& device, const Plan& plan, std::string_view source,
                       std::optional<std::string_view> binary);

/// One program, not kept.
ClProgram build_source(const npu_device& device, std::string_view source);

}  // namespace npu::opencl
