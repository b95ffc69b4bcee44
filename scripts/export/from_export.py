# SPDX-License-Identifier: Apache-2.0
"""A graph from torch.export, for PyTorch 2.1 and later."""

import operator
import re

import torch

from export.builder import Builder
from export.errors import TraceError, UserError, first_line
from export.graph import Value, storage_pointer
from export.models import model_tensors, parameter_names
from export.places import place_of_source
from export.schema import arguments_of


def has_torch_export():
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    return version >= (2, 1) and hasattr(torch, "export")


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
        if node.op in ("call_function", "call_module", "call_method", "get_attr"):
            try:
                env[node] = result_of(builder, node, env)
            except Exception as error:
                what = str(error) if isinstance(error, UserError) else f"{node.target}: {first_line(error)}"
                modules = list(node.meta.get("nn_module_stack", {}).values())
                module = f"module '{modules[-1][0]}'" if modules else ""
                place = ", ".join(filter(None, [module, place_of_source(node.meta.get("stack_trace"))]))
                raise TraceError(what + (f" ({place})" if place else "")) from None
        elif node.op == "placeholder":
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
        else:
            raise UserError(f"torch.export gave a {node.op} node, which the IR cannot say")
    return builder, builder.finish(results)


def result_of(builder, node, env):
    if node.op != "call_function":
        raise UserError(f"torch.export gave a {node.op} node, which the IR cannot say")
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda item: env[item])
    if node.target is operator.getitem:
        return args[0][args[1]]
    if not isinstance(node.target, torch._ops.OpOverload):
        raise UserError(f"torch.export gave {node.target}, which is no ATen op")
    bound = []
    for position, argument in enumerate(arguments_of(node.target)):
        default = kwargs.get(argument.name, argument.default)
        bound.append(args[position] if position < len(args) else default)
    return builder.call(node.target, bound)
