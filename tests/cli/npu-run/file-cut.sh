# SPDX-License-Identifier: Apache-2.0
# A bundle or a file of weights that is cut short while it is mapped: a message with its name and exit 1, no SIGBUS.
. "$CASES/lib.sh"
# 4 MiB of weights, so that the cut takes away what is read in every run.
cat >wide.json <<'X'
{"model_name": "wide", "graph_inputs": [{"name": "x", "shape": [1, 1024], "dtype": "float32"}],
 "graph_outputs": [{"name": "y", "shape": [1, 1024], "dtype": "float32"}],
 "weights": [{"name": "w", "shape": [1024, 1024], "dtype": "float32"}], "weight_name_mapping": {"p_w": "w"},
 "nodes": [{"name": "y", "op_type": "aten.linear.default", "attrs": {},
   "inputs": [{"name": "x", "shape": [1, 1024], "dtype": "float32"}, {"name": "p_w", "shape": [1024, 1024], "dtype": "float32"}],
   "outputs": [{"name": "y", "shape": [1, 1024], "dtype": "float32"}]}]}
X
npu-compile -q --no-cache --random-weights 0 wide.json -o wide.npub || exit
# Runs for minutes, unless the file is cut; a slow machine takes longer to come to the run.
cut_while_running() {
  for after in 1 3 9 27; do
    cp wide.npub cut.npub
    npu-run cut.npub --random-inputs 0 --bench 1000000 >report 2>messages &
    sleep $after
    truncate -s 8192 cut.npub
    wait $!
    status=$?
    grep -q 'cut short while' messages && break
  done
  echo "exit $status, $(wc -c <report) bytes of report"
  cat messages
}
cut_while_running
