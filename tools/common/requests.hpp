// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "npu/runtime/run_model.hpp"
#include "npu/tensor/tensor.hpp"
#include "runtime/generate/generate.hpp"
#include "runtime/generate/session_model.hpp"

namespace npu::cli {

/// Where requests come from.
struct RequestFiles {
  std::string tokens;             ///< FILE, or "-"; empty: every request begins as the model says
  std::string source;             ///< FILE, or "-"; empty: `inputs` has the sources, if any
  std::vector<InputFile> inputs;  ///< tensors that an encoder reads
  bool is_restored = false;       ///< the first request goes on in restored states

  /// What messages and reports name: that of tokens, else of sources.
  const std::string& name() const noexcept;
};

/// The requests for a model, in which each line of ids has the source of its place. Regular files
/// are read and checked at once, others line by line. Throws Error for what does not suit the
/// model, and, now or when it is seen, if there are not as many sources as requests. `model` has to
/// outlive the result.
RequestSource requests_of(const RequestFiles& files, const SessionModel& model);

}  // namespace npu::cli
