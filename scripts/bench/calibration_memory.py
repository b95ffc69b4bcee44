#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the peak memory of npu-profile --calibrate with 1, 10 and 1,000 samples.

Usage: scripts/bench/calibration_memory.py [--counts LIST] [--error-samples N] MODEL.json SAMPLE.safetensors ...

Samples are drawn as int8_mixed.py draws them, into one file. Memory is the largest resident set of the process, the least of three runs, since what
a run takes besides the model's tensors differs from run to run. By default the errors of single operators are not measured: these need the samples
that they are measured on, which --error-samples bounds, whatever their number in the file.

Exit status 1 unless each model takes at most 5 % more with any number of samples than with the fewest. The programs are those in build/bin.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from int8_mixed import BIN, draw_samples  # noqa: E402

BAR = 0.05
RUNS = 3


def peak_mib(*command):
    """The largest resident set of a command, in MiB."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = process.stderr.read().decode().strip()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {message}")
    return usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="MODEL.json SAMPLE.safetensors, in pairs")
    parser.add_argument("--counts", default="1,10,1000", help="numbers of samples (default: %(default)s)")
    parser.add_argument("--error-samples", type=int, default=0, help="as npu-profile takes it (default: %(default)s)")
    options = parser.parse_args()
    if len(options.files) % 2 != 0:
        parser.error("expected pairs of a model and a sample")
    counts = sorted(int(count) for count in options.counts.split(","))
    fails = False
    print(f"{'model':20} {'samples':>8} {'peak MiB':>9} {'ratio':>6}")
    for model, sample in zip(options.files[::2], options.files[1::2]):
        least = None
        for count in counts:
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                whole, _ = draw_samples(pathlib.Path(sample), count, folder)
                command = [BIN / "npu-profile", "-q", model, "--calibrate", whole, "--error-samples", options.error_samples,
                           "-o", folder / "ranges.json"]
                peak = min(peak_mib(*command) for _ in range(RUNS))
            least = least or peak
            print(f"{pathlib.Path(model).stem:20} {count:8} {peak:9.1f} {peak / least:6.3f}", flush=True)
            fails = fails or peak > (1 + BAR) * least
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main())
