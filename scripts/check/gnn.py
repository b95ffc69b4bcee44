#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs plans of graph neural networks over real and random graphs and compares with PyTorch.

Usage: scripts/check/gnn.py [-d FOLDER] [--graph NAME=GRAPH[,FEATURES]]... [--parts LIST] [--threads N] [--target NAME]
                            [--build FOLDER]

GraphSAGE, GCN and GAT of two layers on each graph. A plan takes whatever is fastest, so the measured table is changed
to make it take other ways, too: with an NPU that is 30 times faster (pipelines with static, padded programs), and with
times that grow with the cube of the nodes (many parts, halo exchange between layers). Each plan is checked by
npu-plan --verify, run, and compared with PyTorch's result for the whole graph (rtol 1e-4, atol 1e-5). Without --graph
there is a random graph of 3,000 nodes and one of the size of Flickr. With --target trio a GPU takes part (npu-opencl(7)):
the table is changed so that it is 1000 times faster, too, and so that both it and the NPU are; links between all devices
are looked for, and the tolerances are 1e-3 and 1e-4. Needs Debian's python3-torch and python3-numpy and a release build.
Exit status 1 if a result differs.
"""
import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys

try:
    import numpy
except ImportError:
    sys.exit("gnn.py: needs Debian's python3-numpy and python3-torch; run it with /usr/bin/python3")

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = {"graphsage": [], "gcn": [], "gat": ["--heads", "2"]}
RANDOM_GRAPHS = {"random": (3000, 12000, 32), "flickr-size": (89250, 899756, 500)}


def run(*command, allowed=(0,)):
    result = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if result.returncode not in allowed:
        sys.exit(f"gnn.py: {' '.join(map(str, command))} failed:\n{result.stderr.decode()}")
    return result


def dense_features(file, target):
    """A .npy file of a MatrixMarket one, for the reference."""
    with open(file, encoding="ascii") as lines:
        header = next(line for line in lines if not line.startswith("%"))
        rows, columns, _ = map(int, header.split())
        entries = numpy.loadtxt(lines, ndmin=2)
    values = numpy.zeros((rows, columns), numpy.float32)
    values[entries[:, 0].astype(int) - 1, entries[:, 1].astype(int) - 1] = entries[:, 2]
    numpy.save(target, values)


def changed(table, way):
    table = json.loads(json.dumps(table))
    least = min(entry["n"] for entry in table["entries"])
    for entry in table["entries"]:
        factor = 1.0
        if way == f"fast {entry['device']}" or (way == "slow cpu" and entry["device"] != "cpu"):
            factor = 1 / 30 if entry["device"] == "npu" else 1 / 1000
        if way == "many parts":
            factor = (entry["n"] / least) ** 2 / (30 if entry["device"] == "npu" else 1)
        for key in ("ms", "whole_ms", "halo_ms"):
            if key in entry:
                entry[key] *= factor
    return table


def devices_of(segment):
    return [share["device"] for share in segment["devices"]]


def lacking_links(table):
    """Ordered pairs of devices between which nothing was measured."""
    devices = [device["name"] for device in table["devices"]]
    measured = {(link["from"], link["to"]) for link in table["transfers"] if link["bytes_per_s"] > 0}
    return [pair for pair in itertools.permutations(devices, 2) if pair not in measured]


def check(name, graph, features, options):
    folder = options.folder / name
    folder.mkdir(parents=True, exist_ok=True)
    dense = features
    if features.suffix == ".mtx":
        dense = folder / "x.npy"
        dense_features(features, dense)
    nodes, width = numpy.load(dense, mmap_mode="r").shape
    failures = 0
    rtol, atol = ("1e-4", "1e-5") if options.target == "host" else ("1e-3", "1e-4")
    for kind, extra in MODELS.items():
        model, reference, table = folder / f"{kind}.json", folder / f"{kind}.npy", folder / f"{kind}.table.json"
        run(sys.executable, ROOT / "scripts/export_gnn.py", kind, "--features", width, 64, 16, *extra, "-o", model,
            "--verify", reference, "--graph", graph, "--x", dense)
        if not table.exists():
            sizes = sorted({max(16, nodes // 8), max(32, nodes // 2)})
            run("npu-profile", model, "--nodes", ",".join(map(str, sizes)), "--degrees", "2,10", "--runs", 1,
                "--threads", options.threads, "--target", options.target, "-o", table)
        measured = json.loads(table.read_text())
        for pair in lacking_links(measured):
            print(f"{name:12} {kind:10} no link {pair[0]} -> {pair[1]}")
            failures += 1
        fast = [f"fast {device['name']}" for device in measured["devices"] if device["name"] != "cpu"]
        for way in ("measured", *fast, *(["slow cpu"] if len(fast) > 1 else []), "many parts"):
            profile, plan = folder / "profile.json", folder / "plan.json"
            profile.write_text(json.dumps(changed(measured, way)), encoding="utf-8")
            run("npu-plan", graph, "--model", model, "--profile", profile, "-k", options.parts, "--pad", "auto",
                "--target", options.target, "-o", plan)
            run("npu-plan", "--verify", plan)
            result = run("npu-run", plan, "--features", features, "--expect", reference, "--rtol", rtol, "--atol", atol,
                         "--threads", options.threads, allowed=(0, 4))
            document = json.loads(plan.read_text())
            used = [segments["segments"] for segments in document["peps"]]
            programs = document["compiles"]["count"]
            devices = sorted({device for way in used for segment in way for device in devices_of(segment)})
            difference = json.loads(result.stdout).get("comparison", {}).get("max_abs")
            failures += result.returncode != 0
            print(f"{name:12} {kind:10} {way:11} k {document['k']:3}  segments {min(map(len, used))}..{max(map(len, used))}  "
                  f"ways {len(used):2}  npu programs {programs:3}  {'+'.join(devices):12}  "
                  f"{'ok' if result.returncode == 0 else 'DIFFERS'}"
                  + (f"  max abs {difference:.1e}" if difference is not None else ""), flush=True)
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/check_gnn"))
    parser.add_argument("--graph", action="append", default=[])
    parser.add_argument("--parts", default="3,7")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--target", default="host")
    parser.add_argument("--build", default="build")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["PATH"] = f"{ROOT / options.build / 'bin'}:{os.environ['PATH']}"
    graphs = []
    for text in options.graph:
        name, separator, rest = text.partition("=")
        graph, _, features = rest.partition(",")
        if not separator or not graph:
            sys.exit(f"gnn.py: --graph '{text}': expected NAME=GRAPH[,FEATURES]")
        graph = pathlib.Path(graph).resolve()
        if features:
            features = pathlib.Path(features).resolve()
        else:
            features = options.folder / f"{name}.x.npy"
            lines = (line for line in graph.open(encoding="ascii") if not line.startswith("%"))
            count = int(next(lines).split()[0])
            numpy.save(features, numpy.random.default_rng(0).standard_normal((count, 24)).astype(numpy.float32))
        graphs.append((name, graph, features))
    for name, (nodes, edges, width) in {} if graphs else RANDOM_GRAPHS.items():
        graph, features = options.folder / f"{name}.mtx", options.folder / f"{name}.x.npy"
        if not features.exists():
            run(ROOT / "scripts/make_graph.py", "--nodes", nodes, "--edges", edges, "--undirected", "-o", graph,
                "--features", width, "--features-file", features)
        graphs.append((name, graph, features))
    failures = sum(check(*graph, options) for graph in graphs)
    print(f"{failures} of the results differ" if failures else "all results are PyTorch's")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
