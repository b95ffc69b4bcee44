// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proto.hpp"
#include "size_solver.hpp"

namespace npu::onnx {

/// What is known of a value's sizes.
struct KnownSizes {
  std::optional<std::vector<Dim>> shape;     ///< nothing: not even the rank
  std::optional<std::vector<Dim>> elements;  ///< of a small integer tensor, row-major
  /// Largest elements of an integer tensor: one for all, or one for each place of the last axis.
  std::vector<Dim> largest;
  bool is_constant = false;  ///< made of constants alone
};

/// Runs the nodes of a graph on sizes.
class SizeRules {
 public:
  /// `symbols`: sizes by names that texts in the model may mention.
  SizeRules(std::string_view bytes, SizeSolver& solver, const SizeSubstitution& symbols)
      : bytes_(bytes), solver_(solver), symbols_(symbols) {}

  void add_constant(std::string_view name, const OnnxTensor& tensor);
  void add_value(std::string_view name, std::vector<Dim> shape);
  /// What the model states of a value that a node makes.
  void add_statement(const ValueProto& value) { stated_[value.name] = &value; }
  /// The size that a text says, as an expression over the symbols; nothing if it is none.
  Dim stated(std::string_view text) const;
  /// What is known of a value is so of another one.
  void rename(std::string_view from, std::string_view to) { values_[to] = values_[from]; }
  /// One node, in the order of the graph.
  void run(const NodeProto& node);

 private:
  using Dims = std::vector<Dim>;
  using Rule = void (SizeRules::*)();
  static Rule rule_of(std::string_view domain, std::string_view op);

  static constexpr std::int64_t kMostElements = 64;  // of tensors whose elements are followed
  static constexpr std::int64_t kToTheEnd = std::int64_t{1} << 30;
  static constexpr std::size_t kMostRank = 16;

  static std::int64_t axis_in(std::int64_t axis, std::size_t rank) {
    return axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis;
  }
  static bool is_axis(std::int64_t axis, std::size_t rank) {
    return axis >= 0 && axis < static_cast<std::int64_t>(rank);
  }
  static Dim number(std::int64_t value) { return SizeExpression(value); }
  static std::optional<std::int64_t> constant_of(const Dim& dim) {
    return dim ? dim->constant() : std::nullopt;
  }

  // ---- The node that is run ----
  const KnownSizes& in(std::size_t index) const;
  const Dims* shape(std::size_t index) const;
  bool has(std::size_t index) const;
  const Dims* elements(std::size_t index) const;
  /// The elements of an operand, or of the attribute where older opsets have it.
  std::optional<std::vector<std::int64_t>> integers(std::size_t index,
                                                    std::string_view attribute) const;
  std::int64_t integer(std::string_view attribute, std::int64_t absent) const;
  std::optional<std::vector<std::int64_t>> list(std::string_view attribute) const;
  void give(Dims dims, std::size_t output = 0) { out(output).shape = std::move(dims); }
  KnownSizes& out(std::size_t output);
  bool is_made_of_constants() const;
  bool states_rows(std::size_t output, const Dim& rows) const;
  void finish();

  // ---- Arithmetic of what may be unknown ----
  static Dim sum(const Dim& a, const Dim& b);
  static Dim difference(const Dim& a, const Dim& b);
  static Dim product(const Dim& a, const Dim& b);
  bool is_one(const Dim& dim) const;
  /// Whether a number is never negative, if sizes are at least `least`.
  static bool is_size(const SizeExpression& number, std::int64_t least = 0);
  static Dim are_equal(const Dim& a, const Dim& b);
  Dim quotient(const Dims& above, const Dims& below) const;
  Dims broadcast(const Dims& a, const Dims& b);
  Dim windows(const Dim& dim, std::int64_t kernel, std::int64_t stride, std::int64_t dilation,
              std::int64_t pads, bool same) const;

  // ---- Rules ----
  void same();
  void same_with_elements();
  void negated();
  void choose_elements();
  void elementwise();
  void shape_op();
  void constant();
  void constant_of_shape();
  void range();
  void gather();
  void gather_nd();
  void slice();
  void concat();
  void unsqueeze();
  void squeeze();
  void reshape();
  void flatten();
  void transpose();
  void expand();
  void matmul();
  void gemm();
  void reduce();
  void convolution();
  void pooling();
  void global_pooling();
  void split();
  void pad();
  void attention();
  void multi_head();
  void recurrent();

  std::string_view bytes_;
  SizeSolver& solver_;
  const SizeSubstitution& symbols_;
  std::unordered_map<std::string_view, KnownSizes> values_;
  std::unordered_map<std::string_view, const ValueProto*> stated_;
  const NodeProto* node_ = nullptr;
  std::vector<KnownSizes> results_;
};

}  // namespace npu::onnx
