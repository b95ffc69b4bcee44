#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times plans of npu-plan beside PyTorch on the same graphs, features and weights.

Usage: scripts/bench/gnn_vs_torch.py [-d FOLDER] [--threads N] [--rounds N] [--parts LIST] [--graphs LIST] [--models LIST]
           [--data FOLDER] [--precisions LIST] [--limit X]

One layer of GraphSAGE, GCN and GAT (or of --models) on random graphs (--graphs cora-size,flickr-size,large; flickr-size
alone if nothing is said) and, with --data, on cora.mtx, citeseer.mtx and 4elt.graph in its folder (cora, citeseer, 4elt).
Each program takes its turn in every round. PyTorch runs the layer
  eager      stage by stage as the document has them, with what depends on the graph alone (counts of edges, norms),
  CSR        with a sparse product in CSR form in place of gather, message and sum; counts and norms are made before,
  index_add  with index_add_ of gathered rows; counts and norms are made before,
  reordered  as the faster of CSR and index_add, but with the product before the aggregation where that is narrower;
npu-run runs it as npu-plan chose it from a table that npu-profile measures first (--precisions f32,bf16: with features of
each), and with everything on the cpu. Printed are medians over the rounds in ms, their ratio to the best of eager, CSR and
index_add, and to `reordered`, and the largest difference to PyTorch's result over the largest result.
Exit status 1 if a ratio of float32 to that best is above --limit. Needs Debian's python3-torch and python3-numpy and a
release build.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import time

from blas_core import tell_openblas

tell_openblas()
try:
    import numpy
    import torch
except ImportError:
    sys.exit("gnn_vs_torch.py: needs Debian's python3-torch and python3-numpy: apt-get install python3-torch "
             "python3-numpy, then run it with /usr/bin/python3")
from gnn_prediction import RANDOM_GRAPHS, REAL_GRAPHS, ROOT, rows_of, run, write_features

MODELS = ("graphsage", "gcn", "gat")
PLANS = {"plan": [], "cpu": ["--devices", "cpu"]}


def weights_of(file):
    data = file.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name.removeprefix("layers.0.")] = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


def read_edges(file):
    """Sources and targets, both ways, each once and without loops, in order of the targets."""
    if file.suffix == ".graph":
        lines = [line for line in file.read_text().splitlines() if not line.startswith("%")]
        pairs = [(v, int(word) - 1) for v, line in enumerate(lines[1:]) for word in line.split()]
        edges = numpy.array(pairs, dtype=numpy.int64)
    else:
        with open(file, encoding="ascii") as text:
            symmetric = "symmetric" in text.readline()
        edges = numpy.loadtxt(file, dtype=numpy.int64, comments="%", usecols=(0, 1))[1:] - 1
        if symmetric:
            edges = numpy.concatenate([edges, edges[edges[:, 0] != edges[:, 1]][:, ::-1]])
    edges = edges[numpy.lexsort((edges[:, 0], edges[:, 1]))]
    return torch.from_numpy(edges[:, 0].copy()), torch.from_numpy(edges[:, 1].copy())


class Layer:
    """A graph with features and weights; the forms of a layer on it."""

    def __init__(self, x, source, target, weights):
        self.x, self.source, self.target, self.w = x, source, target, weights
        self.count = len(x)
        self.degree = torch.bincount(target, minlength=self.count).float()
        self.column = self.degree.clamp(min=1).unsqueeze(1)
        self.inverse = (self.degree + 1).rsqrt()
        self.norm = self.inverse[source] * self.inverse[target]
        self.own = (self.inverse * self.inverse).unsqueeze(1)
        self.starts = torch.zeros(self.count + 1, dtype=torch.int64)
        self.starts[1:] = self.degree.long().cumsum(0)
        self.ones, self.norms = self.matrix(torch.ones(len(source))), self.matrix(self.norm)

    def matrix(self, values):
        return torch.sparse_csr_tensor(self.starts, self.source, values, (self.count, self.count))

    def added(self, x, weights=None):
        rows = x.index_select(0, self.source)
        if weights is not None:
            rows = rows * weights.unsqueeze(1)
        return torch.zeros(self.count, x.shape[1]).index_add_(0, self.target, rows)

    def graphsage(self, form):
        linear, w = torch.nn.functional.linear, self.w
        left, bias, right = w["lin_l.weight"], w["lin_l.bias"], w["lin_r.weight"]
        if form.startswith("reordered"):
            y = linear(self.x, left)
            total = self.ones @ y if form.endswith("CSR") else self.added(y)
            return (total / self.column + bias + linear(self.x, right)).relu()
        if form == "eager":
            number = torch.zeros(self.count).index_add_(0, self.target, torch.ones(len(self.target)))
            mean = self.added(self.x) / number.clamp(min=1).unsqueeze(1)
        else:
            mean = (self.ones @ self.x if form == "CSR" else self.added(self.x)) / self.column
        return (linear(mean, left, bias) + linear(self.x, right)).relu()

    def gcn(self, form):
        linear, w = torch.nn.functional.linear, self.w
        if form.startswith("reordered"):
            y = linear(self.x, w["lin.weight"])
            total = self.norms @ y if form.endswith("CSR") else self.added(y, self.norm)
            return (total + y * self.own + w["bias"]).relu()
        if form == "eager":
            inverse = (self.degree + 1).rsqrt()
            norm = inverse.index_select(0, self.source) * inverse.index_select(0, self.target)
            total = self.added(self.x, norm) + self.x * (inverse * inverse).unsqueeze(1)
        else:
            total = (self.norms @ self.x if form == "CSR" else self.added(self.x, self.norm)) + self.x * self.own
        return linear(total, w["lin.weight"], w["bias"]).relu()

    def gat(self, form):
        h = torch.nn.functional.linear(self.x, self.w["lin.weight"])
        source = (h * self.w["att_src"]).sum(1).index_select(0, self.source)
        target = (h * self.w["att_dst"]).sum(1).index_select(0, self.target)
        score = torch.nn.functional.leaky_relu(source + target, 0.2)
        most = torch.zeros(self.count).scatter_reduce(0, self.target, score, "amax", include_self=False)
        power = (score - most.index_select(0, self.target)).exp()
        total = torch.zeros(self.count).index_add_(0, self.target, power)
        alpha = power / total.index_select(0, self.target)
        summed = self.matrix(alpha) @ h if form.endswith("CSR") else self.added(h, alpha)
        return torch.nn.functional.elu(summed + self.w["bias"])


def median_ms(function):
    """The result, and the median of enough calls for a second."""
    times = []
    begin = time.perf_counter()
    while not times or (time.perf_counter() - begin < 1 and len(times) < 25):
        start = time.perf_counter()
        result = function()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times), result


def prepare_graphs(options):
    graphs = {}
    for name, (nodes, edges, width_in, width_out) in RANDOM_GRAPHS.items():
        if name in options.graphs:
            graph, features = options.folder / f"{name}.mtx", options.folder / f"{name}.x.npy"
            if not features.exists():
                run(ROOT / "scripts/make_graph.py", "--nodes", nodes, "--edges", edges, "--undirected", "-o", graph,
                    "--features", width_in, "--features-file", features)
            graphs[name] = (graph, features, width_in, width_out)
    for name, (file, width_in, width_out) in REAL_GRAPHS.items():
        if name in options.graphs:
            if options.data is None:
                sys.exit(f"gnn_vs_torch.py: graph {name}: --data names the folder with {file}")
            features = options.folder / f"{name}.x.npy"
            if not features.exists():
                write_features(features, rows_of(options.data / file), width_in)
            graphs[name] = ((options.data / file).resolve(), features, width_in, width_out)
    unknown = set(options.graphs) - set(graphs)
    if unknown:
        sys.exit(f"gnn_vs_torch.py: unknown graphs: {', '.join(sorted(unknown))}")
    return graphs


def prepare_plans(kind, name, graph, width_in, width_out, options):
    """Plan files by precision and kind of plan."""
    folder = options.folder / name / kind
    folder.mkdir(parents=True, exist_ok=True)
    run(ROOT / "scripts/export_gnn.py", kind, "--features", width_in, width_out, "--activate-last", "-o",
        folder / "model.json")
    plans = {}
    for precision in options.precisions:
        table = folder / f"table.{precision}.json"
        precise = [] if precision == "f32" else ["--precision", precision]
        if not table.exists():
            run("npu-profile", folder / "model.json", "--graph", graph, "-k", options.parts, "--quick", "--threads",
                options.threads, *precise, "-o", table)
        for plan, devices in PLANS.items():
            file = folder / f"{plan}.{precision}.json"
            run("npu-plan", graph, "--model", folder / "model.json", "--profile", table, "-k", options.parts, *devices, "-o",
                file)
            plans[f"{plan} {precision}"] = file
    return folder, plans


def compare(kind, name, graph, features, width_in, width_out, options):
    folder, plans = prepare_plans(kind, name, graph, width_in, width_out, options)
    layer = Layer(torch.from_numpy(numpy.load(features)), *read_edges(graph), weights_of(folder / "model.safetensors"))
    layer.w = {key: value.reshape(-1) if key.startswith("att_") else value for key, value in layer.w.items()}
    forms = ["eager", "CSR", "index_add"]
    other = ["reordered CSR", "reordered index_add"] if kind != "gat" and width_out < width_in else []
    times = {key: [] for key in [*forms, *other, *plans]}
    largest = {}
    function = getattr(layer, kind)
    with torch.no_grad():
        expected = function("eager")
        for form in [*forms, *other]:
            function(form)
        for _ in range(options.rounds):
            for form in [*forms, *other]:
                ms, _ = median_ms(lambda form=form: function(form))
                times[form].append(ms)
            for plan, file in plans.items():
                report = json.loads(run("npu-run", file, "--features", features, "--bench", 5 if times["eager"][-1] > 100 else 25,
                                        "--threads", options.threads, "--outputs", folder / "out.npy"))
                times[plan].append(report["bench"]["median_ms"])
                found = torch.from_numpy(numpy.load(folder / "out.npy"))
                largest[plan] = ((found - expected).abs().max() / expected.abs().max()).item()
    medians = {key: statistics.median(values) for key, values in times.items()}
    best = min(medians[form] for form in forms)
    reordered = min((medians[form] for form in other), default=best)
    print(f"{name:12} {kind:10}" + "".join(f" {medians[form]:9.2f}" for form in forms) + f" {reordered:9.2f}")
    for plan, file in plans.items():
        document = json.loads(file.read_text())
        ms = medians[plan]
        print(f"  npu-run, {plan:12} {ms:9.2f} ms  /eager {ms / medians['eager']:.3f}  /CSR {ms / medians['CSR']:.3f}  /best {ms / best:.3f}"
              f"  /reordered {ms / reordered:.3f}  k {document['k']}  predicted {document['makespan_ms']:.2f}"
              f"  difference {largest[plan]:.1e}", flush=True)
    return medians["plan f32"] / best if "plan f32" in plans else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/gnn_vs_torch"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--parts", default="2,4")
    parser.add_argument("--graphs", type=lambda text: text.split(","), default=["flickr-size"])
    parser.add_argument("--models", type=lambda text: text.split(","), default=["graphsage"])
    parser.add_argument("--precisions", type=lambda text: text.split(","), default=["f32"])
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--limit", type=float, default=float("inf"))
    options = parser.parse_args()
    if set(options.models) - set(MODELS):
        parser.error(f"--models: expected some of {', '.join(MODELS)}")
    torch.set_num_threads(options.threads)
    os.environ["PATH"] = f"{ROOT / 'build/bin'}:{os.environ['PATH']}"
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(f"{'graph':12} {'model':10} {'eager ms':>9} {'CSR ms':>9} {'index_add':>9} {'reordered':>9}")
    worst = max(compare(kind, name, *graph, options) for name, graph in prepare_graphs(options).items() for kind in options.models)
    print(f"worst ratio of a float32 plan to the best of eager, CSR and index_add: {worst:.3f}")
    return 0 if worst <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
