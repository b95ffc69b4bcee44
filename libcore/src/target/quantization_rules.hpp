// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/target/target.hpp"
#include "quant/quant_form.hpp"

namespace npu {

/// The `quantization` section of a device: which integers its ops take.
struct QuantizationRules {
  std::string device;  ///< whose section it is; empty: none has one
  std::string activations_text = "uint8 asymmetric";
  QuantForm activations;
  std::string weights_text = "int8 per-channel symmetric";
  QuantForm weights{DType::kInt8, -127, 127, true};  ///< for each channel of the result
  bool float_ops = true;                             ///< whether it runs ops in float as well
  bool integer_biases = false;  ///< int32, with the scale of the sums of products
  bool integer_io = false;      ///< what enters and leaves the device are integers
  std::string reason;           ///< why weights have less than 8 bits; empty: a section says so
};

/// The rules of a device: the defaults, overridden by its section; nothing if it has none.
std::optional<QuantizationRules> quantization_rules(const Target& target,
                                                    const std::string& device);

/// The rules of the first device that has a section. If none has one: the defaults, but weights of
/// 7 bits if a backend runs on this machine's CPU and that one adds only such products exactly.
QuantizationRules target_rules(const Target& target);

/// Adds an error for every fault of a `quantization` section, located below `pointer`.
void check_quantization_rules(const Json& section, const std::string& file,
                              const std::string& pointer, Diagnostics& diagnostics);

}  // namespace npu
