#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what npu-plan predicts for graph neural networks with what npu-run measures.

Usage: scripts/bench/gnn_prediction.py [-d FOLDER] [--threads N] [--rounds N] [--parts LIST] [--runs N] [--models LIST]
           [--data FOLDER] [--marks N [--busy]] [--graph NAME=GRAPH,FEATURES,WIDTH_IN,WIDTH_OUT]...

For each graph one layer of GraphSAGE, GCN and GAT (or of --models) is profiled on this machine at the sizes that its parts will have, planned for,
with every device and with each one alone that can have all of it, and run. Printed are the predicted makespan, the median of the rounds, how far the prediction is from it,
and the fastest and slowest round. "uncertain" are plans that npu-plan itself does not vouch for. "disturbed" are rows whose rounds, of the same plan,
lie more than 25 % apart: the machine changed meanwhile, and no prediction can be right for all of them. Neither is judged. Without --graph there are three random graphs: of the size of Flickr
(89,250 nodes, 899,756 edges, 500 features), of Cora (2,708 nodes, 10,556 edges, 1,433 features), and a larger one
(300,000 nodes, 3,000,000 edges, 128 features); and with --data those of cora.mtx, citeseer.mtx and 4elt.graph that are in
its folder, with random features. Profiles and graphs stay in the folder and are taken from there. Where npu-plan asks for disturbed points to be
measured again, that is done, up to three times. The last column is the time over that of the fastest single device.
With --marks N nothing is run: every profile is measured N times anew, and printed is how many of the plans are vouched for; with --busy beside a
busy loop on one core, where none should be.
Exit status 1 if a prediction that is judged is off by more than --limit percent, if a plan that is not disturbed is more than 5 % slower than a
single device, or if --marks counts fewer than 19 of 20 (with --busy: any).
"""
import argparse
import array
import contextlib
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


MOST_OVER_SINGLE = 1.05
DEVICES = ("cpu", "npu")
REMEASURED = 3


def is_vouched_for(plan):
    return "uncertain" not in json.loads(plan.read_text())


class Case:
    """A layer of one kind over one graph: its model, and how it is profiled and planned for."""

    def __init__(self, kind, name, graph, features, width_in, width_out, options):
        self.kind, self.name, self.graph, self.features, self.options = kind, name, graph, features, options
        self.folder = options.folder / name / kind
        self.folder.mkdir(parents=True, exist_ok=True)
        self.model = self.folder / "model.json"
        run(sys.executable, ROOT / "scripts/export_gnn.py", kind, "--features", width_in, width_out, "--activate-last",
            "-o", self.model)

    def profile(self, table):
        run("npu-profile", self.model, "--graph", self.graph, "-k", self.options.parts, "--runs", self.options.runs,
            "--threads", self.options.threads, "-o", table)

    def plan(self, table, devices=()):
        """The plan's file; nothing if these devices have none."""
        file = self.folder / ("-".join(devices or ["every"]) + ".json")
        command = ["npu-plan", self.graph, "--model", self.model, "--profile", table, "-k", self.options.parts, "--pad", "auto",
                   *(["--devices", *devices] if devices else []), "-o", file]
        result = subprocess.run([str(part) for part in command], capture_output=True, check=False)
        if result.returncode != 0 and not devices:
            sys.exit(f"gnn_prediction.py: npu-plan failed:\n{result.stderr.decode()}")
        return file if result.returncode == 0 else None

    def run_ms(self, plan):
        # Short runs need more repetitions for a meaningful median.
        runs = 5 if json.loads(plan.read_text())["makespan_ms"] > 100 else 25
        report = json.loads(run("npu-run", plan, "--features", self.features, "--bench", runs, "--threads",
                                self.options.threads))
        return report["bench"]["median_ms"]


def measure(case):
    table = case.folder / "table.json"
    if not table.exists():
        case.profile(table)
    plans = {"every device": case.plan(table)}
    for _ in range(REMEASURED):
        if json.loads(plans["every device"].read_text()).get("disturbed", 0) == 0:
            break
        case.profile(table)  # takes over all points but the disturbed ones
        plans["every device"] = case.plan(table)
    for device in DEVICES:
        if (file := case.plan(table, [device])) is not None:
            plans[f"{device} alone"] = file
    nodes, edges = size_of(plans["every device"])  # readers add reverse edges and drop what is double
    times = {plan: [] for plan in plans}
    for _ in range(case.options.rounds):
        for plan, file in plans.items():
            times[plan].append(case.run_ms(file))
    alone = [plan for plan in plans if plan != "every device"]
    best = min(alone, key=lambda plan: statistics.median(times[plan]), default=None)
    worst, slow = 0, 0
    for plan, file in plans.items():
        document = json.loads(file.read_text())
        predicted, measured = document["makespan_ms"], statistics.median(times[plan])
        error = 100 * (predicted / measured - 1)
        remarks = ["uncertain"] if "uncertain" in document else []
        is_disturbed = max(times[plan]) > 1.25 * min(times[plan])
        if is_disturbed:
            remarks.append("disturbed")
        if not remarks:
            worst = max(worst, abs(error))
        ratio = statistics.median(a / b for a, b in zip(times[plan], times[best])) if best else 1
        if plan == "every device" and not is_disturbed and ratio > MOST_OVER_SINGLE:
            slow += 1
            remarks.append("SLOWER THAN " + best.upper())
        print(f"{case.name:12} {case.kind:9} {nodes:8} {edges:9}  {plan:12} {document['k']:3} {predicted:10.1f} {measured:10.1f} "
              f"{error:+7.1f} %  {min(times[plan]):6.1f}..{max(times[plan]):<6.1f} {ratio:5.2f}  {', '.join(remarks)}".rstrip(), flush=True)
    return worst, slow


def count_marks(case):
    """How many of the plans by tables that are measured anew npu-plan vouches for."""
    table = case.folder / "fresh.json"
    count = 0
    for _ in range(case.options.marks):
        table.unlink(missing_ok=True)
        case.profile(table)
        count += is_vouched_for(case.plan(table))
    print(f"{case.name:12} {case.kind:9} {count:3} of {case.options.marks} plans are vouched for", flush=True)
    return count


@contextlib.contextmanager
def busy_core(wanted):
    """A loop that never waits, on the first core."""
    if not wanted:
        yield
        return
    loop = subprocess.Popen([sys.executable, "-c", "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


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
    parser.add_argument("--marks", type=int)
    parser.add_argument("--busy", action="store_true")
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
    cases = (Case(kind, *graph, options) for graph in graphs for kind in options.models.split(","))
    if options.marks is not None:
        with busy_core(options.busy):
            counts = [count_marks(case) for case in cases]
        total = sum(counts)
        return 0 if (total == 0 if options.busy else total >= 0.95 * options.marks * len(counts)) else 1
    print(f"{'graph':12} {'model':9} {'nodes':>8} {'edges':>9}  {'plan':12} {'k':>3} {'predicted':>10} {'measured':>10} {'error':>9}"
          f"  rounds, ms     single")
    results = [measure(case) for case in cases]
    worst, slow = max(error for error, _ in results), sum(count for _, count in results)
    print(f"worst error {worst:.1f} %, slower than a single device: {slow}")
    return 0 if worst <= options.limit and slow == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
