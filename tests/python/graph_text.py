# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch.export as text: written where PyTorch has it, read anywhere into stand-ins of what it returns.

The text is what print(program.graph) gives, and besides

    graph():                                            the graph, then each graph in it by its path:
    submod_1 = graph():                                 (submod_1.submod_1 is in it)
        # model.py:12 encoder.layer (Layer)             before nodes that come from another line or module
        %x : [num_users=1] = placeholder[target=x] -> float32[2, 3]
        %max_1 : [num_users=2] = call_function[...](...) -> (float32[2], int64[2])

A size that depends on values is `?`, one that varies an expression of torch.export's symbols, such as `s0 + 1`. Names of
placeholders tell what they are, as torch.export has them: p_ a parameter,
b_ a buffer, c_ a constant. Ops that this PyTorch lacks get a stand-in with the schema of the newer one.
"""

import builtins
import math
import operator
import os
import re
import types

import torch
from export.from_export import has_torch_export
from export.places import place_of_source
from export.structure import FlatModel
from op_corpus.newer_ops import NewerOp, resolve

REGION = "torch.ops.higher_order."


class Region:
    """A higher-order op that runs a graph under some mode."""

    def __init__(self, name):
        self._name = name

    def __call__(self, *args):
        raise NotImplementedError(self._name)


def grouped_product(a, b, offsets):
    """Rows of `a` up to each offset by the matrix of that group; rows behind the last one are zero."""
    result, begin = a.new_zeros(a.shape[0], b.shape[-1]), 0
    for group, end in enumerate(offsets.tolist()):
        result[begin:end] = a[begin:end] @ b[group]
        begin = end
    return result


def stand_in(schema, function):
    op = NewerOp("x() -> ()", function)
    op._schema = torch._C.parse_schema(schema)
    return op


STAND_INS = {
    "transformers.grouped_mm_fallback.default": stand_in(
        "transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor", grouped_product
    ),
    "aten._grouped_mm.default": stand_in(
        "aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
        "ScalarType? out_dtype=None) -> Tensor",
        lambda a, b, offs=None, bias=None, out_dtype=None: grouped_product(a, b, offs),
    ),
    "aten.item.default": stand_in("aten::item(Tensor self) -> Scalar", lambda tensor: tensor.item()),
    "aten.sym_size.int": stand_in("aten::sym_size.int(Tensor self, int dim) -> SymInt", lambda t, dim: t.shape[dim]),
    "aten.sym_constrain_range_for_size.default": stand_in(
        "aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
        lambda size, min=None, max=None: None,
    ),
}


def find_target(text):
    """What a node calls."""
    if text.startswith(REGION):
        return Region(text.removeprefix(REGION))
    if text.startswith("torch.ops."):
        name = text.removeprefix("torch.ops.")
        namespace, op, overload = name.split(".")
        here = getattr(getattr(getattr(torch.ops, namespace), op, None), overload, None)
        if name in STAND_INS and (here is None or not has_torch_export()):
            return STAND_INS[name]
        if namespace == "aten":
            return resolve(op if overload == "default" else f"{op}.{overload}", newer=not has_torch_export())
        return here
    owners = {"operator": operator, "_operator": operator, "math": math, "builtins": builtins, "torch": torch}
    owner, _, name = text.rpartition(".")
    if owner == "torch" and name.startswith("sym_") and not hasattr(torch, name):
        plain = {"sym_max": max, "sym_min": min, "sym_not": operator.not_, "sym_float": float, "sym_int": int}
        return plain[name]
    return getattr(owners[owner], name)


class Arguments:
    """Reads what stands behind `args = ` and `kwargs = `."""

    def __init__(self, text, nodes, is_return=False):
        self.text, self.at, self.nodes, self.is_return = text, 0, nodes, is_return

    def skip(self, what):
        assert self.text.startswith(what, self.at), f"expected {what} at {self.text[self.at:]}"
        self.at += len(what)
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1

    def peek(self):
        return self.text[self.at : self.at + 1]

    def value(self, key=None):
        first = self.peek()
        if first in "([":
            return self.items(first, ")" if first == "(" else "]")
        word = re.compile(r"[^,()\[\]{}]*").match(self.text, self.at).group()
        self.at += len(word)
        return self.word(word.strip(), key)

    def items(self, opening, closing):
        self.skip(opening)
        items = []
        while self.peek() != closing:
            items.append(self.value())
            if self.peek() == ",":
                self.skip(",")
        self.skip(closing)
        return tuple(items) if opening == "(" else items

    def mapping(self):
        self.skip("{")
        result = {}
        while self.peek() != "}":
            key = re.compile(r"\w+").match(self.text, self.at).group()
            self.skip(key)
            self.skip(":")
            result[key] = self.value(key)
            if self.peek() == ",":
                self.skip(",")
        self.skip("}")
        return result

    def word(self, word, key):
        if word.startswith("%") or (self.is_return and word in self.nodes):
            return self.nodes[word.removeprefix("%")]
        if word in ("None", "True", "False"):
            return {"None": None, "True": True, "False": False}[word]
        if word.startswith("torch."):
            return getattr(torch, word.removeprefix("torch."))
        if key == "device" or re.fullmatch(r"(cpu|cuda|meta)(:\d+)?", word):
            return torch.device(word) if key == "device" else word
        for kind in (int, float):
            try:
                return kind(word)
            except ValueError:
                pass
        return word


def read_type(text):
    """float32[2, 3] as (dtype, shape); several in brackets as a list; None if there is none."""
    if not text:
        return None
    found = re.findall(r"(\w+)\[([^\[\]]*)\]", text)
    read = [(getattr(torch, dtype), [read_size(size) for size in shape.split(", ") if size]) for dtype, shape in found]
    return read if text.startswith("(") else read[0]


def read_size(text):
    return None if text == "?" else int(text) if text.isdigit() else text


NODE = re.compile(
    r"    %(?P<name>\w+) : \[num_users=\d+\] = (?P<op>\w+)\[target=(?P<target>[\w.]+)\]"
    r"(?:\(args = (?P<args>.*), kwargs = (?P<kwargs>\{.*\})\))?(?: -> (?P<type>.*))?$"
)
PLACE = re.compile(r"    # (?P<file>\S+):(?P<line>\d+)(?: (?:(?P<module>\S+) )?\((?P<kind>\w+)\))?$")


def read_graph(lines, path):
    """A module with one fx graph, whose nodes have their type in meta["type"] and their place as torch.export has it."""
    module = torch.nn.Module()
    module.graph, nodes, place = torch.fx.Graph(), {}, {}
    for line in lines:
        if not line.strip():
            continue
        match = PLACE.match(line)
        if match:
            file = os.path.join(os.path.dirname(path), match["file"])
            place = {"stack_trace": f'  File "{file}", line {match["line"]}, in forward\n'}
            if match["kind"]:
                name = f"model.{match['module']}" if match["module"] else "model"
                place["nn_module_stack"] = {"root": ("", FlatModel), "own": (name, f"models.{match['kind']}")}
            continue
        if line.startswith("    return "):
            results = Arguments(line.removeprefix("    return "), nodes, is_return=True).value()
            module.graph.create_node("output", "output", (results,))
            break
        match = NODE.match(line)
        assert match, f"{path}: cannot read {line}"
        args = Arguments(match["args"], nodes).value() if match["args"] else ()
        kwargs = Arguments(match["kwargs"], nodes).mapping() if match["kwargs"] else {}
        target = find_target(match["target"]) if match["op"] == "call_function" else match["target"]
        node = module.graph.create_node(match["op"], target, args, kwargs, match["name"])
        stated = read_type(match["type"])
        node.meta = {**place, "type": stated, "name": match["name"]}
        if isinstance(stated, tuple) and any(isinstance(size, str) for size in stated[1]):
            node.meta["val"] = types.SimpleNamespace(shape=stated[1])
        nodes[match["name"]] = node
    return module


def read_text(path):
    """The module of a text file, with the graphs in it as its submodules and theirs."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    parts = re.split(r"^(?:(\w[\w.]*) = )?graph\(\):$", text, flags=re.MULTILINE)
    graphs = {name or "": read_graph(body.split("\n"), path) for name, body in zip(parts[1::2], parts[2::2])}
    for owner, module in graphs.items():
        for node in module.graph.nodes:
            if node.op == "get_attr":
                setattr(module, node.target, graphs[f"{owner}.{node.target}".lstrip(".")])
    return graphs[""]


def fill(dtype, shape, generator):
    """A tensor of random values that suit its dtype."""
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.8
    if not dtype.is_floating_point:
        return torch.randint(0, 4, shape, generator=generator).to(dtype)
    return (torch.rand(shape, generator=generator) * 2 - 1).to(dtype)


class Program:
    """What read_program() reads of an exported program, from a text, and a model that has its tensors."""

    def __init__(self, path, values=None, sizes=None):
        """`values`: tensors by name of a placeholder, where they are not to be random; `sizes`: of symbols."""
        self.graph_module = read_text(path)
        generator = torch.Generator().manual_seed(1)
        self.model, self.args, self.constants = torch.nn.Module(), {}, {}
        specs = []
        for node in self.graph_module.graph.nodes:
            if node.op != "placeholder":
                continue
            name = node.meta["name"]
            tensor = (values or {}).get(name)
            dtype, shape = node.meta["type"]
            shape = [sizes[size] if isinstance(size, str) else size for size in shape]
            tensor = fill(dtype, shape, generator) if tensor is None else tensor
            kind = {"p_": "PARAMETER", "b_": "BUFFER", "c_": "CONSTANT_TENSOR"}.get(name[:2], "USER_INPUT")
            key = name[2:].removeprefix("model_")
            if kind == "PARAMETER":
                self.model.register_parameter(key, torch.nn.Parameter(tensor, requires_grad=False))
            elif kind == "BUFFER":
                self.model.register_buffer(key, tensor)
            elif kind == "CONSTANT_TENSOR":
                self.constants[f"model.{key}"] = tensor
            else:
                self.args[name] = tensor
            target = None if kind == "USER_INPUT" else f"model.{key}"
            specs.append(types.SimpleNamespace(kind=types.SimpleNamespace(name=kind), target=target))
        outputs = next(node for node in self.graph_module.graph.nodes if node.op == "output").args[0]
        user = types.SimpleNamespace(kind=types.SimpleNamespace(name="USER_OUTPUT"), target=None)
        self.graph_signature = types.SimpleNamespace(input_specs=specs, output_specs=[user] * len(outputs))
        self.state_dict = {}
        self.model.forward = lambda **inputs: None

    def tensors(self):
        """All placeholders' tensors, in order."""
        own = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        user = iter(self.args.values())
        for spec in self.graph_signature.input_specs:
            if spec.target is None:
                yield next(user).clone()
            elif spec.target in self.constants:
                yield self.constants[spec.target].clone()
            else:
                yield own[spec.target.removeprefix("model.")].clone()


def interpret(module, given):
    """The results of a graph, node by node as PyTorch runs it; each must have the type that the text states."""
    given, env = iter(given), {}

    def value(item):
        return torch.fx.node.map_arg(item, lambda node: env[node])

    for node in module.graph.nodes:
        if node.op == "placeholder":
            env[node] = next(given)
        elif node.op == "output":
            return value(node.args[0])
        elif node.op == "get_attr":
            env[node] = getattr(module, node.target)
            continue
        elif isinstance(node.target, Region):
            env[node] = run_region(node.target._name, *value(node.args))
        else:
            env[node] = node.target(*value(node.args), **value(node.kwargs))
        stated = node.meta.get("type")
        results = env[node] if isinstance(stated, list) else [env[node]]
        for wanted, result in zip(stated if isinstance(stated, list) else [stated], results):
            if wanted is not None:
                sizes = [size if isinstance(stated_size, int) else stated_size for size, stated_size in zip(result.shape, wanted[1])]
                same = wanted == (result.dtype, sizes) and result.dim() == len(wanted[1])
                assert same, f"{node.meta['name']} is {write_type(result)}, the text says {wanted}"
    raise AssertionError("a graph without an output")


def run_region(name, *args):
    if name == "wrap_with_set_grad_enabled":
        with torch.set_grad_enabled(args[0]):
            return interpret(args[1], args[2:])
    assert name == "wrap_with_autocast", name
    with torch.autocast(args[0], dtype=args[1], enabled=args[2], cache_enabled=False):
        return interpret(args[4], args[5:])


# ---------------------------------------------------------------------------------------------------------- writing


def write_type(value):
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}[{', '.join(map(write_size, value.shape))}]"
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, torch.Tensor) for item in value):
        return f"({', '.join(map(write_type, value))})"
    return ""


def write_size(size):
    return "?" if re.search(r"\bu\d+\b", str(size)) else str(size)


def write_text(module, name=""):
    """The text of a graph of torch.export, with the types of its results and the graphs in it."""
    lines, place, inner = [f"{name} = graph():" if name else "graph():"], None, []
    for node in module.graph.nodes:
        here = write_place(node)
        if here and here != place and node.op == "call_function":
            lines.append(f"    # {here}")
            place = here
        text = node.format_node()
        kind = write_type(node.meta.get("val"))
        lines.append(f"    {text} -> {kind}" if kind else f"    {text}")
        if node.op == "get_attr":
            inner.append(node.target)
    texts = ["\n".join(lines) + "\n"]
    for target in dict.fromkeys(inner):
        texts.append(write_text(operator.attrgetter(target)(module), f"{name}.{target}".lstrip(".")))
    return "\n".join(texts)


def write_place(node):
    place = place_of_source(node.meta.get("stack_trace"))
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path, kind = stack[-1][:2] if stack else ("", "")
    kind = (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    words = [place, path.removeprefix("model").removeprefix("."), f"({kind})" if kind else ""]
    return " ".join(filter(None, words)) if place else ""
