#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the rates of this machine's backends and writes them into the target `host`.

Usage: scripts/calibrate_host.py [-o host.json] [--threads N] [--rounds N]
Then:  npu-tag --target ./host.json model.json | npu-partition --strategy mincut | npu-run

What is measured, with npu-run on made-up documents, and put in place of the estimates:

peak_flops          a chain of 3x3 convolutions of 64 channels, as in the middle of a ResNet: what one
                    more of them takes
memory_bandwidth    a chain of additions of 3.2 MB tensors, each of the two results before it
node_overhead_us    one more addition of 16 numbers in a partition
launch_overhead_us  partitions with one addition of 16 numbers, many of them in turns on both devices,
                    less the node itself
op_rates            one more node of each of some kinds, in shapes that models have: depthwise and 1x1
                    convolutions, matrix products, attention, pooling, normalisation, activations
links               the transfers between those (latency), and a convolution on one device and an addition
                    on the other in turns, over 3.2 MB tensors, against each alone (bandwidth, which
                    so includes the change of layout)

Times are the least of several rounds, since other load only ever adds. Measure on a machine that does
nothing else. Needs a release build in build/ and nothing but Python's own library.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]


def tool(name, *arguments, stdin=b""):
    command = [ROOT / "build/bin" / name, *arguments]
    try:
        result = subprocess.run(command, input=stdin, capture_output=True, check=False)
    except FileNotFoundError:
        sys.exit(f"calibrate_host: {command[0]} is missing; build first: cmake --preset release && cmake --build build")
    if result.returncode != 0:
        sys.exit(f"calibrate_host: {name} failed:\n{result.stderr.decode()}")
    return result.stdout


class Document:
    """A chain of nodes."""

    def __init__(self, shape):
        self.shape = shape
        self.nodes = []
        self.weights = []
        self.last = "x"

    def mention(self, name, shape=None):
        return {"name": name, "shape": shape or self.shape, "dtype": "float32"}

    def node(self, op_type, operands, attrs=None, device="npu"):
        name = f"n{len(self.nodes)}"
        self.nodes.append({"name": name, "op_type": op_type, "inputs": operands, "outputs": [self.mention(name)],
                           "attrs": attrs or {}, "device": device})
        self.last = name
        return name

    def convolution(self, device):
        channels = self.shape[1]
        weight = f"w{len(self.weights)}"
        shape = [channels, channels, 3, 3]
        self.weights.append(self.mention(weight, shape))
        self.node("aten.conv2d.default", [self.mention(self.last), self.mention(weight, shape)],
                  {"padding": [1, 1]}, device)

    def addition(self, device):
        before = self.nodes[-2]["name"] if len(self.nodes) > 1 else "x"
        self.node("aten.add.Tensor", [self.mention(self.last), self.mention(before)], {}, device)

    def text(self):
        return json.dumps({
            "model_name": "calibration", "graph_inputs": [self.mention("x")],
            "graph_outputs": [self.mention(self.last)], "weights": self.weights, "weight_name_mapping": {},
            "nodes": self.nodes}).encode()


    def general(self, op_type, weights, attrs, device):
        """A node that keeps the shape, with weights of these shapes."""
        operands = [self.mention(self.last)]
        for shape in weights:
            if shape == "self":
                operands.append(self.mention(self.last))
                continue
            name = f"w{len(self.weights)}"
            # Batch norm's last operand is a variance: positive.
            name += "_var" if op_type == "aten.batch_norm.default" and len(operands) == 4 else ""
            self.weights.append(self.mention(name, shape))
            operands.append(self.mention(name, shape))
        self.node(op_type, operands, attrs, device)


IMAGE = [1, 96, 56, 56]
WORDS = [1, 128, 768]
HEADS = [1, 12, 128, 64]
CONVOLUTIONS = ["aten.conv2d.default", "aten.conv2d.padding", "aten.convolution.default"]
NORM = {"training": False, "momentum": 0.1, "eps": 1e-5, "cudnn_enabled": True}
PAIR = [3, 3]
# Types that share a rate, the shape, the operands' shapes, attributes, the FLOPs of a node (None: bytes count
# instead), and whether it is for grouped convolutions only. Consecutive nodes must not be fused into one, so
# activations are measured after an addition, whose time is subtracted.
KINDS = [
    (CONVOLUTIONS, IMAGE, [[96, 1, 3, 3]], {"padding": [1, 1], "groups": 96}, 2 * 9 * 96 * 56 * 56, True),
    (["aten.linear.default", "aten.addmm.default", "aten.mm.default", "aten.matmul.default", "aten.bmm.default"],
     WORDS, [[768, 768], [768]], {}, 2 * 128 * 768 * 768, None),
    (["aten.scaled_dot_product_attention.default"], HEADS, ["self", "self"], {}, 4 * 12 * 128 * 128 * 64, None),
    (["aten.batch_norm.default"], IMAGE, [[96]] * 4, NORM, None, None),
    (["aten.layer_norm.default"], WORDS, [[768], [768]], {"normalized_shape": [768]}, None, None),
    (["aten.max_pool2d.default"], IMAGE, [], {"kernel_size": PAIR, "stride": [1, 1], "padding": [1, 1]}, None, None),
    (["aten.avg_pool2d.default"], IMAGE, [], {"kernel_size": PAIR, "stride": [1, 1], "padding": [1, 1]}, None, None),
    (["aten.relu.default", "aten.relu_.default"], IMAGE, [], {}, None, None),
    (["aten.hardtanh.default", "aten.hardtanh_.default", "aten.relu6.default", "aten.relu6_.default",
      "aten.clamp.default", "aten.clamp_.default"], IMAGE, [], {"min_val": 0, "max_val": 6}, None, None),
    (["aten.gelu.default"], WORDS, [], {}, None, None),
    (["aten.silu.default", "aten.silu_.default", "aten.sigmoid.default", "aten.sigmoid_.default",
      "aten.tanh.default", "aten.tanh_.default"], WORDS, [], {}, None, None),
    (["aten.softmax.int", "aten._softmax.default"], [1, 12, 128, 128], [], {"dim": -1}, None, None),
]


def elements(shape):
    count = 1
    for dimension in shape:
        count *= dimension
    return count


class Bench:
    def __init__(self, options):
        self.options = options

    def report(self, document, bench):
        tagged = tool("npu-tag", "--quiet", "--keep-tags", stdin=document.text())
        plan = tool("npu-partition", "--strategy", "contiguous", stdin=tagged)
        threads = ["--threads", str(self.options.threads)] if self.options.threads else []
        return json.loads(tool("npu-run", "--random-inputs", "0", "--random-weights", "0", "--bench", str(bench),
                               *threads, stdin=plan))

    def milliseconds(self, *documents):
        """The least time of each; they take turns, so that a slow minute of the machine affects all of them."""
        best = [float("inf")] * len(documents)
        for _ in range(self.options.rounds):
            for i, document in enumerate(documents):
                best[i] = min(best[i], self.report(document, 20)["bench"]["min_ms"])
        return best

    def slope(self, make, few, many):
        """Milliseconds that each further node of `make` takes."""
        times = self.milliseconds(make(few), make(many))
        return max((times[1] - times[0]) / (many - few), 1e-6)

    def steps(self, document):
        """By kind and device, the least over all rounds of the median time of the steps."""
        best = {}
        for _ in range(self.options.rounds):
            found = {}
            for step in self.report(document, 40)["steps"]:
                found.setdefault((step["kind"], step["device"]), []).append(step["ms"])
            for key, times in found.items():
                value = statistics.median(times)
                best[key] = min(best.get(key, value), value)
        return best


def kind_rate(bench, kind, device, overhead):
    types, shape, operands, attrs, flops, grouped = kind

    def chain(count, with_kind=True):
        document = Document(shape)
        for _ in range(count):
            document.addition(device)
            if with_kind:
                document.general(types[0], operands, attrs, device)
        return document

    length = 16
    both, alone = bench.milliseconds(chain(length), chain(length, False))
    us = max(1000 * (both - alone) / length - overhead, 0.05 * 1000 * both / length)
    rate = {"types": types}
    if grouped is not None:
        rate["grouped"] = grouped
    if flops:
        rate["peak_flops"] = float(f"{flops / us * 1e6:.3g}")
        print(f"{device}: {types[0]}: {rate['peak_flops'] / 1e9:.1f} GFLOP/s", file=sys.stderr)
    else:
        # This holds only if arithmetic is not the limit.
        rate["memory_bandwidth"] = float(f"{8 * elements(shape) / us * 1e6:.3g}")
        rate["peak_flops"] = 1e15
        print(f"{device}: {types[0]}: {rate['memory_bandwidth'] / 1e9:.1f} GB/s", file=sys.stderr)
    return rate


def in_turns(shape, count):
    document = Document(shape)
    for i in range(count):
        document.addition("npu" if i % 2 == 0 else "cpu")
    return document


def boundary_ms(bench, shape):
    """The time of a tensor of this shape to the other device and back, with the layout conversion that a
    convolution needs: alternating devices minus each device alone."""
    channels = shape[1]

    def alternate(convolutions, additions, length=8):
        document = Document(shape)
        for _ in range(length):
            if convolutions:
                document.general("aten.conv2d.default", [[channels, channels, 1, 1]], {}, "npu")
            if additions:
                document.addition("cpu")
        return document

    both, npu, cpu = bench.milliseconds(alternate(True, True), alternate(True, False), alternate(False, True))
    return max((both - npu - cpu) / 8, 1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", default="-", help="file to write (default: standard output)")
    parser.add_argument("--threads", type=int, default=0, help="threads of the backends (default: all cores)")
    parser.add_argument("--rounds", type=int, default=5, help="how often to start each measurement (default: 5)")
    options = parser.parse_args()
    bench = Bench(options)
    target = json.loads(tool("npu-tag", "--print-target", "--target", "host"))
    small = bench.steps(in_turns([16], 40))
    large_shape = [1, 64, 112, 112]
    large_bytes = 4 * 64 * 112 * 112
    for device in target["devices"]:
        name = device["name"]

        def convolutions(count, where=name):
            document = Document([1, 64, 56, 56])
            for _ in range(count):
                document.convolution(where)
            return document

        def additions(count, where=name):
            document = Document(large_shape)
            for _ in range(count):
                document.addition(where)
            return document

        flops = 2 * 64 * 64 * 9 * 56 * 56
        rate = flops / (1e-3 * bench.slope(convolutions, 2, 10))
        before = device["peak_flops"]["float32"]
        # Other dtypes keep their ratio to float32.
        device["peak_flops"] = {key: float(f"{value * rate / before:.3g}")
                                for key, value in device["peak_flops"].items()}
        device["memory_bandwidth"] = float(f"{3 * large_bytes / (1e-3 * bench.slope(additions, 4, 20)):.3g}")

        def tiny(count, where=name):
            document = Document([16])
            for _ in range(count):
                document.addition(where)
            return document

        overhead = 1000 * bench.slope(tiny, 10, 90)
        device["node_overhead_us"] = round(overhead, 2)
        device["launch_overhead_us"] = round(max(0, 1000 * small["partition", name] - overhead), 2)
        device["op_rates"] = [rate for rate in (kind_rate(bench, kind, name, overhead) for kind in KINDS) if rate]
        print(f"{name}: {rate / 1e9:.1f} GFLOP/s, {device['memory_bandwidth'] / 1e9:.1f} GB/s, "
              f"{device['node_overhead_us']} us a node, {device['launch_overhead_us']} us a partition", file=sys.stderr)
    # Only the round trip can be measured; each direction gets half of it.
    crossing = boundary_ms(bench, large_shape) / 2
    for link in target["links"]:
        latency = small["transfer", link["to"]]
        link["latency_us"] = round(1000 * latency, 2)
        link["bandwidth"] = float(f"{large_bytes / (1e-3 * max(crossing - latency, 1e-4)):.3g}")
        print(f"{link['from']} to {link['to']}: {link['bandwidth'] / 1e9:.1f} GB/s, {link['latency_us']} us a tensor",
              file=sys.stderr)
    target["description"] = "this machine, measured: npu is the compiled oneDNN backend, cpu is libtorch"
    text = json.dumps(target, indent=2) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
    else:
        pathlib.Path(options.output).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
