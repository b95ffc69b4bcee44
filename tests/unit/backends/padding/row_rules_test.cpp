// SPDX-License-Identifier: Apache-2.0
// Every rule of the table against the op itself, on random sizes, values and classes of rows; and
// rules that are weaker than they should be, each of which has to be found out.
#include "passes/padding/row_rules.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "backends/padding/rule_trial.hpp"
#include "catch.hpp"

using namespace npu;
using namespace npu::test;
using padding::Keep;
using padding::NodeRule;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kTrials = 30;
#else
constexpr int kTrials = 500;
#endif

struct RuleCase {
  const char* rule;
  const char* lines;
  std::int64_t index_below = 2;
};

// One node each; sizes up to 6 and 5.
const std::vector<RuleCase>& rule_cases() {
  static const std::vector<RuleCase> kCases{
      {"pointwise", "input x [2,S,3]; y = relu(x) [2,S,3]; output y"},
      {"pointwise", "input x [2,S,3]; y = exp(x) [2,S,3]; output y"},
      {"pointwise", "input x [2,S,3]; y = sigmoid(x) [2,S,3]; output y"},
      {"pointwise", "input x [S,3]; y = cos(x) [S,3]; output y"},
      {"pointwise", "input x [S,3]; y = reciprocal(x) [S,3]; output y"},
      {"pointwise", R"(input x [S,3]; y = clamp(x) [S,3] {"min": -1, "max": 0.5}; output y)"},
      {"pointwise", R"(input x [S,3]; y = add.Scalar(x) [S,3] {"other": 2}; output y)"},
      {"pointwise", R"(input x [S,3]; y = sub.Tensor(x) [S,3] {"other": 2}; output y)"},
      {"pointwise", R"(input x [S,3]; y = add_.Tensor(x) [S,3] {"other": 2}; output y)"},
      {"pointwise", R"(input x [S,3] int64; y = bitwise_or.Scalar(x) [S,3] int64
        {"other": 4}; output y)"},
      {"pointwise", R"(input x [S,3]; y = mul.Scalar(x) [S,3] {"other": -2}; output y)"},
      {"pointwise", R"(input x [S,3]; y = pow.Tensor_Scalar(x) [S,3] {"exponent": 2}; output y)"},
      {"pointwise", "input x [S,T]; input z [S,1]; y = mul.Tensor(x, z) [S,T]; output y"},
      {"pointwise", "input x [S,T]; input z [1,T]; y = add.Tensor(x, z) [S,T]; output y"},
      {"pointwise", "input x [S,T]; input z [T]; y = div.Tensor(x, z) [S,T]; output y"},
      {"pointwise", "input x [S,3]; input z [S,3]; y = sub.Tensor(x, z) [S,3]; output y"},
      {"pointwise", "input x [S,3]; input z [S,3]; y = maximum(x, z) [S,3]; output y"},
      {"pointwise",
       "input c [S,1] bool; input x [S,3]; input z [S,3]; y = where.self(c, x, z) [S,3]; output y"},
      {"pointwise", R"(input x [S,T]; input m [S,T] bool;
        y = masked_fill.Scalar(x, m) [S,T] {"value": 0}; output y)"},
      {"pointwise", R"(input x [S,T]; input m [1,T] bool;
        y = masked_fill.Scalar(x, m) [S,T] {"value": "-inf"}; output y)"},
      {"pointwise",
       "input a [S,1] bool; input b [S,T] bool; y = logical_and(a, b) [S,T] bool; output y"},
      {"pointwise", R"(input x [T,3,S]; weight w [3]; weight b [3]; weight m [3]; weight v [3];
        y = batch_norm(x, w, b, m, v) [T,3,S] {"training": false, "momentum": 0.1, "eps": 9,
        "cudnn_enabled": false}; output y)"},
      {"pointwise", "input x [2,3,S,T]; weight w [3]; y = prelu(x, w) [2,3,S,T]; output y"},
      {"create", R"(input x [S,3]; y = full_like(x) [S,3] {"fill_value": 2}; output y)"},
      {"create", "input x [S,3]; y = zeros_like(x) [S,3]; output y"},
      {"triangle", R"(input x [2,S,S]; y = tril(x) [2,S,S] {"diagonal": 0}; output y)"},
      {"triangle", R"(input x [S,T]; y = triu(x) [S,T] {"diagonal": 1}; output y)"},
      {"product", "input x [2,S,4]; weight w [3,4]; y = linear(x, w) [2,S,3]; output y"},
      {"product",
       "input x [2,S,4]; weight w [3,4]; weight b [3]; y = linear(x, w, b) [2,S,3]; output y"},
      {"product", "input x [S,T]; input z [T,3]; y = mm(x, z) [S,3]; output y"},
      {"product", "input x [2,S,T]; input z [2,T,S]; y = matmul(x, z) [2,S,S]; output y"},
      {"product",
       "input b [S,3]; input x [S,T]; input z [T,3]; y = addmm(b, x, z) [S,3]; output y"},
      {"convolution", R"(input x [1,2,S]; weight w [3,2,3];
        y = conv1d(x, w) [1,3,S] {"stride": [1], "padding": [1]}; output y)"},
      {"convolution", R"(input x [1,2,"S + 2"]; weight w [3,2,3]; weight b [3];
        y = conv1d(x, w, b) [1,3,S]; output y)"},
      {"convolution", R"(input x [1,2,S,T]; weight w [3,2,3,3];
        y = conv2d(x, w) [1,3,"(S - 1) // 2 + 1",T] {"stride": [2, 1], "padding": [1, 1]};
        output y)"},
      {"convolution", R"(input x [S,2,5]; weight w [3,2,1]; y = conv1d(x, w) [S,3,5]; output y)"},
      {"convolution", R"(input x [S,2,T]; weight w [3,2,1]; weight b [3];
        y = conv1d(x, w, b) [S,3,T]; output y)"},
      {"convolution", R"(input x [1,2,S]; weight w [2,3,2];
        y = conv_transpose1d(x, w) [1,3,2*S] {"stride": [2]}; output y)"},
      {"convolution", R"(input x [1,2,S]; weight w [2,3,3];
        y = conv_transpose1d(x, w) [1,3,"2*S + 1"] {"stride": [2]}; output y)"},
      {"attention", R"(input q [1,2,S,4]; input k [1,2,3,4];
        y = scaled_dot_product_attention(q, k, k) [1,2,S,4]; output y)"},
      {"attention",
       R"(input q [1,2,S,4]; input k [1,2,T,4]; input v [1,2,T,4]; input m [1,1,1,T] bool;
        y = scaled_dot_product_attention(q, k, v, m) [1,2,S,4]; output y)"},
      {"attention", R"(input q [1,2,S,4]; input k [1,2,T,4]; input m [1,1,S,T];
        y = scaled_dot_product_attention(q, k, k, m) [1,2,S,4]; output y)"},
      {"attention", R"(input q [1,2,S,4]; input k [1,2,S,4]; input v [1,2,S,4];
        y = scaled_dot_product_attention(q, k, v) [1,2,S,4] {"is_causal": true}; output y)"},
      {"norm", R"(input x [2,S,4]; weight w [4]; weight b [4];
        y = layer_norm(x, w, b) [2,S,4] {"normalized_shape": [4]}; output y)"},
      {"norm", R"(input x [S,4,3]; weight w [4]; weight b [4];
        y = group_norm(x, w, b) [S,4,3] {"num_groups": 2}; output y)"},
      {"sum", R"(input x [2,S,T]; y = logsumexp(x) [2,T] {"dim": [1]}; output y)"},
      {"expand", R"(input x [S]; input z [T];
        y = aten.meshgrid.indexing(x, z) [S,T] | [S,T]
          {"indexing": "ij", "_tensor_list_sizes": [2]}; output y_0; output y_1)"},
      {"expand", R"(input x [3,T]; y = repeat(x) ["3*S",T] {"repeats": ["S", 1]}; output y)"},
      {"softmax", R"(input x [2,S,T]; y = softmax.int(x) [2,S,T] {"dim": -1}; output y)"},
      {"softmax", R"(input x [2,S,T]; y = log_softmax.int(x) [2,S,T] {"dim": 1}; output y)"},
      {"sum", R"(input x [2,S,T]; y = sum.dim_IntList(x) [2,T] {"dim": [1]}; output y)"},
      {"sum", R"(input x [2,S,T]; y = sum.dim_IntList(x) [2,1,1] {"dim": [1, 2], "keepdim": true};
        output y)"},
      {"sum", R"(input x [2,S,3]; y = mean.dim(x) [2,S] {"dim": [2]}; output y)"},
      {"extreme", R"(input x [2,S,T]; y = amax(x) [2,T] {"dim": [1]}; output y)"},
      {"extreme", R"(input x [2,S,T]; y = amin(x) [2,S] {"dim": [2]}; output y)"},
      {"extreme", R"(input x [S,T]; y = argmax(x) [T] int64 {"dim": 0}; output y)"},
      {"extreme", R"(input x [S,T] bool; y = any.dim(x) [T] bool {"dim": 0}; output y)"},
      {"extreme", R"(input x [S,T] bool; y = all.dim(x) [S] bool {"dim": 1}; output y)"},
      {"order", R"(input x [2,S,T]; y = cumsum(x) [2,S,T] {"dim": 1}; output y)"},
      {"order", R"(input x [S,3]; y = flip(x) [S,3] {"dims": [1]}; output y)"},
      {"recurrent", R"(input x [1,S,3]; weight h [1,1,2]; weight c [1,1,2]; weight a [8,3];
        weight b [8,2]; y = aten.lstm.input(x, h, c, a, b) [1,S,2] | [1,1,2] | [1,1,2]
        {"_tensor_list_sizes": [2, 2], "has_biases": false, "num_layers": 1, "dropout": 0.0,
        "train": false, "bidirectional": false, "batch_first": true}; output y_0)"},
      {"pool", R"(input x [1,2,S]; y = max_pool1d(x) [1,2,S] {"kernel_size": [3], "stride": [1],
        "padding": [1]}; output y)"},
      {"pool", R"(input x [1,2,S,T]; y = max_pool2d(x) [1,2,"S // 2 + 1",T] {"kernel_size": [2, 3],
        "stride": [2, 1], "padding": [1, 1]}; output y)"},
      {"pool", R"(input x [1,2,S]; y = avg_pool1d(x) [1,2,S] {"kernel_size": [3], "stride": [1],
        "padding": [1]}; output y)"},
      {"resample", R"(input x [1,2,S]; y = upsample_nearest1d(x) [1,2,2*S]
        {"output_size": ["2*S"], "scales": 2.0}; output y)"},
      {"resample", R"(input x [T,2,1]; y = upsample_linear1d(x) [T,2,S]
        {"output_size": ["S"], "align_corners": false}; output y)"},
      {"resample", R"(input x [1,2,1,T]; y = upsample_nearest2d(x) [1,2,S,2*T]
        {"output_size": ["S", "2*T"]}; output y)"},
      {"resample", R"(input x [1,2,S,T]; y = upsample_bilinear2d(x) [1,2,2*S,3*T]
        {"output_size": ["2*S", "3*T"], "align_corners": false}; output y)"},
      {"reshape", R"(input x [1,S,4]; y = view(x) [4*S] {"size": ["4*S"]}; output y)"},
      {"reshape", R"(input x [4*S]; y = view(x) [S,2,2] {"size": ["S", 2, 2]}; output y)"},
      {"reshape", R"(input x [2,S,4]; y = unsqueeze(x) [2,1,S,4] {"dim": 1}; output y)"},
      {"permute", R"(input x [2,S,T]; y = permute(x) [T,2,S] {"dims": [2, 0, 1]}; output y)"},
      {"permute", R"(input x [S,T]; y = transpose.int(x) [T,S] {"dim0": 0, "dim1": 1}; output y)"},
      {"expand", R"(input x [1,T]; y = expand(x) [S,T] {"size": ["S", -1]}; output y)"},
      {"slice", R"(input x [2,"S + 2"]; y = slice.Tensor(x) [2,S]
        {"dim": 1, "start": 2, "end": 9223372036854775807, "step": 1}; output y)"},
      {"slice", R"(input x [2,"S + 2"]; y = slice.Tensor(x) [2,S]
        {"dim": 1, "start": 0, "end": "S", "step": 1}; output y)"},
      {"slice", R"(input x [2,S]; y = slice.Tensor(x) [2,"(S + 1) // 2"]
        {"dim": 1, "start": 0, "end": 9223372036854775807, "step": 2}; output y)"},
      {"slice", R"(input x [S,T]; y = select.int(x) [T] {"dim": 0, "index": -1}; output y)"},
      {"slice", R"(input x [S,T]; y = select.int(x) [T] {"dim": 0, "index": 0}; output y)"},
      {"slice", R"(weight t [8,3]; y = slice.Tensor(t) [S,3]
        {"dim": 0, "start": 0, "end": "S", "step": 1}; output y)"},
      {"split", R"(input x [S,4]; y = aten.split.Tensor(x) [S,2] | [S,2]
        {"split_size": 2, "dim": 1}; output y_0; output y_1)"},
      {"concatenate", R"(input x [2,3]; input z [S,3]; y = cat(x, z) ["S + 2",3]
        {"dim": 0, "_tensor_list_sizes": [2]}; output y)"},
      {"concatenate", R"(input x [S,3]; input z [S,T]; y = cat(x, z) [S,"T + 3"]
        {"dim": 1, "_tensor_list_sizes": [2]}; output y)"},
      {"gather", "input i [S] int64; weight t [4,3]; y = embedding(t, i) [S,3]; output y", 4},
      {"gather", R"(input x [3,T]; input i [S] int64;
        y = index_select(x, i) [S,T] {"dim": 0}; output y)",
       3},
      {"gather", R"(input x [S,4]; input i [S,T] int64; y = gather(x, i) [S,T] {"dim": 1};
        output y)",
       4},
      {"gather", R"(input x [3,T]; input i [S] int64; y = index.Tensor(x, i) [S,T]
        {"_tensor_list_sizes": [1]}; output y)",
       3},
      {"scatter", R"(input x [4,T]; input i [S] int64; input s [S,T];
        y = index_add(x, i, s) [4,T] {"dim": 0}; output y)",
       4},
      {"scatter", R"(input x [4,T]; input i [S] int64; input s [S,T];
        y = index_put(x, i, s) [4,T] {"_tensor_list_sizes": [1], "accumulate": false}; output y)",
       4},
      {"scatter", R"(input x [4,3]; input i [S] int64; input s [S,3];
        y = index_put(x, i, s) [4,3] {"_tensor_list_sizes": [1], "accumulate": true}; output y)",
       4},
      {"scatter", R"(input x [4,3]; input i [S,3] int64; input s [S,3];
        y = scatter_reduce.two(x, i, s) [4,3] {"dim": 0, "reduce": "amax"}; output y)",
       4},
      {"scatter", R"(input x [4,3]; input i [S,3] int64; input s [S,3];
        y = scatter_reduce.two(x, i, s) [4,3] {"dim": 0, "reduce": "sum"}; output y)",
       4},
      {"split", R"(input x [2,S,4]; y = glu(x) [2,S,2] {"dim": 2}; output y)"},
      {"reshape", R"(input x [2,4,S,T]; y = pixel_shuffle(x) [2,1,2*S,2*T] {"upscale_factor": 2};
        output y)"},
      {"reshape", R"(input x [1,2,2*S,3*T]; y = pixel_unshuffle(x) [1,2,2*S,3*T]
        {"downscale_factor": 1}; output y)"},
      {"pad", R"(input x [2,S]; y = constant_pad_nd(x) [2,"S + 3"] {"pad": [1, 2], "value": 0};
        output y)"},
      {"pad", R"(input x [2,S]; y = constant_pad_nd(x) [2,"S + 2"] {"pad": [2, 0], "value": 3};
        output y)"},
      {"pad", R"(input x [2,S]; y = constant_pad_nd(x) [2,8] {"pad": [0, "8 - S"]}; output y)"},
      {"pad", R"(input x [T,S]; y = constant_pad_nd(x) [T,8] {"pad": [0, "8 - S", 0, 0]};
        output y)"},
      {"pad", R"(input x [1,2,S]; y = replication_pad1d(x) [1,2,"S + 3"] {"padding": [1, 2]};
        output y)"},
  };
  return kCases;
}

std::string with_sizes(const char* lines) {
  std::string text(lines);
  std::replace(text.begin(), text.end(), '\n', ' ');  // statements end at semicolons
  std::string sizes;
  const auto mentions = [&](char name) {
    for (std::size_t open = text.find('['); open != std::string::npos;
         open = text.find('[', open + 1)) {
      const std::size_t close = text.find(']', open);
      if (text.substr(open, close - open).find(name) != std::string::npos) return true;
    }
    return false;
  };
  if (mentions('S')) sizes += "size S 1..6; ";
  if (mentions('T')) sizes += "size T 1..5; ";
  return sizes + text;
}

SizeBindings capacities_of(const std::string& lines) {
  SizeBindings capacities;
  if (lines.find("size S") != std::string::npos) capacities["S"] = 6;
  if (lines.find("size T") != std::string::npos) capacities["T"] = 5;
  return capacities;
}

/// All ways to claim one thing more than a rule does, or to need one thing less.
std::vector<RuleMutation> mutations_of(const NodeRule& rule) {
  std::vector<RuleMutation> mutations;
  for (std::size_t i = 0; i < rule.needs.size(); ++i) {
    mutations.emplace_back([i](NodeRule& changed) {
      if (i < changed.needs.size()) changed.needs[i].places.push_back(changed.needs[i].places[0]);
      if (i < changed.needs.size()) changed.needs[i].accepted.assign(1, padding::TailClass{});
    });
  }
  for (std::size_t i = 0; i < rule.results.size(); ++i) {
    for (Keep padding::ResultDim::*const member :
         {&padding::ResultDim::repeat, &padding::ResultDim::zero, &padding::ResultDim::lowest,
          &padding::ResultDim::finite}) {
      if (rule.results[i].*member == Keep::kYes) continue;
      mutations.emplace_back([i, member](NodeRule& changed) {
        if (i < changed.results.size()) changed.results[i].*member = Keep::kYes;
      });
    }
  }
  return mutations;
}

}  // namespace

TEST_CASE("every rule holds on random sizes, values and rows", "[padding-rules]") {
  std::set<std::string> seen;
  for (const RuleCase& example : rule_cases()) {
    const std::string lines = with_sizes(example.lines);
    INFO(lines);
    seen.insert(example.rule);
    RuleTrial trial(lines, capacities_of(lines), example.index_below);
    CHECK(trial.rule().refusal == "");
    std::mt19937 random(11);
    TrialCount count;
    for (int i = 0; i < 20 * kTrials && count.run < kTrials; ++i) {
      const std::string fault = trial.run(random, {}, count);
      CHECK(fault == "");
      if (!fault.empty()) break;
    }
    CHECK(count.run > 0);
  }
  for (const padding::RowRule& rule : padding::row_rules()) {
    INFO(rule.name);
    CHECK((seen.contains(std::string(rule.name)) || rule.name == "tail"));
  }
}

TEST_CASE("a rule that claims more or needs less is found out", "[padding-rules]") {
  int mutants = 0;
  int found = 0;
  for (const RuleCase& example : rule_cases()) {
    const std::string lines = with_sizes(example.lines);
    RuleTrial trial(lines, capacities_of(lines), example.index_below);
    for (const RuleMutation& mutation : mutations_of(trial.rule())) {
      ++mutants;
      std::mt19937 random(13);
      TrialCount count;
      for (int i = 0; i < 100; ++i) {
        if (trial.run(random, mutation, count).empty()) continue;
        ++found;
        break;
      }
    }
  }
  // The others change nothing: a rule may claim less than is true.
  INFO(found << " of " << mutants);
  CHECK(found * 100 >= mutants * 80);
}
