# SPDX-License-Identifier: Apache-2.0
"""Executes a written document op by op and compares with the reference outputs."""

import json
import os

import torch

from export.errors import UserError
from export.patches import attention
from export.positions import length_mask
from export.schema import arguments_of
from export.torch_tensors import dtype_name, read_safetensors


def execute_document(document, weights, inputs):
    """A small interpreter of the IR, which executes the document as it was written."""
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


def first_states(document):
    """What states hold before the first step."""
    states = {state.get("input") for state in document.get("npu", {}).get("states", [])}
    entries = [entry for entry in document["graph_inputs"] if entry["name"] in states]
    return {entry["name"]: torch.zeros(entry["shape"], dtype=getattr(torch, entry["dtype"])) for entry in entries}


def check_shape(node, entry, tensor):
    if list(tensor.shape) != entry["shape"] or dtype_name(tensor.dtype) != entry["dtype"]:
        found = f"{dtype_name(tensor.dtype)} {list(tensor.shape)}"
        wanted = f"{entry['dtype']} {entry['shape']}"
        raise UserError(f"check: {node['name']}: '{entry['name']}' is {found}, the IR says {wanted}")


def find_op(op_type):
    """None for attention where PyTorch lacks it."""
    namespace, name, overload = op_type.split(".")
    packet = getattr(getattr(torch.ops, namespace), name, None)
    if packet is None and name == "scaled_dot_product_attention":
        return None
    return getattr(packet, overload)


def execute_node(node, given, attrs):
    if node["op_type"] == "npu.length_mask":
        return length_mask(*given, **attrs)
    op = find_op(node["op_type"])
    if op is None:
        return attention(*given, **attrs)
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


def check_steps(document, builder, memory, inputs):
    """Compares two steps with the model's: what is written where the trace does not see it shows in the second at the latest."""
    weights = {value.key: value.tensor for value in builder.weights}
    given = {value.name: tensor for value, tensor in zip(builder.inputs, inputs.tensors)}
    states = first_states(document)
    states.update({s.value.name: memory.slots[s.key].get() for s in builder.states if s.final is None})
    for _ in range(2):
        found = execute_document(document, weights, {**given, **states})
        both = [state for state in builder.states if state.value is not None and state.final is not None]
        states.update({state.value.name: found[state.final.name] for state in both})
    results, wanted = memory.two_steps(inputs)
    written = [state for state in builder.states if state.final is not None]
    pairs = [(f"the state '{state.key}'", found[state.final.name], wanted[state.key]) for state in written]
    names = [entry["name"] for entry in document["graph_outputs"]]
    pairs += [(f"output '{name}'", found[name], result) for name, result in zip(names, results)]
    for what, one, other in pairs:
        if not are_close(one, other):
            raise UserError(
                f"after two steps {what} is not what forward() gives: the trace does not show all that is written (by NumPy, say)"
            )


def are_close(one, other):
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if not other.dtype.is_floating_point:
        return torch.equal(one, other)
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-4}.get(other.dtype, 3e-2)
    least = tolerance * largest_of(other)
    return torch.allclose(one.double(), other.double(), rtol=tolerance, atol=least, equal_nan=True)


def largest_of(tensor):
    """The largest magnitude that is finite."""
    size = tensor.double().abs()
    return size[size.isfinite()].max().item() if size.isfinite().any() else 0.0


def check_files(directory, name):
    """Runs the written files and compares with the reference. Returns a one-line summary."""

    def path(suffix):
        return os.path.join(directory, name + suffix)

    with open(path(".json"), encoding="utf-8") as file:
        document = json.load(file)
    weights = read_safetensors(path(".safetensors"))
    inputs = read_safetensors(path(".inputs.safetensors"))
    wanted = read_safetensors(path(".outputs.safetensors"))
    found = execute_document(document, weights, {**first_states(document), **inputs})
    worst, scale = 0.0, 0.0
    for key, reference in wanted.items():
        result = found[key]
        if result.dtype != reference.dtype or result.shape != reference.shape:
            raise UserError(f"check: output '{key}' differs in dtype or shape")
        if not are_close(result, reference):
            raise UserError(f"check: output '{key}' differs from PyTorch's own")
        if reference.dtype.is_floating_point:
            difference = (result.double() - reference.double()).abs()
            difference = difference[difference.isfinite()]
            worst = max(worst, difference.max().item() if difference.numel() else 0.0)
            scale = max(scale, largest_of(reference))
    return f"{len(document['nodes'])} nodes, largest difference {worst:.3g} of {scale:.3g}"
