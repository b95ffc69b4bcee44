// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ir/bind_sizes.hpp"
#include "ir/size_expression.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/executor.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// Which entries of a bundle a session has, where there are two for the same sizes: that for a
/// token loop, with the logits of the last token, or the one with those of all tokens.
enum class SessionLogits : std::uint8_t { kLastRow, kAllRows };

/// A model that remembers: the programs of all entries of a bundle, whatever documents they are
/// made of, or of one document, and the states that they share on the devices. For one thread.
class Session {
 public:
  struct Entry {
    std::string name;      ///< empty: there is only this one, without a template
    std::string document;  ///< that it is made of; empty: there is only this one
    SizeBindings bound;
    double predicted_us = 0;
  };

  /// Loads the entries of a bundle, which has to outlive the session; nothing is compiled. States
  /// have their first value. Collects faults; null if there are any. Throws Error if entries
  /// disagree about a state.
  static std::unique_ptr<Session> open(const Bundle& bundle, const RunModelOptions& options,
                                       SessionLogits logits, Diagnostics& diagnostics);
  /// Places and compiles a document, as run_model does; it has one entry.
  static std::unique_ptr<Session> open(Graph graph, const RunModelOptions& options,
                                       Diagnostics& diagnostics);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::vector<Entry>& entries() const noexcept;
  /// One step. `inputs` by name, at their valid sizes, without states; they are padded to the entry
  /// by repeating the last row. Gives the outputs that are no states, by output_names, cut to the
  /// valid rows. Sizes that `valid` lacks are those of the entry. Throws Error for an input that is
  /// missing, unknown or of another dtype or shape, and what a run throws.
  std::vector<Tensor> step(std::size_t entry, const std::vector<NamedTensor>& inputs,
                           const SizeBindings& valid);
  const std::vector<std::string>& output_names(std::size_t entry) const;
  /// The template that an entry is bound from; null if there is none.
  const Template* sizes(std::size_t entry) const;
  /// The inputs of a step, states and valid sizes excepted, with their shapes in the entry.
  const Graph& graph(std::size_t entry) const;

  /// States back to their first value, zero.
  void clear();
  /// On the host, by name, in the order of states().
  std::vector<NamedTensor> state_values() const;
  /// All or nothing; throws Error with what differs.
  void set_state_values(const std::vector<NamedTensor>& values);

  /// What steps do to each state: of the entries, what the one does that copies or moves most.
  std::vector<StateUse> states() const;
  /// Bytes that the last step copied within a device, or moved between devices, of states alone.
  std::int64_t copied_bytes() const;
  std::int64_t transfer_bytes() const;
  /// Of loading the entries.
  double load_ms() const noexcept;

 private:
  struct Parts;
  explicit Session(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace npu
