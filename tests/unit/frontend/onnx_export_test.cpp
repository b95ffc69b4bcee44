// SPDX-License-Identifier: Apache-2.0
// Models that are written as ONNX, as the frontend reads them back: weights inside the file, and in
// a second one where the first would be too large.
#include <cstring>
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "export/export_onnx.hpp"
#include "frontend/onnx_imported.hpp"
#include "graph_builder.hpp"
#include "npu/runtime/weight_store.hpp"
#include "npu/support/file_io.hpp"
#include "test_paths.hpp"

using namespace npu;
using namespace npu::test;

namespace {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "npu-export-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// Two large weights, whose bytes are no whole pages, and a small one.
Graph three_weights() {
  return graph_of(R"(
    model weights; input x [2,37]; weight a [41,37]; weight b [43,41]; weight c [43]
    y = linear(x, p_a) [2,41]
    z = linear(y, p_b, p_c) [2,43]; output z)");
}

void write(const std::string& path, std::uint64_t most_bytes, std::uint64_t seed = 5,
           const Graph& graph = three_weights()) {
  ExportOnnxOptions options;
  options.output = path;
  options.producer = "test";
  options.target = "host";
  options.weights.random_seed = seed;
  options.most_bytes = most_bytes;
  Diagnostics diagnostics;
  export_onnx(graph, options, diagnostics);
  REQUIRE_FALSE(diagnostics.has_errors());
}

std::vector<Tensor> weights_of(const std::string& path) {
  const Imported model = import_bytes(read_file(path), {}, path);
  CHECK(model.errors.empty());
  Diagnostics diagnostics;
  WeightSource source;
  source.file = weights_file_of(model.graph);
  std::vector<Tensor> weights;
  for (Tensor& tensor : load_weights(model.graph, source, diagnostics)) {
    if (tensor.bytes() > 0) weights.push_back(std::move(tensor));
  }
  CHECK_FALSE(diagnostics.has_errors());
  return weights;
}

}  // namespace

TEST_CASE("export onnx: weights that do not fit stand in a second file", "[frontend][export]") {
  if (!use_backends()) return;
  const Folder folder;
  write(folder.file("whole.onnx"), std::uint64_t{1} << 31);
  CHECK_FALSE(std::filesystem::exists(folder.file("whole.onnx.data")));
  write(folder.file("parts.onnx"), 4000);
  // 41 * 37 * 4 = 6,068 bytes; the next weight begins at the page behind them, 8,192.
  CHECK(std::filesystem::file_size(folder.file("parts.onnx.data")) == 8192 + 43 * 41 * 4);
  CHECK(std::filesystem::file_size(folder.file("parts.onnx")) < 4000);
  const std::vector<Tensor> whole = weights_of(folder.file("whole.onnx"));
  const std::vector<Tensor> parts = weights_of(folder.file("parts.onnx"));
  REQUIRE(whole.size() == 3);
  REQUIRE(parts.size() == 3);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    REQUIRE(whole[i].bytes() == parts[i].bytes());
    CHECK(std::memcmp(whole[i].data(), parts[i].data(), whole[i].bytes()) == 0);
  }
}

TEST_CASE("export onnx: weights of a model that cannot be written stay those of the old one",
          "[frontend][export]") {
  if (!use_backends()) return;
  const Folder folder;
  const std::string model = folder.file("parts.onnx");
  write(model, 4000);
  const std::string data = read_file(model + ".data");
  std::filesystem::remove(model);
  std::filesystem::create_directory(model);
  CHECK_THROWS_WITH(write(model, 4000, 6), Catch::Contains("is a directory, expected a file"));
  CHECK(read_file(model + ".data") == data);
  std::filesystem::remove(model);
  write(model, 4000, 6);
  CHECK(read_file(model + ".data") != data);
}

TEST_CASE("export onnx: a model that is too large without weights is refused",
          "[frontend][export]") {
  if (!use_backends()) return;
  const Folder folder;
  CHECK_THROWS_WITH(write(folder.file("none.onnx"), 100),
                    Catch::Contains("the model needs ") &&
                        Catch::Contains(" bytes without its weights, and a file of ONNX holds"));
  CHECK_FALSE(std::filesystem::exists(folder.file("none.onnx")));
  CHECK_FALSE(std::filesystem::exists(folder.file("none.onnx.data")));
}

TEST_CASE("export: an output that is an input, or stands there twice, keeps its name",
          "[frontend]") {
  const Folder folder;
  const Graph graph = graph_of(R"(
    model outputs; input x [2,3]
    y = relu(x); output x, y, y)");
  write(folder.file("m.onnx"), std::uint64_t{1} << 20, 5, graph);
  const Imported read = import_bytes(read_file(folder.file("m.onnx")), {}, folder.file("m.onnx"));
  CHECK(read.errors.empty());
  std::vector<std::string> names;
  for (const TensorId id : read.graph.graph_outputs()) names.push_back(read.graph.tensor(id).name);
  CHECK(names == std::vector<std::string>{"x", "y", "y"});
  CHECK(read.ops() == std::vector<std::string>{"aten.relu.default"});
}
