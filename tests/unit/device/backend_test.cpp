// SPDX-License-Identifier: Apache-2.0
// The folders that are searched for backends, and the files that are refused.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "backends/backend_calls.hpp"
#include "catch.hpp"
#include "compile/vendor.hpp"
#include "device/device_instance.hpp"
#include "npu/support/error.hpp"
#include "npu/support/log.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// What loading says; empty if it works.
std::string refusal_of(std::string_view name) {
  try {
    Backend::load(name);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
    return error.what();
  }
  return "";
}

/// NPU_BACKEND_PATH as long as it lives; then as it was.
class SearchPath {
 public:
  explicit SearchPath(const std::string& folders) {
    if (const char* before = std::getenv("NPU_BACKEND_PATH")) before_ = before;
    ::setenv("NPU_BACKEND_PATH", folders.c_str(), 1);
  }
  ~SearchPath() {
    if (before_) {
      ::setenv("NPU_BACKEND_PATH", before_->c_str(), 1);
    } else {
      ::unsetenv("NPU_BACKEND_PATH");
    }
  }
  SearchPath(const SearchPath&) = delete;
  SearchPath& operator=(const SearchPath&) = delete;

 private:
  std::optional<std::string> before_;
};

class Listener : public LogSink {
 public:
  Listener() { set_log_sink(this); }
  ~Listener() override { set_log_sink(nullptr); }
  bool wants(LogModule module, LogLevel /*level*/) const noexcept override {
    return module == LogModule::kDevice;
  }
  void write(const LogMessage& message) override { text += std::string(message.text) + "\n"; }
  std::string text;
};

}  // namespace

TEST_CASE("backends: names that could leave the folder are refused", "[device]") {
  for (const char* name : {"", "../onednn", "a/b", "One", "a b", "a.so"}) {
    CHECK(refusal_of(name).find("is no backend name; expected a-z, 0-9, '_' and '-'") !=
          std::string::npos);
  }
}

TEST_CASE("backends: the install's folder comes first, then those of NPU_BACKEND_PATH",
          "[device]") {
  const SearchPath path("/first::/second:");
  const std::vector<std::string> folders = backend_search_path();
  REQUIRE(folders.size() == 3);
  CHECK(folders[0].ends_with("/lib/npu/backends"));
  CHECK(folders[1] == "/first");
  CHECK(folders[2] == "/second");
}

TEST_CASE("backends: one that is nowhere is refused with every place", "[device]") {
  const SearchPath path("/no/such");
  Listener listener;
  const std::string text = refusal_of("nowhere");
  CHECK(text.find("backend 'nowhere' (npu_backend_nowhere.so) is in none of: ") !=
        std::string::npos);
  CHECK(text.find(", /no/such; set NPU_BACKEND_PATH to its folder") != std::string::npos);
  CHECK(listener.text.find("no npu_backend_nowhere.so in /no/such\n") != std::string::npos);
}

TEST_CASE("backends: files that are none are refused", "[device]") {
  const TemporaryFolder folder;
  const SearchPath path(folder.path().string());
  std::ofstream(folder / "npu_backend_text.so") << "not a shared object\n";
  CHECK(refusal_of("text").find("the backend does not load: ") != std::string::npos);
  std::filesystem::copy_file(NPU_TEST_CUSTOM_OPS, folder / "npu_backend_ops.so");
  CHECK_THAT(refusal_of("ops"), Catch::EndsWith("it exports no npu_backend_entry"));
  const std::string skeleton = std::string(vendor_dir()) + "/npu_backend_skeleton.so";
  std::filesystem::copy_file(skeleton, folder / "npu_backend_other.so");
  CHECK(refusal_of("other").find("the backend calls itself 'skeleton', expected 'other'") !=
        std::string::npos);
}

TEST_CASE("backends: a loaded one is told of and loaded once", "[device]") {
  use_vendor_backend();
  const auto backend = Backend::load("vendor");
  CHECK(backend->name() == "vendor");
  CHECK_FALSE(backend->device("").fingerprint.empty());
  Listener listener;
  CHECK(Backend::load("vendor") == backend);
  CHECK(listener.text.empty());
}

TEST_CASE("backends: one serves every host that is not older", "[device]") {
  for (const char* name : {"skeleton", "skeleton-queue", "vendor"}) {
    CAPTURE(name);
    const BackendEntry entry = entry_of(std::string(vendor_dir()) + "/npu_backend_" + name + ".so");
    npu_host other = test_host();
    CHECK(entry(&other, nullptr) != nullptr);
    other.abi_version = NPU_ABI_VERSION + 1;
    CHECK(entry(&other, nullptr) != nullptr);
    other.abi_version = NPU_ABI_VERSION - 1;
    CallError error;
    CHECK(entry(&other, &error) == nullptr);
    CHECK(error.text[0] != '\0');
    CHECK(entry(&test_host(), nullptr) != nullptr);
  }
}

TEST_CASE("backends: each status is an error of its own", "[device]") {
  use_vendor_backend();
  const auto device = DeviceInstance::open(Backend::load("vendor"), "{}");
  const auto code = [&](const char* fault) {
    const Setting setting("WRAP_FAULT", fault);
    try {
      device->compile("{}", {}, "{}");
    } catch (const Error& error) {
      CHECK_THAT(error.message(), Catch::Contains("backend 'vendor'"));
      return error.code();
    }
    return ErrorCode::kIo;
  };
  CHECK(code("compile=1") == ErrorCode::kUnsupported);
  CHECK(code("compile=2") == ErrorCode::kInvalidGraph);
  CHECK(code("compile=3") == ErrorCode::kInfeasible);
  CHECK(code("compile=4") == ErrorCode::kFailed);
  CHECK(code("compile=77") == ErrorCode::kFailed);
  CHECK(code("no-blob") == ErrorCode::kFailed);
}
