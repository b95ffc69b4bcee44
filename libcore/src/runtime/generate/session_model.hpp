// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/generate_section.hpp"
#include "npu/device/blob.hpp"
#include "runtime/generate/source_encoder.hpp"
#include "runtime/generate/step_model.hpp"
#include "runtime/session/session.hpp"

namespace npu {

/// A session as a decoder for the token loop.
class SessionModel : public StepModel {
 public:
  /// `file` stands for the model in messages. Throws Error kUnsupported, with what is missing, for
  /// a session that is no decoder: without roles (npu.generate), with an input that has neither
  /// role nor state, or without an entry that takes tokens.
  SessionModel(std::unique_ptr<Session> session, const std::string& file);

  /// The decoder that a bundle or a document holds; `options` as for run_bundle and run_model.
  /// Collects faults; null if there are any. `logits` says what steps are to give, as far as the
  /// bundle has such entries.
  static std::unique_ptr<SessionModel> open(const Bundle& bundle, const RunModelOptions& options,
                                            SessionLogits logits, Diagnostics& diagnostics);
  static std::unique_ptr<SessionModel> open(Graph graph, const RunModelOptions& options,
                                            Diagnostics& diagnostics);

  const std::vector<StepEntry>& entries() const override { return entries_; }
  std::int64_t capacity() const override { return capacity_; }
  std::int64_t vocabulary() const override { return vocabulary_; }
  const SourceInput* source() const override {
    return encoder_.is_empty() ? nullptr : &encoder_.input();
  }
  void check_source(const Tensor& source) const override { encoder_.check(*session_, source); }
  std::string encode(const Tensor& source) override { return encoder_.encode(*session_, source); }
  std::span<const float> step(std::size_t entry, std::span<const std::int64_t> ids,
                              std::int64_t first) override;
  void clear() override { session_->clear(); }
  std::int64_t state_copied_bytes() const override { return session_->copied_bytes(); }
  std::int64_t state_transfer_bytes() const override { return session_->transfer_bytes(); }

  /// For reports.
  StepModelFacts facts() const;
  /// Ids that a request without ids of its own begins with; empty if there are none.
  const std::vector<std::int64_t>& start() const noexcept { return roles_.start; }
  Session& session() noexcept { return *session_; }

 private:
  /// An entry that takes tokens.
  struct Decoder {
    std::size_t entry = 0;                ///< of the session
    std::vector<NamedTensor> inputs;      ///< tokens, and positions if there is such a role
    std::size_t logits = 0;               ///< place among the outputs of a step
    std::optional<std::string> new_rows;  ///< the symbol of the template that counts tokens
  };
  void add_entry(std::size_t entry, const std::string& file);
  void measure_states(const Graph& graph);

  std::unique_ptr<Session> session_;
  SourceEncoder encoder_;
  GenerateRoles roles_;
  std::vector<StepEntry> entries_;
  std::vector<Decoder> decoders_;  // by entry
  std::string precision_;
  std::int64_t capacity_;
  std::int64_t vocabulary_ = 0;
  std::int64_t row_bytes_ = 0;
  std::int64_t fixed_bytes_ = 0;
  std::vector<Tensor> outputs_;  // of the last step
  std::vector<float> widened_;   // its logits, if they have 16 bits
};

}  // namespace npu
