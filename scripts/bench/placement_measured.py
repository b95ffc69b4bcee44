#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what placements take: contiguous, convex and mincut against the whole model on the CPU.

Usage: scripts/bench/placement_measured.py [--target host.json] [--rounds N] [--bench N]

Models are the documents of testdata/models with random weights and inputs; some operators are taken
from the NPU, so that the strategies differ. Predicted times come from the target: give the one that
npu-profile --machine writes. All placements of a model are measured in turns, ROUNDS times, each as
the median of BENCH runs; printed are the least of those and, behind it, the spread (largest over least).
"""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = [
    ("resnet18", "aten.add_.*"),
    ("resnet50", "aten.add_.*"),
    ("mobilenet_v2", "aten.hardtanh_.*"),
    ("inception_v3", "aten.cat.*"),
    ("bert_base", "aten.gelu.*"),
    ("vit_b_16", "aten.layer_norm.*"),
]


def tool(name, *arguments, stdin=b""):
    result = subprocess.run([ROOT / "build/bin" / name, *arguments], input=stdin, capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"placement_measured: {name} failed:\n{result.stderr.decode()}")
    return result.stdout


def without_op(target, glob):
    """The target with an NPU that lacks what the glob names: not forced, but not supported."""
    prefix = glob.removesuffix("*")
    npu = target["devices"][0]
    rules = []
    for rule in npu["ops"]:
        types = [op for op in rule["types"] if not op.startswith(prefix)]
        if types:
            rules.append({**rule, "types": types})
    return {**target, "devices": [{**npu, "ops": rules}, *target["devices"][1:]]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="host", help="built-in target or file")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bench", type=int, default=10)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    target = json.loads(tool("npu-tag", "--print-target", "--target", options.target))
    threads = ["--threads", str(options.threads)] if options.threads else []
    scratch = pathlib.Path(sys.argv[0]).resolve().parents[2] / "build" / "placement_measured.json"
    print(f"{'model':14} {'not on the npu':20} {'placement':11} {'parts':>6} {'copied MB':>10} {'predicted ms':>13} "
          f"{'measured ms':>12} {'spread':>7} {'of all-cpu':>10}")
    slower = []
    for model, missing in CASES:
        if options.models and model not in options.models:
            continue
        scratch.write_text(json.dumps(without_op(target, missing)), encoding="utf-8")
        source = ROOT / "testdata/models" / f"{model}.json"
        tagged = tool("npu-tag", "--quiet", "--target", scratch, source)
        on_cpu = tool("npu-tag", "--quiet", "--target", scratch, "--force", "cpu=*", source)
        plans = {"all-cpu": tool("npu-partition", stdin=on_cpu)}
        for strategy in ("contiguous", "convex", "mincut"):
            plans[strategy] = tool("npu-partition", "--strategy", strategy, stdin=tagged)
        times = {by: [] for by in plans}
        for _ in range(options.rounds):
            for by, plan in plans.items():
                report = json.loads(tool("npu-run", "--random-weights", "0", "--random-inputs", "0", "--bench",
                                         str(options.bench), *threads, stdin=plan))
                times[by].append(report["bench"]["median_ms"])
        best = {by: min(values) for by, values in times.items()}
        for by, plan in plans.items():
            metrics = json.loads(plan)["npu"]["partition"]["metrics"]
            print(f"{model:14} {missing:20} {by:11} {metrics['partitions']:6} {metrics['copied_bytes'] / 1e6:10.2f} "
                  f"{metrics['predicted_us'] / 1e3:13.2f} {best[by]:12.2f} {max(times[by]) / best[by]:7.2f} "
                  f"{best[by] / best['all-cpu']:10.3f}", flush=True)
        for other in ("all-cpu", "contiguous"):
            if best["mincut"] > 1.05 * best[other]:
                slower.append(f"{model}: mincut takes {best['mincut'] / best[other]:.2f} times as long as {other}")
    scratch.unlink(missing_ok=True)
    for line in slower:
        print("SLOWER:", line)
    print("mincut is at most 5 % above contiguous and all-cpu" if not slower else f"{len(slower)} comparisons are slower")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
