// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "npu/tensor/dtype.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// An entry of a decoder that takes tokens.
struct StepEntry {
  std::string name = {};
  std::int64_t rows = 0;       ///< tokens of a step, at most
  double predicted_us = 0;     ///< 0: not known
  bool gives_all_rows = true;  ///< logits of every token, else of the last one
  bool pads = true;            ///< a step may have fewer tokens
};

/// What an encoder reads of a request, before the first step of the decoder.
struct SourceInput {
  std::string name = {};
  DType dtype = DType::kInt64;
  Shape shape = {};             ///< in the largest entry; the first dimension is 1
  std::int64_t vocabulary = 0;  ///< ids are below it; 0: it is no list of ids, int64 [1, S]
};

/// A state, as reports name it.
struct StepState {
  std::string name;
  std::string device;
  std::string path;  ///< "in_place", "in_turns", "copied" or "kept"
  std::int64_t bytes = 0;
};

/// What reports say about a model, beside its steps.
struct StepModelFacts {
  std::string model = {};
  std::string target = {};
  std::string precision = {};
  std::map<std::string, std::string> backends = {};  ///< version by name
  double load_ms = 0;
  std::int64_t weight_bytes = 0;  ///< that a step reads
  std::int64_t row_bytes = 0;     ///< of the states, for each position in use
  std::int64_t fixed_bytes = 0;   ///< of the states that have no rows by position
  double memory_bandwidth = 0;    ///< bytes/s of the device with the weights; 0: not known
  std::vector<StepState> states = {};
};

/// A decoder that remembers: what a token loop needs of it.
class StepModel {
 public:
  StepModel() = default;
  virtual ~StepModel() = default;
  StepModel(const StepModel&) = delete;
  StepModel& operator=(const StepModel&) = delete;

  /// At least one.
  virtual const std::vector<StepEntry>& entries() const = 0;
  /// Positions that there is room for; the largest integer if nothing limits them.
  virtual std::int64_t capacity() const = 0;
  virtual std::int64_t vocabulary() const = 0;
  /// What a request has to have beside ids; null if the model has no encoder.
  virtual const SourceInput* source() const { return nullptr; }
  /// Throws Error kInfeasible for a source that is larger than every entry of the encoder, kUsage
  /// for one of another dtype or shape; nothing is computed.
  virtual void check_source(const Tensor& /*source*/) const {}
  /// Lets the encoder read a source, whose results replace those of the one before. Returns the
  /// name of the entry. Throws as check_source does.
  virtual std::string encode(const Tensor& /*source*/) { return {}; }
  /// One step: `ids`, 1 to the entry's rows, at the positions from `first` on. Gives the logits of
  /// every id, or of the last one, vocabulary() each; valid until the next call.
  virtual std::span<const float> step(std::size_t entry, std::span<const std::int64_t> ids,
                                      std::int64_t first) = 0;
  /// Forgets everything: what follows begins at position 0.
  virtual void clear() = 0;
  /// Bytes of states that the last step copied within a device, and moved between devices.
  virtual std::int64_t state_copied_bytes() const = 0;
  virtual std::int64_t state_transfer_bytes() const = 0;
};

}  // namespace npu
