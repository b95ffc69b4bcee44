#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted and measured times of models, for truth.sh.

Usage: scripts/bench/truth_of_models.py --folder DIR [--threads N] [--rounds N] [--bench N] MODEL...

DIR/MODEL.json is placed by npu-partition --strategy mincut with the default rates of the target host, with the rates of
this machine, and with the model's profile; every placement is run in turns with the others, ROUNDS times, for the median
of BENCH runs, and so is the model on each device that can run all of it. Printed are the median of the rounds, their
spread (median absolute deviation), and the median of the rounds' ratios predicted / measured; for the placement by
profile also the one of its time over that of the best single device.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BARS = {"default": None, "machine": 0.25, "profile": 0.10}
MOST_OVER_SINGLE = 1.05


def tool(name, *arguments, stdin=b""):
    result = subprocess.run([ROOT / "build/bin" / name, *arguments], input=stdin, capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"truth_of_models: {name} failed:\n{result.stderr.decode()}")
    return result.stdout


def single_devices(source, scratch):
    """Files of the model on one device alone, by the device's name."""
    files = {}
    for device in ("cpu", "npu"):
        tagged = subprocess.run([ROOT / "build/bin/npu-tag", "--quiet", "--force", f"{device}=*", source],
                                capture_output=True, check=False)
        if tagged.returncode != 0:
            continue  # it does not run every op
        files[device] = scratch / f"{device}.json"
        files[device].write_bytes(tool("npu-partition", stdin=tagged.stdout))
    return files


def run_ms(file, options):
    report = json.loads(tool("npu-run", file, "--random-inputs", "0", "--random-weights", "0", "--threads", options.threads,
                             "--bench", options.bench))
    return report["bench"]["median_ms"]


def placements(source, scratch, machine, threads):
    """By kind of prediction: a plan's file and the time that it promises, in milliseconds."""
    table = scratch / "table.json"
    tool("npu-profile", source, "--threads", threads, "-o", table)
    plans = {}
    for kind, target, extra in (("default", [], []), ("machine", ["--target", machine], []),
                                ("profile", [], ["--profile", table])):
        tagged = tool("npu-tag", "--quiet", *target, source)
        plan = tool("npu-partition", "--strategy", "mincut", *extra, stdin=tagged)
        file = scratch / f"{kind}.json"
        file.write_bytes(plan)
        plans[kind] = file, json.loads(plan)["npu"]["partition"]["metrics"]["predicted_us"] / 1000
    return plans


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--threads", default=str(os.cpu_count()))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bench", default="11")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    print(f"{'model':18} {'rates':8} {'predicted ms':>12} {'measured ms':>12} {'spread':>7} {'ratio':>6}  bar")
    missed = 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        scratch = pathlib.Path(folder)
        machine = scratch / "rates.json"
        tool("npu-profile", "--machine", "--threads", options.threads, "-o", machine)
        for model in options.models:
            # Beside the model, so that its weights are found.
            plans = placements(options.folder / f"{model}.json", scratch, machine, options.threads)
            singles = single_devices(options.folder / f"{model}.json", scratch)
            times = {kind: [] for kind in (*plans, *singles)}
            for _ in range(options.rounds):
                for kind, file in (*((kind, file) for kind, (file, _) in plans.items()), *singles.items()):
                    times[kind].append(run_ms(file, options))
            for kind, (_, predicted) in plans.items():
                middle = statistics.median(times[kind])
                spread = statistics.median(abs(time - middle) for time in times[kind]) / middle
                ratio = statistics.median(predicted / time for time in times[kind])
                bar = BARS[kind]
                verdict = "" if bar is None else "met" if abs(ratio - 1) <= bar else "MISSED"
                missed += verdict == "MISSED"
                print(f"{model:18} {kind:8} {predicted:12.2f} {middle:12.2f} {100 * spread:5.1f} % {ratio:6.2f}  {verdict}",
                      flush=True)
            if singles:
                best = min(singles, key=lambda device: statistics.median(times[device]))
                ratio = statistics.median(a / b for a, b in zip(times["profile"], times[best]))
                verdict = "met" if ratio <= MOST_OVER_SINGLE else "MISSED"
                missed += verdict == "MISSED"
                print(f"{model:18} {'single':8} {best:>12} {statistics.median(times[best]):12.2f} {'':7} {ratio:6.2f}  {verdict}",
                      flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
