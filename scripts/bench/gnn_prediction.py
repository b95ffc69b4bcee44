#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what npu-plan predicts for graph neural networks with what npu-run measures.

Usage: scripts/bench/gnn_prediction.py [-d FOLDER] [--threads N] [--rounds N] [--parts LIST] [--runs N] [--models LIST]
           [--data FOLDER] [--graph NAME=GRAPH,FEATURES,WIDTH_IN,WIDTH_OUT]...

For each graph one layer of GraphSAGE, GCN and GAT (or of --models) is profiled on this machine at the sizes that its parts will have, planned for,
with every device and with the cpu alone, and run. Printed are the predicted makespan, the median of the rounds, how far the prediction is from it,
and the fastest and slowest round. "uncertain" are plans that npu-plan itself does not vouch for. "disturbed" are rows whose rounds, of the same plan,
lie more than 25 % apart: the machine changed meanwhile, and no prediction can be right for all of them. Neither is judged. Without --graph there are three random graphs: of the size of Flickr
(89,250 nodes, 899,756 edges, 500 features), of Cora (2,708 nodes, 10,556 edges, 1,433 features), and a larger one
(300,000 nodes, 3,000,000 edges, 128 features); and with --data those of cora.mtx, citeseer.mtx and 4elt.graph that are in
its folder, with random features. Profiles and graphs stay in the folder and are taken from there.
Exit status 1 if a prediction that is judged is off by more than --limit percent.
"""
import argparse
import array
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANDOM_GRAPHS = {
    "cora-size": (2708, 10556, 1433, 64),
    "flickr-size": (89250, 899756, 500, 256),
    "large": (300000, 3000000, 128, 64),
}
# file, width of the features, of the layer
REAL_GRAPHS = {"cora": ("cora.mtx", 1433, 64), "citeseer": ("citeseer.mtx", 3703, 64), "4elt": ("4elt.graph", 64, 64)}


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"gnn_prediction.py: {' '.join(map(str, command))} failed:\n{result.stderr.decode()}")
    return result.stdout


def size_of(plan):
    document = json.loads(plan.read_text())
    return document["graph_nodes"], document["graph_edges"]


def rows_of(graph):
    """The number of nodes, from the header of a Matrix Market or METIS file."""
    with open(graph, encoding="ascii") as file:
        for line in file:
            if not line.startswith("%") and line.strip():
                return int(line.split()[0])
    sys.exit(f"gnn_prediction.py: {graph} has no header")


def write_features(file, rows, width):
    """A .npy file of float32 numbers in [0, 1) from a fixed seed."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    source = random.Random(1)
    with open(file, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for _ in range(rows):
            out.write(array.array("f", (source.random() for _ in range(width))).tobytes())


def measure(kind, name, graph, features, width_in, width_out, options):
    folder = options.folder / name / kind
    folder.mkdir(parents=True, exist_ok=True)
    model, table = folder / "model.json", folder / "table.json"
    run(sys.executable, ROOT / "scripts/export_gnn.py", kind, "--features", width_in, width_out,
        "--activate-last", "-o", model)
    if not table.exists():
        run("npu-profile", model, "--graph", graph, "-k", options.parts, "--runs", options.runs, "--threads", options.threads,
            "-o", table)
    plans = {}
    for plan, devices in (("every device", []), ("cpu alone", ["--devices", "cpu"])):
        file = folder / (plan.split()[0] + ".json")
        run("npu-plan", graph, "--model", model, "--profile", table, "-k", options.parts, "--pad", "auto", *devices,
            "-o", file)
        plans[plan] = file
    nodes, edges = size_of(plans["every device"])  # readers add reverse edges and drop what is double
    times = {plan: [] for plan in plans}
    for _ in range(options.rounds):
        for plan, file in plans.items():
            # Short runs need more repetitions for a meaningful median.
            runs = 5 if json.loads(file.read_text())["makespan_ms"] > 100 else 25
            report = json.loads(run("npu-run", file, "--features", features, "--bench", runs, "--threads",
                                    options.threads))
            times[plan].append(report["bench"]["median_ms"])
    worst = 0
    for plan, file in plans.items():
        document = json.loads(file.read_text())
        predicted, measured = document["makespan_ms"], statistics.median(times[plan])
        error = 100 * (predicted / measured - 1)
        remarks = ["uncertain"] if "uncertain" in document else []
        if max(times[plan]) > 1.25 * min(times[plan]):
            remarks.append("disturbed")
        if not remarks:
            worst = max(worst, abs(error))
        print(f"{name:12} {kind:9} {nodes:8} {edges:9}  {plan:12} {document['k']:3} {predicted:10.1f} {measured:10.1f} "
              f"{error:+7.1f} %  {min(times[plan]):.1f}..{max(times[plan]):.1f}  {', '.join(remarks)}".rstrip(), flush=True)
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/gnn_prediction"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", default="2,4,8")
    parser.add_argument("--runs", type=int, default=5, help="of the profile")
    parser.add_argument("--models", default="graphsage,gcn,gat")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--graph", action="append", default=[])
    parser.add_argument("--limit", type=float, default=float("inf"))
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{ROOT / 'build/bin'}:{os.environ['PATH']}"
    graphs = []
    for text in options.graph:
        name, _, rest = text.partition("=")
        parts = rest.split(",")
        if not name or len(parts) != 4:
            sys.exit(f"gnn_prediction.py: --graph '{text}': expected NAME=GRAPH,FEATURES,WIDTH_IN,WIDTH_OUT")
        graphs.append((name, pathlib.Path(parts[0]).resolve(), pathlib.Path(parts[1]).resolve(), *parts[2:]))
    for name, (nodes, edges, width_in, width_out) in {} if graphs else RANDOM_GRAPHS.items():
        graph, features = options.folder / f"{name}.mtx", options.folder / f"{name}.x.npy"
        if not features.exists():
            run(ROOT / "scripts/make_graph.py", "--nodes", nodes, "--edges", edges, "--undirected", "-o", graph,
                "--features", width_in, "--features-file", features)
        graphs.append((name, graph, features, width_in, width_out))
    for name, (file, width_in, width_out) in REAL_GRAPHS.items():
        if options.data is None or not (options.data / file).exists():
            continue
        features = options.folder / f"{name}.x.npy"
        if not features.exists():
            write_features(features, rows_of(options.data / file), width_in)
        graphs.append((name, (options.data / file).resolve(), features, width_in, width_out))
    print(f"{'graph':12} {'model':9} {'nodes':>8} {'edges':>9}  {'plan':12} {'k':>3} {'predicted':>10} {'measured':>10} {'error':>9}"
          f"  rounds, ms")
    worst = max(measure(kind, *graph, options) for graph in graphs for kind in options.models.split(","))
    print(f"worst error {worst:.1f} %")
    return 0 if worst <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
