// SPDX-License-Identifier: Apache-2.0
// Models that remember as the exporter writes them (testdata/models/states), against PyTorch: 40
// steps of streams, whose states are replaced as a whole or written in part, and 64 positions of
// decoders by chunks of any size.
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "npu/compile/bundle.hpp"
#include "npu/ir/json_reader.hpp"
#include "npu/support/file_io.hpp"
#include "npu/tensor/safetensors.hpp"
#include "opencl_device.hpp"
#include "runtime/entries/buckets.hpp"
#include "runtime/entries/compile_entries.hpp"
#include "runtime/generate/session_model.hpp"
#include "runtime/generate/small_decoder.hpp"
#include "runtime/generate/split_decoder.hpp"
#include "runtime/session/session.hpp"
#include "test_paths.hpp"

namespace npu {
namespace {

const std::string kStates = std::string(NPU_TEST_DATA_DIR) + "/models/states/";

/// An OpenCL device too, where it may be used.
std::vector<DeviceChoice> device_choices() {
  std::vector<DeviceChoice> choices{{.devices = {"cpu"}}, {.devices = {"npu", "cpu"}}};
  if (test::may_use_opencl()) choices.push_back({.target = "opencl", .devices = {"gpu"}});
  return choices;
}

/// Steps of a stream: tensors whose first dimension is the step.
class Steps {
 public:
  explicit Steps(const std::string& name) : file_(kStates + name + ".steps.safetensors") {}

  std::int64_t count() const { return file_.entries().front().shape.front(); }

  /// Row `step` of every tensor below "inputs." or "outputs.".
  std::vector<NamedTensor> at(std::int64_t step, std::string_view kind) const {
    std::vector<NamedTensor> rows;
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (!std::string_view(entry.name).starts_with(kind)) continue;
      const Tensor all = file_.tensor(entry);
      Tensor row(all.dtype(), Shape(all.shape().begin() + 1, all.shape().end()));
      const std::byte* first = all.data() + static_cast<std::size_t>(step) * row.bytes();
      std::copy_n(first, row.bytes(), row.mutable_data());
      rows.push_back({entry.name.substr(kind.size()), row});
    }
    return rows;
  }

 private:
  SafetensorsFile file_;
};

std::unique_ptr<Session> open_stream(const std::string& name, const DeviceChoice& where) {
  RunModelOptions options;
  options.where = where;
  options.cache.enabled = false;
  options.executor.threads = 1;
  Diagnostics diagnostics;
  const std::string file = kStates + name + ".json";
  Graph graph = read_graph(read_file(file), file, diagnostics);
  auto session = Session::open(std::move(graph), options, diagnostics);
  INFO(test::text_of(diagnostics));
  REQUIRE(session != nullptr);
  return session;
}

/// One step gives what PyTorch gave.
void check_step(Session& session, const Steps& steps, std::int64_t step) {
  CAPTURE(step);
  const std::vector<Tensor> found = session.step(0, steps.at(step, "inputs."), {});
  const std::vector<std::string>& names = session.output_names(0);
  for (const NamedTensor& expected : steps.at(step, "outputs.")) {
    const auto at = std::find(names.begin(), names.end(), expected.name);
    REQUIRE(at != names.end());
    const Tensor& tensor = found[static_cast<std::size_t>(at - names.begin())];
    REQUIRE(tensor.element_count() == expected.tensor.element_count());
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      const double wanted = expected.tensor.value_as_double(i);
      CAPTURE(expected.name, i, wanted, tensor.value_as_double(i));
      CHECK(std::abs(tensor.value_as_double(i) - wanted) <= 1e-5 * (1 + std::abs(wanted)));
    }
  }
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// A decoder of testdata with steps of one size.
struct FamilyDecoder {
  std::shared_ptr<const Bundle> bundle;
  std::unique_ptr<SessionModel> model;

  FamilyDecoder(const std::string& name, const DeviceChoice& where, std::int64_t rows) {
    Diagnostics diagnostics;
    const std::string file = kStates + name + ".json";
    const Template decoder = Template::read(parse_json(read_file(file), file), file, diagnostics);
    CompileModelOptions options;
    options.where = where;
    options.cache.enabled = false;
    const std::vector<SizeBindings> buckets{{{"T", rows}}};
    const CompileEntriesResult compiled =
        compile_entries(decoder, checked_buckets(decoder, buckets), options, diagnostics);
    INFO(test::text_of(diagnostics));
    REQUIRE_FALSE(diagnostics.has_errors());
    bundle = Bundle::from_bytes(bundle_bytes(compiled.content), name + ".npub");
    model = SessionModel::open(*bundle, {}, SessionLogits::kAllRows, diagnostics);
    REQUIRE(model != nullptr);
  }
};

Tensor tensor_of(const std::string& file, const std::string& name) {
  const SafetensorsFile tensors(file);
  const SafetensorsEntry* entry = tensors.find(name);
  REQUIRE(entry != nullptr);
  return tensors.tensor(*entry);
}

TEST_CASE("streams that the exporter writes remember what PyTorch's do", "[runtime][session]") {
  if (!test::use_backends()) return;
  for (const std::string name : {"stream_lstm", "stream_spotter", "stream_ring"}) {
    const Steps steps(name);
    for (const DeviceChoice& where : device_choices()) {
      CAPTURE(name, where.devices.front());
      // The spotter has ops that only other devices run.
      if (!where.target.empty() && name == "stream_spotter") continue;
      const auto session = open_stream(name, where);
      const std::int64_t half = steps.count() / 2;
      for (std::int64_t step = 0; step < half; ++step) check_step(*session, steps, step);
      // The second half in another session, and then all of it again in the first.
      const auto other = open_stream(name, where);
      other->set_state_values(session->state_values());
      for (std::int64_t step = half; step < steps.count(); ++step) check_step(*other, steps, step);
      session->clear();
      for (std::int64_t step = 0; step < steps.count(); ++step) check_step(*session, steps, step);
      // The rows that the ring's model moves by one are read through a view while they are written.
      if (name != "stream_ring") CHECK(session->copied_bytes() == 0);
    }
  }
}

/// The decoders that the exporter writes, beside the logits of PyTorch.
class Family {
 public:
  explicit Family(const std::string& kind)
      : name_("decoder_" + kind),
        ids_(tensor_of(kStates + name_ + ".inputs.safetensors", "input_ids")),
        logits_(tensor_of(kStates + name_ + ".outputs.safetensors", "logits")) {}

  const std::string& name() const { return name_; }

  void check(SessionModel& model, std::size_t rows) const {
    CHECK(model.capacity() == 96);
    const std::vector<std::int64_t> text(ids_.as<std::int64_t>(),
                                         ids_.as<std::int64_t>() + ids_.element_count());
    CHECK(test::largest_difference(test::logits_by(model, 0, text, rows), logits_) < 1e-4);
  }

 private:
  std::string name_;
  Tensor ids_;
  Tensor logits_;
};

const std::vector<std::string> kFamilies = {"rotary", "grouped", "window",
                                            "norms",  "softcap", "learned"};

TEST_CASE("decoders of all families give PyTorch's logits by chunks", "[generate][decoder][long]") {
  if (!test::use_backends()) return;
  for (const std::string& kind : kFamilies) {
    const Family family(kind);
    for (const DeviceChoice& where : device_choices()) {
      for (const std::size_t rows : {64, 32, 8, 1}) {
        CAPTURE(family.name(), where.devices.front(), rows);
        FamilyDecoder decoder(family.name(), where, static_cast<std::int64_t>(rows));
        // No family pays for the capacity of its caches, of whose two layers every entry has one.
        if (where.devices.front() == "npu") {
          const std::size_t entries = decoder.bundle->entries().size();
          CHECK(count_of(decoder.bundle->manifest().dump(), "\"cached-attention\"") == 2 * entries);
        }
        family.check(*decoder.model, rows);
      }
    }
  }
}

TEST_CASE("decoders of all families give PyTorch's logits where attention is on another device",
          "[generate][decoder][long]") {
  if (!test::use_backends()) return;
  std::vector<std::string> targets{"host"};
  if (test::may_use_opencl()) targets.push_back("opencl");
  for (const std::string& kind : kFamilies) {
    const Family family(kind);
    const std::string file = kStates + family.name() + ".json";
    Diagnostics diagnostics;
    const Template decoder = Template::read(parse_json(read_file(file), file), file, diagnostics);
    for (const std::string& target : targets) {
      for (const std::size_t rows : {64, 32, 8, 1}) {
        CAPTURE(family.name(), target, rows);
        const auto model = test::split_decoder(decoder, target, static_cast<std::int64_t>(rows));
        for (const StateUse& use : model->session().states()) CHECK(use.device == "cpu");
        family.check(*model, rows);
      }
    }
  }
}

}  // namespace
}  // namespace npu
