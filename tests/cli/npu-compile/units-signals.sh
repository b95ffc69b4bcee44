# SPDX-License-Identifier: Apache-2.0
# A signal that ends npu-compile while it fills a folder of units leaves no folder.
. "$CASES/lib.sh"
cp "$TESTDATA"/gnn/* .
npu-plan -q graph.mtx --profile profile.json --model gcn.json --devices cpu -k 2 -o plan.json
# Nobody writes to the pipe, so that the program waits with the folder there.
rm gcn.json
mkfifo gcn.json
for signal in HUP INT TERM; do
  env --default-signal=INT npu-compile plan.json --no-cache -o units &
  while ! ls -d units.* >/dev/null 2>&1; do sleep 0.02; done
  kill -$signal $!
  wait $! 2>/dev/null
  [ $? -gt 128 ] && echo "$signal: ended"
  ls -d units* 2>/dev/null
done
exit 0
