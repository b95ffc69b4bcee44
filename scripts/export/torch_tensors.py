# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors to and from safetensors files."""

import torch

from export import safetensors
from export.errors import UserError

SAFETENSORS_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


def dtype_name(dtype):
    return str(dtype).replace("torch.", "")


def raw_bytes(tensor):
    """The bits of a tensor in row-major order; a byte view, so that no value is ever converted."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def write_safetensors(file, tensors):
    entries = []
    for name, tensor in tensors.items():
        kind = SAFETENSORS_DTYPES.get(dtype_name(tensor.dtype))
        if kind is None:
            raise UserError(f"tensor '{name}' is {dtype_name(tensor.dtype)}, which safetensors lacks")
        size = tensor.numel() * tensor.element_size()
        entries.append((name, kind, tensor.shape, size, lambda tensor=tensor: raw_bytes(tensor)))
    safetensors.write(file, entries)


def read_safetensors(path):
    dtypes = {short: getattr(torch, name) for name, short in SAFETENSORS_DTYPES.items()}
    tensors = {}
    for name, kind, shape, data in safetensors.read(path):
        flat = torch.tensor([], dtype=dtypes[kind])
        if data:
            flat = torch.frombuffer(bytearray(data), dtype=dtypes[kind])
        tensors[name] = flat.reshape(shape)
    return tensors
