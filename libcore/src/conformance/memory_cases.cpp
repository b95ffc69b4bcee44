// SPDX-License-Identifier: Apache-2.0
// Cases of memory: what a blob and a model say that they take, against what the device says is in
// use, and a limit that is too small.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "conformance/cases.hpp"

namespace npu::conformance {
namespace {

// A report with room for each memory of the device.
class Report {
 public:
  explicit Report(const Harness& harness)
      : bytes_(harness.facts().memory_flags.size(), sized<npu4_memory_bytes>()),
        report_(sized<npu4_memory_report>()) {
    for (npu4_memory_bytes& each : bytes_) pointers_.push_back(&each);
    report_.memories = pointers_.data();
    report_.memory_count = pointers_.size();
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  npu4_memory_report* get() { return &report_; }
  bool is_exact() const { return (report_.flags & NPU4_MEMORY_EXACT) != 0; }
  bool is_bound() const { return (report_.flags & NPU4_MEMORY_BOUND) != 0; }

  // Of memory 0, without the buffers, which are the host's.
  std::uint64_t own() const {
    return bytes_[0].weights_bytes + bytes_[0].scratch_bytes + bytes_[0].other_bytes;
  }
  std::uint64_t whole() const { return own() + bytes_[0].boundary_bytes; }
  std::uint64_t boundary() const {
    std::uint64_t sum = 0;
    for (const npu4_memory_bytes& each : bytes_) sum += each.boundary_bytes;
    return sum;
  }

 private:
  std::vector<npu4_memory_bytes> bytes_;
  std::vector<npu4_memory_bytes*> pointers_;
  npu4_memory_report report_;
};

void ask_blob(const Harness& harness, npu4_device* device, const std::string& blob,
              Report& report) {
  auto error = sized<npu4_error>();
  harness.require_ok(
      harness.api.blob_memory(device, blob.data(), blob.size(), report.get(), &error), error,
      "blob_memory");
}

std::uint64_t boundary_of(const Instance& sample) {
  std::uint64_t sum = 0;
  for (const Tensor& input : sample.inputs) sum += input.bytes();
  for (const std::string& output : sample.graph.outputs) {
    const TensorSpec spec = sample.graph.tensor(output);
    sum += Tensor(spec.dtype, spec.shape).bytes();
  }
  return sum;
}

// Nothing if the backend does not say.
std::optional<std::uint64_t> in_use(const Harness& harness, npu4_device* device) {
  if (harness.api.device_memory == nullptr) return std::nullopt;
  auto state = sized<npu4_memory_state>();
  auto error = sized<npu4_error>();
  harness.require_ok(harness.api.device_memory(device, 0, &state, &error), error, "device_memory");
  if ((state.known & NPU4_KNOWN_IN_USE) == 0) return std::nullopt;
  if ((state.known & NPU4_KNOWN_PEAK_USE) != 0) {
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

void compare_use(const Harness& harness, npu4_device* device, const Instance& sample,
                 const Report& report) {
  const auto before = in_use(harness, device);
  if (!before) return;
  const auto model = harness.load(device, sample.blob, sample.graph.weights);
  const ProgramPtr program = harness.create(model->get());
  const std::uint64_t taken = *in_use(harness, device) - *before;
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
  const npu4_backend& api = harness.api;
  if (api.blob_memory == nullptr && api.model_memory == nullptr) {
    throw NotApplicable("blob_memory and model_memory are null");
  }
  const Instance sample = make_sample(harness);
  npu4_device* device = sample.device.get();
  if (api.blob_memory != nullptr) {
    Report report(harness);
    ask_blob(harness, device, sample.blob, report);
    harness.found.expect(report.boundary() >= boundary_of(sample),
                         "blob_memory: the buffers have " + std::to_string(boundary_of(sample)) +
                             " bytes, it says " + std::to_string(report.boundary()));
    compare_use(harness, device, sample, report);
    harness.found.expect(in_use(harness, device) == in_use(harness, device),
                         "device_memory gives another number when nothing happened");
    auto error = sized<npu4_error>();
    const std::string noise(4096, 'x');
    const npu4_status status =
        api.blob_memory(device, noise.data(), noise.size(), report.get(), &error);
    harness.check_error(status, error, "blob_memory of noise");
    harness.found.expect(status == NPU4_INVALID || status == NPU4_INCOMPATIBLE,
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
  auto error = sized<npu4_error>();
  harness.require_ok(api.model_memory(sample.model->get(), loaded.get(), &error), error,
                     "model_memory");
}

namespace {

DevicePtr open_limited(const Harness& harness, std::uint64_t limit) {
  auto args = sized<npu4_open_args>();
  args.device_id = harness.facts().id.c_str();
  args.threads = 2;
  args.memory_limit_bytes = limit;
  npu4_device* device = nullptr;
  auto error = sized<npu4_error>();
  harness.require_ok(harness.api.device_open(&args, &device, &error), error,
                     "device_open with a memory limit of " + std::to_string(limit) + " bytes");
  return {device, harness.api.device_close};
}

// Loads, and makes a program and the buffers. The status and error of the first call that fails.
npu4_status take_all(const Harness& harness, npu4_device* device, const Instance& sample,
                     npu4_error& error) {
  const npu4_backend& api = harness.api;
  LoadedModel model(api, sample.blob,
                    (harness.library.flags & NPU4_BLOB_HOLDS_WEIGHTS) != 0
                        ? std::vector<WeightSpec>()
                        : sample.graph.weights);
  npu4_status status = model.load(device, error);
  if (status != NPU4_OK) return status;
  const auto args = sized<npu4_program_args>();
  npu4_program* program = nullptr;
  status = api.program_create(model.get(), &args, &program, &error);
  if (status != NPU4_OK) return status;
  const ProgramPtr owned(program, api.program_free);
  std::vector<TensorSpec> tensors = sample.graph.inputs;
  for (const std::string& output : sample.graph.outputs) {
    tensors.push_back(sample.graph.tensor(output));
  }
  std::vector<BufferPtr> buffers;
  for (const TensorSpec& tensor : tensors) {
    auto desc = sized<npu4_buffer_desc>();
    desc.dtype = static_cast<npu4_dtype>(tensor.dtype);
    desc.rank = static_cast<std::uint32_t>(tensor.shape.size());
    desc.shape = tensor.shape.data();
    desc.bytes = Tensor(tensor.dtype, tensor.shape).bytes();
    npu4_buffer* buffer = nullptr;
    status = api.buffer_create(device, &desc, &buffer, &error);
    if (status != NPU4_OK) return status;
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
  auto error = sized<npu4_error>();
  const DevicePtr half = open_limited(harness, whole / 2);
  const npu4_status status = take_all(harness, half.get(), sample, error);
  harness.check_error(status, error, "a model with half of its memory");
  harness.found.expect(status == NPU4_MEMORY, "a model with half of its memory gives " +
                                                  status_name(status) + ", not MEMORY");
  constexpr std::uint64_t kNumbers = NPU4_KNOWN_REQUESTED | NPU4_KNOWN_AVAILABLE;
  harness.found.expect(status != NPU4_MEMORY || ((error.known & kNumbers) == kNumbers &&
                                                 error.requested_bytes > error.available_bytes),
                       "a model with half of its memory fails without numbers");
  const DevicePtr enough = open_limited(harness, whole);
  error = sized<npu4_error>();
  for (int times = 0; times < 2; ++times) {
    harness.require_ok(take_all(harness, enough.get(), sample, error), error,
                       "a model with as much memory as its report says");
  }
}

}  // namespace npu::conformance
