# SPDX-License-Identifier: Apache-2.0
"""Models that take and return tensors in all forms, and functions that give them wrongly; see check_names.py."""

import collections
import dataclasses
import typing

import torch


class Call(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.scale = function, torch.nn.Linear(3, 3)

    def forward(self, x, y=None, *, pair=None, mode="plain", options=None, **others):
        return self.function(self.scale(x), y, pair, mode, options, others)


def x():
    return torch.randn(2, 3)


@dataclasses.dataclass
class Both:
    mean: typing.Optional[torch.Tensor]
    total: typing.Optional[torch.Tensor]
    parts: tuple = ()
    name: str = "both"


class DynamicCache:
    """No tensor and no container."""


def positions():
    return Call(lambda x, y, *_: (x + y, x - y)), (x(), x())


def one():
    return Call(lambda x, *_: x.relu()), x()


def keywords():
    inputs = {"pair": (x(), x()), "extra": x(), "x": x(), "mode": "plain", "y": None}
    return Call(lambda x, y, pair, mode, options, others: x * pair[0] + pair[1] * others["extra"]), (), inputs


def both():
    def function(x, y, pair, mode, options, others):
        return {"loss": None, "a": x + options["b"] * options["n"], "deep": {"c": [x, (x * 2, None)]}, 5: x * 3}

    return Call(function), [x()], {"options": {"b": x(), "n": 3}, "mode": "other"}


def only_kwargs():
    return Call(lambda x, *_: x + 1), {"x": x()}


def dataclass():
    return Call(lambda x, *_: Both(x.mean(0), None, (x * 2, x * 3))), (x(),), {}


def takes_dataclass():
    return Call(lambda x, y, *_: {"sum": x + y.mean + y.parts[0]}), (x(), Both(x(), None, (x(),))), None


def hands_through():
    return Call(lambda x, y, *_: {"y": y, "again": y, "same": x, "x": x, "max": x.max()}), (x(), x())


def mapping():
    return Call(lambda x, *_: collections.UserDict(out=x, aux=x[0])), (), collections.UserDict(x=x())


def mixture():
    return Call(lambda x, *_: (x, {"a": x + 1})), x()


def writes_input():
    return Call(lambda x, y, *_: {"sum": y.add_(x), "view": y[0]}), (x(), x())


def cache():
    return Call(lambda x, *_: {"logits": x, "past_key_values": DynamicCache()}), x()


def cache_in():
    return Call(lambda x, *_: x), (x(),), {"past_key_values": DynamicCache()}


def no_tensor():
    return Call(lambda x, *_: {"loss": None}), x()


def no_model():
    return 3


def bad_kwargs():
    return Call(None), (x(),), [1]


def bad_args():
    return Call(None), 3, {}


def too_many():
    return Call(None), (x(),) * 4


def raises():
    return Call(lambda x, *_: x @ x), x()


def fails():
    return {}["key"]


def leaves():
    raise SystemExit(0)


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        return x + self.count


def state():
    return torch.nn.Sequential(Counts()), x()


class Decides(torch.nn.Module):
    def forward(self, x):
        return x * int((x > 0).sum() + 1) if x.sum() > -100 else x


def decides():
    return torch.nn.Sequential(Decides()), x()


class Loops(torch.nn.Module):
    def forward(self, x):
        for row in (x > 0).nonzero():
            x = x + row.sum()
        return x


def loops():
    return torch.nn.Sequential(torch.nn.ReLU(), Loops()), x()
