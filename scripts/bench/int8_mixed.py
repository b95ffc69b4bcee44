#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what npu-align --quantize mixed predicts with what is measured: the time and the error of each document.

Usage: scripts/bench/int8_mixed.py [--max-errors LIST] [--runs N] [--rates] [--samples N] [--greedy] [--random-weights SEED] MODEL.json SAMPLES.safetensors ...

Each model is calibrated on its samples, measured in float32 and in int8 (npu-profile --ranges), and given precisions for each error; the document
runs on the device npu. The time is the least one of the runs, the error that of the outputs for the samples, relative to the power of float32's.
With --rates nothing is timed: times are those of the target's rates, by which int8 pays wherever an operator can be, so that many errors add up
in small models, too. The few outputs of a small model in one sample are few numbers, whose errors may add up by chance; --samples N takes N samples,
whose float inputs are the given ones times normal numbers. In place of a file of samples, - stands for inputs of 1; with --random-weights a model
needs no file of weights.

With --greedy no document is run: its predicted time is compared with that of a greedy choice of the kind of NNCF's accuracy control, within the same
error and by the same times and errors, those of the document's certificate: all that can be int8 is, and the operators with the largest errors
become float until the errors keep to the limit. Exit status 1 if the greedy choice is predicted to take less time for any model and limit.

Else exit status 1 unless every time is within 10 % and every error within a factor of 2 of what was predicted. The programs are those in build/bin.
"""
import argparse
import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
sys.path.insert(0, str(ROOT / "scripts"))
from export import safetensors  # noqa: E402

BIN = ROOT / "build" / "bin"
TIME_BAR, ERROR_BAR = 0.10, 2.0


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr.decode().strip()}")
    return result.stdout.decode()


def floats_of(path):
    """All float32 numbers of a safetensors file, by tensor."""
    return {
        name: struct.unpack(f"<{len(data) // 4}f", data)
        for name, kind, _, data in safetensors.read(path)
        if kind == "F32"
    }


def tensors_of(path):
    """Dtype, shape and bytes of each tensor of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, entry["dtype"], entry["shape"], data[8 + size + begin:8 + size + end]


def write_tensors(path, tensors):
    header, content = {}, b""
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(content), len(content) + len(data)]}
        content += data
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content)


def write_ones(model, path):
    """A sample of float inputs of 1."""
    tensors = []
    for tensor in json.loads(pathlib.Path(model).read_text())["graph_inputs"]:
        if tensor["dtype"] != "float32":
            sys.exit(f"{model}: input {tensor['name']} is {tensor['dtype']}: give a file of samples")
        count = math.prod(tensor["shape"])
        tensors.append((tensor["name"], "F32", tensor["shape"], struct.pack(f"<{count}f", *[1.0] * count)))
    write_tensors(path, tensors)


def draw_samples(given, count, folder):
    """A file with all samples along a leading axis, and one for each sample."""
    generator = random.Random(1)
    tensors = list(tensors_of(given))
    parts = []
    for _ in range(count):
        sample = []
        for name, dtype, shape, data in tensors:
            if dtype == "F32":
                values = struct.unpack(f"<{len(data) // 4}f", data)
                data = struct.pack(f"<{len(values)}f", *(value * generator.gauss(0, 1) for value in values))
            sample.append((name, dtype, shape, data))
        parts.append(sample)
    whole = folder / "samples.safetensors"
    write_tensors(whole, [(name, dtype, [count, *shape], b"".join(part[i][3] for part in parts))
                          for i, (name, dtype, shape, _) in enumerate(tensors)])
    files = [folder / f"sample{i}.safetensors" for i in range(count)]
    for path, part in zip(files, parts):
        write_tensors(path, part)
    return whole, files


def measure(document, samples, runs, folder):
    """The least time in milliseconds, and the outputs of all samples."""
    tagged = folder / "partitioned.json"
    fused = folder / "fused.json"
    run(BIN / "npu-tag", document, "-o", tagged)
    run(BIN / "npu-fuse", tagged, "-o", fused)
    run(BIN / "npu-partition", fused, "-o", tagged)
    outputs = folder / "outputs.safetensors"
    times, found = [], {}
    for sample in samples:
        report = json.loads(run(BIN / "npu-run", tagged, "--inputs", sample, "--outputs", outputs, "--bench", runs))
        times.append(report["bench"]["min_ms"])
        for name, values in floats_of(outputs).items():
            found[name] = found.get(name, ()) + values
    return min(times), found


def relative_error(actual, expected):
    """The mean over the outputs, as npu-ranges(5) defines the error of one operator."""
    shares = []
    for name, tensor in expected.items():
        power = sum(x * x for x in tensor)
        if power > 0:
            shares.append(sum((x - y) ** 2 for x, y in zip(tensor, actual[name])) / power)
    return sum(shares) / len(shares) if shares else 0.0


class Certificate:
    """The choice that a document's certificate states: costs and errors of units, and of conversions of values."""

    def __init__(self, document):
        self.section = document["npu"]["precision"]
        certificate = self.section["certificate"]
        self.units, self.values = certificate["units"], certificate["values"]
        self.budget, self.cost, self.tick_us = certificate["budget"], certificate["cost"], certificate["tick_us"]
        unit_of = {name: i for i, unit in enumerate(self.units) for name in unit["nodes"]}
        maker = {result["name"]: unit_of.get(node["name"]) for node in document["nodes"] for result in node["outputs"]}
        self.makers = [maker.get(value["tensor"]) for value in self.values]  # None: a graph input
        outputs = {output["name"] for output in document["graph_outputs"]}
        self.is_output = [value["tensor"] in outputs for value in self.values]
        self.chosen = [self.precision_of(document, unit) for unit in self.units]

    @staticmethod
    def precision_of(document, unit):
        first = unit["nodes"][0]
        return next(node for node in document["nodes"] if node["name"] == first).get("precision") == "int8"

    def cost_of(self, int8):
        cost = sum(unit["int8" if chosen else "float"] for unit, chosen in zip(self.units, int8))
        for value, maker, is_output in zip(self.values, self.makers, self.is_output):
            made_int8 = maker is not None and int8[maker]
            readers = [int8[reader] for reader in value["readers"]]
            cost += value["to_int8"] if not made_int8 and any(readers) else 0
            cost += value["to_float"] if made_int8 and (is_output or not all(readers)) else 0
        return cost

    def greedy(self):
        int8 = [unit["allowed"] == "both" for unit in self.units]
        for i in sorted(range(len(int8)), key=lambda i: -self.units[i]["error"]):
            if sum(unit["error"] for unit, chosen in zip(self.units, int8) if chosen) <= self.budget:
                break
            int8[i] = False
        return int8


def compare_greedy(model, limit, document):
    """False if the greedy choice is predicted to take less time."""
    certificate = Certificate(document)
    if certificate.cost_of(certificate.chosen) != certificate.cost:
        sys.exit(f"{model}: the certificate's cost is not that of its precisions")
    int8 = certificate.greedy()
    cost = certificate.cost_of(int8)
    ms = certificate.tick_us / 1000
    print(f"{pathlib.Path(model).stem:20} {limit:>8} {sum(certificate.chosen):5} {certificate.cost * ms:12.4f} {sum(int8):9} {cost * ms:12.4f} "
          f"{certificate.cost / max(cost, 1):6.3f}", flush=True)
    return certificate.cost <= cost


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="MODEL.json SAMPLES.safetensors, in pairs")
    parser.add_argument("--max-errors", default="1e-4,1e-3,1e-2", help="limits of the error (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=100, help="timed runs (default: %(default)s)")
    parser.add_argument("--rates", action="store_true", help="judge errors alone, with times from the target's rates")
    parser.add_argument("--samples", type=int, default=0, help="how many samples to draw (default: the given one)")
    parser.add_argument("--random-weights", metavar="SEED", help="of the models, with --greedy")
    parser.add_argument("--greedy", action="store_true", help="compare predicted times with those of a greedy choice")
    options = parser.parse_args()
    if len(options.files) % 2 != 0:
        parser.error("expected pairs of a model and its samples")
    if options.random_weights is not None and not options.greedy:
        parser.error("--random-weights goes with --greedy, for which no document is run")
    weights = [] if options.random_weights is None else ["--random-weights", options.random_weights]
    fails = False
    if options.greedy:
        print(f"{'model':20} {'limit':>8} {'units':>5} {'predicted ms':>12} {'greedy':>9} {'predicted ms':>12} {'ratio':>6}")
    else:
        print(f"{'model':20} {'limit':>8} {'int8':>5} {'predicted ms':>12} {'measured':>9} {'ratio':>6} {'predicted error':>15} {'measured':>9} {'ratio':>6}")
    for model, samples in zip(options.files[::2], options.files[1::2]):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            if samples == "-":
                samples = folder / "ones.safetensors"
                write_ones(model, samples)
            files = [samples]
            if options.samples > 0:
                samples, files = draw_samples(pathlib.Path(samples), options.samples, folder)
            ranges, table, mixed = (folder / part for part in ("ranges.json", "table.json", "mixed.json"))
            run(BIN / "npu-profile", model, "--calibrate", samples, "--error-samples", max(1, options.samples), *weights, "-o", ranges)
            profile, overhead = [], 0.0
            if not options.rates:
                run(BIN / "npu-profile", model, "--ranges", ranges, *weights, "-o", table)
                overhead = {device["name"]: device["partition_us"] for device in json.loads(table.read_text())["devices"]}["npu"]
                profile = ["--profile", table]
            expected = None if options.greedy else measure(model, files, 1, folder)[1]
            for limit in options.max_errors.split(","):
                run(BIN / "npu-align", "--quantize", "mixed", "--ranges", ranges, *profile, "--max-error", limit, model, "-o", mixed)
                if options.greedy:
                    fails = not compare_greedy(model, limit, json.loads(mixed.read_text())) or fails
                    continue
                section = json.loads(mixed.read_text())["npu"]["precision"]
                count = sum(node["precision"] == "int8" for node in section["nodes"])
                predicted = (section["predicted_us"] + overhead) / 1000
                measured, outputs = measure(mixed, files, 1 if options.rates else options.runs, folder)
                error = relative_error(outputs, expected)
                time_ratio = predicted / measured
                error_ratio = section["predicted_error"] / error if error > 0 else 1.0
                print(f"{pathlib.Path(model).stem:20} {limit:>8} {count:5} {predicted:12.4f} {measured:9.4f} {time_ratio:6.2f} "
                      f"{section['predicted_error']:15.3e} {error:9.3e} {error_ratio:6.2f}")
                late = not options.rates and abs(time_ratio - 1) > TIME_BAR
                fails = fails or late or not 1 / ERROR_BAR <= error_ratio <= ERROR_BAR
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
