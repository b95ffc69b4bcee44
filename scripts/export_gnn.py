#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a graph neural network as a staged document (npu-ir(5), kind "staged") with random weights.

  scripts/export_gnn.py graphsage --features 500 256 -o sage.json
  scripts/export_gnn.py gcn --features 1433 64 7 -o gcn.json
  scripts/export_gnn.py gat --features 34 8 4 --heads 2 -o gat.json

--features gives the width of the input and of every layer's output, so there are as many layers as numbers less one.
Every layer but the last ends in an activation; with --activate-last the last one does, too. GraphSAGE has the seven
stages gather, message, reduce_sum, reduce_count, normalize, transform and activate (a mean over the in-edges through
one linear map, the node's own features through another; with --aggregate max the largest of each feature, in five
stages); GCN has six, with symmetric normalisation by the in-degrees of the whole graph and a loop that is added to each
node, also to one that has loops in the graph; GAT has seven, its heads side by side, and adds no loops. With
--remaining-loops each node has exactly one loop, that of the graph or one that is added, as PyTorch Geometric's GCNConv
and GATConv have it; the document says so to npu-plan. With --products-first a product with weights that makes rows
shorter is the last stage of the layer before, or for the first one a layer of its own: what edges read, and what ranks
of npu-plan send each other, are rows of the product. NAME.safetensors beside the document holds the weights, which
depend on --seed alone. Needs no package beyond Python's own; --verify FILE needs PyTorch and is the reference: it
computes the whole graph with index_select and index_add_ and writes the result.

  scripts/export_gnn.py graphsage --features 500 256 -o sage.json \\
      --verify reference.npy --graph flickr.edges.safetensors --x flickr.x.npy
"""
import argparse
import json
import os
import struct
import sys

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
from export import safetensors  # noqa: E402
from export.errors import UserError  # noqa: E402
from export.gnn_stages import Model, add_layers  # noqa: E402
from export.interpreter import require  # noqa: E402


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["graphsage", "gcn", "gat"])
    parser.add_argument("--features", type=int, nargs="+", required=True, metavar="F")
    parser.add_argument("--heads", type=int, default=1, help="heads of GAT [1]")
    parser.add_argument("--activate-last", action="store_true", help="an activation after the last layer, too")
    parser.add_argument("--aggregate", choices=["mean", "max"], default="mean", help="what GraphSAGE makes of neighbours [mean]")
    parser.add_argument("--products-first", action="store_true", help="products before the layer that reads edges")
    parser.add_argument("--remaining-loops", action="store_true", help="loops only for nodes that have none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", required=True, help="document to write")
    parser.add_argument("--verify", metavar="FILE.npy", help="write PyTorch's result for --graph and --x")
    parser.add_argument("--graph", help=".mtx or .safetensors")
    parser.add_argument("--x", help=".npy or .safetensors")
    args = parser.parse_args()
    if len(args.features) < 2 or min(args.features) < 1:
        parser.error("--features needs at least two positive numbers")
    if args.model == "gat" and any(width % args.heads for width in args.features[1:]):
        parser.error("every output width of GAT is a multiple of --heads")
    if args.aggregate == "max" and (args.model != "graphsage" or args.products_first):
        parser.error("--aggregate max is for graphsage, and its products come last")
    if args.verify and not (args.graph and args.x):
        parser.error("--verify needs --graph and --x")
    if args.verify:
        try:
            require(["numpy", "torch"], "--verify needs them: install Debian's python3-torch, or set PYTHON")
        except UserError as error:
            sys.exit(f"export_gnn.py: {error}")
    model = Model(args.seed)
    layers = add_layers(model, args.model, args.features, args.heads, args.activate_last, args.products_first,
                        args.aggregate, not args.remaining_loops)
    stem = os.path.splitext(args.output)[0]
    with open(stem + ".safetensors", "wb") as file:
        safetensors.write(file, [(key, "F32", shape, 4 * len(values), lambda values=values: floats(values))
                                 for key, shape, values in model.weights])
    head = {"version": 1, "kind": "staged", "weights_file": os.path.basename(stem) + ".safetensors"}
    if args.remaining_loops:
        head["self_loops"] = "remaining"
    document = {"npu": head, "model_name": args.model, "layers": layers, "stages": model.stages}
    with open(args.output, "w", encoding="utf-8") as file:
        stages = ",\n".join(json.dumps(stage, separators=(", ", ": ")) for stage in document.pop("stages"))
        head = json.dumps(document, separators=(", ", ": "))
        file.write(head[:-1] + ',\n"stages": [\n' + stages + "\n]}\n")
    if args.verify:
        from export.gnn_reference import reference

        reference(args, model.weights)


if __name__ == "__main__":
    main()
