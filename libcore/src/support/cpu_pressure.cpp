// SPDX-License-Identifier: Apache-2.0
// Whether other programs take the CPUs that threads of this one need: from /proc of Linux, which
// counts for each thread how long it was ready but did not run, and for each CPU how long it was
// idle. Reading costs about a microsecond for each thread, and some tens of them for the CPUs.
// Where /proc is missing or says something else, there is no answer.
#include "support/cpu_pressure.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "support/open_file.hpp"

namespace npu {

namespace {

constexpr std::size_t kMostWatched = 64;  // threads, of which each has an open file

/// Takes the number in front of `text`, behind spaces.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::int64_t this_thread_number() noexcept { return ::syscall(SYS_gettid); }

std::optional<std::uint64_t> parse_schedstat(std::string_view text) {
  if (!take_number(text)) return std::nullopt;
  return take_number(text);
}

std::optional<std::uint64_t> parse_idle_ticks(std::string_view text,
                                              const std::function<bool(std::size_t)>& is_mine) {
  std::optional<std::uint64_t> result;
  while (text.substr(0, 3) == "cpu") {
    std::string_view line = text.substr(3, std::min(text.find('\n'), text.size()) - 3);
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
    if (line.empty() || line.front() == ' ') continue;  // the sum of all
    const auto cpu = take_number(line);
    // user, nice, system, idle, and waiting for disks
    std::array<std::optional<std::uint64_t>, 5> ticks;
    for (auto& value : ticks) value = take_number(line);
    if (!cpu || !ticks[3] || !ticks[4]) return std::nullopt;
    if (is_mine(*cpu)) result = result.value_or(0) + *ticks[3] + *ticks[4];
  }
  return result;
}

bool CpuDelays::watch(const std::vector<std::int64_t>& threads) {
  files_.clear();
  try {
    for (std::size_t i = 0; i < std::min(threads.size(), kMostWatched); ++i) {
      const std::string file = "/proc/self/task/" + std::to_string(threads[i]) + "/schedstat";
      files_.push_back(std::move(open_to_read(file).descriptor));
    }
  } catch (const Error&) {
    files_.clear();
  }
  before_ = total();
  return before_.has_value();
}

std::optional<std::uint64_t> CpuDelays::total() const {
  if (files_.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const Descriptor& file : files_) {
    std::array<char, 128> text;
    const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
    if (length <= 0) return std::nullopt;
    const auto waited = parse_schedstat({text.data(), static_cast<std::size_t>(length)});
    if (!waited) return std::nullopt;
    sum += *waited;
  }
  return sum;
}

std::optional<double> CpuDelays::read() {
  const auto now = total();
  const auto before = std::exchange(before_, now);
  if (!now || !before || *now < *before) return std::nullopt;
  return static_cast<double>(*now - *before) * 1e-9;
}

std::optional<double> IdleCpus::read(double now) {
  cpu_set_t mine;
  const bool is_known = ::sched_getaffinity(0, sizeof(mine), &mine) == 0;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::optional<std::uint64_t> ticks;
  try {
    ticks = parse_idle_ticks(read_file("/proc/stat"), [&](std::size_t cpu) {
      return !is_known || (cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mine));
    });
  } catch (const Error&) {
    return std::nullopt;
  }
  const auto before = before_;
  const double since = now - read_at_;
  before_.reset();
  if (!ticks) return std::nullopt;
  before_ = static_cast<double>(*ticks) * tick;
  read_at_ = now;
  if (!before || !(since > 0.0)) return std::nullopt;
  return (*before_ - *before) / since;
}

}  // namespace npu
