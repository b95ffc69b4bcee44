/* SPDX-License-Identifier: Apache-2.0 */
/* npu/sub_ir.h as a vendor uses it: from C, with short enums, with nothing but the two headers. */
#include "npu/sub_ir.h"

#include <locale.h>

#include "npu/backend.h"

static int failures = 0;

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      printf("sub_ir_test.c:%d: not so: %s\n", __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

_Static_assert((int)NPU_IR_FLOAT32 == (int)NPU_FLOAT32, "numbers of dtypes");
_Static_assert((int)NPU_IR_FLOAT64 == (int)NPU_FLOAT64, "numbers of dtypes");
_Static_assert((int)NPU_IR_FLOAT16 == (int)NPU_FLOAT16, "numbers of dtypes");
_Static_assert((int)NPU_IR_BFLOAT16 == (int)NPU_BFLOAT16, "numbers of dtypes");
_Static_assert((int)NPU_IR_INT8 == (int)NPU_INT8, "numbers of dtypes");
_Static_assert((int)NPU_IR_UINT8 == (int)NPU_UINT8, "numbers of dtypes");
_Static_assert((int)NPU_IR_INT16 == (int)NPU_INT16, "numbers of dtypes");
_Static_assert((int)NPU_IR_INT32 == (int)NPU_INT32, "numbers of dtypes");
_Static_assert((int)NPU_IR_INT64 == (int)NPU_INT64, "numbers of dtypes");
_Static_assert((int)NPU_IR_BOOL == (int)NPU_BOOL, "numbers of dtypes");
_Static_assert((int)NPU_IR_COMPLEX64 == (int)NPU_COMPLEX64, "numbers of dtypes");
_Static_assert((int)NPU_IR_COMPLEX128 == (int)NPU_COMPLEX128, "numbers of dtypes");

/* In memory of the exact size, so that a sanitizer sees a read behind the text. */
static npu_json* read_json(const char* text, size_t size, npu_ir_error* error) {
  char* copy = (char*)malloc(size != 0 ? size : 1);
  npu_json* json;
  memcpy(copy, text, size);
  json = npu_json_read(copy, size, error);
  free(copy);
  return json;
}

static npu_ir* read_ir(const char* text, size_t size, npu_ir_error* error) {
  char* copy = (char*)malloc(size != 0 ? size : 1);
  npu_ir* ir;
  memcpy(copy, text, size);
  ir = npu_ir_read(copy, size, error);
  free(copy);
  return ir;
}

static void test_values(void) {
  static const char text[] =
      " {\"a\" : [1, -2, {\"b\": []}], \"text\": \"\\u00e9\\ud83d\\ude00\\n\\/\xc3\xa9\",\n"
      "\"no\":null,\"yes\":true, \"not\": false, \"big\":9223372036854775808,"
      "\"least\":-9223372036854775808, \"most\": 9223372036854775807, \"zero\": -0} ";
  npu_ir_error error;
  npu_json* root = read_json(text, sizeof text - 1, &error);
  const npu_json* list;
  CHECK(root != NULL && root->kind == NPU_JSON_OBJECT && root->count == 9 && root->extent == 14);
  if (root == NULL) return;
  list = npu_json_member(root, "a");
  CHECK(list->kind == NPU_JSON_LIST && list->count == 3 && list->offset == 8);
  CHECK(npu_json_element(list, 0)->as.integer == 1 && npu_json_element(list, 1)->as.integer == -2);
  CHECK(npu_json_member(npu_json_element(list, 2), "b")->count == 0);
  CHECK(npu_json_first(npu_json_member(npu_json_element(list, 2), "b")) == NULL);
  CHECK(npu_json_element(list, 3) == NULL && npu_json_element(root, 0) == NULL);
  CHECK(strcmp(npu_json_member(root, "text")->as.text, "\xc3\xa9\xf0\x9f\x98\x80\n/\xc3\xa9") == 0);
  CHECK(npu_json_member(root, "text")->count == 10);
  CHECK(npu_json_member(root, "no")->kind == NPU_JSON_NULL);
  CHECK(npu_json_member(root, "yes")->as.integer == 1);
  CHECK(npu_json_member(root, "not")->as.integer == 0);
  CHECK(npu_json_member(root, "not")->kind == NPU_JSON_BOOL);
  CHECK(npu_json_member(root, "big")->kind == NPU_JSON_FLOAT);
  CHECK(npu_json_member(root, "big")->as.number == 9223372036854775808.0);
  CHECK(npu_json_member(root, "least")->as.integer == INT64_MIN);
  CHECK(npu_json_member(root, "most")->as.integer == INT64_MAX);
  CHECK(npu_json_member(root, "zero")->kind == NPU_JSON_INTEGER);
  CHECK(npu_json_member(root, "zero")->as.integer == 0);
  CHECK(npu_json_member(root, "none") == NULL && npu_json_member(list, "a") == NULL);
  CHECK(npu_json_member(NULL, "a") == NULL && npu_json_element(NULL, 0) == NULL);
  npu_json_free(root);
}

static void check_float(const char* text, double expected) {
  npu_ir_error error;
  npu_json* json = read_json(text, strlen(text), &error);
  double number = 0;
  CHECK(json != NULL && json->kind == NPU_JSON_FLOAT && npu_json_number(json, &number));
  if (memcmp(&number, &expected, sizeof number) != 0) {
    printf("%s is read as %.17g\n", text, number);
    ++failures;
  }
  npu_json_free(json);
}

/* Expected: what the compiler makes of the same digits. */
static void test_floats(void) {
  static char digits[1200];
  check_float("0.1", 0.1);
  check_float("-0.0", -0.0);
  check_float("0.000e99999999999999999999", 0.0);
  check_float("1e23", 1e23);
  check_float("1.5E+3", 1500.0);
  check_float("12.5e-3", 0.0125);
  check_float("4.9e-324", 4.9e-324);
  check_float("2.4e-324", 0.0);
  check_float("2.2250738585072011e-308", 2.2250738585072011e-308);
  check_float("1.7976931348623157e308", 1.7976931348623157e308);
  check_float("-9007199254740993.0", -9007199254740992.0);
  check_float("1e-99999999999999999999", 0.0);
  check_float("100000000000000000000000.0e-23", 1.0);
  /* Half way between two numbers, and a digit far behind that decides. */
  memset(digits, '0', sizeof digits - 1);
  memcpy(digits, "9007199254740993.", 17);
  check_float(digits, 9007199254740992.0);
  digits[1100] = '1';
  check_float(digits, 9007199254740994.0);
}

static void test_locale(void) {
  static const char* const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "fr_FR"};
  size_t i;
  for (i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (setlocale(LC_NUMERIC, names[i]) != NULL) break;
  }
  check_float("1.25e2", 125.0);
  setlocale(LC_NUMERIC, "C");
}

static void test_words_for_numbers(void) {
  static const char text[] = "[\"inf\", \"-inf\", \"nan\", \"1\", true, 3]";
  npu_ir_error error;
  npu_json* list = read_json(text, sizeof text - 1, &error);
  double number = 0;
  CHECK(list != NULL);
  if (list == NULL) return;
  CHECK(npu_json_number(npu_json_element(list, 0), &number) && number > DBL_MAX);
  CHECK(npu_json_number(npu_json_element(list, 1), &number) && number < -DBL_MAX);
  CHECK(npu_json_number(npu_json_element(list, 2), &number) && number != number);
  CHECK(npu_json_number(npu_json_element(list, 5), &number) && number == 3.0);
  CHECK(!npu_json_number(npu_json_element(list, 3), &number) && number == 3.0);
  CHECK(!npu_json_number(npu_json_element(list, 4), &number) && !npu_json_number(NULL, &number));
  npu_json_free(list);
}

static void test_refused_json(void) {
  static const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"", "line 1, column 1: the text ends here, expected a document"},
      {" \n ", "line 2, column 2: the text ends here, expected a document"},
      {"[1 2]", "line 1, column 4: expected ',' or ']'"},
      {"[1,]", "line 1, column 4: expected a value"},
      {"{\"a\" 1}", "line 1, column 6: expected ':' after a key"},
      {"{a: 1}", "line 1, column 2: expected a key in quotes"},
      {"{\"a\": 1,}", "line 1, column 9: expected a key in quotes"},
      {"{\"a\": 1]", "line 1, column 8: expected ',' or '}'"},
      {"{\"a\": 1, \"b\": 2, \"a\": 3}", "line 1, column 23: the key 'a' stands here twice"},
      {"{\"a\": {\"\\u0062\": 1,\n\"b\": 2}}", "line 2, column 6: the key 'b' stands here twice"},
      {"01", "line 1, column 2: expected nothing behind the document"},
      {"-", "line 1, column 2: the text ends here, expected a digit"},
      {"1.e3", "line 1, column 3: expected a digit"},
      {"1e", "line 1, column 3: the text ends here, expected a digit"},
      {"+1", "line 1, column 1: expected a value"},
      {"nul", "line 1, column 1: expected a value"},
      {"NaN", "line 1, column 1: expected a value"},
      {"1e309", "line 1, column 1: the number is too large for a 64-bit float"},
      {"18446744073709551616", "line 1, column 1: the integer does not fit in 64 bits"},
      {"-9223372036854775809", "line 1, column 1: the integer does not fit in 64 bits"},
      {"\"a", "line 1, column 3: the text ends here, expected the end of a string"},
      {"\"a\tb\"", "line 1, column 3: a control character stands in a string"},
      {"\"\\x\"", "line 1, column 3: expected one of \"\\/bfnrtu after a backslash"},
      {"\"\\u12g4\"", "line 1, column 6: expected four hexadecimal digits after '\\u'"},
      {"\"\\ud800x\"", "line 1, column 8: expected the second half of a surrogate pair"},
      {"\"\\ud800\\u0041\"", "line 1, column 14: half a surrogate pair stands here"},
      {"\"\\udc00\"", "line 1, column 8: half a surrogate pair stands here"},
      {"\"\\u0000\"", "line 1, column 8: a string must not hold a NUL"},
      {"\"\x80\"", "line 1, column 2: the string is not UTF-8"},
      {"\"\xc0\x80\"", "line 1, column 2: the string is not UTF-8"},
      {"\"\xed\xa0\x80\"", "line 1, column 2: the string is not UTF-8"},
      {"\"\xf4\x90\x80\x80\"", "line 1, column 2: the string is not UTF-8"},
      {"\"\xe2\x82\"", "line 1, column 2: the string is not UTF-8"},
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    npu_ir_error error;
    npu_json* json = read_json(cases[i].text, strlen(cases[i].text), &error);
    CHECK(json == NULL);
    if (json == NULL && strcmp(error.text, cases[i].message) != 0) {
      printf("%s gives\n  %s, not\n  %s\n", cases[i].text, error.text, cases[i].message);
      ++failures;
    }
    npu_json_free(json);
    CHECK(read_json(cases[i].text, strlen(cases[i].text), NULL) == NULL);
  }
}

static void test_depth(void) {
  static char text[2 * NPU_IR_MAX_DEPTH + 2];
  npu_ir_error error;
  npu_json* json;
  memset(text, '[', NPU_IR_MAX_DEPTH);
  memset(text + NPU_IR_MAX_DEPTH, ']', NPU_IR_MAX_DEPTH);
  json = read_json(text, 2 * NPU_IR_MAX_DEPTH, &error);
  CHECK(json != NULL && json->extent == NPU_IR_MAX_DEPTH);
  npu_json_free(json);
  memset(text, '[', NPU_IR_MAX_DEPTH + 1);
  memset(text + NPU_IR_MAX_DEPTH + 1, ']', NPU_IR_MAX_DEPTH + 1);
  CHECK(read_json(text, sizeof text, &error) == NULL);
  CHECK(error.column == NPU_IR_MAX_DEPTH + 1 && strstr(error.text, "nested too deeply") != NULL);
}

#define TENSOR(name, shape, dtype) \
  "{\"name\":\"" name "\",\"shape\":" shape ",\"dtype\":\"" dtype "\"}"

static const char kModel[] =
    "{\"model_name\": \"m\", \"ir_version\": 1, \"later\": {\"x\": [1]},\n"
    "\"graph_inputs\": [" TENSOR("x", "[2, 3]", "float32") "],\n"
    "\"graph_outputs\": [" TENSOR("cat", "[4, 3]", "float32") ", "
    TENSOR("x", "[2, 3]", "float32") "],\n"
    "\"weights\": [" TENSOR("w", "[]", "torch.bfloat16") "],\n"
    "\"nodes\": [\n"
    "{\"name\": \"add\", \"op_type\": \"aten.add.Tensor\", \"fusion_group\": 7,"
    " \"fusion_pattern\": \"chain\", \"inputs\": [{\"name\":\"x\",\"producer_node\":\"x\","
    "\"producer_output_idx\":0}, " TENSOR("w", "[]", "bfloat16") "],\n"
    "\"outputs\": [" TENSOR("add", "[2, 3]", "float32") "], \"attrs\": {\"alpha\": 0.5,"
    " \"flag\": true, \"text\": \"t\", \"none\": null, \"stride\": [1, 2], \"one\": 3,"
    " \"mixed\": [1, 2.5], \"_none_args\": [\"bias\"]}},\n"
    "{\"name\": \"cat\", \"op_type\": \"aten.cat.default\","
    " \"inputs\": [{\"name\":\"x\"}, {\"name\":\"add\",\"producer_node\":\"add\","
    "\"producer_output_idx\":0}], \"outputs\": [{\"name\":\"cat\",\"dtype\":\"float32\"}],\n"
    "\"attrs\": {\"_tensor_list_sizes\": [2], \"dim\": 0}}]}";

static void test_model_tables(const npu_ir* ir) {
  const npu_ir_tensor* t = ir->tensors;
  CHECK(strcmp(ir->model_name, "m") == 0 && ir->version == 1 && ir->tensor_count == 4);
  CHECK(ir->input_count == 1 && ir->weight_count == 1 && ir->output_count == 2);
  CHECK(ir->node_count == 2 && npu_json_member(ir->root, "later") != NULL);
  CHECK(strcmp(t[0].name, "x") == 0 && t[0].kind == NPU_IR_INPUT && t[0].rank == 2);
  CHECK(t[0].shape[0] == 2 && t[0].shape[1] == 3 && t[0].elements == 6 && t[0].bytes == 24);
  CHECK(t[0].producer == NPU_IR_NONE && t[0].index == 0 && t[0].dtype == NPU_IR_FLOAT32);
  CHECK(strcmp(t[1].name, "w") == 0 && t[1].kind == NPU_IR_WEIGHT && t[1].rank == 0);
  CHECK(t[1].dtype == NPU_IR_BFLOAT16 && t[1].elements == 1 && t[1].bytes == 2);
  CHECK(t[1].shape != NULL && t[1].json->kind == NPU_JSON_OBJECT);
  CHECK(t[2].kind == NPU_IR_RESULT && t[2].producer == 0 && t[3].producer == 1);
  CHECK(t[3].rank == 2 && t[3].elements == 12); /* its shape stands with the outputs */
  CHECK(ir->outputs[0] == 3 && ir->outputs[1] == 0);
  CHECK(ir->nodes[0].input_count == 2 && ir->nodes[0].inputs[0] == 0);
  CHECK(ir->nodes[0].inputs[1] == 1 && ir->nodes[0].output_count == 1);
  CHECK(ir->nodes[0].outputs[0] == 2 && ir->nodes[1].outputs[0] == 3);
  CHECK(ir->nodes[1].inputs[0] == 0 && ir->nodes[1].inputs[1] == 2);
  CHECK(strcmp(ir->nodes[0].op, "aten.add.Tensor") == 0);
  CHECK(ir->nodes[0].fusion_group == 7 && strcmp(ir->nodes[0].fusion_pattern, "chain") == 0);
  CHECK(ir->nodes[1].fusion_group == -1 && ir->nodes[1].fusion_pattern == NULL);
}

static void test_attributes(const npu_ir* ir) {
  const npu_ir_node* node = &ir->nodes[0];
  const char* text = "before";
  int64_t integer = 5;
  int64_t list[2] = {8, 8};
  double number = 5;
  int flag = 5;
  uint32_t count = 9;
  CHECK(npu_ir_attr_number(node, "alpha", 1, &number) && number == 0.5);
  CHECK(npu_ir_attr_number(node, "beta", 1, &number) && number == 1);
  CHECK(npu_ir_attr_number(node, "none", 2, &number) && number == 2);
  CHECK(!npu_ir_attr_number(node, "text", 1, &number) && number == 2);
  CHECK(npu_ir_attr_bool(node, "flag", 0, &flag) && flag == 1);
  CHECK(!npu_ir_attr_bool(node, "alpha", 0, &flag) && flag == 1);
  CHECK(npu_ir_attr_integer(node, "one", 0, &integer) && integer == 3);
  CHECK(!npu_ir_attr_integer(node, "alpha", 0, &integer) && integer == 3);
  CHECK(npu_ir_attr_integer(node, "two", 2, &integer) && integer == 2);
  CHECK(npu_ir_attr_text(node, "text", "", &text) && strcmp(text, "t") == 0);
  CHECK(npu_ir_attr_text(node, "none", "d", &text) && strcmp(text, "d") == 0);
  CHECK(!npu_ir_attr_text(node, "one", "", &text) && strcmp(text, "d") == 0);
  CHECK(!npu_ir_attr_integers(node, "mixed", list, 2, &count) && count == 9 && list[0] == 8);
  CHECK(!npu_ir_attr_integers(node, "stride", list, 1, &count) && count == 9 && list[0] == 8);
  CHECK(npu_ir_attr_integers(node, "stride", list, 2, &count) && count == 2 && list[1] == 2);
  CHECK(npu_ir_attr_integers(node, "one", list, 2, &count) && count == 1 && list[0] == 3);
  CHECK(!npu_ir_attr_integers(node, "one", list, 0, &count) && count == 1);
  CHECK(npu_ir_attr_integers(node, "absent", list, 2, &count) && count == 0);
  CHECK(npu_ir_is_none(node, "bias") && !npu_ir_is_none(node, "weight"));
  CHECK(!npu_ir_list_size(node, 0, 0, &count) && count == 0);
  node = &ir->nodes[1];
  CHECK(npu_ir_list_size(node, 0, 0, &count) && count == 2);
  CHECK(!npu_ir_list_size(node, 0, 1, &count) && !npu_ir_list_size(node, 1, 0, &count));
}

static void test_model(void) {
  npu_ir_error error;
  size_t size;
  npu_ir* ir = read_ir(kModel, sizeof kModel - 1, &error);
  CHECK(ir != NULL);
  if (ir == NULL) {
    printf("%s\n", error.text);
    return;
  }
  test_model_tables(ir);
  test_attributes(ir);
  npu_ir_free(ir);
  for (size = 0; size + 1 < sizeof kModel; ++size) {
    CHECK(read_ir(kModel, size, &error) == NULL && error.line != 0 && error.text[0] != '\0');
  }
}

static void test_memory(void) {
  npu_ir_error error;
  const uint64_t bytes = npu_ir_memory(kModel, sizeof kModel - 1, &error);
  void* block = malloc((size_t)bytes);
  CHECK(bytes != 0 && bytes <= 64 * sizeof kModel);
  CHECK(npu_ir_read_into(kModel, sizeof kModel - 1, block, bytes, &error) == block);
  CHECK(npu_json_read_into(kModel, sizeof kModel - 1, block, bytes, &error) == block);
  CHECK(npu_ir_read_into(kModel, sizeof kModel - 1, block, bytes - 1, &error) == NULL);
  CHECK(error.line == 0 && strcmp(error.text, "the memory does not suffice") == 0);
  CHECK(npu_json_read_into(kModel, sizeof kModel - 1, block, 8, &error) == NULL);
  free(block);
  CHECK(npu_ir_memory("[", 1, &error) == 0);
}

/* What takes most memory for its size stays within the bound, and takes linear time. */
static void test_bound(void) {
  static const char* const units[] = {"0,", "{},", "[],", "\"\",", "{\"\":0},"};
  static char text[300000];
  size_t i;
  for (i = 0; i < sizeof units / sizeof units[0]; ++i) {
    const size_t unit = strlen(units[i]);
    size_t at = 1;
    uint64_t bytes;
    npu_ir_error error;
    npu_json* json;
    text[0] = '[';
    while (at + unit < sizeof text) {
      memcpy(text + at, units[i], unit);
      at += unit;
    }
    text[at - 1] = ']';
    bytes = npu_ir_memory(text, at, &error);
    CHECK(bytes != 0 && bytes <= 64 * at);
    json = read_json(text, at, &error);
    CHECK(json != NULL && json->count == (at - 1) / unit);
    npu_json_free(json);
  }
}

#define HEAD "{\"graph_inputs\": [" TENSOR("x", "[2]", "float32") "], \"graph_outputs\": [], "

static void test_refused_models(void) {
  static const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"[]", "line 1, column 1: expected an object, found list"},
      {"{\"ir_version\": 2}",
       "line 1, column 16: the sub-IR has version 2, and this backend reads 1 to 1"},
      {"{\"ir_version\": 0}",
       "line 1, column 16: the sub-IR has version 0, and this backend reads 1 to 1"},
      {"{\"ir_version\": \"1\"}", "line 1, column 16: expected an integer"},
      {"{}", "line 1, column 1: the key 'graph_inputs' is missing"},
      {"{\"graph_inputs\": {}}", "line 1, column 18: expected a list, found object"},
      {"{\"graph_inputs\": [3]}", "line 1, column 19: expected an object, found integer"},
      {HEAD "\"nodes\": [{}]}", "line 1, column 95: the key 'inputs' is missing"},
      {HEAD "\"nodes\": [{\"inputs\":[1], \"outputs\":[]}]}",
       "line 1, column 106: expected an object, found integer"},
      {HEAD "\"nodes\": [{\"name\":\"n\",\"op_type\":\"\",\"inputs\":[], \"outputs\":[]}]}",
       "line 1, column 117: expected a text for 'op_type'"},
      {HEAD "\"nodes\": [{\"name\":\"n\",\"op_type\":\"o\",\"inputs\":[{\"name\":\"y\"}], "
            "\"outputs\":[]}]}",
       "line 1, column 131: nothing defines the tensor 'y'"},
      {HEAD "\"nodes\": [{\"name\":\"n\",\"op_type\":\"o\",\"inputs\":[], "
            "\"outputs\":[{\"name\":\"y\"}]}]}",
       "line 1, column 145: no mention of 'y' gives both its shape and its dtype"},
      {HEAD "\"nodes\": [{\"name\":\"n\",\"op_type\":\"o\",\"inputs\":[{\"name\":\"n\"}], "
            "\"outputs\":[" TENSOR("n", "[2]", "int8") "]}]}",
       "line 1, column 131: 'n' is read before its producer"},
      {HEAD "\"nodes\": [{\"name\":\"n\",\"op_type\":\"o\",\"inputs\":[], "
            "\"outputs\":[" TENSOR("x", "[2]", "float32") "]}]}",
       "line 1, column 145: two tensors are named 'x'"},
      {HEAD "\"nodes\": [], \"weights\": [" TENSOR("w", "[-1]", "int8") "]}",
       "line 1, column 131: expected an extent of at least 0 for 'w'"},
      {HEAD "\"nodes\": [], \"weights\": [" TENSOR("w", "[9223372036854775807,2]", "int8") "]}",
       "line 1, column 130: 'w' is too large"},
      {HEAD "\"nodes\": [], \"weights\": [" TENSOR("w", "[0,3000000000,4000000000]", "int8") "]}",
       "line 1, column 130: 'w' is too large"},
      {HEAD "\"nodes\": [], \"weights\": [" TENSOR("w", "[1]", "int7") "]}",
       "line 1, column 142: unknown dtype 'int7'"},
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    npu_ir_error error;
    npu_ir* ir = read_ir(cases[i].text, strlen(cases[i].text), &error);
    CHECK(ir == NULL);
    if (ir == NULL && strcmp(error.text, cases[i].message) != 0) {
      printf("%s gives\n  %s, not\n  %s\n", cases[i].text, error.text, cases[i].message);
      ++failures;
    }
    npu_ir_free(ir);
  }
}

#define STATES \
  "{\"graph_inputs\": [" TENSOR("x", "[2]", "float32") ", " TENSOR("y", "[3]", "float32") \
      ", " TENSOR("z", "[2]", "int8") "], \"graph_outputs\": [{\"name\":\"y\"}, "          \
      "{\"name\":\"n\"}, {\"name\":\"n\"}], \"nodes\": [{\"name\":\"n\",\"op_type\":\"o\"," \
      "\"inputs\":[], \"outputs\":[" TENSOR("n", "[2]", "float32") "]}], \"aliases\": "

static void test_aliases(void) {
  static const struct {
    const char* aliases;
    const char* message; /* NULL: it is taken */
  } cases[] = {
      {"[]", NULL},
      {"[{\"output\":\"n\",\"input\":\"x\"}]", NULL},
      {"{}", "expected a list, found object"},
      {"[{\"output\":\"n\"}]", "the key 'input' is missing"},
      {"[{\"output\":\"q\",\"input\":\"x\"}]", "'q' is no graph output, or in two aliases"},
      {"[{\"output\":\"x\",\"input\":\"x\"}]", "'x' is no graph output, or in two aliases"},
      {"[{\"output\":\"y\",\"input\":\"y\"}]", "'y' is no graph input, or in two aliases"},
      {"[{\"output\":\"n\",\"input\":\"n\"}]", "'n' is no graph input, or in two aliases"},
      {"[{\"output\":\"n\",\"input\":\"y\"}]", "'n' has another dtype or shape than its alias"},
      {"[{\"output\":\"n\",\"input\":\"z\"}]", "'n' has another dtype or shape than its alias"},
      {"[{\"output\":\"n\",\"input\":\"x\"},{\"output\":\"n\",\"input\":\"x\"}]",
       "'n' is no graph output, or in two aliases"},
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    char text[1024];
    npu_ir_error error;
    npu_ir* ir;
    snprintf(text, sizeof text, "%s%s}", STATES, cases[i].aliases);
    ir = read_ir(text, strlen(text), &error);
    CHECK((ir != NULL) == (cases[i].message == NULL));
    if (ir == NULL && (cases[i].message == NULL || strstr(error.text, cases[i].message) == NULL)) {
      printf("%s gives\n  %s\n", text, error.text);
      ++failures;
    }
    if (ir != NULL) {
      CHECK(ir->alias_count == (i == 1));
      CHECK(i != 1 || (ir->aliases[0].output == 1 && ir->aliases[0].input == 0));
    }
    npu_ir_free(ir);
  }
}

static void test_dtypes(void) {
  uint32_t dtype;
  for (dtype = 0; dtype < NPU_IR_DTYPE_COUNT; ++dtype) {
    CHECK(npu_ir_dtype_of(npu_ir_dtype_name(dtype)) == dtype && npu_ir_dtype_bits(dtype) % 8 == 0);
  }
  CHECK(npu_ir_dtype_bits(NPU_IR_BFLOAT16) == 16 && npu_ir_dtype_bits(NPU_IR_BOOL) == 8);
  CHECK(npu_ir_dtype_bits(NPU_IR_DTYPE_COUNT) == 0 && npu_ir_dtype_of("int") == NPU_IR_NONE);
  CHECK(npu_ir_dtype_of("torch.int64") == NPU_IR_INT64);
}

int main(void) {
  test_values();
  test_floats();
  test_locale();
  test_words_for_numbers();
  test_refused_json();
  test_depth();
  test_model();
  test_memory();
  test_bound();
  test_refused_models();
  test_aliases();
  test_dtypes();
  return failures != 0;
}
