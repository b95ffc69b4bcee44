// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/backend.h"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

class DeviceInstance;

/// What a call of a backend failed with. The code says which exit status it makes.
class BackendError : public Error {
 public:
  BackendError(npu_status status, const std::string& message);
  npu_status status() const noexcept { return status_; }

 private:
  npu_status status_;
};

/// Numbers that a backend knows, by their names in npu/backend.h, in their order there.
using KnownNumbers = std::vector<std::pair<std::string, std::uint64_t>>;

/// A memory of a device.
struct MemoryFacts {
  std::optional<std::uint64_t> total_bytes;
  std::string name = {};
  std::uint32_t kind = 0;   ///< NPU_MEMORY_*
  std::uint32_t flags = 0;  ///< NPU_HOST_MAPPABLE and so on
  KnownNumbers numbers = {};
};

/// A dtype that a device lists.
struct DTypeFacts {
  std::uint32_t dtype = 0;  ///< npu_dtype
  std::uint32_t flags = 0;  ///< NPU_DTYPE_*
  std::optional<std::uint64_t> peak_ops_per_second = {};
};

/// What a backend says of one of its devices, without opening it.
struct DeviceFacts {
  std::string id;
  std::string name;
  std::string driver;
  std::string arch;
  std::string fingerprint;  ///< all that a blob depends on there besides its inputs
  bool usable = true;
  bool is_absent = false;  ///< an architecture that no usable device here has: for compiles alone
  std::string why_not;
  bool is_coherent = false;  ///< memory 0 is the host's, too: a mapping stays good
  bool wraps_host = false;   ///< memory 0 takes over pointers of the host
  /// A memory of the host that the device reads and writes fast, if it has one.
  std::optional<std::uint32_t> pinned_memory = {};
  std::uint64_t alignment = 1;
  std::uint32_t concurrent_compiles = 1;
  std::uint32_t programs_in_flight = 1;  ///< of one model, with queues
  std::uint32_t queues = 1;              ///< open at once, where the backend has any
  std::vector<MemoryFacts> memories;
  std::string vendor = {};
  std::uint32_t kind = 0;  ///< NPU_DEVICE_*
  KnownNumbers numbers = {};
  std::vector<DTypeFacts> dtypes = {};

  /// Whether the device says that buffers may have this dtype.
  bool stores(npu_dtype dtype) const;
};

/// One moment on the clock of a device and on the host's, in nanoseconds.
struct ClockSample {
  std::uint64_t device_ns = 0;
  std::uint64_t host_ns = 0;
  std::uint64_t uncertainty_ns = 0;
};

/// What time it was for the host when the device's clock showed `device_ns`, by samples before and
/// after it.
double host_time_ns(const ClockSample& before, const ClockSample& after, std::uint64_t device_ns);

/// A loaded backend: the C interface of npu/backend.h behind C++ types. Loaded once per process.
class Backend {
 public:
  /// Looks for npu_backend_<name>.so in lib/npu/backends beside the program's bin folder, then in
  /// the folders of NPU_BACKEND_PATH (separated by colons). A file of NPU_BACKEND_PATH is loaded in
  /// a child process first: one that crashes, exits or hangs is refused and does not take the
  /// program down. Throws Error kUnsupported with every path that was tried, or with what is wrong
  /// with the file that was found.
  static std::shared_ptr<const Backend> load(std::string_view name);

  /// The file that load() would take, found the same way but not opened; empty if there is none.
  static std::string find_file(std::string_view name);

  /// Loads a file and asks it what load would, for the helper that does it first. Throws as load.
  static void look_at(const std::string& path, const std::string& name);

  const std::string& name() const noexcept { return name_; }
  const std::string& path() const noexcept { return path_; }
  const std::string& version() const noexcept { return version_; }
  /// NPU_BLOB_HOLDS_WEIGHTS and the like.
  bool has_flag(std::uint64_t flag) const noexcept { return (flags_ & flag) != 0; }
  bool holds_weights() const noexcept { return has_flag(NPU_BLOB_HOLDS_WEIGHTS); }
  bool has_feature(std::string_view name) const;
  const std::vector<DeviceFacts>& devices() const noexcept { return devices_; }
  /// The keys of its own options; nothing if it does not state them.
  const std::optional<std::vector<std::string>>& option_keys() const noexcept {
    return option_keys_;
  }
  /// The device whose id or name matches `instance`, which may end with "*"; the first usable one
  /// if it is empty, or of an architecture for "arch:NAME". If there is none of that architecture,
  /// but the backend compiles without a device, an absent one. Throws Error kUnsupported if there
  /// is none, with those that there are.
  const DeviceFacts& device(std::string_view instance) const;
  const npu_backend& api() const noexcept { return *api_; }

 private:
  const DeviceFacts& absent_device(std::string_view arch) const;
  std::string name_;
  std::string path_;
  std::string version_;
  std::uint64_t flags_ = 0;
  std::optional<std::vector<std::string>> option_keys_;
  std::vector<DeviceFacts> devices_;
  const npu_backend* api_ = nullptr;
};

/// The folders that Backend::load searches, in order.
std::vector<std::string> backend_search_path();

/// Dtype and shape of a boundary tensor, and how it lies on the device.
struct TensorType {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string layout = {};  ///< one of the backend's; empty: row-major
};

/// A tensor in device memory. Keeps its device open.
class DeviceBuffer {
 public:
  DeviceBuffer(std::shared_ptr<DeviceInstance> device, npu_buffer* buffer, TensorType type,
               std::uint64_t bytes, bool is_coherent, std::shared_ptr<const void> owner = nullptr);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  npu_buffer* get() const noexcept { return buffer_; }
  DType dtype() const noexcept { return type_.dtype; }
  const Shape& shape() const noexcept { return type_.shape; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  const std::shared_ptr<DeviceInstance>& device() const noexcept { return device_; }
  /// What keeps the memory of a buffer that was wrapped; null otherwise.
  const std::shared_ptr<const void>& owner() const noexcept { return owner_; }
  /// The buffer's memory, if the device shares the host's; null if it does not.
  std::byte* host_memory();
  /// Copies to a new host tensor, bit for bit.
  Tensor to_host() const;
  /// Copies to memory of the host that has its bytes.
  void read(void* data) const;
  /// Copies from a host tensor of the same type.
  void write(const void* data) const;
  /// The buffer's memory as a tensor that keeps the buffer alive; a copy if the device does not
  /// share the host's memory.
  static Tensor view(const std::shared_ptr<DeviceBuffer>& buffer);

 private:
  std::shared_ptr<DeviceInstance> device_;
  npu_buffer* buffer_;
  TensorType type_;
  std::uint64_t bytes_;
  bool is_coherent_;                   // a mapping may stay
  std::shared_ptr<const void> owner_;  // of memory that was wrapped; freed after the buffer
  std::byte* mapped_ = nullptr;
  bool is_mapped_ = false;
};

/// The bytes that compile made; the pointer shares ownership with memory or a mapped file.
struct Blob {
  std::shared_ptr<const std::byte> data;
  std::uint64_t size = 0;
};

/// A named host tensor, as programs take their weights.
struct NamedTensor {
  std::string name;
  Tensor tensor;
};

/// Weights on a device, for any number of its models. Keeps them alive.
class DeviceWeights {
 public:
  DeviceWeights(std::shared_ptr<DeviceInstance> device, std::vector<NamedTensor> tensors);
  ~DeviceWeights();
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;
  npu_weights* get() const noexcept { return weights_; }

 private:
  std::shared_ptr<DeviceInstance> device_;
  std::vector<NamedTensor> tensors_;  // empty if the device has copies
  npu_weights* weights_ = nullptr;
};

/// Bytes that a model with one program takes of a memory.
struct MemoryBytes {
  std::uint64_t weights = 0;
  std::uint64_t scratch = 0;
  std::uint64_t boundary = 0;  ///< buffers of inputs and outputs
  std::uint64_t other = 0;
};

/// What a model takes, as its backend says.
struct MemoryReport {
  std::vector<MemoryBytes> memories;  ///< of the device
  std::uint64_t host = 0;             ///< of the host's memory, if that is none of them
  bool is_exact = false;
  bool is_bound = false;  ///< it takes no more; neither: an estimate
};

/// Whether a blob is for a device: kSlow runs, but a new compile would make it faster.
enum class BlobFit : std::uint8_t { kFits, kSlow, kOther };

/// What a backend says of a blob, from its header alone.
struct BlobVerdict {
  BlobFit fit = BlobFit::kFits;
  std::string reason;  ///< empty if it fits
};

/// What a backend says of a node that it may get to compile.
struct NodeAnswer {
  bool ok = true;
  std::string reason;                 ///< why it is refused; never empty then
  std::optional<std::int64_t> group;  ///< nodes with the same number are only taken together
};

/// Layouts of a backend by names of inputs and outputs of a sub-IR; what is not there is row-major.
using LayoutNames = std::map<std::string, std::string>;
/// The layouts that a backend takes besides row-major, best first, likewise.
using LayoutOffers = std::map<std::string, std::vector<std::string>>;

/// What the nodes that a backend takes of a sub-IR cost by its own estimate.
struct CostEstimate {
  std::uint64_t weights_bytes = 0;
  std::uint64_t scratch_bytes = 0;
  bool has_memory = false;
  std::optional<double> seconds;
};

/// What a backend says of a sub-IR that it may get to compile.
struct CheckAnswer {
  std::vector<NodeAnswer> nodes;
  CostEstimate costs;
  LayoutOffers layouts;  ///< with the feature "layouts" only
};

/// How much of a memory is taken; what a backend does not say is not there.
struct MemoryState {
  std::optional<std::uint64_t> in_use;
  std::optional<std::uint64_t> limit;
};

/// A loaded blob. Keeps its device open and, as long as the device uses them in place, the blob and
/// the weights alive.
class DeviceModel {
 public:
  DeviceModel(std::shared_ptr<DeviceInstance> device, Blob blob, std::vector<NamedTensor> weights,
              std::vector<std::shared_ptr<DeviceWeights>> shared);
  ~DeviceModel();
  DeviceModel(const DeviceModel&) = delete;
  DeviceModel& operator=(const DeviceModel&) = delete;
  npu_model* get() const noexcept { return model_; }
  const std::shared_ptr<DeviceInstance>& device() const noexcept { return device_; }
  /// Whether the host still holds them for the device.
  bool keeps_blob() const noexcept { return blob_.data != nullptr; }
  bool keeps_weights() const noexcept { return !weights_.empty(); }
  /// Nothing if the backend does not say.
  std::optional<MemoryReport> memory() const;

 private:
  std::shared_ptr<DeviceInstance> device_;
  Blob blob_;
  std::vector<NamedTensor> weights_;
  std::vector<std::shared_ptr<DeviceWeights>> shared_;
  npu_model* model_ = nullptr;
};

/// Nanoseconds that a run took; what a backend does not measure stays empty.
struct RunTimes {
  std::vector<std::uint64_t> node_ns;  ///< by node of the sub-IR
  std::vector<npu_span> placed;        ///< the same on the device's clock, if they lie there
  std::vector<std::uint64_t> step_ns;  ///< by step of the blob's report
};

/// Room for the times of one run, as a backend fills it.
class RunProfile {
 public:
  RunProfile(std::size_t nodes, std::size_t steps);
  RunProfile(const RunProfile&) = delete;
  RunProfile& operator=(const RunProfile&) = delete;
  npu_profile* get() noexcept { return &profile_; }
  /// Once the run is done.
  RunTimes times() const;

 private:
  std::vector<npu_span> nodes_;
  std::vector<npu_span> steps_;
  npu_profile profile_{};
};

/// A result that a run gives besides the outputs, for backends with the feature "taps".
struct TapType {
  std::string name;
  TensorType type;
};

/// What a host knows of a program's sub-IR, and asks of its runs.
struct ProgramSignature {
  std::vector<TensorType> outputs;
  std::size_t nodes = 0;
  std::vector<TapType> taps = {};
  bool is_timed = false;  ///< its runs may be asked for times
};

/// A sub-IR beside others that read the same weights: for another size of the inputs, or another
/// part of the work.
struct ModelEntry {
  std::string name;
  std::string sub_ir;
  ProgramSignature signature = {};
};

/// An instance of a model: one run at a time.
class DeviceProgram {
 public:
  /// Of the first entry, if no other is named. `scratch` is memory of make_scratch that programs
  /// share which never run at once; null: it has its own.
  DeviceProgram(std::shared_ptr<DeviceModel> model, ProgramSignature signature,
                const std::string& entry = {}, std::shared_ptr<DeviceBuffer> scratch = nullptr);
  ~DeviceProgram();
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  /// Buffers for the results of one run, or of all: see DeviceInstance::keeps_outputs.
  std::vector<std::shared_ptr<DeviceBuffer>> make_outputs() const;
  /// The same for the taps of its signature.
  std::vector<std::shared_ptr<DeviceBuffer>> make_taps() const;
  /// One result per graph output of the sub-IR, in `outputs` if they are given, which the run
  /// overwrites. Throws BackendError. `times`, if it is not null, takes the times of the nodes, and
  /// of `steps` steps of the report. `deadline_ns` on CLOCK_MONOTONIC is advice; 0: none. `taps`
  /// are buffers of make_taps, or none.
  std::vector<std::shared_ptr<DeviceBuffer>> run(
      std::span<npu_buffer* const> inputs,
      const std::vector<std::shared_ptr<DeviceBuffer>>& outputs = {}, RunTimes* times = nullptr,
      std::size_t steps = 0, std::uint64_t deadline_ns = 0,
      std::span<const std::shared_ptr<DeviceBuffer>> taps = {}) const;
  bool can_cancel() const noexcept;
  /// Asks its run, if there is one, to end soon with NPU_CANCELLED. From any thread.
  void cancel() const noexcept;
  const std::shared_ptr<DeviceModel>& model() const noexcept { return model_; }
  const ProgramSignature& signature() const noexcept { return signature_; }
  npu_program* get() const noexcept { return program_; }

 private:
  std::shared_ptr<DeviceModel> model_;
  ProgramSignature signature_;
  std::shared_ptr<DeviceBuffer> scratch_;
  npu_program* program_ = nullptr;
};

/// How a compile is watched and stopped, for backends with the feature "cancel".
struct CompileHooks {
  std::uint64_t deadline_ns = 0;  ///< on CLOCK_MONOTONIC; 0: none
  /// From any thread, at least once a second; `total` may be 0. False: stop soon.
  std::function<bool(std::uint64_t done, std::uint64_t total, const char* phase)> progress;
  std::string blob_folder;  ///< where large blobs are kept in a file; empty: in memory
  /// npu_piece_cache; both or none. From any thread.
  std::function<std::optional<std::string>(std::string_view key)> find_piece = {};
  std::function<void(std::string_view key, std::string_view piece)> keep_piece = {};
};

/// One opened device of a backend.
class DeviceInstance : public std::enable_shared_from_this<DeviceInstance> {
 public:
  /// `options` is a JSON object; see npu/backend.h. "threads", "instance" and "memory_limit" in it
  /// are the host's: the number of threads (0: all cores), which device, as in Backend::device, and
  /// the bytes that it may take. Any other key has to be one that the backend states, if it states
  /// any, but for those of npu-run's options, which are dropped.
  static std::shared_ptr<DeviceInstance> open(std::shared_ptr<const Backend> backend,
                                              const std::string& options);
  ~DeviceInstance();
  DeviceInstance(const DeviceInstance&) = delete;
  DeviceInstance& operator=(const DeviceInstance&) = delete;

  const Backend& backend() const noexcept { return *backend_; }
  const DeviceFacts& facts() const noexcept { return facts_; }
  npu_device* get() const noexcept { return device_; }

  /// `options` is a JSON object; see npu/backend.h.
  Blob compile(const std::string& sub_ir, const std::vector<NamedTensor>& weights,
               const std::string& options, const CompileHooks& hooks = {});
  /// One blob of all of them, for backends with the feature "entries".
  Blob compile(const std::vector<ModelEntry>& entries, const std::vector<NamedTensor>& weights,
               const std::string& options, const CompileHooks& hooks = {});
  /// What the backend, which has the feature "check", says of the `nodes` nodes of a sub-IR.
  /// `options` as for compile. Throws BackendError.
  CheckAnswer check(const std::string& sub_ir, std::size_t nodes, const std::string& options);
  /// What time it is on the device's clock; nothing if the backend does not say.
  std::optional<ClockSample> clock() const;
  /// The backend's report of a blob; an empty object if it makes none.
  Json blob_report(const Blob& blob);
  /// Whether a blob is for this device; it is where the backend does not say. Throws BackendError
  /// for one that is none of the backend's.
  BlobVerdict check_blob(const Blob& blob) const;
  /// What a blob will take, before it is loaded; nothing if the backend does not say.
  std::optional<MemoryReport> blob_memory(const Blob& blob) const;
  /// Of memory 0; nothing if the backend does not say.
  std::optional<MemoryState> memory_state() const;
  std::shared_ptr<DeviceModel> load_model(Blob blob, std::vector<NamedTensor> weights,
                                          std::vector<std::shared_ptr<DeviceWeights>> shared = {});
  std::unique_ptr<DeviceProgram> load(Blob blob, std::vector<NamedTensor> weights,
                                      ProgramSignature signature,
                                      std::vector<std::shared_ptr<DeviceWeights>> shared = {},
                                      std::shared_ptr<DeviceBuffer> scratch = nullptr);
  std::unique_ptr<DeviceProgram> compile_and_load(const std::string& sub_ir,
                                                  std::vector<NamedTensor> weights,
                                                  ProgramSignature signature);
  /// Null if the backend does not share weights between models.
  std::shared_ptr<DeviceWeights> load_weights(std::vector<NamedTensor> tensors);
  /// Whether a program writes into buffers of the host again and again; otherwise a run gives them
  /// new memory, and they are made for each run.
  bool keeps_outputs() const noexcept { return !backend_->has_flag(NPU_NEW_OUTPUTS); }
  bool has_memory_limit() const noexcept { return memory_limit_ != 0; }
  /// Buffers are made by one thread at a time, whichever calls.
  std::shared_ptr<DeviceBuffer> allocate(DType dtype, const Shape& shape, std::uint32_t usage = 0,
                                         std::uint32_t memory = 0);
  /// In a layout that the backend, which has the feature "layouts" then, knows for the type.
  std::shared_ptr<DeviceBuffer> allocate(const TensorType& type, std::uint32_t usage,
                                         std::uint32_t memory = 0);
  /// Scratch memory of programs, for backends with the feature "scratch".
  std::shared_ptr<DeviceBuffer> make_scratch(std::uint64_t bytes);
  std::shared_ptr<DeviceBuffer> import_tensor(const Tensor& tensor);
  std::shared_ptr<DeviceBuffer> import_tensor(const TensorType& type, const void* data);
  /// A buffer in memory of the host, which `owner` keeps in its place and which is only read,
  /// unless `access` has more. Null if the backend cannot use that memory as it is.
  std::shared_ptr<DeviceBuffer> wrap(DType dtype, const Shape& shape, const void* memory,
                                     std::shared_ptr<const void> owner = nullptr,
                                     std::uint32_t access = NPU_ACCESS_READ);
  /// Calls `visit` with the name and kind of every op that the backend knows.
  void list_ops(const std::function<void(std::string_view, std::string_view)>& visit);

 private:
  DeviceInstance(std::shared_ptr<const Backend> backend, DeviceFacts facts, npu_device* device);
  Blob compile_entries(const std::vector<npu_entry>& entries,
                       const std::vector<NamedTensor>& weights, const std::string& options,
                       const CompileHooks& hooks);
  std::shared_ptr<const Backend> backend_;
  DeviceFacts facts_;
  npu_device* device_;
  std::mutex creating_;
  std::uint64_t memory_limit_ = 0;
};

}  // namespace npu
