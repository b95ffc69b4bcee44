// SPDX-License-Identifier: Apache-2.0
// Reductions, orders along a dimension and running sums.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "npu/support/ids.hpp"
#include "op_rows.hpp"
#include "ops/op_name.hpp"

namespace npu::test {
namespace {

using Elements = std::span<const Bounded>;

void draw_reduced(NodeDraw& d) {
  const std::string_view name = functional_name(d.op);
  const bool is_norm = name.find("norm") != std::string_view::npos;
  const bool is_spread = name.starts_with("var") || name.starts_with("std");
  const bool is_arg = name.starts_with("arg");
  if (is_arg || name == "max" || name == "min")
    d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64});
  if (name == "prod" || name == "any" || name == "all")
    d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64, DType::kBool});
  const Shape shape = d.subject(1, 4, name == "prod" ? Fill::kPositive : Fill::kAny, is_filled);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(-rank, rank - 1);
  const bool flat = (d.op.ends_with(".default") && !is_arg && !is_norm) || (is_arg && d.chance(40));
  const bool lists = d.op.ends_with("dims") || is_norm || is_spread;
  if (!flat) d.attrs["dim"] = lists ? Json(Ints{dim}) : Json(dim);
  if (!flat) d.attrs["keepdim"] = d.chance(50);
  if (lists && !flat && rank > 1 && d.chance(30)) d.attrs["dim"] = Ints{0, rank - 1};
  if (name == "norm") d.attrs["p"] = d.one_of<Json>({Json(1), Json(2), Json(nullptr)});
  if (name == "linalg_vector_norm") d.attrs["ord"] = d.pick(1, 2);
  if (d.op.ends_with("correction")) {
    if (d.chance(70)) d.attrs["correction"] = d.pick(0, 1);
  } else if (is_spread && d.chance(60)) {
    d.attrs["unbiased"] = d.chance(50);
  }
}

/// The place of the extremum, if no other element may be it; the first of equal ones.
Bounded place_of_extremum(Elements row, bool least) {
  std::size_t best = 0;
  const auto beats = [&](Bounded a, Bounded b) {
    if (std::isnan(b.value)) return false;
    return std::isnan(a.value) || (least ? a.value < b.value : a.value > b.value);
  };
  for (std::size_t i = 1; i < row.size(); ++i) {
    if (beats(row[i], row[best])) best = i;
  }
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double error = row[i].error + row[best].error;
    if (i != best && error > 0 && !(std::abs(row[i].value - row[best].value) > error))
      return anything();
  }
  return {static_cast<double>(best), 0};
}

Bounded variance(Elements row, double correction) {
  Sum squares;
  const Bounded mean = mean_of(row);
  for (const Bounded x : row) {
    const Bounded centred = x - mean;
    squares.add_product(centred, centred);
  }
  return squares.result() / Bounded{std::max(static_cast<double>(row.size()) - correction, 0.0), 0};
}

Bounded norm_of(Elements row, double order) {
  Sum sum;
  for (const Bounded x : row) {
    if (order == 1) sum.add(exactly([](double v) { return std::abs(v); }, x));
    if (order != 1) sum.add_product(x, x);
  }
  return order == 1 ? sum.result() : square_root(sum.result());
}

Bounded log_sum_exp(Elements row) {
  Sum sum;
  for (const Bounded x : row) sum.add(apply([](double v) { return std::exp(v); }, x));
  Bounded result = apply([](double v) { return std::log(v); }, sum.result());
  result.error += 4 * Rounding::now().unit;  // of what was taken off and is added again
  return result;
}

Bounded fold_by(std::string_view name, Elements row) {
  if (row.empty()) refuse("a reduction of nothing");
  const bool any = name == "any";
  Bounded result = row[0];
  if (any || name == "all") {
    result = {any ? 0.0 : 1.0, 0};
    bool is_open = false;
    for (const Bounded x : row) {
      const bool open = x.error > 0 && std::abs(x.value) <= x.error;
      is_open = is_open || open;
      if (!open && (x.value != 0) == any) return {any ? 1.0 : 0.0, 0};
    }
    result.error = is_open ? 1 : 0;
    return result;
  }
  for (std::size_t i = 1; i < row.size(); ++i) {
    result = name == "prod"  ? result * row[i]
             : name == "max" ? larger(result, row[i])
                             : smaller(result, row[i]);
  }
  return result;
}

Results reduced(const Call& call) {
  const std::string name(call.name());
  const Values& x = call.operand(0);
  const Ints dims = dims_of(call, x.rank());
  const bool keeps = call.boolean("keepdim");
  const auto all = [&](DType dtype, const std::function<Bounded(Elements)>& fold) {
    return reduce(x, dims, keeps, dtype, fold);
  };
  const bool least = name == "argmin" || name == "min";
  const auto place = [&](Elements row) { return place_of_extremum(row, least); };
  if (name.starts_with("arg")) return {all(DType::kInt64, place)};
  if (name.starts_with("var") || name.starts_with("std")) {
    const double correction =
        call.has("unbiased") ? (call.boolean("unbiased") ? 1 : 0) : call.number_or("correction", 1);
    Results results{all(x.dtype, [&](Elements row) {
      const Bounded spread = variance(row, correction);
      return name.starts_with("std") ? square_root(spread) : spread;
    })};
    if (name.ends_with("_mean")) {
      // libtorch updates a mean by differences, of which infinities have none.
      results.push_back(all(x.dtype, [](Elements row) {
        const Bounded mean = mean_of(row);
        return std::isfinite(mean.value) ? mean : anything();
      }));
    }
    return results;
  }
  if (name.find("norm") != std::string::npos) {
    return {all(x.dtype, [&](Elements row) {
      return norm_of(row, call.number_or(name == "norm" ? "p" : "ord", 2));
    })};
  }
  DType dtype = name == "any" || name == "all" ? DType::kBool : x.dtype;
  if (name == "prod" && !is_floating_point(dtype)) dtype = DType::kInt64;
  if (name == "logsumexp") return {all(x.dtype, log_sum_exp)};
  Results results{all(dtype, [&](Elements row) { return fold_by(name, row); })};
  if (call.is(".dim") && (name == "max" || name == "min"))
    results.push_back(all(DType::kInt64, place));
  return results;
}

void draw_ordered(NodeDraw& d) {
  d.dtype = draw_dtype(d, {DType::kInt32, DType::kInt64});
  const Shape shape = d.subject(1, 4, Fill::kAny, is_filled);
  const std::int64_t rank = std::ssize(shape), dim = d.pick(-rank, rank - 1);
  const std::string_view name = functional_name(d.op);
  d.attrs["dim"] = dim;
  if (name == "cumsum") return;
  if (name == "topk") d.attrs["k"] = d.pick(1, shape[index_of(dim < 0 ? dim + rank : dim)]);
  if (d.chance(50)) d.attrs[name == "topk" ? "largest" : "descending"] = d.chance(50);
  if (d.op == "aten.sort.stable") d.attrs["stable"] = true;
}

/// Sorted, with what may be in another order unknown, and the places; equal elements keep theirs
/// where the sort is stable.
void sort_row(std::span<Bounded> row, std::span<Bounded> places, bool descends, bool stable) {
  std::vector<std::size_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const std::vector<Bounded> before(row.begin(), row.end());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double x = before[a].value, y = before[b].value;  // NaN counts as the greatest
    if (std::isnan(x) || std::isnan(y))
      return descends ? std::isnan(x) && !std::isnan(y) : !std::isnan(x) && std::isnan(y);
    return descends ? x > y : x < y;
  });
  double widest = 0;
  for (const Bounded x : before) widest = std::max(widest, x.error);
  for (std::size_t i = 0; i < order.size(); ++i) {
    row[i] = {before[order[i]].value, widest};
    places[i] = {static_cast<double>(order[i]), 0};
    for (std::size_t k : {i - 1, i + 1}) {
      if (k >= order.size()) continue;
      const Bounded a = before[order[i]], b = before[order[k]];
      const bool is_equal = a.value == b.value || (std::isnan(a.value) && std::isnan(b.value));
      if ((is_equal && !stable) ||
          (a.error + b.error > 0 && !(std::abs(a.value - b.value) > a.error + b.error)))
        places[i] = anything();
    }
  }
}

Results ordered(const Call& call) {
  const std::string_view name = call.name();
  Values x = call.operand(0);
  const std::int64_t dim = call.dim("dim", x.rank());
  if (name == "cumsum") {
    if (!is_floating_point(x.dtype)) x.dtype = DType::kInt64;
    along(x, dim, [](std::span<Bounded> row) {
      Sum sum;
      for (Bounded& element : row) {
        sum.add(element);
        element = sum.result();
      }
    });
    return {x};
  }
  Values places = x;
  places.dtype = DType::kInt64;
  std::vector<std::vector<Bounded>> rows;
  along(x, dim, [&](std::span<Bounded> row) {
    std::vector<Bounded> order(row.size());
    sort_row(row, order, name == "topk" ? call.boolean("largest") : call.boolean("descending"),
             call.boolean("stable"));
    rows.push_back(order);
  });
  std::size_t next = 0;
  along(places, dim, [&](std::span<Bounded> row) {
    std::copy(rows[next].begin(), rows[next].end(), row.begin());
    ++next;
  });
  if (name == "argsort") return {places};
  if (name != "topk") return {x, places};
  Results results;
  for (const Values& whole : {x, places}) {
    Shape shape = whole.shape;
    shape[index_of(dim)] = call.integer("k");
    Values part = make_values(shape, whole.dtype);
    for_each_place(shape,
                   [&](std::size_t i, const Shape& place) { part.data[i] = whole.at(place); });
    results.push_back(part);
  }
  return results;
}

const OpRow kRows[] = {
    {"max min argmax argmin any all", draw_reduced, reduced, kNothing},
    {"prod logsumexp var std var_mean std_mean norm linalg_vector_norm", draw_reduced, reduced},
    {"cumsum", draw_ordered, ordered},
    {"sort argsort topk", draw_ordered, ordered, kNothing}};

}  // namespace

std::span<const OpRow> reduction_rows() { return kRows; }

}  // namespace npu::test
