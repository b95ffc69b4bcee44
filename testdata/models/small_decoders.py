# SPDX-License-Identifier: Apache-2.0
"""Small decoders with a cache of fixed size, which forward() writes at the positions of the new tokens: buffers that
export_torch.py --state makes states. One per thing in which today's families differ; all are small enough for testdata.

    rotary    as many heads of keys as of queries, positions by rotation, RMS norms and gates (Llama)
    grouped   several heads of queries share one of keys and values, as they are written since: unsqueeze, expand, reshape
    window    every other layer sees the last 8 keys only, with another base of the rotation (Gemma, Mistral)
    norms     norms of queries and keys per head, a head wider than width / heads (Qwen 3)
    softcap   scores and logits through tanh, which no fused attention has; norms behind each part, too (Gemma 2)
    learned   learned positions, layer norms, biases; rows written by an index, a mask that is a table (GPT-2)
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

CAPACITY = 96
WORDS = 61
POSITIONS = 64  # of the example


def attention(query, key, value, mask):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return torch._C._nn._scaled_dot_product_attention(query, key, value, mask)[0]


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Cache(nn.Module):
    """Keys and values of one layer."""

    def __init__(self, heads, size):
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, heads, CAPACITY, size), persistent=False)
        self.register_buffer("values", torch.zeros(1, heads, CAPACITY, size), persistent=False)

    def forward(self, positions, key, value):
        self.keys.index_copy_(2, positions, key)
        self.values.index_copy_(2, positions, value)
        return self.keys, self.values


def rotated(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], -1) * sin


class Layer(nn.Module):
    def __init__(self, shape, window=None):
        super().__init__()
        self.shape, self.window = shape, window
        width, size = shape["width"], shape["size"]
        self.query = nn.Linear(width, shape["heads"] * size, bias=False)
        self.key = nn.Linear(width, shape["kv_heads"] * size, bias=False)
        self.value = nn.Linear(width, shape["kv_heads"] * size, bias=False)
        self.out = nn.Linear(shape["heads"] * size, width, bias=False)
        self.gate, self.up = nn.Linear(width, shape["inner"], bias=False), nn.Linear(width, shape["inner"], bias=False)
        self.down = nn.Linear(shape["inner"], width, bias=False)
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(4 if shape.get("softcap") else 2))
        self.head_norms = nn.ModuleList(RmsNorm(size) for _ in range(2 if shape.get("norms") else 0))
        self.cache = Cache(shape["kv_heads"], size)
        inverse = shape.get("base", 10000.0) ** (-torch.arange(0, size, 2).float() / size)
        self.register_buffer("inverse", inverse if window is None else inverse * 4, persistent=False)

    def attend(self, x, positions):
        shape, tokens = self.shape, x.shape[1]
        query = self.query(x).view(1, tokens, -1, shape["size"])
        key = self.key(x).view(1, tokens, -1, shape["size"])
        if shape.get("norms"):
            query, key = self.head_norms[0](query), self.head_norms[1](key)
        angles = positions[:, None].float() * self.inverse[None]
        angles = torch.cat([angles, angles], -1)
        query = rotated(query.transpose(1, 2), angles.cos(), angles.sin())
        key = rotated(key.transpose(1, 2), angles.cos(), angles.sin())
        value = self.value(x).view(1, tokens, -1, shape["size"]).transpose(1, 2)
        key, value = self.cache(positions, key, value)
        repeats = shape["heads"] // shape["kv_heads"]
        if repeats > 1:
            whole = (1, shape["heads"], CAPACITY, shape["size"])
            key = key[:, :, None].expand(1, shape["kv_heads"], repeats, CAPACITY, shape["size"]).reshape(whole)
            value = value[:, :, None].expand(1, shape["kv_heads"], repeats, CAPACITY, shape["size"]).reshape(whole)
        slots = torch.arange(CAPACITY)[None, :]
        mask = slots <= positions[:, None]
        if self.window is not None:
            mask = mask & (slots > positions[:, None] - self.window)
        mask = mask[None, None]
        if shape.get("softcap"):
            scores = query @ key.transpose(2, 3) / math.sqrt(shape["size"])
            scores = torch.tanh(scores / shape["softcap"]) * shape["softcap"]
            result = torch.softmax(scores.masked_fill(~mask, -math.inf), -1) @ value
        else:
            result = attention(query, key, value, mask)
        return self.out(result.transpose(1, 2).reshape(1, tokens, -1))

    def forward(self, x, positions):
        if self.shape.get("softcap"):
            x = x + self.norms[1](self.attend(self.norms[0](x), positions))
            y = self.norms[2](x)
            return x + self.norms[3](self.down(F.gelu(self.gate(y), approximate="tanh") * self.up(y)))
        x = x + self.attend(self.norms[0](x), positions)
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, **shape):
        super().__init__()
        self.shape = {"width": 64, "heads": 4, "kv_heads": 4, "size": 16, "inner": 48, **shape}
        windows = self.shape.get("windows", (None, None))
        self.words = nn.Embedding(WORDS, self.shape["width"])
        self.layers = nn.ModuleList(Layer(self.shape, window) for window in windows)
        self.norm = RmsNorm(self.shape["width"])
        self.head = nn.Linear(self.shape["width"], WORDS, bias=False)
        self.head.weight = self.words.weight

    def forward(self, input_ids, cache_position):
        x = self.words(input_ids)
        for layer in self.layers:
            x = layer(x, cache_position)
        logits = self.head(self.norm(x))
        cap = self.shape.get("softcap")
        return {"logits": logits if cap is None else torch.tanh(logits / cap) * cap}


class LearnedLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.register_buffer("keys", torch.zeros(1, heads, CAPACITY, width // heads))
        self.register_buffer("values", torch.zeros(1, heads, CAPACITY, width // heads))

    def forward(self, x, positions, mask):
        tokens = x.shape[1]
        query, key, value = (
            part.view(1, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)
        )
        self.keys[:, :, positions] = key
        self.values[:, :, positions] = value
        context = attention(query, self.keys, self.values, mask)
        x = x + self.out(context.transpose(1, 2).reshape(1, tokens, -1))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Learned(nn.Module):
    def __init__(self, width=48, heads=3):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(CAPACITY, width)
        self.layers = nn.ModuleList(LearnedLayer(width, heads) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("seen", torch.ones(CAPACITY, CAPACITY, dtype=torch.bool).tril(), persistent=False)

    def forward(self, input_ids, cache_position):
        x = self.words(input_ids) + self.places(cache_position)
        mask = self.seen[None, None, cache_position]
        for layer in self.layers:
            x = layer(x, cache_position, mask)
        return {"logits": self.norm(x) @ self.words.weight.t()}


def example(model):
    """The model with weights that matter: small ones would leave every row much the same."""
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=1.3 / math.sqrt(parameter.shape[1]))
    tokens = torch.randint(0, WORDS, (1, POSITIONS))
    return model, {"input_ids": tokens, "cache_position": torch.arange(POSITIONS)}


def decoder_rotary():
    return example(Decoder())


def decoder_grouped():
    return example(Decoder(kv_heads=2))


def decoder_window():
    return example(Decoder(kv_heads=2, windows=(8, None)))


def decoder_norms():
    return example(Decoder(kv_heads=1, size=24, norms=True))


def decoder_softcap():
    return example(Decoder(kv_heads=2, softcap=5.0))


def decoder_learned():
    return example(Learned())
