// SPDX-License-Identifier: Apache-2.0
// What calibration found: an input is refused with a message, or can be written, read again, and
// every tensor in it gets a range, a scale and a zero point.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "npu/support/error.hpp"
#include "quant/choose_range.hpp"

using npu::fuzz::require;

namespace {

void use(const npu::TensorRange& tensor) {
  for (const char* text : {"minmax", "average", "percentile=99.9", "entropy", "mse"}) {
    for (const bool symmetric : {false, true}) {
      const npu::QuantForm form{npu::DType::kInt8, -128, 127, symmetric};
      const npu::NumberRange range =
          npu::choose_range(tensor, npu::CalibrationMethod::parse(text), form);
      require(range.low <= 0 && range.high >= 0, "0 is in the range");
      const npu::QuantParams params = npu::quant_params(range, form);
      require(params.scale > 0 && std::isfinite(params.scale), "the scale is a number");
      require(form.low <= params.zero_point && params.zero_point <= form.high, "0 is exact");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  npu::TensorRanges ranges;
  try {
    ranges = npu::TensorRanges::parse(npu::parse_json(text, "fuzz.json"), "fuzz.json");
  } catch (const npu::Error& error) {
    require(!error.message().empty() && error.location().file == "fuzz.json",
            "messages say what and where");
    return 0;
  }
  const npu::Json json = ranges.to_json();
  require(npu::TensorRanges::parse(json, "again.json").to_json() == json,
          "what is written is read again");
  for (const npu::TensorRange& tensor : ranges.tensors) use(tensor);
  return 0;
}
