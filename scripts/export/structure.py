# SPDX-License-Identifier: Apache-2.0
"""Nested arguments and results of a model, taken apart into flat lists of named tensors.

Known are tensors in tuples, lists, mappings and dataclasses of any depth, as every model of transformers takes and
returns them. A name is the path to the tensor: keys, and numbers in tuples and lists.
"""

import collections.abc
import dataclasses
import inspect

import torch

from export.errors import UserError

PLAIN = (bool, int, float, str, torch.dtype, torch.device, type(None))


def items_of(value):
    """(key, item) of a container; None for anything else. Of a dataclass that is a mapping, too, what the mapping has."""
    if isinstance(value, collections.abc.Mapping):
        return list(value.items())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    if isinstance(value, (list, tuple)):
        return list(enumerate(value))
    return None


def tensors_of(value, whose, path=()):
    """(path, tensor) of all tensors in `value`, which `whose` names in messages."""
    if isinstance(value, torch.Tensor):
        return [(path, value)]
    items = items_of(value)
    if items is not None:
        numbered = isinstance(value, (list, tuple))
        keyed = [(key if numbered else str(key), item) for key, item in items]
        return [leaf for key, item in keyed for leaf in tensors_of(item, whose, (*path, key))]
    if isinstance(value, PLAIN):
        return []
    place = f" as '{joined(path)}'" if path else ""
    advice = "; turn the cache off (use_cache=False)" if "Cache" in type(value).__name__ else ""
    raise UserError(
        f"{whose} a {type(value).__name__}{place}; tensors, tuples, lists, mappings and dataclasses are known{advice}"
    )


def with_tensors(value, tensors):
    """A copy of `value` with the next tensors of an iterator in place of its own."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    items = items_of(value)
    if items is None:
        return value
    new = {key: with_tensors(item, tensors) for key, item in items}
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **new)
    if isinstance(value, collections.abc.Mapping):
        return new
    return type(value)(*new.values()) if hasattr(value, "_fields") else type(value)(list(new.values()))


def joined(path):
    return "_".join(str(key) for key in path)


def named_outputs(result):
    """(name, tensor) of what a model returns; the name is None where no mapping and no dataclass gives one."""

    def name(path):
        named = joined(path) if any(isinstance(key, str) for key in path) else None
        return f"output_{named}" if named and named[0].isdigit() else named

    return [(name(path), tensor) for path, tensor in tensors_of(result, "forward() returns")]


class Inputs:
    """The arguments of a call of a model: its tensors in order, and their names."""

    def __init__(self, model, args, kwargs=None):
        self.args, self.kwargs = tuple(args), dict(kwargs or {})
        named = [*zip(positional_names(model, len(self.args)), self.args), *self.kwargs.items()]
        leaves = [leaf for name, value in named for leaf in tensors_of(value, "the example inputs have", (name,))]
        self.names = [joined(path) for path, _ in leaves]
        self.tensors = [tensor for _, tensor in leaves]

    def bind(self, tensors):
        """(args, kwargs) with other tensors in place of the example's."""
        return with_tensors((self.args, self.kwargs), iter(tensors))

    def copies(self):
        return tuple(tensor.clone() for tensor in self.tensors)

    def convert(self, dtype):
        self.tensors = [tensor.to(dtype) if tensor.is_floating_point() else tensor for tensor in self.tensors]


def positional_names(model, count):
    names = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            names.append(parameter.name)
    if count > len(names):
        raise UserError(f"forward() takes {len(names)} positional arguments, the example has {count}")
    return names[:count]


class FlatModel(torch.nn.Module):
    """A model as a function from flat tensors to flat tensors, which the tracer and torch.export both take."""

    def __init__(self, model, inputs):
        super().__init__()
        self.model = model
        self.inputs = inputs

    def forward(self, *tensors):
        args, kwargs = self.inputs.bind(tensors)
        return tuple(tensor for _, tensor in named_outputs(self.model(*args, **kwargs)))
