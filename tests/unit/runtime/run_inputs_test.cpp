// SPDX-License-Identifier: Apache-2.0
// The inputs of a run from files and seeds, what is refused, and the outputs that are written.
#include "runtime/run_inputs.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "npu/tensor/safetensors.hpp"
#include "same_bits.hpp"
#include "support/temporary_folder.hpp"
#include "tensor/npy.hpp"

using namespace npu;
using namespace npu::test;

namespace {

Graph two_inputs() {
  return graph_of(R"(
    input a [2]; input b [3]
    n = relu(a)
    m = relu(b); output n, m)");
}

Tensor floats(const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as_mutable<float>()[i] = values[i];
  return tensor;
}

std::vector<std::string> texts(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& entry : diagnostics.entries()) lines.push_back(entry.text);
  return lines;
}

}  // namespace

TEST_CASE("inputs come from .npy by name and from safetensors") {
  const TemporaryFolder folder;
  const Graph graph = two_inputs();
  write_npy(folder / "a.npy", floats({1, 2}));
  write_safetensors(folder / "b.safetensors", {{"b", floats({3, 4, 5})}, {"unknown", floats({6})}});
  Diagnostics diagnostics;
  const std::vector<Tensor> inputs =
      gather_inputs(graph,
                    {{.input = "a", .path = folder / "a.npy"},
                     {.input = std::nullopt, .path = folder / "b.safetensors"}},
                    std::nullopt, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(texts(diagnostics) ==
        std::vector<std::string>{"tensor 'unknown' is no input of the graph ('a', 'b'); ignored"});
  CHECK(same_bits(inputs[0], floats({1, 2})));
  CHECK(same_bits(inputs[1], floats({3, 4, 5})));
}

TEST_CASE("inputs lie where devices can use them in place, wherever they are in their file") {
  const TemporaryFolder folder;
  const Graph graph = two_inputs();
  write_safetensors(folder / "in.safetensors", {{"a", floats({1, 2})}, {"b", floats({3, 4, 5})}});
  const SafetensorsFile file(folder / "in.safetensors");
  const auto place = [](const Tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data()) % 64;
  };
  // Eight bytes apart: one at least cannot be used where it is.
  REQUIRE(place(file.tensor(*file.find("a"))) != place(file.tensor(*file.find("b"))));
  Diagnostics diagnostics;
  const std::vector<Tensor> inputs =
      gather_inputs(graph, {{.input = std::nullopt, .path = folder / "in.safetensors"}},
                    std::nullopt, diagnostics);
  CHECK(place(inputs[0]) == 0);
  CHECK(place(inputs[1]) == 0);
  CHECK(same_bits(inputs[0], floats({1, 2})));
  CHECK(same_bits(inputs[1], floats({3, 4, 5})));
}

TEST_CASE("inputs: a seed fills those that no file has") {
  const TemporaryFolder folder;
  const Graph graph = two_inputs();
  write_npy(folder / "a.npy", floats({1, 2}));
  Diagnostics diagnostics;
  const std::vector<Tensor> inputs =
      gather_inputs(graph, {{.input = "a", .path = folder / "a.npy"}}, 7, diagnostics);
  CHECK(diagnostics.entries().empty());
  CHECK(same_bits(inputs[0], floats({1, 2})));
  CHECK(inputs[1].shape() == Shape{3});
  const std::vector<Tensor> made_up = gather_inputs(graph, {}, 7, diagnostics);
  CHECK(same_bits(inputs[1], made_up[1]));
  CHECK_FALSE(same_bits(inputs[0], made_up[0]));
}

TEST_CASE("inputs: all faults are reported at once") {
  const TemporaryFolder folder;
  const Graph graph = two_inputs();
  write_npy(folder / "a.npy", floats({1, 2, 3}));
  Diagnostics diagnostics;
  gather_inputs(graph,
                {{.input = "a", .path = folder / "a.npy"},
                 {.input = "c", .path = "c.npy"},
                 {.input = std::nullopt, .path = "d.npy"}},
                std::nullopt, diagnostics);
  CHECK(texts(diagnostics) ==
        std::vector<std::string>{
            "input 'a' is float32 [3], the graph says float32 [2]",
            "--inputs c=c.npy: expected NAME=FILE.npy with one of the graph's inputs: 'a', 'b'",
            "--inputs d.npy: expected NAME=FILE.npy with one of the graph's inputs: 'a', 'b'",
            "input 'b' has no data: give --inputs FILE or --random-inputs SEED"});
}

TEST_CASE("outputs: .npy takes the first one, safetensors each name once") {
  const TemporaryFolder folder;
  const std::vector<std::string> names{"y", "m"};
  const std::vector<Tensor> outputs{floats({1, 2}), floats({3, 4, 5})};
  write_outputs(names, outputs, folder / "y.npy");
  CHECK(same_bits(read_npy(folder / "y.npy", nullptr), outputs[0]));
  write_outputs(names, outputs, folder / "y.safetensors");
  const SafetensorsFile file(folder / "y.safetensors");
  REQUIRE(file.entries().size() == 2);
  CHECK(same_bits(file.tensor(*file.find("m")), outputs[1]));
}
