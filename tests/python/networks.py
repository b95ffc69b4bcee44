# SPDX-License-Identifier: Apache-2.0
"""Graph networks that export_gnn.py takes, from modules.py, and some that it refuses; see check_networks.py."""

import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from modules import Network, conv, gat, gcn, network, sage, sage_max  # noqa: E402

TAKEN = [sage, sage_max, gcn, gat]


def with_norm():
    model, inputs, _ = sage()
    norm = torch.nn.BatchNorm1d(8).eval()
    norm.running_mean += 1
    model.function = lambda x: norm(x).relu()
    return model, inputs


class Encoded(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.first, self.model = torch.nn.Linear(6, 6), model

    def forward(self, x, edge_index):
        return self.model(self.first(x), edge_index)


def with_encoder():
    model, inputs, _ = sage()
    return Encoded(model), inputs


def normalized():
    return network(conv("SAGEConv")(6, 8, normalize=True), conv("SAGEConv")(8, 4))


def clipped():
    return network(conv("SAGEConv")(6, 8), conv("SAGEConv")(8, 4), torch.nn.functional.relu6)


def averaged():
    return network(conv("GATConv")(6, 4, heads=2, concat=False), conv("GATConv")(4, 4))


def mixed_loops():
    return network(conv("GCNConv")(6, 8), conv("SAGEConv")(8, 4))


class Plain(torch.nn.Module):
    def forward(self, x, edge_index):
        return x


def no_conv():
    return network(Plain(), Plain())


class Weighted(Network):
    def forward(self, x, edge_index):
        return self.conv1(x, edge_index, torch.ones(edge_index.shape[1]))


def weighted():
    return Weighted(conv("GCNConv")(6, 8), None), gcn()[1]


def swapped():
    model, (x, edge_index), _ = gcn()
    return model, (edge_index, x)
