// SPDX-License-Identifier: Apache-2.0
// Finds and loads frontends, as device/backend.cpp does backends: beside the program, then in the
// folders of NPU_FRONTEND_PATH, whose files a helper loads first. Nothing is loaded before a
// file that is no document is met.
#include "npu/frontend/frontend.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "device/library_folders.hpp"
#include "device/probe.hpp"
#include "npu/support/file_io.hpp"
#include "npu/support/json.hpp"
#include "npu/support/log.hpp"
#include "npu/support/text.hpp"

namespace npu {
namespace {

constexpr std::string_view kPrefix = "npu_frontend_";
constexpr std::string_view kSuffix = ".so";
constexpr const char* kPathVariable = "NPU_FRONTEND_PATH";
constexpr std::size_t kMostFeatures = 64;
constexpr std::size_t kMostListed = std::size_t{1} << 24;  // bytes of list_ops

[[noreturn]] void refuse_frontend(const std::string& path, const std::string& text) {
  throw Error(ErrorCode::kUnsupported, text, {.file = path});
}

void* open_frontend(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    refuse_frontend(path, "the frontend does not load: " +
                              (reason == nullptr ? std::string() : printable_text(reason)));
  }
  return library;
}

const npu_frontend* checked_frontend(void* library, const std::string& path,
                                     std::string_view name) {
  const auto entry =
      reinterpret_cast<npu_frontend_entry_function>(::dlsym(library, NPU_FRONTEND_ENTRY_NAME));
  if (entry == nullptr) {
    refuse_frontend(path, "no frontend: it does not export " NPU_FRONTEND_ENTRY_NAME);
  }
  const npu_frontend* api = entry(NPU_FRONTEND_ABI_VERSION);
  if (api == nullptr || api->abi_version != NPU_FRONTEND_ABI_VERSION) {
    refuse_frontend(path, "the frontend does not serve ABI version " +
                              std::to_string(NPU_FRONTEND_ABI_VERSION));
  }
  if (!NPU_FRONTEND_HAS(api, import_free) || api->name == nullptr || api->recognises == nullptr ||
      api->import_model == nullptr || api->import_free == nullptr) {
    refuse_frontend(path, "the frontend's function table lacks a required function");
  }
  const std::string_view own(api->name, ::strnlen(api->name, name.size() + 1));
  if (name != own) {
    refuse_frontend(path, "the frontend calls itself '" + printable_text(own) + "', expected '" +
                              std::string(name) + "'");
  }
  std::size_t features = 0;
  while (api->features != nullptr && api->features[features] != nullptr) {
    if (++features > kMostFeatures) {
      refuse_frontend(path, "the frontend's list of features has no end within " +
                                std::to_string(kMostFeatures));
    }
  }
  return api;
}

// The names of the frontends in a folder, sorted; none if there is no such folder.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with(kPrefix) || !file.ends_with(kSuffix)) continue;
    if (file.size() <= kPrefix.size() + kSuffix.size()) continue;
    std::string name = file.substr(kPrefix.size(), file.size() - kPrefix.size() - kSuffix.size());
    if (is_library_name(name)) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::shared_ptr<const Frontend> Frontend::load(const std::string& path, std::string_view name,
                                               bool is_trusted) {
  const LogTimer timer(LogModule::kDevice);
  if (!is_regular_file(path)) refuse_frontend(path, "is not a regular file");
  if (!is_trusted) {
    const std::string fault = probe_library(LibraryKind::kFrontend, path, std::string(name));
    if (!fault.empty()) refuse_frontend(path, "the frontend " + fault);
  }
  auto frontend = std::make_shared<Frontend>();
  frontend->api_ = checked_frontend(open_frontend(path), path, name);
  frontend->name_ = name;
  frontend->path_ = path;
  timer.done([&] { return "frontend '" + frontend->name_ + "' loaded from " + path; });
  return frontend;
}

void Frontend::look_at(const std::string& path, std::string_view name) {
  checked_frontend(open_frontend(path), path, name);
}

const std::vector<std::shared_ptr<const Frontend>>& Frontend::all() {
  static const std::vector<std::shared_ptr<const Frontend>> frontends = [] {
    std::vector<std::shared_ptr<const Frontend>> loaded;
    std::set<std::string> seen;
    const std::string own = install_folder("frontends");
    for (const std::string& folder : library_folders("frontends", kPathVariable)) {
      for (const std::string& name : names_in(folder)) {
        if (!seen.insert(name).second) continue;
        const std::string path = folder + "/" + std::string(kPrefix) + name + std::string(kSuffix);
        loaded.push_back(load(path, name, folder == own));
      }
    }
    return loaded;
  }();
  return frontends;
}

bool Frontend::has_feature(std::string_view feature) const noexcept {
  const char* const* features = api_->features;
  if (features == nullptr) return false;
  for (; *features != nullptr; ++features) {
    if (feature == *features) return true;
  }
  return false;
}

std::string list_frontend_ops(std::string_view name) {
  std::string names;
  for (const auto& frontend : Frontend::all()) {
    if (frontend->name() == name) return frontend->list_ops();
    names += (names.empty() ? "" : ", ") + frontend->name();
  }
  throw Error(ErrorCode::kUsage, "--frontend " + std::string(name) + ": expected one of: " +
                                     (names.empty() ? "none is installed" : names));
}

std::string Frontend::list_ops() const {
  const bool lists = has_feature("ops") && NPU_FRONTEND_HAS(api_, list_ops) && api_->list_ops;
  const char* text = lists ? api_->list_ops() : nullptr;
  if (text == nullptr) {
    throw Error(ErrorCode::kUnsupported, "frontend '" + name_ + "' does not list its ops");
  }
  const std::string list(text, ::strnlen(text, kMostListed + 1));
  const auto refuse = [&](const std::string& reason) {
    throw Error(ErrorCode::kUnsupported, "frontend '" + name_ + "' lists its ops " + reason);
  };
  if (list.size() > kMostListed) refuse("in more than " + std::to_string(kMostListed) + " bytes");
  std::string shown = list;  // blanks of JSON are no characters that act on a terminal
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  if (printable_text(shown) != shown) refuse("with characters that are not printable UTF-8");
  try {
    parse_json(list, path_);
  } catch (const Error&) {
    refuse("as what is no JSON text");
  }
  return list;
}

}  // namespace npu
