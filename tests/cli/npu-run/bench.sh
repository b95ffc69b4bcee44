# SPDX-License-Identifier: Apache-2.0
# --bench: the keys, their order of size, and --assert on them.
. "$CASES/lib.sh"
plan=$CASES/npu-run/three_steps.json
npu-run "$plan" --random-weights 0 --random-inputs 0 --threads 1 --bench 7 \
  --assert 'median_ms>=0' --assert 'runs==7' --assert 'min_ms<1000' >report
echo "exit $?"
sed -n '/"bench"/,/}/s/^ *"\([a-z0-9_]*\)".*/\1/p' report
echo "$(number min_ms <report) $(number median_ms <report) $(number p90_ms <report) $(number p99_ms <report)" |
  awk '{ print ($1 <= $2 && $2 <= $3 && $3 <= $4 && $4 < 10000) ? "in order" : "out of order: " $0 }'
[ "$(number peak_rss_bytes <report)" -gt 1000000 ] && echo "peak_rss_bytes is plausible"
npu-run "$plan" --random-weights 0 --random-inputs 0 --assert 'median_ms<1' 2>&1 >report | sed 's/expected one of.*/.../'
