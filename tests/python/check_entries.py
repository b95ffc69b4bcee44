# SPDX-License-Identifier: Apache-2.0
"""Checks export_torch.py on models of several entries: check_entries.py SOURCE-DIR BIN-DIR, in a scratch folder.

The models of translators.py are exported again, as testdata has them; an encoder's states are what its decoder reads, and
nothing else of a document is in the other one.
"""

import json
import os

from harness import SOURCE, refuse, take

MODELS = f"{SOURCE}/testdata/models"
STORED = f"{MODELS}/translators"

import export_torch  # noqa: E402
import torch  # noqa: E402
from export.from_export import has_torch_export  # noqa: E402

SIZES = {
    "translator": ("source_ids:1=S:1..24", "decode.input_ids:1=T:1..32", "cache_position:0=T"),
    "listener": ("input_ids:1=T:1..32", "cache_position:0=T"),
}
WRONG = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(1, 4))
    def encode(self, x):
        self.kept.copy_(x)
    def decode(self, y):
        return y + self.kept

def entries(names=("encode", "decode")):
    model, x = Model(), torch.ones(1, 4)
    return {names[0]: (model.encode, (x,)), names[1]: (model.decode, (x,))}

def named():
    return entries(("en code", "decode"))

def single():
    return {"encode": entries()["encode"]}

def none():
    return {"encode": (3, ()), "decode": (4, ())}
"""


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def options(name):
    return ["-o", ".", "--state", *(item for size in SIZES[name] for item in ("--dynamic", size))]


def check_models():
    for name in SIZES:
        take(export_torch_main, "export_torch", f"{MODELS}/translators.py:{name}", *options(name))
        encode, decode = (read(f"{name}.{entry}.json") for entry in ("encode", "decode"))
        if not has_torch_export():
            assert encode == read(f"{STORED}/{name}.encode.json"), name
            assert decode == read(f"{STORED}/{name}.decode.json"), name
        written = {state["name"] for state in encode["npu"]["states"]}
        assert all("input" not in state for state in encode["npu"]["states"]), encode["npu"]["states"]
        read_only = {state["name"] for state in decode["npu"]["states"] if "output" not in state}
        assert written == read_only and written, (written, read_only)
        assert encode["npu"]["generate"] == {"source": encode["graph_inputs"][0]["name"]}
        keys = [{weight["name"] for weight in document["weights"]} for document in (encode, decode)]
        assert "decoder.0.own.query.weight" not in keys[0] and "encoder.0.norm.weight" not in keys[1], keys
        assert "decoder.0.cross.key.weight" in keys[0] and "decoder.0.cross.key.weight" not in keys[1], keys
        size = sum(os.path.getsize(f"{STORED}/{file}") for file in os.listdir(STORED) if file.startswith(name))
        assert size <= 300000, f"{name}: {size} bytes"


def check_start():
    take(export_torch_main, "export_torch", f"{MODELS}/translators.py:listener", *options("listener"), "--start", "1,7")
    assert read("listener.decode.json")["npu"]["generate"]["start"] == [1, 7]
    assert "start" not in read("listener.encode.json")["npu"]["generate"]


def check_refusals():
    with open("wrong.py", "w", encoding="utf-8") as file:
        file.write(WRONG)
    for function, pattern, more in (
        ("entries", "a model of several entries needs --state", []),
        ("entries", "goes with neither --check nor --dtype", ["--state", "--check"]),
        ("entries", r"--start: '1,x' is no list of ids", ["--state", "--start", "1,x"]),
        ("entries", r"--dynamic z:0=S: no entry has this input; there are encode.x, decode.y", ["--state", "--dynamic", "z:0=S"]),
        ("named", "'en code' is no name of an entry", ["--state"]),
        ("single", "a mapping of entries has at least two", ["--state"]),
        ("none", r"\['encode'\] must return \(model, example inputs\)", ["--state"]),
    ):
        refuse(export_torch_main, "export_torch", 2 if "--start" in more else 1, pattern, f"wrong.py:{function}", "-o", "out", *more)
    assert not os.path.exists("out"), "files of a model that is refused"


def export_torch_main():
    import sys

    return export_torch.main(sys.argv[1:])


torch.set_num_threads(1)
check_models()
check_start()
check_refusals()
