// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "device/backend.hpp"

namespace npu {

/// An empty error, as calls take them.
npu_error empty_error();

/// A struct for a call: zeroed, with its size.
template <typename Struct>
Struct sized() {
  Struct made{};
  made.struct_size = sizeof(Struct);
  return made;
}

/// Throws BackendError for a status other than NPU_OK, with the backend's text.
void check_status(npu_status status, const npu_error& error, const std::string& backend,
                  const std::string& version);
void check_status(npu_status status, const npu_error& error, const Backend& backend);

/// Throws BackendError NPU_INTERNAL: a backend broke a promise of npu/backend.h, that of a
/// function, member or feature of this name.
[[noreturn]] void break_contract(const Backend& backend, const std::string& promise,
                                 const std::string& text);

/// Calls until it is no longer busy, for five seconds, and checks the status.
void call_patiently(const Backend& backend, const std::function<npu_status(npu_error&)>& call);

/// Throws Error kUnsupported: a file is no backend that this host can serve.
[[noreturn]] void refuse_file(const std::string& path, const std::string& text);

/// A string of a backend, which may be null, without what would affect a terminal.
std::string text_of(const char* text);

}  // namespace npu
