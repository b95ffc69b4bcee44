# SPDX-License-Identifier: Apache-2.0
# The token loop on the OpenCL device: the ids of npu-run/generate.sh, with caches that stay in the device's memory and are
# written there; from a bundle, and saved and continued in another process.
. "$CASES/lib.sh"
need_opencl many
npu-compile -q --target opencl --devices gpu "$TESTDATA/models/decoders/decoder_tiny.json" --bind C=64 --buckets T=1,8 -o tiny.npub
echo '47 68 25 67 83 23 92' >prompt.ids
generate() { npu-run tiny.npub --generate "$@" --assert 'state_copied_bytes==0' --assert 'state_transfer_bytes==0' -o report.json; }
generate 20 --tokens prompt.ids --tokens-out - --assert 'new_ids==20'
echo "exit $?"
tr -d ' \n' <report.json | grep -o '"states":\[.*' | grep -o '"\(device\|path\)":"[a-z_]*"' | sort | uniq -c | tr -s ' '
generate 10 --tokens prompt.ids --tokens-out first.ids --state-out states
awk '{ print $NF }' first.ids | generate 10 --tokens - --tokens-out second.ids --state-in states
cat first.ids second.ids | paste -sd' '
