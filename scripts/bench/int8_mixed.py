#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what npu-align --quantize mixed predicts with what is measured: the time and the error of each document.

Usage: scripts/bench/int8_mixed.py [--max-errors LIST] [--runs N] [--rates] [--paired N] [--samples N] [--greedy] [--random-weights SEED] MODEL.json SAMPLES.safetensors ...

Each model is calibrated on its samples, measured in float32 and in int8 (npu-profile --ranges), and given precisions for each error; the document
runs on the device npu. The time is the median of the runs, and of five processes, since one may be slower than others from start to end; npu-profile
predicts it, the error that of the outputs for the samples, relative to
the power of float32's. On a busy machine, which is slower at one moment than at another, --paired N judges shares instead: in each of N rounds the
document runs beside float32's, and the median of the ratios, times float32's predicted time, counts as measured.
With --rates nothing is timed: times are those of the target's rates, by which int8 pays wherever an operator can be, so that many errors add up
in small models, too. The few outputs of a small model in one sample are few numbers, whose errors may add up by chance; --samples N takes N samples,
whose float inputs are the given ones times normal numbers. In place of a file of samples, - stands for inputs of 1; with --random-weights a model
needs no file of weights.

Each row ends with the certificate: "gap" is how far the predicted time is above its bound, and "greedy" the predicted time by that of a greedy
choice of the kind of NNCF's accuracy control, within the same error and by the same times and errors, those of the certificate: all that can be
int8 is, and the operators with the largest errors become float until the errors keep to the limit. With --greedy no document is run.

Exit status 1 unless every time is within 10 % and every error within a factor of 2 of what was predicted, every gap is at most 1 % and no greedy
choice is predicted to take less time. The programs are those in build/bin.
"""
import argparse
import json
import math
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
sys.path.insert(0, str(ROOT / "scripts"))
from export import safetensors  # noqa: E402

BIN = ROOT / "build" / "bin"
TIME_BAR, ERROR_BAR, GAP_BAR = 0.10, 2.0, 0.01
PROCESSES = 5


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


def compiled(document, path):
    """A bundle of a document."""
    run(BIN / "npu-compile", "-q", "--no-cache", document, "-o", path)
    return path


def time_of(bundle, sample, runs):
    """The median in milliseconds."""
    return json.loads(run(BIN / "npu-run", "-q", bundle, "--inputs", sample, "--bench", runs))["bench"]["median_ms"]


def outputs_of(bundle, samples, folder):
    """All numbers of each output, for all samples."""
    path, found = folder / "outputs.safetensors", {}
    for sample in samples:
        run(BIN / "npu-run", "-q", bundle, "--inputs", sample, "--outputs", path)
        for name, values in floats_of(path).items():
            found[name] = found.get(name, ()) + values
    return found


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


def certified(model, document):
    """How far the predicted time is above its bound, and its share of a greedy choice's."""
    certificate = Certificate(document)
    if certificate.cost_of(certificate.chosen) != certificate.cost:
        sys.exit(f"{model}: the certificate's cost is not that of its precisions")
    section = certificate.section
    gap = 1 - section["lower_bound_us"] / section["predicted_us"] if section["predicted_us"] > 0 else 0.0
    return gap, certificate.cost / max(certificate.cost_of(certificate.greedy()), 1)


class Plain:
    """The model in float32: its bundle, and its outputs for the samples."""

    def __init__(self, model, samples, folder):
        self.samples, self.folder = samples, folder
        self.bundle = compiled(model, folder / "float.npub")
        self.outputs = outputs_of(self.bundle, samples, folder)

    def compare(self, document, plain_ms, options):
        """The time of a document in milliseconds, none with --rates, and its error. `plain_ms` is float32's predicted time."""
        bundle = compiled(document, self.folder / "mixed.npub")
        error = relative_error(outputs_of(bundle, self.samples, self.folder), self.outputs)
        if options.rates:
            return None, error
        sample = self.samples[0]
        if options.paired == 0:
            return statistics.median(time_of(bundle, sample, options.runs) for _ in range(PROCESSES)), error
        shares = [time_of(bundle, sample, options.runs) / time_of(self.bundle, sample, options.runs) for _ in range(options.paired)]
        return plain_ms * statistics.median(shares), error


def row_of(section, overhead, plain, document, options):
    """What is printed of a document, and whether prediction and measurement are close."""
    count = sum(node["precision"] == "int8" for node in section["nodes"])
    predicted = (section["predicted_us"] + overhead) / 1000
    row, close = f"{count:5} {predicted:12.4f} ", True
    if plain is None:
        return row + f"{'-':>9} {'-':>6} {section['predicted_error']:15.3e} {'-':>9} {'-':>6}", close
    measured, error = plain.compare(document, (section["float_us"] + overhead) / 1000, options)
    if measured is None:
        row += f"{'-':>9} {'-':>6}"
    else:
        row += f"{measured:9.4f} {predicted / measured:6.2f}"
        close = abs(predicted / measured - 1) <= TIME_BAR
    ratio = section["predicted_error"] / error if error > 0 else 1.0
    return row + f" {section['predicted_error']:15.3e} {error:9.3e} {ratio:6.2f}", close and 1 / ERROR_BAR <= ratio <= ERROR_BAR


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE", help="MODEL.json SAMPLES.safetensors, in pairs")
    parser.add_argument("--max-errors", default="1e-4,1e-3,1e-2", help="limits of the error (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=50, help="timed runs (default: %(default)s)")
    parser.add_argument("--rates", action="store_true", help="judge errors alone, with times from the target's rates")
    parser.add_argument("--paired", type=int, default=0, metavar="N", help="judge times by float32's, in so many rounds")
    parser.add_argument("--samples", type=int, default=0, help="how many samples to draw (default: the given one)")
    parser.add_argument("--random-weights", metavar="SEED", help="of the models, with --greedy")
    parser.add_argument("--greedy", action="store_true", help="run no document: certificates alone")
    options = parser.parse_args()
    if len(options.files) % 2 != 0:
        parser.error("expected pairs of a model and its samples")
    if options.random_weights is not None and not options.greedy:
        parser.error("--random-weights goes with --greedy, for which no document is run")
    weights = [] if options.random_weights is None else ["--random-weights", options.random_weights]
    fails = False
    print(f"{'model':20} {'limit':>8} {'int8':>5} {'predicted ms':>12} {'measured':>9} {'ratio':>6} {'predicted error':>15} {'measured':>9} {'ratio':>6} "
          f"{'gap':>7} {'greedy':>6}")
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
            plain = None if options.greedy else Plain(model, files, folder)
            for limit in options.max_errors.split(","):
                run(BIN / "npu-align", "--quantize", "mixed", "--ranges", ranges, *profile, "--max-error", limit, model, "-o", mixed)
                document = json.loads(mixed.read_text())
                row, close = row_of(document["npu"]["precision"], overhead, plain, mixed, options)
                gap, share = certified(model, document)
                print(f"{pathlib.Path(model).stem:20} {limit:>8} {row} {100 * gap:6.2f}% {share:6.3f}", flush=True)
                fails = fails or not close or gap > GAP_BAR or share > 1
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
