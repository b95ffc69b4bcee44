// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "npu/device/blob.hpp"
#include "npu/ir/graph.hpp"
#include "npu/runtime/run_model.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// The samples in files of inputs: a tensor has the shape of its input, or one axis more in front,
/// or its first extent is a multiple of the input's. Several files for one input follow each other.
/// Of a safetensors file for one input the others do not count.
/// An input that is a state (npu.states of npu-ir(5)), and that no file has, is what `states` say
/// of it by its name there, and else zero in every sample, as it is when a run begins.
class SampleFiles {
 public:
  /// Collects faults in `diagnostics`; use the object only if there are none.
  SampleFiles(const Graph& graph, const std::vector<InputFile>& files,
              const std::vector<NamedTensor>& states, Diagnostics& diagnostics);

  std::int64_t count() const noexcept { return count_; }
  /// One sample, in the order of graph_inputs. Samples are read in ascending order: memory of files
  /// that was needed for those before is given back to the system.
  std::vector<Tensor> read(std::int64_t sample) const;

 private:
  struct Chunk {
    Tensor data;
    std::int64_t samples = 0;
  };

  void add(const Graph& graph, TensorId input, Tensor data, const std::string& file,
           Diagnostics& diagnostics);
  void add_file(const Graph& graph, const InputFile& file, Diagnostics& diagnostics);
  void add_states(const Graph& graph, const std::vector<NamedTensor>& states,
                  Diagnostics& diagnostics);
  void count_samples(const Graph& graph, Diagnostics& diagnostics);

  std::vector<DType> dtypes_;
  std::vector<Shape> shapes_;
  std::vector<std::vector<Chunk>> chunks_;  ///< by input
  std::vector<char> refused_;               ///< by input: whether a file for it has been refused
  std::vector<char> is_state_;              ///< by input
  std::vector<char> is_given_;              ///< by input: whether it is a state of `states`
  std::int64_t count_ = 0;
};

}  // namespace npu
