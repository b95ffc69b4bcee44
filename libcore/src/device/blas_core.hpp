// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "device/isa_level.hpp"

namespace npu {

/// The kernels that OpenBLAS has to be told to take on a CPU, by the name that its variable
/// OPENBLAS_CORETYPE takes; empty where it finds fitting ones itself. `features` as cpu_features.
std::string_view blas_core_for(const CpuModel& model, std::string_view features);

/// Tells OpenBLAS so while it lives, if the user has not: the library reads the variable when it is
/// loaded, and programs that this one starts do not see it.
class BlasCoreScope {
 public:
  BlasCoreScope();
  ~BlasCoreScope();
  BlasCoreScope(const BlasCoreScope&) = delete;
  BlasCoreScope& operator=(const BlasCoreScope&) = delete;

 private:
  bool is_set_ = false;
};

/// The kernels that the OpenBLAS of this process has taken, "Haswell"; empty if none is loaded.
std::string loaded_blas_core();

}  // namespace npu
