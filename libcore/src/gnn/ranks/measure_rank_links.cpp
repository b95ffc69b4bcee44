// SPDX-License-Identifier: Apache-2.0
// Latency and rate of the links between the processes of a launcher, by the transport that carries
// rows of a plan: one pair after another sends a row, the others wait.
//
// A time is that of the end that takes longer, both having begun together; the median of some. The
// latency is that of 8 bytes. The longest row, of up to 64 MiB, is one that takes a tenth of a
// second, so that slow links do not keep everyone. O(ranks^2).
#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "gnn/exchange/rank_links.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "support/elapsed.hpp"
#include "support/statistics.hpp"
#include "transport/transport.hpp"

namespace npu::gnn {
namespace {

constexpr std::int64_t kShortRow = 8;
constexpr std::int64_t kFirstRow = std::int64_t{64} << 10;
constexpr std::int64_t kLongestRow = std::int64_t{64} << 20;
constexpr double kLongEnoughMs = 100;
constexpr int kShortRuns = 21;
constexpr int kLongRuns = 3;

class LinkMeter {
 public:
  explicit LinkMeter(const Transport& ranks) : ranks_(ranks) {}

  RankLink measure(std::int32_t from, std::int32_t to) {
    sends_ = ranks_.rank() == from;
    receives_ = ranks_.rank() == to;
    const auto peers = [](bool has, std::int32_t other) {
      return has ? TransportPeers{{other}, {1}} : TransportPeers{};
    };
    ranks_.connect(peers(receives_, from), peers(sends_, to));
    const double short_ms = exchange_ms(kShortRow, kShortRuns);
    std::int64_t bytes = kFirstRow;
    double long_ms = exchange_ms(bytes, kLongRuns);
    while (long_ms < kLongEnoughMs && bytes < kLongestRow) {
      bytes = std::min(kLongestRow, 4 * bytes);
      long_ms = exchange_ms(bytes, kLongRuns);
    }
    const double ms = std::max(1e-6, long_ms - short_ms);
    return {std::max<std::int64_t>(1, std::llround(static_cast<double>(bytes) / ms * 1e3)),
            std::round(short_ms * 1e6) / 1e3};
  }

 private:
  double exchange_ms(std::int64_t bytes, int runs) {
    out_.resize(sends_ ? index_of(bytes) : 0);
    in_.resize(receives_ ? index_of(bytes) : 0);
    std::vector<double> times;
    for (int run = 0; run <= runs; ++run) {  // the first one warms up
      ranks_.smallest(0);                    // all begin together
      const auto start = Clock::now();
      ranks_.start(out_.data(), in_.data(), bytes);
      const double ms = std::chrono::duration<double, std::milli>(ranks_.finish() - start).count();
      const bool counts = sends_ || receives_;
      const std::int64_t longest = -ranks_.smallest(counts ? -std::llround(ms * 1e6) : 0);
      if (run > 0) times.push_back(static_cast<double>(longest) / 1e6);
    }
    std::sort(times.begin(), times.end());
    return upper_percentile(times, 50);
  }

  const Transport& ranks_;
  bool sends_ = false;
  bool receives_ = false;
  std::vector<char> out_;
  std::vector<char> in_;
};

}  // namespace

std::optional<RankLinks> measure_rank_links() {
  if (launched_as().size < 2) {
    throw Error(ErrorCode::kFailed,
                "--links measures between processes: start several of them, for example by mpirun "
                "-n 4");
  }
  const std::unique_ptr<Transport> ranks = Transport::join("mpi", "--links");
  RankLinks links;
  links.rank_count = ranks->size();
  links.links.resize(index_of(ranks->size()) * index_of(ranks->size()));
  LinkMeter meter(*ranks);
  for (std::int32_t from = 0; from < ranks->size(); ++from) {
    for (std::int32_t to = 0; to < ranks->size(); ++to) {
      if (from == to) continue;
      links.links[index_of(from) * index_of(ranks->size()) + index_of(to)] =
          meter.measure(from, to);
    }
  }
  const bool is_first = ranks->rank() == 0;
  ranks->leave();
  return is_first ? std::optional(std::move(links)) : std::nullopt;
}

}  // namespace npu::gnn
