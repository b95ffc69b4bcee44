# SPDX-License-Identifier: Apache-2.0
"""Small models of the families whose sizes vary, with random weights, for padding.py.

MODELS: name, options of export_torch.py --dynamic, and the sizes to compile for, smallest first. REFUSED: the same with
what npu-align --bucket says instead.
"""

import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(Path(__file__).parents[2] / "testdata/models"))
import families  # noqa: E402


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def split(self, x):
        batch, tokens, width = x.shape
        return x.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, context, bias):
        query, key, value = self.split(self.query(x)), self.split(self.key(context)), self.split(self.value(context))
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[-1])
        mixed = (scores + bias if bias is not None else scores).softmax(-1) @ value
        return self.out(mixed.transpose(1, 2).reshape(x.shape))


class Layer(nn.Module):
    """Of a transformer; one of a decoder looks at a context, too."""

    def __init__(self, width, heads, looks=False):
        super().__init__()
        self.own, self.cross = Attention(width, heads), Attention(width, heads) if looks else None
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, bias=None, context=None, context_bias=None):
        y = self.norms[0](x)
        x = x + self.own(y, y, bias)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), context, context_bias)
        return x + self.down(F.gelu(self.up(self.norms[2](x))))


def mask_bias(mask):
    return (1.0 - mask[:, None, None].float()) * -1e9


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 24), nn.Embedding(96, 24)
        self.layers = nn.ModuleList(Layer(24, 3) for _ in range(2))
        self.pool = nn.Linear(24, 24)

    def forward(self, ids, mask):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x, mask_bias(mask))
        return x, self.pool(x[:, 0]).tanh()


class Vit(nn.Module):
    """Takes any number of patches, and means over the tokens."""

    def __init__(self):
        super().__init__()
        self.patch, self.first = nn.Linear(48, 24), nn.Parameter(torch.randn(1, 1, 24))
        self.layers = nn.ModuleList(Layer(24, 2) for _ in range(2))
        self.head = nn.Linear(24, 7)

    def forward(self, patches):
        x = torch.cat([self.first.expand(patches.shape[0], -1, -1), self.patch(patches)], 1)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, 0]), self.head(x.mean(1))


class Product(nn.Linear):
    """As GPT-2 writes it: the tokens of all texts are rows of one matrix."""

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight.t()).view(*x.shape[:-1], -1)


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(50, 24), nn.Embedding(96, 24)
        self.layers = nn.ModuleList(Layer(24, 3) for _ in range(2))
        for layer in self.layers:
            layer.up, layer.down = Product(24, 48), Product(48, 24)

    def forward(self, ids):
        tokens = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(tokens))
        bias = torch.full((tokens, tokens), -math.inf).triu(1)
        for layer in self.layers:
            x = layer(x, bias)
        return x @ self.words.weight.t()


class Relative(nn.Module):
    """T5's: a bias for each distance of two tokens, in buckets that grow, and no scale of the scores."""

    def __init__(self, heads, both):
        super().__init__()
        self.table, self.both = nn.Embedding(16, heads), both

    def forward(self, tokens):
        place = torch.arange(tokens)
        distance = place[None] - place[:, None]
        far = torch.log(distance.abs().clamp(min=1).float() / 4) * 2 + 4
        bucket = torch.where(distance.abs() < 4, distance.abs(), far.long().clamp(max=7))
        bucket = bucket + (distance > 0).long() * 8 if self.both else torch.where(distance > 0, torch.zeros_like(bucket), bucket)
        bias = self.table(bucket).permute(2, 0, 1)[None]
        return bias if self.both else bias + torch.full((tokens, tokens), -1e9).triu(1)


class T5Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.bias = nn.Embedding(50, 24), Relative(3, True)
        self.layers = nn.ModuleList(Layer(24, 3) for _ in range(2))

    def forward(self, ids, mask):
        x, bias = self.words(ids), self.bias(ids.shape[1]) + mask_bias(mask)
        for layer in self.layers:
            x = layer(x, bias)
        return x


class T5Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.bias = nn.Embedding(50, 24), Relative(3, False)
        self.layers = nn.ModuleList(Layer(24, 3, looks=True) for _ in range(2))

    def forward(self, ids, context, context_mask):
        x, bias = self.words(ids), self.bias(ids.shape[1])
        for layer in self.layers:
            x = layer(x, bias, context, mask_bias(context_mask))
        return x @ self.words.weight.t()


class Unit(nn.Module):
    """Of a ResNet."""

    def __init__(self, source, channels, stride):
        super().__init__()
        self.first = nn.Conv2d(source, channels, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(channels) for _ in range(2))
        self.short = nn.Conv2d(source, channels, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(y)) + self.short(x))


class Resnet(nn.Module):
    """ResNet-18's layers with few channels."""

    def __init__(self, dense=False):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
        self.units = nn.Sequential(
            Unit(8, 8, 1), Unit(8, 8, 1), Unit(8, 12, 2), Unit(12, 12, 1),
            Unit(12, 16, 2), Unit(16, 16, 1), Unit(16, 24, 2), Unit(24, 24, 1),
        )  # fmt: skip
        self.head = nn.Conv2d(24, 5, 1) if dense else nn.Linear(24, 5)
        self.dense = dense

    def forward(self, image):
        x = self.units(self.stem(image))
        if self.dense:  # an FCN, whose result has a class for 8 x 8 pixels
            return F.interpolate(self.head(x), scale_factor=4, mode="bilinear")
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Tagger(nn.Module):
    """A class for each word, and one for all by the last state."""

    def __init__(self):
        super().__init__()
        self.words, self.lstm = nn.Embedding(50, 16), nn.LSTM(16, 20, batch_first=True)
        self.head, self.whole = nn.Linear(20, 6), nn.Linear(20, 3)

    def forward(self, ids):
        x, (last, _) = self.lstm(self.words(ids))
        return self.head(x), self.whole(last[0])


class Audio(nn.Module):
    """Strided and dilated convolutions in one dimension, and a mean over the time."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv1d(1, 8, 20, 4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Conv1d(8, 12, 3, 2, 1), nn.ReLU())
        self.wide = nn.ModuleList(nn.Conv1d(12, 12, 3, padding=2**i, dilation=2**i) for i in range(3))
        self.head = nn.Linear(12, 5)

    def forward(self, sound):
        x = self.down(sound[:, None])
        for layer in self.wide:
            x = x + layer(x).relu()
        return self.head(x.mean(2)), self.head(x.transpose(1, 2))


class Sage(nn.Module):
    """A block of GraphSAGE: sums over the edges, of which and of whose nodes there are any number."""

    def __init__(self):
        super().__init__()
        self.own, self.others = nn.Linear(16, 12), nn.Linear(16, 12, bias=False)

    def forward(self, x, source, target, weight):
        sums = torch.zeros(x.shape[0], 16).index_add(0, target, x[source] * weight[:, None])
        return (self.own(x) + self.others(sums)).relu()


class FromEnd(nn.Module):
    """Rows by indices that count from the end."""

    def forward(self, x):
        return x[:, torch.tensor([0, -1])], x[:, -1], x[:, -1:]


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 10))

    def forward(self, rows):
        return self.layers(rows).log_softmax(-1)


def ids(*shape):
    return torch.randint(1, 50, shape)


def ones(*shape):
    return torch.ones(*shape, dtype=torch.int64)


TEXT = ["ids:0=B:1..4", "ids:1=S:1..96", "mask:0=B", "mask:1=S"]
IMAGE = ["image:2=H:32..128", "image:3=W:32..128"]
MODELS = {
    "bert": (Bert, {"ids": ids(2, 9), "mask": ones(2, 9)}, TEXT, ["B=2,S=32", "B=4,S=96"]),
    "vit": (Vit, {"patches": torch.randn(1, 9, 48)}, ["patches:1=S:1..80"], ["S=24", "S=80"]),
    "gpt": (Gpt, {"ids": ids(2, 9)}, ["ids:0=B:1..4", "ids:1=S:1..96"], ["B=2,S=32", "B=4,S=96"]),
    "resnet18": (Resnet, {"image": torch.randn(1, 3, 64, 64)}, IMAGE, ["H=64,W=64", "H=128,W=128"]),
    "fcn": (lambda: Resnet(True), {"image": torch.randn(1, 3, 64, 64)}, IMAGE, ["H=64,W=64", "H=128,W=128"]),
    "unet": (
        families.UNet,
        {"x": torch.randn(1, 3, 32, 32)},
        ["x:2=H:8..96/4", "x:3=W:8..96/4"],
        ["H=48,W=48", "H=96,W=96"],
    ),
    "tagger": (Tagger, {"ids": ids(1, 9)}, ["ids:1=S:1..64"], ["S=16", "S=64"]),
    "audio": (Audio, {"sound": torch.randn(1, 800)}, ["sound:1=T:200..4000"], ["T=1000", "T=4000"]),
    "sage": (
        Sage,
        {"x": torch.randn(9, 16), "source": torch.arange(7), "target": torch.arange(7), "weight": torch.randn(7)},
        ["x:0=N:8..200", "source:0=M:1..600", "target:0=M", "weight:0=M"],
        ["N=64,M=200", "N=200,M=600"],
    ),
    "from_end": (FromEnd, {"x": torch.randn(1, 9, 8)}, ["x:1=S:1..48"], ["S=16", "S=48"]),
    "mlp": (Mlp, {"rows": torch.randn(5, 20)}, ["rows:0=B:1..64"], ["B=8", "B=64"]),
    "t5_encoder": (T5Encoder, {"ids": ids(1, 9), "mask": ones(1, 9)}, ["ids:1=S:1..96", "mask:1=S"], ["S=32", "S=96"]),
    "t5_decoder": (
        T5Decoder,
        {"ids": ids(1, 7), "context": torch.randn(1, 9, 24), "context_mask": ones(1, 9)},
        ["ids:1=T:1..48", "context:1=S:1..96", "context_mask:1=S"],
        ["S=48,T=16", "S=96,T=48"],
    ),
}


class Apply(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Backward(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 6, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.lstm(x)[0]


ROWS = {"x": torch.randn(1, 9, 8)}
REFUSED = {
    "group_norm": (lambda: nn.Sequential(nn.Conv1d(8, 8, 3), nn.GroupNorm(2, 8)), {"input": torch.randn(1, 8, 9)}, "input:2=S:4..32", "group norm"),
    "backward": (Backward, ROWS, "x:1=S:1..32", "lstm"),
    "flip": (lambda: Apply(lambda x: x.flip(1)), ROWS, "x:1=S:1..32", "flip"),
    "sort": (lambda: Apply(lambda x: x.sort(1)[0]), ROWS, "x:1=S:1..32", "sort"),
}


# What export_torch.py calls.
for _name, (_make, _inputs, *_) in {**MODELS, **REFUSED}.items():
    globals()[_name] = lambda make=_make, inputs=_inputs: (make(), inputs)
