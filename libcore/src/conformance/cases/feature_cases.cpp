// SPDX-License-Identifier: Apache-2.0
// Cases of what a backend may leave out: mapping, wrapping, questions about blobs, and weights that
// several models share.
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "conformance/cases/cases.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

namespace npu::conformance {

void check_mapping(const Harness& harness) {
  const npu_backend& api = harness.api;
  if (api.buffer_map == nullptr) throw NotApplicable("buffer_map is null");
  const auto& memories = harness.facts().memory_flags;
  if (memories.empty() || (memories.front() & NPU_HOST_MAPPABLE) == 0) {
    throw NotApplicable("memory 0 is not mappable");
  }
  const Instance sample = make_sample(harness);
  auto error = sized<npu_error>();
  npu_buffer* buffer = sample.in.front().get();
  const Tensor& input = sample.inputs.front();
  void* pointer = nullptr;
  harness.require_ok(api.buffer_map(buffer, NPU_ACCESS_READ, &pointer, &error), error,
                     "buffer_map for reading");
  harness.found.expect(pointer != nullptr && std::memcmp(pointer, input.data(), input.bytes()) == 0,
                       "a mapping does not show what was written");
  api.buffer_unmap(buffer);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  const Tensor zeros(input.dtype(), input.shape());
  harness.write(buffer, zeros);
  harness.require_ok(api.buffer_map(buffer, NPU_ACCESS_WRITE, &pointer, &error), error,
                     "buffer_map for writing");
  std::memcpy(pointer, input.data(), input.bytes());
  api.buffer_unmap(buffer);
  harness.found.expect(same_bits({harness.read(buffer, sample.graph.inputs.front())}, {input}),
                       "buffer_read does not see what a mapping wrote");
  harness.found.expect(same_bits(run_and_read(harness, sample), expected),
                       "a run does not see what a mapping wrote");
}

namespace {

BufferPtr wrap(const Harness& harness, npu_device* device, const TensorSpec& spec, void* memory,
               std::uint32_t access, npu_status& status) {
  const Tensor sizes(spec.dtype, spec.shape);
  auto desc = sized<npu_buffer_desc>();
  desc.dtype = static_cast<npu_dtype>(spec.dtype);
  desc.rank = static_cast<std::uint32_t>(spec.shape.size());
  desc.shape = spec.shape.data();
  desc.bytes = sizes.bytes();
  auto external = sized<npu_external>();
  external.type = NPU_HOST_POINTER;
  external.access = access;
  external.pointer = memory;
  external.bytes = sizes.bytes();
  npu_buffer* buffer = nullptr;
  auto error = sized<npu_error>();
  status = harness.api.buffer_wrap(device, &desc, &external, &buffer, &error);
  harness.check_error(status, error, "buffer_wrap");
  return {status == NPU_OK ? buffer : nullptr, harness.api.buffer_free};
}

/// Where the first page of `page` bytes begins, of which there is one.
void* first_page(std::vector<std::byte>& memory, std::size_t page) {
  void* begin = memory.data();
  std::size_t room = memory.size();
  return std::align(page, page, begin, room);
}

}  // namespace

void check_wrapping(const Harness& harness) {
  if (harness.api.buffer_wrap == nullptr) {
    harness.found.require(false, "the feature wrap.host is listed, but buffer_wrap is null");
  }
  Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  const TensorSpec spec = sample.graph.inputs.front();
  const Tensor& input = sample.inputs.front();
  constexpr std::size_t kPage = 4096;
  std::vector<std::byte> memory(3 * kPage + input.bytes());
  auto* const aligned = static_cast<std::byte*>(first_page(memory, kPage));
  for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
    std::memcpy(aligned + shift, input.data(), input.bytes());
    npu_status status = NPU_OK;
    BufferPtr wrapped =
        wrap(harness, sample.device.get(), spec, aligned + shift, NPU_ACCESS_READ, status);
    harness.found.expect(status == NPU_OK || status == NPU_UNSUPPORTED,
                         "buffer_wrap gives " + status_name(status));
    harness.found.expect(shift != 0 || status == NPU_OK,
                         "memory that begins at a page is not wrapped");
    if (wrapped == nullptr) continue;
    std::swap(wrapped, sample.in.front());
    harness.found.expect(same_bits(run_and_read(harness, sample), expected),
                         "a run gives other values for an input that is wrapped");
    std::swap(wrapped, sample.in.front());
    wrapped.reset();
    harness.found.expect(std::memcmp(aligned + shift, input.data(), input.bytes()) == 0,
                         "memory that was wrapped for reading is another one afterwards");
  }
  const TensorSpec result = sample.graph.tensor(sample.graph.outputs.front());
  std::vector<std::byte> place(2 * kPage + expected.front().bytes());
  void* begin = first_page(place, kPage);
  npu_status status = NPU_OK;
  BufferPtr wrapped =
      wrap(harness, sample.device.get(), result, begin, NPU_ACCESS_READ | NPU_ACCESS_WRITE, status);
  if (wrapped == nullptr) return;
  std::swap(wrapped, sample.out.front());
  run_and_read(harness, sample);
  std::swap(wrapped, sample.out.front());
  wrapped.reset();
  harness.found.expect(std::memcmp(begin, expected.front().data(), expected.front().bytes()) == 0,
                       "a wrapped output does not hold the result after buffer_free");
}

void check_blob_questions(const Harness& harness) {
  const npu_backend& api = harness.api;
  if (api.blob_report == nullptr && api.blob_check == nullptr) {
    throw NotApplicable("blob_report and blob_check are null");
  }
  const Instance sample = make_sample(harness);
  auto error = sized<npu_error>();
  if (api.blob_report != nullptr) {
    std::string text;
    auto writer = sized<npu_writer>();
    writer.context = &text;
    writer.write = append_bytes;
    harness.require_ok(api.blob_report(sample.device.get(), sample.blob.data(), sample.blob.size(),
                                       &writer, &error),
                       error, "blob_report");
    try {
      harness.found.expect(parse_json(text, "report").is_object(), "the report is no object");
    } catch (const Error& fault) {
      harness.found.expect(false, std::string("the report is no JSON: ") + fault.what());
    }
  }
  if (api.blob_check == nullptr) return;
  auto verdict = sized<npu_blob_verdict>();
  harness.require_ok(
      api.blob_check(sample.device.get(), sample.blob.data(), sample.blob.size(), &verdict, &error),
      error, "blob_check");
  harness.found.expect(verdict.verdict == NPU_BLOB_FITS || verdict.verdict == NPU_BLOB_SLOW,
                       "a blob that was just compiled does not fit: " +
                           std::string(verdict.reason, ::strnlen(verdict.reason, 255)));
  const std::string noise(4096, 'x');
  const npu_status status =
      api.blob_check(sample.device.get(), noise.data(), noise.size(), &verdict, &error);
  harness.found.expect(
      status == NPU_INVALID || (status == NPU_OK && verdict.verdict == NPU_BLOB_OTHER),
      "blob_check of noise neither fails nor says that it is of something else");
}

void check_shared_weights(const Harness& harness) {
  const npu_backend& api = harness.api;
  if (api.weights_load == nullptr) throw NotApplicable("weights_load is null");
  harness.found.require(api.weights_free != nullptr, "weights_load comes without weights_free");
  DevicePtr device = harness.open();
  harness.found.require(!harness.facts().dtypes.empty(), "the device lists no dtype");
  const DType dtype = harness.facts().dtypes.front();
  GraphSpec graph = one_node("aten.add.Tensor", {{"x", dtype, {3, 5}}, {"w", dtype, {3, 5}}},
                             {"sum", dtype, {3, 5}});
  graph.weights.push_back({"w", test_values(graph.inputs.back(), 3)});
  graph.inputs.pop_back();
  const Compiled compiled = harness.compile(device.get(), graph);
  if (compiled.status != NPU_OK) throw NotApplicable("no add with a weight compiles");
  npu_device* const opened = device.get();
  const Instance plain = make_instance(harness, std::move(device), graph, compiled.blob);
  const std::vector<Tensor> expected = run_and_read(harness, plain);
  const Tensor& weight = graph.weights.front().tensor;
  auto view = sized<npu_tensor>();
  view.name = "w";
  view.dtype = static_cast<npu_dtype>(dtype);
  view.rank = 2;
  view.shape = weight.shape().data();
  view.data = weight.data();
  view.bytes = weight.bytes();
  const npu_tensor* views[] = {&view};
  npu_weights* weights = nullptr;
  auto info = sized<npu_model_info>();
  auto error = sized<npu_error>();
  harness.require_ok(api.weights_load(opened, views, 1, &info, &weights, &error), error,
                     "weights_load");
  const std::unique_ptr<npu_weights, void (*)(npu_weights*)> owned(weights, api.weights_free);
  for (int times = 0; times < 2; ++times) {
    npu_weights* const shared[] = {weights};
    auto args = sized<npu_load_args>();
    args.blob = compiled.blob.data();
    args.blob_size = compiled.blob.size();
    args.shared = shared;
    args.shared_count = 1;
    npu_model* model = nullptr;
    harness.require_ok(api.model_load(opened, &args, &info, &model, &error), error,
                       "model_load with shared weights");
    const std::unique_ptr<npu_model, void (*)(npu_model*)> owner(model, api.model_free);
    const ProgramPtr program = harness.create(model);
    const std::vector<npu_buffer*> inputs = plain.input_handles();
    const std::vector<npu_buffer*> outputs = plain.output_handles();
    const npu_run_args with = run_args(inputs, outputs);
    harness.require_ok(api.run(program.get(), &with, &error), error, "run with shared weights");
    harness.found.expect(
        same_bits({harness.read(plain.out.front().get(), graph.tensor("sum"))}, expected),
        "a model with shared weights gives other values");
  }
}

}  // namespace npu::conformance
