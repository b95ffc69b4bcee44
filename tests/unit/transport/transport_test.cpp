// SPDX-License-Identifier: Apache-2.0
// Calls of a transport come from one thread, and an exchange goes on while others work.
#include "transport/transport.hpp"

#include <atomic>
#include <set>
#include <thread>

#include "catch.hpp"
#include "npu/support/error.hpp"

using namespace npu;

namespace {

// A transport of one process whose exchange is over when the test says so.
struct Scripted {
  std::set<std::thread::id> callers;
  std::atomic<bool> arrives{false};
  std::atomic<int> asked{0};
  std::atomic<const char*> fault{nullptr};
};

Scripted& scripted() {
  static Scripted only;
  return only;
}

const char* called() {
  scripted().callers.insert(std::this_thread::get_id());
  return nullptr;
}

const char* join(std::int32_t* rank, std::int32_t* size) {
  *rank = 1;
  *size = 3;
  return called();
}

const char* connect(const npu_transport_peers* from, const npu_transport_peers* /*to*/) {
  called();
  return from->count == 1 && from->ranks[0] == 2 && from->rows[0] == 4 ? nullptr : "other peers";
}

const char* start(const void* out, void* in, std::int64_t row_bytes) {
  called();
  *static_cast<std::int64_t*>(in) = *static_cast<const std::int64_t*>(out) + row_bytes;
  return nullptr;
}

const char* test(std::int32_t* done) {
  called();
  ++scripted().asked;
  *done = scripted().arrives ? 1 : 0;
  return scripted().fault;
}

const char* sum(std::int64_t* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= 3;
  return called();
}

const char* smallest(std::int64_t* value) {
  --*value;
  return called();
}

const char* leave() { return called(); }

constexpr npu_transport kScripted{
    NPU_TRANSPORT_ABI_VERSION, 0, "scripted", join, connect, start, test, sum, smallest, leave};

void wait_until_asked() {
  for (const int before = scripted().asked; scripted().asked < before + 3;) {
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("an exchange goes on beside other work", "[transport]") {
  Scripted& script = scripted();
  script.arrives = false;
  script.callers.clear();
  script.fault = nullptr;
  const Transport transport(kScripted);
  CHECK(transport.rank() == 1);
  CHECK(transport.size() == 3);
  transport.connect({{2}, {4}}, {{0}, {1}});
  const std::int64_t out = 40;
  std::int64_t in = 0;
  transport.start(&out, &in, 2);
  wait_until_asked();  // while this thread does what it likes
  const auto before = Clock::now();
  script.arrives = true;
  CHECK(transport.finish() >= before);
  CHECK(in == 42);
  std::vector<std::int64_t> values{1, 2};
  transport.sum(values);
  CHECK(values == std::vector<std::int64_t>{3, 6});
  CHECK(transport.smallest(5) == 4);
  transport.leave();
  CHECK(script.callers.size() == 1);
  CHECK_FALSE(script.callers.contains(std::this_thread::get_id()));
}

TEST_CASE("a transport that fails says why, and one that is given up ends", "[transport]") {
  Scripted& script = scripted();
  script.arrives = false;
  script.fault = nullptr;
  const std::int64_t out = 0;
  std::int64_t in = 0;
  {
    const Transport transport(kScripted);
    CHECK_THROWS_WITH(transport.connect({{1}, {4}}, {}),
                      Catch::Matchers::Contains("transport 'scripted': other peers"));
    transport.start(&out, &in, 1);
    wait_until_asked();
    script.fault = "the cable is out";
    CHECK_THROWS_WITH(transport.finish(), Catch::Matchers::Contains("the cable is out"));
  }
  script.fault = nullptr;
  const Transport transport(kScripted);
  transport.start(&out, &in, 1);
  wait_until_asked();
}
