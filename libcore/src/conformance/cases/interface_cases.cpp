// SPDX-License-Identifier: Apache-2.0
// Cases of the entry function, the sizes of structs, the infos, failing calls, and what a backend
// leaves behind in its process.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <clocale>
#include <csignal>
#include <cstring>
#include <set>
#include <string>

#include "conformance/cases/cases.hpp"
#include "conformance/harness/guarded.hpp"
#include "npu/support/error.hpp"
#include "npu/support/json.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration) POSIX declares it nowhere

namespace npu::conformance {
namespace {

bool has_text(const char* text) { return text != nullptr && *text != '\0'; }

void expect_text(const Harness& harness, const char* text, const std::string& what) {
  harness.found.expect(has_text(text), what + " is missing or empty");
}

// A number is filled exactly if its bit says so.
void expect_known(const Harness& harness, std::uint64_t known, std::uint64_t bit,
                  std::uint64_t number, const std::string& what) {
  harness.found.expect((known & bit) != 0 || number == 0,
                       what + " is " + std::to_string(number) + ", but its known bit is not set");
}

bool is_json_object(const char* text) {
  try {
    return parse_json(text, "text").is_object();
  } catch (const Error&) {
    return false;
  }
}

void check_table(const Harness& harness, const npu_backend& api) {
  Findings& found = harness.found;
  found.expect(api.abi_version >= NPU_ABI_VERSION,
               "the table states a version below " + std::to_string(NPU_ABI_VERSION));
  found.require(NPU_HAS(&api, buffer_read), "the table ends before buffer_read");
  found.require(api.backend_info != nullptr && api.device_info != nullptr &&
                    api.device_open != nullptr && api.device_close != nullptr &&
                    api.compile != nullptr && api.model_load != nullptr &&
                    api.model_free != nullptr && api.program_create != nullptr &&
                    api.program_free != nullptr && api.buffer_create != nullptr &&
                    api.buffer_free != nullptr && api.run != nullptr,
                "a required function is null");
  const bool maps = NPU_HAS(&api, buffer_unmap) && api.buffer_map != nullptr;
  found.expect(!maps || api.buffer_unmap != nullptr, "buffer_map comes without buffer_unmap");
  found.expect((api.buffer_write != nullptr && api.buffer_read != nullptr) || maps,
               "neither buffer_write and buffer_read nor buffer_map is there");
  std::set<std::string> names;
  for (const std::string& feature : harness.library.features) {
    found.expect(!feature.empty() && names.insert(feature).second,
                 "the feature '" + feature + "' is empty or listed twice");
  }
}

}  // namespace

void check_entry(const Harness& harness) {
  Findings& found = harness.found;
  check_table(harness, *harness.library.raw);
  auto error = sized<npu_error>();
  static const npu_host again = test_host();
  found.expect(harness.library.entry(&again, &error) == harness.library.raw,
               "asked again, the entry gives another table");
  struct LaterHost {
    npu_host known;
    std::uint64_t more[8];
  };
  static LaterHost later{test_host(), {}};
  later.known.struct_size = sizeof later;
  const npu_backend* table = harness.library.entry(&later.known, &error);
  found.require(table != nullptr, "a host with a longer table is refused");
  check_table(harness, *table);
  later.known.abi_version = NPU_ABI_VERSION + 1;
  found.expect(harness.library.entry(&later.known, &error) != nullptr,
               "a host of a later version is refused");
  harness.library.entry(&again, &error);
  found.expect(harness.library.entry(&again, nullptr) != nullptr,
               "the entry fails where the error pointer is null");
}

namespace {

// Out structs that end at the end of memory, with all of their members and with the first half.
template <typename Struct, typename Call>
void check_out_struct(const Harness& harness, const std::string& name, const Call& call) {
  for (const std::uint64_t size :
       {std::uint64_t{sizeof(Struct)}, std::uint64_t{sizeof(Struct) / 16 * 8 + 8}}) {
    const Guarded<Struct> out(size);
    harness.found.expect(call(out.get()) == NPU_OK,
                         name + " of " + std::to_string(size) + " bytes is refused");
    harness.found.expect(out.get()->struct_size <= size,
                         name + " of " + std::to_string(size) + " bytes comes back with " +
                             std::to_string(out.get()->struct_size));
  }
  auto zeroed = sized<Struct>();
  Longer<Struct> longer(zeroed);
  harness.found.expect(call(longer.get()) == NPU_OK, "a longer " + name + " is refused");
  harness.found.expect(longer.get()->struct_size <= sizeof(Struct),
                       "a longer " + name + " comes back with more bytes than this version has");
  harness.found.expect(longer.is_tail_untouched(),
                       "what lies behind the known end of a longer " + name + " is written");
}

std::string compile_longer(const Harness& harness, npu_device* device, const std::string& text) {
  std::string blob;
  auto writer = sized<npu_writer>();
  writer.context = &blob;
  writer.write = append_bytes;
  Longer<npu_writer> long_writer(writer);
  auto entry = sized<npu_entry>();
  entry.name = "main";
  entry.sub_ir = text.data();
  entry.sub_ir_size = text.size();
  Longer<npu_entry> long_entry(entry);
  const npu_entry* entries[] = {long_entry.get()};
  auto args = sized<npu_compile_args>();
  args.entries = entries;
  args.entry_count = 1;
  args.ir_version = NPU_IR_VERSION;
  args.blob = long_writer.get();
  Longer<npu_compile_args> long_args(args);
  auto error = sized<npu_error>();
  Longer<npu_error> long_error(error);
  const npu_status status = harness.api.compile(device, long_args.get(), long_error.get());
  harness.require_ok(status, *long_error.get(), "compile with longer structs");
  return blob;
}

// A whole life with every struct 64 bytes longer.
void run_longer(const Harness& harness, const Instance& sample) {
  const npu_backend& api = harness.api;
  auto error = sized<npu_error>();
  auto open = sized<npu_open_args>();
  open.device_id = harness.facts().id.c_str();
  Longer<npu_open_args> long_open(open);
  npu_device* device = nullptr;
  const npu_status opened = api.device_open(long_open.get(), &device, &error);
  if (opened == NPU_BUSY) return;
  harness.require_ok(opened, error, "device_open with a longer struct");
  const DevicePtr close(device, api.device_close);
  const std::string blob = compile_longer(harness, device, sub_ir_text(sample.graph));
  auto load = sized<npu_load_args>();
  load.blob = blob.data();
  load.blob_size = blob.size();
  Longer<npu_load_args> long_load(load);
  auto info = sized<npu_model_info>();
  Longer<npu_model_info> long_info(info);
  npu_model* model = nullptr;
  harness.require_ok(api.model_load(device, long_load.get(), long_info.get(), &model, &error),
                     error, "model_load with longer structs");
  const std::unique_ptr<npu_model, void (*)(npu_model*)> free_model(model, api.model_free);
  harness.found.expect(long_info.is_tail_untouched(), "model_load writes behind npu_model_info");
  auto create = sized<npu_program_args>();
  Longer<npu_program_args> long_create(create);
  npu_program* program = nullptr;
  harness.require_ok(api.program_create(model, long_create.get(), &program, &error), error,
                     "program_create with a longer struct");
  const ProgramPtr free_program(program, api.program_free);
}

/// A buffer that is made from a longer description.
BufferPtr make_longer(const Harness& harness, const Instance& sample, const TensorSpec& tensor) {
  Longer<npu_buffer_desc> desc(buffer_desc(tensor));
  npu_buffer* buffer = nullptr;
  auto error = sized<npu_error>();
  harness.require_ok(harness.api.buffer_create(sample.device.get(), desc.get(), &buffer, &error),
                     error, "buffer_create with a longer struct");
  return {buffer, harness.api.buffer_free};
}

/// Answers of functions that a backend may leave out.
void check_longer_answers(const Harness& harness, const Instance& sample) {
  const npu_backend& api = harness.api;
  npu_device* const device = sample.device.get();
  auto error = sized<npu_error>();
  if (api.blob_check != nullptr) {
    check_out_struct<npu_blob_verdict>(harness, "npu_blob_verdict", [&](auto* verdict) {
      return api.blob_check(device, sample.blob.data(), sample.blob.size(), verdict, &error);
    });
  }
  if (api.device_memory != nullptr) {
    check_out_struct<npu_memory_state>(harness, "npu_memory_state", [&](auto* state) {
      return api.device_memory(device, 0, state, &error);
    });
  }
  if (api.clock_sample != nullptr) {
    check_out_struct<npu_clock_sample>(harness, "npu_clock_sample", [&](auto* moment) {
      return api.clock_sample(device, moment, &error);
    });
  }
  if (api.check == nullptr) return;
  std::string answer;
  auto writer = sized<npu_writer>();
  writer.context = &answer;
  writer.write = append_bytes;
  Longer<npu_writer> long_writer(writer);
  const std::string text = sub_ir_text(sample.graph);
  auto args = sized<npu_check_args>();
  args.sub_ir = text.data();
  args.sub_ir_size = text.size();
  args.ir_version = NPU_IR_VERSION;
  args.answer = long_writer.get();
  Longer<npu_check_args> long_args(args);
  harness.require_ok(api.check(device, long_args.get(), &error), error,
                     "check with longer structs");
}

// A run of the sample with longer arguments, and buffers made from longer ones.
void run_longer_buffers(const Harness& harness, const Instance& sample) {
  const npu_backend& api = harness.api;
  auto error = sized<npu_error>();
  const std::vector<Tensor> expected = run_and_read(harness, sample);
  std::vector<BufferPtr> made;
  std::vector<npu_buffer*> inputs;
  for (std::size_t i = 0; i < sample.graph.inputs.size(); ++i) {
    made.push_back(make_longer(harness, sample, sample.graph.inputs[i]));
    harness.write(made.back().get(), sample.inputs[i]);
    inputs.push_back(made.back().get());
  }
  const std::vector<npu_buffer*> outputs = sample.output_handles();
  Longer<npu_run_args> long_args(run_args(inputs, outputs));
  harness.require_ok(api.run(sample.program.get(), long_args.get(), &error), error,
                     "run with a longer struct");
  if (api.buffer_read == nullptr) return;
  const TensorSpec output = sample.graph.tensor(sample.graph.outputs.front());
  Tensor read(output.dtype, output.shape);
  auto piece = sized<npu_transfer>();
  piece.bytes = read.bytes();
  piece.data = read.mutable_data();
  Longer<npu_transfer> long_piece(piece);
  harness.require_ok(api.buffer_read(outputs.front(), long_piece.get(), &error), error,
                     "buffer_read with a longer struct");
  harness.found.expect(same_bits({read}, {expected.front()}),
                       "a run with a longer struct gives other values");
}

}  // namespace

void check_struct_sizes(const Harness& harness) {
  auto error = sized<npu_error>();
  check_out_struct<npu_backend_info>(harness, "npu_backend_info", [&](npu_backend_info* info) {
    return harness.api.backend_info(info, &error);
  });
  check_out_struct<npu_device_info>(harness, "npu_device_info", [&](npu_device_info* info) {
    return harness.api.device_info(0, info, &error);
  });
  // Of the error of a call that fails.
  const Guarded<npu_error> guarded;
  auto info = sized<npu_device_info>();
  harness.found.expect(harness.api.device_info(~std::uint64_t{0}, &info, guarded.get()) == NPU_END,
                       "device_info of a number beyond the last device is not END");
  Longer<npu_error> longer(sized<npu_error>());
  harness.api.device_info(~std::uint64_t{0}, &info, longer.get());
  harness.found.expect(longer.is_tail_untouched(), "what lies behind npu_error is written");
  const Instance sample = make_sample(harness);
  run_longer(harness, sample);
  check_longer_answers(harness, sample);
  run_longer_buffers(harness, sample);
}

namespace {

void check_memories(const Harness& harness, const npu_device_info& info,
                    const std::string& device) {
  Findings& found = harness.found;
  found.require(info.memory_count >= 1 && info.memory_count <= 256 && info.memories != nullptr,
                device + " has " + std::to_string(info.memory_count) + " memories");
  for (std::uint64_t i = 0; i < info.memory_count; ++i) {
    const npu_memory_info* memory = info.memories[i];
    found.require(memory != nullptr, device + ": a memory is null");
    const std::string what = device + ", memory " + std::to_string(i) + ": ";
    found.expect(NPU_HAS(memory, max_buffer_bytes), what + "its struct_size is too small");
    expect_text(harness, memory->name, what + "name");
    expect_known(harness, memory->known, NPU_KNOWN_ALIGNMENT, memory->alignment,
                 what + "alignment");
    expect_known(harness, memory->known, NPU_KNOWN_GRANULARITY, memory->size_granularity,
                 what + "size_granularity");
    expect_known(harness, memory->known, NPU_KNOWN_TOTAL, memory->total_bytes,
                 what + "total_bytes");
    expect_known(harness, memory->known, NPU_KNOWN_MAX_BUFFER, memory->max_buffer_bytes,
                 what + "max_buffer_bytes");
    found.expect((memory->flags & NPU_HOST_MAPPABLE) == 0 || harness.api.buffer_map != nullptr,
                 what + "it is mappable, but buffer_map is null");
  }
}

void check_dtypes(const Harness& harness, const npu_device_info& info, const std::string& device) {
  Findings& found = harness.found;
  found.require(info.dtype_count >= 1 && info.dtype_count <= 256 && info.dtypes != nullptr,
                device + " lists no dtype");
  std::set<std::uint32_t> seen;
  for (std::uint64_t i = 0; i < info.dtype_count; ++i) {
    const npu_dtype_info* dtype = info.dtypes[i];
    found.require(dtype != nullptr, device + ": a dtype is null");
    found.expect(NPU_HAS(dtype, peak_ops_per_second),
                 device + ": the struct_size of a dtype is too small");
    found.expect(seen.insert(dtype->dtype).second,
                 device + " lists dtype " + std::to_string(dtype->dtype) + " twice");
    found.expect(dtype->flags != 0, device + ": dtype " + std::to_string(dtype->dtype) +
                                        " is neither for storage nor for arithmetic");
    expect_known(harness, dtype->known, NPU_KNOWN_PEAK, dtype->peak_ops_per_second,
                 device + ": peak_ops_per_second");
  }
}

void check_numbers(const Harness& harness, const npu_device_info& info, const std::string& device) {
  const std::pair<std::uint64_t, std::pair<std::uint64_t, const char*>> numbers[] = {
      {NPU_KNOWN_COMPUTE_UNITS, {info.compute_units, "compute_units"}},
      {NPU_KNOWN_CLOCK, {info.clock_hz, "clock_hz"}},
      {NPU_KNOWN_BANDWIDTH, {info.memory_bandwidth, "memory_bandwidth"}},
      {NPU_KNOWN_HOST_READ, {info.host_read_bandwidth, "host_read_bandwidth"}},
      {NPU_KNOWN_HOST_WRITE, {info.host_write_bandwidth, "host_write_bandwidth"}},
      {NPU_KNOWN_LAUNCH, {info.launch_overhead_ns, "launch_overhead_ns"}},
      {NPU_KNOWN_ON_CHIP, {info.on_chip_bytes, "on_chip_bytes"}},
      {NPU_KNOWN_IN_FLIGHT, {info.max_programs_in_flight, "max_programs_in_flight"}},
      {NPU_KNOWN_QUEUES, {info.max_queues, "max_queues"}},
      {NPU_KNOWN_COMPILES, {info.concurrent_compiles, "concurrent_compiles"}}};
  for (const auto& [bit, number] : numbers) {
    expect_known(harness, info.known, bit, number.first, device + ": " + number.second);
  }
  harness.found.expect((info.known & NPU_KNOWN_COMPILES) == 0 || info.concurrent_compiles > 0,
                       device + ": no compile at all may run");
}

}  // namespace

namespace {

/// Buffers of every dtype that is listed for storage can be made, and keep what is written.
void check_storage(const Harness& harness) {
  const DevicePtr device = harness.open();
  for (const DType dtype : harness.facts().storage) {
    const TensorSpec tensor{"x", dtype, {3, 5}};
    const std::string name(dtype_name(dtype));
    const npu_buffer_desc desc = buffer_desc(tensor);
    npu_buffer* buffer = nullptr;
    auto error = sized<npu_error>();
    const npu_status status = harness.api.buffer_create(device.get(), &desc, &buffer, &error);
    harness.check_error(status, error, "buffer_create of " + name);
    if (!harness.found.expect(status == NPU_OK, "the device lists " + name +
                                                    " for storage, and buffer_create gives " +
                                                    status_name(status))) {
      continue;
    }
    const BufferPtr owned(buffer, harness.api.buffer_free);
    const Tensor values = test_values(tensor, 5);
    harness.write(buffer, values);
    harness.found.expect(same_bits({harness.read(buffer, tensor)}, {values}),
                         "a buffer of " + name + " does not keep what is written");
  }
}

}  // namespace

void check_infos(const Harness& harness) {
  Findings& found = harness.found;
  auto error = sized<npu_error>();
  auto info = sized<npu_backend_info>();
  harness.require_ok(harness.api.backend_info(&info, &error), error, "backend_info");
  expect_text(harness, info.version, "the version");
  found.expect(has_text(info.name) && harness.library.name == info.name,
               "the backend calls itself '" + std::string(has_text(info.name) ? info.name : "") +
                   "', expected '" + harness.library.name + "'");
  found.expect(info.ir_version_min <= NPU_IR_VERSION && NPU_IR_VERSION <= info.ir_version_max,
               "it reads sub-IRs of version " + std::to_string(info.ir_version_min) + " to " +
                   std::to_string(info.ir_version_max) + ", and there is version 1");
  found.expect(info.option_keys == nullptr || is_json_object(info.option_keys),
               "option_keys is no JSON object");
  std::set<std::string> ids;
  for (std::uint64_t i = 0;; ++i) {
    found.require(i < 64, "device_info does not come to an end");
    auto device = sized<npu_device_info>();
    const npu_status status = harness.api.device_info(i, &device, &error);
    if (status == NPU_END) break;
    harness.require_ok(status, error, "device_info");
    const std::string name = "device " + std::to_string(i);
    expect_text(harness, device.id, name + ": id");
    found.expect(device.id == nullptr || ids.insert(device.id).second,
                 name + " has the id of another one");
    expect_text(harness, device.name, name + ": name");
    expect_text(harness, device.arch, name + ": arch");
    expect_text(harness, device.fingerprint, name + ": fingerprint");
    found.expect(device.usable != 0 || has_text(device.why_not),
                 name + " is not usable and does not say why");
    found.expect(device.extra == nullptr || is_json_object(device.extra),
                 name + ": extra is no JSON object");
    check_numbers(harness, device, name);
    if (device.usable == 0) continue;
    check_memories(harness, device, name);
    check_dtypes(harness, device, name);
  }
  found.expect(!ids.empty(), "the backend has no device, not even one that is not usable");
  const auto& devices = harness.library.devices;
  if (std::any_of(devices.begin(), devices.end(), [](const auto& each) { return each.usable; })) {
    check_storage(harness);
  }
}

void check_failing_calls(const Harness& harness) {
  Findings& found = harness.found;
  const npu_backend& api = harness.api;
  auto error = sized<npu_error>();
  auto open = sized<npu_open_args>();
  open.device_id = "no such device";
  auto* const untouched_device = reinterpret_cast<npu_device*>(&open);
  npu_device* device = untouched_device;
  npu_status status = api.device_open(&open, &device, &error);
  harness.check_error(status, error, "device_open of an unknown device");
  found.expect(status != NPU_OK, "device_open of an unknown device succeeds");
  found.expect(device == untouched_device, "a failing device_open touches its result");
  if (status == NPU_OK && device != nullptr) api.device_close(device);
  found.expect(api.device_open(&open, &device, nullptr) != NPU_OK,
               "device_open without an error struct succeeds");
  const Instance sample = make_sample(harness);
  const char nothing[64] = "this is no blob";
  auto load = sized<npu_load_args>();
  load.blob = nothing;
  load.blob_size = sizeof nothing;
  auto info = sized<npu_model_info>();
  auto* const untouched_model = reinterpret_cast<npu_model*>(&load);
  npu_model* model = untouched_model;
  error = sized<npu_error>();
  status = api.model_load(sample.device.get(), &load, &info, &model, &error);
  harness.check_error(status, error, "model_load of a text");
  found.expect(status == NPU_INVALID || status == NPU_INCOMPATIBLE,
               "model_load of what is no blob gives " + status_name(status) + ", not INVALID");
  found.expect(model == untouched_model, "a failing model_load touches its result");
  const std::int64_t shape[1] = {-1};
  auto desc = sized<npu_buffer_desc>();
  desc.dtype = static_cast<npu_dtype>(sample.graph.inputs.front().dtype);
  desc.rank = 1;
  desc.shape = shape;
  auto* const untouched_buffer = reinterpret_cast<npu_buffer*>(&desc);
  npu_buffer* buffer = untouched_buffer;
  error = sized<npu_error>();
  status = api.buffer_create(sample.device.get(), &desc, &buffer, &error);
  harness.check_error(status, error, "buffer_create of a negative extent");
  found.expect(status != NPU_OK, "buffer_create of a negative extent succeeds");
  found.expect(buffer == untouched_buffer, "a failing buffer_create touches its result");
  found.expect(!run_and_read(harness, sample).empty(), "the model no longer runs");
}

namespace {

// What belongs to the process or the thread and is to be the same afterwards.
struct Surroundings {
  std::string locale;
  std::string folder;
  std::vector<std::string> environment;
  int rounding = 0;
  int threads = 0;
  mode_t mask = 0;
  sigset_t signals{};

  static Surroundings now() {
    Surroundings result;
    result.locale = std::setlocale(LC_ALL, nullptr);
    char folder[4096] = "";
    if (::getcwd(folder, sizeof folder) != nullptr) result.folder = folder;
    for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
      result.environment.emplace_back(*at);
    }
    result.rounding = std::fegetround();
    using MaxThreads = int (*)();
    const auto omp = reinterpret_cast<MaxThreads>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
    if (omp != nullptr) result.threads = omp();
    result.mask = ::umask(0);
    ::umask(result.mask);
    ::pthread_sigmask(SIG_SETMASK, nullptr, &result.signals);
    return result;
  }
};

void expect_same(const Harness& harness, const Surroundings& before, const Surroundings& after,
                 const std::string& when) {
  Findings& found = harness.found;
  found.expect(before.locale == after.locale, "the locale is another one after " + when);
  found.expect(before.folder == after.folder, "the working directory is another after " + when);
  found.expect(before.environment == after.environment,
               "the environment is another one after " + when);
  found.expect(before.rounding == after.rounding, "the rounding mode is another after " + when);
  found.expect(before.threads == after.threads || before.threads == 0,
               "the number of OpenMP threads is another one after " + when);
  found.expect(before.mask == after.mask, "the umask is another one after " + when);
  bool is_same = true;
  for (int number = 1; number < NSIG; ++number) {
    is_same =
        is_same && ::sigismember(&before.signals, number) == ::sigismember(&after.signals, number);
  }
  found.expect(is_same, "the signal mask is another one after " + when);
}

}  // namespace

void check_surroundings(const Harness& harness) {
  // The runner of the cases sees what is printed, in this case as in all others.
  std::fesetround(FE_UPWARD);
  const Surroundings before = Surroundings::now();
  {
    DevicePtr device = harness.open();
    expect_same(harness, before, Surroundings::now(), "device_open");
  }
  {
    const Instance sample = make_sample(harness);
    expect_same(harness, before, Surroundings::now(), "compile and load");
    run_and_read(harness, sample);
    expect_same(harness, before, Surroundings::now(), "run");
  }
  expect_same(harness, before, Surroundings::now(), "device_close");
  std::fesetround(FE_TONEAREST);
}

}  // namespace npu::conformance
