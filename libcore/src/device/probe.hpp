// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace npu {

/// Long for a library to load, yet short for a user who waits: libtorch takes about a second.
constexpr std::chrono::milliseconds kProbeTime{20'000};

/// What a library is looked at as: loaded and no more, or also asked what it is.
enum class LibraryKind { kAny, kBackend, kFrontend, kCustomOps };

/// The descriptor through which the helper answers, and its answer: that it has come back from
/// loading.
constexpr int kProbeAnswer = 3;
constexpr char kProbeDone = 'k';

/// The first argument of the helper, and back; kAny for a word that is none.
std::string_view library_kind_name(LibraryKind kind);
LibraryKind library_kind(std::string_view name);

/// Has another program, libexec/npu/probe-library, load a library and reports how that ended: empty
/// if it came back or met an error (which the caller will meet as well when it loads the library);
/// else a text such as "crashes while it is loaded (signal 11, Segmentation fault)". A helper that
/// does not finish in time is killed, whatever the library does about signals. Its output is
/// dropped. `name` is that of a backend or frontend.
std::string probe_library(LibraryKind kind, const std::string& path, const std::string& name = {},
                          std::chrono::milliseconds time = kProbeTime);

}  // namespace npu
