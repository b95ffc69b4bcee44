#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what export_torch.py calls inputs and outputs, and what it refuses: check_names.py SOURCE-DIR BIN-DIR"""

import os
import re
import subprocess

from harness import BIN, HAS_CPU, SOURCE, names_of, refuse, run_document, take

import export_torch  # after harness, which knows where it is
import torch
from export.from_export import has_torch_export

FORMS = f"{SOURCE}/tests/python/forms.py"
# The inputs and outputs of each model of forms.py.
NAMES = {
    "positions": "x y add sub",
    "one": "x relu",
    "keywords": "pair_0 pair_1 extra x add",
    "both": "x options_b a deep_c_0 deep_c_1_0 output_5",
    "only_kwargs": "x add",
    "dataclass": "x mean parts_0 parts_1",
    "takes_dataclass": "x y_mean y_parts_0 sum",
    "hands_through": "x y y again same x_1 max",
    "mapping": "x out aux",
    "mixture": "x linear output_1_a",
    "writes_input": "x y sum view",
    "decides": "input_1 mul",
}
# Of these the warning is checked.
CHOICES = {"decides": r"forms.py:\d+: a tensor's value decides what runs; only this input's choice is exported"}
REFUSED = {
    "cache": r"forward\(\) returns a DynamicCache as 'past_key_values'; .* are known; turn the cache off",
    "cache_in": r"forms.py:cache_in: the example inputs have a DynamicCache as 'past_key_values'",
    "no_tensor": r"forward\(\) returns no tensor",
    "no_model": r"forms.py:no_model must return \(model, example inputs\) or \(model, args, kwargs\)",
    "bad_kwargs": r"forms.py:bad_kwargs: kwargs must be a mapping",
    "bad_args": r"forms.py:bad_args: the example inputs are a int, expected a tuple",
    "too_many": r"forms.py:too_many: forward\(\) takes 2 positional arguments, the example has 4",
    "raises": r"forward\(\) failed: RuntimeError: .* \(module Call, forms.py:\d+.*\)",
    "fails": r"forms.py:fails failed: KeyError: 'key' \(forms.py:\d+\)",
    "leaves": r"forms.py:leaves failed: SystemExit: 0 \(forms.py:\d+\)",
    "state": r"forward\(\) changes '0.count' in place; .* \(module '0' \(Counts\), forms.py:\d+, aten.add_\S*\)",
}
if has_torch_export():
    pattern = r"torch.export does not take .* a tensor's value decides .* \(module '1' \(Loops\), forms.py:\d+.*\)"
    REFUSED["loops"] = pattern

# What stands for transformers in the lines of README.md.
TRANSFORMERS = """
import collections, sys, types
import torch
sys.path.insert(0, {0!r})
import modules
class Tokenizer:
    def __call__(self, text, return_tensors):
        ids = torch.arange(modules.LENGTH)[None]
        return collections.UserDict(input_ids=ids, attention_mask=torch.ones_like(ids))
def pipeline(task):
    return types.SimpleNamespace(model=modules.Encoder(), tokenizer=Tokenizer())
"""


def export(*arguments):
    return export_torch.main([*arguments, "-o", "."])


def check_names():
    for name, wanted in NAMES.items():
        text = take(lambda name=name: export(f"{FORMS}:{name}", "--check"), "export_torch")
        found = names_of(f"{name}.json")
        assert found == wanted.split(), f"{name}: named {found}, expected {wanted}: {text}"
        assert re.search(CHOICES.get(name, ""), text), f"{name}: {text}"
        run_document(name)
    take(lambda: export(f"{FORMS}:keywords", "--dtype", "bfloat16", "--name", "half", "--check"), "export_torch")


def check_refused():
    for name, pattern in REFUSED.items():
        refuse(lambda name=name: export(f"{FORMS}:{name}"), "export_torch", 1, pattern, name)
    with open("broken.py", "w", encoding="utf-8") as file:
        file.write("def broken(:\n")
    refuse(lambda: export("broken.py:broken"), "export_torch", 1, "broken.py: cannot load: SyntaxError")


def check_readme():
    """The lines of the text encoder, with a module in place of what would be fetched."""
    with open(f"{SOURCE}/README.md", encoding="utf-8") as file:
        recipe = re.search(r"^```bash\n(echo .*transformers.*?)^```$", file.read(), re.MULTILINE | re.DOTALL).group(1)
    assert recipe.count("\n") == 3, f"README.md: the text encoder takes {recipe.count(chr(10))} lines, expected 3"
    with open("transformers.py", "w", encoding="utf-8") as file:
        file.write(TRANSFORMERS.format(f"{SOURCE}/tests/python"))
    here = os.getcwd()
    recipe = recipe.replace("/tmp", here).replace("scripts/", f"{SOURCE}/scripts/").replace("npu-run", f"{BIN}/npu-run")
    lines = recipe.splitlines()[: 3 if HAS_CPU else 2]
    environment = {**os.environ, "PYTHONPATH": here}
    result = subprocess.run(["sh", "-ec", "\n".join(lines)], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"README.md: {result.stderr}"
    assert names_of("e.json") == ["input_ids", "attention_mask", "last_hidden_state"], f"README.md: named {names_of('e.json')}"


with torch.no_grad():
    check_names()
    check_refused()
    check_readme()
