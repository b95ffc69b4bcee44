# SPDX-License-Identifier: Apache-2.0
"""Checks export_torch.py --state: check_states.py SOURCE-DIR BIN-DIR, in a scratch folder.

Steps of a document, executed node by node, are compared with steps of the model that it comes from, bit for bit: models of
state_modules.py as this PyTorch exports them, and graphs of torch.export as text (graphs/states), whose in-place ops run
on the buffers themselves. The decoders of testdata are exported again, and give their logits in chunks of any size.
"""

import glob
import json
import os
import re
import sys
import types

from harness import SOURCE, refuse, take

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES, MODELS = f"{HERE}/state_modules.py", f"{SOURCE}/testdata/models"
STATES = f"{SOURCE}/testdata/models/states"
sys.path.insert(0, MODELS)

import small_decoders as decoders  # noqa: E402
import export_torch  # noqa: E402
import graph_text  # noqa: E402
import state_modules  # noqa: E402
import streams  # noqa: E402
import torch  # noqa: E402
from export import check  # noqa: E402
from export.document import make_document  # noqa: E402
from export.dynamic import SeveralSizes, export_template, names_of_sizes, parse_dynamic  # noqa: E402
from export.errors import UserError  # noqa: E402
from export.from_export import has_torch_export, read_program, shapes_of_inputs  # noqa: E402
from export.models import model_and_inputs, run_model  # noqa: E402
from export.sizes import Size, parse_size  # noqa: E402
from export.structure import Inputs, named_outputs  # noqa: E402
from export.torch_tensors import read_safetensors  # noqa: E402

STEPS = 5
# States by name, with the node that gives the next value.
TAKEN = {
    "lstm": {"hidden": "getitem_1", "carry": "getitem_2"},
    "rebound": {"state.0": "getitem_1", "state.1": "getitem_2"},
    "gru": {"hidden": "add__2"},
    "window": {"samples": "cat", "inner": "cat_1", "mean": "add_1", "count": "add", "largest": "maximum"},
    "shifted": {"rows": "select_scatter", "decayed": "slice_scatter_1"},
    "rolled": {"kept.0": "index_copy", "kept.1": "remainder"},
    "cached": {"keys": "index_copy"},
    "later": {"level": "tanh"},
    "copied": {"last": "alias", "one": "sub", "other": "alias_1"},
    "kept": {"kept.rows.old": "slice_scatter_1", "kept.rows.flags": "and_1"},
    "widened": {"steps": "to", "sum": "add_1"},
}
REFUSED = {
    "unfolded": r"writes to a view made by aten.unfold.default, .*state_modules.py:\d+, aten.add_\)",
    "shared": r"forward\(\) writes 'rows', which shares its memory with 'first'; .* \(state_modules.py:\d+\)",
    "retyped": r"forward\(\) makes 'level' a tensor float64 \[3\], which was float32 \[3\]",
    "begun": r"the state 'level' begins with other values than zeros, .* \(state_modules.py:\d+\)",
    "lazy": r"forward\(\) makes 'level' in the first run and changes it later",
    "statistics": r"forward\(\) changes 'mean', but no op that the trace shows writes it",
    "counted": r"forward\(\) changes 'place' from 0 to 1, a number of Python's: only tensors are states",
    "grown": r"forward\(\) makes 'rows' a tensor float32 \[2, 3\], which was float32 \[1, 3\]",
    "turned": r"aten.unsqueeze_ changes the shape of the state 'rows', which keeps its own \(.*state_modules.py:\d+\)",
    "hidden": r"after two steps the state 'rows' is not what forward\(\) gives",
    "trained": r"forward\(\) changes 'weight' in place; return the new value \(.*aten.add_\)",
}
DECODER_OPTIONS = ["--state", "--dynamic", f"input_ids:1=T:1..{decoders.POSITIONS}", "--dynamic", "cache_position:0=T"]
KINDS = ("rotary", "grouped", "window", "norms", "softcap", "learned")
CHUNKS = ([64], [32, 32], [8] * 8, [1] * 64, [5, 1, 30, 28])
# The graphs as text: the window of their mask.
TEXTS = {"llama": -1, "qwen3": -1, "gemma3": 8}


def main():
    return export_torch.main(sys.argv[1:])


def read(name):
    with open(f"{name}.json", encoding="utf-8") as file:
        return json.load(file)


class Stepped:
    """A document in steps: its states are kept from one to the next."""

    def __init__(self, document, weights):
        self.document, self.weights = document, weights
        self.states = document["npu"]["states"]
        self.kept = check.first_states(document)

    def step(self, inputs, sizes=None):
        document = bound(self.document, sizes) if sizes else self.document
        found = check.execute_document(document, self.weights, {**inputs, **self.kept})
        self.kept = {state["input"]: found[state["output"]] for state in self.states}
        outputs = {state["output"] for state in self.states}
        return {name: tensor for name, tensor in found.items() if name not in outputs}


def bound(value, sizes):
    """A template with numbers in place of its sizes."""
    names = {name: Size.symbol(name) for name in sizes}

    def number(item):
        if isinstance(item, str):
            size = parse_size(item, names)
            return item if size is None else size.value(sizes)
        return bound(item, sizes)

    if isinstance(value, dict):
        return {k: bound(v, sizes) if k in ("name", "op_type", "npu", "weight_name_mapping") else number(v) for k, v in value.items()}
    return [number(item) for item in value] if isinstance(value, list) else value


OVERWRITES = re.compile(r"aten\.(index_copy|index_put|scatter|select_scatter|slice_scatter)\.")


def check_order(document):
    """What npu-ir(5) asks of states: what a node overwrites in part nobody reads behind it."""
    nodes = document["nodes"]
    made = {output["name"]: i for i, node in enumerate(nodes) for output in node["outputs"]}
    names = [state["name"] for state in document["npu"]["states"]]
    outputs = [state["output"] for state in document["npu"]["states"]]
    assert len(set(names)) == len(names) and len(set(outputs)) == len(outputs), (names, outputs)
    graph_outputs = [entry["name"] for entry in document["graph_outputs"]]
    for state in document["npu"]["states"]:
        assert graph_outputs.count(state["output"]) == 1 and state["input"] not in graph_outputs, state
        at = state["output"]
        while at != state["input"] and OVERWRITES.match(nodes[made[at]]["op_type"]):
            old = nodes[made[at]]["inputs"][0]["name"]
            late = [node["name"] for node in nodes[made[at] + 1 :] if old in [entry["name"] for entry in node["inputs"]]]
            assert not late, f"{state} is read by {late}"
            at = old
    ops = {node["op_type"] for node in nodes}
    assert not [op for op in ops if "copy_." in op or "fill_" in op], ops


def check_modules():
    for name, states in TAKEN.items():
        torch.manual_seed(0)
        take(main, "export_torch", f"{MODULES}:{name}", "-o", ".", "--state", "--check")
        document, weights = read(name), read_safetensors(f"{name}.safetensors")
        found = {state["name"]: state["output"] for state in document["npu"]["states"]}
        assert found == states, f"{name}: {found}"
        check_order(document)
        torch.manual_seed(0)
        model, inputs = model_and_inputs(getattr(state_modules, name)(), name)
        program, users = Stepped(document, weights), [entry["name"] for entry in document["graph_inputs"]]
        for step in range(STEPS):
            results = [tensor.clone() for _, tensor in named_outputs(run_model(model.eval(), inputs))]
            outputs = program.step(dict(zip(users, inputs.tensors)))
            for one, other in zip(outputs.values(), results):
                assert torch.equal(one, other), f"{name}: step {step}: {one} for {other}"
            count = inputs.tensors[0].shape[-1]
            inputs.tensors = [t + count if t.dtype == torch.int64 and t.dim() == 1 else torch.randn(t.shape) if
                              t.is_floating_point() else t for t in inputs.tensors]
            if step * count + 2 * count >= 12 and name == "cached":
                break


def check_refusals():
    for name, pattern in REFUSED.items():
        refuse(main, "export_torch", 1, pattern, f"{MODULES}:{name}", "-o", ".", "--state")
    refuse(main, "export_torch", 1, r"forward\(\) changes 'hidden' in place; make it a state with --state", f"{MODULES}:lstm", "-o", ".")


def check_files(name):
    """Bits and op names are those of one version."""
    if torch.__version__.startswith("1.13."):
        for suffix in ("json", "safetensors", "inputs.safetensors"):
            with open(f"{name}.{suffix}", "rb") as one, open(f"{STATES}/{name}.{suffix}", "rb") as other:
                assert one.read() == other.read(), f"{name}.{suffix} is not that of testdata"


def check_streams():
    for function in streams.MODELS:
        name = function.__name__
        take(main, "export_torch", f"{MODELS}/streams.py:{name}", "-o", ".", "--state")
        check_files(name)
        document = read(f"{STATES}/{name}")
        check_order(document)
        program = Stepped(document, read_safetensors(f"{STATES}/{name}.safetensors"))
        steps = {"inputs": {}, "outputs": {}}
        for key, tensor in read_safetensors(f"{STATES}/{name}.steps.safetensors").items():
            which, _, tensor_name = key.partition(".")
            steps[which][tensor_name] = tensor
        for step in range(streams.STEPS):
            found = program.step({key: tensor[step] for key, tensor in steps["inputs"].items()})
            for key, tensor in steps["outputs"].items():
                assert torch.allclose(found[key], tensor[step], rtol=1e-5, atol=1e-6), f"{name}: step {step}: {key}"


def check_decoders():
    for kind in KINDS:
        name = f"decoder_{kind}"
        take(main, "export_torch", f"{MODELS}/small_decoders.py:{name}", "-o", ".", *DECODER_OPTIONS)
        check_files(name)
        size = sum(os.path.getsize(path) for path in glob.glob(f"{STATES}/{name}.*"))
        assert size <= 300000, f"{name}: {size} bytes"
        document, weights = read(f"{STATES}/{name}"), read_safetensors(f"{STATES}/{name}.safetensors")
        check_order(document)
        assert document["npu"]["generate"] == {"tokens": "input_ids", "positions": "cache_position", "logits": "logits"}
        masks = [dict(node["attrs"]) for node in document["nodes"] if node["op_type"] == "npu.length_mask"]
        windows = sorted(mask.pop("window") for mask in masks)
        assert windows == ([-1, 8] if kind == "window" else [-1]), f"{name}: {windows}"
        assert all(mask == {"operands": "positions", "keys": decoders.CAPACITY, "causal": True} for mask in masks), masks
        inputs, wanted = (read_safetensors(f"{STATES}/{name}.{what}.safetensors") for what in ("inputs", "outputs"))
        for chunks in CHUNKS:
            program, begin, found = Stepped(document, weights), 0, []
            for count in chunks:
                rows = slice(begin, begin + count)
                step = {"input_ids": inputs["input_ids"][:, rows], "cache_position": inputs["cache_position"][rows]}
                found.append(program.step(step, {"T": count})["logits"])
                begin += count
            difference = (torch.cat(found, 1) - wanted["logits"]).abs().max().item()
            assert difference < 1e-4, f"{name} in chunks of {chunks}: {difference}"
            # A chunk that is padded with copies of its last row leaves the states as they are.
            padded = Stepped(document, weights)
            rows = torch.tensor([0, 1, 2, 2, 2])
            step = {"input_ids": inputs["input_ids"][:, rows], "cache_position": inputs["cache_position"][rows]}
            logits = padded.step(step, {"T": 5})["logits"]
            assert (logits[:, :3] - wanted["logits"][:, :3]).abs().max() < 1e-4, f"{name}: padded"
            assert all(not tensor[:, :, 3:].any() for tensor in padded.kept.values()), f"{name}: padded rows in a state"


def check_texts():
    for name, window in TEXTS.items():
        path = f"{HERE}/graphs/states/{name}.txt"
        values = {}
        for node in graph_text.read_text(path).graph.nodes:
            if node.op == "placeholder" and re.search(r"_keys$|_values$|_cumulative_length$", node.meta["name"]):
                values[node.meta["name"]] = torch.zeros(node.meta["type"][1], dtype=node.meta["type"][0])
        values["cache_position"] = torch.arange(9)
        program = graph_text.Program(path, values, sizes={"s0": 9})
        memory = types.SimpleNamespace(replaced=[], consecutive={"cache_position"}, said={"cache_position"})
        inputs = Inputs(program.model, (), program.args)
        sizes = SeveralSizes(parse_dynamic(["input_ids:1=T:1..63", "cache_position:0=T"]), inputs)
        names = names_of_sizes(sizes, shapes_of_inputs(program, inputs.names))
        weights = {}

        def build(resized):
            builder, results = read_program(program, program.model, resized, names, memory)
            weights.update({value.key: value.tensor for value in builder.weights})
            return builder, results

        template = export_template(name, sizes, build, ["logits"], False)
        check_order(template)
        section = template["npu"]
        prefix = re.match(r".*cache_layers", section["states"][0]["name"])[0]
        wanted = [f"{prefix}_{layer}_{what}" for layer in range(2) for what in ("keys", "values")]
        assert [state["name"] for state in section["states"]] == wanted, section["states"]
        assert all(state["axis"] == 2 for state in section["states"]), section["states"]
        assert section["generate"] == {"tokens": "input_ids", "positions": "cache_position", "logits": "logits"}, section
        masks = [node["attrs"] for node in template["nodes"] if node["op_type"] == "npu.length_mask"]
        assert masks == [{"operands": "positions", "keys": 64, "causal": True, "window": window}], masks
        ops = [node["op_type"] for node in template["nodes"]]
        assert not [op for op in ops if re.search(r"arange|_assert|sym_size|\.le\.|\.gt\.|select", op)], ops
        check_against_graph(name, program, template, weights)


def check_functional():
    """A graph whose signature says what buffers end with, as PyTorch 2.1 to 2.4 have it."""
    path = f"{HERE}/graphs/states/functional.txt"
    zeros = {"b_model_rows": torch.zeros(4, 3), "b_model_count": torch.zeros((), dtype=torch.int64)}
    program = graph_text.Program(path, zeros)
    kinds = [("BUFFER_MUTATION", "model.rows"), ("BUFFER_MUTATION", "model.count"), ("USER_OUTPUT", None)]
    specs = [types.SimpleNamespace(kind=types.SimpleNamespace(name=kind), target=target) for kind, target in kinds]
    program.graph_signature.output_specs = specs
    memory = types.SimpleNamespace(replaced=[], consecutive=None, said=set())
    builder, results = read_program(program, program.model, Inputs(program.model, (), program.args), memory=memory)
    document = make_document("functional", builder, builder.finish(results, ["y"]), False)
    check_order(document)
    states = {state["name"]: state["output"] for state in document["npu"]["states"]}
    assert states == {"rows": "clone", "count": "add"}, states
    stepped, (rows, count) = Stepped(document, {}), zeros.values()
    for _ in range(STEPS):
        x = torch.randn(1, 3)
        rows, count, y = graph_text.interpret(program.graph_module, [rows, count, x])
        assert torch.equal(stepped.step({"x": x})["y"], y)
    assert torch.equal(stepped.kept["b_rows"], rows) and int(count) == int(stepped.kept["b_count"])
    refused(program)


def check_against_graph(name, program, template, weights):
    """Steps of the template beside those of the graph, whose ops write the model's own buffers."""
    own = list(program.tensors())
    users = [node.meta["name"] for node in program.graph_module.graph.nodes if node.op == "placeholder"]
    stepped, begin = Stepped(template, weights), 0
    for count in (7, 1, 1, 4, 1, 12):
        ids, positions = torch.randint(0, 96, (1, count)), torch.arange(begin, begin + count)
        given = {"input_ids": ids, "cache_position": positions}
        wanted = graph_text.interpret(program.graph_module, [given.get(key, t) for key, t in zip(users, own)])[0]
        found = stepped.step(given, {"T": count})["logits"]
        assert torch.equal(found, wanted), f"{name}: {count} tokens from {begin} on: {(found - wanted).abs().max()}"
        begin += count
    refused(program)


def refused(program):
    """Without --state the same graph is refused, as before."""
    inputs = Inputs(program.model, (), program.args)
    try:
        read_program(program, program.model, inputs)
    except UserError as error:
        assert re.search(r"forward\(\) changes '\w+' in place; make it a state with --state", str(error)), error
    else:
        raise AssertionError("a graph that writes its buffers was taken without --state")


def find_op(op_type):
    return graph_text.find_target(f"torch.ops.{op_type}")


torch.set_num_threads(1)
with torch.no_grad():
    check_modules() if not has_torch_export() else None
    check_refusals() if not has_torch_export() else None
    check_decoders()
    check_streams()
    here, check.find_op = check.find_op, find_op
    check_texts()
    check_functional()
