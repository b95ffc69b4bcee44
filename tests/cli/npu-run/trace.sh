# SPDX-License-Identifier: Apache-2.0
# The trace is JSON, has a track per device, every step and a flow arrow per transfer.
npu-tag "$CASES/npu-partition/seven_nodes.json" --force cpu=concat | npu-partition >plan.json
npu-run plan.json --random-weights 0 --random-inputs 0 --bench 2 --trace trace.json >report
echo "exit $?"
npu-tag trace.json 2>&1 | grep -c "error: the key 'nodes' is missing"  # so it is JSON
grep '"thread_name"' trace.json | grep -o '"args".*'
for kind in '"cat":"partition","ph":"X"' '"cat":"transfer","ph":"X"' '"ph":"s"' '"ph":"f"'; do
  echo "$kind $(grep -c "$kind" trace.json)"
done
grep -o '"name":"[a-z0-9]*","cat":"node"' trace.json | sort
grep -c '"dur":-' trace.json || :
