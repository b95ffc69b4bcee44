// SPDX-License-Identifier: Apache-2.0
// A backend that hands every call to another one and changes one answer. Its name is that of its
// file:
//
//   wrap      the other one, WRAP_FILE, relative to this one's folder; without it, onednn
//   wrap-far  the same, without pinned memory
//   vendor    a blocking backend of relu, neg and add, whose memory the host sees and whose runs
//             have outputs of their own: the skeleton with queues without its features. Nodes whose
//             names begin with "meet" are begun only once two programs that have one run
//
// WRAP_FAULT is the answer:
//
//   crash, exit, exit-0, print   what loading the library does; print: and a run
//   abi, table, name             an ABI version, a null function, a name that are not as expected
//   busy=N         the first N device_open are busy
//   open=N         device_open fails with status N
//   lost=N         the first N compile lose the device
//   compile=N      compile fails with status N, a node and numbers
//   refuse=OP      compile refuses what has a node of that op; without OP, everything
//   text           compile fails with a text that is none
//   no-blob, no-model, no-program, no-buffer   a call succeeds and gives nothing
//   exit-compile, exit-load, exit-run          a call ends the process with status 0
//   slow=N         compile takes N times 50 ms first, and says so. It makes the file WRAP_MARK
//   deaf=N         the same, but it says nothing
//   run=N          run fails with status N
//   status         run fails with a status that there is not, without a text
//   thread-memory, thread-fault  a thread of a run throws
//   losing=N       the first N devices are lost in their first run; every later call fails, too
//   blob=N         blob_check gives the verdict N; 9: it fails
//   options=TEXT   its option_keys
//   fingerprint=T  the devices have this fingerprint
//   unusable       the first device cannot be opened
//   two            there is a second device, with a fingerprint of its own
//   ir=N           sub-IRs of version N are read, and no others
//   longer         the table is longer than the host's, and infos are filled as such
//   shorter        the table ends behind run and the transfers; features whose functions it has
//                  stay
//   no-map         memory cannot be mapped
//   far            the same, found out when it is asked for
//   no-transfer    memory can only be mapped
//   silent-blob    a blob does not say what it takes
//   silent-model   a loaded model does not, only its blob does
//   no-wrap        memory that is to be wrapped is refused when it is
//   log            device_open logs a line
//   layouts        it hands on the other's layouts, whose names are the other's
//   deny-layouts   its layouts have its own name, but compile refuses them
//   lax-layouts    compile takes them for row-major, and buffer_create refuses them
//
// Counts of calls are exported, for tests in the same process.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "npu/backend.h"
#include "npu/sub_ir.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

const npu_backend* other;
const npu_host* host;
struct {
  npu_backend table;
  char tail[64];
} longer;
std::map<std::string, std::atomic<unsigned>, std::less<>> counts;
/// Programs and models that have a node to meet at, and others; guarded by `met`.
std::mutex met;
std::map<const void*, bool> meets;

/// Of calls so far; any thread may count.
std::atomic<unsigned>& count_of(std::string_view what) { return counts.find(what)->second; }

/// What stands behind "NAME=" in WRAP_FAULT; null if that is another one.
const char* fault(std::string_view name) {
  const char* set = std::getenv("WRAP_FAULT");
  if (set == nullptr || std::strncmp(set, name.data(), name.size()) != 0) return nullptr;
  if (set[name.size()] == '\0') return set + name.size();
  return set[name.size()] == '=' ? set + name.size() + 1 : nullptr;
}

/// The number behind it; 0 if that is another one.
unsigned number_of(std::string_view name) {
  const char* text = fault(name);
  return text == nullptr ? 0 : static_cast<unsigned>(std::atoi(text));
}

/// Runs when the library is loaded, before anybody can ask for its table.
struct AtLoad {
  AtLoad() {
    if (fault("crash") != nullptr) std::raise(SIGSEGV);
    if (fault("exit") != nullptr) std::_Exit(3);
    if (fault("exit-0") != nullptr) std::exit(0);
    if (fault("print") != nullptr) std::puts("the vendor greets");
  }
} at_load;

/// The folder of this library, and what its file is called.
const std::string& own_file(bool is_folder) {
  static const auto parts = [] {
    Dl_info self;
    if (::dladdr(&longer, &self) == 0) std::abort();
    const std::string path = self.dli_fname;
    const std::size_t slash = path.rfind('/');
    const std::string prefix = "npu_backend_";
    const std::string file = path.substr(slash + 1 + prefix.size());
    return std::pair{path.substr(0, slash + 1), file.substr(0, file.rfind('.'))};
  }();
  return is_folder ? parts.first : parts.second;
}

const std::string& own_name() { return own_file(false); }
bool is_vendor() { return own_name() == "vendor"; }

npu_status fail(npu_error* error, npu_status status, const std::string& text) {
  error->status = status;
  std::snprintf(error->text, sizeof error->text, "%s", text.c_str());
  return status;
}

npu_status backend_info(npu_backend_info* info, npu_error* error) {
  const npu_status status = other->backend_info(info, error);
  info->name = fault("name") != nullptr ? "somebody" : own_name().c_str();
  if (is_vendor()) {
    info->option_keys = nullptr;
    info->flags |= NPU_NEW_OUTPUTS;
  }
  if (fault("options") != nullptr) info->option_keys = fault("options");
  if (fault("ir") != nullptr) info->ir_version_min = info->ir_version_max = number_of("ir");
  return status;
}

npu_status device_info(std::uint64_t index, npu_device_info* info, npu_error* error) {
  static const std::string ids[] = {own_name() + ":0", own_name() + ":1"};
  static const std::string vendor_fingerprint = own_name() + " 1.0 any CPU";
  static npu_memory_info memory;
  static const npu_memory_info* const memories[] = {&memory};
  if (index > 1 || (index == 1 && fault("two") == nullptr)) return NPU_END;
  const npu_status status = other->device_info(0, info, error);
  info->id = ids[index].c_str();
  if (is_vendor()) info->fingerprint = vendor_fingerprint.c_str();
  if (index == 1) info->fingerprint = "another";
  if (fault("fingerprint") != nullptr) info->fingerprint = fault("fingerprint");
  if (fault("unusable") != nullptr && index == 0) {
    info->usable = 0;
    info->why_not = "the driver is too old";
  }
  if (own_name() == "wrap-far") info->memory_count = std::min<std::uint64_t>(info->memory_count, 1);
  if (!is_vendor() && fault("no-map") == nullptr) return status;
  memory = {};
  memory.struct_size = sizeof memory;
  if (is_vendor()) memory.flags = NPU_HOST_MAPPABLE | NPU_HOST_COHERENT;
  info->memories = memories;
  info->memory_count = 1;
  return status;
}

npu_status device_open(const npu_open_args* args, npu_device** device, npu_error* error) {
  const unsigned opens = ++count_of("opens");
  npu_status status = NPU_OK;
  if (fault("busy") != nullptr && opens <= number_of("busy")) {
    status = fail(error, NPU_BUSY, "somebody has it");
  } else if (fault("open") != nullptr) {
    status = fail(error, number_of("open"), "it does not open");
  } else {
    if (fault("log") != nullptr) host->log(host->context, NPU_LOG_WARNING, "the fan is loud");
    npu_open_args its = *args;
    its.device_id = nullptr;  // the first one of the other backend
    if (is_vendor()) its.options = nullptr;
    status = other->device_open(&its, device, error);
  }
  if (status != NPU_OK) ++count_of("closes");
  return status;
}

void device_close(npu_device* device) {
  ++count_of("closes");
  other->device_close(device);
}

/// Waits as long as the fault says; NPU_CANCELLED if the host has had enough of it.
npu_status dawdle(const npu_compile_args* args, npu_error* error) {
  const bool is_slow = fault("slow") != nullptr;
  const unsigned steps = number_of(is_slow ? "slow" : "deaf");
  const char* mark = std::getenv("WRAP_MARK");
  if (std::FILE* file = mark != nullptr ? std::fopen(mark, "w") : nullptr) std::fclose(file);
  for (unsigned i = 0; i < steps; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (is_slow && args->progress != nullptr &&
        args->progress(args->progress_context, i, steps, "dawdling") != 0) {
      return fail(error, NPU_CANCELLED, "stopped dawdling");
    }
  }
  return NPU_OK;
}

/// Has layouts of its own, which it does not take after all.
bool breaks_layouts() {
  return fault("deny-layouts") != nullptr || fault("lax-layouts") != nullptr;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

npu_status append(void* context, const void* data, std::uint64_t size, npu_error*) {
  static_cast<std::string*>(context)->append(static_cast<const char*>(data), size);
  return NPU_OK;
}

/// The other's layouts under its own name.
npu_status check(npu_device* device, const npu_check_args* args, npu_error* error) {
  const std::string own = own_name() + ":", others = "onednn:";
  std::string answer;
  const npu_writer writer = {sizeof writer, &answer, append};
  const std::string options = replaced(args->options != nullptr ? args->options : "", own, others);
  npu_check_args its = *args;
  its.options = args->options != nullptr ? options.c_str() : nullptr;
  its.answer = &writer;
  const npu_status status = other->check(device, &its, error);
  if (status != NPU_OK) return status;
  answer = replaced(answer, others, own);
  return args->answer->write(args->answer->context, answer.data(), answer.size(), error);
}

/// The first node of a document for which `matches`; its name and op are in the result.
template <typename Matches>
std::string find_node(const char* text, std::size_t size, const Matches& matches) {
  npu_ir_error fault;
  npu_ir* ir = npu_ir_read(text, size, &fault);
  std::string found;
  for (std::uint32_t n = 0; ir != nullptr && n < ir->node_count && found.empty(); ++n) {
    const npu_ir_node& node = ir->nodes[n];
    if (matches(node)) found = "node '" + std::string(node.name) + "' (" + node.op + ")";
  }
  npu_ir_free(ir);
  return found;
}

/// What the fault makes of a compile; NPU_OK if it is none of it.
npu_status compile_fault(const npu_compile_args* args, npu_error* error) {
  const unsigned compiles = ++count_of("compiles");
  if (fault("slow") != nullptr || fault("deaf") != nullptr) {
    const npu_status stopped = dawdle(args, error);
    if (stopped != NPU_OK) return stopped;
  }
  if (fault("exit-compile") != nullptr) std::exit(0);
  if (fault("lost") != nullptr && compiles <= number_of("lost")) {
    return fail(error, NPU_DEVICE_LOST, "it does not answer");
  }
  if (fault("text") != nullptr) {
    std::memset(error->text, 0xff, sizeof error->text);
    return error->status = NPU_UNSUPPORTED;
  }
  if (fault("compile") != nullptr) {
    error->known = NPU_KNOWN_REQUESTED | NPU_KNOWN_AVAILABLE | NPU_KNOWN_VENDOR_CODE;
    error->requested_bytes = 3000000000U;
    error->available_bytes = 1000000000U;
    error->vendor_code = -7;
    std::snprintf(error->node, sizeof error->node, "the_node");
    return fail(error, number_of("compile"), "it does not fit");
  }
  const char* refused = fault("refuse");
  if (refused == nullptr) return NPU_OK;
  const std::string node = find_node(
      args->entries[0]->sub_ir, args->entries[0]->sub_ir_size,
      [&](const auto& each) { return *refused == '\0' || std::strcmp(each.op, refused) == 0; });
  if (node.empty()) return NPU_OK;
  return fail(error, NPU_UNSUPPORTED, node + " is not for this device");
}

npu_status compile(npu_device* device, const npu_compile_args* args, npu_error* error) {
  const npu_status status = compile_fault(args, error);
  if (status != NPU_OK || fault("no-blob") != nullptr) return status;
  npu_compile_args its = *args;
  if (breaks_layouts() && args->options != nullptr &&
      std::strstr(args->options, (own_name() + ":").c_str()) != nullptr) {
    if (fault("deny-layouts") != nullptr) {
      return fail(error, NPU_UNSUPPORTED, "not in that layout");
    }
    its.options = nullptr;
  }
  return other->compile(device, &its, error);
}

npu_status model_load(npu_device* device, const npu_load_args* args, npu_model_info* info,
                      npu_model** model, npu_error* error) {
  ++count_of("models");
  if (fault("no-model") != nullptr) return NPU_OK;
  if (fault("exit-load") != nullptr) std::exit(0);
  const npu_status status = other->model_load(device, args, info, model, error);
  if (status != NPU_OK || !is_vendor()) return status;
  // The blob has a header and the sub-IR.
  const std::string_view blob(static_cast<const char*>(args->blob), args->blob_size);
  const std::size_t begin = blob.find("{\"");
  const std::string_view sub_ir = blob.substr(std::min(begin, blob.size()));
  const std::lock_guard lock(met);
  meets[*model] = !find_node(sub_ir.data(), sub_ir.rfind('}') + 1, [](const npu_ir_node& node) {
                     return std::strncmp(node.name, "meet", 4) == 0;
                   }).empty();
  return status;
}

npu_status program_create(npu_model* model, const npu_program_args* args, npu_program** program,
                          npu_error* error) {
  ++count_of("programs");
  if (fault("no-program") != nullptr) return NPU_OK;
  const npu_status status = other->program_create(model, args, program, error);
  const std::lock_guard lock(met);
  if (status == NPU_OK && is_vendor()) meets[*program] = meets[model];
  return status;
}

npu_status weights_load(npu_device* device, const npu_tensor* const* tensors, std::uint64_t count,
                        npu_model_info* info, npu_weights** weights, npu_error* error) {
  count_of("weights") += static_cast<unsigned>(count);
  return other->weights_load(device, tensors, count, info, weights, error);
}

/// Waits for another program; false if none comes within ten seconds.
bool meet() {
  static std::condition_variable changed;
  static int present = 0;
  static int meetings = 0;
  std::unique_lock lock(met);
  if (++present == 2) {
    present = 0;
    ++meetings;
    changed.notify_all();
    return true;
  }
  const int before = meetings;
  const auto has_met = [&] { return meetings != before; };
  if (changed.wait_for(lock, std::chrono::seconds(10), has_met)) return true;
  --present;
  return false;
}

bool has_meeting(const npu_program* program) {
  const std::lock_guard lock(met);
  const auto found = meets.find(program);
  return found != meets.end() && found->second;
}

npu_status run(npu_program* program, const npu_run_args* args, npu_error* error) {
  if (fault("losing") != nullptr && count_of("opens") <= number_of("losing")) {
    return fail(error, NPU_DEVICE_LOST, "it does not answer");
  }
  if (fault("run") != nullptr) return fail(error, number_of("run"), "it does not run");
  if (fault("status") != nullptr) return 77;
  if (fault("exit-run") != nullptr) std::exit(0);
  if (fault("thread-memory") != nullptr) std::thread([] { throw std::bad_alloc(); }).join();
  if (fault("thread-fault") != nullptr) {
    std::thread([] { throw std::runtime_error("a\x1b[1m"); }).join();
  }
  if (fault("print") != nullptr) std::puts("the vendor runs");
  if (has_meeting(program) && !meet()) {
    return fail(error, NPU_FAILED, "the run waited for another in vain");
  }
  return other->run(program, args, error);
}

npu_status buffer_create(npu_device* device, const npu_buffer_desc* desc, npu_buffer** buffer,
                         npu_error* error) {
  if (fault("no-buffer") != nullptr) return NPU_OK;
  npu_buffer_desc its = *desc;
  if (is_vendor()) {  // in the memory that the host sees, where all is on its way
    its.memory = 1;
    its.usage = NPU_USAGE_STAGING;
  }
  return other->buffer_create(device, &its, buffer, error);
}

npu_status buffer_map(npu_buffer* buffer, std::uint32_t access, void** pointer, npu_error* error) {
  if (fault("far") != nullptr) return fail(error, NPU_UNSUPPORTED, "the host does not see it");
  return other->buffer_map(buffer, access, pointer, error);
}

npu_status buffer_wrap(npu_device* device, const npu_buffer_desc* desc,
                       const npu_external* external, npu_buffer** buffer, npu_error* error) {
  if (fault("no-wrap") != nullptr) return fail(error, NPU_UNSUPPORTED, "not this memory");
  return other->buffer_wrap(device, desc, external, buffer, error);
}

npu_status blob_check(npu_device*, const void*, std::uint64_t blob_size, npu_blob_verdict* verdict,
                      npu_error* error) {
  const unsigned answer = number_of("blob");
  if (answer == 9 || blob_size == 0) return fail(error, NPU_INVALID, "it is no blob of mine");
  verdict->verdict = answer;
  std::snprintf(verdict->reason, sizeof verdict->reason, "driver 3 made it, this is 4");
  return NPU_OK;
}

bool load_other() {
  const char* file = std::getenv("WRAP_FILE");
  if (is_vendor()) file = "npu_backend_skeleton-queue.so";
  if (file == nullptr) file = "../backends/npu_backend_onednn.so";
  void* library = ::dlopen((own_file(true) + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  using Entry = const npu_backend* (*)(const npu_host*, npu_error*);
  const auto entry = reinterpret_cast<Entry>(::dlsym(library, NPU_ENTRY_NAME));
  if (entry != nullptr) other = entry(host, nullptr);
  return other != nullptr;
}

/// Those of the other backend but for its layouts, whose names begin with its own; none of a
/// vendor's, which blocks.
const char* const* features_of_other() {
  static std::vector<const char*> kept;
  kept.clear();
  for (auto at = other->features; !is_vendor() && at != nullptr && *at != nullptr; ++at) {
    if (std::strcmp(*at, "layouts") != 0) kept.push_back(*at);
  }
  kept.push_back(nullptr);
  return kept.data();
}

/// What is there or not by the fault, and of a vendor's.
void change_table(npu_backend& table) {
  if (is_vendor()) {
    table.blob_check = nullptr;
    table.blob_memory = nullptr;
    table.device_memory = nullptr;
  }
  static const char* const short_features[] = {"cancel", "acme.turbo", nullptr};
  if (fault("abi") != nullptr) ++table.abi_version;
  if (fault("table") != nullptr) table.run = nullptr;
  if (fault("blob") != nullptr) table.blob_check = blob_check;
  if (fault("longer") != nullptr) table.struct_size = sizeof longer;
  if (fault("shorter") != nullptr) {
    table.struct_size = offsetof(npu_backend, buffer_map);
    table.features = short_features;  // the functions of others come later
  }
  if (fault("no-map") != nullptr) table.buffer_map = nullptr;
  if (fault("silent-blob") != nullptr) table.blob_memory = nullptr;
  if (fault("silent-model") != nullptr) table.model_memory = nullptr;
  if (fault("no-transfer") != nullptr) table.buffer_write = table.buffer_read = nullptr;
}

}  // namespace

/// "opens", "open" (now), "compiles", "weights", "models" or "programs" so far.
EXPORTED unsigned wrap_count(const char* what) {
  if (std::strcmp(what, "open") == 0) return count_of("opens") - count_of("closes");
  return count_of(what);
}

EXPORTED const npu_backend* npu_backend_entry(const npu_host* given, npu_error* error) {
  npu_backend& table = longer.table;
  host = given;
  for (const char* what : {"opens", "closes", "compiles", "weights", "models", "programs"}) {
    counts[what];
  }
  if (given->abi_version < NPU_ABI_VERSION || (other == nullptr && !load_other())) {
    if (error != nullptr) fail(error, NPU_INTERNAL, "the other backend does not load");
    return nullptr;
  }
  std::memset(longer.tail, 0xff, sizeof longer.tail);
  table = *other;
  if (fault("layouts") == nullptr && !breaks_layouts()) table.features = features_of_other();
  if (breaks_layouts()) table.check = check;
  table.backend_info = backend_info;
  table.device_info = device_info;
  table.device_open = device_open;
  table.device_close = device_close;
  table.compile = compile;
  table.model_load = model_load;
  table.program_create = program_create;
  table.run = run;
  table.buffer_create = buffer_create;
  if (other->buffer_map != nullptr) table.buffer_map = buffer_map;
  if (other->weights_load != nullptr) table.weights_load = weights_load;
  if (other->buffer_wrap != nullptr) table.buffer_wrap = buffer_wrap;
  change_table(table);
  return &table;
}
