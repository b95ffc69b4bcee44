// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/size_expression.hpp"
#include "ir/size_symbols.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu {

/// A document of a model at one size.
struct SizeSample {
  SizeBindings values;  ///< one for each symbol
  Json document;
};

/// Values for `symbols` at which a model is looked at, so that unify_sizes can tell expressions
/// apart: three sizes that follow each other and larger ones, `apart` steps from each other, for
/// each symbol, from `least` up in multiples of `step`, the symbols independent of each other.
std::vector<SizeBindings> sizes_to_sample(const std::vector<std::string>& symbols,
                                          std::int64_t least, std::int64_t step,
                                          std::int64_t apart = 7);

/// Makes one template of documents that differ in sizes alone: each integer of a shape or in attrs
/// that differs becomes an expression which has the samples' values: what the op's own formula
/// gives, a size that is known already, sums of multiples of the symbols, products and sums of
/// known sizes, a division if only one is possible, a part of a product of two or three known
/// sizes. What follows none is a fault, told with its node and argument. `npu.symbols` is
/// `symbols`.
///
/// Constants and weights must be equal. Names of those that are not are added to `varying`, if it
/// is not null, instead of a fault.
std::optional<Json> unify_sizes(const std::vector<SizeSample>& samples, const SizeSymbols& symbols,
                                std::set<std::string>* varying, const std::string& file,
                                Diagnostics& diagnostics);

}  // namespace npu
