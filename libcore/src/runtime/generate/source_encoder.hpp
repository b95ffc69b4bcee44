// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "npu/compile/bundle.hpp"
#include "npu/tensor/tensor.hpp"
#include "runtime/entries/choose_entry.hpp"
#include "runtime/generate/step_model.hpp"
#include "runtime/session/session.hpp"

namespace npu {

/// The entries of a session that read the source of a request, an encoder's, for sources of several
/// sizes. What they give is in states, which a decoder reads.
class SourceEncoder {
 public:
  /// Adds an entry whose input `source` has that role. Throws Error kUnsupported if it is not of
  /// the same document as those before, or if the entry has an input that is neither a state nor
  /// the source.
  void add_entry(const Session& session, std::size_t entry, const std::string& source,
                 const std::string& file);

  bool is_empty() const noexcept { return places_.empty(); }
  const SourceInput& input() const noexcept { return input_; }

  /// Throws as StepModel::check_source does.
  void check(const Session& session, const Tensor& source) const;
  /// Runs the entry with the least predicted time that has room for a source; returns its name.
  std::string encode(Session& session, const Tensor& source) const;

 private:
  /// The entry, by its place in `places_`, and the sizes.
  ChosenEntry choose(const Session& session, const Tensor& source) const;

  SourceInput input_;
  std::vector<std::size_t> places_;   // of entries in the session
  std::vector<BundleEntry> entries_;  // their names, sizes and times
};

}  // namespace npu
