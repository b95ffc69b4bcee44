# SPDX-License-Identifier: Apache-2.0
"""The layers of gnn_stages.py on a whole graph, in plain PyTorch and independent of any document."""

import numpy
import torch

from export import safetensors


def read_tensors(path):
    """The tensors of a safetensors file, or the one of an .npy file, as PyTorch's."""
    if path.endswith(".npy"):
        return {"x": torch.from_numpy(numpy.load(path))}
    names = {"F32": numpy.float32, "I64": numpy.int64, "I32": numpy.int32}
    result = {}
    for key, kind, shape, data in safetensors.read(path):
        result[key] = torch.from_numpy(numpy.frombuffer(data, dtype=names[kind]).reshape(shape).copy())
    return result


def read_edges(path):
    """[2, m] of a .mtx or safetensors graph, by the rules of npu-plan(1)."""
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


def with_remaining_loops(source, target, nodes):
    """The edges with exactly one loop for each node."""
    others = source != target
    every = torch.arange(nodes)
    return torch.cat([source[others], every]), torch.cat([target[others], every])


def by_target(rows, target, nodes, reduce):
    """Rows of edges added up, or the largest of each column; 0 for a node without edges."""
    index = target.reshape(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
    zeros = torch.zeros(nodes, *rows.shape[1:])
    if reduce == "sum":
        return zeros.scatter_add(0, index, rows)
    return zeros.scatter_reduce(0, index, rows, "amax", include_self=False)


def layer_result(layer, x, source, target, w):
    """What a layer computes before its activation; w: its weights by key."""
    nodes = len(x)
    weight = {key.removeprefix(layer.key + "."): value for key, value in w.items() if key.startswith(layer.key + ".")}
    degree = by_target(torch.ones(len(target)), target, nodes, "sum")
    if layer.kind == "graphsage":
        mean = by_target(x[source], target, nodes, "max" if layer.aggregate == "max" else "sum")
        if layer.aggregate != "max":
            mean = mean / degree.clamp(min=1).unsqueeze(1)
        return mean @ weight["lin_l.weight"].t() + weight["lin_l.bias"] + x @ weight["lin_r.weight"].t()
    if layer.kind == "gcn":
        inverse = (degree + 1 if layer.adds_loops else degree).rsqrt()
        total = by_target(x[source] * (inverse[source] * inverse[target]).unsqueeze(1), target, nodes, "sum")
        if layer.adds_loops:
            total += x * (inverse * inverse).unsqueeze(1)
        return total @ weight["lin.weight"].t() + weight["bias"]
    h = (x @ weight["lin.weight"].t()).reshape(nodes, layer.heads, -1)
    score = (h * weight["att_src"]).sum(-1)[source] + (h * weight["att_dst"]).sum(-1)[target]
    score = torch.nn.functional.leaky_relu(score, 0.2)
    power = (score - by_target(score, target, nodes, "max")[target]).exp()
    alpha = power / by_target(power, target, nodes, "sum")[target]
    return by_target(h[source] * alpha.unsqueeze(2), target, nodes, "sum").reshape(nodes, -1) + weight["bias"]


def activate(name, x):
    """A function of ACTIVATIONS in gnn_stages.py, by PyTorch."""
    if name == "none":
        return x
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return function(x, dim=-1) if name.endswith("softmax") else function(x)


def reference_of_network(args, network):
    """The whole graph by the network itself."""
    _, edges = read_edges(args.graph)
    tensors = read_tensors(args.x)
    with torch.no_grad():
        numpy.save(args.verify, network(tensors.get("x", next(iter(tensors.values()))), edges).numpy())


def reference(args, layers, weights):
    """The whole graph in plain PyTorch, stage by stage, independent of the document."""
    w = {key: torch.tensor(values, dtype=torch.float32).reshape(shape) for key, shape, values in weights}
    _, (source, target) = read_edges(args.graph)
    tensors = read_tensors(args.x)
    x = tensors.get("x", next(iter(tensors.values())))
    if args.remaining_loops:
        source, target = with_remaining_loops(source, target, len(x))
    with torch.no_grad():
        for layer in layers:
            x = activate(layer.activation, layer_result(layer, x, source, target, w))
    numpy.save(args.verify, x.numpy())
