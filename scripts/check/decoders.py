#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that decoders choose the ids that PyTorch does: those of testdata/models/small_decoders.py, with random weights.

Each is exported with a cache of 256 slots and compiled for steps of 1, 8 and 32 tokens; then npu-run reads a prompt and
writes --new ids. PyTorch reads the same ids step by step, and each of them must be its own choice wherever its two best
logits differ by more than 1e-3; where they do not the ids are counted. Nothing stands in for a logit that is close.

Output: a line for each decoder and seed; then how many ids are equal, close, and wrong. Exits 1 if one is wrong.

Needs the programs in build/bin, or $BIN, and python3-torch.
"""

import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.abspath(f"{HERE}/../../testdata/models")
sys.path[:0] = [f"{HERE}/..", MODELS]
sys.dont_write_bytecode = True

import small_decoders  # noqa: E402
import torch  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", f"{HERE}/../../build/bin"))
KINDS = ("rotary", "grouped", "window", "norms", "softcap", "learned")
CAPACITY, STEPS, MARGIN = 256, (1, 8, 32), 1e-3
# What export_torch.py is given: the same models with a longer cache.
WRAPPER = f"""\
import sys
sys.path.insert(0, {MODELS!r})
import small_decoders
small_decoders.CAPACITY, small_decoders.POSITIONS = {CAPACITY}, {max(STEPS)}
from small_decoders import *
"""


def must(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit {result.returncode}: {result.stderr.strip()}")
    return result.stdout


def compiled(kind, seed, options):
    """A bundle of one decoder."""
    name = f"decoder_{kind}"
    must(
        sys.executable, f"{HERE}/../export_torch.py", f"wrapper.py:{name}", "-o", ".", "--seed", str(seed), "--state",
        "--dynamic", f"input_ids:1=T:1..{max(STEPS)}", "--dynamic", "cache_position:0=T",
    )  # fmt: skip
    sizes = ",".join(map(str, STEPS))
    must(f"{BIN}/npu-compile", "-q", *options.compile.split(), "--buckets", f"T={sizes}", f"{name}.json", "-o", f"{name}.npub")
    return f"{name}.npub"


def model_of(kind, seed):
    torch.manual_seed(seed)
    return getattr(small_decoders, f"decoder_{kind}")()[0].eval()


def logits_of(model, ids):
    """What PyTorch says behind each id, read one by one."""
    rows = []
    for position, token in enumerate(ids):
        found = model(input_ids=torch.tensor([[token]]), cache_position=torch.tensor([position]))
        rows.append(found["logits"][0, 0])
    return torch.stack(rows)


def check(kind, seed, options):
    """(equal, close, wrong) ids."""
    bundle = compiled(kind, seed, options)
    prompt = torch.randint(0, small_decoders.WORDS, (options.prompt,), generator=torch.Generator().manual_seed(seed)).tolist()
    with open("prompt.txt", "w", encoding="ascii") as file:
        file.write(" ".join(map(str, prompt)) + "\n")
    must(f"{BIN}/npu-run", "-q", bundle, "--generate", str(options.new), "--tokens", "prompt.txt", "--tokens-out", "ids.txt")
    with open("ids.txt", encoding="ascii") as file:
        new = [int(word) for word in file.read().split()]
    if len(new) != options.new:
        sys.exit(f"{bundle}: {len(new)} ids, expected {options.new}")
    logits = logits_of(model_of(kind, seed), prompt + new)[len(prompt) - 1 : -1]
    best = logits.topk(2)
    equal = best.indices[:, 0] == torch.tensor(new)
    is_close = best.values[:, 0] - best.values[:, 1] <= MARGIN
    wrong = ~equal & ~is_close
    kinds = len(set(new))
    print(f"{kind:8} seed {seed}: {int(equal.sum())} equal, {int((~equal & is_close).sum())} close, {int(wrong.sum())} wrong; {kinds} words")
    if wrong.any():
        print(f"  the first wrong one is new id {int(wrong.nonzero()[0])}")
    return int(equal.sum()), int((~equal & is_close).sum()), int(wrong.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--new", type=int, default=200, help="ids that are written (default %(default)s)")
    parser.add_argument("--prompt", type=int, default=19, help="ids of the prompt (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of weights and prompts (default %(default)s)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this decoder; repeatable")
    parser.add_argument("--compile", default="", metavar="OPTIONS", help="options of npu-compile, such as a target")
    options = parser.parse_args()
    if options.prompt < 1 or options.new < 1 or options.prompt + options.new > CAPACITY:
        parser.error(f"--prompt and --new: at least 1 each and at most {CAPACITY} together")
    small_decoders.CAPACITY = CAPACITY
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        os.chdir(folder)
        with open("wrapper.py", "w", encoding="utf-8") as file:
            file.write(WRAPPER)
        counts = [check(kind, seed, options) for kind in options.kind or KINDS for seed in range(options.seeds)]
        os.chdir("/")
    equal, close, wrong = (sum(column) for column in zip(*counts))
    print(f"{equal} equal, {close} close, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
