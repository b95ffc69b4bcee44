#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the exporter makes of graphs of torch.export: check_graphs.py texts|current|write SCRIPTS-DIR

texts    every file in graphs/, with any PyTorch: the document gives what the graph itself gives, bit for bit, and of what
         a document cannot say (graphs/refused) the message names module, line and op
current  the same modules (modules.py) as this PyTorch exports them, which has to be 2.5 or later: results are those of
         the file in graphs/ with the same weights and inputs; exits 77 where PyTorch is older
write    graphs/NAME.txt of all modules anew, from this PyTorch
"""

import glob
import os
import re
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [sys.argv[2], HERE]

import graph_text  # noqa: E402
import modules  # noqa: E402
import torch  # noqa: E402
from export import check  # noqa: E402
from export.document import make_document  # noqa: E402
from export.errors import UserError  # noqa: E402
from export.from_export import build_with_export, export_program, read_program  # noqa: E402
from export.structure import FlatModel, Inputs, named_outputs  # noqa: E402

# What is said of the graphs in graphs/refused, by file.
REFUSED = {
    "state": r"forward\(\) changes 'static_cache_layers_0_keys' in place; .*"
    r" \(module 'model.layers.0.self_attn' \(LlamaAttention\), decoder.py:31, aten.index_copy_.default\)$",
    "cond": r"torch.export gave cond, .* \(module 'gate' \(Gate\), gates.py:7\)$",
    "call_module": r"torch.export gave a call_module node, .* \(module 'block' \(Block\), blocks.py:3, inner\)$",
    "window": r"an in-place op writes to a view made by aten.unfold.default, .*"
    r" \(module 'block' \(Block\), windows.py:9, aten.add_.Tensor\)$",
    "inside": r"cannot execute aten.linear.default while exporting: RuntimeError: .*\(module 'inner' \(Linear\), inside.py:5\)$",
}


def document_of(program, inputs, model, names=()):
    builder, results = read_program(program, model, inputs)
    outputs = builder.finish(results, names)
    document = make_document("test", builder, outputs, False)
    weights = {value.key: value.tensor for value in builder.weights}
    return document, weights, {value.name: tensor for value, tensor in zip(builder.inputs, inputs.tensors)}


def run(document, weights, inputs):
    found = check.execute_document(document, weights, inputs)
    return [found[entry["name"]] for entry in document["graph_outputs"]]


def read_file(path, values=None):
    """The document of a text file, its weights and inputs, and the program that was read."""
    program = graph_text.Program(path, values)
    return (*document_of(program, Inputs(program.model, (), program.args), program.model), program)


def check_texts():
    for path in sorted(glob.glob(f"{HERE}/graphs/*.txt")):
        name = os.path.basename(path).removesuffix(".txt")
        document, weights, inputs, program = read_file(path)
        wanted = graph_text.interpret(program.graph_module, program.tensors())
        found = run(document, weights, inputs)
        assert len(found) == len(wanted) > 0, name
        for one, other in zip(found, wanted):
            assert one.dtype == other.dtype and torch.equal(one, other), f"{name}: not what the graph computes"
        ops = {node["op_type"] for node in document["nodes"]}
        left = [op for op in ops if re.search(r"wrap_with|_assert|sym_|item", op.replace("getitem", ""))]
        assert not left, f"{name}: {left}"
        print(f"{name}: {len(document['nodes'])} nodes")
    for name, text in REFUSED.items():
        try:
            document = read_file(f"{HERE}/graphs/refused/{name}.txt")[0]
        except UserError as error:
            assert re.match(text, str(error)), f"refused/{name}: {error}"
        else:
            raise AssertionError(f"refused/{name}: taken, with {len(document['nodes'])} nodes")


def tensors_by_placeholder(program, inputs):
    """What Program() calls the tensors of an exported program."""
    given = iter(inputs.tensors)
    constants = {**program.constants, **program.state_dict}
    result = {}
    for spec in program.graph_signature.input_specs:
        is_user = spec.kind.name == "USER_INPUT"
        result[spec.arg.name] = next(given) if is_user else constants[spec.target]
    return result


def check_current():
    if tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2]) < (2, 5):
        print(f"this is PyTorch {torch.__version__}; only 2.5 and later can export what tests/python/graphs shows")
        sys.exit(77)
    for name in modules.GRAPHS:
        torch.manual_seed(0)
        model, args, kwargs = getattr(modules, name)()
        inputs = Inputs(model.eval(), args, kwargs)
        with torch.no_grad():
            outputs = named_outputs(model(*args, **kwargs))
            builder, results = build_with_export(model, inputs)
            program = export_program(FlatModel(model, inputs).eval(), inputs.copies())
        finished = builder.finish(results, [key for key, _ in outputs])
        document = make_document(name, builder, finished, False)
        weights = {value.key: value.tensor for value in builder.weights}
        found = run(document, weights, {v.name: t for v, t in zip(builder.inputs, inputs.tensors)})
        of_text = run(*read_file(f"{HERE}/graphs/{name}.txt", tensors_by_placeholder(program, inputs))[:3])
        assert len(found) == len(of_text) == len(outputs), name
        for (key, wanted), one, other in zip(outputs, found, of_text):
            for what, tensor in (("the document", one), ("the text", other)):
                assert torch.allclose(tensor, wanted, rtol=1e-4, atol=1e-5), f"{name}: {key}: {what} differs"
        print(f"{name}: {len(document['nodes'])} nodes of PyTorch {torch.__version__}")


def write_texts():
    for name in modules.GRAPHS:
        torch.manual_seed(0)
        model, args, kwargs = getattr(modules, name)()
        inputs = Inputs(model.eval(), args, kwargs)
        with torch.enable_grad():  # so that regions without gradients are regions
            program = export_program(FlatModel(model, inputs).eval(), inputs.copies())
        with open(f"{HERE}/graphs/{name}.txt", "w", encoding="utf-8") as file:
            file.write(graph_text.write_text(program.graph_module))


def find_op(op_type):
    return graph_text.find_target(f"torch.ops.{op_type}")


check.find_op = find_op
with torch.no_grad():
    {"texts": check_texts, "current": check_current, "write": write_texts}[sys.argv[1]]()
