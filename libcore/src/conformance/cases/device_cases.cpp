// SPDX-License-Identifier: Apache-2.0
// Cases of devices: opening and closing, options, and several threads.
#include <atomic>
#include <string>
#include <thread>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/process_state.hpp"
#include "npu/support/json.hpp"

namespace npu::conformance {

void check_opening(const Harness& harness) {
  const int repeats = harness.quick ? 20 : 100;
  for (int i = 0; i < 10; ++i) harness.open();
  const ProcessState before = ProcessState::now();
  for (int i = 0; i < repeats; ++i) harness.open();
  expect_no_growth(harness.found, before, repeats, "device_open and device_close");
  const DevicePtr first = harness.open();
  auto args = sized<npu_open_args>();
  args.device_id = harness.facts().id.c_str();
  auto error = sized<npu_error>();
  npu_device* second = nullptr;
  const npu_status status = harness.api.device_open(&args, &second, &error);
  harness.check_error(status, error, "a second device_open");
  harness.found.expect(
      status == NPU_OK || status == NPU_BUSY,
      "opening a device that is open gives " + status_name(status) + ", neither OK nor BUSY");
  if (status == NPU_OK) harness.api.device_close(second);
  args.device_id = nullptr;
  npu_device* any = nullptr;
  const npu_status unnamed = harness.api.device_open(&args, &any, &error);
  harness.found.expect(unnamed == NPU_OK || unnamed == NPU_BUSY,
                       "device_open without an id gives " + status_name(unnamed));
  if (unnamed == NPU_OK) harness.api.device_close(any);
}

namespace {

npu_status open_with(const Harness& harness, const std::string& options, npu_error& error) {
  auto args = sized<npu_open_args>();
  args.device_id = harness.facts().id.c_str();
  args.options = options.c_str();
  npu_device* device = nullptr;
  const npu_status status = harness.api.device_open(&args, &device, &error);
  if (status == NPU_OK) harness.api.device_close(device);
  return status;
}

// A value of none of the types that options have.
const char* const kWrongValue = "[[]]";

void check_own_options(const Harness& harness) {
  if (harness.library.option_keys.empty()) return;
  const Json keys = parse_json(harness.library.option_keys, "option_keys");
  for (const auto& [key, facts] : keys.items()) {
    auto error = sized<npu_error>();
    const std::string options = "{" + Json(key).dump() + ": " + kWrongValue + "}";
    const npu_status opened = open_with(harness, options, error);
    harness.check_error(opened, error, "device_open with " + options);
    if (opened != NPU_OK) {
      harness.found.expect(opened == NPU_INVALID, "device_open with " + options + " gives " +
                                                      status_name(opened) + ", not INVALID");
      continue;
    }
    // It may be one of compile.
    const Instance sample = make_sample(harness);
    const Compiled compiled = harness.compile(sample.device.get(), sub_ir_text(sample.graph),
                                              sample.graph.weights, options.c_str());
    harness.found.expect(compiled.status == NPU_INVALID,
                         "neither device_open nor compile refuses " + options);
  }
}

}  // namespace

void check_options(const Harness& harness) {
  auto error = sized<npu_error>();
  for (const char* options : {"{}", "{\"no-such-option\": 1}"}) {
    error = sized<npu_error>();
    const npu_status status = open_with(harness, options, error);
    harness.check_error(status, error, std::string("device_open with ") + options);
    harness.found.expect(
        status == NPU_OK || (status == NPU_INVALID && options[1] != '}'),
        std::string("device_open with ") + options + " gives " + status_name(status));
  }
  const Instance sample = make_sample(harness);
  const std::string text = sub_ir_text(sample.graph);
  const auto compile = [&](const char* options) {
    return harness.compile(sample.device.get(), text, sample.graph.weights, options).status;
  };
  harness.found.expect(compile("{}") == NPU_OK, "compile refuses empty options");
  harness.found.expect(compile("{\"precision\": \"f32\"}") == NPU_OK,
                       "compile refuses the precision f32");
  const npu_status bf16 = compile("{\"precision\": \"bf16\"}");
  harness.found.expect(bf16 == NPU_OK || bf16 == NPU_UNSUPPORTED,
                       "compile with the precision bf16 gives " + status_name(bf16));
  const npu_status unknown = compile("{\"no-such-option\": 1}");
  harness.found.expect(unknown == NPU_OK || unknown == NPU_INVALID,
                       "compile with an unknown option gives " + status_name(unknown));
  for (const char* wrong : {"{\"precision\": 5}", "{\"precision\": \"f31\"}"}) {
    const npu_status status = compile(wrong);
    harness.found.expect(status == NPU_INVALID, std::string("compile with ") + wrong + " gives " +
                                                    status_name(status) + ", not INVALID");
  }
  check_own_options(harness);
}

namespace {

// What a thread finds, for the main one: Findings are not shared.
struct ThreadResult {
  std::string fault;
};

template <typename Body>
std::thread start(ThreadResult& result, const Body& body) {
  return std::thread([&result, body] {
    try {
      body();
    } catch (const std::exception& error) {
      if (result.fault.empty()) result.fault = error.what();
    }
  });
}

// Runs `times` times and compares with what a run gave before.
void run_again(const Harness& shared, const Instance& instance, const std::vector<Tensor>& expected,
               int times, ThreadResult& result) {
  Findings own;
  const Harness harness(shared.library, own, shared.quick);
  try {
    for (int i = 0; i < times; ++i) {
      own.expect(same_bits(run_and_read(harness, instance), expected), "a run gives other values");
    }
  } catch (const CaseStopped&) {
  }
  if (!own.texts().empty()) result.fault = own.texts().front();
}

}  // namespace

void check_threads(const Harness& harness) {
  const int times = harness.quick ? 20 : 100;
  const Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  // The same device from a second thread, which compiles while the first one runs.
  ThreadResult runs;
  ThreadResult compiles;
  std::thread runner = start(runs, [&] { run_again(harness, sample, expected, times, runs); });
  std::thread compiler = start(compiles, [&] {
    Findings own;
    const Harness mine(harness.library, own, harness.quick);
    for (int i = 0; i < times / 10; ++i) {
      const Compiled compiled = mine.compile(sample.device.get(), sample.graph);
      if (compiled.status != NPU_OK) compiles.fault = compiled.error.text;
    }
  });
  runner.join();
  compiler.join();
  harness.found.expect(runs.fault.empty(), "beside a compile: " + runs.fault);
  harness.found.expect(compiles.fault.empty(), "compile beside runs fails: " + compiles.fault);
  // Two devices, or one that is opened twice, where that is possible.
  const DeviceSheet& last = harness.library.devices.back();
  auto args = sized<npu_open_args>();
  args.device_id = last.usable ? last.id.c_str() : harness.facts().id.c_str();
  npu_device* opened = nullptr;
  auto error = sized<npu_error>();
  if (harness.api.device_open(&args, &opened, &error) != NPU_OK) return;
  DevicePtr device(opened, harness.api.device_close);
  const Compiled compiled = harness.compile(opened, sample.graph);
  if (compiled.status != NPU_OK) return;
  const Instance other = make_instance(harness, std::move(device), sample.graph, compiled.blob);
  const std::vector<Tensor> others = run_and_read(harness, other);
  ThreadResult first;
  ThreadResult second;
  std::thread a = start(first, [&] { run_again(harness, sample, expected, times, first); });
  std::thread b = start(second, [&] { run_again(harness, other, others, times, second); });
  a.join();
  b.join();
  harness.found.expect(first.fault.empty() && second.fault.empty(),
                       "two devices at once: " + first.fault + second.fault);
}

}  // namespace npu::conformance
