# SPDX-License-Identifier: Apache-2.0
# What is no file of ids, and options of the token loop that do not go together.
. "$CASES/lib.sh"
npu-compile -q --devices cpu "$TESTDATA/models/decoders/decoder_tiny.json" --bind C=64 --buckets T=1 -o tiny.npub
refuse_all "$TESTDATA/bad/tokens/" "$TESTDATA"/bad/tokens/*.ids -- npu-run tiny.npub --generate 1 --tokens {}
echo 1 >one.ids
try npu-run tiny.npub --generate 1 --tokens - </dev/null
try npu-run tiny.npub --generate 1 --tokens missing.ids
try npu-run tiny.npub --generate 1
try npu-run tiny.npub --tokens one.ids
try npu-run tiny.npub --generate 0 --tokens one.ids
try npu-run tiny.npub --generate 1 --tokens one.ids --temperature -1
try npu-run tiny.npub --generate 1 --tokens one.ids --top-p 0
try npu-run tiny.npub --generate 1 --tokens one.ids --stop 1,x
try npu-run tiny.npub --generate 1 --tokens one.ids --stop 96
try npu-run tiny.npub --generate 1 --tokens one.ids --tokens-out - -o -
try npu-run tiny.npub --generate 1 --tokens one.ids --score one.ids
try npu-run tiny.npub --generate 1 --tokens one.ids --bench 2
try npu-run tiny.npub --generate 1 --tokens one.ids --precision bf16
try npu-run --generate 1 --tokens - <one.ids
try npu-run "$TESTDATA/models/small/mlp.json" --generate 1 --tokens one.ids
