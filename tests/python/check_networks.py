#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks networks of PyTorch Geometric, or of modules that compute the same: check_networks.py SOURCE-DIR BIN-DIR

In the folder where it runs are graph.mtx and its features, x.npy.
"""

from harness import SOURCE, names_of, refuse, run_document, run_program, take

import export_gnn  # after harness, which knows where it is
import export_torch

NETWORKS = f"{SOURCE}/tests/python/networks.py"
REFUSED = {
    "with_norm": r"between module 'conv1' \(SAGEConv\) and module 'conv2' \(SAGEConv\) is .* neither nothing nor one of relu",
    "with_encoder": r"module 'model.conv1' \(SAGEConv\) does not read the features that forward\(\) gets",
    "normalized": r"module 'conv1' \(SAGEConv\) computes something else than graphsage",
    "clipped": r"between module 'conv1' \(SAGEConv\)",
    "averaged": r"module 'conv1' \(GATConv\) computes something else than gat",
    "mixed_loops": r"module 'conv1' \(GCNConv\) wants one loop at each node and module 'conv2' \(SAGEConv\)",
    "no_conv": "Network calls no SAGEConv, GCNConv, GATConv",
    "weighted": r"module 'conv1' \(GCNConv\) gets more than features and edge_index",
    "swapped": "must be features of nodes",
    "gvn": "no function 'gvn'; it has",
}
# A node with loops of its own, some twice, and many without edges.
LOOPS = "%%MatrixMarket matrix coordinate pattern general\n200 200 8\n1 1\n1 1\n2 2\n2 3\n3 2\n5 4\n9 9\n1 9\n"


def check_staged():
    with open("loops.mtx", "w", encoding="utf-8") as file:
        file.write(LOOPS)
    for name in ("sage", "sage_max", "gcn", "gat"):
        for graph in ("graph.mtx", "loops.mtx"):
            for more in ([], ["--products-first"]) if name != "gat" else ([],):  # the table has times of seven stages
                take(export_gnn.main, "export_gnn", f"{NETWORKS}:{name}", "-o", f"{name}.json", "--verify", f"{name}.npy",
                     "--graph", graph, "--x", "x.npy", *more)
                run_program("npu-plan", graph, "--model", f"{name}.json", "--profile", f"{SOURCE}/testdata/gnn/profile.json",
                            "--devices", "cpu", "-k", "3", "-o", "plan.json")
                run_program("npu-run", "plan.json", "--features", "x.npy", "--expect", f"{name}.npy")
        with open(f"{name}.json", encoding="utf-8") as file:
            wants_loops = '"self_loops": "remaining"' in file.read()
        assert wants_loops == (name in ("gcn", "gat")), f"{name}: loops"


def check_whole():
    """As ordinary models, over one graph."""
    for name in ("sage", "sage_max", "gcn", "gat"):
        take(lambda name=name: export_torch.main([f"{NETWORKS}:{name}", "-o", ".", "--name", "whole", "--check"]), "export_torch")
        assert names_of("whole.json")[:2] == ["x", "edge_index"], names_of("whole.json")
        run_document("whole")


def check_refused():
    for name, pattern in REFUSED.items():
        refuse(export_gnn.main, "export_gnn", 1, pattern, f"{NETWORKS}:{name}", "-o", "no.json")
    refuse(export_gnn.main, "export_gnn", 2, "those of the model", f"{NETWORKS}:gcn", "--heads", "2", "-o", "no.json")
    refuse(export_gnn.main, "export_gnn", 2, "is none of graphsage, gcn, gat", "gin", "--features", "3", "4", "-o", "no.json")


check_staged()
check_whole()
check_refused()
