# SPDX-License-Identifier: Apache-2.0
"""Cases: small models."""

import math

import torch

from op_corpus.specs import DTYPES, INF, bf16, f32, f64, i64, values


def models(c):
    nn, functional = torch.nn, torch.nn.functional

    class Siamese(nn.Module):
        """One encoder, two inputs."""

        def __init__(self):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
            self.fc = nn.Linear(16, 6)

        def encode(self, x):
            x = functional.relu(self.norm(self.conv(x)), inplace=True)
            return self.fc(functional.adaptive_avg_pool2d(x, 2).flatten(1))

        def forward(self, left, right):
            left, right = self.encode(left), self.encode(right)
            return (left - right).abs().sum(1), functional.cosine_similarity(left, right)

    class MultiTask(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh())
            self.classes, self.value, self.gate = nn.Linear(8, 3), nn.Linear(8, 1), nn.Linear(8, 8)

        def forward(self, x):
            h = self.body(x)
            classes = self.classes(h)
            return {
                "classes": functional.log_softmax(classes, -1),
                "best": classes.argmax(-1),
                "value": self.value(h * torch.sigmoid(self.gate(h))).squeeze(-1),
            }

    class DeepResidual(nn.Module):
        def __init__(self, depth=8):
            super().__init__()
            self.first = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(depth))
            self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(depth))

        def forward(self, x):
            for conv, norm in zip(self.first, self.norms):
                y = norm(conv(x))
                y += x
                x = functional.relu(y, inplace=True) * 0.5
            return x

    class Dense(nn.Module):
        def __init__(self):
            super().__init__()
            self.convs = nn.ModuleList(nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(4))
            self.last = nn.Conv2d(11, 4, 1)

        def forward(self, x):
            parts = [x]
            for conv in self.convs:
                parts.append(functional.relu(conv(torch.cat(parts, 1))))
            return functional.avg_pool2d(self.last(torch.cat(parts, 1)), 2)

    class SelfAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x):
            n, t, d = x.shape
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            q, k, v = (p.view(n, t, 2, d // 2).transpose(1, 2) for p in (q, k, v))
            weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(d // 2), dim=-1)
            return self.out((weights @ v).transpose(1, 2).reshape(n, t, d)), weights

    class CrossAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, kdim=6, vdim=6, batch_first=True)

        def forward(self, query, memory, padding):
            return self.attention(query, memory, memory, key_padding_mask=padding)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(8)
            self.attention = SelfAttention()
            self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

        def forward(self, x):
            x = x + self.attention(self.before(x))[0]
            return x + self.narrow(functional.gelu(self.wide(self.after(x))))

    class Unrolled(nn.Module):
        """A recurrent cell written out over time, its states collected."""

        def __init__(self):
            super().__init__()
            self.read, self.carry = nn.Linear(3, 5), nn.Linear(5, 5, bias=False)

        def forward(self, x):
            h, states = torch.zeros(x.shape[0], 5), []
            for step in x.unbind(1):
                h = torch.tanh(self.read(step) + self.carry(h))
                states.append(h)
            return torch.stack(states, 1), h

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(9, 6), nn.Linear(6, 9, bias=False)
            self.middle = nn.Linear(6, 6)
            self.head.weight = self.table.weight

        def forward(self, tokens):
            return self.head(torch.tanh(self.middle(self.table(tokens))))

    class Einsum(nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Parameter(torch.empty(6, 2, 3)) for _ in range(3))

        def forward(self, x):
            q, k, v = (torch.einsum("bti,ihd->bhtd", x, w) for w in (self.q, self.k, self.v))
            weights = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
            return torch.einsum("bhqk,bhkd->bqhd", weights, v).flatten(2)

    class Constants(nn.Module):
        """Lifted constants of every dtype, from attributes and from forward."""

        def __init__(self):
            super().__init__()
            for kind in DTYPES.split():
                data = [1, 0, 1] if kind == "bool" else [1, 2, 3]
                setattr(self, f"as_{kind}", torch.tensor(data, dtype=getattr(torch, kind)))

        def forward(self, x):
            total = x + self.as_float32 * torch.tensor([0.5, INF, -2.0]).clamp(max=4.0)
            for part in (self.as_bfloat16, self.as_float16, self.as_float64):
                total = total + part.float()
            whole = self.as_int8 + self.as_uint8 + self.as_int16 + self.as_int32 + self.as_int64
            return torch.where(self.as_bool, total, 0.0), whole, whole * torch.tensor(2**40)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru = nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 3, batch_first=True)

        def forward(self, x):
            y, (h, _) = self.lstm(x)
            return self.gru(y)[0], h

    class Gated(nn.Module):
        """Squeeze and excitation on depthwise convolutions, activations in place."""

        def __init__(self):
            super().__init__()
            self.wide, self.deep = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, 2, 1, groups=8)
            self.less, self.more = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
            self.norm = nn.BatchNorm2d(8)

        def forward(self, x):
            x = functional.hardswish(
                self.norm(self.deep(functional.relu6(self.wide(x), inplace=True)))
            )
            gate = functional.silu(self.less(x.mean((2, 3), keepdim=True)), inplace=True)
            return x * functional.hardsigmoid(self.more(gate))

    class Unet(nn.Module):
        """Down, up by a transposed convolution and by interpolation, skip connections."""

        def __init__(self):
            super().__init__()
            self.first, self.down = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, 2, 1)
            self.up, self.last = nn.ConvTranspose2d(6, 4, 2, 2), nn.Conv2d(10, 2, 1)

        def forward(self, x):
            high = functional.leaky_relu(self.first(x), 0.1)
            low = functional.elu(self.down(high))
            wide = functional.interpolate(low[:, :2], scale_factor=2.0, mode="bilinear")
            return self.last(torch.cat([high, self.up(low), wide], 1))

    class Mixed(nn.Module):
        """Integer, bool and floating-point work on one input."""

        def forward(self, tokens, x):
            keep = (tokens != 0) & (tokens < 7)
            count = keep.sum(-1, keepdim=True).clamp(min=1)
            pooled = (x * keep.unsqueeze(-1)).sum(1) / count
            order = torch.argsort(count.squeeze(-1), descending=True)
            return pooled[order], torch.cumsum(keep.long(), -1) * keep

    tol = {"rtol": 1e-5, "atol": 1e-5}
    c.model("siamese_encoder", Siamese(), f32(2, 1, 6, 6), f32(2, 1, 6, 6), **tol)
    c.model("multi_task", MultiTask(), f32(4, 6), **tol)
    c.model("deep_residual", DeepResidual(), f32(1, 4, 5, 5), **tol)
    c.model("dense_block", Dense(), f32(1, 3, 6, 6), **tol)
    c.model("self_attention", SelfAttention(), f32(2, 4, 8), **tol)
    c.model(
        "cross_attention", CrossAttention(), f32(2, 3, 8), f32(2, 5, 6),
        values([[False] * 5, [False, False, True, False, True]], "bool"), **tol,
    )
    c.model("transformer_block", Block(), f32(2, 4, 8), **tol)
    c.model("transformer_block_f64", Block().double(), f64(1, 3, 8), rtol=1e-12, atol=1e-12)
    c.model("unrolled_rnn", Unrolled(), f32(2, 4, 3), **tol)
    c.model("tied_weights", Tied(), i64(2, 4, low=0, high=9), **tol)
    c.model("einsum_attention", Einsum(), f32(2, 4, 6), **tol)
    c.model("bf16_block", Block().bfloat16(), bf16(2, 4, 8), rtol=2e-2, atol=2e-2)
    c.model("bf16_residual", DeepResidual(2).bfloat16(), bf16(1, 4, 5, 5), rtol=2e-2, atol=2e-2)
    c.model("lifted_constants", Constants(), f32(2, 3), **tol)
    c.model("lifted_constants_inline", Constants(), f32(2, 3), constants_in_file=False, **tol)
    c.model("lstm_gru", Recurrent(), f32(2, 4, 4), **tol)
    c.model("gated_depthwise", Gated(), f32(1, 3, 8, 8), **tol)
    c.model("unet", Unet(), f32(1, 2, 8, 8), **tol)
    c.model("masked_pooling", Mixed(), i64(3, 5, low=0, high=10), f32(3, 5, 4), **tol)
