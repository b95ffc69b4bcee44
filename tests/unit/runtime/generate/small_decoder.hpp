// SPDX-License-Identifier: Apache-2.0
// The small decoder and what NumPy computes of it (testdata/models/decoders/decoder.py).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "ir/bind_sizes.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "runtime/generate/step_model.hpp"

namespace npu::test {

inline std::string decoder_path() {
  return std::string(NPU_TEST_DATA_DIR) + "/models/decoders/decoder_tiny";
}

/// One of decoder_tiny.outputs.safetensors.
inline Tensor decoder_reference(const std::string& name) {
  const SafetensorsFile file(decoder_path() + ".outputs.safetensors");
  const SafetensorsEntry* entry = file.find(name);
  REQUIRE(entry != nullptr);
  return file.tensor(*entry);
}

inline std::vector<std::int64_t> decoder_ids(const std::string& name) {
  const Tensor tensor = decoder_reference(name);
  const auto* ids = tensor.as<std::int64_t>();
  return {ids, ids + tensor.element_count()};
}

inline Template decoder_template(std::int64_t capacity, Diagnostics& diagnostics) {
  const std::string file = decoder_path() + ".json";
  const Template all = Template::read(parse_json(read_file(file), file), file, diagnostics);
  return Template::read(narrowed_document(all, {{"C", capacity}}), file, diagnostics);
}

/// The logits of a text by steps of at most `rows` ids, none of which copies a state or moves it
/// from one device to another.
inline std::vector<float> logits_by(StepModel& model, std::size_t entry,
                                    const std::vector<std::int64_t>& text, std::size_t rows) {
  model.clear();
  std::vector<float> logits;
  for (std::size_t i = 0; i < text.size(); i += rows) {
    const auto ids = std::span(text).subspan(i, std::min(rows, text.size() - i));
    const auto given = model.step(entry, ids, static_cast<std::int64_t>(i));
    logits.insert(logits.end(), given.begin(), given.end());
    CHECK(model.state_copied_bytes() == 0);
    CHECK(model.state_transfer_bytes() == 0);
  }
  return logits;
}

inline double largest_difference(const std::vector<float>& logits, const Tensor& expected) {
  REQUIRE(static_cast<std::int64_t>(logits.size()) == expected.element_count());
  double largest = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double wanted = expected.as<float>()[i];
    const double difference = std::abs(static_cast<double>(logits[i]) - wanted);
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

inline std::string text_of(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& entry : diagnostics.entries()) text += entry.text + "\n";
  return text;
}

}  // namespace npu::test
