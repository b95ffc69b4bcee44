#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the kernels that the device "cpu" takes of OpenBLAS on this CPU, so that PyTorch, which
is measured beside it, is given the same: OpenBLAS takes kernels for SSE3 on CPUs younger than it.

Usage: blas_core.py          prints the name, which OPENBLAS_CORETYPE takes; nothing if that is set, or before a build
"""
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blas_core():
    programs = ROOT / "build/bin"
    if "OPENBLAS_CORETYPE" in os.environ or not (programs / "npu-run").exists():
        return ""
    document = b""
    for command in (["npu-tag", "-q", "--force", "cpu=*", ROOT / "testdata/models/small/mlp.json"], ["npu-partition", "-q"],
                    ["npu-run", "-q", "--random-inputs", "1"]):
        document = subprocess.run([programs / command[0], *command[1:]], input=document, capture_output=True, check=True).stdout
    return json.loads(document)["backends"]["aten"].partition("kernels for ")[2]


if __name__ == "__main__":
    if name := blas_core():
        print(name)
