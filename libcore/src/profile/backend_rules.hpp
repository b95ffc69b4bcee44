// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "npu/support/json.hpp"
#include "profile/backend_questions.hpp"

namespace npu {

/// Which samples of a question a device takes in a dtype.
struct DTypeAnswer {
  DType dtype = DType::kFloat32;
  std::vector<bool> taken;  ///< by sample

  bool any() const;
};

struct OpAnswer {
  const OpQuestion* question = nullptr;
  std::vector<DTypeAnswer> dtypes;
};

struct BackendRules {
  Json rules = Json::array();  ///< for `ops` of npu-target(5)
  std::size_t ops = 0;         ///< that they name
  std::size_t untold = 0;      ///< samples that are refused, and that no rule can tell from others
};

/// The rules under which everything holds that was answered: all that is taken is allowed, and of
/// the rest as little as rules can tell apart. Ops with the same rule share one.
BackendRules backend_rules(const std::vector<OpAnswer>& answers);

}  // namespace npu
