# SPDX-License-Identifier: Apache-2.0
"""Models whose sizes vary, one of a kind; what is to become of them is in check_dynamic.py."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Vision(nn.Module):
    """Strided and dilated convolutions, pooling, a residual sum, tokens made of pixels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.down = nn.Conv2d(8, 8, 3, stride=2, padding=1)
        self.same = nn.Conv2d(8, 8, 3, padding=2, dilation=2)
        self.patch = nn.Conv2d(8, 16, 2, stride=2)
        self.first = nn.Parameter(torch.randn(1, 1, 16))
        self.head = nn.Linear(16, 5)

    def forward(self, image):
        x = F.relu(self.down(self.pool(F.relu(self.stem(image)))))
        x = F.relu(x + self.same(x))
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1)
        shares = torch.softmax(x @ x.transpose(1, 2) / 4, -1)
        return self.head(shares @ x), x.mean(1)


class Encoder(nn.Module):
    """BERT's layer: words and positions, a mask of the keys, heads side by side, norms behind the sums."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(37, 16), nn.Embedding(64, 16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, ids, mask):
        batch, tokens = ids.shape
        x = self.norm(self.words(ids) + self.places(torch.arange(tokens)))
        query, key, value = self.qkv(x).view(batch, tokens, 3, 4, 4).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / 2 + (1.0 - mask.float())[:, None, None] * -1e4
        x = self.norm(x + self.out((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, tokens, 16)))
        return {"hidden": x, "pooled": x[:, 0].tanh()}


class Tagger(nn.Module):
    """A recurrence forward over a length that varies."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(31, 12)
        self.lstm = nn.LSTM(12, 10, batch_first=True)
        self.head = nn.Linear(10, 4)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


class Audio(nn.Module):
    """Strided 1-D convolutions, then frames in pairs."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(1, 6, 5, stride=3), nn.Conv1d(6, 6, 3, stride=2), nn.Conv1d(6, 8, 3)])

    def forward(self, sound):
        x = sound.unsqueeze(1)
        for layer in self.layers:
            x = F.gelu(layer(x))
        x = x[:, :, ::2]
        return x.mean(-1), x


class Decoder(nn.Module):
    """New tokens behind a past: positions, a mask that is made of sizes, two sizes that add up."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(29, 8)
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))

    def forward(self, ids, past_k, past_v):
        x = self.words(ids)
        key, value = torch.cat([past_k, self.k(x)], 1), torch.cat([past_v, self.v(x)], 1)
        new, total = ids.shape[1], key.shape[1]
        rows = torch.arange(total - new, total)[:, None]
        mask = torch.where(torch.arange(total)[None] <= rows, 0.0, -math.inf)
        shares = torch.softmax(self.q(x) @ key.transpose(1, 2) / 3 + mask, -1)
        return shares @ value, key, value


class Scaled(nn.Module):
    """A size among the numbers: twice, and as a divisor."""

    def forward(self, rows):
        return rows.sum(0) / rows.shape[0], F.pad(rows, (0, 0, 0, rows.shape[0]))


class Windows(nn.Module):
    """Windows of an image as rows of a batch, and back, behind a convolution with a stride."""

    def __init__(self):
        super().__init__()
        self.down, self.mix = nn.Conv2d(3, 6, 2, 2), nn.Linear(6, 6)

    def forward(self, image):
        x = self.down(image).permute(0, 2, 3, 1)
        batch, height, width, channels = x.shape
        x = x.reshape(batch, height // 4, 4, width // 4, 4, channels).transpose(2, 3)
        y = self.mix(x.reshape(-1, 16, channels).softmax(1))
        y = y.reshape(batch, height // 4, width // 4, 4, 4, channels).transpose(2, 3)
        return y.reshape(batch, height, width, channels)


class Root(nn.Module):
    """A number that follows no size as an integer."""

    def forward(self, rows):
        return rows / math.sqrt(rows.shape[0])


class Forked(nn.Module):
    """Another model above a length."""

    def forward(self, rows):
        return rows.exp() if rows.shape[0] > 6 else rows.relu()


class Table(nn.Module):
    """A constant that is made for a length."""

    def forward(self, rows):
        return rows + torch.tensor([[float(i)] for i in range(rows.shape[0])])


def vision():
    return Vision(), (torch.randn(1, 3, 64, 80),)


def encoder():
    return Encoder(), {"ids": torch.randint(0, 37, (2, 9)), "mask": torch.ones(2, 9, dtype=torch.int64)}


def tagger():
    return Tagger(), (torch.randint(0, 31, (2, 9)),)


def audio():
    return Audio(), (torch.randn(2, 100),)


def decoder():
    return Decoder(), (torch.randint(0, 29, (1, 3)), torch.randn(1, 6, 8), torch.randn(1, 6, 8))


class Limited(nn.Module):
    """Fewer than four rows are filled up, and more than a hundred cut."""

    def forward(self, rows):
        if rows.shape[0] < 4:
            rows = F.pad(rows, (0, 0, 0, 4 - rows.shape[0]))
        return torch.sigmoid(rows[:100]).sum(0)


def limited():
    return Limited(), (torch.randn(7, 3),)


def scaled():
    return Scaled(), (torch.randn(7, 3),)


def windows():
    return Windows(), (torch.randn(2, 3, 16, 24),)


def root():
    return Root(), (torch.randn(7, 3),)


def forked():
    return Forked(), (torch.randn(7, 3),)


def table():
    return Table(), (torch.randn(7, 3),)
