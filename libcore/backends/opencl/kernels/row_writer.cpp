// SPDX-License-Identifier: Apache-2.0
// A row belongs to a work group whose items reduce parts of it, or on a CPU and if it is short to a
// work item.
#include "kernels/row_writer.hpp"

#include <algorithm>

#include "support/checked.hpp"

namespace npu::opencl {
namespace {

constexpr std::int64_t kShortRow = 32;  ///< below it a work item reduces a row faster than a group

std::int64_t elements(const Shape& shape) { return checked_element_count(shape).value_or(0); }

}  // namespace

RowWriter::RowWriter(Emitter& emitter, const Shape& rows, Shape inner, const RowForm& form)
    : emitter_(emitter),
      row_count_(elements(rows)),
      inner_(std::move(inner)),
      inner_count_(elements(inner_)) {
  const Machine& machine = emitter.model().machine();
  const bool is_single = machine.is_cpu || inner_count_ <= kShortRow;
  lanes_ = 1;
  while (!is_single && lanes_ < 256 && static_cast<std::int64_t>(lanes_) < inner_count_ &&
         static_cast<std::int64_t>(2 * lanes_) <= machine.max_group) {
    lanes_ *= 2;
  }
  if (!is_single) tune_lanes(machine, form);
  local_ = lanes_ > 1 ? lanes_ : (inner_count_ > kShortRow ? 1 : 64);
  const std::string& type = emitter.index_type();
  emitter.line("const " + type + " r = " + (lanes_ > 1 ? "get_group_id(0);" : "get_global_id(0);"));
  if (lanes_ > 1) {
    emitter.line("const int lane = get_local_id(0);");
  } else {
    emitter.line("if (r >= " + emitter.size(row_count_) + ") return;");
  }
  row_ = emitter.define_index(index_of_place("r", rows));
}

void RowWriter::tune_lanes(const Machine& machine, const RowForm& form) {
  constexpr std::int64_t kMostLanes = 1024;
  constexpr std::int64_t kLargestValue = 8;  // bytes of a lane's part of a reduction
  const auto fits = [&](std::int64_t lanes) {
    const bool is_power = lanes > 1 && (lanes & (lanes - 1)) == 0;
    return is_power && lanes <= std::min(kMostLanes, machine.max_group) &&
           lanes * kLargestValue * form.reductions <= machine.local_bytes;
  };
  tunable_ = Tunable{"rows " + std::string(dtype_name(form.dtype)) + " " + form.ops + " n" +
                         std::to_string(row_count_) + " of " + std::to_string(inner_count_),
                     {{static_cast<std::int64_t>(lanes_)}}};
  for (const std::int64_t lanes : {32, 64, 128, 512}) {
    if (fits(lanes)) tunable_->candidates.push_back({lanes});
  }
  const auto* sizes = tuned_sizes(machine, tunable_->key);
  if (sizes == nullptr) return;
  const bool is_rule = *sizes == tunable_->candidates.front();
  if (sizes->size() != 1 || !(is_rule || fits(sizes->front()))) {
    refuse_tuning(tunable_->key, *sizes);
  }
  lanes_ = static_cast<std::uint64_t>(sizes->front());
}

Index RowWriter::begin_loop() {
  const std::string i = emitter_.fresh("i");
  emitter_.open("for (" + emitter_.index_type() + " " + i + " = " + (lanes_ > 1 ? "lane" : "0") +
                "; " + i + " < " + std::to_string(inner_count_) + "; " + i +
                " += " + std::to_string(lanes_) + ")");
  return emitter_.define_index(index_of_place(i, inner_));
}

void RowWriter::end_loop() { emitter_.close(); }

void RowWriter::begin_single() { emitter_.open(lanes_ > 1 ? "if (lane == 0)" : "if (1)"); }

std::string RowWriter::reduce(DType dtype, const std::string& operation,
                              const std::function<std::string(const Index&)>& value) {
  const std::string type = value_type(dtype);
  const bool is_extreme = operation == "max" || operation == "min";
  const std::string start = operation == "max"   ? lowest(dtype)
                            : operation == "min" ? highest(dtype)
                            : operation == "*"   ? literal(1.0, dtype)
                            : operation == "&"   ? literal(1.0, dtype)
                                                 : literal(0.0, dtype);
  const auto joined = [&](const std::string& a, const std::string& b) {
    if (!is_extreme) return a + " " + operation + " " + b;
    const std::string sign = operation == "max" ? " > " : " < ";
    const std::string is_nan = is_floating_point(dtype) ? " || " + b + " != " + b : "";
    return "(" + b + sign + a + is_nan + ") ? " + b + " : " + a;
  };
  std::string sum = emitter_.fresh("a");
  emitter_.line(type + " " + sum + " = " + start + ";");
  const Index inner = begin_loop();
  const std::string each = emitter_.define(dtype, value(inner));
  emitter_.line(sum + " = " + joined(sum, each) + ";");
  end_loop();
  if (lanes_ == 1) return sum;
  const std::string shared = emitter_.fresh("w");
  emitter_.local_array(type, shared, {static_cast<std::int64_t>(lanes_)});
  emitter_.line(shared + "[lane] = " + sum + ";");
  emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
  emitter_.open("for (int half_ = " + std::to_string(lanes_ / 2) + "; half_ > 0; half_ /= 2)");
  emitter_.line("if (lane < half_) " + shared +
                "[lane] = " + joined(shared + "[lane]", shared + "[lane + half_]") + ";");
  emitter_.line("barrier(CLK_LOCAL_MEM_FENCE);");
  emitter_.close();
  return emitter_.define(dtype, shared + "[0]");
}

GeneratedKernel RowWriter::finish() {
  const auto rows = static_cast<std::uint64_t>(row_count_);
  const std::uint64_t groups = lanes_ > 1 ? rows : (rows + local_ - 1) / local_;
  GeneratedKernel kernel = finished(emitter_, {groups, 1, 1}, {local_, 1, 1});
  kernel.tunable = tunable_;
  return kernel;
}

}  // namespace npu::opencl
