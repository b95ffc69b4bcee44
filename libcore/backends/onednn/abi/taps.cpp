// SPDX-License-Identifier: Apache-2.0
// The intermediate results that a run is asked for, checked before it begins.
#include <algorithm>
#include <unordered_set>

#include "abi/boundary.hpp"

namespace npu::onednn::abi {
namespace {

Program::TapTarget checked_tap(const npu_program& program, const npu_tap* tap) {
  require(tap != nullptr && NPU_HAS(tap, buffer) && tap->name != nullptr && tap->buffer != nullptr,
          "a tap is null, or its name or buffer");
  const auto found = program.tap_numbers.find(tap->name);
  if (found == program.tap_numbers.end()) {
    throw StatusError{NPU_INVALID, "there is no tap '" + std::string(tap->name) + "'"};
  }
  check_buffer(*tap->buffer, program.program->taps()[found->second].tensor, "tap");
  require(tap->buffer->is_writable, "the buffer of a tap can only be read");
  return {found->second, tap->buffer->data};
}

}  // namespace

void check_buffer(const npu_buffer& buffer, const TensorBinding& binding, const char* kind) {
  const auto text = [](DType dtype, const Shape& shape, const std::string& layout) {
    return std::string(dtype_name(dtype)) + " " + shape_text(shape) +
           (layout.empty() ? "" : " in layout '" + layout + "'");
  };
  if (buffer.dtype != binding.dtype || buffer.shape != binding.shape ||
      buffer.layout != binding.layout) {
    throw StatusError{NPU_INVALID, std::string(kind) + " '" + binding.name + "': expected " +
                                       text(binding.dtype, binding.shape, binding.layout) +
                                       ", found " +
                                       text(buffer.dtype, buffer.shape, buffer.layout)};
  }
}

TapNumbers number_taps(const Program& program) {
  TapNumbers numbers;
  for (std::size_t i = 0; i < program.taps().size(); ++i) {
    numbers.emplace(program.taps()[i].tensor.name, i);
  }
  return numbers;
}

void place_taps(npu_program& program, const npu_run_args& args) {
  program.taps.clear();
  if (!NPU_HAS(&args, tap_count) || args.tap_count == 0) return;
  require(args.taps != nullptr, "taps is null");
  std::unordered_set<const npu_buffer*> passed(args.inputs, args.inputs + args.input_count);
  passed.insert(args.outputs, args.outputs + args.output_count);
  for (std::uint64_t i = 0; i < args.tap_count; ++i) {
    program.taps.push_back(checked_tap(program, args.taps[i]));
    require(passed.insert(args.taps[i]->buffer).second, "the buffer of a tap is passed twice");
  }
  std::sort(program.taps.begin(), program.taps.end(),
            [](const auto& a, const auto& b) { return a.tap < b.tap; });
}

}  // namespace npu::onednn::abi
