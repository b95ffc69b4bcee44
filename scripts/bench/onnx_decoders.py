#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares decoders from ONNX files, step by step, with ONNX Runtime: nine configurations in five forms each.

The files are written by decoder_files.py, with random weights. ONNX Runtime is given what the file asks for and hands
each step's present to the next one: a prompt of 5 tokens, then one at a time. npu-tag --states makes the caches states in
place, and npu-run --score reads the same tokens in steps of 4 and 1. Behind every token the probabilities of five ids are
compared, the most and the least likely one among them: their logarithms must differ by at most 1e-4.

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
from decoder_files import CAPACITY, CONFIGS, FORMS, WORDS, Decoder  # noqa: E402
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


def ours(name, decoder, ids, candidates, threads):
    """The log-probabilities that the model gives to `candidates` [position, which] behind each position, by steps.

    A line of npu-run --score is what was read so far and one candidate; the text alone is taken off it.
    """
    capacity = [] if decoder.is_fixed else ["--capacity", str(CAPACITY)]
    run(f"{BIN}/npu-tag", "-q", "--states", *capacity, f"{name}.onnx", "-o", f"{name}.json")
    with open(f"{name}.json", encoding="utf-8") as file:
        symbol = next(iter(json.load(file)["npu"].get("symbols", {})), None)
    if symbol is None:
        raise Refused("npu-tag --states leaves no size open for steps of several tokens")
    # Single steps, as the peer does them behind the prompt, and some of 4 for what comes before.
    run(f"{BIN}/npu-compile", "-q", "--threads", threads, "--buckets", f"{symbol}=1,4", f"{name}.json", "-o", f"{name}.npub")
    lines = []
    for end, row in enumerate(candidates.tolist(), 1):
        lines += [ids[0, :end].tolist() + [candidate] for candidate in row]
        lines.append(ids[0, :end].tolist() + [int(ids[0, end])] if end < ids.shape[1] else [])
    with open("lines.ids", "w", encoding="ascii") as file:
        file.writelines(" ".join(map(str, line)) + "\n" for line in lines if line)
    report = json.loads(run(f"{BIN}/npu-run", "-q", f"{name}.npub", "--threads", threads, "--score", "lines.ids"))
    sums = iter(request["nll"] for request in report["score"]["requests"])
    found, before = np.zeros(candidates.shape), 0.0
    for end in range(candidates.shape[0]):
        for which in range(candidates.shape[1]):
            found[end, which] = before - next(sums)
        before = next(sums, 0.0)
    return found


def log_probabilities(logits, candidates):
    """Of candidates [position, which], from logits [1, position, id]."""
    logits = logits[0].astype(np.float64)
    total = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) + logits.max(1, keepdims=True)
    return np.take_along_axis(logits - total, candidates, 1)


def compare(options):
    """(right, refused, different) files."""
    chunks = [5] + [1] * (options.steps - 1)
    random = np.random.default_rng(options.seed)
    ids = random.integers(0, WORDS, (1, sum(chunks)))
    drawn = random.integers(0, WORDS, (sum(chunks), 3))
    right, refused, different = 0, 0, 0
    for config in options.config or CONFIGS:
        first = None
        for form in FORMS:
            name, decoder = f"{config}.{form}", Decoder(CONFIGS[config], form)
            with open(f"{name}.onnx", "wb") as file:
                file.write(decoder.write())
            logits = theirs(name, decoder, ids, chunks, str(options.threads))
            # Three at random, the most likely one and the least likely one.
            first = logits if first is None else first
            extremes = np.stack([logits[0].argmax(1), logits[0].argmin(1)], 1)
            candidates = np.concatenate([drawn, extremes], 1)
            wanted = log_probabilities(logits, candidates)
            try:
                if options.peer_only:
                    found = log_probabilities(first, candidates)
                else:
                    found = ours(name, decoder, ids, candidates, str(options.threads))
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
