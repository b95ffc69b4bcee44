# SPDX-License-Identifier: Apache-2.0
"""Writes text_encoder.onnx: a small BERT with a batch and a length that vary, as exporters write it.

python3 testdata/onnx/text_encoder.py        from the top of the repository; needs NumPy
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../scripts/check")

import numpy as np  # noqa: E402
from onnx_writer import graph, model, node, tensor, value  # noqa: E402


class TextEncoder:
    """The bytes of a model, with random weights."""

    def __init__(self, vocabulary, longest, width, heads, inner, layers, seed=11):
        self.width, self.heads = width, heads
        self.rng = np.random.default_rng(seed)
        self.constants, self.nodes = [], []
        for name, content in {"zero": 0, "one": 1, "rows": [1, 2], "heads": [0, 0, heads, -1], "joined": [0, 0, width]}.items():
            self.constants.append(tensor(name, np.array(content, np.int64)))
        for name, content in {"scale": (width // heads) ** -0.5, "least": -1e9, "whole": 1}.items():
            self.constants.append(tensor(name, np.array(content, np.float32)))
        x = self.embedded(vocabulary, longest)
        mask = self.add("Unsqueeze", ["attention_mask", "rows"], "mask_rows")
        blocked = self.add("Sub", ["whole", self.add("Cast", [mask], "mask_numbers", to=1)], "blocked")
        self.add("Mul", [blocked, "least"], "mask")
        for i in range(layers):
            x = self.layer(x, f"layer{i}", inner, "last_hidden_state" if i == layers - 1 else f"layer{i}.result")

    def weight(self, name, *shape):
        values = self.rng.random(shape, np.float32) - np.float32(0.5)
        self.constants.append(tensor(name, values * np.float32((3 / self.width) ** 0.5)))
        return name

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(node(op, inputs, [output], **attributes))
        return output

    def norm(self, x, name, result):
        self.constants.append(tensor(f"{name}.weight", np.ones(self.width, np.float32)))
        return self.add("LayerNormalization", [x, f"{name}.weight", self.weight(f"{name}.bias", self.width)], result, axis=-1)

    def linear(self, x, name, inner, outer):
        product = self.add("MatMul", [x, self.weight(f"{name}.weight", inner, outer)], f"{name}.product")
        return self.add("Add", [product, self.weight(f"{name}.bias", outer)], name)

    def embedded(self, vocabulary, longest):
        self.add("Shape", ["input_ids"], "shape")
        self.add("Gather", ["shape", "one"], "count")
        self.add("Range", ["zero", "count", "one"], "places")
        self.add("Gather", [self.weight("words", vocabulary, self.width), "input_ids"], "word")
        self.add("Gather", [self.weight("positions", longest, self.width), "places"], "place")
        return self.norm(self.add("Add", ["word", "place"], "sum"), "embedding_norm", "embedded")

    def layer(self, x, name, inner, result):
        parts = {}
        for part in ("query", "key", "value"):
            flat = self.linear(x, f"{name}.{part}", self.width, self.width)
            split = self.add("Reshape", [flat, "heads"], f"{name}.{part}.heads")
            turn = [0, 2, 3, 1] if part == "key" else [0, 2, 1, 3]
            parts[part] = self.add("Transpose", [split], f"{name}.{part}.turned", perm=turn)
        scores = self.add("MatMul", [parts["query"], parts["key"]], f"{name}.products")
        scores = self.add("Add", [self.add("Mul", [scores, "scale"], f"{name}.scaled"), "mask"], f"{name}.scores")
        context = self.add("MatMul", [self.add("Softmax", [scores], f"{name}.shares", axis=-1), parts["value"]], f"{name}.context")
        turned = self.add("Transpose", [context], f"{name}.context.turned", perm=[0, 2, 1, 3])
        attended = self.linear(self.add("Reshape", [turned, "joined"], f"{name}.attended"), f"{name}.output", self.width, self.width)
        x = self.norm(self.add("Add", [attended, x], f"{name}.attention_sum"), f"{name}.attention_norm", f"{name}.normed")
        up = self.add("Gelu", [self.linear(x, f"{name}.up", self.width, inner)], f"{name}.activated")
        down = self.linear(up, f"{name}.down", inner, self.width)
        return self.norm(self.add("Add", [down, x], f"{name}.sum"), f"{name}.norm", result)

    def write(self, path):
        inputs = [value("input_ids", ["batch", "length"], "int64"), value("attention_mask", ["batch", "length"], "int64")]
        outputs = [value("last_hidden_state", ["batch", "length", self.width])]
        with open(path, "wb") as file:
            file.write(model(graph(self.nodes, inputs, outputs, self.constants), 20))


if __name__ == "__main__":
    TextEncoder(vocabulary=64, longest=128, width=16, heads=2, inner=32, layers=1).write(f"{HERE}/text_encoder.onnx")
