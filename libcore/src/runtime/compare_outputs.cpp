// SPDX-License-Identifier: Apache-2.0
// Compares the outputs of a run with those of a file or of another run, each with the tolerance of
// its dtype. O(bytes).
#include "runtime/compare_outputs.hpp"

#include "npu/support/error.hpp"
#include "npu/tensor/safetensors.hpp"
#include "tensor/onnx_tensor.hpp"

namespace npu {
namespace {

void read_safetensors_outputs(const std::vector<std::string>& names, const std::string& path,
                              std::vector<std::optional<Tensor>>& expected) {
  const SafetensorsFile file(path);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const SafetensorsEntry* entry = file.find(names[i]);
    if (entry == nullptr && names.size() == 1 && file.entries().size() == 1) {
      entry = &file.entries().front();
    }
    if (entry != nullptr) expected[i] = file.tensor(*entry);
  }
}

}  // namespace

bool is_narrow_precision(std::string_view precision) {
  return precision == "bf16" || precision == "f16";
}

Tolerance tolerance_for(DType dtype, const ToleranceOptions& options) {
  const bool is_narrow = dtype == DType::kBFloat16 || dtype == DType::kFloat16 || options.is_narrow;
  return {options.rtol.value_or(is_narrow ? 2e-2 : 1e-3),
          options.atol.value_or(is_narrow ? 2e-2 : 1e-4)};
}

ComparisonReport compare_outputs(const std::vector<std::string>& names,
                                 const std::vector<Tensor>& outputs,
                                 const std::vector<std::optional<Tensor>>& expected,
                                 const ToleranceOptions& tolerance) {
  ComparisonReport report;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    OutputComparison output{.name = names[i],
                            .comparison = {},
                            .tolerance = tolerance_for(outputs[i].dtype(), tolerance)};
    if (expected[i]) {
      output.comparison = compare_tensors(outputs[i], *expected[i], output.tolerance);
    } else {
      output.comparison.ok = false;
      output.comparison.mismatch = "is not in the file";
    }
    report.outputs.push_back(std::move(output));
  }
  return report;
}

std::vector<std::optional<Tensor>> expected_outputs(const std::vector<std::string>& names,
                                                    const std::vector<InputFile>& files) {
  std::vector<std::optional<Tensor>> expected(names.size());
  for (const InputFile& file : files) {
    if (!file.path.ends_with(".pb")) {
      read_safetensors_outputs(names, file.path, expected);
      continue;
    }
    std::string name;
    const Tensor tensor = read_onnx_tensor(file.path, &name);
    if (file.input) name = *file.input;
    bool is_placed = false;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const bool is_it = names[i] == name || (names.size() == 1 && !file.input);
      if (is_it) expected[i] = tensor;
      is_placed = is_placed || is_it;
    }
    if (!is_placed) {
      throw Error(ErrorCode::kInvalidGraph,
                  "the graph has no output '" + name + "'; say which as --expect NAME=FILE.pb",
                  {.file = file.path});
    }
  }
  return expected;
}

}  // namespace npu
