# SPDX-License-Identifier: Apache-2.0
# A bundle or cache entry compiled for another CPU is not used.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
npu-compile -q "$small/mlp.json" -o m.npub
export ONEDNN_MAX_CPU_ISA=SSE41 DNNL_MAX_CPU_ISA=SSE41
npu-run m.npub --random-inputs 0 2>&1 | sed "s/('.*')/(...)/"
npu-compile -q "$small/mlp.json" -o other.npub --assert 'cache_hits==0'
echo "exit $?"
npu-run other.npub --inputs "$small/mlp.inputs.safetensors" --expect "$small/mlp.outputs.safetensors" >report
comparison expect <report
