// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/compile_model.hpp"
#include "npu/support/error.hpp"
#include "runtime/entries/best_sizes.hpp"

namespace npu {

/// "B=1,S=512": the name of a choice of sizes, and of its entry in a bundle.
std::string bucket_name(const SizeBindings& bucket);

/// The graph that is compiled for a choice of sizes: it runs at any sizes up to them, padded, and
/// has the certificate that says so (npu.padding). Collects faults, nodes without a rule among
/// them.
Graph bucket_graph(const Template& model, const SizeBindings& bucket, Diagnostics& diagnostics);

/// The same for a token loop: a decoder's logits (npu.generate of npu-ir(5)) are those of the last
/// token alone. Nothing if the model is no decoder, if the choice has one token, or if computing
/// one row of logits takes as much as computing all.
std::optional<Graph> last_row_graph(const Template& model, const SizeBindings& bucket,
                                    Diagnostics& diagnostics);

/// The choices in a sorted list. Throws Error kUsage for a name that the template does not have, a
/// symbol without a value, a value outside of its range, a choice that stands there twice, none, or
/// more than 1,024.
std::vector<SizeBindings> checked_buckets(const Template& model, std::vector<SizeBindings> buckets);

/// The best sizes of the template's only symbol for how long requests are, by the predicted times
/// of the documents at their lengths: of up to 25 of them, between which times are interpolated.
/// Collects faults of these documents. Throws Error kUsage if the template has another symbol than
/// `symbol`, or if a length is outside of its range.
BestSizes auto_sizes(const Template& model, const std::string& symbol, std::size_t most,
                     const std::vector<LengthCount>& lengths, const CompileModelOptions& options,
                     Diagnostics& diagnostics);

}  // namespace npu
