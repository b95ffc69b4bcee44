# SPDX-License-Identifier: Apache-2.0
# --isa compiles for a lower level, at which a better CPU runs the bundle; a level that there is not here is refused.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-compile -q --no-cache --isa generic "$small/mlp.json" -o m.npub
npu-compile --info m.npub | grep '"isa"'
npu-run m.npub --inputs "$small/mlp.inputs.safetensors" --expect "$small/mlp.outputs.safetensors" >report
comparison expect <report
NPU_MAX_ISA=generic npu-compile -q --no-cache --isa avx2 "$small/mlp.json" -o n.npub
echo "exit $?"
NPU_MAX_ISA=fast npu-compile -q --no-cache "$small/mlp.json" -o n.npub
echo "exit $?"
npu-compile --isa fast "$small/mlp.json" -o n.npub
echo "exit $?"
npu-compile -q --no-cache "$small/mlp.json" -o native.npub
NPU_MAX_ISA=generic npu-run native.npub --random-inputs 0 2>&1 | sed "s/('.*')/(...)/"
