# SPDX-License-Identifier: Apache-2.0
"""The states of a graph: tensors of a model that forward() writes become an input and an output each.

An op that writes into one is recorded as the op that gives the new value; copy_ and fill_ over a whole tensor give the
value itself, so that a tensor that is overwritten before anything reads it is no state at all. Everything that reads the
tensor later reads the new value (Builder keeps who that is). What has no such form is refused, with the op.
"""

import torch

from export.errors import UserError
from export.graph import copy_with_layout, flatten_values, storage_pointer
from export.places import with_place
from export.schema import arguments_of

# Ops whose first operand is the tensor that they give with other rows.
OVERWRITES = ("index_copy", "slice_scatter", "select_scatter", "index_put", "scatter")


class State:
    """Its Values before and after a step; None where it is only written, or only read, for another entry."""

    def __init__(self, key, value, final):
        self.key, self.value, self.final = key, value, final

    def entry(self):
        """Its entry in npu.states."""
        ends = {"input": self.value, "output": self.final}
        entry = {"name": self.key, **{key: value.name for key, value in ends.items() if value is not None}}
        axis = self.axis()
        return entry if axis is None else {**entry, "axis": axis}

    def axis(self):
        """The dimension that holds rows by position, if the last writer writes rows."""
        if self.value is None or self.final is None:
            return None
        node = self.final.node
        if node.op is None or base_name(node.op) != "index_copy":
            return None
        return node.args[1] % self.value.tensor.dim()


def base_name(op):
    return op._schema.name.split("::")[-1]


def root_of(value):
    """The tensor that a view is a view of in the end."""
    while value.parent is not None:
        value = value.parent
    return value


def new_content(builder, op, contents, target, key):
    """The value that an in-place op gives `target`, which is a state or a view of one. `contents` are current Values."""
    name, like = base_name(op), target.current.tensor
    op_name = op._schema.name.replace("::", ".")
    given = dict(zip((a.name for a in arguments_of(op)), contents))
    if name == "copy_":
        new = given["src"]
    elif name in ("fill_", "zero_"):
        new = filled(builder, like, given.get("value", 0))
    elif name == "index_put_" and rows_by_index(given, like) is not None:
        dim, index, rows = rows_by_index(given, like)
        shape = list(like.shape[:dim]) + [index.tensor.numel()] + list(like.shape[dim + 1 :])
        new = builder.one(torch.ops.aten.index_copy.default, [contents[0], dim, index, with_shape(builder, rows, shape)])
    else:
        functional = functional_form(op)
        if functional is None:
            raise UserError(f"{op_name} writes the state '{key}', and has no form that gives a new value")
        new = builder.emit(functional, contents)[0]
        if new.tensor.shape != like.shape:
            raise UserError(f"{op_name} changes the shape of the state '{key}', which keeps its own")
    if new.tensor.dtype != like.dtype:
        new = builder.one(torch.ops.aten.to.dtype, [new, like.dtype])
    new = with_shape(builder, new, list(like.shape))
    if new.tensor.stride() != like.stride():
        # The model sees the layout of its own tensor: whether reshape copies or aliases depends on it.
        of = new
        new = builder.one(torch.ops.aten.alias.default, [of])
        new.tensor = copy_with_layout(new.tensor, like)
        builder.layouts[new] = of
    return new


def filled(builder, like, value):
    """A tensor full of a number, which reads nothing of the one that it replaces."""
    if hasattr(value, "tensor"):
        return value
    return builder.one(torch.ops.aten.full.default, [list(like.shape), value, like.dtype])


def with_shape(builder, value, shape):
    if list(value.tensor.shape) == shape:
        return value
    return builder.one(torch.ops.aten.expand.default, [value, shape])


def rows_by_index(given, like):
    """(dim, index, rows) of an index_put_ that is an index_copy: one index of rows, which replaces them."""
    indices = list(given["indices"])
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if given.get("accumulate") or len(dims) != 1:
        return None
    index = indices[dims[0]]
    plain = index.tensor.dim() == 1 and index.tensor.dtype == torch.int64
    return (dims[0], index, given["values"]) if plain and like.dim() > 0 else None


def functional_form(op):
    """The overload that gives the new value of what an in-place one writes; None if there is none."""
    name = base_name(op)
    name = f"__{name[3:]}" if name.startswith("__i") else name.removesuffix("_")  # __ior__ is that of x |= y
    packet = getattr(getattr(torch.ops, op._schema.name.split("::")[0]), name, None)
    other = getattr(packet, op._schema.overload_name or "default", None)
    if other is None or [a.name for a in arguments_of(other)] != [a.name for a in arguments_of(op)]:
        return None
    return other


def settle_states(builder, outputs):
    """The states of a finished graph: of the tensors that were written those whose first value is read.

    Their new values are outputs too, and what those read may make a state of another tensor. For other entries of the
    model what is written is a state if they have it, and what they write if it is read.
    """
    written = [value for value in [*builder.weights, *builder.constants] if value.is_written]
    finals = {value: value.replacement or builder.current(value) for value in written}
    kept = [value for value in written if value.key in getattr(builder.memory, "kept", ())]
    found, needed = [], {*outputs, *(finals[value] for value in kept)}
    while True:
        live = live_values(builder.nodes, needed)
        new = [value for value in written if value not in found and value in live]
        if not new:
            break
        found += new
        needed.update(finals[value] for value in new)
    read = set(found)
    found = [value for value in written if value in read or value in kept]
    for value in found:
        check_memory(builder, value)
    taken, states = set(), []
    for value in found:
        final = finals[value]
        if is_read_later(builder.nodes, live_values(builder.nodes, needed), value, final):
            final = builder.one(torch.ops.aten.clone.default, [final])
        elif final.kind != "op" or final in taken:
            final = builder.one(torch.ops.aten.alias.default, [final])
        taken.add(final)
        states.append(State(value.key, value if value in read else None, final))
    live = live_values(builder.nodes, needed)
    given = [value for value in [*builder.weights, *builder.constants] if value.key in getattr(builder.memory, "given", ())]
    return states + [State(value.key, value, None) for value in given if value in live]


def live_values(nodes, needed):
    live = set(needed)
    for node in reversed(nodes):
        if any(output in live for output in node.outputs):
            live.update(flatten_values(node.args))
    return live


def is_read_later(nodes, live, value, final):
    """Whether a node that is needed reads what a state holds before a step, behind a node that overwrites a part of it.

    What is replaced as a whole has a place for its next value, so that it may be read anywhere.
    """
    chain = [final]
    while chain[-1] is not value:
        node = chain[-1].node
        if node is None or node.op is None or base_name(node.op) not in OVERWRITES:
            return False
        chain.append(node.args[0])
    for new, old in zip(chain, chain[1:]):
        behind = nodes[nodes.index(new.node) + 1 :]
        if any(old in flatten_values(node.args) and any(o in live for o in node.outputs) for node in behind):
            return True
    return False


def check_memory(builder, state):
    """Refuses a state whose memory another tensor of the model has, too: what is written to one is not seen in the other."""
    if state.tensor.numel() == 0:
        return
    pointer = storage_pointer(state.tensor)
    for other in [*builder.weights, *builder.constants]:
        if other is not state and other.key is not None and other.tensor.numel() and storage_pointer(other.tensor) == pointer:
            what = f"forward() writes '{state.key}', which shares its memory with '{other.key}'; give each its own"
            raise UserError(with_place(what, state.written_at))


def check_states(builder, memory):
    """Compares the states that the graph has with what was seen of the model, and with what npu.states can say."""
    for key in sorted(memory.changed - builder.written):
        raise UserError(f"forward() changes '{key}', but no op that the trace shows writes it")
    for state in builder.states:
        if state.value is None or state.final is None:
            continue
        first = memory.first[state.key][1] if state.key in memory.first else state.value.tensor
        if first.numel() and bool((first != 0).any()):
            what = f"the state '{state.key}' begins with other values than zeros, which npu.states has no place for"
            raise UserError(with_place(what, state.value.written_at))
