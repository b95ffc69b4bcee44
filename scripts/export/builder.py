# SPDX-License-Identifier: Apache-2.0
"""Builds the graph: executes every op once, follows aliases, and makes in-place ops functional."""

import re

import torch

from export.errors import UserError, first_line, warn
from export.graph import (
    Node,
    Value,
    copy_with_layout,
    flatten_values,
    output_names,
    same_layout,
    storage_pointer,
)
from export.names import Namespace
from export.places import with_place
from export.positions import rewrite_positions
from export.schema import arguments_of
from export.states import new_content, root_of, settle_states

# x * 2 is recorded as a product with a 0-dimensional tensor; these arguments accept the number itself.
SCALAR_OPERANDS = ("other",)

SAME_ELEMENTS = (
    "view reshape unsqueeze squeeze flatten unflatten view_as reshape_as _unsafe_view _reshape_alias "
    "ravel alias detach"
).split()


class Builder:
    """`memory` is given (memory.Memory or True) where what forward() changes of the model becomes states."""

    def __init__(self, memory=None):
        self.memory = memory
        self.nodes = []
        self.inputs = []
        self.weights = []  # Values, in state-dict order, constants last
        self.constants = []  # those with a name of their own
        self.layouts = {}  # Values that are other ones in the layout that the model sees
        self.states = []  # of the finished graph, and the keys of all tensors that were written
        self.written = set()
        self.roles = {}  # npu.generate
        self.where = lambda: ""  # where in the model the op is that is being added

    def add_input(self, name, tensor):
        value = Value(tensor, "input", key=name)
        self.inputs.append(value)
        return value

    def add_weight(self, key, tensor, kind):
        value = Value(tensor, kind, key=key)
        self.weights.append(value)
        return value

    def add_constant(self, key, tensor):
        """An attribute of the model that is no buffer."""
        value = Value(tensor, "constant", key=key)
        value.is_kept = True
        self.constants.append(value)
        return value

    # -- contents

    def current(self, value):
        """The graph tensor that holds the current content of `value`."""
        if value.is_stale:
            base = self.current(value.parent)
            value.is_stale = False
            value.current = base if value.is_identity else self.replay_view(value, base)
        return value.current

    def replay_view(self, value, base):
        node, position, index, _ = value.view
        args = list(node.args)
        args[position] = base
        return self.emit(node.op, args, node.op_type)[1][index]

    def write(self, value, content):
        """Records that an in-place op replaced the content of `value`: all of its aliases follow."""
        value.current, value.is_stale = content, False
        value.mark_stale()
        while value.parent is not None:
            parent = value.parent
            content = value.current
            if not value.is_identity:
                content = self.write_back(value, parent.current)
            for child in parent.children:
                if child is not value:
                    child.is_stale = True
                    child.mark_stale()
            parent.current, parent.is_stale = content, False
            # The model must see the original layout: whether reshape copies or aliases depends on it.
            if content.tensor.stride() != parent.tensor.stride():
                content.tensor = copy_with_layout(content.tensor, parent.tensor)
            value = parent
        value.is_written, value.written_at = True, self.where()
        if value.kind == "parameter" or (self.memory is None and value.is_kept):
            advice = "return the new value" if value.kind == "parameter" else "make it a state with --state, or return the new value"
            raise UserError(f"forward() changes '{value.key}' in place; {advice}")

    def take_replaced(self, results):
        """The model's own results; those behind them are what stands in place of its states afterwards."""
        keys = self.memory.replaced if self.memory is not None else []
        count = len(results) - len(keys)
        known = {value.key: value for value in [*self.weights, *self.constants]}
        for key, result in zip(keys, results[count:]):
            if key in known:  # another was never read
                self.replace(known[key], result)
        return results[:count]

    def replace(self, target, new):
        """Records that a tensor of the model has another one in its place."""
        new = self.current(new)
        if new.tensor.shape != target.tensor.shape or new.tensor.dtype != target.tensor.dtype:
            found, was = (f"{str(t.dtype).removeprefix('torch.')} {list(t.shape)}" for t in (new.tensor, target.tensor))
            raise UserError(f"forward() makes '{target.key}' a tensor {found}, which was {was}: a state keeps its dtype and shape")
        target.is_written, target.replacement = True, new

    def write_back(self, view, old):
        """The parent's content after its view was replaced, as a functional op."""
        node, position, index, base = view.view
        name = node.op._schema.name.split("::")[-1]
        given = dict(zip((a.name for a in arguments_of(node.op)), node.args))
        aten, new = torch.ops.aten, view.current
        if name == "select":
            return self.one(aten.select_scatter.default, [old, new, given["dim"], given["index"]])
        if name == "slice":
            tail = [given[key] for key in ("dim", "start", "end", "step")]
            return self.one(aten.slice_scatter.default, [old, new] + tail)
        if name == "diagonal" and "offset" in given:
            tail = [given[key] for key in ("offset", "dim1", "dim2")]
            return self.one(aten.diagonal_scatter.default, [old, new] + tail)
        if name == "unbind":
            return self.one(aten.select_scatter.default, [old, new, given["dim"], index])
        if name in ("narrow", "chunk", "split", "split_with_sizes", "tensor_split", "unsafe_chunk", "unsafe_split"):
            dim = given["dim"]
            stride = base.stride(dim)
            shift = view.tensor.storage_offset() - base.storage_offset()
            start = shift // stride if stride else 0
            end = start + view.tensor.shape[dim]
            return self.one(aten.slice_scatter.default, [old, new, dim, start, end, 1])
        if name in ("transpose", "swapaxes", "swapdims"):
            return self.one(aten.transpose.int, [new] + list(node.args[1:3]))
        if name in ("t", "numpy_T"):
            return self.one(aten.t.default, [new])
        if name == "permute":
            rank = len(given["dims"])
            inverse = [0] * rank
            for axis, source in enumerate(given["dims"]):
                inverse[source % rank] = axis
            return self.one(aten.permute.default, [new, inverse])
        if name in SAME_ELEMENTS and new.tensor.numel() == old.tensor.numel():
            return self.one(aten.reshape.default, [new, list(old.tensor.shape)])
        raise UserError(
            f"an in-place op writes to a view made by {node.op_type}, "
            "for which there is no functional form; copy the tensor first"
        )

    # -- nodes

    def one(self, op, args):
        return self.emit(op, args)[1][0]

    def emit(self, op, args, op_type=None):
        """Appends a node and executes it. Returns (result, flat list of Values)."""
        arguments = arguments_of(op)
        assert len(args) <= len(arguments), op
        args = list(args) + [argument.default for argument in arguments[len(args) :]]
        positional, keywords = [], {}
        for argument, value in zip(arguments, args):
            concrete = self.concrete(value)
            if argument.is_written:
                concrete = copy_with_layout(concrete, concrete)
            if argument.keyword_only:
                keywords[argument.name] = concrete
            else:
                positional.append(concrete)
        namespace, name = op._schema.name.split("::")
        if op_type is None:
            op_type = f"{namespace}.{name}.{op._schema.overload_name or 'default'}"
        try:
            result = op(*positional, **keywords)
        except Exception as error:  # the model ran eagerly before, so this is a limit of the script
            raise UserError(f"cannot execute {op_type} while exporting: {first_line(error)}") from None
        if isinstance(result, (bool, int, float)):
            warn(with_place(f"{op_type} takes a number from a tensor; only this input's is exported", self.where()))
            return result, []
        node = Node(op, op_type, op_type.split(".")[1], args)
        self.nodes.append(node)
        if result is None:
            return None, []
        if isinstance(result, torch.Tensor):
            value = Value(result, "op", node)
            node.outputs.append(value)
            return value, [value]
        if not all(isinstance(item, torch.Tensor) for item in result):
            raise UserError(f"{op_type} returns something other than tensors")
        node.outputs = [Value(item, "op", node) for item in result]
        items = []
        for index, output in enumerate(node.outputs):
            getitem = Node(None, "<built-in function getitem>", "getitem", list(node.outputs))
            getitem.index = index
            getitem.outputs = [Value(output.tensor, "op", getitem)]
            self.nodes.append(getitem)
            items.append(getitem.outputs[0])
        return items, items

    @staticmethod
    def concrete(value):
        if isinstance(value, Value):
            return value.tensor
        if isinstance(value, (list, tuple)):
            return [Builder.concrete(item) for item in value]
        return value

    def call(self, op, args, op_type=None):
        """One op of the model: reads current contents, follows aliases, applies in-place writes."""
        if self.memory is not None and is_whole_slice(op, args):
            return args[0]
        arguments = arguments_of(op)
        written = [i for i, argument in enumerate(arguments) if argument.is_written]
        for position, argument in enumerate(arguments[: len(args)]):
            if argument.name in SCALAR_OPERANDS and argument.type == "Tensor":
                args[position] = as_number(args[position])
        contents = [self.content_of(value) for value in args]
        if has_data_dependent_shape(op, contents):
            name = op._schema.name.split("::")[1]
            what = f"the result of {name} has a shape that depends on values; this input's is exported"
            warn(with_place(what, self.where()))
        if not written:
            result, flat = self.emit(op, contents, op_type)
            self.link_views(args, flat)
            return result
        name = f"{op._schema.name.replace('::', '.')}"
        if len(written) > 1 or arguments[written[0]].name == "out":
            raise UserError(f"{name} writes to {len(written)} given tensors, which the IR cannot say")
        target = args[written[0]]
        before = target.current.tensor
        if self.memory is not None and root_of(target).is_kept:
            self.write(target, new_content(self, op, contents, target, root_of(target).key))
            return target
        result, flat = self.emit(op, contents, op_type)
        if len(flat) != 1 or flat[0].tensor.shape != before.shape:
            raise UserError(f"{name} changes the shape of a tensor in place, which the IR cannot say")
        self.write(target, flat[0])
        return target

    def content_of(self, value):
        if isinstance(value, Value):
            return self.current(value)
        if isinstance(value, (list, tuple)):
            return [self.content_of(item) for item in value]
        return value

    def link_views(self, args, outputs):
        for index, output in enumerate(outputs):
            if output.tensor.numel() == 0:
                continue
            pointer = storage_pointer(output.tensor)
            for position, value in enumerate(args):
                # Nothing returns a view of a member of a tensor list.
                if isinstance(value, Value) and storage_pointer(value.current.tensor) == pointer:
                    producer = output.node
                    if producer.op is None:
                        producer = producer.args[0].node
                    output.parent = value
                    output.view = (producer, position, index, value.current.tensor)
                    output.is_identity = same_layout(output.tensor, value.current.tensor)
                    value.children.append(output)
                    break

    # -- the finished graph

    def finish(self, outputs, names=()):
        """Removes what no output needs, names the rest, and returns the outputs' Values.

        `names` has the names that outputs are to have, None for one that is named by its op.
        """
        outputs = [self.current(value) for value in outputs]
        if self.memory is not None:
            outputs = self.without_layouts(outputs)
            first = [value.is_written and value.is_kept for value in outputs]
            outputs = [self.one(torch.ops.aten.alias.default, [v]) if f else v for v, f in zip(outputs, first)]
            self.states = settle_states(self, outputs)
            finals = [state.final for state in self.states if state.final is not None]
            # A tensor is an output of the model or of a state.
            outputs = [self.one(torch.ops.aten.alias.default, [v]) if v in finals else v for v in outputs]
        for index, name in enumerate(names):
            if name is not None:
                outputs[index] = self.name_output(outputs[index], name)
        user_outputs = outputs
        outputs = outputs + [state.final for state in self.states if state.final is not None]
        self.remove_unread(outputs)
        if self.memory is not None:
            self.written = {v.key for v in [*self.weights, *self.constants] if v.is_written}
            states = [state.value for state in self.states if state.value is not None]
            self.weights = [value for value in self.weights if not value.is_written and value not in states]
            users = list(self.inputs)
            for value in states:
                value.kind = "input"
                self.inputs.append(value)
            self.roles = rewrite_positions(self, user_outputs)
            if not self.roles and not user_outputs and len(users) == 1:
                self.roles = {"source": users[0]}  # all that comes of it is for other entries
            self.remove_unread(outputs)
        # Constants are numbered in the order of their first reader.
        read = [v for node in self.nodes for v in flatten_values(node.args)] + outputs
        read_weights = set(read)
        if getattr(self.memory, "is_entry", False):  # others have what this one does not read
            self.weights = [value for value in self.weights if value in read_weights]
        constants = list(dict.fromkeys(v for v in read if v.kind == "constant"))
        lifted = 0
        for value in constants:
            if value.key is None:
                value.key = f"lifted_tensor_{lifted}"
                lifted += 1
        self.weights += constants
        self.assign_names()
        return outputs

    def without_layouts(self, outputs):
        """Lets everything read the tensors themselves, since a document has no layouts."""

        def of(value):
            while value in self.layouts:
                value = self.layouts[value]
            return value

        def changed(item):
            return of(item) if isinstance(item, Value) else [changed(part) for part in item] if isinstance(item, (list, tuple)) else item

        for node in self.nodes:
            node.args = [changed(item) for item in node.args]
        for value in [*self.weights, *self.constants]:
            value.current = of(value.current)
            value.replacement = value.replacement and of(value.replacement)
        return [of(value) for value in outputs]

    def remove_unread(self, outputs):
        """Keeps the nodes that an output needs."""
        live = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            if any(output in live for output in node.outputs):
                kept.append(node)
                live.update(flatten_values(node.args))
        self.nodes = kept[::-1]

    def name_output(self, value, name):
        """The Value that holds an output under its name: a node has one name, inputs and weights have theirs."""
        if value.kind == "input" and value.key == name:
            return value
        if value.kind != "op" or value.node.output_name is not None:
            value = self.one(torch.ops.aten.alias.default, [value])
        value.node.output_name = name
        return value

    def assign_names(self):
        names = Namespace()
        prefixes = {"parameter": "p_", "buffer": "b_", "constant": "c_"}
        for value in self.weights:
            value.name = names.create(prefixes[value.kind] + re.sub(r"\W", "_", value.key))
        states = {state.value for state in self.states if state.value is not None}
        for value in self.inputs:
            value.name = names.create("b_" + re.sub(r"\W", "_", value.key) if value in states else value.key)
        named = [node for node in self.nodes if node.output_name is not None]
        for node in named:
            node.name = names.create(node.output_name, reserved=())
        tensors = {item.name for item in self.weights + self.inputs + named}
        for node in self.nodes:
            if node.output_name is None:
                node.name = names.create(node.base_name)
                while tensors.intersection(output_names(node)):
                    node.name = names.create(node.base_name)
            for output, name in zip(node.outputs, output_names(node)):
                output.name = name
                tensors.add(name)


def is_whole_slice(op, args):
    """Whether a slice is the whole dimension, however long that is: the `:` of x[:, i]."""
    if op._schema.name != "aten::slice":
        return False
    start, end, step = [*args[2:], *[None, None, 1][len(args) - 2 :]]
    return start in (0, None) and (end is None or end >= 2**63 - 1) and step == 1


def has_data_dependent_shape(op, args):
    name = op._schema.name.split("::")[1]
    if name == "index":
        return any(v.tensor.dtype in (torch.bool, torch.uint8) for v in flatten_values(args[1]))
    names = ("nonzero", "nonzero_numpy", "masked_select", "argwhere", "_unique2", "unique_consecutive")
    return name in names or name.startswith("unique_dim")


def as_number(value):
    """Turns a 0-dimensional constant with the dtype of a Python number into that number."""
    if isinstance(value, Value) and value.kind == "constant" and value.key is None:
        tensor = value.tensor
        if tensor.dim() == 0 and tensor.dtype in (torch.float64, torch.int64, torch.bool):
            return tensor.item()
    return value
