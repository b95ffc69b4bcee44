#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend opencl beside PyTorch on the same GPU: ResNet-50 and one layer of GraphSAGE on a graph of the size of Flickr.

  scripts/bench/opencl_vs_torch.py [--batches 1,16] [--target FILE] [--verify cpu] [--tune FILE] [--runs 50]

A line for each model: the sum of our kernels' times on the device's clock (kernels), a run of npu-run from inputs in the
host's memory to outputs there (run), the same of PyTorch in eager mode, with the work queued back to back and operands on
the device (eager), with TensorFloat-32, which rounds factors to 10 bits (tf32), replayed as a CUDA graph (graph), and from
the host and back (host); medians in ms. Then the floor: what the device needs for the same arithmetic at the rate that
PyTorch's product of two 8192 x 8192 matrices reaches in float32, or for the bytes of operands and results at the rate of a
copy, whichever is longer for each node, and the share of it that our kernels reach. Outputs are compared with PyTorch's
float32, 1e-3 and 1e-4.

Needs torch and torchvision with CUDA, and numpy; without them --no-torch gives our columns, compared with device cpu of the
target. Weights and inputs are random. Exit status 1 if a result differs.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES, EDGES, WIDTH_IN, WIDTH_OUT = 89250, 899756, 500, 256


def run(*command, stdin=None):
    done = subprocess.run([str(each) for each in command], input=stdin, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done


def with_batch(document, batch):
    """The same model with another first extent of every activation."""
    weights = {weight["name"] for weight in document["weights"]}
    mapped = set(document.get("weight_name_mapping", {}))
    for tensor in [*document["graph_inputs"], *document["graph_outputs"]] + [
        tensor for node in document["nodes"] for tensor in node["inputs"] + node["outputs"]
    ]:
        is_weight = tensor["name"] in weights or tensor["name"] in mapped
        if not is_weight and tensor["shape"] and tensor["shape"][0] == 1:
            tensor["shape"][0] = batch
    return document


def graph_layer():
    """relu(mean of neighbours * W1 + x * W2), as npu-plan has a layer of GraphSAGE."""

    def tensor(name, shape, dtype="float32", producer=True):
        found = {"name": name, "shape": shape, "dtype": dtype}
        return found | ({"producer_node": name} if producer else {})

    x = tensor("x", [NODES, WIDTH_IN], producer=False)
    offsets, sources = tensor("offsets", [NODES + 1], "int64", False), tensor("sources", [EDGES], "int64", False)
    w1, w2 = (tensor(name, [WIDTH_OUT, WIDTH_IN], producer=False) for name in ("w1", "w2"))
    mean, a, b = tensor("mean", x["shape"]), tensor("a", [NODES, WIDTH_OUT]), tensor("b", [NODES, WIDTH_OUT])
    total, y = tensor("sum", a["shape"]), tensor("y", a["shape"])

    def node(op_type, inputs, output, **attrs):
        plain = {key: output[key] for key in ("name", "shape", "dtype")}
        return {"name": output["name"], "op_type": op_type, "inputs": inputs, "outputs": [plain], "attrs": attrs}

    return {
        "model_name": "graphsage",
        "graph_inputs": [x, offsets, sources],
        "graph_outputs": [y],
        "weights": [w1, w2],
        "nodes": [
            node("npu.segment_reduce", [x, offsets, sources], mean, reduce="mean"),
            node("aten.linear.default", [mean, w1], a),
            node("aten.linear.default", [x, w2], b),
            node("aten.add.Tensor", [a, b], total),
            node("aten.relu.default", [total], y),
        ],
    }


def random_edges():
    """As many edges for a node as a power law gives it; sources at random."""
    random = numpy.random.default_rng(0)
    shares = random.pareto(1.5, NODES) + 0.1
    counts = random.multinomial(EDGES, shares / shares.sum())
    offsets = numpy.concatenate([[0], numpy.cumsum(counts)]).astype(numpy.int64)
    sources = random.integers(0, NODES, EDGES, dtype=numpy.int64)
    return offsets, sources


def macs_of(node):
    out = node["outputs"][0]["shape"]
    if "conv" in node["op_type"]:
        return math.prod(out) * math.prod(node["inputs"][1]["shape"][1:])
    if "linear" in node["op_type"]:
        return math.prod(out) * node["inputs"][1]["shape"][-1]
    return 0


def floor_ms(document, flops, bandwidth):
    """Of the nodes with products or sums over edges; what is element-wise can be part of their kernels."""
    total = 0.0
    for node in document["nodes"]:
        if not macs_of(node) and node["op_type"] != "npu.segment_reduce":
            continue
        size = {"float32": 4, "int64": 8}
        count = sum(math.prod(t["shape"]) * size[t["dtype"]] for t in node["inputs"] + node["outputs"])
        total += max(2 * macs_of(node) / flops, count / bandwidth)
    return total * 1e3


def save_tensors(path, tensors):
    """Arrays of float32 and int64, in the form of safetensors."""
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": {"float32": "F32", "int64": "I64"}[str(array.dtype)], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(numpy.ascontiguousarray(array).tobytes())


def ours(name, document, folder, options, tensors, inputs, expected=None):
    """`expected`: PyTorch's result of the same weights and inputs."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(document))
    plan = run("npu-partition", "-q", stdin=run("npu-fuse", "-q", stdin=run("npu-tag", "-q", "--target", options.target, path).stdout).stdout)
    (folder / f"{name}.plan.json").write_text(plan.stdout)
    tune = ["--tune", options.tune] if options.tune else []
    bundle, weights, outputs = (folder / f"{name}.{end}" for end in ("npub", "safetensors", "y.npy"))
    save_tensors(weights, tensors)
    compiled = run("npu-compile", "-q", *tune, "--weights", weights, folder / f"{name}.plan.json", "-o", bundle)
    if compiled.returncode:
        sys.exit(compiled.stderr[-2000:])
    values = [text for key, array in inputs.items() for text in ("--inputs", f"{key}={folder / name}.{key}.npy")]
    for key, array in inputs.items():
        numpy.save(f"{folder / name}.{key}.npy", array)
    verify = [] if expected is not None else ["--verify", "cpu"]
    is_equal = run("npu-run", "-q", bundle, *values, *verify, "--outputs", outputs).returncode == 0
    if expected is not None:
        is_equal = numpy.allclose(numpy.load(outputs), expected, rtol=1e-3, atol=1e-4)
    report = json.loads(run("npu-run", "-q", bundle, *values, "--bench", options.runs).stdout)
    trace = folder / f"{name}.trace.json"
    run("npu-run", "-q", bundle, *values, "--bench", 5, "--trace", trace)
    events = json.loads(trace.read_text())["traceEvents"]
    kernels = {event["name"]: event["dur"] / 1e3 for event in events if event.get("cat") == "node"}
    return {
        "kernels": sum(kernels.values()),
        "run": report["bench"]["median_ms"],
        "ok": is_equal,
        "slowest": sorted(kernels.items(), key=lambda each: -each[1])[: options.slowest],
        "launches": len(kernels),
    }


def timed(torch, function, runs):
    """Median of the time between two events around a call, all calls queued."""
    for _ in range(5):
        function()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    torch.cuda.synchronize()
    for mark in marks[:-1]:
        mark.record()
        function()
    marks[-1].record()
    torch.cuda.synchronize()
    return statistics.median(a.elapsed_time(b) for a, b in zip(marks, marks[1:]))


def timed_from_host(torch, function, inputs, runs):
    import time

    times = []
    for _ in range(runs + 3):
        start = time.perf_counter()
        function(*[each.cuda() for each in inputs]).cpu()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times[3:])


def as_graph(torch, function):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            function()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        function()
    return graph.replay


def exact(torch, is_exact):
    torch.backends.cuda.matmul.allow_tf32 = not is_exact
    torch.backends.cudnn.allow_tf32 = not is_exact


def theirs(torch, function, inputs, runs):
    on_device = [each.cuda() for each in inputs]
    result = {}
    with torch.inference_mode():
        for key, is_exact in (("eager", True), ("tf32", False)):
            exact(torch, is_exact)
            result[key] = timed(torch, lambda: function(*on_device), runs)
        exact(torch, True)
        result["host"] = timed_from_host(torch, function, inputs, min(runs, 20))
        result["graph"] = timed(torch, as_graph(torch, lambda: function(*on_device)), runs)
    return result


def peaks(torch):
    exact(torch, True)
    a, b = torch.rand(8192, 8192, device="cuda"), torch.rand(8192, 8192, device="cuda")
    flops = 2 * 8192**3 / (timed(torch, lambda: a @ b, 5) / 1e3)
    big = torch.rand(1 << 29, device="cuda")
    other = torch.empty_like(big)
    return flops, 2 * 4 * (1 << 29) / (timed(torch, lambda: other.copy_(big), 10) / 1e3)


def sage_of_torch(torch, offsets, sources, tensors):
    w1, w2 = (torch.from_numpy(tensors[name]).cuda() for name in ("w1", "w2"))
    counts = torch.from_numpy(numpy.diff(offsets))
    values = torch.repeat_interleave(1.0 / counts.clamp(min=1), counts).float()
    adjacency = torch.sparse_csr_tensor(torch.from_numpy(offsets), torch.from_numpy(sources), values, (NODES, NODES)).cuda()
    targets = torch.repeat_interleave(torch.arange(NODES), counts).cuda()
    from_rows, inverse = torch.from_numpy(sources).cuda(), (1.0 / counts.clamp(min=1)).float().cuda()[:, None]

    def csr(x):
        return torch.relu((adjacency @ x) @ w1.T + x @ w2.T)

    def index_add(x):
        mean = torch.zeros_like(x).index_add_(0, targets, x[from_rows]) * inverse
        return torch.relu(mean @ w1.T + x @ w2.T)

    return {"CSR": csr, "index_add": index_add}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=lambda text: [int(each) for each in text.split(",")], default=[1, 16])
    parser.add_argument("--target", default="opencl", help="name or file of a target whose gpu is backend opencl")
    parser.add_argument("--tune", type=pathlib.Path, help="measured sizes of kernels, of npu-compile --tune; measured if missing")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--slowest", type=int, default=5, help="kernels to list")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/opencl_vs_torch"))
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--no-graph", action="store_true", help="without the layer of GraphSAGE")
    options = parser.parse_args()
    os.environ["PATH"] = f"{options.build.resolve() / 'bin'}:{os.environ['PATH']}"
    options.folder.mkdir(parents=True, exist_ok=True)
    torch = None
    if not options.no_torch:
        import torch
        import torchvision

        flops, bandwidth = peaks(torch)
        print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}: {flops / 1e12:.1f} TFLOP/s in float32, copies at {bandwidth / 1e12:.2f} TB/s")
    print(f"{'model':16}{'kernels':>9}{'run':>9}{'eager':>9}{'tf32':>9}{'graph':>9}{'host':>9}{'floor':>9}{'share':>7}  result")
    all_ok = True
    source = json.loads((ROOT / "testdata/models/resnet50.json").read_text())

    def report(name, document, mine, others):
        nonlocal all_ok
        all_ok &= mine["ok"]
        line = f"{name:16}{mine['kernels']:9.3f}{mine['run']:9.3f}"
        floor = floor_ms(document, flops, bandwidth) if torch else float("nan")
        for key in ("eager", "tf32", "graph", "host"):
            line += f"{others.get(key, float('nan')):9.3f}"
        print(f"{line}{floor:9.3f}{floor / mine['kernels']:7.0%}  {'equal' if mine['ok'] else 'DIFFERS'}", flush=True)
        for kernel, ms in mine["slowest"]:
            print(f"    {ms:8.3f} ms  {kernel}")

    random = numpy.random.default_rng(0)
    for batch in options.batches:
        document = with_batch(json.loads(json.dumps(source)), batch)
        x = random.random((batch, 3, 224, 224), dtype=numpy.float32)
        others, expected = {}, None
        if torch:
            model = torchvision.models.resnet50(weights=None).eval()
            tensors = {key: value.numpy() for key, value in model.state_dict().items()}
            model, images = model.cuda(), torch.from_numpy(x)
            others = theirs(torch, model, [images], options.runs)
            exact(torch, True)
            with torch.inference_mode():
                expected = model(images.cuda()).cpu().numpy()
        else:
            tensors = {each["name"]: (random.random(each["shape"]) / 8).astype(each["dtype"]) for each in document["weights"]}
        report(f"resnet50 b{batch}", document, ours(f"resnet50-b{batch}", document, options.folder, options, tensors, {"x": x}, expected), others)
    if not options.no_graph:
        offsets, sources = random_edges()
        document = graph_layer()
        tensors = {name: random.random((WIDTH_OUT, WIDTH_IN), dtype=numpy.float32) / 8 for name in ("w1", "w2")}
        inputs = {"x": random.random((NODES, WIDTH_IN), dtype=numpy.float32), "offsets": offsets, "sources": sources}
        forms, expected = {"-": None}, None
        if torch:
            forms, x = sage_of_torch(torch, offsets, sources, tensors), torch.from_numpy(inputs["x"])
            exact(torch, True)
            expected = forms["CSR"](x.cuda()).cpu().numpy()
        mine = ours("graphsage", document, options.folder, options, tensors, inputs, expected)
        for form, function in forms.items():
            others = theirs(torch, function, [x], options.runs) if torch else {}
            report(f"sage {form}", document, mine, others)
            mine = mine | {"slowest": []}
    return 0 if all_ok else 1


if __name__ == "__main__":
    sys.exit(main())
