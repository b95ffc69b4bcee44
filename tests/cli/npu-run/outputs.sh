# SPDX-License-Identifier: Apache-2.0
# --outputs writes what --expect reads; the same seed gives the same bytes.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
run() {
  name=$1
  shift
  npu-run "$small/$name.json" "$@" >report
  echo "$name: exit $? expect:$(comparison expect <report)"
}
run mlp --random-inputs 3 --outputs a.safetensors
run mlp --random-inputs 3 --outputs b.safetensors --expect a.safetensors --rtol 0 --atol 0
cmp a.safetensors b.safetensors
run mlp --random-inputs 4 --outputs b.safetensors
cmp -s a.safetensors b.safetensors && echo "another seed, the same outputs"
run mlp --random-inputs 3 --outputs a.npy
tail -c 160 a.safetensors >a && tail -c 160 a.npy | cmp - a  # 4 x 10 floats
run several_outputs --random-inputs 3 --outputs many.safetensors
run several_outputs --random-inputs 3 --expect many.safetensors
echo "a model that hands its input through, a .npy file in and out:"
run empty --random-inputs 3 --outputs x.npy
run empty --inputs x.npy --outputs y.npy
run empty --inputs x=x.npy --outputs z.npy
cmp x.npy y.npy && cmp x.npy z.npy
