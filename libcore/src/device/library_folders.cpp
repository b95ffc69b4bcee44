// SPDX-License-Identifier: Apache-2.0
// Where the install lies, as seen from the program that runs. Reads /proc/self/exe.
#include "device/library_folders.hpp"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdlib>

namespace npu {
namespace {

// The file that runs: what the kernel says it is, or, where /proc is not mounted, what the kernel
// was told to start.
std::string program_file() {
  std::array<char, PATH_MAX> path;
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  if (length > 0) return std::string(path.data(), static_cast<std::size_t>(length));
  const auto* told = std::bit_cast<const char*>(::getauxval(AT_EXECFN));
  if (told == nullptr || ::realpath(told, path.data()) == nullptr) return {};
  return path.data();
}

// The folder that has bin and lib; where the build was to be installed to, if nothing says where
// the program lies.
std::string install_prefix() {
  const std::string folder = program_file();
  const std::size_t slash = folder.rfind('/');
  if (slash == std::string::npos) return NPU_INSTALL_PREFIX;
  return folder.substr(0, slash == 0 ? 0 : folder.rfind('/', slash - 1));
}

}  // namespace

bool knows_program_file() { return !program_file().empty(); }

std::string install_folder(std::string_view kind) {
  return install_prefix() + "/lib/npu/" + std::string(kind);
}

std::string helper_program(std::string_view name) {
  const std::string place = "/libexec/npu/" + std::string(name);
  const std::string own = install_prefix() + place;
  const std::string other = NPU_INSTALL_PREFIX + place;
  const bool is_elsewhere = ::access(own.c_str(), X_OK) != 0 && ::access(other.c_str(), X_OK) == 0;
  return is_elsewhere ? other : own;
}

bool is_library_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

}  // namespace npu
