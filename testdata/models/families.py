# SPDX-License-Identifier: Apache-2.0
"""One model of each family that torchvision does not have: recurrent nets, U-Nets, an encoder-decoder transformer and an
audio network. They are large enough to measure; nothing here is in the tests."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Tagger(nn.Module):
    """An embedding, two recurrent layers, and a class for every word."""

    def __init__(self, layer, words=1000, width=128, classes=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.recurrent = layer(width, width, num_layers=2, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, tokens):
        return self.head(self.recurrent(self.embedding(tokens))[0])


def convolutions(channels_in, channels, norm):
    layers = []
    for source in (channels_in, channels):
        layers += [nn.Conv2d(source, channels, 3, padding=1, bias=False), norm(channels), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Ronneberger, Fischer and Brox 2015, with three levels of 32 to 128 channels."""

    def __init__(self, down=nn.BatchNorm2d, up=nn.BatchNorm2d, classes=4):
        super().__init__()
        self.down = nn.ModuleList([convolutions(3, 32, down), convolutions(32, 64, down)])
        self.bottom = convolutions(64, 128, down)
        self.rise = nn.ModuleList([nn.ConvTranspose2d(128, 64, 2, stride=2), nn.ConvTranspose2d(64, 32, 2, stride=2)])
        self.up = nn.ModuleList([convolutions(128, 64, up), convolutions(64, 32, up)])
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


def group_norm(channels):
    return nn.GroupNorm(8, channels)


def instance_norm(channels):
    return nn.InstanceNorm2d(channels, affine=True)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.result = nn.Linear(width, width)

    def split(self, x):
        batch, tokens, width = x.shape
        return x.reshape(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, context, mask=None):
        key, value = self.key_value(context).chunk(2, dim=-1)
        query, key, value = self.split(self.query(x)), self.split(key), self.split(value)
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores + mask
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.result(mixed.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """A layer of an encoder, or of a decoder if it looks at a context."""

    def __init__(self, width, heads, is_decoder):
        super().__init__()
        self.own = Attention(width, heads)
        self.cross = Attention(width, heads) if is_decoder else None
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if is_decoder else 2))
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x, context=None, mask=None):
        x = self.norms[0](x + self.own(x, x, mask))
        if self.cross is not None:
            x = self.norms[1](x + self.cross(x, context))
        return self.norms[-1](x + self.down(torch.relu(self.up(x))))


class Translator(nn.Module):
    """Vaswani and others 2017: an encoder and a decoder, with learned positions."""

    def __init__(self, words=4000, width=256, heads=4, layers=3, most=64):
        super().__init__()
        self.source = nn.Embedding(words, width)
        self.target = nn.Embedding(words, width)
        self.position = nn.Parameter(torch.randn(most, width) * 0.02)
        self.encoder = nn.ModuleList(Block(width, heads, False) for _ in range(layers))
        self.decoder = nn.ModuleList(Block(width, heads, True) for _ in range(layers))
        self.head = nn.Linear(width, words)
        self.register_buffer("mask", torch.full((most, most), -1e9).triu(1))

    def forward(self, source, target):
        length, others = source.shape[1], target.shape[1]
        context = self.source(source) + self.position[:length]
        for block in self.encoder:
            context = block(context)
        x = self.target(target) + self.position[:others]
        for block in self.decoder:
            x = block(x, context, self.mask[:others, :others])
        return self.head(x)


class AudioBlock(nn.Module):
    """Two one-dimensional convolutions, the first with holes, around which the input goes."""

    def __init__(self, channels, dilation):
        super().__init__()
        self.wide = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm1d(channels)
        self.point = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.point(torch.relu(self.norm(self.wide(x))))


class AudioNet(nn.Module):
    """Classes of a second of sound at 16 kHz: strided convolutions, then dilated ones."""

    def __init__(self, classes=35):
        super().__init__()
        layers, channels = [], 1
        for width, kernel, stride in ((64, 80, 4), (64, 3, 4), (128, 3, 2), (128, 3, 2)):
            layers += [nn.Conv1d(channels, width, kernel, stride, kernel // 2, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
            channels = width
        layers += [AudioBlock(channels, 2**i) for i in range(6)]
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(channels, classes)

    def forward(self, sound):
        return self.head(self.layers(sound).mean(dim=2))


def lstm(batch=1):
    return Tagger(nn.LSTM).eval(), (torch.randint(0, 1000, (batch, 50)),)


def gru(batch=1):
    return Tagger(nn.GRU).eval(), (torch.randint(0, 1000, (batch, 50)),)


def unet(batch=1):
    return UNet().eval(), (torch.randn(batch, 3, 128, 128),)


def unet_norms(batch=1):
    return UNet(group_norm, instance_norm).eval(), (torch.randn(batch, 3, 128, 128),)


def translator(batch=1):
    return Translator().eval(), (torch.randint(0, 4000, (batch, 48)), torch.randint(0, 4000, (batch, 32)))


def audio_net(batch=1):
    return AudioNet().eval(), (torch.randn(batch, 1, 16000),)
