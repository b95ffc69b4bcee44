#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the exporters and compares what they write with what is in testdata, and with what the programs compute.
#
# Usage: check_exporters.sh CHECK SOURCE-DIR BIN-DIR
#   torch   export_torch.py: documents and tensors of testdata/models/small, bit for bit; --check; its refusals
#   names   export_torch.py: args and kwargs, names of inputs and outputs, the text encoder of README.md
#   dynamic export_torch.py --dynamic: templates, which are run at other sizes; what follows no size
#   states  export_torch.py --state: steps of documents and of the models, decoders in chunks; what is no state
#   entries export_torch.py: models of several entries, testdata/models/translators
#   texts   graphs of torch.export as text, whatever PyTorch is there (check_graphs.py)
#   current the same modules as a current PyTorch exports them
#   gnn     export_gnn.py and make_graph.py: npu-plan and npu-run give PyTorch's result
#   pyg     export_gnn.py: networks of PyTorch Geometric, or of modules that compute the same; its refusals
#   corpus  make_op_corpus.py: a category of testdata/ops, bit for bit
# Exits 77 if no interpreter can import what the check needs.
set -eu
check=$1
source=$(cd "$2" && pwd)
bin=$(cd "$3" && pwd)
scripts=$source/scripts
LC_ALL=C
export LC_ALL
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
XDG_CACHE_HOME=$scratch/cache
export XDG_CACHE_HOME
cd "$scratch"

fail() {
  echo "check_exporters.sh: $*" >&2
  exit 1
}

found=0
for python in ${PYTHON:-} python3 /usr/bin/python3; do
  if $python -c 'import torch, numpy' 2>/dev/null; then
    found=1
    break
  fi
done
[ $found -eq 1 ] || {
  echo "no Python here has PyTorch and numpy (Debian packages python3-torch, python3-numpy), so exporters are not tested"
  exit 77
}
PYTHON=$python
export PYTHON
version=$($python -c 'import torch; print(torch.__version__.split("a")[0])')

# $1: exit status, $2: text of the message, rest: arguments
refuse() {
  status=0
  wanted=$1 text=$2
  shift 2
  $python "$scripts/export_torch.py" "$@" >refused.log 2>&1 || status=$?
  [ "$status" -eq "$wanted" ] || fail "export_torch.py $*: exit $status, expected $wanted: $(cat refused.log)"
  grep -q -e "$text" refused.log || fail "export_torch.py $*: '$(tail -n 1 refused.log)', expected '$text'"
  ! grep -q Traceback refused.log || fail "export_torch.py $*: a traceback"
}

check_torch() {
  # By itself it finds an interpreter that has PyTorch; all others are started with that.
  "$scripts/export_torch.py" "$source/testdata/models/small_models.py:mlp" -o found 2>found.log || fail "$(cat found.log)"
  # Bits and op names are those of one version; files of other versions are checked by executing them.
  for name in residual self_attention in_place_view index_none lifted_constants several_outputs dtypes; do
    $python "$scripts/export_torch.py" "$source/testdata/models/small_models.py:$name" -o . --check 2>"$name.log" ||
      fail "$name: $(tail -n 1 "$name.log")"
    grep -q "^export_torch: $name: [0-9]* nodes, largest difference" "$name.log" || fail "$name: $(cat "$name.log")"
    case $version in
      1.13.*)
        for suffix in json safetensors inputs.safetensors; do
          cmp "$name.$suffix" "$source/testdata/models/small/$name.$suffix" || fail "$name.$suffix is not that of testdata"
        done
        ;;
    esac
    if [ -f "$bin/../lib/npu/backends/npu_backend_aten.so" ]; then
      "$bin/npu-tag" -q "$name.json" >tagged.json
      "$bin/npu-partition" -q tagged.json >parts.json
      "$bin/npu-run" -q --inputs "$name.inputs.safetensors" --expect "$name.outputs.safetensors" parts.json >report.json ||
        fail "npu-run does not compute what PyTorch does: $name"
    fi
  done
  refuse 2 "is neither torchvision:NAME nor FILE.py:FUNCTION" nonsense -o .
  refuse 1 "error: missing.py: no such file" missing.py:model -o .
  refuse 1 "no function 'residul'; it has residual" "$source/testdata/models/small_models.py:residul" -o .
  refuse 2 "needs weights and outputs" "$source/testdata/models/small_models.py:mlp" -o . --check --structure-only
  # Sizes that are computed from factors, however interpolate was imported; and what cannot be exported says where it is.
  cat >hostile.py <<'MODELS'
import torch
from torch.nn.functional import interpolate
class Block(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
    def forward(self, x):
        return self.function(x)
def block(function):
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), Block(function)), torch.ones(1, 3, 9, 9)
def resized():
    return block(lambda x: interpolate(x, scale_factor=1.5, mode="bilinear", recompute_scale_factor=True))
def no_key():
    return block(lambda x: {}["no"] if torch.jit.is_tracing() else x)
def own_function():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(context, x):
            return 2 * x
    return block(Twice.apply)
def window():
    def add(x):
        y = x * 1
        y.unfold(2, 2, 2).add_(1)
        return y
    return block(add)
def deep():
    def again(x):
        return again(x) if torch.jit.is_tracing() else x
    return block(again)
def nowhere():
    return torch.nn.Conv2d(3, 4, 3, device="meta"), torch.ones(1, 3, 9, 9, device="meta")
MODELS
  $python "$scripts/export_torch.py" hostile.py:resized -o . --check 2>resized.log || fail "resized: $(tail -n 1 resized.log)"
  case $version in
    1.*)
      refuse 1 "KeyError: 'no' (module '1' (Block), hostile.py:[0-9]*" hostile.py:no_key -o .
      refuse 1 "the trace has Twice, which is no ATen op (module '1' (Block), hostile.py:[0-9]*)" hostile.py:own_function -o .
      refuse 1 "a view made by aten.unfold.default.* (module '1' (Block), hostile.py:[0-9]*, aten.add_)" hostile.py:window -o .
      refuse 1 "RecursionError: .*hostile.py:[0-9]*" hostile.py:deep -o .
      refuse 1 "; please report" hostile.py:nowhere -o .
      ;;
  esac
}

check_texts() {
  $python "$source/tests/python/check_graphs.py" texts "$scripts" >texts.log 2>&1 || fail "$(tail -n 3 texts.log)"
}

check_current() {
  status=0
  $python "$source/tests/python/check_graphs.py" current "$scripts" >current.log 2>&1 || status=$?
  cat current.log
  exit $status
}

check_names() {
  $python "$source/tests/python/check_names.py" "$source" "$bin" >names.log 2>&1 || fail "$(tail -n 3 names.log)"
}

check_dynamic() {
  $python "$source/tests/python/check_dynamic.py" "$source" "$bin" >dynamic.log 2>&1 || fail "$(tail -n 3 dynamic.log)"
}

check_states() {
  $python "$source/tests/python/check_states.py" "$source" "$bin" >states.log 2>&1 || fail "$(tail -n 3 states.log)"
}

check_entries() {
  $python "$source/tests/python/check_entries.py" "$source" "$bin" >entries.log 2>&1 || fail "$(tail -n 3 entries.log)"
}

check_pyg() {
  "$scripts/make_graph.py" --nodes 200 --edges 1200 -o graph.mtx --features 6 --features-file x.npy
  $python "$source/tests/python/check_networks.py" "$source" "$bin" >networks.log 2>&1 || fail "$(tail -n 3 networks.log)"
}

check_gnn() {
  "$scripts/make_graph.py" --nodes 200 --edges 1200 -o graph.mtx --features 6 --features-file x.npy
  cp graph.mtx first.mtx
  "$scripts/make_graph.py" --nodes 200 --edges 1200 -o graph.mtx --features 6 --features-file x.npy
  cmp first.mtx graph.mtx || fail "make_graph.py makes another graph the second time"
  "$scripts/make_graph.py" --nodes 200 --edges 1200 -o graph.safetensors
  for model in graphsage gcn gat; do
    heads=1
    [ $model != gat ] || heads=2
    $python "$scripts/export_gnn.py" $model --features 6 8 4 --heads $heads -o $model.json --verify $model.npy \
      --graph graph.mtx --x x.npy
    $python "$scripts/export_gnn.py" $model --features 6 8 4 --heads $heads -o again.json --verify again.npy \
      --graph graph.safetensors --x x.npy
    cmp $model.npy again.npy || fail "$model: another result with the same graph in another format"
    cmp $model.safetensors again.safetensors || fail "$model: other weights the second time"
    if [ -f "$bin/../lib/npu/backends/npu_backend_aten.so" ]; then
      "$bin/npu-plan" -q graph.mtx --model $model.json --profile "$source/testdata/gnn/profile.json" -k 3 --pad 16 \
        -o plan.json
      "$bin/npu-run" -q plan.json --features x.npy --device gpu=aten --device npu=aten --expect $model.npy >report.json ||
        fail "npu-run does not compute what PyTorch does: $model"
      if [ $model = graphsage ]; then
        $python "$scripts/export_gnn.py" $model --features 6 8 4 --aggregate max -o largest.json --verify largest.npy --graph graph.mtx --x x.npy
        "$bin/npu-plan" -q graph.mtx --model largest.json --profile "$source/testdata/gnn/profile.json" --devices cpu -k 3 -o largest.plan.json
        "$bin/npu-run" -q largest.plan.json --features x.npy --expect largest.npy >report.json ||
          fail "npu-run does not compute what PyTorch does: $model of the largest"
      fi
      # Products of layers that make rows shorter, at the end of the layer before: the same weights and result.
      $python "$scripts/export_gnn.py" $model --features 6 2 4 --heads $heads -o narrow.json --verify narrow.npy --graph graph.mtx --x x.npy
      $python "$scripts/export_gnn.py" $model --features 6 2 4 --heads $heads --products-first -o first.json
      cmp narrow.safetensors first.safetensors || fail "$model: other weights with products first"
      "$bin/npu-plan" -q graph.mtx --model first.json --profile "$source/testdata/gnn/profile.json" --devices cpu -k 3 -o first.plan.json
      "$bin/npu-run" -q first.plan.json --features x.npy --expect narrow.npy >report.json ||
        fail "npu-run does not compute what PyTorch does: $model with products first"
      if [ $model != gat ]; then # whose stages the table has not all
        $python "$scripts/export_gnn.py" $model --features 6 8 4 --products-first -o second.json
        "$bin/npu-plan" -q graph.mtx --model second.json --profile "$source/testdata/gnn/profile.json" --devices cpu -k 3 -o second.plan.json
        "$bin/npu-run" -q second.plan.json --features x.npy --expect $model.npy >report.json ||
          fail "npu-run does not compute what PyTorch does: $model with the second layer's products first"
      fi
      # Loops of the graph, some twice: each node keeps one, or gets one.
      [ $model != graphsage ] || continue
      printf '%%%%MatrixMarket matrix coordinate pattern general\n200 200 8\n1 1\n1 1\n2 2\n2 3\n3 2\n5 4\n9 9\n1 9\n' >loops.mtx
      $python "$scripts/export_gnn.py" $model --features 6 8 4 --heads $heads --remaining-loops -o loops.json --verify loops.npy \
        --graph loops.mtx --x x.npy
      "$bin/npu-plan" -q loops.mtx --model loops.json --profile "$source/testdata/gnn/profile.json" --devices cpu -k 3 -o loops.plan.json
      "$bin/npu-plan" -q --verify loops.plan.json >/dev/null || fail "the plan with loops is not valid: $model"
      "$bin/npu-run" -q loops.plan.json --features x.npy --expect loops.npy >report.json ||
        fail "npu-run does not compute what PyTorch does: $model with the loops that a graph lacks"
    fi
  done
}

check_corpus() {
  "$scripts/op_corpus/make_op_corpus.py" -o . --category shape --category newer_ops 2>corpus.log || fail "$(tail -n 1 corpus.log)"
  case $version in
    1.13.*)
      for name in shape newer_ops; do
        cmp $name.json "$source/testdata/ops/$name.json" || fail "$name.json is not that of testdata/ops"
      done
      ;;
  esac
}

case $check in
  torch | names | dynamic | states | entries | texts | current | gnn | pyg | corpus) "check_$check" ;;
  *) fail "unknown check '$check'" ;;
esac
