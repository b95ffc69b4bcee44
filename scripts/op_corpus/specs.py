# SPDX-License-Identifier: Apache-2.0
"""Tensors of cases, which are drawn when their case is made, and arguments that name PyTorch's objects."""

import math

import torch

INF, NAN = math.inf, math.nan

DTYPES = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool"


class Spec:
    """A tensor that is drawn when its case is made, with the case's own seed."""

    def __init__(self, dtype, shape, low=None, high=None, values=None, key=None):
        self.dtype, self.shape, self.low, self.high = dtype, shape, low, high
        self.values, self.key = values, key

    def draw(self, generator):
        dtype = getattr(torch, self.dtype)
        if self.values is not None:
            wide = torch.float64 if is_float(dtype) else None
            return torch.tensor(self.values, dtype=wide).to(dtype)
        if self.dtype == "bool":
            return torch.randint(0, 2, self.shape, generator=generator).bool()
        if not is_float(dtype):
            return torch.randint(self.low, self.high, self.shape, generator=generator).to(dtype)
        # Adding a third sets bits in all places of a float64; a bare grid would hide rounding.
        unit = (torch.randint(0, 2**21, self.shape, generator=generator).double() + 1 / 3) / 2**21
        return (self.low + unit * (self.high - self.low)).to(dtype)


def is_float(dtype):
    return dtype.is_floating_point


def f32(*shape, low=-2.0, high=2.0):
    return Spec("float32", shape, low, high)


def f64(*shape, low=-2.0, high=2.0):
    return Spec("float64", shape, low, high)


def bf16(*shape, low=-2.0, high=2.0):
    return Spec("bfloat16", shape, low, high)


def f16(*shape, low=-2.0, high=2.0):
    return Spec("float16", shape, low, high)


def positive(*shape, dtype="float32"):
    return Spec(dtype, shape, 0.5, 2.0)


def i64(*shape, low=-9, high=10):
    return Spec("int64", shape, low, high)


def i32(*shape, low=-9, high=10):
    return Spec("int32", shape, low, high)


def i16(*shape, low=-9, high=10):
    return Spec("int16", shape, low, high)


def i8(*shape, low=-9, high=10):
    return Spec("int8", shape, low, high)


def u8(*shape, low=0, high=256):
    return Spec("uint8", shape, low, high)


def boolean(*shape):
    return Spec("bool", shape)


def values(data, dtype="float32"):
    return Spec(dtype, None, values=data)


def weight(spec, key=None):
    """The tensor is a parameter of the model, not an input."""
    return Spec(spec.dtype, spec.shape, spec.low, spec.high, spec.values, key or "")


def dtype(name):
    return getattr(torch, name)


def form(name):
    return getattr(torch, name)


def layout():
    return torch.strided


def device():
    return torch.device("cpu")
