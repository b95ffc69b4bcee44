// SPDX-License-Identifier: Apache-2.0
// The small decoder (testdata/models/decoders/decoder.py) where its caches are not on the device
// that does the most, and on an OpenCL device: the logits are those of NumPy by chunks of any size,
// and no cache is copied or moved between devices.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "npu/compile/bundle.hpp"
#include "opencl_device.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"
#include "runtime/generate/session_model.hpp"
#include "runtime/generate/small_decoder.hpp"
#include "runtime/generate/split_decoder.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

/// Within 1e-4 of the reference, by steps of at most `rows` ids.
void check_logits(SessionModel& model, std::size_t entry, std::size_t rows) {
  CAPTURE(rows);
  const std::vector<float> logits = test::logits_by(model, entry, test::decoder_ids("text"), rows);
  CHECK(test::largest_difference(logits, test::decoder_reference("logits")) < 1e-4);
}

void check_split(const std::string& target, const std::string& device,
                 const std::vector<std::int64_t>& sizes) {
  for (const std::int64_t rows : sizes) {
    CAPTURE(target, rows);
    Diagnostics diagnostics;
    const auto model = test::split_decoder(test::decoder_template(64, diagnostics), target, rows);
    std::vector<std::string> devices;
    for (const Node& node : model->session().graph(0).nodes()) {
      REQUIRE(node.device);
      devices.push_back(*node.device);
    }
    // Two layers with the views of four tensors each, and a mask.
    CHECK(std::count(devices.begin(), devices.end(), "cpu") == 17);
    CHECK(std::count(devices.begin(), devices.end(), device) > 40);
    CHECK(model->session().states().size() == 4);
    for (const StateUse& use : model->session().states()) {
      CHECK(use.device == "cpu");
      CHECK(use.path == StatePath::kInPlace);
    }
    check_logits(*model, 0, static_cast<std::size_t>(rows));
  }
}

TEST_CASE("attention on another device than the rest gives the same logits",
          "[generate][decoder]") {
  if (!test::use_backends()) return;
  check_split("host", "npu", {8, 1});
}

TEST_CASE("opencl: attention on the CPU and the rest on the device gives the same logits",
          "[generate][decoder][long]") {
  if (!test::use_backends() || !test::may_use_opencl()) return;
  check_split("opencl", "gpu", {8});
}

TEST_CASE("opencl: the logits of a text are the same by chunks of any size",
          "[generate][decoder][long]") {
  if (!test::use_backends() || !test::may_use_opencl()) return;
  Diagnostics diagnostics;
  CompileModelOptions options;
  options.where.target = "opencl";
  options.where.devices = {"gpu"};
  options.cache.enabled = false;
  const Template decoder = test::decoder_template(64, diagnostics);
  const std::vector<SizeBindings> buckets{{{"T", 1}}, {{"T", 8}}, {{"T", 32}}, {{"T", 64}}};
  const CompileEntriesResult compiled =
      compile_entries(decoder, checked_buckets(decoder, buckets), options, diagnostics);
  INFO(test::text_of(diagnostics));
  REQUIRE_FALSE(diagnostics.has_errors());
  const auto bundle = Bundle::from_bytes(bundle_bytes(compiled.content), "decoder.npub");
  const auto model = SessionModel::open(*bundle, {}, SessionLogits::kAllRows, diagnostics);
  REQUIRE(model != nullptr);
  REQUIRE(model->entries().size() == 4);
  for (const StateUse& use : model->session().states()) {
    CHECK(use.device == "gpu");
    CHECK(use.path == StatePath::kInPlace);
  }
  for (std::size_t entry = 0; entry < 4; ++entry) {
    const auto rows = static_cast<std::size_t>(model->entries()[entry].rows);
    check_logits(*model, entry, rows);
    if (rows == 8) check_logits(*model, entry, 5);
  }
}

}  // namespace
}  // namespace npu
