// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "decompositions.hpp"
#include "npu/custom_op.hpp"
#include "npu/support/json.hpp"
#include "ops/schema.hpp"

namespace npu::aten {

/// How one op type runs.
struct Operation {
  enum class Kind { kDispatch, kDecomposition, kCustom, kGetItem, kBody };
  /// What libtorch's schema states about an argument beyond npu::SchemaArgument.
  struct ArgumentTraits {
    bool written = false;              ///< (a!)
    bool out = false;                  ///< (a!) and keyword only: its old value is never read
    bool written_in_training = false;  ///< running statistics, which no schema annotates
    c10::optional<c10::IValue> default_value;
  };

  Kind kind = Kind::kDispatch;
  c10::optional<c10::OperatorHandle> handle;     ///< kDispatch
  const Decomposition* decomposition = nullptr;  ///< kDecomposition
  npu_custom_op custom = {};                     ///< kCustom
  Schema schema;                                 ///< kDispatch, kDecomposition
  std::vector<ArgumentTraits> traits;            ///< parallel to schema.arguments
};

/// An overload of libtorch with its parsed schema, whether or not it has a kernel for the CPU.
/// Throws StatusError NPU_UNSUPPORTED if the schema cannot be parsed.
Operation operation_of(const c10::OperatorHandle& handle);

/// Finds operations by op type, and caches them. One per device; not thread-safe.
class OpRegistry {
 public:
  /// Throws StatusError NPU_INVALID if a library is bad or one of its names is taken.
  explicit OpRegistry(const std::vector<std::string>& custom_op_libraries);

  /// Throws StatusError NPU_UNSUPPORTED with libtorch's version and the most similar names.
  /// The result lives as long as the registry.
  const Operation& find(const std::string& op_type);

  /// Every op, each once, by kind: "aten", "libtorch" (its other namespaces), "decomposition",
  /// "custom", "builtin".
  void visit(
      const std::function<void(const std::string& op_type, const char* kind)>& visitor) const;

 private:
  std::unique_ptr<Operation> make_operation(const std::string& op_type) const;
  std::string not_found_text(const std::string& op_type) const;

  std::map<std::string, npu_custom_op, std::less<>> custom_ops_;
  std::map<std::string, std::unique_ptr<Operation>, std::less<>> operations_;
};

/// The value of a bound argument that is not a tensor, for the dispatcher's stack.
c10::IValue argument_value(const SchemaArgument& argument, const Operation::ArgumentTraits& traits,
                           const BoundArgument& bound);

/// A number as a tensor operand: 0-d and marked so that it does not widen the other
/// operand (float32 * 0.5 stays float32), as in PyTorch.
at::Tensor wrapped_number(const Json& value);

}  // namespace npu::aten
