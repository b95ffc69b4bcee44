#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a graph neural network as a staged document (npu-ir(5), kind "staged") with random weights.

  scripts/export_gnn.py graphsage --features 500 256 -o sage.json
  scripts/export_gnn.py gcn --features 1433 64 7 -o gcn.json
  scripts/export_gnn.py gat --features 34 8 4 --heads 2 -o gat.json

--features gives the width of the input and of every layer's output, so there are as many layers as numbers less
one. Every layer but the last ends in an activation; with --activate-last the last one does, too. GraphSAGE has the
seven stages gather, message, reduce_sum, reduce_count, normalize, transform and activate (a mean over the in-edges
through one linear map, the node's own features through another); GCN has six, with self loops and symmetric
normalisation by the in-degrees of the whole graph; GAT has seven, its heads side by side. NAME.safetensors beside the
document holds the weights, which depend on --seed alone. Needs no package beyond Python's own; --verify FILE needs
PyTorch and is the reference: it computes the whole graph with index_select and index_add_ and writes the result.

  scripts/export_gnn.py graphsage --features 500 256 -o sage.json \\
      --verify reference.npy --graph flickr.edges.safetensors --x flickr.x.npy
"""
import argparse
import json
import math
import os
import random
import struct
import sys


def tensor(name, *shape, dtype="float32"):
    return {"name": name, "shape": list(shape), "dtype": dtype}


class Stage:
    """Collects the nodes of one stage."""

    def __init__(self, layer, number, name):
        self.prefix = f"s{number}_"
        self.entry = {"id": number, "layer": layer, "name": name}
        self.inputs, self.nodes, self.weights, self.mapping = [], [], [], {}

    def read(self, value):
        if value["name"] not in [known["name"] for known in self.inputs]:
            self.inputs.append(value)
        return value

    def weight(self, name, key, *shape):
        value = tensor(name, *shape)
        self.weights.append(dict(value, name=key))
        self.mapping[name] = key
        return value

    def op(self, op_type, inputs, shape, dtype="float32", name=None, **attrs):
        name = name or f"{self.prefix}{len(self.nodes)}"
        result = tensor(name, *shape, dtype=dtype)
        self.nodes.append({"name": name, "op_type": op_type, "inputs": inputs, "outputs": [result], "attrs": attrs})
        return result

    def finish(self, outputs):
        self.entry["ir"] = {
            "model_name": self.entry["name"], "graph_inputs": self.inputs, "graph_outputs": outputs,
            "weights": self.weights, "weight_name_mapping": self.mapping, "nodes": self.nodes}
        return self.entry


class Model:
    def __init__(self, seed):
        self.seed = seed
        self.stages, self.weights = [], []

    def matrix(self, key, rows, columns):
        generator = random.Random(f"{self.seed}/{key}")
        bound = 1 / math.sqrt(columns)
        self.weights.append((key, [rows, columns], [generator.uniform(-bound, bound) for _ in range(rows * columns)]))

    def vector(self, key, *shape):
        generator = random.Random(f"{self.seed}/{key}")
        self.weights.append((key, list(shape), [generator.uniform(-0.1, 0.1) for _ in range(math.prod(shape))]))

    def add(self, stage, *outputs):
        self.stages.append(stage.finish(list(outputs)))


def ends(stage, which):
    edges = stage.read(tensor("edge_index", 2, "m", dtype="int64"))
    return stage.op("aten.select.int", [edges], ["m"], "int64", dim=0, index=which)


def scatter_sum(stage, source, shape, name=None):
    zeros = stage.op("aten.zeros.default", [], shape, size=shape, dtype="torch.float32")
    return stage.op("aten.index_add.default", [zeros, ends(stage, 1), source], shape, name=name, dim=0)


def activation(model, layer, number, value, width, active, op):
    stage = Stage(layer, number, "activate")
    stage.read(value)
    op_type = op if active else "aten.alias.default"
    model.add(stage, stage.op(op_type, [value], ["n", width], name="out"))


def graphsage(model, layer, fin, fout, active):
    x = tensor("x", "n", fin)
    s = Stage(layer, 1, "gather")
    s.read(x)
    gathered = s.op("aten.embedding.default", [x, ends(s, 0)], ["m", fin], name="gathered")
    model.add(s, gathered)
    s = Stage(layer, 2, "message")
    message = s.op("aten.alias.default", [s.read(gathered)], ["m", fin], name="message")
    model.add(s, message)
    s = Stage(layer, 3, "reduce_sum")
    total = scatter_sum(s, s.read(message), ["n", fin], "sum")
    model.add(s, total)
    s = Stage(layer, 4, "reduce_count")
    ones = s.op("aten.ones.default", [], ["m"], size=["m"], dtype="torch.float32")
    count = scatter_sum(s, ones, ["n"], "count")
    model.add(s, count)
    s = Stage(layer, 5, "normalize")
    s.read(total)
    least = s.op("aten.clamp.default", [s.read(count)], ["n"], min=1.0)
    column = s.op("aten.unsqueeze.default", [least], ["n", 1], dim=1)
    mean = s.op("aten.div.Tensor", [total, column], ["n", fin], name="mean")
    model.add(s, mean)
    s = Stage(layer, 6, "transform")
    s.read(mean)
    s.read(x)
    key = f"layers.{layer - 1}"
    model.matrix(f"{key}.lin_l.weight", fout, fin)
    model.vector(f"{key}.lin_l.bias", fout)
    model.matrix(f"{key}.lin_r.weight", fout, fin)
    left = s.op("aten.linear.default", [mean, s.weight("p_lin_l_weight", f"{key}.lin_l.weight", fout, fin),
                                        s.weight("p_lin_l_bias", f"{key}.lin_l.bias", fout)], ["n", fout])
    right = s.op("aten.linear.default", [x, s.weight("p_lin_r_weight", f"{key}.lin_r.weight", fout, fin)], ["n", fout])
    hidden = s.op("aten.add.Tensor", [left, right], ["n", fout], name="hidden")
    model.add(s, hidden)
    activation(model, layer, 7, hidden, fout, active, "aten.relu.default")


def gcn(model, layer, fin, fout, active):
    x = tensor("x", "n", fin)
    s = Stage(layer, 1, "compute_norm")
    degree = s.read(tensor("degree", "n"))
    loops = s.op("aten.add.Tensor", [degree], ["n"], other=1.0)
    inverse = s.op("aten.rsqrt.default", [loops], ["n"], name="inverse")
    a = s.op("aten.index_select.default", [inverse, ends(s, 0)], ["m"], dim=0)
    b = s.op("aten.index_select.default", [inverse, ends(s, 1)], ["m"], dim=0)
    norm = s.op("aten.mul.Tensor", [a, b], ["m"], name="norm")
    model.add(s, inverse, norm)
    s = Stage(layer, 2, "gather")
    s.read(x)
    gathered = s.op("aten.embedding.default", [x, ends(s, 0)], ["m", fin], name="gathered")
    model.add(s, gathered)
    s = Stage(layer, 3, "message")
    column = s.op("aten.unsqueeze.default", [s.read(norm)], ["m", 1], dim=1)
    message = s.op("aten.mul.Tensor", [s.read(gathered), column], ["m", fin], name="message")
    model.add(s, message)
    s = Stage(layer, 4, "reduce_sum")
    total = scatter_sum(s, s.read(message), ["n", fin])
    square = s.op("aten.mul.Tensor", [s.read(inverse), inverse], ["n"])
    column = s.op("aten.unsqueeze.default", [square], ["n", 1], dim=1)
    own = s.op("aten.mul.Tensor", [s.read(x), column], ["n", fin])
    summed = s.op("aten.add.Tensor", [total, own], ["n", fin], name="sum")
    model.add(s, summed)
    s = Stage(layer, 5, "transform")
    key = f"layers.{layer - 1}"
    model.matrix(f"{key}.lin.weight", fout, fin)
    model.vector(f"{key}.bias", fout)
    hidden = s.op("aten.linear.default", [s.read(summed), s.weight("p_lin_weight", f"{key}.lin.weight", fout, fin),
                                          s.weight("p_bias", f"{key}.bias", fout)], ["n", fout], name="hidden")
    model.add(s, hidden)
    activation(model, layer, 6, hidden, fout, active, "aten.relu.default")


def gat(model, layer, fin, fout, active, heads):
    width = fout // heads
    key = f"layers.{layer - 1}"
    s = Stage(layer, 1, "linear")
    model.matrix(f"{key}.lin.weight", fout, fin)
    model.vector(f"{key}.att_src", heads, width)
    model.vector(f"{key}.att_dst", heads, width)
    model.vector(f"{key}.bias", fout)
    flat = s.op("aten.linear.default", [s.read(tensor("x", "n", fin)),
                                        s.weight("p_lin_weight", f"{key}.lin.weight", fout, fin)], ["n", fout])
    h = s.op("aten.view.default", [flat], ["n", heads, width], name="h", size=["n", heads, width])
    model.add(s, h)
    s = Stage(layer, 2, "gather_both")
    s.read(h)
    source = s.op("aten.index_select.default", [h, ends(s, 0)], ["m", heads, width], name="h_src", dim=0)
    scores = []
    for side, which in (("src", 0), ("dst", 1)):
        weight = s.weight(f"p_att_{side}", f"{key}.att_{side}", heads, width)
        product = s.op("aten.mul.Tensor", [h, weight], ["n", heads, width])
        score = s.op("aten.sum.dim_IntList", [product], ["n", heads], dim=[-1])
        scores.append(s.op("aten.index_select.default", [score, ends(s, which)], ["m", heads], name=f"score_{side}", dim=0))
    model.add(s, source, *scores)
    s = Stage(layer, 3, "attention_score")
    both = s.op("aten.add.Tensor", [s.read(scores[0]), s.read(scores[1])], ["m", heads])
    score = s.op("aten.leaky_relu.default", [both], ["m", heads], name="score", negative_slope=0.2)
    model.add(s, score)
    s = Stage(layer, 4, "attention_softmax")
    s.read(score)
    # exp(a - b) is the same for every b of a target; a clamp keeps it finite without a maximum by target.
    limited = s.op("aten.clamp.default", [score], ["m", heads], min=-60.0, max=60.0)
    power = s.op("aten.exp.default", [limited], ["m", heads])
    total = scatter_sum(s, power, ["n", heads])
    back = s.op("aten.index_select.default", [total, ends(s, 1)], ["m", heads], dim=0)
    alpha = s.op("aten.div.Tensor", [power, back], ["m", heads], name="alpha")
    model.add(s, alpha)
    s = Stage(layer, 5, "message_weighted")
    s.read(source)
    column = s.op("aten.unsqueeze.default", [s.read(alpha)], ["m", heads, 1], dim=2)
    message = s.op("aten.mul.Tensor", [source, column], ["m", heads, width], name="message")
    model.add(s, message)
    s = Stage(layer, 6, "reduce_sum")
    total = scatter_sum(s, s.read(message), ["n", heads, width])
    flat = s.op("aten.view.default", [total], ["n", fout], size=["n", fout])
    bias = s.weight("p_bias", f"{key}.bias", fout)
    hidden = s.op("aten.add.Tensor", [flat, bias], ["n", fout], name="hidden")
    model.add(s, hidden)
    activation(model, layer, 7, hidden, fout, active, "aten.elu.default")


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for key, shape, values in tensors:
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * len(values)]}
        offset += 4 * len(values)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, values in tensors:
            file.write(struct.pack(f"<{len(values)}f", *values))


def read_tensors(path):
    """The tensors of a safetensors file, or the one of an .npy file, as PyTorch's."""
    import numpy
    import torch
    if path.endswith(".npy"):
        return {"x": torch.from_numpy(numpy.load(path))}
    names = {"F32": numpy.float32, "I64": numpy.int64, "I32": numpy.int32}
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    result = {}
    for key, entry in json.loads(data[8:8 + length]).items():
        if key != "__metadata__":
            begin, end = entry["data_offsets"]
            array = numpy.frombuffer(data[8 + length + begin:8 + length + end], dtype=names[entry["dtype"]])
            result[key] = torch.from_numpy(array.reshape(entry["shape"]).copy())
    return result


def read_edges(path):
    """[2, m] of a .mtx or safetensors graph, by the rules of npu-plan(1)."""
    import torch
    if path.endswith(".mtx"):
        with open(path, encoding="ascii") as file:
            symmetric = "symmetric" in file.readline()
            line = file.readline()
            while line.startswith("%"):
                line = file.readline()
            nodes = int(line.split()[0])
            pairs = [[int(word) - 1 for word in line.split()[:2]] for line in file if line.strip()]
        if symmetric:
            pairs += [[b, a] for a, b in pairs if a != b]
        return nodes, torch.tensor(pairs, dtype=torch.int64).t().contiguous()
    tensors = read_tensors(path)
    if "edge_index" in tensors:
        return int(tensors["edge_index"].max()) + 1, tensors["edge_index"].long()
    offsets = tensors["indptr"].long()
    nodes = len(offsets) - 1
    sources = torch.repeat_interleave(torch.arange(nodes), offsets[1:] - offsets[:-1])
    return nodes, torch.stack([sources, tensors["indices"].long()])


def reference(args, weights):
    """The whole graph in plain PyTorch, stage by stage, independent of the document."""
    import numpy
    import torch
    w = {key: torch.tensor(values, dtype=torch.float32).reshape(shape) for key, shape, values in weights}
    nodes, (source, target) = read_edges(args.graph)
    tensors = read_tensors(args.x)
    x = tensors.get("x", next(iter(tensors.values())))
    count = len(args.features) - 1
    with torch.no_grad():
        degree = torch.zeros(nodes).index_add_(0, target, torch.ones(len(target)))
        for layer in range(count):
            key = f"layers.{layer}"
            active = layer + 1 < count or args.activate_last
            if args.model == "graphsage":
                total = torch.zeros(nodes, x.shape[1]).index_add_(0, target, x.index_select(0, source))
                mean = total / degree.clamp(min=1).unsqueeze(1)
                x = mean @ w[f"{key}.lin_l.weight"].t() + w[f"{key}.lin_l.bias"] + x @ w[f"{key}.lin_r.weight"].t()
                x = x.relu() if active else x
            elif args.model == "gcn":
                inverse = (degree + 1).rsqrt()
                norm = (inverse[source] * inverse[target]).unsqueeze(1)
                total = torch.zeros(nodes, x.shape[1]).index_add_(0, target, x[source] * norm)
                total += x * (inverse * inverse).unsqueeze(1)
                x = total @ w[f"{key}.lin.weight"].t() + w[f"{key}.bias"]
                x = x.relu() if active else x
            else:
                h = (x @ w[f"{key}.lin.weight"].t()).reshape(nodes, args.heads, -1)
                score = (h * w[f"{key}.att_src"]).sum(-1)[source] + (h * w[f"{key}.att_dst"]).sum(-1)[target]
                power = torch.nn.functional.leaky_relu(score, 0.2).clamp(-60, 60).exp()
                total = torch.zeros(nodes, args.heads).index_add_(0, target, power)
                alpha = (power / total[target]).unsqueeze(2)
                x = torch.zeros_like(h).index_add_(0, target, h[source] * alpha).reshape(nodes, -1) + w[f"{key}.bias"]
                x = torch.nn.functional.elu(x) if active else x
    numpy.save(args.verify, x.numpy())


def with_torch():
    """Another python3 may stand before the distribution's; look for one that has PyTorch."""
    try:
        import numpy  # noqa: F401
        import torch  # noqa: F401
    except ImportError:
        for other in (os.environ.get("PYTHON"), "/usr/bin/python3"):
            if other and os.access(other, os.X_OK) and "NPU_EXPORT_GNN_RETRY" not in os.environ:
                os.environ["NPU_EXPORT_GNN_RETRY"] = "1"
                os.execv(other, [other] + sys.argv)
        sys.exit("export_gnn.py: --verify needs PyTorch and numpy; install Debian's python3-torch, or set PYTHON")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["graphsage", "gcn", "gat"])
    parser.add_argument("--features", type=int, nargs="+", required=True, metavar="F")
    parser.add_argument("--heads", type=int, default=1, help="heads of GAT [1]")
    parser.add_argument("--activate-last", action="store_true", help="an activation after the last layer, too")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", required=True, help="document to write")
    parser.add_argument("--verify", metavar="FILE.npy", help="write PyTorch's result for --graph and --x")
    parser.add_argument("--graph", help=".mtx or .safetensors")
    parser.add_argument("--x", help=".npy or .safetensors")
    args = parser.parse_args()
    if len(args.features) < 2 or min(args.features) < 1:
        parser.error("--features needs at least two positive numbers")
    if args.model == "gat" and any(width % args.heads for width in args.features[1:]):
        parser.error("every output width of GAT is a multiple of --heads")
    if args.verify and not (args.graph and args.x):
        parser.error("--verify needs --graph and --x")
    if args.verify:
        with_torch()
    model = Model(args.seed)
    count = len(args.features) - 1
    for layer in range(1, count + 1):
        fin, fout = args.features[layer - 1:layer + 1]
        active = layer < count or args.activate_last
        if args.model == "gat":
            gat(model, layer, fin, fout, active, args.heads)
        else:
            {"graphsage": graphsage, "gcn": gcn}[args.model](model, layer, fin, fout, active)
    stem = os.path.splitext(args.output)[0]
    write_safetensors(stem + ".safetensors", model.weights)
    document = {"npu": {"version": 1, "kind": "staged", "weights_file": os.path.basename(stem) + ".safetensors"},
                "model_name": args.model, "layers": count, "stages": model.stages}
    with open(args.output, "w", encoding="utf-8") as file:
        stages = ",\n".join(json.dumps(stage, separators=(", ", ": ")) for stage in document.pop("stages"))
        head = json.dumps(document, separators=(", ", ": "))
        file.write(head[:-1] + ',\n"stages": [\n' + stages + "\n]}\n")
    if args.verify:
        reference(args, model.weights)


if __name__ == "__main__":
    main()
