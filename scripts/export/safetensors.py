# SPDX-License-Identifier: Apache-2.0
"""safetensors files: eight bytes with the length of a JSON header, the header, and the tensors one after another.

Needs neither PyTorch nor numpy; export.torch_tensors has what takes and gives tensors of PyTorch.
"""

import json
import struct


def write(file, tensors):
    """Writes (name, kind, shape, size in bytes, function that returns the bytes) in the order given.

    The kind is safetensors' own: "F32", "I64". Bytes are asked for one tensor at a time, since all together may not
    fit twice.
    """
    tensors = list(tensors)
    header, offset = {}, 0
    for name, kind, shape, size, _ in tensors:
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)))
    file.write(text)
    for _, _, _, _, data in tensors:
        file.write(data())


def read(path):
    """(name, kind, shape, bytes) of every tensor of a file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, entry["dtype"], entry["shape"], data[begin:end]
