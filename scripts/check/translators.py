#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that encoders with decoders choose the ids that PyTorch does: T5, BART, Marian, Pegasus, M2M100 and Whisper, in
the forms of translator_models.py, with random weights.

PyTorch's exporter writes each as optimum does, in three files. npu-tag makes states of them, npu-compile one bundle, and
npu-run reads sources of several lengths. Every id must be PyTorch's choice wherever its two best logits differ by more
than 1e-3, and the negative log-likelihood of PyTorch's ids must be its own to 1e-3.

Output: a line for each configuration: equal requests, the least margin, the largest difference; or why it is refused.
Exits 1 if one is wrong or refused.

Needs the programs in build/bin, or $BIN, and python3-torch.

Usage: translators.py [--devices D,...] [--capacity N] [--keep FOLDER | --write FOLDER] [NAME...]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from translator_models import CONFIGS, export, reference  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", f"{HERE}/../../build/bin"))
NEW, START, ROWS, MARGIN = 14, 0, 16, 1e-3


class Refused(Exception):
    """A program did not take a model; the message is its last line."""


def must(program, *arguments):
    result = subprocess.run([f"{BIN}/{program}", *arguments], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise Refused((result.stderr.strip().splitlines() or [f"{program}: exit {result.returncode}"])[-1])
    return result.stdout


def write_lines(path, lines):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(" ".join(map(str, line)) + "\n" for line in lines)


def compiled(folder, config, options):
    """A bundle of the three files."""
    at = lambda name: f"{folder}/{name}"
    rows = config.places if config.features else ROWS
    must(
        "npu-tag", "-q", "--states", "--capacity", str(options.capacity), "--source-rows", str(rows),
        at("decoder_with_past_model.onnx"), "-o", at("decode.json"),
    )  # fmt: skip
    frames = ["--bind", f"encoder_sequence_length={2 * rows}"] if config.features else []
    must(
        "npu-tag", "-q", *frames, "--encode-for", at("decode.json"), "--cross", at("decoder_model.onnx"),
        at("encoder_model.onnx"), "-o", at("encode.json"),
    )  # fmt: skip
    sizes = ["--devices", options.devices] if options.devices else []
    if not config.features:
        sizes += ["--buckets", f"encoder_sequence_length={ROWS // 2},{ROWS}"]
    if config.any_steps:
        sizes += ["--buckets", "decoder_sequence_length=1,4"]
    entries = ["--entry", f"encode={at('encode.json')}", "--entry", f"decode={at('decode.json')}"]
    must("npu-compile", "-q", *sizes, *entries, "-o", at("model.npub"))
    return at("model.npub")


def check(name, folder, options):
    """What is said of a configuration, and whether it is right."""
    model = export(name, folder)
    config = model.config
    random = torch.Generator().manual_seed(5)
    if config.features:
        sources = [torch.randn(1, config.features, 2 * config.places, generator=random) for _ in range(3)]
        np.save(f"{folder}/source.npy", np.stack([source.numpy() for source in sources]))
        given = ["--inputs", f"input_features={folder}/source.npy"]
    else:
        sources = [torch.randint(2, config.words, (rows,), generator=random).tolist() for rows in (3, 7, 12, ROWS)]
        write_lines(f"{folder}/source.ids", sources)
        given = ["--source", f"{folder}/source.ids"]
    wanted = [reference(model, source, NEW, START) for source in sources]
    write_lines(f"{folder}/start.ids", [[START]] * len(sources))
    write_lines(f"{folder}/score.ids", [[START, *ids] for ids, _, _ in wanted])
    bundle = compiled(folder, config, options)
    drawn = must("npu-run", bundle, "--generate", str(NEW), *given, "--tokens", f"{folder}/start.ids", "--tokens-out", "-")
    report = json.loads(must("npu-run", bundle, "--score", f"{folder}/score.ids", *given))
    equal = wrong = 0
    for line, (ids, margin, _) in zip(drawn.splitlines(), wanted):
        is_equal = list(map(int, line.split())) == ids
        equal += is_equal
        wrong += not is_equal and margin > MARGIN
    apart = max(abs(r["nll"] - nll) for r, (_, _, nll) in zip(report["score"]["requests"], wanted))
    least = min(margin for _, margin, _ in wanted)
    text = f"{equal} of {len(sources)} equal, least margin {least:.2g}, likelihoods within {apart:.1g}"
    return text, wrong == 0 and apart < MARGIN


def write(name, folder):
    """The files of a configuration alone, and FOLDER.nll with SOURCE|IDS|NLL, what PyTorch says of drawn ids."""
    model = export(name, folder)
    random = torch.Generator().manual_seed(5)
    lines = []
    for rows in (3, 7, 12, ROWS):
        source = torch.randint(2, model.config.words, (rows,), generator=random).tolist()
        ids = torch.randint(2, model.config.words, (12,), generator=random).tolist()
        _, _, nll = reference(model, source, len(ids), START, ids)
        lines.append(f"{' '.join(map(str, source))}|{' '.join(map(str, [START, *ids]))}|{nll:.6f}\n")
    with open(f"{folder}.nll", "w", encoding="ascii") as file:
        file.writelines(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="configurations; all of them by default")
    parser.add_argument("--devices", default="", help="as of npu-compile")
    parser.add_argument("--capacity", type=int, default=24, help="rows of states")
    parser.add_argument("--keep", metavar="FOLDER", help="leave the files there")
    parser.add_argument("--write", metavar="FOLDER", help="only write ONNX files, and what PyTorch says")
    options = parser.parse_args()
    if options.write:
        for name in options.names:
            write(name, os.path.join(options.write, name))
        return 0
    is_right = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.names or CONFIGS:
            folder = os.path.join(options.keep or scratch, name)
            try:
                text, is_good = check(name, folder, options)
            except Refused as refusal:
                text, is_good = str(refusal), False
            is_right = is_right and is_good
            print(f"{'right' if is_good else 'WRONG':6} {name:22} {text}", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
