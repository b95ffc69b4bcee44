// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "npu/frontend.h"
#include "npu/ir/graph.hpp"
#include "npu/support/error.hpp"
#include "npu/tensor/tensor.hpp"

namespace npu {

/// A loaded frontend (npu/frontend.h). It stays loaded until the process ends.
class Frontend {
 public:
  /// Every frontend of the install's folder and of NPU_FRONTEND_PATH, in the order of the folders
  /// and of their names; of two with one name the first. A file of NPU_FRONTEND_PATH is loaded by a
  /// child process first. Throws Error kUnsupported with what is wrong with a file.
  static const std::vector<std::shared_ptr<const Frontend>>& all();

  /// Loads a file and checks its table, for the helper that does it first. Throws Error
  /// kUnsupported if it is no frontend of this name.
  static void look_at(const std::string& path, std::string_view name);

  const std::string& name() const noexcept { return name_; }
  const std::string& path() const noexcept { return path_; }
  const npu_frontend& api() const noexcept { return *api_; }
  bool has_feature(std::string_view feature) const noexcept;
  /// What it imports, as JSON; throws Error kUnsupported if it does not say.
  std::string list_ops() const;

 private:
  static std::shared_ptr<const Frontend> load(const std::string& path, const std::string& name);
  std::string name_;
  std::string path_;
  const npu_frontend* api_ = nullptr;
};

/// What the frontend `name` imports, as JSON. Throws Error kUsage if there is none of that name.
std::string list_frontend_ops(std::string_view name);

/// How a model of another format becomes a document.
struct ImportOptions {
  std::vector<std::pair<std::string, std::int64_t>> bindings;  ///< symbolic dimensions
  std::vector<std::pair<std::string, Tensor>> frozen;          ///< inputs that become constants
  bool empty() const noexcept { return bindings.empty() && frozen.empty(); }
};

/// Adds NAME=N, or INPUT=FILE with a .npy or .pb file. Throws Error kUsage for other texts.
void add_binding(ImportOptions& options, const std::string& text);
void add_frozen(ImportOptions& options, const std::string& text);

/// Whether bytes begin like a document: '{' after blanks.
bool begins_like_document(std::string_view bytes) noexcept;

/// The model in `bytes`, read by the first frontend that recognises them; nothing if none does.
/// `path` is that of the model's file, which must stay where it is, or empty for a pipe, from which
/// only a model that needs no file is taken. Faults are added to `diagnostics`. The graph has
/// `npu.weights_map`, relative to the working directory, with the model as graph.file.
std::optional<Graph> import_model(const std::string& path, std::string_view bytes,
                                  const ImportOptions& options, Diagnostics& diagnostics);

/// The same model with the symbolic dimensions that no binding gives a value left open: a template
/// of npu-ir(5) as JSON, or an ordinary document if there are none. Throws Error kUsage for a
/// frontend without the feature "sizes".
std::optional<Json> import_template(const std::string& path, std::string_view bytes,
                                    const ImportOptions& options, Diagnostics& diagnostics);

/// Writes the weights that npu.weights_map lists to a safetensors file, decoded, which the graph
/// then names as npu.weights_file instead; a note says if there are none. Throws Error kUsage if
/// the graph has weights that it does not list, kIo and kParse as WeightMap does.
void write_imported_weights(Graph& graph, const std::string& path, Diagnostics& diagnostics);

}  // namespace npu
