// SPDX-License-Identifier: Apache-2.0
// Random nodes of ops that are layers of their own: resampling, recurrent networks and instance
// norm.
#include <string_view>

#include "random_nodes.hpp"

namespace npu::test {

namespace {

using Sizes = std::vector<std::int64_t>;

/// Sizes or factors of an overload that takes lists: Tensor, output_size, scale_factors.
Json size_by_list(Random& r, const Shape& input, Shape& result) {
  Sizes size;
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
    Sizes size;
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
                      {"_tensor_list_sizes", is_lstm ? Sizes{2, parameters} : Sizes{parameters}}};
  std::vector<Shape> results{output, state};
  if (is_lstm) results.push_back(state);
  finish_results(c, op, results, attrs);
}

void grid_sample(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  const Shape input{r.pick(1, 3), r.one_of<std::int64_t>({1, 3, 16}), r.pick(1, 9), r.pick(1, 9)};
  const Shape grid{input[0], r.pick(1, 9), r.pick(1, 20), 2};
  c.operand(input);
  c.operand(grid, true);
  c.finish(op, {input[0], input[1], grid[1], grid[2]},
           {{"interpolation_mode", r.pick(0, 2)},
            {"padding_mode", r.pick(0, 2)},
            {"align_corners", r.coin()}});
}

void instance_norm(RandomNode& c, const std::string& op) {
  Random& r = c.random;
  Shape shape = r.shape(3, 5, 9);
  shape[1] = r.one_of<std::int64_t>({1, 5, 16, 24});
  shape.back() += 1;
  const Shape channels{shape[1]};
  const bool own_statistics = r.coin();
  c.operand(shape);
  Json none = Json::array();
  for (const char* name : {"weight", "bias"}) {
    if (r.coin()) {
      c.operand(channels, true);
    } else {
      none.push_back(name);
    }
  }
  if (own_statistics) {
    none.push_back("running_mean");
    none.push_back("running_var");
  } else {
    c.operand(channels, true);
    c.operand(channels, true, Values::kPositive);
  }
  c.finish(op, shape,
           {{"use_input_stats", own_statistics},
            {"momentum", 0.1},
            {"eps", 1e-3},
            {"cudnn_enabled", true},
            {"_none_args", none}});
}

}  // namespace

bool draw_layer(RandomNode& node, const std::string& op) {
  if (op.find("upsample") != std::string::npos) {
    upsample(node, op);
    return true;
  }
  if (op.find("grid_sampler") != std::string::npos) {
    grid_sample(node, op);
    return true;
  }
  if (op.find("instance_norm") != std::string::npos) {
    instance_norm(node, op);
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
