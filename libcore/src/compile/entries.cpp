// SPDX-License-Identifier: Apache-2.0
// Several programs over one set of weights. What a backend does not have is made up for here:
// entries without the feature are models of their own.
#include "compile/entries.hpp"

#include <algorithm>
#include <set>

#include "npu/support/error.hpp"

namespace npu {
namespace {

void check_names(const std::vector<ModelEntry>& entries) {
  std::set<std::string_view> names;
  for (const ModelEntry& entry : entries) {
    if (names.insert(entry.name).second) continue;
    throw Error(ErrorCode::kUsage, "two entries of a model are named '" + entry.name + "'");
  }
  if (names.empty()) throw Error(ErrorCode::kUsage, "a model needs at least one entry");
}

}  // namespace

EntryPrograms::EntryPrograms(const std::shared_ptr<DeviceInstance>& device,
                             std::vector<ModelEntry> entries,
                             const std::vector<NamedTensor>& weights, const std::string& options) {
  check_names(entries);
  const Backend& backend = device->backend();
  const bool is_one_model = backend.has_feature("entries");
  std::vector<NamedTensor> loaded;
  std::vector<std::shared_ptr<DeviceWeights>> shared;
  if (!backend.holds_weights() && !weights.empty()) {
    auto uploaded = is_one_model ? nullptr : device->load_weights(weights);
    if (uploaded != nullptr) shared.push_back(std::move(uploaded));
    if (shared.empty()) loaded = weights;
  }
  std::shared_ptr<DeviceModel> model;
  if (is_one_model) {
    model = device->load_model(device->compile(entries, weights, options), loaded);
    models_ = 1;
  }
  for (ModelEntry& entry : entries) {
    std::shared_ptr<DeviceModel> its = model;
    std::string name = entries.size() > 1 && is_one_model ? entry.name : std::string();
    if (its == nullptr) {
      its = device->load_model(device->compile(entry.sub_ir, weights, options), loaded, shared);
      ++models_;
    }
    programs_.emplace_back(std::move(entry.name),
                           std::make_unique<DeviceProgram>(
                               std::move(its), std::move(entry.signature), std::move(name)));
  }
}

DeviceProgram& EntryPrograms::program(std::string_view name) const {
  const auto found = std::find_if(programs_.begin(), programs_.end(),
                                  [&](const auto& program) { return program.first == name; });
  if (found != programs_.end()) return *found->second;
  throw Error(ErrorCode::kUsage, "a model has no entry '" + std::string(name) + "'");
}

}  // namespace npu
