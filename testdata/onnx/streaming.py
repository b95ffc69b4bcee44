# SPDX-License-Identifier: Apache-2.0
"""Writes a streaming detector as ONNX files of such models are: what a step leaves to the next one is an input and an
output, and no cache. Beside it what seven frames give, computed here by NumPy.

voice.onnx          frames of 8 samples behind a window of 4, a convolution, an LSTM whose cells are one tensor, a
                    counter, and a running mean of what is said
voice_in.safetensors, voice_out.safetensors    seven frames, and the outputs of seven steps

python3 testdata/onnx/streaming.py        from the top of the repository; needs NumPy
"""

import json
import os
import struct
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/../../scripts/check")

import numpy as np  # noqa: E402
from onnx_writer import graph, model, node, tensor, value  # noqa: E402

FRAME, WINDOW, CHANNELS, CELLS, STEPS = 8, 4, 6, 5, 7
RNG = np.random.default_rng(3)
WEIGHTS = {
    "filters": RNG.uniform(-0.7, 0.7, (CHANNELS, 1, 4)).astype(np.float32),
    "w": RNG.uniform(-0.7, 0.7, (1, 4 * CELLS, CHANNELS)).astype(np.float32),
    "r": RNG.uniform(-0.7, 0.7, (1, 4 * CELLS, CELLS)).astype(np.float32),
    "b": RNG.uniform(-0.7, 0.7, (1, 8 * CELLS)).astype(np.float32),
    "head": RNG.uniform(-1, 1, (CELLS, 1)).astype(np.float32),
}
INTEGERS = {"zero": [0], "one": [1], "two": [2], "last": [-WINDOW], "end": [2**31], "axis": [1], "length": [2]}


def write_model():
    nodes = [
        node("Concat", ["context", "frame"], ["samples"], axis=1),
        node("Slice", ["samples", "last", "end", "axis"], ["contextN"]),
        node("Unsqueeze", ["samples", "axis"], ["signal"]),
        node("Conv", ["signal", "filters"], ["bands"], strides=[4]),
        node("Relu", ["bands"], ["positive"]),
        node("ReduceMean", ["positive"], ["mean_band"], axes=[2], keepdims=0),
        node("Unsqueeze", ["mean_band", "zero"], ["sequence"]),
        node("Slice", ["state", "zero", "one", "zero"], ["h"]),
        node("Slice", ["state", "one", "two", "zero"], ["c"]),
        node("LSTM", ["sequence", "w", "r", "b", "", "h", "c"], ["", "h_next", "c_next"], hidden_size=CELLS),
        node("Concat", ["h_next", "c_next"], ["stateN"], axis=0),
        node("Squeeze", ["h_next", "zero"], ["cells"]),
        node("MatMul", ["cells", "head"], ["score"]),
        node("Sigmoid", ["score"], ["speech"]),
        node("Add", ["count", "one"], ["countN"]),
        node("Cast", ["countN"], ["number"], to=1),
        node("Sub", ["speech", "mean"], ["distance"]),
        node("Div", ["distance", "number"], ["part"]),
        node("Add", ["mean", "part"], ["meanN"]),
        node("Greater", ["speech", "mean"], ["above"]),
        node("Cast", ["above"], ["loud"], to=1),
    ]
    constants = [tensor(name, array) for name, array in WEIGHTS.items()]
    constants += [tensor(name, np.array(content, np.int64)) for name, content in INTEGERS.items()]
    states = [
        ("context", "contextN", ["N", WINDOW], "float32"),
        ("state", "stateN", [2, "N", CELLS], "float32"),
        ("count", "countN", [1], "int64"),
        ("mean", "meanN", ["N", 1], "float32"),
    ]
    inputs = [value("frame", ["N", FRAME])] + [value(name, shape, dtype) for name, _, shape, dtype in states]
    outputs = [value("speech", ["N", 1]), value("loud", ["N", 1])]
    outputs += [value(name, shape, dtype) for _, name, shape, dtype in states]
    with open(f"{HERE}/voice.onnx", "wb") as file:
        file.write(model(graph(nodes, inputs, outputs, constants), 16))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expected(frames):
    context, h, c = np.zeros(WINDOW), np.zeros(CELLS), np.zeros(CELLS)
    count, mean, speech, loud = 0, 0.0, [], []
    w, r, b = (WEIGHTS[name][0].astype(np.float64) for name in "wrb")
    for frame in frames:
        samples = np.concatenate([context, frame[0]])
        context = samples[-WINDOW:]
        windows = samples.reshape(-1, 4)
        bands = np.maximum(windows @ WEIGHTS["filters"][:, 0].T.astype(np.float64), 0).mean(0)
        # ONNX's order: input, output, forget, cell.
        gates = w @ bands + r @ h + b[: 4 * CELLS] + b[4 * CELLS :]
        i, o, f, g = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        said = sigmoid(h @ WEIGHTS["head"][:, 0].astype(np.float64))
        loud.append([[float(said > mean)]])
        count += 1
        mean += (said - mean) / count
        speech.append([[said]])
    return {"speech": np.array(speech, np.float32), "loud": np.array(loud, np.float32)}


def write_tensors(name, tensors):
    header, data = {}, b""
    for key, array in tensors.items():
        stored = array.tobytes()
        header[key] = {"dtype": "F32", "shape": array.shape, "data_offsets": [len(data), len(data) + len(stored)]}
        data += stored
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(f"{HERE}/{name}.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


write_model()
frames = RNG.uniform(-1, 1, (STEPS, 1, FRAME)).astype(np.float32)
write_tensors("voice_in", {"frame": frames})
write_tensors("voice_out", expected(frames))
