// SPDX-License-Identifier: Apache-2.0
// Encoders with decoders, exported by export_torch.py as two documents each, against the ids and
// logits that PyTorch gives (testdata/models/translators.py).
#include "runtime/generate/source_encoder.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"
#include "runtime/generate/generate.hpp"
#include "runtime/generate/session_model.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

const std::string kFolder = std::string(NPU_TEST_DATA_DIR) + "/models/translators/";
const std::vector<std::vector<std::string>> kDevices{{"cpu"}, {"npu", "cpu"}};

/// A document of a model; a template with choices of a size, if there are any.
DocumentToCompile document(const std::string& model, const std::string& entry,
                           const std::string& size, const std::vector<std::int64_t>& values) {
  const std::string file = kFolder + model + "." + entry + ".json";
  Diagnostics diagnostics;
  DocumentToCompile result{.name = entry};
  if (values.empty()) {
    result.graph = read_graph(read_file(file), file, diagnostics);
  } else {
    result.model = Template::read(parse_json(read_file(file), file), file, diagnostics);
    for (const std::int64_t value : values) result.buckets.push_back({{size, value}});
  }
  REQUIRE_FALSE(diagnostics.has_errors());
  return result;
}

struct Translator {
  std::shared_ptr<const Bundle> bundle;
  std::unique_ptr<SessionModel> model;

  Translator(const std::string& name, const std::vector<std::string>& devices,
             const std::vector<std::int64_t>& source_sizes,
             const std::vector<std::int64_t>& steps = {1, 4}) {
    std::vector<DocumentToCompile> documents;
    documents.push_back(document(name, "encode", "S", source_sizes));
    documents.push_back(document(name, "decode", "T", steps));
    CompileModelOptions options;
    options.where.devices = devices;
    options.cache.enabled = false;
    Diagnostics diagnostics;
    const CompileEntriesResult compiled =
        compile_entries(std::move(documents), options, diagnostics);
    std::string faults;
    for (const Diagnostic& entry : diagnostics.entries()) faults += entry.text + "\n";
    INFO(faults);
    REQUIRE_FALSE(diagnostics.has_errors());
    CHECK(compiled.weights_copies < 1.15);  // masks and the like are small, too
    bundle = Bundle::from_bytes(bundle_bytes(compiled.content), name + ".npub");
    model = SessionModel::open(*bundle, {}, SessionLogits::kLastRow, diagnostics);
    REQUIRE(model != nullptr);
  }
};

/// What PyTorch computes.
struct Reference {
  Tensor source, ids, logits;
};

std::vector<Reference> references(const std::string& name) {
  const SafetensorsFile file(kFolder + name + ".reference.safetensors");
  std::vector<Reference> list;
  for (int i = 0;; ++i) {
    const std::string number = "." + std::to_string(i);
    const SafetensorsEntry* source = file.find("source" + number);
    if (source == nullptr) return list;
    list.push_back({file.tensor(*source), file.tensor(*file.find("ids" + number)),
                    file.tensor(*file.find("logits" + number))});
  }
}

/// Greedy ids behind id 1, each compared with its logits, too.
std::vector<std::int64_t> greedy_ids(SessionModel& model, const Reference& reference) {
  model.clear();
  model.encode(reference.source);
  std::vector<std::int64_t> ids{1};
  const std::int64_t vocabulary = model.vocabulary();
  double worst = 0;
  for (std::int64_t place = 0; place < reference.ids.element_count(); ++place) {
    const auto logits = model.step(0, std::span(&ids.back(), 1), place);
    const float* wanted = reference.logits.as<float>() + place * vocabulary;
    for (std::int64_t i = 0; i < vocabulary; ++i) {
      const float difference = logits[static_cast<std::size_t>(i)] - wanted[i];
      worst = std::max(worst, static_cast<double>(std::abs(difference)));
    }
    ids.push_back(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  CHECK(worst < 2e-4);
  return {ids.begin() + 1, ids.end()};
}

std::vector<std::int64_t> ids_of(const Tensor& tensor) {
  const auto* ids = tensor.as<std::int64_t>();
  return {ids, ids + tensor.element_count()};
}

TEST_CASE("a translator gives PyTorch's ids, below and at its buckets", "[generate][source]") {
  if (!test::use_backends()) return;
  for (const auto& devices : kDevices) {
    Translator translator("translator", devices, {8, 16, 24});
    REQUIRE(translator.model->source() != nullptr);
    CHECK(translator.model->source()->name == "source_ids");
    CHECK(translator.model->source()->vocabulary == 61);
    CHECK(translator.model->capacity() == 32);
    const auto list = references("translator");
    REQUIRE(list.size() == 5);
    // The longest first: what a shorter one leaves of it must not count.
    for (std::size_t i = list.size(); i-- > 0;) {
      CAPTURE(devices.front(), list[i].source.shape()[1]);
      CHECK(greedy_ids(*translator.model, list[i]) == ids_of(list[i].ids));
    }
    // Each step finds what the encoder has written where it is read.
    CHECK(translator.model->state_transfer_bytes() == 0);
    CHECK(translator.model->encode(list[0].source) == "encode:S=8");
    CHECK(translator.model->encode(list[2].source) == "encode:S=16");
    CHECK(translator.model->encode(list[4].source) == "encode:S=24");
  }
}

TEST_CASE("one bucket for all sources gives the same ids", "[generate][source]") {
  if (!test::use_backends()) return;
  Translator translator("translator", {"npu", "cpu"}, {24}, {1});
  for (const Reference& reference : references("translator")) {
    CHECK(greedy_ids(*translator.model, reference) == ids_of(reference.ids));
  }
}

TEST_CASE("features of a sound go through the encoder as they are", "[generate][source]") {
  if (!test::use_backends()) return;
  for (const auto& devices : kDevices) {
    Translator listener("listener", devices, {});
    CHECK(listener.model->source()->vocabulary == 0);
    const auto list = references("listener");
    REQUIRE(list.size() == 2);
    for (const Reference& reference : list) {
      CHECK(greedy_ids(*listener.model, reference) == ids_of(reference.ids));
    }
    CHECK(listener.model->encode(list[0].source) == "encode");
  }
}

std::string fault(const SessionModel& model, const Tensor& source, ErrorCode code) {
  try {
    model.check_source(source);
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.message();
  }
  return "no fault";
}

TEST_CASE("sources that no entry has room for are refused", "[generate][source]") {
  if (!test::use_backends()) return;
  Translator translator("translator", {"cpu"}, {8, 16}, {1});
  CHECK(fault(*translator.model, Tensor(DType::kInt64, {1, 16}), ErrorCode::kUsage) == "no fault");
  CHECK(fault(*translator.model, Tensor(DType::kInt64, {1, 17}), ErrorCode::kInfeasible) ==
        "input 'source_ids' has 17 rows along S; the largest bucket is 16: compile with --buckets "
        "S=8,16,17");
  CHECK_THAT(fault(*translator.model, Tensor(DType::kInt64, {2, 8}), ErrorCode::kInfeasible),
             Catch::Contains("has 2 rows along dimension 0"));
  CHECK_THAT(fault(*translator.model, Tensor(DType::kFloat32, {1, 8}), ErrorCode::kUsage),
             Catch::Contains("the source is float32 [1, 8], input 'source_ids' is int64"));
  Translator listener("listener", {"cpu"}, {}, {1});
  CHECK_THAT(fault(*listener.model, Tensor(DType::kFloat32, {1, 8, 31}), ErrorCode::kUsage),
             Catch::Contains("has 31 rows along dimension 2 of input 'features', expected 32"));
}

}  // namespace
}  // namespace npu
