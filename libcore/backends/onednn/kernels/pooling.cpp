// SPDX-License-Identifier: Apache-2.0
// Averages of windows that oneDNN's pooling does not describe: uneven ones, own divisors. Sums are
// float64. O(elements of windows).
#include "kernels/pooling.hpp"

#include "kernels/elements.hpp"
#include "kernels/share_work.hpp"

namespace npu::onednn {

namespace {

template <typename T>
void average_windows(const WindowAverage& call, const T* source, T* target) {
  const auto& [slices, rows, columns] = call.windows;
  const std::int64_t height = call.extents[1];
  const std::int64_t width = call.extents[2];
  const std::int64_t plane_elements = call.extents[0] * height * width;
  const auto outputs = static_cast<std::int64_t>(slices.size() * rows.size() * columns.size());
  const int threads = threads_for(call.planes * plane_elements >= kParallelElements);
  share_pieces(call.planes, threads, [&](std::int64_t plane, int) {
    const T* from = source + plane * plane_elements;
    T* to = target + plane * outputs;
    for (const Window& slice : slices) {
      for (const Window& row : rows) {
        for (const Window& column : columns) {
          double sum = 0.0;
          for (std::int64_t z = slice.begin; z < slice.end; ++z) {
            for (std::int64_t y = row.begin; y < row.end; ++y) {
              for (std::int64_t x = column.begin; x < column.end; ++x) {
                sum += static_cast<double>(load(from[(z * height + y) * width + x]));
              }
            }
          }
          const std::int64_t divisor = call.divisor_override != 0
                                           ? call.divisor_override
                                           : slice.divisor * row.divisor * column.divisor;
          store(*to++, static_cast<float>(sum / static_cast<double>(divisor)));
        }
      }
    }
  });
}

}  // namespace

void WindowAverage::run(const Operands& operands) const {
  const auto [source, target] = operands;
  if (type == DType::kFloat32) {
    average_windows(*this, elements<float>(source), elements<float>(target));
  } else {
    average_windows(*this, elements<BFloat16>(source), elements<BFloat16>(target));
  }
}

}  // namespace npu::onednn
