#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well profiles predict: profile, place by the profile, run, and compare.

Usage: scripts/bench/profile_prediction.py [--rounds N] [--bench N] [--runs N] [--threads N] [MODEL...]

Models are the documents of testdata/models with random weights and inputs; some operators are taken
from the NPU, so that placements are mixed. For each model npu-profile makes a table, npu-partition
--strategy mincut --profile places by it, and npu-run measures that placement, all on the CPU and as
much as it runs on the NPU in turns, ROUNDS times. Measured is the least of the rounds' medians, as other
load only ever adds; behind it stands the spread (largest over least). The error is that of the predicted
time. A model counts if the error of its placement is at most 15 %; the exit status is 1 if fewer than
four do, or a placement by the profile takes more than 5 % longer than all on the CPU.
"""

import argparse
import json
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from placement_measured import CASES, ROOT, tool, without_op  # noqa: E402

MODELS = ["resnet18", "resnet50", "mobilenet_v2", "inception_v3", "bert_base"]
MOST_ERROR = 0.15


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bench", type=int, default=15)
    parser.add_argument("--runs", type=int, default=20, help="runs of each placement that npu-profile measures")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print npu-profile's own report, too")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    target = json.loads(tool("npu-tag", "--print-target", "--target", "host"))
    threads = ["--threads", str(options.threads)]
    print(f"{'model':14} {'not on the npu':20} {'placement':11} {'parts':>6} {'roofline ms':>12} {'predicted ms':>13} "
          f"{'measured ms':>12} {'spread':>7} {'error':>8} {'of all-cpu':>10}", flush=True)
    within, slower, failed = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        for model in options.models or MODELS:
            missing = dict(CASES)[model]
            target_file = scratch / "target.json"
            target_file.write_text(json.dumps(without_op(target, missing)), encoding="utf-8")
            source = ROOT / "testdata/models" / f"{model}.json"
            table = scratch / "table.json"
            tool("npu-profile", source, "--target", target_file, "--random-weights", "0", "--runs", str(options.runs),
                 *threads, "-o", table)
            if options.verbose:
                for row in json.loads(table.read_text(encoding="utf-8"))["placements"]:
                    print(f"  {row['name']}: measured {row['us'] / 1e3:.2f} ms, MAD {row['mad_us'] / 1e3:.2f}, "
                          f"predicted {row['predicted_us'] / 1e3:.2f}", flush=True)
            tagged = tool("npu-tag", "--quiet", "--target", target_file, source)
            on_cpu = tool("npu-tag", "--quiet", "--target", target_file, "--force", "cpu=*", source)
            ways = {"all-cpu": (["--strategy", "convex"], on_cpu), "all-npu": (["--strategy", "convex"], tagged),
                    "profile": (["--strategy", "mincut"], tagged)}
            plans = {by: tool("npu-partition", *how, "--profile", table, stdin=document)
                     for by, (how, document) in ways.items()}
            roofline = {by: json.loads(tool("npu-partition", *how, stdin=document))["npu"]["partition"]["metrics"]
                        for by, (how, document) in ways.items()}
            tool("npu-partition", "--verify", "--profile", table, stdin=plans["profile"])
            times = {by: [] for by in plans}
            for _ in range(options.rounds):
                for by, plan in plans.items():
                    report = json.loads(tool("npu-run", "--random-weights", "0", "--random-inputs", "0", "--bench",
                                             str(options.bench), *threads, stdin=plan))
                    times[by].append(report["bench"]["median_ms"])
            for by, plan in plans.items():
                metrics = json.loads(plan)["npu"]["partition"]["metrics"]
                predicted, measured = metrics["predicted_us"] / 1e3, min(times[by])
                error = predicted / measured - 1
                print(f"{model:14} {missing:20} {by:11} {metrics['partitions']:6} "
                      f"{roofline[by]['predicted_us'] / 1e3:12.2f} {predicted:13.2f} {measured:12.2f} "
                      f"{max(times[by]) / measured:7.2f} {100 * error:+7.1f}% {measured / min(times['all-cpu']):10.3f}",
                      flush=True)
                if by == "profile":
                    (within if abs(error) <= MOST_ERROR else failed).append(model)
            ratio = min(times["profile"]) / min(times["all-cpu"])
            if ratio > 1.05:
                slower.append(f"{model}: placed by the profile it takes {ratio:.2f} times as long as all on the CPU")
    for line in slower:
        print("SLOWER:", line)
    print(f"within {100 * MOST_ERROR:.0f} %: {', '.join(within) or 'none'}"
          + (f"; not: {', '.join(failed)}" if failed else ""))
    return 1 if slower or len(within) < min(4, len(options.models or MODELS)) else 0


if __name__ == "__main__":
    sys.exit(main())
