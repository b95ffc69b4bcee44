# SPDX-License-Identifier: Apache-2.0
"""Two models for truth.sh that torchvision does not have: an LSTM and a U-Net."""

import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    """An embedding, two layers of an LSTM, and a class for every word."""

    def __init__(self, words=1000, width=128, classes=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def convolutions(channels_in, channels):
    layers = []
    for source in (channels_in, channels):
        layers += [nn.Conv2d(source, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Ronneberger, Fischer and Brox 2015, with three levels of 32 to 128 channels."""

    def __init__(self, classes=4):
        super().__init__()
        self.down = nn.ModuleList([convolutions(3, 32), convolutions(32, 64)])
        self.bottom = convolutions(64, 128)
        self.rise = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, stride=2), nn.ConvTranspose2d(64, 32, 2, stride=2)])
        self.up = nn.ModuleList([convolutions(128, 64), convolutions(64, 32)])
        self.head = nn.Conv2d(32, classes, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottom(x)
        for rise, block in zip(self.rise, self.up):
            x = block(torch.cat([rise(x), kept.pop()], dim=1))
        return self.head(x)


def lstm():
    return Tagger().eval(), (torch.randint(0, 1000, (1, 64)),)


def unet():
    return UNet().eval(), (torch.randn(1, 3, 128, 128),)
