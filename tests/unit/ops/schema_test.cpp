// SPDX-License-Identifier: Apache-2.0
#include "ops/schema.hpp"

#include "catch.hpp"
#include "npu/support/error.hpp"

namespace npu {
namespace {

Schema parse(std::string_view text) { return parse_schema("aten.op.default", text); }

SchemaArgument argument(std::string_view text) {
  const Schema schema = parse("(" + std::string(text) + ") -> Tensor");
  REQUIRE(schema.arguments.size() == 1);
  return schema.arguments.front();
}

TEST_CASE("a schema has the op's name, whatever name the text has") {
  CHECK(parse("(Tensor self) -> Tensor").name == "aten.op.default");
  CHECK(parse("other.out(Tensor self) -> Tensor").name == "aten.op.default");
  CHECK(parse("aten::other(Tensor self) -> Tensor").arguments.front().name == "self");
}

TEST_CASE("an op without arguments") {
  const Schema schema = parse("() -> ()");
  CHECK(schema.arguments.empty());
  CHECK(schema.result_count == 0);
}

TEST_CASE("argument types") {
  const std::pair<const char*, ArgumentType> types[] = {
      {"Tensor x", ArgumentType::kTensor},
      {"Tensor(a!) x", ArgumentType::kTensor},
      {"Tensor(a -> *) x", ArgumentType::kTensor},
      {"Tensor[] x", ArgumentType::kTensorList},
      {"Tensor(a!)[] x", ArgumentType::kTensorList},
      {"Tensor?[] x", ArgumentType::kOptionalTensorList},
      {"int x", ArgumentType::kInt},
      {"SymInt x", ArgumentType::kInt},
      {"float x", ArgumentType::kFloat},
      {"bool x", ArgumentType::kBool},
      {"Scalar x", ArgumentType::kScalar},
      {"str x", ArgumentType::kString},
      {"ScalarType x", ArgumentType::kDType},
      {"Layout x", ArgumentType::kLayout},
      {"Device x", ArgumentType::kDevice},
      {"MemoryFormat x", ArgumentType::kMemoryFormat},
      {"Generator x", ArgumentType::kGenerator},
      {"int[] x", ArgumentType::kIntList},
      {"SymInt[2] x", ArgumentType::kIntList},
      {"float[] x", ArgumentType::kFloatList},
      {"bool[3] x", ArgumentType::kBoolList},
      {"Scalar[] x", ArgumentType::kScalarList},
      {"str[] x", ArgumentType::kStringList},
      {"Dimname x", ArgumentType::kOther},
      {"Dict(str, int) x", ArgumentType::kOther},
      {"(int, int) x", ArgumentType::kOther},
  };
  for (const auto& [text, type] : types) {
    CAPTURE(text);
    const SchemaArgument found = argument(text);
    CHECK(found.type == type);
    CHECK(found.name == "x");
    CHECK_FALSE(found.optional);
    CHECK_FALSE(found.default_value);
  }
}

TEST_CASE("a question mark makes the argument optional, not the elements of its list") {
  CHECK(argument("Tensor? x").optional);
  CHECK(argument("int[1]? x").optional);
  CHECK(argument("Tensor[]? x").type == ArgumentType::kTensorList);
  CHECK(argument("Tensor[]? x").optional);
  CHECK_FALSE(argument("Tensor?[] x").optional);
}

TEST_CASE("list sizes") {
  CHECK(argument("int[2] x").list_size == 2);
  CHECK(argument("int[1]? x").list_size == 1);
  CHECK(argument("int[] x").list_size == 0);
}

TEST_CASE("defaults") {
  CHECK(argument("Tensor? x=None").default_value == Json());
  CHECK(argument("bool x=True").default_value == Json(true));
  CHECK(argument("bool x=False").default_value == Json(false));
  CHECK(argument("int x=-1").default_value == Json(-1));
  CHECK(argument("SymInt x=9223372036854775807").default_value == Json(9223372036854775807));
  CHECK(argument("float x=1e-05").default_value == Json(1e-05));
  CHECK(argument("Scalar x=1.").default_value == Json(1.0));
  CHECK(argument("int[2] x=1").default_value == Json(1));
  CHECK(argument("int[2] x=[]").default_value == Json::array());
  CHECK(argument("int[2] x=[0, 1]").default_value == Json({0, 1}));
  CHECK(argument("str x='none'").default_value == Json("none"));
  CHECK(argument("str x=\"constant\"").default_value == Json("constant"));
  CHECK(argument(R"(str x="\"'\\\n")").default_value == Json("\"'\\n"));
  CHECK(argument("int x=Mean").default_value == Json(1));  // at::Reduction::Mean
  CHECK(argument("ScalarType x=float").default_value == Json("float32"));
  CHECK(argument("ScalarType x=long").default_value == Json("int64"));
  CHECK(argument("MemoryFormat x=contiguous_format").default_value == Json("contiguous_format"));
  CHECK(argument("MemoryFormat x=0").default_value == Json("contiguous_format"));
}

TEST_CASE("everything after the star is keyword-only") {
  const Schema schema = parse("(Tensor self, *, ScalarType? dtype=None, bool x=False) -> Tensor");
  REQUIRE(schema.arguments.size() == 3);
  CHECK_FALSE(schema.arguments[0].keyword_only);
  CHECK(schema.arguments[1].keyword_only);
  CHECK(schema.arguments[2].keyword_only);
}

TEST_CASE("results are counted") {
  CHECK(parse("(Tensor self) -> Tensor(a!)").result_count == 1);
  CHECK(parse("(Tensor self) -> (Tensor, Tensor)").result_count == 2);
  CHECK(parse("(Tensor self) -> (Tensor values, Tensor indices)").result_count == 2);
  CHECK(parse("(Tensor self) -> Tensor(a)[]").result_count == 1);
  CHECK(parse("(Tensor self) -> Tensor grid").result_count == 1);
}

TEST_CASE("bad-schema") {
  for (const char* text :
       {"", "Tensor self", "(Tensor self", "(Tensor) -> Tensor", "(int[x] a) -> Tensor",
        "(int[0] a) -> Tensor", "(Tensor a b) -> Tensor", "(int a=) -> Tensor",
        "(str a='x) -> Tensor", "(int[2] a=[1) -> Tensor", "(Tensor self)",
        "(Tensor self) -> Tensor, Tensor", "(Tensor(a self) -> Tensor"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse(text), Error);
  }
  try {
    parse("(Tensor self) = Tensor");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kParse);
    CHECK(error.message() ==
          "schema of aten.op.default: expected '->' at character 15 of '(Tensor self) = Tensor'");
  }
}

}  // namespace
}  // namespace npu
