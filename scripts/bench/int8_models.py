# SPDX-License-Identifier: Apache-2.0
"""The models that int8_accuracy.py trains, and what export_torch.py calls to get one of them."""
import math
import os

import torch
from torch import nn
from torch.nn import functional


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def depthwise_cnn():
    layers = [nn.Conv2d(1, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    for stride in (1, 2, 1):
        layers += [nn.Conv2d(32, 32, 3, stride=stride, padding=1, groups=32, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
                   nn.Conv2d(32, 32, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.GELU(), nn.Linear(64, 10))


def attend(q, k, v, in_one_op):
    """PyTorch 1.13 has the op only while a model is exported."""
    if in_one_op and hasattr(functional, "scaled_dot_product_attention"):
        return functional.scaled_dot_product_attention(q, k, v)
    return torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1) @ v


class Block(nn.Module):
    """A layer of a transformer that normalizes first."""

    def __init__(self, width, heads, in_one_op):
        super().__init__()
        self.heads = heads
        self.in_one_op = in_one_op
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        means = attend(parts[0], parts[1], parts[2], self.in_one_op)
        x = x + self.project(means.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width=64, in_one_op=False):
        super().__init__()
        self.embed = nn.Linear(4, width)
        self.position = nn.Parameter(torch.zeros(1, 16, width))
        self.blocks = nn.Sequential(Block(width, 4, in_one_op), Block(width, 4, in_one_op))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        patches = x.reshape(-1, 4, 2, 4, 2).permute(0, 1, 3, 2, 4).reshape(-1, 16, 4)
        return self.head(self.norm(self.blocks(self.embed(patches) + self.position)).mean(dim=1))


class GraphNet(nn.Module):
    """Two layers on a fixed graph, whose matrix is a weight of the model."""

    def __init__(self, graph, features, classes, keeps_self):
        super().__init__()
        self.register_buffer("graph", graph)
        self.first = nn.Linear(features, 64)
        self.second = nn.Linear(64, classes)
        self.first_self = nn.Linear(features, 64) if keeps_self else None
        self.second_self = nn.Linear(64, classes) if keeps_self else None
        self.dropout = nn.Dropout(0.5)

    def layer(self, x, neighbours, itself):
        result = torch.matmul(self.graph, neighbours(x))
        return result if itself is None else result + itself(x)

    def forward(self, x):
        hidden = torch.relu(self.layer(self.dropout(x), self.first, self.first_self))
        return self.layer(self.dropout(hidden), self.second, self.second_self)


def exported():
    """The model and the example that the environment names."""
    saved = torch.load(os.environ["INT8_MODEL"])
    model = make(saved["name"], saved["sizes"])
    model.load_state_dict(saved["state"])
    return model, (saved["example"],)


def make(name, sizes=None):
    digits = {"cnn": cnn, "depthwise": depthwise_cnn, "transformer": Transformer, "attention": lambda: Transformer(in_one_op=True), "mlp": mlp}
    if name in digits:
        return digits[name]()
    nodes, features, classes = sizes
    return GraphNet(torch.zeros(nodes, nodes), features, classes, name.startswith("sage"))
