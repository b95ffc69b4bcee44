// SPDX-License-Identifier: Apache-2.0
// The token loop: an encoder reads the source, if there is one, a prompt is read by the cheapest
// steps (ladder), then an id is drawn, written and read by a step of one token, until something
// ends the request.
//
// The model holds what it has read; the last id that was drawn has not been read. If the next
// request goes on behind this one, it begins with that id. A request's prompt and new ids together
// are at most the capacity. Besides the model's own, a step costs one pass over the logits for NaN
// and one for the draw; it allocates nothing.
#include "runtime/generate/generate.hpp"

#include <algorithm>
#include <utility>

#include "npu/support/error.hpp"
#include "support/elapsed.hpp"

namespace npu {
namespace {

std::vector<Rung> rungs_of(const std::vector<StepEntry>& entries) {
  std::vector<Rung> rungs;
  for (const StepEntry& entry : entries)
    rungs.push_back({entry.rows, entry.predicted_us, entry.pads});
  return rungs;
}

int located(const TokenLine& line) {
  return static_cast<int>(std::min<std::int64_t>(line.number, 1 << 30));
}

/// The state of the loop.
class TokenLoop {
 public:
  TokenLoop(StepModel& model, std::string file, const GenerateOptions& options, IdSink& sink,
            const GenerateProgressCallback& progress)
      : model_(model),
        file_(std::move(file)),
        options_(options),
        sink_(sink),
        progress_(progress),
        sampler_(options.sampler),
        ladder_(rungs_of(model.entries())) {
    result_.position = options.position;
  }

  /// False if nobody reads the ids any longer.
  bool run(const Request& of) {
    const TokenLine& line = of.line;
    if (!options_.keep && !result_.requests.empty()) {
      pending_.reset();
      result_.position = 0;
      model_.clear();
    }
    check_source(of, file_, model_, options_.is_restored && result_.requests.empty());
    check_prompt(line, file_, model_, used());
    result_.requests.emplace_back();
    GeneratedRequest& request = result_.requests.back();
    request.prompt = static_cast<std::int64_t>(line.ids.size());
    const std::int64_t room = model_.capacity() - used() - request.prompt;
    const auto most = static_cast<std::size_t>(std::min(options_.count, room));
    result_.step_ms.reserve(result_.step_ms.size() + std::min(most, kMostReserved));
    if (options_.keep_ids) request.ids.reserve(std::min(most, kMostReserved));

    const Clock::time_point start = Clock::now();
    if (of.source) {
      request.encode_entry = model_.encode(*of.source);
      request.encode_ms = milliseconds_since(start);
    }
    prefill(line, request);
    for (bool is_first = true;; is_first = false) {
      if (used() >= model_.capacity()) return end(request, Ended::kCapacity);
      const Clock::time_point step_start = Clock::now();
      if (!is_first) decode();
      const std::int64_t id = draw(request);
      if (is_first) {
        request.first_token_ms = milliseconds_since(start);
      } else {
        result_.step_ms.push_back(milliseconds_since(step_start));
      }
      pending_ = id;
      ++request.new_ids;
      if (options_.keep_ids) request.ids.push_back(id);
      report(request, start, 0);
      if (!sink_.id(id)) return cut_short();
      const auto& stop = options_.stop;
      if (std::find(stop.begin(), stop.end(), id) != stop.end()) return end(request, Ended::kStop);
      if (request.new_ids == options_.count) return end(request, Ended::kCount);
    }
  }

  GenerateResult take() { return std::move(result_); }

 private:
  static constexpr std::size_t kMostReserved = std::size_t{1} << 20;

  /// Positions that are in use once the model has read every id.
  std::int64_t used() const noexcept { return result_.position + (pending_ ? 1 : 0); }

  void prefill(const TokenLine& line, GeneratedRequest& request) {
    prompt_.clear();
    if (pending_) prompt_.push_back(*pending_);
    prompt_.insert(prompt_.end(), line.ids.begin(), line.ids.end());
    pending_.reset();
    const Clock::time_point start = Clock::now();
    std::size_t taken = 0;
    for (const LadderStep& step : ladder_.steps(static_cast<std::int64_t>(prompt_.size()))) {
      report(request, start, static_cast<std::int64_t>(prompt_.size() - taken));
      take_step(step.rung, std::span(prompt_).subspan(taken, static_cast<std::size_t>(step.rows)));
      taken += static_cast<std::size_t>(step.rows);
      ++request.entries[model_.entries()[step.rung].rows];
    }
    request.prefill_ms = milliseconds_since(start);
    result_.prefill_ms += request.prefill_ms;
    result_.prefill_ids += static_cast<std::int64_t>(prompt_.size());
  }

  /// Reads the id that was drawn last.
  void decode() {
    const std::int64_t id = *pending_;
    pending_.reset();
    if (!one_) one_ = ladder_.steps(1).front().rung;
    take_step(*one_, std::span(&id, 1));
    result_.position_sum += static_cast<double>(result_.position);
  }

  void take_step(std::size_t entry, std::span<const std::int64_t> ids) {
    logits_ = model_.step(entry, ids, result_.position);
    entry_ = entry;
    result_.position += static_cast<std::int64_t>(ids.size());
    result_.copied_bytes = std::max(result_.copied_bytes, model_.state_copied_bytes());
    result_.transfer_bytes = std::max(result_.transfer_bytes, model_.state_transfer_bytes());
  }

  std::int64_t draw(const GeneratedRequest& request) {
    const Clock::time_point start = Clock::now();
    const auto logits = logits_.last(static_cast<std::size_t>(model_.vocabulary()));
    if (const auto nan = first_nan(logits)) {
      throw Error(ErrorCode::kFailed,
                  "request " + std::to_string(result_.requests.size()) + ", step " +
                      std::to_string(request.new_ids) + " (entry '" +
                      model_.entries()[entry_].name + "'): the logit of id " +
                      std::to_string(*nan) + " is NaN",
                  {.file = file_});
    }
    const std::int64_t id = sampler_.pick(logits, result_.requests.size() - 1,
                                          static_cast<std::uint64_t>(request.new_ids));
    result_.sampler_ms += milliseconds_since(start);
    return id;
  }

  bool end(GeneratedRequest& request, Ended ended) {
    request.ended = ended;
    return sink_.end_line() || cut_short();
  }

  bool cut_short() {
    result_.is_cut_short = true;
    return false;
  }

  void report(const GeneratedRequest& request, Clock::time_point start, std::int64_t left) const {
    if (!progress_) return;
    const double seconds = seconds_since(start);
    progress_({.request = result_.requests.size(),
               .new_ids = request.new_ids,
               .count = options_.count,
               .ids_per_second = seconds > 0 ? static_cast<double>(request.new_ids) / seconds : 0,
               .prompt_left = left});
  }

  StepModel& model_;
  std::string file_;
  const GenerateOptions& options_;
  IdSink& sink_;
  const GenerateProgressCallback& progress_;
  Sampler sampler_;
  Ladder ladder_;
  std::optional<std::size_t> one_;       // the entry that reads one id
  std::vector<std::int64_t> prompt_;     // that is being read
  std::optional<std::int64_t> pending_;  // drawn, not yet read
  std::span<const float> logits_;        // of the last step
  std::size_t entry_ = 0;                // of the last step
  GenerateResult result_;
};

}  // namespace

const char* ended_name(Ended ended) noexcept {
  switch (ended) {
    case Ended::kCount:
      return "count";
    case Ended::kStop:
      return "stop";
    case Ended::kCapacity:
      return "capacity";
  }
  return "";
}

void check_prompt(const TokenLine& line, const std::string& file, const StepModel& model,
                  std::int64_t used) {
  const auto prompt = static_cast<std::int64_t>(line.ids.size());
  const std::int64_t capacity = model.capacity();
  if (prompt <= capacity - used) return;
  std::string text = "the prompt has " + std::to_string(prompt) +
                     " ids, more than the model's capacity of " + std::to_string(capacity);
  if (used > 0) text += ", of which " + std::to_string(used) + " are taken";
  throw Error(ErrorCode::kInfeasible, text, {.file = file, .line = located(line)});
}

void check_source(const Request& request, const std::string& file, const StepModel& model,
                  bool may_lack) {
  const SourceInput* input = model.source();
  if (input == nullptr) return;
  const InputLocation place{.file = file, .line = located(request.line)};
  if (request.source) {
    try {
      return model.check_source(*request.source);
    } catch (const Error& error) {
      throw Error(error.code(), error.message(), place);
    }
  }
  if (may_lack) return;
  throw Error(ErrorCode::kUsage,
              "the request has no source, which the model's encoder reads as '" + input->name +
                  "': give --source FILE with a line of ids for each request, or --inputs",
              place);
}

GenerateResult generate(StepModel& model, const RequestSource& requests, const std::string& file,
                        const GenerateOptions& options, IdSink& sink,
                        const GenerateProgressCallback& progress) {
  TokenLoop loop(model, file, options, sink, progress);
  while (const auto request = requests()) {
    if (!loop.run(*request)) break;
  }
  return loop.take();
}

}  // namespace npu
