#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs quantized models here and in ONNX Runtime from the same file, and compares times and integers.

Input:  MODEL.json, MODEL.inputs.safetensors and the weights in DIR, as `vs_peers.sh -i` exports them.
Steps:  npu-profile --calibrate on the model's inputs, npu-align --quantize int8 --onnx-qdq. The file
        with QuantizeLinear and DequantizeLinear runs in both programs, the model in float32, too.
Output: one line of times for each model, the medians over the rounds; "paired" is the median of the
        ratios within a round, so that a busy machine hits both sides. One line of integers: the model
        cut at every quantized tensor, so that each part reads the same integers on both sides, and the
        share of results that are equal or differ by one step. Last, geometric means.

Integers are those that --target asks for: with host, the default, weights have 7 bits on a CPU without VNNI, in both programs.
Products of tensors with more than two dimensions are MatMul and Add in the file, with biases of int32:
ONNX Runtime 1.30 makes each a QGemm between two Reshapes then, but computes it in float32 if the bias is.

Needs onnxruntime-node (vs_peers.sh -i) and the programs in build/bin or $PATH.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
sys.path.insert(0, os.path.dirname(HERE))
from export import safetensors  # noqa: E402

MODELS = (
    "resnet18 resnet50 mobilenet_v2 inception_v3 efficientnet_b0 densenet121 vit_b_16 bert_base"
)
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "npu-bench")
QUANTIZE = "quantized_decomposed.quantize_per_tensor"


class CommandFailed(Exception):
    pass


def run(*command):
    """What a command prints to stdout."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["exit " + str(result.returncode)]
        raise CommandFailed(f"{command[0]}: {lines[0]}")
    return result.stdout


def run_peer(path, inputs, runs, threads, *expected):
    text = run("node", os.path.join(HERE, "run_onnx.js"), path, inputs, runs, threads, *expected)
    return json.loads(text.strip().splitlines()[-1])


class Model:
    """The files of one model."""

    def __init__(self, name, folder, scratch, target):
        self.name = name
        self.target = target
        self.scratch = scratch
        self.document = os.path.join(folder, name + ".json")
        self.inputs = os.path.join(folder, name + ".inputs.safetensors")
        for path in (self.document, self.inputs):
            if not os.path.exists(path):
                raise CommandFailed(f"{path} is missing: vs_peers.sh -i exports it")

    def path(self, suffix):
        return os.path.join(self.scratch, self.name + suffix)

    def prepare(self):
        """The quantized document, and ONNX files of both precisions."""
        ranges = self.path(".ranges.json")
        run("npu-profile", self.document, "--calibrate", self.inputs, "--target", self.target,
            "--error-samples", 0, "-o", ranges)  # fmt: skip
        run("npu-align", "--quantize", "int8", "--target", self.target, "--ranges", ranges, "--onnx-qdq",
            self.path(".qdq.onnx"), self.document, "-o", self.path(".q.json"))  # fmt: skip
        run("npu-align", "--onnx-qdq", self.path(".f32.onnx"), self.document)

    def compile(self, threads):
        options = ("--quiet", "--no-cache", "--threads", threads, "-o")
        run("npu-compile", *options, self.path(".int8.npub"), self.path(".qdq.onnx"))
        run("npu-compile", *options, self.path(".f32.npub"), self.document)

    def time(self, runs, threads, key):
        """The times of one round, in ms."""

        options = ("--inputs", self.inputs, "--threads", threads, "--bench", runs)

        def ours(path):
            text = run("npu-run", "--quiet", *options, path)
            return json.loads(text)["bench"][key]

        def peer(path):
            return run_peer(path, self.inputs, runs, threads)[key]

        return {
            "int8": ours(self.path(".int8.npub")),
            "peer int8": peer(self.path(".qdq.onnx")),
            "f32": ours(self.path(".f32.npub")),
            "peer f32": peer(self.path(".f32.onnx")),
        }

    def compare_integers(self, threads):
        """Of all quantized results, each part fed with the same integers: what run_onnx.js counts."""
        document = self.read_quantized()
        quantized = [node for node in document["nodes"] if is_activation(node)]
        outputs = [
            {**node["outputs"][0], "producer_node": node["name"], "producer_output_idx": 0}
            for node in quantized
        ]
        whole = self.write_document(".whole.json", {**document, "graph_outputs": outputs})
        integers = self.path(".integers.safetensors")
        run("npu-run", "--quiet", "--inputs", self.inputs, "--outputs", integers, whole)
        given = {node["outputs"][0]["name"]: node["outputs"][0]["name"] + ":given" for node in quantized}
        cut = cut_document(document, given, outputs)
        cut_inputs = self.path(".cut.inputs.safetensors")
        join_tensors(cut_inputs, cut["graph_inputs"], [self.inputs, integers], given)
        cut_path = self.write_document(".cut.json", cut)
        onnx = self.path(".cut.onnx")
        run("npu-align", "--onnx-qdq", onnx, cut_path)
        results = self.path(".cut.outputs.safetensors")
        run("npu-run", "--quiet", "--inputs", cut_inputs, "--outputs", results, "--threads", threads, onnx)
        return run_peer(onnx, cut_inputs, 1, threads, results)

    def read_quantized(self):
        with open(self.path(".q.json"), encoding="utf-8") as file:
            document = json.load(file)
        # The scratch folder is no place to look for weights from.
        weights = document["npu"].get("weights_file")
        if weights:
            document["npu"]["weights_file"] = os.path.join(self.scratch, weights)
        return document

    def write_document(self, suffix, document):
        path = self.path(suffix)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)
        return path


def is_activation(node):
    """Whether a node quantizes what is no weight."""
    return node["op_type"].startswith(QUANTIZE) and "producer_node" in node["inputs"][0]


def cut_document(document, given, outputs):
    """The document with an input in place of each quantized tensor that something reads."""
    nodes = []
    used = {}
    for node in document["nodes"]:
        inputs = []
        for operand in node["inputs"]:
            name = operand["name"]
            if name in given:
                operand = {**operand, "name": given[name], "producer_node": given[name]}
                operand["producer_output_idx"] = 0
                used[given[name]] = {key: operand[key] for key in ("name", "shape", "dtype")}
            inputs.append(operand)
        nodes.append({**node, "inputs": inputs})
    return {
        **document,
        "graph_inputs": document["graph_inputs"] + list(used.values()),
        "graph_outputs": outputs,
        "nodes": nodes,
    }


def join_tensors(path, wanted, paths, renamed):
    """Writes the tensors of `wanted`, in that order, from several files."""
    found = {}
    for each in paths:
        for name, kind, shape, data in safetensors.read(each):
            found[renamed.get(name, name)] = (kind, shape, len(data), lambda data=data: data)
    with open(path, "wb") as file:
        safetensors.write(file, [(tensor["name"], *found[tensor["name"]]) for tensor in wanted])


def print_times(model, rounds):
    medians = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
    paired = {
        key: statistics.median(each["int8"] / each[key] for each in rounds)
        for key in ("peer int8", "peer f32", "f32")
    }
    times = "  ".join(f"{key} {value:.2f} ms" for key, value in medians.items())
    ratios = "  ".join(f"/ {key} {value:.2f}" for key, value in paired.items())
    print(f"{model.name}: {times}; paired {ratios}", flush=True)
    return paired


def print_integers(model, counts):
    print(
        f"{model.name}: {100 * counts['within_step']:.4f} % within a step, {100 * counts['equal']:.4f} % equal, "
        f"of {counts['integers']} integers; least {100 * counts['least_within_step']:.2f} % ({counts['least_name']})",
        flush=True,
    )


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS.split(), metavar="MODEL")
    parser.add_argument("-d", default=os.path.join(CACHE, "zoo"), metavar="DIR", help="exports")
    parser.add_argument("-t", type=int, default=2, metavar="THREADS")
    parser.add_argument("-n", type=int, default=20, metavar="RUNS", help="timed runs in a round")
    parser.add_argument("-r", type=int, default=5, metavar="ROUNDS", help="0: no times")
    parser.add_argument(
        "--least", action="store_true", help="a round's least time, not its median: on busy machines"
    )
    parser.add_argument("--target", default="host", metavar="NAME|FILE", help="whose integers to take [host]")
    parser.add_argument("--no-integers", action="store_true", help="times alone")
    options = parser.parse_args(argv)
    build = os.path.join(HERE, "..", "..", "build", "bin")
    os.environ["PATH"] = build + os.pathsep + os.environ["PATH"]
    os.environ.setdefault("NODE_PATH", os.path.join(CACHE, "ort", "node_modules"))
    key = "min_ms" if options.least else "median_ms"
    ratios, status = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for name in options.models:
            try:
                model = Model(name, options.d, scratch, options.target)
                model.prepare()
                if options.r > 0:
                    model.compile(options.t)
                    rounds = [model.time(options.n, options.t, key) for _ in range(options.r)]
                    ratios.append(print_times(model, rounds))
                if not options.no_integers:
                    print_integers(model, model.compare_integers(options.t))
            except CommandFailed as error:
                print(f"int8_vs_peer.py: {name}: {error}", file=sys.stderr)
                status = 1
    for key in ratios[0] if ratios else ():
        mean = math.exp(statistics.mean(math.log(each[key]) for each in ratios))
        print(f"geometric mean / {key}: {mean:.3f}")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
