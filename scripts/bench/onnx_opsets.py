#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the documents of ONNX files with those of export_torch.py, for every opset that PyTorch exports.

Usage: scripts/bench/onnx_opsets.py [-d FOLDER] [--opsets 7,8,...] MODEL...    torchvision names

For each model and opset torch.onnx.export writes a file, and npu-tag, npu-fuse and npu-partition read it and the own
exporter's document. Printed are, for both, the kernels that npu-fuse counts, partitions, nodes on the cpu, and kernels that
only one of the two has. A kernel is its pattern and its ops without those that move nothing; batch norms count as part of
their convolution, since torch.onnx.export folds them. "refused" are models that PyTorch does not export in that opset.
Exit status 1 if a file from ONNX has more kernels or partitions than the own document.
"""
import argparse
import collections
import json
import pathlib
import subprocess
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
from export import models  # noqa: E402
from export.patches import ordinary_attention  # noqa: E402

# What is no work of its own, whoever writes it.
SILENT = ("batch_norm", "view", "reshape", "flatten", "unsqueeze", "squeeze", "permute", "transpose", "dropout")
# One kernel under two names.
SAME = {"bmm": "matmul", "avg_pool2d": "pool", "adaptive_avg_pool2d": "pool", "mean": "pool", "hardtanh": "clamp", "relu6": "clamp"}


def document(path):
    data = None
    for command in (["npu-tag", path], ["npu-fuse"], ["npu-partition"]):
        done = subprocess.run([ROOT / "build/bin" / command[0], *command[1:]], input=data, capture_output=True, check=False)
        if done.returncode != 0:
            sys.exit(f"onnx_opsets.py: {command[0]} of {path} failed:\n{done.stderr.decode()}")
        data = done.stdout
    return json.loads(data)


def kernels(content):
    ops = {node["name"]: (node["op_type"].split(".") + [""])[1].rstrip("_") or node["op_type"] for node in content["nodes"]}
    counts = collections.Counter()
    for group in content["npu"]["fusion"]["groups"]:
        if group["pattern"] in ("alias", "constant"):
            continue
        names = [SAME.get(ops[node], ops[node]) for node in group["nodes"]]
        counts["+".join(name for name in names if name not in SILENT) or names[0]] += 1
    return counts


def measures(content):
    cpu = sum(1 for node in content["nodes"] if node.get("device") == "cpu")
    return kernels(content), len(content["npu"]["partition"]["partitions"]), cpu


def export(torch, model, example, path, opset):
    try:
        with warnings.catch_warnings(), torch.no_grad(), ordinary_attention():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, tuple(example), str(path), opset_version=opset)
    except Exception as error:  # noqa: BLE001  (PyTorch raises many kinds)
        return str(error).strip().splitlines()[0][:100]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/onnx_opsets"))
    parser.add_argument("--opsets", default=",".join(map(str, range(7, 18))))
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    import torch

    options.folder.mkdir(parents=True, exist_ok=True)
    worse = False
    for name in options.models:
        subprocess.run([ROOT / "scripts/export_torch.py", f"torchvision:{name}", "-o", options.folder], check=True, capture_output=True)
        own, own_partitions, own_cpu = measures(document(options.folder / f"{name}.json"))
        torch.manual_seed(0)
        model, example = models.load_torchvision(name, None)
        model.eval()
        for opset in map(int, options.opsets.split(",")):
            path = options.folder / f"{name}.onnx"
            reason = export(torch, model, example, path, opset)
            if reason is not None:
                print(f"{name:24} {opset:3}  refused by torch.onnx.export: {reason}", flush=True)
                continue
            other, partitions, cpu = measures(document(path))
            print(f"{name:24} {opset:3}  kernels {sum(own.values()):4} {sum(other.values()):4}  partitions {own_partitions} {partitions}  "
                  f"cpu {own_cpu} {cpu}  own only {dict(own - other)}  onnx only {dict(other - own)}", flush=True)
            worse = worse or sum(other.values()) > sum(own.values()) or partitions > own_partitions
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
