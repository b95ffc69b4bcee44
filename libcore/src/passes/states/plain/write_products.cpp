// SPDX-License-Identifier: Apache-2.0
// Writes einsum of two tensors as a product of matrices.
//
// Input:  a template with nodes such as "bqhd,bkhd->bhqk", as decoders have their attention.
// Output: the same with permutations and a matmul in their place, which the search for attentions
//         and the rules of rows of caches know.
// One letter is summed over. Of the letters that one operand has alone, the last one of the result
// is that of its matrix, and others are batches of it, as those are that both have. Equations with
// letters that are repeated or of one operand alone, with "..." or with another number of sums
// stay. O(nodes).
#include "passes/states/plain/write_products.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/op_name.hpp"
#include "passes/states/plain/new_nodes.hpp"
#include "support/json_fields.hpp"

namespace npu::states {
namespace {

/// The letters of an equation. `b` gives the last one of the result.
struct Equation {
  std::string a, b, result;
  bool is_swapped = false;  ///< `a` is the second operand
  char sum = 0;
  char row = 0;         ///< of `a` alone
  char column = 0;      ///< of `b` alone
  std::string batches;  ///< the result without these two
};

bool has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

bool are_single(std::string_view letters) {
  const std::set<char> each(letters.begin(), letters.end());
  const bool are_letters = std::all_of(letters.begin(), letters.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
  return are_letters && each.size() == letters.size();
}

std::optional<Equation> read_equation(const std::string& text) {
  const std::size_t comma = text.find(',');
  const std::size_t arrow = text.find("->");
  if (comma == text.npos || arrow == text.npos || comma > arrow) return std::nullopt;
  Equation read;
  read.a = text.substr(0, comma);
  read.b = text.substr(comma + 1, arrow - comma - 1);
  read.result = text.substr(arrow + 2);
  if (!are_single(read.a) || !are_single(read.b) || !are_single(read.result)) return std::nullopt;
  if (read.result.empty()) return std::nullopt;
  read.is_swapped = !has(read.b, read.result.back());
  if (read.is_swapped) std::swap(read.a, read.b);
  for (const std::string* letters : {&read.a, &read.b}) {
    const std::string& other = letters == &read.a ? read.b : read.a;
    for (const char letter : *letters) {
      if (has(read.result, letter)) continue;
      if (!has(other, letter) || (read.sum != 0 && read.sum != letter)) return std::nullopt;
      read.sum = letter;
    }
  }
  for (const char letter : read.result) {
    if (!has(read.b, letter)) read.row = letter;
    if (!has(read.a, letter)) read.column = letter;
    if (!has(read.a, letter) && !has(read.b, letter)) return std::nullopt;
  }
  if (read.sum == 0 || read.row == 0 || read.column == 0) return std::nullopt;
  for (const char letter : read.result) {
    if (letter != read.row && letter != read.column) read.batches += letter;
  }
  return read;
}

/// A tensor with a letter for each dimension.
struct Lettered {
  Json mention;
  std::string letters;
  SizeShape shape;
};

class Writer {
 public:
  explicit Writer(const Template& model) : model_(model), tensors_(model) {}

  std::optional<Json> run() {
    Json document = model_.document();
    Json written = Json::array();
    bool is_changed = false;
    for (Json& node : *find_member(document, "nodes")) {
      const bool is_product = product(node, written);
      is_changed = is_changed || is_product;
      if (!is_product) written.push_back(std::move(node));
    }
    if (!is_changed) return std::nullopt;
    set_member(document, "nodes", std::move(written));
    return document;
  }

 private:
  bool product(const Json& node, Json& written) {
    if (functional_name(*member_text(node, "op_type")) != "einsum") return false;
    const Json* attrs = member_object(node, "attrs");
    const std::string* text = attrs == nullptr ? nullptr : member_text(*attrs, "equation");
    const Json& inputs = *member_list(node, "inputs");
    const auto equation = text == nullptr ? std::nullopt : read_equation(*text);
    if (!equation || inputs.size() != 2) return false;
    auto a = lettered(inputs[equation->is_swapped ? 1 : 0], equation->a);
    auto b = lettered(inputs[equation->is_swapped ? 0 : 1], equation->b);
    if (!a || !b || !are_alike(*a, *b)) return false;

    nodes_ = &written;
    base_ = *member_text(node, "name");
    const Json& result = (*member_list(node, "outputs"))[0];
    const Lettered left =
        widened(permuted(*a, equation->batches + equation->row + equation->sum), equation->batches);
    // As keys have it: what is multiplied by rows of queries is turned last.
    const bool is_turned = equation->b.find(equation->sum) > equation->b.find(equation->column);
    const char first = is_turned ? equation->column : equation->sum;
    const char second = is_turned ? equation->sum : equation->column;
    Lettered right = widened(permuted(*b, equation->batches + first + second), equation->batches);
    if (is_turned) {
      std::string letters = right.letters;
      std::swap(letters[letters.size() - 2], letters.back());
      right = permuted(right, letters);
    }
    Lettered whole;
    whole.letters = equation->batches + equation->row + equation->column;
    for (const char letter : equation->batches) {
      const auto& operand = has(equation->a, letter) ? left : right;
      whole.shape.push_back(operand.shape[operand.letters.find(letter)]);
    }
    whole.shape.push_back(left.shape[left.shape.size() - 2]);
    whole.shape.push_back(right.shape.back());
    const Json operands = Json::array({left.mention, right.mention});
    const Json none = Json::object();
    if (whole.letters == equation->result) {
      add(base_, "aten.matmul.default", operands, result, none);
    } else {
      whole.mention = tensors_.mention(left.mention, base_ + ".part", whole.shape);
      whole.mention = add(*member_text(whole.mention, "name"), "aten.matmul.default", operands,
                          whole.mention, none);
      const std::vector<std::size_t> dims = places(whole.letters, equation->result);
      add(base_, "aten.permute.default", Json::array({whole.mention}), result, {{"dims", dims}});
    }
    return true;
  }

  std::optional<Lettered> lettered(const Json& mention, const std::string& letters) const {
    const SizeShape* shape = model_.shape(*member_text(mention, "name"));
    if (shape == nullptr || shape->size() != letters.size()) return std::nullopt;
    return Lettered{mention, letters, *shape};
  }
  /// Whether a letter is one size in both: nothing is stretched.
  static bool are_alike(const Lettered& a, const Lettered& b) {
    for (std::size_t i = 0; i < a.letters.size(); ++i) {
      const std::size_t j = b.letters.find(a.letters[i]);
      if (j != std::string::npos && a.shape[i] != b.shape[j]) return false;
    }
    return true;
  }

  static std::vector<std::size_t> places(const std::string& from, const std::string& to) {
    std::vector<std::size_t> dims;
    for (const char letter : to) dims.push_back(from.find(letter));
    return dims;
  }

  /// In another order, of which it may have a part.
  Lettered permuted(const Lettered& from, const std::string& order) {
    Lettered to;
    for (const char letter : order) {
      if (has(from.letters, letter)) to.letters += letter;
    }
    if (to.letters == from.letters) return from;
    const std::vector<std::size_t> dims = places(from.letters, to.letters);
    for (const std::size_t dim : dims) to.shape.push_back(from.shape[dim]);
    to.mention = step("aten.permute.default", from.mention, to.shape, {{"dims", dims}});
    return to;
  }
  /// With 1 for each batch that it does not have, but in front of its first one.
  Lettered widened(Lettered from, const std::string& batches) {
    const auto begins = std::find_if(batches.begin(), batches.end(),
                                     [&](char letter) { return has(from.letters, letter); });
    for (auto at = begins; at != batches.end(); ++at) {
      if (has(from.letters, *at)) continue;
      const auto dim = static_cast<std::size_t>(at - begins);
      from.letters.insert(dim, 1, *at);
      from.shape.insert(from.shape.begin() + (at - begins), SizeExpression(1));
      from.mention = step("aten.unsqueeze.default", from.mention, from.shape, {{"dim", dim}});
    }
    return from;
  }

  Json step(const std::string& op, const Json& operand, const SizeShape& shape, Json attrs) {
    const Json mention = tensors_.mention(operand, base_ + ".part", shape);
    return add(*member_text(mention, "name"), op, Json::array({operand}), mention,
               std::move(attrs));
  }
  /// The mention of its result.
  Json add(const std::string& name, const std::string& op, Json operands, const Json& result,
           Json attrs) {
    nodes_->push_back(new_node(name, op, std::move(operands), result, std::move(attrs)));
    return given_by(name, result);
  }

  const Template& model_;
  Json* nodes_ = nullptr;
  std::string base_;
  NewTensors tensors_;
};

}  // namespace

std::optional<Json> write_products(const Template& model) { return Writer(model).run(); }

}  // namespace npu::states
