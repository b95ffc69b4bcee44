# SPDX-License-Identifier: Apache-2.0
"""The document: npu-ir(5) from a finished graph, and its text."""

import json
import math

import torch

from export.errors import UserError
from export.graph import Value, flatten_values
from export.schema import arguments_of
from export.torch_tensors import dtype_name

IR_VERSION = 1

# Larger lifted constants are only in the weights file, so that the document stays readable.
MAX_INLINE_CONSTANT = 1024


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
    """The arguments that were passed explicitly, without trailing and keyword arguments at their default."""
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
    section = {"weights_file": f"{name}.safetensors"} if with_files else {}
    if builder.states:
        section["states"] = [state.entry() for state in builder.states]
    if builder.roles:
        section["generate"] = {role: value.name for role, value in builder.roles.items()}
        if "tokens" in builder.roles and getattr(builder.memory, "start", []):
            section["generate"]["start"] = builder.memory.start
    if section:
        document["npu"] = {"version": IR_VERSION, **section}
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
