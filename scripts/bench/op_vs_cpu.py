#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single operators on the first device of a target beside the cpu device, in turn.

Exports one model for each operator (tensors of about a million elements, float32 unless its name says
otherwise), runs it on `npu` and on `cpu`, and prints medians, the median over the rounds of their ratio,
and whether `npu` took it at all. Exits 1 if an operator is slower than on `cpu` by more than 5 %.

Usage: scripts/bench/op_vs_cpu.py [-t THREADS] [-r ROUNDS] [-n RUNS] [-k PATTERN] [-d DIR]
Needs python3-torch; run build/bin/npu-run first on PATH, or from the build folder.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Name: (expression of x and y, shapes and types of them).
FLOATS = {"x": "torch.randn(4, 64, 64, 64)", "y": "torch.rand(4, 64, 64, 64) + 0.5"}
ROWS = {"x": "torch.randn(65536, 16)", "y": "torch.rand(65536, 16) + 0.5"}
INTEGERS = {"x": "torch.randint(-999, 999, (4, 64, 64, 64))", "y": "torch.randint(1, 99, (4, 64, 64, 64))"}
TRUTH = {"x": "torch.randn(4, 64, 64, 64)", "y": "torch.rand(4, 64, 64, 64) > 0.5"}
OPERATORS = {
    "remainder": ("torch.remainder(x, y)", FLOATS),
    "fmod": ("torch.fmod(x, y)", FLOATS),
    "floor_divide": ("torch.div(x, y, rounding_mode='floor')", FLOATS),
    "truncate_divide": ("torch.div(x, y, rounding_mode='trunc')", FLOATS),
    "remainder_int64": ("torch.remainder(x, y)", INTEGERS),
    "floor_divide_int64": ("torch.div(x, y, rounding_mode='floor')", INTEGERS),
    "add_int64": ("x + y", INTEGERS),
    "multiply_int64": ("x * y", INTEGERS),
    "sum_int64": ("x.sum() + y", INTEGERS),
    "sum_rows_int64": ("x.sum(-1)", INTEGERS),
    "sum_planes_int64": ("x.sum(1)", INTEGERS),
    "argmax": ("x.argmax() + y[0, 0, 0, 0]", FLOATS),
    "argmax_rows": ("x.argmax(-1)", ROWS),
    "argmax_channels": ("x.argmax(1)", FLOATS),
    "cumsum_rows": ("x.cumsum(-1)", ROWS),
    "cumsum_channels": ("x.cumsum(1)", FLOATS),
    "less": ("x < y", FLOATS),
    "equal_int64": ("x == y", INTEGERS),
    "where": ("torch.where(y, x, x * 2)", TRUTH),
    "masked_fill": ("x.masked_fill(y, -1.0)", TRUTH),
    "add": ("x + y", FLOATS),
    "divide": ("x / y", FLOATS),
    "power": ("x.abs().pow(y)", FLOATS),
    "maximum": ("torch.maximum(x, y)", FLOATS),
    "exp": ("x.exp()", FLOATS),
    "log": ("y.log()", FLOATS),
    "sqrt": ("y.sqrt()", FLOATS),
    "rsqrt": ("y.rsqrt()", FLOATS),
    "sin": ("x.sin()", FLOATS),
    "erf": ("x.erf()", FLOATS),
    "floor": ("x.floor()", FLOATS),
    "tanh": ("x.tanh()", FLOATS),
    "gelu": ("torch.nn.functional.gelu(x)", FLOATS),
    "softplus": ("torch.nn.functional.softplus(x)", FLOATS),
    "sum": ("x.sum() + y[0, 0, 0, 0]", FLOATS),
    "mean_rows": ("x.mean(-1)", ROWS),
    "amax_channels": ("x.amax(1)", FLOATS),
    "norm_rows": ("x.norm(dim=-1)", ROWS),
    "softmax_rows": ("x.softmax(-1)", ROWS),
    "softmax_channels": ("x.softmax(1)", FLOATS),
    "layer_norm": ("torch.nn.functional.layer_norm(x, (64,))", FLOATS),
    "group_norm": ("torch.nn.functional.group_norm(x, 8)", FLOATS),
    "instance_norm": ("torch.nn.functional.instance_norm(x)", FLOATS),
    "matmul_short_rows": ("x @ y.t()[:, :16]", ROWS),
    "bmm": ("torch.bmm(x[:, 0], y[:, 1])", FLOATS),
    "permute": ("x.permute(0, 2, 3, 1).contiguous()", FLOATS),
    "roll": ("torch.roll(x, (3, 5), (2, 3))", FLOATS),
    "flip": ("torch.flip(x, (3,))", FLOATS),
    "cat": ("torch.cat([x, y], 1)", FLOATS),
    "pad": ("torch.nn.functional.pad(x, (1, 2, 3, 4))", FLOATS),
    "index": ("x[:, [5, 3, 60, 2]]", FLOATS),
    "repeat": ("x[:, :16].repeat(1, 4, 1, 1)", FLOATS),
    "max_pool": ("torch.nn.functional.max_pool2d(x, 3, 2, 1)", FLOATS),
    "avg_pool": ("torch.nn.functional.avg_pool2d(x, 3, 2, 1)", FLOATS),
    "bilinear": ("torch.nn.functional.interpolate(x, scale_factor=2.0, mode='bilinear')", FLOATS),
    "nearest": ("torch.nn.functional.interpolate(x, scale_factor=2.0)", FLOATS),
    "triangle": ("x.tril()", FLOATS),
    "cast_int64": ("x.to(torch.int64)", FLOATS),
}


def write_models(path, names):
    with open(path, "w", encoding="utf-8") as file:
        file.write("import torch\n\n\nclass Operator(torch.nn.Module):\n")
        file.write("    def __init__(self, body):\n        super().__init__()\n        self.body = body\n\n")
        file.write("    def forward(self, x, y):\n        return self.body(x, y)\n")
        for name in names:
            body, tensors = OPERATORS[name]
            file.write(f"\n\ndef {name}():\n")
            file.write(f"    return Operator(lambda x, y: {body}), ({tensors['x']}, {tensors['y']})\n")


def timed(document, inputs, devices, options):
    command = ["npu-run", "-q", document, "--devices", devices, "--threads", str(options.threads)]
    command += ["--inputs", inputs, "--bench", str(options.runs)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return None, result.stderr.strip().splitlines()[-1] if result.stderr.strip() else "fails"
    report = json.loads(result.stdout)
    devices_used = {step.get("device") for step in report.get("steps", []) if step["kind"] == "partition"}
    return report["bench"]["median_ms"], devices_used


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-n", "--runs", type=int, default=10, help="runs of a device in a round")
    parser.add_argument("-k", "--match", default="", metavar="PATTERN", help="only operators whose names match")
    parser.add_argument("-d", "--folder", help="where exports are kept and found again")
    options = parser.parse_args(argv)
    os.environ["PATH"] = os.path.join(ROOT, "build", "bin") + os.pathsep + os.environ["PATH"]
    names = [name for name in OPERATORS if re.search(options.match, name)]
    slow = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or scratch
        os.makedirs(folder, exist_ok=True)
        source = os.path.join(folder, "operators.py")
        write_models(source, names)
        print(f"{'operator':<20} {'npu ms':>9} {'cpu ms':>9} {'ratio':>7}  result")
        for name in names:
            if not os.path.exists(os.path.join(folder, name + ".outputs.safetensors")):
                export = [os.path.join(ROOT, "scripts", "export_torch.py"), f"{source}:{name}", "-o", folder]
                exported = subprocess.run(export, capture_output=True, text=True, check=False)
                if exported.returncode != 0:
                    print(f"{name:<20} export fails: {exported.stderr.strip().splitlines()[-1]}")
                    slow += 1
                    continue
            files = [os.path.join(folder, name + end) for end in (".json", ".inputs.safetensors")]
            rounds = [[timed(*files, each, options) for each in ("npu,cpu", "cpu")] for _ in range(options.rounds)]
            failed = next((each[1] for pair in rounds for each in pair if each[0] is None), None)
            if failed:
                print(f"{name:<20} {failed}")
                slow += 1
                continue
            times = [statistics.median(pair[i][0] for pair in rounds) for i in (0, 1)]
            ratio = statistics.median(pair[0][0] / pair[1][0] for pair in rounds)
            is_slow = ratio > 1.05
            slow += is_slow
            result = ("slower" if is_slow else "ok") + ("" if "npu" in rounds[0][0][1] else ", not on npu")
            print(f"{name:<20} {times[0]:9.3f} {times[1]:9.3f} {ratio:7.2f}  {result}", flush=True)
    print(f"{len(names)} operators, {slow} slower or failed")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
