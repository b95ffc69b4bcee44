// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/findings.hpp"
#include "conformance/harness/graph_spec.hpp"
#include "device/backend_table.hpp"
#include "device/device_call.hpp"
#include "npu/backend.h"
#include "npu/runtime/compare.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu::conformance {

/// Facts of a device, copied.
struct DeviceSheet {
  std::string id;
  std::string fingerprint;
  std::string arch;
  bool usable = false;
  std::vector<DType> dtypes;                ///< that this library knows
  std::vector<DType> storage;               ///< those of them that buffers may have
  std::vector<DType> arithmetic;            ///< and those that ops compute in
  std::vector<std::uint32_t> memory_flags;  ///< by memory
  std::uint32_t concurrent_compiles = 1;
  std::uint32_t programs_in_flight = 1;
  std::uint32_t queues = 1;
};

/// A loaded backend: its table as it is, with nothing between.
struct Library {
  std::string name;
  std::string path;
  BackendEntry entry = nullptr;
  const npu_backend* raw = nullptr;  ///< what the entry gave
  npu_backend table{};               ///< the same with nulls behind its end
  std::string version;
  std::uint64_t flags = 0;
  std::string option_keys;
  std::vector<std::string> features;
  std::vector<DeviceSheet> devices;

  bool has_feature(std::string_view feature) const;
};

/// Loads a backend into this process. Throws Error if there is none or it does not load.
Library open_library(const std::string& name);
/// An npu_writer::write whose context is a std::string.
npu_status append_bytes(void* context, const void* data, std::uint64_t size, npu_error* error);
/// The host's table that cases pass.
npu_host test_host();

using DevicePtr = std::unique_ptr<npu_device, void (*)(npu_device*)>;
using ProgramPtr = std::unique_ptr<npu_program, void (*)(npu_program*)>;
using BufferPtr = std::unique_ptr<npu_buffer, void (*)(npu_buffer*)>;

/// A model with what it may use in place for as long as it lives.
class LoadedModel {
 public:
  LoadedModel(const npu_backend& api, std::string blob, const std::vector<WeightSpec>& weights);
  ~LoadedModel();
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  npu_status load(npu_device* device, npu_error& error);
  npu_model* get() const noexcept { return model_; }

 private:
  const npu_backend& api_;
  std::string blob_;
  std::vector<WeightSpec> weights_;
  npu_model* model_ = nullptr;
};

struct Compiled {
  npu_status status = NPU_OK;
  npu_error error{};
  std::string blob;
};

std::uint64_t tensor_bytes(const TensorSpec& tensor);
/// Of a row-major tensor, which outlives it.
npu_buffer_desc buffer_desc(const TensorSpec& tensor);
/// The buffers' own pointers.
std::vector<npu_buffer*> handles(const std::vector<BufferPtr>& buffers);

/// What a case works with: the calls of the interface, each checked for what every call promises.
class Harness {
 public:
  Harness(const Library& loaded, Findings& findings, bool is_quick, std::uint64_t nodes = 0)
      : library(loaded), api(loaded.table), found(findings), quick(is_quick), random_nodes(nodes) {}

  const Library& library;
  const npu_backend& api;
  Findings& found;
  const bool quick;
  const std::uint64_t random_nodes;  ///< that the case of ops draws; 0: what fits into its time

  /// The first usable device; not applicable if there is none.
  const DeviceSheet& facts() const;
  /// With arguments that `change`, if it is given, has changed. `what` names the call.
  DevicePtr open(const std::function<void(npu_open_args&)>& change = {},
                 const std::string& what = "device_open") const;

  /// Status and error of a call agree, and the text is one line. `what` names the call.
  void check_error(npu_status status, const npu_error& error, const std::string& what) const;
  /// The call succeeds, or the case ends.
  void require_ok(npu_status status, const npu_error& error, const std::string& what) const;

  Compiled compile(npu_device* device, const std::string& sub_ir,
                   const std::vector<WeightSpec>& weights = {}, const char* options = nullptr,
                   std::uint32_t ir_version = NPU_IR_VERSION) const;
  Compiled compile(npu_device* device, const GraphSpec& graph) const;
  /// The same with arguments that `change` has changed.
  Compiled compile_with(npu_device* device, const GraphSpec& graph,
                        const std::function<void(npu_compile_args&)>& change) const;

  std::unique_ptr<LoadedModel> load(npu_device* device, const std::string& blob,
                                    const std::vector<WeightSpec>& weights) const;
  ProgramPtr create(npu_model* model) const;
  BufferPtr make_buffer(npu_device* device, const TensorSpec& tensor, std::uint32_t usage) const;
  npu_status write(npu_buffer* buffer, const Tensor& tensor, npu_error& error) const;
  void write(npu_buffer* buffer, const Tensor& tensor) const;
  Tensor read(npu_buffer* buffer, const TensorSpec& tensor) const;

 private:
  Compiled compile_text(npu_device* device, const std::string& sub_ir,
                        const std::vector<WeightSpec>& weights, const char* options,
                        std::uint32_t ir_version,
                        const std::function<void(npu_compile_args&)>& change) const;
  npu_status transfer(npu_buffer* buffer, void* data, std::uint64_t bytes, bool is_write,
                      npu_error& error) const;
};

/// A graph that a device compiles, with its inputs and everything that a run needs.
struct Instance {
  GraphSpec graph;
  std::vector<Tensor> inputs;
  std::string blob;
  DevicePtr device;
  std::unique_ptr<LoadedModel> model;
  ProgramPtr program;
  std::vector<BufferPtr> in;
  std::vector<BufferPtr> out;

  std::vector<npu_buffer*> input_handles() const { return handles(in); }
  std::vector<npu_buffer*> output_handles() const { return handles(out); }
};

/// The first of some small graphs that the device compiles, ready to run; the case fails if there
/// is none.
Instance make_sample(const Harness& harness);
/// The same for a graph whose compile succeeded.
Instance make_instance(const Harness& harness, DevicePtr device, const GraphSpec& graph,
                       const std::string& blob, std::uint64_t seed = 1);
npu_status run(const Harness& harness, const Instance& instance, npu_error& error);
/// The arguments of a run; the arrays live as long as the run.
npu_run_args run_args(const std::vector<npu_buffer*>& inputs,
                      const std::vector<npu_buffer*>& outputs);
/// Runs, which must succeed, and reads the outputs.
std::vector<Tensor> run_and_read(const Harness& harness, const Instance& instance);

/// By which results of a device may differ from the definition, or from those of other kernels.
Tolerance tolerance_of(DType dtype);

std::string status_name(npu_status status);

}  // namespace npu::conformance
