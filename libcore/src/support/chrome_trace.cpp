// SPDX-License-Identifier: Apache-2.0
// Writes the Trace Event format: one event per line, times in microseconds. O(events).
#include "support/chrome_trace.hpp"

#include "npu/support/json.hpp"

namespace npu {

namespace {
constexpr std::string_view kBegin = "{\"displayTimeUnit\": \"ms\",\n\"traceEvents\": [";
}

ChromeTrace::ChromeTrace() : text_(kBegin) {}

void ChromeTrace::add(const Json& event) {
  text_ += text_.size() == kBegin.size() ? "\n" : ",\n";
  text_ += event.dump();
}

void ChromeTrace::name_process(std::string_view name) {
  add({{"ph", "M"}, {"pid", 1}, {"tid", 0}, {"name", "process_name"}, {"args", {{"name", name}}}});
}

void ChromeTrace::name_track(int track, std::string_view name) {
  add({{"ph", "M"},
       {"pid", 1},
       {"tid", track},
       {"name", "thread_name"},
       {"args", {{"name", name}}}});
}

void ChromeTrace::slice(int track, std::string_view name, std::string_view category,
                        double start_us, double duration_us, const Json& args) {
  add({{"name", name},
       {"cat", category},
       {"ph", "X"},
       {"ts", start_us},
       {"dur", duration_us},
       {"pid", 1},
       {"tid", track},
       {"args", args}});
}

void ChromeTrace::flow(std::string_view name, int from_track, double from_us, int to_track,
                       double to_us) {
  const int id = ++flows_;
  add({{"name", name},
       {"cat", name},
       {"ph", "s"},
       {"id", id},
       {"ts", from_us},
       {"pid", 1},
       {"tid", from_track}});
  add({{"name", name},
       {"cat", name},
       {"ph", "f"},
       {"bp", "e"},
       {"id", id},
       {"ts", to_us},
       {"pid", 1},
       {"tid", to_track}});
}

std::string ChromeTrace::text() const { return text_ + "\n]}\n"; }

}  // namespace npu
