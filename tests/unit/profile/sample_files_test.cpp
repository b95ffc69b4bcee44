// SPDX-License-Identifier: Apache-2.0
// Samples of models that have states: where their values come from.
#include "profile/sample_files.hpp"

#include "catch.hpp"
#include "graph_builder.hpp"
#include "ir/states_section.hpp"
#include "npu/runtime/compare.hpp"
#include "npu/tensor/safetensors.hpp"
#include "support/temporary_folder.hpp"

using namespace npu;
using namespace npu::test;

namespace {

/// Reads x, and the states k and v.
Graph with_states() {
  Graph graph = graph_of(R"(
    input x [2]; input k [2]; input v [2]
    a = add(x, k) [2]
    b = add(a, v) [2]; output b)");
  store_states(graph, {{.name = "keys", .input = "k", .output = {}, .axis = {}},
                       {.name = "values", .input = "v", .output = {}, .axis = {}}});
  return graph;
}

Tensor floats(const Shape& shape, const std::vector<float>& values) {
  Tensor tensor(DType::kFloat32, shape);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as_mutable<float>()[i] = values[i];
  return tensor;
}

std::vector<std::string> texts(const Diagnostics& diagnostics) {
  std::vector<std::string> lines;
  for (const Diagnostic& entry : diagnostics.entries()) lines.push_back(entry.text);
  return lines;
}

}  // namespace

TEST_CASE("a state of a sample is that of a file, a given one, or zero") {
  const TemporaryFolder folder;
  const Graph graph = with_states();
  const std::string path = folder / "x.safetensors";
  const Tensor zero = floats({2}, {0, 0});
  write_safetensors(path, {{"x", floats({2, 2}, {1, 2, 3, 4})}});
  Diagnostics diagnostics;
  const SampleFiles plain(graph, {{.input = {}, .path = path}}, {}, diagnostics);
  REQUIRE(plain.count() == 2);
  CHECK(same_bits(plain.read(1), {floats({2}, {3, 4}), zero, zero}));

  const std::vector<NamedTensor> states{{"keys", floats({2, 2}, {5, 6, 7, 8})},
                                        {"other", floats({3}, {1, 1, 1})}};
  const SampleFiles given(graph, {{.input = {}, .path = path}}, states, diagnostics);
  CHECK(same_bits(given.read(0), {floats({2}, {1, 2}), floats({2}, {5, 6}), zero}));
  CHECK(same_bits(given.read(1), {floats({2}, {3, 4}), floats({2}, {7, 8}), zero}));

  const std::string own = folder / "k.safetensors";
  write_safetensors(own, {{"k", floats({2, 2}, {9, 9, 9, 9})}, {"v", floats({1}, {1})}});
  const SampleFiles first(graph, {{.input = {}, .path = path}, {.input = "k", .path = own}}, states,
                          diagnostics);
  CHECK(same_bits(first.read(0), {floats({2}, {1, 2}), floats({2}, {9, 9}), zero}));
  CHECK(texts(diagnostics).empty());
}

TEST_CASE("states that are given for other samples are refused") {
  const TemporaryFolder folder;
  const Graph graph = with_states();
  const std::string path = folder / "x.safetensors";
  write_safetensors(path, {{"x", floats({2, 2}, {1, 2, 3, 4})}});
  Diagnostics diagnostics;
  const std::vector<NamedTensor> states{{"keys", floats({3, 2}, {1, 2, 3, 4, 5, 6})},
                                        {"values", floats({3}, {1, 2, 3})}};
  const SampleFiles samples(graph, {{.input = {}, .path = path}}, states, diagnostics);
  CHECK(texts(diagnostics) ==
        std::vector<std::string>{"input 'v' is float32 [3], the model says float32 [2], with an "
                                 "axis of samples in front of it or not",
                                 "2 samples, but 3 of the document that writes the state which "
                                 "input 'k' is: --calibrate FILE has to hold as many for both"});
}

TEST_CASE("a model of states alone has one sample") {
  Graph graph = graph_of("input k [2]; n = neg(k) [2]; output n");
  store_states(graph, {{.name = "keys", .input = "k", .output = {}, .axis = {}}});
  Diagnostics diagnostics;
  const SampleFiles samples(graph, {}, {}, diagnostics);
  CHECK(samples.count() == 1);
  CHECK(same_bits(samples.read(0), {floats({2}, {0, 0})}));
}
