// SPDX-License-Identifier: Apache-2.0
// The folders that are searched for backends, and the files that are refused.
#include "npu/device/backend.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "catch.hpp"
#include "compile/vendor.hpp"
#include "npu/ir/subgraph.hpp"
#include "npu/support/error.hpp"
#include "npu/support/ids.hpp"
#include "npu/support/log.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

std::string vendor_file() { return std::string(vendor_dir()) + "/npu_backend_vendor.so"; }

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
  CHECK(refusal_of("ops").find("it exports neither npu_backend_entry4 nor npu_backend_entry") !=
        std::string::npos);
  std::filesystem::copy_file(vendor_file(), folder / "npu_backend_other.so");
  CHECK(refusal_of("other").find("the backend calls itself 'vendor', expected 'other'") !=
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

namespace {

/// The result of a backend's entry function for a host of some version.
const npu_backend_api* entered(const std::string& file, std::uint32_t version) {
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO(file);
  REQUIRE(library != nullptr);
  using Entry = const npu_backend_api* (*)(std::uint32_t);
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, NPU_BACKEND_ENTRY_NAME));
  REQUIRE(entry != nullptr);
  return entry(version);
}

std::string wrap_file() { return std::string(vendor_dir()) + "/npu_backend_wrap.so"; }

/// Two results, so that one of them can be missing.
Graph two_results() {
  Graph graph = GraphBuilder()
                    .input("x", {4})
                    .node("a", "aten.relu.default", {"x"})
                    .node("b", "aten.neg.default", {"x"})
                    .output("a")
                    .output("b")
                    .build();
  return graph;
}

}  // namespace

TEST_CASE("backends: one serves every host that is not older", "[device]") {
  for (const std::string& file : {vendor_file(), wrap_file()}) {
    CHECK(entered(file, NPU_BACKEND_ABI_VERSION) != nullptr);
    CHECK(entered(file, NPU_BACKEND_ABI_VERSION + 1) != nullptr);
    CHECK(entered(file, 1) == nullptr);
  }
}

TEST_CASE("backends: results behind one that is missing are given back", "[device]") {
  use_vendor_backend();
  const auto device = DeviceInstance::open(Backend::load("wrap"), "{}");
  const Graph graph = two_results();
  std::vector<NodeId> nodes;
  for (const NodeId id : ids_of<NodeId>(graph.nodes())) nodes.push_back(id);
  const auto program = device->compile_and_load(
      write_subgraph(graph, nodes, find_boundary(graph, nodes)), {},
      {.outputs = {{DType::kFloat32, {4}}, {DType::kFloat32, {4}}}, .nodes = 2});
  void* library = ::dlopen(wrap_file().c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const auto live = reinterpret_cast<long (*)()>(::dlsym(library, "wrap_live_buffers"));
  REQUIRE(live != nullptr);
  {
    const Tensor x(DType::kFloat32, {4});
    const auto input = device->import_tensor(x);
    const std::vector<npu4_buffer*> inputs{input->get()};
    CHECK(program->run(inputs).size() == 2);
    const Setting fault("WRAP_FAULT", "null-result");
    CHECK_THROWS_WITH(program->run(inputs), Catch::Contains("left out result 0"));
    CHECK(live() == 1);
  }
  CHECK(live() == 0);
}

TEST_CASE("backends: a nonsensical description of a buffer is refused before it is read",
          "[device]") {
  use_vendor_backend();
  const auto device = DeviceInstance::open(Backend::load("wrap"), "{}");
  const auto failure = [&](const char* fault) {
    const auto buffer = device->import_tensor(Tensor(DType::kFloat32, {2, 2}));
    const Setting setting("WRAP_FAULT", fault);
    try {
      (void)buffer->host_memory();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kFailed);
      return error.message();
    }
    return std::string();
  };
  CHECK(failure("none").empty());
  CHECK_THAT(failure("rank=0x10000000"), Catch::Contains("float32 of rank 268435456 (16 bytes), "
                                                         "expected float32 [2, 2] (16 bytes)"));
  CHECK_THAT(failure("rank=65"), Catch::Contains("float32 of rank 65"));
  CHECK_THAT(failure("negative"), Catch::Contains("float32 [-1, -1]"));
}

TEST_CASE("backends: each status is an error of its own", "[device]") {
  use_vendor_backend();
  const auto device = DeviceInstance::open(Backend::load("wrap"), "{}");
  const auto code = [&](const char* fault) {
    const Setting setting("WRAP_FAULT", fault);
    try {
      device->compile("{}", {}, "{}");
    } catch (const Error& error) {
      CHECK_THAT(error.message(), Catch::Contains("backend 'wrap'"));
      return error.code();
    }
    return ErrorCode::kIo;
  };
  CHECK(code("compile=1") == ErrorCode::kUnsupported);
  CHECK(code("compile=2") == ErrorCode::kInvalidGraph);
  CHECK(code("compile=3") == ErrorCode::kInfeasible);
  CHECK(code("compile=4") == ErrorCode::kFailed);
  CHECK(code("compile=77") == ErrorCode::kFailed);
  CHECK(code("lie") == ErrorCode::kFailed);
}
