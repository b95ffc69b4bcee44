// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/target_fields.hpp"

namespace npu {

/// Reads the `ops` of a device: which ops it runs, with which dtypes, ranks and arguments.
class OpRuleReader {
 public:
  explicit OpRuleReader(TargetFields& fields) : fields_(fields) {}

  /// Fills the device's rules. Its dtypes and rank, the defaults for
  /// rules without them, must be set already.
  void read(const Json& ops, const std::string& pointer, Device& device);

 private:
  /// A rule may only constrain arguments that all of its op types have.
  void check_argument(const std::vector<std::string>& op_types, const std::string& argument,
                      const std::string& pointer, bool tensor);
  void read_dtype_rule(const Json& json, const std::string& pointer, OpRule& rule);
  std::optional<double> bound(const Json& object, const std::string& pointer, std::string_view key);
  AttributeRule read_attribute(const std::string& argument, const Json& json,
                               const std::string& pointer);
  void check_predicate(const std::string& name, const OpRule& rule, const std::string& pointer);
  void read_rule(const Json& json, const std::string& pointer, Device& device);

  TargetFields& fields_;
};

}  // namespace npu
