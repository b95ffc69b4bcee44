# SPDX-License-Identifier: Apache-2.0
# The second time nothing is compiled, unless something that matters has changed.
. "$CASES/lib.sh"
small=$TESTDATA/models/small
compile() { npu-compile "$@" -o m.npub --report 2>&1 >/dev/null | sed -n 's/^cache *//p'; }
compile "$small/mlp.json"
compile "$small/mlp.json"
echo "other weights:"; compile --random-weights 1 "$small/mlp.json"
echo "other precision:"; compile --precision bf16 "$small/mlp.json" | tail -n 1
echo "another folder:"; compile --cache-dir folder/deep "$small/mlp.json"
echo "off:"; compile --no-cache "$small/mlp.json"
echo "a limit below every entry:"; compile --cache-limit 1k --cache-dir none "$small/mlp.json"
compile --cache-limit 1k --cache-dir none "$small/mlp.json"
echo "npu-run shares it:"
npu-tag "$small/mlp.json" | npu-partition -o part.json
npu-run part.json --random-inputs 0 --threads 1 >report; number cache_hits <report
npu-run part.json --random-inputs 0 --threads 1 >report; number cache_hits <report
npu-run part.json --random-inputs 0 --threads 1 --no-cache >report; number cache_hits <report
echo "without a home:"
unset XDG_CACHE_HOME HOME
compile "$small/mlp.json"
