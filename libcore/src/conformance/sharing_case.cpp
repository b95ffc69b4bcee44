// SPDX-License-Identifier: Apache-2.0
// The case of memory that drivers pass to each other as a dma-buf. Where the device exports none, a
// udmabuf of the kernel stands in for another driver.
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

#include "conformance/cases.hpp"
#include "conformance/process_state.hpp"
#include "support/descriptor.hpp"

namespace npu::conformance {
namespace {

npu4_external describe(int descriptor, std::uint64_t bytes, std::uint32_t access) {
  auto external = sized<npu4_external>();
  external.type = NPU4_DMABUF_FD;
  external.access = access;
  external.handle = descriptor;
  external.bytes = bytes;
  return external;
}

npu4_status try_wrap(const Harness& harness, npu4_device* device, const TensorSpec& spec,
                     const npu4_external& external, BufferPtr& buffer) {
  const npu4_buffer_desc desc = buffer_desc(spec);
  npu4_buffer* made = nullptr;
  auto error = sized<npu4_error>();
  const npu4_status status = harness.api.buffer_wrap(device, &desc, &external, &made, &error);
  harness.check_error(status, error, "buffer_wrap of a dma-buf");
  buffer = BufferPtr(status == NPU4_OK ? made : nullptr, harness.api.buffer_free);
  return status;
}

BufferPtr wrap(const Harness& harness, npu4_device* device, const TensorSpec& spec,
               const npu4_external& external) {
  BufferPtr buffer(nullptr, harness.api.buffer_free);
  const npu4_status status = try_wrap(harness, device, spec, external, buffer);
  harness.found.require(status == NPU4_OK, "buffer_wrap of a dma-buf gives " + status_name(status));
  return buffer;
}

bool exports(const Harness& harness) {
  const auto& memories = harness.facts().memory_flags;
  return harness.api.buffer_export != nullptr && !memories.empty() &&
         (memories.front() & NPU4_EXPORTS_DMABUF) != 0;
}

BufferPtr make_shared_buffer(const Harness& harness, npu4_device* device, const TensorSpec& spec) {
  return harness.make_buffer(device, spec, NPU4_USAGE_SHARED);
}

npu4_external export_buffer(const Harness& harness, npu4_buffer* buffer, std::uint64_t bytes) {
  auto external = sized<npu4_external>();
  auto error = sized<npu4_error>();
  harness.require_ok(harness.api.buffer_export(buffer, NPU4_DMABUF_FD, &external, &error), error,
                     "buffer_export");
  harness.found.require(
      external.type == NPU4_DMABUF_FD && external.handle >= 0 && external.bytes >= bytes,
      "buffer_export gives no descriptor of the buffer's bytes");
  return external;
}

/// What one buffer holds, another one in its memory holds, in both directions and after it is gone.
void check_round_trip(const Harness& harness, Instance& sample) {
  npu4_device* const device = sample.device.get();
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  const TensorSpec spec = sample.graph.inputs.front();
  BufferPtr source = make_shared_buffer(harness, device, spec);
  npu4_external external = export_buffer(harness, source.get(), tensor_bytes(spec));
  const Descriptor descriptor(static_cast<int>(external.handle));
  external.access = NPU4_ACCESS_READ;
  BufferPtr wrapped = wrap(harness, device, spec, external);
  harness.write(source.get(), sample.inputs.front());
  harness.found.expect(same_bits({harness.read(wrapped.get(), spec)}, {sample.inputs.front()}),
                       "a buffer in the memory of another one has another content");
  source.reset();
  std::swap(wrapped, sample.in.front());
  harness.found.expect(same_bits(run_and_read(harness, sample), expected),
                       "a run gives other values for an input in a dma-buf whose maker is gone");
  std::swap(wrapped, sample.in.front());
  const TensorSpec result = sample.graph.tensor(sample.graph.outputs.front());
  BufferPtr place = make_shared_buffer(harness, device, result);
  const npu4_external its = export_buffer(harness, place.get(), tensor_bytes(result));
  const Descriptor its_descriptor(static_cast<int>(its.handle));
  BufferPtr output = wrap(harness, device, result, its);
  std::swap(output, sample.out.front());
  run_and_read(harness, sample);
  std::swap(output, sample.out.front());
  harness.found.expect(same_bits({harness.read(place.get(), result)}, {expected.front()}),
                       "a result in a dma-buf is not what its maker reads there");
}

/// What cannot be used is refused before anything is done with it.
void check_refusals(const Harness& harness, npu4_device* device, const TensorSpec& spec,
                    const npu4_external& good) {
  npu4_external closed = good;
  closed.handle = -1;
  npu4_external shorter = good;
  shorter.bytes = tensor_bytes(spec) - 1;
  npu4_external beyond = good;
  beyond.offset = std::uint64_t{1} << 40;
  npu4_external unknown = good;
  unknown.type = 77;
  for (const auto& [external, what] : {std::pair{&closed, "no descriptor"},
                                       {&shorter, "too few bytes"},
                                       {&beyond, "an offset behind the end"},
                                       {&unknown, "an unknown type"}}) {
    BufferPtr buffer(nullptr, harness.api.buffer_free);
    const npu4_status status = try_wrap(harness, device, spec, *external, buffer);
    harness.found.expect(status == NPU4_INVALID || status == NPU4_UNSUPPORTED,
                         std::string("buffer_wrap of ") + what + " gives " + status_name(status));
  }
}

/// A dma-buf of the kernel with this content, page by page; -1 if there is none.
int make_udmabuf(const Tensor& content) {
  const Descriptor memory(::memfd_create("npu-check", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const Descriptor maker(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t size = (content.bytes() + page - 1) / page * page;
  if (memory.get() < 0 || maker.get() < 0 ||
      ::ftruncate(memory.get(), static_cast<off_t>(size)) != 0 ||
      ::pwrite(memory.get(), content.data(), content.bytes(), 0) !=
          static_cast<ssize_t>(content.bytes()) ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return -1;
  }
  udmabuf_create create{};
  create.memfd = static_cast<std::uint32_t>(memory.get());
  create.flags = UDMABUF_FLAGS_CLOEXEC;
  create.size = size;
  return ::ioctl(maker.get(), UDMABUF_CREATE, &create);
}

}  // namespace

void check_shared_memory(const Harness& harness) {
  harness.found.require(harness.api.buffer_wrap != nullptr,
                        "the feature wrap.dmabuf is listed, but buffer_wrap is null");
  Instance sample = make_sample(harness);
  npu4_device* const device = sample.device.get();
  const TensorSpec spec = sample.graph.inputs.front();
  if (!exports(harness)) {
    const Descriptor descriptor(make_udmabuf(sample.inputs.front()));
    if (descriptor.get() < 0) {
      throw NotApplicable("the device exports no memory, and the kernel gives no udmabuf");
    }
    const npu4_external external = describe(descriptor.get(), tensor_bytes(spec), NPU4_ACCESS_READ);
    BufferPtr wrapped(nullptr, harness.api.buffer_free);
    const npu4_status status = try_wrap(harness, device, spec, external, wrapped);
    if (status == NPU4_UNSUPPORTED) throw NotApplicable("the device does not take a udmabuf");
    harness.found.require(status == NPU4_OK,
                          "buffer_wrap of a dma-buf gives " + status_name(status));
    harness.found.expect(same_bits({harness.read(wrapped.get(), spec)}, {sample.inputs.front()}),
                         "a buffer in a dma-buf has another content");
    check_refusals(harness, device, spec, external);
    return;
  }
  check_round_trip(harness, sample);
  const BufferPtr source = make_shared_buffer(harness, device, spec);
  const npu4_external external = export_buffer(harness, source.get(), tensor_bytes(spec));
  const Descriptor descriptor(static_cast<int>(external.handle));
  check_refusals(harness, device, spec, external);
  const ProcessState before = ProcessState::now();
  constexpr int kRepeats = 20;
  for (int i = 0; i < kRepeats; ++i) check_round_trip(harness, sample);
  expect_no_growth(harness.found, before, kRepeats, "buffers that are exported and wrapped");
}

}  // namespace npu::conformance
