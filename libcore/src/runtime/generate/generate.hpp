// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/generate/ladder.hpp"
#include "runtime/generate/sampler.hpp"
#include "runtime/generate/step_model.hpp"
#include "runtime/generate/token_file.hpp"

namespace npu {

struct GenerateOptions {
  std::int64_t count = 1;               ///< new ids of a request, at most
  std::vector<std::int64_t> stop = {};  ///< ids that end a request, as its last one
  bool keep = false;                    ///< a request goes on behind the one before
  bool keep_ids = false;                ///< the result has the new ids
  bool is_restored = false;   ///< the model's states have been, so the first request has no source
  std::int64_t position = 0;  ///< of the first id, with is_restored
  SamplerOptions sampler = {};
};

/// Takes the new ids, one by one. False ends the loop: nobody reads them any longer.
class IdSink {
 public:
  IdSink() = default;
  virtual ~IdSink() = default;
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;
  virtual bool id(std::int64_t id) = 0;
  virtual bool end_line() = 0;
};

/// Why a request has ended.
enum class Ended : std::uint8_t { kCount, kStop, kCapacity };
/// "count", "stop" or "capacity".
const char* ended_name(Ended ended) noexcept;

struct GeneratedRequest {
  std::int64_t prompt = 0;  ///< ids of its line
  std::int64_t new_ids = 0;
  Ended ended = Ended::kCount;
  double first_token_ms = 0;  ///< from its begin
  double prefill_ms = 0;
  double encode_ms = 0;
  std::string encode_entry = {};                      ///< that has read the source; empty: none
  std::map<std::int64_t, std::int64_t> entries = {};  ///< prefill steps, by their rows
  std::vector<std::int64_t> ids = {};                 ///< with keep_ids
};

struct GenerateResult {
  std::vector<GeneratedRequest> requests;
  std::int64_t prefill_ids = 0;  ///< read by prefill steps
  double prefill_ms = 0;
  std::vector<double> step_ms;  ///< of every id but the first of each request, with its draw
  double sampler_ms = 0;
  double position_sum = 0;          ///< positions in use, over the steps of step_ms
  std::int64_t copied_bytes = 0;    ///< of states, in the step that copied most
  std::int64_t transfer_bytes = 0;  ///< likewise
  std::int64_t position = 0;        ///< behind the last id that was read
  bool is_cut_short = false;        ///< nobody read the ids any longer
};

/// What has been done of a request.
struct GenerateProgress {
  std::size_t request = 0;  ///< from 1
  std::int64_t new_ids = 0;
  std::int64_t count = 0;        ///< that they may become
  double ids_per_second = 0;     ///< of this request; 0: not known
  std::int64_t prompt_left = 0;  ///< ids of the prompt that are still to be read
};
using GenerateProgressCallback = std::function<void(const GenerateProgress&)>;

/// What the decoder reads first, and what the encoder reads before, if the model has one.
struct Request {
  Request(TokenLine tokens, std::optional<Tensor> from = {})  // NOLINT(google-explicit-constructor)
      : line(std::move(tokens)), source(std::move(from)) {}
  TokenLine line;
  std::optional<Tensor> source;
};
/// The requests, one after the other; nothing at the end.
using RequestSource = std::function<std::optional<Request>()>;

/// Throws Error kInfeasible if a prompt does not fit in the model, with `used` positions taken.
void check_prompt(const TokenLine& line, const std::string& file, const StepModel& model,
                  std::int64_t used);

/// Throws Error kUsage if a request of a model with an encoder has no source, unless it `may` have
/// none; and what the model's check_source throws, with the request's line.
void check_source(const Request& request, const std::string& file, const StepModel& model,
                  bool may_lack);

/// Lets the encoder read the source of each request, if there is one, then reads its prompt by the
/// cheapest steps and draws ids until the count, a stop id or the capacity is reached. Without
/// `keep` the model is cleared for each request but the first one of restored states. Throws Error
/// kInfeasible for a prompt that does not fit, before anything of it is computed, or a source
/// (check_source); kFailed, with step and entry, for a logit that is NaN; and what the model
/// throws. `file` stands for the requests in messages.
GenerateResult generate(StepModel& model, const RequestSource& requests, const std::string& file,
                        const GenerateOptions& options, IdSink& sink,
                        const GenerateProgressCallback& progress);

}  // namespace npu
