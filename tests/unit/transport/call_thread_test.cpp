// SPDX-License-Identifier: Apache-2.0
// One thread makes all calls, in order, and their failures are kept.
#include "transport/call_thread.hpp"

#include <atomic>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "catch.hpp"

using namespace npu;

TEST_CASE("calls are made one after another and their failures are kept", "[transport]") {
  CallThread thread;
  thread.wait();
  std::vector<int> calls;
  thread.post([&] { calls.push_back(1); });
  thread.post([&] {
    calls.push_back(2);
    throw std::runtime_error("second");
  });
  thread.post([&] { calls.push_back(3); });
  CHECK_THROWS_WITH(thread.wait(), "second");
  CHECK(calls == std::vector<int>{1, 2, 3});
  thread.wait();  // a failure is thrown once
  thread.run([&] { calls.push_back(4); });
  CHECK(calls.back() == 4);
}

TEST_CASE("of several failures the first is thrown", "[transport]") {
  CallThread thread;
  thread.post([] { throw std::runtime_error("first"); });
  thread.post([] { throw std::runtime_error("second"); });
  CHECK_THROWS_WITH(thread.wait(), "first");
  CHECK_THROWS_WITH(thread.run([] { throw std::runtime_error("third"); }), "third");
}

TEST_CASE("all calls come from one other thread, which ends with the last one", "[transport]") {
  std::set<std::thread::id> callers;
  std::atomic<bool> is_over = false;
  {
    CallThread thread;
    for (int i = 0; i < 50; ++i) {
      thread.run([&] { callers.insert(std::this_thread::get_id()); });
    }
    thread.post([&] {
      std::this_thread::yield();
      is_over = true;
    });
  }
  CHECK(is_over);
  CHECK(callers.size() == 1);
  CHECK_FALSE(callers.contains(std::this_thread::get_id()));
  const CallThread unused;
}
