# SPDX-License-Identifier: Apache-2.0
"""A graph from torch.export, for PyTorch 2.1 and later."""

import contextlib
import inspect
import logging
import operator
import re
import warnings

import torch

from export.builder import Builder
from export.errors import TraceError, UserError, first_line, warn_of_choice
from export.graph import Value, flatten_values, storage_pointer
from export.memory import RememberingModel
from export.models import model_tensors
from export.patches import ValuesInPython
from export.places import describe_module, place_of_error, place_of_source, with_place
from export.schema import arguments_of
from export.sizes import parse_size
from export.structure import FlatModel

# Regions of a model that torch.export keeps as graphs of their own, and which operand the graph is. All that they change
# is a mode: gradients are of no interest here, and autocast becomes conversions.
REGIONS = {"wrap_with_set_grad_enabled": 1, "wrap_with_autocast": 4}
# Ops that only check what was true while the model was traced.
CHECKS = re.compile(r"aten::(_assert_(tensor_metadata|async|scalar)|sym_constrain_range(_for_size)?)$")
SIZES = {
    "aten::sym_size": lambda tensor, dim=None: list(tensor.shape) if dim is None else tensor.shape[dim],
    "aten::sym_stride": lambda tensor, dim=None: list(tensor.stride()) if dim is None else tensor.stride(dim),
    "aten::sym_numel": lambda tensor: tensor.numel(),
    "aten::sym_storage_offset": lambda tensor: tensor.storage_offset(),
}
FLAT = "model."  # FlatModel's name for the model


def has_torch_export():
    version = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    return version >= (2, 1) and hasattr(torch, "export")


def build_with_export(model, inputs, memory=None):
    """torch.export (PyTorch 2.1 and later); before 2.5 it has only the decomposed op names."""
    return read_program(program_of(model, inputs, memory=memory), model, inputs, memory=memory)


def program_of(model, inputs, sizes=None, memory=None):
    """The exported program of FlatModel; with `sizes` (dynamic.SeveralSizes) for inputs whose sizes vary."""
    flat = (RememberingModel(model, inputs, memory) if memory else FlatModel(model, inputs)).eval()
    try:
        try:
            return export_program(flat, inputs.copies(), sizes)
        except Exception as error:
            if "data-dependent" not in str(error).lower() or sizes is not None:
                raise
            return export_with_values(flat, inputs)
    except Exception as error:
        what = str(error) if isinstance(error, UserError) else f"torch.export does not take the model: {first_line(error)}"
        if "data-dependent" in str(error).lower():
            what += "; a tensor's value decides what runs or how large something is"
        raise TraceError(with_place(what, place_of_error(model, error))) from None


def export_with_values(flat, inputs):
    """Exports with the numbers that the model reads from tensors for these inputs, which torch.export does not know."""
    values = ValuesInPython()
    with values.noted():
        flat(*inputs.copies())
    with values.given():
        program = export_program(flat, inputs.copies())
    for path, line in dict.fromkeys((path, line) for path, line, _ in values.values):
        warn_of_choice(path, line)
    return program


def export_program(model, example, sizes=None):
    export = getattr(torch.export, "export_for_training", torch.export.export)
    # Without bytecode analysis, where there is the choice, errors come from the lines of the model that they are about.
    options = {"strict": False} if "strict" in inspect.signature(export).parameters else {}
    if sizes is not None:
        # Named ones with ranges are refused where a model has guards that hold anyway, such as min(16*S, 32*S) == 16*S.
        vary = getattr(torch.export.Dim, "DYNAMIC", None)
        if vary is None:
            raise UserError(f"--dynamic needs PyTorch 2.5 or later, or 1.13; this is {torch.__version__}")
        dims = [{dim: vary for dim in sizes.dimensions_of(name)} for name in sizes.inputs.names]
        options["dynamic_shapes"] = {"tensors": tuple(dims)}
    with quiet():
        return export(model, example, **options)


@contextlib.contextmanager
def quiet():
    """Without the warnings of torch.export and the tracebacks that it logs beside the exception that it raises."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def read_program(program, model, inputs, names=None, memory=None):
    """An exported program of FlatModel. Returns the builder and the outputs' Values.

    `names` has Sizes for torch.export's symbols, by their texts, where sizes vary; `memory` is given where what forward()
    changes becomes states.
    """
    builder = Builder(memory)
    weights = {key: (tensor, kind) for key, tensor, kind in model_tensors(model)}
    added = {key: builder.add_weight(key, tensor, kind) for key, (tensor, kind) in weights.items()}
    by_memory = {(storage_pointer(t), t.shape): added[key] for key, (t, _) in weights.items()}
    constants = dict(getattr(program, "constants", {}) or {})
    user_inputs = iter(zip(inputs.names, inputs.copies()))
    given = []
    for spec in program.graph_signature.input_specs:
        key = (spec.target or "").removeprefix(FLAT)
        if spec.kind.name == "USER_INPUT":
            given.append(builder.add_input(*next(user_inputs)))
        elif spec.kind.name not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            raise UserError(f"torch.export gave the model an input of kind {spec.kind.name}, which the IR cannot say")
        elif key in added:
            given.append(added[key])
        elif spec.target in constants:
            made_while_tracing = key.startswith("lifted_tensor")
            constant = Value(constants[spec.target], "constant", key=key)
            given.append(constant if made_while_tracing else builder.add_constant(key, constants[spec.target]))
        else:  # a tied tensor's other key
            tensor = program.state_dict[spec.target]
            given.append(by_memory[storage_pointer(tensor), tensor.shape])
    results = Reader(builder, by_memory, names).run(program.graph_module, given)
    outputs = []
    for spec, result in zip(program.graph_signature.output_specs, results):
        if spec.kind.name == "BUFFER_MUTATION":  # as functional graphs say it
            key = spec.target.removeprefix(FLAT)
            if memory is None:
                raise UserError(f"forward() changes '{key}' in place; make it a state with --state, or return the new value")
            builder.replace(added[key], result)
        if spec.kind.name == "USER_OUTPUT":
            outputs.append(result)
    return builder, builder.take_replaced(outputs)


def shapes_of_inputs(program, names):
    """What torch.export says of the sizes of the model's inputs, by their names."""
    user = iter(names)
    shapes = {}
    placeholders = [node for node in program.graph_module.graph.nodes if node.op == "placeholder"]
    for spec, node in zip(program.graph_signature.input_specs, placeholders):
        if spec.kind.name == "USER_INPUT":
            shapes[next(user)] = [str(size) for size in node.meta["val"].shape]
    return shapes


class Reader:
    """Adds the nodes of an fx graph, and of the graphs in it, to a builder."""

    def __init__(self, builder, by_memory, names=None):
        self.builder = builder
        self.names = names or {}
        self.by_memory = by_memory  # Values of the model's tensors
        self.attributes = {}  # Values of tensors that are attributes of a graph
        self.autocast = None  # the dtype of the region

    def run(self, module, given):
        """The results of one graph, as its output node has them."""
        given, env = iter(given), {}
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "output":
                return replaced(node.args[0], env)
            else:
                self.builder.where = lambda node=node: place_of_node(node)
                try:
                    env[node] = self.result_of(module, node, env)
                    self.state_sizes(node, env[node])
                except TraceError:
                    raise
                except Exception as error:
                    op = name_of(node.target)
                    what = str(error) if isinstance(error, UserError) else f"{op}: {first_line(error)}"
                    place = place_of_node(node)
                    # In a region without places the node that holds it has one.
                    kind = TraceError if place else UserError
                    raise kind(with_place(what, place, "" if op in what or op in REGIONS else op)) from None
        raise UserError("torch.export gave a graph without an output")

    def state_sizes(self, node, result):
        """Notes what torch.export says of the sizes of a result."""
        if not self.names or not isinstance(result, Value):
            return
        for dim, size in enumerate(getattr(node.meta.get("val"), "shape", ())):
            stated = None if str(size).isdigit() else parse_size(str(size), self.names)
            if stated is not None:
                result.current.stated.setdefault(dim, stated)

    def result_of(self, module, node, env):
        if node.op == "get_attr":
            return self.attribute(module, node.target)
        if node.op != "call_function":
            raise UserError(f"torch.export gave a {node.op} node, which the IR cannot say")
        args, kwargs = replaced(node.args, env), replaced(node.kwargs, env)
        if node.target is operator.getitem:
            return args[0][args[1]]
        name = name_of(node.target)
        if name in REGIONS:
            return self.region(name, args)
        schema = getattr(node.target, "_schema", None)
        if schema is not None and CHECKS.match(schema.name):
            return None
        if schema is not None and schema.name in SIZES:
            return SIZES[schema.name](args[0].tensor, *args[1:], **kwargs)
        if is_arithmetic(node.target, [*args, *kwargs.values()]):
            return node.target(*args, **kwargs)
        if schema is None:
            raise UserError(f"torch.export gave {name}, which is no op of tensors that the IR can say")
        arguments = arguments_of(node.target)
        bound = [kwargs.get(argument.name, argument.default) for argument in arguments]
        bound[: len(args)] = args
        if self.autocast is not None and not any(argument.is_written for argument in arguments):
            bound = self.converted(node.target, bound)
        return self.builder.call(node.target, bound)

    def attribute(self, module, path):
        value = operator.attrgetter(path)(module)
        if isinstance(value, torch.nn.Module):
            return value
        if not isinstance(value, torch.Tensor):
            raise UserError(f"torch.export gave the attribute {path}, a {type(value).__name__}, which the IR cannot say")
        known = self.by_memory.get((storage_pointer(value), value.shape)) if value.numel() else None
        return known or self.attributes.setdefault((module, path), Value(value, "constant"))

    def region(self, name, args):
        position = REGIONS[name]
        outside = self.autocast
        if name == "wrap_with_autocast":
            device, dtype, enabled = args[:3]
            if device == "cpu":
                self.autocast = (dtype or torch.bfloat16) if enabled else None  # the default on CPUs
        try:
            return self.run(args[position], args[position + 1 :])
        finally:
            self.autocast = outside

    def converted(self, op, args):
        """Arguments of an op in a region of autocast, with the conversions that it makes there as ops of their own.

        Which ones PyTorch makes differs by op and version, so it is asked: they are those that give its bits.
        """
        tensors = [value for value in flatten_values(args) if value.tensor.is_floating_point()]
        if not tensors:
            return args
        with torch.autocast("cpu", dtype=self.autocast, cache_enabled=False):
            wanted = execute(op, args, None)
        for dtype in (None, self.autocast, torch.float32):
            try:
                found = execute(op, args, dtype)
            except RuntimeError:  # operands of several dtypes, say
                continue
            if same_bits(wanted, found):
                return self.with_conversions(args, dtype)
        raise UserError("autocast converts the operands in a way that is not known; leave it out of forward()")

    def with_conversions(self, value, dtype):
        if isinstance(value, (list, tuple)):
            return [self.with_conversions(item, dtype) for item in value]
        if not converts(value, dtype):
            return value
        return self.builder.call(torch.ops.aten.to.dtype, [value, dtype])


def converts(value, dtype):
    """Whether autocast converts this operand where it converts to `dtype`."""
    kinds = (torch.float32, torch.bfloat16, torch.float16)
    return dtype is not None and isinstance(value, Value) and value.tensor.dtype in kinds and value.tensor.dtype != dtype


def execute(op, args, dtype):
    """The result of an op whose operands were converted."""

    def concrete(value):
        if isinstance(value, (list, tuple)):
            return [concrete(item) for item in value]
        if not isinstance(value, Value):
            return value
        return value.current.tensor.to(dtype) if converts(value, dtype) else value.current.tensor

    arguments = arguments_of(op)
    positional = [concrete(v) for a, v in zip(arguments, args) if not a.keyword_only]
    return op(*positional, **{a.name: concrete(v) for a, v in zip(arguments, args) if a.keyword_only})


def same_bits(one, other):
    if isinstance(one, torch.Tensor):
        if one.dtype != other.dtype or one.shape != other.shape:
            return False
        return bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, (list, tuple)):
        return all(same_bits(a, b) for a, b in zip(one, other))
    return one == other


def replaced(value, env):
    """An argument of an fx node with results in place of nodes."""
    if isinstance(value, torch.fx.Node):
        return env[value]
    if isinstance(value, (list, tuple)):
        return [replaced(item, env) for item in value]
    if isinstance(value, dict):
        return {key: replaced(item, env) for key, item in value.items()}
    return value


def is_arithmetic(function, args):
    """Whether this is one of Python's functions of numbers, which torch.export writes where sizes are computed."""
    module = str(getattr(function, "__module__", None)).partition(".")[0]
    known = module in ("_operator", "operator", "math", "builtins", "torch") and not hasattr(function, "_schema")
    return known and not flatten_values(args) and not any(isinstance(item, torch.nn.Module) for item in args)


def name_of(target):
    """aten.add.Tensor, wrap_with_autocast, getitem."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return f"{schema.name.replace('::', '.')}.{schema.overload_name or 'default'}"
    return str(getattr(target, "_name", None) or getattr(target, "__name__", None) or target)


def place_of_node(node):
    """The module and the line that a node comes from."""
    stack = [(str(path), kind) for path, kind, *_ in (node.meta.get("nn_module_stack") or {}).values()]
    module = ""
    if stack:
        path = re.sub(r"^L\['self'\]\.?", "", stack[-1][0])
        kind = stack[-1][1] if isinstance(stack[-1][1], str) else stack[-1][1].__name__
        kind = kind.rpartition(".")[2]
        if kind != FlatModel.__name__:
            module = describe_module(f"{path}.".removeprefix(FLAT).rstrip("."), kind)
    return ", ".join(filter(None, [module, place_of_source(node.meta.get("stack_trace"))]))
