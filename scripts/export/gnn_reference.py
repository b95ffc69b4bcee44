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


def reference(args, weights):
    """The whole graph in plain PyTorch, stage by stage, independent of the document."""
    w = {key: torch.tensor(values, dtype=torch.float32).reshape(shape) for key, shape, values in weights}
    nodes, (source, target) = read_edges(args.graph)
    if args.remaining_loops:
        others = source != target
        every = torch.arange(nodes)
        source, target = torch.cat([source[others], every]), torch.cat([target[others], every])
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
                if args.aggregate == "max":
                    index = target.unsqueeze(1).expand(-1, x.shape[1])
                    mean = torch.zeros_like(x).scatter_reduce(0, index, x[source], "amax", include_self=False)
                x = mean @ w[f"{key}.lin_l.weight"].t() + w[f"{key}.lin_l.bias"] + x @ w[f"{key}.lin_r.weight"].t()
                x = x.relu() if active else x
            elif args.model == "gcn":
                inverse = (degree if args.remaining_loops else degree + 1).rsqrt()
                norm = (inverse[source] * inverse[target]).unsqueeze(1)
                total = torch.zeros(nodes, x.shape[1]).index_add_(0, target, x[source] * norm)
                if not args.remaining_loops:
                    total += x * (inverse * inverse).unsqueeze(1)
                x = total @ w[f"{key}.lin.weight"].t() + w[f"{key}.bias"]
                x = x.relu() if active else x
            else:
                h = (x @ w[f"{key}.lin.weight"].t()).reshape(nodes, args.heads, -1)
                score = (h * w[f"{key}.att_src"]).sum(-1)[source] + (h * w[f"{key}.att_dst"]).sum(-1)[target]
                score = torch.nn.functional.leaky_relu(score, 0.2)
                index = target.unsqueeze(1).expand(-1, args.heads)
                most = torch.zeros(nodes, args.heads).scatter_reduce(0, index, score, "amax", include_self=False)
                power = (score - most[target]).exp()
                total = torch.zeros(nodes, args.heads).index_add_(0, target, power)
                alpha = (power / total[target]).unsqueeze(2)
                x = torch.zeros_like(h).index_add_(0, target, h[source] * alpha).reshape(nodes, -1) + w[f"{key}.bias"]
                x = torch.nn.functional.elu(x) if active else x
    numpy.save(args.verify, x.numpy())
