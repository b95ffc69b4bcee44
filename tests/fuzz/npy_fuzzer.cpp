// SPDX-License-Identifier: Apache-2.0
// The .npy reader, with and without a dtype that the caller expects.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/support/error.hpp"
#include "tensor/npy.hpp"

using npu::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const npu::DType bfloat16 = npu::DType::kBFloat16;
  const npu::DType float32 = npu::DType::kFloat32;
  for (const npu::DType* expected :
       {static_cast<const npu::DType*>(nullptr), &bfloat16, &float32}) {
    try {
      const npu::Tensor tensor = npu::parse_npy(bytes, "fuzz.npy", expected);
      require(tensor.bytes() <= size, "an array is no larger than its file");
      double sum = 0;
      for (std::int64_t i = 0; i < tensor.element_count(); ++i) sum += tensor.value_as_double(i);
      volatile double used = sum;
      static_cast<void>(used);
    } catch (const npu::Error& error) {
      require(!error.message().empty() && error.location().file == "fuzz.npy",
              "errors say what and where");
    }
  }
  return 0;
}
