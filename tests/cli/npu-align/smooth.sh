# SPDX-License-Identifier: Apache-2.0
# What smoothing and bias correction are for: models whose channels differ, or whose means are large, are close to float
# with them and far from it without.
. "$CASES/lib.sh"
cp "$TESTDATA/models/small/mlp.inputs.safetensors" x.safetensors
awk '
  # Numbers from -1 to 1, the same on every machine.
  function draw() {
    state = (state * 1103 + 12345) % 65536
    return state / 32768 - 1
  }
  function factor(c) { return kind == "stack" ? exp(log(300) * c / 23) : c % 8 == 3 ? 100 : 1 }
  function tensor(name, shape) { return "{\"name\": \"" name "\", \"shape\": " shape ", \"dtype\": \"float32\"}" }
  function result(name, shape) { return "{\"name\": \"" name "\", \"shape\": " shape ", \"dtype\": \"float32\", \"producer_node\": \"" name "\", \"producer_output_idx\": 0}" }
  function node(name, op, inputs, shape, attrs) {
    nodes = nodes (nodes == "" ? "" : ",\n") "{\"name\": \"" name "\", \"op_type\": \"aten." op "\", \"inputs\": [" inputs "], \"outputs\": [" tensor(name, shape) "], \"attrs\": {" attrs "}}"
  }
  function constant(name, shape, data) {
    weights = weights (weights == "" ? "" : ", ") tensor(name, shape)
    constants = constants (constants == "" ? "" : ",\n") "\"" name "\": {\"data\": [" data "], \"dtype\": \"float32\"}"
  }
  # rows x columns, row r times by_row(r), column c divided by its factor if asked.
  function matrix(rows, columns, rises, falls, offset,  r, c, text) {
    text = ""
    for (r = 0; r < rows; ++r)
      for (c = 0; c < columns; ++c)
        text = text (text == "" ? "" : ", ") (draw() + offset) * (rises ? factor(r) : 1) / (falls ? factor(c) : 1)
    return text
  }
  function write(  file) {
    file = kind ".json"
    print "{\"model_name\": \"" kind "\", \"graph_inputs\": [" tensor("x", "[4, 24]") "], \"graph_outputs\": [" result("last", last) "]," >file
    print "\"weights\": [" weights "], \"constants\": {" constants "}, \"nodes\": [" nodes "]}" >file
    close(file)
    nodes = weights = constants = ""
  }
  BEGIN {
    state = 7
    # A product makes channels with ranges 1:300, which a depthwise product takes back.
    kind = "stack"
    last = "[1, 24, 1, 1]"
    constant("w", "[24, 24, 1, 1]", matrix(24, 24, 1, 0, 0))
    # Each kernel has the factor of its own channel.
    text = ""
    for (c = 0; c < 24; ++c) for (t = 0; t < 4; ++t) text = text (text == "" ? "" : ", ") draw() / factor(c)
    constant("d", "[24, 1, 2, 2]", text)
    node("view", "view.default", result("x", "[4, 24]"), "[1, 24, 2, 2]", "\"size\": [1, 24, 2, 2]")
    node("first", "conv2d.default", result("view", "[1, 24, 2, 2]") ", " tensor("w", "[24, 24, 1, 1]"), "[1, 24, 2, 2]", "")
    node("relu", "relu.default", result("first", "[1, 24, 2, 2]"), "[1, 24, 2, 2]", "")
    node("last", "conv2d.default", result("relu", "[1, 24, 2, 2]") ", " tensor("d", "[24, 1, 2, 2]"), last, "\"groups\": 24")
    write()
    # A layer norm with channels that are 100 times as large as the others, as in transformers.
    kind = "outliers"
    last = "[4, 12]"
    text = ""
    for (c = 0; c < 24; ++c) text = text (text == "" ? "" : ", ") factor(c)
    constant("g", "[24]", text)
    constant("w", "[12, 24]", matrix(12, 24, 0, 1, 0))
    node("norm", "layer_norm.default", result("x", "[4, 24]") ", " tensor("g", "[24]"), "[4, 24]", "\"normalized_shape\": [24]")
    node("last", "linear.default", result("norm", "[4, 24]") ", " tensor("w", "[12, 24]"), last, "")
    write()
    # Numbers around 20, whose products with rounded weights all shift to the same side.
    kind = "means"
    text = ""
    for (c = 0; c < 24; ++c) text = text (text == "" ? "" : ", ") 20
    constant("b", "[24]", text)
    constant("w", "[12, 24]", matrix(12, 24, 0, 0, 0))
    node("shift", "add.Tensor", result("x", "[4, 24]") ", " tensor("b", "[24]"), "[4, 24]", "")
    node("last", "linear.default", result("shift", "[4, 24]") ", " tensor("w", "[12, 24]"), last, "")
    write()
  }'
compile="npu-compile -q --quantize int8 --calibrate x.safetensors -o m.npub"
snr() {
  "$@" --assert 'snr_db>=1000' 2>&1 | sed -n 's/.*snr_db is \([0-9]*\).*/\1/p'
}
for model in stack outliers means; do
  option=--no-smooth
  if [ $model = means ]; then
    option=--no-bias-correction
    # A CPU without VNNI gets weights of 7 bits, for which biases are not corrected.
    if ! grep -q -w 'avx512_vnni\|avx_vnni' /proc/cpuinfo; then
      [ "$(snr $compile $model.json)" -ge 35 ] && echo "means: close with, worse without"
      continue
    fi
  fi
  with=$(snr $compile $model.json)
  without=$(snr $compile $option $model.json)
  echo "$model: $([ "$with" -ge 35 ] && echo close || echo "far, $with dB") with, $([ "$without" -le $((with - 6)) ] && echo worse || echo "as close, $without dB") without"
done
npu-profile -q stack.json --calibrate x.safetensors -o ranges.json
npu-align --quantize int8 --ranges ranges.json --explain --assert 'smoothed_tensors==1' --assert 'corrected_biases==2' stack.json 2>&1 >q.json |
  sed -n '/^channels/,$p' | sed 's/[0-9.]* dB/N dB/'
npu-align --verify q.json
npu-tag q.json | npu-fuse | npu-partition | npu-run -q --inputs x.safetensors --verify cpu --atol 0.2 --rtol 0.1 >report
echo "npu against cpu: exit $?, $(comparison verify <report)"
# Of a weight that several documents multiply by, all are smoothed as the first, so that it is there once; another weight of
# this name is there beside it.
sed 's/"g": {"data": \[[^]]*\]/"g": {"data": [1, 1, 1, 1, 1, 100, 1, 1, 1, 1, 1, 1, 1, 100, 1, 1, 1, 1, 1, 1, 1, 100, 1, 1]/' outliers.json >moved.json
sed 's/"w": {"data": \[[^,]*/"w": {"data": [0.25/' moved.json >other.json
for document in moved other; do
  npu-compile -q --quantize int8 --calibrate x.safetensors --entry a=outliers.json --entry b=$document.json -o ab.npub \
    --assert 'smoothed_tensors==2' --assert 'snr_db>=30'
  status=$?
  bytes=$(npu-compile --info ab.npub | tr -d ' \n' | sed 's/.*"weights_bytes":\([0-9]*\).*/\1/')
  [ $document = moved ] && one=$bytes
  echo "outliers and $document: exit $status, weights $([ "$bytes" -ge $((one * 3 / 2)) ] && echo twice || echo once)"
done
