// SPDX-License-Identifier: Apache-2.0
// Cases of memory: what a blob and a model say that they take, against what the device says is in
// use, and a limit that is too small.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "conformance/cases/cases.hpp"
#include "device/report_room.hpp"

namespace npu::conformance {
namespace {

// A report with room for each memory of the device, which has at least one.
class Report : public ReportRoom {
 public:
  explicit Report(const Harness& harness) : ReportRoom(harness.facts().memory_flags.size()) {
    harness.found.require(!memories().empty(),
                          "the device lists no memory, but blob_memory or model_memory is there");
  }

  bool is_exact() const { return has_flag(NPU_MEMORY_EXACT); }
  bool is_bound() const { return has_flag(NPU_MEMORY_BOUND); }

  // Of memory 0, without the buffers, which are the host's.
  std::uint64_t own() const {
    const npu_memory_bytes& bytes = memories().front();
    return bytes.weights_bytes + bytes.scratch_bytes + bytes.other_bytes;
  }
  std::uint64_t whole() const { return own() + memories().front().boundary_bytes; }
  std::uint64_t boundary() const {
    std::uint64_t sum = 0;
    for (const npu_memory_bytes& each : memories()) sum += each.boundary_bytes;
    return sum;
  }
};

void ask_blob(const Harness& harness, npu_device* device, const std::string& blob, Report& report) {
  auto error = sized<npu_error>();
  harness.require_ok(
      harness.api.blob_memory(device, blob.data(), blob.size(), report.get(), &error), error,
      "blob_memory");
}

std::uint64_t boundary_of(const Instance& sample) {
  std::uint64_t sum = 0;
  for (const Tensor& input : sample.inputs) sum += input.bytes();
  for (const std::string& output : sample.graph.outputs) {
    sum += tensor_bytes(sample.graph.tensor(output));
  }
  return sum;
}

// Nothing if the backend does not say.
std::optional<std::uint64_t> in_use(const Harness& harness, npu_device* device) {
  if (harness.api.device_memory == nullptr) return std::nullopt;
  auto state = sized<npu_memory_state>();
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.device_memory(device, 0, &state, &error), error, "device_memory");
  if ((state.known & NPU_KNOWN_IN_USE) == 0) return std::nullopt;
  if ((state.known & NPU_KNOWN_PEAK_USE) != 0) {
    harness.found.expect(state.peak_bytes >= state.in_use_bytes,
                         "device_memory: more is in use than the peak");
  }
  return state.in_use_bytes;
}

// Within 5 per cent, or what a page makes of it.
bool is_close(std::uint64_t a, std::uint64_t b) {
  const double difference = std::abs(static_cast<double>(a) - static_cast<double>(b));
  return difference <= std::max(4096.0, 0.05 * static_cast<double>(std::max(a, b)));
}

void compare_use(const Harness& harness, npu_device* device, const Instance& sample,
                 const Report& report) {
  const auto before = in_use(harness, device);
  if (!before) return;
  const auto model = harness.load(device, sample.blob, sample.graph.weights);
  const ProgramPtr program = harness.create(model->get());
  const auto after = in_use(harness, device);
  harness.found.require(after && *after >= *before,
                        "device_memory: a model and a program make what is in use " +
                            std::string(after ? "less" : "unknown"));
  const std::uint64_t taken = *after - *before;
  const std::string numbers =
      std::to_string(report.own()) + " bytes, the device says " + std::to_string(taken);
  if (report.is_exact()) {
    harness.found.expect(is_close(taken, report.own()),
                         "blob_memory says that a model and a program take exactly " + numbers);
  } else if (report.is_bound()) {
    harness.found.expect(taken <= report.own(),
                         "blob_memory says that a model and a program take at most " + numbers);
  }
}

}  // namespace

void check_memory_reports(const Harness& harness) {
  const npu_backend& api = harness.api;
  if (api.blob_memory == nullptr && api.model_memory == nullptr) {
    throw NotApplicable("blob_memory and model_memory are null");
  }
  const Instance sample = make_sample(harness);
  npu_device* device = sample.device.get();
  if (api.blob_memory != nullptr) {
    Report report(harness);
    ask_blob(harness, device, sample.blob, report);
    harness.found.expect(report.boundary() >= boundary_of(sample),
                         "blob_memory: the buffers have " + std::to_string(boundary_of(sample)) +
                             " bytes, it says " + std::to_string(report.boundary()));
    compare_use(harness, device, sample, report);
    harness.found.expect(in_use(harness, device) == in_use(harness, device),
                         "device_memory gives another number when nothing happened");
    auto error = sized<npu_error>();
    const std::string noise(4096, 'x');
    const npu_status status =
        api.blob_memory(device, noise.data(), noise.size(), report.get(), &error);
    harness.check_error(status, error, "blob_memory of noise");
    harness.found.expect(status == NPU_INVALID || status == NPU_INCOMPATIBLE,
                         "blob_memory of noise gives " + status_name(status));
    if (api.model_memory == nullptr) return;
    Report loaded(harness);
    harness.require_ok(api.model_memory(sample.model->get(), loaded.get(), &error), error,
                       "model_memory");
    harness.found.expect(!report.is_exact() || report.own() == loaded.own(),
                         "blob_memory says exactly " + std::to_string(report.own()) +
                             " bytes, model_memory " + std::to_string(loaded.own()));
    return;
  }
  Report loaded(harness);
  auto error = sized<npu_error>();
  harness.require_ok(api.model_memory(sample.model->get(), loaded.get(), &error), error,
                     "model_memory");
}

namespace {

DevicePtr open_limited(const Harness& harness, std::uint64_t limit) {
  return harness.open([&](npu_open_args& args) { args.memory_limit_bytes = limit; },
                      "device_open with a memory limit of " + std::to_string(limit) + " bytes");
}

// Loads, and makes a program and the buffers. The status and error of the first call that fails.
npu_status take_all(const Harness& harness, npu_device* device, const Instance& sample,
                    npu_error& error) {
  const npu_backend& api = harness.api;
  LoadedModel model(api, sample.blob,
                    (harness.library.flags & NPU_BLOB_HOLDS_WEIGHTS) != 0
                        ? std::vector<WeightSpec>()
                        : sample.graph.weights);
  npu_status status = model.load(device, error);
  if (status != NPU_OK) return status;
  const auto args = sized<npu_program_args>();
  npu_program* program = nullptr;
  status = api.program_create(model.get(), &args, &program, &error);
  if (status != NPU_OK) return status;
  const ProgramPtr owned(program, api.program_free);
  std::vector<TensorSpec> tensors = sample.graph.inputs;
  for (const std::string& output : sample.graph.outputs) {
    tensors.push_back(sample.graph.tensor(output));
  }
  std::vector<BufferPtr> buffers;
  for (const TensorSpec& tensor : tensors) {
    const npu_buffer_desc desc = buffer_desc(tensor);
    npu_buffer* buffer = nullptr;
    status = api.buffer_create(device, &desc, &buffer, &error);
    if (status != NPU_OK) return status;
    buffers.emplace_back(buffer, api.buffer_free);
  }
  return status;
}

}  // namespace

void check_memory_limit(const Harness& harness) {
  harness.found.require(harness.api.blob_memory != nullptr,
                        "the feature memory.limit is listed, but blob_memory is null");
  const Instance sample = make_sample(harness);
  Report report(harness);
  ask_blob(harness, sample.device.get(), sample.blob, report);
  const std::uint64_t whole = report.whole();
  auto error = sized<npu_error>();
  const DevicePtr half = open_limited(harness, whole / 2);
  const npu_status status = take_all(harness, half.get(), sample, error);
  harness.check_error(status, error, "a model with half of its memory");
  harness.found.expect(status == NPU_MEMORY, "a model with half of its memory gives " +
                                                 status_name(status) + ", not MEMORY");
  constexpr std::uint64_t kNumbers = NPU_KNOWN_REQUESTED | NPU_KNOWN_AVAILABLE;
  harness.found.expect(status != NPU_MEMORY || ((error.known & kNumbers) == kNumbers &&
                                                error.requested_bytes > error.available_bytes),
                       "a model with half of its memory fails without numbers");
  const DevicePtr enough = open_limited(harness, whole);
  error = sized<npu_error>();
  for (int times = 0; times < 2; ++times) {
    harness.require_ok(take_all(harness, enough.get(), sample, error), error,
                       "a model with as much memory as its report says");
  }
}

}  // namespace npu::conformance
