// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "support/json_fwd.hpp"

namespace npu {

/// Collects events of Chrome's Trace Event format, which chrome://tracing and Perfetto show. The
/// caller numbers the tracks. Events are written in the order in which they are added.
class ChromeTrace {
 public:
  ChromeTrace();

  /// Sets the name above all tracks.
  void name_process(std::string_view name);
  void name_track(int track, std::string_view name);
  /// A bar on a track. `args` is an object that is shown when the bar is selected.
  void slice(int track, std::string_view name, std::string_view category, double start_us,
             double duration_us, const Json& args);
  /// An arrow. Each end is drawn at the bar that encloses its time.
  void flow(std::string_view name, int from_track, double from_us, int to_track, double to_us);

  /// The document.
  std::string text() const;

 private:
  void add(const Json& event);

  std::string text_;
  int flows_ = 0;
};

}  // namespace npu
