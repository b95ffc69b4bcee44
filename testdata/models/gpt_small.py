# SPDX-License-Identifier: Apache-2.0
"""GPT-style decoders: pre-norm, causal attention, learned positions, output head tied to the
embedding. gpt_small fits into test data; gpt_medium is large enough to measure."""

import torch
import torch.nn.functional as F
from torch import nn


def causal_attention(query, key, value):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return torch._C._nn._scaled_dot_product_attention(query, key, value, is_causal=True)[0]


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.width, self.heads = width, heads
        self.norm_1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm_2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(self.norm_1(x)).split(width, dim=2)
        query, key, value = (
            part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for part in parts
        )
        context = causal_attention(query, key, value)
        x = x + self.proj(context.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, vocabulary, tokens, layers, width, heads):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.word.weight, std=0.1)
        self.head.weight = self.word.weight

    def forward(self, tokens):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.word(tokens) + self.position(positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def gpt_small(batch=1):
    model = Gpt(vocabulary=96, tokens=24, layers=2, width=32, heads=4)
    return model, (torch.randint(0, 96, (batch, 24)),)


def gpt_medium(batch=1):
    model = Gpt(vocabulary=8192, tokens=128, layers=6, width=384, heads=6)
    return model, (torch.randint(0, 8192, (batch, 128)),)
