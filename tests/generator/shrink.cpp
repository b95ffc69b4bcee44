// SPDX-License-Identifier: Apache-2.0
// Tries what makes a failing network smaller and keeps it as long as the network fails in the same
// manner: with the same error but for its numbers, or off by a like multiple of the bound.
#include "shrink.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "onnx_network.hpp"

namespace npu::test {
namespace {

using Kind = NetworkTensor::Kind;

bool has_onnx_forms(const Network& network, std::int64_t opset) {
  return std::all_of(network.nodes.begin(), network.nodes.end(), [&](const NetworkNode& node) {
    std::vector<const Values*> operands;
    for (const std::size_t id : node.operands) operands.push_back(&network.tensors[id].values);
    return has_onnx_form(Call(node.op, operands, node.attrs), node.attrs, opset);
  });
}

/// The first words of an error without digits, or by how many bounds a number is wrong.
struct FaultKind {
  std::string error;
  double size = 0;

  explicit FaultKind(const std::string& text) : error(text.substr(0, 60)) {
    double actual = 0, expected = 0, bound = 0;
    const char* const numbers = text.c_str() + std::min(text.find(" is "), text.size());
    if (std::sscanf(numbers, " is %lf, expected %lf +- %lf", &actual, &expected, &bound) == 3) {
      size = std::abs(actual - expected) / (bound > 0 ? bound : 1e-7);
      error.clear();
    }
    std::erase_if(error, [](char c) { return c >= '0' && c <= '9'; });
    error.resize(std::min(error.find('['), error.size()));
  }
  bool is_alike(const FaultKind& other) const {
    return error == other.error && std::isnan(size) == std::isnan(other.size) &&
           !(other.size < std::sqrt(size)) && !(other.size > 1e3 * size);
  }
};

class Shrinker {
 public:
  explicit Shrinker(const Failure& failure) : best_(failure), first_(failure.text) {}

  Failure run() {
    for (bool again = true; again && trials_ < kMostTrials;)
      again = simplify_way() | drop_outputs() | drop_nodes() | cut_extents();
    return best_;
  }

 private:
  static constexpr int kMostTrials = 400;

  bool attempt(Network network, Way way) {
    if (trials_ >= kMostTrials) return false;
    ++trials_;
    remove_unread(network);
    if (network.nodes.empty() || !recompute(network)) return false;
    if (way.opset > 0 && !has_onnx_forms(network, way.opset)) return false;
    std::erase_if(way.moved, [&](const auto& moved) {
      return std::none_of(network.nodes.begin(), network.nodes.end(), [&](const NetworkNode& node) {
        return network.name_of(node) == moved.first;
      });
    });
    Totals totals;
    const std::string text = fault_of(network, way, totals);
    if (text.empty() || !first_.is_alike(FaultKind(text))) return false;
    best_ = {std::move(network), std::move(way), text};
    return true;
  }

  template <typename Change>
  bool attempt_way(const Change& change) {
    Way way = best_.way;
    change(way);
    const bool is_other =
        way.commands("x") != best_.way.commands("x") || way.opset != best_.way.opset;
    return is_other && attempt(best_.network, way);
  }

  bool simplify_way() {
    bool changed = attempt_way([](Way& way) { way.opset = 0; });
    changed |= attempt_way([](Way& way) { way.in_flight = 1; });
    changed |= attempt_way([](Way& way) { way.bundle = false; });
    changed |= attempt_way([](Way& way) { way.align.clear(); });
    changed |= attempt_way([](Way& way) { way.strategy = Strategy::kConvex; });
    changed |= attempt_way([](Way& way) { way.threads = 1; });
    // In int8 the same numbers may be wrong for another reason.
    changed |=
        best_.way.precision != "int8" && attempt_way([](Way& way) { way.precision = "f32"; });
    changed |= attempt_way([](Way& way) { way.moved.clear(); });
    const auto moved = best_.way.moved;
    for (const auto& [node, device] : moved)
      changed |= attempt_way([&](Way& way) { way.moved.erase(node); });
    return changed | attempt_way([](Way& way) { way.fused = false; });
  }

  bool drop_outputs() {
    if (best_.network.outputs.size() < 2) return false;
    for (const std::size_t output : std::vector(best_.network.outputs)) {
      Network network = best_.network;
      network.outputs = {output};
      if (attempt(network, best_.way)) return true;
    }
    return false;
  }

  /// A node is left out if its result is an input, or its operand.
  bool drop_nodes() {
    bool changed = false;
    for (std::size_t n = 0; n < best_.network.nodes.size(); ++n) {
      const NetworkNode node = best_.network.nodes[n];
      const auto& tensors = best_.network.tensors;
      bool dropped = false;
      for (const std::size_t operand : node.operands) {
        const Values& from = tensors[operand].values;
        const Values& to = tensors[node.results[0]].values;
        if (node.results.size() != 1 || from.shape != to.shape || from.dtype != to.dtype ||
            tensors[operand].kind == Kind::kWeight)
          continue;
        Network network = best_.network;
        network.nodes.erase(network.nodes.begin() + static_cast<std::ptrdiff_t>(n));
        const auto replace = [&](std::vector<std::size_t>& ids) {
          std::replace(ids.begin(), ids.end(), node.results[0], operand);
        };
        for (NetworkNode& reader : network.nodes) replace(reader.operands);
        std::erase(network.outputs, node.results[0]);
        if (tensors[operand].kind == Kind::kResult && network.outputs.empty())
          network.outputs = {operand};
        if (!network.outputs.empty() && (dropped = attempt(network, best_.way))) break;
      }
      if (!dropped) {
        Network network = best_.network;
        network.nodes.erase(network.nodes.begin() + static_cast<std::ptrdiff_t>(n));
        for (const std::size_t id : node.results) {
          network.tensors[id].kind = Kind::kInput;
          network.tensors[id].data = tensor_of(network.tensors[id].values);
          network.tensors[id].values = values_of(network.tensors[id].data);
          std::erase(network.outputs, id);
        }
        dropped = !network.outputs.empty() && attempt(network, best_.way);
      }
      if (dropped) n = static_cast<std::size_t>(-1);
      changed |= dropped;
    }
    return changed;
  }

  /// Puts another number in place of an extent, wherever it stands in shapes and attributes.
  bool cut_extents() {
    std::set<std::int64_t, std::greater<>> extents;
    for (const NetworkTensor& tensor : best_.network.tensors) {
      if (tensor.kind != Kind::kResult)
        extents.insert(tensor.values.shape.begin(), tensor.values.shape.end());
    }
    bool changed = false;
    for (const std::int64_t extent : extents) {
      for (const std::int64_t less : {std::int64_t{1}, extent / 2, extent - 1}) {
        if (less > 0 && less < extent && (changed |= attempt(with_extent(extent, less), best_.way)))
          break;
      }
    }
    return changed;
  }

  Network with_extent(std::int64_t extent, std::int64_t less) const {
    Network network = best_.network;
    for (NetworkTensor& tensor : network.tensors) {
      if (tensor.kind == Kind::kResult) continue;
      Shape shape = tensor.values.shape;
      std::replace(shape.begin(), shape.end(), extent, less);
      Values cut = make_values(shape, tensor.values.dtype);
      for_each_place(
          shape, [&](std::size_t i, const Shape& place) { cut.data[i] = tensor.values.at(place); });
      tensor.data = tensor_of(cut);
      tensor.values = std::move(cut);
    }
    const std::function<void(Json&)> replace = [&](Json& json) {
      if (json.is_array() || json.is_object()) {
        for (Json& member : json) replace(member);
      } else if (json.is_number_integer() && json.get<std::int64_t>() == extent) {
        json = less;
      }
    };
    for (NetworkNode& node : network.nodes) {
      for (const char* key : {"size", "shape", "normalized_shape", "sizes", "split_size",
                              "split_sizes", "groups", "num_groups"}) {
        if (node.attrs.contains(key)) replace(node.attrs[key]);
      }
    }
    return network;
  }

  Failure best_;
  const FaultKind first_;
  int trials_ = 0;
};

}  // namespace

Failure shrink(const Failure& failure) { return Shrinker(failure).run(); }

}  // namespace npu::test
