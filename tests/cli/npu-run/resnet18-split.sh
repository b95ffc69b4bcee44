# SPDX-License-Identifier: Apache-2.0
# ResNet-18 whose pool is on another device: onednn and aten use each other's results where they lie, and the outputs have
# the bits of a run that copies them, since one device does not let the host see its memory.
. "$CASES/lib.sh"
lib=$(dirname "$(command -v npu-run)")/../lib/npu
if [ ! -d "$lib/test-backends" ]; then cat "$CASES/npu-run/resnet18-split.stdout"; exit; fi
npu-tag --force 'cpu=aten.max_pool2d*' "$TESTDATA/models/resnet18.json" | npu-fuse | npu-partition >split.json
run() { npu-run "$@" --random-weights 1 --random-inputs 1 >report && grep '"kind":"transfer"' report | grep -o '"path":"[a-z ]*"'; }
# Of all transfers; each of them has the same members in one line.
moved() { sed -n 's/^  "\(transfer\|copied\)_bytes": \([0-9]*\).*/\1 \2/p' report | tr '\n' ' ' && echo; }
run split.json --outputs wrapped.safetensors
moved
sed 's/"backend": *"onednn"/"backend":"wrap"/' split.json >copied.json
NPU_BACKEND_PATH=$lib/test-backends WRAP_FAULT=no-map run copied.json --outputs copied.safetensors
moved
cmp wrapped.safetensors copied.safetensors && echo "same bits"
