# SPDX-License-Identifier: Apache-2.0
# --report prints tables to stderr; the test keeps names and strips times.
# On libtorch, whose memory is an estimate.
sed 's/"name": "cpu", "backend": "onednn"/"name": "cpu", "backend": "aten"/' "$CASES/npu-run/three_steps.json" >plan.json
npu-run plan.json --random-weights 0 --random-inputs 0 --verify cpu --bench 1 --report 2>&1 >report |
  sed -E 's/[0-9]+\.[0-9]+(e-[0-9]+)?/T/g; s/(peak memory) .*/\1 M/; s/ +/ /g; s/ $//; s/^(memory of [a-z]+) .* (exact|estimate) /\1 SIZES \2 /'
