#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a graph neural network as a staged document (npu-ir(5), kind "staged").

  scripts/export_gnn.py graphsage --features 500 256 -o sage.json
  scripts/export_gnn.py gcn --features 1433 64 7 -o gcn.json
  scripts/export_gnn.py gat --features 34 8 4 --heads 2 -o gat.json
  scripts/export_gnn.py my.py:network -o network.json

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
computes the whole graph with index_select and scatter_add and writes the result.

  scripts/export_gnn.py graphsage --features 500 256 -o sage.json \\
      --verify reference.npy --graph flickr.edges.safetensors --x flickr.x.npy

FILE.py:FUNCTION is a network of PyTorch Geometric with its own weights: the function returns (model, (x, edge_index)),
as for export_torch.py. Its forward() calls SAGEConv (mean or max), GCNConv and GATConv one after another, with nothing or
a function such as relu, elu or log_softmax after each; what else it computes is refused with the module. That it is the
same is not concluded from options but tried on graphs with loops, repeated edges and nodes without any. Needs PyTorch;
the reference of --verify is the model itself.
"""
import argparse
import json
import os
import re
import struct
import sys

sys.dont_write_bytecode = True  # leave no __pycache__ beside the scripts
from export import safetensors  # noqa: E402
from export.errors import UserError, last_line_of  # noqa: E402
from export.gnn_stages import Layer, Model, add_layers  # noqa: E402
from export.interpreter import require  # noqa: E402


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="MODEL", help="graphsage, gcn, gat, or FILE.py:FUNCTION")
    parser.add_argument("--features", type=int, nargs="+", metavar="F", help="needed for the first three")
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
    if args.verify and not (args.graph and args.x):
        parser.error("--verify needs --graph and --x")
    if re.fullmatch(r".+\.py:.+", args.model):
        if args.features or args.heads != 1 or args.activate_last or args.aggregate != "mean" or args.remaining_loops:
            parser.error("--features, --heads, --activate-last, --aggregate and --remaining-loops are those of the model")
        return args
    if args.model not in ("graphsage", "gcn", "gat"):
        parser.error(f"MODEL '{args.model}' is none of graphsage, gcn, gat and FILE.py:FUNCTION")
    if not args.features or len(args.features) < 2 or min(args.features) < 1:
        parser.error("--features needs at least two positive numbers")
    if args.model == "gat" and any(width % args.heads for width in args.features[1:]):
        parser.error("every output width of GAT is a multiple of --heads")
    if args.aggregate == "max" and (args.model != "graphsage" or args.products_first):
        parser.error("--aggregate max is for graphsage, and its products come last")
    return args


def random_network(args):
    """The layers that the options ask for, and a model that draws their weights."""
    layers = []
    for i, (inputs, outputs) in enumerate(zip(args.features, args.features[1:])):
        active = i + 2 < len(args.features) or args.activate_last
        function = "none" if not active else "elu" if args.model == "gat" else "relu"
        layers.append(Layer(args.model, f"layers.{i}", inputs, outputs, function, args.heads, args.aggregate,
                            not args.remaining_loops))
    return layers, Model(args.seed)


def write(args, layers, model):
    count = add_layers(model, layers, args.products_first)
    stem = os.path.splitext(args.output)[0]
    with open(stem + ".safetensors", "wb") as file:
        safetensors.write(file, [(key, "F32", shape, 4 * len(values), lambda values=values: floats(values))
                                 for key, shape, values in model.weights])
    head = {"version": 1, "kind": "staged", "weights_file": os.path.basename(stem) + ".safetensors"}
    if args.remaining_loops:
        head["self_loops"] = "remaining"
    document = {"npu": head, "model_name": args.model.rpartition(":")[2], "layers": count, "stages": model.stages}
    with open(args.output, "w", encoding="utf-8") as file:
        stages = ",\n".join(json.dumps(stage, separators=(", ", ": ")) for stage in document.pop("stages"))
        head = json.dumps(document, separators=(", ", ": "))
        file.write(head[:-1] + ',\n"stages": [\n' + stages + "\n]}\n")


def export(args):
    network = None
    if ":" in args.model:
        require(["numpy", "torch"], "a model of PyTorch needs them: install Debian's python3-torch, or set PYTHON")
        import torch
        from export.gnn_network import read_network
        from export.models import load_function

        torch.manual_seed(args.seed)
        network, inputs = load_function(*args.model.rsplit(":", 1), None)
        network.eval()
        layers, weights, args.remaining_loops = read_network(network, inputs)
        model = Model(None, {key: tensor.flatten().tolist() for key, tensor in weights.items()})
    else:
        if args.verify:
            require(["numpy", "torch"], "--verify needs them: install Debian's python3-torch, or set PYTHON")
        layers, model = random_network(args)
    write(args, layers, model)
    if args.verify:
        from export.gnn_reference import reference, reference_of_network

        if network is not None:
            reference_of_network(args, network)
        else:
            reference(args, layers, model.weights)


def main():
    args = parse_options()
    try:
        export(args)
    except UserError as error:
        sys.exit(f"export_gnn.py: error: {error}")
    except OSError as error:
        sys.exit(f"export_gnn.py: error: {error.filename}: {error.strerror}")
    except Exception as error:
        sys.exit(f"export_gnn.py: error: {last_line_of(error)}; please report")


if __name__ == "__main__":
    main()
