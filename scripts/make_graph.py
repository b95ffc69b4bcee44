#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a random graph of given size: R-MAT (Chakrabarti, Zhan, Faloutsos, SDM 2004), whose degrees follow a
power law as those of real graphs do. The same arguments give the same file on every machine.

  scripts/make_graph.py --nodes 89250 --edges 899756 -o flickr.mtx --features 500 --features-file flickr.x.npy
  scripts/make_graph.py --nodes 2400000 --edges 60000000 -o big.safetensors
  scripts/make_graph.py --nodes 1000 --edges 8000 --undirected -o small.graph

The format goes by the name: .mtx, .graph (METIS, undirected only), .safetensors (CSR), anything else is an edge
list. --edges counts directed edges; with --undirected half of them are drawn and each is written both ways.
No edge occurs twice and none is a loop. Needs numpy (Debian: python3-numpy).
"""
import argparse
import sys

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
from export import safetensors  # noqa: E402
from export.errors import UserError  # noqa: E402
from export.interpreter import require  # noqa: E402

try:
    require(["numpy"], "install Debian's python3-numpy, or name an interpreter in $PYTHON")
except UserError as missing:
    sys.exit(f"make_graph.py: {missing}")
import numpy  # noqa: E402


def splitmix64(counter):
    """Sebastiano Vigna's SplitMix64 of each counter: a stream that does not depend on numpy's version."""
    z = counter * numpy.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return z ^ (z >> numpy.uint64(31))


class Stream:
    def __init__(self, seed):
        self.next = int(splitmix64(numpy.array([seed + 1], dtype=numpy.uint64))[0]) >> 1

    def take(self, count):
        counters = numpy.arange(count, dtype=numpy.uint64) + numpy.uint64(self.next)
        self.next = (self.next + count) % (1 << 63)
        return splitmix64(counters)


def draw_edges(stream, count, levels, a, b, c):
    """`count` cells of the 2^levels square; each level selects one of its four quadrants."""
    source = numpy.zeros(count, dtype=numpy.int64)
    target = numpy.zeros(count, dtype=numpy.int64)
    limit = float(1 << 16)
    bounds = [numpy.uint64(round(x * limit)) for x in (a, a + b, a + b + c)]
    word = None
    for level in range(levels):
        if level % 4 == 0:
            word = stream.take(count)  # 64 bits serve four levels
        piece = (word >> numpy.uint64(16 * (level % 4))) & numpy.uint64(0xFFFF)
        down = piece >= bounds[1]
        right = ((piece >= bounds[0]) & ~down) | (piece >= bounds[2])
        source = source * 2 + down
        target = target * 2 + right
    return source, target


def rmat(args):
    stream = Stream(args.seed)
    levels = max(1, (args.nodes - 1).bit_length())
    wanted = args.edges // 2 if args.undirected else args.edges
    most = args.nodes * (args.nodes - 1) // (2 if args.undirected else 1)
    if wanted > most // 2:
        sys.exit(f"make_graph.py: {args.edges} edges are too many for {args.nodes} nodes")
    keys = numpy.zeros(0, dtype=numpy.int64)
    while len(keys) < wanted:
        missing = wanted - len(keys)
        source, target = draw_edges(stream, int(missing * 1.25) + 64, levels, args.a, args.b, args.c)
        keep = (source < args.nodes) & (target < args.nodes) & (source != target)
        source, target = source[keep], target[keep]
        if args.undirected:
            source, target = numpy.minimum(source, target), numpy.maximum(source, target)
        fresh = source * args.nodes + target
        _, first = numpy.unique(fresh, return_index=True)
        fresh = fresh[numpy.sort(first)]
        if len(keys):
            position = numpy.minimum(numpy.searchsorted(keys, fresh), len(keys) - 1)
            fresh = fresh[keys[position] != fresh]
        keys = numpy.sort(numpy.concatenate([keys, fresh[:missing]]))
    source, target = keys // args.nodes, keys % args.nodes
    # R-MAT's hubs have small ids; shuffling removes that.
    order = numpy.argsort(stream.take(args.nodes), kind="stable")
    source, target = order[source], order[target]
    if args.undirected:
        source, target = numpy.concatenate([source, target]), numpy.concatenate([target, source])
    sequence = numpy.argsort(source * args.nodes + target, kind="stable")
    return source[sequence], target[sequence]


def write_safetensors(path, tensors):
    names = {"float32": "F32", "int64": "I64", "int32": "I32"}
    with open(path, "wb") as file:
        safetensors.write(file, [(name, names[str(array.dtype)], array.shape, array.nbytes,
                                  numpy.ascontiguousarray(array).tobytes) for name, array in tensors])


def write_lines(file, columns, base):
    for begin in range(0, len(columns[0]), 1 << 20):
        parts = [(column[begin:begin + (1 << 20)] + base).tolist() for column in columns]
        file.write("".join("%d %d\n" % pair for pair in zip(*parts)))


def write_graph(path, nodes, source, target, undirected):
    if path.endswith(".safetensors"):
        offsets = numpy.zeros(nodes + 1, dtype=numpy.int64)
        offsets[1:] = numpy.cumsum(numpy.bincount(source, minlength=nodes))
        write_safetensors(path, [("indptr", offsets), ("indices", target.astype(numpy.int32))])
        return
    with open(path, "w", encoding="ascii") as file:
        if path.endswith(".graph"):
            if not undirected:
                sys.exit("make_graph.py: a METIS .graph file is undirected; add --undirected")
            bounds = numpy.searchsorted(source, numpy.arange(nodes + 1))
            file.write(f"{nodes} {len(source) // 2}\n")
            for v in range(nodes):
                file.write(" ".join(map(str, (target[bounds[v]:bounds[v + 1]] + 1).tolist())) + "\n")
        elif path.endswith(".mtx"):
            if undirected:
                lower = source > target
                source, target = source[lower], target[lower]
            kind = "symmetric" if undirected else "general"
            file.write(f"%%MatrixMarket matrix coordinate pattern {kind}\n{nodes} {nodes} {len(source)}\n")
            write_lines(file, (source, target), 1)
        else:
            file.write(f"# nodes 0..{nodes - 1}, one edge 'source target' a line\n")
            write_lines(file, (source, target), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--edges", type=int, required=True, help="directed edges")
    parser.add_argument("--undirected", action="store_true", help="every edge both ways")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--a", type=float, default=0.57, help="weight of the upper left quarter [0.57]")
    parser.add_argument("--b", type=float, default=0.19, help="upper right [0.19]")
    parser.add_argument("--c", type=float, default=0.19, help="lower left [0.19]")
    parser.add_argument("-o", "--output", required=True, help="graph file")
    parser.add_argument("--features", type=int, default=0, help="features per node")
    parser.add_argument("--features-file", help="where the features go: .npy or .safetensors")
    args = parser.parse_args()
    if args.nodes < 2 or args.edges < 0 or min(args.a, args.b, args.c) <= 0 or args.a + args.b + args.c >= 1:
        parser.error("expected at least 2 nodes, and positive a, b, c with a sum below 1")
    if args.undirected and args.edges % 2:
        parser.error("--undirected needs an even number of directed edges")
    if (args.features > 0) != bool(args.features_file):
        parser.error("--features and --features-file go together")
    source, target = rmat(args)
    write_graph(args.output, args.nodes, source, target, args.undirected)
    if args.features:
        bits = Stream(args.seed ^ 0x5EED).take(args.nodes * args.features)
        values = (bits >> numpy.uint64(40)).astype(numpy.float32) / numpy.float32(1 << 23) - numpy.float32(1)
        values = values.reshape(args.nodes, args.features)
        if args.features_file.endswith(".npy"):
            numpy.save(args.features_file, values)
        else:
            write_safetensors(args.features_file, [("x", values)])


if __name__ == "__main__":
    main()
