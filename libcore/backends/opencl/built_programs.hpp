// SPDX-License-Identifier: Apache-2.0
// Programs that the driver has built, which models of one device share.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "cl_handle.hpp"
#include "plan.hpp"

struct npu_device;

namespace npu::opencl {

/// A kernel of a program as drivers finish it when it is first started: its number, its work group,
/// and whether its range is small.
using StartedKernel = std::tuple<std::uint64_t, std::array<std::uint64_t, 3>, bool>;

struct BuiltProgram {
  std::mutex mutex;  ///< of what follows
  ClProgram program;
  bool is_from_binary = false;
  std::set<StartedKernel> started;
};

/// The last programs that a device has built, by their source: blocks of a graph whose number of
/// rows differs have kernels of one source.
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

/// Builds the programs of a plan from their sources, as far as they are not there. `progress` is
/// called between two of them. Throws StatusError with what the driver says.
Programs build_sources(npu_device& device, const Plan& plan, std::string_view source,
                       const std::function<void(std::size_t done, std::size_t total)>& progress);
/// The same from binaries that the driver gave for this device, or from sources if it does not take
/// them.
Programs build_binaries(npu_device& device, const Plan& plan, std::string_view source,
                        std::string_view binary);
/// The driver's binaries, one behind the other, with their sizes in the plan. Empty if the driver
/// gives none.
std::string binaries_of(const Programs& programs, Plan& plan);

/// One program, not kept.
ClProgram build_source(const npu_device& device, std::string_view source);

}  // namespace npu::opencl
