// SPDX-License-Identifier: Apache-2.0
// Whether a template holds at sizes that it was not made of.
//
// A model may take another branch where a size is small or large: pad what is shorter than a
// kernel, cut what is longer than a table. An import at that size takes it, and differs.
#include "template_range.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string_view>

#include "support/json_fields.hpp"

namespace npu::onnx {
namespace {

const Json& list_of(const Json& object, const char* key) {
  static const Json kNone = Json::array();
  const Json* list = member_list(object, key);
  return list != nullptr ? *list : kNone;
}

std::map<std::string_view, const Json*> shapes_of(const Json& document) {
  std::map<std::string_view, const Json*> shapes;
  const auto add = [&](const Json& mentions) {
    for (const Json& mention : mentions) {
      shapes.emplace(*member_text(mention, "name"), find_member(mention, "shape"));
    }
  };
  for (const Json& node : list_of(document, "nodes")) add(list_of(node, "outputs"));
  add(list_of(document, "graph_outputs"));
  return shapes;
}

bool is_same(const Json* a, const Json* b) {
  return a == nullptr || b == nullptr ? a == b : *a == *b;
}

bool have_same_nodes(const Json& a, const Json& b) {
  const Json& nodes = list_of(a, "nodes");
  const Json& others = list_of(b, "nodes");
  if (nodes.size() != others.size()) return false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const char* key : {"name", "op_type"}) {
      if (!is_same(find_member(nodes[i], key), find_member(others[i], key))) return false;
    }
  }
  return true;
}

// Whether the nodes that only the first document has leave a shape as it is, as those do that an
// import leaves out where they do nothing.
bool are_idle_without(const Json& document, const Json& other) {
  std::set<std::string_view> names;
  for (const Json& node : list_of(other, "nodes")) names.insert(*member_text(node, "name"));
  const Json& nodes = list_of(document, "nodes");
  return std::all_of(nodes.begin(), nodes.end(), [&](const Json& node) {
    if (names.contains(*member_text(node, "name"))) return true;
    const Json& inputs = list_of(node, "inputs");
    const Json& outputs = list_of(node, "outputs");
    return !inputs.empty() && outputs.size() == 1 &&
           is_same(find_member(inputs[0], "shape"), find_member(outputs[0], "shape"));
  });
}

bool has_no_element(const Json* shape) {
  return shape != nullptr && std::any_of(shape->begin(), shape->end(), [](const Json& extent) {
           return json_integer(&extent) == 0;
         });
}

constexpr std::int64_t kFarAway = 32768;

std::int64_t least_of(const TriedSize& size) { return *std::ranges::min_element(size.tried); }
std::int64_t most_of(const TriedSize& size) { return *std::ranges::max_element(size.tried); }

SizeBindings first_point(const std::vector<TriedSize>& sizes) {
  SizeBindings point;
  for (const TriedSize& size : sizes) point[size.name] = size.tried.front();
  return point;
}

/// The value next to `bad` at which a model still agrees, as it does at `good`.
std::int64_t last_agreeing(std::int64_t good, std::int64_t bad, std::int64_t step,
                           const std::function<bool(std::int64_t)>& agrees) {
  while (std::abs(good - bad) >= 2 * step) {
    const std::int64_t middle = good + (bad - good) / step / 2 * step;
    (agrees(middle) ? good : bad) = middle;
  }
  return good;
}

void end_alone(TriedSize& size, SizeBindings point, const AgreesAt& agrees_at) {
  const auto at = [&](std::int64_t value) {
    point[size.name] = value;
    return agrees_at(point);
  };
  const auto agrees = [&](std::int64_t value) { return at(value).value_or(false); };
  const std::int64_t least = least_of(size);
  const std::int64_t most = most_of(size);
  if (size.min < least && !agrees(size.min)) {
    size.min = last_agreeing(least, size.min, size.step, agrees);
  }
  for (std::int64_t far = kFarAway; far > most; far /= 8) {
    if (size.max && far > *size.max) continue;
    const std::optional<bool> is_same = at(far / size.step * size.step);
    if (!is_same) continue;  // no size of this model
    if (!*is_same) size.max = last_agreeing(most, far / size.step * size.step, size.step, agrees);
    break;
  }
}

/// The largest values together: shares of the way from what was tried, each half of the one before.
void end_together(std::vector<TriedSize>& sizes, const AgreesAt& agrees_at) {
  bool is_other = false;
  for (int half = 0; half < 16; ++half) {
    SizeBindings point;
    for (const TriedSize& size : sizes) {
      const std::int64_t most = most_of(size);
      const std::int64_t way = std::max<std::int64_t>(size.max.value_or(kFarAway) - most, 0);
      point[size.name] = most + (way >> half) / size.step * size.step;
    }
    const std::optional<bool> is_same = agrees_at(point);
    is_other = is_other || is_same == false;
    if (is_same != true) continue;
    for (TriedSize& size : sizes) {
      if (is_other) size.max = point.at(size.name);
    }
    return;
  }
}

}  // namespace

Agreement agreement_of(const Json& bound, const Json& imported) {
  if (have_same_nodes(bound, imported)) {
    for (const char* key : {"nodes", "graph_outputs", "constants", "weights"}) {
      if (!is_same(find_member(bound, key), find_member(imported, key))) return Agreement::kNone;
    }
    return Agreement::kWhole;
  }
  const auto stated = shapes_of(bound);
  const auto shapes = shapes_of(imported);
  for (const auto& [name, shape] : stated) {
    if (has_no_element(shape)) return Agreement::kWhole;  // an import makes constants of those
  }
  for (const auto& [name, shape] : stated) {
    const auto found = shapes.find(name);
    if (found != shapes.end() && !is_same(found->second, shape)) return Agreement::kNone;
  }
  const bool are_idle = are_idle_without(bound, imported) && are_idle_without(imported, bound);
  return are_idle ? Agreement::kShapes : Agreement::kNone;
}

bool is_same_tensor(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

std::map<std::string, Tensor> alike(std::map<std::string, Tensor> values,
                                    const std::map<std::string, Tensor>& others) {
  for (auto value = values.begin(); value != values.end();) {
    const auto other = others.find(value->first);
    const bool is_alike = other != others.end() && is_same_tensor(value->second, other->second);
    value = is_alike ? std::next(value) : values.erase(value);
  }
  return values;
}

void end_ranges(std::vector<TriedSize>& sizes, const AgreesAt& agrees) {
  for (TriedSize& size : sizes) end_alone(size, first_point(sizes), agrees);
  if (sizes.size() < 2) return;
  SizeBindings least;
  for (const TriedSize& size : sizes) least[size.name] = size.min;
  if (least != first_point(sizes) && agrees(least) == false) {
    for (TriedSize& size : sizes) size.min = std::max(size.min, least_of(size));
  }
  end_together(sizes, agrees);
}

}  // namespace npu::onnx
