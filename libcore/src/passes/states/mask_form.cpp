// SPDX-License-Identifier: Apache-2.0
// Tells causal masks and windows by their inequalities: with i a new row and j a key, of P rows
// before, "j <= i + P" and "j > i + P - window". O(atoms x rank).
#include "passes/states/mask_form.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace npu::states {
namespace {

/// The dimension that has all rows, and the one that has the new ones; -1 if there is none.
struct MaskDims {
  std::ptrdiff_t keys = -1;
  std::ptrdiff_t rows = -1;

  MaskDims(const PastModel& model, const SizeShape& shape) {
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const auto dim = static_cast<std::ptrdiff_t>(d);
      if (shape[d] == model.caches().total) keys = dim;
      if (shape[d] == model.caches().fresh && shape[d] != SizeExpression(1)) rows = dim;
    }
  }
};

/// The form of a formula whose condition shows keys.
std::optional<MaskForm> shown_form(const PastModel& model, const Formula& formula,
                                   const SizeShape& shape, std::string& reason) {
  const auto refuse = [&](const std::string& why) {
    reason = why;
    return std::nullopt;
  };
  const MaskDims dims(model, shape);
  if (dims.keys < 0) return refuse("has no dimension of " + model.caches().total.text() + " keys");
  MaskForm form{.shown = formula.yes, .hidden = formula.no};
  if (formula.when.is_opposite) return refuse("shows keys by none of several conditions");
  if (dims.rows < 0 && model.caches().fresh != SizeExpression(1) && !formula.when.atoms.empty()) {
    return refuse("is the same for all new rows");
  }
  for (const Affine& atom : formula.when.atoms) {
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
  if (model.caches().fresh == SizeExpression(1)) form.causal = true;  // there are no later keys
  return form;
}

}  // namespace

std::optional<MaskForm> mask_form(const PastModel& model, const Formula& formula,
                                  const SizeShape& shape, std::string& reason) {
  if (formula.integer) {
    reason = "holds numbers that differ from key to key";
    return std::nullopt;
  }
  if (auto form = shown_form(model, formula, shape, reason)) return form;
  // A single condition may tell which keys are hidden.
  if (formula.when.atoms.size() != 1) return std::nullopt;
  Affine shown = multiply(formula.when.atoms.front(), -1);
  shown.rest = shown.rest + SizeExpression(1);
  const Formula swapped{.when = {{std::move(shown)}}, .yes = formula.no, .no = formula.yes};
  std::string other;
  return shown_form(model, swapped, shape, other);
}

}  // namespace npu::states
