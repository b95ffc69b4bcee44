// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <vector>

#include "gnn/exchange/late_rows.hpp"
#include "gnn/exchange/rank_layout.hpp"
#include "gnn/exchange/row_file.hpp"
#include "npu/tensor/tensor.hpp"
#include "support/elapsed.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {

/// The exchange before one layer, as this rank saw it.
struct LayerExchange {
  std::size_t layer = 0;
  Clock::time_point begin;  ///< of what is sent
  Clock::time_point end;    ///< when all was received
  double ms = 0;            ///< what it took, with the sums before and after it
  double hidden_ms = 0;     ///< of that, while nothing waited for it
};

/// What a rank sends and receives before every layer. The rows come while the layer is computed:
/// whoever reads one waits until they are there.
class RankExchange : public LateRows {
 public:
  /// Refers to all of them; null: there is one rank, which only adds up sums. `row_bytes` of the
  /// plan: before a layer where they are 0 nothing crosses or adds up. `factors` of the owned rows
  /// in sums; empty: 1.
  RankExchange(const RankLayout& layout, const Transport* transport,
               const std::vector<std::int64_t>& row_bytes, const std::vector<float>& factors,
               std::int32_t threads);

  /// Begins the exchange of rows of the input `x` of a layer, from 0. `x` stays until await().
  void begin(std::size_t layer, Tensor& x);
  /// The same with the owned rows in a file: what is received stays here, for fill().
  void begin(std::size_t layer, RowFile& own);
  /// Writes rows of the layer's input, as RankLayout numbers them, to `out`. Waits if one of them
  /// is late. From one thread.
  void fill(const std::vector<std::int32_t>& rows, RowFile& own, float* out);

  const std::vector<char>& is_late() const override { return layout_.late; }
  void await() override;
  void rethrow_failure() override;

  std::int64_t count() const noexcept { return count_; }
  std::int64_t bytes_sent() const noexcept { return bytes_sent_; }
  double ms() const noexcept { return ms_; }                ///< of all exchanges
  double hidden_ms() const noexcept { return hidden_ms_; }  ///< of all exchanges
  /// Of the last run, layer by layer.
  const std::vector<LayerExchange>& last_run() const noexcept { return last_run_; }

 private:
  RowSums::Rows rows() const noexcept;
  void start(std::size_t layer, Clock::time_point begin, float* in);
  void end_without_others();
  void receive();
  void add_up(const RowSums& sums, std::int64_t first, std::int64_t last, RowFile& own, float* out);

  const RankLayout& layout_;
  const Transport* transport_;
  const std::vector<std::int64_t>& row_bytes_;
  const std::vector<float>& factors_;
  std::int32_t threads_;
  std::vector<float> out_;
  std::vector<float> in_;
  std::vector<std::int64_t> place_;  // of owned rows that were read for sums, by row
  std::vector<float> read_;
  std::int64_t count_ = 0;
  std::int64_t bytes_sent_ = 0;
  std::mutex mutex_;  // of what follows
  Tensor held_;       // shares the memory that rows come to, for as long as they may come
  float* x_ = nullptr;
  std::int64_t width_ = 0;
  bool is_open_ = false;  // rows are to come
  std::exception_ptr failure_;
  Clock::time_point started_;
  double ms_ = 0;
  double hidden_ms_ = 0;
  std::vector<LayerExchange> last_run_;
};

}  // namespace npu::gnn
