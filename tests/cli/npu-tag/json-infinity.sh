# SPDX-License-Identifier: Apache-2.0
# Infinities and NaN, bare as Python's json module writes them or as strings: kept, or brought into one form.
. "$CASES/lib.sh"
cat >model.json <<'END'
{"graph_inputs": [{"name": "x", "shape": [2], "dtype": "float32"}], "graph_outputs": [{"name": "c"}],
 "constants": {"k": {"data": [-Infinity, "nan"], "dtype": "float32"}}, "note": NaN,
 "nodes": [{"name": "a", "op_type": "aten.masked_fill.Scalar", "inputs": [{"name": "x"}, {"name": "x"}],
            "outputs": [{"name": "a", "shape": [2], "dtype": "float32"}], "attrs": {"value": -Infinity, "name": "NaNa"}},
           {"name": "c", "op_type": "aten.clamp.default", "inputs": [{"name": "a"}],
            "outputs": [{"name": "c", "shape": [2], "dtype": "float32"}], "attrs": {"min": "-inf", "max": Infinity}}]}
END
values() { grep -o '"data":.*\]\|"attrs": {[^}]*}\|"note": [^,]*' "$1"; }
npu-tag model.json >keep.json
values keep.json
for form in text bare; do
  echo "== $form"
  npu-tag --json-infinity $form model.json >$form.json
  values $form.json
  npu-fuse $form.json | npu-partition | npu-align --json-infinity $form >piped.json
  values piped.json
done
npu-tag --json-infinity keep text.json | cmp - text.json
npu-tag --json-infinity bare text.json | cmp - bare.json
npu-tag --json-infinity text model.json | cmp - text.json
echo '{"graph_inputs": [], "graph_outputs": [], "nodes": [], "npu": {"fusion": {"x": NaN}}}' >npu.json
try npu-tag npu.json
try_silent npu-tag --json-infinity always model.json
sed 's/-Infinity,/-Infinit,/' model.json >bad.json
try_silent npu-tag bad.json
