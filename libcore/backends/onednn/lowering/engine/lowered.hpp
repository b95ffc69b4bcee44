// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "npu/ir/graph.hpp"

namespace npu::onednn {

/// Why something is not computed in the way that was asked for. An expected answer, not an error:
/// the next candidate is asked, or lowering splits the group.
struct NotFused {
  std::string reason = "a kernel does not do all that stands behind its node";
  /// The node of a group that is too much: those in front of it may be computed together.
  NodeId too_much{};
};

/// What a lowering function returns: the result, or the reason why there is none.
template <typename T>
class [[nodiscard]] Lowered {
 public:
  Lowered(T value) : content_(std::move(value)) {}
  Lowered(NotFused refusal) : content_(std::move(refusal)) {}

  explicit operator bool() const noexcept { return content_.index() == 0; }
  /// The result, if there is one.
  const T& operator*() const& { return std::get<T>(content_); }
  T&& operator*() && { return std::get<T>(std::move(content_)); }
  const T* operator->() const { return &std::get<T>(content_); }
  T* operator->() { return &std::get<T>(content_); }
  /// The reason, if there is no result.
  const NotFused& refusal() const { return std::get<NotFused>(content_); }

 private:
  std::variant<T, NotFused> content_;
};

/// The result of a function that sets values of the graph and returns none.
struct Done {};

}  // namespace npu::onednn
