// SPDX-License-Identifier: Apache-2.0
// Finds and loads frontends, as device/backend.cpp does backends: beside the program, then in the
// folders of NPU_FRONTEND_PATH, whose files a helper loads first. Nothing is loaded before a
// file that is no document is met.
#include "frontend/frontend.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "device/plugin.hpp"
#include "npu/support/json.hpp"
#include "npu/support/log.hpp"
#include "support/text.hpp"

namespace npu {
namespace {

constexpr std::size_t kMostFeatures = 64;
constexpr std::size_t kMostListed = std::size_t{1} << 24;  // bytes of list_ops

const npu_frontend* checked_frontend(const std::string& path, std::string_view name) {
  const auto* api = plugin_table<npu_frontend>(kFrontends, open_plugin(kFrontends, path), path,
                                               NPU_FRONTEND_ENTRY_NAME, NPU_FRONTEND_ABI_VERSION);
  if (!NPU_FRONTEND_HAS(api, import_free) || api->name == nullptr || api->recognises == nullptr ||
      api->import_model == nullptr || api->import_free == nullptr) {
    refuse_file(path, "the frontend's function table lacks a required function");
  }
  const std::string_view own(api->name, ::strnlen(api->name, name.size() + 1));
  if (name != own) {
    refuse_file(path, "the frontend calls itself '" + printable_text(own) + "', expected '" +
                          std::string(name) + "'");
  }
  std::size_t features = 0;
  while (api->features != nullptr && api->features[features] != nullptr) {
    if (++features > kMostFeatures) {
      refuse_file(path, "the frontend's list of features has no end within " +
                            std::to_string(kMostFeatures));
    }
  }
  return api;
}

}  // namespace

std::shared_ptr<const Frontend> Frontend::load(const std::string& path, const std::string& name) {
  const LogTimer timer(LogModule::kDevice);
  probe_plugin(kFrontends, path, name);
  auto frontend = std::make_shared<Frontend>();
  frontend->api_ = checked_frontend(path, name);
  frontend->name_ = name;
  frontend->path_ = path;
  timer.done([&] { return "frontend '" + frontend->name_ + "' loaded from " + path; });
  return frontend;
}

void Frontend::look_at(const std::string& path, std::string_view name) {
  checked_frontend(path, name);
}

const std::vector<std::shared_ptr<const Frontend>>& Frontend::all() {
  static const std::vector<std::shared_ptr<const Frontend>> frontends = [] {
    std::vector<std::shared_ptr<const Frontend>> loaded;
    std::set<std::string> seen;
    for (const std::string& folder : plugin_folders(kFrontends)) {
      for (const std::string& name : plugin_names(kFrontends, folder)) {
        if (!seen.insert(name).second) continue;
        loaded.push_back(load(folder + "/" + plugin_file(kFrontends, name), name));
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
  std::string list(text, ::strnlen(text, kMostListed + 1));
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
