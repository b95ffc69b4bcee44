# SPDX-License-Identifier: Apache-2.0
# A kernel that two models have is built once, and a bundle has the same bytes whichever model was compiled first. pocl keeps what
# it has built, since its binaries name temporary files: two builds of one source differ.
. "$CASES/lib.sh"
need_opencl 2
node() {
  printf '{"name":"%s","op_type":"aten.%s.default","inputs":[{"name":"x","shape":[4,8],"dtype":"float32"}],"outputs":[{"name":"%s","shape":[4,8],"dtype":"float32"}],"attrs":{}}' "$1" "$1" "$1"
}
model() {
  printf '{"model_name":"%s","graph_inputs":[{"name":"x","shape":[4,8],"dtype":"float32"}],"graph_outputs":[%s],"weights":[],"nodes":[%s]}' "$1" "$2" "$3" >"$1.json"
}
model small '{"name":"relu","shape":[4,8],"dtype":"float32"}' "$(node relu)"
model large '{"name":"relu","shape":[4,8],"dtype":"float32"},{"name":"sin","shape":[4,8],"dtype":"float32"}' "$(node relu),$(node sin)"
# compile ORDER MODEL [OPTION...]
compile() {
  order=$1 name=$2
  shift 2
  npu-compile -q --devices gpu --target opencl --cache-dir "$order" "$name.json" -o "$order.$name.npub" "$@"
  echo "exit $?"
}
compile up small --assert programs_built==1 --assert programs_found==0
compile up large --assert programs_built==1 --assert programs_found==1
compile down large --assert programs_built==2 --assert programs_found==0
compile down small --assert programs_built==0 --assert programs_found==1
for name in small large; do cmp "up.$name.npub" "down.$name.npub" && echo "$name: the same bytes"; done
npu-run -q up.large.npub --random-inputs 0 >report
echo "exit $?"
compile none large --no-cache --report 2>table
sed -n 's/^programs  *//p' table
# A bundle in the cache needs no program.
compile up large --assert cache_hits==1 --assert programs_built==0 --assert programs_found==0
