// SPDX-License-Identifier: Apache-2.0
// Paths of what was built beside the tests. The environment takes precedence: the same test objects
// are linked with a plain and with a sanitized libcore, each with separate backends.
#pragma once

#include <cstdlib>

namespace npu::test {

/// The folder of npu_backend_aten.so and npu_backend_onednn.so.
inline const char* backend_dir() {
  const char* folder = std::getenv("NPU_TEST_BACKEND_DIR");
  return folder != nullptr ? folder : NPU_TEST_BACKEND_DIR;
}

/// The folder of the backends that the tests build: skeletons, and those of
/// device/wrap_backend.cpp.
inline const char* vendor_dir() {
  const char* folder = std::getenv("NPU_TEST_VENDOR_DIR");
  return folder != nullptr ? folder : NPU_TEST_VENDOR_DIR;
}

/// Lets libcore load the backends that were built beside the tests. False if CMake left one of the
/// two out: a test that needs both has nothing to do then; one that is missing otherwise is a
/// failure.
inline bool use_backends() {
  ::setenv("NPU_BACKEND_PATH", backend_dir(), 1);
  return NPU_TEST_HAS_BACKENDS != 0;
}

}  // namespace npu::test
