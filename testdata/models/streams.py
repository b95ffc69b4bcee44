#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small models that read a stream step by step, and remember in buffers what the next step needs.

    lstm      two recurrent layers; hidden and cell states are replaced as a whole
    spotter   keyword spotting: levels that are normalised by running means, causal convolutions over windows that are
              shifted by concatenation, a gated recurrence, scores that are smoothed, and a count of frames
    ring      windows that are written in place: rows of a ring at a counter's place, and rows moved by one

Usage: streams.py DIR, behind export_torch.py --state: writes NAME.steps.safetensors, the inputs of 40 steps and what
PyTorch makes of them one after the other, as `inputs.NAME` and `outputs.NAME` with the step as first dimension.
"""

import os
import sys

import torch
from torch import nn

STEPS = 40


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(12, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 5)
        self.register_buffer("hidden", torch.zeros(2, 1, 16))
        self.register_buffer("carry", torch.zeros(2, 1, 16))

    def forward(self, frame):
        y, (hidden, carry) = self.cell(frame, (self.hidden, self.carry))
        self.hidden.copy_(hidden)
        self.carry.copy_(carry)
        return {"scores": self.head(y)}


class CausalConv(nn.Module):
    """Depthwise in time, then over channels."""

    def __init__(self, channels, rows):
        super().__init__()
        self.time = nn.Conv1d(channels, channels, rows, groups=channels)
        self.mix = nn.Conv1d(channels, channels, 1)
        self.register_buffer("window", torch.zeros(1, channels, rows))

    def forward(self, x):
        self.window.copy_(torch.cat([self.window[:, :, 1:], x], 2))
        return x + torch.relu(self.mix(torch.relu(self.time(self.window))))


class Spotter(nn.Module):
    def __init__(self, levels=20, channels=24, words=6):
        super().__init__()
        self.enter = nn.Conv1d(levels, channels, 1)
        self.convs = nn.ModuleList([CausalConv(channels, 3), CausalConv(channels, 5), CausalConv(channels, 9)])
        self.cell = nn.GRUCell(channels, channels)
        self.head = nn.Linear(channels, words)
        self.register_buffer("mean", torch.zeros(1, levels, 1))
        self.register_buffer("spread", torch.zeros(1, levels, 1))
        self.register_buffer("hidden", torch.zeros(1, channels))
        self.register_buffer("smooth", torch.zeros(1, words))
        self.register_buffer("frames", torch.zeros(1, dtype=torch.int64))

    def forward(self, levels):
        self.frames += 1
        self.mean.add_((levels - self.mean) / self.frames)
        self.spread.lerp_((levels - self.mean).abs(), 0.1)
        x = self.enter((levels - self.mean) / (self.spread + 0.1))
        for conv in self.convs:
            x = conv(x)
        self.hidden = self.cell(x[:, :, 0], self.hidden)
        self.smooth.mul_(0.8).add_(torch.softmax(self.head(self.hidden), -1), alpha=0.2)
        return {"scores": self.smooth, "frames": self.frames}


class Ring(nn.Module):
    def __init__(self, rows=8, width=6):
        super().__init__()
        self.rows = rows
        self.mix = nn.Linear(width, width)
        self.register_buffer("ring", torch.zeros(rows, width))
        self.register_buffer("place", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("moved", torch.zeros(rows, width))

    def forward(self, row):
        self.ring.index_copy_(0, self.place, self.mix(row))
        self.place.add_(1).remainder_(self.rows)
        self.moved[:-1] = self.moved[1:].clone()
        self.moved[-1:] = row
        return {"mean": self.ring.mean(0), "change": self.moved[-1] - self.moved[0]}


def stream_lstm():
    return Lstm(), {"frame": torch.randn(1, 1, 12)}


def stream_spotter():
    return Spotter(), {"levels": 1 + torch.rand(1, 20, 1)}


def stream_ring():
    return Ring(), {"row": torch.randn(1, 6)}


MODELS = [stream_lstm, stream_spotter, stream_ring]


def steps_of(function):
    """The model's inputs and outputs of STEPS steps, the first of which is the example of export_torch.py."""
    torch.manual_seed(0)
    model, inputs = function()
    model.eval()
    taken, given = [], []
    for _ in range(STEPS):
        taken.append(inputs)
        given.append({name: tensor.clone() for name, tensor in model(**inputs).items()})
        inputs = {name: tensor + torch.randn(tensor.shape) / 2 for name, tensor in inputs.items()}
    stacked = {f"inputs.{name}": torch.stack([step[name] for step in taken]) for name in taken[0]}
    return {**stacked, **{f"outputs.{name}": torch.stack([step[name] for step in given]) for name in given[0]}}


def main(directory):
    from export.torch_tensors import write_safetensors

    with torch.no_grad():
        for function in MODELS:
            with open(os.path.join(directory, f"{function.__name__}.steps.safetensors"), "wb") as file:
                write_safetensors(file, steps_of(function))


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
    main(sys.argv[1])
