// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace npu::gnn {

/// Runs a program once; returns its milliseconds.
using TimedProgram = std::function<double()>;

/// What it adds to a run if the device ran another program before: the median over `rounds` runs of
/// both programs after each other and after themselves. 0 if that is not above the noise.
double measure_switch_ms(const TimedProgram& a, const TimedProgram& b, std::int32_t rounds);

/// What it adds to a run of `a` and one of `b` behind it that they take turns: the median for `a`
/// and the one for `b`, each 0 if it is not above the noise.
double measure_handover_ms(const TimedProgram& a, const TimedProgram& b, std::int32_t rounds);

}  // namespace npu::gnn
