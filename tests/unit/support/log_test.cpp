// SPDX-License-Identifier: Apache-2.0
// Log messages reach the installed sink; without one their text is never built.
#include "npu/support/log.hpp"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"

namespace npu {
namespace {

/// Reads everything up to a level, and is installed while it lives.
class Listener : public LogSink {
 public:
  explicit Listener(LogLevel level) : level_(level) { set_log_sink(this); }
  ~Listener() override { set_log_sink(nullptr); }
  bool wants(LogModule module, LogLevel level) const noexcept override {
    return module != LogModule::kGnn && level <= level_;
  }
  void write(const LogMessage& message) override {
    const std::lock_guard lock(mutex_);
    texts.emplace_back(message.text);
    timed.push_back(message.ms.has_value() && *message.ms >= 0);
  }

  std::vector<std::string> texts;
  std::vector<bool> timed;

 private:
  LogLevel level_;
  std::mutex mutex_;
};

TEST_CASE("log: without a sink no text is made") {
  bool made = false;
  log(LogModule::kRun, LogLevel::kInfo, [&] { return made = true, "text"; });
  const LogTimer timer(LogModule::kRun);
  timer.done([&] { return made = true, "text"; });
  log_text(LogModule::kRun, LogLevel::kInfo, "nobody reads this");
  CHECK_FALSE(made);
  CHECK_FALSE(log_wants(LogModule::kRun, LogLevel::kInfo));
}

TEST_CASE("log: a sink gets what it wants and nothing else") {
  Listener listener(LogLevel::kInfo);
  bool made = false;
  log(LogModule::kRun, LogLevel::kInfo, [] { return "first"; });
  log(LogModule::kRun, LogLevel::kDebug, [&] { return made = true, "too much"; });
  log_text(LogModule::kGnn, LogLevel::kInfo, "of a module that it does not want");
  const LogTimer timer(LogModule::kRead);
  timer.done([] { return std::string("second"); });
  CHECK_FALSE(made);
  CHECK(listener.texts == std::vector<std::string>{"first", "second"});
  CHECK(listener.timed == std::vector<bool>{false, true});
}

TEST_CASE("log: a timer that began without a sink stays silent") {
  const LogTimer timer(LogModule::kRead);
  Listener listener(LogLevel::kDebug);
  timer.done([] { return "began before somebody listened"; });
  CHECK(listener.texts.empty());
}

TEST_CASE("log: messages of several threads all arrive whole") {
  Listener listener(LogLevel::kDebug);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) {
        log(LogModule::kRun, LogLevel::kDebug, [] { return std::string("text"); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(listener.texts == std::vector<std::string>(400, "text"));
}

}  // namespace
}  // namespace npu
