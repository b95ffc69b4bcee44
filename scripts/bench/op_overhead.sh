#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one tiny op costs: npu-run against PyTorch eager from Python, side by side.
#
# A chain of 1,000 additions of 2x2 tensors runs in npu-run on the cpu device and, in turn with it,
# as a Python loop over torch.add; both on one thread, the median of several rounds. Eager is timed
# under inference_mode, where it is fastest, and in its default state. Needs python3-torch.
#
# Usage: scripts/bench/op_overhead.sh [-n NODES] [-r ROUNDS]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
PATH=$root/build/bin:$PATH
nodes=1000 rounds=7
while getopts n:r: option; do
  case $option in
    n) nodes=$OPTARG ;;
    r) rounds=$OPTARG ;;
    *) sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
python=
for candidate in "${PYTHON:-}" python3 /usr/bin/python3; do
  if [ -n "$candidate" ] && "$candidate" -c 'import torch' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "op_overhead.sh: no python3 can import torch; install it with: apt-get install python3-torch" >&2
  exit 1
fi
exec "$python" - "$nodes" "$rounds" <<'PYTHON'
import json, os, statistics, subprocess, sys, tempfile, time

import torch

nodes, rounds = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)


def tensor(name):
    return {"name": name, "shape": [2, 2], "dtype": "float32"}


def chain(attrs):
    names = ["x"] + [f"add_{i}" for i in range(nodes)]
    return {
        "model_name": "chain", "pytorch_version": torch.__version__,
        "graph_inputs": [tensor("x"), tensor("y")], "graph_outputs": [tensor(names[-1])],
        "weights": [], "weight_name_mapping": {},
        "nodes": [{"name": names[i + 1], "op_type": "aten.add.Tensor",
                   "inputs": [tensor(names[i]), tensor("y")], "outputs": [tensor(names[i + 1])],
                   "attrs": attrs} for i in range(nodes)]}


def run_ours(path):
    report = subprocess.run(
        ["npu-run", "-q", "--devices", "cpu", "--random-inputs", "0", "--threads", "1", "--bench", "50", path],
        stdout=subprocess.PIPE, check=True).stdout
    return json.loads(report)["bench"]["median_ms"] * 1e6 / nodes


def run_eager(alpha):
    x, y = torch.randn(2, 2), torch.randn(2, 2)
    times = []
    for _ in range(50):
        start = time.perf_counter_ns()
        z = x
        if alpha == 1:
            for _ in range(nodes):
                z = torch.add(z, y)
        else:
            for _ in range(nodes):
                z = torch.add(z, y, alpha=alpha)
        times.append((time.perf_counter_ns() - start) / nodes)
    return statistics.median(times)


print(f"{'chain of ' + str(nodes) + ' additions, 2x2 float32':42} {'ours ns':>8} {'eager ns':>9} "
      f"{'inference ns':>12} {'/eager':>7} {'/inference':>10}")
with tempfile.TemporaryDirectory() as folder:
    # An add with alpha = 2 always goes through libtorch's dispatcher.
    for label, attrs, alpha in (("add", {}, 1), ("add, alpha=2 (through the dispatcher)", {"alpha": 2}, 2)):
        path = os.path.join(folder, "chain.json")
        with open(path, "w") as file:
            json.dump(chain(attrs), file)
        ours, eager, inference = [], [], []
        for _ in range(rounds):
            ours.append(run_ours(path))
            eager.append(run_eager(alpha))
            with torch.inference_mode():
                inference.append(run_eager(alpha))
        best = [statistics.median(times) for times in (ours, eager, inference)]
        print(f"{label:42} {best[0]:8.0f} {best[1]:9.0f} {best[2]:12.0f} "
              f"{best[0] / best[1]:7.2f} {best[0] / best[2]:10.2f}")
PYTHON
