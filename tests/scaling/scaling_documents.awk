# SPDX-License-Identifier: Apache-2.0
# Writes a document whose size is n: SHAPE cat (a cat of n results), inputs (a cat of n graph inputs), fan (n readers of
# one convolution, all of them graph outputs), alternate (n ops that want the two layouts in turn), norms (n conversions
# of one tensor).
#
# Usage: awk -v shape=SHAPE -v n=N -f scaling_documents.awk
function tensor(name, shape) { return "{\"name\": \"" name "\", \"shape\": " shape ", \"dtype\": \"float32\"}" }
function node(name, type, inputs, shape, attrs) {
  nodes = nodes (nodes == "" ? "" : ",\n") "{\"name\": \"" name "\", \"op_type\": \"" type "\", \"inputs\": [" inputs \
          "], \"outputs\": [" tensor(name, shape) "], \"attrs\": {" attrs "}}"
}
function list(text, element) { return text (text == "" ? "" : ", ") element }
BEGIN {
  row = "[1, 8]"
  image = "[1, 8, 4, 4]"
  convolution = "aten.conv2d.default"
  weight = ", " tensor("p_w", "[8, 8, 1, 1]")
  if (shape == "cat" || shape == "inputs") {
    for (i = 0; i < n; ++i) {
      operand = shape == "cat" ? "r" i : "x" i
      if (shape == "cat") node(operand, "aten.relu.default", tensor("x", row), row)
      else inputs = list(inputs, tensor(operand, row))
      operands = list(operands, tensor(operand, row))
    }
    if (shape == "cat") inputs = tensor("x", row)
    node("all", "aten.cat.default", operands, "[" n ", 8]", "\"dim\": 0")
    outputs = "{\"name\": \"all\"}"
  } else {
    inputs = tensor("x", image)
    node("c", convolution, tensor("x", image) weight, image)
    before = "c"
    for (i = 0; i < n; ++i) {
      if (shape == "fan") node("r" i, "aten.relu.default", tensor("c", image), image)
      else if (shape == "norms") node("r" i, "npu.channel_norm", tensor("c", image), image, "\"direction\": true")
      else if (i % 2 == 0) node("r" i, "aten.cumsum.default", tensor(before, image), image, "\"dim\": 1")
      else node("r" i, convolution, tensor(before, image) weight, image)
      before = "r" i
      if (shape != "alternate") outputs = list(outputs, "{\"name\": \"" before "\"}")
    }
    if (shape == "alternate") outputs = "{\"name\": \"" before "\"}"
  }
  print "{\"model_name\": \"" shape "\", \"graph_inputs\": [" inputs "], \"graph_outputs\": [" outputs "],"
  print "\"weights\": [" tensor("w", "[8, 8, 1, 1]") "], \"weight_name_mapping\": {\"p_w\": \"w\"},"
  print "\"nodes\": [" nodes "]}"
}
