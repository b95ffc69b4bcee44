#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's backend cases through npu-tag, npu-partition and npu-run and prints a line for each, sorted.

Input:  folders KIND/CASE with model.onnx and test_data_set_0/{input,output}_N.pb.
Output: "pass CASE", "differs CASE: why" or "refused CASE: why".

Tolerances are those of ONNX's runner, rtol 1e-3 and atol 1e-7, unless others are given. An operand that the import has to
know (a shape, axes, a scale) is a graph input in many cases; it is frozen from the data set, and
nothing else is. Symbolic dimensions get the extents of the data set.
"""

import argparse
import concurrent.futures
import fnmatch
import glob
import os
import re
import subprocess
import sys
import tempfile

UNBOUND = re.compile(r"'([^']*)' \(dimension (\d+) of input '([^']*)'\)")
DEPENDS = re.compile(r"it depends on ('.*')")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of the fields of a message; fixed numbers are skipped."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            at += 4 if tag & 7 == 5 else 8


def names_of(model):
    """The names of the inputs that are no initializers, and of the outputs."""
    graph = next(value for number, value in fields(model) if number == 7)
    inputs, outputs, initializers = [], [], set()
    for number, value in fields(graph):
        if number in (5, 11, 12):
            key = 8 if number == 5 else 1
            name = next((v.decode() for n, v in fields(value) if n == key), "")
            if number == 5:
                initializers.add(name)
            else:
                (inputs if number == 11 else outputs).append(name)
    return [name for name in inputs if name not in initializers], outputs


def data_files(folder, kind, names):
    found = {}
    for path in glob.glob(os.path.join(folder, "test_data_set_0", kind + "_*.pb")):
        index = int(re.search(r"_(\d+)\.pb$", path).group(1))
        if index < len(names):
            found[names[index]] = path
    return found


def first_error(text):
    line = next((line for line in text.splitlines() if "error:" in line), text.strip())
    return line.split("error: ", 1)[-1]


def shape_of_tensor(path):
    with open(path, "rb") as file:
        data = file.read()
    dims = []
    for number, value in fields(data):
        if number != 1:
            continue
        if isinstance(value, int):
            dims.append(value)
            continue
        at = 0
        while at < len(value):
            dim, at = varint(value, at)
            dims.append(dim)
    return dims


def stated_shapes(model):
    """The shapes of the inputs that state one without symbols."""
    graph = next(value for number, value in fields(model) if number == 7)
    shapes = {}
    for number, value in fields(graph):
        if number != 11:
            continue
        name = next((v.decode() for n, v in fields(value) if n == 1), "")
        for _, kind in (field for field in fields(value) if field[0] == 2):
            for _, tensor in (field for field in fields(kind) if field[0] == 1):
                for _, shape in (field for field in fields(tensor) if field[0] == 2):
                    dims = [dict(fields(dim)).get(1) for n, dim in fields(shape) if n == 1]
                    if None not in dims:
                        shapes[name] = dims
    return shapes


class Case:
    """One case, with its files in a scratch folder."""

    def __init__(self, options, case, work):
        self.options, self.case, self.work = options, case, work
        self.folder = os.path.join(options.data, case)
        self.model = os.path.join(self.folder, "model.onnx")
        with open(self.model, "rb") as file:
            model = file.read()
        inputs, outputs = names_of(model)
        self.given = data_files(self.folder, "input", inputs)
        self.expected = data_files(self.folder, "output", outputs)
        # Data of another shape than the model states can only stand for the model's own.
        stated = stated_shapes(model)
        self.frozen = [
            name
            for name, path in self.given.items()
            if name in stated and shape_of_tensor(path) != stated[name]
        ]

    def path(self, name):
        return os.path.join(self.work, name)

    def call(self, program, *arguments):
        command = [os.path.join(self.options.bin, program), "-q", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def imported(self):
        """Whether the import works, freezing and binding what it asks for; else why not."""
        bound = {}
        while True:
            frozen = [part for n in self.frozen for part in ("--freeze", f"{n}={self.given[n]}")]
            frozen += [part for n in bound for part in ("--bind", f"{n}={bound[n]}")]
            devices = ["--devices", self.options.devices]
            done = self.call(
                "npu-tag", *devices, *frozen, self.model, "-o", self.path("model.json")
            )
            if done.returncode == 0:
                return ""
            symbols = len(bound)
            for symbol, axis, name in UNBOUND.findall(done.stderr):
                if name in self.given:
                    bound.setdefault(symbol, shape_of_tensor(self.given[name])[int(axis)])
            if len(bound) > symbols:
                continue
            wanted = [n for line in DEPENDS.findall(done.stderr) for n in line[1:-1].split("', '")]
            more = [n for n in wanted if n in self.given and n not in self.frozen]
            if not more:
                return first_error(done.stderr)
            self.frozen.append(more[0])

    def run(self, plan):
        arguments = ["--rtol", self.options.rtol, "--atol", self.options.atol]
        arguments += ["--threads", "1", plan]
        for name, path in self.given.items():
            if name not in self.frozen:
                arguments += ["--inputs", f"{name}={path}"]
        for name, path in self.expected.items():
            arguments += ["--expect", f"{name}={path}"]
        return self.call("npu-run", *arguments)

    def line(self):
        why = self.imported()
        if why:
            return f"refused {self.case}: {why}"
        if self.options.import_only:
            return f"imported {self.case}"
        plan = self.path("plan.json")
        done = self.call("npu-partition", self.path("model.json"), "-o", plan)
        if done.returncode == 0 and self.options.bundles:
            bundle = self.path("model.npub")
            done = self.call("npu-compile", plan, "-o", bundle)
            plan = bundle
        if done.returncode == 0:
            done = self.run(plan)
        if done.returncode == 0:
            return f"pass {self.case}"
        return f"differs {self.case}: {first_error(done.stderr)}"


def run_case(options, case):
    with tempfile.TemporaryDirectory() as work:
        return Case(options, case, work).line()


def main(argv):
    parser = argparse.ArgumentParser(description="Run ONNX's backend cases.")
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--data", default="/usr/share/libonnx-testdata/data", help="the cases")
    parser.add_argument("--devices", default="cpu", help="devices for npu-tag")
    parser.add_argument("--jobs", type=int, default=2, help="cases at the same time")
    parser.add_argument("--cases", default="*", help="patterns of KIND/CASE, by commas")
    parser.add_argument("--rtol", default="1e-3", help="relative tolerance")
    parser.add_argument("--atol", default="1e-7", help="absolute tolerance")
    parser.add_argument("--bundles", action="store_true", help="compile, and run the bundles")
    parser.add_argument("--import-only", action="store_true", help="stop after npu-tag")
    options = parser.parse_args(argv)
    models = sorted(glob.glob(os.path.join(options.data, "*", "*", "model.onnx")))
    cases = [os.path.relpath(os.path.dirname(path), options.data) for path in models]
    patterns = options.cases.split(",")
    cases = [case for case in cases if any(fnmatch.fnmatch(case, one) for one in patterns)]
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda case: run_case(options, case), cases):
            print(line, flush=True)
            counts[line.split()[0]] = counts.get(line.split()[0], 0) + 1
    text = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"{len(cases)} cases: {text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
