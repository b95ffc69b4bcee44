# SPDX-License-Identifier: Apache-2.0
"""Writes cached.onnx: a step of attention over a past, whose dimensions have names of their own, as exporters give them.

python3 testdata/onnx/cached.py        from the top of the repository; needs NumPy
"""

import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../scripts/check")

import numpy as np  # noqa: E402
from onnx_writer import graph, model, node, tensor, value  # noqa: E402

WIDTH = 8
rng = np.random.default_rng(7)
constants = [tensor(name, (rng.random((WIDTH, WIDTH)) - 0.5).astype(np.float32)) for name in ("wq", "wk", "wv")]
constants += [
    tensor("zero", np.array(0, np.int64)),
    tensor("one", np.array(1, np.int64)),
    tensor("behind", np.array([1], np.int64)),
]
nodes = [
    node("Shape", ["x"], ["x_shape"]),
    node("Gather", ["x_shape", "one"], ["count"]),
    node("Range", ["zero", "count", "one"], ["places"]),
    node("Cast", ["places"], ["numbers"], to=1),
    node("Unsqueeze", ["numbers", "behind"], ["column"]),
    node("Add", ["x", "column"], ["placed"]),
    node("MatMul", ["placed", "wq"], ["query"]),
    node("MatMul", ["placed", "wk"], ["key"]),
    node("MatMul", ["placed", "wv"], ["value"]),
    node("Concat", ["past_key", "key"], ["present_key"], axis=1),
    node("Concat", ["past_value", "value"], ["present_value"], axis=1),
    node("Transpose", ["present_key"], ["turned"], perm=[0, 2, 1]),
    node("MatMul", ["query", "turned"], ["scores"]),
    node("Add", ["scores", "mask"], ["masked"]),
    node("Softmax", ["masked"], ["shares"], axis=2),
    node("MatMul", ["shares", "present_value"], ["y"]),
]
inputs = [
    value("x", [1, "new", WIDTH]),
    value("mask", [1, 1, "total"]),
    value("past_key", [1, "past_0", WIDTH]),
    value("past_value", [1, "past_1", WIDTH]),
]
outputs = [value("y", [1, "new", WIDTH]), value("present_key", [1, "p2", WIDTH]), value("present_value", [1, "p3", WIDTH])]
with open(f"{HERE}/cached.onnx", "wb") as file:
    file.write(model(graph(nodes, inputs, outputs, constants), 17))
