# SPDX-License-Identifier: Apache-2.0
"""BERT encoders with a pooler: the base size, and one small enough for test data.

Dropouts are in the model and do nothing in eval mode, but they stand in the exported graph, as they
do in graphs of real models. Attention is one op (scaled_dot_product_attention).
"""

import torch
import torch.nn.functional as F
from torch import nn


def attention(query, key, value):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(query, key, value)
    return torch._C._nn._scaled_dot_product_attention(query, key, value)[0]


class Embeddings(nn.Module):
    def __init__(self, vocabulary, width, tokens):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(tokens, width)
        self.token_type = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)
        self.register_buffer("position_ids", torch.arange(tokens).unsqueeze(0))

    def forward(self, input_ids, token_type_ids):
        x = self.word(input_ids) + self.token_type(token_type_ids)
        x = x + self.position(self.position_ids)
        return self.dropout(self.norm(x))


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.output_norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(0.1)

    def split_heads(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x):
        query = self.split_heads(self.query(x))
        key = self.split_heads(self.key(x))
        value = self.split_heads(self.value(x))
        context = attention(query, key, value).transpose(1, 2).reshape(x.shape)
        x = self.attention_norm(self.dropout(self.output(context)) + x)
        return self.output_norm(self.dropout(self.down(F.gelu(self.up(x)))) + x)


class Bert(nn.Module):
    def __init__(self, vocabulary, tokens, layers, width, heads, inner):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, width, tokens)
        self.layers = nn.ModuleList(Layer(width, heads, inner) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, token_type_ids):
        x = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(self.pooler(x.select(1, 0)))


def _with_inputs(model, vocabulary, batch, tokens):
    input_ids = torch.randint(0, vocabulary, (batch, tokens))
    token_type_ids = (torch.arange(tokens) >= tokens // 2).long().expand(batch, tokens)
    return model, (input_ids, token_type_ids.contiguous())


def bert_base(batch=1):
    model = Bert(vocabulary=30522, tokens=128, layers=12, width=768, heads=12, inner=3072)
    return _with_inputs(model, 30522, batch, 128)


def bert_tiny(batch=1):
    model = Bert(vocabulary=96, tokens=16, layers=2, width=32, heads=4, inner=64)
    return _with_inputs(model, 96, batch, 16)
