#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decodes with a model of a given shape here and in ONNX Runtime, in turns, and compares rates.

The weights are random, of a seed, in float32, and the same numbers on both sides: a document with states
(testdata/models/decoders/decoder.py), compiled for steps of several sizes, and an ONNX file in the form of
onnxruntime-genai, whose GroupQueryAttention has past and present of the capacity's size; the peer runs once with both
in one buffer and once with new ones.

Output: a line of medians for each program: tokens per second, the first token of the prompt, load, memory; for this one
also the bytes that a token reads, and their rate as a share of the bandwidth of reading, which read_bandwidth (built
here) measures between the rounds. Then the ratio to the better way of the peer, and whether the ids are equal.

Needs NumPy, onnxruntime-node (vs_peers.sh -i; without it the peer is left out) and the programs in build/bin or $PATH.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
sys.path.insert(0, os.path.join(ROOT, "scripts", "check"))
sys.path.insert(0, os.path.join(ROOT, "testdata", "models", "decoders"))
import decoder  # noqa: E402
import onnx_writer as onnx  # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "npu-bench")
SHAPES = {
    "tiny": decoder.Shape(4, 256, 4, 2, 64, 512, 1024, 2048),
    "smollm2-135m": decoder.Shape(30, 576, 9, 3, 64, 1536, 49152, 8192, 1e5),
    "qwen2.5-0.5b": decoder.Shape(24, 896, 14, 2, 64, 4864, 151936, 8192, 1e6, True),
}


class CommandFailed(Exception):
    pass


def run(*command):
    """What a command prints to stdout."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode != 0:
        lines = result.stderr.strip().splitlines() or ["exit " + str(result.returncode)]
        raise CommandFailed(f"{command[0]}: {lines[0]}")
    return result.stdout


class Onnx:
    """The ONNX file: nodes, and tensors whose data is in a file beside it, since messages end at 2 GiB."""

    def __init__(self, path):
        self.path, self.nodes, self.tensors = path, [], []
        self.data = open(path + ".data", "wb")

    def tensor(self, name, array):
        array = np.ascontiguousarray(array)
        if array.nbytes < 1024:  # shapes are read while the model is checked
            self.tensors.append(onnx.tensor(name, array))
            return name
        self.data.write(bytes(-self.data.tell() % 4096))
        place = {"location": os.path.basename(self.path) + ".data", "offset": self.data.tell(), "length": array.nbytes}
        self.data.write(array.data)
        message = b"".join(onnx.number(1, extent) for extent in array.shape)
        message += onnx.number(2, onnx.TYPES[array.dtype.name]) + onnx.data(8, name)
        for key, value in place.items():
            message += onnx.data(13, onnx.data(1, key) + onnx.data(2, str(value)))
        self.tensors.append(message + onnx.number(14, 1))
        return name

    def node(self, op, inputs, output, domain="", **attributes):
        outputs = output if isinstance(output, list) else [output]
        self.nodes.append(onnx.node(op, inputs, outputs, domain, **attributes))
        return outputs[0]

    def write(self, inputs, outputs):
        self.data.close()
        graph = onnx.graph(self.nodes, inputs, outputs, self.tensors)
        with open(self.path, "wb") as file:
            file.write(onnx.model(graph, 17, ["com.microsoft"]))


def write_onnx(path, s, weights, capacity):
    model = Onnx(path)
    epsilon = float(np.float32(decoder.EPSILON))

    def norm(x, key, out):
        scale = model.tensor(key, weights[key])
        return model.node("SimplifiedLayerNormalization", [x, scale], out, axis=-1, epsilon=epsilon, stash_type=1)

    def linear(x, key, out):
        bias = key.replace(".weight", ".bias")
        y = model.node("MatMul", [x, model.tensor(key, weights[key].T)], out + ("_product" if bias in weights else ""))
        return model.node("Add", [y, model.tensor(bias, weights[bias])], out) if bias in weights else y

    table = model.tensor("embedding.weight", weights["embedding.weight"])
    tables = [model.tensor(f"rotary.{name}", weights[f"rotary.{name}"][:, : s.dim // 2]) for name in ("cos", "sin")]
    x = model.node("Gather", [table, "input_ids"], "embedded", axis=0)
    cache = [1, s.kv_heads, capacity, s.dim]
    inputs = [onnx.value("input_ids", [1, "T"], "int64"), onnx.value("seqlens_k", [1], "int32"),
              onnx.value("total_sequence_length", [], "int32")]  # fmt: skip
    outputs = [onnx.value("logits", [1, s.vocabulary])]
    for i in range(s.layers):
        key = lambda part, i=i: f"layers.{i}.{part}.weight"
        of = lambda part, i=i: f"layer{i}_{part}"
        y = norm(x, key("norm_1"), of("norm_1"))
        q, k, v = (linear(y, key(part), of(part)) for part in "qkv")
        past = [f"past_key_values.{i}.{kind}" for kind in ("key", "value")]
        present = [f"present.{i}.{kind}" for kind in ("key", "value")]
        inputs += [onnx.value(name, cache) for name in past]
        outputs += [onnx.value(name, cache) for name in present]
        y = model.node(
            "GroupQueryAttention", [q, k, v, *past, "seqlens_k", "total_sequence_length", *tables],
            [of("attention"), *present], "com.microsoft", num_heads=s.heads, kv_num_heads=s.kv_heads, do_rotary=1,
            scale=float(np.float32(s.dim**-0.5)),
        )  # fmt: skip
        x = model.node("Add", [x, linear(y, key("o"), of("o"))], of("attended"))
        y = norm(x, key("norm_2"), of("norm_2"))
        gate = linear(y, key("gate"), of("gate"))
        gate = model.node("Mul", [gate, model.node("Sigmoid", [gate], of("sigmoid"))], of("silu"))
        y = model.node("Mul", [gate, linear(y, key("up"), of("up"))], of("gated"))
        x = model.node("Add", [x, linear(y, key("down"), of("down"))], of("out"))
    # The head of the last token alone, as everywhere; the table is not stored twice.
    x = model.node("Gather", [x, model.tensor("last", np.int64(-1).reshape(1))], "last_row", axis=1)
    x = norm(model.node("Reshape", [x, model.tensor("row", np.array([1, s.width]))], "row_of_last"), "norm.weight", "normed")
    model.node("Gemm", [x, table], "logits", transB=1)
    model.write(inputs, outputs)


def summary(name, rounds, extra=""):
    median = {key: statistics.median(each[key] for each in rounds) for key in rounds[0] if key != "ids"}
    print(
        f"{name}: {median['rate']:.2f} tokens/s, first token {median['first_ms']:.1f} ms, load {median['load_ms']:.0f} ms, "
        f"{median['rss'] / 1e6:.0f} MB{extra}",
        flush=True,
    )
    return median


def time_ours(bundle, prompt, options, scratch):
    report = os.path.join(scratch, "report.json")
    ids = run("npu-run", "-q", bundle, "--threads", options.t, "--generate", options.n, "--tokens", prompt,
              "--tokens-out", "-", "-o", report)  # fmt: skip
    with open(report, encoding="utf-8") as file:
        found = json.load(file)["generate"]
    return {"rate": found["decode_tokens_per_second"], "first_ms": found["requests"][0]["first_token_ms"],
            "load_ms": found["load_ms"], "rss": found["peak_rss_bytes"], "copied": found["state_copied_bytes"],
            "bytes": sum(found["bytes_per_token"].values()), "ids": [int(i) for i in ids.split()]}  # fmt: skip


def time_peer(path, prompt, options, mode):
    with open(prompt, encoding="utf-8") as file:
        text = file.read().strip()
    config = path.replace(".onnx", ".config.json")
    found = json.loads(run("node", os.path.join(HERE, "run_llm.js"), path, config, text, options.n, options.t, mode))
    return {"rate": found["tokens_per_second"], "first_ms": found["first_token_ms"], "load_ms": found["create_ms"],
            "rss": found["peak_rss_bytes"], "ids": found["ids"]}  # fmt: skip


def write_files(options, scratch):
    """The bundle, the peer's model and the prompt; the first two stay in --keep."""
    shape = SHAPES[options.shape]
    folder = options.keep or scratch
    os.makedirs(folder, exist_ok=True)
    base = os.path.join(folder, f"{options.shape}-{options.seed}-{options.c}")
    bundle, path = base + ".npub", base + ".onnx"
    if not (os.path.exists(bundle) and os.path.exists(path)):
        random = np.random.default_rng(options.seed)
        weights = decoder.make_weights(
            shape, lambda scale, *sizes: np.float32(scale) * random.standard_normal(sizes, dtype=np.float32)
        )
        write_onnx(path, shape, weights, options.c)
        with open(base + ".config.json", "w", encoding="utf-8") as file:
            json.dump({**shape._asdict(), "capacity": options.c}, file)
        name = os.path.basename(base)
        decoder.write_safetensors(base + ".safetensors", weights)
        decoder.write_document(base + ".json", decoder.make_document(name, shape, weights))
        del weights
        run("npu-compile", "-q", "--no-cache", "--devices", options.devices, "--threads", options.t, base + ".json",
            "--bind", f"C={options.c}", "--buckets", "T=" + options.buckets, "-o", bundle)  # fmt: skip
        os.remove(base + ".safetensors")
    prompt = os.path.join(scratch, "prompt.ids")
    ids = np.random.default_rng(1).integers(0, shape.vocabulary, options.p)
    with open(prompt, "w", encoding="utf-8") as file:
        print(*ids, file=file)
    return bundle, path, prompt


def measure(options, scratch):
    bundle, path, prompt = write_files(options, scratch)
    build = os.path.join(ROOT, "build")
    run("cmake", "--build", build, "--target", "read_bandwidth")
    has_peer = not options.no_peer and shutil.which("node") is not None
    rounds = {"npu-run": [], "peer, one buffer": [], "peer, new buffers": []}
    bandwidths = []
    for _ in range(options.r):
        bandwidths.append(float(run(os.path.join(build, "bin", "read_bandwidth"), options.t)))
        rounds["npu-run"].append(time_ours(bundle, prompt, options, scratch))
        if not has_peer:
            continue
        for name, mode in (("peer, one buffer", "shared"), ("peer, new buffers", "copied")):
            rounds[name].append(time_peer(path, prompt, options, mode))
    bandwidth = statistics.median(bandwidths)
    ours = rounds["npu-run"]
    share = statistics.median(each["rate"] * each["bytes"] / rate for each, rate in zip(ours, bandwidths))
    extra = f", {ours[0]['bytes'] / 1e6:.1f} MB a token, {share:.3f} of {bandwidth / 1e9:.2f} GB/s, {ours[0]['copied']} bytes of states copied"
    summary("npu-run", ours, extra)
    if not has_peer:
        print("the peer is left out")
        return
    for name in ("peer, one buffer", "peer, new buffers"):
        summary(name, rounds[name])
    best = max((name for name in rounds if name != "npu-run"),
               key=lambda name: statistics.median(each["rate"] for each in rounds[name]))  # fmt: skip
    paired = statistics.median(a["rate"] / b["rate"] for a, b in zip(ours, rounds[best]))
    equal = ours[0]["ids"] == rounds[best][0]["ids"]
    print(f"paired: {paired:.2f} x the rate of {best}; ids {'are equal' if equal else 'differ'}")


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("-c", type=int, default=2048, metavar="CAPACITY")
    parser.add_argument("-p", type=int, default=64, metavar="PROMPT", help="ids of the prompt")
    parser.add_argument("-n", type=int, default=64, metavar="IDS", help="new ids")
    parser.add_argument("-t", type=int, default=2, metavar="THREADS")
    parser.add_argument("-r", type=int, default=5, metavar="ROUNDS")
    parser.add_argument("--buckets", default="1,8,32,128,512", metavar="T,...", help="sizes of steps")
    parser.add_argument("--devices", default="npu", metavar="DEVICE,...")
    parser.add_argument("--seed", type=int, default=44)
    parser.add_argument("--keep", metavar="DIR", help="keep the models there, and use those that are there")
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args(argv)
    os.environ["PATH"] = os.path.join(ROOT, "build", "bin") + os.pathsep + os.environ["PATH"]
    os.environ.setdefault("NODE_PATH", os.path.join(CACHE, "ort", "node_modules"))
    try:
        with tempfile.TemporaryDirectory() as scratch:
            measure(options, scratch)
    except CommandFailed as error:
        print(f"llm.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
