#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks padded runs of models whose sizes vary against the same models at exactly these sizes.

Input:  none; a seed. Models are those of padding_models.py.
Output: a line for each model, exit 1 if one differs: the largest error of its padded runs from runs of the same size on
        the same devices, in parts of the output's largest magnitude (at most 1e-5 is asked for), whether the defaults of --verify cpu hold, the
        largest padded share, and, beside it, the error of what peers advise: pad with zeros, run, cut. Behind that the
        models that have to be refused, with what is said.

Each model is exported as a template, compiled for two choices of its sizes, and run at twenty others.

Needs the programs in build/bin, or $BIN, and python3-torch.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, f"{HERE}/..")
sys.dont_write_bytecode = True

import padding_models  # noqa: E402
import torch  # noqa: E402
from export.torch_tensors import write_safetensors  # noqa: E402

BIN = os.path.abspath(os.environ.get("BIN", f"{HERE}/../../build/bin"))
ASKED = 1e-5
DTYPES = {"F32": torch.float32, "I64": torch.int64, "BOOL": torch.bool}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def must(*command):
    result = run(*command)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {result.returncode}: {result.stderr.strip()}")
    return result


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        begin = file.tell()
        tensors = {}
        for name, entry in header.items():
            if name == "__metadata__":
                continue
            file.seek(begin + entry["data_offsets"][0])
            data = bytearray(file.read(entry["data_offsets"][1] - entry["data_offsets"][0]))
            flat = torch.frombuffer(data, dtype=DTYPES[entry["dtype"]]) if data else torch.empty(0)
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def write(path, tensors):
    with open(path, "wb") as file:
        write_safetensors(file, {name: tensor.contiguous() for name, tensor in tensors.items()})


class Model:
    """A template in the working directory, and where its sizes stand in the inputs."""

    def __init__(self, name, make, inputs, dynamic, buckets):
        self.name, self.inputs, self.places, self.ranges = name, inputs, [], {}
        self.buckets = [dict((key, int(value)) for key, value in (part.split("=") for part in text.split(","))) for text in buckets]
        for option in dynamic:
            place, _, size = option.partition("=")
            name_of, _, limits = size.partition(":")
            tensor, dim = place.split(":")
            self.places.append((tensor, int(dim), name_of))
            if limits:
                limits, _, step = limits.partition("/")
                low, high = limits.split("..")
                self.ranges[name_of] = (int(low), int(high), int(step or 1))
        options = [word for option in dynamic for word in ("--dynamic", option)]
        must(sys.executable, f"{HERE}/../export_torch.py", f"{HERE}/padding_models.py:{name}", "-o", ".", *options)
        asked = [word for text in buckets for word in ("--bucket", text)]
        must(f"{BIN}/npu-compile", *asked, f"{name}.json", "-o", f"{name}.npub")

    def draw_sizes(self, rng):
        sizes = {}
        for name, (low, high, step) in self.ranges.items():
            high = min(high, max(bucket[name] for bucket in self.buckets))
            sizes[name] = low + step * int(torch.randint(0, (high - low) // step + 1, (1,), generator=rng))
        return sizes

    def draw_inputs(self, sizes, rng):
        drawn = {}
        for name, example in self.inputs.items():
            shape = list(example.shape)
            for tensor, dim, size in self.places:
                if tensor == name:
                    shape[dim] = sizes[size]
            if name.endswith("mask"):  # the last words of all rows but the first are blocked
                drawn[name] = torch.ones(shape, dtype=torch.int64)
                drawn[name][1:, shape[1] // 2 + 1 :] = 0
            elif name in ("source", "target"):
                drawn[name] = torch.randint(0, sizes["N"], shape, generator=rng)
            elif example.dtype == torch.int64:
                drawn[name] = torch.randint(1, 50, shape, generator=rng)
            else:
                drawn[name] = torch.randn(shape, generator=rng)
        return drawn

    def pad_with_zeros(self, inputs, sizes):
        bucket = next(each for each in self.buckets if all(each[key] >= sizes[key] for key in sizes))
        padded = {}
        for name, tensor in inputs.items():
            shape = list(tensor.shape)
            for of, dim, size in self.places:
                if of == name:
                    shape[dim] = bucket[size]
            padded[name] = torch.zeros(shape, dtype=tensor.dtype)
            padded[name][tuple(slice(0, extent) for extent in tensor.shape)] = tensor
        return bucket, padded


def relative_error(found, expected):
    worst = 0.0
    for name, tensor in expected.items():
        if tensor.numel() == 0:
            continue
        ours = found[name][tuple(slice(0, extent) for extent in tensor.shape)]
        difference = float((ours.double() - tensor.double()).abs().max())
        worst = max(worst, math.inf if math.isnan(difference) else difference / max(float(tensor.abs().max()), 1e-30))
    return worst


def check_model(name, entry, count, rng):
    model = Model(name, *entry)
    worst = share = recipe = 0.0
    faults = []
    for _ in range(count):
        sizes = model.draw_sizes(rng)
        inputs = model.draw_inputs(sizes, rng)
        text = ",".join(f"{key}={value}" for key, value in sizes.items())
        write("in.safetensors", inputs)
        bind = [word for key, value in sizes.items() for word in ("--bind", f"{key}={value}")]
        must(f"{BIN}/npu-run", f"{name}.json", *bind, "--inputs", "in.safetensors", "--outputs", "exact.safetensors")
        exact = read_safetensors("exact.safetensors")
        options = ["--inputs", "in.safetensors", "--outputs", "out.safetensors", "--verify", "cpu"]
        result = run(f"{BIN}/npu-run", f"{name}.npub", *options, "--weights", f"{name}.safetensors")
        if result.returncode != 0:
            faults.append(f"{text}: {(result.stderr.strip().splitlines() or ['?'])[0]}")
            continue
        report = json.loads(result.stdout)
        share = max(share, report.get("padded_share", 0.0))
        worst = max(worst, relative_error(read_safetensors("out.safetensors"), exact))
        bucket, padded = model.pad_with_zeros(inputs, sizes)
        write("in.safetensors", padded)
        bind = [word for key, value in bucket.items() for word in ("--bind", f"{key}={value}")]
        result = run(f"{BIN}/npu-run", f"{name}.json", *bind, "--inputs", "in.safetensors", "--outputs", "out.safetensors")
        if result.returncode == 0:
            recipe = max(recipe, relative_error(read_safetensors("out.safetensors"), exact))
    print(f"{name:12} {worst:9.1e} {'holds' if not faults else 'FAILS':>8} {share:7.2f} {recipe:11.1e}", flush=True)
    for fault in faults[:3]:
        print(f"    {fault}")
    return not faults and worst <= ASKED


def check_refused(name, make, inputs, dynamic, pattern):
    must(sys.executable, f"{HERE}/../export_torch.py", f"{HERE}/padding_models.py:{name}", "-o", ".", "--dynamic", dynamic)
    size = dynamic.partition("=")[2].partition(":")[0]
    result = run(f"{BIN}/npu-align", "--bucket", f"{size}=16", f"{name}.json")
    said = result.stderr.strip().partition("error: ")[2]
    is_right = result.returncode == 1 and pattern in said
    print(f"{name:12} exit {result.returncode}: {said or 'nothing'}{'' if is_right else '   EXPECTED A REFUSAL'}")
    return is_right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sizes", type=int, default=20, help="sizes of each model (default %(default)s)")
    parser.add_argument("models", nargs="*", help="default: all")
    options = parser.parse_args()
    rng = torch.Generator().manual_seed(options.seed)
    good = True
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(f"{'model':12} {'error':>9} {'verified':>8} {'padded':>7} {'zeros, cut':>11}")
        for name, entry in padding_models.MODELS.items():
            if not options.models or name in options.models:
                try:
                    good = check_model(name, entry, options.sizes, rng) and good
                except RuntimeError as error:
                    print(f"{name:12} FAILS: {error}")
                    good = False
        for name, (make, inputs, dynamic, pattern) in padding_models.REFUSED.items():
            if not options.models or name in options.models:
                good = check_refused(name, make, inputs, dynamic, pattern) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
