# SPDX-License-Identifier: Apache-2.0
# A bundle is pinned by its SHA-256.
. "$CASES/lib.sh"
npu-compile -q "$TESTDATA/models/small/mlp.json" -o mlp.npub
digest=$(npu-compile --info mlp.npub | sed -n 's/^  "sha256": "\([0-9a-f]*\)",$/\1/p')
[ "$digest  mlp.npub" = "$(sha256sum mlp.npub)" ] && echo "as sha256sum says"
[ "$(npu-compile --info - <mlp.npub | grep sha256)" = "  \"sha256\": \"$digest\"," ] && echo "of stdin, too"
run() { try_silent npu-run --random-inputs 0 "$@" | sed "s/$digest/DIGEST/g; s/SHA-256 is [0-9a-f]\{64\}/SHA-256 is OTHER/"; }
run --require-digest "$digest" mlp.npub
npu-run --random-inputs 0 --require-digest "$(echo "$digest" | tr a-f A-F)" mlp.npub | grep -c steps
npu-run --random-inputs 0 --require-digest "$digest" - <mlp.npub | grep -c steps
echo "another one:"
{ cat mlp.npub; echo; } >other.npub
run --require-digest "$digest" other.npub
echo "no bundle:"
run --require-digest "$(sha256sum <"$TESTDATA/models/small/mlp.json" | cut -d ' ' -f 1)" "$TESTDATA/models/small/mlp.json" |
  sed 's/digest [0-9a-f]\{64\}/digest OTHER/'
run --require-digest "$digest" --simulate plan.json
run --require-digest 12ab mlp.npub
