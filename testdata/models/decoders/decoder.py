# SPDX-License-Identifier: Apache-2.0
"""Decoders with states, as templates over the tokens of a step (T) and the capacity of their caches (C): root mean
square norms, rotary positions, grouped heads, gates by silu, a table that is the head as well.

As a program it writes decoder_tiny, and what that computes by NumPy in float64; scripts/bench/llm.py makes larger ones.

Usage: decoder.py [FOLDER]    needs NumPy

decoder_tiny.json             the template, with npu.states and npu.generate
decoder_tiny.safetensors      random weights
decoder_tiny.outputs.safetensors
                              64 ids, the logits behind each, a prompt of 7 ids and the 57 ids that follow it greedily
"""

import json
import os
import sys
import typing

import numpy as np

EPSILON = 1e-6


class Shape(typing.NamedTuple):
    layers: int
    width: int
    heads: int
    kv_heads: int
    dim: int  # of a head
    gate: int
    vocabulary: int
    places: int  # positions that there are tables for
    base: float = 10000.0  # of the angles of rotary positions
    has_bias: bool = False  # of q, k and v


TINY = Shape(2, 64, 4, 2, 16, 64, 96, 256, base=1000.0)


def make_weights(s, normal):
    """By key; normal(scale, *shape) draws numbers of mean 0 in float32."""
    weights = {"embedding.weight": normal(0.7, s.vocabulary, s.width)}
    for i in range(s.layers):
        for name, rows, columns in (
            ("q", s.heads * s.dim, s.width), ("k", s.kv_heads * s.dim, s.width), ("v", s.kv_heads * s.dim, s.width),
            ("o", s.width, s.heads * s.dim), ("gate", s.gate, s.width), ("up", s.gate, s.width),
            ("down", s.width, s.gate),
        ):
            weights[f"layers.{i}.{name}.weight"] = normal(1.5 / columns**0.5, rows, columns)
            if s.has_bias and name in "qkv":
                weights[f"layers.{i}.{name}.bias"] = normal(0.1, rows)
        for name in ("norm_1", "norm_2"):
            weights[f"layers.{i}.{name}.weight"] = 1 + normal(0.1, s.width)
    # Of both signs, or the shared table would repeat the last id.
    weights["norm.weight"] = normal(1, s.width)
    half = s.dim // 2
    angles = np.arange(s.places)[:, None] * s.base ** (-np.arange(half) / half)[None, :]
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        weights[f"rotary.{name}"] = np.tile(function(angles), 2).astype(np.float32)
    return weights


class Document:
    """Nodes and mentions of the document."""

    def __init__(self, shape, weights):
        self.shape, self.weights = shape, weights
        self.nodes, self.shapes, self.dtypes, self.names = [], {}, {}, {}

    def mention(self, name):
        return {"name": name, "shape": self.shapes[name], "dtype": self.dtypes.get(name, "float32")}

    def weight(self, key):
        name = "p_" + key.replace(".", "_")
        self.shapes[name] = list(self.weights[key].shape)
        self.names[name] = key
        return name

    def node(self, name, op, inputs, shape, attrs=None, dtype="float32"):
        self.shapes[name], self.dtypes[name] = shape, dtype
        self.nodes.append(
            {"name": name, "op_type": op, "inputs": [self.mention(i) for i in inputs],
             "outputs": [self.mention(name)], "attrs": attrs or {}})
        return name

    def linear(self, name, x, key, rows):
        operands = [x, self.weight(key)]
        bias = key.replace(".weight", ".bias")
        if bias in self.weights:
            operands.append(self.weight(bias))
        return self.node(name, "aten.linear.default", operands, [1, "T", rows])

    def norm(self, name, x, key):
        shape, one = [1, "T", self.shape.width], [1, "T", 1]
        y = self.node(name + "_square", "aten.pow.Tensor_Scalar", [x], shape, {"exponent": 2})
        y = self.node(name + "_mean", "aten.mean.dim", [y], one, {"dim": [-1], "keepdim": True})
        y = self.node(name + "_above", "aten.add.Tensor", [y], one, {"other": EPSILON, "alpha": 1})
        y = self.node(name + "_root", "aten.rsqrt.default", [y], one)
        y = self.node(name + "_scaled", "aten.mul.Tensor", [x, y], shape)
        return self.node(name, "aten.mul.Tensor", [self.weight(key), y], shape)

    def heads(self, name, x, heads):
        dim = self.shape.dim
        y = self.node(name + "_view", "aten.view.default", [x], [1, "T", heads, dim], {"size": [1, "T", heads, dim]})
        return self.node(name + "_heads", "aten.transpose.int", [y], [1, heads, "T", dim], {"dim0": 1, "dim1": 2})

    def rotary(self, name, x, heads):
        dim = self.shape.dim
        shape, half = [1, heads, "T", dim], [1, heads, "T", dim // 2]
        low = self.node(name + "_low", "aten.slice.Tensor", [x], half, {"dim": 3, "start": 0, "end": dim // 2, "step": 1})
        high = self.node(name + "_high", "aten.slice.Tensor", [x], half, {"dim": 3, "start": dim // 2, "end": dim, "step": 1})
        high = self.node(name + "_neg", "aten.neg.default", [high], half)
        turned = self.node(name + "_turned", "aten.cat.default", [high, low], shape, {"dim": 3, "_tensor_list_sizes": [2]})
        a = self.node(name + "_cos", "aten.mul.Tensor", [x, "cos"], shape)
        b = self.node(name + "_sin", "aten.mul.Tensor", [turned, "sin"], shape)
        return self.node(name + "_rotated", "aten.add.Tensor", [a, b], shape, {"alpha": 1})


def make_document(name, s, weights):
    d = Document(s, weights)
    hidden, cache = [1, "T", s.width], [1, s.kv_heads, "C", s.dim]
    states = [f"{kind}{i}" for i in range(s.layers) for kind in "kv"]
    d.shapes.update({"input_ids": [1, "T"], "cache_position": ["T"], **{"cache_" + t: cache for t in states}})
    d.dtypes.update({"input_ids": "int64", "cache_position": "int64"})
    x = d.node("embedded", "aten.embedding.default", [d.weight("embedding.weight"), "input_ids"], hidden)
    for table in ("cos", "sin"):
        d.node(table, "aten.embedding.default", [d.weight("rotary." + table), "cache_position"], ["T", s.dim])
    d.node("mask", "npu.length_mask", ["cache_position"], [1, 1, "T", "C"],
           {"operands": "positions", "keys": "C", "causal": True, "window": -1}, "bool")
    for i in range(s.layers):
        of = lambda part: f"layer{i}_{part}"
        key = lambda part: f"layers.{i}.{part}.weight"
        y = d.norm(of("norm_1"), x, key("norm_1"))
        q = d.rotary(of("q"), d.heads(of("q"), d.linear(of("q"), y, key("q"), s.heads * s.dim), s.heads), s.heads)
        k = d.rotary(of("k"), d.heads(of("k"), d.linear(of("k"), y, key("k"), s.kv_heads * s.dim), s.kv_heads), s.kv_heads)
        v = d.heads(of("v"), d.linear(of("v"), y, key("v"), s.kv_heads * s.dim), s.kv_heads)
        k = d.node(f"k{i}", "aten.index_copy.default", [f"cache_k{i}", "cache_position", k], cache, {"dim": 2})
        v = d.node(f"v{i}", "aten.index_copy.default", [f"cache_v{i}", "cache_position", v], cache, {"dim": 2})
        a = d.node(of("attention"), "aten.scaled_dot_product_attention.default", [q, k, v, "mask"], [1, s.heads, "T", s.dim],
                   {"enable_gqa": True, "scale": s.dim**-0.5})
        a = d.node(of("joined_heads"), "aten.transpose.int", [a], [1, "T", s.heads, s.dim], {"dim0": 1, "dim1": 2})
        a = d.node(of("joined"), "aten.reshape.default", [a], hidden, {"shape": hidden})
        x = d.node(of("attended"), "aten.add.Tensor", [x, d.linear(of("o"), a, key("o"), s.width)], hidden, {"alpha": 1})
        y = d.norm(of("norm_2"), x, key("norm_2"))
        gate = d.node(of("silu"), "aten.silu.default", [d.linear(of("gate"), y, key("gate"), s.gate)], [1, "T", s.gate])
        y = d.node(of("gated"), "aten.mul.Tensor", [gate, d.linear(of("up"), y, key("up"), s.gate)], [1, "T", s.gate])
        x = d.node(of("out"), "aten.add.Tensor", [x, d.linear(of("down"), y, key("down"), s.width)], hidden, {"alpha": 1})
    x = d.norm("norm", x, "norm.weight")
    d.linear("logits", x, "embedding.weight", s.vocabulary)
    return {
        "model_name": name,
        "graph_inputs": [d.mention(n) for n in ["input_ids", "cache_position"] + ["cache_" + t for t in states]],
        "graph_outputs": [d.mention(n) for n in ["logits"] + states],
        "weights": [{"name": k, "shape": list(w.shape), "dtype": "float32"} for k, w in weights.items()],
        "weight_name_mapping": d.names,
        "nodes": d.nodes,
        "npu": {
            "version": 1,
            "weights_file": name + ".safetensors",
            "symbols": {"T": {"min": 1, "max": "C", "of": [["input_ids", 1]]},
                        "C": {"min": 1, "max": s.places, "of": [["cache_k0", 2]]}},
            "states": [{"name": t, "input": "cache_" + t, "output": t, "axis": 2} for t in states],
            "generate": {"tokens": "input_ids", "positions": "cache_position", "logits": "logits"},
        },
    }


def logits_of(s, weights, ids):
    """The whole sequence at once, in float64, without a cache."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    norm = lambda x, k: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * w[k]
    split = lambda x, heads: x.reshape(len(ids), heads, s.dim).transpose(1, 0, 2)
    cos, sin = w["rotary.cos"][: len(ids)], w["rotary.sin"][: len(ids)]
    turn = lambda x: x * cos + np.concatenate((-x[..., s.dim // 2:], x[..., : s.dim // 2]), -1) * sin
    x = w["embedding.weight"][ids]
    for i in range(s.layers):
        of = lambda name: w[f"layers.{i}.{name}.weight"].T
        y = norm(x, f"layers.{i}.norm_1.weight")
        q, k, v = turn(split(y @ of("q"), s.heads)), turn(split(y @ of("k"), s.kv_heads)), split(y @ of("v"), s.kv_heads)
        k, v = (t.repeat(s.heads // s.kv_heads, 0) for t in (k, v))
        scores = q @ k.transpose(0, 2, 1) * s.dim**-0.5
        scores[:, np.triu_indices(len(ids), 1)[0], np.triu_indices(len(ids), 1)[1]] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + (shares @ v).transpose(1, 0, 2).reshape(len(ids), -1) @ of("o")
        y = norm(x, f"layers.{i}.norm_2.weight")
        gate = y @ of("gate")
        x = x + (gate / (1 + np.exp(-gate)) * (y @ of("up"))) @ of("down")
    return norm(x, "norm.weight") @ w["embedding.weight"].T


def write_document(path, document):
    parts = []
    for key, value in document.items():
        lines = isinstance(value, list)
        text = "[\n" + ",\n".join(json.dumps(v) for v in value) + "\n]" if lines else json.dumps(value)
        parts.append(json.dumps(key) + ": " + text)
    with open(path, "w", encoding="utf-8") as file:
        file.write("{\n" + ",\n".join(parts) + "\n}\n")


def write_safetensors(path, tensors):
    header, size = {}, 0
    for name, array in tensors.items():
        kind = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [size, size + array.nbytes]}
        size += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).data)


def main():
    random = np.random.RandomState(14)
    weights = make_weights(TINY, lambda scale, *shape: random.normal(0, scale, shape).astype(np.float32))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    base = os.path.join(folder, "decoder_tiny")
    write_safetensors(base + ".safetensors", weights)
    write_document(base + ".json", make_document("decoder_tiny", TINY, weights))
    text = np.random.RandomState(7).randint(0, TINY.vocabulary, 64)
    prompt = text[:7]
    ids, margin = list(prompt), np.inf
    while len(ids) < 64:
        last = np.sort(logits_of(TINY, weights, np.array(ids))[-1])
        margin = min(margin, last[-1] - last[-2])
        ids.append(int(np.argmax(logits_of(TINY, weights, np.array(ids))[-1])))
    outputs = {"text": text.astype(np.int64), "logits": logits_of(TINY, weights, text).astype(np.float32),
               "prompt": prompt.astype(np.int64), "greedy": np.array(ids[7:], np.int64)}
    write_safetensors(base + ".outputs.safetensors", outputs)
    print("least distance of the two best logits:", margin)
    print("prompt:", *prompt)
    print("greedy:", *ids[7:])


if __name__ == "__main__":
    main()
