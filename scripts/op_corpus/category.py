# SPDX-License-Identifier: Apache-2.0
"""The cases of one pair of files, and how one is made: from an op, from a few, or from a model."""

import json
import math
import re
import zlib

import torch

from export.builder import Builder
from export.document import json_value, make_document, node_attrs
from export.errors import UserError
from export.from_export import build_with_export, has_torch_export
from export.from_trace import build_with_trace
from export.graph import Value, flatten_values
from export.models import run_model
from export.patches import ordinary_attention
from export.schema import arguments_of
from export.structure import Inputs, named_outputs
from export.torch_tensors import dtype_name
from op_corpus.newer_ops import resolve
from op_corpus.specs import Spec, is_float

# (rtol, atol) of results that are computed. The 16-bit ones are two units in the last place.
TOLERANCES = {
    "float64": (1e-12, 1e-13),
    "float32": (1e-5, 1e-6),
    "bfloat16": (8e-3, 1e-3),
    "float16": (1e-3, 1e-4),
}

# Sums of products in bfloat16, which 1.13 accumulates in bfloat16 itself on some CPUs.
BF16_SUMS = {"rtol": 2e-2, "atol": 8e-2}


class CaseBuilder(Builder):
    """A graph of which each op is called; in-place ops are functional, as in the document."""

    def __init__(self, generator):
        super().__init__()
        self.generator = generator

    def input(self, spec, name="x"):
        return self.add_input(name, spec.draw(self.generator))

    def weight(self, spec, key="weight"):
        return self.add_weight(key, spec.draw(self.generator), "parameter")

    def constant(self, spec):
        return Value(spec.draw(self.generator), "constant")

    def op(self, overload, *args, newer=False, **kwargs):
        """Calls an overload; a Spec becomes an input or weight with the argument's name."""
        op = resolve(overload, newer)
        arguments = arguments_of(op)
        named = dict(zip((argument.name for argument in arguments), args))
        for key, value in kwargs.items():
            if key in named or all(argument.name != key for argument in arguments):
                raise UserError(f"{overload} has no argument '{key}' left")
            named[key] = value
        bound = [
            self.place(named.get(argument.name, argument.default), argument.name)
            for argument in arguments
        ]
        return self.emit(op, bound)[0]

    def place(self, value, name):
        if isinstance(value, Spec):
            if value.key is None:
                return self.input(value, name)
            return self.weight(value, value.key or name)
        if isinstance(value, list) and any(isinstance(item, Spec) for item in value):
            return [self.place(item, f"{name}_{i}") for i, item in enumerate(value)]
        return value

    @staticmethod
    def concrete(value):
        """Returns copies, since some ops write to statistics without saying so in their schema."""
        if isinstance(value, Value):
            return value.tensor.clone()
        if isinstance(value, (list, tuple)):
            return [CaseBuilder.concrete(item) for item in value]
        return value

    def finish(self, outputs):
        # Nodes without results are kept for their checks.
        everything = self.nodes
        checks = [node for node in everything if not node.outputs]
        checked = [value for node in checks for value in flatten_values(node.args)]
        outputs = super().finish(outputs + checked)[: len(outputs)]
        kept = set(self.nodes + checks)
        self.nodes = [node for node in everything if node in kept]
        self.assign_names()
        return outputs


def full_attrs(node):
    """Every argument that is not a tensor, whether it has its default value or not."""
    attrs = {k: v for k, v in node_attrs(node).items() if k.startswith("_")}
    for argument, value in zip(arguments_of(node.op), node.args):
        is_tensor = argument.is_tensor and (value is None or isinstance(value, Value))
        if not is_tensor and not argument.is_tensor_list:
            attrs[argument.name] = json_value(value, node.name)
    return attrs


class Category:
    """The cases of one file pair."""

    def __init__(self, name, seed, exact=False):
        self.name, self.seed, self.exact = name, seed, exact
        self.cases, self.tensors = [], {}

    def generator(self, name):
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed}/{self.name}/{name}".encode()))

    def op(
        self,
        name,
        overload,
        *args,
        full=False,
        attrs=None,
        drop=(),
        outputs=None,
        newer=False,
        exact=None,
        rtol=None,
        atol=None,
        **kwargs,
    ):
        """One op. `full` writes every attr, `attrs` replaces some, `drop` removes some; `outputs`
        lists the results that the graph returns."""

        def build(builder):
            result = builder.op(overload, *args, newer=newer, **kwargs)
            if result is None:
                return [value for value in builder.inputs]
            results = result if isinstance(result, list) else [result]
            return results if outputs is None else [results[i] for i in outputs]

        def edit(document, builder):
            entry = document["nodes"][0]
            changed = full_attrs(builder.nodes[0]) if full else entry.get("attrs", {})
            changed = {k: v for k, v in changed.items() if k not in drop}
            changed.update(attrs or {})
            entry.pop("attrs", None)
            if changed:
                entry["attrs"] = changed

        self.graph(name, build, edit, exact=exact, rtol=rtol, atol=atol)

    def graph(self, name, build, edit=None, constants_in_file=True, **tolerance):
        """Several ops: `build` gets a CaseBuilder and returns the outputs. `edit` may change the
        document."""
        builder = CaseBuilder(self.generator(name))
        try:
            outputs = builder.finish(build(builder))
        except UserError as error:
            raise UserError(f"case {self.name}/{name}: {error}") from None
        document = make_document(name, builder, outputs, False)
        if edit is not None:
            edit(document, builder)
        inputs = {value.name: value.tensor for value in builder.inputs}
        results = {value.name: value.tensor for value in outputs}
        weights = [v for v in builder.weights if constants_in_file or v.kind != "constant"]
        self.add(name, document, inputs, weights, results, **tolerance)

    def model(self, name, module, *specs, constants_in_file=True, **tolerance):
        """A torch.nn.Module, traced and written as export_torch.py does."""
        generator = self.generator(name)
        module.eval()
        for key, tensor in list(module.named_parameters()) + list(module.named_buffers()):
            if not is_float(tensor.dtype):
                continue
            if tensor.dim() < 2:  # norms, their statistics, biases
                low, high = (0.5, 1.5) if key.endswith(("weight", "var")) else (-0.3, 0.3)
            else:
                high = 1.5 / math.sqrt(tensor[0].numel())
                low = -high
            spec = Spec(dtype_name(tensor.dtype), tensor.shape, low, high)
            tensor.copy_(spec.draw(generator))
        inputs = Inputs(module, [spec.draw(generator) for spec in specs])
        reference = [tensor.clone() for _, tensor in named_outputs(run_model(module, inputs))]
        build = build_with_export if has_torch_export() else build_with_trace
        with ordinary_attention():
            builder, results = build(module, inputs)
        outputs = builder.finish(results)
        document = make_document(name, builder, outputs, False)
        weights = [v for v in builder.weights if constants_in_file or v.kind != "constant"]
        given = {value.name: tensor for value, tensor in zip(builder.inputs, inputs.tensors)}
        results = {value.name: tensor for value, tensor in zip(outputs, reference)}
        self.add(name, document, given, weights, results, **tolerance)

    def add(self, name, document, inputs, weights, outputs, exact=None, rtol=None, atol=None):
        taken = any(case["name"] == name for case in self.cases)
        if taken or not re.fullmatch(r"[a-z0-9_]+", name):
            raise UserError(f"case {self.name}/{name}: the name is taken or not plain")
        kinds = [dtype_name(tensor.dtype) for tensor in outputs.values()]
        bounds = [TOLERANCES[kind] for kind in kinds if kind in TOLERANCES] or [(0.0, 0.0)]
        exact = self.exact if exact is None else exact
        case = {
            "name": name,
            "rtol": (max(b[0] for b in bounds) if rtol is None else rtol) if not exact else 0.0,
            "atol": (max(b[1] for b in bounds) if atol is None else atol) if not exact else 0.0,
        }
        if exact:
            case["exact"] = True
        case["ir"] = document
        self.cases.append(case)
        groups = (
            ("in", inputs),
            ("weight", {value.key: value.tensor for value in weights}),
            ("out", outputs),
        )
        for group, tensors in groups:
            for key, tensor in tensors.items():
                self.tensors[f"{name}/{group}/{key}"] = tensor.clone()

    def text(self):
        def dump(value):
            return json.dumps(value, allow_nan=False, separators=(",", ":"))

        lines = ",\n".join(dump(case) for case in self.cases)
        return f'{{"category":{dump(self.name)},"cases":[\n{lines}\n]}}\n'
