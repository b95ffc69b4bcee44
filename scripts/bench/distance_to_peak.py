#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How far compiled models are from what the machine can do: from its measured peak of multiply-adds, and from
the bandwidth of its memory.

Measures the machine (`npu-profile --machine`) before the models and after them, and keeps the better rates,
since other work can only lower them. Then compiles each model and runs it, and prints its time, the share of
the peak that its FLOPs reach, the share of the bandwidth that reading weights and inputs and writing outputs
once takes, and the distance: its time over the larger of the two times that these two take at the measured
rates. The peak is the rate of the fastest kind of operator. FLOPs are those of the model, two for a
multiply-add, although some kernels need fewer, such as Winograd's, which may be the fastest, too. Weights are
counted as the program holds them.

A second peak is that of a loop of independent multiply-adds in registers (peak_rates.cpp, which it builds, with as many
threads): "products" is the rate of all kernels of matrix products, convolutions and attention, their FLOPs by the
definition over their time in the trace of a run, and "of loop" its share of that peak.

Usage: scripts/bench/distance_to_peak.py [-d DIR] [-t THREADS] [-p LIST] [-n RUNS] [-r ROUNDS] [-m FILE] [MODEL...]
  MODEL  documents of DIR by name (default: all that are there with their inputs)
  -d     where documents and inputs lie (default: the folder of vs_peers.sh, whose -i fills it)
  -m     a target of `npu-profile --machine` for this number of threads, in place of measuring
Exits 1 if a model does not compile or run.
"""

import argparse
import glob
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "npu-bench", "zoo")
DTYPES = {"f32": "float32", "bf16": "bfloat16"}
PRODUCTS = ("aten.linear", "aten.addmm", "aten.mm", "aten.bmm", "aten.baddbmm", "aten.matmul", "aten.einsum", "aten.conv",
            "aten.convolution", "aten.scaled_dot_product_attention")


def output_of(command):
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines()
        raise RuntimeError(lines[-1] if lines else f"{command[0]} fails")
    return result.stdout


def rates_of(target):
    """FLOP/s by precision and bytes/s of the first device."""
    device = target["devices"][0]
    rates = {name: device["peak_flops"].get(dtype, 0.0) for name, dtype in DTYPES.items()}
    for entry in device.get("op_rates", []):  # some kinds of operators reach more in float32 than the plain rate
        if "memory_bandwidth" not in entry:  # otherwise arithmetic does not bound it
            rates["f32"] = max(rates["f32"], entry["peak_flops"])
    return rates, device["memory_bandwidth"]


def measure_machine(threads):
    return rates_of(json.loads(output_of(["npu-profile", "-q", "--machine", "--threads", str(threads)])))


def better(first, second):
    return {name: max(first[0][name], second[0][name]) for name in first[0]}, max(first[1], second[1])


def measure_loop(threads):
    """FLOP/s of a loop of multiply-adds by precision: that of the highest level that has the dtype."""
    output_of(["cmake", "--build", os.path.join(ROOT, "build"), "--target", "peak_rates"])
    found = json.loads(output_of([os.path.join(ROOT, "build", "bin", "peak_rates"), str(threads)]))
    rates = {name: max([rate for kind, rate in found.items() if kind.endswith(" " + dtype)], default=0.0)
             for name, dtype in DTYPES.items()}
    return {name: rate or rates["f32"] for name, rate in rates.items()}


def is_product(op_type):
    family = ".".join(op_type.split(".")[:2])
    return family in PRODUCTS or family.startswith("aten.conv")


def product_flops(document):
    """FLOPs of the nodes that is_product holds for, by the definition."""
    plan = json.loads(output_of(["sh", "-c", 'npu-tag -q "$0" | npu-partition -q', document]))
    rows = plan["npu"]["partition"]["operators"]
    return sum(row["flops"] for row in rows if is_product(row["op_type"]))


def product_ms(trace):
    """Milliseconds of the kernels that begin with such a node, in one run."""
    with open(trace, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    return sum(each["dur"] for each in events if each.get("cat") == "node" and is_product(each["args"]["op_type"])) / 1e3


def measure_model(folder, name, precision, options, scratch):
    """Milliseconds, FLOPs and bytes of one model, and FLOP/s of its products."""
    bundle = os.path.join(scratch, name + ".npub")
    threads = str(options.threads)
    output_of(["npu-compile", "-q", "--no-cache", "--precision", precision, "--threads", threads,
               os.path.join(folder, name + ".json"), "-o", bundle])
    info = json.loads(output_of(["npu-compile", "--info", bundle]))
    flops = sum(partition.get("report", {}).get("flops", 0.0) for partition in info["partitions"])
    trace = os.path.join(scratch, name + ".trace")
    document = os.path.join(folder, name + ".json")
    medians, products = [], []
    for _ in range(options.rounds):
        report = json.loads(output_of(["npu-run", "-q", bundle, "--threads", threads, "--bench", str(options.runs),
                                       "--trace", trace,
                                       "--inputs", os.path.join(folder, name + ".inputs.safetensors")]))
        products.append(product_ms(trace))
        medians.append(report["bench"]["median_ms"])
    os.remove(bundle)
    moved = sum(each["weights_bytes"] + each["boundary_bytes"] for each in report["memory"])
    product_rate = product_flops(document) / statistics.median(products) * 1e3 if min(products) > 0 else 0.0
    return statistics.median(medians), flops, moved, product_rate


def print_table(rows, rates, bandwidth, loop):
    print(f"{'model':<26} {'prec':<5} {'ms':>8} {'GFLOP':>8} {'GFLOP/s':>8} {'of peak':>8} {'MB':>8} {'GB/s':>7} "
          f"{'of bandw.':>9} {'distance':>8} {'products':>8} {'of loop':>7}")
    distances = {}
    for name, precision, ms, flops, moved, products in rows:
        computing, moving = flops / rates[precision] * 1e3, moved / bandwidth * 1e3
        distance = ms / max(computing, moving)
        distances.setdefault(precision, []).append(distance)
        print(f"{name:<26} {precision:<5} {ms:8.2f} {flops / 1e9:8.2f} {flops / ms / 1e6:8.1f} {computing / ms:8.2f} "
              f"{moved / 1e6:8.1f} {moved / ms / 1e6:7.1f} {moving / ms:9.2f} {distance:8.2f} "
              f"{products / 1e9:8.1f} {products / loop[precision]:7.2f}")
    for precision, values in distances.items():
        mean = math.exp(sum(map(math.log, values)) / len(values))
        print(f"geometric mean, {precision}: distance {mean:.2f}, worst {max(values):.2f}")


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("-d", "--folder", default=CACHE)
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--precisions", default="f32", help="f32, bf16 or both, with a blank between")
    parser.add_argument("-n", "--runs", type=int, default=20)
    parser.add_argument("-r", "--rounds", type=int, default=3)
    parser.add_argument("-m", "--machine", metavar="FILE")
    options = parser.parse_args(argv)
    os.environ["PATH"] = os.path.join(ROOT, "build", "bin") + os.pathsep + os.environ["PATH"]
    precisions = options.precisions.split()
    if not precisions or any(each not in DTYPES for each in precisions):
        parser.error(f"--precisions: expected {' or '.join(DTYPES)}, found '{options.precisions}'")
    names = options.models or sorted(
        os.path.basename(path)[: -len(".inputs.safetensors")]
        for path in glob.glob(os.path.join(glob.escape(options.folder), "*.inputs.safetensors")))
    if not names:
        parser.error(f"{options.folder} has no models; scripts/bench/vs_peers.sh -i fills it")
    if options.machine:
        with open(options.machine, encoding="utf-8") as file:
            machine = rates_of(json.load(file))
    else:
        machine = measure_machine(options.threads)
    loop = measure_loop(options.threads)
    rows, failed = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            for precision in precisions:
                try:
                    measured = measure_model(options.folder, name, precision, options, scratch)
                except RuntimeError as error:
                    print(f"{name:<26} {precision:<5} {error}", file=sys.stderr)
                    failed += 1
                    continue
                rows.append((name, precision, *measured))
    if not options.machine:
        machine = better(machine, measure_machine(options.threads))
    rates, bandwidth = machine
    peaks = ", ".join(f"{each} {rates[each] / 1e9:.0f} GFLOP/s" for each in precisions)
    print(f"{options.threads} thread(s); measured peak: {peaks}; memory {bandwidth / 1e9:.1f} GB/s")
    loops = ", ".join(f"{each} {loop[each] / 1e9:.0f} GFLOP/s" for each in precisions)
    print(f"loop of multiply-adds: {loops}")
    print_table(rows, rates, bandwidth, loop)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
