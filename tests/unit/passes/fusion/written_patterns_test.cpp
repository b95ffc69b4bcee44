// SPDX-License-Identifier: Apache-2.0
// Functions that models write out and a kernel computes, and what is close to them.
#include "catch.hpp"
#include "graph_builder.hpp"
#include "passes/fusion/pattern_lines.hpp"

using namespace npu;
using namespace npu::test;

TEST_CASE("kernels: GELU as models write it out") {
  const std::string form =
      GENERATE("erf", "tanh", "product first", "cube", "cube of two", "other factor", "other cube",
               "alpha", "read twice", "float64", "integers");
  const Shape shape{4, 6};
  const std::string dtype = form == "float64" ? "float64" : "float32";
  GraphBuilder net;
  net.input("x", shape, form == "integers" ? "int64" : dtype).input("z", shape, dtype);
  const auto number = [&](const char* name, const char* op, const char* from, double value,
                          const char* key = "other") {
    net.node(name, op, {from}, shape, Json{{key, value}}, dtype);
  };
  const auto join = [&](const char* name, const char* op, const Lines& from,
                        const Json& attrs = Json::object()) {
    net.node(name, op, from, shape, attrs, dtype);
  };
  std::string nodes;
  number("h", "aten.mul.Tensor", "x", 0.5);
  if (form == "erf") {
    number("a", "aten.div.Tensor", "x", 1.4142135381698608);
    join("f", "aten.erf.default", {"a"});
    nodes = "h a f";
  } else {
    if (form.starts_with("cube")) {
      join("q", "aten.mul.Tensor", {"x", "x"});
      join("p", "aten.mul.Tensor", {"q", form == "cube" ? "x" : "z"});
    } else {
      number("p", "aten.pow.Tensor_Scalar", "x", form == "other cube" ? 2.0 : 3.0, "exponent");
    }
    number("c", "aten.mul.Tensor", "p", 0.044715);
    join("s", "aten.add.Tensor", {"x", "c"},
         form == "alpha" ? Json{{"alpha", 2}} : Json{{"alpha", 1}});
    number("a", "aten.mul.Tensor", "s", form == "other factor" ? 0.8 : 0.7978845608028654);
    join("f", "aten.tanh.default", {"a"});
    nodes = form == "cube" ? "h q p c s a f" : "h p c s a f";
  }
  number("o", "aten.add.Tensor", "f", 1.0);
  if (form == "product first") {
    join("m", "aten.mul.Tensor", {"x", "o"});
    number("y", "aten.mul.Tensor", "m", 0.5);
    nodes = "p c s a f o m y";
  } else {
    join("y", "aten.mul.Tensor", {"h", "o"});
    nodes += " o y";
  }
  net.output("y");
  if (form == "read twice") net.output("f");
  const bool is_one = form == "erf" || form == "tanh" || form == "product first" || form == "cube";
  CHECK(lines_of(net.build(), just({"written-gelu"})) ==
        (is_one ? Lines{"written-gelu: " + nodes} : Lines{}));
}

TEST_CASE("kernels: RMS norms of rows that are written out") {
  const std::string form = GENERATE("rows", "planes", "all", "vector", "other dtype", "read twice",
                                    "two tensors", "weights of all", "one number", "factor");
  const std::string dtype = form == "other dtype" ? "float64" : "float32";
  const Shape means = form == "planes" ? Shape{2, 1, 6} : form == "all" ? Shape{1} : Shape{2, 4, 1};
  const Shape shape{2, 4, 6};
  GraphBuilder net;
  net.input("x", shape, dtype).input("z", shape, dtype).input("d", means, dtype);
  net.input("w",
            form == "weights of all" ? shape
            : form == "one number"   ? Shape{1}
                                     : Shape{6},
            dtype);
  net.node("p", "aten.pow.Tensor_Scalar", {form == "two tensors" ? "z" : "x"}, shape,
           Json{{"exponent", 2}}, dtype);
  net.node("m", "aten.mean.dim", {"p"}, means, Json{{"dim", {0}}}, dtype);
  net.node("a", "aten.add.Tensor", form == "vector" ? Lines{"m", "d"} : Lines{"m"}, means,
           form == "vector"   ? Json::object()
           : form == "factor" ? Json{{"other", 1e-6}, {"alpha", 2}}
                              : Json{{"other", 1e-6}, {"alpha", 1}},
           dtype);
  net.node("r", "aten.rsqrt.default", {"a"}, means, Json::object(), dtype);
  net.node("n", "aten.mul.Tensor", {"x", "r"}, shape, Json::object(), dtype);
  net.node("y", "aten.mul.Tensor", {"w", "n"}, shape, Json::object(), dtype).output("y");
  if (form == "read twice") net.output("r");
  Lines expected;
  if (form == "rows") expected = {"written-rms-norm: p m a r n y"};
  if (form == "weights of all" || form == "one number") expected = {"written-rms-norm: p m a r n"};
  CHECK(lines_of(net.build(), just({"written-rms-norm"})) == expected);
}
