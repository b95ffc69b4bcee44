#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times a plan of npu-plan beside PyTorch on the same graph, features and weights.

Usage: scripts/bench/gnn_vs_torch.py [-d FOLDER] [--threads N] [--rounds N] [--parts 1..4]

One GraphSAGE layer, 500 to 256 features, on a random graph of the size of Flickr (89,250 nodes, 899,756 directed
edges). PyTorch runs it as seven stages (index_select, index_add_, ...) and with a sparse CSR product, npu-run as
npu-plan chose it from a table that npu-profile measures first, and with everything on the cpu. The programs take
turns; printed are the least and the median of the rounds, ratios of medians, and the largest difference to PyTorch's
result. Needs Debian's python3-torch and python3-numpy and a release build.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

try:
    import numpy
    import torch
except ImportError:
    sys.exit("gnn_vs_torch.py: needs Debian's python3-torch and python3-numpy: apt-get install python3-torch "
             "python3-numpy, then run it with /usr/bin/python3")

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES, EDGES, WIDTH_IN, WIDTH_OUT = 89250, 899756, 500, 256


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"gnn_vs_torch.py: {command[0]} failed:\n{result.stderr.decode()}")
    return result.stdout


def weights_of(file):
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


def by_end(weights, ending):
    return next(value for name, value in weights.items() if name.endswith(ending))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/gnn_vs_torch"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="1..4")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    os.environ["PATH"] = f"{ROOT / 'build/bin'}:{os.environ['PATH']}"
    options.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(options.folder)
    if not pathlib.Path("flickr.x.npy").exists():
        run(ROOT / "scripts/make_graph.py", "--nodes", NODES, "--edges", EDGES, "--undirected", "-o", "flickr.mtx",
            "--features", WIDTH_IN, "--features-file", "flickr.x.npy")
    run(ROOT / "scripts/export_gnn.py", "graphsage", "--features", WIDTH_IN, WIDTH_OUT, "--activate-last", "-o", "sage.json")
    if not pathlib.Path("table.json").exists():
        run("npu-profile", "sage.json", "--nodes", "10000,30000,90000", "--degrees", "5,12", "--runs", 3, "--threads",
            options.threads, "-o", "table.json")
    run("npu-plan", "flickr.mtx", "--model", "sage.json", "--profile", "table.json", "-k", options.parts, "-o", "plan.json")
    run("npu-plan", "flickr.mtx", "--model", "sage.json", "--profile", "table.json", "-k", 1, "--devices", "cpu", "-o",
        "cpu.json")

    x = torch.from_numpy(numpy.load("flickr.x.npy"))
    edges = numpy.loadtxt("flickr.mtx", dtype=numpy.int64, comments="%", skiprows=2) - 1
    edges = numpy.concatenate([edges, edges[:, ::-1]]).T
    source, target = (torch.from_numpy(row.copy()) for row in edges)
    count = len(x)
    weights = weights_of(pathlib.Path("sage.safetensors"))
    left, bias, right = by_end(weights, "lin_l.weight"), by_end(weights, "lin_l.bias"), by_end(weights, "lin_r.weight")
    order = torch.argsort(target * count + source)
    starts = torch.zeros(count + 1, dtype=torch.int64)
    starts[1:] = torch.bincount(target, minlength=count).cumsum(0)
    matrix = torch.sparse_csr_tensor(starts, source[order], torch.ones(len(source)), (count, count))
    degree = torch.bincount(target, minlength=count).float().clamp(min=1).unsqueeze(1)
    linear = torch.nn.functional.linear

    def eager():
        gathered = x.index_select(0, source)
        total = torch.zeros(count, WIDTH_IN).index_add_(0, target, gathered)
        number = torch.zeros(count).index_add_(0, target, torch.ones(len(target)))
        mean = total / number.clamp(min=1).unsqueeze(1)
        return (linear(mean, left, bias) + linear(x, right)).relu()

    def sparse():
        return (linear((matrix @ x) / degree, left, bias) + linear(x, right)).relu()

    def timed(function):
        start = time.perf_counter()
        result = function()
        return 1000 * (time.perf_counter() - start), result

    def ours(plan):
        report = json.loads(run("npu-run", plan, "--features", "flickr.x.npy", "--bench", 5, "--threads", options.threads,
                                "--outputs", "out.npy"))
        return report["bench"]["median_ms"], report

    times = {"PyTorch eager, 7 stages": [], "PyTorch CSR product": [], "npu-run, plan": [], "npu-run, cpu alone": []}
    with torch.no_grad():
        eager(), sparse()
        for _ in range(options.rounds):
            ms, expected = timed(eager)
            times["PyTorch eager, 7 stages"].append(ms)
            times["PyTorch CSR product"].append(timed(sparse)[0])
            ms, report = ours("plan.json")
            times["npu-run, plan"].append(ms)
            found = torch.from_numpy(numpy.load("out.npy"))
            times["npu-run, cpu alone"].append(ours("cpu.json")[0])
    first, second = (statistics.median(times[name]) for name in ("PyTorch eager, 7 stages", "PyTorch CSR product"))
    print(f"{'':26} {'least ms':>9} {'median ms':>9} {'/eager':>7} {'/CSR':>6}")
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"{name:26} {min(values):9.1f} {middle:9.1f} {middle / first:7.3f} {middle / second:6.3f}")
    error = (found - expected).abs().max().item()
    print(f"plan: k {report['k']}, predicted {report['predicted_ms']:.1f} ms, largest difference {error:.2g}, "
          f"within rtol 1e-4, atol 1e-5: {torch.allclose(found, expected, rtol=1e-4, atol=1e-5)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
