# SPDX-License-Identifier: Apache-2.0
"""A graph from torch.jit.trace, for PyTorch 1.13."""

import contextlib
import re
import warnings

import torch

from export.builder import Builder
from export.errors import TraceError, UserError, first_line, warn_of_choice
from export.graph import Value, flatten_values, storage_pointer
from export.memory import RememberingModel
from export.models import model_tensors
from export.patches import traced_data, tracing_context
from export.places import module_text, place_of_source, with_place
from export.schema import arguments_of, plain
from export.structure import FlatModel


def build_with_trace(model, inputs, memory=None):
    """torch.jit.trace, rewritten node by node (PyTorch 1.13). Returns the builder and the outputs' Values.

    `memory` is given where what forward() changes becomes states.
    """
    example = inputs.copies()
    states = memory.states() if memory else []
    wrapper = (RememberingModel(model, inputs, memory) if memory else FlatModel(model, inputs)).eval()
    with tracing_context() as attention, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        given = (*example, *(slot.get().clone() for slot in states))
        with traced_data() if memory else contextlib.nullcontext():
            traced = torch.jit.trace(wrapper, given, check_trace=False)
    choices = (w for w in caught if "Converting a tensor to a Python" in str(w.message))
    for path, line in dict.fromkeys((w.filename, w.lineno) for w in choices):
        warn_of_choice(path, line)

    builder = Builder(memory)
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
        if (key, tensor.shape) not in keyed:
            keyed[key, tensor.shape] = builder.add_constant(key, tensor)
        return keyed[key, tensor.shape]

    def walk(graph, given):
        """One method's graph. The tracer's inlining cannot be used: it optimises, e.g. merges cats."""
        env = {value.debugName(): item for value, item in zip(graph.inputs(), given)}
        for node in graph.nodes():
            args = [env[value.debugName()] for value in node.inputs()]
            builder.where = lambda node=node: place_of_source(node.sourceRange())
            try:
                results = results_of(node, args)
            except TraceError:
                raise
            except Exception as error:
                what = str(error) if isinstance(error, UserError) else f"{node.kind()}: {first_line(error)}"
                op = "" if node.kind().startswith("prim::") or node.kind() in what else node.kind().replace("::", ".")
                places = module_text(model, given[0][0]), place_of_source(node.sourceRange()), op
                raise TraceError(with_place(what, *places)) from None
            env.update(zip([value.debugName() for value in node.outputs()], results))
        return [env[value.debugName()] for value in graph.outputs()]

    def results_of(node, args):
        kind = node.kind()
        if kind == "prim::Constant":
            value = node.output().toIValue()
            return [constant(value) if isinstance(value, torch.Tensor) else value]
        if kind == "prim::GetAttr":
            module, script = args[0]
            item = getattr(module, node.s("name"))
            if id(item) in weights:
                return [weights[id(item)]]
            if isinstance(item, torch.Tensor):
                return [constant(item)]
            return [(item, script.getattr(node.s("name")))]
        if kind == "prim::CallMethod":
            return walk(args[0][1]._get_method(node.s("name")).graph, args)
        if kind in ("prim::ListConstruct", "prim::TupleConstruct"):
            return [args]
        if kind == "prim::DictConstruct":
            return [dict(zip(args[::2], args[1::2]))]
        if kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            return args[0]
        if kind.startswith("prim::") or node.schema() == "(no schema)":
            what = node.pyname() if kind == "prim::PythonOp" else kind
            raise UserError(f"the trace has {what}, which is no ATen op")
        if kind == "aten::__getitem__" and isinstance(args[0], (list, dict)):
            return [args[0][args[1]]]
        results = call_traced(builder, node, args, attention, memory.changed if memory else ())
        return [results] if node.outputsSize() == 1 else results

    given = [builder.add_input(name, tensor) for name, tensor in zip(inputs.names, example)]
    given += [weights.get(id(slot.get())) or builder.add_constant(slot.key, slot.get()) for slot in states]
    script = traced._c
    results = flatten_values(walk(script._get_method("forward").graph, [(wrapper, script)] + given))
    return builder, builder.take_replaced(results)


def call_traced(builder, node, args, attention, changed):
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
    if kind in ("aten::to", "aten::detach", "aten::lift_fresh") and args[0].kind == "constant" and args[0].key not in changed:
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
