// SPDX-License-Identifier: Apache-2.0
#include "seed.hpp"

#include <cstdlib>
#include <filesystem>

#include "npu/ir/json_reader.hpp"
#include "npu/ir/json_writer.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/ids.hpp"
#include "npu/tensor/safetensors.hpp"
#include "onnx_network.hpp"
#include "support/temporary_folder.hpp"

namespace npu::test {
namespace {

using Named = std::vector<std::pair<std::string, Tensor>>;

/// libtorch lacks some ops in some dtypes, CPUs lack precisions, and conversions to int8 are all or
/// nothing: each says so.
bool is_refusal(const Error& error, const Way& way) {
  const std::string text = error.what();
  if (text.find("not implemented for") != std::string::npos) return true;
  if (text.find("needs a CPU with") != std::string::npos) return true;
  if (way.in_flight > 1 && text.find("has no queues") != std::string::npos) return true;
  if (text.find("padding: ") != std::string::npos) return true;
  if (text.find("Only zero batch or zero channel inputs") != std::string::npos) return true;
  if (way.precision != "int8") return false;
  // Nor has a tensor a range that is infinite throughout.
  return text.find("has no range: no number of it was finite") != std::string::npos ||
         (error.code() == ErrorCode::kUnsupported &&
          text.find("runs the whole model") != std::string::npos);
}

/// Runs `body`, which returns what is wrong, and sorts its errors.
template <typename Body>
std::string fault_in(const Way& way, Totals& totals, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    if (!is_refusal(error, way)) return std::string("error: ") + error.what();
    ++totals.refusals[std::string(error.what()).substr(0, 100)];
    ++totals.refused;
    return "";
  } catch (const std::exception& error) {
    return std::string("error: ") + error.what();
  }
}

std::string difference(const Run& run, const std::vector<Values>& expected, Totals& totals) {
  const auto mismatch = compare(run, expected, totals.compared, totals.unknown);
  return mismatch ? mismatch->output + ": " + mismatch->text : "";
}

/// Bounds as the document is computed; from ONNX it is the network that says what is right, but in
/// int8 it is the converted document.
std::vector<Values> expected_of(const Network& network, const Run& run, const Way& way) {
  std::vector<Values> expected = reference(run, way.precision);
  if (expected.size() != network.outputs.size()) refuse("another number of outputs");
  for (std::size_t o = 0; o < expected.size() && way.opset > 0; ++o) {
    const NetworkTensor& defined = network.tensors[network.outputs[o]];
    if (defined.values.shape != expected[o].shape || defined.values.dtype != expected[o].dtype) {
      refuse(defined.name + " is imported as " + shape_text(expected[o].shape) + ", it is " +
             shape_text(defined.values.shape));
    }
    for (std::size_t i = 0; i < expected[o].data.size() && way.precision != "int8"; ++i) {
      const Bounded x = defined.values.data[i];
      expected[o].data[i] = {x.value, expected[o].data[i].error + x.error};
    }
  }
  return expected;
}

Named inputs_of(const Network& network) {
  Named inputs;
  for (const NetworkTensor& tensor : network.tensors) {
    if (tensor.kind == NetworkTensor::Kind::kInput) inputs.emplace_back(tensor.name, tensor.data);
  }
  return inputs;
}

/// Returns the name of the file.
std::string write_model(const Network& network, const Way& way, const std::string& base) {
  write_safetensors(base + ".inputs.safetensors", inputs_of(network));
  if (way.opset > 0) {
    write_file_atomically(base + ".onnx", onnx_model_of(network, way.opset, way.onnx_seed));
    return base + ".onnx";
  }
  write_file_atomically(base + ".json", write_document(network.document(true)));
  return base + ".json";
}

}  // namespace

std::string fault_of(const Network& network, const Way& way, Totals& totals) {
  return fault_in(way, totals, [&] {
    const Run run = run_network(network, way);
    return difference(run, expected_of(network, run, way), totals);
  });
}

std::string fault_of_padding(const Network& network, const SizeDraw& size, const Way& way,
                             Totals& totals) {
  const std::string fault = fault_in(way, totals, [&]() -> std::string {
    const std::optional<Run> run = run_padded(network, size, way);
    if (!run) return "";
    ++totals.padded;
    return difference(*run, reference(*run, way.precision), totals);
  });
  if (fault.empty()) return "";
  return std::to_string(size.valid) + " of " + std::to_string(size.capacity) + ": " + fault;
}

std::string fault_of_programs(const Network& network, const Way& way, const std::string& programs,
                              Totals& totals) {
  return fault_in(way, totals, [&]() -> std::string {
    Run run = run_network(network, way);
    const TemporaryFolder folder;
    const std::string base = folder / "network";
    const std::string model = write_model(network, way, base);
    const std::string command =
        "cd " + folder.path().string() + " && export PATH=" + programs + ":$PATH && { " +
        way.commands("network" + std::filesystem::path(model).extension().string()) +
        " --outputs outputs.safetensors; } >log 2>&1";
    if (std::system(command.c_str()) != 0)
      return "programs: " + command + "\n" + read_file(folder / "log");
    const SafetensorsFile file(folder / "outputs.safetensors");
    for (std::size_t o = 0; o < run.outputs.size(); ++o) {
      const auto* entry = file.find(run.graph.tensor(run.graph.graph_outputs()[o]).name);
      if (entry == nullptr) return "programs: an output is missing";
      run.outputs[o] = file.tensor(*entry);
    }
    const std::string text = difference(run, expected_of(network, run, way), totals);
    return text.empty() ? "" : "programs: " + text;
  });
}

std::vector<Failure> check_document(const std::string& path, Totals& totals) {
  Random random(1);
  Diagnostics diagnostics;
  const Graph graph = read_graph(read_file(path), path, diagnostics);
  if (diagnostics.has_errors()) throw Error(ErrorCode::kInvalidGraph, path + " is no document");
  std::vector<Tensor> inputs;
  for (const TensorId id : graph.graph_inputs()) {
    const TensorInfo& tensor = graph.tensor(id);
    inputs.push_back(random_values({.shape = tensor.shape, .dtype = tensor.dtype}, random));
  }
  std::vector<Failure> failures;
  for (const std::string precision : {"f32", "int8"}) {
    for (const bool fused : {false, true}) {
      Way way{.fused = fused, .precision = precision};
      const std::string fault = fault_in(way, totals, [&] {
        const Run run = run_graph(graph, {}, inputs, way);
        return difference(run, reference(run, precision), totals);
      });
      if (!fault.empty()) failures.push_back({{}, way, fault});
    }
  }
  totals.failed += std::ssize(failures);
  return failures;
}

std::vector<Failure> check_seed(std::uint64_t seed, bool gpu, const std::string& programs,
                                Totals& totals) {
  Random random(seed * 0x9E3779B97F4A7C15ULL + 1);
  NetworkStyle style = draw_style(random);
  if (gpu) {
    style.most_nodes = 3;
    style.is_attention = false;
  }
  if (seed % 4 == 0) {
    style.turn = static_cast<std::int64_t>(seed / 4);
    style.is_chain = style.is_attention = false;
  }
  const Network network = draw_network(random, style);
  totals.nodes += std::ssize(network.nodes);
  std::vector<Failure> failures;
  const auto note = [&](const Network& failed, const Way& way, const std::string& fault) {
    if (!fault.empty()) failures.push_back({failed, way, fault});
  };
  for (int i = 0; i < 2; ++i) {
    Way way = gpu ? draw_gpu_way(random) : draw_way(random, network, style);
    const std::int64_t refused = totals.refused;
    const std::string fault = fault_of(network, way, totals);
    const bool hides = style.turn >= 0 && (!fault.empty() || totals.refused > refused);
    if (!hides) note(network, way, fault);
    // A node that fails, or is refused, says nothing about those beside it.
    for (std::size_t n = 0; n < network.nodes.size() && hides; ++n) {
      Network one = network;
      one.outputs = network.nodes[n].results;
      remove_unread(one);
      note(one, way, fault_of(one, way, totals));
    }
    // Padding is proved for numbers, not for what is none.
    if (way.opset == 0 && way.precision != "int8" && !style.has_specials && !style.may_be_empty) {
      const SizeDraw size = draw_size(network, random);
      const std::string wrong =
          size.capacity > 0 ? fault_of_padding(network, size, way, totals) : "";
      if (!wrong.empty()) failures.push_back({network, way, wrong, true});
    }
    if (programs.empty() || seed % 100 != 0 || i > 0) continue;
    for (const bool bundle : {false, true}) {
      way.bundle = bundle;
      note(network, way, fault_of_programs(network, way, programs, totals));
    }
  }
  totals.failed += std::ssize(failures);
  return failures;
}

void write_failure(const Failure& failure, const std::string& folder, const std::string& name) {
  const std::string model = write_model(failure.network, failure.way, folder + "/" + name);
  Named expected;
  double bound = 0;
  for (const std::size_t id : failure.network.outputs) {
    const NetworkTensor& tensor = failure.network.tensors[id];
    expected.emplace_back(tensor.name, tensor_of(tensor.values));
    for (const Bounded x : tensor.values.data)
      bound = std::max(bound, std::isfinite(x.error) ? x.error : 0);
  }
  write_safetensors(folder + "/" + name + ".expected.safetensors", expected);
  const std::string file = std::filesystem::path(model).filename();
  write_file_atomically(folder + "/" + name + ".sh",
                        "#!/bin/sh\n# " + failure.text + "\nset -e\n" + failure.way.commands(file) +
                            " --expect " + name + ".expected.safetensors --rtol 0 --atol " +
                            std::to_string(bound) + "\n");
}

}  // namespace npu::test
