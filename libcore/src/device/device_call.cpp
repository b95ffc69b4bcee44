// SPDX-License-Identifier: Apache-2.0
// What every call of a backend has in common: statuses become errors, and busy devices are asked
// again. Texts come from outside: they are cut and made printable.
#include "device/device_call.hpp"

#include <chrono>
#include <cstring>
#include <thread>

#include "npu/support/log.hpp"
#include "support/elapsed.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kLongestText = 65536;
constexpr std::chrono::milliseconds kPatience{5000};

/// Only "unsupported" says that another device may do better.
ErrorCode code_of(npu_status status) {
  switch (status) {
    case NPU_UNSUPPORTED:
      return ErrorCode::kUnsupported;
    case NPU_INVALID:
      return ErrorCode::kInvalidGraph;
    case NPU_MEMORY:
    case NPU_DEADLINE:
      return ErrorCode::kInfeasible;
    default:
      return ErrorCode::kFailed;
  }
}

template <std::size_t Size>
std::string text_in(const char (&text)[Size]) {
  return printable_text(std::string_view(text, ::strnlen(text, Size)));
}

/// ", needs 12 MB, 3 MB are free", as far as the backend says.
std::string numbers_text(const npu_error& error) {
  std::string text;
  if ((error.known & NPU_KNOWN_REQUESTED) != 0) {
    text += "; needed " + bytes_text(static_cast<double>(error.requested_bytes));
  }
  if ((error.known & NPU_KNOWN_AVAILABLE) != 0) {
    text += (text.empty() ? "; " : ", ") + std::string("there are ") +
            bytes_text(static_cast<double>(error.available_bytes));
  }
  if ((error.known & NPU_KNOWN_VENDOR_CODE) != 0) {
    text += " (code " + std::to_string(error.vendor_code) + ")";
  }
  return text;
}

std::string advice(npu_status status) {
  switch (status) {
    case NPU_BUSY:
      return "; another program has the device, try again later";
    case NPU_DEVICE_LOST:
      return "; the device is lost";
    case NPU_INCOMPATIBLE:
      return "; compile the model again with npu-compile on this machine";
    default:
      return "";
  }
}

}  // namespace

BackendError::BackendError(npu_status status, const std::string& message)
    : Error(code_of(status), message), status_(status) {}

npu_error empty_error() { return sized<npu_error>(); }

std::string text_of(const char* text) {
  if (text == nullptr) return "";
  return printable_text(std::string_view(text, ::strnlen(text, kLongestText)));
}

void check_status(npu_status status, const npu_error& error, const std::string& backend,
                  const std::string& version) {
  if (status == NPU_OK) return;
  std::string text = text_in(error.text);
  if (text.empty()) text = "failed without a message";
  const std::string node = text_in(error.node);
  if (!node.empty() && text.find("'" + node + "'") == std::string::npos) {
    text = "node '" + node + "': " + text;
  }
  const bool own_fault = status >= NPU_INTERNAL;
  throw BackendError(
      own_fault ? NPU_INTERNAL : status,
      (own_fault ? "fault of backend '" + backend + "' " + version : "backend '" + backend + "'") +
          ": " + text + numbers_text(error) + advice(status));
}

void check_status(npu_status status, const npu_error& error, const Backend& backend) {
  if (status != NPU_OK) check_status(status, error, backend.name(), backend.version());
}

void break_contract(const Backend& backend, const std::string& promise, const std::string& text) {
  throw BackendError(NPU_INTERNAL, "fault of backend '" + backend.name() + "' " +
                                       backend.version() + ": broken promise of " + promise + ": " +
                                       text);
}

void refuse_file(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::kUnsupported, text, {.file = path});
}

void call_patiently(const Backend& backend, const std::function<npu_status(npu_error&)>& call) {
  const auto end = Clock::now() + kPatience;
  for (std::chrono::milliseconds pause{10};; pause *= 4) {
    npu_error error = empty_error();
    const npu_status status = call(error);
    if (status != NPU_BUSY || Clock::now() + pause > end) {
      check_status(status, error, backend);
      return;
    }
    log(LogModule::kDevice, LogLevel::kDebug, [&] {
      return "backend '" + backend.name() + "' is busy: asked again in " +
             std::to_string(pause.count()) + " ms";
    });
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace npu
