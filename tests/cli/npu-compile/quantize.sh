# SPDX-License-Identifier: Apache-2.0
# --quantize: the bytes of the three commands that it stands for, how far the result is from float, and refusals.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
cp "$small"/residual.* "$small"/mlp.* .
mask() {
  # On a CPU without VNNI weights have 7 bits, and biases no corrections.
  sed 's/[0-9][0-9]*\.[0-9][0-9]*/N/g; s/error [-N0-9e+.]*/error N/; s/npu [0-9][0-9]*/npu N/; s/; weights have 7 bits[^;]*//'
}
npu-profile -q residual.json --calibrate residual.inputs.safetensors -o ranges.json
for mode in 'mixed --max-error 1e-3' int8; do
  # shellcheck disable=SC2086 # several words
  npu-compile --quantize $mode --calibrate residual.inputs.safetensors residual.json -o residual.npub 2>&1 | mask
  # shellcheck disable=SC2086
  npu-align --quantize $mode -t host --ranges ranges.json residual.json -o q.json
  npu-compile -q q.json -o steps.npub
  cmp residual.npub steps.npub && echo "same bytes"
done
npu-run -q residual.npub --inputs residual.inputs.safetensors --expect residual.outputs.safetensors --atol 0.03 >report
echo "exit $?, expect $(comparison expect <report)"
quantize="npu-compile -q --quantize int8 --calibrate"
$quantize residual.inputs.safetensors - <residual.json -o piped.npub --report --assert 'int8_macs>=0' --assert 'snr_db>=25' \
  --assert 'max_abs_error<=0.1' --assert 'int8_ops>=20' --assert 'conversions<=2' --assert 'partitions==1' 2>report
echo "exit $?"
grep -o '^ops: int8 [0-9]*, float [0-9]*' report
$quantize residual.inputs.safetensors residual.json -o quiet.npub --assert 'snr_db>=400' 2>&1 | mask
[ -s quiet.npub ] && echo "written all the same"
rm -f no.npub
try_silent $quantize residual.inputs.safetensors mlp.json -o no.npub
try_silent $quantize missing.safetensors mlp.json -o no.npub
try_silent $quantize mlp.inputs.safetensors --full mlp.json -o no.npub
try_silent $quantize mlp.inputs.safetensors --calibration kl mlp.json -o no.npub
try_silent $quantize mlp.inputs.safetensors --max-error 1 mlp.json -o no.npub
try_silent $quantize mlp.inputs.safetensors --promote mlp.json -o no.npub
try_silent npu-compile --quantize mixed --calibrate mlp.inputs.safetensors mlp.json -o no.npub
try_silent npu-compile --quantize int8 mlp.json -o no.npub
try_silent npu-compile --quantize int4 mlp.json -o no.npub
try_silent npu-compile --calibrate mlp.inputs.safetensors mlp.json -o no.npub
try_silent npu-compile --full mlp.json -o no.npub
try_silent $quantize mlp.inputs.safetensors q.json -o no.npub
npu-tag mlp.json | npu-fuse >fused.json
try_silent $quantize mlp.inputs.safetensors fused.json -o no.npub
[ -e no.npub ] && echo "a failed command wrote a bundle"
# The calibration runs oneDNN through libtorch, before the device npu does: a limit holds for both.
NPU_MAX_ISA=generic npu-compile -q --no-cache --quantize int8 --calibrate residual.inputs.safetensors residual.json -o generic.npub
echo "generic: exit $?"
exit 0
