# SPDX-License-Identifier: Apache-2.0
"""Models of several entries, such as an encoder and a decoder: each is exported to a document of its own.

A function of the user returns them as a mapping: {"encode": (encoder, args), "decode": (decoder, args)}, modules that share
buffers by name, or methods of one module, {"encode": (model.encode, args), ...}. What one of them writes and another one
has is a state of both. They run in the order of the mapping, so what the first has written is there when the next is
traced.
"""

import collections.abc
import inspect
import re

import torch

from export.errors import UserError


class MethodModel(torch.nn.Module):
    """A method of a module as the forward() of a module with the same parts."""

    def __init__(self, method):
        super().__init__()
        model = method.__self__
        self._parameters, self._buffers, self._modules = model._parameters, model._buffers, model._modules
        self.training = model.training

        def forward(_, *args, **kwargs):
            return method(*args, **kwargs)

        # Inputs are named by its parameters.
        forward.__signature__ = inspect.signature(method.__func__)
        self.__class__ = type(type(model).__name__, (MethodModel,), {"forward": forward})


def as_module(model):
    """The module for a method of a module; others as they are."""
    is_method = inspect.ismethod(model) and isinstance(model.__self__, torch.nn.Module)
    return MethodModel(model) if is_method else model


def are_entries(result):
    return isinstance(result, collections.abc.Mapping)


def check_names(entries, whose):
    for name in entries:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", name):
            raise UserError(f"{whose}: {name!r} is no name of an entry: letters, digits, _ - and .")
    if len(entries) < 2:
        raise UserError(f"{whose}: a mapping of entries has at least two of them")


def dynamic_of(entry, inputs, texts):
    """Those of --dynamic that are for an entry: of its inputs, with or without its name in front."""
    own = []
    for text in texts:
        bare = text.removeprefix(entry + ".")
        if bare.partition(":")[0] in inputs.names:
            own.append(bare)
    return own


def check_dynamic(entries, texts):
    """Refuses a --dynamic for which no entry has an input; `entries` are (name, inputs)."""
    for text in texts:
        if not any(dynamic_of(name, inputs, [text]) for name, inputs in entries):
            known = ", ".join(f"{name}.{key}" for name, inputs in entries for key in inputs.names)
            raise UserError(f"--dynamic {text}: no entry has this input; there are {known}")


def share_states(memories):
    """What each entry has to give, since others have it, and what it gets from those before it."""
    has = [set(memory.slots) for memory in memories]
    for i, memory in enumerate(memories):
        memory.is_entry = True
        others = [j for j in range(len(memories)) if j != i]
        memory.kept = {key for key in memory.changed if any(key in has[j] for j in others)}
        memory.given = {key for j in others for key in memories[j].changed if key in has[i]} - memory.changed
