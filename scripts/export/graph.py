# SPDX-License-Identifier: Apache-2.0
"""The parts of a graph that is being built: nodes, and tensors with their aliases."""

import torch


class Node:
    def __init__(self, op, op_type, base_name, args):
        self.op = op  # None for getitem
        self.op_type = op_type
        self.base_name = base_name
        self.args = args  # one per schema argument; Values, lists of them, or plain values
        self.outputs = []
        self.name = None
        self.output_name = None  # what the model calls the result, if it is one of its outputs
        self.index = None  # getitem only


class Value:
    """A tensor of the graph and, for tensors that the model sees, its place in the alias tree."""

    def __init__(self, tensor, kind, node=None, key=None):
        self.tensor = tensor
        self.kind = kind  # "op", "input", "parameter", "buffer", "constant"
        self.node = node
        self.key = key  # state-dict key
        self.name = None
        self.is_kept = kind in ("parameter", "buffer")  # by the model, from one run to the next
        self.is_written = False  # by an op of the model, of which it is a tensor
        self.written_at = ""  # where, the last time
        self.replacement = None  # what the model puts in its place, as it ends with that
        self.stated = {}  # sizes by dimension, where whoever traced the model says how they vary
        # A view is a child of the tensor that it views. `current` is the graph tensor that now holds
        # the content; an in-place op replaces it, and makes it stale in the other aliases.
        self.current = self
        self.is_stale = False
        self.parent = None
        self.children = []
        self.view = None  # (node, argument position, output index, base) that made this view
        self.is_identity = False  # same memory and same layout as the parent

    def mark_stale(self):
        for child in self.children:
            child.is_stale = True
            child.mark_stale()


def storage_pointer(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage.data_ptr()


def copy_with_layout(tensor, like):
    if 0 in like.stride():  # an expanded tensor; nothing writes to it
        return tensor.clone()
    copy = torch.empty_strided(like.shape, like.stride(), dtype=tensor.dtype)
    return copy.copy_(tensor)


def same_layout(a, b):
    return (
        a.shape == b.shape
        and a.stride() == b.stride()
        and a.storage_offset() == b.storage_offset()
        and a.dtype == b.dtype
    )


def flatten_values(value):
    if isinstance(value, Value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten_values(item)]
    return []


def output_names(node):
    if len(node.outputs) == 1:
        return [node.name]
    return [f"{node.name}_{index}" for index in range(len(node.outputs))]
