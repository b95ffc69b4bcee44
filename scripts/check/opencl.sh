#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the backend opencl on the first OpenCL device of this machine, with what the tests leave out because drivers
# compile slowly: all cases of npu-backend(3), and models on it, compared with the same models on the CPU.
#
# Usage: scripts/check/opencl.sh [--build FOLDER] [--full] [--no-cases] [--split 2|3] [--start] [--random N] [--tests] [--gnn] [--graph NAME=GRAPH[,FEATURES]]... [MODEL.json...]
#
#   --build FOLDER   where bin/ lies; build by default
#   --full           conformance with all repetitions instead of --quick
#   --no-cases       models only
#   --split 2|3      models split over gpu and cpu, or over gpu, cpu and npu, whose nodes take turns; with 3 also as mincut
#                    splits them on the target trio. No cases
#   --start          the second start of a bundle beside a program that opens the driver and runs one kernel, 20 times each
#   --random N       N random nodes, in every dtype of the device, compared with the definitions of their ops
#   --tests          the tests of the backend, those too that build more kernels than the tests may
#   --gnn            graph neural networks over cpu, gpu and npu beside PyTorch instead of models, on two random graphs
#   --graph ...      a graph for --gnn besides; scripts/check/gnn.py does the work and needs its packages
#   MODEL.json       instead of the models of testdata; weights in MODEL.safetensors, otherwise random ones
#
# A line for each model: fusion groups and kernels, of the report of npu-compile, nodes by device, and the largest
# difference. A model fails if it differs from the CPU, or if its kernels are not as many as the groups of npu-fuse that
# launch one. Copies to outputs are kernels besides; groups that are split are listed with the reason, and fail.
# The last line counts; the exit status is 0 only if all pass. Kernels are kept in a scratch folder, or in POCL_CACHE_DIR.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit

build=build quick=--quick cases=1 gnn=0 split=0 start=0 random=0 tests=0 graphs=() models=()
usage() {
  sed -n 's/^# Usage: /usage: /p' "$0" >&2
  exit 2
}
while [[ $# -gt 0 ]]; do
  case $1 in
    --build)
      build=${2:?--build needs a folder}
      shift
      ;;
    --full) quick= ;;
    --no-cases) cases=0 ;;
    --split)
      split=${2:?--split needs 2 or 3}
      [[ $split == [23] ]] || usage
      shift
      ;;
    --start) start=1 ;;
    --random)
      random=${2:?--random needs a number}
      [[ $random =~ ^[1-9][0-9]*$ ]] || usage
      shift
      ;;
    --tests) tests=1 ;;
    --gnn) gnn=1 ;;
    --graph)
      graphs+=(--graph "${2:?--graph needs NAME=GRAPH}")
      shift
      ;;
    -*) usage ;;
    *) models+=("$1") ;;
  esac
  shift
done
bin=$(cd "$build/bin" 2>/dev/null && pwd)
PATH=$bin:$PATH
[[ -n $bin && -x $bin/npu-run ]] || {
  echo "opencl.sh: no npu-run in $build/bin; build it first" >&2
  exit 1
}
python=${PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$scratch/kernels} XDG_CACHE_HOME=$scratch/cache
mkdir -p "$POCL_CACHE_DIR"
if ! npu-run --list-backends | grep -q '"id":"opencl:0".*"usable":true'; then
  echo "opencl.sh: no OpenCL device; npu-run --list-backends says why" >&2
  exit 77
fi
if [[ $tests -eq 1 ]]; then
  NPU_TEST_MANY_KERNELS=1 ctest --test-dir "$build" -R '^((cli|unit)[.]opencl|unit[.](compile|runtime[.](generate|session))$)' --output-on-failure
  exit
fi
if [[ $random -gt 0 ]]; then
  # A single case runs in the process itself, as long as it takes.
  npu-run --check-backend opencl --case 6 --random-nodes "$random" --report >"$scratch/check.json"
  exit
fi
if [[ $gnn -eq 1 ]]; then
  for size in 34 600; do
    "$python" scripts/make_graph.py --nodes $size --edges $((5 * size)) -o "$scratch/random$size.mtx" --features 24 \
      --features-file "$scratch/random$size.npy" || exit
    graphs+=(--graph "random$size=$scratch/random$size.mtx,$scratch/random$size.npy")
  done
  "$python" scripts/check/gnn.py --target trio -d "$scratch/gnn" --build "$build" "${graphs[@]}"
  exit
fi

# ---- The second start ----

# Milliseconds that a command takes, or nothing if it fails.
took() {
  local from=${EPOCHREALTIME/./} to
  "$@" >/dev/null || return
  to=${EPOCHREALTIME/./}
  echo "$(((to - from) / 1000)).$(printf '%03d' $(((to - from) % 1000)))"
}
median() { sort -g "$1" | sed -n 10p; }

check_start() {
  local limit=50 i small=testdata/models/small/mlp
  cmake --build "$build" --target opencl_start >"$scratch/log" 2>&1 || {
    tail -n 5 "$scratch/log" >&2
    return 1
  }
  npu-tag -q --target opencl $small.json | npu-fuse -q | npu-partition -q |
    npu-compile -q --weights $small.safetensors -o "$scratch/model.npub" || return
  "$bin/opencl_start" --write "$scratch/binary" || return
  for i in {0..20}; do
    took "$bin/opencl_start" "$scratch/binary" >>"$scratch/driver" || return
    took npu-run -q "$scratch/model.npub" --inputs $small.inputs.safetensors >>"$scratch/run" || return
    # The first ones read files for the first time.
    [[ $i -ne 0 ]] || rm "$scratch/driver" "$scratch/run"
  done
  awk -v driver="$(median "$scratch/driver")" -v run="$(median "$scratch/run")" -v limit=$limit 'BEGIN {
    printf "driver and one kernel %.1f ms, npu-run of a bundle %.1f ms: %.1f ms more, at most %d wanted\n", driver, run, run - driver, limit
    exit run - driver > limit
  }'
}
if [[ $start -eq 1 ]]; then
  check_start
  exit
fi

# ---- Models ----

if [[ ${#models[@]} -eq 0 ]]; then
  for model in testdata/models/small/*.json testdata/models/*.json; do models+=("$model"); done
fi
passed=0 failed=0
count() { if [[ $1 -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi; }

if [[ $cases -eq 1 && $split -eq 0 ]]; then
  # shellcheck disable=SC2086 # an option or none
  npu-run --check-backend opencl $quick --case-limit 3600 --report >"$scratch/check.json"
  count $?
fi

# "groups kernels copies" of the OpenCL device and the nodes of each device, and a line for each group that was split, from
# what npu-compile --info says of a bundle.
launches() {
  "$python" - "$1" <<'PYTHON'
import json, sys
sums, splits, nodes = [0, 0, 0], [], {}
for part in json.load(open(sys.argv[1]))["partitions"]:
    report = part["report"]
    nodes[part["device"]] = nodes.get(part["device"], 0) + report["nodes"]
    if part["device"] != "gpu":
        continue
    for i, key in enumerate(("predicted_kernels", "kernels", "reorders")):
        sums[i] += int(report[key])
    splits += report.get("splits", [])
print(*sums, ",".join(f"{device}={count}" for device, count in sorted(nodes.items())) or "-")
for split in splits:
    print("  split:", split["pattern"], "at", split["node"] + ":", split["reason"])
PYTHON
}

# --force options that give every node to the next device in turn of those that run it; of a large model, runs of nodes,
# so that it has some fifty partitions. The devices are in order in $1; the other arguments are a document for each, where
# the nodes that it runs are on it.
turns() {
  "$python" - "$@" <<'PYTHON'
import json, re, sys
devices = sys.argv[1].split(",")
documents = [json.load(open(path))["nodes"] for path in sys.argv[2:]]
count = len(documents[0])
length = count // 50 + 1
for i, nodes in enumerate(zip(*documents)):
    if "getitem" in nodes[0].get("op_type", "") or any("device" not in node for node in nodes):
        continue  # it goes with its producer, or is folded
    able = [device for device, node in zip(devices, nodes) if device == "cpu" or node["device"] == device]
    name = re.sub(r"([*?\[\\])", r"\\\1", nodes[0]["name"])
    print("--force")
    print(able[i // length % len(able)] + "=" + name)
PYTHON
}

# The plan of a model in plan.json: on the OpenCL device, in turns over two or three devices, or as mincut has it.
place() {
  local model=$1 way=$2 options=()
  case $way in
    whole) npu-tag -q --target opencl "$model" | npu-fuse -q | npu-partition -q ;;
    turns2)
      npu-tag -q --target opencl "$model" -o "$scratch/gpu.json" || return
      mapfile -t options < <(turns gpu,cpu "$scratch/gpu.json" "$scratch/gpu.json")
      npu-tag -q --target opencl "${options[@]}" "$model" | npu-fuse -q | npu-partition -q
      ;;
    turns3)
      npu-tag -q --target opencl "$model" -o "$scratch/gpu.json" || return
      npu-tag -q --target trio "$model" -o "$scratch/npu.json" || return
      mapfile -t options < <(turns npu,gpu,cpu "$scratch/npu.json" "$scratch/gpu.json" "$scratch/gpu.json")
      npu-tag -q --target trio "${options[@]}" "$model" | npu-fuse -q | npu-partition -q
      ;;
    # The groups of the first npu-fuse are those of the npu.
    mincut) npu-tag -q --target trio "$model" | npu-fuse -q | npu-partition -q -s mincut | npu-fuse -q | npu-partition -q ;;
  esac
}

check_model() {
  local model=$1 way=$2 weights=(--random-weights 0) groups kernels copies devices worst status verdict=ok
  [[ -f ${model%.json}.safetensors ]] && weights=(--weights "${model%.json}.safetensors")
  place "$model" "$way" >"$scratch/plan.json" || return
  npu-compile -q "$scratch/plan.json" "${weights[@]}" -o "$scratch/model.npub" || return
  npu-compile --info "$scratch/model.npub" >"$scratch/compiled.json" || return
  launches "$scratch/compiled.json" >"$scratch/launches" || return
  read -r groups kernels copies devices <"$scratch/launches"
  # Within 1e-3 and 1e-4 where outputs are float32, as npu-run has it.
  npu-run "$scratch/plan.json" "${weights[@]}" --random-inputs 0 --verify cpu >"$scratch/report.json" 2>"$scratch/message"
  status=$?
  worst=$(grep -o '"max_abs": *[0-9.e+-]*' "$scratch/report.json" | sed 's/.*: *//' | sort -g | tail -n 1)
  [[ $status -eq 0 ]] || verdict=DIFFERS
  if [[ $status -eq 0 && $((kernels - copies)) -ne $groups ]]; then verdict=KERNELS status=1; fi
  printf '%-28s %-7s %-8s groups %-4s kernels %-4s copies %-3s %-24s max abs %s\n' "$(basename "$model" .json)" "$way" "$verdict" \
    "$groups" "$kernels" "$copies" "$devices" "${worst:--}"
  tail -n +2 "$scratch/launches"
  [[ $status -eq 0 ]] || tail -n 3 "$scratch/message"
  return $status
}

case $split in
  0) ways=(whole) ;;
  2) ways=(turns2) ;;
  3) ways=(turns3 mincut) ;;
esac
for model in "${models[@]}"; do
  for way in "${ways[@]}"; do
    check_model "$model" "$way"
    count $?
  done
done
printf '\n%d passed, %d failed\n' "$passed" "$failed"
[[ $failed -eq 0 ]]
