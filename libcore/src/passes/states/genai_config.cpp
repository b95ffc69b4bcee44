// SPDX-License-Identifier: Apache-2.0
// Reads the file that the model builder of onnxruntime-genai puts beside a decoder: the names of
// its inputs and outputs, and how long a sequence may be. What else is in it concerns other parts
// of a pipeline. O(size).
#include "passes/states/genai_config.hpp"

#include <initializer_list>
#include <limits>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "support/json_fields.hpp"

namespace npu {
namespace {

/// A member of objects inside of each other; null if one is missing.
class Section {
 public:
  Section(const Json& root, const std::string& file, std::initializer_list<const char*> path)
      : file_(file) {
    const Json* at = &root;
    for (const char* key : path) {
      at = find_member(*at, key);
      if (at == nullptr) return;
      pointer_ += std::string("/") + key;
      if (!at->is_object()) fail(pointer_, "an object", *at);
    }
    object_ = at;
  }

  std::string text(const char* key) const {
    const Json* value = object_ == nullptr ? nullptr : find_member(*object_, key);
    if (value == nullptr) return {};
    if (!value->is_string()) fail(pointer_ + "/" + key, "a string", *value);
    return value->get<std::string>();
  }
  std::optional<std::int64_t> count(const char* key) const {
    const Json* value = object_ == nullptr ? nullptr : find_member(*object_, key);
    if (value == nullptr) return std::nullopt;
    const auto number = json_integer(value);
    if (!number || *number < 1 || *number > std::numeric_limits<std::int32_t>::max()) {
      fail(pointer_ + "/" + key, "a number of tokens above 0", *value);
    }
    return number;
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const char* expected,
                         const Json& found) const {
    throw Error(ErrorCode::kParse,
                std::string("expected ") + expected + ", found " + value_or_type(&found),
                {.file = file_, .pointer = pointer});
  }

  const Json* object_ = nullptr;
  const std::string& file_;
  std::string pointer_;
};

}  // namespace

GenaiConfig genai_config(const Json& root, const std::string& file) {
  if (!root.is_object()) {
    throw Error(ErrorCode::kParse, "expected an object, found " + value_or_type(&root),
                {.file = file});
  }
  const Section inputs(root, file, {"model", "decoder", "inputs"});
  const Section outputs(root, file, {"model", "decoder", "outputs"});
  GenaiConfig config;
  config.names.tokens = inputs.text("input_ids");
  config.names.positions = inputs.text("position_ids");
  config.names.mask = inputs.text("attention_mask");
  config.names.logits = outputs.text("logits");
  config.max_length = Section(root, file, {"search"}).count("max_length");
  return config;
}

GenaiConfig read_genai_config(const std::string& file) {
  return genai_config(parse_json(read_file(file), file), file);
}

}  // namespace npu
