# SPDX-License-Identifier: Apache-2.0
# A table of times, here written by hand: mincut places by it, other strategies count with it, and what it does not
# have is named.
. "$CASES/lib.sh"
model=$TESTDATA/models/small/residual.json
npu-tag "$model" >tagged.json
# Of another model: the message has the digest of this one.
digest=$(npu-partition --profile "$TESTDATA/corpus/node_table/mixed.json" tagged.json 2>&1 | sed -n 's/.*this one is .*digest \([0-9a-f]*\):.*/\1/p')
echo "${#digest} digits"
nodes=$(grep -o '"name": *"[^"]*", *"op_type"' tagged.json | cut -d '"' -f 4)
# $1: microseconds of each node on the npu, $2: on the cpu, $3: node to leave out
table() {
  printf '{"npu":{"version":1,"kind":"node-profile"},"model_digest":"%s","target":"host","precision":"f32","threads":2,' "$digest"
  printf '"devices":[{"name":"npu","backend":"onednn","partition_us":1},{"name":"cpu","backend":"aten","partition_us":1}],'
  printf '"transfers":[],"placements":[],"borders":[],"nodes":['
  comma=
  for node in $nodes; do
    [ "$node" = "${3-}" ] && continue
    for device in "npu:$1" "cpu:$2"; do
      printf '%s{"node":"%s","device":"%s","us":%s,"median_us":1,"mad_us":0,"runs":1}' "$comma" "$node" "${device%%:*}" "${device##*:}"
      comma=,
    done
  done
  printf ']}\n'
}
show() {
  npu-partition "$@" >plan.json
  echo "$*: npu $(number nodes_npu <plan.json), cpu $(number nodes_cpu <plan.json), $(number predicted_us <plan.json) us, $(number estimated_nodes <plan.json) estimated"
}
table 10 1 >cpu.json
table 1 10 >npu.json
show -s mincut --profile cpu.json tagged.json
npu-partition --verify --profile cpu.json plan.json | grep -c 'lower bound'
try npu-partition --verify plan.json
show -s mincut --profile npu.json tagged.json
show -s convex --profile cpu.json tagged.json
try npu-partition --verify --profile npu.json plan.json
set -- $nodes
table 1 10 "$1" >part.json
show -s mincut --profile part.json tagged.json
npu-partition --report --profile part.json tagged.json 2>&1 >/dev/null | grep '^times'
npu-partition --profile part.json tagged.json | grep -o '"estimated": *\[[^]]*\]' | tr -d '\n '
echo
try_silent npu-partition --profile part.json --assert 'estimated_nodes==0' tagged.json
npu-partition tagged.json >plan.json
try npu-partition --verify --profile npu.json plan.json
