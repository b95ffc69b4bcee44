# SPDX-License-Identifier: Apache-2.0
"""Checks export_torch.py --dynamic: check_dynamic.py SOURCE-DIR BIN-DIR, in a scratch folder.

The models of dynamic_modules.py become templates with the sizes that are stated here, and at other sizes than those at
which they were exported npu-run computes what PyTorch does. What follows no size is named. Graphs of torch.export as text,
with expressions in their shapes (graphs/dynamic), become templates with those expressions.
"""

import glob
import json
import math
import os
import sys
import types

from harness import refuse, run_program, take

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = f"{HERE}/dynamic_modules.py"

import dynamic_modules  # noqa: E402
import export_torch  # noqa: E402
import graph_text  # noqa: E402
import torch  # noqa: E402
from export.dynamic import SeveralSizes, export_template, names_of_sizes, parse_dynamic, take_ranges  # noqa: E402
from export.errors import UserError  # noqa: E402
from export.from_export import read_program, shapes_of_inputs  # noqa: E402
from export.models import model_and_inputs, run_model  # noqa: E402
from export.sizes import Size, parse_size  # noqa: E402
from export.structure import Inputs, named_outputs  # noqa: E402
from export.torch_tensors import write_safetensors  # noqa: E402



def main():
    return export_torch.main(sys.argv[1:])


# Options, sizes of results by node, and sizes to run at.
TAKEN = {
    "vision": (
        ["image:2=H:33..512", "image:3=W:33..512"],
        {
            "conv2d": [1, 8, "(H + 1) // 2", "(W + 1) // 2"],
            "conv2d_3": [1, 16, "(H + 7) // 16", "(W + 7) // 16"],
            "cat": [1, "((H + 7) // 16)*((W + 7) // 16) + 1", 16],
        },
        [{"H": 33, "W": 64}, {"H": 97, "W": 40}],
    ),
    "encoder": (
        ["ids:0=B:1..8", "ids:1=S:1..64", "mask:0=B", "mask:1=S"],
        {"permute": [3, "B", 4, "S", 4], "matmul": ["B", 4, "S", "S"], "hidden": ["B", "S", 16]},
        [{"B": 1, "S": 1}, {"B": 5, "S": 64}],
    ),
    "tagger": (["ids:0=B:1..8", "ids:1=S:1..64"], {"linear": ["B", "S", 4]}, [{"B": 1, "S": 1}, {"B": 3, "S": 40}]),
    "audio": (
        ["sound:1=T:40..4000"],
        {"conv1d_2": [2, 8, "(T + 1) // 6 - 3"], "slice_3": [2, 8, "(T + 1) // 12 - 1"]},
        [{"T": 40}, {"T": 1003}],
    ),
    "decoder": (
        ["ids:1=S:1..32", "past_k:1=P:0..64", "past_v:1=P"],
        {"cat": [1, "P + S", 8], "softmax": [1, "S", "P + S"]},
        [{"S": 1, "P": 0}, {"S": 1, "P": 63}, {"S": 30, "P": 2}],
    ),
    "windows": (
        ["image:0=B:1..4", "image:2=H:8..64/8", "image:3=W:8..64/8"],
        {"reshape_1": ["((H*W) // 64)*B", 16, 6], "reshape_3": ["B", "H // 2", "W // 2", 6]},
        [{"B": 1, "H": 8, "W": 8}, {"B": 3, "H": 40, "W": 24}],
    ),
    "scaled": (["rows:0=S:2..64/2"], {"pad": ["2*S", 3]}, [{"S": 2}, {"S": 64}]),
    "limited": (["rows:0=S:4..100"], {"sigmoid": ["S", 3]}, [{"S": 4}, {"S": 100}]),
}
REFUSED = {
    ("root", "rows:0=S"): r"node 'div' \(aten.div.Tensor\): other follows no size: 1.73\S* at S=3; 2.0 at S=4; ",
    ("forked", "rows:0=S"): r"the model is another one at another size: relu \(aten.relu.default\) at S=3, elsewhere exp ",
    ("table", "rows:0=S"): r"weight 'lifted_tensor_0', which may not vary: shape follows no size: \[3, 1\] at S=3; ",
    ("scaled", "columns:0=S"): r"the model has no input 'columns', it has rows",
    ("scaled", "rows:2=S"): r"'rows' has 2 dimensions",
    ("scaled", "rows=S"): r"--dynamic rows=S: expected INPUT:DIM=NAME",
    ("scaled", "rows:0=S:9..4"): r"the range is empty",
    ("limited", "rows:0=S:1..99"): r"at S=1 the model is another one than at 5 to 32: node 'sigmoid' .* is aten.pad.default of "
    r"shape \[4, 3\] there; state a range of S that it is the same in",
    ("limited", "rows:0=S:4..512"): r"at S=512 the model is another one than at 5 to 32: node 'slice_1' ",
}


def template_of(name):
    with open(f"{name}.json", encoding="utf-8") as file:
        return json.load(file)


def check_models():
    for name, (options, shapes, points) in TAKEN.items():
        torch.manual_seed(0)
        arguments = [word for option in options for word in ("--dynamic", option)]
        take(main, "export_torch", f"{MODULES}:{name}", "-o", ".", *arguments)
        template = template_of(name)
        found = {node["name"]: node["outputs"][0]["shape"] for node in template["nodes"]}
        for node, shape in shapes.items():
            assert found[node] == shape, f"{name}: {node} has {found[node]}, expected {shape}"
        # The weights that the files have.
        torch.manual_seed(0)
        model, inputs = model_and_inputs(getattr(dynamic_modules, name)(), name)
        sizes = SeveralSizes(parse_dynamic(options), inputs)
        for point in points:
            for symbol in sizes.symbols.values():
                symbol.sizes = [point[symbol.name]]
            resized = sizes.at(sizes.values(0))
            with torch.no_grad():
                results = [tensor for _, tensor in named_outputs(run_model(model.eval(), resized))]
            write("in.safetensors", dict(zip(resized.names, resized.tensors)))
            outputs = [entry["name"] for entry in template["graph_outputs"]]
            write("out.safetensors", dict(zip(outputs, results)))
            values = [word for key, value in point.items() for word in ("--bind", f"{key}={value}")]
            run_program("npu-run", f"{name}.json", *values, "--inputs", "in.safetensors", "--expect", "out.safetensors")


def write(path, tensors):
    with open(path, "wb") as file:
        write_safetensors(file, {key: tensor.contiguous() for key, tensor in tensors.items()})


def check_refusals():
    for (name, option), pattern in REFUSED.items():
        refuse(main, "export_torch", 1, pattern, f"{MODULES}:{name}", "-o", ".", "--dynamic", option)


def check_texts():
    """What torch.export states of the sizes is taken: the text's own symbols, under the names of the options."""
    for path in sorted(glob.glob(f"{HERE}/graphs/dynamic/*.txt")):
        with open(path.replace(".txt", ".json"), encoding="utf-8") as file:
            wanted = json.load(file)
        program = graph_text.Program(path, sizes=wanted["example"])
        inputs = Inputs(program.model, (), program.args)
        sizes = SeveralSizes(parse_dynamic(wanted["dynamic"]), inputs)
        names = names_of_sizes(sizes, shapes_of_inputs(program, inputs.names))
        template = export_template(
            "text", sizes, lambda resized: read_program(program, program.model, resized, names), [], False
        )
        found = {node["name"]: node["outputs"][0]["shape"] for node in template["nodes"]}
        attrs = {node["name"]: node.get("attrs", {}) for node in template["nodes"]}
        for name, shape in wanted["shapes"].items():
            assert found[name] == shape, f"{path}: {name} has {found[name]}, expected {shape}"
        for name, values in wanted["attrs"].items():
            assert attrs[name] == values, f"{path}: {name} has {attrs[name]}, expected {values}"


def check_ranges():
    """A program of torch.export holds in the ranges that it states."""

    def taken(option, lower, upper):
        inputs = Inputs(torch.nn.Identity(), (), {"rows": torch.zeros(7, 3)})
        sizes = SeveralSizes(parse_dynamic([option]), inputs)
        names = names_of_sizes(sizes, {"rows": ["s0", "3"]})
        take_ranges(sizes, names, {"s0": types.SimpleNamespace(lower=lower, upper=upper)})
        symbol = sizes.symbols["S"]
        assert symbol.least <= min(symbol.sizes) and (symbol.largest is None or max(symbol.sizes) <= symbol.largest)
        return symbol.least, symbol.largest

    assert taken("rows:0=S", 2, math.inf) == (1, None)
    assert taken("rows:0=S", 4, 100) == (4, 100)
    assert taken("rows:0=S:1..64", 2, 100) == (1, 64)
    for option, text in {
        "rows:0=S:1..64": "S is 1..64, but torch.export takes the model for 4..100",
        "rows:0=S:4..512": "S is 4..512, but torch.export takes the model for 4..100",
    }.items():
        try:
            taken(option, 4, 100)
        except UserError as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"{option} is taken")


def check_sizes():
    names = {name: Size.symbol(name) for name in "STH"}
    for text, wanted in {
        "s": None,
        "S/2": None,
        "S // T": None,
        "2*(S + 1) - S": "S + 2",
        "FloorDiv(S, 2)": "S // 2",
        "Mod(S, 4)": "S - 4*(S // 4)",
        "4 - S": "4 - S",
        "((((H - 1)//2 + 1) - 1)//2 + 1)*T": "((H + 3) // 4)*T",
        "(4*S + 3)//2": "2*S + 1",
    }.items():
        size = parse_size(text, names)
        assert (size if size is None else str(size)) == wanted, f"{text}: {size}"


with torch.no_grad():
    check_sizes()
    check_ranges()
    check_texts()
    check_refusals()
    check_models()
