// SPDX-License-Identifier: Apache-2.0
// Random nodes of ops that are layers of their own: resampling and recurrent networks.
#include <string_view>

#include "random_nodes.hpp"

namespace npu::test {

namespace {

using Ints = std::vector<std::int64_t>;

/// Sizes or factors of an overload that takes lists: Tensor, output_size, scale_factors.
Json size_by_list(Random& r, const Shape& input, Shape& result) {
  Ints size;
  std::vector<double> factors;
  const bool by_size = r.coin();
  for (std::size_t i = 2; i < input.size(); ++i) {
    factors.push_back(r.one_of<double>({1.0, 1.5, 2.0, 0.5, 2.3}));
    auto extent = static_cast<std::int64_t>(static_cast<double>(input[i]) * factors.back());
    if (by_size) extent = r.pick(1, 9);
    result.push_back(extent);
    size.push_back(extent);
  }
  if (by_size) return {{"output_size", size}, {"scale_factors", nullptr}};
  return {{"output_size", nullptr}, {"scale_factors", factors}};
}

void upsample(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const std::size_t at = op.find("d.");
  const std::int64_t count = op[at - 1] - '0';
  Shape input{r.pick(1, 2), r.one_of<std::int64_t>({1, 3, 16, 24})};
  Shape result = input;
  for (std::int64_t i = 0; i < count; ++i) input.push_back(r.pick(2, count == 3 ? 5 : 9));
  Json attrs = Json::object();
  if (op.ends_with(".vec")) {
    attrs = size_by_list(r, input, result);
  } else {
    const bool with_scales = r.pick(0, 2) == 0;
    const std::string names = "dhw";
    Ints size;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t factor = r.pick(1, 3);
      const std::int64_t extent = input[static_cast<std::size_t>(i) + 2];
      size.push_back(with_scales ? extent * factor : r.pick(1, 9));
      result.push_back(size.back());
      std::string name = "scales";
      if (count > 1) name += std::string("_") + names[static_cast<std::size_t>(3 - count + i)];
      if (with_scales) attrs[name] = static_cast<double>(factor);
    }
    attrs["output_size"] = size;
  }
  if (op.find("nearest") == std::string::npos) attrs["align_corners"] = r.coin();
  c.operand(input);
  c.finish(op, result, attrs);
}

/// The node gives all results, and each is an output.
void finish_results(RandomNode& c, const std::string& op, const std::vector<Shape>& results,
                    const Json& attrs) {
  c.graph.node_with_results("y", op, c.operands, results, attrs, c.dtype);
  for (std::size_t i = 0; i < results.size(); ++i) c.graph.output("y_" + std::to_string(i));
}

void recurrence(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const bool is_lstm = op.find("lstm") != std::string::npos;
  const std::int64_t gates = is_lstm ? 4 : op.find("gru") != std::string::npos ? 3 : 1;
  const std::int64_t layers = r.pick(1, 3);
  const std::int64_t directions = r.pick(1, 2);
  const std::int64_t batch = r.pick(1, 8);
  const std::int64_t steps = r.pick(1, 5);
  const std::int64_t inputs = r.pick(1, 9);
  const std::int64_t hidden = r.one_of<std::int64_t>({1, 3, 8, 17});
  const bool has_biases = r.coin();
  const bool batch_first = r.coin();
  const Shape input = batch_first ? Shape{batch, steps, inputs} : Shape{steps, batch, inputs};
  const Shape state{layers * directions, batch, hidden};
  Shape output = input;
  output.back() = directions * hidden;
  c.operand(input);
  c.operand(state, true);
  if (is_lstm) c.operand(state, true);
  for (std::int64_t i = 0; i < layers * directions; ++i) {
    c.operand({gates * hidden, i < directions ? inputs : directions * hidden}, true);
    c.operand({gates * hidden, hidden}, true);
    if (has_biases) c.operand({gates * hidden}, true);
    if (has_biases) c.operand({gates * hidden}, true);
  }
  const std::int64_t parameters = layers * directions * (has_biases ? 4 : 2);
  const Json attrs = {{"has_biases", has_biases},
                      {"num_layers", layers},
                      {"dropout", r.coin() ? 0.0 : 0.5},
                      {"train", false},
                      {"bidirectional", directions == 2},
                      {"batch_first", batch_first},
                      {"_tensor_list_sizes", is_lstm ? Ints{2, parameters} : Ints{parameters}}};
  std::vector<Shape> results{output, state};
  if (is_lstm) results.push_back(state);
  finish_results(c, op, results, attrs);
}

}  // namespace

bool draw_layer(RandomNode& node, const std::string& op) {
  if (op.find("upsample") != std::string::npos) {
    upsample(node, op);
    return true;
  }
  for (const std::string_view name : {"aten.lstm.", "aten.gru.", "aten.rnn_"}) {
    if (!op.starts_with(name)) continue;
    recurrence(node, op);
    return true;
  }
  return false;
}

}  // namespace npu::test
