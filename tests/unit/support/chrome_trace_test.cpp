// SPDX-License-Identifier: Apache-2.0
#include "support/chrome_trace.hpp"

#include "catch.hpp"
#include "npu/support/json.hpp"

using namespace npu;

TEST_CASE("A trace without events is a document") {
  CHECK(ChromeTrace().text() == "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n]}\n");
}

TEST_CASE("Events are written one a line, in the order in which they were added") {
  ChromeTrace trace;
  trace.name_process("model");
  trace.name_track(2, "npu");
  trace.slice(2, "conv", "node", 1.5, 2, {{"op", "conv2d"}});
  CHECK(trace.text() ==
        "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [\n"
        R"({"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"model"}},)"
        "\n"
        R"({"ph":"M","pid":1,"tid":2,"name":"thread_name","args":{"name":"npu"}},)"
        "\n"
        R"({"name":"conv","cat":"node","ph":"X","ts":1.5,"dur":2.0,"pid":1,"tid":2,)"
        R"("args":{"op":"conv2d"}})"
        "\n]}\n");
}

TEST_CASE("Both ends of an arrow have its number, and every arrow another one") {
  ChromeTrace trace;
  trace.flow("transfer", 1, 10, 2, 12);
  trace.flow("transfer", 2, 20, 1, 22);
  const Json events = parse_json(trace.text(), "trace").at("traceEvents");
  REQUIRE(events.size() == 4);
  CHECK(events[0].at("id") == 1);
  CHECK(events[1].at("id") == 1);
  CHECK(events[2].at("id") == 2);
  CHECK(events[0].at("ph") == "s");
  CHECK(events[0].at("tid") == 1);
  CHECK(events[1].at("ph") == "f");
  CHECK(events[1].at("tid") == 2);
  CHECK(events[1].at("ts") == 12.0);
}
