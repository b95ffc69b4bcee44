# SPDX-License-Identifier: Apache-2.0
"""Writes decoder_tiny: a decoder of two layers with states, as a template over the tokens of a step (T) and the capacity
of its caches (C), and what it computes by NumPy in float64.

Usage: decoder_tiny.py [FOLDER]    needs NumPy

decoder_tiny.json             the template, with npu.states and npu.generate
decoder_tiny.safetensors      random weights
decoder_tiny.outputs.safetensors
                              64 ids, the logits behind each, a prompt of 7 ids and the 57 ids that follow it greedily
"""

import json
import os
import sys

import numpy as np

WIDTH, HEADS, KV_HEADS, DIM, GATE, VOCABULARY, LAYERS, PLACES = 64, 4, 2, 16, 64, 96, 2, 256
EPSILON = 1e-6


def make_weights():
    random = np.random.RandomState(14)
    normal = lambda *shape, scale: random.normal(0, scale, shape).astype(np.float32)
    weights = {"embedding.weight": normal(VOCABULARY, WIDTH, scale=0.7)}
    for i in range(LAYERS):
        for name, rows, columns in (
            ("q", HEADS * DIM, WIDTH), ("k", KV_HEADS * DIM, WIDTH), ("v", KV_HEADS * DIM, WIDTH),
            ("o", WIDTH, HEADS * DIM), ("gate", GATE, WIDTH), ("up", GATE, WIDTH), ("down", WIDTH, GATE),
        ):
            weights[f"layers.{i}.{name}.weight"] = normal(rows, columns, scale=1.5 / columns**0.5)
        for name in ("norm_1", "norm_2"):
            weights[f"layers.{i}.{name}.weight"] = 1 + normal(WIDTH, scale=0.1)
    # Of both signs, or the shared table would repeat the last id.
    weights["norm.weight"] = normal(WIDTH, scale=1)
    angles = np.arange(PLACES)[:, None] * 1000.0 ** (-np.arange(DIM // 2) / (DIM // 2))[None, :]
    for name, function in (("cos", np.cos), ("sin", np.sin)):
        weights[f"rotary.{name}"] = np.tile(function(angles), 2).astype(np.float32)
    return weights


class Document:
    """Nodes and mentions of the document."""

    def __init__(self, weights):
        self.weights, self.nodes, self.shapes, self.dtypes, self.names = weights, [], {}, {}, {}

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
        return self.node(name, "aten.linear.default", [x, self.weight(key)], [1, "T", rows])

    def norm(self, name, x, key):
        shape, one = [1, "T", WIDTH], [1, "T", 1]
        y = self.node(name + "_square", "aten.pow.Tensor_Scalar", [x], shape, {"exponent": 2})
        y = self.node(name + "_mean", "aten.mean.dim", [y], one, {"dim": [-1], "keepdim": True})
        y = self.node(name + "_above", "aten.add.Tensor", [y], one, {"other": EPSILON, "alpha": 1})
        y = self.node(name + "_root", "aten.rsqrt.default", [y], one)
        y = self.node(name + "_scaled", "aten.mul.Tensor", [x, y], shape)
        return self.node(name, "aten.mul.Tensor", [self.weight(key), y], shape)

    def heads(self, name, x, heads):
        y = self.node(name + "_view", "aten.view.default", [x], [1, "T", heads, DIM], {"size": [1, "T", heads, DIM]})
        return self.node(name + "_heads", "aten.transpose.int", [y], [1, heads, "T", DIM], {"dim0": 1, "dim1": 2})

    def rotary(self, name, x, heads):
        shape, half = [1, heads, "T", DIM], [1, heads, "T", DIM // 2]
        low = self.node(name + "_low", "aten.slice.Tensor", [x], half, {"dim": 3, "start": 0, "end": DIM // 2, "step": 1})
        high = self.node(name + "_high", "aten.slice.Tensor", [x], half, {"dim": 3, "start": DIM // 2, "end": DIM, "step": 1})
        high = self.node(name + "_neg", "aten.neg.default", [high], half)
        turned = self.node(name + "_turned", "aten.cat.default", [high, low], shape, {"dim": 3, "_tensor_list_sizes": [2]})
        a = self.node(name + "_cos", "aten.mul.Tensor", [x, "cos"], shape)
        b = self.node(name + "_sin", "aten.mul.Tensor", [turned, "sin"], shape)
        return self.node(name + "_rotated", "aten.add.Tensor", [a, b], shape, {"alpha": 1})


def make_document(weights):
    d = Document(weights)
    hidden, cache = [1, "T", WIDTH], [1, KV_HEADS, "C", DIM]
    states = [f"{kind}{i}" for i in range(LAYERS) for kind in "kv"]
    d.shapes.update({"input_ids": [1, "T"], "cache_position": ["T"], **{"cache_" + s: cache for s in states}})
    d.dtypes.update({"input_ids": "int64", "cache_position": "int64"})
    x = d.node("embedded", "aten.embedding.default", [d.weight("embedding.weight"), "input_ids"], hidden)
    for name in ("cos", "sin"):
        d.node(name, "aten.embedding.default", [d.weight("rotary." + name), "cache_position"], ["T", DIM])
    d.node("mask", "npu.length_mask", ["cache_position"], [1, 1, "T", "C"],
           {"operands": "positions", "keys": "C", "causal": True, "window": -1}, "bool")
    for i in range(LAYERS):
        of = lambda name: f"layer{i}_{name}"
        key = lambda name: f"layers.{i}.{name}.weight"
        y = d.norm(of("norm_1"), x, key("norm_1"))
        q = d.rotary(of("q"), d.heads(of("q"), d.linear(of("q"), y, key("q"), HEADS * DIM), HEADS), HEADS)
        k = d.rotary(of("k"), d.heads(of("k"), d.linear(of("k"), y, key("k"), KV_HEADS * DIM), KV_HEADS), KV_HEADS)
        v = d.heads(of("v"), d.linear(of("v"), y, key("v"), KV_HEADS * DIM), KV_HEADS)
        k = d.node(f"k{i}", "aten.index_copy.default", [f"cache_k{i}", "cache_position", k], cache, {"dim": 2})
        v = d.node(f"v{i}", "aten.index_copy.default", [f"cache_v{i}", "cache_position", v], cache, {"dim": 2})
        a = d.node(of("attention"), "aten.scaled_dot_product_attention.default", [q, k, v, "mask"], [1, HEADS, "T", DIM],
                   {"enable_gqa": True, "scale": DIM**-0.5})
        a = d.node(of("joined_heads"), "aten.transpose.int", [a], [1, "T", HEADS, DIM], {"dim0": 1, "dim1": 2})
        a = d.node(of("joined"), "aten.reshape.default", [a], hidden, {"shape": hidden})
        x = d.node(of("attended"), "aten.add.Tensor", [x, d.linear(of("o"), a, key("o"), WIDTH)], hidden, {"alpha": 1})
        y = d.norm(of("norm_2"), x, key("norm_2"))
        gate = d.node(of("silu"), "aten.silu.default", [d.linear(of("gate"), y, key("gate"), GATE)], [1, "T", GATE])
        y = d.node(of("gated"), "aten.mul.Tensor", [gate, d.linear(of("up"), y, key("up"), GATE)], [1, "T", GATE])
        x = d.node(of("out"), "aten.add.Tensor", [x, d.linear(of("down"), y, key("down"), WIDTH)], hidden, {"alpha": 1})
    x = d.norm("norm", x, "norm.weight")
    d.linear("logits", x, "embedding.weight", VOCABULARY)
    return {
        "model_name": "decoder_tiny",
        "graph_inputs": [d.mention(n) for n in ["input_ids", "cache_position"] + ["cache_" + s for s in states]],
        "graph_outputs": [d.mention(n) for n in ["logits"] + states],
        "weights": [{"name": k, "shape": list(w.shape), "dtype": "float32"} for k, w in weights.items()],
        "weight_name_mapping": d.names,
        "nodes": d.nodes,
        "npu": {
            "version": 1,
            "weights_file": "decoder_tiny.safetensors",
            "symbols": {"T": {"min": 1, "max": "C", "of": [["input_ids", 1]]},
                        "C": {"min": 1, "max": PLACES, "of": [["cache_k0", 2]]}},
            "states": [{"name": s, "input": "cache_" + s, "output": s, "axis": 2} for s in states],
            "generate": {"tokens": "input_ids", "positions": "cache_position", "logits": "logits"},
        },
    }


def logits_of(weights, ids):
    """The whole sequence at once, in float64, without a cache."""
    w = {k: v.astype(np.float64) for k, v in weights.items()}
    norm = lambda x, k: x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * w[k]
    split = lambda x, heads: x.reshape(len(ids), heads, DIM).transpose(1, 0, 2)
    cos, sin = w["rotary.cos"][: len(ids)], w["rotary.sin"][: len(ids)]
    turn = lambda x: x * cos + np.concatenate((-x[..., DIM // 2:], x[..., : DIM // 2]), -1) * sin
    x = w["embedding.weight"][ids]
    for i in range(LAYERS):
        of = lambda name: w[f"layers.{i}.{name}.weight"].T
        y = norm(x, f"layers.{i}.norm_1.weight")
        q, k, v = turn(split(y @ of("q"), HEADS)), turn(split(y @ of("k"), KV_HEADS)), split(y @ of("v"), KV_HEADS)
        k, v = (t.repeat(HEADS // KV_HEADS, 0) for t in (k, v))
        scores = q @ k.transpose(0, 2, 1) * DIM**-0.5
        scores[:, np.triu_indices(len(ids), 1)[0], np.triu_indices(len(ids), 1)[1]] = -np.inf
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + (shares @ v).transpose(1, 0, 2).reshape(len(ids), -1) @ of("o")
        y = norm(x, f"layers.{i}.norm_2.weight")
        gate = y @ of("gate")
        x = x + (gate / (1 + np.exp(-gate)) * (y @ of("up"))) @ of("down")
    return norm(x, "norm.weight") @ w["embedding.weight"].T


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).tobytes()
        kind = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    weights = make_weights()
    base = os.path.join(folder, "decoder_tiny")
    write_safetensors(base + ".safetensors", weights)
    document = make_document(weights)
    with open(base + ".json", "w", encoding="utf-8") as file:
        parts = []
        for key, value in document.items():
            lines = isinstance(value, list)
            text = "[\n" + ",\n".join(json.dumps(v) for v in value) + "\n]" if lines else json.dumps(value)
            parts.append(json.dumps(key) + ": " + text)
        file.write("{\n" + ",\n".join(parts) + "\n}\n")
    text = np.random.RandomState(7).randint(0, VOCABULARY, 64)
    prompt = text[:7]
    ids, margin = list(prompt), np.inf
    while len(ids) < 64:
        last = np.sort(logits_of(weights, np.array(ids))[-1])
        margin = min(margin, last[-1] - last[-2])
        ids.append(int(np.argmax(logits_of(weights, np.array(ids))[-1])))
    outputs = {"text": text.astype(np.int64), "logits": logits_of(weights, text).astype(np.float32),
               "prompt": prompt.astype(np.int64), "greedy": np.array(ids[7:], np.int64)}
    write_safetensors(base + ".outputs.safetensors", outputs)
    print("least distance of the two best logits:", margin)
    print("prompt:", *prompt)
    print("greedy:", *ids[7:])


if __name__ == "__main__":
    main()
