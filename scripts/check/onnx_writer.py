# SPDX-License-Identifier: Apache-2.0
"""Writes ONNX models and tensors, as the scripts that check the frontend need them.

Only what those need: attributes that are numbers, texts, lists of them, tensors or graphs.
"""

import struct

import numpy as np

TYPES = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
}


def varint(value):
    value &= (1 << 64) - 1
    data = b""
    while value >= 128:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def tensor(name, array):
    array = np.asarray(array)
    message = b"".join(number(1, extent) for extent in array.shape)
    message += number(2, TYPES[array.dtype.name]) + data(8, name)
    return message + data(9, np.ascontiguousarray(array).tobytes())


def value(name, shape, dtype="float32"):
    """An extent is a number or the name of a symbolic dimension."""
    dims = b"".join(data(1, number(1, extent) if isinstance(extent, int) else data(2, extent)) for extent in shape)
    kind = number(1, TYPES[dtype]) + data(2, dims)
    return data(1, name) + data(2, data(1, kind))


def attribute(name, content):
    message = data(1, name)
    if isinstance(content, bool) or isinstance(content, int):
        return message + number(3, int(content)) + number(20, 2)
    if isinstance(content, float):
        return message + varint(2 << 3 | 5) + struct.pack("<f", content) + number(20, 1)
    if isinstance(content, str):
        return message + data(4, content) + number(20, 3)
    if isinstance(content, np.ndarray):
        return message + data(5, tensor("", content)) + number(20, 4)
    if isinstance(content, bytes):
        return message + data(6, content) + number(20, 5)
    if content and isinstance(content[0], float):
        packed = struct.pack(f"<{len(content)}f", *content)
        return message + data(7, packed) + number(20, 6)
    if content and isinstance(content[0], str):
        return message + b"".join(data(9, item) for item in content) + number(20, 8)
    return message + b"".join(number(8, item) for item in content) + number(20, 7)


def node(op, inputs, outputs, domain="", **attributes):
    message = b"".join(data(1, name) for name in inputs)
    message += b"".join(data(2, name) for name in outputs)
    message += data(4, op)
    message += b"".join(data(5, attribute(*item)) for item in attributes.items())
    return message + (data(7, domain) if domain else b"")


def graph(nodes, inputs, outputs, constants=()):
    """inputs and outputs are value()s, constants are tensor()s."""
    message = b"".join(data(1, item) for item in nodes) + data(2, "model")
    message += b"".join(data(5, item) for item in constants)
    message += b"".join(data(11, item) for item in inputs)
    return message + b"".join(data(12, item) for item in outputs)


def model(graph_message, opset, domains=()):
    message = number(1, 10) + data(7, graph_message) + data(8, number(2, opset))
    return message + b"".join(data(8, data(1, name) + number(2, 1)) for name in domains)
