// SPDX-License-Identifier: Apache-2.0
// Programs that the driver has built, which models of one device share.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "driver/device.hpp"
#include "npu/backend.h"

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

/// What a compile does besides.
struct BuildSteps {
  /// Told how many programs are there before the next is built.
  std::function<void(std::size_t done)> progress;
  /// Lets the driver finish the programs that were built; null ones were not. False: it has not.
  std::function<bool(const std::vector<cl_program>& programs)> finish;
};

/// The driver's binaries of programs, by their sources; empty ones where the driver gives none.
/// Those that `pieces`, which may be null, does not have are built and finished. Throws StatusError
/// with what the driver says.
std::vector<std::string> compile_programs(const OpenDevice& device, ProgramStore& store,
                                          const std::vector<std::string_view>& sources,
                                          const npu_piece_cache* pieces, const BuildSteps& steps);

/// The programs of these sources: those that this device has built, or else from binaries that the
/// driver gave for such a device, or from their sources if there are none, or fewer, or the driver
/// does not take them.
Programs load_programs(const OpenDevice& device, ProgramStore& store,
                       const std::vector<std::string_view>& sources,
                       const std::vector<std::string_view>& binaries);

/// One program, not kept.
ClProgram build_source(const OpenDevice& device, std::string_view source);

}  // namespace npu::opencl
