// SPDX-License-Identifier: Apache-2.0
// Tells causal masks and windows by their inequalities: with i a new row and j a key, of P rows
// before, "j <= i + P" and "j > i + P - window". O(atoms x rank).
#include "passes/states/mask_form.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace npu::states {
namespace {

/// The dimension of keys, and the one that has the new rows; -1 if there is none.
struct MaskDims {
  std::ptrdiff_t keys = -1;
  std::ptrdiff_t rows = -1;

  MaskDims(const PastModel& model, const SizeShape& shape, std::size_t keys_dim) {
    if (keys_dim < shape.size() && shape[keys_dim] == model.caches().total) {
      keys = static_cast<std::ptrdiff_t>(keys_dim);
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool has_rows = shape[d] == model.caches().fresh && shape[d] != SizeExpression(1);
      if (has_rows && d != keys_dim) rows = static_cast<std::ptrdiff_t>(d);
    }
  }
};

/// The form of a formula whose condition shows keys.
std::optional<MaskForm> shown_form(const PastModel& model, const Formula& formula,
                                   const SizeShape& shape, std::size_t keys_dim,
                                   std::string& reason) {
  const auto refuse = [&](const std::string& why) {
    reason = why;
    return std::nullopt;
  };
  const MaskDims dims(model, shape, keys_dim);
  if (dims.keys < 0) return refuse("has no dimension of " + model.caches().total.text() + " keys");
  MaskForm form{.shown = formula.yes, .hidden = formula.no};
  if (dims.rows >= 0) form.rows = static_cast<std::size_t>(dims.rows);
  if (formula.when.is_opposite) return refuse("shows keys by none of several conditions");
  const bool is_single = model.caches().fresh == SizeExpression(1);
  bool is_bounded = !model.caches().is_fixed;  // a buffer has rows behind those that count
  for (const Affine& atom : needed_atoms(formula.when.atoms, {shape, model.ranges()})) {
    std::int64_t keys = 0;
    std::int64_t rows = 0;
    for (std::size_t d = 0; d < atom.factors.size(); ++d) {
      const auto dim = static_cast<std::ptrdiff_t>(d);
      if (dim == dims.keys) keys = atom.factors[d];
      if (dim == dims.rows) rows = atom.factors[d];
      if (dim != dims.keys && dim != dims.rows && atom.factors[d] != 0) {
        return refuse("shows other keys along its dimension " + std::to_string(d));
      }
    }
    const bool is_below = keys == 1;
    const std::int64_t wanted = dims.rows < 0 ? 0 : -keys;
    const SizeExpression past = model.caches().past;
    // Up to the last row that counts, which holds for all that is seen.
    const auto behind = (atom.rest + model.caches().used() - SizeExpression(1)).constant();
    if (is_below && rows == 0 && behind && *behind <= 0) {
      is_bounded = is_bounded || *behind == 0;
      continue;
    }
    if (dims.rows < 0 && !is_single) return refuse("is the same for all new rows");
    const auto apart = (is_below ? atom.rest + past : atom.rest - past).constant();
    if ((keys != 1 && keys != -1) || rows != wanted || !apart) {
      return refuse("shows keys by a condition that is neither causal nor a window");
    }
    if (is_below) {
      if (*apart != 0) {
        return refuse("shows keys up to " + std::to_string(std::abs(*apart)) + " " +
                      (*apart < 0 ? "behind" : "before") + " the position of a row");
      }
      form.causal = true;
      continue;
    }
    if (*apart > 0) return refuse("hides the position of a row itself");
    const std::int64_t window = 1 - *apart;
    form.window = form.window < 0 ? window : std::min(form.window, window);
  }
  if (!is_bounded && !form.causal) return refuse("shows rows of a buffer that no step has written");
  if (is_single) form.causal = true;  // there are no later keys
  return form;
}

}  // namespace

std::optional<MaskForm> mask_form(const PastModel& model, const Formula& formula,
                                  const SizeShape& shape, std::size_t keys_dim,
                                  std::string& reason) {
  if (formula.integer) {
    reason = "holds numbers that differ from key to key";
    return std::nullopt;
  }
  if (auto form = shown_form(model, formula, shape, keys_dim, reason)) return form;
  // A single condition may tell which keys are hidden.
  const std::vector<Affine> atoms = needed_atoms(formula.when.atoms, {shape, model.ranges()});
  if (atoms.size() != 1) return std::nullopt;
  Affine shown = multiply(atoms.front(), -1);
  shown.rest = shown.rest + SizeExpression(1);
  const Formula swapped{.when = {{std::move(shown)}}, .yes = formula.no, .no = formula.yes};
  std::string other;
  return shown_form(model, swapped, shape, keys_dim, other);
}

std::optional<std::size_t> keys_dim(const PastModel& model, const Formula& formula,
                                    const SizeShape& shape) {
  std::optional<std::size_t> found;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != model.caches().total) continue;
    const bool is_told = std::any_of(formula.when.atoms.begin(), formula.when.atoms.end(),
                                     [&](const Affine& atom) { return atom.factors[d] != 0; });
    if (is_told) return d;
    found = d;
  }
  return found;
}

}  // namespace npu::states
