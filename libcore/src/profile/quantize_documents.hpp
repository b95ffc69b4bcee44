// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "npu/support/error.hpp"
#include "profile/compile_quantized.hpp"
#include "runtime/entries/compile_entries.hpp"

namespace npu {

/// quantize_document for several documents of one bundle, which keep their order; returns what each
/// is by itself. A file of samples for one input is for the documents that have it, or with
/// "ENTRY:INPUT" for document ENTRY, as are all tensors of a safetensors file called "ENTRY=FILE".
/// A state that one document writes and another one reads is there what the first gives for the
/// same sample. Channels that are multiplied by one weight in several documents are smoothed as in
/// the first of them, so that the integers of the weight are the same in all. Throws Error kUsage
/// for a file that is for no document, and what quantize_document throws; the result is meaningful
/// only if there are no errors.
std::vector<CompileQuantizedResult> quantize_documents(std::vector<DocumentToCompile>& documents,
                                                       const CompileQuantizedOptions& options,
                                                       Diagnostics& diagnostics);

/// compile_quantized_metrics of all: sums, but for the worst snr_db, max_abs_error, gap and
/// predicted_error.
std::map<std::string, double> quantized_documents_metrics(
    const std::vector<CompileQuantizedResult>& results);

}  // namespace npu
