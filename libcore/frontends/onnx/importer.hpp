// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "draft.hpp"
#include "proto.hpp"

namespace npu::onnx {

/// What a rule throws: the reason why a node is refused.
struct Refusal {
  std::string reason;
};

/// A file with the data of tensors, beside the model.
struct ExternalFile {
  std::uint64_t number = 0;
  std::string_view bytes;
};

/// What the import asks its caller for.
class Surroundings {
 public:
  virtual ~Surroundings() = default;
  /// Throws Refusal if there is no such file below the model's folder.
  virtual ExternalFile open(const std::string& name) = 0;
};

struct Settings {
  std::map<std::string, std::int64_t> bindings;
  std::map<std::string, Tensor> frozen;
  bool is_pipe = false;     ///< no file can be read again
  bool takes_data = false;  ///< what is in no file need not stand in the document
  // For templates (import_template.hpp).
  bool notes_computed = false;   ///< computed() has what was computed at import
  std::set<std::string> kept;    ///< values that nodes make, even if they could be computed
  std::set<std::string> filled;  ///< constants of the document that nodes make
  bool has_rolls = true;         ///< two parts of a tensor in another order are a roll
};

struct Finding {
  enum class Level : std::uint8_t { kWarning, kError };
  Level level = Level::kError;
  std::string text;
};

constexpr int kDeepestScope = 64;

/// "" is ONNX's own domain, which has two names.
inline std::string_view own_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

class Op;
class Importer;

/// Turns one node into nodes of the draft.
using Rule = void (*)(Op& op);

/// How one op of some opsets is imported.
struct OpRow {
  std::string_view domain;  ///< "" is ONNX's own
  std::string_view name;
  std::int64_t since = 1;
  Rule rule = nullptr;          ///< null: refused
  std::string_view becomes;     ///< what it becomes, or why it is refused
  std::string_view notes = {};  ///< attributes of some opsets only, and what may be ignored
};

/// The whole table, by domain and name.
const std::vector<OpRow>& op_table();

/// Names that a graph, a branch or a function sees.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, Value*> names;
  const FunctionProto* function = nullptr;  ///< whose body this is
  const NodeProto* call = nullptr;          ///< and the node that calls it
  const Scope* call_scope = nullptr;
  const std::map<std::string_view, std::int64_t>* opsets = nullptr;
  std::string prefix;  ///< of node names
  int depth = 0;

  Value* find(std::string_view name) const;
};

/// One import.
class Importer {
 public:
  Importer(std::string_view bytes, Settings settings, Surroundings& surroundings);

  /// Reads the model and fills the draft; findings has every fault.
  void run();

  Draft& draft() noexcept { return draft_; }
  const std::vector<Finding>& findings() const noexcept { return findings_; }
  bool has_errors() const noexcept { return error_count() > 0; }
  std::ptrdiff_t error_count() const noexcept;
  const ModelProto& model() const noexcept { return model_; }
  std::string_view bytes() const noexcept { return bytes_; }
  const Settings& settings() const noexcept { return settings_; }
  /// Results of nodes that were computed here, by name, if the settings ask for them.
  const std::map<std::string, Tensor>& computed() const noexcept { return computed_; }

  /// Data of a constant; null if the value is none, or has more than `most` elements.
  const Tensor* known(Value* value, std::int64_t most = kMostKnown);
  /// Where the data of a stored constant lies; nothing if it is encoded so that no range holds it.
  std::optional<WeightPlace> place_of(const Value& value);

  /// The initializers of a body in a scope of their own, which all its runs share. Refuses bodies
  /// that are nested too deep.
  Scope body_scope(const GraphProto& body, const Scope& outer);
  /// Imports the nodes of a graph into a scope inside of `constants`, for If, Loop and Scan.
  std::vector<Value*> run_body(const GraphProto& body, const Scope& constants,
                               const std::vector<Value*>& inputs, const std::string& prefix);
  /// Nodes that were walked over so far, those of bodies once for each run, and runs of bodies.
  std::size_t steps() const noexcept { return steps_; }
  /// Counts elements that are looked at here; false if there would be more than kMostWork in all.
  bool may_spend(std::int64_t elements) noexcept;
  /// The same, but throws Exhausted.
  void spend(std::int64_t elements);
  Value* constant_of(const OnnxTensor& tensor);
  /// The same for the tensor of an attribute, once however often its node is imported.
  Value* attribute_constant(const OnnxTensor& tensor);
  /// A sparse tensor with all its elements.
  Value* sparse_constant(const SparseProto& sparse);
  void add_error(std::string text) {
    findings_.push_back({Finding::Level::kError, std::move(text)});
  }
  void add_warning(std::string text) {
    findings_.push_back({Finding::Level::kWarning, std::move(text)});
  }

  static constexpr std::int64_t kMostKnown = 65536;
  static constexpr std::size_t kMostNodes = 200'000;
  static constexpr std::int64_t kMostWork = 32'000'000;
  static constexpr std::int64_t kNewestOpset = 28;  ///< that rules have been checked against
  static constexpr std::int64_t kNewestMicrosoftOpset = 1;

 private:
  void read_opsets();
  void import_opsets(const std::vector<OpsetProto>& given,
                     std::map<std::string_view, std::int64_t>& opsets);
  void bind_sizes();
  void read_inputs(Scope& scope);
  Shape shape_of_input(const ValueProto& input);
  void read_initializers(const GraphProto& graph, Scope& scope);
  void run_nodes(const std::vector<NodeProto>& nodes, Scope& scope);
  void run_node(const NodeProto& node, Scope& scope, std::size_t index);
  void run_function(const FunctionProto& function, const NodeProto& node, Scope& scope);
  void lower(const NodeProto& node, Scope& scope, std::int64_t opset);
  void read_outputs(const Scope& scope);
  void check_stated(const char* what, const ValueProto& stated, const Value& made);
  std::string_view external_data(const OnnxTensor& tensor, WeightPlace& place);
  std::string label(const NodeProto& node, const Scope& scope, std::size_t index) const;

  std::string_view bytes_;
  Settings settings_;
  Surroundings& surroundings_;
  ModelProto model_;
  Draft draft_;
  std::vector<Finding> findings_;
  std::map<std::string_view, std::int64_t> opsets_;
  std::map<const FunctionProto*, std::map<std::string_view, std::int64_t>> function_opsets_;
  std::map<std::string, ExternalFile, std::less<>> files_;
  std::map<const OnnxTensor*, Value*> attribute_constants_;
  std::map<std::string, Tensor> computed_;
  std::set<std::pair<std::string_view, std::int64_t>> newer_opsets_;  // that are told already
  std::size_t steps_ = 0;
  std::int64_t work_ = 0;
};

}  // namespace npu::onnx
