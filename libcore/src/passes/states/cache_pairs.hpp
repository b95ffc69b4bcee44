// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/states_section.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::states {

/// A cache that a model takes as an input and gives, longer, as an output.
struct CachePair {
  std::string input;   ///< the graph input, with the rows of the past
  std::string output;  ///< the graph output, with these and the new ones
  std::string node;    ///< the concatenation, or the index_copy of a buffer of fixed size
  std::string index;   ///< of an index_copy, the places of the new rows; empty: a concatenation
  std::string fresh;   ///< the tensor with the new rows
  std::size_t axis = 0;
};

/// The caches of a decoder, and their sizes.
struct CachePairs {
  std::vector<CachePair> pairs;
  std::string past_symbol;
  /// Rows along the caches' axes. `total` is that of the outputs: the sum of the others, or the
  /// fixed size of a buffer.
  SizeExpression past, fresh, total;
  bool is_fixed = false;
  /// What symbols of the template are in terms of `past_symbol`, which is none of a model with
  /// buffers of fixed size: the number of past rows is what its mask and positions say.
  SizeSubstitution substitution = {};

  /// The rows that count after the step.
  SizeExpression used() const { return past + fresh; }
};

/// The names of the tensors that a list of a document or of a node mentions, in its order.
std::vector<std::string> names_in(const Json& object, const char* list);

/// Symbols of a batch, which are to be 1: the first dimensions of caches, and others of them that
/// are the first of an input that is none.
std::vector<std::string> batch_symbols(const Template& model, const CachePairs& caches);

/// Finds the outputs that are a graph input with new rows behind it, but for `others`, which are
/// states of another kind. Adds an error where there are none, where an output that is called so is
/// none, and where their sizes differ.
std::optional<CachePairs> find_cache_pairs(const Template& model, const std::vector<State>& others,
                                           Diagnostics& diagnostics);

}  // namespace npu::states
