#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares decoders from ONNX files, step by step, with ONNX Runtime: nine configurations in five forms each.

The files are written by decoder_files.py, with random weights. ONNX Runtime is given what the file asks for and hands
each step's present to the next one; npu-tag --states makes the caches states in place, and npu-run does the same steps: a
prompt of 5 tokens, then one at a time. Logits must differ by at most 1e-4.

Output: a line for each file: the largest difference, or why it is refused; then how many are right. Exits 1 if one
differs, or fewer than --least are right. --peer-only compares the forms of a configuration in ONNX Runtime alone.

Needs NumPy, Node.js, onnxruntime-node below $NODE_PATH (vs_peers.sh -i) and the programs in build/bin, or $BIN.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, f"{HERE}/.."]

import numpy as np  # noqa: E402
from decoder_files import CONFIGS, FORMS, WORDS, Decoder  # noqa: E402
from export import safetensors  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", f"{HERE}/../../build/bin"))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "npu-bench")
os.environ.setdefault("NODE_PATH", os.path.join(CACHE, "ort", "node_modules"))
DTYPES = {"float32": "F32", "int64": "I64", "int32": "I32", "bool": "BOOL"}
TOLERANCE = 1e-4


def write(path, tensors):
    entries = []
    for name, array in tensors.items():
        data = np.ascontiguousarray(array).tobytes()
        entries.append((name, DTYPES[array.dtype.name], array.shape, len(data), lambda data=data: data))
    with open(path, "wb") as file:
        safetensors.write(file, entries)


def read(path):
    dtypes = {short: name for name, short in DTYPES.items()}
    return {n: np.frombuffer(bytes(d), dtypes[kind]).reshape(shape) for n, kind, shape, d in safetensors.read(path)}


class Refused(Exception):
    """A program did not take a file; the message is its last line."""


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or [f"exit {result.returncode}"]
        if result.returncode in (1, 2, 3):
            raise Refused(lines[-1])
        sys.exit(f"{' '.join(command)}: exit {result.returncode}: {lines[-1]}")
    return result.stdout


def steps_of(ids, chunks):
    """(past, tokens) of every step."""
    begin = 0
    for count in chunks:
        yield begin, ids[:, begin : begin + count]
        begin += count


def theirs(name, decoder, ids, chunks, threads):
    tensors = {f"first/{key}": array for key, array in decoder.first_states().items()}
    for step, (past, tokens) in enumerate(steps_of(ids, chunks)):
        tensors.update({f"{step}/{key}": array for key, array in decoder.inputs_of_step(tokens, past).items()})
    write(f"{name}.steps.safetensors", tensors)
    pairs = ",".join("=".join(pair) for pair in decoder.states)
    run("node", f"{HERE}/run_steps.js", f"{name}.onnx", f"{name}.steps.safetensors", f"{name}.theirs.safetensors", pairs, threads)
    found = read(f"{name}.theirs.safetensors")
    return np.concatenate([found[f"{step}/logits"] for step in range(len(chunks))], 1)


def ours(name, decoder, ids, chunks, threads):
    """Steps of the bundle, each in a process of its own that reads the states which the one before left."""
    run(f"{BIN}/npu-tag", "-q", "--states", f"{name}.onnx", "-o", f"{name}.json")
    with open(f"{name}.json", encoding="utf-8") as file:
        document = json.load(file)
    roles = document["npu"]["generate"]
    states = {state.get("input") for state in document["npu"]["states"]}
    inputs = {entry["name"]: entry["shape"] for entry in document["graph_inputs"] if entry["name"] not in states}
    sizes = ",".join(str(count) for count in sorted(set(chunks)))
    symbol = str(inputs[roles["tokens"]][1])
    run(f"{BIN}/npu-compile", "-q", "--threads", threads, "--buckets", f"{symbol}={sizes}", f"{name}.json", "-o", f"{name}.npub")
    logits, kept = [], []
    for past, tokens in steps_of(ids, chunks):
        given = decoder.inputs_of_step(tokens, past)
        given[roles["tokens"]] = tokens
        if "positions" in roles:
            positions = np.arange(past, past + tokens.shape[1], dtype=np.int64)
            given[roles["positions"]] = positions[None] if len(inputs[roles["positions"]]) == 2 else positions
        write("in.safetensors", {key: given[key] for key in inputs})
        run(
            f"{BIN}/npu-run", "-q", f"{name}.npub", "--threads", threads, "--inputs", "in.safetensors", *kept,
            "--state-out", "state.safetensors", "--outputs", "out.safetensors", "-o", "report.json",
        )  # fmt: skip
        kept = ["--state-in", "state.safetensors"]
        logits.append(read("out.safetensors")[roles["logits"]])
    return np.concatenate(logits, 1)


def compare(options):
    """(right, refused, different) files."""
    chunks = [5] + [1] * (options.steps - 1)
    ids = np.random.default_rng(options.seed).integers(0, WORDS, (1, sum(chunks)))
    right, refused, different = 0, 0, 0
    for config in options.config or CONFIGS:
        first = None
        for form in FORMS:
            name, decoder = f"{config}.{form}", Decoder(CONFIGS[config], form)
            with open(f"{name}.onnx", "wb") as file:
                file.write(decoder.write())
            wanted = theirs(name, decoder, ids, chunks, str(options.threads))
            first = wanted if first is None else first
            try:
                found = first if options.peer_only else ours(name, decoder, ids, chunks, str(options.threads))
            except Refused as reason:
                refused += 1
                print(f"{name:20} refused: {reason}", flush=True)
                continue
            difference = float(np.abs(found - wanted).max())
            is_right = difference <= TOLERANCE
            right, different = right + is_right, different + (not is_right)
            print(f"{name:20} {difference:.2e} of {np.abs(wanted).max():.3g}{'' if is_right else '  DIFFERENT'}", flush=True)
    return right, refused, different


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--steps", type=int, default=40, help="steps, the first of 5 tokens (default %(default)s)")
    parser.add_argument("--seed", type=int, default=5, help="of the tokens (default %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of both programs (default %(default)s)")
    parser.add_argument("--least", type=int, help="how many must be right (default: 42 of 45, by the number of files)")
    parser.add_argument("--config", action="append", choices=list(CONFIGS), help="only this one; repeatable")
    parser.add_argument("--peer-only", action="store_true", help="compare the forms in ONNX Runtime alone")
    parser.add_argument("--keep", metavar="DIR", help="write the files to this folder and leave them there")
    options = parser.parse_args()
    if not 1 <= options.steps <= 60:
        parser.error(f"--steps: {options.steps} is not in 1..60")
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        os.chdir(options.keep)
        right, refused, different = compare(options)
    else:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            right, refused, different = compare(options)
            os.chdir("/")
    count = right + refused + different
    least = count * 42 // 45 if options.least is None else options.least
    print(f"{right} of {count} right, {refused} refused, {different} different")
    return 1 if different or right < least else 0


if __name__ == "__main__":
    sys.exit(main())
