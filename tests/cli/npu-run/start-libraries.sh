# SPDX-License-Identifier: Apache-2.0
# A bundle of an all-npu model starts without libtorch, which takes most of a second to load; the
# dynamic loader says what it maps.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
in="--inputs $small/mlp.inputs.safetensors"
npu-compile -q "$small/mlp.json" -o npu.npub
npu-compile -q --devices cpu "$small/mlp.json" -o cpu.npub
loads() { # $1: bundle, $2: library
  LD_DEBUG=files npu-run -q "$1" $in 2>&1 >report | grep -q "calling init: .*/$2" && echo "$1 loads $2" || echo "$1 does not load $2"
}
loads npu.npub libdnnl.so
loads npu.npub libtorch
loads npu.npub libc10
loads cpu.npub libtorch
loads cpu.npub libc10
