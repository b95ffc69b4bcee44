// SPDX-License-Identifier: Apache-2.0
// The footprints of recurrent layers.
#include "kernels/footprint_builder.hpp"

namespace npu::onednn {

namespace {

constexpr std::int64_t kMostLayers = 1024;

/// Checks that weight_floats() does not overflow.
void check_weights(const Recurrence& kernel, std::int64_t inputs) {
  static_cast<void>((at_least_one(kernel.hidden, "hidden") + Count{16}) * 4 *
                    (at_least_one(inputs, "inputs") + kernel.hidden + Count{2}) * kFloat);
}

}  // namespace

Footprint footprint(const Recurrence& kernel) {
  require(kernel.layers >= 1 && kernel.layers <= kMostLayers, "'layers' is not in 1..1024");
  require(kernel.directions == 1 || kernel.directions == 2, "'directions' is not 1 or 2");
  check_weights(kernel, kernel.inputs);
  check_weights(kernel, kernel.directions * kernel.hidden);
  const Count rows = at_least_one(kernel.steps, "steps") * at_least_one(kernel.batch, "batch");
  const Count states = Count{kernel.layers} * kernel.directions * kernel.batch * kernel.hidden;
  // Gates of all steps, two outputs and cells.
  const Count scratch = (rows + kernel.batch) * kernel.directions * (Count{kernel.hidden} + 16) * 8;
  FootprintBuilder builder;
  builder.read(rows * kernel.inputs)
      .read(states)
      .read_if(kernel.cell == Recurrence::Cell::kLstm, states);
  for (std::int64_t i = 0; i < kernel.layers * kernel.directions; ++i) {
    builder.read(kernel.weight_floats(kernel.inputs_of(i / kernel.directions)));
  }
  builder.write(kernel.target_floats());
  return builder.with_scratch(kernel, scratch * kFloat);
}

Footprint footprint(const RecurrenceWeights& kernel) {
  const Recurrence layer = kernel.layer();
  check_weights(layer, kernel.inputs);
  const Count rows = Count{layer.gates()} * kernel.hidden;
  return FootprintBuilder()
      .read(rows * kernel.inputs)
      .read(rows * kernel.hidden)
      .read_if(kernel.has_biases, rows)
      .read_if(kernel.has_biases, rows)
      .write(layer.weight_floats(kernel.inputs))
      .done();
}

}  // namespace npu::onednn
