// SPDX-License-Identifier: Apache-2.0
// Which kernels OpenBLAS takes for this CPU, where it does not know the model.
//
// Version 0.3.21, which Debian 12 has, goes by the model of Intel's CPUs. One that its lists lack
// gets kernels by what the CPU can do, except where the extended model is above 10 (0xA0 to 0xAF)
// or the family above 6: such a CPU ends at the case of the Pentium 4, with kernels for SSE3, which
// multiply at a fifth of the rate or less. Emerald Rapids, Raptor Lake, Lunar Lake and Arrow Lake
// are such CPUs. Of CPUs without AVX it takes the same kernels for those that it does not know.
// Later versions know more models, and take for them what is named here, or next to it.
#include "device/blas_core.hpp"

#include <dlfcn.h>

#include <cstdlib>

namespace npu {

namespace {
constexpr const char* kCoreType = "OPENBLAS_CORETYPE";
}

std::string_view blas_core_for(const CpuModel& model, std::string_view features) {
  constexpr unsigned kPentiumPro = 6;          // and all that followed it, up to Panther Lake
  constexpr unsigned kFirstUnknown = 0xB0;     // models of that family
  constexpr unsigned kFirstWithoutAvx = 0x80;  // those below are known, or have it
  const auto has = [&](std::string_view name) {
    const std::size_t place = features.find(" " + std::string(name));
    const std::size_t end = place + 1 + name.size();
    return place != std::string_view::npos && (end == features.size() || features[end] == ' ');
  };
  if (model.vendor != CpuVendor::kIntel || model.family < kPentiumPro) return {};
  const bool is_unknown = model.family > kPentiumPro || model.model >= kFirstUnknown;
  if (has("avx2") && has("fma")) {
    if (!is_unknown) return {};
    return has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq") ? "SkylakeX"
                                                                                   : "Haswell";
  }
  if (has("avx")) return is_unknown ? "Sandybridge" : std::string_view();
  const bool is_new = model.family > kPentiumPro || model.model >= kFirstWithoutAvx;
  return is_new && has("sse4.2") ? "Nehalem" : std::string_view();
}

BlasCoreScope::BlasCoreScope() {
  if (std::getenv(kCoreType) != nullptr) return;
  const std::string core(blas_core_for(cpu_model(), cpu_features()));
  is_set_ = !core.empty() && ::setenv(kCoreType, core.c_str(), 0) == 0;
}

BlasCoreScope::~BlasCoreScope() {
  if (is_set_) ::unsetenv(kCoreType);
}

std::string loaded_blas_core() {
  constexpr const char* kFunction = "openblas_get_corename";
  void* function = ::dlsym(RTLD_DEFAULT, kFunction);
  if (function == nullptr) {
    // What a backend loads is not among the symbols of all.
    void* const library = ::dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) return {};
    function = ::dlsym(library, kFunction);
    ::dlclose(library);
  }
  if (function == nullptr) return {};
  const char* name = reinterpret_cast<const char* (*)()>(function)();
  return name == nullptr ? std::string() : name;
}

}  // namespace npu
