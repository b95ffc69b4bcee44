#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX's backend cases through npu-tag, npu-partition and npu-run and prints a line for each, sorted.

Input:  folders KIND/CASE with model.onnx and test_data_set_0/{input,output}_N.pb.
Output: "pass CASE", "differs CASE: why" or "refused CASE: why".

Tolerances are those of ONNX's runner, rtol 1e-3 and atol 1e-7. An operand that the import has to
know (a shape, axes, a scale) is a graph input in many cases; it is frozen from the data set, and
nothing else is.
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


def run_case(options, folder, case):
    with open(os.path.join(folder, case, "model.onnx"), "rb") as file:
        model = file.read()
    inputs, outputs = names_of(model)
    given = data_files(os.path.join(folder, case), "input", inputs)
    expected = data_files(os.path.join(folder, case), "output", outputs)
    frozen = []
    with tempfile.TemporaryDirectory() as work:
        document = os.path.join(work, "model.json")
        while True:
            command = [os.path.join(options.bin, "npu-tag"), "-q", "--devices", options.devices]
            for name in frozen:
                command += ["--freeze", f"{name}={given[name]}"]
            command += [os.path.join(folder, case, "model.onnx"), "-o", document]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
            wanted = [n for line in DEPENDS.findall(done.stderr) for n in line[1:-1].split("', '")]
            more = [n for n in wanted if n in given and n not in frozen]
            if not more:
                return f"refused {case}: {first_error(done.stderr)}"
            frozen.append(more[0])
        if options.import_only:
            return f"imported {case}"
        plan = os.path.join(work, "plan.json")
        command = [os.path.join(options.bin, "npu-partition"), "-q", document, "-o", plan]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return f"differs {case}: {first_error(done.stderr)}"
        command = [os.path.join(options.bin, "npu-run"), "-q", "--rtol", "1e-3", "--atol", "1e-7"]
        command += ["--threads", "1", plan]
        for name, path in given.items():
            if name not in frozen:
                command += ["--inputs", f"{name}={path}"]
        for name, path in expected.items():
            command += ["--expect", f"{name}={path}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return f"pass {case}"
        return f"differs {case}: {first_error(done.stderr)}"


def main(argv):
    parser = argparse.ArgumentParser(description="Run ONNX's backend cases.")
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--data", default="/usr/share/libonnx-testdata/data", help="the cases")
    parser.add_argument("--devices", default="cpu", help="devices for npu-tag")
    parser.add_argument("--jobs", type=int, default=2, help="cases at the same time")
    parser.add_argument("--cases", default="*", help="pattern of KIND/CASE")
    parser.add_argument("--import-only", action="store_true", help="stop after npu-tag")
    options = parser.parse_args(argv)
    models = sorted(glob.glob(os.path.join(options.data, "*", "*", "model.onnx")))
    cases = [os.path.relpath(os.path.dirname(path), options.data) for path in models]
    cases = [case for case in cases if fnmatch.fnmatch(case, options.cases)]
    counts = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for line in pool.map(lambda case: run_case(options, options.data, case), cases):
            print(line, flush=True)
            counts[line.split()[0]] = counts.get(line.split()[0], 0) + 1
    text = ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    print(f"{len(cases)} cases: {text}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
