#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small models and compares their accuracy in float32 with that in int8, on data that was held out.

Usage: scripts/bench/int8_accuracy.py [-d FOLDER] [--seeds N] [--models LIST] [--data FOLDER] [--target NAME] [--install]

A CNN, a CNN of depthwise convolutions, a transformer, the same with its attention in one operator, and an MLP learn scikit-learn's digits, one half for training and calibration and one for
the test; GraphSAGE and GCN learn Cora and Citeseer from the files in --data (NAME.mtx, NAME_features.mtx, NAME_labels.txt, NAME_test.txt) and are
left out without it. Two cases are made hard without changing what they compute: a depthwise CNN whose channels have ranges from 1 to 300, and a
transformer with channels that are 100 times as large as the others. Each is exported, calibrated, quantized twice and run on the device npu: with
plain min-max ranges (--no-smooth --no-bias-correction), and as npu-align does it by default. Integers are those that --target asks for: with host,
the default, weights have 7 bits on a CPU without VNNI.

Exit status 1 unless int8 keeps 99 % of float32's accuracy for every model, as a mean over the seeds, and plain min-max stays below 90 % in the hard
cases, without which they would show nothing.

Needs python3-torch and, for the digits, python3-sklearn of Debian: apt-get install -y python3-sklearn, which --install does if it is missing. Run it
with the interpreter that they belong to, /usr/bin/python3. The programs are those in build/bin.
"""
import argparse
import importlib.util
import copy
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "bench")]
BIN = ROOT / "build" / "bin"
DIGITS = ("cnn", "depthwise", "transformer", "attention", "mlp")
HARD = {"depthwise 1:300": "depthwise", "transformer x100": "transformer"}
BAR, HARD_BAR = 0.99, 0.90


def run(*command, **environment):
    result = subprocess.run([str(part) for part in command], capture_output=True, check=False, env={**os.environ, **environment})
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {result.stderr.decode().strip()}")


def require_sklearn(install):
    if importlib.util.find_spec("sklearn") is None:
        if not install:
            return "scikit-learn is missing: give --install, or run apt-get install -y python3-sklearn"
        run("apt-get", "install", "-y", "--no-install-recommends", "python3-sklearn")
    return None


def digits(seed):
    """Images and labels for training, then for the test; both halves have as many."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
    labels = torch.tensor(data.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    half = len(labels) // 2
    first, second = order[:half], order[half:2 * half]
    return images[first], labels[first], images[second], labels[second]


def train_digits(name, seed):
    images, labels, test_images, test_labels = digits(seed)
    torch.manual_seed(seed)
    model = int8_models.make(name)
    epochs = 60 if name in ("transformer", "attention") else 30
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(images[batch]), labels[batch]).backward()
            optimizer.step()
        schedule.step()
    model.eval()
    return model, None, images, test_images, test_labels, torch.arange(len(test_labels))


def matrix(path):
    """Size and entries of a Matrix Market file, counted from 0; both halves of a symmetric one."""
    with open(path, encoding="ascii") as file:
        symmetric = "symmetric" in file.readline()
        lines = [line.split() for line in file if not line.startswith("%")]
    entries = torch.tensor([[int(line[0]) - 1, int(line[1]) - 1] for line in lines[1:]]).T
    values = torch.tensor([float(line[2]) if len(line) > 2 else 1.0 for line in lines[1:]])
    if symmetric:
        entries, values = torch.cat([entries, entries.flip(0)], dim=1), values.repeat(2)
    dense = torch.zeros(int(lines[0][0]), int(lines[0][1]))
    dense[entries[0], entries[1]] = values
    return dense


def numbers(path):
    with open(path, encoding="ascii") as file:
        return torch.tensor([int(line) for line in file if not line.startswith("#")])


def train_graph(name, seed, folder):
    kind, graph = name.split("-")
    features = matrix(folder / f"{graph}_features.mtx")
    adjacency = matrix(folder / f"{graph}.mtx").clamp(max=1)
    labels, test = numbers(folder / f"{graph}_labels.txt"), numbers(folder / f"{graph}_test.txt")
    features = features / features.sum(dim=1, keepdim=True).clamp(min=1)
    if kind == "gcn":
        adjacency = adjacency + torch.eye(len(adjacency))
        root = adjacency.sum(dim=1).rsqrt()
        adjacency = root[:, None] * adjacency * root[None, :]
    else:
        adjacency = adjacency / adjacency.sum(dim=1, keepdim=True).clamp(min=1)
    torch.manual_seed(seed)
    sizes = (len(features), features.shape[1], int(labels.max()) + 1)
    model = int8_models.make(name, sizes)
    model.graph.copy_(adjacency)
    known = torch.arange(140 if graph == "cora" else 120)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    model.train()
    for _ in range(100):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(features)[known], labels[known]).backward()
        optimizer.step()
    model.eval()
    return model, sizes, features, features, labels[test], test


def spread(channels, most, seed):
    """Factors from 1 to `most`, in any order."""
    factors = torch.logspace(0, math.log10(most), channels)
    return factors[torch.randperm(channels, generator=torch.Generator().manual_seed(seed))]


def scale_norm(norm, factors):
    norm.weight.mul_(factors)
    norm.bias.mul_(factors)


def make_hard(name, model, seed):
    """Moves factors from weights into the channels in front of them, which changes no result in exact arithmetic."""
    model = copy.deepcopy(model)
    if name == "depthwise 1:300":
        layers = list(model)
        for i, layer in enumerate(layers):
            if not isinstance(layer, torch.nn.Conv2d) or i == 0:
                continue
            factors = spread(layers[i - 2].num_features, 300, seed + i)
            scale_norm(layers[i - 2], factors)
            shape = (-1, 1, 1, 1) if layer.groups > 1 else (1, -1, 1, 1)
            layer.weight.div_(factors.reshape(shape))
        return model
    for block in model.blocks:
        for norm, linear in ((block.norm1, block.qkv), (block.norm2, block.up)):
            factors = torch.ones(norm.weight.numel())
            factors[torch.randperm(len(factors), generator=torch.Generator().manual_seed(seed))[:4]] = 100
            scale_norm(norm, factors)
            linear.weight.div_(factors)
    return model


def write_tensor(path, name, tensor):
    from export.torch_tensors import write_safetensors

    with open(path, "wb") as file:
        write_safetensors(file, {name: tensor})


def accuracy(scores, labels, rows):
    return (scores[rows].argmax(dim=1) == labels).float().mean().item()


def int8_scores(folder, target, options, test):
    run(BIN / "npu-align", "--quantize", "int8", "--target", target, "--ranges", folder / "ranges.json", *options, folder / "model.json", "-o", folder / "q.json")
    run(BIN / "npu-run", "-q", folder / "q.json", "--devices", "npu", "--no-cache", "--inputs", test, "--outputs", folder / "scores.npy")
    return torch.from_numpy(numpy.load(folder / "scores.npy"))


def measure(folder, target, name, model, sizes, calibration, test, labels, rows):
    """Accuracy in float32, in plain int8 and in ours."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save({"name": name, "sizes": sizes, "state": model.state_dict(), "example": calibration}, folder / "model.pt")
    run(sys.executable, ROOT / "scripts" / "export_torch.py", f"{ROOT / 'scripts' / 'bench' / 'int8_models.py'}:exported", "--trained",
        "-o", folder, "--name", "model", INT8_MODEL=str(folder / "model.pt"))
    name = json.loads((folder / "model.json").read_text())["graph_inputs"][0]["name"]
    write_tensor(folder / "samples.safetensors", name, calibration)
    write_tensor(folder / "test.safetensors", name, test)
    run(BIN / "npu-profile", "-q", folder / "model.json", "--calibrate", folder / "samples.safetensors", "--error-samples", "0",
        "-o", folder / "ranges.json")
    exact = accuracy(model(test), labels, rows)
    plain = accuracy(int8_scores(folder, target, ["--no-smooth", "--no-bias-correction"], folder / "test.safetensors"), labels, rows)
    ours = accuracy(int8_scores(folder, target, [], folder / "test.safetensors"), labels, rows)
    return exact, plain, ours


def cases(options):
    """Names of what is measured, with the model that is trained for it."""
    trained = list(DIGITS)
    reason = require_sklearn(options.install)
    if reason:
        print(f"digits are left out: {reason}")
        trained = []
    if options.data is None:
        print("GraphSAGE and GCN are left out: no --data FOLDER")
    for graph in ("cora", "citeseer") if options.data else ():
        missing = [f for f in (f"{graph}.mtx", f"{graph}_features.mtx", f"{graph}_labels.txt", f"{graph}_test.txt") if not (options.data / f).exists()]
        if missing:
            print(f"{graph} is left out: {options.data} has no {missing[0]}")
        else:
            trained += [f"sage-{graph}", f"gcn-{graph}"]
    return [name for name in trained if not options.models or name in options.models]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-d", "--folder", type=pathlib.Path, default=pathlib.Path("/tmp/int8_accuracy"), help="where files go (%(default)s)")
    parser.add_argument("--seeds", type=int, default=5, help="how many times each model is trained (%(default)s)")
    parser.add_argument("--models", type=lambda text: text.split(","), help="only these, of cnn,depthwise,transformer,attention,mlp,sage-cora,...")
    parser.add_argument("--data", type=pathlib.Path, help="folder with the graphs")
    parser.add_argument("--target", default="host", help="whose integers to take (%(default)s)")
    parser.add_argument("--install", action="store_true", help="install python3-sklearn with apt-get if it is missing")
    options = parser.parse_args()
    start, rows, failed = time.time(), {}, []
    print(f"{'model':18} {'seed':>4} {'float32':>8} {'min-max':>8} {'ours':>8} {'share':>8}")
    for name in cases(options):
        for seed in range(options.seeds):
            model, *data = train_digits(name, seed) if name in DIGITS else train_graph(name, seed, options.data)
            with torch.no_grad():
                for case in [name] + [hard for hard, base in HARD.items() if base == name]:
                    tested = make_hard(case, model, seed) if case in HARD else model
                    exact, plain, ours = measure(options.folder / case.replace(" ", "-").replace(":", "-"), options.target, name, tested, *data)
                    rows.setdefault(case, []).append((plain / exact, ours / exact))
                    print(f"{case:18} {seed:4} {exact:8.4f} {plain:8.4f} {ours:8.4f} {100 * ours / exact:7.2f}%", flush=True)
    print(f"\n{'of float32':18} {'min-max':>8} {'ours':>8} {'worst':>8}")
    for case, shares in rows.items():
        plain, ours = (statistics.mean(share) for share in zip(*shares))
        print(f"{case:18} {100 * plain:7.2f}% {100 * ours:7.2f}% {100 * min(share for _, share in shares):7.2f}%")
        if ours < BAR:
            failed.append(f"{case}: int8 keeps less than {BAR:.0%}")
        if case in HARD and plain >= HARD_BAR:
            failed.append(f"{case}: plain min-max keeps {HARD_BAR:.0%} or more, so the case is not hard")
    print(f"{time.time() - start:.0f} s")
    for line in failed:
        print(line)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        import numpy
        import torch
    except ImportError:
        sys.exit("needs PyTorch and numpy: python3-torch of Debian, with /usr/bin/python3")
    import math

    import int8_models

    torch.set_num_threads(1)  # the models are small
    sys.exit(main())
