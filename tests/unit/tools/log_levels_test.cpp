// SPDX-License-Identifier: Apache-2.0
// -v and NPU_LOG: the messages that they let through, and the values that are refused.
#include "log_levels.hpp"

#include <string>

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu::cli {
namespace {

LogLevels levels_of(int verbosity, std::string_view text) {
  LogLevels levels(verbosity);
  levels.set(text);
  return levels;
}

std::string refusal_of(std::string_view text) {
  LogLevels levels;
  try {
    levels.set(text);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUsage);
    return error.message();
  }
  return "";
}

TEST_CASE("verbosity sets every module") {
  CHECK(LogLevels().is_silent());
  CHECK(LogLevels(-1).is_silent());
  for (std::size_t m = 0; m < kLogModuleNames.size(); ++m) {
    const auto module = static_cast<LogModule>(m);
    CHECK_FALSE(LogLevels(0).allows(module, LogLevel::kInfo));
    CHECK(LogLevels(1).allows(module, LogLevel::kInfo));
    CHECK_FALSE(LogLevels(1).allows(module, LogLevel::kDebug));
    CHECK(LogLevels(2).allows(module, LogLevel::kDebug));
    CHECK(LogLevels(7).allows(module, LogLevel::kDebug));
  }
}

TEST_CASE("NPU_LOG sets one module and leaves the others as -v has them") {
  const LogLevels levels = levels_of(0, "cache=debug,device=info");
  CHECK_FALSE(levels.is_silent());
  CHECK(levels.allows(LogModule::kCache, LogLevel::kDebug));
  CHECK(levels.allows(LogModule::kDevice, LogLevel::kInfo));
  CHECK_FALSE(levels.allows(LogModule::kDevice, LogLevel::kDebug));
  CHECK_FALSE(levels.allows(LogModule::kRun, LogLevel::kInfo));

  const LogLevels verbose = levels_of(2, "cache=off");
  CHECK_FALSE(verbose.allows(LogModule::kCache, LogLevel::kInfo));
  CHECK(verbose.allows(LogModule::kRun, LogLevel::kDebug));
}

TEST_CASE("NPU_LOG: a level alone holds for all, and later parts hold against earlier ones") {
  const LogLevels levels = levels_of(0, "debug,cache=info,cache=off,run=info");
  CHECK(levels.allows(LogModule::kRead, LogLevel::kDebug));
  CHECK_FALSE(levels.allows(LogModule::kCache, LogLevel::kInfo));
  CHECK_FALSE(levels.allows(LogModule::kRun, LogLevel::kDebug));
  CHECK(levels_of(2, "off").is_silent());
  CHECK(levels_of(2, "cache=debug,off").is_silent());
  CHECK(levels_of(0, "").is_silent());
}

TEST_CASE("NPU_LOG: every module has a name of its own") {
  for (std::size_t m = 0; m < kLogModuleNames.size(); ++m) {
    const LogLevels levels = levels_of(0, std::string(kLogModuleNames[m]) + "=info");
    for (std::size_t other = 0; other < kLogModuleNames.size(); ++other) {
      CHECK(levels.allows(static_cast<LogModule>(other), LogLevel::kInfo) == (other == m));
    }
  }
}

TEST_CASE("NPU_LOG: what it does not know is refused with the words it knows") {
  CHECK(refusal_of("loud") == "NPU_LOG: unknown level 'loud', expected one of off, info, debug");
  CHECK(refusal_of("cache=") == "NPU_LOG: unknown level '', expected one of off, info, debug");
  CHECK(refusal_of("=info") ==
        "NPU_LOG: unknown module '', expected one of read, verify, pass, solve, device, compile, "
        "cache, run, gnn, profile");
  CHECK(refusal_of("cash=info").find("unknown module 'cash'") != std::string::npos);
  CHECK(refusal_of("info,,debug").find("unknown level ''") != std::string::npos);
  CHECK(refusal_of("cache=info=debug").find("unknown level 'info=debug'") != std::string::npos);
  CHECK(refusal_of(" info").find("unknown level ' info'") != std::string::npos);
}

}  // namespace
}  // namespace npu::cli
