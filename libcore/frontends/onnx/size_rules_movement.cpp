// SPDX-License-Identifier: Apache-2.0
// What ops say of sizes that move elements: gathers, slices, concatenations, reshapes.
#include <algorithm>
#include <set>

#include "size_rules.hpp"
#include "support/checked.hpp"

namespace npu::onnx {
namespace {

constexpr std::int64_t kSomeRows = 64;  // what models with convolutions need

}  // namespace

void SizeRules::gather() {
  const Dims* data = shape(0);
  const Dims* indices = shape(1);
  if (data == nullptr || indices == nullptr) return;
  const std::int64_t axis = axis_in(integer("axis", 0), data->size());
  if (!is_axis(axis, data->size()) || data->size() + indices->size() > kMostRank) return;
  const auto place = data->begin() + axis;
  Dims dims(data->begin(), place);
  dims.insert(dims.end(), indices->begin(), indices->end());
  dims.insert(dims.end(), place + 1, data->end());
  give(std::move(dims));
  // One index that a model was made with says nothing of the size.
  if (in(1).largest.size() == 1 && !in(1).is_constant) {
    const Dim count = sum(in(1).largest[0], number(1));
    // A table may be larger than what is read of it.
    if (in(0).is_constant) {
      solver_.limit(count, *place);
    } else {
      solver_.reaches(*place, count);
    }
  }
  const auto chosen = integers(1, "");
  const Dims* from = elements(0);
  if (from == nullptr || !chosen || data->size() != 1) return;
  Dims taken;
  for (const std::int64_t index : *chosen) {
    const std::int64_t own = axis_in(index, from->size());
    if (!is_axis(own, from->size())) return;
    taken.push_back((*from)[static_cast<std::size_t>(own)]);
  }
  out(0).elements = std::move(taken);
}

void SizeRules::gather_nd() {
  const Dims* data = shape(0);
  const Dims* indices = shape(1);
  if (data == nullptr || indices == nullptr || indices->empty()) return;
  const auto depth = constant_of(indices->back());
  const std::int64_t batch = integer("batch_dims", 0);
  const auto rank = static_cast<std::int64_t>(data->size());
  if (!depth || *depth < 1 || batch < 0 || batch > rank || *depth > rank - batch) return;
  Dims dims(indices->begin(), indices->end() - 1);
  dims.insert(dims.end(), data->begin() + batch + *depth, data->end());
  if (dims.size() <= kMostRank) give(std::move(dims));
  const Dims& largest = in(1).largest;
  for (std::size_t i = 0; i < largest.size() && static_cast<std::int64_t>(largest.size()) == *depth;
       ++i) {
    solver_.reaches((*data)[static_cast<std::size_t>(batch) + i], sum(largest[i], number(1)));
  }
}

void SizeRules::slice() {
  const Dims* data = shape(0);
  if (data == nullptr) return;
  const bool by_inputs = node_->inputs.size() > 1;
  const auto numbers = [&](std::size_t index, std::string_view name) -> std::optional<Dims> {
    if (by_inputs)
      return elements(index) != nullptr ? std::optional(*elements(index)) : std::nullopt;
    const auto values = list(name);
    return values ? std::optional(Dims(values->begin(), values->end())) : std::nullopt;
  };
  auto starts = numbers(1, "starts");
  auto ends = numbers(2, "ends");
  if (!starts || !ends) {
    // Of what is not known the other sizes stay.
    const auto cut = integers(3, "axes");
    if (!cut) return;
    if (!starts) starts.emplace(cut->size());
    if (!ends) ends.emplace(cut->size());
  }
  if (starts->size() != ends->size()) return;
  std::vector<std::int64_t> axes(starts->size());
  for (std::size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<std::int64_t>(i);
  if (has(3) || list("axes")) {
    const auto given = integers(3, "axes");
    if (!given) return;
    axes = *given;
  }
  std::vector<std::int64_t> steps(starts->size(), 1);
  if (has(4)) {
    const auto given = integers(4, "");
    if (!given) return;
    steps = *given;
  }
  if (axes.size() != starts->size() || steps.size() != starts->size()) return;
  Dims dims = *data;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::int64_t axis = axis_in(axes[i], dims.size());
    if (!is_axis(axis, dims.size())) return;
    const Dim whole = (*data)[static_cast<std::size_t>(axis)];
    // Ends that count from the end, and one far behind it.
    const auto place = [&](const Dim& at) -> Dim {
      const auto value = constant_of(at);
      if (value && *value < 0) return *value < -kToTheEnd ? number(0) : sum(whole, at);
      if (value) return *value >= kToTheEnd ? whole : at;
      if (at && is_size(-*at, kSomeRows)) return sum(whole, at);
      return at && is_size(*at, kSomeRows) ? at : std::nullopt;
    };
    const Dim end = place((*ends)[i]);
    // As exporters cut a mask to the number of keys.
    if (!in(0).is_constant && whole && !whole->is_constant() && end && !end->is_constant()) {
      solver_.reaches(whole, end);
    }
    const Dim length = difference(end, place((*starts)[i]));
    Dim& dim = dims[static_cast<std::size_t>(axis)];
    dim = length && steps[i] >= 1
              ? Dim((*length + SizeExpression(steps[i] - 1)).floor_divide(steps[i]))
              : std::nullopt;
    // Of two numbers the end may lie behind the data.
    const auto size = constant_of(whole);
    if (size && dim && dim->constant() && *dim->constant() > *size) dim = whole;
    if (!size && dim && dim->is_constant() && constant_of((*ends)[i]).value_or(-1) >= 0)
      dim.reset();
  }
  give(dims);
  const Dims* from = elements(0);
  const auto first = starts->size() == 1 ? constant_of((*starts)[0]) : std::nullopt;
  const auto last = starts->size() == 1 ? constant_of((*ends)[0]) : std::nullopt;
  if (from == nullptr || data->size() != 1 || !first || !last || steps[0] != 1) return;
  const auto count = static_cast<std::int64_t>(from->size());
  const std::int64_t begin =
      std::clamp<std::int64_t>(*first < 0 ? *first + count : *first, 0, count);
  const std::int64_t end =
      std::clamp<std::int64_t>(*last < 0 ? *last + count : *last, begin, count);
  out(0).elements = Dims(from->begin() + begin, from->begin() + end);
  give({number(end - begin)});
}

void SizeRules::concat() {
  std::optional<Dims> dims;
  Dims joined;
  Dims largest;
  bool has_elements = true;
  bool has_largest = true;
  std::int64_t axis = 0;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const Dims* own = shape(i);
    if (own == nullptr || (dims && own->size() != dims->size()) || own->empty()) return;
    axis = axis_in(integer("axis", 0), own->size());
    if (!is_axis(axis, own->size())) return;
    const auto at = static_cast<std::size_t>(axis);
    for (std::size_t d = 0; dims && d < own->size(); ++d) {
      Dim& size = (*dims)[d];
      if (d == at) {
        size = sum(size, (*own)[d]);
      } else {
        solver_.equate(size, (*own)[d]);
        if (!size) size = (*own)[d];
      }
    }
    if (!dims) dims = *own;
    const Dims* parts = elements(i);
    has_elements = has_elements && parts != nullptr && own->size() == 1 &&
                   joined.size() + parts->size() <= kMostElements;
    if (has_elements) joined.insert(joined.end(), parts->begin(), parts->end());
    const auto width = constant_of((*own)[at]);
    has_largest = has_largest && at + 1 == own->size() && width == 1;
    largest.push_back(in(i).largest.size() == 1 ? in(i).largest[0] : std::nullopt);
  }
  if (!dims) return;
  give(std::move(*dims));
  if (has_elements) out(0).elements = std::move(joined);
  if (has_largest && largest.size() <= kMostElements) out(0).largest = std::move(largest);
}

void SizeRules::unsqueeze() {
  const Dims* dims = shape(0);
  const auto axes = integers(1, "axes");
  if (dims == nullptr || !axes || dims->size() + axes->size() > kMostRank) return;
  const std::size_t rank = dims->size() + axes->size();
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t axis : *axes) {
    const std::int64_t own = axis_in(axis, rank);
    if (!is_axis(own, rank)) return;
    is_new[static_cast<std::size_t>(own)] = true;
  }
  if (static_cast<std::size_t>(std::count(is_new.begin(), is_new.end(), true)) != axes->size()) {
    return;
  }
  Dims result;
  std::size_t next = 0;
  for (std::size_t d = 0; d < rank; ++d) result.push_back(is_new[d] ? number(1) : (*dims)[next++]);
  out(0) = {std::move(result), in(0).elements, in(0).largest};
  if (out(0).largest.size() != 1) out(0).largest.clear();
}

void SizeRules::squeeze() {
  const Dims* dims = shape(0);
  if (dims == nullptr) return;
  const auto axes = integers(1, "axes");
  if (!axes && has(1)) return;
  std::vector<bool> goes(dims->size(), false);
  for (std::size_t d = 0; d < dims->size() && !axes; ++d) {
    if (!(*dims)[d] || !(*dims)[d]->is_constant()) return;
    goes[d] = is_one((*dims)[d]);
  }
  for (const std::int64_t axis : axes.value_or(std::vector<std::int64_t>())) {
    const std::int64_t own = axis_in(axis, dims->size());
    if (!is_axis(own, dims->size())) return;
    goes[static_cast<std::size_t>(own)] = true;
  }
  Dims result;
  for (std::size_t d = 0; d < dims->size(); ++d) {
    if (!goes[d]) result.push_back((*dims)[d]);
  }
  out(0) = {std::move(result), in(0).elements, in(0).largest};
  if (out(0).largest.size() != 1) out(0).largest.clear();
}

// The product of some sizes by that of others. What stands on both sides cancels, such as the batch
// of batch * rows and batch * heads; what is left has to divide by a number.
Dim SizeRules::quotient(const Dims& above, const Dims& below) const {
  Dim left = number(1);
  SizeExpression divisor(1);
  std::vector<SizeExpression> divisors;
  for (const Dim& dim : below) {
    if (!dim) return std::nullopt;
    const SizeExpression size = solver_.current(*dim);
    const std::set<std::string> symbols = size.symbols();
    const std::int64_t factor = symbols.size() == 1 ? size.linear_factor(*symbols.begin()) : 0;
    const auto symbol = factor == 0 ? size : SizeExpression::symbol(*symbols.begin());
    const bool is_multiple = factor > 0 && size == SizeExpression(factor) * symbol;
    if (size.is_constant() || is_multiple) {
      divisor = divisor * (size.is_constant() ? size : SizeExpression(factor));
    }
    if (!size.is_constant()) divisors.push_back(is_multiple ? symbol : size);
  }
  for (const Dim& dim : above) {
    if (!dim) return std::nullopt;
    SizeExpression size = solver_.current(*dim);
    const auto twin = std::find_if(divisors.begin(), divisors.end(), [&](const auto& other) {
      return other == size || (size.linear_factor(other.text()) != 0 &&
                               size == SizeExpression(size.linear_factor(other.text())) * other);
    });
    if (twin != divisors.end()) {
      size = *twin == size ? SizeExpression(1) : SizeExpression(size.linear_factor(twin->text()));
      divisors.erase(twin);
    }
    left = product(left, size);
  }
  const std::int64_t by = *divisor.constant();
  const bool divides = divisors.empty() && by > 0 && left->modulo(by) == 0;
  return divides ? Dim(left->floor_divide(by)) : std::nullopt;
}

void SizeRules::reshape() {
  const Dims* wanted = elements(1);
  const Dims* dims = shape(0);
  out(0).elements = in(0).elements;
  if (in(0).largest.size() == 1) out(0).largest = in(0).largest;
  if (wanted == nullptr || wanted->size() > kMostRank) return;
  Dims result = *wanted;
  std::optional<std::size_t> open;
  Dims others;
  for (std::size_t d = 0; d < result.size(); ++d) {
    const auto value = constant_of(result[d]);
    if (value == 0 && integer("allowzero", 0) == 0) {
      result[d] = dims != nullptr && d < dims->size() ? (*dims)[d] : std::nullopt;
    }
    if (value == -1) {
      open = d;
    } else {
      others.push_back(result[d]);
    }
  }
  if (open) {
    result[*open] = quotient(dims != nullptr ? *dims : Dims(1), others);
  }
  give(std::move(result));
}

void SizeRules::flatten() {
  const Dims* dims = shape(0);
  if (dims == nullptr) return;
  const std::int64_t axis = axis_in(integer("axis", 1), dims->size());
  if (axis < 0 || axis > static_cast<std::int64_t>(dims->size())) return;
  Dims result{number(1), number(1)};
  for (std::size_t d = 0; d < dims->size(); ++d) {
    Dim& to = result[static_cast<std::int64_t>(d) < axis ? 0 : 1];
    to = product(to, (*dims)[d]);
  }
  give(std::move(result));
}

void SizeRules::transpose() {
  const Dims* dims = shape(0);
  if (dims == nullptr) return;
  const auto order = list("perm");
  Dims result(dims->rbegin(), dims->rend());
  for (std::size_t d = 0; order && d < dims->size(); ++d) {
    if (order->size() != dims->size() || !is_axis((*order)[d], dims->size())) return;
    result[d] = (*dims)[static_cast<std::size_t>((*order)[d])];
  }
  give(std::move(result));
}

void SizeRules::expand() {
  const Dims* dims = shape(0);
  const Dims* wanted = elements(1);
  if (dims == nullptr || wanted == nullptr || wanted->size() > kMostRank) return;
  give(broadcast(*dims, *wanted));
  if (in(0).largest.size() == 1) out(0).largest = in(0).largest;
}

void SizeRules::split() {
  const Dims* dims = shape(0);
  if (dims == nullptr) return;
  const std::int64_t axis = axis_in(integer("axis", 0), dims->size());
  if (!is_axis(axis, dims->size())) return;
  const auto at = static_cast<std::size_t>(axis);
  const auto sizes = integers(1, "split");
  const auto whole = constant_of((*dims)[at]);
  const auto parts = static_cast<std::int64_t>(node_->outputs.size());
  if (sizes && sizes->size() != node_->outputs.size()) return;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < node_->outputs.size(); ++i) {
    Dims own = *dims;
    own[at] = sizes                          ? number((*sizes)[i])
              : whole && *whole % parts == 0 ? number(*whole / parts)
                                             : std::nullopt;
    if (sizes) total = saturating_add(total, (*sizes)[i]);
    give(std::move(own), i);
  }
  if (sizes && total >= 0 && total < INT64_MAX) solver_.equate((*dims)[at], number(total));
}

void SizeRules::pad() {
  const Dims* dims = shape(0);
  const auto pads = integers(1, "pads");
  if (dims == nullptr || !pads || pads->size() != 2 * dims->size() || has(3)) return;
  Dims result = *dims;
  for (std::size_t d = 0; d < dims->size(); ++d) {
    result[d] = sum(sum(result[d], number((*pads)[d])), number((*pads)[d + dims->size()]));
  }
  give(std::move(result));
}

}  // namespace npu::onnx
