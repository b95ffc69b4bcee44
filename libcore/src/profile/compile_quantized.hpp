// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/error.hpp"
#include "passes/quantize/quantize.hpp"
#include "profile/product_ranges.hpp"
#include "runtime/entries/compile_entries.hpp"

namespace npu {

/// The options of npu-compile --quantize.
struct CompileQuantizedOptions {
  CompileModelOptions model;  ///< its target is that of calibration and precisions as well
  QuantizeOptions precision;
  std::vector<InputFile> samples;
  std::vector<NamedTensor> states = {};      ///< samples of states, see SampleFiles
  WeightFactors factors = {};                ///< see CalibrateOptions
  std::set<std::string> wanted_states = {};  ///< those that the result is to have
  std::int64_t compared_samples = 16;  ///< at most, on which the result is compared with float
};

/// How far a model is from itself in float32.
struct FloatComparison {
  std::int64_t samples = 0;
  double snr_db = 0;   ///< of the worst output, over all samples
  double max_abs = 0;  ///< of any output
};

struct CompileQuantizedResult {
  QuantizeResult precision;
  CompileModelResult model;
  std::vector<NamedTensor> states;       ///< those that were wanted, behind each sample in float32
  WeightFactors factors;                 ///< of the model's weights
  std::optional<FloatComparison> error;  ///< nothing if no output has floating-point numbers
};

/// Records what the tensors of a model hold when it runs on samples, gives every op a precision,
/// compiles the result like compile_model, and compares it with the model in float32, compiled
/// likewise. The same as npu-profile --calibrate, npu-align --quantize and npu-compile one after
/// the other: the content has the same bytes. Throws what these throw.
CompileQuantizedResult compile_quantized(Graph& graph, const CompileQuantizedOptions& options,
                                         Diagnostics& diagnostics);

/// The sizes that a template has in the samples. Throws Error kUsage if they do not say one.
SizeBindings sample_sizes(const Template& model, const std::vector<InputFile>& samples);

/// A document on its way to a bundle with entries.
struct QuantizedDocument {
  DocumentToCompile document;     ///< a template's sizes vary as before
  CompileQuantizedResult sample;  ///< the same compiled alone, a template at sample_sizes
};

/// Calibrates a document, a template at the sizes that the samples have, and gives it precisions:
/// those of tensors do not depend on sizes. Compares with float32 at these sizes. Throws what
/// compile_quantized and sample_sizes do.
QuantizedDocument quantize_document(DocumentToCompile document,
                                    const CompileQuantizedOptions& options,
                                    Diagnostics& diagnostics);

/// One line about the share of int8 and the error.
std::string quantized_summary(const CompileQuantizedResult& result);
/// Those of compile_metrics and quantize_metrics, snr_db and max_abs_error; int8_macs is that of
/// the compiled model.
std::map<std::string, double> compile_quantized_metrics(const CompileQuantizedResult& result);

}  // namespace npu
