#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times texts of many lengths on one bundle with buckets, beside ONNX Runtime with dynamic axes.

Input:  none; the model is a BERT of base size with random weights (testdata/onnx/text_encoder.py).
Output: what five buckets cost beside one (bytes, compile time, load time, memory), times at fixed lengths, and for
        three distributions of lengths the expected time of both programs, in turn for every length, and of the largest
        bucket alone. Ratios are of ours over theirs; "asked" is 1.02 x (1 + padded share) x the ratio of fixed lengths.

Needs the programs in build/bin, or $BIN, Node.js, NumPy, and onnxruntime-node below $NODE_PATH
(scripts/bench/vs_peers.sh -i installs it).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../testdata/onnx")
sys.dont_write_bytecode = True

import numpy as np  # noqa: E402
from text_encoder import TextEncoder  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", f"{HERE}/../../build/bin"))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "npu-bench")
os.environ.setdefault("NODE_PATH", os.path.join(CACHE, "ort", "node_modules"))
BUCKETS = [32, 64, 128, 256, 512]


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def write_inputs(length):
    """A text as safetensors: ids, and a mask without gaps."""
    path = f"in{length}.safetensors"
    ids = np.random.default_rng(length).integers(1, 30000, length, np.int64)
    size = 8 * length
    header = {
        name: {"dtype": "I64", "shape": [1, length], "data_offsets": [i * size, (i + 1) * size]}
        for i, name in enumerate(["input_ids", "attention_mask"])
    }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + ids.tobytes() + np.ones(length, np.int64).tobytes())
    return path


class Programs:
    def __init__(self, options):
        self.threads, self.runs, self.rounds = str(options.threads), options.runs, options.rounds

    def ours(self, bundle, length):
        path = write_inputs(length)
        text = run(f"{BIN}/npu-run", bundle, "--inputs", path, "--bench", str(self.runs), "--threads", self.threads)
        return json.loads(text)

    def theirs(self, length):
        path = write_inputs(length)
        return json.loads(run("node", f"{HERE}/run_onnx.js", "bert.onnx", path, str(self.runs), self.threads))

    def both(self, bundle, length):
        """Medians in ms, and the share of padding."""
        ours, theirs, share = [], [], 0.0
        for _ in range(self.rounds):
            report = self.ours(bundle, length)
            ours.append(report["bench"]["median_ms"])
            share = report.get("padded_share", 0.0)
            theirs.append(self.theirs(length)["median_ms"])
        return statistics.median(ours), statistics.median(theirs), share


def compile_buckets(buckets, name):
    begin = time.monotonic()
    sizes = ",".join(str(each) for each in buckets)
    run(f"{BIN}/npu-compile", "--no-cache", "--bind", "batch=1", "--buckets", f"length={sizes}", "--assert",
        "weights_copies==1", "bert.onnx", "-o", name)  # fmt: skip
    return time.monotonic() - begin


def distributions(count, rng):
    short = np.clip(rng.geometric(1 / 40, count), 1, 512)
    even = rng.integers(1, 513, count)
    long = np.where(rng.random(count) < 0.7, rng.integers(16, 65, count), rng.integers(256, 513, count))
    return {"short": short, "even": even, "two kinds": long}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lengths", type=int, default=12, help="of each distribution (default %(default)s)")
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    programs = Programs(options)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        TextEncoder(30522, 512, 768, 12, 3072, options.layers).write("bert.onnx")
        seconds = {name: compile_buckets(buckets, name) for name, buckets in (("one.npub", [512]), ("five.npub", BUCKETS))}
        print(f"{'bundle':8} {'MB':>8} {'compile s':>10} {'load ms':>8} {'peak MB':>8}")
        for name, took in seconds.items():
            report = programs.ours(name, 512)
            print(f"{name:8} {os.path.getsize(name) / 1e6:8.1f} {took:10.2f} {report['load_ms']:8.1f} {report['bench']['peak_rss_bytes'] / 1e6:8.1f}")
        print(f"\n{'length':>9} {'npu-run':>9} {'ORT':>9} {'ratio':>6}")
        fixed = {}
        for length in BUCKETS:
            ours, theirs, _ = programs.both("five.npub", length)
            fixed[length] = ours / theirs
            print(f"{length:9} {ours:9.2f} {theirs:9.2f} {fixed[length]:6.3f}", flush=True)
        rng = np.random.default_rng(3)
        print(f"\n{'lengths':>9} {'npu-run':>9} {'ORT':>9} {'ratio':>6} {'padded':>7} {'asked':>6} {'one 512':>8}")
        whole = programs.both("one.npub", 512)[0]
        for name, lengths in distributions(options.lengths, rng).items():
            ours, theirs, shares, ratios = [], [], [], []
            for length in lengths:
                a, b, share = programs.both("five.npub", int(length))
                ours.append(a)
                theirs.append(b)
                shares.append(share)
                ratios.append(fixed[next(each for each in BUCKETS if each >= length)])
            padded = 1 / (1 - statistics.mean(shares)) - 1
            asked = 1.02 * (1 + padded) * statistics.mean(ratios)
            print(f"{name:>9} {statistics.mean(ours):9.2f} {statistics.mean(theirs):9.2f} {sum(ours) / sum(theirs):6.3f} "
                  f"{padded:7.2f} {asked:6.3f} {statistics.mean(ours) / whole:8.3f}", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
