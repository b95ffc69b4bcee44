// SPDX-License-Identifier: Apache-2.0
// Opens a shared object of custom ops and checks its table; first in a helper (probe.hpp),
// so that the program survives whatever the object does while it is loaded.
//
// The handle is never closed: a program may hold functions of it until the process ends, and a
// library that started threads cannot be unloaded under them. Opening one twice costs nothing.
#include "device/custom_op_library.hpp"

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <set>
#include <string_view>

#include "device/probe.hpp"
#include "npu/support/error.hpp"
#include "npu/support/file_io.hpp"

namespace npu {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::kIo, fmt::format("custom ops '{}': {}", path, text));
}

void* open_ops(const std::string& path, const std::string& file) {
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* text = ::dlerror();
  std::string_view reason = text != nullptr ? text : "cannot be loaded";
  if (const std::string prefix = file + ": "; reason.starts_with(prefix)) {
    reason.remove_prefix(prefix.size());
  }
  fail(path, std::string(reason));
}

std::vector<npu_custom_op> ops_of(void* handle, const std::string& path) {
  const auto entry =
      reinterpret_cast<npu_custom_op_entry_function>(::dlsym(handle, NPU_CUSTOM_OP_ENTRY_NAME));
  if (entry == nullptr) fail(path, "exports no " NPU_CUSTOM_OP_ENTRY_NAME);
  const npu_custom_op_library* const library = entry(NPU_CUSTOM_OP_ABI_VERSION);
  if (library == nullptr) {
    fail(path,
         fmt::format("does not serve version {} of npu/custom_op.hpp", NPU_CUSTOM_OP_ABI_VERSION));
  }
  if (library->abi_version != NPU_CUSTOM_OP_ABI_VERSION ||
      library->struct_size < sizeof(npu_custom_op_library)) {
    fail(path, fmt::format("was built for version {} of npu/custom_op.hpp, expected {}",
                           library->abi_version, NPU_CUSTOM_OP_ABI_VERSION));
  }
  if (library->op_count != 0 && library->ops == nullptr) fail(path, "has a null list of ops");

  std::vector<npu_custom_op> ops;
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < library->op_count; ++i) {
    const npu_custom_op& op = library->ops[i];
    if (op.name == nullptr || *op.name == '\0') fail(path, fmt::format("op {} has no name", i));
    if (op.run == nullptr) fail(path, fmt::format("op '{}' has no function", op.name));
    if (!names.insert(op.name).second)
      fail(path, fmt::format("op '{}' stands there twice", op.name));
    ops.push_back(op);
  }
  return ops;
}

}  // namespace

void look_at_custom_ops(const std::string& file) { ops_of(open_ops(file, file), file); }

std::vector<npu_custom_op> load_custom_ops(const std::string& path) {
  if (path.empty())
    fail(path, "expected the name of a shared object");  // dlopen: the program itself
  // dlopen searches only the system's folders for a bare name.
  const bool is_local = path.find('/') == path.npos && ::access(path.c_str(), F_OK) == 0;
  const std::string file = is_local ? "./" + path : path;
  // dlopen would wait for the writer of a named pipe.
  if (::access(file.c_str(), F_OK) == 0 && !is_regular_file(file))
    fail(path, "is not a regular file, expected a shared object");
  // What is loaded already has done what it does when it is loaded.
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) == nullptr) {
    const std::string fault = probe_library(LibraryKind::kCustomOps, file);
    if (!fault.empty()) fail(path, fault);
  }
  return ops_of(open_ops(path, file), path);
}

}  // namespace npu
