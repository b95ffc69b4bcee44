// SPDX-License-Identifier: Apache-2.0
// Cases of runs: what they write and leave alone, that they repeat, wrong arguments, and the order
// in which objects are freed.
#include <cstring>
#include <string>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/process_state.hpp"

namespace npu::conformance {
namespace {

void fill_outputs(const Harness& harness, const Instance& sample, int byte) {
  for (std::size_t i = 0; i < sample.out.size(); ++i) {
    const TensorSpec spec = sample.graph.tensor(sample.graph.outputs[i]);
    Tensor pattern(spec.dtype, spec.shape);
    std::memset(pattern.mutable_data(), byte, pattern.bytes());
    harness.write(sample.out[i].get(), pattern);
  }
}

bool are_inputs_unchanged(const Harness& harness, const Instance& sample) {
  std::vector<Tensor> now;
  for (std::size_t i = 0; i < sample.in.size(); ++i) {
    now.push_back(harness.read(sample.in[i].get(), sample.graph.inputs[i]));
  }
  return same_bits(now, sample.inputs);
}

}  // namespace

void check_outputs(const Harness& harness) {
  const Instance sample = make_sample(harness);
  fill_outputs(harness, sample, 0xa5);
  const std::vector<Tensor> first = run_and_read(harness, sample);
  fill_outputs(harness, sample, 0x5a);
  const std::vector<Tensor> second = run_and_read(harness, sample);
  harness.found.expect(same_bits(first, second),
                       "outputs keep some of what was in their buffers before the run");
  harness.found.expect(are_inputs_unchanged(harness, sample), "a run changes its inputs");
  // Writing to an output must not reach an input or another output.
  fill_outputs(harness, sample, 0xff);
  harness.found.expect(are_inputs_unchanged(harness, sample),
                       "an output shares memory with an input");
  harness.found.expect(same_bits(run_and_read(harness, sample), first),
                       "a run gives other values once its outputs were overwritten");
}

void check_repeated_runs(const Harness& harness) {
  const int repeats = harness.quick ? 20 : 100;
  const Instance sample = make_sample(harness);
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  for (int i = 0; i < 10; ++i) run_and_read(harness, sample);
  const ProcessState before = ProcessState::now();
  bool is_same = true;
  for (int i = 0; i < repeats; ++i) {
    is_same = same_bits(run_and_read(harness, sample), expected) && is_same;
  }
  harness.found.expect(
      is_same, "the same inputs give other values in one of " + std::to_string(repeats) + " runs");
  expect_no_growth(harness.found, before, repeats, "run");
  // A second program of the model, and a second model of the blob, compute the same.
  ProgramPtr second = harness.create(sample.model->get());
  const Instance other = make_instance(harness, harness.open(), sample.graph, sample.blob);
  harness.found.expect(same_bits(run_and_read(harness, other), expected),
                       "the blob loaded again gives other values");
}

namespace {

// A run with some argument wrong is INVALID, and the program works as before.
class WrongRuns {
 public:
  WrongRuns(const Harness& harness, const Instance& sample)
      : harness_(harness), sample_(sample), expected_(run_and_read(harness, sample)) {}

  void expect_invalid(const std::vector<npu_buffer*>& inputs,
                      const std::vector<npu_buffer*>& outputs, const std::string& what) const {
    const npu_run_args args = run_args(inputs, outputs);
    auto error = sized<npu_error>();
    const npu_status status = harness_.api.run(sample_.program.get(), &args, &error);
    harness_.check_error(status, error, "run with " + what);
    harness_.found.expect(status == NPU_INVALID,
                          "run with " + what + " gives " + status_name(status) + ", not INVALID");
    harness_.found.expect(same_bits(run_and_read(harness_, sample_), expected_),
                          "after a run with " + what + " a right one gives other values");
  }

 private:
  const Harness& harness_;
  const Instance& sample_;
  std::vector<Tensor> expected_;
};

TensorSpec with_one_more(TensorSpec spec) {
  if (spec.shape.empty()) {
    spec.shape.push_back(2);
  } else {
    ++spec.shape.front();
  }
  return spec;
}

void check_transfers(const Harness& harness, const Instance& sample) {
  if (harness.api.buffer_write == nullptr || harness.api.buffer_read == nullptr) return;
  const std::uint64_t bytes = sample.inputs.front().bytes();
  std::vector<std::byte> memory(bytes + 64);
  const auto wrong = [&](std::uint64_t offset, std::uint64_t size) {
    auto piece = sized<npu_transfer>();
    piece.offset = offset;
    piece.bytes = size;
    piece.data = memory.data();
    const std::string what = std::to_string(size) + " bytes at " + std::to_string(offset) + " of " +
                             std::to_string(bytes);
    auto error = sized<npu_error>();
    npu_status status = harness.api.buffer_read(sample.in.front().get(), &piece, &error);
    harness.check_error(status, error, "buffer_read of " + what);
    harness.found.expect(status == NPU_INVALID,
                         "buffer_read of " + what + " gives " + status_name(status));
    status = harness.api.buffer_write(sample.in.front().get(), &piece, &error);
    harness.found.expect(status == NPU_INVALID,
                         "buffer_write of " + what + " gives " + status_name(status));
  };
  wrong(0, bytes + 1);
  wrong(bytes + 1, 0);
  wrong(1, bytes);
  wrong(~std::uint64_t{0}, 2);
  // Pieces in any order make up the whole.
  auto piece = sized<npu_transfer>();
  const Tensor& input = sample.inputs.front();
  for (const std::uint64_t offset : {bytes / 2, std::uint64_t{0}}) {
    piece.offset = offset;
    piece.bytes = offset == 0 ? bytes / 2 : bytes - bytes / 2;
    piece.data = const_cast<std::byte*>(input.data()) + offset;
    auto error = sized<npu_error>();
    harness.require_ok(harness.api.buffer_write(sample.in.front().get(), &piece, &error), error,
                       "buffer_write of a piece");
  }
  harness.found.expect(are_inputs_unchanged(harness, sample),
                       "what is written in two pieces is read as something else");
}

/// Buffers with just as many bytes: of another shape, and of another dtype where the device has
/// one.
void check_same_bytes(const Harness& harness, const Instance& sample, const WrongRuns& wrong) {
  const std::vector<npu_buffer*> in = sample.input_handles();
  const std::vector<npu_buffer*> out = sample.output_handles();
  const auto expect_invalid = [&](const TensorSpec& spec, bool is_input, const std::string& what) {
    const BufferPtr other = harness.make_buffer(sample.device.get(), spec,
                                                is_input ? NPU_USAGE_INPUT : NPU_USAGE_OUTPUT);
    std::vector<npu_buffer*> inputs = in;
    std::vector<npu_buffer*> outputs = out;
    (is_input ? inputs : outputs).front() = other.get();
    wrong.expect_invalid(inputs, outputs, what);
  };
  const TensorSpec input = sample.graph.inputs.front();
  const TensorSpec output = sample.graph.tensor(sample.graph.outputs.front());
  for (const bool is_input : {true, false}) {
    const std::string place = is_input ? "an input" : "an output";
    TensorSpec flat = is_input ? input : output;
    const Tensor sizes(flat.dtype, flat.shape);
    flat.shape = {sizes.element_count()};
    if (flat.shape != (is_input ? input : output).shape) {
      expect_invalid(flat, is_input, place + " of another shape with the same bytes");
    }
    for (const DType dtype : harness.facts().storage) {
      TensorSpec other = is_input ? input : output;
      if (dtype == other.dtype || dtype_size(dtype) != dtype_size(other.dtype)) continue;
      other.dtype = dtype;
      expect_invalid(other, is_input, place + " of another dtype with the same bytes");
      break;
    }
  }
}

}  // namespace

void check_wrong_buffers(const Harness& harness) {
  const Instance sample = make_sample(harness);
  const WrongRuns wrong(harness, sample);
  const std::vector<npu_buffer*> in = sample.input_handles();
  const std::vector<npu_buffer*> out = sample.output_handles();
  wrong.expect_invalid({}, out, "no inputs");
  wrong.expect_invalid(in, {}, "no outputs");
  std::vector<npu_buffer*> changed = in;
  changed.push_back(in.front());
  wrong.expect_invalid(changed, out, "one input too many");
  std::vector<npu_buffer*> results = out;
  changed = in;
  changed.back() = nullptr;
  wrong.expect_invalid(changed, out, "a null input");
  results.front() = nullptr;
  wrong.expect_invalid(in, results, "a null output");
  const TensorSpec larger = with_one_more(sample.graph.inputs.front());
  const BufferPtr other = harness.make_buffer(sample.device.get(), larger, NPU_USAGE_INPUT);
  changed = in;
  changed.front() = other.get();
  wrong.expect_invalid(changed, out, "an input of another shape");
  const BufferPtr large = harness.make_buffer(
      sample.device.get(), with_one_more(sample.graph.tensor(sample.graph.outputs.front())),
      NPU_USAGE_OUTPUT);
  results = out;
  results.front() = large.get();
  wrong.expect_invalid(in, results, "an output of another shape");
  results = out;
  results.push_back(large.get());
  wrong.expect_invalid(in, results, "one output too many");
  check_same_bytes(harness, sample, wrong);
  check_transfers(harness, sample);
}

void check_freeing(const Harness& harness) {
  const npu_backend& api = harness.api;
  api.model_free(nullptr);
  api.program_free(nullptr);
  api.buffer_free(nullptr);
  api.device_close(nullptr);
  if (api.weights_free != nullptr) api.weights_free(nullptr);
  Instance first = make_sample(harness);
  const GraphSpec graph = first.graph;
  const std::string blob = first.blob;
  const std::vector<Tensor> expected = run_and_read(harness, first);
  // Buffers before the program.
  first.in.clear();
  first.out.clear();
  first.program.reset();
  first.model.reset();
  first.device.reset();
  // Program and model before the buffers, which keep what the run wrote.
  Instance second = make_instance(harness, harness.open(), graph, blob);
  run_and_read(harness, second);
  second.program.reset();
  second.model.reset();
  const Tensor kept = harness.read(second.out.front().get(), graph.tensor(graph.outputs.front()));
  harness.found.expect(same_bits({kept}, {expected.front()}),
                       "an output changes when its program and model are freed");
  second.out.clear();
  second.in.clear();
  // One program of two, while the other goes on.
  Instance third = make_instance(harness, std::move(second.device), graph, blob);
  ProgramPtr spare = harness.create(third.model->get());
  spare.reset();
  harness.found.expect(same_bits(run_and_read(harness, third), expected),
                       "a run gives other values once another program of its model is freed");
  harness.found.expect(true, "");
}

}  // namespace npu::conformance
