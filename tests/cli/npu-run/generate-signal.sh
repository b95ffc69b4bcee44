# SPDX-License-Identifier: Apache-2.0
# A signal, or a reader that goes away, in the middle of a line of ids.
. "$CASES/lib.sh"
npu-compile -q --devices cpu "$TESTDATA/models/decoders/decoder_tiny.json" --bind C=256 --buckets T=1 -o tiny.npub
echo "SIGTERM, while the loop waits for the next request, behind a whole line:"
mkfifo requests
npu-run tiny.npub --generate 3 --tokens requests --tokens-out - -o report.json >ids &
exec 9>requests
echo 47 68 25 >&9
while [ "$(wc -l <ids)" -lt 1 ]; do sleep 0.02; done
kill -TERM $!
{ wait $!; } 2>/dev/null
echo "exit $?, $(wc -l <ids) line, $(wc -w <ids) ids, $(find . -name 'report.json*' | wc -l) reports"
exec 9>&-
echo "SIGTERM in the middle of a line:"
yes 1 | head -n 200 | paste -sd' ' >prompt.ids
yes 'x' | head -n 400 >many
while read -r _; do cat prompt.ids; done <many >prompts.ids
npu-run tiny.npub --generate 50 --tokens prompts.ids --tokens-out - -o report.json >ids &
while [ "$(wc -w <ids)" -lt 5 ]; do sleep 0.02; done
kill -TERM $!
{ wait $!; } 2>/dev/null
echo "exit $?, ends in a newline: $([ "$(tail -c 1 ids | wc -l)" = 1 ] && echo yes), $(find . -name 'report.json*' | wc -l) reports"
[ "$(awk 'NF == 0' ids | wc -l)" = 0 ] && echo "no empty lines"
echo "a reader that goes away:"
npu-run tiny.npub --generate 50 --tokens prompts.ids --tokens-out - -o report.json | head -n 1 | wc -w
into_closed_pipe npu-run tiny.npub --generate 5 --tokens prompt.ids --tokens-out -
