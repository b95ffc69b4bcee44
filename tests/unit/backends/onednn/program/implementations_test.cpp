// SPDX-License-Identifier: Apache-2.0
// Every implementation that oneDNN has on this CPU for the convolutions, transposed convolutions
// and products that lowering asks for, with every form of post-op and every layout that it uses,
// against float64: what is wrong has to be on the list of implementations.cpp. The list itself is
// compared, too: a row that no CPU needs any more is seen.
#include "program/implementations.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "catch.hpp"
#include "kernels/product/integer_product.hpp"
#include "program/layout.hpp"
#include "program/post_ops.hpp"
#include "support/checked.hpp"

namespace npu::onednn {
namespace {

using Algorithm = dnnl::algorithm;
using Kind = PostOpRecord::Kind;

constexpr std::int64_t number_of(Algorithm algorithm) {
  return static_cast<std::int64_t>(algorithm);
}

/// One post-op; the shape of a second operand follows from the result's.
struct PostOp {
  PostOpRecord record;
  enum class Operand { kNone, kOne, kPerChannel, kWhole } operand = Operand::kNone;
};
using Form = std::vector<PostOp>;

PostOp function(Algorithm algorithm, float alpha = 0.0F, float beta = 0.0F) {
  return {{.algorithm = number_of(algorithm), .alpha = alpha, .beta = beta}};
}
PostOp sum(float scale) { return {{.kind = Kind::kSum, .alpha = scale}}; }
PostOp binary(Algorithm algorithm, PostOp::Operand operand) {
  return {{.kind = Kind::kBinary, .algorithm = number_of(algorithm)}, operand};
}

/// What epilogues become.
std::vector<Form> forms() {
  const PostOp leaky = function(Algorithm::eltwise_relu, 0.25F);
  const PostOp clip = function(Algorithm::eltwise_clip, -0.5F, 2.0F);
  const PostOp linear = function(Algorithm::eltwise_linear, 0.5F, 0.75F);
  const PostOp logistic = function(Algorithm::eltwise_logistic);
  std::vector<Form> all{{},
                        {leaky},
                        {clip, linear},
                        {sum(1.0F)},
                        {sum(-1.0F)},
                        {sum(0.5F), leaky},
                        {logistic, sum(1.0F)}};
  for (const auto operand :
       {PostOp::Operand::kOne, PostOp::Operand::kPerChannel, PostOp::Operand::kWhole}) {
    const PostOp add = binary(Algorithm::binary_add, operand);
    const PostOp multiply = binary(Algorithm::binary_mul, operand);
    all.push_back({add});
    all.push_back({binary(Algorithm::binary_sub, operand), leaky});
    all.push_back({leaky, multiply, add});
  }
  return all;
}

/// In bytes there are functions and one sum.
bool has_binary(const Form& form) {
  return std::any_of(form.begin(), form.end(),
                     [](const PostOp& each) { return each.record.kind == Kind::kBinary; });
}

enum class Op { kConvolution, kTransposed, kProduct };

struct Problem {
  Op op;
  Shape source;
  Shape weight;  ///< [groups, O, I, ..] where the source has as many dimensions less
  Shape target;
  std::int64_t stride = 1;
  std::int64_t pad = 0;
  std::int64_t dilation = 1;

  std::size_t spatial() const { return source.size() - 2; }
  std::int64_t groups() const { return weight.size() > source.size() ? weight.front() : 1; }
  std::size_t channel() const { return op == Op::kProduct ? target.size() - 1 : 1; }
};

const Problem kProblems[] = {
    {Op::kConvolution, {2, 16, 5, 4}, {16, 16, 3, 3}, {2, 16, 5, 4}, 1, 1},
    {Op::kConvolution, {1, 1, 5, 5}, {1, 1, 3, 3}, {1, 1, 5, 5}, 1, 1},
    {Op::kConvolution, {2, 12, 4, 5}, {20, 12, 1, 1}, {2, 20, 4, 5}},
    {Op::kConvolution, {1, 3, 9, 9}, {16, 3, 3, 3}, {1, 16, 5, 5}, 2, 1},
    {Op::kConvolution, {1, 16, 7, 7}, {32, 16, 3, 3}, {1, 32, 7, 7}, 1, 2, 2},
    {Op::kConvolution, {2, 16, 5, 5}, {16, 1, 1, 3, 3}, {2, 16, 5, 5}, 1, 1},
    {Op::kConvolution, {2, 12, 5, 5}, {4, 3, 3, 3, 3}, {2, 12, 5, 5}, 1, 1},
    {Op::kConvolution, {1, 16, 6, 6}, {2, 8, 8, 1, 1}, {1, 16, 6, 6}},
    {Op::kConvolution, {2, 32, 2, 3}, {4, 1, 8, 1, 1}, {2, 4, 2, 3}},
    // As many groups as channels in each, of which there is one result.
    {Op::kConvolution, {1, 64, 2, 3}, {8, 1, 8, 1, 1}, {1, 8, 2, 3}},
    {Op::kConvolution, {1, 8, 2, 2, 3}, {8, 1, 1, 2, 2, 2}, {1, 8, 1, 1, 2}},
    {Op::kConvolution, {2, 12, 17}, {17, 12, 5}, {2, 17, 13}},
    // Images enough for every thread to be at work while the others are.
    {Op::kConvolution, {128, 6, 3}, {9, 6, 1}, {128, 9, 1}, 3},
    {Op::kConvolution, {128, 20, 2, 2}, {8, 20, 1, 1}, {128, 8, 1, 1}, 2},
    {Op::kConvolution, {2, 16, 3, 4, 4}, {16, 16, 3, 3, 3}, {2, 16, 3, 4, 4}, 1, 1},
    {Op::kConvolution, {2, 3, 2, 4, 4}, {5, 3, 1, 2, 2}, {2, 5, 2, 3, 3}},
    {Op::kTransposed, {2, 16, 4, 4}, {8, 16, 3, 3}, {2, 8, 9, 9}, 2},
    {Op::kTransposed, {2, 5, 4, 4}, {3, 5, 3, 3}, {2, 3, 6, 6}},
    {Op::kTransposed, {1, 16, 4, 4}, {16, 1, 1, 3, 3}, {1, 16, 9, 9}, 2},
    {Op::kTransposed, {1, 8, 2, 3, 3}, {8, 8, 2, 2, 2}, {1, 8, 4, 6, 6}, 2},
    // Rows and columns that no tap reaches.
    {Op::kTransposed, {1, 1, 9, 1}, {1, 1, 1, 1}, {1, 1, 25, 1}, 3},
    {Op::kTransposed, {2, 16, 5, 5}, {8, 16, 2, 2}, {2, 8, 14, 14}, 3},
    {Op::kTransposed, {1, 16, 4, 4}, {8, 16, 2, 2}, {1, 8, 9, 9}, 2, 0, 2},
    {Op::kTransposed, {1, 16, 4, 4}, {8, 16, 3, 3}, {1, 8, 12, 12}, 3, 1},
    {Op::kTransposed, {1, 8, 2, 3, 3}, {8, 8, 1, 1, 1}, {1, 8, 3, 5, 5}, 2},
    {Op::kProduct, {5, 16}, {16, 32}, {5, 32}},
    {Op::kProduct, {3, 13}, {13, 7}, {3, 7}},
    {Op::kProduct, {2, 3, 5, 6}, {2, 3, 6, 9}, {2, 3, 5, 9}},
};

std::int64_t count_of(const Shape& shape) { return checked_element_count(shape).value(); }

/// Numbers of a tensor: integers, of which a fraction is meant where there are floats.
std::vector<float> numbers(const Shape& shape, int most, unsigned seed) {
  std::vector<float> result(static_cast<std::size_t>(count_of(shape)));
  unsigned state = seed * 2654435761U + 1;
  for (float& each : result) {
    state = state * 1664525U + 1013904223U;
    const auto span = static_cast<unsigned>(2 * most + 1);
    each = static_cast<float>(static_cast<int>((state >> 16) % span) - most);
  }
  return result;
}

/// Types and layouts of one primitive.
struct Setup {
  std::string name;
  DType source;
  DType weight;
  DType target;
  std::function<Layout(const Shape&, DType)> source_layout;
  std::function<Layout(const Shape&, DType)> target_layout;
  int zero = 0;  ///< what the source's bytes are counted from
  float unit() const { return is_byte(weight) ? 1.0F : 0.125F; }
};

std::vector<Setup> setups(Op op) {
  std::vector<Setup> all;
  const auto add = [&](const std::string& name, const auto& source, const auto& target) {
    for (const DType type : {DType::kFloat32, DType::kBFloat16}) {
      all.push_back({name, type, type, type, source, target});
    }
  };
  const auto blocks = [](std::int64_t lanes) {
    return [lanes](const Shape& shape, DType type) { return blocked_layout(shape, type, lanes); };
  };
  add("row-major", plain_layout, plain_layout);
  const auto bytes = op == Op::kProduct ? plain_layout : channels_last_layout;
  for (const DType target : {DType::kUInt8, DType::kInt8, DType::kFloat32}) {
    all.push_back({"bytes", DType::kUInt8, DType::kInt8, target, bytes, bytes});
    all.push_back({"bytes from 5", DType::kUInt8, DType::kInt8, target, bytes, bytes, 5});
    // Without VNNI weights are divided by two, so lowering asks for none of these.
    if (!cpu_has_vnni()) continue;
    all.push_back({"signed bytes", DType::kInt8, DType::kInt8, target, bytes, bytes});
  }
  if (op == Op::kProduct) return all;
  add("any", any_layout, any_layout);
  add("channels last", channels_last_layout, channels_last_layout);
  for (const std::int64_t lanes : {8, 16}) {
    add("blocked", blocks(lanes), blocks(lanes));
    add("blocked from row-major", plain_layout, blocks(lanes));
  }
  return all;
}

/// The sums of a problem.
class Reference {
 public:
  Reference(const Problem& problem, const std::vector<float>& source,
            const std::vector<float>& weight, const std::vector<float>& bias)
      : problem_(problem), source_(source), weight_(weight) {
    sums_.resize(static_cast<std::size_t>(count_of(problem.target)));
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      sums_[i] = static_cast<double>(bias[channel_of(problem, i)]);
    }
    problem.op == Op::kProduct ? add_product() : add_taps();
  }
  const std::vector<double>& sums() const { return sums_; }

  static std::size_t channel_of(const Problem& problem, std::size_t i) {
    std::size_t inner = 1;
    for (std::size_t d = problem.channel() + 1; d < problem.target.size(); ++d) {
      inner *= static_cast<std::size_t>(problem.target[d]);
    }
    return i / inner % static_cast<std::size_t>(problem.target[problem.channel()]);
  }

 private:
  void add_product() {
    const std::int64_t rows = problem_.target[problem_.target.size() - 2];
    const std::int64_t columns = problem_.target.back();
    const std::int64_t inner = problem_.source.back();
    for (std::int64_t i = 0; i < count_of(problem_.target); ++i) {
      const std::int64_t matrix = i / (rows * columns);
      for (std::int64_t k = 0; k < inner; ++k) {
        add(i, i / columns * inner + k, (matrix * inner + k) * columns + i % columns);
      }
    }
  }

  /// A transposed convolution writes what the convolution of its result would read.
  void add_taps() {
    const bool transposed = problem_.op == Op::kTransposed;
    const Shape large = in_five(transposed ? problem_.target : problem_.source, 0);
    const Shape small = in_five(transposed ? problem_.source : problem_.target, 0);
    Shape taps(problem_.weight.end() - static_cast<std::ptrdiff_t>(problem_.spatial()),
               problem_.weight.end());
    taps.insert(taps.begin(), 3 - taps.size(), 1);
    const std::int64_t groups = problem_.groups();
    const std::int64_t outputs = problem_.target[1] / groups;
    const std::int64_t inputs = problem_.source[1] / groups;
    const Shape space{large[0], groups,  outputs,  inputs,   taps[0],
                      taps[1],  taps[2], small[2], small[3], small[4]};
    Shape i(space.size(), 0);
    for (std::int64_t n = 0; n < count_of(space); ++n) {
      std::int64_t rest = n;
      for (std::size_t d = space.size(); d-- > 0; rest /= space[d]) i[d] = rest % space[d];
      const std::int64_t output = i[1] * outputs + i[2];
      const std::int64_t input = i[1] * inputs + i[3];
      Shape near{i[0], transposed ? input : output, i[7], i[8], i[9]};
      Shape far{i[0], transposed ? output : input, 0, 0, 0};
      bool inside = true;
      for (std::size_t d = 0; d < 3; ++d) {
        const bool is_flat = d + problem_.spatial() < 3;
        far[d + 2] =
            is_flat ? 0
                    : near[d + 2] * problem_.stride - problem_.pad + i[4 + d] * problem_.dilation;
        inside = inside && far[d + 2] >= 0 && far[d + 2] < large[d + 2];
      }
      if (!inside) continue;
      const std::int64_t weight =
          (((output * inputs + i[3]) * taps[0] + i[4]) * taps[1] + i[5]) * taps[2] + i[6];
      const std::int64_t at_near = offset(small, near);
      const std::int64_t at_far = offset(large, far);
      add(transposed ? at_far : at_near, transposed ? at_near : at_far, weight);
    }
  }

  static Shape in_five(Shape shape, int /*unused*/) {
    shape.insert(shape.begin() + 2, 5 - shape.size(), 1);
    return shape;
  }
  static std::int64_t offset(const Shape& shape, const Shape& index) {
    std::int64_t result = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) result = result * shape[d] + index[d];
    return result;
  }
  void add(std::int64_t target, std::int64_t source, std::int64_t weight) {
    sums_[static_cast<std::size_t>(target)] +=
        static_cast<double>(source_[static_cast<std::size_t>(source)]) *
        static_cast<double>(weight_[static_cast<std::size_t>(weight)]);
  }

  const Problem& problem_;
  const std::vector<float>& source_;
  const std::vector<float>& weight_;
  std::vector<double> sums_;
};

double value_of(const PostOpRecord& record, double x, double operand) {
  const auto a = static_cast<double>(record.alpha);
  const auto b = static_cast<double>(record.beta);
  if (record.kind == Kind::kSum) return x + a * operand;
  switch (static_cast<Algorithm>(record.algorithm)) {
    case Algorithm::eltwise_relu:
      return x < 0 ? a * x : x;
    case Algorithm::eltwise_clip:
      return std::clamp(x, a, b);
    case Algorithm::eltwise_linear:
      return a * x + b;
    case Algorithm::eltwise_logistic:
      return 1 / (1 + std::exp(-x));
    case Algorithm::binary_add:
      return x + operand;
    case Algorithm::binary_sub:
      return x - operand;
    case Algorithm::binary_mul:
      return x * operand;
    default:
      return x / operand;
  }
}

/// Runs implementations of one problem.
class Runner {
 public:
  Runner(const Problem& problem, const Setup& setup)
      : problem_(problem),
        setup_(setup),
        source_(numbers(problem.source, 7, 1)),
        weight_(numbers(problem.weight, 7, 2)),
        bias_(numbers({problem.target[problem.channel()]}, 9, 3)),
        old_(numbers(problem.target, 7, 4)) {
    if (setup.source == DType::kUInt8) {
      for (float& each : source_) each += 7.0F;
    }
    if (setup.target == DType::kUInt8) {
      for (float& each : old_) each += 7.0F;
    }
    scale(source_, setup.unit());
    scale(weight_, setup.unit());
    std::vector<float> counted = source_;
    for (float& each : counted) each -= static_cast<float>(setup.zero);
    sums_ = Reference(problem, counted, weight_, bias_).sums();
    if (is_byte(setup.weight)) {
      for (double& each : sums_) each *= kOutputScale;
    }
  }

  /// The layouts in which the bare primitive stores its result.
  std::vector<Layout> targets() const {
    std::vector<Layout> result;
    for_each_implementation(bare_attributes(), setup_.target_layout(problem_.target, setup_.target),
                            [&](const auto& primitive) {
                              const Layout layout = primitive.dst_desc();
                              if (std::find(result.begin(), result.end(), layout) == result.end()) {
                                result.push_back(layout);
                              }
                            });
    return result;
  }

  /// Every implementation with these post-ops: its name, whether it is on the list, and how far a
  /// result is off, in units of what the types round to.
  void check(const Form& form, const Layout& target,
             const std::function<void(const std::string&, bool, double)>& report) const {
    std::vector<PostOpRecord> list;
    std::vector<Layout> layouts;
    std::vector<std::vector<float>> operands;
    for (const PostOp& each : form) {
      list.push_back(each.record);
      if (each.operand == PostOp::Operand::kNone) continue;
      Shape shape(problem_.target.size(), 1);
      const std::size_t channel = problem_.channel();
      if (each.operand == PostOp::Operand::kPerChannel) shape[channel] = problem_.target[channel];
      if (each.operand == PostOp::Operand::kWhole) shape = problem_.target;
      operands.push_back(numbers(shape, 3, 5 + static_cast<unsigned>(operands.size())));
      for (float& number : operands.back()) number += number < 0 ? -1.0F : 1.0F;
      layouts.push_back(
          each.operand == PostOp::Operand::kWhole ? target : plain_layout(shape, DType::kFloat32));
    }
    dnnl::primitive_attr attributes = bare_attributes();
    if (!list.empty()) attributes.set_post_ops(make_post_ops(list, layouts));
    for_each_implementation(attributes, target, [&](const auto& primitive) {
      // The plain loops are the same for all layouts, and slow.
      const bool is_plain_loop = std::string_view(primitive.impl_info_str()).starts_with("ref");
      if (is_plain_loop && setup_.name != "row-major") return;
      const auto result = run(primitive, form, layouts, operands);
      if (!result) return;
      double worst = 0.0;
      for (std::size_t i = 0; i < result->size(); ++i) {
        worst = std::max(worst, error_of(form, operands, i, (*result)[i]));
      }
      report(primitive.impl_info_str(), is_wrong(primitive), worst);
    });
  }

 private:
  static constexpr double kOutputScale = 1.0 / 64;

  static void scale(std::vector<float>& values, float unit) {
    for (float& each : values) each *= unit;
  }

  dnnl::primitive_attr bare_attributes() const {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (is_byte(setup_.weight)) {
      attributes.set_output_scales(0, {static_cast<float>(kOutputScale)});
    }
    if (setup_.zero != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {setup_.zero});
    return attributes;
  }

  template <typename Each>
  void for_each_implementation(const dnnl::primitive_attr& attributes, const Layout& target,
                               const Each& each) const {
    const Layout source = setup_.source_layout(problem_.source, setup_.source);
    const Layout weight = any_layout(problem_.weight, setup_.weight);
    Shape bias_shape(problem_.op == Op::kProduct ? problem_.target.size() : 1, 1);
    bias_shape.back() = static_cast<std::int64_t>(bias_.size());
    const Layout bias = plain_layout(bias_shape, DType::kFloat32);
    const dnnl::memory::dims strides(problem_.spatial(), problem_.stride);
    const dnnl::memory::dims gaps(problem_.spatial(), problem_.dilation - 1);
    const dnnl::memory::dims pads(problem_.spatial(), problem_.pad);
    const auto visit = [&](auto primitive) {
      do each(primitive);
      while (primitive.next_impl());
    };
    constexpr auto kInference = dnnl::prop_kind::forward_inference;
    try {
      if (problem_.op == Op::kConvolution) {
        using Forward = dnnl::convolution_forward;
        visit(Forward::primitive_desc({kInference, Algorithm::convolution_direct, source, weight,
                                       bias, target, strides, gaps, pads, pads},
                                      attributes, engine_));
      } else if (problem_.op == Op::kTransposed) {
        using Forward = dnnl::deconvolution_forward;
        visit(Forward::primitive_desc({kInference, Algorithm::deconvolution_direct, source, weight,
                                       bias, target, strides, gaps, pads, pads},
                                      attributes, engine_));
      } else {
        visit(dnnl::matmul::primitive_desc({source, weight, bias, target}, attributes, engine_));
      }
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;  // there is none
    }
  }

  /// Memory of a layout with numbers that are given row by row.
  dnnl::memory laid_out(const std::vector<float>& values, const Layout& layout) const {
    dnnl::memory result(layout, engine_);
    std::vector<float> copy = values;
    dnnl::memory plain(plain_layout(dimensions(layout), DType::kFloat32), engine_, copy.data());
    dnnl::reorder(plain, result).execute(stream_, plain, result);
    return result;
  }

  /// Nothing if oneDNN lists the implementation and has no code for it, which lowering is told.
  template <typename Primitive>
  std::optional<std::vector<float>> run(const Primitive& primitive, const Form& form,
                                        const std::vector<Layout>& layouts,
                                        const std::vector<std::vector<float>>& operands) const {
    dnnl::primitive made;
    try {
      made = with_code(primitive);
    } catch (const dnnl::error& error) {
      if (error.status != dnnl_unimplemented) throw;
      return std::nullopt;
    }
    dnnl::memory result = laid_out(old_, primitive.dst_desc());
    std::unordered_map<int, dnnl::memory> arguments{
        {DNNL_ARG_SRC, laid_out(source_, primitive.src_desc())},
        {DNNL_ARG_WEIGHTS, laid_out(weight_, primitive.weights_desc())},
        {DNNL_ARG_BIAS, laid_out(bias_, primitive.query_md(dnnl::query::weights_md, 1))},
        {DNNL_ARG_SCRATCHPAD, dnnl::memory(primitive.scratchpad_desc(), engine_)},
        {DNNL_ARG_DST, result}};
    std::size_t operand = 0;
    for (std::size_t i = 0; i < form.size(); ++i) {
      if (form[i].record.kind != Kind::kBinary) continue;
      arguments[DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1] =
          laid_out(operands[operand], layouts[operand]);
      ++operand;
    }
    made.execute(stream_, arguments);
    std::vector<float> values(old_.size());
    dnnl::memory plain(plain_layout(problem_.target, DType::kFloat32), engine_, values.data());
    dnnl::reorder(result, plain).execute(stream_, result, plain);
    stream_.wait();
    return values;
  }

  double error_of(const Form& form, const std::vector<std::vector<float>>& operands, std::size_t i,
                  float result) const {
    double expected = sums_[i];
    double size = std::fabs(expected) + 1;
    std::size_t next = 0;
    for (const PostOp& each : form) {
      double operand = static_cast<double>(old_[i]);
      if (each.record.kind == Kind::kBinary) {
        const std::vector<float>& values = operands[next++];
        const std::size_t place = values.size() == old_.size() ? i
                                  : values.size() == 1         ? 0
                                                               : Reference::channel_of(problem_, i);
        operand = static_cast<double>(values[place]);
      }
      expected = value_of(each.record, expected, operand);
      size = std::max(size, std::fabs(expected) + 1);
    }
    if (is_byte(setup_.target)) {
      const auto [least, most] = range_of(setup_.target);
      expected = std::clamp(expected, static_cast<double>(least), static_cast<double>(most));
      return std::fabs(expected - static_cast<double>(result)) / 0.51;
    }
    // Sums of small integers are exact in float32, one by one; functions are not.
    const double unit = setup_.target == DType::kBFloat16 ? 0x1p-7 : 0x1p-14;
    return std::fabs(expected - static_cast<double>(result)) / (unit * size);
  }

  const Problem& problem_;
  const Setup& setup_;
  std::vector<float> source_;
  std::vector<float> weight_;
  std::vector<float> bias_;
  std::vector<float> old_;  ///< of the target's memory
  std::vector<double> sums_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  mutable dnnl::stream stream_{engine_};
};

std::string name_of(const Form& form) {
  std::string name;
  for (const PostOp& each : form) {
    name += each.record.kind == Kind::kSum ? " sum"
                                           : " " + std::to_string(each.record.algorithm) + "/" +
                                                 std::to_string(static_cast<int>(each.operand));
  }
  return name;
}

}  // namespace

TEST_CASE("implementations of oneDNN are right, or on the list", "[onednn][primitives]") {
  const std::vector<Form> all = forms();
  std::set<std::string> seen;
  for (const Problem& problem : kProblems) {
    for (const Setup& setup : setups(problem.op)) {
      const Runner runner(problem, setup);
      for (const Layout& target : runner.targets()) {
        for (const Form& form : all) {
          if (is_byte(setup.weight) && has_binary(form)) continue;
          runner.check(form, target, [&](const std::string& name, bool is_listed, double error) {
            seen.insert(name);
            if (is_listed || error <= 1.0) return;
            CAPTURE(name, setup.name, dtype_name(setup.source), dtype_name(setup.target),
                    shape_text(problem.weight), shape_text(problem.target), name_of(form), error);
            CHECK(error <= 1.0);
          });
        }
      }
    }
  }
  CHECK(seen.size() >= 3);  // the plain loops, and a fast one for products and for convolutions
}

TEST_CASE("what is on the list of wrong implementations is wrong", "[onednn][primitives]") {
  const Form add{binary(Algorithm::binary_add, PostOp::Operand::kWhole)};
  int seen = 0;
  for (const Problem& problem : {kProblems[0], kProblems[2], kProblems[12]}) {
    const Setup setup{"channels last", DType::kFloat32,      DType::kFloat32,
                      DType::kFloat32, channels_last_layout, channels_last_layout};
    const Runner runner(problem, setup);
    for (const Layout& target : runner.targets()) {
      runner.check(add, target, [&](const std::string& name, bool is_listed, double error) {
        CAPTURE(name, shape_text(problem.weight), error);
        if (is_listed) CHECK(error > 1.0);
        seen += is_listed ? 1 : 0;
      });
    }
  }
  CHECK(seen >= 2);  // oneDNN's product of an unrolled source is there on every CPU
}

}  // namespace npu::onednn
