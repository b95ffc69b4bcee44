#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch model as an IR document with weights, example inputs and reference outputs.

Input:  torchvision:NAME, or FILE.py:FUNCTION with a function that returns (model, example inputs).
Output: NAME.json (the IR of npu-ir(5)), NAME.safetensors (weights by state-dict key),
        NAME.inputs.safetensors and NAME.outputs.safetensors (by graph input and output name).

The IR has the names and arguments that torch.export gives. PyTorch 2.1 and later are asked for
exactly that; PyTorch 1.13 has no torch.export, so there a torch.jit trace is rewritten to the same
names. Either way every op is executed once while the graph is built: that gives exact shapes and
dtypes and shows which tensors share memory, which in-place ops need. In the document an in-place op
is functional, so writes through views become scatters and later readers of any alias are rewired.

The reference outputs come from the original model, run eagerly, never from the trace.

No weights are downloaded: models are initialised at random from --seed. Batch-norm statistics are
then set from one pass over the example inputs, with some noise, rounded to bfloat16: at their
defaults deep networks fade to zero or blow up, and batch norm would not matter. For the same reason
the zero heads and tiny layer scales of some torchvision models are drawn anew.
"""

import argparse
import builtins
import contextlib
import difflib
import importlib.util
import inspect
import json
import keyword
import math
import operator
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import warnings

PROGRAM = "export_torch"
IR_VERSION = 1
# Larger lifted constants stand in the weights file only; the document stays readable.
MAX_INLINE_CONSTANT = 1024
REEXEC_MARK = "NPU_EXPORT_TORCH_REEXEC"

torch = None  # imported by load_torch, after the options are known to be right


class UserError(Exception):
    """Something the user can act on; printed as one message, without a traceback."""


def warn(text):
    print(f"{PROGRAM}: warning: {text}", file=sys.stderr)


def first_line(error):
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


# ---------------------------------------------------------------- finding an interpreter with torch


def load_torch(needs_torchvision):
    """Imports torch, or re-executes this script with an interpreter that can."""
    global torch
    wanted = ["torch"] + (["torchvision"] if needs_torchvision else [])
    try:
        for name in wanted:
            importlib.import_module(name)
    except ImportError as error:
        if not os.environ.get(REEXEC_MARK):
            for candidate in ([os.environ.get("PYTHON")], ["python3"], ["/usr/bin/python3"]):
                command = shlex.split(candidate[0]) if candidate[0] else None
                if command and can_import(command, wanted):
                    os.environ[REEXEC_MARK] = "1"
                    os.execvp(command[0], command + [os.path.abspath(__file__)] + sys.argv[1:])
        raise UserError(
            f"no Python interpreter here can import {' and '.join(wanted)} ({first_line(error)}); "
            "on Debian: apt-get install python3-torch python3-torchvision, "
            "or name an interpreter in $PYTHON"
        ) from None
    torch = sys.modules["torch"]


def can_import(command, modules):
    try:
        probe = subprocess.run(
            command + ["-c", "import " + ", ".join(modules)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except OSError:
        return False
    return probe.returncode == 0


def has_torch_export():
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    return version >= (2, 1) and hasattr(torch, "export")


# ------------------------------------------------------------------------------------- safetensors

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
    header, offset = {}, 0
    for name, tensor in tensors.items():
        kind = SAFETENSORS_DTYPES.get(dtype_name(tensor.dtype))
        if kind is None:
            raise UserError(f"tensor '{name}' is {dtype_name(tensor.dtype)}, which safetensors lacks")
        end = offset + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)))
    file.write(text)
    for tensor in tensors.values():
        file.write(raw_bytes(tensor))


def read_safetensors(path):
    dtypes = {short: getattr(torch, name) for name, short in SAFETENSORS_DTYPES.items()}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        flat = torch.tensor([], dtype=dtypes[entry["dtype"]])
        if end > begin:
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=dtypes[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


# ------------------------------------------------------------------------------------- ATen schemas


class Argument:
    def __init__(self, schema_argument, type_text):
        self.name = schema_argument.name
        self.type = type_text  # without alias annotation: "Tensor", "Tensor?[]", "ScalarType?"
        self.keyword_only = schema_argument.kwarg_only
        self.has_default = schema_argument.has_default_value()
        self.default = plain(schema_argument.default_value, type_text) if self.has_default else None
        alias = schema_argument.alias_info
        self.is_written = alias is not None and alias.is_write

    @property
    def is_tensor(self):
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self):
        return re.fullmatch(r"Tensor\??\[\d*\]\??", self.type) is not None


def schema_arguments(schema):
    """Arguments with their real types: the bindings say `int` for ScalarType, the text does not."""
    text = str(schema)
    begin = text.index("(") + 1
    pieces, depth, quoted, piece = [], 0, False, ""
    for char in text[begin:]:
        quoted ^= char == '"'
        if not quoted and char in "([":
            depth += 1
        elif not quoted and char in ")]":
            if depth == 0:
                break
            depth -= 1
        if char == "," and depth == 0 and not quoted:
            pieces.append(piece)
            piece = ""
        else:
            piece += char
    pieces.append(piece)
    types = []
    for piece in (piece.strip() for piece in pieces):
        if piece and piece != "*":
            type_text = re.match(r"(.+?) \w+(=.*)?$", piece).group(1)
            types.append(re.sub(r"\(.*?\)", "", type_text))
    return [Argument(argument, kind) for argument, kind in zip(schema.arguments, types)]


_arguments = {}


def arguments_of(op):
    if op not in _arguments:
        _arguments[op] = schema_arguments(op._schema)
    return _arguments[op]


def plain(value, type_text):
    """Turns the integers by which TorchScript writes dtypes, layouts and formats into objects."""
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    base = type_text.rstrip("?")
    if base == "ScalarType":
        kinds = "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128"
        names = kinds.split() + ["bool", "qint8", "quint8", "qint32", "bfloat16"]
        return getattr(torch, names[value])
    if base == "Layout":
        return {0: torch.strided, 1: torch.sparse_coo}.get(value, value)
    if base == "MemoryFormat":
        formats = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
        return getattr(torch, formats[value])
    return value


def equals_default(value, argument):
    if not argument.has_default:
        return False
    default = argument.default
    if isinstance(value, (list, tuple)) and not isinstance(default, (list, tuple)):
        return False
    if isinstance(value, (list, tuple)):
        return list(value) == list(default)
    if isinstance(value, Value) or isinstance(default, (list, tuple)):
        return False
    return type(value) is type(default) and value == default or (
        # `alpha=1` is a Scalar: 1 and 1.0 mean the same there.
        argument.type == "Scalar" and not isinstance(value, bool) and value == default
    )


def json_value(value, where):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return "nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return value
    if isinstance(value, (list, tuple)):
        return [json_value(item, where) for item in value]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format, torch.device)):
        return str(value)
    raise UserError(f"{where} has an argument of type {type(value).__name__}, which the IR lacks")


# ------------------------------------------------------------------------------------ building a graph


class Node:
    def __init__(self, op, op_type, base_name, args):
        self.op = op  # None for getitem
        self.op_type = op_type
        self.base_name = base_name
        self.args = args  # one per schema argument; Values, lists of them, or plain values
        self.outputs = []
        self.name = None
        self.index = None  # getitem only


class Value:
    """A tensor of the graph and, for tensors that the model sees, its place in the alias tree."""

    def __init__(self, tensor, kind, node=None, key=None):
        self.tensor = tensor
        self.kind = kind  # "op", "input", "parameter", "buffer", "constant"
        self.node = node
        self.key = key  # state-dict key
        self.name = None
        # Views hang below what they are a view of. `current` is the graph tensor that now holds the
        # content; an in-place op replaces it, and makes it stale in the other aliases.
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


# x * 2 is recorded as a product with a 0-dimensional tensor; these arguments take the number itself.
SCALAR_OPERANDS = ("other",)

SAME_ELEMENTS = (
    "view reshape unsqueeze squeeze flatten unflatten view_as reshape_as _unsafe_view _reshape_alias "
    "ravel alias detach"
).split()


class Builder:
    def __init__(self):
        self.nodes = []
        self.inputs = []
        self.weights = []  # Values, in state-dict order, constants last
        self.constants = {}

    def add_input(self, name, tensor):
        value = Value(tensor, "input", key=name)
        self.inputs.append(value)
        return value

    def add_weight(self, key, tensor, kind):
        value = Value(tensor, kind, key=key)
        self.weights.append(value)
        return value

    # -- contents

    def current(self, value):
        """The graph tensor that holds the present content of `value`."""
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
        """An in-place op gave `value` a new content: makes every alias of it follow."""
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
            # The model sees the layout it had: whether reshape copies, and so aliases, depends on it.
            if content.tensor.stride() != parent.tensor.stride():
                content.tensor = copy_with_layout(content.tensor, parent.tensor)
            value = parent
        if value.kind in ("parameter", "buffer"):
            raise UserError(
                f"forward() changes '{value.key}' in place; the IR has no state, "
                "so return the new value instead"
            )

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
        if name in ("narrow", "chunk", "split", "split_with_sizes", "tensor_split"):
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
        """One op of the model: reads present contents, follows aliases, applies in-place writes."""
        arguments = arguments_of(op)
        written = [i for i, argument in enumerate(arguments) if argument.is_written]
        for position, argument in enumerate(arguments[: len(args)]):
            if argument.name in SCALAR_OPERANDS and argument.type == "Tensor":
                args[position] = as_number(args[position])
        contents = [self.content_of(value) for value in args]
        if has_data_dependent_shape(op, contents):
            name = op._schema.name.split("::")[1]
            warn(f"the result of {name} has a shape that depends on values; this input's is exported")
        if not written:
            result, flat = self.emit(op, contents, op_type)
            self.link_views(args, flat)
            return result
        name = f"{op._schema.name.replace('::', '.')}"
        if len(written) > 1 or arguments[written[0]].name == "out":
            raise UserError(f"{name} writes to {len(written)} given tensors, which the IR cannot say")
        target = args[written[0]]
        before = target.current.tensor
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

    def finish(self, outputs):
        """Removes what no output needs, names the rest, and returns the outputs' Values."""
        outputs = [self.current(value) for value in outputs]
        live = set(outputs)
        kept = []
        for node in reversed(self.nodes):
            if any(output in live for output in node.outputs):
                kept.append(node)
                live.update(flatten_values(node.args))
        self.nodes = kept[::-1]
        # Constants are numbered in the order of their first reader.
        read = [v for node in self.nodes for v in flatten_values(node.args)] + outputs
        constants = list(dict.fromkeys(v for v in read if v.kind == "constant"))
        lifted = 0
        for value in constants:
            if value.key is None:
                value.key = f"lifted_tensor_{lifted}"
                lifted += 1
        self.weights += constants
        self.assign_names()
        return outputs

    def assign_names(self):
        names = Namespace()
        prefixes = {"parameter": "p_", "buffer": "b_", "constant": "c_"}
        for value in self.weights:
            value.name = names.create(prefixes[value.kind] + re.sub(r"\W", "_", value.key))
        for value in self.inputs:
            value.name = names.create(value.key)
        tensors = {value.name for value in self.weights + self.inputs}
        for node in self.nodes:
            node.name = names.create(node.base_name)
            while tensors.intersection(output_names(node)):
                node.name = names.create(node.base_name)
            for output, name in zip(node.outputs, output_names(node)):
                output.name = name
                tensors.add(name)


def has_data_dependent_shape(op, args):
    name = op._schema.name.split("::")[1]
    if name == "index":
        return any(v.tensor.dtype in (torch.bool, torch.uint8) for v in flatten_values(args[1]))
    names = ("nonzero", "nonzero_numpy", "masked_select", "argwhere", "_unique2", "unique_consecutive")
    return name in names or name.startswith("unique_dim")


def output_names(node):
    if len(node.outputs) == 1:
        return [node.name]
    return [f"{node.name}_{index}" for index in range(len(node.outputs))]


def flatten_values(value):
    if isinstance(value, Value):
        return [value]
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flatten_values(item)]
    return []


def as_number(value):
    """A 0-dimensional constant of the dtype that a Python number becomes is that number."""
    if isinstance(value, Value) and value.kind == "constant" and value.key is None:
        tensor = value.tensor
        if tensor.dim() == 0 and tensor.dtype in (torch.float64, torch.int64, torch.bool):
            return tensor.item()
    return value


class Namespace:
    """Unique names as torch.fx makes them: conv2d, conv2d_1, ...; never a Python word (max_1)."""

    def __init__(self):
        self.used = set()
        self.counts = {}

    def create(self, wanted):
        reserved = {"inf", "nan", "NoneType", "torch", "device"}
        if re.fullmatch(r"__\w+__", wanted):
            wanted = wanted[2:-2]
        name = re.sub(r"[^0-9a-zA-Z_]+", "_", wanted)
        name = f"_{name}" if name[0].isdigit() else name
        match = re.fullmatch(r"(.*)_(\d+)", name)
        base, number = (match.group(1), int(match.group(2))) if match else (name, 0)
        number = number or self.counts.get(base, 0)
        reserved.update(keyword.kwlist, dir(builtins))
        while name in self.used or name in reserved:
            number += 1
            name = f"{base}_{number}"
        self.used.add(name)
        self.counts[base] = number
        return name


# ------------------------------------------------------------------------------- the two ways to a graph


def model_tensors(model):
    """(key, tensor, kind) of parameters, then buffers; a tied tensor once, under its first key."""
    for key, tensor in model.named_parameters():
        yield key, tensor, "parameter"
    for key, tensor in model.named_buffers():
        yield key, tensor, "buffer"


def parameter_names(model, count):
    names = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            names += [f"{parameter.name}_{i}" for i in range(count - len(names))]
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            names.append(parameter.name)
    return names[:count]


def build_with_trace(model, example):
    """torch.jit.trace, rewritten node by node (PyTorch 1.13)."""
    class FlatOutputs(torch.nn.Module):  # the tracer takes nested outputs only if they are uniform
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *inputs):
            return tuple(flatten_tensors(self.model(*inputs)))

    wrapper = FlatOutputs().eval()
    with tracing_context() as attention, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        traced = torch.jit.trace(wrapper, example, check_trace=False)
    for text in dict.fromkeys(
        f"{os.path.basename(w.filename)}:{w.lineno}"
        for w in caught
        if "Converting a tensor to a Python" in str(w.message)
    ):
        warn(f"{text}: a tensor's value decides what runs; only this input's choice is exported")

    builder = Builder()
    weights = {id(t): builder.add_weight(k, t, kind) for k, t, kind in model_tensors(model)}
    attributes = {
        storage_pointer(tensor): f"{path}.{key}".lstrip(".")
        for path, module in model.named_modules()
        for key, tensor in vars(module).items()
        if isinstance(tensor, torch.Tensor) and tensor.numel()
    }
    keyed = {}

    def constant(tensor):
        # One Value per stored attribute, however often the trace repeats it.
        key = attributes.get(storage_pointer(tensor)) if tensor.numel() else None
        if key is None:
            return Value(tensor, "constant")
        return keyed.setdefault((key, tensor.shape), Value(tensor, "constant", key=key))

    def walk(graph, given):
        """One method's graph. The tracer's own inlining is no use: it optimises, e.g. merges cats."""
        env = {value.debugName(): item for value, item in zip(graph.inputs(), given)}
        for node in graph.nodes():
            kind = node.kind()
            args = [env[value.debugName()] for value in node.inputs()]
            outputs = [value.debugName() for value in node.outputs()]
            if kind == "prim::Constant":
                value = node.output().toIValue()
                results = [constant(value) if isinstance(value, torch.Tensor) else value]
            elif kind == "prim::GetAttr":
                module, script = args[0]
                item = getattr(module, node.s("name"))
                if id(item) in weights:
                    results = [weights[id(item)]]
                elif isinstance(item, torch.Tensor):
                    results = [constant(item)]
                else:
                    results = [(item, script.getattr(node.s("name")))]
            elif kind == "prim::CallMethod":
                results = walk(args[0][1]._get_method(node.s("name")).graph, args)
            elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
                results = [args]
            elif kind == "prim::DictConstruct":
                results = [dict(zip(args[::2], args[1::2]))]
            elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
                results = args[0]
            elif kind.startswith("prim::") or node.schema() == "(no schema)":
                what = node.pyname() if kind == "prim::PythonOp" else kind
                raise UserError(f"the trace has {what}, which is no ATen op")
            elif kind == "aten::__getitem__" and isinstance(args[0], (list, dict)):
                results = [args[0][args[1]]]
            else:
                results = call_traced(builder, node, args, attention)
                results = [results] if len(outputs) == 1 else results
            env.update(zip(outputs, results))
        return [env[value.debugName()] for value in graph.outputs()]

    names = parameter_names(model, len(example))
    inputs = [builder.add_input(name, tensor) for name, tensor in zip(names, example)]
    script = traced._c
    results = walk(script._get_method("forward").graph, [(wrapper, script)] + inputs)
    return builder, builder.finish(flatten_values(results))


def call_traced(builder, node, args, attention):
    kind = node.kind()
    if kind == "aten::_convolution":
        # The trace records conv1d..conv_transpose3d only as this inner op.
        x, weight, bias, stride, padding, dilation, transposed, output_padding, groups = args[:9]
        rank = x.tensor.dim() - 2
        name = f"conv_transpose{rank}d" if transposed else f"conv{rank}d"
        args = [x, weight, bias, stride, padding, dilation, groups]
        if transposed:
            args = [x, weight, bias, stride, padding, output_padding, groups, dilation]
        packet = getattr(torch.ops.aten, name)
        return builder.call(packet.input if transposed else packet.default, args)
    if kind == "aten::_convolution_mode":
        packet = getattr(torch.ops.aten, f"conv{args[0].tensor.dim() - 2}d")
        return builder.call(packet.padding, args)
    if attention is not None and kind == attention._schema.name:
        return builder.call(attention, args, "aten.scaled_dot_product_attention.default")
    if kind in ("aten::to", "aten::detach", "aten::lift_fresh") and args[0].kind == "constant":
        # torch.tensor(...) inside forward: the conversion is part of the constant.
        op = traced_op(node)
        types = arguments_of(op)
        tensor = op(args[0].tensor, *(plain(v, a.type) for v, a in zip(args[1:], types[1:])))
        return Value(tensor, "constant", key=args[0].key if tensor is args[0].tensor else None)
    op = traced_op(node)
    return builder.call(op, [plain(v, a.type) for v, a in zip(args, arguments_of(op))])


def traced_op(node):
    namespace, name, overload = re.match(r"(\w+)::(\w+)(?:\.(\w+))?\(", node.schema()).groups()
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")
    except AttributeError:
        raise UserError(
            f"{namespace}::{name} is no tensor op: the model computes with a tensor's value in Python"
        ) from None


ATTENTION_SCHEMA = (
    "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0., bool is_causal=False) -> Tensor"
)
_attention_library = None


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False):
    """aten::scaled_dot_product_attention for a PyTorch that has only its predecessor."""
    if hasattr(torch.ops.aten, "scaled_dot_product_attention"):
        return torch.ops.aten.scaled_dot_product_attention.default(
            query, key, value, attn_mask, dropout_p, is_causal
        )
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        zeros = torch.zeros_like(attn_mask, dtype=query.dtype)
        attn_mask = zeros.masked_fill(attn_mask.logical_not(), -math.inf)
    return torch.ops.aten._scaled_dot_product_attention.default(
        query, key, value, attn_mask, dropout_p, False, is_causal
    )[0]


@contextlib.contextmanager
def patched(*changes):
    """Sets attributes, (object, name, new value) each, and puts the old ones back."""
    missing = object()
    saved = [(owner, name, vars(owner).get(name, missing)) for owner, name, _ in changes]
    try:
        for owner, name, new in changes:
            setattr(owner, name, new)
        yield
    finally:
        for owner, name, old in reversed(saved):
            if old is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, old)


@contextlib.contextmanager
def ordinary_attention():
    """Keeps the fused transformer kernels of eval mode away: they are not what torch.export sees."""
    if hasattr(torch.backends, "mha"):
        before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(before)
    else:
        # 1.13 has no switch, but takes the ordinary way when a tensor overrides functions. Turning
        # gradients on would do as well, but then some in-place ops on views are refused.
        original = torch.overrides.has_torch_function

        def override(args):
            # The layers ask about all their tensors at once; nobody else asks about so many.
            return len(args) > 5 or original(args)

        with patched((torch.overrides, "has_torch_function", override)):
            yield


@contextlib.contextmanager
def tracing_context():
    """Makes sizes plain numbers while tracing, and attention one op. Yields that op."""
    global _attention_library
    base = torch._C._TensorBase

    def untraced(read):
        state = torch._C._get_tracing_state()
        torch._C._set_tracing_state(None)
        try:
            return read()
        finally:
            torch._C._set_tracing_state(state)

    changes = [
        (torch.Tensor, "size", lambda self, *a, **k: untraced(lambda: base.size(self, *a, **k))),
        (torch.Tensor, "shape", property(lambda self: untraced(lambda: base.size(self)))),
        (torch.Tensor, "numel", lambda self: untraced(lambda: base.numel(self))),
        (torch.Tensor, "__len__", lambda self: untraced(lambda: base.__len__(self))),
    ]
    op = None
    functional = torch.nn.functional
    if hasattr(torch._C._nn, "_scaled_dot_product_attention"):
        if _attention_library is None:
            _attention_library = torch.library.Library("npu_export", "DEF")
            _attention_library.define(ATTENTION_SCHEMA)
            _attention_library.impl("scaled_dot_product_attention", attention, "CPU")
        op = torch.ops.npu_export.scaled_dot_product_attention.default
        original = torch._C._nn._scaled_dot_product_attention

        def inner(q, k, v, attn_mask=None, dropout_p=0.0, need_attn_weights=False, is_causal=False):
            if need_attn_weights:  # then it is no single op in torch.export either
                return original(q, k, v, attn_mask, dropout_p, True, is_causal)
            return op(q, k, v, attn_mask, dropout_p, is_causal), None

        changes += [
            (torch._C._nn, "_scaled_dot_product_attention", inner),
            (functional, "_scaled_dot_product_attention", inner),
            (functional, "scaled_dot_product_attention", lambda *a, **k: op(*a, **k)),
        ]
    with patched(*changes):
        yield op


def build_with_export(model, example):
    """torch.export (PyTorch 2.1 and later); before 2.5 it has only the decomposed op names."""
    export = getattr(torch.export, "export_for_training", torch.export.export)
    program = export(model, example)
    builder = Builder()
    env = {}
    weights = {key: (tensor, kind) for key, tensor, kind in model_tensors(model)}
    constants = dict(getattr(program, "constants", {}) or {})
    added = {k: builder.add_weight(k, tensor, kind) for k, (tensor, kind) in weights.items()}
    by_memory = {(storage_pointer(t), t.shape): added[key] for key, (t, _) in weights.items()}
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    names = iter(parameter_names(model, len(example)))
    tensors = iter(example)
    for node in program.graph_module.graph.nodes:
        if node.op == "placeholder":
            spec = specs[node.name]
            if spec.kind.name == "USER_INPUT":
                env[node] = builder.add_input(next(names), next(tensors))
            elif spec.target in added:
                env[node] = added[spec.target]
            elif spec.target in constants:
                env[node] = Value(constants[spec.target], "constant", key=spec.target)
            else:  # a tied tensor's other key
                tensor = program.state_dict[spec.target]
                env[node] = by_memory[storage_pointer(tensor), tensor.shape]
        elif node.op == "output":
            for spec in program.graph_signature.output_specs:
                if "MUTATION" in spec.kind.name:
                    raise UserError(f"forward() changes '{spec.target}' in place; the IR has no state")
            results = [env[item] for item in node.args[0] if isinstance(item, torch.fx.Node)]
        elif node.op == "call_function":
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda item: env[item])
            if node.target is operator.getitem:
                env[node] = args[0][args[1]]
                continue
            if not isinstance(node.target, torch._ops.OpOverload):
                raise UserError(f"torch.export gave {node.target}, which is no ATen op")
            bound = []
            for position, argument in enumerate(arguments_of(node.target)):
                default = kwargs.get(argument.name, argument.default)
                bound.append(args[position] if position < len(args) else default)
            env[node] = builder.call(node.target, bound)
        else:
            raise UserError(f"torch.export gave a {node.op} node, which the IR cannot say")
    return builder, builder.finish(results)


# ------------------------------------------------------------------------------------- the document


def describe(value, with_producer):
    entry = {
        "name": value.name,
        "shape": list(value.tensor.shape),
        "dtype": dtype_name(value.tensor.dtype),
    }
    if with_producer and value.kind == "input":
        entry.update(producer_node=value.name, producer_output_idx=0)
    elif with_producer and value.node is not None:
        index = value.node.outputs.index(value)
        entry.update(producer_node=value.node.name, producer_output_idx=index)
    return entry


def node_entry(node):
    entry = {"name": node.name, "op_type": node.op_type}
    entry["inputs"] = [describe(value, True) for value in flatten_values(node.args)]
    entry["outputs"] = [describe(value, False) for value in node.outputs]
    attrs = {"index": node.index} if node.op is None else node_attrs(node)
    if attrs:
        entry["attrs"] = attrs
    return entry


def node_attrs(node):
    """What was passed explicitly: trailing defaults, and keyword arguments at their default, go."""
    arguments = arguments_of(node.op)
    pairs = list(zip(arguments, node.args))
    positional = [pair for pair in pairs if not pair[0].keyword_only]
    while positional and equals_default(positional[-1][1], positional[-1][0]):
        positional.pop()
    keywords = [p for p in pairs if p[0].keyword_only and not equals_default(p[1], p[0])]
    sizes, masks, nones, values = [], [], [], {}
    given = [i for i, (argument, value) in enumerate(positional) if flatten_values(value)]
    last_tensor = max(given, default=-1)
    for position, (argument, value) in enumerate(positional + keywords):
        if argument.is_tensor_list:
            if value is None:
                continue
            sizes.append(sum(item is not None for item in value))
            mask = [item is None for item in value]
            if any(mask):
                masks.append(mask)
        elif argument.is_tensor and value is None:
            if position < last_tensor:
                nones.append(argument.name)
        elif value is None and argument.has_default and argument.default is None:
            continue  # attrs go by name, so nothing is lost
        elif not isinstance(value, Value):
            values[argument.name] = json_value(value, f"{node.name} ({node.op_type})")
    attrs = {}
    if sizes:
        attrs["_tensor_list_sizes"] = sizes
    if masks:
        attrs["_tensor_list_none_masks"] = masks
    if nones:
        attrs["_none_args"] = nones
    attrs.update(values)
    return attrs


def make_document(name, builder, outputs, with_files):
    document = {
        "model_name": name,
        "pytorch_version": torch.__version__,
        "graph_inputs": [describe(value, False) for value in builder.inputs],
        "graph_outputs": [describe(value, True) for value in outputs],
        "weights": [dict(describe(value, False), name=value.key) for value in builder.weights],
        "weight_name_mapping": {value.name: value.key for value in builder.weights},
        "nodes": [node_entry(node) for node in builder.nodes],
    }
    constants = {
        value.key: {
            "data": json_value(value.tensor.tolist(), f"constant '{value.key}'"),
            "dtype": dtype_name(value.tensor.dtype),
        }
        for value in builder.weights
        if value.kind == "constant" and value.tensor.numel() <= MAX_INLINE_CONSTANT
    }
    if constants:
        document["constants"] = constants
    if with_files:
        document["npu"] = {"version": IR_VERSION, "weights_file": f"{name}.safetensors"}
    return document


def format_document(document):
    """JSON with one array element or map entry per line, so that files diff well and stay small."""

    def dump(value):
        return json.dumps(value, allow_nan=False, ensure_ascii=False)

    parts = []
    for key, value in document.items():
        if isinstance(value, list) and value:
            body = "[\n" + ",\n".join(dump(item) for item in value) + "\n]"
        elif isinstance(value, dict) and value and key != "npu":
            body = "{\n" + ",\n".join(f"{dump(k)}: {dump(v)}" for k, v in value.items()) + "\n}"
        else:
            body = dump(value)
        parts.append(f"{dump(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write_files(directory, writers):
    """Writes all files under temporary names first: a failure leaves none of them half done."""
    pending = []
    try:
        os.makedirs(directory, exist_ok=True)
        for name, writer in writers.items():
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
            pending.append((temporary, os.path.join(directory, name)))
            with os.fdopen(handle, "wb") as file:
                writer(file)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
        while pending:
            os.replace(*pending[0])
            pending.pop(0)
    except OSError as error:
        raise UserError(f"cannot write to {directory}: {error.strerror or error}") from None
    finally:
        for temporary, _ in pending:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


# --------------------------------------------------------------------------------------- the check


def execute_document(document, weights, inputs):
    """A small interpreter of the IR; tests what was written, not what was meant."""
    tensors = dict(inputs)
    for placeholder, key in document["weight_name_mapping"].items():
        tensors[placeholder] = weights[key]
    for node in document["nodes"]:
        given = [tensors[entry["name"]] for entry in node["inputs"]]
        for entry, tensor in zip(node["inputs"], given):
            check_shape(node, entry, tensor)
        attrs = node.get("attrs", {})
        if node["op_type"] == "<built-in function getitem>":
            results = [given[attrs["index"]]]
        else:
            results = execute_node(node, given, attrs)
            results = [results] if isinstance(results, torch.Tensor) else list(results)
        for entry, tensor in zip(node["outputs"], results):
            check_shape(node, entry, tensor)
            tensors[entry["name"]] = tensor
    return {entry["name"]: tensors[entry["name"]] for entry in document["graph_outputs"]}


def check_shape(node, entry, tensor):
    if list(tensor.shape) != entry["shape"] or dtype_name(tensor.dtype) != entry["dtype"]:
        found = f"{dtype_name(tensor.dtype)} {list(tensor.shape)}"
        wanted = f"{entry['dtype']} {entry['shape']}"
        raise UserError(f"check: {node['name']}: '{entry['name']}' is {found}, the IR says {wanted}")


def execute_node(node, given, attrs):
    namespace, name, overload = node["op_type"].split(".")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    if packet is None and name == "scaled_dot_product_attention":
        return attention(*given, **attrs)
    op = getattr(packet, overload)
    tensors = iter(given)
    sizes = iter(attrs.get("_tensor_list_sizes", []))
    masks = iter(attrs.get("_tensor_list_none_masks", []))
    nones = attrs.get("_none_args", [])
    args, kwargs = [], {}
    for argument in arguments_of(op):
        if argument.is_tensor_list:
            items = [next(tensors) for _ in range(next(sizes))]
            # A mask is written only for a list that has a None.
            if argument.type.startswith("Tensor?") and "_tensor_list_none_masks" in attrs:
                queue = iter(items)
                items = [None if is_none else next(queue) for is_none in next(masks)]
            value = items
        elif argument.is_tensor and argument.name in nones:
            value = None
        elif argument.is_tensor and argument.name in attrs:
            value = attrs[argument.name]
        elif argument.is_tensor:
            value = next(tensors, None)
            if value is not None and argument.is_written:
                value = value.clone()
        elif argument.name in attrs:
            value = parse_attr(attrs[argument.name], argument.type)
        elif argument.has_default:
            value = argument.default
        else:
            value = None
        if argument.keyword_only:
            kwargs[argument.name] = value
        else:
            args.append(value)
    return op(*args, **kwargs)


def parse_attr(value, type_text):
    base = type_text.rstrip("?")
    if isinstance(value, str):
        if base in ("ScalarType", "MemoryFormat", "Layout"):
            return getattr(torch, value.replace("torch.", ""))
        if base == "Device":
            return torch.device(value)
        if base in ("float", "Scalar", "number"):
            return float(value)
    if isinstance(value, list) and base.startswith("float"):
        return [float(item) for item in value]
    return value


def check_files(directory, name):
    """Runs the written files and compares with the reference. Returns a one-line summary."""

    def path(suffix):
        return os.path.join(directory, name + suffix)

    with open(path(".json"), encoding="utf-8") as file:
        document = json.load(file)
    weights = read_safetensors(path(".safetensors"))
    inputs = read_safetensors(path(".inputs.safetensors"))
    wanted = read_safetensors(path(".outputs.safetensors"))
    found = execute_document(document, weights, inputs)
    worst, scale = 0.0, 0.0
    for key, reference in wanted.items():
        result = found[key]
        if result.dtype != reference.dtype or result.shape != reference.shape:
            raise UserError(f"check: output '{key}' differs in dtype or shape")
        if reference.dtype.is_floating_point:
            size = reference.double().abs()
            top = size[size.isfinite()].max().item() if size.isfinite().any() else 0.0
            tolerance = {torch.float64: 1e-10, torch.float32: 1e-4}.get(reference.dtype, 3e-2)
            if not torch.allclose(
                result.double(), reference.double(), rtol=tolerance, atol=tolerance * top, equal_nan=True
            ):
                raise UserError(f"check: output '{key}' differs from PyTorch's own")
            difference = (result.double() - reference.double()).abs()
            difference = difference[difference.isfinite()]
            worst = max(worst, difference.max().item() if difference.numel() else 0.0)
            scale = max(scale, top)
        elif not torch.equal(result, reference):
            raise UserError(f"check: output '{key}' differs from PyTorch's own")
    return f"{len(document['nodes'])} nodes, largest difference {worst:.3g} of {scale:.3g}"


# ------------------------------------------------------------------------------------------- models

# The image size that a model needs, where it is not 224.
IMAGE_SIZES = {"inception_v3": 299, "swin_v2_t": 256, "swin_v2_s": 256, "swin_v2_b": 256}


def load_torchvision(name, batch):
    import torchvision

    models = torchvision.models
    functions = {key: item for key, item in vars(models).items() if inspect.isfunction(item)}
    known = sorted(k for k, f in functions.items() if "weights" in inspect.signature(f).parameters)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=4, cutoff=0.5)
        advice = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(known)}"
        raise UserError(f"torchvision has no classification model '{name}'{advice}")
    # Their own truncated-normal initialisation takes minutes and helps nothing here.
    extra = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = getattr(models, name)(weights=None, **extra)
    # Heads that start at zero and layer scales that start at 1e-6 would hide all that comes before.
    for parameter in model.parameters():
        if parameter.dim() > 1 and parameter.numel() > 1 and parameter.abs().max() < 1e-3:
            torch.nn.init.normal_(parameter, std=0.05)
    size = IMAGE_SIZES.get(name, 224)
    return model, (torch.randn(batch or 1, 3, size, size),)


def load_function(path, function_name, batch):
    if not os.path.isfile(path):
        raise UserError(f"{path}: no such file")
    sys.dont_write_bytecode = True  # leave no __pycache__ beside the model
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    name = os.path.splitext(os.path.basename(path))[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise UserError(f"{path}: not a Python file (expected FILE.py:FUNCTION)")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path}: cannot load: {first_line(error)}") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        own = [k for k, v in vars(module).items() if inspect.isfunction(v) and v.__module__ == name]
        own = [key for key in own if not key.startswith("_")]
        near = difflib.get_close_matches(function_name, own, n=3, cutoff=0.5) or own
        raise UserError(f"{path}: no function '{function_name}'; it has {', '.join(near) or 'none'}")
    if batch is not None and "batch" not in inspect.signature(function).parameters:
        raise UserError(f"{path}:{function_name} takes no `batch`, so --batch {batch} cannot be met")
    try:
        result = function() if batch is None else function(batch=batch)
    except Exception as error:
        raise UserError(f"{path}:{function_name} failed: {first_line(error)}") from None
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], torch.nn.Module)):
        raise UserError(f"{path}:{function_name} must return (model, example inputs)")
    model, example = result
    example = (example,) if isinstance(example, torch.Tensor) else tuple(example)
    if not all(isinstance(item, torch.Tensor) for item in example):
        raise UserError(f"{path}:{function_name}: example inputs must be tensors")
    return model, example


def calibrate_batch_norms(model, example, seed):
    """Sets running statistics near those of the example; see the top of this file."""
    generator = torch.Generator().manual_seed(seed + 1)
    kinds = torch.nn.modules.batchnorm._BatchNorm
    modules = [m for m in model.modules() if isinstance(m, kinds) and m.running_mean is not None]

    def jitter(like, low, high):
        return torch.rand(like.shape, generator=generator).to(like.dtype) * (high - low) + low

    def before(module, inputs):
        x = inputs[0].transpose(0, 1).flatten(1)
        if x.shape[1] < 4:  # too few values per channel for a variance of its own
            x = x.reshape(1, -1).expand(x.shape[0], -1)
        variance = x.var(dim=1, unbiased=False).clamp_min(1e-3) * jitter(module.running_var, 0.8, 1.25)
        mean = x.mean(dim=1) + variance.sqrt() * jitter(module.running_mean, -0.2, 0.2)
        # Rounded, so that the last bits of another CPU's sums do not change the files.
        module.running_mean.copy_(mean.bfloat16())
        module.running_var.copy_(variance.bfloat16())

    for module in modules:
        if module.affine:
            module.weight.copy_(jitter(module.weight, 0.9, 1.1))
            module.bias.copy_(jitter(module.bias, -0.1, 0.1))
    hooks = [module.register_forward_pre_hook(before) for module in modules]
    if hooks:
        run_model(model, example)
    for hook in hooks:
        hook.remove()


def run_model(model, example):
    try:
        with ordinary_attention():
            return model(*(tensor.clone() for tensor in example))
    except Exception as error:
        raise UserError(f"forward() failed: {first_line(error)}") from None


def flatten_tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flatten_tensors(item)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return []
    raise UserError(f"forward() returns a {type(value).__name__}; tensors, lists and dicts are known")


# --------------------------------------------------------------------------------------------- main


def parse_options(argv):
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Export a PyTorch model as an IR document with weights, inputs and results.",
        epilog="""\
SPEC is one of
  torchvision:NAME      a torchvision classification model, e.g. torchvision:resnet18
  FILE.py:FUNCTION      a function without required arguments that returns (model, example
                        inputs); --batch is passed as its parameter `batch`

Files in DIR: NAME.json (the IR), NAME.safetensors (weights), NAME.inputs.safetensors and
NAME.outputs.safetensors (the example inputs, and what PyTorch itself computes from them).

No weights are downloaded; they are random, from --seed. Running statistics and affine
parameters of batch norms are set near those of the example inputs with some noise, so that
activations stay sane and batch norm matters.

Examples:
  export_torch.py torchvision:resnet18 -o zoo
  export_torch.py torchvision:mobilenet_v2 -o zoo --dtype bfloat16 --name mobilenet_v2_bf16
  export_torch.py torchvision:vit_b_16 -o testdata/models --structure-only
  export_torch.py testdata/models/bert_base.py:bert_base -o zoo --check

Needs PyTorch 1.13 or later (Debian: python3-torch python3-torchvision). If this interpreter
cannot import it, $PYTHON, python3 and /usr/bin/python3 are tried.

Exit status: 0 done; 1 the model cannot be exported, or I/O; 2 wrong usage.""",
    )
    parser.add_argument("spec", metavar="SPEC", help="the model (see below)")
    parser.add_argument(
        "-o", "--output", metavar="DIR", required=True, help="folder to write to; made if missing"
    )
    parser.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16", "float64"],
        help="convert weights and floating-point inputs (default: as the model is, usually float32)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of weights and inputs (default %(default)s)"
    )
    parser.add_argument("--batch", type=int, help="batch size (default: 1, or the function's own)")
    parser.add_argument("--name", help="model name and file name (default: from SPEC)")
    parser.add_argument(
        "--structure-only", action="store_true", help="write NAME.json only, without weights"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="execute the written files op by op and compare with the reference outputs",
    )
    options = parser.parse_args(argv)
    source, colon, what = options.spec.rpartition(":")
    if not colon or not source or not what:
        parser.error(f"SPEC '{options.spec}' is neither torchvision:NAME nor FILE.py:FUNCTION")
    if source != "torchvision" and not source.endswith(".py"):
        parser.error(f"SPEC '{options.spec}': '{source}' is neither 'torchvision' nor a .py file")
    if options.batch is not None and options.batch < 1:
        parser.error(f"--batch: {options.batch} is not positive")
    if not 0 <= options.seed < 2**63:
        parser.error(f"--seed: {options.seed} is not in 0..2^63-1")
    if options.check and options.structure_only:
        parser.error("--check needs weights and outputs, which --structure-only leaves out")
    options.name = options.name or what
    if not re.fullmatch(r"[\w][\w.+-]*", options.name):
        parser.error(f"--name: '{options.name}' is no plain file name")
    options.source, options.what = source, what
    return options


def export(options):
    torch.manual_seed(options.seed)
    if options.source == "torchvision":
        model, example = load_torchvision(options.what, options.batch)
    else:
        model, example = load_function(options.source, options.what, options.batch)
    model.eval()
    calibrate_batch_norms(model, example, options.seed)
    if options.dtype:
        dtype = getattr(torch, options.dtype)
        model.to(dtype)
        example = tuple(t.to(dtype) if t.is_floating_point() else t for t in example)
    # Copies, so that a model that writes to its inputs or outputs later cannot change the files.
    reference = [tensor.clone() for tensor in flatten_tensors(run_model(model, example))]
    build = build_with_export if has_torch_export() else build_with_trace
    try:
        with ordinary_attention():
            builder, outputs = build(model, tuple(tensor.clone() for tensor in example))
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise UserError(f"cannot trace the model: {first_line(error)}") from None
    if not outputs:
        raise UserError("forward() returns no tensor")
    if len(outputs) != len(reference):
        raise UserError(f"the trace has {len(outputs)} outputs, the model {len(reference)}")
    name = options.name
    text = format_document(make_document(name, builder, outputs, not options.structure_only))
    writers = {f"{name}.json": lambda file: file.write(text.encode())}
    if not options.structure_only:
        weights = {value.key: value.tensor for value in builder.weights}
        inputs = {value.name: tensor for value, tensor in zip(builder.inputs, example)}
        results = {value.name: tensor for value, tensor in zip(outputs, reference)}
        writers[f"{name}.safetensors"] = lambda file: write_safetensors(file, weights)
        writers[f"{name}.inputs.safetensors"] = lambda file: write_safetensors(file, inputs)
        writers[f"{name}.outputs.safetensors"] = lambda file: write_safetensors(file, results)
    write_files(options.output, writers)
    if options.check:
        print(f"{PROGRAM}: {name}: {check_files(options.output, name)}", file=sys.stderr)


def main(argv):
    options = parse_options(argv)
    try:
        load_torch(options.source == "torchvision")
        with torch.no_grad():
            export(options)
    except UserError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
