// SPDX-License-Identifier: Apache-2.0
// The requests of a token loop: lines of ids for a decoder, and for an encoder a line of ids or a
// tensor each. A file of requests is checked as a whole before anything is computed; a pipe is read
// line by line, so that a tokenizer can stand in front.
#include "requests.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "io.hpp"
#include "npu/support/file_io.hpp"
#include "runtime/generate/source_tensors.hpp"

namespace npu::cli {
namespace {

/// Lines of ids of a stream that is read once.
class LineStream {
 public:
  LineStream(const std::string& path, std::int64_t vocabulary)
      : descriptor_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
        reader_(source_of_descriptor(descriptor_, input_name(path)), input_name(path), vocabulary) {
    if (descriptor_ >= 0) return;
    throw Error(ErrorCode::kIo, std::string("cannot open: ") + std::strerror(errno),
                {.file = path});
  }
  ~LineStream() {
    if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
  }
  LineStream(const LineStream&) = delete;
  LineStream& operator=(const LineStream&) = delete;

  std::optional<TokenLine> next() {
    auto line = reader_.next();
    if (!line && is_empty_) {
      throw Error(ErrorCode::kParse,
                  descriptor_ == STDIN_FILENO
                      ? "the input is empty; did the command before this one in the pipe fail?"
                      : "the file is empty",
                  {.file = reader_.file()});
    }
    is_empty_ = false;
    return line;
  }

 private:
  int descriptor_;
  TokenReader reader_;
  bool is_empty_ = true;
};

bool is_read_at_once(const std::string& path) {
  return path.empty() || (path != "-" && is_regular_file(path));
}

/// Joins the streams of ids and of sources.
class Requests {
 public:
  Requests(const RequestFiles& files, const SessionModel& model)
      : files_(files), model_(model), start_(model.start()) {
    if (!files.tokens.empty()) tokens_.emplace(files.tokens, model.vocabulary());
    if (!files.source.empty()) sources_.emplace(files.source, model.source()->vocabulary);
    if (!files.inputs.empty()) tensors_ = read_sources(files.inputs, *model.source());
  }

  std::optional<Request> next() {
    ++number_;
    auto line = tokens_ ? tokens_->next() : std::nullopt;
    if (tokens_ && !line && !has_sources()) return std::nullopt;
    std::optional<Tensor> source = next_source();
    if (tokens_ && has_sources() && line.has_value() != source.has_value()) {
      refuse_count(line.has_value());
    }
    if (!tokens_) {
      if (!source) return std::nullopt;
      line.emplace().number = number_;
      line->ids = start_;
    }
    if (!line) return std::nullopt;
    Request request(*std::move(line), std::move(source));
    const bool may_lack = files_.is_restored && number_ == 1;
    check_source(request, input_name(source_name()), model_, may_lack);
    return request;
  }

 private:
  bool has_sources() const noexcept { return sources_.has_value() || !files_.inputs.empty(); }

  std::optional<Tensor> next_source() {
    if (sources_) {
      const auto ids = sources_->next();
      return ids ? std::optional(source_of_ids(ids->ids)) : std::nullopt;
    }
    const auto place = static_cast<std::size_t>(number_) - 1;
    return place < tensors_.size() ? std::optional(tensors_[place]) : std::nullopt;
  }

  const std::string& source_name() const noexcept {
    if (!files_.source.empty()) return files_.source;
    return files_.inputs.empty() ? files_.tokens : files_.inputs.front().path;
  }

  /// `has_line`: there is a line of ids without a source, else a source without a line.
  [[noreturn]] void refuse_count(bool has_line) const {
    const std::string count = std::to_string(number_ - 1);
    const std::string sources = input_name(source_name());
    const std::string tokens = input_name(files_.tokens);
    throw Error(ErrorCode::kUsage,
                has_line ? "request " + std::to_string(number_) + " has no source: " + sources +
                               " has " + count
                         : sources + " has more sources than the " + count + " lines here",
                {.file = tokens});
  }

  const RequestFiles files_;
  const SessionModel& model_;
  std::vector<std::int64_t> start_;
  std::optional<LineStream> tokens_;
  std::optional<LineStream> sources_;
  std::vector<Tensor> tensors_;
  std::int64_t number_ = 0;  // of the last request
};

/// Throws Error kUsage for files that the model has no use for, or lacks.
void check_files(const RequestFiles& files, const SessionModel& model) {
  const SourceInput* source = model.source();
  const bool has_sources = !files.source.empty() || !files.inputs.empty();
  if (files.tokens.empty() && model.start().empty()) {
    throw Error(ErrorCode::kUsage,
                "the model does not say which ids it begins with (npu.generate of npu-ir(5)): give "
                "--tokens FILE");
  }
  if (source == nullptr) {
    if (!has_sources) return;
    throw Error(ErrorCode::kUsage,
                std::string(files.source.empty() ? "--inputs" : "--source") +
                    ": the model has no encoder that reads a source (npu.generate of npu-ir(5))");
  }
  if (!files.source.empty() && source->vocabulary == 0) {
    throw Error(ErrorCode::kUsage, "--source: the encoder reads '" + source->name + "', " +
                                       std::string(dtype_name(source->dtype)) + " " +
                                       shape_text(source->shape) + ", and no ids: give --inputs " +
                                       source->name + "=FILE");
  }
  if (!has_sources && !files.is_restored) {
    throw Error(ErrorCode::kUsage,
                "the model has an encoder, which reads '" + source->name + "': give " +
                    (source->vocabulary > 0 ? "--source FILE with a line of ids for each request"
                                            : "--inputs " + source->name + "=FILE"));
  }
  if (has_sources && files.is_restored) {
    throw Error(ErrorCode::kUsage,
                "--state-in goes on with the source that its states are of; give no other one");
  }
}

}  // namespace

const std::string& RequestFiles::name() const noexcept {
  if (!tokens.empty()) return tokens;
  return source.empty() && !inputs.empty() ? inputs.front().path : source;
}

RequestSource requests_of(const RequestFiles& files, const SessionModel& model) {
  check_files(files, model);
  const auto requests = std::make_shared<Requests>(files, model);
  if (!is_read_at_once(files.tokens) || !is_read_at_once(files.source)) {
    return [requests] { return requests->next(); };
  }
  std::vector<Request> all;
  while (auto request = requests->next()) {
    check_prompt(request->line, files.name(), model, 0);
    all.push_back(*std::move(request));
  }
  return [all = std::move(all), next = std::size_t{0}]() mutable -> std::optional<Request> {
    if (next == all.size()) return std::nullopt;
    return std::move(all[next++]);
  };
}

}  // namespace npu::cli
