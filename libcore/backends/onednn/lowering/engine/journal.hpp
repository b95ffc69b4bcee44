// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace npu::onednn {

/// How to take back what was changed since a transaction began. Nothing is kept while none is open.
class Journal {
 public:
  /// `undo` puts back what the caller is about to change.
  template <typename Undo>
  void note(Undo undo) {
    if (open_ > 0) undos_.emplace_back(std::move(undo));
  }
  /// Notes the value that a variable has, which stays where it is.
  template <typename T>
  void keep(T& variable) {
    note([&variable, old = variable] { variable = old; });
  }

 private:
  friend class Transaction;
  std::vector<std::function<void()>> undos_;
  int open_ = 0;
};

/// Takes back, newest first, what was noted since its construction, unless it was told to keep
/// that. Transactions nest.
class Transaction {
 public:
  explicit Transaction(Journal& journal) : journal_(journal), mark_(journal.undos_.size()) {
    ++journal_.open_;
  }
  ~Transaction() {
    while (!keeps_ && journal_.undos_.size() > mark_) {
      journal_.undos_.back()();
      journal_.undos_.pop_back();
    }
    if (--journal_.open_ == 0) journal_.undos_.clear();
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void keep() noexcept { keeps_ = true; }

 private:
  Journal& journal_;
  std::size_t mark_;
  bool keeps_ = false;
};

}  // namespace npu::onednn
